//! The kernel cache on disk: content-addressed, shared by the ranks of a node and by later runs.
//!
//! ```text
//! <folder>/v1/lock/3fa        one lock per 1/4096 of the keys: one compile per kernel and node
//! <folder>/v1/3f/a0c1...      entries, named by their key
//!
//! entry  0 "RGKCACHE" | 8 u32 format | 12 u32 0 | 16 key (32) | 48 u64 length | 56 SHA-256 of the payload (32) | payload
//! ```
//!
//! Nothing is believed: the folder and every file must belong to the user and be writable by nobody else, links are
//! not followed, and an entry whose header, key or checksum is wrong is removed and made again. A folder that cannot be
//! used costs one warning and the caching, never the launch.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"RGKCACHE";
const FORMAT: u32 = 1;
const HEADER: usize = 88;
/// Largest entry that is read back.
const MAX_ENTRY: u64 = 1 << 30;

/// A content address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// Hashes parts so that their boundaries count.
    pub fn of<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    fn hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// The cache in one folder.
pub struct Cache {
    path: PathBuf,
    /// `<folder>/v1`, opened and checked.
    folder: OwnedFd,
    limit: u64,
    /// Bytes stored since the size was last looked at.
    grown: AtomicU64,
    warned: AtomicBool,
}

/// Holds the lock of a key; dropped, it lets the next process look.
pub struct Lock {
    _file: Option<OwnedFd>,
}

impl Cache {
    /// Opens the cache, creating its folder; `None`, with one warning, where the folder cannot be trusted or written.
    pub fn open(path: &Path, limit: u64) -> Option<Self> {
        let open = || -> io::Result<OwnedFd> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            let top = open_folder(None, &c_path(path)?)?;
            let folder = make_folder(&top, c"v1")?;
            make_folder(&folder, c"lock")?;
            Ok(folder)
        };
        match open() {
            Ok(folder) => Some(Self {
                path: path.to_owned(),
                folder,
                limit,
                // The first store looks at the size.
                grown: AtomicU64::new(u64::MAX / 2),
                warned: AtomicBool::new(false),
            }),
            Err(error) => {
                log::warn!("kernel cache {} is not used: {error}", path.display());
                None
            }
        }
    }

    fn warn(&self, error: &io::Error) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            log::warn!("kernel cache {}: {error}", self.path.display());
        }
    }

    /// Reads an entry. Anything wrong with it counts as absent.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        match self.read(key) {
            Ok(payload) => Some(payload),
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.warn(&error);
                }
                None
            }
        }
    }

    fn read(&self, key: &Key) -> io::Result<Vec<u8>> {
        let (shard, name) = names(key);
        let folder = open_folder(Some(&self.folder), &shard)?;
        let mut file = File::from(open_at(&folder, &name, libc::O_RDONLY)?);
        let metadata = file.metadata()?;
        trusted(&metadata, "entry")?;
        if !metadata.is_file() || metadata.len() > MAX_ENTRY {
            return Err(io::Error::other(format!("entry {} is no file of ours", key.hex())));
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        (&mut file).take(MAX_ENTRY).read_to_end(&mut bytes)?;
        match payload(&bytes, key) {
            Some(_) => {
                bytes.drain(..HEADER);
                // A hit makes the entry young again: eviction takes the oldest. Once a day is enough.
                let age = metadata.modified().ok().and_then(|m| m.elapsed().ok());
                if age.is_some_and(|a| a > Duration::from_secs(86400)) {
                    let _ = file.set_modified(SystemTime::now());
                }
                Ok(bytes)
            }
            None => {
                // SAFETY: a valid folder and a NUL-terminated name.
                unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), 0) };
                Err(io::Error::other(format!(
                    "entry {} was damaged and is made again",
                    key.hex()
                )))
            }
        }
    }

    /// Stores an entry; a failure costs only the next run's time.
    pub fn put(&self, key: &Key, payload: &[u8]) {
        if let Err(error) = self.write(key, payload) {
            self.warn(&error);
        }
        let size = (payload.len() + HEADER) as u64;
        let grown = self.grown.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if grown > self.limit / 16 {
            self.grown.store(0, Ordering::Relaxed);
            self.evict();
        }
    }

    fn write(&self, key: &Key, payload: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (shard, name) = names(key);
        let folder = make_folder(&self.folder, &shard)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let stamp = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |d| d.subsec_nanos());
        // Ranks of different nodes may share the folder and have equal process ids.
        let temporary = CString::new(format!("tmp.{}.{number}.{stamp:x}", std::process::id()))?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let mut file = File::from(open_at(&folder, &temporary, flags)?);
        let mut header = [0u8; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[16..48].copy_from_slice(&key.0);
        header[48..56].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        header[56..].copy_from_slice(&Sha256::digest(payload));
        let result = file
            .write_all(&header)
            .and_then(|()| file.write_all(payload))
            .and_then(|()| {
                let fd = folder.as_raw_fd();
                // SAFETY: valid folders and NUL-terminated names. Rename: readers see all of the entry or none.
                match unsafe { libc::renameat(fd, temporary.as_ptr(), fd, name.as_ptr()) } {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        if result.is_err() {
            // SAFETY: a valid folder and a NUL-terminated name.
            unsafe { libc::unlinkat(folder.as_raw_fd(), temporary.as_ptr(), 0) };
        }
        result
    }

    /// Takes the lock of a key, waiting at most `patience`: past it, or where the file system has no locks, work goes
    /// on without (two processes then compile the same kernel, which is only slower).
    pub fn lock(&self, key: &Key, patience: Duration) -> Lock {
        let try_lock = || -> io::Result<OwnedFd> {
            let folder = open_folder(Some(&self.folder), c"lock")?;
            let name = CString::new(&key.hex()[..3])?;
            let file = open_at(&folder, &name, libc::O_RDWR | libc::O_CREAT)?;
            let deadline = Instant::now() + patience;
            let mut pause = Duration::from_millis(1);
            loop {
                // SAFETY: a valid descriptor.
                if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                    return Ok(file);
                }
                let error = io::Error::last_os_error();
                let held = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                if !held || Instant::now() > deadline {
                    return Err(error);
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
        };
        Lock {
            _file: try_lock()
                .inspect_err(|error| log::debug!("kernel cache lock: {error}"))
                .ok(),
        }
    }

    /// Bytes and entries on disk.
    pub fn usage(&self) -> (u64, usize) {
        let entries = self.entries();
        (entries.iter().map(|e| e.size).sum(), entries.len())
    }

    /// Removes every entry; how many there were.
    pub fn clear(&self) -> usize {
        self.entries()
            .iter()
            .filter(|entry| std::fs::remove_file(&entry.path).is_ok())
            .count()
    }

    fn entries(&self) -> Vec<Entry> {
        let root = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        let mut entries = Vec::new();
        for shard in std::fs::read_dir(&root).into_iter().flatten().flatten() {
            if shard.file_name().len() != 2 {
                continue;
            }
            for entry in std::fs::read_dir(shard.path()).into_iter().flatten().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                if let (true, Ok(modified)) = (metadata.is_file(), metadata.modified()) {
                    let temporary = entry.file_name().as_bytes().starts_with(b"tmp.");
                    entries.push(Entry {
                        path: entry.path(),
                        size: metadata.len(),
                        modified,
                        temporary,
                    });
                }
            }
        }
        entries
    }

    /// Drops the oldest entries until four fifths of the limit are left, and what writers that died left behind.
    fn evict(&self) {
        let mut entries = self.entries();
        let hour_ago = SystemTime::now()
            .checked_sub(Duration::from_secs(3600))
            .unwrap_or(SystemTime::UNIX_EPOCH);
        entries.retain(|entry| {
            let dead = entry.temporary && entry.modified < hour_ago;
            if dead {
                let _ = std::fs::remove_file(&entry.path);
            }
            !entry.temporary
        });
        let mut total: u64 = entries.iter().map(|e| e.size).sum();
        if total <= self.limit {
            return;
        }
        entries.sort_by_key(|e| e.modified);
        for entry in entries {
            if total <= self.limit / 5 * 4 {
                break;
            }
            if std::fs::remove_file(&entry.path).is_ok() {
                total -= entry.size;
            }
        }
    }
}

struct Entry {
    path: PathBuf,
    size: u64,
    modified: SystemTime,
    temporary: bool,
}

/// The payload of an entry, if all of it is as it was written.
fn payload<'b>(bytes: &'b [u8], key: &Key) -> Option<&'b [u8]> {
    let (header, payload) = bytes.split_at_checked(HEADER)?;
    let right = header[..8] == *MAGIC
        && header[8..12] == FORMAT.to_le_bytes()
        && header[16..48] == key.0
        && header[48..56] == (payload.len() as u64).to_le_bytes()
        && header[56..] == Sha256::digest(payload)[..];
    right.then_some(payload)
}

fn names(key: &Key) -> (CString, CString) {
    let hex = key.hex();
    // Hexadecimal digits hold no NUL.
    (
        CString::new(&hex[..2]).unwrap_or_default(),
        CString::new(&hex[2..]).unwrap_or_default(),
    )
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Ours, and writable by nobody else.
fn trusted(metadata: &std::fs::Metadata, what: &str) -> io::Result<()> {
    // SAFETY: geteuid cannot fail.
    let user = unsafe { libc::geteuid() };
    if metadata.uid() != user {
        return Err(io::Error::other(format!("{what} belongs to user {}", metadata.uid())));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!(
            "{what} can be written by others (mode {:o})",
            metadata.mode() & 0o777
        )));
    }
    Ok(())
}

fn open_at(folder: &OwnedFd, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: a valid folder and a NUL-terminated name.
    let fd = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: openat returned a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn open_folder(parent: Option<&OwnedFd>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let parent = parent.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
    // SAFETY: a valid folder and a NUL-terminated name.
    let fd = unsafe { libc::openat(parent, name.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: openat returned a new descriptor.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    trusted(&file.metadata()?, "the folder")?;
    Ok(file.into())
}

fn make_folder(parent: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a valid folder and a NUL-terminated name. It may exist: opening it checks it.
    unsafe { libc::mkdirat(parent.as_raw_fd(), name.as_ptr(), 0o700) };
    open_folder(Some(parent), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("regauge-cache-test-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn entry(&self, key: &Key) -> PathBuf {
            self.0.join("v1").join(&key.hex()[..2]).join(&key.hex()[2..])
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_stored_comes_back_and_boundaries_count() {
        let scratch = Scratch::new("round");
        let cache = Cache::open(&scratch.0, 1 << 20).unwrap();
        let key = Key::of([&b"ab"[..], b"c"]);
        assert_ne!(key, Key::of([&b"a"[..], b"bc"]));
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"payload");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"payload"[..]));
        // Another process sees it.
        assert_eq!(
            Cache::open(&scratch.0, 1 << 20).unwrap().get(&key).as_deref(),
            Some(&b"payload"[..])
        );
    }

    #[test]
    fn damage_of_any_byte_is_noticed_and_the_entry_removed() {
        let scratch = Scratch::new("damage");
        let cache = Cache::open(&scratch.0, 1 << 20).unwrap();
        let key = Key::of([&b"k"[..]]);
        cache.put(&key, b"payload");
        let path = scratch.entry(&key);
        let good = std::fs::read(&path).unwrap();
        for at in (0..good.len()).filter(|at| !(12..16).contains(at)) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(cache.get(&key), None, "byte {at}");
            assert!(!path.exists());
        }
        for length in 0..good.len() {
            std::fs::write(&path, &good[..length]).unwrap();
            assert_eq!(cache.get(&key), None, "length {length}");
        }
        // An entry under another key's name is not that key's.
        let other = Key::of([&b"other"[..]]);
        std::fs::create_dir_all(scratch.entry(&other).parent().unwrap()).unwrap();
        std::fs::set_permissions(
            scratch.entry(&other).parent().unwrap(),
            PermissionsExt::from_mode(0o700),
        )
        .unwrap();
        std::fs::write(scratch.entry(&other), &good).unwrap();
        assert_eq!(cache.get(&other), None);
    }

    #[test]
    fn links_and_files_that_others_can_write_are_not_used() {
        let scratch = Scratch::new("hostile");
        let cache = Cache::open(&scratch.0, 1 << 20).unwrap();
        let key = Key::of([&b"k"[..]]);
        cache.put(&key, b"payload");
        let path = scratch.entry(&key);
        let aside = scratch.0.join("aside");
        std::fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        assert_eq!(cache.get(&key), None);
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
        assert!(cache.get(&key).is_some());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(cache.get(&key), None);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        // Only root can give a file away: where the tests run as a user, this part cannot be shown.
        if chown(&path, Some(12345), None).is_ok() {
            assert_eq!(cache.get(&key), None);
            chown(&scratch.0, Some(12345), None).unwrap();
            assert!(Cache::open(&scratch.0, 1 << 20).is_none());
            chown(&scratch.0, Some(0), None).unwrap();
        }
        std::fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(Cache::open(&scratch.0, 1 << 20).is_none());
        std::fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o700)).unwrap();
        let link = Scratch::new("link");
        symlink(&scratch.0, &link.0).unwrap();
        assert!(Cache::open(&link.0, 1 << 20).is_none());
        std::fs::remove_file(&link.0).unwrap();
        assert!(Cache::open(Path::new("/proc/nowhere"), 1 << 20).is_none());
        std::fs::write(&link.0, b"a file").unwrap();
        assert!(Cache::open(&link.0, 1 << 20).is_none());
        std::fs::remove_file(&link.0).unwrap();
    }

    #[test]
    fn the_oldest_entries_go_when_the_cache_is_full() {
        let scratch = Scratch::new("evict");
        let cache = Cache::open(&scratch.0, 64 << 10).unwrap();
        let payload = vec![7u8; 4 << 10];
        for number in 0..64u32 {
            let key = Key::of([&number.to_le_bytes()[..]]);
            cache.put(&key, &payload);
            let age = SystemTime::now() - Duration::from_secs(1000 - u64::from(number));
            let file = File::options().write(true).open(scratch.entry(&key)).unwrap();
            file.set_modified(age).unwrap();
        }
        let (bytes, _) = cache.usage();
        assert!(bytes <= 64 << 10, "{bytes}");
        assert!(cache.get(&Key::of([&0u32.to_le_bytes()[..]])).is_none());
        assert!(cache.get(&Key::of([&63u32.to_le_bytes()[..]])).is_some());
        assert!(cache.clear() > 0);
        assert_eq!(cache.usage(), (0, 0));
    }

    #[test]
    fn a_lock_is_held_until_dropped_and_patience_ends() {
        let scratch = Scratch::new("lock");
        let cache = Cache::open(&scratch.0, 1 << 20).unwrap();
        let key = Key::of([&b"k"[..]]);
        let held = cache.lock(&key, Duration::from_secs(1));
        assert!(held._file.is_some());
        let start = Instant::now();
        assert!(cache.lock(&key, Duration::from_millis(30))._file.is_none());
        assert!(start.elapsed() >= Duration::from_millis(30));
        drop(held);
        assert!(cache.lock(&key, Duration::from_secs(1))._file.is_some());
    }
}
