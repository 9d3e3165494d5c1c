//! The end of an operation, as signals that hosts, rings and copy engines can wait on.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::abi::{Error, Result};
use crate::hsa::signal::{self, Signal, SignalRef};
use crate::hsa::{Agent, fault};

/// How long a host wait sleeps before it looks whether the process has met a fault.
const SLICE: Duration = Duration::from_millis(20);

/// The end of one operation: a signal that reaches 0.
///
/// Whoever waits on it, be it a packet in a ring, holds a reference until the wait is over; only then does the signal go
/// back to the pool. Reusing it earlier would let the waiter pass too soon or never.
///
/// An operation may be *parked* in host memory ([`super::proxy`]); its completion exists from the start, so that events and
/// other streams can refer to it, but no packet and no copy may wait on it before it has been submitted.
#[derive(Debug)]
pub struct Completion {
    signal: Signal,
    /// The ring whose packet counts the signal down, or 0: packets of a ring are in order without a wait.
    ring: AtomicU64,
    /// It is on its way: only the device's own progress ends it.
    submitted: AtomicBool,
    /// A copy on its way that waits for nothing but such copies: no kernel, no host function, no value in memory holds it up.
    unaided: AtomicBool,
}

impl Completion {
    /// The end of an operation of `parts` parts, each of which counts the signal down by one. The operation is about to be
    /// submitted.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when there is no signal left.
    pub fn new(parts: usize) -> Result<Arc<Self>> {
        Self::create(parts, true)
    }

    /// As [`Completion::new`], of an operation that is parked.
    ///
    /// # Errors
    /// As [`Completion::new`].
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

    /// Whether a packet of that ring completes it.
    pub fn is_on_ring(&self, ring: u64) -> bool {
        self.ring.load(Ordering::Relaxed) == ring
    }

    /// A packet of `ring` is about to carry it.
    pub fn set_ring(&self, ring: u64) {
        self.ring.store(ring, Ordering::Relaxed);
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

    /// As [`Completion::wait`], for waits that are not the application's: what runs at its synchronisations does not run.
    ///
    /// # Errors
    /// As [`Completion::wait`].
    pub fn wait_quietly(&self) -> Result<()> {
        while !self.signal.wait(SLICE) && fault::current().is_none() {}
        if self.signal.load() < 0 {
            report_failed_copy(self.signal.load());
        }
        fault::check()
    }

    /// When the operation ended, in ticks of the system clock, if its packet says so.
    pub fn end_time(&self, agent: &Agent) -> Option<u64> {
        self.signal.end_time(agent)
    }
}

/// A copy that could not be done leaves its signal negative.
fn report_failed_copy(value: i64) {
    if fault::current().is_none() {
        log::error!("a copy failed on the device (signal {value})");
        fault::raise(Error::LAUNCH_FAILURE);
    }
}

/// Waits until one of `completions` has ended, or until about `timeout` has passed.
pub fn wait_any(completions: &[&Completion], timeout: Duration) {
    let signals: Vec<_> = completions.iter().map(|c| c.signal()).collect();
    signal::wait_any(&signals, timeout);
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
    first: Option<Arc<Completion>>,
    /// Empty while there is no first.
    rest: Vec<Arc<Completion>>,
    marks: Marks,
}

impl Frontier {
    /// Adds a completion unless it is over or known.
    pub fn push(&mut self, completion: &Arc<Completion>) {
        if completion.is_done() || self.iter().any(|known| Arc::ptr_eq(known, completion)) {
            return;
        }
        match &self.first {
            None => self.first = Some(Arc::clone(completion)),
            Some(_) => self.rest.push(Arc::clone(completion)),
        }
    }

    /// Adds all of `other`.
    pub fn join(&mut self, other: &Self) {
        for completion in other.iter() {
            self.push(completion);
        }
    }

    /// Becomes the end of one operation, which itself waited for all that was here.
    pub fn replace(&mut self, completion: Arc<Completion>) {
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
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Completion>> {
        self.first.iter().chain(&self.rest)
    }

    /// The signals, for a copy's dependencies.
    pub fn signals(&self) -> Vec<SignalRef> {
        self.iter().map(|c| c.signal()).collect()
    }
}

/// What an operation needs until it has ended: memory for its arguments, staging buffers, what it waits for.
pub type Resource = Box<dyn Any + Send>;

/// An operation on its way, kept until it has ended.
pub struct Pending {
    completion: Arc<Completion>,
    /// Held until then.
    resources: Vec<Resource>,
    /// Referenced until then, so that no signal is reused under a waiter.
    _waits_for: Frontier,
}

impl Pending {
    /// An operation that ends with `completion`.
    pub fn new(completion: Arc<Completion>, waits_for: Frontier, resources: Vec<Resource>) -> Self {
        Self {
            completion,
            resources,
            _waits_for: waits_for,
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
    pub fn ends_with(&self, completion: &Arc<Completion>) -> bool {
        Arc::ptr_eq(&self.completion, completion)
    }

    /// What it holds.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }
}
