//! Copies by ROCr's engines.

use hsa_sys::*;

use super::error::{Result, check};
use super::signal::SignalRef;
use super::{Agent, raw};

/// Starts a copy of `size` bytes that begins once all of `waits_for` are 0 and then counts `completion` down by one.
/// The agents are those that own either side, a CPU's for host memory.
///
/// # Errors
/// ROCr's refusal; the copy then does not happen.
///
/// # Safety
/// Both ranges are memory that the copying GPU may access, and they and the signals live until the copy has ended.
pub unsafe fn start(
    dst: (u64, &Agent),
    src: (u64, &Agent),
    size: usize,
    waits_for: &[SignalRef],
    completion: SignalRef,
) -> Result<()> {
    let signals: Vec<hsa_signal_t> = waits_for.iter().map(|signal| signal.0).collect();
    // SAFETY: the caller's promise; the list of signals lives through the call, which copies it.
    check(unsafe {
        raw().hsa_amd_memory_async_copy(
            dst.0 as *mut _,
            dst.1.handle,
            src.0 as *const _,
            src.1.handle,
            size,
            signals.len() as u32,
            if signals.is_empty() {
                core::ptr::null()
            } else {
                signals.as_ptr()
            },
            completion.0,
        )
    })
}
