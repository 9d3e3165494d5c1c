//! Version Management: `cudaDriverGetVersion`, `cudaRuntimeGetVersion`.

use core::ffi::c_int;

use crate::abi::conv;
use crate::api::driver::driver_version;
use crate::runtime;

/// The version of the runtime whose symbols and structures these are.
pub const RUNTIME_VERSION: c_int = 12090;

runtime! {
    /// CUDA Runtime API, Version Management: `cudaDriverGetVersion`. Does not initialise anything.
    fn cudaDriverGetVersion(driverVersion: *mut c_int) {
        conv::write(driverVersion, driver_version())
    }

    /// CUDA Runtime API, Version Management: `cudaRuntimeGetVersion`. Does not initialise anything.
    fn cudaRuntimeGetVersion(runtimeVersion: *mut c_int) {
        conv::write(runtimeVersion, RUNTIME_VERSION)
    }
}
