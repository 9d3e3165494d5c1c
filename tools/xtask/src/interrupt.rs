//! The end of the bench by a signal: what it started is asked to end, then this process ends as the signal would have it.
//!
//! Guardians (`launcher::Machine`) remove virtual machines however their launcher ends. But `mpirun`, `srun` and test
//! programs without a GPU are no part of a machine, and end in good order only when they are told.
//! The handler only writes to a pipe; a thread reads it and does the rest.

use std::io::{Read, Write};
use std::os::fd::IntoRawFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Result;

/// Running children: process ids, negative for whole process groups.
static LIVE: Mutex<Vec<i32>> = Mutex::new(Vec::new());
static PIPE: AtomicI32 = AtomicI32::new(-1);
static ENDING: AtomicBool = AtomicBool::new(false);

/// How long children may take to end when asked to.
const GRACE: Duration = Duration::from_secs(5);

fn live() -> MutexGuard<'static, Vec<i32>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn handler(signal: i32) {
    let number = signal as u8;
    // SAFETY: write is async-signal-safe; the pipe is never closed.
    unsafe { libc::write(PIPE.load(Ordering::Relaxed), (&raw const number).cast(), 1) };
}

/// Handles SIGINT, SIGTERM and SIGHUP from here on. Programs that are started get the system's handling.
pub fn install() -> Result<()> {
    let (mut reader, writer) = std::io::pipe()?;
    PIPE.store(writer.into_raw_fd(), Ordering::Relaxed);
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut number = [0];
        if reader.read_exact(&mut number).is_ok() {
            end(i32::from(number[0]));
        }
    })?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only calls write; a signal that was ignored (nohup) stays so.
        unsafe {
            let before = libc::signal(signal, handler as *const () as libc::sighandler_t);
            if before == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
    Ok(())
}

/// Called when all is done: while a signal is ending this process, that is how it ends.
pub fn settle() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn end(signal: i32) -> ! {
    ENDING.store(true, Ordering::SeqCst);
    let send = |signal| {
        for &child in live().iter() {
            // SAFETY: no memory effects; the children are in the list until they have been waited for.
            unsafe { libc::kill(child, signal) };
        }
    };
    send(libc::SIGTERM);
    let deadline = Instant::now() + GRACE;
    while !live().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    send(libc::SIGKILL);
    let _ = std::io::stdout().flush();
    // SAFETY: no preconditions. The default handling ends the process; _exit does where the signal is blocked.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        libc::_exit(128 + signal)
    }
}

/// A running child that a signal to this process ends, with its process group if it leads one.
pub struct Guarded {
    child: Child,
    id: i32,
}

impl Guarded {
    /// Starts `command`; an error once this process is ending.
    pub fn spawn(command: &mut Command, leads_a_group: bool) -> Result<Self> {
        // Under the lock, so that a signal finds every child that was started.
        let mut live = live();
        if ENDING.load(Ordering::SeqCst) {
            return Err("interrupted".into());
        }
        let child = command.spawn()?;
        let id = if leads_a_group {
            -(child.id() as i32)
        } else {
            child.id() as i32
        };
        live.push(id);
        Ok(Self { child, id })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// [`Child::try_wait`].
    pub fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// [`Child::wait`].
    pub fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        live().retain(|&id| id != self.id);
    }
}
