//! HSA signals in memory (`amd_signal_t`), as packet processors use them.
//!
//! ```text
//!  0     8      16                 24        28        32        40      48         56
//!  kind  value  event_mailbox_ptr  event_id  reserved  start_ts  end_ts  queue_ptr  reserved
//! ```

use std::sync::atomic::{AtomicI64, Ordering};

use cdna::memory::{Access, Fault};

use crate::queue::Context;

const SIZE: u64 = 64;
const VALUE: usize = 8;
const MAILBOX: usize = 16;
const EVENT_ID: usize = 24;
const START_TS: usize = 32;
const END_TS: usize = 40;

/// A signal that the GPU can reach.
pub struct Signal<'a> {
    context: &'a Context,
    host: *mut u8,
}

impl<'a> Signal<'a> {
    /// The signal of a handle; `None` for handle 0, which means "no signal".
    ///
    /// # Errors
    /// A fault where the GPU has no such memory.
    pub fn new(context: &'a Context, handle: u64) -> Result<Option<Self>, Fault> {
        if handle == 0 {
            return Ok(None);
        }
        // An unaligned handle would make unaligned atomics: it is no signal, and faults as the card's would.
        if !handle.is_multiple_of(8) {
            return Err(Fault {
                va: handle,
                reason: cdna::memory::FaultReason::NotPresent,
            });
        }
        let host = context.gpu.vm.contiguous(handle, SIZE, Access::Atomic)?;
        Ok(Some(Self { context, host }))
    }

    fn value(&self) -> &AtomicI64 {
        // SAFETY: mapped for 64 bytes and aligned.
        unsafe { AtomicI64::from_ptr(self.host.add(VALUE).cast()) }
    }

    /// The value now.
    pub fn load(&self) -> i64 {
        self.value().load(Ordering::Acquire)
    }

    /// Notes when the work began and ended, in GPU clock ticks.
    pub fn set_times(&self, start: u64, end: u64) {
        // SAFETY: mapped for 64 bytes, aligned.
        unsafe {
            self.host.add(START_TS).cast::<u64>().write_volatile(start);
            self.host.add(END_TS).cast::<u64>().write_volatile(end);
        }
    }

    /// Decrements the value and tells whoever waits.
    pub fn decrement(&self) -> Result<(), Fault> {
        // Read first: a host thread that sees the new value may free the signal at once.
        let notice = self.notice();
        self.value().fetch_sub(1, Ordering::AcqRel);
        self.notify(notice)
    }

    /// Stores a value and tells whoever waits.
    pub fn store(&self, value: i64) -> Result<(), Fault> {
        let notice = self.notice();
        self.value().store(value, Ordering::Release);
        self.notify(notice)
    }

    fn notice(&self) -> (u64, u32) {
        // SAFETY: mapped for 64 bytes, aligned.
        unsafe {
            (
                self.host.add(MAILBOX).cast::<u64>().read_volatile(),
                self.host.add(EVENT_ID).cast::<u32>().read_volatile(),
            )
        }
    }

    fn notify(&self, (mailbox, event): (u64, u32)) -> Result<(), Fault> {
        let process = self.context.process;
        process.bell.ring();
        if mailbox != 0 {
            let slot = self.context.gpu.vm.contiguous(mailbox, 8, Access::Write)?;
            // SAFETY: mapped; mailboxes are aligned slots of the events page.
            unsafe { slot.cast::<u64>().write_volatile(event.into()) };
            if process.events.set(event).is_err() {
                log::debug!(
                    "queue {}: signal names event {event}, which is not there",
                    self.context.id
                );
            }
        }
        Ok(())
    }
}
