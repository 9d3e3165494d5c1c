//! Copies in stream order.
//!
//! What the two sides are decides the way, never what the caller called them:
//!
//! ```text
//!               to device          to pinned host     to pageable host
//! device        ring or engine     ring or engine     staged, call waits
//! pinned host   ring or engine     host, call waits   host, call waits
//! pageable host staged             host, call waits   host, call waits
//! ```
//!
//! In a ring a kernel of ours copies ([`super::kernels`]): inside one device where it can follow the stream's last packet, and a little over
//! the bus behind a kernel that has not ended.
//!
//! As recorded: a staged upload returns once the source has been read; it waits only when its staging buffers are spent.
//! The host touches device memory only where a call would wait for an engine to move a few bytes of it, the stream is at rest, and the
//! memory is open to the host ([`by_hand`]): it is not on a card with a small BAR, nor beside libraries that hook our calls.

use std::sync::Arc;

use super::completion::{Completion, Resource};
use super::kernels;
use super::locate::{Place, place, reachable};
use super::spans::{Extent, Side, Span, spans};
use super::staging::{Chunk, LARGEST};
use super::stream::Stream;
use crate::abi::Result;
use crate::device::Device;
use crate::graph::operation::Copy;
use crate::graph::{Operation, capture};
use crate::memory::host_access;

/// Staging buffers one transfer may have on their way: 4 MiB, so that (as recorded) 1 MiB does not wait and 8 MiB does.
const IN_FLIGHT: usize = 4;

/// Copies in the order of `stream`, or makes the copy a node where that is captured. With `wait`, the call returns when the data has arrived, except (as CUDA's synchronous
/// copies do) between device addresses, where it returns at once.
///
/// # Errors
/// INVALID_VALUE for ranges that are not what [`locate`] accepts, or the process's fault.
///
/// # Safety
/// Pageable host ranges are readable, or writable, memory.
pub unsafe fn copy(stream: &Stream, dst: &Side, src: &Side, extent: &Extent, wait: bool) -> Result<()> {
    if extent.is_empty() {
        return Ok(());
    }
    let (to, from) = (place(dst, extent)?, place(src, extent)?);
    if let Some(sequence) = capture::intercept(stream)? {
        if wait {
            return capture::refuse(stream);
        }
        return sequence.add(
            stream,
            Operation::Copy(Arc::new(Copy::new(dst, src, extent, (to, from)))),
        );
    }
    let spans = spans(dst, src, extent);
    // SAFETY: the caller's promise about pageable memory.
    if unsafe { by_hand(stream, &spans, to, from, wait) }? {
        return Ok(());
    }
    match (to, from) {
        (Place::Device(a), Place::Device(b)) => between_devices(stream, &spans, a, b),
        (Place::Device(device), Place::Pinned(views)) => {
            let shifted = shifted(&spans, 0, views.device);
            finish(stream, over_bus(stream, device, &shifted, true, None)?, wait)
        }
        (Place::Pinned(views), Place::Device(device)) => {
            let shifted = shifted(&spans, views.device, 0);
            finish(stream, over_bus(stream, device, &shifted, false, None)?, wait)
        }
        // SAFETY: the caller's promise about pageable memory.
        (Place::Device(device), Place::Pageable) => finish(stream, unsafe { upload(stream, device, &spans) }?, wait),
        // SAFETY: as above.
        (Place::Pageable, Place::Device(device)) => unsafe { download(stream, device, &spans) },
        (to, from) => {
            stream.wait_turn()?;
            for span in &shifted(&spans, to.host_shift(), from.host_shift()) {
                // SAFETY: both sides are host memory by the caller's promise; overlap is allowed.
                unsafe { core::ptr::copy(span.src as *const u8, span.dst as *mut u8, span.len as usize) };
            }
            Ok(())
        }
    }
}

/// Copies between a device and pinned memory, which is `staging` or the application's, at the addresses that GPUs know it by.
fn over_bus(
    stream: &Stream,
    device: &'static Device,
    spans: &[Span],
    up: bool,
    mut staging: Option<Chunk>,
) -> Result<Option<Completion>> {
    if let [span] = spans
        && let Some(completion) = kernels::copy_little(stream, device, span, up, &mut staging)?
    {
        return Ok(Some(completion));
    }
    let (dst, src) = if up {
        (device.agent, device.host)
    } else {
        (device.host, device.agent)
    };
    let resources = staging.into_iter().map(|chunk| Box::new(chunk) as Resource).collect();
    stream.copy(spans, dst, src, resources)
}

/// The spans in another view of their memory.
fn shifted(spans: &[Span], dst: u64, src: u64) -> Vec<Span> {
    spans
        .iter()
        .map(|span| Span {
            dst: span.dst.wrapping_add(dst),
            src: span.src.wrapping_add(src),
            len: span.len,
        })
        .collect()
}

fn finish(stream: &Stream, last: Option<Completion>, wait: bool) -> Result<()> {
    match last {
        Some(completion) if wait => stream.wait_for_end(&completion),
        _ => Ok(()),
    }
}

/// Copies from device `b` to device `a`.
fn between_devices(stream: &Stream, spans: &[Span], a: &'static Device, b: &'static Device) -> Result<()> {
    if a.ordinal != b.ordinal && !reachable(spans, a, b) {
        return bounce(stream, spans, a, b);
    }
    if let [span] = spans
        && a.ordinal == b.ordinal
        && kernels::copy(stream, a, span)?
    {
        return Ok(());
    }
    stream.copy(spans, a.agent, b.agent, Vec::new()).map(|_| ())
}

/// Bytes that the host writes to device memory itself, and that it reads: over the bus a read takes a round trip for each few bytes.
const STORED: u64 = 4096;
const LOADED: usize = 16;

/// Copies a few bytes between host and device with the processor, if the stream is at rest and the device's memory is open to the host:
/// that takes less than telling an engine. False where an engine has to do it. A call that need not wait leaves pinned memory to the engine.
///
/// # Safety
/// Pageable host ranges are readable, or writable, memory.
unsafe fn by_hand(stream: &Stream, spans: &[Span], to: Place, from: Place, wait: bool) -> Result<bool> {
    let [span] = *spans else {
        return Ok(false);
    };
    // SAFETY: pinned memory, or the caller's promise.
    let done = unsafe {
        match (to, from) {
            (Place::Device(device), Place::Pageable) => store(stream, device, span.dst, span.src, span.len),
            (Place::Device(device), Place::Pinned(views)) if wait => {
                store(stream, device, span.dst, span.src.wrapping_add(views.host), span.len)
            }
            (Place::Pageable, Place::Device(_)) => load(stream, span.dst, span.src, span.len),
            (Place::Pinned(views), Place::Device(_)) if wait => {
                load(stream, span.dst.wrapping_add(views.host), span.src, span.len)
            }
            _ => return Ok(false),
        }
    }?;
    if done && wait {
        super::synchronized();
    }
    Ok(done)
}

/// Writes up to [`STORED`] bytes to device memory.
///
/// # Safety
/// The source is readable host memory.
unsafe fn store(stream: &Stream, device: &Device, dst: u64, src: u64, len: u64) -> Result<bool> {
    if len > STORED {
        return Ok(false);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(src as *const u8, len as usize) };
    // A source that is not there is the application's fault: it shows here, where no lock is held.
    std::hint::black_box((bytes.first().copied(), bytes.last().copied()));
    stream.try_at_rest(|| host_access::store(device, dst, bytes))
}

/// Reads up to [`LOADED`] bytes of device memory.
///
/// # Safety
/// The destination is writable host memory.
unsafe fn load(stream: &Stream, dst: u64, src: u64, len: u64) -> Result<bool> {
    let mut room = [0; LOADED];
    let Some(bytes) = room.get_mut(..len as usize) else {
        return Ok(false);
    };
    if !stream.try_at_rest(|| host_access::read(src, bytes))? {
        return Ok(false);
    }
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), dst as *mut u8, bytes.len()) };
    Ok(true)
}

/// Copies between devices without a way to each other: down to a staging buffer and up again.
fn bounce(stream: &Stream, spans: &[Span], a: &'static Device, b: &'static Device) -> Result<()> {
    for piece in pieces(spans) {
        let bytes: u64 = piece.iter().map(|span| span.len).sum();
        let chunk = Chunk::new(b, bytes as usize)?;
        let (mut down, mut up, mut at) = (Vec::new(), Vec::new(), chunk.address());
        for span in &piece {
            down.push(Span {
                dst: at,
                src: span.src,
                len: span.len,
            });
            up.push(Span {
                dst: span.dst,
                src: at,
                len: span.len,
            });
            at += span.len;
        }
        stream.copy(&down, b.host, b.agent, Vec::new())?;
        stream.copy(&up, a.agent, a.host, vec![Box::new(chunk)])?;
    }
    Ok(())
}

/// Cuts spans into groups that fit a staging buffer each.
pub(crate) fn pieces(spans: &[Span]) -> Vec<Vec<Span>> {
    let (mut all, mut group, mut room) = (Vec::new(), Vec::new(), LARGEST as u64);
    for span in spans {
        let mut rest = *span;
        while rest.len > 0 {
            let len = rest.len.min(room);
            group.push(Span { len, ..rest });
            rest = Span {
                dst: rest.dst + len,
                src: rest.src + len,
                len: rest.len - len,
            };
            room -= len;
            if room == 0 {
                all.push(std::mem::take(&mut group));
                room = LARGEST as u64;
            }
        }
    }
    if !group.is_empty() {
        all.push(group);
    }
    all
}

/// Copies pageable host memory to a device. The source has been read when this returns.
///
/// # Safety
/// The sources are readable host memory.
unsafe fn upload(stream: &Stream, device: &'static Device, spans: &[Span]) -> Result<Option<Completion>> {
    let mut sent: Vec<Completion> = Vec::new();
    for piece in pieces(spans) {
        if let Some(oldest) = sent.len().checked_sub(IN_FLIGHT) {
            stream.wait_for_end(&sent[oldest])?;
        }
        let bytes: u64 = piece.iter().map(|span| span.len).sum();
        let mut chunk = Chunk::new(device, bytes as usize)?;
        let (base, mut at) = (chunk.address(), 0);
        let mut staged = Vec::with_capacity(piece.len());
        for span in &piece {
            let room = &mut chunk.bytes()[at..at + span.len as usize];
            // SAFETY: the caller promises a readable source; the chunk is ours.
            unsafe { core::ptr::copy_nonoverlapping(span.src as *const u8, room.as_mut_ptr(), room.len()) };
            staged.push(Span {
                dst: span.dst,
                src: base + at as u64,
                len: span.len,
            });
            at += span.len as usize;
        }
        sent.extend(over_bus(stream, device, &staged, true, Some(chunk))?);
    }
    Ok(sent.pop())
}

/// Copies `bytes` to device memory that is not in the registry (a module's variables).
///
/// # Errors
/// As [`copy`].
pub fn upload_raw(stream: &Stream, device: &'static Device, dst: u64, bytes: &[u8]) -> Result<()> {
    let span = Span {
        dst,
        src: bytes.as_ptr() as u64,
        len: bytes.len() as u64,
    };
    if bytes.is_empty() {
        return Ok(());
    }
    // SAFETY: the source is a slice.
    unsafe { upload(stream, device, &[span]) }.map(|_| ())
}

/// Copies device memory to pageable host memory; the data has arrived when this returns.
///
/// # Safety
/// The destinations are writable host memory.
unsafe fn download(stream: &Stream, device: &'static Device, spans: &[Span]) -> Result<()> {
    let mut coming: std::collections::VecDeque<(Vec<Span>, Chunk, Option<Completion>)> = Default::default();
    let mut pieces = pieces(spans).into_iter();
    loop {
        while coming.len() < IN_FLIGHT {
            let Some(piece) = pieces.next() else { break };
            let bytes: u64 = piece.iter().map(|span| span.len).sum();
            let chunk = Chunk::new(device, bytes as usize)?;
            let mut at = chunk.address();
            let staged: Vec<Span> = piece
                .iter()
                .map(|span| {
                    at += span.len;
                    Span {
                        dst: at - span.len,
                        src: span.src,
                        len: span.len,
                    }
                })
                .collect();
            let arrival = over_bus(stream, device, &staged, false, None)?;
            coming.push_back((piece, chunk, arrival));
        }
        let Some((piece, mut chunk, arrival)) = coming.pop_front() else {
            return Ok(());
        };
        if let Err(error) = arrival.map_or(Ok(()), |completion| stream.wait_for_end(&completion)) {
            // The engine may still write to the buffers: they are lost with the process's GPU.
            std::mem::forget(chunk);
            std::mem::forget(coming);
            return Err(error);
        }
        let mut at = 0;
        for span in &piece {
            let bytes = &chunk.bytes()[at..at + span.len as usize];
            // SAFETY: the caller promises a writable destination.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), span.dst as *mut u8, bytes.len()) };
            at += span.len as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fit_a_staging_buffer_and_keep_every_byte() {
        let long = 3 * LARGEST as u64 + 17;
        let spans = [
            Span {
                dst: 1 << 30,
                src: 1 << 20,
                len: long,
            },
            Span { dst: 9, src: 7, len: 5 },
        ];
        let groups = pieces(&spans);
        assert!(
            groups
                .iter()
                .all(|group| group.iter().map(|s| s.len).sum::<u64>() <= LARGEST as u64)
        );
        let flat: Vec<Span> = groups.concat();
        assert_eq!(flat.iter().map(|s| s.len).sum::<u64>(), long + 5);
        let mut at = 0;
        for span in flat.iter().filter(|s| s.src >= 1 << 20) {
            assert_eq!((span.src, span.dst), ((1 << 20) + at, (1 << 30) + at));
            at += span.len;
        }
        assert_eq!(at, long);
    }
}
