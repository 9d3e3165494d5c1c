//! Copies whose host side is read or written when the operation's turn comes, not when it is enqueued.
//!
//! A stream's own copy of pageable memory takes the source at once and waits for the destination. In a graph another node
//! may make the source, and a launch does not wait: so calls on the host move the bytes between the application's
//! memory and staging buffers, in the stream's order.

use std::sync::{Arc, Mutex};

use super::operation::Copy;
use crate::abi::Result;
use crate::device::Device;
use crate::stream::Stream;
use crate::stream::copy::{self, pieces};
use crate::stream::locate::{Place, place};
use crate::stream::spans::{Span, spans};
use crate::stream::staging::Chunk;

/// Staging buffers of one copy; in the stream's order a buffer is free again when its turn comes.
const BUFFERS: usize = 4;

/// Checks a copy whose sides are `to` and `from` by now.
///
/// # Errors
/// INVALID_VALUE when memory of a side was freed since the copy was described.
pub(super) fn check(operation: &Copy, to: Place, from: Place) -> Result<()> {
    operation.origins.0.check(to)?;
    operation.origins.1.check(from)
}

/// Enqueues a copy.
///
/// # Errors
/// As [`copy::copy`]; INVALID_VALUE when memory of a side was freed since the copy was described.
pub(super) fn enqueue(stream: &Arc<Stream>, operation: &Copy) -> Result<()> {
    let Copy { dst, src, extent, .. } = operation;
    let (to, from) = (place(dst, extent)?, place(src, extent)?);
    check(operation, to, from)?;
    match (to, from) {
        (Place::Device(device), Place::Pageable) => upload(stream, device, &spans(dst, src, extent)),
        (Place::Pageable, Place::Device(device)) => download(stream, device, &spans(dst, src, extent)),
        (Place::Device(_), _) | (_, Place::Device(_)) => {
            // SAFETY: neither side is pageable memory.
            unsafe { copy::copy(stream, dst, src, extent, false) }
        }
        (to, from) => {
            let (to, from) = (to.host_shift(), from.host_shift());
            let spans = spans(dst, src, extent);
            stream.host_call(move |fault| {
                if fault.is_none() {
                    for span in &spans {
                        // SAFETY: host memory that the application promises to keep until the node has run.
                        unsafe {
                            core::ptr::copy(
                                span.src.wrapping_add(from) as *const u8,
                                span.dst.wrapping_add(to) as *mut u8,
                                span.len as usize,
                            );
                        }
                    }
                }
            })
        }
    }
}

type Buffer = Arc<Mutex<Chunk>>;

/// The spans between the application's host memory and a staging buffer, and those between the buffer and the device.
fn buffers(device: &'static Device, groups: &[Vec<Span>]) -> Result<Vec<Buffer>> {
    let largest = groups
        .iter()
        .map(|group| group.iter().map(|span| span.len).sum::<u64>())
        .max();
    let size = largest.unwrap_or(0) as usize;
    (0..groups.len().min(BUFFERS))
        .map(|_| Ok(Arc::new(Mutex::new(Chunk::new(device, size)?))))
        .collect()
}

fn address(buffer: &Buffer) -> u64 {
    buffer.lock().unwrap_or_else(|e| e.into_inner()).address()
}

fn upload(stream: &Arc<Stream>, device: &'static Device, all: &[Span]) -> Result<()> {
    let groups = pieces(all);
    let buffers = buffers(device, &groups)?;
    for (index, group) in groups.into_iter().enumerate() {
        let buffer = &buffers[index % buffers.len()];
        let mut at = address(buffer);
        let staged: Vec<Span> = group
            .iter()
            .map(|span| {
                at += span.len;
                Span {
                    dst: span.dst,
                    src: at - span.len,
                    len: span.len,
                }
            })
            .collect();
        let filled = Arc::clone(buffer);
        stream.host_call(move |fault| {
            if fault.is_none() {
                let mut chunk = filled.lock().unwrap_or_else(|e| e.into_inner());
                let mut rest = chunk.bytes();
                for span in &group {
                    let (room, after) = std::mem::take(&mut rest).split_at_mut(span.len as usize);
                    // SAFETY: a readable source, which the application promises to keep until the node has run.
                    unsafe { core::ptr::copy_nonoverlapping(span.src as *const u8, room.as_mut_ptr(), room.len()) };
                    rest = after;
                }
            }
        })?;
        stream.copy(&staged, device.agent, device.host, vec![Box::new(Arc::clone(buffer))])?;
    }
    Ok(())
}

fn download(stream: &Arc<Stream>, device: &'static Device, all: &[Span]) -> Result<()> {
    let groups = pieces(all);
    let buffers = buffers(device, &groups)?;
    for (index, group) in groups.into_iter().enumerate() {
        let buffer = &buffers[index % buffers.len()];
        let mut at = address(buffer);
        let staged: Vec<Span> = group
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
        stream.copy(&staged, device.host, device.agent, vec![Box::new(Arc::clone(buffer))])?;
        let arrived = Arc::clone(buffer);
        stream.host_call(move |fault| {
            if fault.is_none() {
                let mut chunk = arrived.lock().unwrap_or_else(|e| e.into_inner());
                let mut rest = &*chunk.bytes();
                for span in &group {
                    let (bytes, after) = rest.split_at(span.len as usize);
                    // SAFETY: a writable destination, which the application promises to keep until the node has run.
                    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), span.dst as *mut u8, bytes.len()) };
                    rest = after;
                }
            }
        })?;
    }
    Ok(())
}
