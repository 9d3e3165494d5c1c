//! Initialization: `cuInit`.

use core::ffi::c_uint;

use crate::abi::Error;
use crate::{device, driver};

driver! {
    /// CUDA Driver API, Initialization: `cuInit`. Flags must be 0, also later.
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        device::init()
    }
}
