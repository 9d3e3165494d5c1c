//! A stream: operations that run in the order they were enqueued.
//!
//! The stream owns the order; a ring is borrowed. A stream's *tail* is the set of completions that its next operation
//! must wait for: the end of its last operation, the events it was told to wait for, and what CUDA's legacy default
//! stream adds. An operation takes the tail as its dependencies and becomes the new tail.
//!
//! ```text
//! kernel on ring 3   copy engine        host worker         kernel on ring 3
//!   [A]  ──signal──>  [copy waits A] ─>  [call waits copy] ─> [barrier: call][B]
//! ```
//!
//! Between operations of one ring the barrier bit keeps the order and nobody waits; between engines a signal does.
//! [`Stream::enqueue`] is the one door that all operations pass.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::Shared;
use super::callback;
use super::completion::{Completion, Frontier, Marks, Pending, Resource};
use super::ring::Ring;
use super::spans::Span;
use crate::abi::{Error, Result};
use crate::device::Device;
use crate::hsa::queue::Packet;
use crate::hsa::signal::SignalRef;
use crate::hsa::{self, Agent, copy, fault};
use crate::memory;

/// Of how many other streams a stream knows that it comes after them.
const FOLLOWED: usize = 64;

/// How a stream relates to the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The legacy default stream: waits for all blocking ones, and they for it.
    Legacy,
    /// A thread's own default stream; blocking.
    PerThread,
    /// Created without flags.
    Blocking,
    /// Created with `CU_STREAM_NON_BLOCKING`: no relation to the legacy stream.
    NonBlocking,
}

/// A stream of a context.
pub struct Stream {
    id: u64,
    kind: Kind,
    priority: i32,
    context: Weak<Shared>,
    device: &'static Device,
    destroyed: AtomicBool,
    /// Counts operations and marks; see [`Stream::now`].
    clock: AtomicU64,
    /// Held by whoever changes the order: from looking at the tail until it is replaced. A submission may wait for room in
    /// a ring with it, so questions about the stream take `state` only.
    turn: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tail: Frontier,
    /// Counts changes of the tail.
    seq: u64,
    ring: Option<Arc<Ring>>,
    /// Operations on their way, each with its time.
    pending: VecDeque<(u64, Pending)>,
    /// The time of the last operation that was seen to have ended.
    ended: u64,
    /// Times of other streams that all later operations here come after.
    follows: Marks,
    /// The legacy stream's `seq` that this stream has waited for.
    legacy_seen: u64,
    /// This stream's `seq` that the legacy stream has waited for.
    seen_by_legacy: u64,
}

impl State {
    /// Lets go of what has ended.
    fn reap(&mut self) {
        while let Some((time, _)) = self.pending.pop_front_if(|(_, operation)| operation.is_done()) {
            self.ended = time;
        }
        self.tail.trim();
    }

    /// Makes an operation that was just submitted the tail. `waits_for`: all that its packets name. The tail may hold less by
    /// now, since whoever asks about the stream lets go of what has ended; but a packet far back in a queue looks later, and
    /// would find the next user's signal.
    fn append(&mut self, time: u64, completion: Arc<Completion>, waits_for: Frontier, resources: Vec<Resource>) {
        self.pending
            .push_back((time, Pending::new(Arc::clone(&completion), waits_for, resources)));
        self.tail.replace(completion);
        self.seq += 1;
    }
}

impl Stream {
    pub(super) fn new(id: u64, kind: Kind, priority: i32, context: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            id,
            kind,
            priority,
            context: Arc::downgrade(context),
            device: context.device,
            destroyed: AtomicBool::new(false),
            clock: AtomicU64::new(0),
            turn: Mutex::new(()),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Unique in the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How it relates to the legacy default stream.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// CUDA's priority: 0 lowest, -5 highest.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// `CU_STREAM_*` flags it was created with.
    pub fn flags(&self) -> u32 {
        u32::from(self.kind == Kind::NonBlocking)
    }

    /// The device it works on.
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// Identifies the context's streams; 0 when the context is gone.
    pub fn owner(&self) -> u64 {
        self.context.upgrade().map_or(0, |shared| shared.id)
    }

    pub(super) fn mark_destroyed(&self) {
        self.destroyed.store(true, Ordering::Release);
    }

    /// Destroyed, and all its work has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.destroyed.load(Ordering::Acquire) && {
            let mut state = self.state();
            state.reap();
            state.pending.is_empty()
        }
    }

    /// Applies the rules of the legacy default stream: adds to the tail what the other side has enqueued since. The caller
    /// has the turn.
    fn order(&self) {
        let Some(shared) = self.context.upgrade() else { return };
        match self.kind {
            Kind::NonBlocking => {}
            Kind::Legacy => {
                let mut others = Frontier::default();
                // One stream's lock at a time: nobody ever holds two.
                for stream in shared.streams() {
                    if matches!(stream.kind, Kind::Blocking | Kind::PerThread) {
                        let mut state = stream.state();
                        if state.seq != state.seen_by_legacy {
                            state.seen_by_legacy = state.seq;
                            others.join(&state.tail);
                        }
                    }
                }
                self.add(&others);
            }
            Kind::Blocking | Kind::PerThread => {
                let Some(legacy) = shared.legacy() else { return };
                let (seq, tail) = {
                    let state = legacy.state();
                    (state.seq, state.tail.clone())
                };
                let mut state = self.state();
                if state.legacy_seen != seq {
                    state.legacy_seen = seq;
                    state.tail.join(&tail);
                }
            }
        }
    }

    fn add(&self, frontier: &Frontier) {
        let mut state = self.state();
        state.tail.join(frontier);
    }

    /// Makes all later operations wait for `frontier` (`cudaStreamWaitEvent`).
    pub fn wait_for(&self, frontier: &Frontier) {
        let _turn = self.turn();
        let mut state = self.state();
        state.reap();
        state.tail.join(frontier);
        state.seq += 1;
        for &(stream, time) in frontier.marks() {
            match state.follows.iter_mut().find(|(known, _)| *known == stream) {
                Some((_, latest)) => *latest = time.max(*latest),
                None => {
                    // Forgetting only makes somebody wait who need not.
                    if state.follows.len() == FOLLOWED {
                        state.follows.remove(0);
                    }
                    state.follows.push((stream, time));
                }
            }
        }
    }

    /// The time on the stream's own clock, which every operation and every mark moves on: work that is ordered into the
    /// stream up to now comes before any operation or mark of a later time.
    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// A later time. To be taken before looking at the tail, so that the tail holds at least what came before the time.
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Marks the present: what a point of now lies behind.
    pub fn mark(&self) -> Marks {
        let mut marks = self.state().follows.clone();
        marks.retain(|(stream, _)| *stream != self.id);
        marks.push((self.id, self.tick()));
        marks
    }

    /// Whether all that was ordered into the stream up to `time` has ended. False where that would need waiting.
    pub fn is_past(&self, time: u64) -> bool {
        let passed = |state: &mut State| {
            state.reap();
            state.ended > time
        };
        if fault::current().is_some() {
            return false;
        }
        if passed(&mut self.state()) {
            return true;
        }
        // Idle, the legacy default stream's rules included.
        let Ok(_turn) = self.turn.try_lock() else {
            return false;
        };
        self.order();
        let mut state = self.state();
        state.reap();
        state.tail.is_done()
    }

    /// Whether operations enqueued from now on come after all that was ordered into `other` up to `time`.
    pub fn comes_after(&self, other: u64, time: u64) -> bool {
        let known = |(stream, latest): &(u64, u64)| *stream == other && *latest > time;
        self.state().follows.iter().any(known)
    }

    /// Enqueues one operation: `submit` gets what it must wait for and returns the completion it will count down.
    fn enqueue(
        &self,
        resources: Vec<Resource>,
        submit: impl FnOnce(&Frontier, &mut Option<Arc<Ring>>) -> Result<Arc<Completion>>,
    ) -> Result<()> {
        fault::check()?;
        let _turn = self.turn();
        let time = self.tick();
        self.order();
        let (tail, mut ring) = {
            let mut state = self.state();
            state.reap();
            (state.tail.clone(), state.ring.clone())
        };
        match submit(&tail, &mut ring) {
            Ok(completion) => {
                let mut state = self.state();
                state.ring = ring;
                state.append(time, completion, tail, resources);
                Ok(())
            }
            Err(error) => {
                // Part of it may be on its way already.
                std::mem::forget(resources);
                Err(error)
            }
        }
    }

    /// Enqueues a packet and returns its end; `make` gets the completion signal. `resources` are kept until it has ended.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when no queue or signal is left, or the process's fault.
    pub fn packet(&self, make: impl FnOnce(SignalRef) -> Packet, resources: Vec<Resource>) -> Result<Arc<Completion>> {
        let mut end = None;
        self.enqueue(resources, |tail, ring| {
            let completion = self.submit_packet(tail, ring, make)?;
            end = Some(Arc::clone(&completion));
            Ok(completion)
        })?;
        end.ok_or(Error::UNKNOWN)
    }

    fn submit_packet(
        &self,
        tail: &Frontier,
        current: &mut Option<Arc<Ring>>,
        make: impl FnOnce(SignalRef) -> Packet,
    ) -> Result<Arc<Completion>> {
        let shared = self.context.upgrade().ok_or(Error::CONTEXT_IS_DESTROYED)?;
        // While the last packet is on its way the stream stays on its ring, where order is free.
        let busy = current
            .as_ref()
            .filter(|ring| tail.iter().any(|c| c.ring() == Some(ring.id())));
        let ring = match busy {
            Some(ring) => Arc::clone(ring),
            None => shared.rings()?.borrow(self.priority, current.as_ref())?,
        };
        let completion = Completion::new(1, Some(ring.id()))?;
        ring.submit(tail, make(completion.signal()), &completion)?;
        *current = Some(ring);
        Ok(completion)
    }

    /// Enqueues copies of `spans` by ROCr's copy engines and returns their end. The agents are those that own, or may reach,
    /// either side.
    ///
    /// # Errors
    /// What ROCr's refusal means to CUDA; the spans submitted before it may still run.
    pub fn copy(
        &self,
        spans: &[Span],
        dst: &Agent,
        src: &Agent,
        resources: Vec<Resource>,
    ) -> Result<Option<Arc<Completion>>> {
        if spans.is_empty() {
            return Ok(None);
        }
        let src = source_agent(spans, dst, src);
        let mut last = None;
        self.enqueue(resources, |tail, _| {
            let waits_for = tail.signals();
            let completion = Completion::new(spans.len(), None)?;
            for (index, span) in spans.iter().enumerate() {
                // SAFETY: the callers have checked that both ranges are memory the agents may access, and hold the
                // blocks alive until the stream has passed this point; signals live as long as their completions.
                let started = unsafe {
                    copy::start(
                        (span.dst, dst),
                        (span.src, src),
                        span.len as usize,
                        &waits_for,
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
            last = Some(Arc::clone(&completion));
            Ok(completion)
        })?;
        Ok(last)
    }

    /// Enqueues a call on the host. It gets the process's fault, if there is one by then.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when no signal is left, or the process's fault.
    pub fn host_call(&self, call: impl FnOnce(Option<Error>) + Send + 'static) -> Result<()> {
        self.enqueue(Vec::new(), |tail, _| {
            let completion = Completion::new(1, None)?;
            callback::submit(tail.clone(), Box::new(call), Arc::clone(&completion));
            Ok(completion)
        })
    }

    /// The point after everything enqueued so far (an event without timing).
    ///
    /// # Errors
    /// The process's fault.
    pub fn frontier(&self) -> Result<Frontier> {
        fault::check()?;
        let _turn = self.turn();
        let marks = self.mark();
        self.order();
        let mut state = self.state();
        state.reap();
        let mut frontier = state.tail.clone();
        frontier.set_marks(marks);
        Ok(frontier)
    }

    /// As [`Stream::frontier`], by a packet that notes the time (an event with timing).
    ///
    /// # Errors
    /// As [`Stream::packet`].
    pub fn timed_marker(&self) -> Result<Arc<Completion>> {
        self.packet(Packet::timed_marker, Vec::new())
    }

    /// Everything enqueued so far has ended. The legacy stream answers for all blocking ones.
    ///
    /// # Errors
    /// The process's fault.
    pub fn is_done(&self) -> Result<bool> {
        fault::check()?;
        if self.kind == Kind::Legacy {
            // Somebody is enqueueing, so there is work.
            let Ok(_turn) = self.turn.try_lock() else {
                return Ok(false);
            };
            self.order();
        }
        let mut state = self.state();
        state.reap();
        let done = state.tail.is_done();
        drop(state);
        fault::check()?;
        Ok(done)
    }

    /// Waits until everything enqueued so far has ended. No lock is held while waiting.
    ///
    /// # Errors
    /// The process's fault.
    pub fn synchronize(&self) -> Result<()> {
        fault::check()?;
        if self.kind == Kind::Legacy {
            let _turn = self.turn();
            self.order();
        }
        let tail = self.state().tail.clone();
        tail.wait()?;
        self.state().reap();
        // Work that had ended before is seen now.
        super::synchronized();
        fault::check()
    }

    /// Waits until an operation enqueued now could begin, for work that the host does in the stream's place.
    ///
    /// # Errors
    /// The process's fault.
    pub fn wait_turn(&self) -> Result<()> {
        {
            let _turn = self.turn();
            self.order();
        }
        self.synchronize()
    }
}

/// The agent to name for the source of copies.
///
/// Where both sides are said to be one GPU's, ROCr looks for the owner of attached memory itself, and may find a GPU that
/// `ROCR_VISIBLE_DEVICES` hides. Releases from 6.1 on have no number of engines for such a GPU: they drop the copy, report success
/// and never end its signal. Named as host memory, the source is taken at our word, and the GPU that has both sides mapped
/// copies with its own engine.
fn source_agent<'a>(spans: &[Span], dst: &Agent, src: &'a Agent) -> &'a Agent {
    let hidden = |address| memory::lookup(address).is_some_and(|entry| entry.has_hidden_owner());
    if !core::ptr::eq(dst, src) || !spans.first().is_some_and(|span| hidden(span.dst) || hidden(span.src)) {
        return src;
    }
    hsa::get().ok().and_then(|hsa| hsa.nearest_cpu(src)).unwrap_or(src)
}
