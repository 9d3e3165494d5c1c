//! What a process asks of the driver and of its GPUs, line by line.
//!
//! ```text
//! 1234.567890 pid.tid ioctl  kfd CREATE_QUEUE ring_size=0x1000 gpu_id=0x5a01 ... = 0 (31 us)
//! 1234.567890 pid.tid packet GPU 0 queue 3 #17 barrier-and dep=0x7f..40 completion=0x7f..80
//! 1234.567890 pid.tid kernel GPU 0 queue 3 #18 saxpy grid=1024x1x1 group=256x1x1 lds=0 private=0 kernarg=0x7f..
//! 1234.567890 pid.tid kernel GPU 0 queue 3 #18 saxpy ended: 16 waves, 208 instructions, 27 us
//! ```
//!
//! Times are seconds of the monotonic clock, so lines of several processes can be sorted together. Each line is one
//! `write` to a file opened for appending: processes may share it.

use std::{
    fmt::Write as _,
    os::fd::{AsRawFd as _, OwnedFd, RawFd},
    path::PathBuf,
};

use crate::{
    abi::{DRM_TYPE, Request},
    describe, os,
};

/// What is traced, and where to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Every ioctl on a device of ours.
    pub ioctl: bool,
    /// Every packet that a queue consumes.
    pub packet: bool,
    /// Every kernel, at its start and its end.
    pub kernel: bool,
    /// Where to; standard error if nowhere.
    pub file: Option<PathBuf>,
}

impl Wanted {
    /// Reads `ioctl,packet,kernel:FILE`; the file may be left out.
    pub fn parse(text: &str) -> Option<Self> {
        let (kinds, file) = match text.split_once(':') {
            Some((_, "")) => return None,
            Some((kinds, file)) => (kinds, Some(file.into())),
            None => (text, None),
        };
        let mut wanted = Self {
            file,
            ..Self::default()
        };
        for kind in kinds.split(',') {
            match kind.trim() {
                "ioctl" => wanted.ioctl = true,
                "packet" => wanted.packet = true,
                "kernel" => wanted.kernel = true,
                _ => return None,
            }
        }
        Some(wanted)
    }
}

/// The trace of a process.
#[derive(Debug, Default)]
pub struct Trace {
    wanted: Wanted,
    file: Option<OwnedFd>,
}

impl Trace {
    /// Opens the file, if one is wanted. Without it lines go to standard error.
    pub fn new(wanted: Wanted) -> Self {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND;
        let file = wanted.file.as_ref().and_then(|path| {
            os::open(path, flags, 0o644)
                .map_err(|error| log::warn!("cannot trace to {}: {error}", path.display()))
                .ok()
        });
        Self { wanted, file }
    }

    fn line(&self, kind: &str, text: &str) {
        let time = os::clock_ns(libc::CLOCK_MONOTONIC) / 1000;
        // SAFETY: gettid has no preconditions.
        let thread = unsafe { libc::gettid() };
        let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
        let line = format!("{seconds}.{micros:06} {}.{thread} {kind} {text}\n", os::pid());
        let fd: RawFd = self.file.as_ref().map_or(libc::STDERR_FILENO, |file| file.as_raw_fd());
        os::write_all(fd, line.as_bytes());
    }

    /// Whether ioctls are traced; the time to measure from.
    pub fn ioctl_start(&self) -> Option<u64> {
        self.wanted.ioctl.then(|| os::clock_ns(libc::CLOCK_MONOTONIC))
    }

    /// An ioctl that was answered.
    ///
    /// # Safety
    /// `argument` is what was passed for the request, and still readable for its size.
    pub unsafe fn ioctl(&self, start: u64, request: Request, argument: *const u8, answer: Result<(), i32>) {
        let took = (os::clock_ns(libc::CLOCK_MONOTONIC) - start) / 1000;
        let device = if request.type_ == DRM_TYPE { "drm" } else { "kfd" };
        let mut text = format!("{device} ");
        // SAFETY: the caller's promise.
        unsafe { describe::ioctl(&mut text, request, argument) };
        let _ = match answer {
            Ok(()) => write!(text, " = 0 ({took} us)"),
            Err(errno) => write!(text, " = errno {errno} ({took} us)"),
        };
        self.line("ioctl ", &text);
    }

    /// A packet that a queue consumes.
    pub fn packet(&self, text: impl FnOnce() -> String) {
        if self.wanted.packet {
            self.line("packet", &text());
        }
    }

    /// A kernel that starts or has ended.
    pub fn kernel(&self, text: impl FnOnce() -> String) {
        if self.wanted.kernel {
            self.line("kernel", &text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_file_are_read() {
        let all = Wanted::parse("ioctl,packet,kernel:/tmp/a:b").unwrap();
        assert!(all.ioctl && all.packet && all.kernel);
        assert_eq!(all.file, Some("/tmp/a:b".into()), "only the first colon counts");
        let one = Wanted::parse("kernel").unwrap();
        assert!(one.kernel && !one.ioctl && one.file.is_none());
        for wrong in ["", "ioctls", "ioctl:", "kernel,"] {
            assert_eq!(Wanted::parse(wrong), None, "{wrong:?}");
        }
    }
}
