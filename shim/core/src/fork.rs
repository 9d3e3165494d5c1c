//! Forked children.
//!
//! CUDA does not work in the forked child of a process that has initialised it, and neither does HSA: its threads and its
//! connection to the driver are the parent's. The child is told so by every call ([`Error::INITIALIZATION_ERROR`]) instead of
//! hanging on a lock that a thread of the parent held. A child that only runs `exec` is not touched.
//!
//! [`Error::INITIALIZATION_ERROR`]: crate::abi::Error::INITIALIZATION_ERROR

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::attention;

/// Makes forked children of this process notice. To be called when the driver has been initialised; once is enough.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions of this library, which is never unloaded (`-z nodelete`).
        let code = unsafe { libc::pthread_atfork(Some(before), None, Some(in_child)) };
        if code != 0 {
            log::warn!("no fork handler could be registered (error {code}): CUDA calls in forked children may hang");
        }
    });
}

/// Forks that have begun since the driver was initialised.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Runs before the process is copied.
extern "C" fn before() {
    COUNT.fetch_add(1, Relaxed);
}

/// How often the process has forked: where this is as it was, no child has come that holds what was made in between.
pub fn count() -> u64 {
    COUNT.load(Relaxed)
}

/// Runs in the child before `fork` returns: one atomic store, nothing that could need a lock.
extern "C" fn in_child() {
    attention::raise(attention::FORKED);
}

/// Whether the process has asked for the number of devices.
static COUNT_ASKED: AtomicBool = AtomicBool::new(false);

/// Notes that `cudaGetDeviceCount` has answered: then it answers in forked children, too, as NVIDIA's does.
pub fn note_count_asked() {
    COUNT_ASKED.store(true, Relaxed);
}

/// Whether `cudaGetDeviceCount` may answer in a forked child.
pub fn count_asked() -> bool {
    COUNT_ASKED.load(Relaxed)
}
