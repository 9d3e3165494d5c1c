//! Stream Memory Operations: `cuStreamWriteValue*`, `cuStreamWaitValue*`, `cuStreamBatchMemOp`.

use core::ffi::c_uint;

use super::stream::resolve;
use crate::abi::{CUdeviceptr, CUstream, CUstreamBatchMemOpParams, CUstreamBatchMemOpType, Error, Result, conv};
use crate::device::context;
use crate::stream::DefaultStream;
use crate::stream::memop::{self, Compare, MemOp, Width};
use crate::streamed;

/// `CU_STREAM_WAIT_VALUE_FLUSH`.
const FLUSH: c_uint = 1 << 30;

/// The operations that one batch may hold (recorded: 255 pass, 256 do not).
const LARGEST_BATCH: usize = 255;

/// The comparison that a wait's flags ask for.
///
/// # Errors
/// NOT_SUPPORTED for a flush (attribute 98 is 0, as recorded), INVALID_VALUE for other bits.
fn compare(flags: c_uint) -> Result<Compare> {
    match flags & !FLUSH {
        _ if flags & !(FLUSH | 3) != 0 => Err(Error::INVALID_VALUE),
        _ if flags & FLUSH != 0 => Err(Error::NOT_SUPPORTED),
        0 => Ok(Compare::GreaterOrEqual),
        1 => Ok(Compare::Equal),
        2 => Ok(Compare::And),
        _ => Ok(Compare::Nor),
    }
}

fn wait(address: CUdeviceptr, value: u64, width: Width, flags: c_uint) -> Result<MemOp> {
    Ok(MemOp::Wait {
        address,
        value,
        width,
        compare: compare(flags)?,
    })
}

fn write(address: CUdeviceptr, value: u64, width: Width, flags: c_uint) -> Result<MemOp> {
    match flags {
        0 => Ok(MemOp::Write { address, value, width }),
        // Recorded: CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER is refused, too.
        _ => Err(Error::INVALID_VALUE),
    }
}

fn operation(params: &CUstreamBatchMemOpParams) -> Result<MemOp> {
    type Kind = CUstreamBatchMemOpType;
    // SAFETY: `operation` is the first field of every member; the members hold integers only, of which any bits are a value.
    unsafe {
        match params.operation {
            Kind::WAIT_VALUE_32 => {
                let wait_value = &params.waitValue;
                wait(
                    wait_value.address,
                    wait_value.u.value.into(),
                    Width::Four,
                    wait_value.flags,
                )
            }
            Kind::WAIT_VALUE_64 => {
                let wait_value = &params.waitValue;
                wait(wait_value.address, wait_value.u.value64, Width::Eight, wait_value.flags)
            }
            Kind::WRITE_VALUE_32 => {
                let write_value = &params.writeValue;
                write(
                    write_value.address,
                    write_value.u.value.into(),
                    Width::Four,
                    write_value.flags,
                )
            }
            Kind::WRITE_VALUE_64 => {
                let write_value = &params.writeValue;
                write(
                    write_value.address,
                    write_value.u.value64,
                    Width::Eight,
                    write_value.flags,
                )
            }
            // Of the system or of the GPU.
            Kind::BARRIER if params.memoryBarrier.flags <= 1 => Ok(MemOp::Barrier),
            Kind::FLUSH_REMOTE_WRITES => Err(Error::NOT_SUPPORTED),
            _ => Err(Error::INVALID_VALUE),
        }
    }
}

/// The operations of a batch, as calls and graph nodes give them.
///
/// # Errors
/// INVALID_VALUE for an unknown operation or flag and for more than 255 operations, NOT_SUPPORTED for a flush.
pub(in crate::api) fn mem_operations(count: c_uint, params: *const CUstreamBatchMemOpParams) -> Result<Vec<MemOp>> {
    if count as usize > LARGEST_BATCH {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: the caller of the C function promises `count` elements.
    let params = unsafe { conv::slice(params, count as usize) }?;
    params.iter().map(operation).collect()
}

fn enqueue(stream: CUstream, default: DefaultStream, operations: Result<Vec<MemOp>>) -> Result<()> {
    let stream = resolve(stream, default)?;
    memop::enqueue(&stream, &operations?)
}

/// The first version of these calls needed a module option of NVIDIA's kernel driver; recorded as refused without it.
fn first_version() -> Result<()> {
    context::current()?;
    Err(Error::NOT_SUPPORTED)
}

streamed! { driver
    /// CUDA Driver API, Stream Memory Operations: `cuStreamWriteValue32`.
    fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint),
    fn cuStreamWriteValue32_v2_ptsz(..) |default| {
        enqueue(stream, default, write(address, value.into(), Width::Four, flags).map(|op| vec![op]))
    }

    /// CUDA Driver API, Stream Memory Operations: `cuStreamWriteValue64`.
    fn cuStreamWriteValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint),
    fn cuStreamWriteValue64_v2_ptsz(..) |default| {
        enqueue(stream, default, write(address, value, Width::Eight, flags).map(|op| vec![op]))
    }

    /// CUDA Driver API, Stream Memory Operations: `cuStreamWaitValue32`.
    fn cuStreamWaitValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint),
    fn cuStreamWaitValue32_v2_ptsz(..) |default| {
        enqueue(stream, default, wait(address, value.into(), Width::Four, flags).map(|op| vec![op]))
    }

    /// CUDA Driver API, Stream Memory Operations: `cuStreamWaitValue64`.
    fn cuStreamWaitValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint),
    fn cuStreamWaitValue64_v2_ptsz(..) |default| {
        enqueue(stream, default, wait(address, value, Width::Eight, flags).map(|op| vec![op]))
    }

    /// CUDA Driver API, Stream Memory Operations: `cuStreamBatchMemOp`.
    fn cuStreamBatchMemOp_v2(stream: CUstream, count: c_uint, params: *const CUstreamBatchMemOpParams, flags: c_uint),
    fn cuStreamBatchMemOp_v2_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        memop::enqueue(&stream, &mem_operations(count, params)?)
    }

    /// CUDA Driver API before 11.7: `cuStreamWriteValue32`.
    fn cuStreamWriteValue32(_stream: CUstream, _address: CUdeviceptr, _value: u32, _flags: c_uint),
    fn cuStreamWriteValue32_ptsz(..) |_default| {
        first_version()
    }

    /// CUDA Driver API before 11.7: `cuStreamWriteValue64`.
    fn cuStreamWriteValue64(_stream: CUstream, _address: CUdeviceptr, _value: u64, _flags: c_uint),
    fn cuStreamWriteValue64_ptsz(..) |_default| {
        first_version()
    }

    /// CUDA Driver API before 11.7: `cuStreamWaitValue32`.
    fn cuStreamWaitValue32(_stream: CUstream, _address: CUdeviceptr, _value: u32, _flags: c_uint),
    fn cuStreamWaitValue32_ptsz(..) |_default| {
        first_version()
    }

    /// CUDA Driver API before 11.7: `cuStreamWaitValue64`.
    fn cuStreamWaitValue64(_stream: CUstream, _address: CUdeviceptr, _value: u64, _flags: c_uint),
    fn cuStreamWaitValue64_ptsz(..) |_default| {
        first_version()
    }

    /// CUDA Driver API before 11.7: `cuStreamBatchMemOp`.
    fn cuStreamBatchMemOp(_stream: CUstream, _count: c_uint, _params: *const CUstreamBatchMemOpParams, _flags: c_uint),
    fn cuStreamBatchMemOp_ptsz(..) |_default| {
        first_version()
    }
}
