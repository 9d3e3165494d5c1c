//! The end of the process.
//!
//! At exit nothing is torn down: other libraries' destructors may still call. From the moment that `exit` runs our handler,
//! calls fail with `cudaErrorCudartUnloading`, late frees included, and do nothing (`api::guard` has the few exceptions).
//! Handlers run in the reverse order of their registration, so destructors of objects that the host made after its
//! first CUDA call run before ours and find CUDA alive.

use std::sync::Once;

use crate::attention;

/// Registers the exit handler, once.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function of this library, which is never unloaded (`-z nodelete`).
        if unsafe { libc::atexit(at_exit) } != 0 {
            log::debug!("no exit handler could be registered; calls during exit are treated as any other");
        }
    });
}

extern "C" fn at_exit() {
    attention::raise(attention::EXITING);
}
