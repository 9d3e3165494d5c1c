//! The two calls that other libraries hook.
//!
//! UCX's ROCm hooks learn of device memory by overwriting the GOT slots named `hsa_amd_memory_pool_allocate` and `_free`
//! of every loaded object; a runtime that calls only through `dlsym`'s answer has no such slot, and its memory is then taken
//! for host memory. So this object holds weak undefined references: their slots are 0 as long as nobody binds or patches
//! them, and are read anew at each call.

use core::ffi::c_void;

use crate::status::hsa_status_t;
use crate::types::hsa_amd_memory_pool_t;

/// `hsa_amd_memory_pool_allocate`.
pub type Allocate = unsafe extern "C" fn(hsa_amd_memory_pool_t, usize, u32, *mut *mut c_void) -> hsa_status_t;
/// `hsa_amd_memory_pool_free`.
pub type Free = unsafe extern "C" fn(*mut c_void) -> hsa_status_t;

macro_rules! slot {
    ($symbol:literal) => {{
        let address: usize;
        // SAFETY: loads one pointer from this object's GOT; touches neither the stack nor the flags.
        unsafe {
            // Weakness is a property of each object file's symbol, so it stands beside every use.
            core::arch::asm!(
                concat!(".weak ", $symbol),
                concat!("mov {}, qword ptr [rip + ", $symbol, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, preserves_flags, readonly)
            )
        };
        address
    }};
}

/// What the slot of `hsa_amd_memory_pool_allocate` holds now.
pub fn allocate() -> Option<Allocate> {
    let address: usize = slot!("hsa_amd_memory_pool_allocate");
    // SAFETY: the slot is 0 or the address of a function of this type; `Option` of a function pointer is 0 for none.
    unsafe { core::mem::transmute::<usize, Option<Allocate>>(address) }
}

/// What the slot of `hsa_amd_memory_pool_free` holds now.
pub fn free() -> Option<Free> {
    let address: usize = slot!("hsa_amd_memory_pool_free");
    // SAFETY: as above.
    unsafe { core::mem::transmute::<usize, Option<Free>>(address) }
}
