//! What a stream executes, before it is on its way.

use std::sync::Arc;

use super::callback::{Call, Queue};
use super::completion::{Countdown, Frontier};
use super::memop::Condition;
use super::spans::Span;
use crate::abi::{Error, Result};
use crate::hsa::queue::Packet;
use crate::hsa::signal::SignalRef;
use crate::hsa::{self, Agent, copy};
use crate::memory;

/// One operation of a stream.
pub enum Command {
    /// A packet for a ring; the completion signal is put in when it is submitted.
    Packet(Packet),
    /// A launch whose work-groups must be on the device at once, for the device's cooperative ring.
    Cooperative(Packet),
    /// As `Packet`, with a signal of its own, which the device writes the time to.
    TimedMarker,
    /// Packets for one ring, of which the last ends after all others; the completion signal is put into it.
    Packets(Arc<[Packet]>),
    /// Copies by ROCr's engines. The agents are those that own, or may reach, either side.
    Copy {
        /// What is copied; each span counts the completion down by one.
        spans: Vec<Span>,
        /// Of the destinations.
        dst: &'static Agent,
        /// Of the sources.
        src: &'static Agent,
    },
    /// A call on the host, and who makes it.
    HostCall(Call, &'static Queue),
    /// A stream wait value. It is never submitted: whoever finds the condition true ends it.
    Wait(Condition),
}

impl Command {
    /// What the completion is counted down from.
    pub fn parts(&self) -> usize {
        match self {
            Self::Copy { spans, .. } => spans.len(),
            _ => 1,
        }
    }

    /// Whether it may be submitted now behind `tail`.
    ///
    /// A copy engine is a queue of all streams, so a copy in it that waits for a kernel holds up every copy behind it, perhaps the one
    /// that the kernel spins on. Copies therefore go into an engine only behind what ends by itself, and are parked until then.
    pub fn may_follow(&self, tail: &Frontier) -> bool {
        match self {
            Self::Copy { .. } => tail.ends_unaided(),
            Self::Wait(_) => false,
            _ => tail.is_submitted(),
        }
    }
}

/// Starts copies that begin when all of `waits_for` are 0, which they will be unaided, and end `completion`.
pub(super) fn start_copies(
    spans: &[Span],
    dst: &Agent,
    src: &Agent,
    waits_for: &[SignalRef],
    completion: &Countdown,
) -> Result<()> {
    for (index, span) in spans.iter().enumerate() {
        // SAFETY: the promise of `Stream::copy`'s callers; the caller keeps the signals.
        let started = unsafe {
            copy::start(
                (span.dst, dst),
                (span.src, src),
                span.len as usize,
                waits_for,
                completion.signal(),
            )
        };
        if let Err(error) = started {
            log::error!(
                "a copy of {} bytes to {:#x} from {:#x}: {error}",
                span.len,
                span.dst,
                span.src
            );
            completion.finish(spans.len() - index);
            return Err(Error::INVALID_VALUE);
        }
    }
    // Not before: another thread's copy that waits for this one could come before it in an engine.
    completion.set_unaided();
    Ok(())
}

/// The agent to name for the source of copies.
///
/// Where both sides are said to be one GPU's, ROCr looks for the owner of attached memory itself, and may find a GPU that
/// `ROCR_VISIBLE_DEVICES` hides. Releases from 6.1 on have no number of engines for such a GPU: they drop the copy, report success
/// and never end its signal. Named as host memory, the source is taken at our word, and the GPU that has both sides mapped
/// copies with its own engine.
pub(super) fn source_agent(spans: &[Span], dst: &Agent, src: &'static Agent) -> &'static Agent {
    let hidden = |address| memory::lookup(address).is_some_and(|entry| entry.has_hidden_owner());
    if !core::ptr::eq(dst, src) || !spans.first().is_some_and(|span| hidden(span.dst) || hidden(span.src)) {
        return src;
    }
    hsa::get().ok().and_then(|hsa| hsa.nearest_cpu(src)).unwrap_or(src)
}
