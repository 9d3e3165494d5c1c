//! A stream: operations that run in the order they were enqueued.
//!
//! The stream owns the order; a ring is borrowed. A stream's *tail* is the set of completions that its next operation
//! must wait for: the end of its last operation, the events it was told to wait for, and what CUDA's legacy default
//! stream adds. An operation takes the tail as its dependencies and becomes the new tail.
//!
//! ```text
//! kernel on ring 3   copy engine            host worker         kernel on ring 3
//!   [A]  ──proxy──>  [copy] ──signal──>  [call waits copy] ─> [barrier: call][B]
//! ```
//!
//! Between operations of one ring the barrier bit keeps the order and nobody waits; between engines a signal does. Copy engines are shared
//! by all streams, so nothing enters them that must wait for a kernel or a host function ([`Command::may_follow`]).
//! [`Stream::enqueue`] is the one door that all operations pass. An operation that may not be submitted yet, because
//! something before it waits for a value in memory, or because it is a copy behind work that may never end by itself, is parked;
//! [`super::proxy`] submits it later.

mod branch;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::command::Command;
use super::completion::{Completion, Frontier, Mark, Marks, Pending, Resource};
use super::ipc_event::Slot;
use super::memop::{Condition, Target};
use super::proxy::{self, Questions};
use super::ring::Ring;
use super::spans::Span;
use super::{Shared, callback, command};
use crate::abi::{Error, Result};
use crate::device::Device;
use crate::graph::capture;
use crate::hsa::queue::Packet;
use crate::hsa::{Agent, fault};

/// Of how many other streams a stream knows that it comes after them.
const FOLLOWED: usize = 64;

pub use branch::Branches;

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
    owner: u64,
    this: Weak<Self>,
    device: &'static Device,
    destroyed: AtomicBool,
    /// Everything enqueued has been seen to have ended. Changed with `state` locked only; questions may look without.
    quiet: AtomicBool,
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
    follows: Vec<Mark>,
    /// What is not submitted yet, in order.
    parked: VecDeque<Parked>,
    /// The legacy stream's `seq` that this stream has waited for.
    legacy_seen: u64,
    /// This stream's `seq` that the legacy stream has waited for.
    seen_by_legacy: u64,
}

/// An operation that is not submitted yet.
struct Parked {
    command: Command,
    waits_for: Frontier,
    completion: Arc<Completion>,
}

impl State {
    /// Lets go of what has ended.
    fn reap(&mut self) {
        while let Some((time, _)) = self.pending.pop_front_if(|(_, operation)| operation.is_done()) {
            self.ended = time;
        }
        // Operations end in order, so behind one that has not, a tail that is the last one's end has not either. Not looking saves
        // fetching a signal that the device is about to write.
        if self.pending.is_empty() || !self.tail.is_single() {
            self.tail.trim();
        }
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
        Arc::new_cyclic(|this| Self {
            id,
            kind,
            priority,
            context: Arc::downgrade(context),
            owner: context.id,
            this: this.clone(),
            device: context.device,
            destroyed: AtomicBool::new(false),
            quiet: AtomicBool::new(true),
            clock: AtomicU64::new(0),
            turn: Mutex::new(()),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The state, of whoever adds something to wait for. Who lets go of the lock before the operation is in it asks again: others may
    /// have found the stream quiet meanwhile.
    fn state_to_extend(&self) -> MutexGuard<'_, State> {
        let state = self.state();
        self.quiet.store(false, Ordering::Relaxed);
        state
    }

    /// Lets go of what has ended; true when that is everything.
    fn settle(&self) -> bool {
        let mut state = self.state();
        state.reap();
        let done = state.tail.is_done();
        if state.pending.is_empty() && state.tail.is_empty() && state.parked.is_empty() {
            self.quiet.store(true, Ordering::Release);
        }
        done
    }

    /// Everything enqueued has been seen to have ended; of the legacy stream: in itself.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Acquire)
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
        if self.context.strong_count() > 0 { self.owner } else { 0 }
    }

    /// Its handle has ended.
    pub(super) fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    pub(super) fn mark_destroyed(&self) {
        self.destroyed.store(true, Ordering::Release);
    }

    /// Destroyed, and all its work has ended.
    pub fn is_gone(&self) -> bool {
        self.destroyed.load(Ordering::Acquire) && {
            let mut state = self.state();
            state.reap();
            state.pending.is_empty()
        }
    }

    /// Calls `f` with what the operation holds that runs now, or runs next.
    pub(super) fn visit_running(&self, f: impl FnOnce(&[Resource])) {
        let state = self.state();
        let running = state.pending.iter().find(|(_, operation)| !operation.is_done());
        if let Some((_, operation)) = running.filter(|(_, operation)| operation.is_submitted()) {
            f(operation.resources());
        }
    }

    /// Applies the rules of the legacy default stream: adds to the tail what the other side has enqueued since. The caller
    /// has the turn.
    fn order(&self) {
        if self.kind == Kind::NonBlocking {
            return;
        }
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
                    self.quiet.store(false, Ordering::Relaxed);
                    state.tail.join(&tail);
                }
            }
        }
    }

    fn add(&self, frontier: &Frontier) {
        if !frontier.is_empty() {
            self.state_to_extend().tail.join(frontier);
        }
    }

    /// Makes all later operations wait for `frontier` (`cudaStreamWaitEvent`).
    pub fn wait_for(&self, frontier: &Frontier) {
        let _turn = self.turn();
        let mut state = self.state_to_extend();
        state.reap();
        state.tail.join(frontier);
        state.seq += 1;
        for &(stream, time) in frontier.marks().iter() {
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
        let mut others = self.state().follows.clone();
        others.retain(|(stream, _)| *stream != self.id);
        Marks::new((self.id, self.tick()), others)
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

    /// The time of the next operation, what it must wait for, the ring, and whether something is parked. The caller has the turn.
    fn look(&self) -> (u64, Frontier, Option<Arc<Ring>>, bool) {
        let time = self.tick();
        self.order();
        let mut state = self.state_to_extend();
        state.reap();
        (time, state.tail.clone(), state.ring.clone(), !state.parked.is_empty())
    }

    /// Enqueues one operation and returns its end. `resources` are kept until then.
    fn enqueue(&self, command: Command, resources: Vec<Resource>) -> Result<Arc<Completion>> {
        fault::check()?;
        // What can be captured has become a node before it came here.
        capture::refuse(self)?;
        let _turn = self.turn();
        let (time, tail, mut ring, parked) = self.look();
        if parked || !command.may_follow(&tail) {
            return self.park(time, command, tail, resources);
        }
        let completion = Completion::new(command.parts())?;
        match self.submit(command, &tail, &mut ring, &completion) {
            Ok(()) => {
                let mut state = self.state_to_extend();
                state.ring = ring;
                state.append(time, Arc::clone(&completion), tail, resources);
                Ok(completion)
            }
            Err(error) => {
                // Part of it may be on its way already.
                std::mem::forget(resources);
                Err(error)
            }
        }
    }

    /// Keeps an operation in host memory until what it waits for has been submitted. The caller has the turn.
    fn park(&self, time: u64, command: Command, tail: Frontier, resources: Vec<Resource>) -> Result<Arc<Completion>> {
        let completion = Completion::parked(command.parts())?;
        let first = {
            let mut state = self.state_to_extend();
            state.parked.push_back(Parked {
                command,
                waits_for: tail.clone(),
                completion: Arc::clone(&completion),
            });
            state.append(time, Arc::clone(&completion), tail, resources);
            state.parked.len() == 1
        };
        if first && let Some(this) = self.this.upgrade() {
            proxy::watch(this);
        }
        Ok(completion)
    }

    /// Sends an operation on its way. All that it waits for has been submitted.
    fn submit(
        &self,
        command: Command,
        waits_for: &Frontier,
        ring: &mut Option<Arc<Ring>>,
        completion: &Arc<Completion>,
    ) -> Result<()> {
        match command {
            Command::Packet(packet) => self.submit_packets(&[packet], waits_for, ring, completion),
            Command::Packets(packets) => self.submit_packets(&packets, waits_for, ring, completion),
            Command::Copy { spans, dst, src } => command::start_copies(&spans, dst, src, waits_for, completion),
            Command::HostCall(call) => {
                callback::submit(waits_for.clone(), call, Arc::clone(completion));
                Ok(())
            }
            // Only ever parked.
            Command::Wait(_) => Err(Error::UNKNOWN),
        }
    }

    fn submit_packets(
        &self,
        packets: &[Packet],
        waits_for: &Frontier,
        ring: &mut Option<Arc<Ring>>,
        completion: &Arc<Completion>,
    ) -> Result<()> {
        let borrowed = self.ring(waits_for, ring.as_ref())?;
        borrowed.submit(waits_for, packets, completion)?;
        *ring = Some(borrowed);
        Ok(())
    }

    fn ring(&self, waits_for: &Frontier, current: Option<&Arc<Ring>>) -> Result<Arc<Ring>> {
        // While the last packet is on its way the stream stays on its ring, where order is free.
        let busy = current.filter(|ring| waits_for.iter().any(|c| c.is_on_ring(ring.id())));
        match busy {
            Some(ring) => Ok(Arc::clone(ring)),
            None => {
                let shared = self.context.upgrade().ok_or(Error::CONTEXT_IS_DESTROYED)?;
                shared.rings()?.borrow(self.priority, current)
            }
        }
    }

    /// Submits what may be submitted of the parked operations; for [`proxy`] and [`Stream::help`]. Conditions that only a device can look at
    /// become `questions`, and are answered in the next call. False when nothing is parked any more.
    pub(super) fn advance(&self, questions: &mut Questions) -> bool {
        let _turn = self.turn();
        loop {
            let mut parked = {
                let mut state = self.state();
                match state.parked.pop_front() {
                    Some(parked) => parked,
                    None => return false,
                }
            };
            if fault::current().is_some() || self.is_cancelled() {
                discard(parked);
                questions.progress();
                continue;
            }
            let goes_on = match &mut parked.command {
                Command::Wait(condition) => {
                    parked.waits_for.is_done() && questions.is_met(&parked.completion, condition)
                }
                command => command.may_follow(&parked.waits_for),
            };
            if !goes_on {
                let mut state = self.state();
                state.parked.push_front(parked);
                ask_ahead(&state.parked, questions);
                return true;
            }
            questions.progress();
            self.release(parked);
        }
    }

    /// What holds the stream up, for the log.
    pub(super) fn describe_parked(&self) -> Option<String> {
        let state = self.state();
        let first = state.parked.front()?;
        let what = match &first.command {
            Command::Wait(_) if !first.waits_for.is_done() => "a wait, behind work that has not ended".to_owned(),
            Command::Wait(condition) => condition.to_string(),
            Command::Copy { .. } => "a copy, behind work that has not ended".to_owned(),
            _ => "work that other streams hold up".to_owned(),
        };
        Some(format!(
            "stream {}: {what}; {} operations parked",
            self.id,
            state.parked.len()
        ))
    }

    /// What the stream waits for, when that will never come: the record of an event by a process that has ended.
    pub(super) fn describe_lost(&self) -> Option<String> {
        let state = self.state();
        let first = state.parked.front()?;
        let Command::Wait(condition) = &first.command else {
            return None;
        };
        let (_, operation) = state.pending.iter().find(|(_, p)| p.ends_with(&first.completion))?;
        let slot = |resource: &Resource| resource.downcast_ref::<Arc<Slot>>().cloned();
        let slot = operation.resources().iter().find_map(slot)?;
        slot.is_lost(condition.value()).then(|| {
            format!(
                "stream {} waits for an event of a process that has ended before its GPU had passed it, and will wait for ever; {} \
                 operations stand behind it",
                self.id,
                state.parked.len() - 1
            )
        })
    }

    /// Ends a wait, or submits what stood behind one.
    fn release(&self, parked: Parked) {
        let Parked {
            command,
            waits_for,
            completion,
        } = parked;
        if let Command::Wait(_) = command {
            completion.finish(1);
            return;
        }
        let mut ring = self.state().ring.clone();
        let submitted = self.submit(command, &waits_for, &mut ring, &completion);
        self.state().ring = ring;
        completion.set_submitted();
        if let Err(error) = submitted {
            // The call that enqueued it has long returned: as with a kernel that fails, the process is told by its next calls.
            log::error!("an operation behind a stream wait could not be submitted: {error:?}");
            fault::raise(Error::LAUNCH_FAILURE);
        }
    }

    /// The context has ended: what is parked will not run.
    fn is_cancelled(&self) -> bool {
        self.context.upgrade().is_none_or(|shared| shared.is_cancelled())
    }

    /// Enqueues a packet and returns its end. `resources` are kept until then.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when no queue or signal is left, or the process's fault.
    pub fn packet(&self, packet: Packet, resources: Vec<Resource>) -> Result<Arc<Completion>> {
        self.enqueue(Command::Packet(packet), resources)
    }

    /// Enqueues packets for one ring as one operation and returns its end. The first has the barrier bit, and the last ends after
    /// all others.
    ///
    /// # Errors
    /// As [`Stream::packet`].
    pub fn packets(&self, packets: Arc<[Packet]>, resources: Vec<Resource>) -> Result<Arc<Completion>> {
        self.enqueue(Command::Packets(packets), resources)
    }

    /// Enqueues copies of `spans` by ROCr's copy engines and returns their end. The agents are those that own, or may reach,
    /// either side. The callers have checked that both sides are memory the agents may access, and keep the blocks alive
    /// until the stream has passed this point.
    ///
    /// # Errors
    /// What ROCr's refusal means to CUDA; the spans submitted before it may still run.
    pub fn copy(
        &self,
        spans: &[Span],
        dst: &'static Agent,
        src: &'static Agent,
        resources: Vec<Resource>,
    ) -> Result<Option<Arc<Completion>>> {
        if spans.is_empty() {
            return Ok(None);
        }
        let src = command::source_agent(spans, dst, src);
        let spans = spans.to_vec();
        self.enqueue(Command::Copy { spans, dst, src }, resources).map(Some)
    }

    /// Enqueues a call on the host. It gets the process's fault, if there is one by then.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when no signal is left, or the process's fault.
    pub fn host_call(&self, call: impl FnOnce(Option<Error>) + Send + 'static) -> Result<()> {
        self.enqueue(Command::HostCall(Box::new(call)), Vec::new()).map(|_| ())
    }

    /// Makes all later operations wait until `condition` holds (`cuStreamWaitValue`).
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when no signal is left, or the process's fault.
    pub fn wait_for_memory(&self, condition: Condition) -> Result<()> {
        self.wait_for_memory_with(condition, Vec::new())
    }

    /// As [`Stream::wait_for_memory`]; `resources` are kept until then.
    ///
    /// # Errors
    /// As [`Stream::wait_for_memory`].
    pub(super) fn wait_for_memory_with(&self, condition: Condition, resources: Vec<Resource>) -> Result<()> {
        fault::check()?;
        capture::refuse(self)?;
        let _turn = self.turn();
        let (time, tail, _, parked) = self.look();
        if !parked && tail.is_done() && condition.is_met() == Some(true) {
            return Ok(());
        }
        self.park(time, Command::Wait(condition), tail, resources).map(|_| ())
    }

    /// Stores the low `target.bytes` bytes of `value` behind all operations so far (`cuStreamWriteValue`): whoever sees
    /// the value, on whatever device or host, sees what they wrote. `resources` are kept until then.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when no signal is left, or the process's fault.
    pub fn write_memory(&self, target: &Target, value: u64, mut resources: Vec<Resource>) -> Result<()> {
        if target.is_host() {
            fault::check()?;
            capture::refuse(self)?;
            let _turn = self.turn();
            let (_, tail, _, parked) = self.look();
            if !parked && tail.is_done() {
                target.store(value);
                return Ok(());
            }
        }
        let (span, chunk) = target.span(value)?;
        resources.push(Box::new(chunk));
        self.copy(&[span], target.device.agent, target.device.host, resources)?;
        Ok(())
    }

    /// The point after everything enqueued so far (an event without timing).
    ///
    /// # Errors
    /// The process's fault.
    pub fn frontier(&self) -> Result<Frontier> {
        fault::check()?;
        capture::refuse(self)?;
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
        self.packet(Packet::timed_marker(), Vec::new())
    }

    /// Everything enqueued so far has ended. The legacy stream answers for all blocking ones.
    ///
    /// # Errors
    /// The process's fault.
    pub fn is_done(&self) -> Result<bool> {
        fault::check()?;
        if self.is_quiet() && self.kind != Kind::Legacy {
            return Ok(true);
        }
        if self.kind == Kind::Legacy {
            // Somebody is enqueueing, so there is work.
            let Ok(_turn) = self.turn.try_lock() else {
                return Ok(false);
            };
            self.order();
        }
        let done = self.settle();
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
        if !self.is_quiet() {
            let tail = self.state().tail.clone();
            self.help(|| tail.is_submitted())?;
            tail.wait()?;
            self.settle();
        }
        // Work that had ended before is seen now.
        super::synchronized();
        fault::check()
    }

    /// Waits for the end of an operation of this stream.
    ///
    /// # Errors
    /// The process's fault.
    pub fn wait_for_end(&self, completion: &Completion) -> Result<()> {
        self.help(|| completion.is_submitted())?;
        completion.wait()
    }

    /// Submits parked copies as soon as what they come behind has ended, in the proxy's place, until `enough`: who calls this waits
    /// anyway, and is woken by the end itself. Stops where only the proxy knows when it goes on.
    fn help(&self, enough: impl Fn() -> bool) -> Result<()> {
        while !enough() {
            let before = {
                let state = self.state();
                match state.parked.front() {
                    Some(first) if first.command.may_follow(&first.waits_for) => None,
                    Some(first) if matches!(first.command, Command::Copy { .. }) => {
                        first.waits_for.iter().find(|c| !c.ends_unaided()).cloned()
                    }
                    _ => return Ok(()),
                }
            };
            match before {
                Some(completion) if completion.is_submitted() => completion.wait_quietly()?,
                // Parked itself, in another stream.
                Some(_) => return Ok(()),
                None => {
                    self.advance(&mut Questions::default());
                }
            }
        }
        Ok(())
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

/// Asks about the waits that stand right behind the first: one look at the device then answers all of them.
fn ask_ahead(parked: &VecDeque<Parked>, questions: &mut Questions) {
    let Some(first) = parked.front().filter(|first| questions.is_asked(&first.completion)) else {
        return;
    };
    let mut before = &first.completion;
    for next in parked.iter().skip(1) {
        let Command::Wait(condition) = &next.command else {
            return;
        };
        // Anything else it waits for might still change the memory.
        if next.waits_for.iter().any(|c| !Arc::ptr_eq(c, before) && !c.is_done()) {
            return;
        }
        questions.ask_ahead(&next.completion, condition);
        before = &next.completion;
    }
}

/// Ends an operation that will not run. Calls on the host are told of the fault that is the reason.
fn discard(parked: Parked) {
    let parts = parked.command.parts();
    match parked.command {
        Command::HostCall(call) if fault::current().is_some() => {
            callback::submit(Frontier::default(), call, parked.completion);
        }
        _ => parked.completion.finish(parts),
    }
}
