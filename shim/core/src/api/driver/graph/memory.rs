//! Memory that graphs hold.

use core::ffi::{c_int, c_void};

use crate::abi::{CUdevice, Error, Result, conv};
use crate::graph::memory;
use crate::{device, driver};

/// `CU_GRAPH_MEM_ATTR_*`. What graphs hold and what they use is the same: a block is held as long as a graph knows it.
const USED_CURRENT: c_int = 0;
const USED_HIGH: c_int = 1;
const RESERVED_CURRENT: c_int = 2;
const RESERVED_HIGH: c_int = 3;

/// `cuDeviceGetGraphMemAttribute`.
pub(in crate::api) fn attribute(device: c_int, attribute: c_int) -> Result<u64> {
    let (now, high) = memory::statistics(device::get(device)?);
    match attribute {
        USED_CURRENT | RESERVED_CURRENT => Ok(now),
        USED_HIGH | RESERVED_HIGH => Ok(high),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// `cuDeviceSetGraphMemAttribute`: the highest values may be reset, to 0 only.
pub(in crate::api) fn set_attribute(device: c_int, attribute: c_int, value: u64) -> Result<()> {
    let device = device::get(device)?;
    match (attribute, value) {
        (USED_HIGH | RESERVED_HIGH, 0) => {
            memory::reset_high(device);
            Ok(())
        }
        _ => Err(Error::INVALID_VALUE),
    }
}

/// `cuDeviceGraphMemTrim`. What no graph knows any more has gone back to the device already.
pub(in crate::api) fn trim(device: c_int) -> Result<()> {
    device::get(device).map(|_| ())
}

driver! {
    /// CUDA Driver API, Graph Management: `cuDeviceGetGraphMemAttribute`.
    fn cuDeviceGetGraphMemAttribute(device: CUdevice, id: c_int, value: *mut c_void) {
        conv::write(value.cast::<u64>(), attribute(device, id)?)
    }

    /// CUDA Driver API, Graph Management: `cuDeviceSetGraphMemAttribute`.
    fn cuDeviceSetGraphMemAttribute(device: CUdevice, id: c_int, value: *mut c_void) {
        set_attribute(device, id, conv::read(value.cast::<u64>())?)
    }

    /// CUDA Driver API, Graph Management: `cuDeviceGraphMemTrim`.
    fn cuDeviceGraphMemTrim(device: CUdevice) {
        trim(device)
    }
}
