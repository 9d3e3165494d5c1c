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
use std::sync::{Arc, Weak};

use super::command::Command;
use super::completion::{Completion, Countdown, Frontier, Mark, Marks, Pending, Resource, Resources};
use super::ipc_event::Slot;
use super::memop::{Condition, Target};
use super::proxy::{self, Questions};
use super::ring::{End, Ring};
use super::spans::Span;
use super::{Shared, callback, command};
use crate::abi::{Error, Result};
use crate::device::Device;
use crate::graph::capture;
use crate::hsa::queue::Packet;
use crate::hsa::{Agent, fault};
use crate::lock::{Guard, Lock};

/// Of how many other streams a stream knows that it comes after them.
const FOLLOWED: usize = 64;

/// How many operations are enqueued until a stream looks which have ended, so as to give back what they hold.
const UNTIDY: usize = 32;

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

/// What tells streams of a context cheaply whether those that they are ordered with have gone on.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Changes of the legacy stream's tail.
    legacy: AtomicU64,
    /// Changes of the tails of streams that it waits for.
    blocking: AtomicU64,
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
    /// Of the context's streams.
    progress: Arc<Progress>,
    /// What this stream has waited for of the other side: for the legacy stream `blocking`, for blocking ones `legacy`.
    /// Changed by who has the turn.
    ordered: AtomicU64,
    /// Held by whoever changes the order: from looking at the tail until it is replaced. A submission may wait for room in
    /// a ring with it, so questions about the stream take `state` only.
    turn: Lock<()>,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    tail: Frontier,
    /// Counts changes of the tail.
    seq: u64,
    ring: Option<&'static Ring>,
    /// Operations on their way, each with its time.
    pending: VecDeque<(u64, Pending)>,
    /// At how many of them to look which have ended.
    tidy_at: usize,
    /// The time of the last operation that was seen to have ended.
    ended: u64,
    /// Times of other streams that all later operations here come after.
    follows: Vec<Mark>,
    /// What is not submitted yet, in order.
    parked: VecDeque<Parked>,
    /// This stream's `seq` that the legacy stream has waited for.
    seen_by_legacy: u64,
}

/// An operation that is not submitted yet.
struct Parked {
    command: Command,
    waits_for: Frontier,
    completion: Arc<Countdown>,
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

    /// Whether the ring's order is all that the stream's next packet needs, and nobody else has used the ring since its last.
    fn is_alone_on(&self, ring: &Ring, stream: u64) -> bool {
        ring.user() == stream && self.follows_on(ring)
    }

    /// Whether the ring's order is all that the stream's next packet needs.
    fn follows_on(&self, ring: &Ring) -> bool {
        self.tail.iter().all(|c| c.is_on_ring(ring))
    }

    /// As [`State::reap`], but now and then only, where the next operation need not know: while the stream alone uses its ring,
    /// order is free whether the tail has ended or not. Asking would fetch what the device is about to write.
    fn tidy(&mut self, stream: u64) {
        if self.pending.len() < self.tidy_at && self.ring.is_some_and(|ring| self.is_alone_on(ring, stream)) {
            return;
        }
        self.reap();
        self.tidy_at = self.pending.len() + UNTIDY;
    }

    /// Makes an operation that was just submitted the tail. `waits_for`: all that its packets name. The tail may hold less by
    /// now, since whoever asks about the stream lets go of what has ended; but a packet far back in a queue looks later, and
    /// would find the next user's signal.
    fn append(&mut self, time: u64, completion: Completion, waits_for: Frontier, resources: Resources) {
        self.pending
            .push_back((time, Pending::new(completion.clone(), waits_for, resources)));
        self.tail.replace(completion);
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
            progress: Arc::clone(&context.progress),
            ordered: AtomicU64::new(0),
            turn: Lock::default(),
            state: Lock::default(),
        })
    }

    fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// The state, of whoever adds something to wait for. Who lets go of the lock before the operation is in it asks again: others may
    /// have found the stream quiet meanwhile.
    fn state_to_extend(&self) -> Guard<'_, State> {
        let state = self.state();
        self.quiet.store(false, Ordering::Relaxed);
        state
    }

    /// Lets go of what has ended; true when that is everything.
    fn settle(&self) -> bool {
        let mut state = self.state();
        state.reap();
        let done = state.tail.ask();
        if done {
            state.reap();
        }
        if state.pending.is_empty() && state.tail.is_empty() && state.parked.is_empty() {
            self.quiet.store(true, Ordering::Release);
        }
        done
    }

    /// Everything enqueued has been seen to have ended; of the legacy stream: in itself.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Acquire)
    }

    /// Everything enqueued has been seen to have ended; of the legacy stream: in all that it answers for. False where that would need a
    /// look at the device.
    pub(super) fn is_known_done(&self) -> bool {
        self.is_quiet() && (self.kind != Kind::Legacy || self.other_side().is_none())
    }

    fn turn(&self) -> Guard<'_, ()> {
        self.turn.lock()
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
            state.tail.ask();
            state.reap();
            state.pending.is_empty()
        }
    }

    /// Calls `f` with what the operation holds that runs now, or runs next.
    pub(super) fn visit_running(&self, f: impl FnOnce(&Resources)) {
        let state = self.state();
        let mut rest = state.pending.iter().filter(|(_, operation)| !operation.is_done());
        // Of a batch nobody knows which have ended, but the command processor is at or right behind the one that runs.
        let last = rest.clone().next_back();
        let running = rest.find(|(_, operation)| !operation.is_read()).or(last);
        if let Some((_, operation)) = running.filter(|(_, operation)| operation.is_submitted()) {
            f(operation.resources());
        }
    }

    /// The tail has changed: the other side of the legacy default stream's rules will look.
    fn advanced(&self, state: &mut State) {
        state.seq += 1;
        match self.kind {
            Kind::NonBlocking => {}
            Kind::Legacy => {
                self.progress.legacy.fetch_add(1, Ordering::Release);
            }
            Kind::Blocking | Kind::PerThread => {
                self.progress.blocking.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// What the other side of the legacy default stream's rules has come to, if this stream has not waited for all of that.
    fn other_side(&self) -> Option<u64> {
        let now = match self.kind {
            Kind::NonBlocking => return None,
            Kind::Legacy => self.progress.blocking.load(Ordering::Acquire),
            Kind::Blocking | Kind::PerThread => self.progress.legacy.load(Ordering::Acquire),
        };
        (now != self.ordered.load(Ordering::Acquire)).then_some(now)
    }

    /// Applies the rules of the legacy default stream: adds to the tail what the other side has enqueued since. The caller
    /// has the turn.
    fn order(&self) {
        let Some(now) = self.other_side() else { return };
        let Some(shared) = self.context.upgrade() else { return };
        if self.kind == Kind::Legacy {
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
        } else if let Some(legacy) = shared.legacy() {
            let tail = legacy.state().tail.clone();
            self.add(&tail);
        }
        self.ordered.store(now, Ordering::Release);
    }

    fn add(&self, frontier: &Frontier) {
        if !frontier.is_empty() {
            // A fault shows at the next question.
            let _ = frontier.close();
            self.state_to_extend().tail.join(frontier);
        }
    }

    /// Makes all later operations wait for `frontier` (`cudaStreamWaitEvent`).
    pub fn wait_for(&self, frontier: &Frontier) {
        let _turn = self.turn();
        let mut state = self.state_to_extend();
        state.reap();
        state.tail.join(frontier);
        self.advanced(&mut state);
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

    /// A later time. To be taken before looking at the tail, so that the tail holds at least what came before the time. The caller
    /// has the turn.
    fn tick(&self) -> u64 {
        let time = self.clock.load(Ordering::Relaxed) + 1;
        self.clock.store(time, Ordering::Release);
        time
    }

    /// Marks the present: what a point of now lies behind.
    pub fn mark(&self) -> Marks {
        let _turn = self.turn();
        self.mark_in_turn()
    }

    fn mark_in_turn(&self) -> Marks {
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
        let Some(_turn) = self.turn.try_lock() else {
            return false;
        };
        self.order();
        let mut state = self.state();
        state.reap();
        state.tail.ask()
    }

    /// Whether operations enqueued from now on come after all that was ordered into `other` up to `time`.
    pub fn comes_after(&self, other: u64, time: u64) -> bool {
        let known = |(stream, latest): &(u64, u64)| *stream == other && *latest > time;
        self.state().follows.iter().any(known)
    }

    /// The time of the next operation, what it must wait for, the ring, and whether something is parked. The caller has the turn.
    fn look(&self) -> (u64, Frontier, Option<&'static Ring>, bool) {
        let time = self.tick();
        self.order();
        let mut state = self.state_to_extend();
        state.tidy(self.id);
        (time, state.tail.clone(), state.ring, !state.parked.is_empty())
    }

    /// Enqueues one operation and returns its end. `resources` are kept until then.
    fn enqueue(&self, command: Command, resources: Resources) -> Result<Completion> {
        fault::check()?;
        // What can be captured has become a node before it came here.
        capture::refuse(self)?;
        let _turn = self.turn();
        let time = self.tick();
        self.order();
        let mut state = self.state_to_extend();
        state.tidy(self.id);
        if let Command::Packet(packet) = command
            && let Some(completion) = self.try_ring(&state, packet)
        {
            // As most are: behind the stream's own packets, with room in the ring.
            state.append(time, completion.clone(), Frontier::default(), resources);
            self.advanced(&mut state);
            return Ok(completion);
        }
        let (tail, mut ring, parked) = (state.tail.clone(), state.ring, !state.parked.is_empty());
        drop(state);
        if parked || !command.may_follow(&tail) {
            return self.park(time, command, tail, resources).map(Completion::Countdown);
        }
        match self.submit(command, &tail, &mut ring, None) {
            Ok(completion) => {
                let mut state = self.state_to_extend();
                state.ring = ring;
                state.append(time, completion.clone(), tail, resources);
                self.advanced(&mut state);
                Ok(completion)
            }
            Err(error) => {
                // Part of it may be on its way already.
                std::mem::forget(resources);
                Err(error)
            }
        }
    }

    /// Submits a packet that needs nothing but the order of the stream's ring, where nobody else's packets came in between.
    fn try_ring(&self, state: &State, packet: Packet) -> Option<Completion> {
        let ring = state.ring.filter(|ring| state.follows_on(ring))?;
        if !state.parked.is_empty() {
            return None;
        }
        ring.try_submit(self.id, packet)
    }

    /// Enqueues a packet if it can follow the stream's last in its ring, with no other stream's between them; with `behind`, only if
    /// that one is not known to have ended. `None`, and nothing is enqueued, otherwise.
    ///
    /// # Errors
    /// The process's fault.
    pub fn try_packet(
        &self,
        packet: Packet,
        behind: bool,
        resources: impl FnOnce() -> Resources,
    ) -> Result<Option<Completion>> {
        fault::check()?;
        capture::refuse(self)?;
        let _turn = self.turn();
        let time = self.tick();
        self.order();
        let mut state = self.state();
        state.tidy(self.id);
        if behind && state.tail.is_done() {
            return Ok(None);
        }
        let Some(completion) = self.try_ring(&state, packet) else {
            return Ok(None);
        };
        self.quiet.store(false, Ordering::Relaxed);
        state.append(time, completion.clone(), Frontier::default(), resources());
        self.advanced(&mut state);
        Ok(Some(completion))
    }

    /// Runs `work` in the stream's place if everything enqueued before is known to have ended, and nothing is enqueued meanwhile. `work`
    /// is short, and says whether it has done what it should.
    ///
    /// # Errors
    /// The process's fault.
    pub fn try_at_rest(&self, work: impl FnOnce() -> bool) -> Result<bool> {
        fault::check()?;
        capture::refuse(self)?;
        // Somebody is enqueueing, so there is work.
        let Some(_turn) = self.turn.try_lock() else {
            return Ok(false);
        };
        self.order();
        {
            let mut state = self.state();
            state.reap();
            if !state.parked.is_empty() || !state.tail.is_done() {
                return Ok(false);
            }
        }
        Ok(work())
    }

    /// Keeps an operation in host memory until what it waits for has been submitted. The caller has the turn.
    fn park(&self, time: u64, command: Command, tail: Frontier, resources: Resources) -> Result<Arc<Countdown>> {
        tail.close()?;
        let completion = Countdown::parked(command.parts())?;
        let first = {
            let mut state = self.state_to_extend();
            state.parked.push_back(Parked {
                command,
                waits_for: tail.clone(),
                completion: Arc::clone(&completion),
            });
            state.append(time, Completion::Countdown(Arc::clone(&completion)), tail, resources);
            self.advanced(&mut state);
            state.parked.len() == 1
        };
        if first && let Some(this) = self.this.upgrade() {
            proxy::watch(this);
        }
        Ok(completion)
    }

    /// Sends an operation on its way, and returns its end: `own`, if it was parked before. All that it waits for has been
    /// submitted.
    fn submit(
        &self,
        command: Command,
        waits_for: &Frontier,
        ring: &mut Option<&'static Ring>,
        own: Option<&Arc<Countdown>>,
    ) -> Result<Completion> {
        let with_own = |parts| own.map_or_else(|| Countdown::new(parts), |own| Ok(Arc::clone(own)));
        match command {
            Command::Packet(packet) => {
                let end = own.map_or(End::Batched, End::Own);
                self.submit_packets(&[packet], waits_for, ring, end)
            }
            Command::Cooperative(packet) => {
                let shared = self.context.upgrade().ok_or(Error::CONTEXT_IS_DESTROYED)?;
                let end = own.map_or(End::Batched, End::Own);
                self.submit_to(shared.rings()?.cooperative()?, &[packet], waits_for, end)
            }
            Command::Packets(packets) => {
                let end = own.map_or(End::Counted, End::Own);
                self.submit_packets(&packets, waits_for, ring, end)
            }
            Command::TimedMarker => {
                let own = with_own(1)?;
                self.submit_packets(&[Packet::timed_marker()], waits_for, ring, End::Own(&own))
            }
            Command::Copy { spans, dst, src } => {
                let completion = with_own(spans.len())?;
                command::start_copies(&spans, dst, src, &waits_for.signals(), &completion)?;
                Ok(Completion::Countdown(completion))
            }
            Command::HostCall(call, queue) => {
                waits_for.close()?;
                let completion = with_own(1)?;
                callback::submit(queue, waits_for.clone(), call, Arc::clone(&completion));
                Ok(Completion::Countdown(completion))
            }
            // Only ever parked.
            Command::Wait(_) => Err(Error::UNKNOWN),
        }
    }

    fn submit_packets(
        &self,
        packets: &[Packet],
        waits_for: &Frontier,
        ring: &mut Option<&'static Ring>,
        end: End<'_>,
    ) -> Result<Completion> {
        let borrowed = self.ring(waits_for, *ring)?;
        let completion = self.submit_to(borrowed, packets, waits_for, end)?;
        *ring = Some(borrowed);
        Ok(completion)
    }

    fn submit_to(
        &self,
        ring: &'static Ring,
        packets: &[Packet],
        waits_for: &Frontier,
        end: End<'_>,
    ) -> Result<Completion> {
        for other in waits_for.iter().filter(|c| !c.is_on_ring(ring)) {
            other.close()?;
        }
        ring.submit(self.id, waits_for, packets, end)
    }

    fn ring(&self, waits_for: &Frontier, current: Option<&'static Ring>) -> Result<&'static Ring> {
        // While its own last packet is on its way, or nobody else used the ring since, the stream stays on it: there order is free.
        // Another stream's packet that it waits for is no reason: what that stream submitted since would come before.
        let is_own = |ring: &Ring| {
            self.state()
                .pending
                .back()
                .is_some_and(|(_, last)| last.is_on_ring(ring))
        };
        let stays = |ring: &&'static Ring| {
            ring.user() == self.id || waits_for.iter().any(|c| c.is_on_ring(ring)) && is_own(ring)
        };
        match current.filter(stays) {
            Some(ring) => Ok(ring),
            None => {
                let shared = self.context.upgrade().ok_or(Error::CONTEXT_IS_DESTROYED)?;
                shared.rings()?.borrow(self.priority, current)
            }
        }
    }

    /// Submits what may be submitted of the parked operations; for [`proxy`] and [`Stream::help`]. Conditions that only a device can look at
    /// become `questions`, and are answered in the next call. False when nothing is parked any more.
    pub(super) fn advance(&self, questions: &mut Questions) -> bool {
        // Mostly a copy waits for a kernel, and who enqueues meanwhile wants the turn.
        if self.is_held_up() {
            return true;
        }
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

    /// What is parked first is no wait for a value, and cannot be submitted yet.
    fn is_held_up(&self) -> bool {
        if fault::current().is_some() || self.is_cancelled() {
            return false;
        }
        let state = self.state();
        let first = state.parked.front();
        first.is_some_and(|first| {
            !matches!(first.command, Command::Wait(_)) && !first.command.may_follow(&first.waits_for)
        })
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
        let Resources::Other(resources) = operation.resources() else {
            return None;
        };
        let slot = |resource: &Resource| resource.downcast_ref::<Arc<Slot>>().cloned();
        let slot = resources.iter().find_map(slot)?;
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
        let mut ring = self.state().ring;
        let submitted = self.submit(command, &waits_for, &mut ring, Some(&completion));
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
    pub fn packet(&self, packet: Packet, resources: Resources) -> Result<Completion> {
        self.enqueue(Command::Packet(packet), resources)
    }

    /// As [`Stream::packet`], for a launch whose work-groups must be on the device at once.
    ///
    /// # Errors
    /// As [`Stream::packet`].
    pub fn cooperative_packet(&self, packet: Packet, resources: Resources) -> Result<Completion> {
        self.enqueue(Command::Cooperative(packet), resources)
    }

    /// Enqueues packets for one ring as one operation and returns its end. The first has the barrier bit, and the last ends after
    /// all others.
    ///
    /// # Errors
    /// As [`Stream::packet`].
    pub fn packets(&self, packets: Arc<[Packet]>, resources: Vec<Resource>) -> Result<Completion> {
        self.enqueue(Command::Packets(packets), resources.into())
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
    ) -> Result<Option<Completion>> {
        if spans.is_empty() {
            return Ok(None);
        }
        let src = command::source_agent(spans, dst, src);
        let spans = spans.to_vec();
        self.enqueue(Command::Copy { spans, dst, src }, resources.into())
            .map(Some)
    }

    /// Enqueues a call on the host. It gets the process's fault, if there is one by then.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when no signal is left, or the process's fault.
    pub fn host_call(&self, call: impl FnOnce(Option<Error>) + Send + 'static) -> Result<()> {
        let call = Command::HostCall(Box::new(call), &callback::HOST_FUNCTIONS);
        self.enqueue(call, Vec::new().into()).map(|_| ())
    }

    /// As [`Stream::host_call`], for a call that never blocks. No host function of the application's is in its way.
    ///
    /// # Errors
    /// As [`Stream::host_call`].
    pub fn decide(&self, call: impl FnOnce(Option<Error>) + Send + 'static) -> Result<()> {
        let call = Command::HostCall(Box::new(call), &callback::DECISIONS);
        self.enqueue(call, Vec::new().into()).map(|_| ())
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
    pub fn wait_for_memory_with(&self, condition: Condition, resources: Vec<Resource>) -> Result<()> {
        fault::check()?;
        capture::refuse(self)?;
        let _turn = self.turn();
        let (time, tail, _, parked) = self.look();
        if !parked && tail.is_done() && condition.is_met() == Some(true) {
            return Ok(());
        }
        self.park(time, Command::Wait(condition), tail, resources.into())
            .map(|_| ())
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
        } else if self.try_at_rest(|| target.store_to_device(value))? {
            return Ok(());
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
        let marks = self.mark_in_turn();
        self.order();
        let mut state = self.state();
        state.reap();
        let mut frontier = state.tail.clone();
        drop(state);
        frontier.close()?;
        frontier.set_marks(marks);
        Ok(frontier)
    }

    /// As [`Stream::frontier`], by a packet that notes the time (an event with timing).
    ///
    /// # Errors
    /// As [`Stream::packet`].
    pub fn timed_marker(&self) -> Result<Arc<Countdown>> {
        match self.enqueue(Command::TimedMarker, Vec::new().into())? {
            Completion::Countdown(marker) => Ok(marker),
            // It has a signal of its own.
            Completion::Packet(_) => Err(Error::UNKNOWN),
        }
    }

    /// Everything enqueued so far has ended. The legacy stream answers for all blocking ones.
    ///
    /// # Errors
    /// The process's fault.
    pub fn is_done(&self) -> Result<bool> {
        fault::check()?;
        if self.is_known_done() {
            return Ok(true);
        }
        if self.kind == Kind::Legacy {
            // Somebody is enqueueing, so there is work.
            let Some(_turn) = self.turn.try_lock() else {
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
        if self.kind == Kind::Legacy && !self.is_known_done() {
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
        if enough() {
            return Ok(());
        }
        let taken_over = proxy::take_over(self);
        let helped = self.help_until(enough);
        if taken_over
            && !self.state().parked.is_empty()
            && let Some(this) = self.this.upgrade()
        {
            proxy::give_back(this);
        }
        helped
    }

    fn help_until(&self, enough: impl Fn() -> bool) -> Result<()> {
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
        let is_before = |c: &Completion| matches!(c, Completion::Countdown(c) if Arc::ptr_eq(c, before));
        if next.waits_for.iter().any(|c| !is_before(c) && !c.is_done()) {
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
        Command::HostCall(call, queue) if fault::current().is_some() => {
            callback::submit(queue, Frontier::default(), call, parked.completion);
        }
        _ => parked.completion.finish(parts),
    }
}
