//! Memory that graphs allocate.
//!
//! The address of an allocation node is known when the node is made, so its block is taken from the device then and given
//! back when the last graph that knows it is gone. Between the launch of the allocation and of the free the block is *live*:
//! only then is it memory to CUDA's calls (recorded).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::abi::{Error, Result};
use crate::device::{Context, Device};
use crate::memory::{self, graph as block};

/// A block of an allocation node.
pub struct Allocation {
    block: block::Block,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The id under which it is in the registry.
    live: Option<u64>,
    /// A free node of the same graph names it.
    has_free_node: bool,
}

/// All blocks by address, and those that are live, which nothing else may hold.
struct Table {
    all: BTreeMap<u64, Weak<Allocation>>,
    live: BTreeMap<u64, Arc<Allocation>>,
    /// Highest sums by device, since they were reset.
    high: BTreeMap<i32, u64>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    all: BTreeMap::new(),
    live: BTreeMap::new(),
    high: BTreeMap::new(),
});

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(|e| e.into_inner())
}

impl Allocation {
    /// A block of `size` bytes.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when the device has not enough.
    pub fn new(context: &'static Context, size: usize) -> Result<Arc<Self>> {
        let allocation = Arc::new(Self {
            block: block::Block::new(context, size)?,
            state: Mutex::default(),
        });
        let mut table = table();
        table.all.insert(allocation.address(), Arc::downgrade(&allocation));
        let used = used(&table, context.device);
        let high = table.high.entry(context.device.ordinal).or_default();
        *high = used.max(*high);
        Ok(allocation)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// First byte.
    pub fn address(&self) -> u64 {
        self.block.address()
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.block.size()
    }

    /// Whether `address` lies in it.
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address()) < self.size()
    }

    /// The context it was made in.
    pub fn context(&self) -> &'static Context {
        self.block.context()
    }

    /// It was allocated by a launch and not freed yet.
    pub fn is_live(&self) -> bool {
        self.state().live.is_some()
    }

    /// The one free node that may name it in its own graph. False for a second one.
    pub fn claim_free_node(&self) -> bool {
        !std::mem::replace(&mut self.state().has_free_node, true)
    }

    /// Its life begins.
    ///
    /// # Errors
    /// INVALID_VALUE when it lives.
    pub fn begin(self: &Arc<Self>) -> Result<()> {
        let mut state = self.state();
        if state.live.is_some() {
            return Err(Error::INVALID_VALUE);
        }
        state.live = Some(self.block.enter()?);
        table().live.insert(self.address(), Arc::clone(self));
        Ok(())
    }

    /// Its life ends; what is on its way may still use it.
    ///
    /// # Errors
    /// INVALID_VALUE when it does not live.
    pub fn end(&self) -> Result<()> {
        let id = self.state().live.take().ok_or(Error::INVALID_VALUE)?;
        self.block.leave(id);
        let held = table().live.remove(&self.address());
        // The caller holds another reference, or else this is the last one, which must not go under the lock.
        drop(held);
        Ok(())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        table().all.remove(&self.block.address());
    }
}

/// The block that begins at `address`.
pub fn at(address: u64) -> Option<Arc<Allocation>> {
    table().all.get(&address).and_then(Weak::upgrade)
}

/// Whether `address` lies in a block of a graph, live or not.
pub fn owns(address: u64) -> bool {
    let found = {
        let table = table();
        table
            .all
            .range(..=address)
            .next_back()
            .and_then(|(_, block)| block.upgrade())
    };
    found.is_some_and(|block| block.contains(address))
}

/// Calls `f` with the address of every block on a device, live or not.
pub fn for_each_on(device: &Device, mut f: impl FnMut(u64)) {
    let all: Vec<Arc<Allocation>> = table().all.values().filter_map(Weak::upgrade).collect();
    for block in all {
        if block.context().device.ordinal == device.ordinal {
            f(block.address());
        }
    }
}

/// `cudaFree` and `cudaFreeAsync` of a live block.
///
/// # Errors
/// INVALID_VALUE when it is none.
pub fn free(address: u64) -> Result<()> {
    at(address).ok_or(Error::INVALID_VALUE)?.end()
}

/// Bytes that graphs hold on a device.
fn used(table: &Table, device: &Device) -> u64 {
    let blocks = table.all.values().filter_map(Weak::upgrade);
    blocks
        .filter(|block| block.context().device.ordinal == device.ordinal)
        .map(|block| block.size().next_multiple_of(memory::MAPPING_GRANULE))
        .sum()
}

/// Bytes that graphs hold on a device now, and the most since [`reset_high`].
pub fn statistics(device: &Device) -> (u64, u64) {
    let table = table();
    let used = used(&table, device);
    (used, table.high.get(&device.ordinal).copied().unwrap_or(0).max(used))
}

/// Begins the watch of the most bytes anew.
pub fn reset_high(device: &Device) {
    let mut table = table();
    let used = used(&table, device);
    table.high.insert(device.ordinal, used);
}
