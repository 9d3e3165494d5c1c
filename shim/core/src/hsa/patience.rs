//! How a host thread waits for a GPU: it looks for a moment, then sleeps between looks.
//!
//! Our signals raise no interrupts ([`super::signal`]), so somebody has to look. A moment of looking catches what is nearly
//! done. After that the pauses are a small share of the time waited: what they add to a wait is a small share of the wait,
//! and a long wait costs little. A thread that sleeps also leaves its processor to whoever it waits for, which matters where
//! ranks share processors.
//!
//! Waking an idle processor takes longer than the sleep, tens of microseconds where it is virtual. So who waits for a device looks on for
//! longer as long as that pays and nobody else wants the processor: soon it offers that to others between two looks. A longer look that
//! has not seen the end, or that somebody interrupted, keeps all threads from longer looks for a while.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a wait looks without a pause: a few short kernels and a copy. A sleep of 5 us takes four times that where timers are slow.
const LOOKING: Duration = Duration::from_micros(50);
/// From then on the processor is offered to others between two looks: some of them may be what is waited for.
const ALONE: Duration = Duration::from_micros(500);
/// How long it looks while that pays: some thousand short kernels, or some megabytes over the bus.
const LOOKING_ON: Duration = Duration::from_millis(5);
/// For how long nobody looks on after it has not paid.
const CHASTENED: Duration = Duration::from_secs(1);
/// Least and most time between two looks.
const SHORTEST: Duration = Duration::from_micros(5);
const LONGEST: Duration = Duration::from_micros(500);
/// What the kernel may add to a sleep, in nanoseconds, while a thread waits here. By default it is 50 us.
const SLACK: libc::c_ulong = 1000;

/// How long to sleep before the next look of a wait that has taken `waited`.
pub fn pause(waited: Duration) -> Duration {
    (waited / 32).clamp(SHORTEST, LONGEST)
}

/// Lets the calling thread sleep exactly; returns what it had before, in nanoseconds.
pub fn sharpen_timer() -> libc::c_ulong {
    // SAFETY: reads and sets a number of the calling thread.
    unsafe {
        let before = libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0);
        libc::prctl(libc::PR_SET_TIMERSLACK, SLACK, 0, 0, 0);
        before as libc::c_ulong
    }
}

/// The process's time, in nanoseconds, from which on waits may look on.
static LOOK_ON_FROM: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of the process's own clock.
fn clock(now: Instant) -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    now.duration_since(*START.get_or_init(|| now)).as_nanos() as u64
}

/// How often the calling thread had to make room for another.
fn interruptions() -> libc::c_long {
    // SAFETY: a structure of numbers.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: the structure is alive.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nivcsw
}

/// One wait.
#[derive(Debug)]
pub struct Patience {
    since: Instant,
    /// How long it looks without a pause.
    looking: Duration,
    /// The thread's [`interruptions`] when it began to offer its processor.
    interruptions: Option<libc::c_long>,
    /// The timer slack that the application gave its thread, once we have changed it.
    slack: Option<libc::c_ulong>,
}

impl Patience {
    /// A wait that begins now.
    #[expect(clippy::new_without_default, reason = "it notes the time")]
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
            looking: LOOKING,
            interruptions: None,
            slack: None,
        }
    }

    /// A wait for what a device does, which begins now.
    pub fn for_device() -> Self {
        let mut patience = Self::new();
        if clock(patience.since) >= LOOK_ON_FROM.load(Ordering::Relaxed) {
            patience.looking = LOOKING_ON;
        }
        patience
    }

    /// Lets some time pass before the next look.
    pub fn pause(&mut self) {
        let now = Instant::now();
        let waited = now.duration_since(self.since);
        if waited < self.looking.min(ALONE) {
            std::hint::spin_loop();
            return;
        }
        if waited < self.looking {
            let before = *self.interruptions.get_or_insert_with(interruptions);
            std::thread::yield_now();
            if interruptions() == before {
                return;
            }
        }
        if self.looking == LOOKING_ON {
            self.looking = LOOKING;
            let from = clock(now) + CHASTENED.as_nanos() as u64;
            LOOK_ON_FROM.store(from, Ordering::Relaxed);
        }
        self.slack.get_or_insert_with(sharpen_timer);
        std::thread::sleep(pause(waited));
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if let Some(slack) = self.slack {
            // SAFETY: as in `sharpen_timer`.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack, 0, 0, 0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_a_share_of_the_wait_within_bounds() {
        assert_eq!(pause(Duration::ZERO), SHORTEST);
        assert_eq!(pause(Duration::from_micros(800)), Duration::from_micros(25));
        assert_eq!(pause(Duration::from_secs(1)), LONGEST);
    }

    #[test]
    fn nobody_looks_on_after_it_has_not_paid() {
        let mut first = Patience::for_device();
        assert_eq!(first.looking, LOOKING_ON);
        while first.slack.is_none() {
            first.pause();
        }
        assert!(first.since.elapsed() >= ALONE);
        assert_eq!(Patience::for_device().looking, LOOKING);
        std::thread::sleep(CHASTENED);
        assert_eq!(Patience::for_device().looking, LOOKING_ON);
    }

    #[test]
    fn the_timer_slack_of_the_application_comes_back() {
        // SAFETY: a number of the calling thread.
        let slack = || unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
        let before = slack();
        let mut patience = Patience::new();
        while patience.slack.is_none() {
            patience.pause();
        }
        assert_eq!(slack(), SLACK as i32);
        drop(patience);
        assert_eq!(slack(), before);
    }
}
