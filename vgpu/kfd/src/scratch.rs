//! How a queue gets more scratch memory: the packet processor's side of it.
//!
//! `amd_queue_t` says how much private memory per lane the runtime has backed. A dispatch that needs more makes the packet
//! processor write 1 to the queue's inactive signal and wait: the runtime allocates, notes the new size, and stores 0, or -1 if
//! it has given the queue up. Scratch that is too large to keep (`USE_SCRATCH_ONCE`) is handed back with 512 after the
//! dispatch. Waves use the interpreter's own arrays: what is emulated is what the runtime sees, its memory included.
//!
//! Nobody sleeps here until the runtime answers: it may be busy with a handler that waits for another queue, which the same
//! thread runs when there is a seed.

use std::sync::atomic::{AtomicU32, Ordering};

use cdna::memory::{Access, Fault};

use crate::{queue::Context, signal::Signal};

/// Fields of `amd_queue_t`, from its start.
const LANE_BYTES: u64 = 176;
const PROPERTIES: u64 = 180;
const INACTIVE_SIGNAL: u64 = 192;
const USE_SCRATCH_ONCE: u32 = 1 << 4;

/// Written to the inactive signal: too little scratch for 64 lanes; scratch that was used once may go.
const INSUFFICIENT: i64 = 1;
const RECLAIM: i64 = 512;
/// The runtime's answer: the queue is over.
const GIVEN_UP: i64 = -1;

/// How a request stands.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is enough.
    Enough,
    /// The runtime has not answered yet.
    Asked,
    /// The runtime has given the queue up, and told its owner.
    Over,
}

fn word(context: &Context, va: u64) -> Result<u32, Fault> {
    let host = context.gpu.vm.contiguous(va, 4, Access::Read)?;
    // SAFETY: mapped; amd_queue_t is 64-byte aligned. The runtime's threads write it.
    Ok(unsafe { AtomicU32::from_ptr(host.cast()) }.load(Ordering::Acquire))
}

fn inactive_signal(context: &Context, queue_va: u64) -> Result<Option<Signal<'_>>, Fault> {
    let [low, high] = [
        word(context, queue_va + INACTIVE_SIGNAL)?,
        word(context, queue_va + INACTIVE_SIGNAL + 4)?,
    ];
    Signal::new(context, u64::from(high) << 32 | u64::from(low))
}

/// A queue's requests, of which one at a time is open.
#[derive(Debug, Default)]
pub struct Requests {
    open: bool,
}

impl Requests {
    /// Stores a request, or looks for the answer to the one that is open.
    fn ask(&mut self, signal: &Signal<'_>, request: i64) -> Result<Outcome, Fault> {
        if !self.open {
            signal.store(request)?;
            self.open = true;
        }
        let outcome = match signal.load() {
            0 => Outcome::Enough,
            GIVEN_UP => Outcome::Over,
            // As stored, or marked by the runtime: put off until another queue has given scratch back.
            _ => Outcome::Asked,
        };
        self.open = outcome == Outcome::Asked;
        Ok(outcome)
    }

    /// Sees to it that the queue has `lane_bytes` of private memory per lane. To be called again while it is
    /// [`Outcome::Asked`].
    ///
    /// # Errors
    /// Faults at `amd_queue_t` or its signal.
    pub fn require(&mut self, context: &Context, queue_va: u64, lane_bytes: u32) -> Result<Outcome, Fault> {
        while self.open || lane_bytes > word(context, queue_va + LANE_BYTES)? {
            // Whoever made a queue without the signal cannot be asked.
            let Some(signal) = inactive_signal(context, queue_va)? else {
                break;
            };
            if !self.open {
                log::debug!("queue {}: asks for {lane_bytes} bytes of scratch per lane", context.id);
            }
            match self.ask(&signal, INSUFFICIENT)? {
                Outcome::Enough => {}
                other => return Ok(other),
            }
        }
        Ok(Outcome::Enough)
    }

    /// Hands scratch back that was for one dispatch. To be called again while it is [`Outcome::Asked`].
    ///
    /// # Errors
    /// As for [`Requests::require`].
    pub fn release(&mut self, context: &Context, queue_va: u64) -> Result<Outcome, Fault> {
        if !self.open && word(context, queue_va + PROPERTIES)? & USE_SCRATCH_ONCE == 0 {
            return Ok(Outcome::Enough);
        }
        match inactive_signal(context, queue_va)? {
            Some(signal) => self.ask(&signal, RECLAIM),
            None => Ok(Outcome::Enough),
        }
    }
}
