//! Profiler Control: `cuProfilerStart`, `cuProfilerStop`.

use crate::device::{self, context};
use crate::driver;

driver! {
    /// CUDA Driver API, Profiler Control: `cuProfilerStart`. It succeeds whether a profiler is there or not; there is none.
    fn cuProfilerStart() {
        device::initialized()?;
        context::current().map(drop)
    }

    /// CUDA Driver API, Profiler Control: `cuProfilerStop`; as [`cuProfilerStart`].
    fn cuProfilerStop() {
        device::initialized()?;
        context::current().map(drop)
    }
}
