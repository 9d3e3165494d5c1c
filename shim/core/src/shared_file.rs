//! Files in shared memory by which processes of one user tell each other things.
//!
//! Whoever makes one holds the lock on it for as long as it lives, however it ends; so files of dead processes are known, and the
//! next process that makes one removes them. Who only looks shares the lock, so that two who look at once do not take each other
//! for the maker. Names are random: process ids repeat across containers. A file of another user is
//! not believed, even by root.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

const FOLDER: &str = "/dev/shm";
const PREFIX: &str = "regauge-";

/// An open file, this process's own or another's. Dropping its own removes it.
pub struct SharedFile {
    file: File,
    path: String,
    owned: bool,
}

/// This process's own files.
static OWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn own() -> MutexGuard<'static, Vec<String>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes this process's files, at its end. Processes that have them open keep them.
extern "C" fn at_exit() {
    // A forked child's parent goes on.
    if crate::attention::load() & crate::attention::FORKED != 0 {
        return;
    }
    if let Ok(own) = OWN.try_lock() {
        for path in own.iter() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The path of the file that holds `kind` of things and is named by `id`.
fn path(kind: &str, id: &[u8]) -> String {
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{FOLDER}/{PREFIX}{kind}-{digits}")
}

fn open(path: &str, flags: i32) -> io::Result<File> {
    let path = CString::new(path)?;
    // SAFETY: a NUL-terminated path; the mode is only looked at with O_CREAT.
    let fd = unsafe {
        libc::open(
            path.as_ptr(),
            flags | libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW,
            0o600,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and nobody else's.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn lock(file: &File, operation: i32) -> bool {
    // SAFETY: an open descriptor.
    unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) == 0 }
}

/// A file that this user alone can have written.
fn is_private(about: &Metadata) -> bool {
    // SAFETY: no precondition.
    let user = unsafe { libc::geteuid() };
    about.uid() == user && about.mode() & 0o7777 == 0o600 && about.is_file()
}

impl SharedFile {
    /// A new file of `size` bytes. Two processes never ask for the same `id`, unless they mean the same file.
    ///
    /// # Errors
    /// What the kernel says, or Interrupted when another process took it for a dead one's in that moment: once more, then.
    pub fn create(kind: &str, id: &[u8], size: u64) -> io::Result<Self> {
        remove_stale(kind);
        let path = path(kind, id);
        let file = open(&path, libc::O_CREAT | libc::O_EXCL)?;
        // Nobody knows the name yet; a process that removes stale files and looks in this moment takes it away.
        if !lock(&file, libc::LOCK_EX) || !Path::new(&path).exists() {
            let _ = std::fs::remove_file(&path);
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        file.set_len(size)?;
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            // SAFETY: a function of this library, which is never unloaded.
            unsafe { libc::atexit(at_exit) };
        });
        own().push(path.clone());
        Ok(Self {
            file,
            path,
            owned: true,
        })
    }

    /// Another process's file.
    ///
    /// # Errors
    /// What the kernel says: it is gone, or another user's. PermissionDenied when it is another user's and this one may do all.
    pub fn open(kind: &str, id: &[u8]) -> io::Result<Self> {
        let path = path(kind, id);
        let file = open(&path, 0)?;
        if !is_private(&file.metadata()?) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        Ok(Self {
            file,
            path,
            owned: false,
        })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its maker, another process, has ended, however: its lock is gone.
    pub fn is_orphan(&self) -> bool {
        let dead = !self.owned && lock(&self.file, libc::LOCK_SH);
        if dead {
            lock(&self.file, libc::LOCK_UN);
        }
        dead
    }

    /// Whether it is a file of the user that this process acts for now, which may have changed since it was opened.
    pub fn is_of_this_user(&self) -> bool {
        self.file.metadata().is_ok_and(|about| is_private(&about))
    }

    /// Whether this process made it.
    pub fn is_own(&self) -> bool {
        self.owned
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if self.owned {
            own().retain(|path| *path != self.path);
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the files of processes that have ended without doing so themselves.
fn remove_stale(kind: &str) {
    let Ok(entries) = std::fs::read_dir(FOLDER) else { return };
    let prefix = format!("{PREFIX}{kind}-");
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(&prefix) {
            continue;
        }
        let path = entry.path();
        let Some(text) = path.to_str() else { continue };
        // Other users' files cannot be opened.
        if let Ok(file) = open(text, 0)
            && lock(&file, libc::LOCK_SH)
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn id(of: u8) -> Vec<u8> {
        let mut id = std::process::id().to_le_bytes().to_vec();
        id.push(of);
        id
    }

    #[test]
    fn a_file_is_there_as_long_as_its_maker() {
        let own = SharedFile::create("test.life", &id(1), 64).unwrap();
        assert!(!own.is_orphan());
        assert_eq!(own.file().metadata().unwrap().len(), 64);
        own.file().write_all(b"hello").unwrap();
        let opened = SharedFile::open("test.life", &id(1)).unwrap();
        // Its lock is another open file's, as if it were another process's.
        let other = SharedFile::open("test.life", &id(1)).unwrap();
        assert!(!opened.is_orphan() && !other.is_orphan(), "its maker lives");
        assert!(SharedFile::create("test.life", &id(1), 64).is_err(), "one of a name");
        drop(own);
        // Also for one who looks while another looks.
        assert!(lock(&other.file, libc::LOCK_SH) && opened.is_orphan());
        assert!(SharedFile::open("test.life", &id(1)).is_err());
    }

    #[test]
    fn what_others_may_write_is_not_believed() {
        let path = path("test.mode", &id(2));
        let file = open(&path, libc::O_CREAT | libc::O_EXCL).unwrap();
        // SAFETY: an open descriptor.
        unsafe { libc::fchmod(file.as_raw_fd(), 0o666) };
        assert!(SharedFile::open("test.mode", &id(2)).is_err());
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(SharedFile::open("test.mode", &id(2)).is_err(), "a link");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn files_of_the_dead_are_removed() {
        let path = path("test.dead", &id(3));
        drop(open(&path, libc::O_CREAT | libc::O_EXCL).unwrap());
        drop(SharedFile::create("test.dead", &id(4), 8).unwrap());
        assert!(!Path::new(&path).exists());
    }
}
