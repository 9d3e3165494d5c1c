//! The registry answers, for any address, what memory lies there: without a lock, because it is asked for every message of
//! an MPI program, and mostly about host memory that it has never heard of.
//!
//! [`table`] maps pages to blocks; [`block`] holds a block's description so that a reader gets all of it or none. Writers
//! (allocation, free) take one mutex, which also guards an ordered index for overlap checks and for lists.

mod block;
mod table;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use block::{Block, Blocks};
pub use block::{Description, Entry, HIDDEN_OWNER, Kind};
use table::Table;

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
pub static REGISTRY: Registry = Registry::new();

/// What lies at `address`, if CUDA knows it. Lock-free; one load for an address in a gigabyte that holds no block.
pub fn lookup(address: u64) -> Option<Entry> {
    REGISTRY.lookup(address)
}

impl Registry {
    /// An empty registry: zeroes only, so that the process's own takes no room in the library's file.
    pub const fn new() -> Self {
        Self {
            table: Table::new(),
            writer: Mutex::new(Writer {
                blocks: Blocks::new(),
                ranges: BTreeMap::new(),
            }),
            last_id: AtomicU64::new(0),
        }
    }

    fn write(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`lookup`].
    pub fn lookup(&self, address: u64) -> Option<Entry> {
        self.table.find(address)
    }

    /// Enters a block. Its ids come from a counter that starts at 1 and never gives a number twice.
    pub fn insert(&self, description: Description) -> Result<Entry, Conflict> {
        let ranges = description.ranges()?;
        let mut writer = self.write();
        for &(base, size) in &ranges {
            if let Some(kind) = writer.overlapping(base, size) {
                return Err(Conflict::Overlaps(kind));
            }
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let block = writer.blocks.take();
        let entry = block.fill(&description, id);
        for &(base, size) in &ranges {
            writer.ranges.insert(base, (size, block));
            self.table.insert(base, size, block);
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

#[cfg(test)]
mod tests;
