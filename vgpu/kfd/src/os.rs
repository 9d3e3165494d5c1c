//! Raw system calls, past every libc entry point that this library itself replaces.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    path::Path,
    time::Duration,
};

/// The calling process. Asked of the kernel each time: a forked child must not see its parent's answer.
pub fn pid() -> i32 {
    // SAFETY: getpid has no preconditions.
    unsafe { libc::getpid() }
}

/// The calling thread: a number that no other living thread has.
pub fn thread() -> usize {
    // SAFETY: pthread_self has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// Sets `errno` and returns -1, as libc does.
pub fn fail(errno: i32) -> i32 {
    // SAFETY: the address is this thread's errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// `syscall` with errno handling, in six-register form.
///
/// # Safety
/// The arguments must be valid for the system call.
pub unsafe fn raw(number: i64, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention on x86-64; it clobbers rcx and r11 only. The caller vouches for the
    // arguments.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    if (-4095..0).contains(&result) {
        fail(-result as i32) as isize
    } else {
        result
    }
}

/// Writes everything, ignoring errors: for log lines and small files of our own.
pub fn write_all(fd: RawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: pointer and length describe a live slice.
        let n = unsafe {
            raw(
                libc::SYS_write,
                [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0],
            )
        };
        if n <= 0 {
            return;
        }
        bytes = &bytes[n as usize..];
    }
}

/// `openat` with `O_CLOEXEC`.
pub fn open(path: &Path, flags: i32, mode: u32) -> io::Result<OwnedFd> {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: a NUL-terminated path; the descriptor returned is ours alone.
    unsafe {
        let args = [
            libc::AT_FDCWD as usize,
            path.as_ptr() as usize,
            (flags | libc::O_CLOEXEC) as usize,
            mode as usize,
            0,
            0,
        ];
        let fd = raw(libc::SYS_openat, args);
        if fd < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(OwnedFd::from_raw_fd(fd as RawFd))
        }
    }
}

/// An anonymous memory file.
pub fn memfd(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a NUL-terminated name; the descriptor returned is ours alone.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }
}

/// Sets a file's length.
pub fn set_len(fd: &impl AsRawFd, len: u64) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::ftruncate64(fd.as_raw_fd(), len as i64) })
}

/// Device and inode: what tells our files from others, whatever the descriptor's number.
pub fn identity(fd: RawFd) -> Option<(u64, u64)> {
    // SAFETY: stat is plain data and the kernel fills it.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let ok = raw(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0]) == 0;
        ok.then_some((stat.st_dev, stat.st_ino))
    }
}

/// A shared, readable and writable mapping that stays for the life of the process.
///
/// Excluded from core dumps: it may span terabytes of holes.
pub fn map_shared(fd: &impl AsRawFd, len: usize, offset: u64) -> io::Result<*mut u8> {
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    unsafe {
        let args = [
            0,
            len,
            (libc::PROT_READ | libc::PROT_WRITE) as usize,
            (libc::MAP_SHARED | libc::MAP_NORESERVE) as usize,
            fd.as_raw_fd() as usize,
            offset as usize,
        ];
        let address = raw(libc::SYS_mmap, args);
        if address == -1 {
            return Err(io::Error::last_os_error());
        }
        libc::madvise(address as *mut libc::c_void, len, libc::MADV_DONTDUMP);
        Ok(address as *mut u8)
    }
}

/// Whether the whole range, which starts on a page, is mapped in this process.
pub fn is_mapped(start: u64, len: u64) -> bool {
    // SAFETY: MS_ASYNC writes nothing and touches nothing; the kernel only says whether all of it is mapped.
    unsafe {
        raw(
            libc::SYS_msync,
            [start as usize, len as usize, libc::MS_ASYNC as usize, 0, 0, 0],
        ) == 0
    }
}

/// Whether the pages that the range touches are mapped in this process.
pub fn is_mapped_around(start: usize, len: usize) -> bool {
    let first = start / 4096 * 4096;
    is_mapped(first as u64, (start + len - first) as u64)
}

/// Gives a file's range back to the file system; it reads as zeros afterwards.
pub fn punch_hole(fd: &impl AsRawFd, offset: u64, len: u64) {
    // SAFETY: no pointers. A file system without holes keeps the bytes, which costs space and nothing else.
    unsafe {
        libc::fallocate64(
            fd.as_raw_fd(),
            libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
            offset as i64,
            len as i64,
        );
    }
}

/// Sleeps while `*word == expected`, at most `timeout`.
pub fn futex_wait(word: &std::sync::atomic::AtomicU32, expected: u32, timeout: Duration) {
    let time = libc::timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos() as i64,
    };
    // SAFETY: the word and the time outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const time,
        );
    }
}

/// Wakes every thread that sleeps on `word`.
pub fn futex_wake_all(word: &std::sync::atomic::AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// Nanoseconds of a clock.
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills `time`.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The GPU's constant 100 MHz clock: what `GET_CLOCK_COUNTERS`, signal timestamps and `s_memrealtime` all read.
pub fn gpu_clock() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC_RAW) / 10
}

/// Turns a libc result into `io::Result`.
pub fn check(result: i32) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
