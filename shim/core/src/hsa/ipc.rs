//! Device memory of other processes.

use core::ffi::c_void;
use core::ptr::NonNull;

use hsa_sys as sys;

use super::error::{Result, check};

/// ROCr's handle of one block, valid in every process of the node while the exporter keeps the block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct IpcHandle(pub [u32; 8]);

/// Makes the handle of a whole block.
///
/// `base` and `size` must be the block's own, as [`super::memory::pointer_info`] gives them: ROCr refuses anything else.
pub fn create(base: NonNull<u8>, size: usize) -> Result<IpcHandle> {
    let mut handle = sys::hsa_amd_ipc_memory_t::default();
    // SAFETY: the result is alive; ROCr looks the block up.
    check(unsafe { super::raw().hsa_amd_ipc_memory_create(base.as_ptr().cast(), size, &raw mut handle) })?;
    Ok(IpcHandle(handle.handle))
}

/// Maps another process's block into this one and into all its GPUs.
pub fn attach(handle: &IpcHandle, size: usize) -> Result<NonNull<u8>> {
    let raw = sys::hsa_amd_ipc_memory_t { handle: handle.0 };
    let mut address: *mut c_void = core::ptr::null_mut();
    // SAFETY: handle and result are alive; no agents named means all.
    check(unsafe {
        super::raw().hsa_amd_ipc_memory_attach(&raw const raw, size, 0, core::ptr::null(), &raw mut address)
    })?;
    NonNull::new(address.cast()).ok_or(super::Error(sys::HSA_STATUS_ERROR_INVALID_ARGUMENT))
}

/// Ends [`attach`].
///
/// # Safety
/// Nothing uses the mapping any more.
pub unsafe fn detach(address: NonNull<u8>) -> Result<()> {
    // SAFETY: the caller's promise.
    check(unsafe { super::raw().hsa_amd_ipc_memory_detach(address.as_ptr().cast()) })
}
