//! Driver calls that other libraries hook.
//!
//! UCX learns of device memory by overwriting the first instructions of the driver's allocation calls, and then takes an address
//! that it never saw for host memory. NVIDIA's runtime allocates and frees through those calls, so ours must, too: through
//! the entry point that programs call, not past it.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::abi::{CUdeviceptr, CUlibrary, CUmemoryPool, CUstream, Error, Result};
use crate::api::driver;

macro_rules! hooked {
    ($($(#[$doc:meta])* fn $name:ident as $base:literal ($($arg:ident: $ty:ty),*);)*) => {$(
        $(#[$doc])*
        #[allow(non_snake_case)]
        pub(super) fn $name($($arg: $ty),*) -> Result<()> {
            type Entry = unsafe extern "C" fn($($ty),*) -> c_int;
            static ENTRY: OnceLock<Entry> = OnceLock::new();
            let entry = ENTRY.get_or_init(|| match driver::search($base.as_bytes(), -1, 0) {
                // SAFETY: the entry point of this name takes these arguments: it jumps to the function of this crate.
                Ok(found) if !found.address.is_null() => unsafe { core::mem::transmute::<*mut c_void, Entry>(found.address) },
                // This crate's own tests have no entry points.
                _ => driver::$name,
            });
            // SAFETY: the callers' pointers are their own live variables, or what the client passed for this very purpose.
            match unsafe { entry($($arg),*) } {
                0 => Ok(()),
                code => Err(Error(code)),
            }
        }
    )*};
}

hooked! {
    /// Allocates device memory.
    fn cuMemAlloc_v2 as "cuMemAlloc"(address: *mut CUdeviceptr, size: usize);
    /// Allocates rows of device memory.
    fn cuMemAllocPitch_v2 as "cuMemAllocPitch"(
        address: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element_size: c_uint
    );
    /// Allocates managed memory.
    fn cuMemAllocManaged as "cuMemAllocManaged"(address: *mut CUdeviceptr, size: usize, flags: c_uint);
    /// Frees device and managed memory.
    fn cuMemFree_v2 as "cuMemFree"(address: CUdeviceptr);
    /// Allocates in a stream's order.
    fn cuMemAllocAsync as "cuMemAllocAsync"(address: *mut CUdeviceptr, size: usize, stream: CUstream);
    /// Allocates from a pool in a stream's order.
    fn cuMemAllocFromPoolAsync as "cuMemAllocFromPoolAsync"(
        address: *mut CUdeviceptr, size: usize, pool: CUmemoryPool, stream: CUstream
    );
    /// Frees in a stream's order.
    fn cuMemFreeAsync as "cuMemFreeAsync"(address: CUdeviceptr, stream: CUstream);
    /// Frees pinned host memory.
    fn cuMemFreeHost as "cuMemFreeHost"(address: *mut c_void);
    /// Finds a variable of a library.
    fn cuLibraryGetGlobal as "cuLibraryGetGlobal"(
        address: *mut CUdeviceptr, size: *mut usize, library: CUlibrary, name: *const c_char
    );
}
