//! From lane addresses to host bytes: global memory, LDS and scratch behind one interface.
//!
//! All lanes of an instruction are located before any of them is read or written, so a fault leaves no trace.
//!
//! ```text
//! Address::Global(va)   ->  region cache  ->  host pointer, consecutive dwords 4 bytes apart
//! Address::Lds(offset)  ->  the work-group's array
//! Address::Private(off) ->  the wave's array, swizzled: dword i of lane l is at (i * 64 + l) * 4
//! ```

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::{Trouble, memop::Maintenance};
use crate::{
    Target,
    coherence::{Cache, FirstLevel},
    isa::Inst,
    memory::{Access, Fault, FaultReason, GpuMemory, Region},
    wave::V64,
};

/// First address of the window that scratch resources and FLAT_SCRATCH point into. Bit 47 keeps it apart from every
/// address a process can map.
pub const SCRATCH_WINDOW: u64 = 1 << 47;

const REGIONS: usize = 4;

const NOWHERE: Region = Region {
    start: 0,
    end: 0,
    host: std::ptr::null_mut(),
    writable: false,
    executable: false,
    foreign: false,
    coarse: false,
};

/// Global memory with a small cache of regions.
pub struct Memory<'a> {
    gpu: &'a dyn GpuMemory,
    cache: Option<&'a Cache>,
    /// The running work-group's L1, where there is a cache.
    pub l1: FirstLevel,
    /// The running instruction passes the L1 by. Counts where there is a cache.
    pub bypass: bool,
    generation: u64,
    regions: [Region; REGIONS],
    victim: usize,
    /// Bytes loaded by vector instructions.
    pub loaded: u64,
    /// Bytes stored to global memory.
    pub stored: u64,
    /// The part of `loaded` that came from another process's memory.
    pub foreign_loaded: u64,
    /// The part of `stored` that went to another process's memory.
    pub foreign_stored: u64,
}

impl<'a> Memory<'a> {
    /// Memory of one dispatch.
    pub fn new(gpu: &'a dyn GpuMemory) -> Self {
        let generation = gpu.generation();
        Memory {
            gpu,
            cache: gpu.cache(),
            l1: FirstLevel::default(),
            bypass: true,
            generation,
            regions: [NOWHERE; REGIONS],
            victim: 0,
            loaded: 0,
            stored: 0,
            foreign_loaded: 0,
            foreign_stored: 0,
        }
    }

    /// Drops cached regions if a mapping went away; true if so. Asked before each memory instruction.
    #[inline]
    pub fn refresh(&mut self) -> bool {
        let now = self.gpu.generation();
        if now == self.generation {
            return false;
        }
        self.generation = now;
        self.regions = [NOWHERE; REGIONS];
        true
    }

    /// The cache that stands before memory, so that every access has to be looked up by itself.
    #[inline]
    pub fn cache(&self) -> Option<&'a Cache> {
        self.cache
    }

    /// Cache maintenance, where there are caches.
    pub fn maintain(&mut self, what: Maintenance, inst: &Inst) {
        let Some(cache) = self.cache else { return };
        // gfx942: sc1 alone is the agent's scope, with sc0 the system's; below that all share one L1.
        let newer = inst.target == Target::Gfx942;
        let agent = inst.flag(Inst::SCC);
        let system = agent && inst.flag(Inst::GLC);
        match what {
            Maintenance::WriteBackL2 if !newer || system => cache.write_back(),
            Maintenance::WriteBackL2 => {}
            Maintenance::InvalidateL1 => self.l1.clear(),
            Maintenance::InvalidateL2 => cache.invalidate(),
            Maintenance::Invalidate => {
                if agent {
                    self.l1.clear();
                }
                if system {
                    cache.invalidate();
                }
            }
        }
    }

    /// Where an access that has been allowed goes when there is a cache.
    #[cold]
    fn cached(&mut self, cache: &Cache, r: &Region, host: *mut u8, len: u64, access: Access) -> Option<*mut u8> {
        let (at, len) = (host as usize, len as usize);
        let bounds = (r.host as usize, r.host as usize + (r.end - r.start) as usize);
        match access {
            Access::Execute => return Some(host),
            Access::Write | Access::Atomic => self.l1.drop_bytes(at, len),
            Access::Read => {}
        }
        let write = access != Access::Read;
        let below = |at: usize, len: usize| {
            if r.coarse {
                cache.place(at, len, write, bounds)
            } else {
                Some(at as *mut u8)
            }
        };
        if write || self.bypass {
            below(at, len)
        } else {
            self.l1.load(at, len, bounds, below)
        }
    }

    fn region(&mut self, va: u64) -> Result<Region, Fault> {
        for (i, r) in self.regions.iter().enumerate() {
            if va >= r.start && va < r.end {
                let r = *r;
                // The most recent region is looked at first.
                if i != 0 {
                    self.regions.swap(0, i);
                }
                return Ok(r);
            }
        }
        let r = self.gpu.region(va).ok_or(Fault {
            va,
            reason: FaultReason::NotPresent,
        })?;
        if va < r.start || va >= r.end {
            return Err(Fault {
                va,
                reason: FaultReason::NotPresent,
            });
        }
        self.victim = self.victim % (REGIONS - 1) + 1;
        self.regions[self.victim] = self.regions[0];
        self.regions[0] = r;
        Ok(r)
    }

    /// Counts an access that `find` just allowed.
    #[inline]
    pub(super) fn count(&mut self, bytes: u64, access: Access) {
        let foreign = self.regions[0].foreign;
        let (all, theirs) = match access {
            Access::Read => (&mut self.loaded, &mut self.foreign_loaded),
            _ => (&mut self.stored, &mut self.foreign_stored),
        };
        *all += bytes;
        if foreign {
            *theirs += bytes;
        }
    }

    /// The host address of `len` bytes at `va`, or `None` where they span two regions that are not neighbours in this
    /// process.
    ///
    /// # Errors
    /// The fault of the first byte that is not accessible.
    #[inline]
    pub fn find(&mut self, va: u64, len: u64, access: Access) -> Result<Option<*mut u8>, Fault> {
        let r = self.regions[0];
        let r = if va >= r.start && va < r.end {
            r
        } else {
            self.region(va)?
        };
        let allowed = match access {
            Access::Read => true,
            Access::Write | Access::Atomic => r.writable,
            Access::Execute => r.executable,
        };
        if !allowed {
            let reason = if access == Access::Execute {
                FaultReason::NoExecute
            } else {
                FaultReason::ReadOnly
            };
            return Err(Fault { va, reason });
        }
        let host = r.host.wrapping_add((va - r.start) as usize);
        if len <= r.end - va {
            return Ok(match self.cache {
                None => Some(host),
                Some(cache) => self.cached(cache, &r, host, len, access),
            });
        }
        if self.cache.is_some() && access != Access::Execute {
            // Byte by byte.
            self.find(r.end, len - (r.end - va), access)?;
            return Ok(None);
        }
        let rest = self.find(r.end, len - (r.end - va), access)?;
        Ok((rest == Some(host.wrapping_add((r.end - va) as usize))).then_some(host))
    }

    /// Copies bytes from memory, whatever regions they span.
    ///
    /// # Errors
    /// The fault of the first byte that is not readable.
    pub fn read(&mut self, va: u64, out: &mut [u8], access: Access) -> Result<(), Fault> {
        for (i, byte) in out.iter_mut().enumerate() {
            if let Some(p) = self.find(va.wrapping_add(i as u64), 1, access)? {
                // SAFETY: `find` returned the host address of one mapped byte of the current generation.
                *byte = unsafe { load8(p) };
            }
        }
        Ok(())
    }

    /// Copies bytes to memory, whatever regions they span.
    ///
    /// # Errors
    /// The fault of the first byte that is not writable.
    pub fn write(&mut self, va: u64, bytes: &[u8]) -> Result<(), Fault> {
        for (i, byte) in bytes.iter().enumerate() {
            if let Some(p) = self.find(va.wrapping_add(i as u64), 1, Access::Write)? {
                // SAFETY: `find` returned the host address of one mapped, writable byte of the current generation.
                unsafe { store8(p, *byte) };
            }
        }
        Ok(())
    }

    /// Reads `out.len()` dwords at a dword-aligned address.
    ///
    /// # Errors
    /// The fault of the first byte that is not readable.
    pub fn read_dwords(&mut self, va: u64, out: &mut [u32], access: Access) -> Result<(), Fault> {
        match self.find(va, out.len() as u64 * 4, access)? {
            Some(p) => {
                // SAFETY: `find` returned the host address of that many mapped bytes.
                unsafe { load_dwords(p, 4, out) };
            }
            None => {
                for (i, word) in out.iter_mut().enumerate() {
                    let mut bytes = [0; 4];
                    self.read(va + i as u64 * 4, &mut bytes, access)?;
                    *word = u32::from_le_bytes(bytes);
                }
            }
        }
        Ok(())
    }

    /// Writes dwords at a dword-aligned address.
    ///
    /// # Errors
    /// The fault of the first byte that is not writable.
    pub fn write_dwords(&mut self, va: u64, words: &[u32]) -> Result<(), Fault> {
        match self.find(va, words.len() as u64 * 4, Access::Write)? {
            Some(p) => {
                // SAFETY: `find` returned the host address of that many mapped, writable bytes.
                unsafe { store_dwords(p, 4, words) };
            }
            None => {
                for (i, word) in words.iter().enumerate() {
                    self.write(va + i as u64 * 4, &word.to_le_bytes())?;
                }
            }
        }
        self.count(words.len() as u64 * 4, Access::Write);
        Ok(())
    }
}

// Other queues, processes and the host see this memory, so aligned accesses are atomic, as on the card; acquire and release
// cost nothing on x86-64 and keep the compiler from reordering them.

/// # Safety
/// `p` must be valid for reads of one byte.
#[inline]
pub unsafe fn load8(p: *const u8) -> u8 {
    // SAFETY: the caller's promise; a byte is always aligned.
    unsafe { AtomicU8::from_ptr(p.cast_mut()).load(Ordering::Acquire) }
}

/// # Safety
/// `p` must be valid for writes of one byte.
#[inline]
pub unsafe fn store8(p: *mut u8, v: u8) {
    // SAFETY: the caller's promise; a byte is always aligned.
    unsafe { AtomicU8::from_ptr(p).store(v, Ordering::Release) }
}

/// # Safety
/// `p` must be valid for reads of two bytes.
#[inline]
pub unsafe fn load16(p: *const u8) -> u16 {
    // SAFETY: the caller's promise; the atomic path is taken only when aligned.
    unsafe {
        if (p as usize).is_multiple_of(2) {
            AtomicU16::from_ptr(p.cast_mut().cast()).load(Ordering::Acquire)
        } else {
            p.cast::<u16>().read_unaligned()
        }
    }
}

/// # Safety
/// `p` must be valid for writes of two bytes.
#[inline]
pub unsafe fn store16(p: *mut u8, v: u16) {
    // SAFETY: the caller's promise; the atomic path is taken only when aligned.
    unsafe {
        if (p as usize).is_multiple_of(2) {
            AtomicU16::from_ptr(p.cast()).store(v, Ordering::Release);
        } else {
            p.cast::<u16>().write_unaligned(v);
        }
    }
}

/// # Safety
/// `p` must be valid for reads of four bytes.
#[inline]
pub unsafe fn load32(p: *const u8) -> u32 {
    // SAFETY: the caller's promise; the atomic path is taken only when aligned.
    unsafe {
        if (p as usize).is_multiple_of(4) {
            AtomicU32::from_ptr(p.cast_mut().cast()).load(Ordering::Acquire)
        } else {
            p.cast::<u32>().read_unaligned()
        }
    }
}

/// # Safety
/// `p` must be valid for writes of four bytes.
#[inline]
pub unsafe fn store32(p: *mut u8, v: u32) {
    // SAFETY: the caller's promise; the atomic path is taken only when aligned.
    unsafe {
        if (p as usize).is_multiple_of(4) {
            AtomicU32::from_ptr(p.cast()).store(v, Ordering::Release);
        } else {
            p.cast::<u32>().write_unaligned(v);
        }
    }
}

/// Loads dwords that lie `step` bytes apart; pairs in one access where they are adjacent and aligned.
///
/// # Safety
/// Every dword must be valid for reads.
#[inline]
pub unsafe fn load_dwords(p: *const u8, step: usize, out: &mut [u32]) {
    let n = out.len();
    let mut k = 0;
    while k < n {
        let q = p.wrapping_add(k * step);
        // SAFETY: the caller's promise; each atomic path is taken only when aligned.
        unsafe {
            if step == 4 && k + 1 < n && (q as usize).is_multiple_of(8) {
                let v = AtomicU64::from_ptr(q.cast_mut().cast()).load(Ordering::Acquire);
                out[k] = v as u32;
                out[k + 1] = (v >> 32) as u32;
                k += 2;
                continue;
            }
            out[k] = load32(q);
        }
        k += 1;
    }
}

/// Stores dwords `step` bytes apart; pairs in one access where they are adjacent and aligned.
///
/// # Safety
/// Every dword must be valid for writes.
#[inline]
pub unsafe fn store_dwords(p: *mut u8, step: usize, words: &[u32]) {
    let n = words.len();
    let mut k = 0;
    while k < n {
        let q = p.wrapping_add(k * step);
        // SAFETY: the caller's promise; each atomic path is taken only when aligned.
        unsafe {
            if step == 4 && k + 1 < n && (q as usize).is_multiple_of(8) {
                let v = u64::from(words[k]) | u64::from(words[k + 1]) << 32;
                AtomicU64::from_ptr(q.cast()).store(v, Ordering::Release);
                k += 2;
                continue;
            }
            store32(q, words[k]);
        }
        k += 1;
    }
}

/// The private memory of one wave.
#[derive(Default)]
pub struct Scratch {
    /// 64 lanes, swizzled by dword.
    pub words: Vec<u64>,
    /// Bytes per lane.
    pub lane_bytes: u32,
    /// Where the wave's part begins in the scratch window.
    pub va: u64,
}

/// Where one lane's access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A GPU virtual address (a scratch window address goes to the wave's private array).
    Global(u64),
    /// A byte offset into the work-group's LDS.
    Lds(u32),
    /// A byte offset into the lane's private memory.
    Private(u32),
    /// A buffer access out of range: loads give 0, stores are dropped.
    Nowhere,
}

/// The host bytes of one lane's access: dwords `step` bytes apart. A null pointer is an access that is dropped.
#[derive(Clone, Copy)]
pub struct Place {
    /// Host address of the first byte.
    pub ptr: *mut u8,
    /// Distance of consecutive dwords.
    pub step: usize,
}

/// The located lanes of one instruction.
pub struct Places {
    /// Valid for the lanes in `lanes`.
    pub at: [Place; 64],
    /// Lanes that access memory at one place.
    pub lanes: u64,
    /// Lanes whose bytes have no single place (two regions, or misaligned scratch). Rare, so on the heap.
    pub split: Vec<(usize, Address)>,
}

/// Everything a wave can address.
pub struct Spaces<'a> {
    /// Global memory.
    pub memory: Memory<'a>,
    /// LDS of the running work-group.
    pub lds: Vec<u64>,
    /// Bytes of LDS that the dispatch asked for.
    pub lds_bytes: u32,
    /// Private memory of the running wave.
    pub scratch: Scratch,
    /// First address of the LDS aperture.
    pub shared_base: u64,
    /// First address of the scratch aperture.
    pub private_base: u64,
}

impl Spaces<'_> {
    /// The address a FLAT access goes to.
    #[inline]
    pub fn route(&self, va: u64) -> Address {
        let high = va >> 32;
        if high == self.shared_base >> 32 {
            Address::Lds(va as u32)
        } else if high == self.private_base >> 32 {
            Address::Private(va as u32)
        } else {
            Address::Global(va)
        }
    }

    /// Locates one lane's `bytes` bytes; `None` if they have no single place.
    ///
    /// # Errors
    /// A fault, also for LDS and scratch accesses past the allocation, which hardware would ignore.
    #[inline]
    pub fn locate(&mut self, lane: usize, at: Address, bytes: u32, access: Access) -> Result<Option<Place>, Fault> {
        if access == Access::Atomic {
            self.check_aligned(at, bytes)?;
        }
        match at {
            Address::Global(va) if va < SCRATCH_WINDOW => {
                let found = self.memory.find(va, u64::from(bytes), access)?;
                Ok(found.map(|ptr| {
                    self.memory.count(u64::from(bytes), access);
                    Place { ptr, step: 4 }
                }))
            }
            Address::Global(va) => {
                // Buffer resources have swizzled already; the wave's own part of the window is its array.
                let offset = va.wrapping_sub(self.scratch.va);
                let size = u64::from(self.scratch.lane_bytes) * 64;
                if offset >= size || u64::from(bytes) > size - offset {
                    return Err(Fault {
                        va,
                        reason: FaultReason::NotPresent,
                    });
                }
                let ptr = self
                    .scratch
                    .words
                    .as_mut_ptr()
                    .cast::<u8>()
                    .wrapping_add(offset as usize);
                Ok(Some(Place { ptr, step: 4 }))
            }
            Address::Lds(offset) => {
                if offset >= self.lds_bytes || bytes > self.lds_bytes - offset {
                    return Err(Fault {
                        va: self.shared_base + u64::from(offset),
                        reason: FaultReason::NotPresent,
                    });
                }
                let ptr = self.lds.as_mut_ptr().cast::<u8>().wrapping_add(offset as usize);
                Ok(Some(Place { ptr, step: 4 }))
            }
            Address::Private(offset) => {
                if offset >= self.scratch.lane_bytes || bytes > self.scratch.lane_bytes - offset {
                    return Err(Fault {
                        va: self.private_base + u64::from(offset),
                        reason: FaultReason::NotPresent,
                    });
                }
                if offset % 4 + bytes > 4 && offset % 4 != 0 {
                    return Ok(None);
                }
                let byte = (offset as usize / 4 * 64 + lane) * 4 + offset as usize % 4;
                let ptr = self.scratch.words.as_mut_ptr().cast::<u8>().wrapping_add(byte);
                Ok(Some(Place { ptr, step: 256 }))
            }
            Address::Nowhere => Ok(Some(Place {
                ptr: std::ptr::null_mut(),
                step: 4,
            })),
        }
    }

    /// Atomics must be aligned to their size, whatever SH_MEM_CONFIG.alignment_mode lets other accesses do.
    fn check_aligned(&self, at: Address, bytes: u32) -> Result<(), Fault> {
        let va = match at {
            Address::Global(va) => va,
            Address::Lds(offset) => self.shared_base + u64::from(offset),
            Address::Private(offset) => self.private_base + u64::from(offset),
            Address::Nowhere => return Ok(()),
        };
        if va.is_multiple_of(bytes.into()) {
            return Ok(());
        }
        Err(Fault {
            va,
            reason: FaultReason::Misaligned,
        })
    }

    /// Locates all lanes of `exec`.
    ///
    /// # Errors
    /// The first lane's fault.
    #[inline]
    pub fn locate_all(
        &mut self,
        exec: u64,
        bytes: u32,
        access: Access,
        mut address: impl FnMut(&Self, usize) -> Address,
    ) -> Result<Places, Trouble> {
        self.memory.refresh();
        let mut places = Places {
            at: [Place {
                ptr: std::ptr::null_mut(),
                step: 4,
            }; 64],
            lanes: 0,
            split: Vec::new(),
        };
        let mut mask = exec;
        while mask != 0 {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let at = address(self, lane);
            match self.locate(lane, at, bytes, access)? {
                Some(place) => {
                    places.at[lane] = place;
                    places.lanes |= 1 << lane;
                }
                None => {
                    // Every byte must be accessible before any lane is touched.
                    for i in 0..bytes {
                        self.locate(lane, plus(at, i), 1, access)?;
                    }
                    places.split.push((lane, at));
                }
            }
        }
        Ok(places)
    }

    /// Locates all lanes of `exec` in global memory at `base + va`: the common case, in one region, costs two comparisons
    /// a lane.
    ///
    /// # Errors
    /// The first lane's fault.
    #[inline]
    pub fn locate_global(
        &mut self,
        exec: u64,
        base: u64,
        va: &V64,
        bytes: u32,
        access: Access,
    ) -> Result<Places, Trouble> {
        self.memory.refresh();
        let first = base.wrapping_add(va[exec.trailing_zeros() as usize & 63]);
        if exec != 0
            && first < SCRATCH_WINDOW
            && self.memory.cache.is_none()
            && self.memory.find(first, 1, access).is_ok()
        {
            let r = self.memory.regions[0];
            // A lane's offset is inside when it is at most this.
            if let Some(last) = (r.end - r.start).checked_sub(u64::from(bytes)) {
                let mut places = Places {
                    at: [Place { ptr: r.host, step: 4 }; 64],
                    lanes: exec,
                    split: Vec::new(),
                };
                let mut inside = true;
                let from = base.wrapping_sub(r.start);
                // What an address has to be a multiple of, less one.
                let odd = if access == Access::Atomic {
                    u64::from(bytes) - 1
                } else {
                    0
                };
                for (lane, place) in places.at.iter_mut().enumerate() {
                    let offset = from.wrapping_add(va[lane]);
                    let fits = offset <= last && base.wrapping_add(va[lane]) & odd == 0;
                    inside &= fits || exec >> lane & 1 == 0;
                    place.ptr = r.host.wrapping_add(offset as usize);
                }
                if inside {
                    self.memory
                        .count(u64::from(bytes) * u64::from(exec.count_ones()), access);
                    return Ok(places);
                }
            }
        }
        self.locate_all(exec, bytes, access, |_, l| Address::Global(base.wrapping_add(va[l])))
    }

    /// Reads the bytes of a split lane one by one.
    ///
    /// # Errors
    /// The fault of the first byte that went away in the meantime.
    pub fn read_split(&mut self, lane: usize, at: Address, out: &mut [u8]) -> Result<(), Fault> {
        for (i, byte) in out.iter_mut().enumerate() {
            if let Some(place) = self.locate(lane, plus(at, i as u32), 1, Access::Read)? {
                // SAFETY: `locate` returned the place of one accessible byte.
                *byte = unsafe { load8(place.ptr) };
            }
        }
        Ok(())
    }

    /// Writes the bytes of a split lane one by one.
    ///
    /// # Errors
    /// The fault of the first byte that went away in the meantime.
    pub fn write_split(&mut self, lane: usize, at: Address, bytes: &[u8]) -> Result<(), Fault> {
        for (i, byte) in bytes.iter().enumerate() {
            if let Some(place) = self.locate(lane, plus(at, i as u32), 1, Access::Write)? {
                // SAFETY: `locate` returned the place of one accessible byte.
                unsafe { store8(place.ptr, *byte) };
            }
        }
        Ok(())
    }
}

fn plus(at: Address, bytes: u32) -> Address {
    match at {
        Address::Global(va) => Address::Global(va.wrapping_add(u64::from(bytes))),
        Address::Lds(o) => Address::Lds(o.wrapping_add(bytes)),
        Address::Private(o) => Address::Private(o.wrapping_add(bytes)),
        Address::Nowhere => Address::Nowhere,
    }
}
