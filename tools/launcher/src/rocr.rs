//! A ROCr installation other than the machine's, laid over the library folder of one process tree.
//!
//! The packages of another distribution release are unpacked in a folder; a private mount namespace overlays that
//! folder's libraries (glibc included) over the machine's. Every child stays in the namespace, so `mpirun` and its ranks see
//! the same ROCr, and nothing is installed. Where namespaces are not allowed, a root whose glibc is the machine's own
//! still works through `LD_LIBRARY_PATH`.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{PathList, check};

/// Debian's library folder on x86-64, the one that is overlaid.
const LIBRARY_FOLDER: &str = "/usr/lib/x86_64-linux-gnu";

/// A folder into which the packages of ROCr and all they need were unpacked.
#[derive(Clone, Debug)]
pub struct RocrRoot {
    directory: PathBuf,
    libraries: PathBuf,
    /// The root's C library is the machine's, so its libraries load without a namespace.
    same_libc: bool,
}

impl RocrRoot {
    /// Takes the folder if it holds a ROCr.
    ///
    /// # Errors
    /// `NotFound` where there is no `libhsa-runtime64.so.1` in it.
    pub fn in_directory(directory: &Path) -> io::Result<Self> {
        let directory = crate::libraries::existing(directory)?;
        let libraries = directory.join(LIBRARY_FOLDER.trim_start_matches('/'));
        if !libraries.join("libhsa-runtime64.so.1").exists() {
            let text = format!("{} holds no libhsa-runtime64.so.1", libraries.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let same_libc = match (std::fs::read(libraries.join("libc.so.6")), std::fs::read(libc_path())) {
            (Ok(theirs), Ok(ours)) => theirs == ours,
            // A root without a C library of its own was made for this machine's.
            (Err(_), _) => true,
            _ => false,
        };
        Ok(Self {
            directory,
            libraries,
            same_libc,
        })
    }

    /// The root itself.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The folder with the root's libraries.
    pub fn libraries(&self) -> &Path {
        &self.libraries
    }

    /// Makes `command` and its children run over this root.
    pub(crate) fn prepare(&self, command: &mut Command, library_path: &mut PathList) {
        if self.same_libc && !namespaces_allowed() {
            library_path.push_front(&self.libraries);
            return;
        }
        let namespace = Namespace::over(&self.libraries);
        // SAFETY: the closure runs between fork and exec and makes system calls only, on strings built before the fork.
        unsafe { command.pre_exec(move || namespace.enter()) };
    }
}

fn libc_path() -> PathBuf {
    Path::new(LIBRARY_FOLDER).join("libc.so.6")
}

/// Whether this user may make a mount namespace (tried in a child, so that the answer changes nothing here).
pub fn namespaces_allowed() -> bool {
    // Any other folder will do for a try; the same folder twice is refused by the kernel as a loop.
    let namespace = Namespace::over(Path::new("/etc"));
    // SAFETY: the child makes system calls only and leaves by _exit.
    match unsafe { libc::fork() } {
        -1 => false,
        0 => {
            let code = i32::from(namespace.enter().is_err());
            // SAFETY: _exit is async-signal-safe and does not return.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child made above; `status` is a valid place.
            unsafe { libc::waitpid(child, &raw mut status, 0) == child && status == 0 }
        }
    }
}

/// What entering the namespace needs, allocated before the fork.
struct Namespace {
    options: CString,
    uid_map: CString,
    gid_map: CString,
    privileged: bool,
}

impl Namespace {
    fn over(libraries: &Path) -> Self {
        let mut options = b"lowerdir=".to_vec();
        options.extend_from_slice(libraries.as_os_str().as_bytes());
        options.push(b':');
        options.extend_from_slice(LIBRARY_FOLDER.as_bytes());
        // SAFETY: these calls have no preconditions.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        let text = |bytes: Vec<u8>| CString::new(bytes).expect("paths from the file system hold no NUL");
        Self {
            options: text(options),
            uid_map: text(format!("{uid} {uid} 1").into_bytes()),
            gid_map: text(format!("{gid} {gid} 1").into_bytes()),
            privileged: uid == 0,
        }
    }

    /// Async-signal-safe: system calls on prepared strings.
    fn enter(&self) -> io::Result<()> {
        let flags = libc::CLONE_NEWNS | if self.privileged { 0 } else { libc::CLONE_NEWUSER };
        // SAFETY: plain system call.
        check(unsafe { libc::unshare(flags) })?;
        if !self.privileged {
            write_file(c"/proc/self/setgroups", c"deny")?;
            write_file(c"/proc/self/uid_map", &self.uid_map)?;
            write_file(c"/proc/self/gid_map", &self.gid_map)?;
        }
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let folder = c"/usr/lib/x86_64-linux-gnu";
        // SAFETY: all strings are NUL-terminated and live through the calls.
        unsafe {
            check(libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                private,
                std::ptr::null(),
            ))?;
            check(libc::mount(
                c"overlay".as_ptr(),
                folder.as_ptr(),
                c"overlay".as_ptr(),
                0,
                self.options.as_ptr().cast(),
            ))
        }
    }
}

fn write_file(path: &CStr, text: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated; the descriptor is closed below.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    check(fd)?;
    let bytes = text.to_bytes();
    // SAFETY: `bytes` is readable for its length; `fd` is ours.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    // SAFETY: `fd` is ours and used no more.
    unsafe { libc::close(fd) };
    if written == bytes.len() as isize {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_rocr_is_refused_by_name() {
        let error = RocrRoot::in_directory(Path::new("/proc")).unwrap_err();
        assert!(error.to_string().contains("libhsa-runtime64.so.1"), "{error}");
    }
}
