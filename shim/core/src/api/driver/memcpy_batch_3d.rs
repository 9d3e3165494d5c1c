//! Memory Management: batches of copies of boxes, `cuMemcpy3DBatchAsync`.

use core::ffi::c_ulonglong;

use super::memcpy::{UNIFIED, transfer};
use super::memcpy_batch::{ANY_ORDER, OVERLAP, STREAM_ORDER};
use super::stream::resolve;
use crate::abi::{
    CUDA_MEMCPY3D_BATCH_OP, CUmemcpy3DOperand, CUmemcpy3DOperand_array, CUmemcpy3DOperand_ptr, CUmemcpy3DOperandType,
    CUstream, Error, Result, conv,
};
use crate::graph::capture;
use crate::memory::array;
use crate::stream::locate::{Place, place};
use crate::stream::spans::{Extent, Side};
use crate::stream::{Kind, Stream};
use crate::streamed;

/// One side of a copy.
enum Operand {
    Memory(CUmemcpy3DOperand_ptr),
    Array(CUmemcpy3DOperand_array),
}

impl Operand {
    fn new(operand: &CUmemcpy3DOperand) -> Result<Self> {
        // SAFETY: every bit pattern of the union's members is a value.
        unsafe {
            match operand.r#type {
                CUmemcpy3DOperandType::POINTER => Ok(Self::Memory(operand.op.ptr)),
                CUmemcpy3DOperandType::ARRAY => Ok(Self::Array(operand.op.array)),
                _ => Err(Error::INVALID_VALUE),
            }
        }
    }

    /// Bytes of an element; none for memory, which takes the other side's.
    fn element(&self) -> Result<Option<u64>> {
        match self {
            Self::Memory(_) => Ok(None),
            Self::Array(side) => Ok(Some(array::get(side.array as u64)?.format.element_size())),
        }
    }

    /// The extents of what lies there must hold what is copied, which is `extent` in bytes.
    fn check(&self, extent: &Extent, element: u64) -> Result<()> {
        match self {
            Self::Memory(side) => {
                let fits = |given: u64, needed: u64| given == 0 || given >= needed;
                if fits(side.rowLength as u64, extent.width / element) && fits(side.layerHeight as u64, extent.height) {
                    Ok(())
                } else {
                    Err(Error::INVALID_VALUE)
                }
            }
            Self::Array(_) => Ok(()),
        }
    }

    fn side(&self, extent: &Extent, element: u64) -> Result<Side> {
        match self {
            Self::Memory(side) => {
                let or = |given: u64, packed| if given == 0 { packed } else { given };
                let pitch = (side.rowLength as u64)
                    .checked_mul(element)
                    .ok_or(Error::INVALID_VALUE)?;
                Ok(Side::boxed(
                    side.ptr,
                    or(pitch, extent.width),
                    or(side.layerHeight as u64, extent.height),
                ))
            }
            Self::Array(side) => {
                let x = (side.offset.x as u64)
                    .checked_mul(element)
                    .ok_or(Error::INVALID_VALUE)?;
                let start = [x, side.offset.y as u64, side.offset.z as u64];
                array::get(side.array as u64)?.side(start, extent)
            }
        }
    }
}

/// A copy of the batch that has passed the checks which come before any is made.
struct Copy {
    dst: Operand,
    src: Operand,
    extent: Extent,
    element: u64,
    order: i32,
}

impl Copy {
    fn new(operation: &CUDA_MEMCPY3D_BATCH_OP) -> Result<Self> {
        let (dst, src) = (Operand::new(&operation.dst)?, Operand::new(&operation.src)?);
        let element = match (dst.element()?, src.element()?) {
            (Some(to), Some(from)) if to != from => return Err(Error::INVALID_VALUE),
            (to, from) => to.or(from).unwrap_or(1),
        };
        let width = (operation.extent.width as u64).checked_mul(element);
        let extent = Extent {
            width: width.ok_or(Error::INVALID_VALUE)?,
            height: operation.extent.height as u64,
            depth: operation.extent.depth as u64,
        };
        let known_order = (STREAM_ORDER..=ANY_ORDER).contains(&operation.srcAccessOrder);
        if extent.is_empty() || !known_order || operation.flags & !OVERLAP != 0 {
            return Err(Error::INVALID_VALUE);
        }
        dst.check(&extent, element)?;
        src.check(&extent, element)?;
        Ok(Self {
            dst,
            src,
            extent,
            element,
            order: operation.srcAccessOrder,
        })
    }

    fn enqueue(&self, stream: &Stream) -> Result<()> {
        let dst = self.dst.side(&self.extent, self.element)?;
        let src = self.src.side(&self.extent, self.element)?;
        if self.order == STREAM_ORDER && matches!(place(&src, &self.extent)?, Place::Pageable) {
            // Read at the call otherwise, which may be before what the stream still does to it.
            stream.wait_turn()?;
        }
        transfer(stream, &dst, &src, &self.extent, UNIFIED, false)
    }
}

/// Copies each box, in some order of their own, in the order of `stream`. As recorded, `failed` gets the index of a copy that is malformed,
/// before any is made; of one that leaves its memory, -1, and those before it are made.
///
/// # Errors
/// INVALID_VALUE for an empty batch, the legacy default stream, flags, copies of nothing, and as a copy;
/// STREAM_CAPTURE_UNSUPPORTED where the stream is captured, which goes on.
///
/// # Safety
/// An array of `count` operations.
pub(in crate::api) unsafe fn copy_boxes(
    stream: &Stream,
    count: usize,
    operations: *const CUDA_MEMCPY3D_BATCH_OP,
    failed: *mut usize,
    flags: c_ulonglong,
) -> Result<()> {
    if stream.kind() == Kind::Legacy {
        return Err(Error::INVALID_VALUE);
    }
    // All of the batch is wrong until one copy is.
    conv::write_if(failed, usize::MAX);
    if capture::intercept(stream)?.is_some() {
        return Err(Error::STREAM_CAPTURE_UNSUPPORTED);
    }
    // SAFETY: the caller's promise.
    let operations = unsafe { conv::slice(operations, count) }?;
    if count == 0 || flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    let copies = operations
        .iter()
        .enumerate()
        .map(|(index, operation)| Copy::new(operation).inspect_err(|_| conv::write_if(failed, index)))
        .collect::<Result<Vec<Copy>>>()?;
    copies.iter().try_for_each(|copy| copy.enqueue(stream))
}

streamed! { driver
    /// CUDA Driver API, Memory Management: `cuMemcpy3DBatchAsync`.
    fn cuMemcpy3DBatchAsync(
        count: usize, operations: *mut CUDA_MEMCPY3D_BATCH_OP, failed: *mut usize, flags: c_ulonglong, stream: CUstream,
    ), fn cuMemcpy3DBatchAsync_ptsz(..) |default| {
        // SAFETY: the application promises the array.
        unsafe { copy_boxes(&*resolve(stream, default)?, count, operations, failed, flags) }
    }

    /// CUDA Driver API from 13.0: `cuMemcpy3DBatchAsync`.
    fn cuMemcpy3DBatchAsync_v2(
        count: usize, operations: *mut CUDA_MEMCPY3D_BATCH_OP, flags: c_ulonglong, stream: CUstream,
    ), fn cuMemcpy3DBatchAsync_v2_ptsz(..) |default| {
        // SAFETY: as above.
        unsafe { copy_boxes(&*resolve(stream, default)?, count, operations, core::ptr::null_mut(), flags) }
    }
}
