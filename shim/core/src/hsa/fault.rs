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

/// What knows the kernels that are on their way.
static IN_FLIGHT: OnceLock<fn() -> Vec<String>> = OnceLock::new();

/// Sets what names the kernels that may have caused a fault; the first one stays.
pub fn blame_with(in_flight: fn() -> Vec<String>) {
    let _ = IN_FLIGHT.set(in_flight);
}

/// The kernels that may have caused a fault, for the log; to be asked before [`raise`], which ends what is on its way.
pub(super) fn suspects() -> String {
    let kernels = IN_FLIGHT.get().map(|in_flight| in_flight()).unwrap_or_default();
    match kernels.len() {
        0 => "no kernel was running".to_owned(),
        1 => format!("the kernel {} was running", kernels[0]),
        _ => format!("the kernels {} were running or next", kernels.join(", ")),
    }
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
