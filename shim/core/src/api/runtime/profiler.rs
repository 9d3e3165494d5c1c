//! Profiler Control: `cudaProfilerStart`, `cudaProfilerStop`.

use crate::abi::Result;
use crate::attention::{self, EXITING};
use crate::device::context;
use crate::runtime;

/// There is no profiler. After `exit` has begun the calls succeed whatever happened before (recorded).
fn control() -> Result<()> {
    if attention::load() & EXITING != 0 {
        return Ok(());
    }
    context::runtime_current()?.check()
}

runtime! {
    /// CUDA Runtime API, Profiler Control: `cudaProfilerStart`. It succeeds whether a profiler is there or not; there is none.
    fn cudaProfilerStart() {
        control()
    }

    /// CUDA Runtime API, Profiler Control: `cudaProfilerStop`; as [`cudaProfilerStart`].
    fn cudaProfilerStop() {
        control()
    }
}
