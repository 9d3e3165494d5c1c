//! Interprocess communication: `cuIpc*`. Events are in `event.rs`.

use core::ffi::{c_char, c_uint};

use crate::abi::{CUdeviceptr, CUipcMemHandle, Error, Result, conv};
use crate::device::{Context, context};
use crate::driver;
use crate::memory::ipc;

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`: the one value that opening accepts (recorded).
const LAZY_ENABLE_PEER_ACCESS: c_uint = 1;

/// The handle of the memory at an address, as both APIs' structures hold it.
pub(in crate::api) fn export_memory(address: u64) -> Result<[c_char; ipc::HANDLE_SIZE]> {
    Ok(ipc::export(address)?.map(u8::cast_signed))
}

/// Opens a handle.
pub(in crate::api) fn open_memory(
    context: &'static Context,
    handle: &[c_char; ipc::HANDLE_SIZE],
    flags: c_uint,
) -> Result<u64> {
    if flags != LAZY_ENABLE_PEER_ACCESS {
        return Err(Error::INVALID_VALUE);
    }
    ipc::open(context, &handle.map(c_char::cast_unsigned))
}

fn open_driver(address: *mut CUdeviceptr, handle: &CUipcMemHandle, flags: c_uint) -> Result<()> {
    let context = context::current().map_err(|error| match error {
        // Recorded: bytes that are no handle are seen before a context is missed.
        Error::DEVICE_UNINITIALIZED if !ipc::is_handle(&handle.reserved.map(c_char::cast_unsigned)) => {
            Error::INVALID_VALUE
        }
        error => error,
    })?;
    if address.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(address, open_memory(context, &handle.reserved, flags)?)
}

driver! {
    /// CUDA Driver API, Memory Management: `cuIpcGetMemHandle`.
    fn cuIpcGetMemHandle(handle: *mut CUipcMemHandle, address: CUdeviceptr) {
        context::current()?;
        if handle.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(handle, CUipcMemHandle { reserved: export_memory(address)? })
    }

    /// CUDA Driver API, Memory Management: `cuIpcOpenMemHandle`.
    fn cuIpcOpenMemHandle_v2(address: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint) {
        open_driver(address, &handle, flags)
    }

    /// CUDA Driver API, Memory Management: `cuIpcOpenMemHandle` of CUDA 4.
    fn cuIpcOpenMemHandle(address: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint) {
        open_driver(address, &handle, flags)
    }

    /// CUDA Driver API, Memory Management: `cuIpcCloseMemHandle`.
    fn cuIpcCloseMemHandle(address: CUdeviceptr) {
        context::current()?;
        ipc::close(address)
    }
}
