//! Stream Management: `cudaStream*`.

use core::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::abi::{CUhostFn, CUlaunchAttributeValue, CUstreamCallback, Error, Result, conv, cudaEvent_t, cudaStream_t};
use crate::api::driver;
use crate::device::context;
use crate::graph::capture;
use crate::stream::{self, DefaultStream, Stream, attributes};
use crate::{runtime, streamed};

/// `cudaStreamNonBlocking`.
const NON_BLOCKING: c_uint = 1;

/// The stream behind a handle, in the context that runtime calls use.
pub(in crate::api) fn resolve(stream: cudaStream_t, default: DefaultStream) -> Result<Arc<Stream>> {
    context::runtime_current()?.streams()?.resolve(stream as u64, default)
}

fn create(stream: *mut cudaStream_t, flags: c_uint, priority: c_int) -> Result<()> {
    let context = context::runtime_current()?;
    if stream.is_null() || flags & !NON_BLOCKING != 0 {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(
        stream,
        context.streams()?.create(flags & NON_BLOCKING != 0, priority) as cudaStream_t,
    )
}

/// As [`resolve`], for questions that a captured stream does not answer (recorded).
fn refusing(stream: cudaStream_t, default: DefaultStream) -> Result<Arc<Stream>> {
    let stream = resolve(stream, default)?;
    capture::refuse(&stream)?;
    Ok(stream)
}

runtime! {
    /// CUDA Runtime API, Stream Management: `cudaStreamCreate`.
    fn cudaStreamCreate(stream: *mut cudaStream_t) {
        create(stream, 0, 0)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamCreateWithFlags`.
    fn cudaStreamCreateWithFlags(stream: *mut cudaStream_t, flags: c_uint) {
        create(stream, flags, 0)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamCreateWithPriority`. Priorities out of range are clamped.
    fn cudaStreamCreateWithPriority(stream: *mut cudaStream_t, flags: c_uint, priority: c_int) {
        create(stream, flags, priority)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamDestroy`. Returns at once; work on its way goes on.
    fn cudaStreamDestroy(stream: cudaStream_t) {
        context::runtime_current()?;
        stream::destroy(stream as u64)
    }
}

streamed! { runtime
    /// CUDA Runtime API, Stream Management: `cudaStreamGetAttribute`.
    fn cudaStreamGetAttribute(stream: cudaStream_t, id: c_int, value: *mut CUlaunchAttributeValue),
    fn cudaStreamGetAttribute_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        capture::check_valid(&stream)?;
        conv::write(value, attributes::get(&stream, id)?)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamSetAttribute`. Hints for caches and host threads: kept and read back.
    fn cudaStreamSetAttribute(stream: cudaStream_t, id: c_int, value: *const CUlaunchAttributeValue),
    fn cudaStreamSetAttribute_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        capture::check_valid(&stream)?;
        attributes::set(&stream, id, &conv::read(value)?)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamCopyAttributes`.
    fn cudaStreamCopyAttributes(dst: cudaStream_t, src: cudaStream_t), fn cudaStreamCopyAttributes_ptsz(..) |default| {
        let (dst, src) = (resolve(dst, default)?, resolve(src, default)?);
        capture::check_valid(&dst)?;
        capture::check_valid(&src)?;
        attributes::copy(&dst, &src);
        Ok(())
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamGetPriority`.
    fn cudaStreamGetPriority(stream: cudaStream_t, priority: *mut c_int), fn cudaStreamGetPriority_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        capture::check_valid(&stream)?;
        conv::write(priority, stream.priority())
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamGetFlags`.
    fn cudaStreamGetFlags(stream: cudaStream_t, flags: *mut c_uint), fn cudaStreamGetFlags_ptsz(..) |default| {
        conv::write(flags, refusing(stream, default)?.flags())
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamGetId`.
    fn cudaStreamGetId(stream: cudaStream_t, id: *mut u64), fn cudaStreamGetId_ptsz(..) |default| {
        conv::write(id, refusing(stream, default)?.id())
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamGetDevice`.
    fn cudaStreamGetDevice(stream: cudaStream_t, device: *mut c_int), fn cudaStreamGetDevice_ptsz(..) |default| {
        conv::write(device, resolve(stream, default)?.device().ordinal)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamWaitEvent`.
    fn cudaStreamWaitEvent(stream: cudaStream_t, event: cudaEvent_t, flags: c_uint),
    fn cudaStreamWaitEvent_ptsz(..) |default| {
        context::runtime_current()?;
        driver::wait_event(event, flags, || resolve(stream, default))
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamAddCallback`.
    fn cudaStreamAddCallback(stream: cudaStream_t, callback: CUstreamCallback, data: *mut c_void, flags: c_uint),
    fn cudaStreamAddCallback_ptsz(..) |default| {
        driver::add_callback(&*resolve(stream, default)?, stream, callback, data, flags)
    }

    /// CUDA Runtime API, Execution Control: `cudaLaunchHostFunc`.
    fn cudaLaunchHostFunc(stream: cudaStream_t, function: CUhostFn, data: *mut c_void),
    fn cudaLaunchHostFunc_ptsz(..) |default| {
        driver::launch_host_function(&*resolve(stream, default)?, function, data)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamQuery`.
    fn cudaStreamQuery(stream: cudaStream_t), fn cudaStreamQuery_ptsz(..) |default| {
        driver::query_stream(stream as u64, default, context::runtime_current)
    }

    /// CUDA Runtime API, Stream Management: `cudaStreamSynchronize`.
    fn cudaStreamSynchronize(stream: cudaStream_t), fn cudaStreamSynchronize_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        capture::refuse_wait(&stream)?;
        stream.synchronize()
    }
}
