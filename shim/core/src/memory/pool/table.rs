//! All pools: by handle, and each device's default and current one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Pool, Properties};
use crate::abi::{Error, Result};
use crate::device::Device;
use crate::memory::Entry;
use crate::memory::rights::Rights;

/// Handles are numbers that no program takes for an address it owns, as those of streams; 0x53 marks a pool.
const TAG: u64 = 0x53 << 48;

#[derive(Default)]
struct Table {
    last: u64,
    /// Every pool that holds memory or has a handle.
    pools: HashMap<u64, Arc<Pool>>,
    /// By ordinal.
    devices: HashMap<i32, OfDevice>,
}

/// A device's pools.
#[derive(Clone, Copy)]
struct OfDevice {
    default: u64,
    current: u64,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// Counts changes of what is any device's current pool.
static EPOCH: AtomicU64 = AtomicU64::new(0);

pub(super) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Segments of all pools.
static RESERVED: AtomicI64 = AtomicI64::new(0);

fn table() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    fn add(&mut self, properties: Properties) -> Arc<Pool> {
        self.last += 1;
        let pool = Arc::new(Pool::new(TAG | self.last << 4, properties));
        self.pools.insert(pool.handle(), Arc::clone(&pool));
        pool
    }

    fn of_device(&mut self, device: &'static Device) -> OfDevice {
        if let Some(known) = self.devices.get(&device.ordinal) {
            return *known;
        }
        let pool = self.add(Properties {
            device,
            max_size: 0,
            handle_types: 0,
        });
        let new = OfDevice {
            default: pool.handle(),
            current: pool.handle(),
        };
        self.devices.insert(device.ordinal, new);
        new
    }

    fn live(&self, handle: u64) -> Result<Arc<Pool>> {
        let pool = self
            .pools
            .get(&handle)
            .filter(|pool| !pool.destroyed.load(Ordering::Acquire));
        pool.cloned().ok_or(Error::INVALID_VALUE)
    }
}

pub(super) fn count_reserved(segments: i64) {
    RESERVED.fetch_add(segments, Ordering::Relaxed);
}

pub(super) fn any_reserved() -> bool {
    RESERVED.load(Ordering::Relaxed) > 0
}

pub(super) fn all() -> Vec<Arc<Pool>> {
    table().iter().flat_map(|table| table.pools.values().cloned()).collect()
}

/// The pool that gave out memory, destroyed or not.
pub(super) fn of_memory(handle: u64) -> Result<Arc<Pool>> {
    let table = table();
    let pool = table.as_ref().and_then(|table| table.pools.get(&handle));
    pool.cloned().ok_or(Error::INVALID_VALUE)
}

/// What each device may do with a pool's memory.
pub fn rights_of_memory(handle: u64) -> Option<Rights> {
    of_memory(handle).ok().map(|pool| pool.rights())
}

/// The handle types that a pool was made for.
pub fn handle_types_of_memory(handle: u64) -> u32 {
    of_memory(handle).map_or(0, |pool| pool.properties.handle_types)
}

/// The mapping in which an allocation lies: its first byte and size.
pub fn mapping_of_memory(entry: &Entry) -> Option<(u64, u64)> {
    of_memory(entry.more).ok()?.mapping(entry.base)
}

/// The pool of a handle; [`Error::INVALID_VALUE`] for one that is destroyed or was never given.
pub fn find(handle: u64) -> Result<Arc<Pool>> {
    table().as_ref().ok_or(Error::INVALID_VALUE)?.live(handle)
}

/// Makes a pool.
pub fn create(properties: Properties) -> Arc<Pool> {
    table().get_or_insert_default().add(properties)
}

/// A device's default pool.
pub fn default_of(device: &'static Device) -> Result<Arc<Pool>> {
    let mut table = table();
    let table = table.get_or_insert_default();
    let handle = table.of_device(device).default;
    table.live(handle)
}

/// The pool that `cuMemAllocAsync` uses on a device.
pub fn current(device: &'static Device) -> Result<Arc<Pool>> {
    let mut table = table();
    let table = table.get_or_insert_default();
    let handle = table.of_device(device).current;
    table.live(handle)
}

/// `cuDeviceSetMemPool`; [`Error::INVALID_VALUE`] for a pool of another device.
pub fn set_current(device: &'static Device, pool: &Pool) -> Result<()> {
    if pool.properties.device.ordinal != device.ordinal {
        return Err(Error::INVALID_VALUE);
    }
    let mut table = table();
    let table = table.get_or_insert_default();
    table.of_device(device);
    if let Some(known) = table.devices.get_mut(&device.ordinal) {
        known.current = pool.handle();
        EPOCH.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}

/// `cuMemPoolDestroy`: ends the handle. Memory that is in use stays until it is freed (recorded). Where the pool was the
/// device's current one, the default follows. [`Error::INVALID_VALUE`] for a default pool.
pub fn destroy(handle: u64) -> Result<()> {
    let pool = {
        let mut table = table();
        let table = table.as_mut().ok_or(Error::INVALID_VALUE)?;
        let pool = table.live(handle)?;
        if table.devices.values().any(|of| of.default == handle) {
            return Err(Error::INVALID_VALUE);
        }
        for of in table.devices.values_mut().filter(|of| of.current == handle) {
            of.current = of.default;
        }
        EPOCH.fetch_add(1, Ordering::AcqRel);
        pool.destroyed.store(true, Ordering::Release);
        pool
    };
    end_if_unused(&pool);
    Ok(())
}

/// Gives back the memory of a destroyed pool whose last allocation was freed, as far as streams have passed that; what is
/// left goes with the next wait.
#[inline]
pub(super) fn end_if_unused(pool: &Pool) {
    if pool.destroyed.load(Ordering::Acquire) {
        end_unused(pool);
    }
}

#[cold]
fn end_unused(pool: &Pool) {
    pool.trim(0);
    let empty = pool.used() == 0 && pool.figures.reserved.load(Ordering::Acquire) == 0;
    if empty && let Some(table) = table().as_mut() {
        table.pools.remove(&pool.handle());
    }
}

/// `cudaDeviceReset`: ends all pools of the device; there is a new default. All work on the device has ended.
pub fn device_ended(device: &Device) {
    let pools: Vec<_> = {
        let mut table = table();
        let Some(table) = table.as_mut() else { return };
        table.devices.remove(&device.ordinal);
        EPOCH.fetch_add(1, Ordering::AcqRel);
        let pools = table
            .pools
            .extract_if(|_, pool| pool.properties.device.ordinal == device.ordinal);
        pools.map(|(_, pool)| pool).collect()
    };
    for pool in pools {
        pool.destroyed.store(true, Ordering::Release);
        pool.end();
    }
}
