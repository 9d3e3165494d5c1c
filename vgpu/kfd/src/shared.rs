//! The state that all processes of one virtual machine share: who lives, and which device memory is taken by whom.
//!
//! ```text
//! VGPU_ROOT/
//!   lock        flock: held while a process attaches, and while the last one removes all of this
//!   state       this table, mapped by everyone; byte i carries a POSIX lock while the owner of slot i lives
//!   gpu<N>      memory of GPU N: [ VRAM offsets | GTT offsets ], sparse
//!   sys/, proc/ the sysfs tree that ROCr reads
//!   dmabuf/     one file per exported dma-buf: a header, and as long as the buffer
//!   named/      libhsakmt's named shared memory and semaphore
//! ```
//!
//! The last process to end in good order removes it all. After a kill it stays until the next process starts here, or until
//! the launcher that made the folder removes it.
//!
//! Processes may be killed at any point. Three kernel mechanisms clean up after them, none needs a daemon: the table's
//! mutex is robust (the next owner rebuilds the lists, see [`Tables::rebuild`](crate::tables::Tables::rebuild)); a slot's POSIX lock disappears with its
//! process (its memory is then reclaimed); a dma-buf descriptor holds a shared `flock`, wherever it travels.

use std::{
    fs, io,
    ops::{Deref, DerefMut},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicI32, AtomicU64, Ordering},
};

use crate::{
    config::{Bar, Link, MachineConfig},
    os,
    tables::{ExtentRef, HeapKind, HeapLayout, NONE, PAGE, Tables, heap_number},
};

/// Processes that can use one virtual machine at a time.
pub const SLOTS: usize = 256;
const MAGIC: u64 = u64::from_le_bytes(*b"vgpu\0st1");

/// A process.
#[repr(C)]
pub struct Slot {
    /// Its id, 0 for a free slot. Only an alive lock makes it mean anything.
    pub pid: AtomicI32,
    pad: u32,
    /// Counts what may have changed the process's mappings of device files; see `cma.rs`.
    mappings: AtomicU64,
    /// When it was counted last, in nanoseconds of the monotonic clock.
    mapped_at: AtomicU64,
}

impl Slot {
    /// Notes that the process makes a mapping of a device file, or is about to.
    pub fn note_mapping(&self) {
        self.mapped_at
            .store(os::clock_ns(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
        self.mappings.fetch_add(1, Ordering::Release);
    }
}

#[repr(C)]
struct State {
    magic: AtomicU64,
    gpus: u32,
    target: u32,
    memory: u64,
    /// Small BAR, PCIe, SVM: bits 0, 1, 2.
    modes: u32,
    pad: u32,
    mutex: libc::pthread_mutex_t,
    slots: [Slot; SLOTS],
    tables: Tables,
}

/// This process's attachment to the virtual machine.
pub struct Shared {
    state: *mut State,
    file: OwnedFd,
    root: PathBuf,
    /// Our slot.
    pub slot: usize,
    layout: HeapLayout,
    heaps: Vec<OwnedFd>,
}

// SAFETY: the state is shared memory; what is not atomic in it is touched under its mutex only.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The tables, locked.
pub struct Guard<'a> {
    shared: &'a Shared,
}

impl Deref for Guard<'_> {
    type Target = Tables;
    fn deref(&self) -> &Tables {
        // SAFETY: the mutex is held as long as the guard lives.
        unsafe { &(*self.shared.state).tables }
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Tables {
        // SAFETY: the mutex is held as long as the guard lives, and the guard is borrowed exclusively.
        unsafe { &mut (*self.shared.state).tables }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: we hold it.
        unsafe { libc::pthread_mutex_unlock(&raw mut (*self.shared.state).mutex) };
    }
}

impl Shared {
    /// Joins the virtual machine of `root`, or starts it when no process lives there.
    ///
    /// `prepare` makes the sysfs tree; it runs only when the machine starts, under the attach lock.
    ///
    /// # Errors
    /// The directory cannot be used, all slots are taken, or the machine runs with another configuration.
    pub fn attach(
        root: &Path,
        config: &MachineConfig,
        prepare: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (root, _lock) = enter(root)?;
        warn_if_small(&root);
        // SAFETY: geteuid has no preconditions.
        if fs::metadata(&root)?.uid() != unsafe { libc::geteuid() } {
            return Err(io::Error::other(format!("{} belongs to another user", root.display())));
        }
        let file = os::open(&root.join("state"), libc::O_RDWR | libc::O_CREAT, 0o600)?;
        os::set_len(&file, size_of::<State>() as u64)?;
        let state = os::map_shared(&file, size_of::<State>(), 0)?.cast::<State>();
        let layout = HeapLayout::new(config.memory);
        let heaps = (0..config.gpus)
            .map(|gpu| os::open(&root.join(format!("gpu{gpu}")), libc::O_RDWR | libc::O_CREAT, 0o600))
            .collect::<io::Result<Vec<_>>>()?;

        // SAFETY: a mapping of the right size; the attach lock keeps other starters out, and processes already
        // attached, which have the mutex only, exist exactly when the state is not initialised here.
        let current = unsafe { &*state };
        let alive = locked_by_other(&file, 0, SLOTS);
        if alive && current.magic.load(Ordering::Acquire) == MAGIC {
            let running = (current.gpus, current.target, current.memory, current.modes);
            if running != describe(config) {
                return Err(io::Error::other(format!(
                    "another process uses {} with other GPUs (count, arch, memory, modes = {running:?})",
                    root.display()
                )));
            }
        } else {
            for heap in &heaps {
                os::punch_hole(heap, 0, layout.file_len());
                os::set_len(heap, layout.file_len())?;
            }
            for folder in ["dmabuf", crate::named::FOLDER] {
                let _ = fs::remove_dir_all(root.join(folder));
            }
            fs::create_dir(root.join("dmabuf"))?;
            prepare(&root)?;
            // SAFETY: nobody else is attached.
            unsafe { initialise(state, config, layout) }?;
        }

        let mut shared = Self {
            state,
            file,
            root,
            slot: usize::MAX,
            layout,
            heaps,
        };
        shared.take_slot()?;
        shared.reclaim_dead(&mut shared.lock());
        Ok(shared)
    }

    fn state(&self) -> &State {
        // SAFETY: mapped for the life of the process; fields outside `tables` are constant or atomic.
        unsafe { &*self.state }
    }

    fn take_slot(&mut self) -> io::Result<()> {
        for slot in 0..SLOTS {
            if self.state().slots[slot].pid.load(Ordering::Relaxed) != 0 && locked_by_other(&self.file, slot, 1) {
                continue;
            }
            if set_lock(&self.file, slot) {
                let mut guard = self.lock();
                self.reclaim_slot(&mut guard, slot);
                drop(guard);
                self.slot = slot;
                self.state().slots[slot].mappings.store(0, Ordering::Relaxed);
                self.state().slots[slot].pid.store(os::pid(), Ordering::Release);
                return Ok(());
            }
        }
        Err(io::Error::other(format!(
            "more than {SLOTS} processes use this virtual machine"
        )))
    }

    /// Our slot's shared part.
    pub fn own_slot(&self) -> &Slot {
        &self.state().slots[self.slot]
    }

    /// The directory of the machine.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where heaps are in files.
    pub fn layout(&self) -> HeapLayout {
        self.layout
    }

    /// The file of a GPU's memory.
    pub fn heap_file(&self, gpu: usize) -> &OwnedFd {
        &self.heaps[gpu]
    }

    /// Locks the tables.
    pub fn lock(&self) -> Guard<'_> {
        // SAFETY: initialised by the process that started the machine, never destroyed.
        let result = unsafe { libc::pthread_mutex_lock(&raw mut (*self.state).mutex) };
        let mut guard = Guard { shared: self };
        if result == libc::EOWNERDEAD {
            log::info!(
                "a process died holding the lock of {}: rebuilding its tables",
                self.root.display()
            );
            guard.rebuild();
            // SAFETY: we own the mutex and have made what it protects consistent.
            unsafe { libc::pthread_mutex_consistent(&raw mut (*self.state).mutex) };
        }
        guard
    }

    /// Allocates a buffer. Memory of processes that died is reclaimed before the answer is no.
    pub fn allocate(&self, gpu: usize, kind: HeapKind, size: u64, flags: u32) -> Option<(ExtentRef, u64)> {
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let heap = heap_number(gpu, kind);
        let mut guard = self.lock();
        let index = guard.allocate(self.layout, heap, size, flags, self.slot).or_else(|| {
            self.reclaim_dead(&mut guard);
            guard.allocate(self.layout, heap, size, flags, self.slot)
        })?;
        let offset = guard.entry(index).offset;
        Some((guard.reference(index)?, offset))
    }

    /// Notes that this process holds a buffer; true if it still exists.
    pub fn hold(&self, guard: &mut Guard<'_>, extent: ExtentRef) -> bool {
        guard.extent_mut(extent).map(|found| found.hold(self.slot)).is_some()
    }

    /// Notes that this process no longer holds a buffer, and frees it if nobody does.
    pub fn release(&self, extent: ExtentRef) {
        let mut guard = self.lock();
        if let Some(found) = guard.extent_mut(extent) {
            found.unhold(self.slot);
            self.free_if_unheld(&mut guard, extent.index);
        }
    }

    /// Gives a buffer an IPC handle, the same one each time.
    pub fn ipc_export(&self, extent: ExtentRef, flags: u32) -> Option<[u32; 4]> {
        let mut guard = self.lock();
        let found = guard.extent_mut(extent)?;
        if found.ipc_key == [0; 4] {
            let mut random = [0u8; 12];
            // SAFETY: a buffer of the given length. 12 bytes are never cut short.
            unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
            let word = |i: usize| u32::from_le_bytes([random[i], random[i + 1], random[i + 2], random[i + 3]]);
            found.ipc_key = [extent.index, word(0), word(4), word(8)];
            found.ipc_flags = flags;
        }
        Some(found.ipc_key)
    }

    /// Withdraws the IPC handle of a buffer that its owner frees: later imports fail, present ones keep the memory.
    pub fn ipc_withdraw(&self, extent: ExtentRef) {
        let mut guard = self.lock();
        if let Some(found) = guard.extent_mut(extent).filter(|found| found.owner == self.slot as u32) {
            found.ipc_key = [0; 4];
        }
    }

    /// Marks a buffer as exported through a dma-buf. The mark comes before the file, or a reclaim could miss it.
    pub fn mark_exported(&self, extent: ExtentRef) -> bool {
        self.lock().extent_mut(extent).map(|found| found.exported = 1).is_some()
    }

    /// The file that stands for dma-bufs of a buffer.
    pub fn dmabuf_path(&self, id: u64) -> PathBuf {
        self.root.join("dmabuf").join(id.to_string())
    }

    /// Bytes of device memory that nobody holds, after the dead have been buried.
    pub fn available(&self, gpu: usize) -> u64 {
        let mut guard = self.lock();
        self.reclaim_dead(&mut guard);
        guard.unused(heap_number(gpu, HeapKind::Vram))
    }

    /// Everything that this process holds goes: called when it ends. The last one turns off the light.
    pub fn release_all(&self) {
        // Nobody attaches from here on.
        let lock = os::open(&self.root.join("lock"), libc::O_RDWR, 0).ok();
        // SAFETY: a descriptor of ours, closed at the end of this function.
        let locked = lock
            .as_ref()
            .is_some_and(|lock| unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) } == 0);
        // Another may have removed this machine while we waited, and a new one may be in its place, which is not ours to remove.
        let there = fs::metadata(self.root.join("state"))
            .map(|found| (found.dev(), found.ino()))
            .ok();
        let locked = locked && there.is_some() && os::identity(self.file.as_raw_fd()) == there;
        let mut guard = self.lock();
        self.reclaim_slot(&mut guard, self.slot);
        drop(guard);
        // Before the others look: two that end together must not each leave it to the other.
        drop_lock(&self.file, self.slot);
        if locked && !locked_by_other(&self.file, 0, SLOTS) {
            // Whoever looks on from outside (`cma.rs`) sees that this machine is over.
            self.state().magic.store(0, Ordering::Release);
            remove_machine(&self.root);
        }
    }

    /// Reclaims what dead processes held, and exported buffers whose last descriptor has been closed.
    fn reclaim_dead(&self, guard: &mut Guard<'_>) {
        for slot in 0..SLOTS {
            let pid = self.state().slots[slot].pid.load(Ordering::Relaxed);
            if pid != 0 && slot != self.slot && !locked_by_other(&self.file, slot, 1) {
                log::debug!("reclaiming what process {pid} held");
                self.reclaim_slot(guard, slot);
            }
        }
        for index in guard.indices() {
            let extent = guard.entry(index);
            if extent.id != 0 && extent.exported != 0 && !extent.held() {
                self.free_if_unheld(guard, index);
            }
        }
    }

    fn reclaim_slot(&self, guard: &mut Guard<'_>, slot: usize) {
        self.state().slots[slot].pid.store(0, Ordering::Release);
        for index in guard.indices() {
            let extent = guard.entry_mut(index);
            if extent.id == 0 {
                continue;
            }
            if extent.owner == slot as u32 {
                extent.ipc_key = [0; 4];
                extent.owner = NONE;
            }
            if extent.unhold(slot) {
                self.free_if_unheld(guard, index);
            }
        }
    }

    fn free_if_unheld(&self, guard: &mut Guard<'_>, index: u32) {
        let extent = *guard.entry(index);
        if extent.held() {
            return;
        }
        if extent.exported != 0 {
            let path = self.dmabuf_path(extent.id);
            if let Ok(file) = os::open(&path, libc::O_RDONLY, 0) {
                // SAFETY: a descriptor of ours. The lock fails while any dma-buf descriptor is open anywhere.
                if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
                    return;
                }
                let _ = fs::remove_file(path);
            }
        }
        // Wiped before it can be given out again, as the driver does on release.
        os::punch_hole(&self.heaps[extent.gpu()], extent.offset, extent.size);
        guard.unlink(index);
    }
}

/// Makes the folder if need be and takes its attach lock, which goes with the descriptor.
///
/// Only the last part of the path is made: a launcher that has removed the folder around it wants no machine there any more.
fn enter(root: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    loop {
        match fs::DirBuilder::new().mode(0o700).create(root) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let opened = root.canonicalize().and_then(|root| {
            let path = root.join("lock");
            Ok((root, os::open(&path, libc::O_RDWR | libc::O_CREAT, 0o600)?, path))
        });
        let (root, lock, path) = match opened {
            Ok(opened) => opened,
            // The last process of the machine that was here has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        // SAFETY: a descriptor of ours.
        os::check(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) })?;
        let there = fs::metadata(&path).map(|found| (found.dev(), found.ino())).ok();
        if there.is_some() && os::identity(lock.as_raw_fd()) == there {
            return Ok((root, lock));
        }
    }
}

/// Removes what this library makes in a machine's folder, and the folder if nothing else is in it.
fn remove_machine(root: &Path) {
    for folder in ["sys", "proc", "dmabuf", crate::named::FOLDER] {
        let _ = fs::remove_dir_all(root.join(folder));
    }
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if is_device_file(&entry.file_name()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_file(root.join("state"));
    // The lock last: until then others wait for it, and then they find that it is gone and start over.
    let _ = fs::remove_file(root.join("lock"));
    let _ = fs::remove_dir(root);
}

/// Device memory that does not fit into the file system ends in SIGBUS: better to have said so.
fn warn_if_small(root: &Path) {
    const LITTLE: u64 = 512 << 20;
    let Ok(path) = std::ffi::CString::new(root.as_os_str().as_encoded_bytes()) else {
        return;
    };
    // SAFETY: a NUL-terminated path, and plain data for the kernel to fill.
    let free = unsafe {
        let mut stat: libc::statvfs64 = std::mem::zeroed();
        if libc::statvfs64(path.as_ptr(), &raw mut stat) != 0 {
            return;
        }
        stat.f_bavail.saturating_mul(stat.f_frsize)
    };
    if free < LITTLE {
        log::warn!(
            "{} has {} MiB left for all device memory: use another VGPU_ROOT",
            root.display(),
            free >> 20
        );
    }
}

fn describe(config: &MachineConfig) -> (u32, u32, u64, u32) {
    let target = match config.target {
        cdna::Target::Gfx90a => 0x90a,
        cdna::Target::Gfx942 => 0x942,
    };
    let modes = [config.bar == Bar::Small, config.link == Link::Pcie, config.svm];
    let modes = (0..).zip(modes).map(|(bit, on)| u32::from(on) << bit).sum();
    (config.gpus, target, config.memory, modes)
}

/// Makes a fresh state.
///
/// # Safety
/// `state` is mapped and no other process uses it.
unsafe fn initialise(state: *mut State, config: &MachineConfig, layout: HeapLayout) -> io::Result<()> {
    // SAFETY: the caller vouches for exclusive access, and any bits are valid in it.
    let state = unsafe { &mut *state };
    state.magic.store(0, Ordering::Release);
    for slot in &mut state.slots {
        slot.pid.store(0, Ordering::Relaxed);
    }
    (state.gpus, state.target, state.memory, state.modes) = describe(config);
    // SAFETY: the attributes live on this stack, and the mutex in memory that nobody else uses yet.
    let made = unsafe {
        let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
        libc::pthread_mutexattr_init(&raw mut attributes);
        libc::pthread_mutexattr_setpshared(&raw mut attributes, libc::PTHREAD_PROCESS_SHARED);
        libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
        state.mutex = std::mem::zeroed();
        libc::pthread_mutex_init(&raw mut state.mutex, &raw const attributes)
    };
    if made != 0 {
        return Err(io::Error::from_raw_os_error(made));
    }
    // SAFETY: sysconf has no preconditions.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) } as u64;
    state
        .tables
        .reset(layout, config.allocatable(), pages.saturating_mul(PAGE));
    state.magic.store(MAGIC, Ordering::Release);
    Ok(())
}

fn flock_range(slot: usize, count: usize) -> libc::flock {
    // SAFETY: plain data.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock.l_start = slot as i64;
    lock.l_len = count as i64;
    lock
}

/// Whether another process holds a lock in the range.
fn locked_by_other(file: &OwnedFd, slot: usize, count: usize) -> bool {
    let mut lock = flock_range(slot, count);
    // SAFETY: `lock` outlives the call.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) == 0 && lock.l_type != libc::F_UNLCK as i16 }
}

/// Takes a slot's lock, for as long as this process lives.
fn set_lock(file: &OwnedFd, slot: usize) -> bool {
    let lock = flock_range(slot, 1);
    // SAFETY: `lock` outlives the call.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) == 0 }
}

/// Gives a slot's lock back.
fn drop_lock(file: &OwnedFd, slot: usize) {
    let mut lock = flock_range(slot, 1);
    lock.l_type = libc::F_UNLCK as i16;
    // SAFETY: `lock` outlives the call.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) };
}

/// Whether a name in `VGPU_ROOT` is that of a GPU's file.
pub fn is_device_file(name: &std::ffi::OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix("gpu"))
        .is_some_and(|n| n.parse::<u32>().is_ok())
}

/// A look at a machine from outside: which of its processes map device memory.
pub struct Viewer {
    state: *const State,
    /// Kept open: closing any descriptor of the state file would drop this process's own slot lock.
    _file: OwnedFd,
}

// SAFETY: read-only shared memory, atomics only.
unsafe impl Send for Viewer {}
// SAFETY: as above.
unsafe impl Sync for Viewer {}

impl Viewer {
    /// Looks at the machine of `root`, if there is one.
    pub fn open(root: &Path) -> Option<Self> {
        let file = os::open(&root.join("state"), libc::O_RDWR, 0).ok()?;
        let len = fs::metadata(root.join("state")).ok()?.len();
        if len < size_of::<State>() as u64 {
            return None;
        }
        let state = os::map_shared(&file, size_of::<State>(), 0).ok()?.cast_const().cast();
        Some(Self { state, _file: file })
    }

    /// The machine is over: the last process has removed it.
    pub fn over(&self) -> bool {
        // SAFETY: mapped for the life of the viewer, and atomic.
        unsafe { &(*self.state).magic }.load(Ordering::Acquire) != MAGIC
    }

    /// The mapping counter of a process and when it changed last, if it uses this machine.
    pub fn mappings(&self, pid: i32) -> Option<(u64, u64)> {
        // SAFETY: mapped for the life of the viewer; these fields are atomics.
        let (magic, slots) = unsafe { (&(*self.state).magic, &(*self.state).slots) };
        if magic.load(Ordering::Acquire) != MAGIC {
            return None;
        }
        let slot = slots.iter().find(|slot| slot.pid.load(Ordering::Acquire) == pid)?;
        Some((
            slot.mappings.load(Ordering::Acquire),
            slot.mapped_at.load(Ordering::Relaxed),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cdna::Target;

    const CONFIG: MachineConfig = MachineConfig {
        gpus: 2,
        target: Target::Gfx90a,
        memory: 64 << 20,
        bar: Bar::Large,
        link: Link::Xgmi,
        svm: true,
    };

    fn machine(name: &str) -> Shared {
        let root = std::env::temp_dir().join(format!("vgpu-test-{}-{name}", os::pid()));
        Shared::attach(&root, &CONFIG, |_| Ok(())).unwrap()
    }

    fn done(shared: Shared) {
        fs::remove_dir_all(shared.root()).unwrap();
    }

    #[test]
    fn memory_is_counted_exactly_and_comes_back() {
        let shared = machine("exact");
        let all = CONFIG.allocatable();
        assert_eq!(all, 56 << 20, "8 MiB are for page tables");
        assert_eq!(shared.available(0), all);
        let (a, _) = shared.allocate(0, HeapKind::Vram, 40 << 20, 0).unwrap();
        let (b, _) = shared.allocate(0, HeapKind::Vram, 1, 0).unwrap();
        assert_eq!(shared.available(0), all - (40 << 20) - 4096);
        assert_eq!(shared.available(1), all, "the other GPU is untouched");
        assert!(
            shared.allocate(0, HeapKind::Vram, all - (40 << 20), 0).is_none(),
            "over the limit"
        );
        shared.release(a);
        shared.release(b);
        assert_eq!(shared.available(0), CONFIG.allocatable());
        done(shared);
    }

    #[test]
    fn fragmentation_never_refuses_what_the_count_allows() {
        let shared = machine("fragments");
        let small: Vec<_> = (0..CONFIG.allocatable() >> 20)
            .map(|_| shared.allocate(0, HeapKind::Vram, 1 << 20, 0).unwrap().0)
            .collect();
        for (i, extent) in small.iter().enumerate() {
            if i % 2 == 0 {
                shared.release(*extent);
            }
        }
        assert!(
            shared
                .allocate(0, HeapKind::Vram, CONFIG.allocatable() / 2, 0)
                .is_some()
        );
        done(shared);
    }

    #[test]
    fn extents_never_overlap() {
        let shared = machine("overlap");
        let mut live: Vec<(ExtentRef, u64, u64)> = Vec::new();
        let mut seed = 1u64;
        for _ in 0..4000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            if seed >> 62 == 0 && !live.is_empty() {
                let (extent, ..) = live.swap_remove((seed >> 8) as usize % live.len());
                shared.release(extent);
            } else {
                let size = 1 + (seed >> 40) % (3 << 20);
                if let Some((extent, offset)) = shared.allocate(1, HeapKind::Vram, size, 0) {
                    assert!(live.iter().all(|(_, o, s)| offset + size <= *o || o + s <= offset));
                    live.push((extent, offset, size));
                }
            }
        }
        done(shared);
    }

    #[test]
    fn a_rebuild_finds_everything_again() {
        let shared = machine("rebuild");
        let (a, _) = shared.allocate(0, HeapKind::Vram, 5 << 20, 0).unwrap();
        let (b, _) = shared.allocate(0, HeapKind::Gtt, 3 << 20, 0).unwrap();
        shared.lock().rebuild();
        assert_eq!(shared.available(0), CONFIG.allocatable() - (5 << 20));
        shared.release(a);
        shared.release(b);
        assert_eq!(shared.available(0), CONFIG.allocatable());
        done(shared);
    }

    #[test]
    fn a_process_that_dies_with_the_lock_leaves_a_usable_table() {
        let shared = machine("killed");
        let (a, _) = shared.allocate(0, HeapKind::Vram, 5 << 20, 0).unwrap();
        // SAFETY: the child touches the shared table only, and ends without running anything of the parent's.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let mut guard = shared.lock();
                guard.unlink(a.index);
                std::mem::forget(guard);
                libc::_exit(0);
            }
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert_eq!(
            shared.available(0),
            CONFIG.allocatable(),
            "what the dead had done counts"
        );
        let (b, _) = shared.allocate(0, HeapKind::Vram, CONFIG.allocatable(), 0).unwrap();
        shared.release(b);
        shared.release(a);
        assert_eq!(shared.available(0), CONFIG.allocatable());
        done(shared);
    }

    #[test]
    fn the_last_process_removes_everything() {
        let shared = machine("last");
        let root = shared.root().to_owned();
        shared.allocate(0, HeapKind::Vram, 5 << 20, 0).unwrap();
        std::fs::create_dir(root.join(crate::named::FOLDER)).unwrap();
        // SAFETY: the child attaches as a process of its own, leaves, and ends without running anything of the parent's.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                let other = Shared::attach(&root, &CONFIG, |_| Ok(()));
                let attached = other.map(|other| other.release_all()).is_ok();
                libc::_exit(i32::from(!attached || !root.join("state").exists()));
            }
            let mut status = 0;
            libc::waitpid(child, &raw mut status, 0);
            status
        };
        assert_eq!(
            status, 0,
            "another process comes and goes, and leaves what the first one uses"
        );
        shared.release_all();
        assert!(
            !root.exists(),
            "{:?}",
            fs::read_dir(&root).unwrap().flatten().collect::<Vec<_>>()
        );
        let again = machine("last");
        assert_eq!(again.available(0), CONFIG.allocatable());
        done(again);
    }

    #[test]
    fn an_ipc_handle_dies_with_its_buffer() {
        let shared = machine("ipc");
        let (a, _) = shared.allocate(0, HeapKind::Vram, 1 << 20, 0).unwrap();
        let key = shared.ipc_export(a, 7).unwrap();
        assert_eq!(shared.ipc_export(a, 7), Some(key), "the same handle each time");
        assert_eq!(shared.lock().find_ipc(key), Some(a.index));
        shared.ipc_withdraw(a);
        assert_eq!(shared.lock().find_ipc(key), None);
        assert_eq!(shared.lock().find_ipc([0; 4]), None);
        assert_eq!(shared.lock().find_ipc([u32::MAX; 4]), None);
        done(shared);
    }
}
