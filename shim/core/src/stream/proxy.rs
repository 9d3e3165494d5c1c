//! The wait proxy: a thread that looks at the memory that streams wait for, and submits what stands behind.
//!
//! A stream wait value is not put into a ring or a copy engine: those are few, and whatever stood behind it there, of
//! other streams too, would wait with it, perhaps the very write that it waits for. Instead the stream is *parked*: its
//! operations from the wait on stay in host memory, and so do those of other streams that depend on them. So a ring or
//! an engine never holds anything that waits for a value in memory, and any number of streams may wait.
//!
//! ```text
//! stream A   copy ── wait flag ─ kernel ─ event           engine: copy      parked: wait, kernel, event
//! stream B              kernel ── wait for the event ─ copy    ring: kernel      parked: copy
//! ```
//!
//! Copies behind kernels and host functions are parked as well, until those have ended: a copy engine serves all streams, and what waits
//! in it for a kernel that spins would keep from it what ends the spinning.
//!
//! Most often who enqueues such a copy waits for the stream next, and then submits what is parked itself ([`Stream::synchronize`]). So the proxy
//! takes a moment before it looks at a stream that has just parked something, and leaves it to who waits; it sleeps on an [`Alarm`],
//! which costs the enqueuing thread less than waking another.
//!
//! The proxy reads host memory, and device memory where the card's BAR lets it. Elsewhere a copy engine brings the pages in
//! question, all of a device at once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::completion::Countdown;
use super::memop::Condition;
use super::staging::{Chunk, LARGEST};
use super::stream::Stream;
use crate::abi::Result;
use crate::device::{self, Device};
use crate::hsa::{copy, patience};
use crate::memory;

/// Bytes that one look at device memory brings.
const PAGE: u64 = 4096;

/// Nothing has gone on for so long: the log says what is waited for.
const LONG: Duration = Duration::from_secs(10);

/// How often to look whether something is waited for that will never come.
const LOST: Duration = Duration::from_secs(1);

/// How long the proxy leaves a stream to whoever may come to wait for it.
const MOMENT: Duration = Duration::from_micros(10);

/// Where there is no alarm, how often to look whether a stream has arrived.
const ROUNDS: Duration = Duration::from_micros(500);

/// How long the proxy sleeps at most when it has nothing to do: by then it has seen that an alarm does not work.
const SLEEP: Duration = Duration::from_secs(1);

struct Arrivals {
    streams: Vec<Arc<Stream>>,
    started: bool,
    /// The proxy will look soon.
    is_set: bool,
    /// `None` before the proxy has started, and where the alarm does not work.
    alarm: Option<Alarm>,
}

static ARRIVALS: Mutex<Arrivals> = Mutex::new(Arrivals {
    streams: Vec::new(),
    started: false,
    is_set: false,
    alarm: None,
});

fn arrivals() -> MutexGuard<'static, Arrivals> {
    ARRIVALS.lock().unwrap_or_else(|e| e.into_inner())
}

/// What wakes the proxy in a moment: a timer, which to set takes a thread less than to wake another, and wakes nobody if it is put off in
/// time. Its descriptor is never closed: the proxy may sleep on it, and if the application has closed it, it is somebody else's by now.
#[derive(Clone, Copy)]
struct Alarm(RawFd);

impl Alarm {
    fn new() -> std::io::Result<Self> {
        // SAFETY: the call has no preconditions.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self(fd))
    }

    /// Rings once after `time`; never for a time of zero. False if it cannot: the application has closed what is not its own.
    fn set(&self, time: Duration) -> bool {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let once = libc::itimerspec {
            it_interval: zero,
            it_value: libc::timespec {
                tv_sec: time.as_secs() as libc::time_t,
                tv_nsec: time.subsec_nanos().into(),
            },
        };
        // SAFETY: the structure lives through the call.
        unsafe { libc::timerfd_settime(self.0, 0, &once, core::ptr::null_mut()) == 0 }
    }
}

/// Sleeps until the alarm rings, if there is one, but no longer than `time`. False if it is none any more.
fn sleep(alarm: Option<Alarm>, time: Duration) -> bool {
    let Some(Alarm(fd)) = alarm else {
        std::thread::sleep(time);
        return true;
    };
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: one structure, and a time, which live through the call.
    let ready = unsafe { libc::ppoll(&mut poll, 1, &time, core::ptr::null()) };
    // Quiet again. Unlike a read, this takes nothing from a descriptor that has become somebody else's. It may put off an alarm that was set since;
    // the proxy looks at all that has arrived now.
    ready <= 0 || Alarm(fd).set(Duration::ZERO)
}

/// Takes care of a stream that has just parked its first operation.
pub(super) fn watch(stream: Arc<Stream>) {
    look_after(stream, MOMENT);
}

fn look_after(stream: Arc<Stream>, moment: Duration) {
    let mut arrivals = arrivals();
    if !arrivals.streams.iter().any(|known| Arc::ptr_eq(known, &stream)) {
        arrivals.streams.push(stream);
    }
    if !arrivals.started {
        arrivals.started = true;
        arrivals.alarm = Alarm::new()
            .inspect_err(|error| log::info!("stream waits are looked at every {ROUNDS:?}, without a timer: {error}"))
            .ok();
        let spawned = std::thread::Builder::new().name("regauge-wait".into()).spawn(run);
        if let Err(error) = spawned {
            log::error!("cannot start the thread for stream waits: {error}");
            arrivals.started = false;
        }
    }
    if !arrivals.is_set {
        arrivals.is_set = arrivals.alarm.is_some_and(|alarm| alarm.set(moment));
        if !arrivals.is_set && arrivals.alarm.take().is_some() {
            log::warn!("the timer for stream waits does not work: has the application closed descriptors of others?");
        }
    }
}

/// The stream is its caller's to look at, who waits for it: true if the proxy had not looked at it yet. Then [`give_back`] follows.
pub(super) fn take_over(stream: &Stream) -> bool {
    let mut arrivals = arrivals();
    let Some(place) = arrivals
        .streams
        .iter()
        .position(|known| core::ptr::eq(&**known, stream))
    else {
        return false;
    };
    arrivals.streams.swap_remove(place);
    if arrivals.streams.is_empty() && arrivals.is_set {
        arrivals.is_set = !arrivals.alarm.is_some_and(|alarm| alarm.set(Duration::ZERO));
    }
    true
}

/// Whoever took over a stream leaves something parked.
pub(super) fn give_back(stream: Arc<Stream>) {
    // A timer that is set to zero is off.
    look_after(stream, Duration::from_nanos(1));
}

fn run() {
    patience::sharpen_timer();
    let mut watched: Vec<Arc<Stream>> = Vec::new();
    let mut questions = Questions::default();
    let mut idle_since = Instant::now();
    let mut reported = false;
    let mut looked = Instant::now();
    let mut lost = HashSet::new();
    loop {
        let alarm = arrivals().alarm;
        let time = match (watched.is_empty(), alarm) {
            (false, _) => patience::pause(idle_since.elapsed()),
            (true, Some(_)) => SLEEP,
            (true, None) => ROUNDS,
        };
        let slept = sleep(alarm, time);
        {
            let mut arrivals = arrivals();
            if !slept {
                arrivals.alarm = None;
            }
            arrivals.is_set = false;
            if !arrivals.streams.is_empty() {
                idle_since = Instant::now();
            }
            watched.append(&mut arrivals.streams);
        }
        if watched.is_empty() {
            continue;
        }
        // A stream that goes on may free others that wait for its events.
        while {
            questions.begin();
            watched.retain(|stream| stream.advance(&mut questions));
            questions.answer();
            questions.progress
        } {
            idle_since = Instant::now();
            reported = false;
        }
        if idle_since.elapsed() > LOST && looked.elapsed() > LOST {
            looked = Instant::now();
            for stream in &watched {
                if let Some(text) = stream.describe_lost().filter(|_| lost.insert(stream.id())) {
                    log::error!("{text}");
                }
            }
        }
        if !reported && idle_since.elapsed() > LONG {
            reported = true;
            for held_up in watched.iter().filter_map(|stream| stream.describe_parked()) {
                log::info!("waiting for {} s: {held_up}", LONG.as_secs());
            }
        }
    }
}

/// A page of a device's memory (its ordinal, the page's address), and the waits that want to see it.
type Page = ((i32, u64), Vec<(usize, Condition)>);

/// Identifies a wait: its completion lives as long as it is parked.
fn key(completion: &Arc<Countdown>) -> usize {
    Arc::as_ptr(completion).addr()
}

/// What only devices can look at, and what they have seen.
#[derive(Default)]
pub(super) struct Questions {
    asked: Vec<(usize, Condition)>,
    /// Those of `asked` whose turn has not come. An answer to them alone is no reason to look again at once.
    ahead: HashSet<usize>,
    answers: HashMap<usize, bool>,
    progress: bool,
}

impl Questions {
    fn begin(&mut self) {
        self.asked.clear();
        self.ahead.clear();
        self.progress = false;
    }

    /// Something was submitted or ended.
    pub fn progress(&mut self) {
        self.progress = true;
    }

    /// Whether a wait is over; everything before it is. If only the device knows, it is asked, and has answered at the next call.
    pub fn is_met(&mut self, completion: &Arc<Countdown>, condition: &Condition) -> bool {
        if let Some(met) = condition.is_met() {
            return met;
        }
        let met = self.answers.remove(&key(completion)) == Some(true);
        if !met {
            self.ask(completion, condition);
        }
        met
    }

    /// As [`Questions::is_met`] would, for a wait whose turn comes when the one before it is over.
    pub fn ask_ahead(&mut self, completion: &Arc<Countdown>, condition: &Condition) {
        if condition.is_met().is_none() {
            self.ahead.insert(key(completion));
            self.ask(completion, condition);
        }
    }

    /// Has the device look at a condition.
    fn ask(&mut self, completion: &Arc<Countdown>, condition: &Condition) {
        self.asked.push((key(completion), *condition));
    }

    /// The device was just asked about this wait.
    pub fn is_asked(&self, completion: &Arc<Countdown>) -> bool {
        self.asked.last().is_some_and(|(asked, _)| *asked == key(completion))
    }

    /// Has the devices look.
    fn answer(&mut self) {
        self.answers.clear();
        if self.asked.is_empty() {
            return;
        }
        let mut pages: BTreeMap<(i32, u64), Vec<(usize, Condition)>> = BTreeMap::new();
        for (key, condition) in self.asked.drain(..) {
            let target = &condition.target;
            let page = (target.device.ordinal, target.address & !(PAGE - 1));
            pages.entry(page).or_default().push((key, condition));
        }
        let pages: Vec<Page> = pages.into_iter().collect();
        for batch in pages.chunk_by(|(a, _), (b, _)| a.0 == b.0) {
            let Ok(device) = device::get(batch[0].0.0) else {
                continue;
            };
            for batch in batch.chunks(LARGEST / PAGE as usize) {
                if let Err(error) = self.look(device, batch) {
                    log::debug!("{device:?} cannot look at waits: {error:?}");
                }
            }
        }
    }

    fn look(&mut self, device: &'static Device, pages: &[Page]) -> Result<()> {
        let mut chunk = Chunk::new(device, pages.len() * PAGE as usize)?;
        let completion = Countdown::new(pages.len())?;
        for (index, ((_, page), conditions)) in pages.iter().enumerate() {
            // What lies outside the allocation is not there for the engine.
            let extent = memory::lookup(conditions[0].1.target.address)
                .map(|entry| ((*page).max(entry.base), (page + PAGE).min(entry.base + entry.size)));
            let started = extent.is_some_and(|(start, end)| {
                let place = chunk.address() + index as u64 * PAGE + (start - page);
                // SAFETY: device memory in the registry, which nobody frees before the streams that wait for it; the chunk
                // lives until the copies have ended.
                unsafe {
                    copy::start(
                        (place, device.host),
                        (start, device.agent),
                        (end - start) as usize,
                        &[],
                        completion.signal(),
                    )
                }
                .is_ok()
            });
            if !started {
                completion.finish(1);
            }
        }
        if let Err(error) = completion.wait_quietly() {
            // The engine may still write to it.
            std::mem::forget(chunk);
            return Err(error);
        }
        for (index, ((_, page), conditions)) in pages.iter().enumerate() {
            for (key, condition) in conditions {
                let at = index * PAGE as usize + (condition.target.address - page) as usize;
                let mut word = [0; 8];
                let bytes = condition.target.bytes() as usize;
                word[..bytes].copy_from_slice(&chunk.bytes()[at..at + bytes]);
                let met = condition.is_met_by(u64::from_le_bytes(word));
                self.progress |= met && !self.ahead.contains(key);
                self.answers.insert(*key, met);
            }
        }
        Ok(())
    }
}
