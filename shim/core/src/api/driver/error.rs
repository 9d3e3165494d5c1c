//! Error Handling: `cuGetErrorName`, `cuGetErrorString`.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

use crate::abi::{Error, Result, conv};
use crate::driver;

/// Writes a code's text; a code that has none is an invalid value, and the output becomes NULL.
fn answer(out: *mut *const c_char, text: Option<&'static CStr>) -> Result<()> {
    conv::write(out, text.map_or(ptr::null(), CStr::as_ptr))?;
    text.map(drop).ok_or(Error::INVALID_VALUE)
}

driver! {
    /// CUDA Driver API, Error Handling: `cuGetErrorString`.
    fn cuGetErrorString(error: c_int, pStr: *mut *const c_char) {
        answer(pStr, Error(error).driver_text())
    }

    /// CUDA Driver API, Error Handling: `cuGetErrorName`.
    fn cuGetErrorName(error: c_int, pStr: *mut *const c_char) {
        answer(pStr, Error(error).driver_name())
    }
}
