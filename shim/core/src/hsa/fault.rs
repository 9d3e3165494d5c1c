//! The device fault that ends a process's use of CUDA.
//!
//! NVIDIA's recorded behaviour: a fault poisons the whole process, other contexts and other devices with it, until it
//! ends. So one word holds it, and every wait looks at it: nobody waits on a dead queue.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::abi::{Error, Result};

static FAULT: AtomicI32 = AtomicI32::new(0);

/// What tells a failed assertion from other traps.
static REFINE: OnceLock<fn(Error) -> Error> = OnceLock::new();

/// Sets what may name the cause of a LAUNCH_FAILURE more exactly; the first one stays.
pub fn refine_with(refine: fn(Error) -> Error) {
    let _ = REFINE.set(refine);
}

/// Makes `error` the fault of this process; the first one stays.
pub fn raise(error: Error) {
    let error = match REFINE.get() {
        Some(refine) if error == Error::LAUNCH_FAILURE => refine(error),
        _ => error,
    };
    let _ = FAULT.compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Acquire);
}

/// The fault, if one happened.
pub fn current() -> Option<Error> {
    match FAULT.load(Ordering::Acquire) {
        0 => None,
        code => Some(Error(code)),
    }
}

/// Fails with the fault, if one happened.
pub fn check() -> Result<()> {
    current().map_or(Ok(()), Err)
}
