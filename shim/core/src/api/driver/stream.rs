//! Stream Management: `cuStream*`.

use core::ffi::{c_int, c_uint, c_void};

use crate::abi::{CUcontext, CUdevice, CUevent, CUlaunchAttributeValue, CUstream, CUstreamCallback, Error, conv};
use crate::api::guard;
use crate::device::{Context, context};
use crate::graph::operation::Host;
use crate::graph::{Operation, capture};
use crate::stream::{self, DefaultStream, Stream, attributes};
use crate::{driver, streamed};

use std::sync::Arc;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;

/// The stream behind a handle: default streams are the current context's; others need none to be current (recorded).
pub(super) fn resolve(stream: CUstream, default: DefaultStream) -> crate::abi::Result<Arc<Stream>> {
    if context::peek().is_none() {
        context::usable()?;
        return stream::named(stream as u64);
    }
    context::current()?.streams()?.resolve(stream as u64, default)
}

/// Calls `f` with the stream that [`resolve`] would find.
pub(super) fn with<T>(
    stream: CUstream,
    default: DefaultStream,
    f: impl FnOnce(&Arc<Stream>) -> crate::abi::Result<T>,
) -> crate::abi::Result<T> {
    if context::peek().is_none() {
        return f(&resolve(stream, default)?);
    }
    context::current()?.streams()?.with(stream as u64, default, f)
}

/// The context that a stream belongs to.
pub(super) fn context_of(stream: &Stream) -> crate::abi::Result<&'static Context> {
    let owns = |context: &Context| context.streams().is_ok_and(|streams| streams.id() == stream.owner());
    context::peek()
        .filter(|current| owns(current))
        .or_else(|| context::of_streams(stream.owner()))
        .ok_or(Error::CONTEXT_IS_DESTROYED)
}

/// As [`resolve`], for questions that a captured stream does not answer (recorded).
fn refusing(stream: CUstream, default: DefaultStream) -> crate::abi::Result<Arc<Stream>> {
    let stream = resolve(stream, default)?;
    capture::refuse(&stream)?;
    Ok(stream)
}

/// Whether a stream has done everything: `NotReady` when not. Unlike most questions about a stream, this one needs a current
/// context (recorded), which `current` finds.
#[inline]
pub(in crate::api) fn query_stream(
    handle: u64,
    default: DefaultStream,
    current: impl FnOnce() -> crate::abi::Result<&'static Context>,
) -> crate::abi::Result<()> {
    if context::peek().is_some() && stream::is_known_done(handle) {
        return Ok(());
    }
    current()?.streams()?.with(handle, default, |stream| {
        capture::refuse_wait(stream)?;
        if stream.is_done()? {
            Ok(())
        } else {
            Err(Error::NOT_READY)
        }
    })
}

driver! {
    /// CUDA Driver API, Stream Management: `cuStreamCreate`.
    fn cuStreamCreate(stream: *mut CUstream, flags: c_uint) {
        let context = context::current()?;
        if stream.is_null() || flags & !NON_BLOCKING != 0 {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(stream, context.streams()?.create(flags & NON_BLOCKING != 0, 0) as CUstream)
    }

    /// CUDA Driver API, Stream Management: `cuStreamCreateWithPriority`. Priorities out of range are clamped.
    fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int) {
        let context = context::current()?;
        if stream.is_null() || flags & !NON_BLOCKING != 0 {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(stream, context.streams()?.create(flags & NON_BLOCKING != 0, priority) as CUstream)
    }

    /// CUDA Driver API, Stream Management: `cuStreamDestroy`. Returns at once; work on its way goes on.
    fn cuStreamDestroy_v2(stream: CUstream) {
        context::usable()?;
        stream::destroy(stream as u64)
    }

    /// CUDA Driver API before 4.0: `cuStreamDestroy`.
    fn cuStreamDestroy(stream: CUstream) {
        context::usable()?;
        stream::destroy(stream as u64)
    }
}

streamed! { driver
    /// CUDA Driver API, Stream Management: `cuStreamGetAttribute`.
    fn cuStreamGetAttribute(stream: CUstream, id: c_int, value: *mut CUlaunchAttributeValue),
    fn cuStreamGetAttribute_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        capture::check_valid(&stream)?;
        conv::write(value, attributes::get(&stream, id)?)
    }

    /// CUDA Driver API, Stream Management: `cuStreamSetAttribute`. Hints for caches and host threads: kept and read back.
    fn cuStreamSetAttribute(stream: CUstream, id: c_int, value: *const CUlaunchAttributeValue),
    fn cuStreamSetAttribute_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        capture::check_valid(&stream)?;
        attributes::set(&stream, id, &conv::read(value)?)
    }

    /// CUDA Driver API, Stream Management: `cuStreamCopyAttributes`.
    fn cuStreamCopyAttributes(dst: CUstream, src: CUstream), fn cuStreamCopyAttributes_ptsz(..) |default| {
        let (dst, src) = (resolve(dst, default)?, resolve(src, default)?);
        capture::check_valid(&dst)?;
        capture::check_valid(&src)?;
        attributes::copy(&dst, &src);
        Ok(())
    }

    /// CUDA Driver API, Stream Management: `cuStreamGetPriority`.
    fn cuStreamGetPriority(stream: CUstream, priority: *mut c_int), fn cuStreamGetPriority_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        capture::check_valid(&stream)?;
        conv::write(priority, stream.priority())
    }

    /// CUDA Driver API, Stream Management: `cuStreamGetFlags`.
    fn cuStreamGetFlags(stream: CUstream, flags: *mut c_uint), fn cuStreamGetFlags_ptsz(..) |default| {
        conv::write(flags, refusing(stream, default)?.flags())
    }

    /// CUDA Driver API, Stream Management: `cuStreamGetId`.
    fn cuStreamGetId(stream: CUstream, id: *mut u64), fn cuStreamGetId_ptsz(..) |default| {
        conv::write(id, refusing(stream, default)?.id())
    }

    /// CUDA Driver API, Stream Management: `cuStreamGetCtx`.
    fn cuStreamGetCtx(stream: CUstream, ctx: *mut CUcontext), fn cuStreamGetCtx_ptsz(..) |default| {
        conv::write(ctx, context_of(&*resolve(stream, default)?)?.handle())
    }

    /// CUDA Driver API, Stream Management: `cuStreamGetCtx_v2`. There are no green contexts.
    fn cuStreamGetCtx_v2(stream: CUstream, ctx: *mut CUcontext, green: *mut *mut c_void),
    fn cuStreamGetCtx_v2_ptsz(..) |default| {
        let owner = context_of(&*resolve(stream, default)?)?.handle();
        conv::write(ctx, owner)?;
        conv::write(green, core::ptr::null_mut())
    }

    /// CUDA Driver API, Stream Management: `cuStreamGetDevice`.
    fn cuStreamGetDevice(stream: CUstream, device: *mut CUdevice), fn cuStreamGetDevice_ptsz(..) |default| {
        conv::write(device, resolve(stream, default)?.device().ordinal)
    }

    /// CUDA Driver API, Stream Management: `cuStreamWaitEvent`.
    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint), fn cuStreamWaitEvent_ptsz(..) |default| {
        context::usable()?;
        super::event::wait_event(event, flags, || resolve(stream, default))
    }

    /// CUDA Driver API, Stream Management: `cuStreamAddCallback`.
    fn cuStreamAddCallback(stream: CUstream, callback: CUstreamCallback, data: *mut c_void, flags: c_uint),
    fn cuStreamAddCallback_ptsz(..) |default| {
        let target = resolve(stream, default)?;
        add_callback(&target, stream, callback, data, flags)
    }

    /// CUDA Driver API, Stream Management: `cuStreamQuery`.
    fn cuStreamQuery(stream: CUstream), fn cuStreamQuery_ptsz(..) |default| {
        query_stream(stream as u64, default, context::current)
    }

    /// CUDA Driver API, Stream Management: `cuStreamSynchronize`.
    fn cuStreamSynchronize(stream: CUstream), fn cuStreamSynchronize_ptsz(..) |default| {
        let stream = resolve(stream, default)?;
        capture::refuse_wait(&stream)?;
        stream.synchronize()
    }
}

/// A pointer of the application's that another thread hands back to it.
struct UserData(*mut c_void);

// SAFETY: the application's pointer is only passed on to its own function, which CUDA documents to run on another thread.
unsafe impl Send for UserData {}

impl UserData {
    /// By value, so that a closure takes the wrapper and not the pointer in it.
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// Enqueues a stream callback: it runs whatever happened, and is told.
pub(in crate::api) fn add_callback(
    target: &Stream,
    handle: CUstream,
    callback: CUstreamCallback,
    data: *mut c_void,
    flags: c_uint,
) -> crate::abi::Result<()> {
    let callback = callback.ok_or(Error::INVALID_VALUE)?;
    if flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    let (handle, data) = (handle as usize, UserData(data));
    target.host_call(move |fault| {
        let data = data.get();
        // SAFETY: the application's function, with its own data.
        guard::host_callback(|| unsafe { callback(handle as CUstream, fault.map_or(0, |error| error.0), data) });
    })
}

/// A host function as a graph's operation. As in a stream, it does not run behind a fault.
pub(in crate::api) fn host_operation(function: unsafe extern "C" fn(*mut c_void), data: *mut c_void) -> Host {
    let pointer = data as usize;
    Host {
        function: function as usize,
        data: pointer,
        call: Arc::new(move |fault| {
            if fault.is_none() {
                // SAFETY: the application's function, with its own data.
                guard::host_callback(|| unsafe { function(pointer as *mut c_void) });
            }
        }),
    }
}

/// Enqueues a host function, or makes it a node where the stream is captured: as recorded, it does not run behind a fault.
pub(in crate::api) fn launch_host_function(
    target: &Stream,
    function: crate::abi::CUhostFn,
    data: *mut c_void,
) -> crate::abi::Result<()> {
    let function = function.ok_or(Error::INVALID_VALUE)?;
    if let Some(sequence) = capture::intercept(target)? {
        return sequence.add(target, Operation::Host(host_operation(function, data)));
    }
    let data = UserData(data);
    target.host_call(move |fault| {
        let data = data.get();
        if fault.is_none() {
            // SAFETY: the application's function, with its own data.
            guard::host_callback(|| unsafe { function(data) });
        }
    })
}
