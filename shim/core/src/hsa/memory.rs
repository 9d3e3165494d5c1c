//! Memory that exists: freeing, access, host memory for GPUs, what ROCr says about an address, simple copies.

use core::ffi::c_void;
use core::ptr::NonNull;

use hsa_sys as sys;

use super::agent::Agent;
use super::error::{Result, check};
use super::pool::Pool;

/// Frees a block of [`Pool::allocate`]. ROCr runs other libraries' deallocation callbacks inside, so no lock may be held.
///
/// # Safety
/// `address` is the start of a block that was not freed, and nothing uses it any more.
pub unsafe fn free(address: NonNull<u8>) -> Result<()> {
    // SAFETY: the caller's promise.
    check(unsafe { super::raw().pool_free(address.as_ptr().cast()) })
}

/// Lets exactly `agents` use the block at `address` (the list replaces the block's earlier one).
pub fn allow_access(agents: &[&Agent], address: NonNull<u8>) -> Result<()> {
    allow(&agents.iter().map(|agent| agent.handle).collect::<Vec<_>>(), address)
}

fn allow(handles: &[sys::hsa_agent_t], address: NonNull<u8>) -> Result<()> {
    // SAFETY: the list is alive; ROCr refuses an address that is not the start of a block.
    check(unsafe {
        super::raw().hsa_amd_agents_allow_access(
            u32::try_from(handles.len()).unwrap_or(u32::MAX),
            handles.as_ptr(),
            core::ptr::null(),
            address.as_ptr().cast(),
        )
    })
}

/// Lets `agents` use the block at `address`, and all that could already.
pub fn add_access(agents: &[&Agent], address: NonNull<u8>) -> Result<()> {
    let mut handles = accessible(address)?;
    handles.extend(agents.iter().map(|agent| agent.handle));
    handles.sort_unstable();
    handles.dedup();
    allow(&handles, address)
}

/// The agents that can use the block at `address` now.
fn accessible(address: NonNull<u8>) -> Result<Vec<sys::hsa_agent_t>> {
    unsafe extern "C" fn allocate(size: usize) -> *mut c_void {
        // SAFETY: no precondition.
        unsafe { libc::malloc(size) }
    }
    let mut info = empty_info();
    let (mut count, mut list) = (0u32, core::ptr::null_mut::<sys::hsa_agent_t>());
    // SAFETY: all results are alive; the list comes from our own allocator.
    check(unsafe {
        super::raw().hsa_amd_pointer_info(
            address.as_ptr().cast(),
            &raw mut info,
            Some(allocate),
            &raw mut count,
            &raw mut list,
        )
    })?;
    if list.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: ROCr filled `count` entries of the list that our allocator gave.
    let agents = unsafe { core::slice::from_raw_parts(list, count as usize) }.to_vec();
    // SAFETY: from malloc, used no more.
    unsafe { libc::free(list.cast()) };
    Ok(agents)
}

/// Pins host memory for `agents` and returns its address on them. The range may begin and end anywhere; ROCr pins whole pages.
///
/// # Safety
/// The range stays mapped until [`unlock`].
pub unsafe fn lock(address: NonNull<u8>, size: usize, agents: &[&Agent], pool: &Pool) -> Result<NonNull<u8>> {
    let handles: Vec<_> = agents.iter().map(|agent| agent.handle).collect();
    let mut device: *mut c_void = core::ptr::null_mut();
    // SAFETY: the list and the result are alive; the range by the caller's promise.
    check(unsafe {
        super::raw().hsa_amd_memory_lock_to_pool(
            address.as_ptr().cast(),
            size,
            handles.as_ptr(),
            i32::try_from(handles.len()).unwrap_or(i32::MAX),
            pool.handle,
            0,
            &raw mut device,
        )
    })?;
    NonNull::new(device.cast()).ok_or(super::Error(sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES))
}

/// Ends [`lock`].
pub fn unlock(address: NonNull<u8>) -> Result<()> {
    // SAFETY: ROCr looks the address up and refuses one that is not locked.
    check(unsafe { super::raw().hsa_amd_memory_unlock(address.as_ptr().cast()) })
}

/// What ROCr calls the memory at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PointerType {
    /// Not ROCr's: ordinary host memory, or nothing.
    Unknown,
    /// A block of a pool.
    Hsa,
    /// Pinned host memory.
    Locked,
    /// Imported from a graphics API (or, in some releases, from another process).
    Graphics,
    /// Attached from another process.
    Ipc,
    /// Reserved or mapped by the virtual memory calls, or a value of a later release.
    Other(u32),
}

/// [`pointer_info`]'s answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointerInfo {
    /// What the memory is; the rest means nothing when it is [`PointerType::Unknown`].
    pub kind: PointerType,
    /// Start of the block, as agents see it.
    pub base: usize,
    /// Bytes in the block: page-rounded before ROCr 5.7, the requested size since.
    pub size: usize,
    /// Whether the memory's owner is an agent that this process sees. Attached memory may belong to a GPU that
    /// `ROCR_VISIBLE_DEVICES` hides.
    pub owner_visible: bool,
}

/// The structure that ROCr fills, with the size that it may fill.
fn empty_info() -> sys::hsa_amd_pointer_info_t {
    sys::hsa_amd_pointer_info_t {
        size: size_of::<sys::hsa_amd_pointer_info_t>() as u32,
        type_: 0,
        agent_base_address: core::ptr::null_mut(),
        host_base_address: core::ptr::null_mut(),
        size_in_bytes: 0,
        user_data: core::ptr::null_mut(),
        agent_owner: sys::hsa_agent_t::default(),
        global_flags: 0,
    }
}

/// What ROCr knows about `address`, which may point anywhere.
pub fn pointer_info(address: usize) -> Result<PointerInfo> {
    let mut info = empty_info();
    // SAFETY: `info` is alive and says its size; the list of agents is not asked for.
    check(unsafe {
        super::raw().hsa_amd_pointer_info(
            core::ptr::without_provenance(address),
            &raw mut info,
            None,
            core::ptr::null_mut(),
            core::ptr::null_mut(),
        )
    })?;
    Ok(PointerInfo {
        kind: match info.type_ {
            sys::HSA_EXT_POINTER_TYPE_UNKNOWN => PointerType::Unknown,
            sys::HSA_EXT_POINTER_TYPE_HSA => PointerType::Hsa,
            sys::HSA_EXT_POINTER_TYPE_LOCKED => PointerType::Locked,
            sys::HSA_EXT_POINTER_TYPE_GRAPHICS => PointerType::Graphics,
            sys::HSA_EXT_POINTER_TYPE_IPC => PointerType::Ipc,
            other => PointerType::Other(other),
        },
        base: info.agent_base_address.addr(),
        size: info.size_in_bytes,
        owner_visible: super::get().is_ok_and(|hsa| hsa.agent(info.agent_owner).is_some()),
    })
}

/// Exports the block that holds `[address, address + size)` as a dma-buf: the file descriptor, and the offset of `address` in
/// it. The caller closes the descriptor. Only for this process's own pool blocks: ROCr crashes on attached ones.
pub fn export_dma_buf(address: usize, size: usize) -> Result<(i32, u64)> {
    let Some(export) = super::raw().hsa_amd_portable_export_dmabuf else {
        return Err(super::Error(sys::HSA_STATUS_ERROR_INVALID_ARGUMENT));
    };
    let (mut fd, mut offset) = (-1, 0);
    // SAFETY: both results are alive; ROCr looks the range up.
    check(unsafe {
        export(
            core::ptr::without_provenance(address),
            size,
            &raw mut fd,
            &raw mut offset,
        )
    })?;
    Ok((fd, offset))
}
