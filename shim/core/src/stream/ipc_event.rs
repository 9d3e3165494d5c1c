//! Events of several processes: counters in a page of memory that all of them map.
//!
//! Record `k` of an event, in whichever process, stores `k` behind the stream's work so far, as a stream memory operation;
//! who waits for that record waits for the value. Words are used in turn, so that a later record that ends sooner does not
//! pass for an earlier one; a record waits for the one that used its word before.
//!
//! ```text
//! page   64 slots of 2048 bytes, a file of the exporter's in /dev/shm
//! slot   0 u64 generation    8 u64 records so far    16 u32 users, of all processes    64.. u64 passed[64]    576.. u64 exporter's[64]
//!        passed[k % 64] = k when record k has been passed; exporter's[k % 64] = k when the exporter has made it
//! ```
//!
//! The file is a [`SharedFile`]: it is known to be orphaned when its maker has ended, however.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::memop::{Compare, Condition, Target, Width};
use super::stream::Stream;
use crate::abi::{Error, Result};
use crate::hsa::fault;
use crate::memory::ipc::{checksum, identity, random};
use crate::shared_file::SharedFile;
use crate::{device, hsa};

/// Bytes of a `cudaIpcEventHandle_t`.
pub const HANDLE_SIZE: usize = 64;

/// What the files hold.
const KIND: &str = "event";
const SLOTS: usize = 64;
const SLOT: usize = 2048;
const PAGE: usize = SLOTS * SLOT;
/// Records of one event that may be on their way.
const WORDS: u64 = 64;
const PASSED: usize = 64;
const EXPORTERS: usize = PASSED + WORDS as usize * 8;

/// How often who waits looks whether the other process lives.
const ALIVE: Duration = Duration::from_millis(100);

/// A decoded handle.
///
/// ```text
///  0..16  the random part of the page's name        16..24  generation of the slot
/// 24..28  the slot                                  28..32  0
/// 32..40  identity of the exporting process         40..56  0
/// 56..60  "RGE1"                                    60..64  checksum of the bytes before
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Handle {
    page: [u8; 16],
    generation: u64,
    slot: u32,
    exporter: u64,
}

const MAGIC: [u8; 4] = *b"RGE1";

impl Handle {
    fn encode(&self) -> [u8; HANDLE_SIZE] {
        let mut bytes = [0; HANDLE_SIZE];
        bytes[..16].copy_from_slice(&self.page);
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.slot.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.exporter.to_le_bytes());
        bytes[56..60].copy_from_slice(&MAGIC);
        let sum = checksum(&bytes[..60]);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HANDLE_SIZE]) -> Option<Self> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?));
        let handle = Self {
            page: bytes[..16].try_into().ok()?,
            generation: long(16)?,
            slot: long(24)? as u32,
            exporter: long(32)?,
        };
        // Mark, checksum and zeroes included.
        ((handle.slot as usize) < SLOTS && handle.encode() == *bytes).then_some(handle)
    }
}

/// A page of slots, the exporter's own or one that was opened.
struct Page {
    id: [u8; 16],
    /// Open for the lock that says that its process lives.
    file: SharedFile,
    base: NonNull<u8>,
    /// Where GPUs see it; `None` where they cannot, and the host stores in their place.
    device_base: OnceLock<Option<u64>>,
}

// SAFETY: shared memory that is only touched by atomics.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// A new page of this process.
    fn create() -> io::Result<Self> {
        let id = random();
        Self::map(id, SharedFile::create(KIND, &id, PAGE as u64)?)
    }

    /// Another process's page. Fails when that process has ended.
    fn open(id: [u8; 16]) -> io::Result<Self> {
        let file = SharedFile::open(KIND, &id)?;
        if file.file().metadata()?.len() != PAGE as u64 {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        Self::map(id, file)
    }

    fn map(id: [u8; 16], file: SharedFile) -> io::Result<Self> {
        // SAFETY: a fresh mapping of a file that is PAGE bytes long.
        let base = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.file().as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            id,
            file,
            base: NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            device_base: OnceLock::new(),
        })
    }

    fn word(&self, slot: u32, at: usize) -> &AtomicU64 {
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned: slots and offsets are multiples of 8.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(slot as usize * SLOT + at).cast()) }
    }

    fn users(&self, slot: u32) -> &AtomicU32 {
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(slot as usize * SLOT + 16).cast()) }
    }

    /// Where GPUs see the page: pinned at the first use.
    fn device_base(&self) -> Option<u64> {
        *self.device_base.get_or_init(|| {
            let devices = device::all().ok()?;
            let agents: Vec<_> = devices.iter().map(|device| device.agent).collect();
            let pool = devices.first()?.host_pool;
            // SAFETY: the page stays mapped until `drop`, which ends this.
            let locked = unsafe { hsa::memory::lock(self.base, PAGE, &agents, pool) };
            match locked {
                Ok(address) => Some(address.as_ptr().addr() as u64),
                Err(error) => {
                    log::info!("GPUs cannot use the page of interprocess events ({error}): the host records them");
                    None
                }
            }
        })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(Some(_)) = self.device_base.get() {
            let _ = hsa::memory::unlock(self.base);
        }
        // SAFETY: the mapping is this page's own; events, and operations on their way, hold references to it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), PAGE) };
    }
}

/// This process's own pages, kept to its end, and those it has opened.
static OWN: Mutex<Vec<Arc<Page>>> = Mutex::new(Vec::new());
static OPENED: Mutex<Vec<Weak<Page>>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event's place in a page. Counted in the page itself, so that it is not used anew while some process has it.
pub struct Slot {
    page: Arc<Page>,
    index: u32,
    generation: u64,
}

impl Slot {
    /// A place for a new event of this process.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when there is no shared memory.
    pub fn create() -> Result<Arc<Self>> {
        let mut own = locked(&OWN);
        for page in own.iter() {
            if let Some(slot) = Self::take(page) {
                return Ok(slot);
            }
        }
        let page = (0..8).find_map(|_| match Page::create() {
            Ok(page) => Some(page),
            Err(error) => {
                log::debug!("a page for interprocess events: {error}");
                None
            }
        });
        let page = Arc::new(page.ok_or(Error::MEMORY_ALLOCATION)?);
        own.push(Arc::clone(&page));
        Self::take(&page).ok_or(Error::MEMORY_ALLOCATION)
    }

    fn take(page: &Arc<Page>) -> Option<Arc<Self>> {
        let free = |index: &u32| {
            let users = page.users(*index);
            users
                .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        let index = (0..SLOTS as u32).find(free)?;
        for at in (PASSED..EXPORTERS + WORDS as usize * 8).step_by(8).chain([8]) {
            page.word(index, at).store(0, Ordering::Release);
        }
        let generation = page.word(index, 0).fetch_add(1, Ordering::AcqRel) + 1;
        Some(Arc::new(Self {
            page: Arc::clone(page),
            index,
            generation,
        }))
    }

    /// The bytes that another process opens.
    pub fn export(&self) -> [u8; HANDLE_SIZE] {
        Handle {
            page: self.page.id,
            generation: self.generation,
            slot: self.index,
            exporter: identity(),
        }
        .encode()
    }

    /// The place behind a handle.
    ///
    /// # Errors
    /// MAP_BUFFER_OBJECT_FAILED (as recorded) for bytes that are no handle and when the exporter or the event is gone,
    /// DEVICE_UNINITIALIZED in the exporting process itself.
    pub fn open(bytes: &[u8; HANDLE_SIZE]) -> Result<Arc<Self>> {
        let handle = Handle::decode(bytes).ok_or(Error::MAP_BUFFER_OBJECT_FAILED)?;
        if handle.exporter == identity() {
            return Err(Error::DEVICE_UNINITIALIZED);
        }
        let mut opened = locked(&OPENED);
        opened.retain(|page| page.strong_count() > 0);
        let known = opened
            .iter()
            .filter_map(Weak::upgrade)
            .find(|page| page.id == handle.page && page.file.is_of_this_user());
        let page = match known {
            Some(page) => page,
            None => {
                let page = Arc::new(Page::open(handle.page).map_err(|error| {
                    log::info!("an event of another process cannot be opened: {error}");
                    Error::MAP_BUFFER_OBJECT_FAILED
                })?);
                opened.push(Arc::downgrade(&page));
                page
            }
        };
        let more = |users: u32| (users > 0).then_some(users + 1);
        if page
            .users(handle.slot)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .is_err()
        {
            return Err(Error::MAP_BUFFER_OBJECT_FAILED);
        }
        let slot = Self {
            page,
            index: handle.slot,
            generation: handle.generation,
        };
        // Given back by `drop` if another event is there by now.
        if slot.page.word(slot.index, 0).load(Ordering::Acquire) != slot.generation {
            return Err(Error::MAP_BUFFER_OBJECT_FAILED);
        }
        Ok(Arc::new(slot))
    }

    /// The number of the last record in any process; 0 before the first.
    pub fn recorded(&self) -> u64 {
        self.page.word(self.index, 8).load(Ordering::Acquire)
    }

    fn passed(&self, record: u64) -> &AtomicU64 {
        self.page.word(self.index, PASSED + (record % WORDS) as usize * 8)
    }

    /// Record `record` has been passed.
    pub fn is_passed(&self, record: u64) -> bool {
        let holds = Compare::GreaterOrEqual.holds(self.passed(record).load(Ordering::Acquire), record, Width::Eight);
        record == 0 || holds
    }

    fn exporters(&self, record: u64) -> &AtomicU64 {
        self.page.word(self.index, EXPORTERS + (record % WORDS) as usize * 8)
    }

    /// A record that will never be passed, because the process that made it has ended. Recorded: real CUDA leaves who waits for it
    /// waiting, and nothing else of the survivor is touched.
    pub(super) fn is_lost(&self, record: u64) -> bool {
        let lost = self.exporters(record).load(Ordering::Acquire) == record && self.page.file.is_orphan();
        // Passed just before the end.
        lost && !self.is_passed(record)
    }

    fn target(&self, record: u64, stream: &Stream) -> Target {
        let host = self.passed(record).as_ptr() as u64;
        let base = self.page.base.as_ptr() as u64;
        let device = self.page.device_base().map(|device_base| device_base + (host - base));
        Target::host_word(stream.device(), device, host)
    }

    fn condition(&self, record: u64, stream: &Stream) -> Condition {
        Condition::new(
            self.target(record, stream),
            record,
            Width::Eight,
            Compare::GreaterOrEqual,
        )
    }

    /// Records the event in `stream` and returns the record's number.
    ///
    /// # Errors
    /// As [`Stream::write_memory`].
    pub fn record(self: &Arc<Self>, stream: &Stream) -> Result<u64> {
        let record = self.page.word(self.index, 8).fetch_add(1, Ordering::AcqRel) + 1;
        if self.page.file.is_own() {
            self.exporters(record).store(record, Ordering::Release);
        }
        let enqueue = || {
            if let Some(before) = record.checked_sub(WORDS).filter(|&before| before > 0) {
                stream.wait_for_memory(self.condition(before, stream))?;
            }
            let target = self.target(record, stream);
            if target.is_for_device() {
                return stream.write_memory(&target, record, vec![Box::new(Arc::clone(self))]);
            }
            let slot = Arc::clone(self);
            stream.host_call(move |_| slot.passed(record).store(record, Ordering::Release))
        };
        enqueue().inspect_err(|_| {
            // Nobody may wait for a record that does not come.
            self.passed(record).store(record, Ordering::Release);
        })?;
        Ok(record)
    }

    /// Makes later operations of `stream` wait for record `record`.
    ///
    /// # Errors
    /// As [`Stream::wait_for_memory`].
    pub fn wait_in(self: &Arc<Self>, record: u64, stream: &Stream) -> Result<()> {
        if self.is_passed(record) {
            return Ok(());
        }
        let condition = self.condition(record, stream);
        stream.wait_for_memory_with(condition, vec![Box::new(Arc::clone(self))])
    }

    /// Waits for record `record` on the host.
    ///
    /// # Errors
    /// The process's fault; UNKNOWN when the exporter has ended with the record on its way.
    pub fn wait(&self, record: u64) -> Result<()> {
        let start = Instant::now();
        let mut looked = Duration::ZERO;
        while !self.is_passed(record) {
            fault::check()?;
            let waited = start.elapsed();
            if waited > looked + ALIVE {
                looked = waited;
                if self.is_lost(record) {
                    log::error!("waiting for an event of a process that has ended before its GPU had passed it");
                    return Err(Error::UNKNOWN);
                }
            }
            if waited < Duration::from_micros(20) {
                core::hint::spin_loop();
            } else {
                std::thread::sleep((waited / 8).clamp(Duration::from_micros(5), Duration::from_millis(1)));
            }
        }
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.page.users(self.index).fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_survives_its_journey_and_any_change_is_noticed() {
        let handle = Handle {
            page: *b"0123456789abcdef",
            generation: 7,
            slot: 63,
            exporter: 0xfeed,
        };
        let good = handle.encode();
        assert_eq!(Handle::decode(&good), Some(handle));
        for at in 0..HANDLE_SIZE {
            let mut bad = good;
            bad[at] ^= 0x40;
            assert_eq!(Handle::decode(&bad), None, "byte {at}");
        }
        assert_eq!(Handle::decode(&[0; HANDLE_SIZE]), None);
        assert_eq!(Handle::decode(&Handle { slot: 64, ..handle }.encode()), None);
    }

    #[test]
    fn a_slot_is_used_anew_only_when_all_users_are_gone() {
        let Ok(page) = Page::create() else { return };
        let page = Arc::new(page);
        let all: Vec<_> = (0..SLOTS).map(|_| Slot::take(&page).unwrap()).collect();
        assert!(Slot::take(&page).is_none());
        page.users(5).fetch_add(1, Ordering::AcqRel);
        drop(all);
        let again: Vec<_> = std::iter::from_fn(|| Slot::take(&page)).collect();
        assert_eq!(again.len(), SLOTS - 1);
        assert!(again.iter().all(|slot| slot.index != 5 && slot.generation == 2));
        page.users(5).store(0, Ordering::Release);
    }
}
