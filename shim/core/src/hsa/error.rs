//! HSA's status codes as Rust errors.

use core::fmt;

use hsa_sys as sys;

use crate::abi;

/// A call of ROCr that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(pub(super) sys::hsa_status_t);

/// A result of this folder.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// Whether memory, or another resource, ran out.
    pub fn is_out_of_resources(self) -> bool {
        self.0 == sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES
    }
}

/// Turns a status into a result.
pub(super) fn check(status: sys::hsa_status_t) -> Result<()> {
    match status {
        sys::HSA_STATUS_SUCCESS | sys::HSA_STATUS_INFO_BREAK => Ok(()),
        status => Err(Error(status)),
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {}

impl From<Error> for abi::Error {
    /// The CUDA error that names the same cause; [`abi::Error::UNKNOWN`] where there is none.
    fn from(error: Error) -> Self {
        match error.0 {
            sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES => Self::MEMORY_ALLOCATION,
            sys::HSA_STATUS_ERROR_INVALID_ARGUMENT | sys::HSA_STATUS_ERROR_INVALID_ALLOCATION => Self::INVALID_VALUE,
            sys::HSA_STATUS_ERROR_NOT_INITIALIZED => Self::INITIALIZATION_ERROR,
            sys::HSA_STATUS_ERROR_INVALID_CODE_OBJECT | sys::HSA_STATUS_ERROR_INVALID_ISA => Self::INVALID_KERNEL_IMAGE,
            sys::HSA_STATUS_ERROR_INVALID_SYMBOL_NAME => Self::SYMBOL_NOT_FOUND,
            sys::HSA_STATUS_ERROR_MEMORY_FAULT | sys::HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION => {
                Self::ILLEGAL_ADDRESS
            }
            sys::HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION => Self::ILLEGAL_INSTRUCTION,
            status => {
                log::warn!("HSA says {status:?}, which has no CUDA error of its own");
                Self::UNKNOWN
            }
        }
    }
}
