//! The registry answers, for any address, what memory lies there: without a lock, because it is asked for every message of
//! an MPI program, and mostly about host memory that it has never heard of.
//!
//! [`table`] maps pages to blocks; [`block`] holds a block's description so that a reader gets all of it or none. Writers
//! (allocation, free) take one mutex, which also guards an ordered index for overlap checks and for lists.

mod block;
mod slab;
mod sync;
mod table;

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use block::Blocks;
pub use block::{Block, Description, Entry, HIDDEN_OWNER, Kind};
use sync::{AtomicU64, Mutex, MutexGuard, constant};
pub use table::Glance;
use table::{Says, Table};

use crate::device::Context;

/// Why a range cannot be entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conflict {
    /// It overlaps this entry.
    Overlaps(Kind),
    /// It is empty, wraps around, or leaves the address space of user programs.
    NotARange,
}

/// All memory that CUDA knows.
pub struct Registry {
    table: Table,
    writer: Mutex<Writer>,
    last_id: AtomicU64,
}

#[derive(Default)]
struct Writer {
    blocks: Blocks,
    /// Ranges by start: a block whose device address differs from its host address is in it twice.
    ranges: BTreeMap<u64, (u64, &'static Block)>,
}

/// The process's registry.
#[cfg(not(loom))]
pub static REGISTRY: Registry = Registry::new();

/// What lies at `address`, if CUDA knows it. Lock-free; for memory that lies near no block two loads, the second of which is
/// always of the same few lines of the cache where its gigabyte holds none.
#[cfg(not(loom))]
#[inline]
pub fn lookup(address: u64) -> Option<Entry> {
    REGISTRY.lookup(address)
}

/// What one word of the table says about `address`; of most memory that is all that most callers ask.
#[cfg(not(loom))]
#[inline(always)]
pub fn glance(address: u64) -> Glance {
    REGISTRY.glance(address)
}

impl Registry {
    constant! {
        /// An empty registry: zeroes only, so that the process's own takes no room in the library's file.
        pub fn new() -> Self {
            Self {
                table: Table::new(),
                writer: Mutex::new(Writer {
                    blocks: Blocks::new(),
                    ranges: BTreeMap::new(),
                }),
                last_id: AtomicU64::new(0),
            }
        }
    }

    fn write(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`lookup`].
    #[inline]
    pub fn lookup(&self, address: u64) -> Option<Entry> {
        self.table.find(address)
    }

    /// See [`glance`].
    #[inline(always)]
    pub fn glance(&self, address: u64) -> Glance {
        self.table.glance(address)
    }

    /// Enters a block. Its ids come from a counter that starts at 1 and never gives a number twice.
    pub fn insert(&self, description: Description) -> Result<Entry, Conflict> {
        let ranges = description.ranges()?;
        let mut writer = self.write();
        for (base, size) in ranges.clone() {
            if let Some(kind) = writer.overlapping(base, size) {
                return Err(Conflict::Overlaps(kind));
            }
        }
        let id = self.next_id();
        let block = writer.blocks.take();
        let entry = block.fill(&description, id);
        let says = Says::of(&description);
        for (base, size) in ranges.clone() {
            writer.ranges.insert(base, (size, block));
            self.table.insert(base, size, block, says);
        }
        Ok(entry)
    }

    /// Takes out the entry with this id that starts at `base`; `None` when it is gone. Only one caller gets an entry.
    pub fn remove(&self, base: u64, id: u64) -> Option<Entry> {
        let mut writer = self.write();
        let &(_, block) = writer.ranges.get(&base)?;
        let entry = block.read().filter(|entry| entry.id == id && entry.base == base)?;
        // Readers that already hold the block find it dead from here on.
        block.kill();
        for (base, size) in Description::of(&entry).ranges().into_iter().flatten() {
            writer.ranges.remove(&base);
            self.table.remove(base, size, block);
        }
        writer.blocks.give_back(block);
        Some(entry)
    }

    /// The kind of some entry that overlaps a range.
    pub fn overlapping(&self, base: u64, size: u64) -> Option<Kind> {
        self.write().overlapping(base, size)
    }

    /// Replaces [`Entry::more`] of the entry with this id that starts at `base`; false when it is gone.
    pub fn set_more(&self, base: u64, id: u64, more: u64) -> bool {
        let writer = self.write();
        let block = writer.ranges.get(&base).map(|&(_, block)| block);
        let block = block.filter(|block| block.read().is_some_and(|entry| entry.id == id && entry.base == base));
        block.map(|block| block.set_more(more)).is_some()
    }

    /// Enters a range whose description comes and goes, without the writer's mutex, as its owner wants: see [`Slot`].
    pub fn reserve(&self, base: u64, size: u64, context: &'static Context) -> Result<Slot, Conflict> {
        let ranges = Description::device(Kind::Pool, base, size, context).ranges()?;
        let mut writer = self.write();
        if let Some(kind) = writer.overlapping(base, size) {
            return Err(Conflict::Overlaps(kind));
        }
        let block = writer.blocks.take();
        for (base, size) in ranges.clone() {
            writer.ranges.insert(base, (size, block));
            self.table.insert(base, size, block, Says::nothing());
        }
        Ok(Slot { block, base, size })
    }

    /// Takes out a range of [`Registry::reserve`], which describes nothing now.
    pub fn unreserve(&self, slot: Slot) {
        let mut writer = self.write();
        writer.ranges.remove(&slot.base);
        self.table.remove(slot.base, slot.size, slot.block);
        writer.blocks.give_back(slot.block);
    }

    /// Ends the description of `kind` that starts at `base`, and gives its owner the range back. Of several callers, one
    /// gets it. Lock-free.
    #[inline]
    pub fn claim(&self, kind: Kind, base: u64) -> Option<(Entry, &'static Block)> {
        let block = self.table.block(base)?;
        block.claim(kind, base).map(|entry| (entry, block))
    }

    /// A new id.
    pub fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// An id out of `ids`, which get more of them when they are used up.
    #[inline]
    pub fn id_from(&self, ids: &mut Ids) -> u64 {
        if ids.next == ids.end {
            ids.next = self.last_id.fetch_add(Ids::AT_ONCE, Ordering::Relaxed) + 1;
            ids.end = ids.next + Ids::AT_ONCE;
        }
        ids.next += 1;
        ids.next - 1
    }

    /// All entries that `wanted` picks, by address.
    pub fn entries(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let writer = self.write();
        let mut entries: Vec<Entry> = writer
            .ranges
            .iter()
            .filter_map(|(&base, (_, block))| block.read().filter(|entry| entry.base == base))
            .collect();
        entries.retain(wanted);
        entries
    }
}

/// Ids for one owner, taken from the counter many at a time: threads that allocate in streams of their own share no word then.
#[derive(Debug, Default)]
pub struct Ids {
    next: u64,
    end: u64,
}

impl Ids {
    const AT_ONCE: u64 = 256;
}

/// A range of addresses that is in the table for good, while what it describes comes and goes: what a pool keeps of each
/// piece of its memory, so that giving it out and taking it back touches one cache line.
///
/// A slot that describes something is held by nobody; [`Registry::claim`] ends the description and gives the block back.
#[derive(Debug)]
pub struct Slot {
    block: &'static Block,
    base: u64,
    size: u64,
}

impl Slot {
    /// The slot of a block that [`Registry::claim`] gave; `base` and `size` are those that it was reserved with.
    pub fn of_claimed(block: &'static Block, base: u64, size: u64) -> Self {
        Self { block, base, size }
    }

    /// First byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A second name of the range, as only a test may have it.
    #[cfg(test)]
    pub fn clone_for_tests(slot: &Self) -> Self {
        let &Self { block, base, size } = slot;
        Self { block, base, size }
    }

    /// Makes the range answer as `description`, which lies in it and starts where it does. `id` is one that the registry gave.
    #[inline]
    pub fn describe(self, description: &Description, id: u64) -> Entry {
        debug_assert!(description.base == self.base && description.size <= self.size);
        self.block.fill(description, id)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    fn overlapping(&self, base: u64, size: u64) -> Option<Kind> {
        let end = base.checked_add(size)?;
        let (&start, &(length, block)) = self.ranges.range(..end).next_back()?;
        (start + length > base).then(|| block.read().map_or(Kind::Device, |entry| entry.kind))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
