//! Version Management: `cuDriverGetVersion`.

use core::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::abi::conv;
use crate::config;
use crate::driver;

/// The CUDA version that the driver reports: major × 1000 + minor × 10.
///
/// `libcudart.so.13` refuses to work under a driver of CUDA 12 (recorded: error 35 from every call), so a process that has it
/// loaded has a newer driver, unless the user says which.
pub fn driver_version() -> i32 {
    match *config::DRIVER_VERSION.get() {
        Some((major, minor)) => (major * 1000 + minor * 10) as i32,
        None if runtime_13_is_loaded() => 13000,
        None => 12090,
    }
}

/// Whether this process has loaded a `libcudart.so.13`: ours or one with our driver below it.
fn runtime_13_is_loaded() -> bool {
    static LOADED: AtomicBool = AtomicBool::new(false);
    if LOADED.load(Relaxed) {
        return true;
    }
    // SAFETY: asks for a library without loading it; the reference that it may take is given back.
    let loaded = unsafe {
        let library = libc::dlopen(c"libcudart.so.13".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        !library.is_null() && libc::dlclose(library) == 0
    };
    LOADED.store(loaded, Relaxed);
    loaded
}

driver! {
    /// CUDA Driver API, Version Management: `cuDriverGetVersion`. Needs no `cuInit`.
    fn cuDriverGetVersion(driverVersion: *mut c_int) {
        conv::write(driverVersion, driver_version())
    }
}
