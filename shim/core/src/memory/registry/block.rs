//! One block's description, readable while it is replaced.
//!
//! Blocks are never given back to the allocator: a reader may hold one whose memory was freed, and may even find it describe
//! another allocation. So every field is atomic, and a sequence number around them tells a reader that what it read belongs
//! together (a seqlock):
//!
//! ```text
//! sequence  odd: dead or being written     even: valid, and changes with every use of the block
//! ```

use std::sync::atomic::Ordering;

use super::Conflict;
use super::slab::Slab;
use super::sync::{AtomicPtr, AtomicU64, fence};
use crate::device::Context;

/// What kind of memory an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// `cudaMalloc`, `cuMemAlloc`: one ROCr block.
    Device = 0,
    /// `cudaMallocHost`, `cudaHostAlloc`.
    Host = 1,
    /// `cudaHostRegister`.
    Registered = 2,
    /// `cudaIpcOpenMemHandle`.
    Imported = 3,
    /// A `__device__` or `__constant__` variable of a loaded module; freed with it.
    Variable = 4,
    /// `cudaMallocManaged`: host memory that GPUs use in place.
    Managed = 5,
    /// `cudaMallocAsync`: part of a pool's block.
    Pool = 6,
    /// `cuMemMap` of memory on a device.
    Mapping = 7,
    /// `cuMemMap` of memory on the host.
    HostMapping = 8,
    /// A graph's allocation node, from its launch to its free.
    Graph = 9,
}

impl Kind {
    #[inline]
    fn from_bits(bits: u64) -> Self {
        match bits & 0xff {
            0 => Self::Device,
            1 => Self::Host,
            2 => Self::Registered,
            3 => Self::Imported,
            4 => Self::Variable,
            5 => Self::Managed,
            6 => Self::Pool,
            7 => Self::Mapping,
            9 => Self::Graph,
            _ => Self::HostMapping,
        }
    }

    /// Whether the memory is a GPU's (and may be unreadable for the host).
    #[inline]
    pub fn is_device(self) -> bool {
        matches!(
            self,
            Self::Device | Self::Imported | Self::Variable | Self::Pool | Self::Mapping | Self::Graph
        )
    }

    /// `cudaMemoryType`'s number for it.
    #[inline]
    pub fn memory_type(self) -> u32 {
        match self {
            Self::Managed => 3,
            kind if kind.is_device() => 2,
            _ => 1,
        }
    }

    /// Whether it was made by `cuMemMap`.
    pub fn is_mapping(self) -> bool {
        matches!(self, Self::Mapping | Self::HostMapping)
    }
}

/// Flag of [`Kind::Imported`]: the GPU that owns the memory is none that this process sees.
pub const HIDDEN_OWNER: u32 = 1;

/// What is entered.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// What it is.
    pub kind: Kind,
    /// First byte.
    pub base: u64,
    /// Bytes; ends are exact.
    pub size: u64,
    /// First byte as GPUs see it; differs from `base` only for registered host memory.
    pub device_base: u64,
    /// Who owns it.
    pub context: &'static Context,
    /// Flags of `cudaHostAlloc` and `cudaHostRegister`, as read back; of imported memory [`HIDDEN_OWNER`].
    pub flags: u32,
    /// What else the kind needs: a pool's handle (of imported memory, 0 if it is not of a pool), or a mapping's rights (`vmm::Rights`).
    pub more: u64,
}

/// What is known about an address.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// First byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// First byte as GPUs see it.
    pub device_base: u64,
    /// Who owns it; its device is the memory's.
    pub context: &'static Context,
    /// Flags of host memory and of imported memory.
    pub flags: u32,
    /// See [`Description::more`].
    pub more: u64,
    /// `CU_POINTER_ATTRIBUTE_BUFFER_ID`: unique in the process's life, from 1.
    pub id: u64,
}

impl Entry {
    /// Whether the memory was imported from a GPU that this process does not see.
    pub fn has_hidden_owner(&self) -> bool {
        self.kind == Kind::Imported && self.flags & HIDDEN_OWNER != 0
    }

    /// `address`, which lies in the block in either view, as GPUs see it.
    #[inline]
    pub fn device_address(&self, address: u64) -> u64 {
        if address.wrapping_sub(self.base) < self.size {
            address - self.base + self.device_base
        } else {
            address
        }
    }

    /// `address`, which lies in the block in either view, as the host sees it.
    #[inline]
    pub fn host_address(&self, address: u64) -> u64 {
        if address.wrapping_sub(self.base) < self.size {
            address
        } else {
            address - self.device_base + self.base
        }
    }

    /// Whether `address` lies in the block, in either view.
    #[inline]
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.size || address.wrapping_sub(self.device_base) < self.size
    }

    /// Bytes from `address`, which lies in the block in either view, to the block's end.
    pub fn bytes_left(&self, address: u64) -> u64 {
        self.base + self.size - self.host_address(address)
    }
}

/// One or two ranges: base and size.
#[derive(Clone)]
pub(super) struct Ranges([Option<(u64, u64)>; 2]);

impl Iterator for Ranges {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<Self::Item> {
        self.0[0].take().or_else(|| self.0[1].take())
    }
}

impl Description {
    /// A device block.
    pub fn device(kind: Kind, base: u64, size: u64, context: &'static Context) -> Self {
        Self {
            kind,
            base,
            size,
            device_base: base,
            context,
            flags: 0,
            more: 0,
        }
    }

    pub(super) fn of(entry: &Entry) -> Self {
        let Entry {
            kind,
            base,
            size,
            device_base,
            context,
            flags,
            more,
            ..
        } = *entry;
        Self {
            kind,
            base,
            size,
            device_base,
            context,
            flags,
            more,
        }
    }

    /// The one or two address ranges of the block.
    pub(super) fn ranges(&self) -> Result<Ranges, Conflict> {
        let other = (self.device_base != self.base).then_some((self.device_base, self.size));
        let ranges = Ranges([Some((self.base, self.size)), other]);
        let fits = |(base, size): (u64, u64)| {
            size > 0
                && base
                    .checked_add(size)
                    .is_some_and(|end| end <= super::table::ADDRESS_SPACE)
        };
        if ranges.clone().all(fits) {
            Ok(ranges)
        } else {
            Err(Conflict::NotARange)
        }
    }
}

/// The storage of an entry: one cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Block {
    sequence: AtomicU64,
    base: AtomicU64,
    size: AtomicU64,
    device_base: AtomicU64,
    context: AtomicPtr<Context>,
    /// Kind in bits 0..8, flags in bits 32..64.
    kind_and_flags: AtomicU64,
    more: AtomicU64,
    id: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Block>() == 64);

impl Block {
    fn new() -> Self {
        Self {
            sequence: AtomicU64::new(1),
            base: AtomicU64::new(0),
            size: AtomicU64::new(0),
            device_base: AtomicU64::new(0),
            context: AtomicPtr::new(core::ptr::null_mut()),
            kind_and_flags: AtomicU64::new(0),
            more: AtomicU64::new(0),
            id: AtomicU64::new(0),
        }
    }

    /// Writes a dead block. Only its owner calls it: the registry's writer, under its mutex, or the holder of a
    /// [`super::Slot`].
    #[inline]
    pub(super) fn fill(&self, description: &Description, id: u64) -> Entry {
        let Description {
            kind,
            base,
            size,
            device_base,
            context,
            flags,
            more,
        } = *description;
        let sequence = self.sequence.load(Ordering::Relaxed);
        debug_assert!(sequence % 2 == 1, "a live block is not filled");
        // The number was made odd by `kill`, or at creation; readers see it before any of the new fields.
        fence(Ordering::Release);
        self.base.store(base, Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
        self.device_base.store(device_base, Ordering::Relaxed);
        self.context
            .store(core::ptr::from_ref(context).cast_mut(), Ordering::Relaxed);
        self.kind_and_flags
            .store(kind as u64 | u64::from(flags) << 32, Ordering::Relaxed);
        self.more.store(more, Ordering::Relaxed);
        self.id.store(id, Ordering::Relaxed);
        self.sequence.store(sequence + 1, Ordering::Release);
        Entry {
            kind,
            base,
            size,
            device_base,
            context,
            flags,
            more,
            id,
        }
    }

    /// Ends the entry. Only the writer calls it, under its mutex.
    pub(super) fn kill(&self) {
        self.sequence.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends the entry that starts at `base` and is of `kind`, if the block still describes it. Of several callers, one
    /// succeeds, and owns the block from then on.
    #[inline]
    pub(super) fn claim(&self, kind: Kind, base: u64) -> Option<Entry> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let entry = self.read().filter(|entry| entry.kind == kind && entry.base == base)?;
        // A change since the load makes this fail, and so a torn combination of the two is not believed.
        self.sequence
            .compare_exchange(sequence, sequence + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
            .then_some(entry)
    }

    /// Replaces [`Entry::more`] of a live block.
    pub(super) fn set_more(&self, more: u64) {
        self.more.store(more, Ordering::Release);
    }

    /// The entry, whole; `None` when the block is dead or was replaced meanwhile.
    #[inline]
    pub(super) fn read(&self) -> Option<Entry> {
        let before = self.sequence.load(Ordering::Acquire);
        if before % 2 == 1 {
            return None;
        }
        let base = self.base.load(Ordering::Relaxed);
        let size = self.size.load(Ordering::Relaxed);
        let device_base = self.device_base.load(Ordering::Relaxed);
        let context = self.context.load(Ordering::Relaxed);
        let kind_and_flags = self.kind_and_flags.load(Ordering::Relaxed);
        let more = self.more.load(Ordering::Relaxed);
        let id = self.id.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if self.sequence.load(Ordering::Relaxed) != before {
            return None;
        }
        Some(Entry {
            kind: Kind::from_bits(kind_and_flags),
            base,
            size,
            device_base,
            // SAFETY: a valid block's pointer came from a `&'static Context`.
            context: unsafe { &*context },
            flags: (kind_and_flags >> 32) as u32,
            more,
            id,
        })
    }
}

/// Blocks that wait for reuse.
#[derive(Default)]
pub(super) struct Blocks {
    fresh: Slab<Block>,
    /// Made at the first block that comes back: an empty `Vec` is not all zeroes, and one such field would put the
    /// registry's megabyte into the library's file.
    #[allow(clippy::box_collection)] // `None` of a bare `Vec` is not zero either
    free: Option<Box<Vec<&'static Block>>>,
}

impl Blocks {
    pub(super) const fn new() -> Self {
        Self {
            fresh: Slab::new(),
            free: None,
        }
    }

    pub(super) fn take(&mut self) -> &'static Block {
        let waiting = self.free.as_mut().and_then(|free| free.pop());
        waiting.unwrap_or_else(|| self.fresh.put(Block::new()))
    }

    pub(super) fn give_back(&mut self, block: &'static Block) {
        self.free.get_or_insert_default().push(block);
    }
}
