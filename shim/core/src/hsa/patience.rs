//! How a host thread waits for a GPU: it looks for a moment, then sleeps between looks.
//!
//! Our signals raise no interrupts ([`super::signal`]), so somebody has to look. A moment of looking catches what is nearly
//! done. After that the pauses are a small share of the time waited: what they add to a wait is a small share of the wait,
//! and a long wait costs little. A thread that sleeps also leaves its processor to whoever it waits for, which matters where
//! ranks share processors.

use std::time::{Duration, Instant};

/// How long a wait looks without a pause: a few short kernels and a copy. A sleep of 5 us takes four times that where timers are slow.
const LOOKING: Duration = Duration::from_micros(50);
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

/// One wait.
#[derive(Debug)]
pub struct Patience {
    since: Instant,
    /// The timer slack that the application gave its thread, once we have changed it.
    slack: Option<libc::c_ulong>,
}

impl Patience {
    /// A wait that begins now.
    #[expect(clippy::new_without_default, reason = "it notes the time")]
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
            slack: None,
        }
    }

    /// Lets some time pass before the next look.
    pub fn pause(&mut self) {
        let waited = self.since.elapsed();
        if waited < LOOKING {
            std::hint::spin_loop();
            return;
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
