//! GPU virtual memory as the interpreter sees it.

use crate::coherence::Cache;

/// What an instruction wants to do with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load, scalar or vector.
    Read,
    /// A store.
    Write,
    /// A read-modify-write.
    Atomic,
    /// An instruction fetch.
    Execute,
}

/// A contiguous run of mapped GPU virtual addresses and where its bytes are in this process.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First GPU virtual address of the run.
    pub start: u64,
    /// One past the last address of the run.
    pub end: u64,
    /// Host address of the byte at `start`. Valid for reads (and writes, where `writable`) of `end - start` bytes for as
    /// long as [`GpuMemory::generation`] returns the value it had when the region was looked up.
    pub host: *mut u8,
    /// Stores and atomics are allowed.
    pub writable: bool,
    /// Instruction fetch is allowed.
    pub executable: bool,
    /// The memory belongs to another process (it came here by IPC or as a dma-buf). Changes nothing but the counters:
    /// bytes moved through such a region are what one process's GPU queue does to another process's block.
    pub foreign: bool,
    /// Coarse-grained: other agents see stores at a release only. Counts where there is a [`GpuMemory::cache`].
    pub coarse: bool,
}

/// Why an access could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultReason {
    /// Nothing is mapped for this GPU at the address.
    NotPresent,
    /// A store or an atomic met a read-only mapping.
    ReadOnly,
    /// An instruction fetch met a mapping without execute permission.
    NoExecute,
    /// An atomic on an address that is not a multiple of its size. Loads and stores may be misaligned: the driver sets the
    /// card to its unaligned mode.
    Misaligned,
}

/// A memory fault, as the page-fault interrupt reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The faulting byte address.
    pub va: u64,
    /// What was wrong with it.
    pub reason: FaultReason,
}

/// The address space of one process on one GPU.
pub trait GpuMemory: Sync {
    /// The mapped run that holds `va`, or `None` where nothing is mapped.
    fn region(&self, va: u64) -> Option<Region>;

    /// A counter that changes whenever a mapping goes away or is replaced; regions looked up before are then stale.
    fn generation(&self) -> u64;

    /// The GPU's L2, where memory is to be no more coherent than it must be.
    fn cache(&self) -> Option<&Cache> {
        None
    }
}
