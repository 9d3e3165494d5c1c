//! The end of an operation, as hosts, rings and copy engines can wait for it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::ring::{Ring, Ticket};
use super::staging::Chunk;
use crate::abi::{Error, Result};
use crate::hsa::patience::Patience;
use crate::hsa::signal::{Signal, SignalRef};
use crate::hsa::{Agent, fault};
use crate::module::launch::Launched;

/// The end of one operation.
///
/// Packets that were submitted when they were enqueued have none of their own: they are numbers in their ring's count, which
/// costs no signal to find, to arm, to look after and to give back.
#[derive(Clone, Debug)]
pub enum Completion {
    /// A packet of a ring.
    Packet(Ticket),
    /// Anything else.
    Countdown(Arc<Countdown>),
}

/// An end that is a signal of its own, which reaches 0.
///
/// Whoever waits on it, be it a packet in a ring, holds a reference until the wait is over; only then does the signal go
/// back to the pool. Reusing it earlier would let the waiter pass too soon or never.
///
/// An operation may be *parked* in host memory ([`super::proxy`]); its countdown exists from the start, so that events and
/// other streams can refer to it, but no packet and no copy may wait on it before it has been submitted.
#[derive(Debug)]
pub struct Countdown {
    signal: Signal,
    /// The ring whose packet counts the signal down, or 0: packets of a ring are in order without a wait.
    ring: AtomicU64,
    /// It is on its way: only the device's own progress ends it.
    submitted: AtomicBool,
    /// A copy on its way that waits for nothing but such copies: no kernel, no host function, no value in memory holds it up.
    unaided: AtomicBool,
}

impl Countdown {
    /// The end of an operation of `parts` parts, each of which counts the signal down by one. The operation is about to be
    /// submitted.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when there is no signal left.
    pub fn new(parts: usize) -> Result<Arc<Self>> {
        Self::create(parts, true)
    }

    /// As [`Countdown::new`], of an operation that is parked.
    ///
    /// # Errors
    /// As [`Countdown::new`].
    pub fn parked(parts: usize) -> Result<Arc<Self>> {
        Self::create(parts, false)
    }

    fn create(parts: usize, submitted: bool) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            signal: Signal::new(parts as i64)?,
            ring: AtomicU64::new(0),
            submitted: AtomicBool::new(submitted),
            unaided: AtomicBool::new(false),
        }))
    }

    /// The name that packets and copies take.
    pub fn signal(&self) -> SignalRef {
        self.signal.name()
    }

    /// A packet of `ring` is about to carry it.
    pub fn set_ring(&self, ring: &Ring) {
        self.ring.store(ring.id(), Ordering::Relaxed);
    }

    /// A parked operation is on its way now.
    pub fn set_submitted(&self) {
        self.submitted.store(true, Ordering::Release);
    }

    /// The operation is on its way, or over.
    pub fn is_submitted(&self) -> bool {
        self.submitted.load(Ordering::Acquire) || self.is_done()
    }

    /// A copy whose dependencies all end unaided is on its way.
    pub fn set_unaided(&self) {
        self.unaided.store(true, Ordering::Release);
    }

    /// It has ended, or will without anybody's help: what waits for it in a copy engine keeps nobody from anything.
    pub fn ends_unaided(&self) -> bool {
        self.unaided.load(Ordering::Acquire) || self.is_done()
    }

    /// The operation has ended.
    pub fn is_done(&self) -> bool {
        let value = self.signal.load();
        if value < 0 {
            report_failed_copy(value);
        }
        value <= 0
    }

    /// Ends `parts` parts that will not run (or that the host has run).
    pub fn finish(&self, parts: usize) {
        self.signal.subtract(parts as i64);
    }

    /// Waits for the end. What runs at the application's synchronisations does not run.
    ///
    /// # Errors
    /// The process's fault: a dead queue never ends anything.
    pub fn wait_quietly(&self) -> Result<()> {
        wait_until(|| self.is_done())
    }

    /// When the operation ended, in ticks of the system clock, if its packet says so.
    pub fn end_time(&self, agent: &Agent) -> Option<u64> {
        self.signal.end_time(agent)
    }
}

impl Completion {
    /// Whether both are the end of the same operation.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Packet(a), Self::Packet(b)) => a == b,
            (Self::Countdown(a), Self::Countdown(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Whether a packet of that ring completes it.
    pub fn is_on_ring(&self, ring: &Ring) -> bool {
        match self {
            Self::Packet(ticket) => ticket.is_of(ring),
            Self::Countdown(countdown) => countdown.ring.load(Ordering::Relaxed) == ring.id(),
        }
    }

    /// The operation is on its way, or over.
    pub fn is_submitted(&self) -> bool {
        match self {
            Self::Packet(_) => true,
            Self::Countdown(countdown) => countdown.is_submitted(),
        }
    }

    /// It is known to have ended, or will without anybody's help: what waits for it in a copy engine keeps nobody from anything.
    pub fn ends_unaided(&self) -> bool {
        match self {
            Self::Packet(ticket) => ticket.is_done(),
            Self::Countdown(countdown) => countdown.ends_unaided(),
        }
    }

    /// The operation is known to have ended.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Packet(ticket) => ticket.is_done(),
            Self::Countdown(countdown) => countdown.is_done(),
        }
    }

    /// As [`Completion::is_done`], of who will ask again: it is seen to that the end shows. Never waits.
    pub fn ask(&self) -> bool {
        match self {
            Self::Packet(ticket) => ticket.ask(),
            Self::Countdown(countdown) => countdown.is_done(),
        }
    }

    /// Sees to it that the end shows before that of anything submitted later.
    ///
    /// # Errors
    /// The process's fault.
    pub fn close(&self) -> Result<()> {
        match self {
            Self::Packet(ticket) => ticket.close(),
            Self::Countdown(_) => Ok(()),
        }
    }

    /// The device has begun with it, or is about to begin with what follows.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Packet(ticket) if ticket.is_read())
    }

    /// As [`Countdown::wait_quietly`].
    ///
    /// # Errors
    /// As [`Countdown::wait_quietly`].
    pub fn wait_quietly(&self) -> Result<()> {
        wait_until(|| self.ask())
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The process's fault: a dead queue never ends anything.
    pub fn wait(&self) -> Result<()> {
        let waited = self.wait_quietly();
        // After a fault, too: a failed assertion has something to say.
        super::synchronized();
        waited
    }
}

/// Waits until `done`, or until the process has met a fault.
fn wait_until(done: impl Fn() -> bool) -> Result<()> {
    let mut patience = None;
    while !done() && fault::current().is_none() {
        patience.get_or_insert_with(Patience::for_device).pause();
    }
    fault::check()
}

/// A copy that could not be done leaves its signal negative.
fn report_failed_copy(value: i64) {
    if fault::current().is_none() {
        log::error!("a copy failed on the device (signal {value})");
        fault::raise(Error::LAUNCH_FAILURE);
    }
}

/// A stream's id and a time on its own clock ([`super::Stream::now`]).
pub type Mark = (u64, u64);

/// Times on streams' own clocks that a point lies behind. Mostly one, which needs no memory of its own.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    own: Option<Mark>,
    others: Vec<Mark>,
}

impl Marks {
    /// The stream's own time, and those of others that it follows.
    pub fn new(own: Mark, others: Vec<Mark>) -> Self {
        Self { own: Some(own), others }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.others.iter().chain(&self.own)
    }
}

/// A point in the order of one or several streams: everything before it has ended when all of these have.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    /// Mostly there is one, which needs no memory of its own.
    first: Option<Completion>,
    /// Empty while there is no first.
    rest: Vec<Completion>,
    marks: Marks,
}

impl Frontier {
    /// Adds a completion unless it is over or known.
    pub fn push(&mut self, completion: &Completion) {
        if completion.is_done() || self.iter().any(|known| known.is(completion)) {
            return;
        }
        match &self.first {
            None => self.first = Some(completion.clone()),
            Some(_) => self.rest.push(completion.clone()),
        }
    }

    /// Adds all of `other`.
    pub fn join(&mut self, other: &Self) {
        for completion in other.iter() {
            self.push(completion);
        }
    }

    /// Becomes the end of one operation, which itself waited for all that was here.
    pub fn replace(&mut self, completion: Completion) {
        self.rest.clear();
        self.first = Some(completion);
    }

    /// What the point lies behind, ended or not. Kept for points that streams wait for; a stream's own tail has none.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Says what the point lies behind.
    pub fn set_marks(&mut self, marks: Marks) {
        self.marks = marks;
    }

    /// It is one operation's end.
    pub fn is_single(&self) -> bool {
        self.first.is_some() && self.rest.is_empty()
    }

    /// There is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Everything before this point has ended.
    pub fn is_done(&self) -> bool {
        self.iter().all(|c| c.is_done())
    }

    /// As [`Frontier::is_done`], of who will ask again: [`Completion::ask`].
    pub fn ask(&self) -> bool {
        let mut done = true;
        // Of all, so that all ends will show.
        for completion in self.iter() {
            done &= completion.ask();
        }
        done
    }

    /// Sees to it that the point shows before anything submitted later has ended: for whoever else is to know it.
    ///
    /// # Errors
    /// The process's fault.
    pub fn close(&self) -> Result<()> {
        self.iter().try_for_each(Completion::close)
    }

    /// Everything before this point is on its way, or over.
    pub fn is_submitted(&self) -> bool {
        self.iter().all(|c| c.is_submitted())
    }

    /// Everything before this point has ended, or will without anybody's help.
    pub fn ends_unaided(&self) -> bool {
        self.iter().all(|c| c.ends_unaided())
    }

    /// Forgets what has ended.
    pub fn trim(&mut self) {
        self.rest.retain(|c| !c.is_done());
        if self.first.as_ref().is_some_and(|c| c.is_done()) {
            self.first = self.rest.pop();
        }
    }

    /// Waits for everything before this point.
    ///
    /// # Errors
    /// The process's fault.
    pub fn wait(&self) -> Result<()> {
        self.iter().try_for_each(|c| c.wait())
    }

    /// The completions.
    pub fn iter(&self) -> impl Iterator<Item = &Completion> {
        self.first.iter().chain(&self.rest)
    }

    /// The signals of what has not ended, for a copy's dependencies. Packets have none: a copy comes when they have ended.
    pub fn signals(&self) -> Vec<SignalRef> {
        let signal = |completion: &Completion| match completion {
            Completion::Countdown(countdown) if !countdown.is_done() => Some(countdown.signal()),
            _ => None,
        };
        self.iter().filter_map(signal).collect()
    }
}

/// What an operation needs until it has ended: memory for its arguments, staging buffers, what it waits for.
pub type Resource = Box<dyn Any + Send>;

/// All that an operation needs until it has ended.
pub enum Resources {
    /// What a kernel needs, which costs no memory of its own: launches are many.
    Launch(Launched),
    /// What a kernel of the runtime's own needs.
    Own {
        /// Its arguments.
        _arguments: Chunk,
        /// What it copies from or to, where that is no memory of the application's.
        _staging: Option<Chunk>,
    },
    /// Whatever else.
    Other(Vec<Resource>),
}

impl From<Vec<Resource>> for Resources {
    fn from(resources: Vec<Resource>) -> Self {
        Self::Other(resources)
    }
}

/// An operation on its way, kept until it has ended.
pub struct Pending {
    completion: Completion,
    /// Held until then.
    resources: Resources,
    /// Referenced until then, so that no signal is reused under a waiter.
    _waits_for: Option<Box<Frontier>>,
}

impl Pending {
    /// An operation that ends with `completion`.
    pub fn new(completion: Completion, waits_for: Frontier, resources: Resources) -> Self {
        // The end of a packet is a number: nobody reuses it.
        let holds_signals = waits_for.iter().any(|c| matches!(c, Completion::Countdown(_)));
        Self {
            completion,
            resources,
            _waits_for: holds_signals.then(|| Box::new(waits_for)),
        }
    }

    /// The operation has ended.
    pub fn is_done(&self) -> bool {
        self.completion.is_done()
    }

    /// It is on its way.
    pub fn is_submitted(&self) -> bool {
        self.completion.is_submitted()
    }

    /// It ends with `completion`.
    pub fn ends_with(&self, completion: &Arc<Countdown>) -> bool {
        matches!(&self.completion, Completion::Countdown(own) if Arc::ptr_eq(own, completion))
    }

    /// [`Completion::is_read`].
    pub fn is_read(&self) -> bool {
        self.completion.is_read()
    }

    /// [`Completion::is_on_ring`].
    pub fn is_on_ring(&self, ring: &Ring) -> bool {
        self.completion.is_on_ring(ring)
    }

    /// What it holds.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }
}
