//! Event Management: `cuEvent*`.

use core::ffi::{c_char, c_uint};
use std::sync::Arc;

use super::stream::resolve;
use crate::abi::{CUevent, CUipcEventHandle, CUstream, Error, Result, conv};
use crate::device::{Context, context};
use crate::graph::operation::EventOperand;
use crate::graph::{Operation, capture};
use crate::stream::ipc_event::HANDLE_SIZE;
use crate::stream::{self, Event, Stream};
use crate::{driver, streamed};

/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`: only for streams that capture.
const EXTERNAL: c_uint = 1;

/// Makes a stream wait for an event.
pub(in crate::api) fn wait_event(
    event: CUevent,
    flags: c_uint,
    target: impl FnOnce() -> Result<Arc<Stream>>,
) -> Result<()> {
    let handle = event as u64;
    if flags == 0 && !capture::is_active() && stream::with_event(handle, |event| Ok(event.is_known_passed()))? {
        // Nothing to wait for.
        return target().map(|_| ());
    }
    let event = stream::event(handle)?;
    let target = target()?;
    if flags == EXTERNAL {
        let sequence = capture::intercept(&target)?;
        if event.is_lost() {
            sequence.inspect(|sequence| sequence.invalidate());
            return Err(Error::INVALID_VALUE);
        }
        let sequence = sequence.ok_or(Error::ILLEGAL_STATE)?;
        return sequence.add(&target, Operation::WaitEvent(EventOperand { handle, event }));
    }
    check_flags(flags)?;
    if capture::wait(&target, &event)? {
        return Ok(());
    }
    event.wait_in(&target)
}

/// Records an event in a stream.
pub(in crate::api) fn record_event(
    event: CUevent,
    flags: c_uint,
    target: impl FnOnce() -> Result<Arc<Stream>>,
) -> Result<()> {
    let (handle, event) = (event as u64, stream::event(event as u64)?);
    if flags == EXTERNAL {
        let target = target()?;
        if let Some(sequence) = capture::intercept(&target)? {
            return sequence.add(&target, Operation::RecordEvent(EventOperand { handle, event }));
        }
        return Err(Error::ILLEGAL_STATE);
    }
    check_flags(flags)?;
    event.record(&*target()?)
}

fn check_flags(flags: c_uint) -> Result<()> {
    match flags {
        0 => Ok(()),
        EXTERNAL => Err(Error::ILLEGAL_STATE),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Milliseconds between two events.
pub(in crate::api) fn elapsed_time(ms: *mut f32, start: CUevent, end: CUevent) -> Result<()> {
    if ms.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let (start, end) = (stream::event(start as u64)?, stream::event(end as u64)?);
    conv::write(ms, end.elapsed_since(&start)?)
}

/// Whether an event has been passed.
pub(in crate::api) fn query_event(event: CUevent) -> Result<()> {
    if stream::with_event(event as u64, Event::is_done)? {
        Ok(())
    } else {
        Err(Error::NOT_READY)
    }
}

/// The handle of an event, as both APIs' structures hold it.
pub(in crate::api) fn export_event(event: CUevent) -> Result<[c_char; HANDLE_SIZE]> {
    Ok(stream::export_event(event as u64)?.map(u8::cast_signed))
}

/// Opens an event of another process in a context.
pub(in crate::api) fn open_event(context: &Context, handle: &[c_char; HANDLE_SIZE]) -> Result<u64> {
    context.streams()?.open_event(&handle.map(c_char::cast_unsigned))
}

driver! {
    /// CUDA Driver API, Memory Management: `cuIpcGetEventHandle`.
    fn cuIpcGetEventHandle(handle: *mut CUipcEventHandle, event: CUevent) {
        context::current()?;
        if handle.is_null() || event.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(handle, CUipcEventHandle { reserved: export_event(event)? })
    }

    /// CUDA Driver API, Memory Management: `cuIpcOpenEventHandle`.
    fn cuIpcOpenEventHandle(event: *mut CUevent, handle: CUipcEventHandle) {
        let context = context::current()?;
        if event.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(event, open_event(context, &handle.reserved)? as CUevent)
    }

    /// CUDA Driver API, Event Management: `cuEventCreate`.
    fn cuEventCreate(event: *mut CUevent, flags: c_uint) {
        let context = context::current()?;
        if event.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(event, context.streams()?.create_event(flags)? as CUevent)
    }

    /// CUDA Driver API, Event Management: `cuEventDestroy`.
    fn cuEventDestroy_v2(event: CUevent) {
        context::usable()?;
        stream::destroy_event(event as u64)
    }

    /// CUDA Driver API before 4.0: `cuEventDestroy`.
    fn cuEventDestroy(event: CUevent) {
        context::usable()?;
        stream::destroy_event(event as u64)
    }

    /// CUDA Driver API, Event Management: `cuEventQuery`.
    fn cuEventQuery(event: CUevent) {
        context::usable()?;
        query_event(event)
    }

    /// CUDA Driver API, Event Management: `cuEventSynchronize`.
    fn cuEventSynchronize(event: CUevent) {
        context::usable()?;
        stream::with_event(event as u64, Event::synchronize)
    }

    /// CUDA Driver API, Event Management: `cuEventElapsedTime`.
    fn cuEventElapsedTime(ms: *mut f32, start: CUevent, end: CUevent) {
        context::usable()?;
        elapsed_time(ms, start, end)
    }

    /// CUDA Driver API, Event Management: `cuEventElapsedTime_v2`.
    fn cuEventElapsedTime_v2(ms: *mut f32, start: CUevent, end: CUevent) {
        context::usable()?;
        elapsed_time(ms, start, end)
    }
}

streamed! { driver
    /// CUDA Driver API, Event Management: `cuEventRecord`.
    fn cuEventRecord(event: CUevent, stream: CUstream), fn cuEventRecord_ptsz(..) |default| {
        context::usable()?;
        record_event(event, 0, || resolve(stream, default))
    }

    /// CUDA Driver API, Event Management: `cuEventRecordWithFlags`.
    fn cuEventRecordWithFlags(event: CUevent, stream: CUstream, flags: c_uint),
    fn cuEventRecordWithFlags_ptsz(..) |default| {
        context::usable()?;
        record_event(event, flags, || resolve(stream, default))
    }
}
