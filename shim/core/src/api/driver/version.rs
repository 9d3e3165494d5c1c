//! Version Management: `cuDriverGetVersion`.

use core::ffi::c_int;

use crate::abi::conv;
use crate::config;
use crate::driver;

/// The CUDA version that the driver reports: major × 1000 + minor × 10.
pub fn driver_version() -> i32 {
    let &(major, minor) = config::DRIVER_VERSION.get();
    (major * 1000 + minor * 10) as i32
}

driver! {
    /// CUDA Driver API, Version Management: `cuDriverGetVersion`. Needs no `cuInit`.
    fn cuDriverGetVersion(driverVersion: *mut c_int) {
        conv::write(driverVersion, driver_version())
    }
}
