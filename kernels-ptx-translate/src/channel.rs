//! A stream socket between a client and its worker, with deadlines and without SIGPIPE.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// One end of the socket.
pub struct Channel {
    fd: OwnedFd,
    /// When reads and writes give up; `None` for never.
    pub deadline: Option<Instant>,
}

impl Channel {
    /// Wraps an end.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, deadline: None }
    }

    /// Waits for `events`; `TimedOut` past the deadline.
    fn wait(&self, events: libc::c_short) -> io::Result<()> {
        loop {
            let timeout = match self.deadline {
                None => -1,
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    left.min(Duration::from_secs(3600)).as_millis() as i32 + 1
                }
            };
            let mut poll = libc::pollfd {
                fd: self.fd.as_raw_fd(),
                events,
                revents: 0,
            };
            // SAFETY: one valid pollfd.
            match unsafe { libc::poll(&mut poll, 1, timeout) } {
                0 => {}
                n if n > 0 => return Ok(()),
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Sends all bytes.
    pub fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            // SAFETY: the buffer is valid for its length. MSG_NOSIGNAL: the application's SIGPIPE is not ours to raise.
            let sent = unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
            if sent >= 0 {
                bytes = &bytes[sent as usize..];
                continue;
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => self.wait(libc::POLLOUT)?,
                _ => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the peer has closed its end, or has sent something that nobody asked for.
    pub fn is_stale(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN | libc::POLLRDHUP,
            revents: 0,
        };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut poll, 1, 0) != 0 }
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(libc::POLLIN)?;
            let flags = libc::MSG_DONTWAIT;
            // SAFETY: the buffer is valid for its length.
            let got = unsafe { libc::recv(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
            if got >= 0 {
                return Ok(got as usize);
            }
            let error = io::Error::last_os_error();
            if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                return Err(error);
            }
        }
    }
}
