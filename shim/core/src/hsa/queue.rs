//! AQL queues: rings of 64-byte packets that a GPU's command processor reads.
//!
//! ```text
//!  0 u16 header: type | barrier bit << 8 | acquire scope << 9 | release scope << 11
//!  2 u16 setup (dispatch: number of dimensions)
//!  4 ... body ...                                              56 u64 completion signal
//! ```
//!
//! A packet's body is written first, then header and setup with one release store, then the doorbell. Every packet of
//! ours has the barrier bit, so that a ring's packets run one after the other: order inside a stream costs nothing. Only inside a
//! graph's batch do packets run beside each other.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use hsa_sys::*;

use super::fault;
use super::patience::Patience;
use super::signal::{Signal, SignalRef};
use super::{Agent, raw};
use crate::abi::{Error, Result};
use crate::prefetch;

/// Packets of a ring: a compromise between memory (256 KiB) and how far the host may run ahead.
const PACKETS: u32 = 4096;

/// Which kind of packet.
const BARRIER_BIT: u16 = 1 << HSA_PACKET_HEADER_BARRIER;
/// Kernels and barriers acquire and release at system scope: whatever ran before on a copy engine, another GPU or the
/// host is visible, and so is the result.
const SYSTEM_SCOPES: u16 = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE
    | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

/// Signals one barrier packet can wait on.
pub const BARRIER_SIGNALS: usize = 5;

/// A packet that is not in a ring yet.
#[derive(Clone, Copy)]
pub struct Packet {
    words: [u32; 16],
}

const NO_SIGNAL: hsa_signal_t = hsa_signal_t { handle: 0 };

/// What a kernel dispatch packet says.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    /// Work-items of a work-group.
    pub workgroup: [u16; 3],
    /// Work-items of the grid.
    pub grid: [u32; 3],
    /// Bytes of scratch of a work-item.
    pub private_size: u32,
    /// Bytes of LDS of a work-group, static and dynamic.
    pub group_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the arguments.
    pub kernarg: u64,
}

impl Packet {
    fn from_bytes<T: Copy>(header: u16, setup: u16, body: &T) -> Self {
        const { assert!(size_of::<T>() == 64) }
        let mut words = [0u32; 16];
        // SAFETY: both are 64 bytes of plain data.
        unsafe { core::ptr::copy_nonoverlapping((body as *const T).cast::<u8>(), words.as_mut_ptr().cast(), 64) };
        words[0] = u32::from(header) | u32::from(setup) << 16;
        Self { words }
    }

    /// Waits until the signals are 0 (at most [`BARRIER_SIGNALS`]).
    pub fn barrier_and(signals: &[SignalRef]) -> Self {
        let mut body = hsa_barrier_packet_t::default();
        for (slot, signal) in body.dep_signal.iter_mut().zip(signals) {
            *slot = signal.0;
        }
        Self::from_bytes(HSA_PACKET_TYPE_BARRIER_AND | BARRIER_BIT | SYSTEM_SCOPES, 0, &body)
    }

    /// The same packet, which also counts `completion` down when it has been executed: all kinds of packets have that field.
    pub fn completing(mut self, completion: SignalRef) -> Self {
        self.words[14] = completion.0.handle as u32;
        self.words[15] = (completion.0.handle >> 32) as u32;
        self
    }

    /// The same packet, which does not wait for the packets before it.
    pub fn without_barrier(mut self) -> Self {
        self.words[0] &= !u32::from(BARRIER_BIT);
        self
    }

    /// Does nothing but note the time. gfx90a's and gfx942's firmware notes no time for plain barriers, but for AMD's own
    /// packet that compares a signal. The signal here is always 0, as it must be.
    pub fn timed_marker() -> Self {
        Self::barrier_value(&hsa_amd_barrier_value_packet_t {
            signal: satisfied(),
            cond: HSA_SIGNAL_CONDITION_EQ,
            mask: -1,
            ..Default::default()
        })
    }

    /// Waits until a signal is less than `value`.
    pub fn until_below(signal: SignalRef, value: i64) -> Self {
        let body = hsa_amd_barrier_value_packet_t {
            signal: signal.0,
            value,
            cond: HSA_SIGNAL_CONDITION_LT,
            mask: -1,
            ..Default::default()
        };
        Self::barrier_value(&body)
    }

    fn barrier_value(body: &hsa_amd_barrier_value_packet_t) -> Self {
        let format = u16::from(HSA_AMD_PACKET_TYPE_BARRIER_VALUE);
        Self::from_bytes(
            HSA_PACKET_TYPE_VENDOR_SPECIFIC | BARRIER_BIT | SYSTEM_SCOPES,
            format,
            body,
        )
    }

    /// Launches a kernel.
    pub fn dispatch(dispatch: &Dispatch) -> Self {
        let body = hsa_kernel_dispatch_packet_t {
            header: 0,
            setup: 0,
            workgroup_size_x: dispatch.workgroup[0],
            workgroup_size_y: dispatch.workgroup[1],
            workgroup_size_z: dispatch.workgroup[2],
            reserved0: 0,
            grid_size_x: dispatch.grid[0],
            grid_size_y: dispatch.grid[1],
            grid_size_z: dispatch.grid[2],
            private_segment_size: dispatch.private_size,
            group_segment_size: dispatch.group_size,
            kernel_object: dispatch.kernel_object,
            kernarg_address: dispatch.kernarg as *mut c_void,
            reserved2: 0,
            completion_signal: NO_SIGNAL,
        };
        let setup = 3 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
        Self::from_bytes(
            HSA_PACKET_TYPE_KERNEL_DISPATCH | BARRIER_BIT | SYSTEM_SCOPES,
            setup,
            &body,
        )
    }
}

/// How the GPU prefers a ring over others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// As all rings without a wish.
    Normal,
    /// Before them.
    High,
}

/// A signal that is 0 for ever.
fn satisfied() -> hsa_signal_t {
    static ZERO: OnceLock<Option<Signal>> = OnceLock::new();
    ZERO.get_or_init(|| Signal::new(0).ok())
        .as_ref()
        .map_or(NO_SIGNAL, |signal| signal.name().0)
}

/// A ring of packets on one GPU. Whoever may change it may submit: the lock is the owner's.
#[derive(Debug)]
pub struct Queue {
    raw: *mut hsa_queue_t,
    base: *mut [u32; 16],
    size: u64,
    doorbell: hsa_signal_t,
    /// The number of the next packet.
    write: u64,
    /// Others of the process may submit as well: the device has one such queue.
    shared: bool,
    /// How far the command processor was when last asked: its index is in a cache line that it writes all the time, so it is
    /// asked only when the ring may be full.
    read: u64,
}

// SAFETY: ROCr's queue calls are thread-safe, and slots are written by who has `&mut` only.
unsafe impl Send for Queue {}

impl Queue {
    /// Makes a ring on `agent`. An error of the ring becomes the process's fault.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when the GPU has no queue left.
    pub fn new(agent: &Agent, priority: Priority) -> Result<Self> {
        let queue = Self::of_type(agent, HSA_QUEUE_TYPE_MULTI).ok_or(Error::MEMORY_ALLOCATION)?;
        if priority == Priority::High {
            // SAFETY: the queue was just made. A refusal leaves it at normal priority, which is allowed.
            let _ = unsafe { raw().hsa_amd_queue_set_priority(queue.raw, HSA_AMD_QUEUE_PRIORITY_HIGH) };
        }
        Ok(queue)
    }

    /// The cooperative queue of `agent`. ROCr makes one in a process and gives it to all who ask; what stops it, ROCr answers by ending
    /// the process.
    ///
    /// # Errors
    /// NOT_SUPPORTED where the GPU or its driver has none.
    pub fn cooperative(agent: &Agent) -> Result<Self> {
        let mut queue = Self::of_type(agent, HSA_QUEUE_TYPE_COOPERATIVE).ok_or(Error::NOT_SUPPORTED)?;
        queue.shared = true;
        Ok(queue)
    }

    fn of_type(agent: &Agent, kind: u32) -> Option<Self> {
        let mut queue: *mut hsa_queue_t = core::ptr::null_mut();
        // SAFETY: the callback is a plain function without data; `queue` is valid for the write.
        let status = unsafe {
            raw().hsa_queue_create(
                agent.handle,
                PACKETS,
                kind,
                Some(on_error),
                core::ptr::null_mut(),
                u32::MAX,
                u32::MAX,
                &mut queue,
            )
        };
        if status != HSA_STATUS_SUCCESS || queue.is_null() {
            log::warn!("hsa_queue_create: {status:?}");
            return None;
        }
        // SAFETY: as above. Without it packets carry no time stamps, which `Signal::end_time` answers with `None`.
        let _ = unsafe { raw().hsa_amd_profiling_set_profiler_enabled(queue, 1) };
        // SAFETY: the queue was just made, and its public part does not change.
        let public = unsafe { &*queue };
        Some(Self {
            raw: queue,
            base: public.base_address.cast(),
            size: u64::from(public.size),
            doorbell: public.doorbell_signal,
            write: 0,
            shared: false,
            read: 0,
        })
    }

    /// Puts packets into the ring, next to each other, and rings the doorbell. Returns the number of the last.
    ///
    /// # Errors
    /// The process's fault, when it happens while the ring is full.
    pub fn submit(&mut self, packets: &[Packet]) -> Result<u64> {
        for group in packets.chunks(self.size as usize / 2) {
            let first = self.reserve(group.len() as u64)?;
            let end = self.write;
            for (index, packet) in (first..).zip(group) {
                // SAFETY: the slot is ours until its header is written; slots are 64 bytes, aligned to 64.
                unsafe {
                    let slot = self.base.add((index & (self.size - 1)) as usize).cast::<u32>();
                    core::ptr::copy_nonoverlapping(packet.words.as_ptr().add(1), slot.add(1), 15);
                    (*slot.cast::<AtomicU32>()).store(packet.words[0], Ordering::Release);
                }
            }
            // SAFETY: the doorbell belongs to the queue.
            unsafe { raw().hsa_signal_store_screlease(self.doorbell, (end - 1) as i64) };
            prefetch::for_write(self.base.wrapping_add((end & (self.size - 1)) as usize).cast());
        }
        Ok(self.write.saturating_sub(1))
    }

    /// Takes the next `count` places, and waits until they are free. Returns the first.
    fn reserve(&mut self, count: u64) -> Result<u64> {
        if self.shared {
            // SAFETY: the queue lives as long as `self`.
            let first = unsafe { raw().hsa_queue_add_write_index_screlease(self.raw, count) };
            self.write = first + count;
            self.wait_for_space(self.write)?;
            return Ok(first);
        }
        let (first, end) = (self.write, self.write + count);
        self.wait_for_space(end)?;
        self.write = end;
        // SAFETY: as above; nobody else writes the queue's index.
        unsafe { raw().hsa_queue_store_write_index_screlease(self.raw, end) };
        Ok(first)
    }

    /// Whether one more packet has room now.
    pub fn has_space(&mut self) -> bool {
        let end = self.write + 1;
        if end - self.read > self.size {
            self.read = self.progress().load();
        }
        end - self.read <= self.size
    }

    /// For looking at how far the command processor is.
    pub fn progress(&self) -> Progress {
        Progress(self.raw)
    }

    fn wait_for_space(&mut self, end: u64) -> Result<()> {
        let mut patience = None;
        while end - self.read > self.size {
            self.read = self.progress().load();
            if end - self.read > self.size {
                fault::check()?;
                patience.get_or_insert_with(Patience::new).pause();
            }
        }
        Ok(())
    }
}

/// How far the command processor of a queue is.
#[derive(Clone, Copy, Debug)]
pub struct Progress(*const hsa_queue_t);

// SAFETY: queues are never destroyed, and ROCr's queue calls are thread-safe.
unsafe impl Send for Progress {}
// SAFETY: as above.
unsafe impl Sync for Progress {}

impl Progress {
    /// The number of the first packet that still takes a place in the ring.
    pub fn load(self) -> u64 {
        // SAFETY: queues are never destroyed.
        unsafe { raw().hsa_queue_load_read_index_scacquire(self.0) }
    }
}

/// ROCr's call when a queue has died. Runs on ROCr's event thread.
unsafe extern "C" fn on_error(status: hsa_status_t, _queue: *mut hsa_queue_t, _data: *mut c_void) {
    let error = match status {
        HSA_STATUS_ERROR_MEMORY_FAULT | HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION => Error::ILLEGAL_ADDRESS,
        HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION | HSA_STATUS_ERROR_INVALID_CODE_OBJECT => Error::ILLEGAL_INSTRUCTION,
        HSA_STATUS_ERROR_OUT_OF_RESOURCES | HSA_STATUS_ERROR_OUT_OF_REGISTERS | HSA_STATUS_ERROR_INVALID_ALLOCATION => {
            Error::LAUNCH_OUT_OF_RESOURCES
        }
        _ => Error::LAUNCH_FAILURE,
    };
    let suspects = fault::suspects();
    fault::raise(error);
    let error = fault::current().unwrap_or(error);
    log::error!("a GPU queue stopped: {status:?}; {suspects}; CUDA calls of this process now fail with {error:?}");
}

/// Registers for events that no queue reports: memory faults and hardware exceptions. Once per process.
pub fn watch_system_events() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a plain function without data.
        let status = unsafe { raw().hsa_amd_register_system_event_handler(on_system_event, core::ptr::null_mut()) };
        if status != HSA_STATUS_SUCCESS {
            log::warn!("hsa_amd_register_system_event_handler: {status:?}; a memory fault will end the process");
        }
    });
}

/// A handler that does not return SUCCESS makes ROCr abort the process.
unsafe extern "C" fn on_system_event(event: *const hsa_amd_event_t, _data: *mut c_void) -> hsa_status_t {
    // SAFETY: ROCr passes a valid event for the time of the call.
    let event = unsafe { &*event };
    match event.event_type {
        HSA_AMD_GPU_MEMORY_FAULT_EVENT => {
            log::error!(
                "GPU memory fault at {:#x} (reason {:#x}); {}; CUDA calls of this process now fail with 700",
                event.virtual_address,
                event.reason_mask,
                fault::suspects()
            );
            fault::raise(Error::ILLEGAL_ADDRESS);
        }
        HSA_AMD_GPU_HW_EXCEPTION_EVENT => {
            let suspects = fault::suspects();
            log::error!("GPU hardware exception {:#x}; {suspects}", event.virtual_address);
            fault::raise(Error::LAUNCH_FAILURE);
        }
        // A free that failed: the allocator has its own answer, and the GPU is well.
        HSA_AMD_GPU_MEMORY_ERROR_EVENT => log::warn!("GPU memory error event for {:#x}", event.virtual_address),
        other => log::debug!("unknown system event {other}"),
    }
    HSA_STATUS_SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_laid_out_as_the_command_processor_reads_them() {
        let signal = |handle| SignalRef(hsa_signal_t { handle });
        let barrier = Packet::barrier_and(&[signal(0x1111), signal(0x2222)]).completing(signal(0x9999));
        assert_eq!(barrier.words[0], 3 | 1 << 8 | 2 << 9 | 2 << 11);
        assert_eq!(
            (barrier.words[2], barrier.words[4], barrier.words[6], barrier.words[14]),
            (0x1111, 0x2222, 0, 0x9999)
        );
        let dispatch = Packet::dispatch(&Dispatch {
            workgroup: [64, 2, 3],
            grid: [640, 4, 9],
            private_size: 16,
            group_size: 1024,
            kernel_object: 0xA_0000_0040,
            kernarg: 0xB_0000_0080,
        })
        .completing(signal(7));
        assert_eq!(dispatch.words[0], 2 | 1 << 8 | 2 << 9 | 2 << 11 | 3 << 16);
        assert_eq!(dispatch.words[1], 64 | 2 << 16);
        assert_eq!(dispatch.words[2..8], [3, 640, 4, 9, 16, 1024]);
        assert_eq!(dispatch.words[8..12], [0x40, 0xA, 0x80, 0xB]);
        assert_eq!(dispatch.words[14..], [7, 0]);
    }
}
