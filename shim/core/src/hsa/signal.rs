//! Signals: the words that GPUs, copy engines and the host wait on and count down.
//!
//! Ours raise no interrupts. An interrupt at the end of every operation would cost the device, the kernel and ROCr's event thread more than
//! the operation itself, and nearly always nobody waits. Who does looks at the value ([`super::patience`]).

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use hsa_sys::*;

use super::{Agent, raw};
use crate::abi::{Error, Result};

/// Signals that nobody uses any more. Creating one takes ROCr's locks, so they are kept.
static IDLE: Mutex<Vec<hsa_signal_t>> = Mutex::new(Vec::new());

/// A signal as packets and copies name it; whoever passes it on keeps the [`Signal`] alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalRef(pub(super) hsa_signal_t);

/// An HSA signal. Returned to the pool when dropped at 0; otherwise somebody may still count it down, and it is leaked.
#[derive(Debug)]
pub struct Signal(hsa_signal_t);

impl Signal {
    /// A signal, from the pool if there is one, that holds `value`.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when ROCr has no more.
    pub fn new(value: i64) -> Result<Self> {
        let pooled = IDLE.lock().unwrap_or_else(|e| e.into_inner()).pop();
        if let Some(idle) = pooled {
            let signal = Self(idle);
            signal.reset(value);
            return Ok(signal);
        }
        let mut signal = hsa_signal_t::default();
        // SAFETY: no consumers are named, which means any agent; `signal` is valid for the write.
        let status = unsafe {
            raw().hsa_amd_signal_create(value, 0, core::ptr::null(), HSA_AMD_SIGNAL_AMD_GPU_ONLY, &mut signal)
        };
        if status != HSA_STATUS_SUCCESS {
            log::error!("hsa_amd_signal_create: {status:?}");
            return Err(Error::MEMORY_ALLOCATION);
        }
        Ok(Self(signal))
    }

    /// The name that packets and copies take.
    pub fn name(&self) -> SignalRef {
        SignalRef(self.0)
    }

    /// The value, with acquire semantics at system scope. Looked at many times for each operation, and so without ROCr's help: user
    /// signals of every kind keep it in their structure (see [`Signal::end_stamp`]).
    #[inline]
    pub fn load(&self) -> i64 {
        const VALUE: u64 = 8;
        // SAFETY: the signal lives as long as `self`; its value is an aligned word that everybody reads and writes atomically.
        unsafe { (*((self.0.handle + VALUE) as *const AtomicI64)).load(Ordering::Acquire) }
    }

    /// Counts down by `value` with release semantics.
    pub fn subtract(&self, value: i64) {
        // SAFETY: as above.
        unsafe { raw().hsa_signal_subtract_screlease(self.0, value) }
    }

    fn reset(&self, value: i64) {
        // SAFETY: nobody else uses a signal of the pool; the stamp lies inside the signal.
        unsafe { self.end_stamp().write_volatile(0) };
        // SAFETY: as above; nobody waits on a signal of the pool, so waking is not needed.
        unsafe { raw().hsa_signal_silent_store_relaxed(self.0, value) }
    }

    /// Where the command processor writes the end time of the packet. A signal's handle is the address of AMD's structure,
    /// which is what packets carry (`amd_hsa_signal.h`):
    ///
    /// ```text
    ///  0 kind   8 value   16 event mailbox   24 event id   32 start time   40 end time   48 queue   56 reserved
    /// ```
    fn end_stamp(&self) -> *mut u64 {
        const END_TIME: u64 = 40;
        (self.0.handle + END_TIME) as *mut u64
    }

    /// When the packet that completed this signal ended, in ticks of the system clock; `None` when the queue was not
    /// profiled or the packet carries no time.
    pub fn end_time(&self, agent: &Agent) -> Option<u64> {
        // SAFETY: the stamp lies inside the signal, which is alive.
        if unsafe { self.end_stamp().read_volatile() } == 0 {
            return None;
        }
        let mut time = hsa_amd_profiling_time_t::default();
        // SAFETY: signal and agent are alive; `time` is valid for the write.
        let status = unsafe { raw().hsa_amd_profiling_get_dispatch_time(agent.handle, self.0, &mut time) };
        (status == HSA_STATUS_SUCCESS && time.end != 0).then_some(time.end)
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        if self.load() == 0 {
            IDLE.lock().unwrap_or_else(|e| e.into_inner()).push(self.0);
        }
    }
}

/// Ticks per second of the clock that timeouts and time stamps count in.
pub fn frequency() -> u64 {
    super::get().map_or(1_000_000_000, |hsa| hsa.timestamp_frequency.max(1))
}

/// The clock that time stamps count in, now.
pub fn now() -> u64 {
    super::get().map_or(0, |hsa| hsa.timestamp())
}
