//! Memory Management: `cuMemcpyHtoA` and its kin, which copy bytes of an array's first row.

use core::ffi::c_void;
use std::sync::Arc;

use super::memcpy::{Known, own, transfer};
use super::stream::resolve;
use crate::abi::{CUarray, CUdeviceptr, CUstream, Error, Result};
use crate::memory::array::{self, Array};
use crate::stream::Stream;
use crate::stream::spans::{Extent, Side};
use crate::streamed;

/// One side of such a copy.
enum Place {
    /// Bytes of an array, from an offset on.
    Row(CUarray, usize),
    /// Memory of the application.
    Host(u64),
    /// Memory that CUDA must know.
    Device(CUdeviceptr),
}

impl Place {
    fn side(&self, extent: &Extent) -> Result<Side> {
        match *self {
            Self::Row(handle, offset) => array(handle)?.side([offset as u64, 0, 0], extent),
            Self::Host(address) | Self::Device(address) => Ok(Side::at(address)),
        }
    }

    fn is_known(&self) -> bool {
        !matches!(self, Self::Host(_))
    }
}

/// The array of a copy, where NULL is a bad value and not a bad handle (recorded).
fn array(handle: CUarray) -> Result<Arc<Array>> {
    if handle.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    array::get(handle as u64)
}

fn copy(stream: &Stream, dst: &Place, src: &Place, size: usize, wait: bool) -> Result<()> {
    let extent = Extent::linear(size as u64);
    if extent.is_empty() {
        return Ok(());
    }
    let known = Known::new(dst.is_known(), src.is_known());
    transfer(stream, &dst.side(&extent)?, &src.side(&extent)?, &extent, known, wait)
}

streamed! { driver
    /// CUDA Driver API, Memory Management: `cuMemcpyHtoA`.
    fn cuMemcpyHtoA_v2(dst: CUarray, offset: usize, src: *const c_void, size: usize), fn cuMemcpyHtoA_v2_ptds(..) |default| {
        copy(&*own(default)?, &Place::Row(dst, offset), &Place::Host(src as u64), size, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyAtoH`.
    fn cuMemcpyAtoH_v2(dst: *mut c_void, src: CUarray, offset: usize, size: usize), fn cuMemcpyAtoH_v2_ptds(..) |default| {
        copy(&*own(default)?, &Place::Host(dst as u64), &Place::Row(src, offset), size, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyDtoA`.
    fn cuMemcpyDtoA_v2(dst: CUarray, offset: usize, src: CUdeviceptr, size: usize), fn cuMemcpyDtoA_v2_ptds(..) |default| {
        copy(&*own(default)?, &Place::Row(dst, offset), &Place::Device(src), size, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyAtoD`.
    fn cuMemcpyAtoD_v2(dst: CUdeviceptr, src: CUarray, offset: usize, size: usize), fn cuMemcpyAtoD_v2_ptds(..) |default| {
        copy(&*own(default)?, &Place::Device(dst), &Place::Row(src, offset), size, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyAtoA`.
    fn cuMemcpyAtoA_v2(dst: CUarray, dst_offset: usize, src: CUarray, src_offset: usize, size: usize),
    fn cuMemcpyAtoA_v2_ptds(..) |default| {
        copy(&*own(default)?, &Place::Row(dst, dst_offset), &Place::Row(src, src_offset), size, true)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyHtoAAsync`.
    fn cuMemcpyHtoAAsync_v2(dst: CUarray, offset: usize, src: *const c_void, size: usize, stream: CUstream),
    fn cuMemcpyHtoAAsync_v2_ptsz(..) |default| {
        copy(&*resolve(stream, default)?, &Place::Row(dst, offset), &Place::Host(src as u64), size, false)
    }

    /// CUDA Driver API, Memory Management: `cuMemcpyAtoHAsync`.
    fn cuMemcpyAtoHAsync_v2(dst: *mut c_void, src: CUarray, offset: usize, size: usize, stream: CUstream),
    fn cuMemcpyAtoHAsync_v2_ptsz(..) |default| {
        copy(&*resolve(stream, default)?, &Place::Host(dst as u64), &Place::Row(src, offset), size, false)
    }
}
