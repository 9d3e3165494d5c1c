//! Event Management: `cudaEvent*`.

use core::ffi::c_uint;

use super::stream::resolve;
use crate::abi::{Error, Result, conv, cudaEvent_t, cudaIpcEventHandle_t, cudaStream_t};
use crate::api::driver;
use crate::device::context;
use crate::stream::{self, Event};
use crate::{runtime, streamed};

fn create(event: *mut cudaEvent_t, flags: c_uint) -> Result<()> {
    let context = context::runtime_current()?;
    if event.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(event, context.streams()?.create_event(flags)? as cudaEvent_t)
}

runtime! {
    /// CUDA Runtime API, Device Management: `cudaIpcGetEventHandle`.
    fn cudaIpcGetEventHandle(handle: *mut cudaIpcEventHandle_t, event: cudaEvent_t) {
        context::runtime_current()?;
        if handle.is_null() || event.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(handle, cudaIpcEventHandle_t { reserved: driver::export_event(event)? })
    }

    /// CUDA Runtime API, Device Management: `cudaIpcOpenEventHandle`.
    fn cudaIpcOpenEventHandle(event: *mut cudaEvent_t, handle: cudaIpcEventHandle_t) {
        let context = context::runtime_current()?;
        if event.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(event, driver::open_event(context, &handle.reserved)? as cudaEvent_t)
    }

    /// CUDA Runtime API, Event Management: `cudaEventCreate`.
    fn cudaEventCreate(event: *mut cudaEvent_t) {
        create(event, 0)
    }

    /// CUDA Runtime API, Event Management: `cudaEventCreateWithFlags`.
    fn cudaEventCreateWithFlags(event: *mut cudaEvent_t, flags: c_uint) {
        create(event, flags)
    }

    /// CUDA Runtime API, Event Management: `cudaEventDestroy`.
    fn cudaEventDestroy(event: cudaEvent_t) {
        context::runtime_current()?;
        stream::destroy_event(event as u64)
    }

    /// CUDA Runtime API, Event Management: `cudaEventQuery`.
    fn cudaEventQuery(event: cudaEvent_t) {
        context::runtime_current()?;
        driver::query_event(event)
    }

    /// CUDA Runtime API, Event Management: `cudaEventSynchronize`.
    fn cudaEventSynchronize(event: cudaEvent_t) {
        context::runtime_current()?;
        stream::with_event(event as u64, Event::synchronize)
    }

    /// CUDA Runtime API, Event Management: `cudaEventElapsedTime`.
    fn cudaEventElapsedTime(ms: *mut f32, start: cudaEvent_t, end: cudaEvent_t) {
        context::runtime_current()?;
        driver::elapsed_time(ms, start, end)
    }

    /// CUDA Runtime API, Event Management: `cudaEventElapsedTime_v2`.
    fn cudaEventElapsedTime_v2(ms: *mut f32, start: cudaEvent_t, end: cudaEvent_t) {
        context::runtime_current()?;
        driver::elapsed_time(ms, start, end)
    }
}

streamed! { runtime
    /// CUDA Runtime API, Event Management: `cudaEventRecord`.
    fn cudaEventRecord(event: cudaEvent_t, stream: cudaStream_t), fn cudaEventRecord_ptsz(..) |default| {
        context::runtime_current()?;
        driver::record_event(event, 0, || resolve(stream, default))
    }

    /// CUDA Runtime API, Event Management: `cudaEventRecordWithFlags`.
    fn cudaEventRecordWithFlags(event: cudaEvent_t, stream: cudaStream_t, flags: c_uint),
    fn cudaEventRecordWithFlags_ptsz(..) |default| {
        context::runtime_current()?;
        driver::record_event(event, flags, || resolve(stream, default))
    }
}
