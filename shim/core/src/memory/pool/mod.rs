//! Stream-ordered memory: pools, `cudaMallocAsync`, `cudaFreeAsync`.
//!
//! A pool holds blocks of ROCr of 32 MiB or more ([`segment`]) and gives out parts of them ([`arena`]). HSA calls the block
//! what it is, device memory; no part of it can be exported by a legacy IPC handle, as on NVIDIA's driver.
//!
//! Who may have freed memory again, in this order (CUDA Programming Guide, Stream Ordered Memory Allocator):
//!
//! 1. the stream it was freed in, at once: its [`cache`], one lock that only this stream's users take;
//! 2. everybody, once the stream has passed the free;
//! 3. a stream that waits for an event which was recorded behind the free;
//! 4. when the device has no more memory to give: any stream, which is made to wait for the free.
//!
//! An allocation that is freed and given out again in one stream changes one cache line of the registry: its [`Slot`].

mod arena;
mod cache;
mod segment;
pub mod share;
mod table;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arena::{Arena, split};
use cache::Cache;
use segment::{Segment, UNIT};
pub use table::{
    create, current, default_of, destroy, device_ended, find, handle_types_of_memory, mapping_of_memory,
    rights_of_memory, set_current,
};

use super::registry::{Description, Slot};
use super::rights::Rights;
use super::{Entry, Kind, REGISTRY};
use crate::abi::{CUmemPool_attribute, Error, Result};
use crate::device::{Context, Device, peer};
use crate::stream::Stream;

/// Sizes are rounded up to this.
const GRANULE: u64 = 512;

/// What [`create`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Where the memory lies.
    pub device: &'static Device,
    /// Most bytes the pool may hold; 0 is no limit.
    pub max_size: u64,
    /// `CUmemAllocationHandleType` bits.
    pub handle_types: u32,
}

/// A memory pool.
pub struct Pool {
    handle: u64,
    properties: Properties,
    /// Owner of the entries; memory of a pool belongs to no context (recorded), so this only names the device.
    context: &'static Context,
    /// Whether `cuMemPoolDestroy` was called (or the device was reset): it lives on until its last allocation is freed.
    destroyed: AtomicBool,
    /// Whether something was freed since memory was last given back.
    freed: AtomicBool,
    settings: Settings,
    figures: Figures,
    arena: Mutex<Arena>,
    caches: Mutex<HashMap<u64, Arc<Cache>>>,
}

struct Settings {
    follow_events: AtomicU32,
    opportunistic: AtomicU32,
    internal_dependencies: AtomicU32,
    release_threshold: AtomicU64,
    rights: AtomicU64,
}

/// Bytes.
#[derive(Default)]
#[repr(align(64))]
struct Figures {
    /// What is in use, and what streams have freed and may have again uncounted: the caches' credits. Never more than
    /// `used_high`, which only rises to what is really in use.
    counted: AtomicU64,
    used_high: AtomicU64,
    reserved: AtomicU64,
    reserved_high: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this thread used last.
struct Last {
    pool: Arc<Pool>,
    cache: Arc<Cache>,
    /// The device whose current pool it is, as of which [`table::epoch`].
    current_of: Option<(i32, u64)>,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

impl Pool {
    fn new(handle: u64, properties: Properties) -> Self {
        Self {
            handle,
            properties,
            context: properties.device.primary_context(),
            destroyed: AtomicBool::new(false),
            freed: AtomicBool::new(false),
            settings: Settings {
                follow_events: AtomicU32::new(1),
                opportunistic: AtomicU32::new(1),
                internal_dependencies: AtomicU32::new(1),
                release_threshold: AtomicU64::new(0),
                rights: AtomicU64::new(Rights::only(properties.device).0),
            },
            figures: Figures::default(),
            arena: Mutex::default(),
            caches: Mutex::default(),
        }
    }

    /// What clients hold.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// What it was made with.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// What each device may do with its memory.
    pub fn rights(&self) -> Rights {
        Rights(self.settings.rights.load(Ordering::Acquire))
    }

    /// `cuMemPoolSetAccess` for one device: see [`super::rights::checked`] for the flags. The owner keeps its access:
    /// [`Error::INVALID_DEVICE`] when it is to lose it (recorded). Else as [`check_access`].
    pub fn set_access(&self, device: &'static Device, flags: u32) -> Result<()> {
        let own = device.ordinal == self.properties.device.ordinal;
        if own {
            return if flags == 3 { Ok(()) } else { Err(Error::INVALID_DEVICE) };
        }
        check_access(device, self.properties.device, flags)?;
        // Under the lock, so that a segment that is added meanwhile is shared, too.
        let arena = locked(&self.arena);
        let rights = self.rights().with(device.ordinal, flags);
        self.settings.rights.store(rights.0, Ordering::Release);
        if flags != 0 {
            arena.segments().try_for_each(|segment| segment.share(rights))?;
        }
        Ok(())
    }

    /// An attribute's value; reuse policies are 32-bit, the others 64-bit. [`Error::INVALID_VALUE`] for an unknown one.
    pub fn attribute(&self, attribute: CUmemPool_attribute) -> Result<PoolValue> {
        use CUmemPool_attribute as A;
        let (settings, figures) = (&self.settings, &self.figures);
        let word = |value: &AtomicU32| Ok(PoolValue::Word(value.load(Ordering::Relaxed)));
        let long = |value: &AtomicU64| Ok(PoolValue::Long(value.load(Ordering::Relaxed)));
        match attribute {
            A::REUSE_FOLLOW_EVENT_DEPENDENCIES => word(&settings.follow_events),
            A::REUSE_ALLOW_OPPORTUNISTIC => word(&settings.opportunistic),
            A::REUSE_ALLOW_INTERNAL_DEPENDENCIES => word(&settings.internal_dependencies),
            A::RELEASE_THRESHOLD => long(&settings.release_threshold),
            A::RESERVED_MEM_CURRENT => long(&figures.reserved),
            A::RESERVED_MEM_HIGH => long(&figures.reserved_high),
            A::USED_MEM_CURRENT => Ok(PoolValue::Long(self.used())),
            A::USED_MEM_HIGH => long(&figures.used_high),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// The policy of an attribute that holds 32 bits.
    pub fn set_policy(&self, attribute: CUmemPool_attribute, value: u32) -> Result<()> {
        use CUmemPool_attribute as A;
        let policy = match attribute {
            A::REUSE_FOLLOW_EVENT_DEPENDENCIES => &self.settings.follow_events,
            A::REUSE_ALLOW_OPPORTUNISTIC => &self.settings.opportunistic,
            A::REUSE_ALLOW_INTERNAL_DEPENDENCIES => &self.settings.internal_dependencies,
            _ => return Err(Error::INVALID_VALUE),
        };
        policy.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// An attribute that holds 64 bits: the threshold can be set, high-water marks can be reset by 0 (recorded).
    pub fn set_figure(&self, attribute: CUmemPool_attribute, value: u64) -> Result<()> {
        use CUmemPool_attribute as A;
        let reset = |high: &AtomicU64, current: &AtomicU64| {
            if value != 0 {
                return Err(Error::INVALID_VALUE);
            }
            high.store(current.load(Ordering::Relaxed), Ordering::Relaxed);
            Ok(())
        };
        let figures = &self.figures;
        match attribute {
            A::RELEASE_THRESHOLD => {
                self.settings.release_threshold.store(value, Ordering::Relaxed);
                Ok(())
            }
            A::RESERVED_MEM_HIGH => reset(&figures.reserved_high, &figures.reserved),
            A::USED_MEM_HIGH => {
                self.used();
                reset(&figures.used_high, &figures.counted)
            }
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// The segment that holds an address: its first byte and size. It is what a pointer query gives as the mapping.
    pub fn mapping(&self, address: u64) -> Option<(u64, u64)> {
        let arena = locked(&self.arena);
        arena.segment(address).map(|segment| (segment.base(), segment.size()))
    }

    /// Publishes the segment that holds an address, for other processes: the slot of its handle, and the address's offset in it.
    fn publish_segment(&self, address: u64) -> Result<(u64, u64)> {
        let arena = locked(&self.arena);
        let segment = arena.segment(address).ok_or(Error::INVALID_VALUE)?;
        Ok((segment.publish()?, address - segment.base()))
    }

    /// `cuMemPoolTrimTo`: gives memory back that nobody uses, while at least `keep` bytes stay.
    pub fn trim(&self, keep: u64) {
        self.harvest();
        let released = locked(&self.arena).release(keep);
        self.give_back(released);
    }

    fn give_back(&self, segments: Vec<Segment>) {
        for segment in segments {
            self.figures.reserved.fetch_sub(segment.size(), Ordering::Relaxed);
            table::count_reserved(-1);
            segment.end();
        }
    }

    /// Makes everybody's what streams have passed.
    fn harvest(&self) {
        let caches: Vec<_> = locked(&self.caches)
            .iter()
            .map(|(id, cache)| (*id, Arc::clone(cache)))
            .collect();
        for (id, cache) in caches {
            let (slots, useful) = cache.harvest();
            if !useful {
                self.figures.counted.fetch_sub(cache.take_credit(), Ordering::Relaxed);
                locked(&self.caches).remove(&id);
            }
            if !slots.is_empty() {
                let mut arena = locked(&self.arena);
                slots.into_iter().for_each(|slot| arena.give_back(slot));
            }
        }
    }

    fn cache(&self, stream: &Arc<Stream>) -> Arc<Cache> {
        let mut caches = locked(&self.caches);
        let cache = caches
            .entry(stream.id())
            .or_insert_with(|| Arc::new(Cache::new(Arc::clone(stream))));
        Arc::clone(cache)
    }

    /// Gets a slot of `size` bytes (a multiple of the granule) that `stream` may use in its order.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION.
    fn take(&self, stream: &Arc<Stream>, size: u64) -> Result<Slot> {
        if let Some(slot) = self.take_reserved(stream, size)? {
            return Ok(slot);
        }
        match self.grow(size) {
            Ok(()) => {}
            Err(error) => {
                // What is cached anywhere on the device may be what is missing here.
                trim_unused(self.properties.device);
                match self.grow(size) {
                    Ok(()) => {}
                    Err(_) => return self.take_dependent(stream, size)?.ok_or(error),
                }
            }
        }
        // Another thread may have taken the new memory: then as before.
        match self.take_reserved(stream, size)? {
            Some(slot) => Ok(slot),
            None => self.take(stream, size),
        }
    }

    /// From the memory that the pool holds.
    fn take_reserved(&self, stream: &Arc<Stream>, size: u64) -> Result<Option<Slot>> {
        if let Some(slot) = locked(&self.arena).carve(size, self.context)? {
            return Ok(Some(slot));
        }
        let own = self.cache(stream);
        if let Some(freed) = own.take_larger(size, |_| true) {
            return self.cut(&own, freed, size).map(Some);
        }
        if self.settings.opportunistic.load(Ordering::Relaxed) != 0 {
            self.harvest();
            if let Some(slot) = locked(&self.arena).carve(size, self.context)? {
                return Ok(Some(slot));
            }
        }
        if self.settings.follow_events.load(Ordering::Relaxed) != 0 {
            for cache in self.others(stream) {
                let other = cache.stream.id();
                if let Some(freed) = cache.take_larger(size, |time| stream.comes_after(other, time)) {
                    return self.cut(&cache, freed, size).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// From what another stream is still to free, for which `stream` is made to wait.
    fn take_dependent(&self, stream: &Arc<Stream>, size: u64) -> Result<Option<Slot>> {
        if self.settings.internal_dependencies.load(Ordering::Relaxed) == 0 {
            return Ok(None);
        }
        for cache in self.others(stream) {
            if let Some(freed) = cache.take_larger(size, |_| true) {
                match cache.stream.frontier() {
                    Ok(frontier) => stream.wait_for(&frontier),
                    Err(error) => {
                        let _ = cache.put(freed.slot, freed.time);
                        return Err(error);
                    }
                }
                return self.cut(&cache, freed, size).map(Some);
            }
        }
        Ok(None)
    }

    fn others(&self, stream: &Stream) -> Vec<Arc<Cache>> {
        let caches = locked(&self.caches);
        let others = caches.iter().filter(|(id, _)| **id != stream.id());
        others.map(|(_, cache)| Arc::clone(cache)).collect()
    }

    /// Cuts what is needed off a freed slot; the rest stays where it was.
    fn cut(&self, cache: &Cache, freed: cache::Freed, size: u64) -> Result<Slot> {
        let (slot, rest) = split(freed.slot, size, self.context)?;
        if let Some(rest) = rest
            && let Err(rest) = cache.put(rest, freed.time)
        {
            // The stream is gone, with all its work.
            locked(&self.arena).give_back(rest);
        }
        Ok(slot)
    }

    /// Adds a segment that holds `size` bytes.
    fn grow(&self, size: u64) -> Result<()> {
        let more = size.checked_next_multiple_of(UNIT).ok_or(Error::MEMORY_ALLOCATION)?;
        let limit = match self.properties.max_size {
            0 => u64::MAX,
            limit => limit.next_multiple_of(UNIT),
        };
        let figures = &self.figures;
        let reserved = figures.reserved.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        let segment = if reserved > limit || more > self.properties.device.total_memory() {
            Err(Error::MEMORY_ALLOCATION)
        } else {
            Segment::new(self.properties.device, more, self.rights())
        };
        let segment = segment.inspect_err(|_| {
            figures.reserved.fetch_sub(more, Ordering::Relaxed);
        })?;
        figures.reserved_high.fetch_max(reserved, Ordering::Relaxed);
        table::count_reserved(1);
        let mut arena = locked(&self.arena);
        // Rights may have grown since.
        let shared = segment.share(self.rights());
        arena.add(segment);
        shared
    }

    /// Bytes in use, of which every cache's credit has been taken away.
    fn used(&self) -> u64 {
        let caches: Vec<_> = locked(&self.caches).values().cloned().collect();
        let credit: u64 = caches.iter().map(|cache| cache.take_credit()).sum();
        self.figures.counted.fetch_sub(credit, Ordering::Relaxed) - credit
    }

    /// Counts bytes that come into use.
    fn count_used(&self, bytes: u64) {
        let counted = self.figures.counted.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if counted > self.figures.used_high.load(Ordering::Relaxed) {
            // Perhaps only because of what streams have freed.
            self.figures.used_high.fetch_max(self.used(), Ordering::Relaxed);
        }
    }

    /// Makes a slot memory of the client's, `size` bytes of it, which are counted. Gives its first byte.
    #[inline]
    fn publish(&self, slot: Slot, size: u64, id: u64) -> u64 {
        let base = slot.base();
        let description = Description {
            more: self.handle,
            ..Description::device(Kind::Pool, base, size, self.context)
        };
        slot.describe(&description, id);
        base
    }

    /// Takes note that something was freed.
    fn note_freed(&self) {
        if !self.freed.load(Ordering::Relaxed) {
            self.freed.store(true, Ordering::Relaxed);
        }
    }

    /// Takes note that a slot is the client's no more.
    fn count_freed(&self, slot: &Slot) {
        self.figures.counted.fetch_sub(slot.size(), Ordering::Relaxed);
        self.note_freed();
    }

    /// Keeps a slot that `stream` frees now.
    #[inline]
    fn put(&self, cache: &Cache, slot: Slot) {
        self.note_freed();
        if let Err(slot) = cache.free(slot, cache.stream.now()) {
            // Retired when its stream, without a handle, had nothing left to do.
            self.count_freed(&slot);
            locked(&self.arena).give_back(slot);
        }
    }

    /// Ends the pool's memory: allocations become unknown, whoever holds them. Nothing on the device uses it any more.
    fn end(&self) {
        for entry in REGISTRY.entries(|entry| entry.kind == Kind::Pool && entry.more == self.handle) {
            if let Some((entry, slot)) = claimed(entry.base) {
                self.count_freed(&slot);
                log::debug!("a pool ends with {} bytes at {:#x} in use", entry.size, entry.base);
                locked(&self.arena).give_back(slot);
            }
        }
        self.used();
        for (_, cache) in std::mem::take(&mut *locked(&self.caches)) {
            let slots = cache.end();
            let mut arena = locked(&self.arena);
            slots.into_iter().for_each(|slot| arena.give_back(slot));
        }
        let segments = locked(&self.arena).release_all();
        self.give_back(segments);
    }
}

/// A pool attribute's value in its width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolValue {
    /// 4 bytes.
    Word(u32),
    /// 8 bytes.
    Long(u64),
}

/// What another device than the owner may be given: nothing, or reading and writing.
///
/// # Errors
/// NOT_SUPPORTED for reading alone (recorded), PEER_ACCESS_UNSUPPORTED where it cannot reach the owner's memory.
fn check_access(device: &Device, owner: &Device, flags: u32) -> Result<()> {
    match flags {
        0 => Ok(()),
        1 => Err(Error::NOT_SUPPORTED),
        _ if peer::can_access(device, owner) => Ok(()),
        _ => Err(Error::PEER_ACCESS_UNSUPPORTED),
    }
}

/// What a device may do with memory of a pool, this process's or an imported one; `None` for memory of none.
pub fn rights_in(entry: &Entry, device: &Device) -> Option<u32> {
    match entry.kind {
        Kind::Pool => Some(table::rights_of_memory(entry.more).map_or(0, |rights| rights.of(device.ordinal))),
        Kind::Imported if share::is_imported(entry) => Some(share::rights_of_memory(entry.more, device.ordinal)),
        _ => None,
    }
}

/// Whether copies for a device may touch the memory at `address`, as far as that lies in a pool.
pub fn is_open_to(address: u64, device: &Device) -> bool {
    let rights = super::lookup(address).and_then(|entry| rights_in(&entry, device));
    rights.is_none_or(|flags| flags != 0)
}

fn rounded(size: u64) -> Result<u64> {
    size.checked_next_multiple_of(GRANULE).ok_or(Error::MEMORY_ALLOCATION)
}

/// Runs `f` with the cache of `stream` in the pool that `same` recognises in what the thread used last, or that `find` finds.
#[inline]
fn with_cache<T>(
    stream: &Arc<Stream>,
    same: impl Fn(&Last) -> bool,
    find: impl FnOnce() -> Result<(Arc<Pool>, Option<(i32, u64)>)>,
    f: impl FnOnce(&Pool, &Cache) -> Result<T>,
) -> Result<T> {
    let mut f = Some(f);
    // Looked at where it lies: what `f` may do never changes it, and never ends what it holds.
    let known = LAST.try_with(|last| {
        let last = last.borrow();
        let last = last.as_ref()?;
        let known = Arc::ptr_eq(&last.cache.stream, stream) && same(last);
        let f = if known { f.take() } else { None };
        f.map(|f| f(&last.pool, &last.cache))
    });
    if let Ok(Some(result)) = known {
        return result;
    }
    let pool = LAST.try_with(|last| {
        let last = last.borrow();
        let last = last.as_ref().filter(|last| same(last))?;
        Some((Arc::clone(&last.pool), last.current_of))
    });
    let (pool, current_of) = pool.ok().flatten().map_or_else(find, Ok)?;
    let cache = pool.cache(stream);
    let result = f.take().map_or(Err(Error::UNKNOWN), |f| f(&pool, &cache));
    let new = Last {
        pool,
        cache,
        current_of,
    };
    // A thread that is ending keeps nothing.
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| last.replace(new)));
    result
}

/// Allocates `size` bytes (not 0) from `pool`, for use in the order of `stream`; gives the first one's address. Stays as it is until
/// [`free`], whatever the stream does.
///
/// # Errors
/// MEMORY_ALLOCATION when neither the pool nor the device has as much.
pub fn allocate(pool: &Arc<Pool>, stream: &Arc<Stream>, size: u64) -> Result<u64> {
    let same = |last: &Last| Arc::ptr_eq(&last.pool, pool);
    with_cache(
        stream,
        same,
        || Ok((Arc::clone(pool), None)),
        |pool, cache| from_cache(pool, cache, stream, size),
    )
}

/// As [`allocate`], from the current pool of the stream's device.
#[inline]
pub fn allocate_from_current(stream: &Arc<Stream>, size: u64) -> Result<u64> {
    let device = stream.device();
    let now = Some((device.ordinal, table::epoch()));
    with_cache(
        stream,
        |last| last.current_of == now,
        || Ok((current(device)?, now)),
        |pool, cache| from_cache(pool, cache, stream, size),
    )
}

#[inline]
fn from_cache(pool: &Pool, cache: &Cache, stream: &Arc<Stream>, size: u64) -> Result<u64> {
    let wanted = rounded(size)?;
    let taken = cache.take(wanted);
    let slot = match taken.slot {
        Some(slot) => slot,
        None => pool.take(stream, wanted).inspect_err(|_| {
            // Credit that was taken for nothing.
            let counted = wanted - taken.uncounted;
            pool.figures.counted.fetch_sub(counted, Ordering::Relaxed);
        })?,
    };
    if taken.uncounted > 0 {
        pool.count_used(taken.uncounted);
    }
    Ok(pool.publish(slot, size, taken.id))
}

#[inline]
fn claimed(address: u64) -> Option<(Entry, Slot)> {
    let (entry, block) = REGISTRY.claim(Kind::Pool, address)?;
    let size = entry.size.next_multiple_of(GRANULE);
    Some((entry, Slot::of_claimed(block, entry.base, size)))
}

/// Frees memory of [`allocate`], of which `address` is the first byte, in the order of `stream`; it is unknown at once. False for
/// anything else.
#[inline]
pub fn free(address: u64, stream: &Arc<Stream>) -> Result<bool> {
    let Some((entry, slot)) = claimed(address) else {
        return Ok(false);
    };
    with_cache(
        stream,
        |last| last.pool.handle == entry.more,
        || Ok((table::of_memory(entry.more)?, None)),
        |pool, cache| {
            pool.put(cache, slot);
            table::end_if_unused(pool);
            Ok(true)
        },
    )
}

/// Frees memory of [`allocate`] that no stream uses any more.
pub(super) fn free_unused(address: u64) -> Result<()> {
    let (entry, slot) = claimed(address).ok_or(Error::INVALID_VALUE)?;
    let pool = table::of_memory(entry.more)?;
    pool.count_freed(&slot);
    locked(&pool.arena).give_back(slot);
    table::end_if_unused(&pool);
    release_excess();
    Ok(())
}

/// Gives back what pools hold above their thresholds, now that the host has waited for something.
pub(crate) fn release_excess() {
    if !table::any_reserved() {
        return;
    }
    for pool in table::all() {
        let threshold = pool.settings.release_threshold.load(Ordering::Relaxed);
        if pool.figures.reserved.load(Ordering::Relaxed) > threshold && pool.freed.swap(false, Ordering::Relaxed) {
            pool.trim(threshold);
            let caches_left = locked(&pool.caches).values().any(|cache| !cache.is_empty());
            if caches_left {
                // Some free was not passed yet: look again at the next wait.
                pool.freed.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Gives back all that pools of `device` hold and nobody uses.
pub(crate) fn trim_unused(device: &Device) {
    if !table::any_reserved() {
        return;
    }
    for pool in table::all() {
        if pool.properties.device.ordinal == device.ordinal {
            pool.trim(0);
        }
    }
}
