//! Driver Entry Point Access: `cudaGetDriverEntryPoint`, `cudaGetExportTable`.

use core::ffi::{c_char, c_int, c_uint, c_void};

use super::version::RUNTIME_VERSION;
use crate::abi::{CUuuid, Error, Result, conv, cudaDriverEntryPointQueryResult, cudaGetDriverEntryPointFlags};
use crate::api::driver::{refuse_export_table, search};
use crate::runtime;

/// Finds the driver's function; what is not found is NULL, with the reason in the status, and no error.
pub(in crate::api) fn driver_entry_point(
    symbol: *const c_char,
    func: *mut *mut c_void,
    version: c_uint,
    flags: u64,
    status: *mut cudaDriverEntryPointQueryResult,
) -> Result<()> {
    // SAFETY: NULL is checked; the client promises a C string.
    let name = unsafe { conv::bytes(symbol) }?;
    if func.is_null() || flags > cudaGetDriverEntryPointFlags::PER_THREAD_DEFAULT_STREAM.0 as u64 {
        return Err(Error::INVALID_VALUE);
    }
    let version = c_int::try_from(version).map_err(|_| Error::INVALID_VALUE)?;
    let found = search(name, version, flags)?;
    // The runtime numbers the reasons as the driver does.
    conv::write_if(status, cudaDriverEntryPointQueryResult(found.status.0));
    conv::write(func, found.address)
}

/// The flags of a client compiled for per-thread default streams, which asks for that kind unless it says otherwise.
pub(in crate::api) fn per_thread(flags: u64) -> u64 {
    if flags == 0 {
        cudaGetDriverEntryPointFlags::PER_THREAD_DEFAULT_STREAM.0 as u64
    } else {
        flags
    }
}

runtime! {
    /// CUDA Runtime API, Driver Entry Point Access: `cudaGetDriverEntryPoint`, at the runtime's own version.
    fn cudaGetDriverEntryPoint(
        symbol: *const c_char,
        funcPtr: *mut *mut c_void,
        flags: u64,
        driverStatus: *mut cudaDriverEntryPointQueryResult,
    ) {
        driver_entry_point(symbol, funcPtr, RUNTIME_VERSION as c_uint, flags, driverStatus)
    }

    /// [`cudaGetDriverEntryPoint`] of a client compiled for per-thread default streams.
    fn cudaGetDriverEntryPoint_ptsz(
        symbol: *const c_char,
        funcPtr: *mut *mut c_void,
        flags: u64,
        driverStatus: *mut cudaDriverEntryPointQueryResult,
    ) {
        driver_entry_point(symbol, funcPtr, RUNTIME_VERSION as c_uint, per_thread(flags), driverStatus)
    }

    /// CUDA Runtime API, Driver Entry Point Access: `cudaGetDriverEntryPointByVersion`.
    fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char,
        funcPtr: *mut *mut c_void,
        cudaVersion: c_uint,
        flags: u64,
        driverStatus: *mut cudaDriverEntryPointQueryResult,
    ) {
        driver_entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus)
    }

    /// [`cudaGetDriverEntryPointByVersion`] of a client compiled for per-thread default streams.
    fn cudaGetDriverEntryPointByVersion_ptsz(
        symbol: *const c_char,
        funcPtr: *mut *mut c_void,
        cudaVersion: c_uint,
        flags: u64,
        driverStatus: *mut cudaDriverEntryPointQueryResult,
    ) {
        driver_entry_point(symbol, funcPtr, cudaVersion, per_thread(flags), driverStatus)
    }

    /// `cudaGetExportTable`, which NVIDIA's tools call and no manual has: refused as `cuGetExportTable` is.
    fn cudaGetExportTable(ppExportTable: *mut *const c_void, pExportTableId: *const CUuuid) {
        refuse_export_table(ppExportTable, pExportTableId)
    }
}
