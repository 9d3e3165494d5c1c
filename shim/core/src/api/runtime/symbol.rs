//! Memory Management: symbols, that is, `__device__` and `__constant__` variables.

use core::ffi::c_void;
use std::ffi::CString;

use super::hooked;
use super::memcpy::{known, own};
use super::stream::resolve;
use crate::abi::{CUlibrary, Error, Result, conv, cudaMemcpyKind, cudaStream_t};
use crate::api::driver::linear;
use crate::device::context;
use crate::module::registration;
use crate::stream::Stream;
use crate::{runtime, streamed};

/// Address and size of a variable. `InvalidSymbol` for what was never registered.
fn locate(symbol: *const c_void) -> Result<(u64, u64)> {
    let context = context::runtime_current()?;
    registration::variable(symbol as usize)
        .ok_or(Error::INVALID_SYMBOL)?
        .locate(context)
}

/// Address of `count` bytes at `offset` in a variable. `InvalidValue` outside it.
fn range(symbol: *const c_void, count: usize, offset: usize) -> Result<u64> {
    let (address, size) = locate(symbol)?;
    match offset.checked_add(count) {
        Some(end) if end as u64 <= size => Ok(address + offset as u64),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// The address of a copy's destination in a variable. InvalidMemcpyDirection for kinds that do not go there.
pub(super) fn to_symbol(symbol: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind) -> Result<u64> {
    let dst = range(symbol, count, offset)?;
    match kind.0 {
        1 | 3 | 4 => Ok(dst),
        _ => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

/// The address of a copy's source in a variable. InvalidMemcpyDirection for kinds that do not come from there.
pub(super) fn from_symbol(symbol: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind) -> Result<u64> {
    let src = range(symbol, count, offset)?;
    match kind.0 {
        2..=4 => Ok(src),
        _ => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

fn to(
    stream: &Stream,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
    wait: bool,
) -> Result<()> {
    let dst = to_symbol(symbol, count, offset, kind)?;
    linear(stream, dst, src as u64, count, known(kind)?, wait)
}

fn from(
    stream: &Stream,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
    wait: bool,
) -> Result<()> {
    let src = from_symbol(symbol, count, offset, kind)?;
    linear(stream, dst as u64, src, count, known(kind)?, wait)
}

runtime! {
    /// CUDA Runtime API, Memory Management: `cudaGetSymbolAddress`.
    fn cudaGetSymbolAddress(address: *mut *mut c_void, symbol: *const c_void) {
        locate(symbol)?;
        let variable = registration::variable(symbol as usize).ok_or(Error::INVALID_SYMBOL)?;
        let name = CString::new(variable.name()).map_err(|_| Error::INVALID_SYMBOL)?;
        // Whoever hooks the driver learns of the variable before its address is used.
        let (mut at, mut size) = (0, 0);
        hooked::cuLibraryGetGlobal(&mut at, &mut size, variable.library() as CUlibrary, name.as_ptr())?;
        conv::write(address, at as *mut c_void)
    }

    /// CUDA Runtime API, Memory Management: `cudaGetSymbolSize`.
    fn cudaGetSymbolSize(size: *mut usize, symbol: *const c_void) {
        let (_, bytes) = locate(symbol)?;
        conv::write(size, bytes as usize)
    }
}

streamed! { runtime
    /// CUDA Runtime API, Memory Management: `cudaMemcpyToSymbol`.
    fn cudaMemcpyToSymbol(
        symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind,
    ), fn cudaMemcpyToSymbol_ptds(..) |default| {
        to(&*own(default)?, symbol, src, count, offset, kind, true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyToSymbolAsync`.
    fn cudaMemcpyToSymbolAsync(
        symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind, stream: cudaStream_t,
    ), fn cudaMemcpyToSymbolAsync_ptsz(..) |default| {
        to(&*resolve(stream, default)?, symbol, src, count, offset, kind, false)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyFromSymbol`.
    fn cudaMemcpyFromSymbol(
        dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind,
    ), fn cudaMemcpyFromSymbol_ptds(..) |default| {
        from(&*own(default)?, dst, symbol, count, offset, kind, true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyFromSymbolAsync`.
    fn cudaMemcpyFromSymbolAsync(
        dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind, stream: cudaStream_t,
    ), fn cudaMemcpyFromSymbolAsync_ptsz(..) |default| {
        from(&*resolve(stream, default)?, dst, symbol, count, offset, kind, false)
    }
}
