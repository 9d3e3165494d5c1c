//! The libc entry points that this library puts itself in front of.
//!
//! Each does what libc does, by a raw system call or by libc's own next definition, unless the path or the descriptor is
//! one of ours. Until a device path is touched they compare a few bytes and nothing else: no file, no thread, no
//! allocation. Rust's own standard library ends up in them too, which is why none of them may call it for a path that
//! is not ours before it has told so.

use std::{
    ffi::{CStr, c_char, c_int, c_long, c_void},
    mem::transmute,
    os::fd::RawFd,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::{
    abi::{DRM_TYPE, KFD_TYPE, Request},
    cma, dmabuf, drm, kfd, os,
    process::{Device, Process, device_of},
    sysfs,
};

/// Major number of `/dev/kfd`, as good as any: it is dynamic.
const KFD_MAJOR: u32 = 240;
/// Major number of DRM nodes.
const DRM_MAJOR: u32 = 226;
const RENDER_PREFIX: &[u8] = b"/dev/dri/renderD";

/// What a path is to us. Large, but never moved: a redirected path must not need the allocator.
#[allow(clippy::large_enum_variant)]
enum Target {
    /// None of our business, or there is no GPU.
    Other,
    /// `/dev/kfd`
    Kfd(&'static Process),
    /// `/dev/dri/renderD<minor>`
    Render(&'static Process, u32),
    /// A file below `VGPU_ROOT`.
    Redirected(PathBuffer),
}

/// A path on the stack.
struct PathBuffer([u8; libc::PATH_MAX as usize]);

impl PathBuffer {
    fn join(parts: &[&[u8]]) -> Option<Self> {
        let mut buffer = [0; libc::PATH_MAX as usize];
        let mut at = 0;
        for part in parts {
            // One byte stays for the NUL.
            if at + part.len() >= buffer.len() {
                return None;
            }
            buffer[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Some(Self(buffer))
    }

    fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

/// Classifies a path. Starts the virtual machine if it is one of ours.
///
/// # Safety
/// `path` is NULL or a NUL-terminated string.
unsafe fn classify(path: *const c_char) -> Target {
    if path.is_null() {
        return Target::Other;
    }
    // SAFETY: not NULL, the caller's contract.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    // The quick way out for nearly every path of nearly every program.
    if !(bytes.starts_with(b"/dev/") || bytes.starts_with(b"/sys/") || bytes.starts_with(b"/proc/m")) {
        return Target::Other;
    }
    if bytes == b"/dev/kfd" {
        return Process::start().map_or(Target::Other, Target::Kfd);
    }
    if let Some(minor) = bytes.strip_prefix(RENDER_PREFIX) {
        let minor = std::str::from_utf8(minor).ok().and_then(|text| text.parse().ok());
        return match (minor, minor.and_then(|_| Process::start())) {
            (Some(minor), Some(process)) => Target::Render(process, minor),
            _ => Target::Other,
        };
    }
    for (prefix, below_root) in sysfs::PREFIXES {
        let Some(rest) = bytes.strip_prefix(prefix.as_bytes()) else {
            continue;
        };
        let Some(process) = Process::start() else {
            return Target::Other;
        };
        let root = process.shared.root().as_os_str().as_encoded_bytes();
        return PathBuffer::join(&[root, b"/", below_root.as_bytes(), rest]).map_or(Target::Other, Target::Redirected);
    }
    Target::Other
}

/// A descriptor of our own for a device file, at number 3 or above.
fn duplicate(file: RawFd, flags: c_int) -> c_int {
    let command = if flags & libc::O_CLOEXEC != 0 {
        libc::F_DUPFD_CLOEXEC
    } else {
        libc::F_DUPFD
    };
    // SAFETY: no pointers.
    unsafe { libc::fcntl(file, command, 3) }
}

/// # Safety
/// As for `openat`.
unsafe fn open_at(directory: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's contract; a redirected path outlives the call.
    unsafe {
        let raw = |path: *const c_char| {
            os::raw(
                libc::SYS_openat,
                [directory as usize, path as usize, flags as usize, mode as usize, 0, 0],
            ) as c_int
        };
        match classify(path) {
            Target::Other => raw(path),
            Target::Redirected(path) => raw(path.as_ptr()),
            Target::Kfd(process) => duplicate(process.kfd_file(), flags),
            Target::Render(process, minor) => match process.render_file(minor) {
                Some(file) => duplicate(file, flags),
                None => os::fail(libc::ENOENT),
            },
        }
    }
}

/// libc's `open`. `mode` is whatever the register holds when the caller passes none: the kernel ignores it then.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

/// libc's `open64`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

/// libc's `openat`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(directory: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { open_at(directory, path, flags, mode) }
}

/// libc's `openat64`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(directory: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { open_at(directory, path, flags, mode) }
}

/// The checked form that fortified programs call for `open` without a mode.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { open_at(libc::AT_FDCWD, path, flags, 0) }
}

/// The checked form that fortified programs call for `open64` without a mode.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { open_at(libc::AT_FDCWD, path, flags, 0) }
}

/// libc's own definition of a function, looked up once.
pub fn next(cache: &AtomicUsize, name: &CStr) -> usize {
    let known = cache.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: a NUL-terminated name.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    cache.store(found, Ordering::Relaxed);
    found
}

/// Calls `name` of libc with a path that may be redirected, and one more argument.
///
/// # Safety
/// `name` is a libc function `pointer name(path, argument)` whose contract the arguments fulfil.
unsafe fn with_path(cache: &AtomicUsize, name: &CStr, path: *const c_char, argument: *const c_char) -> *mut c_void {
    let address = next(cache, name);
    if address == 0 {
        os::fail(libc::ENOSYS);
        return std::ptr::null_mut();
    }
    // SAFETY: libc's definition; the caller vouches for its type. A second argument that is not wanted is ignored by
    // the calling convention. A redirected path outlives the call.
    unsafe {
        let function: unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void = transmute(address);
        match classify(path) {
            Target::Redirected(path) => function(path.as_ptr(), argument),
            _ => function(path, argument),
        }
    }
}

/// libc's `fopen`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller's contract.
    unsafe { with_path(&NEXT, c"fopen", path, mode) }
}

/// libc's `fopen64`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller's contract.
    unsafe { with_path(&NEXT, c"fopen64", path, mode) }
}

/// libc's `opendir`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opendir(path: *const c_char) -> *mut c_void {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller's contract.
    unsafe { with_path(&NEXT, c"opendir", path, std::ptr::null()) }
}

/// libc's `access`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the caller's contract; a redirected path outlives the call.
    unsafe {
        let raw = |path: *const c_char| os::raw(libc::SYS_access, [path as usize, mode as usize, 0, 0, 0, 0]) as c_int;
        match classify(path) {
            Target::Other => raw(path),
            Target::Redirected(path) => raw(path.as_ptr()),
            Target::Kfd(_) if mode & libc::X_OK == 0 => 0,
            Target::Render(process, minor) if process.render_file(minor).is_none() => os::fail(libc::ENOENT),
            Target::Render(..) if mode & libc::X_OK == 0 => 0,
            Target::Kfd(_) | Target::Render(..) => os::fail(libc::EACCES),
        }
    }
}

/// libc's `readlink`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, len: usize) -> isize {
    // SAFETY: the caller's contract; a redirected path outlives the call.
    unsafe {
        let raw = |path: *const c_char| os::raw(libc::SYS_readlink, [path as usize, buffer as usize, len, 0, 0, 0]);
        match classify(path) {
            Target::Redirected(path) => raw(path.as_ptr()),
            _ => raw(path),
        }
    }
}

/// Makes a `stat` say "character device".
fn character_device(stat: &mut libc::stat, major: u32, minor: u32) {
    stat.st_mode = libc::S_IFCHR | 0o666;
    stat.st_rdev = libc::makedev(major, minor);
}

/// # Safety
/// As for `stat`.
unsafe fn stat_path(path: *const c_char, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's contract; a redirected path outlives the call.
    unsafe {
        let raw = |path: *const c_char| {
            os::raw(
                libc::SYS_newfstatat,
                [libc::AT_FDCWD as usize, path as usize, stat as usize, 0, 0, 0],
            ) as c_int
        };
        match classify(path) {
            Target::Other => raw(path),
            Target::Redirected(path) => raw(path.as_ptr()),
            Target::Kfd(_) => {
                stat.write(std::mem::zeroed());
                character_device(&mut *stat, KFD_MAJOR, 0);
                0
            }
            Target::Render(process, minor) if process.render_file(minor).is_some() => {
                stat.write(std::mem::zeroed());
                character_device(&mut *stat, DRM_MAJOR, minor);
                0
            }
            Target::Render(..) => os::fail(libc::ENOENT),
        }
    }
}

/// # Safety
/// As for `fstat`.
unsafe fn stat_descriptor(fd: c_int, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let result = os::raw(libc::SYS_fstat, [fd as usize, stat as usize, 0, 0, 0, 0]) as c_int;
        if result == 0 {
            match device_of(fd) {
                Device::Other => {}
                Device::Kfd(_) => character_device(&mut *stat, KFD_MAJOR, 0),
                Device::Render(gpu) => {
                    character_device(&mut *stat, DRM_MAJOR, sysfs::FIRST_RENDER_MINOR + gpu as u32);
                }
            }
        }
        result
    }
}

/// libc's `stat`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(path: *const c_char, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { stat_path(path, stat) }
}

/// libc's `stat64`: the same structure on x86-64.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat64(path: *const c_char, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { stat_path(path, stat) }
}

/// libc's `fstat`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat(fd: c_int, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { stat_descriptor(fd, stat) }
}

/// libc's `fstat64`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat64(fd: c_int, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { stat_descriptor(fd, stat) }
}

/// libc's `lstat`: none of our files is a link.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lstat(path: *const c_char, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's contract. Other paths must not be followed.
    unsafe {
        match classify(path) {
            Target::Other => {
                let flags = libc::AT_SYMLINK_NOFOLLOW as usize;
                let args = [libc::AT_FDCWD as usize, path as usize, stat as usize, flags, 0, 0];
                os::raw(libc::SYS_newfstatat, args) as c_int
            }
            _ => stat_path(path, stat),
        }
    }
}

/// libc's `lstat64`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lstat64(path: *const c_char, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { lstat(path, stat) }
}

/// libc's `statx`, which Rust's standard library asks whether a file exists.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: u32,
    buffer: *mut libc::statx,
) -> c_int {
    // SAFETY: the caller's contract; a redirected path outlives the call.
    unsafe {
        let raw = |path: *const c_char| {
            let args = [
                directory as usize,
                path as usize,
                flags as usize,
                mask as usize,
                buffer as usize,
                0,
            ];
            os::raw(libc::SYS_statx, args) as c_int
        };
        let (major, minor) = match classify(path) {
            Target::Other => {
                let result = raw(path);
                let of_descriptor = flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || *path == 0);
                match device_of(if result == 0 && of_descriptor { directory } else { -1 }) {
                    Device::Other => return result,
                    Device::Kfd(_) => (KFD_MAJOR, 0),
                    Device::Render(gpu) => (DRM_MAJOR, sysfs::FIRST_RENDER_MINOR + gpu as u32),
                }
            }
            Target::Redirected(path) => return raw(path.as_ptr()),
            Target::Kfd(_) => {
                buffer.write(std::mem::zeroed());
                (KFD_MAJOR, 0)
            }
            Target::Render(process, minor) if process.render_file(minor).is_some() => {
                buffer.write(std::mem::zeroed());
                (DRM_MAJOR, minor)
            }
            Target::Render(..) => return os::fail(libc::ENOENT),
        };
        (*buffer).stx_mask |= libc::STATX_TYPE | libc::STATX_MODE;
        (*buffer).stx_mode = (libc::S_IFCHR | 0o666) as u16;
        ((*buffer).stx_rdev_major, (*buffer).stx_rdev_minor) = (major, minor);
        0
    }
}

/// libc's `ioctl`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_long, argument: *mut c_void) -> c_int {
    let parts = Request::new(request as u64);
    if parts.type_ == KFD_TYPE || parts.type_ == DRM_TYPE {
        let device = device_of(fd);
        // The trace is that of the process which asks.
        let traced = Process::current().filter(|_| !matches!(device, Device::Other));
        let start = traced.and_then(|process| process.trace.ioctl_start());
        let answer = match device {
            Device::Kfd(owner) if parts.type_ == KFD_TYPE => Some(match Process::current() {
                // SAFETY: the caller's contract.
                Some(process) if std::ptr::eq(process, owner) => unsafe { kfd::ioctl(process, parts, argument.cast()) },
                // Inherited through fork: the driver ties the descriptor to the process that opened it.
                _ => Err(libc::EBADF),
            }),
            Device::Render(node) if parts.type_ == DRM_TYPE => Some(match Process::start() {
                // SAFETY: the caller's contract.
                Some(process) => unsafe { drm::ioctl(process, node, parts, argument.cast()) },
                None => Err(libc::EBADF),
            }),
            Device::Kfd(_) | Device::Render(_) => Some(Err(libc::ENOTTY)),
            Device::Other => None,
        };
        if let Some(answer) = answer {
            if let (Some(process), Some(start)) = (traced, start) {
                // SAFETY: the caller's contract; the answer has left the argument readable.
                unsafe { process.trace.ioctl(start, parts, argument.cast(), answer) };
            }
            return match answer {
                Ok(()) => 0,
                Err(errno) => {
                    log::debug!("ioctl {:?} {:#x}: errno {errno}", char::from(parts.type_), parts.nr);
                    os::fail(errno)
                }
            };
        }
    }
    // SAFETY: the caller's contract.
    unsafe {
        os::raw(
            libc::SYS_ioctl,
            [fd as usize, request as usize, argument as usize, 0, 0, 0],
        ) as c_int
    }
}

type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
type Munmap = unsafe extern "C" fn(*mut c_void, usize) -> c_int;
type Mremap = unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;

/// The next definition of a memory call, libc's own: memory hooks (UCX) patch its code and must see every mapping.
struct Next {
    address: AtomicUsize,
    looking: AtomicBool,
}

impl Next {
    const fn new() -> Self {
        Self {
            address: AtomicUsize::new(0),
            looking: AtomicBool::new(false),
        }
    }

    /// `None` while it is being looked up: an allocator's first `mmap` may come from within.
    fn get(&self, name: &CStr) -> Option<usize> {
        if self.address.load(Ordering::Relaxed) == 0 && self.looking.swap(true, Ordering::AcqRel) {
            return None;
        }
        let address = next(&self.address, name);
        self.looking.store(false, Ordering::Release);
        (address != 0).then_some(address)
    }
}

/// What is in a range of the program's memory is about to go: the driver forgets what it knew of it as shared virtual memory.
///
/// libc's own calls (an allocator that gives a block back) come by no entry point; see `svm.rs` for what follows.
fn going(address: usize, len: usize) {
    if let Some(process) = Process::current() {
        process.svm.forget(process, address as u64, len as u64);
    }
}

/// # Safety
/// As for `mmap`.
unsafe fn map(address: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void {
    let (mut fd, mut offset) = (fd, offset);
    let mut device = false;
    if fd >= 0
        && flags & libc::MAP_ANONYMOUS == 0
        && let Some(process) = Process::current()
    {
        match device_of(fd) {
            Device::Render(_) | Device::Kfd(_) => device = true,
            // A dma-buf mapped by the host shows the buffer, not the header that stands for it.
            Device::Other => {
                if let Some((file, start)) = dmabuf::backing(process, fd) {
                    (fd, offset, device) = (file, offset + start as i64, true);
                }
            }
        }
    }
    if flags & libc::MAP_FIXED != 0 && flags & libc::MAP_FIXED_NOREPLACE != libc::MAP_FIXED_NOREPLACE {
        going(address as usize, len);
    }
    static NEXT: Next = Next::new();
    // SAFETY: the caller's contract; the next definition is libc's or that of another interposer.
    let result = unsafe {
        match NEXT.get(c"mmap") {
            Some(mmap) => transmute::<usize, Mmap>(mmap)(address, len, prot, flags, fd, offset),
            None => {
                let args = [
                    address as usize,
                    len,
                    prot as usize,
                    flags as usize,
                    fd as usize,
                    offset as usize,
                ];
                os::raw(libc::SYS_mmap, args) as *mut c_void
            }
        }
    };
    if device
        && result != libc::MAP_FAILED
        && let Some(process) = Process::current()
    {
        process.shared.own_slot().note_mapping();
    }
    result
}

/// libc's `mmap`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { map(address, len, prot, flags, fd, offset) }
}

/// libc's `mmap64`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { map(address, len, prot, flags, fd, offset) }
}

/// libc's `munmap`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, len: usize) -> c_int {
    static NEXT: Next = Next::new();
    // Before it is gone: another thread may get the same address and have it registered before this one is back.
    if len > 0 && (address as usize).is_multiple_of(4096) {
        going(address as usize, len);
    }
    // SAFETY: the caller's contract; the next definition is libc's or that of another interposer.
    unsafe {
        match NEXT.get(c"munmap") {
            Some(munmap) => transmute::<usize, Munmap>(munmap)(address, len),
            None => os::raw(libc::SYS_munmap, [address as usize, len, 0, 0, 0, 0]) as c_int,
        }
    }
}

/// libc's `mremap`. The last argument is whatever the register holds when the caller passes none.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    new_address: *mut c_void,
) -> *mut c_void {
    static NEXT: Next = Next::new();
    if new_len < old_len {
        going(address as usize + new_len, old_len - new_len);
    }
    if flags & libc::MREMAP_FIXED != 0 {
        going(new_address as usize, new_len);
    }
    // SAFETY: the caller's contract; the next definition is libc's or that of another interposer.
    let result = unsafe {
        match NEXT.get(c"mremap") {
            Some(mremap) => transmute::<usize, Mremap>(mremap)(address, old_len, new_len, flags, new_address),
            None => {
                let args = [
                    address as usize,
                    old_len,
                    new_len,
                    flags as usize,
                    new_address as usize,
                    0,
                ];
                os::raw(libc::SYS_mremap, args) as *mut c_void
            }
        }
    };
    if result != libc::MAP_FAILED && result != address {
        going(address as usize, old_len);
    }
    result
}

/// libc's `process_vm_readv`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn process_vm_readv(
    pid: libc::pid_t,
    local: *const libc::iovec,
    local_count: usize,
    remote: *const libc::iovec,
    remote_count: usize,
    flags: usize,
) -> isize {
    let args = [
        pid as usize,
        local as usize,
        local_count,
        remote as usize,
        remote_count,
        flags,
    ];
    // SAFETY: the caller's contract.
    unsafe { cma::transfer(libc::SYS_process_vm_readv, args) }
}

/// libc's `process_vm_writev`.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn process_vm_writev(
    pid: libc::pid_t,
    local: *const libc::iovec,
    local_count: usize,
    remote: *const libc::iovec,
    remote_count: usize,
    flags: usize,
) -> isize {
    let args = [
        pid as usize,
        local as usize,
        local_count,
        remote as usize,
        remote_count,
        flags,
    ];
    // SAFETY: the caller's contract.
    unsafe { cma::transfer(libc::SYS_process_vm_writev, args) }
}

/// The two calls made through `syscall`.
///
/// # Safety
/// As for the system call.
unsafe extern "C" fn cross_memory(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    // SAFETY: the caller's contract.
    unsafe { cma::transfer(number, [a, b, c, d, e, f]) }
}

/// Sets errno from a kernel result in -4095..0 and returns -1.
extern "C" fn syscall_failed(result: isize) -> isize {
    os::fail(-result as i32) as isize
}

/// libc's `syscall`, for programs that make the two cross-memory calls through it.
///
/// Everything else passes through exactly as in libc: no stack frame, so that even calls that return twice work.
///
/// # Safety
/// As for libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall(number: c_long) -> c_long {
    std::arch::naked_asm!(
        "cmp rdi, {readv}",
        "je {cross}",
        "cmp rdi, {writev}",
        "je {cross}",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 2f",
        "ret",
        "2:",
        "mov rdi, rax",
        "jmp {failed}",
        readv = const libc::SYS_process_vm_readv,
        writev = const libc::SYS_process_vm_writev,
        cross = sym cross_memory,
        failed = sym syscall_failed,
    )
}
