//! Profiler Control: `cudaProfilerStart`, `cudaProfilerStop`.

use crate::device::context;
use crate::runtime;

runtime! {
    /// CUDA Runtime API, Profiler Control: `cudaProfilerStart`. It succeeds whether a profiler is there or not; there is none.
    fn cudaProfilerStart() {
        context::runtime_current()?.check()
    }

    /// CUDA Runtime API, Profiler Control: `cudaProfilerStop`; as [`cudaProfilerStart`].
    fn cudaProfilerStop() {
        context::runtime_current()?.check()
    }
}
