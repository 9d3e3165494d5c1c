//! KFD events: what `hsaKmtWaitOnMultipleEvents` sleeps on.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::abi::{EventData, event_type, wait_result};

/// Most events of a process; also the number of slots in the events page (`KFD_SIGNAL_EVENT_LIMIT`).
const LIMIT: u32 = 4096;

/// A memory exception as the event carries it to user space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryException {
    /// The GPU that faulted.
    pub gpu_id: u32,
    /// The page's address.
    pub va: u64,
    /// Nothing was mapped.
    pub not_present: bool,
    /// The mapping does not allow stores.
    pub read_only: bool,
    /// The mapping does not allow instruction fetches.
    pub no_execute: bool,
}

#[derive(Debug, Default)]
struct Event {
    kind: u32,
    auto_reset: bool,
    signaled: bool,
    /// Counts activations, from 1; user space hands back the age it saw last.
    age: u64,
    /// Counts the times that present waiters were let go.
    releases: u64,
    waiters: u32,
    exception: MemoryException,
    failed_gpu: u32,
    raised_at: Option<Instant>,
    /// The age that each thread saw last; see [`RECENT`].
    seen: Vec<(usize, u64)>,
}

/// How long a raise counts for threads that have not seen it.
///
/// Before event ages (ROCr 5) two threads that wait on one auto-reset event can lose a wake-up: one looks at its
/// signal, the other is woken by the latched event and waits again, and only then the first one gets to wait. The card's
/// driver leaves that window open for some nanoseconds; here a busy host can stretch it to milliseconds. So a thread
/// that has not seen a recent raise is let go once. ROCr looks at its signals after every wake-up, needed or not.
const RECENT: Duration = Duration::from_millis(20);

/// Threads remembered per event.
const SEEN: usize = 32;

thread_local! {
    static THREAD: u8 = const { 0 };
}

/// Tells threads apart, as long as they live.
fn thread_key() -> usize {
    THREAD.with(|key| std::ptr::from_ref(key) as usize)
}

impl Event {
    /// Whether a recent raise has not been seen by the thread.
    fn missed(&self, thread: usize) -> bool {
        let seen = self
            .seen
            .iter()
            .find(|(key, _)| *key == thread)
            .map_or(1, |(_, age)| *age);
        seen != self.age && self.raised_at.is_some_and(|at| at.elapsed() < RECENT)
    }

    /// The thread goes on, having seen what there is.
    fn note_seen(&mut self, thread: usize) {
        match self.seen.iter_mut().find(|(key, _)| *key == thread) {
            Some((_, age)) => *age = self.age,
            None => {
                if self.seen.len() == SEEN {
                    self.seen.remove(0);
                }
                self.seen.push((thread, self.age));
            }
        }
    }

    /// The kernel's `set_event`: with waiters present all of them go on and an auto-reset event stays unsignaled; with
    /// none it latches. Letting only the first waiter go would hang `hsa_queue_destroy` now and then.
    fn raise(&mut self) {
        self.age += 1;
        self.raised_at = Some(Instant::now());
        if self.waiters > 0 {
            self.releases += 1;
            self.signaled = !self.auto_reset;
        } else {
            self.signaled = true;
        }
    }
}

/// All events of a process.
#[derive(Debug, Default)]
pub struct Events {
    table: Mutex<BTreeMap<u32, Event>>,
    changed: Condvar,
}

/// An ioctl's errno.
type Errno = i32;

impl Events {
    fn table(&self) -> MutexGuard<'_, BTreeMap<u32, Event>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an event and returns its id, which is also its slot in the events page.
    ///
    /// # Errors
    /// `ENOSPC`: too many.
    pub fn create(&self, kind: u32, auto_reset: bool) -> Result<u32, Errno> {
        let mut table = self.table();
        let id = (1..LIMIT).find(|id| !table.contains_key(id)).ok_or(libc::ENOSPC)?;
        table.insert(
            id,
            Event {
                kind,
                auto_reset,
                age: 1,
                ..Event::default()
            },
        );
        Ok(id)
    }

    /// Removes an event; its waiters fail.
    ///
    /// # Errors
    /// `EINVAL`: no such event.
    pub fn destroy(&self, id: u32) -> Result<(), Errno> {
        self.table().remove(&id).ok_or(libc::EINVAL)?;
        self.changed.notify_all();
        Ok(())
    }

    /// Raises an event.
    ///
    /// # Errors
    /// `EINVAL`: no such event.
    pub fn set(&self, id: u32) -> Result<(), Errno> {
        self.table().get_mut(&id).ok_or(libc::EINVAL)?.raise();
        self.changed.notify_all();
        Ok(())
    }

    /// Takes an event back.
    ///
    /// # Errors
    /// `EINVAL`: no such event.
    pub fn reset(&self, id: u32) -> Result<(), Errno> {
        self.table().get_mut(&id).ok_or(libc::EINVAL)?.signaled = false;
        Ok(())
    }

    /// Raises every memory-exception event. Returns how many there were.
    pub fn raise_memory_exception(&self, exception: MemoryException) -> usize {
        let mut raised = 0;
        for event in self
            .table()
            .values_mut()
            .filter(|event| event.kind == event_type::MEMORY)
        {
            event.exception = exception;
            event.raise();
            raised += 1;
        }
        self.changed.notify_all();
        raised
    }

    /// Raises every hardware-exception event, as for a GPU that hung and was reset with its memory kept.
    pub fn raise_hw_exception(&self, gpu_id: u32) {
        for event in self
            .table()
            .values_mut()
            .filter(|event| event.kind == event_type::HW_EXCEPTION)
        {
            event.failed_gpu = gpu_id;
            event.raise();
        }
        self.changed.notify_all();
    }

    /// `WAIT_EVENTS`. `timeout` is in milliseconds, `u32::MAX` for ever. Returns the wait result.
    ///
    /// `registered` runs once, before any sleep, when this thread counts as a waiter: nothing that it sets off is missed.
    ///
    /// # Errors
    /// `EINVAL` for an unknown event, `EIO` if one is destroyed meanwhile.
    pub fn wait(
        &self,
        data: &mut [EventData],
        all: bool,
        timeout: u32,
        registered: impl FnOnce(),
    ) -> Result<u32, Errno> {
        let thread = thread_key();
        let deadline = (timeout != u32::MAX).then(|| Instant::now() + Duration::from_millis(timeout.into()));
        let mut table = self.table();
        if data.iter().any(|wanted| !table.contains_key(&wanted.event_id)) {
            return Err(libc::EINVAL);
        }
        // Per wanted event: the releases seen at the start, and whether it is satisfied.
        let mut waits: Vec<(u64, bool)> = Vec::with_capacity(data.len());
        for wanted in data.iter() {
            let Some(event) = table.get_mut(&wanted.event_id) else {
                return Err(libc::EINVAL);
            };
            event.waiters += 1;
            let mut active = event.signaled;
            if active && event.auto_reset {
                event.signaled = false;
            }
            let age = last_age(wanted);
            if event.kind == event_type::SIGNAL {
                active |= if age != 0 {
                    age != event.age
                } else {
                    event.missed(thread)
                };
            }
            waits.push((event.releases, active));
        }
        drop(table);
        registered();
        table = self.table();
        let result = loop {
            let mut gone = false;
            for (wanted, (releases, active)) in data.iter().zip(&mut waits) {
                match table.get(&wanted.event_id) {
                    Some(event) => *active |= event.releases != *releases,
                    None => gone = true,
                }
            }
            if gone {
                break Err(libc::EIO);
            }
            let satisfied = waits.iter().filter(|(_, active)| *active).count();
            if satisfied == waits.len() || (satisfied > 0 && !all) {
                break Ok(wait_result::COMPLETE);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            table = match left {
                Some(Duration::ZERO) => break Ok(wait_result::TIMEOUT),
                Some(left) => {
                    self.changed
                        .wait_timeout(table, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self.changed.wait(table).unwrap_or_else(PoisonError::into_inner),
            };
        };
        for (wanted, (_, active)) in data.iter_mut().zip(&waits) {
            let Some(event) = table.get_mut(&wanted.event_id) else {
                continue;
            };
            event.waiters -= 1;
            event.note_seen(thread);
            if *active && result == Ok(wait_result::COMPLETE) {
                fill(wanted, event);
            }
        }
        result
    }
}

/// The age that user space saw last: the first 8 bytes of the union.
fn last_age(data: &EventData) -> u64 {
    u64::from(data.not_present) | u64::from(data.read_only) << 32
}

fn fill(data: &mut EventData, event: &Event) {
    match event.kind {
        event_type::SIGNAL if last_age(data) != 0 => {
            (data.not_present, data.read_only) = (event.age as u32, (event.age >> 32) as u32);
        }
        event_type::MEMORY => {
            data.not_present = event.exception.not_present.into();
            data.read_only = event.exception.read_only.into();
            data.no_execute = event.exception.no_execute.into();
            data.imprecise = 0;
            data.va = event.exception.va;
            data.gpu_id = event.exception.gpu_id;
            data.error_type = 0;
        }
        event_type::HW_EXCEPTION => {
            // kfd_hsa_hw_exception_data in the union: reset_type 0 (whole GPU), reset_cause 0 (hang), memory_lost, gpu_id.
            (data.not_present, data.read_only, data.no_execute) = (0, 0, 0);
            data.imprecise = event.failed_gpu;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, thread};

    fn wanted(id: u32, age: u64) -> EventData {
        EventData {
            not_present: age as u32,
            read_only: (age >> 32) as u32,
            no_execute: 0,
            imprecise: 0,
            va: 0,
            gpu_id: 0,
            error_type: 0,
            kfd_event_data_ext: 0,
            event_id: id,
            pad: 0,
        }
    }

    #[test]
    fn a_raised_auto_reset_event_latches_for_one_wait() {
        let events = Events::default();
        let id = events.create(event_type::SIGNAL, true).unwrap();
        events.set(id).unwrap();
        assert_eq!(
            events.wait(&mut [wanted(id, 0)], false, 0, || ()),
            Ok(wait_result::COMPLETE)
        );
        assert_eq!(
            events.wait(&mut [wanted(id, 0)], false, 0, || ()),
            Ok(wait_result::TIMEOUT)
        );
    }

    #[test]
    fn all_present_waiters_go_on() {
        let events = Arc::new(Events::default());
        let id = events.create(event_type::SIGNAL, true).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let events = events.clone();
                thread::spawn(move || events.wait(&mut [wanted(id, 0)], false, 10_000, || ()))
            })
            .collect();
        while events.table()[&id].waiters < 4 {
            thread::sleep(Duration::from_millis(1));
        }
        events.set(id).unwrap();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Ok(wait_result::COMPLETE));
        }
        thread::sleep(RECENT);
        assert_eq!(
            events.wait(&mut [wanted(id, 0)], false, 0, || ()),
            Ok(wait_result::TIMEOUT),
            "nothing latched"
        );
    }

    #[test]
    fn a_thread_that_missed_a_raise_goes_on_once() {
        let events = Arc::new(Events::default());
        let id = events.create(event_type::SIGNAL, true).unwrap();
        events.set(id).unwrap();
        let other = {
            let events = events.clone();
            thread::spawn(move || events.wait(&mut [wanted(id, 0)], false, 0, || ()))
        };
        assert_eq!(
            other.join().unwrap(),
            Ok(wait_result::COMPLETE),
            "takes the latched event"
        );
        assert_eq!(
            events.wait(&mut [wanted(id, 0)], false, 0, || ()),
            Ok(wait_result::COMPLETE),
            "missed it"
        );
        assert_eq!(
            events.wait(&mut [wanted(id, 0)], false, 0, || ()),
            Ok(wait_result::TIMEOUT)
        );
    }

    #[test]
    fn an_event_raised_between_two_waits_is_seen_by_its_age() {
        let events = Events::default();
        let id = events.create(event_type::SIGNAL, true).unwrap();
        let mut data = [wanted(id, 1)];
        events.set(id).unwrap();
        assert_eq!(events.wait(&mut data, false, 0, || ()), Ok(wait_result::COMPLETE));
        assert_eq!(last_age(&data[0]), 2);
        assert_eq!(
            events.wait(&mut [wanted(id, 1)], false, 0, || ()),
            Ok(wait_result::COMPLETE),
            "another, older reader"
        );
        assert_eq!(
            events.wait(&mut data, false, 0, || ()),
            Ok(wait_result::TIMEOUT),
            "nothing new for this one"
        );
    }

    #[test]
    fn waiting_for_all_needs_all() {
        let events = Events::default();
        let (a, b) = (events.create(0, false).unwrap(), events.create(0, false).unwrap());
        events.set(a).unwrap();
        assert_eq!(
            events.wait(&mut [wanted(a, 0), wanted(b, 0)], true, 1, || ()),
            Ok(wait_result::TIMEOUT)
        );
        events.set(b).unwrap();
        assert_eq!(
            events.wait(&mut [wanted(a, 0), wanted(b, 0)], true, 1, || ()),
            Ok(wait_result::COMPLETE)
        );
    }

    #[test]
    fn a_memory_exception_carries_its_data() {
        let events = Events::default();
        let id = events.create(event_type::MEMORY, true).unwrap();
        let exception = MemoryException {
            gpu_id: 7,
            va: 0x1000,
            not_present: true,
            ..MemoryException::default()
        };
        assert_eq!(events.raise_memory_exception(exception), 1);
        let mut data = [wanted(id, 0)];
        assert_eq!(events.wait(&mut data, true, 0, || ()), Ok(wait_result::COMPLETE));
        assert_eq!((data[0].va, data[0].gpu_id, data[0].not_present), (0x1000, 7, 1));
    }

    #[test]
    fn a_destroyed_event_fails_its_waiters() {
        let events = Arc::new(Events::default());
        let id = events.create(event_type::SIGNAL, true).unwrap();
        let waiter = {
            let events = events.clone();
            thread::spawn(move || events.wait(&mut [wanted(id, 0)], false, 10_000, || ()))
        };
        while events.table()[&id].waiters == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        events.destroy(id).unwrap();
        assert_eq!(waiter.join().unwrap(), Err(libc::EIO));
        assert_eq!(events.wait(&mut [wanted(id, 0)], false, 0, || ()), Err(libc::EINVAL));
    }
}
