//! Unified Addressing: `cuPointerGetAttribute`, `cuPointerGetAttributes`, `cuPointerSetAttribute`.

use core::ffi::{c_uint, c_void};

use crate::abi::{CUdeviceptr, CUpointer_attribute, Error, conv};
use crate::memory;
use crate::memory::pointer::{self, Summary};
use crate::{device, driver};

driver! {
    /// CUDA Driver API, Unified Addressing: `cuPointerGetAttribute`. Memory that CUDA does not know is an invalid value.
    fn cuPointerGetAttribute(data: *mut c_void, attribute: CUpointer_attribute, address: CUdeviceptr)
    quick {
        let summary = Summary::quick(address)?;
        if summary.memory == 0 {
            return Some(Error::INVALID_VALUE.0);
        }
        // An address that is not there is a failure, of which the body knows more.
        if attribute == CUpointer_attribute::HOST_POINTER || data.is_null() {
            return None;
        }
        let value = summary.attribute(attribute)?;
        // SAFETY: the entry point's contract: room for the attribute's type.
        unsafe { value.write(data) };
        Some(0)
    }
    {
        device::initialized()?;
        if data.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let entry = memory::lookup(address).ok_or(Error::INVALID_VALUE)?;
        let (value, result) = pointer::attribute(&entry, address, attribute)?;
        // SAFETY: the entry point's contract: room for the attribute's type.
        unsafe { value.write(data) };
        result
    }

    /// CUDA Driver API, Unified Addressing: `cuPointerGetAttributes`. Memory that CUDA does not know gives zeroes.
    fn cuPointerGetAttributes(
        count: c_uint, attributes: *const CUpointer_attribute, data: *const *mut c_void, address: CUdeviceptr,
    )
    quick {
        let summary = Summary::quick(address)?;
        // SAFETY: the entry point's contract: both arrays have `count` elements.
        let (attributes, data) = unsafe {
            (conv::slice(attributes, count as usize).ok()?, conv::slice(data, count as usize).ok()?)
        };
        if attributes.is_empty() {
            return None;
        }
        for (&attribute, &data) in attributes.iter().zip(data) {
            let value = summary.attribute(attribute)?;
            if data.is_null() {
                return None;
            }
            // SAFETY: the entry point's contract: room for the attribute's type.
            unsafe { value.write(data) };
        }
        Some(0)
    }
    {
        device::initialized()?;
        if count == 0 {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: the entry point's contract: both arrays have `count` elements.
        let (attributes, data) = unsafe { (conv::slice(attributes, count as usize)?, conv::slice(data, count as usize)?) };
        let entry = memory::lookup(address);
        for (&attribute, &data) in attributes.iter().zip(data) {
            let Some(value) = pointer::plural(entry.as_ref(), address, attribute)? else { continue };
            if data.is_null() {
                return Err(Error::INVALID_VALUE);
            }
            // SAFETY: the entry point's contract: room for the attribute's type.
            unsafe { value.write(data) };
        }
        Ok(())
    }

    /// CUDA Driver API, Unified Addressing: `cuPointerSetAttribute`. Copies of device memory are synchronous already, so
    /// `SYNC_MEMOPS` has nothing to change.
    fn cuPointerSetAttribute(value: *const c_void, attribute: CUpointer_attribute, address: CUdeviceptr) {
        device::initialized()?;
        let device = memory::lookup(address).is_some_and(|entry| entry.kind.is_device());
        if value.is_null() || attribute != CUpointer_attribute::SYNC_MEMOPS || !device {
            return Err(Error::INVALID_VALUE);
        }
        Ok(())
    }
}
