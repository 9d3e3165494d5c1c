//! Fills (memset) in stream order.
//!
//! A fill is made of copies: the pattern goes up from a staging buffer, and the filled part is doubled by copies inside the
//! device until all is filled. That is two bytes moved where a kernel would move one, but it runs in the stream's order on
//! every ROCr (`hsa_amd_memory_fill` runs at once and knows words only) and needs no translator. Behind a kernel it is one packet
//! ([`kernels`]).
//!
//! ```text
//! [pppp............]  upload   [pppppppp........]  copy   [pppppppppppppppp]  copy
//! ```

use std::sync::Arc;

use super::kernels;
use super::locate::{Place, locate, usable};
use super::spans::{Extent, Side, Span, spans};
use super::staging::Chunk;
use super::stream::Stream;
use crate::abi::{CUDA_MEMSET_NODE_PARAMS, Error, Result};
use crate::device::{Context, Device, context};
use crate::graph::operation::Fill;
use crate::graph::{Operation, capture};

/// Bytes of the pattern that go up from the host.
const PATTERN: u64 = 1 << 18;

/// Where a fill goes: into a stream, and whether the call waits.
pub struct Target {
    /// The stream.
    pub stream: Arc<Stream>,
    /// The call names no stream. CUDA documents such fills as asynchronous, but for host memory, which the caller may read
    /// at once.
    pub wait: bool,
}

impl Target {
    /// As [`fill`].
    ///
    /// # Errors
    /// As [`fill`].
    pub fn fill(&self, side: &Side, extent: &Extent, value: u32, element: usize) -> Result<()> {
        fill(&self.stream, side, extent, value, element)?;
        if self.wait && !extent.is_empty() && locate(side.start, side.reach(extent)?)?.is_host() {
            self.stream.synchronize()?;
        }
        Ok(())
    }
}

/// Fills, or makes the fill a node where `stream` is captured. Fills with `value`, of which the low `element` bytes (1, 2 or 4) are the pattern. Widths are multiples of `element`.
///
/// # Errors
/// INVALID_VALUE when the range is not device, managed or pinned memory, or the process's fault.
pub fn fill(stream: &Stream, side: &Side, extent: &Extent, value: u32, element: usize) -> Result<()> {
    side.reach(extent)?;
    if extent.is_empty() {
        return Ok(());
    }
    if let Some(sequence) = capture::intercept(stream)? {
        // Nodes have no third dimension.
        for slice in 0..extent.depth {
            let start = side.start + slice * side.slice_height * side.pitch;
            let params = CUDA_MEMSET_NODE_PARAMS {
                dst: start,
                pitch: side.pitch as usize,
                value,
                elementSize: element as u32,
                width: extent.width as usize / element,
                height: extent.height as usize,
            };
            sequence.add(stream, Operation::Fill(Fill { params }))?;
        }
        return Ok(());
    }
    let context = context::of_streams(stream.owner()).ok_or(Error::CONTEXT_IS_DESTROYED)?;
    let (device, shift) = place(context, side, extent)?;
    let side = Side {
        start: side.start.wrapping_add(shift),
        ..*side
    };
    raw(stream, device, &side, extent, value, element)
}

/// The device that fills in a context, and what must be added to get its addresses.
///
/// # Errors
/// INVALID_VALUE when the range is not memory that the context may fill.
pub fn place(context: &Context, side: &Side, extent: &Extent) -> Result<(&'static Device, u64)> {
    match locate(side.start, side.reach(extent)?)? {
        // Recorded: filling another device's memory needs access to it, copying does not.
        Place::Device(device) if usable(side.start, context) => Ok((device, 0)),
        Place::Pinned(views) => Ok((context.device, views.device)),
        Place::Device(_) | Place::Pageable => Err(Error::INVALID_VALUE),
    }
}

/// As [`fill`], for memory that `device` reaches at these addresses and that need not be in the registry.
///
/// # Errors
/// As [`fill`].
pub fn raw(
    stream: &Stream,
    device: &'static Device,
    side: &Side,
    extent: &Extent,
    value: u32,
    element: usize,
) -> Result<()> {
    if extent.is_empty() {
        return Ok(());
    }
    let spans = spans(side, side, extent);
    if let [span] = spans[..]
        && kernels::fill(stream, device, (span.dst, span.len), value, element)?
    {
        return Ok(());
    }
    let longest = spans.iter().map(|span| span.len).max().unwrap_or(0).min(PATTERN);
    let mut chunk = Chunk::new(device, longest as usize)?;
    for bytes in chunk.bytes()[..longest as usize].chunks_mut(element) {
        bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]);
    }
    let source = chunk.address();
    let first: Vec<Span> = spans
        .iter()
        .map(|span| Span {
            dst: span.dst,
            src: source,
            len: span.len.min(PATTERN),
        })
        .collect();
    // The device's own agent stands for pinned memory too: its engine does the work.
    stream.copy(&first, device.agent, device.host, vec![Box::new(chunk)])?;
    let mut filled = PATTERN;
    loop {
        let next: Vec<Span> = spans
            .iter()
            .filter(|span| span.len > filled)
            .map(|span| Span {
                dst: span.dst + filled,
                src: span.dst,
                len: (span.len - filled).min(filled),
            })
            .collect();
        if next.is_empty() {
            return Ok(());
        }
        stream.copy(&next, device.agent, device.agent, Vec::new())?;
        filled *= 2;
    }
}
