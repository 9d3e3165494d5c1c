//! C types and error codes of NVML that its clients use here.

// These are NVML's own names; its manual documents each field.
#![allow(missing_docs, non_camel_case_types, non_snake_case)]

use core::ffi::{CStr, c_char, c_uint};

use super::Plain;

/// `nvmlReturn_t`: an error code of NVML, which numbers its errors on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct NvmlError(pub u32);

/// A result whose error is a code of NVML.
pub type NvmlResult<T> = core::result::Result<T, NvmlError>;

impl NvmlError {
    pub const UNINITIALIZED: Self = Self(1);
    pub const INVALID_ARGUMENT: Self = Self(2);
    pub const NOT_SUPPORTED: Self = Self(3);
    pub const NOT_FOUND: Self = Self(6);
    pub const INSUFFICIENT_SIZE: Self = Self(7);
    pub const DRIVER_NOT_LOADED: Self = Self(9);
    pub const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
    pub const UNKNOWN: Self = Self(999);

    /// What `nvmlErrorString` answers.
    pub fn text(self) -> &'static CStr {
        match self.0 {
            0 => c"Success",
            1 => c"Uninitialized",
            2 => c"Invalid Argument",
            3 => c"Not Supported",
            4 => c"Insufficient Permissions",
            5 => c"Already Initialized",
            6 => c"Not Found",
            7 => c"Insufficient Size",
            8 => c"Insufficient External Power",
            9 => c"Driver Not Loaded",
            10 => c"Timeout",
            12 => c"NVML Shared Library Not Found",
            13 => c"Function Not Found",
            20 => c"Insufficient Memory",
            25 => c"Argument Version Mismatch",
            _ => c"Unknown Error",
        }
    }
}

/// An NVML device. Only NVML gives it a meaning, so it is checked and never followed.
pub type nvmlDevice_t = usize;

/// What `nvmlDeviceGetPciInfo` and `_v2` fill; the first one has only the fields up to `pciDeviceId`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvmlPciInfo_v2_t {
    pub busId: [c_char; 16],
    pub domain: c_uint,
    pub bus: c_uint,
    pub device: c_uint,
    pub pciDeviceId: c_uint,
    pub pciSubSystemId: c_uint,
    pub reserved: [c_uint; 4],
}

/// What `nvmlDeviceGetPciInfo_v3` fills.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvmlPciInfo_t {
    pub busIdLegacy: [c_char; 16],
    pub domain: c_uint,
    pub bus: c_uint,
    pub device: c_uint,
    pub pciDeviceId: c_uint,
    pub pciSubSystemId: c_uint,
    pub busId: [c_char; 32],
}

/// Bytes of device memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvmlMemory_t {
    pub total: u64,
    pub free: u64,
    pub used: u64,
}

/// Bytes of device memory, second version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvmlMemory_v2_t {
    pub version: c_uint,
    pub total: u64,
    pub reserved: u64,
    pub free: u64,
    pub used: u64,
}

/// One question of `nvmlDeviceGetFieldValues` and its answer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvmlFieldValue_t {
    pub fieldId: c_uint,
    pub scopeId: c_uint,
    pub timestamp: i64,
    pub latencyUsec: i64,
    pub valueType: c_uint,
    pub nvmlReturn: c_uint,
    pub value: u64,
}

// SAFETY: integers and arrays of them, in C's layout.
unsafe impl Plain for nvmlPciInfo_v2_t {}
// SAFETY: as above.
unsafe impl Plain for nvmlPciInfo_t {}

const _: () = {
    assert!(size_of::<nvmlPciInfo_v2_t>() == 52);
    assert!(size_of::<nvmlPciInfo_t>() == 68);
    assert!(size_of::<nvmlMemory_t>() == 24);
    // The low bytes of the structure's version are its size.
    assert!(size_of::<nvmlMemory_v2_t>() == 0x28);
    assert!(size_of::<nvmlFieldValue_t>() == 40);
};
