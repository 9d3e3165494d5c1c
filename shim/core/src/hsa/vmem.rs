//! Virtual memory: addresses without memory, memory without addresses, and mappings between them (ROCr 6.0 and later).

use core::ffi::c_void;
use core::ptr::NonNull;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hsa_sys as sys;

use super::agent::Agent;
use super::error::{Error, Result, check};
use super::pool::Pool;

/// Memory without an address. A number of ROCr's, which counts how often it gave it out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory(sys::hsa_amd_vmem_alloc_handle_t);

/// The status of functions that this ROCr does not have; [`super::Hsa::virtual_memory`] tells beforehand.
const ABSENT: Error = Error(sys::HSA_STATUS_ERROR_INVALID_ARGUMENT);

/// ROCr's export and import look at its table of memories without the lock under which all others change it (6.0 and later): beside
/// another thread's create or release they miss what is there, or break the table. So all that use the table take turns here.
static TABLE: Mutex<()> = Mutex::new(());

fn table() -> MutexGuard<'static, ()> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pointer(address: u64) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(address as usize)
}

/// Reserves `size` bytes of addresses, near `hint` if that is not 0. They are multiples of 4 KiB.
pub fn reserve(size: usize, hint: u64) -> Result<u64> {
    let reserve = super::raw().hsa_amd_vmem_address_reserve.ok_or(ABSENT)?;
    let mut address = core::ptr::null_mut();
    // SAFETY: the result is alive.
    check(unsafe { reserve(&raw mut address, size, hint, 0) })?;
    let address = NonNull::new(address).ok_or(Error(sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES))?;
    Ok(address.as_ptr().expose_provenance() as u64)
}

/// Ends [`reserve`]; nothing may be mapped there.
pub fn unreserve(address: u64, size: usize) -> Result<()> {
    let free = super::raw().hsa_amd_vmem_address_free.ok_or(ABSENT)?;
    // SAFETY: ROCr looks the range up.
    check(unsafe { free(pointer(address), size) })
}

/// Makes memory in a GPU's pool.
pub fn create(pool: &Pool, size: usize) -> Result<Memory> {
    let create = super::raw().hsa_amd_vmem_handle_create.ok_or(ABSENT)?;
    let mut handle = sys::hsa_amd_vmem_alloc_handle_t::default();
    let _turn = table();
    // SAFETY: the result is alive.
    check(unsafe { create(pool.handle, size, sys::HSA_AMD_MEMORY_TYPE_PINNED, 0, &raw mut handle) })?;
    Ok(Memory(handle))
}

/// Ends one [`create`] or [`import`].
pub fn release(memory: Memory) -> Result<()> {
    let release = super::raw().hsa_amd_vmem_handle_release.ok_or(ABSENT)?;
    let _turn = table();
    // SAFETY: ROCr looks the handle up.
    check(unsafe { release(memory.0) })
}

/// Maps the whole of `memory`, which has `size` bytes, at a reserved address. Nobody may use it yet.
pub fn map(address: u64, size: usize, memory: Memory) -> Result<()> {
    let map = super::raw().hsa_amd_vmem_map.ok_or(ABSENT)?;
    let _turn = table();
    // SAFETY: ROCr checks that the range is reserved and free.
    check(unsafe { map(pointer(address), size, 0, memory.0, 0) })
}

/// Ends one [`map`].
///
/// # Safety
/// No GPU uses the mapping any more, or the client has to answer for it.
pub unsafe fn unmap(address: u64, size: usize) -> Result<()> {
    let unmap = super::raw().hsa_amd_vmem_unmap.ok_or(ABSENT)?;
    let _turn = table();
    // SAFETY: the caller's promise; ROCr looks the range up.
    check(unsafe { unmap(pointer(address), size) })
}

/// Says what `agent` may do with one mapping: `permissions` are HSA's, which are CUDA's numbers.
pub fn set_access(address: u64, size: usize, agent: &Agent, permissions: u32) -> Result<()> {
    let set = super::raw().hsa_amd_vmem_set_access.ok_or(ABSENT)?;
    let description = sys::hsa_amd_memory_access_desc_t {
        permissions,
        agent_handle: agent.handle,
    };
    // SAFETY: the description is alive; ROCr looks the range up.
    check(unsafe { set(pointer(address), size, &raw const description, 1) })
}

/// A descriptor of the memory, closed on exec, which other processes can [`import`].
pub fn export(memory: Memory) -> Result<OwnedFd> {
    let export = super::raw().hsa_amd_vmem_export_shareable_handle.ok_or(ABSENT)?;
    let mut fd = -1;
    let _turn = table();
    // SAFETY: the result is alive.
    check(unsafe { export(&raw mut fd, memory.0, 0) })?;
    // SAFETY: ROCr gave the descriptor to us.
    let exported = unsafe { OwnedFd::from_raw_fd(fd) };
    // Releases differ in whether they keep a descriptor of their own behind the number; a copy is surely ours alone.
    exported
        .try_clone()
        .map_err(|_| Error(sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES))
}

/// The memory behind a descriptor. It must stay open as long as the memory is used: some releases look at it only when the
/// memory is mapped (rocm-systems#8440).
pub fn import(fd: &OwnedFd) -> Result<Memory> {
    let import = super::raw().hsa_amd_vmem_import_shareable_handle.ok_or(ABSENT)?;
    let mut handle = sys::hsa_amd_vmem_alloc_handle_t::default();
    let _turn = table();
    // SAFETY: the result is alive; the kernel checks the descriptor.
    check(unsafe { import(fd.as_raw_fd(), &raw mut handle) })?;
    Ok(Memory(handle))
}
