//! Events: points in a stream's order, and the times they were passed.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::completion::{Completion, Countdown, Frontier};
use super::ipc_event::{self, Slot};
use super::stream::Stream;
use crate::abi::{Error, Result};
use crate::graph::capture::{self, Point};
use crate::hsa::{Agent, fault, signal};
use crate::thread_state::ThreadState;

/// `CU_EVENT_BLOCKING_SYNC`.
pub const BLOCKING_SYNC: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
pub const DISABLE_TIMING: u32 = 2;
/// `CU_EVENT_INTERPROCESS`; needs `DISABLE_TIMING`.
pub const INTERPROCESS: u32 = 4;

/// An event of a context.
pub struct Event {
    flags: u32,
    /// [`super::ContextStreams::id`] of its context.
    owner: u64,
    record: Mutex<Option<Record>>,
    /// What it shares with other processes.
    slot: Option<Arc<Slot>>,
    /// It was recorded last in a captured stream, and stands for a point there.
    captured: Mutex<Option<Point>>,
    /// One of `CAPTURED`, `PASSED`, `ORPHAN`, `DESTROYED`, or several: what questions can be answered from without a lock.
    marks: AtomicU8,
}

/// How many ended events' memories a thread keeps.
const SPARES: usize = 64;

thread_local! {
    static SPARE: ThreadState<Vec<Arc<Event>>> = const { ThreadState::new(Vec::new()) };
}

/// There is a `captured` point.
const CAPTURED: u8 = 1;
/// The last record has been passed, or there is none; of an event of this process alone. Changed with `record` locked.
const PASSED: u8 = 2;
/// The context was destroyed: NVIDIA answers DEVICE_UNINITIALIZED from then on.
const ORPHAN: u8 = 4;
/// The handle has ended.
const DESTROYED: u8 = 8;

/// The last record.
#[derive(Clone)]
struct Record {
    frontier: Frontier,
    time: Option<Arc<Timed>>,
    /// Its number among the records of all processes; 0 for an event of this one alone.
    number: u64,
}

/// A record with a time.
struct Timed {
    marker: Arc<Countdown>,
    agent: &'static Agent,
    /// When the end was first seen by the host, for packets without a time stamp; 0 until then.
    seen: AtomicU64,
}

impl Timed {
    /// The end, in ticks of the system clock.
    fn ticks(&self) -> u64 {
        let _ = self
            .seen
            .compare_exchange(0, signal::now(), Ordering::Relaxed, Ordering::Relaxed);
        self.marker
            .end_time(self.agent)
            .unwrap_or_else(|| self.seen.load(Ordering::Relaxed))
    }
}

impl Record {
    fn is_done(&self) -> bool {
        let done = self.frontier.is_done();
        if let (true, Some(time)) = (done, &self.time) {
            let _ = time
                .seen
                .compare_exchange(0, signal::now(), Ordering::Relaxed, Ordering::Relaxed);
        }
        done
    }
}

impl Event {
    /// An event that was never recorded.
    ///
    /// # Errors
    /// INVALID_VALUE for flags that NVIDIA refuses, MEMORY_ALLOCATION when an interprocess event finds no shared memory.
    pub fn new(flags: u32, owner: u64) -> Result<Arc<Self>> {
        if flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0
            || flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0
        {
            return Err(Error::INVALID_VALUE);
        }
        let slot = (flags & INTERPROCESS != 0).then(Slot::create).transpose()?;
        let new = Self {
            flags,
            owner,
            record: Mutex::new(None),
            slot,
            captured: Mutex::new(None),
            marks: AtomicU8::new(0),
        };
        let Some(mut spare) = ThreadState::change(&SPARE, Vec::pop) else {
            return Ok(Arc::new(new));
        };
        match Arc::get_mut(&mut spare) {
            Some(event) => *event = new,
            None => spare = Arc::new(new),
        }
        Ok(spare)
    }

    /// Ends the life of an event whose handle has ended. Its memory is for the thread's next one, if nobody else uses it.
    pub(super) fn end(mut event: Arc<Self>) {
        let Some(own) = Arc::get_mut(&mut event) else {
            event.mark_destroyed();
            return;
        };
        *own.record.get_mut().unwrap_or_else(|e| e.into_inner()) = None;
        *own.captured.get_mut().unwrap_or_else(|e| e.into_inner()) = None;
        own.slot = None;
        ThreadState::change(&SPARE, |spare| {
            if spare.len() < SPARES {
                spare.push(event);
            }
        });
    }

    /// An event of another process.
    pub(super) fn of_process(slot: Arc<Slot>, owner: u64) -> Self {
        Self {
            flags: DISABLE_TIMING | INTERPROCESS,
            owner,
            record: Mutex::new(None),
            captured: Mutex::new(None),
            slot: Some(slot),
            marks: AtomicU8::new(0),
        }
    }

    /// The bytes that another process opens it with.
    ///
    /// # Errors
    /// INVALID_RESOURCE_HANDLE for an event that is not interprocess, and as [`Event::check`].
    pub fn export(&self) -> Result<[u8; ipc_event::HANDLE_SIZE]> {
        self.check()?;
        let slot = self.slot.as_ref().ok_or(Error::INVALID_RESOURCE_HANDLE)?;
        Ok(slot.export())
    }

    /// The last record, if it was another process's.
    fn foreign_record(&self) -> Option<(&Arc<Slot>, u64)> {
        let slot = self.slot.as_ref()?;
        let last = slot.recorded();
        let own = self.record_state().map_or(0, |record| record.number);
        (last != own).then_some((slot, last))
    }

    /// [`super::ContextStreams::id`] of its context.
    pub fn owner(&self) -> u64 {
        self.owner
    }

    pub(super) fn orphan(&self) {
        self.marks.fetch_or(ORPHAN, Ordering::Release);
    }

    fn mark_destroyed(&self) {
        self.marks.fetch_or(DESTROYED, Ordering::Release);
    }

    /// Its handle has ended.
    pub(super) fn is_destroyed(&self) -> bool {
        self.marks.load(Ordering::Acquire) & DESTROYED != 0
    }

    /// No other process knows it.
    pub(super) fn is_of_one_process(&self) -> bool {
        self.slot.is_none()
    }

    /// The last record has been passed, as far as is known without a look at the device, and nothing else is to be said.
    #[inline]
    pub fn is_known_passed(&self) -> bool {
        self.marks.load(Ordering::Acquire) == PASSED
    }

    fn lock_record(&self) -> MutexGuard<'_, Option<Record>> {
        self.record.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn record_state(&self) -> Option<Record> {
        self.lock_record().clone()
    }

    /// DEVICE_UNINITIALIZED once the context is gone, and the process's fault.
    ///
    /// # Errors
    /// Those two.
    pub fn check(&self) -> Result<()> {
        if self.marks.load(Ordering::Acquire) & ORPHAN != 0 {
            return Err(Error::DEVICE_UNINITIALIZED);
        }
        fault::check()
    }

    /// The point in a capture that it stands for.
    pub fn captured(&self) -> Option<Point> {
        if self.marks.load(Ordering::Acquire) & CAPTURED == 0 {
            return None;
        }
        self.captured.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// It stands for a point in a capture that is over or spoiled, which is none any more.
    pub fn is_lost(&self) -> bool {
        self.captured().is_some_and(|point| point.is_lost())
    }

    fn set_captured(&self, point: Option<Point>) {
        if point.is_none() && self.marks.load(Ordering::Acquire) & CAPTURED == 0 {
            return;
        }
        let mut captured = self.captured.lock().unwrap_or_else(|e| e.into_inner());
        match point {
            Some(_) => self.marks.fetch_or(CAPTURED, Ordering::Release),
            None => self.marks.fetch_and(!CAPTURED, Ordering::Release),
        };
        *captured = point;
    }

    /// It was recorded outside captures.
    pub fn was_recorded(&self) -> bool {
        self.record_state().is_some() || self.foreign_record().is_some()
    }

    /// Refuses questions about a point in a capture. Most `spoil` it.
    fn check_captured(&self, spoils: bool) -> Result<()> {
        self.captured().map_or(Ok(()), |point| point.refuse(spoils))
    }

    /// Marks the point after everything enqueued in `stream` so far.
    ///
    /// # Errors
    /// INVALID_RESOURCE_HANDLE when the stream belongs to another context, else as [`Stream::packet`].
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.check()?;
        if stream.owner() != self.owner {
            return Err(Error::INVALID_RESOURCE_HANDLE);
        }
        if let Some(sequence) = capture::intercept(stream)? {
            self.set_captured(Some(capture::point(&sequence, stream)));
            return Ok(());
        }
        self.set_captured(None);
        let record = if let Some(slot) = &self.slot {
            let number = slot.record(stream)?;
            Record {
                frontier: stream.frontier()?,
                time: None,
                number,
            }
        } else if self.flags & DISABLE_TIMING != 0 {
            Record {
                frontier: stream.frontier()?,
                time: None,
                number: 0,
            }
        } else {
            let marks = stream.mark();
            let marker = stream.timed_marker()?;
            let mut frontier = Frontier::default();
            frontier.replace(Completion::Countdown(Arc::clone(&marker)));
            frontier.set_marks(marks);
            let agent = stream.device().agent;
            Record {
                frontier,
                time: Some(Arc::new(Timed {
                    marker,
                    agent,
                    seen: AtomicU64::new(0),
                })),
                number: 0,
            }
        };
        let mut last = self.lock_record();
        self.marks.fetch_and(!PASSED, Ordering::Release);
        *last = Some(record);
        Ok(())
    }

    /// The last record has been passed; true for an event that was never recorded.
    ///
    /// # Errors
    /// As [`Event::check`].
    pub fn is_done(&self) -> Result<bool> {
        if self.is_known_passed() {
            capture::check_unsafe_call()?;
            return fault::check().map(|()| true);
        }
        self.check()?;
        self.check_captured(true)?;
        capture::check_unsafe_call()?;
        if let Some((slot, record)) = self.foreign_record() {
            return Ok(slot.is_passed(record));
        }
        let mut record = self.lock_record();
        let done = record.as_mut().is_none_or(|record| {
            let done = record.is_done();
            record.frontier.trim();
            done
        });
        if done && self.is_of_one_process() {
            self.marks.fetch_or(PASSED, Ordering::Release);
        }
        drop(record);
        fault::check()?;
        Ok(done)
    }

    /// Waits until the last record has been passed.
    ///
    /// # Errors
    /// As [`Event::check`].
    pub fn synchronize(&self) -> Result<()> {
        if self.is_known_passed() {
            capture::check_unsafe_call()?;
            super::synchronized();
            return fault::check();
        }
        self.check()?;
        self.check_captured(true)?;
        capture::check_unsafe_call()?;
        if let Some((slot, record)) = self.foreign_record() {
            slot.wait(record)?;
        } else if !self.is_done()?
            && let Some(record) = self.record_state()
        {
            record.frontier.wait()?;
            record.is_done();
        }
        super::synchronized();
        fault::check()
    }

    /// Whether streams may wait for it: [`Event::wait_in`] will not refuse.
    ///
    /// # Errors
    /// As [`Event::check`], and those of a point in a capture.
    pub fn check_wait(&self) -> Result<()> {
        self.check()?;
        self.check_captured(false)
    }

    /// Makes all later operations of `stream` wait for the last record.
    ///
    /// # Errors
    /// As [`Event::check`], and as [`Stream::wait_for_memory`] where another process has recorded it.
    pub fn wait_in(&self, stream: &Stream) -> Result<()> {
        self.check()?;
        if self.is_known_passed() {
            return Ok(());
        }
        self.check_captured(false)?;
        if let Some((slot, record)) = self.foreign_record() {
            return slot.wait_in(record, stream);
        }
        if let Some(record) = self.record_state() {
            stream.wait_for(&record.frontier);
        }
        Ok(())
    }

    /// Milliseconds from the record of `start` to that of `self`.
    ///
    /// # Errors
    /// INVALID_RESOURCE_HANDLE when one was not recorded or has no timing, or when they are of two contexts; NOT_READY when one was
    /// not passed yet.
    pub fn elapsed_since(&self, start: &Self) -> Result<f32> {
        self.check()?;
        start.check()?;
        let timed = |event: &Self| -> Result<(Record, Arc<Timed>)> {
            event.check_captured(false)?;
            let record = event.record_state().ok_or(Error::INVALID_RESOURCE_HANDLE)?;
            let time = record.time.clone().ok_or(Error::INVALID_RESOURCE_HANDLE)?;
            Ok((record, time))
        };
        // Recorded: everything about the first comes before anything about the second.
        let (first, second) = (timed(start)?, timed(self)?);
        if self.owner != start.owner {
            return Err(Error::INVALID_RESOURCE_HANDLE);
        }
        if !first.0.is_done() || !second.0.is_done() {
            return Err(Error::NOT_READY);
        }
        let ticks = second.1.ticks() as i64 - first.1.ticks() as i64;
        Ok((ticks as f64 * 1000.0 / signal::frequency() as f64) as f32)
    }
}
