//! What surrounds every API call.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{Error, Result};

thread_local! {
    static LAST_ERROR: Cell<i32> = const { Cell::new(0) };
}

/// Runs the body of a driver API call.
pub fn driver(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(Error(code))) => code,
        Err(_) => {
            log::error!("{name}: internal error (a panic); returning CUDA_ERROR_UNKNOWN");
            Error::UNKNOWN.0
        }
    }
}

/// Runs the body of a runtime API call and keeps the thread's last error (`NotReady` never becomes it).
pub fn runtime(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    let code = driver(name, body);
    if code != 0 && code != Error::NOT_READY.0 {
        set_last_error(Error(code));
    }
    code
}

/// Makes `error` the calling thread's last error.
pub fn set_last_error(error: Error) {
    LAST_ERROR.set(error.0);
}

/// The calling thread's last error; 0 is none.
pub fn last_error() -> i32 {
    LAST_ERROR.get()
}

/// Returns and clears the calling thread's last error.
pub fn take_last_error() -> i32 {
    LAST_ERROR.replace(0)
}
