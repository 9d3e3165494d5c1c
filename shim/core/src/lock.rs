//! A lock for what is held for a moment, on paths that run millions of times.
//!
//! The standard library's ends with an atomic exchange, which waits until all stores before it have reached memory: behind a doorbell, or
//! arguments that the device has just read, that is the longest wait of a whole launch. Letting go of this lock is a plain store. Who finds it
//! taken looks again and again with growing pauses, as for the device: nobody is woken.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::hsa::patience::Patience;

/// A value that one thread at a time may use. A panic leaves the value as it is, and the lock open.
#[derive(Default)]
pub struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and there is one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// Holds `value`.
    pub const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the value.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// The value, if nobody has it now.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let taken = self
            .taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| Guard {
            taken: &self.taken,
            // SAFETY: `taken` was ours to set, so there is no other guard.
            value: unsafe { &mut *self.value.get() },
        })
    }

    #[cold]
    fn wait(&self) -> Guard<'_, T> {
        let mut patience = Patience::new();
        loop {
            patience.pause();
            if !self.taken.load(Ordering::Relaxed)
                && let Some(guard) = self.try_lock()
            {
                return guard;
            }
        }
    }
}

/// The right to use the value, until it is dropped.
pub struct Guard<'a, T> {
    taken: &'a AtomicBool,
    value: &'a mut T,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let lock = Lock::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let mut value = lock.lock();
                        let seen = std::hint::black_box(*value);
                        *value = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 40_000);
    }

    #[test]
    fn it_is_open_after_a_panic_and_refuses_who_will_not_wait() {
        let lock = Lock::new(1);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("on purpose");
        }));
        assert!(caught.is_err());
        let guard = lock.try_lock();
        assert!(guard.is_some() && lock.try_lock().is_none());
    }
}
