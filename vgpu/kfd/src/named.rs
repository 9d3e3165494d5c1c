//! The named shared memory and semaphore of libhsakmt (ROCr 5), and the shared memory of HIP's events between processes, kept in
//! the virtual machine's own folder.
//!
//! libhsakmt never removes `/dev/shm/hsakmt_shared_mem` and `/dev/shm/sem.hsakmt_semaphore`, and every job of a user, whoever
//! owns it, would share them. HIP leaves a `/dev/shm/hip_event*` for each event that it exports. Below `VGPU_ROOT/named` they end
//! with the machine.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    fs, io,
    mem::{self, transmute},
    os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd},
    path::PathBuf,
    ptr,
    sync::{Mutex, PoisonError, atomic::AtomicUsize},
};

use crate::{hooks::next, os, process::Process};

/// What the names start with.
const PREFIXES: [&[u8]; 2] = [b"hsakmt", b"hip_event"];
/// The folder below `VGPU_ROOT`.
pub const FOLDER: &str = "named";

/// Addresses of the semaphores that this library mapped.
static SEMAPHORES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The file that stands for a name, if it is one of those and there is a virtual GPU.
///
/// # Safety
/// `name` is NULL or a NUL-terminated string.
unsafe fn file_of(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: not NULL, the caller's contract.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let bytes = bytes.strip_prefix(b"/").unwrap_or(bytes);
    if !PREFIXES.iter().any(|prefix| bytes.starts_with(prefix)) || bytes.contains(&b'/') {
        return None;
    }
    let folder = Process::start()?.shared.root().join(FOLDER);
    let _ = fs::create_dir(&folder);
    Some(folder.join(std::str::from_utf8(bytes).ok()?))
}

fn errno(error: &io::Error) -> c_int {
    os::fail(error.raw_os_error().unwrap_or(libc::EIO))
}

/// A semaphore's file: made whole under another name and then linked, so that nobody opens half of one.
fn semaphore_file(path: &PathBuf, flags: c_int, value: c_uint) -> io::Result<OwnedFd> {
    loop {
        match os::open(path, libc::O_RDWR, 0) {
            Ok(_) if flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL => {
                return Err(io::Error::from_raw_os_error(libc::EEXIST));
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && flags & libc::O_CREAT != 0 => {}
            other => return other,
        }
        let new = path.with_extension(format!("new-{}", os::pid()));
        let file = os::open(&new, libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC, 0o600)?;
        // SAFETY: a semaphore is plain data; this one is on the stack until it has been written out.
        let semaphore = unsafe {
            let mut semaphore: libc::sem_t = mem::zeroed();
            os::check(libc::sem_init(&raw mut semaphore, 1, value))?;
            semaphore
        };
        // SAFETY: plain data of that size.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const semaphore).cast::<u8>(), size_of::<libc::sem_t>()) };
        os::write_all(file.as_raw_fd(), bytes);
        let linked = fs::hard_link(&new, path);
        let _ = fs::remove_file(&new);
        match linked {
            Ok(()) => return Ok(file),
            // Another process was faster: its semaphore it is.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// libc's `shm_open`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shm_open(name: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller's contract, for libc's own definition as well.
    unsafe {
        match file_of(name) {
            Some(path) => match os::open(&path, flags, mode & 0o600) {
                Ok(fd) => fd.into_raw_fd(),
                Err(error) => errno(&error),
            },
            None => match next(&NEXT, c"shm_open") {
                0 => os::fail(libc::ENOSYS),
                address => transmute::<usize, unsafe extern "C" fn(*const c_char, c_int, libc::mode_t) -> c_int>(
                    address,
                )(name, flags, mode),
            },
        }
    }
}

/// # Safety
/// As for libc's `shm_unlink` and `sem_unlink`, whose name `symbol` is.
unsafe fn unlink(cache: &AtomicUsize, symbol: &CStr, name: *const c_char) -> c_int {
    // SAFETY: the caller's contract, for libc's own definition as well.
    unsafe {
        match file_of(name) {
            Some(path) => fs::remove_file(path).map_or_else(|error| errno(&error), |()| 0),
            None => match next(cache, symbol) {
                0 => os::fail(libc::ENOSYS),
                address => transmute::<usize, unsafe extern "C" fn(*const c_char) -> c_int>(address)(name),
            },
        }
    }
}

/// libc's `shm_unlink`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shm_unlink(name: *const c_char) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller's contract.
    unsafe { unlink(&NEXT, c"shm_unlink", name) }
}

/// libc's `sem_unlink`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_unlink(name: *const c_char) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller's contract.
    unsafe { unlink(&NEXT, c"sem_unlink", name) }
}

/// libc's `sem_open`. The last two arguments are whatever the registers hold when the caller passes none.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_open(
    name: *const c_char,
    flags: c_int,
    mode: libc::mode_t,
    value: c_uint,
) -> *mut libc::sem_t {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    type Open = unsafe extern "C" fn(*const c_char, c_int, libc::mode_t, c_uint) -> *mut libc::sem_t;
    // SAFETY: the caller's contract, for libc's own definition as well.
    unsafe {
        let Some(path) = file_of(name) else {
            return match next(&NEXT, c"sem_open") {
                0 => {
                    os::fail(libc::ENOSYS);
                    ptr::null_mut()
                }
                address => transmute::<usize, Open>(address)(name, flags, mode, value),
            };
        };
        let mapped =
            semaphore_file(&path, flags, value).and_then(|file| os::map_shared(&file, size_of::<libc::sem_t>(), 0));
        match mapped {
            Ok(address) => {
                let mut table = SEMAPHORES.lock().unwrap_or_else(PoisonError::into_inner);
                table.push(address as usize);
                address.cast()
            }
            Err(error) => {
                errno(&error);
                ptr::null_mut()
            }
        }
    }
}

/// libc's `sem_close`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_close(semaphore: *mut libc::sem_t) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let ours = {
        let mut table = SEMAPHORES.lock().unwrap_or_else(PoisonError::into_inner);
        let found = table.iter().position(|address| *address == semaphore as usize);
        found.map(|i| table.swap_remove(i)).is_some()
    };
    // SAFETY: the caller's contract, for libc's own definition as well; ours is a mapping of this file's.
    unsafe {
        if ours {
            return libc::munmap(semaphore.cast::<c_void>(), size_of::<libc::sem_t>());
        }
        match next(&NEXT, c"sem_close") {
            0 => os::fail(libc::ENOSYS),
            address => transmute::<usize, unsafe extern "C" fn(*mut libc::sem_t) -> c_int>(address)(semaphore),
        }
    }
}
