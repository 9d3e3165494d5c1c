//! Memory pools: where memory comes from.

use core::ffi::c_void;
use core::ptr::NonNull;

use hsa_sys as sys;

use super::agent::Agent;
use super::error::{Result, check};

/// One pool of an agent, in the global segment.
#[derive(Debug)]
pub struct Pool {
    pub(super) handle: sys::hsa_amd_memory_pool_t,
    /// Coherent among agents while kernels run.
    pub fine_grained: bool,
    /// Coherent at kernel boundaries only.
    pub coarse_grained: bool,
    /// Meant for kernel arguments.
    pub kernarg: bool,
    /// Whether users may allocate from it.
    pub allocatable: bool,
    /// Bytes in all.
    pub size: usize,
    /// Largest single allocation, bytes.
    pub max_allocation: usize,
}

impl Pool {
    /// The global-segment pools of an agent.
    pub(super) fn of(functions: &sys::Functions, agent: sys::hsa_agent_t) -> Result<Vec<Self>> {
        unsafe extern "C" fn collect(pool: sys::hsa_amd_memory_pool_t, data: *mut c_void) -> sys::hsa_status_t {
            // SAFETY: `data` is the vector passed below, held for the length of the iteration.
            unsafe { &mut *data.cast::<Vec<sys::hsa_amd_memory_pool_t>>() }.push(pool);
            sys::HSA_STATUS_SUCCESS
        }
        let mut handles: Vec<sys::hsa_amd_memory_pool_t> = Vec::new();
        // SAFETY: the callback matches the data.
        check(unsafe { functions.hsa_amd_agent_iterate_memory_pools(agent, collect, (&raw mut handles).cast()) })?;
        let mut pools = Vec::new();
        for handle in handles {
            if info::<u32>(functions, handle, sys::HSA_AMD_MEMORY_POOL_INFO_SEGMENT)? != sys::HSA_AMD_SEGMENT_GLOBAL {
                continue;
            }
            let flags = info::<u32>(functions, handle, sys::HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS)?;
            let size = info::<usize>(functions, handle, sys::HSA_AMD_MEMORY_POOL_INFO_SIZE)?;
            pools.push(Self {
                handle,
                fine_grained: flags & sys::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED != 0,
                coarse_grained: flags & sys::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED != 0,
                kernarg: flags & sys::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT != 0,
                allocatable: info(functions, handle, sys::HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED)?,
                size,
                max_allocation: info(functions, handle, sys::HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE).unwrap_or(size),
            });
        }
        Ok(pools)
    }

    /// A pool that no call of ROCr knows.
    #[cfg(test)]
    pub(super) fn for_tests(size: usize) -> Self {
        Self {
            handle: sys::hsa_amd_memory_pool_t::default(),
            fine_grained: true,
            coarse_grained: true,
            kernarg: false,
            allocatable: true,
            size,
            max_allocation: size,
        }
    }

    /// Allocates `size` bytes, accessible to the owning agent (and, for host memory, to the host).
    pub fn allocate(&self, size: usize) -> Result<NonNull<u8>> {
        let mut address: *mut c_void = core::ptr::null_mut();
        // SAFETY: `address` is valid for the write.
        check(unsafe { super::raw().pool_allocate(self.handle, size, 0, &raw mut address) })?;
        NonNull::new(address.cast()).ok_or(super::Error(sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES))
    }

    /// Whether `agent` can ever be given access to this pool's memory. For a GPU's pool and a CPU: whether the whole memory
    /// lies in the host's address space (large BAR).
    pub fn reachable_by(&self, agent: &Agent) -> bool {
        let mut access = sys::HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
        // SAFETY: the attribute is a 32-bit enumeration.
        let status = unsafe {
            super::raw().hsa_amd_agent_memory_pool_get_info(
                agent.handle,
                self.handle,
                sys::HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS,
                (&raw mut access).cast(),
            )
        };
        status == sys::HSA_STATUS_SUCCESS && access != sys::HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED
    }

    /// Hops of the way from `agent` to this pool; 0 for an agent's own, `None` where there is no way.
    pub fn hops_from(&self, agent: &Agent) -> Option<u32> {
        let mut hops = 0u32;
        // SAFETY: the attribute is a u32.
        let status = unsafe {
            super::raw().hsa_amd_agent_memory_pool_get_info(
                agent.handle,
                self.handle,
                sys::HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS,
                (&raw mut hops).cast(),
            )
        };
        (status == sys::HSA_STATUS_SUCCESS).then_some(hops)
    }
}

impl Pool {
    /// Whether 32-bit and 64-bit atomics of `agent` work on this pool's memory across every hop.
    pub fn atomics_from(&self, agent: &Agent) -> bool {
        let Some(hops @ 1..) = self.hops_from(agent) else {
            return false;
        };
        let mut links = vec![sys::hsa_amd_memory_pool_link_info_t::default(); hops as usize];
        // SAFETY: the attribute is one such structure per hop.
        let status = unsafe {
            super::raw().hsa_amd_agent_memory_pool_get_info(
                agent.handle,
                self.handle,
                sys::HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO,
                links.as_mut_ptr().cast(),
            )
        };
        let native =
            |link: &sys::hsa_amd_memory_pool_link_info_t| link.atomic_support_32bit && link.atomic_support_64bit;
        status == sys::HSA_STATUS_SUCCESS && links.iter().all(native)
    }
}

/// One attribute; `T` is the type that AMD's header names for it.
fn info<T: Copy + Default>(functions: &sys::Functions, pool: sys::hsa_amd_memory_pool_t, attribute: u32) -> Result<T> {
    let mut value = T::default();
    // SAFETY: the callers in this file name each attribute's own type.
    check(unsafe { functions.hsa_amd_memory_pool_get_info(pool, attribute, (&raw mut value).cast()) })?;
    Ok(value)
}
