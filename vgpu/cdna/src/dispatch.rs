//! One kernel dispatch: what the command processor hands to the shader engines.

pub use crate::schedule::{Progress, Running};
use crate::{
    Target,
    exec::code::CodeCache,
    memory::{Fault, GpuMemory},
};
use std::sync::Arc;

/// What several threads can do at once: see [`Host::share`].
pub type Work<'a> = dyn Fn(bool, &mut dyn FnMut() -> bool) + Sync + 'a;

/// What the interpreter asks of the machine around it.
pub trait Host: Send + Sync {
    /// `s_sendmsg(MSG_INTERRUPT)`: raise the event whose id is `data` (the low bits of M0).
    fn interrupt(&self, data: u32);
    /// `s_memrealtime`: the 100 MHz constant clock, the same one that `GET_CLOCK_COUNTERS` reports.
    fn realtime(&self) -> u64;
    /// Asked now and then: true stops the dispatch (queue destroyed, process exiting).
    fn cancelled(&self) -> bool;
    /// Calls `work` on this thread with true, and with false on any other threads that have nothing else to do, until each
    /// call has returned. `work` asks its second argument between turns whether it should leave.
    fn share(&self, work: &Work<'_>) {
        work(true, &mut || false);
    }
    /// One CU-wide line of trace or diagnosis, already formatted.
    fn log(&self, line: &str);
}

/// The fields of an AQL kernel-dispatch packet and the queue state that set up its waves
/// (HSA Platform System Architecture specification, section 2.9; LLVM AMDGPU usage, "Initial kernel execution state").
pub struct Dispatch<'a> {
    /// The instruction set to decode.
    pub target: Target,
    /// GPU virtual address of the 64-byte packet (`dispatch_ptr`).
    pub packet_va: u64,
    /// GPU virtual address of the `amd_queue_t` (`queue_ptr`).
    pub queue_va: u64,
    /// The packet's index in the queue (`dispatch_id`).
    pub dispatch_id: u64,
    /// Work-group size in work-items, x y z.
    pub workgroup_size: [u32; 3],
    /// Grid size in work-items, x y z; not necessarily a multiple of the work-group size.
    pub grid_size: [u32; 3],
    /// Bytes of private (scratch) memory per work-item.
    pub private_segment_size: u32,
    /// Bytes of LDS per work-group: static and dynamic together.
    pub group_segment_size: u32,
    /// GPU virtual address of the kernel descriptor.
    pub kernel_object: u64,
    /// GPU virtual address of the kernel arguments.
    pub kernarg_va: u64,
    /// High 32 bits of addresses that FLAT routes to LDS (`SRC_SHARED_BASE`), as GET_PROCESS_APERTURES reports.
    pub shared_base: u64,
    /// High 32 bits of addresses that FLAT routes to scratch (`SRC_PRIVATE_BASE`).
    pub private_base: u64,
    /// Code that earlier dispatches decoded.
    pub code: &'a CodeCache,
    /// The address space.
    pub memory: &'a dyn GpuMemory,
    /// The machine around.
    pub host: Arc<dyn Host + 'a>,
}

/// What a finished dispatch did; the virtual GPU's counters add these up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Wave instructions executed.
    pub instructions: u64,
    /// Waves started.
    pub waves: u64,
    /// Cycles that the waves' instructions kept their units busy, estimated from issue rates alone: no memory latency, no
    /// waiting. Divided by the SIMDs in use it is a lower bound of the time that the card takes.
    pub cycles: u64,
    /// Vector and scalar loads from global memory, as wave instructions.
    pub loads: u64,
    /// Vector and scalar stores to global memory.
    pub stores: u64,
    /// Vector and scalar atomics on global memory.
    pub atomics: u64,
    /// LDS instructions.
    pub lds: u64,
    /// Bytes stored to global memory.
    pub bytes_stored: u64,
    /// Bytes loaded from global memory by vector instructions.
    pub bytes_loaded: u64,
    /// The part of `bytes_stored` that went to [`foreign`](crate::memory::Region::foreign) regions.
    pub foreign_bytes_stored: u64,
    /// The part of `bytes_loaded` that came from [`foreign`](crate::memory::Region::foreign) regions.
    pub foreign_bytes_loaded: u64,
}

/// Why a dispatch stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A memory access faulted. `pc` is the instruction's address.
    MemoryFault {
        /// The fault.
        fault: Fault,
        /// GPU virtual address of the instruction.
        pc: u64,
        /// One sentence naming instruction, address and kernel.
        message: String,
    },
    /// `s_trap`: id 2 is `llvm.trap`, 3 the debug trap.
    Trap {
        /// The trap id.
        id: u8,
        /// GPU virtual address of the instruction.
        pc: u64,
        /// One sentence naming instruction, address and wave.
        message: String,
    },
    /// A reserved encoding, or an instruction this crate does not execute. The message names the instruction (or its
    /// words), its address and the kernel object.
    IllegalInstruction {
        /// GPU virtual address of the instruction.
        pc: u64,
        /// One sentence for the log.
        message: String,
    },
    /// The packet or the kernel descriptor is not acceptable (sizes, alignment, LDS over 64 KiB).
    InvalidDispatch(String),
    /// [`Host::cancelled`] said so.
    Cancelled,
}

/// Runs a dispatch to its end: every wave of every work-group, all stores done on return. The calling thread works, and those
/// that [`Host::share`] brings.
///
/// Waves of one work-group are interleaved, so barriers and spinning on LDS or memory make progress. Work-groups that do
/// not end soon are interleaved with others, as many as the card would hold at once, so that work-groups can wait for
/// each other too. With a seed, which fixes the interleaving, no other threads help.
///
/// # Errors
/// See [`Stop`]. Stores made before the stop stay made, as on the card.
pub fn run(dispatch: Dispatch<'_>, seed: Option<u64>) -> Result<Stats, Stop> {
    Running::new(dispatch, seed)?.run()
}

impl<T: Host + ?Sized> Host for &T {
    fn interrupt(&self, data: u32) {
        (**self).interrupt(data);
    }
    fn realtime(&self) -> u64 {
        (**self).realtime()
    }
    fn cancelled(&self) -> bool {
        (**self).cancelled()
    }
    fn share(&self, work: &Work<'_>) {
        (**self).share(work);
    }
    fn log(&self, line: &str) {
        (**self).log(line);
    }
}

impl Stats {
    /// Adds what another thread did.
    pub fn add(&mut self, other: &Stats) {
        self.instructions += other.instructions;
        self.waves += other.waves;
        self.cycles += other.cycles;
        self.loads += other.loads;
        self.stores += other.stores;
        self.atomics += other.atomics;
        self.lds += other.lds;
        self.bytes_stored += other.bytes_stored;
        self.bytes_loaded += other.bytes_loaded;
        self.foreign_bytes_stored += other.foreign_bytes_stored;
        self.foreign_bytes_loaded += other.foreign_bytes_loaded;
    }
}
