//! The folder of one virtual machine, and a guardian that removes it whatever happens to its launcher.
//!
//! The guardian is a process of its own that waits for the launcher's end of a pipe to close. Then the machine is over: what
//! still runs on it is killed, and its folder is removed. So even a killed launcher leaves nothing behind.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::check;

/// How folders of machines are called, before the launcher's process id.
const PREFIX: &str = "vgpu-run-";
/// How long processes of a machine that is over may take to die.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than the processes that a machine takes: locks on the bytes of its state file say who is alive.
const SLOTS: i64 = 4096;

/// A machine's folder. Dropping it ends the machine.
pub struct Machine {
    folder: PathBuf,
    guardian: libc::pid_t,
    pipe: Option<UnixStream>,
}

impl Machine {
    /// Makes a folder below `parent` (default: `/dev/shm`, or the temporary folder) and starts its guardian. Folders of
    /// machines whose launcher and guardian were both killed are removed first. `purpose` is part of the folder's name.
    ///
    /// # Errors
    /// What making the folder, the pipe or the process gave.
    pub fn new(parent: Option<&Path>, purpose: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let parent = parent.map_or_else(default_parent, Path::to_owned);
        sweep(&parent);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{PREFIX}{}-{number}-{purpose}", std::process::id()));
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: the child runs our own code only, allocates at most (which glibc allows after a fork) and never returns.
        let guardian = unsafe { libc::fork() };
        if guardian == 0 {
            drop(ours);
            guard(theirs, &folder);
        }
        check(guardian)?;
        drop(theirs);
        let mut machine = Self {
            folder,
            guardian,
            pipe: Some(ours),
        };
        // The folder is made once the guardian is out of reach of signals to our group: a kill before that finds none.
        if let Some(pipe) = &mut machine.pipe {
            pipe.read_exact(&mut [0])?;
        }
        fs::DirBuilder::new().mode(0o700).create(&machine.folder)?;
        Ok(machine)
    }

    /// The folder for [`VirtualGpu`](crate::VirtualGpu): inside the machine's, so that nobody makes it anew once that is gone.
    pub fn root(&self) -> PathBuf {
        self.folder.join("machine")
    }

    /// A folder for other files of this run. They go with the machine.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a command to its end. If this process dies meanwhile, the command is killed with the machine.
    ///
    /// # Errors
    /// What starting it gave.
    pub fn run(&mut self, command: &mut Command) -> io::Result<ExitStatus> {
        let mut child = command.spawn()?;
        self.tell(child.id() as i32);
        let status = child.wait();
        self.tell(0);
        status
    }

    /// Tells the guardian which process is to be killed if this one dies; 0 for none.
    pub fn tell(&mut self, pid: i32) {
        if let Some(pipe) = &mut self.pipe {
            let _ = pipe.write_all(&pid.to_le_bytes());
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The guardian sees the end of the pipe and does the rest.
        self.pipe = None;
        // SAFETY: a child of ours that nobody else waits for; no status is wanted.
        unsafe { libc::waitpid(self.guardian, std::ptr::null_mut(), 0) };
        // Unless it was killed.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn default_parent() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// The guardian's life.
fn guard(mut pipe: UnixStream, folder: &Path) -> ! {
    // SAFETY: system calls without preconditions. A session of its own: signals to the launcher's group do not reach it. Only
    // the pipe stays open, or whoever reads the launcher's output would wait for us.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"vgpu-guardian".as_ptr());
        let fd = pipe.as_raw_fd() as libc::c_uint;
        if fd > 0 {
            libc::syscall(libc::SYS_close_range, 0, fd - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, fd + 1, libc::c_uint::MAX, 0);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    let _ = pipe.write_all(&[1]);
    let (mut bytes, mut job) = ([0; 4], 0);
    while pipe.read_exact(&mut bytes).is_ok() {
        job = i32::from_le_bytes(bytes);
    }
    if job > 0 {
        // SAFETY: no memory is touched.
        unsafe { libc::kill(job, libc::SIGKILL) };
    }
    end(folder);
    // SAFETY: does not return.
    unsafe { libc::_exit(0) }
}

/// Kills what runs on a machine and removes its folder.
fn end(folder: &Path) {
    let deadline = Instant::now() + PATIENCE;
    let state = folder.join("machine/state");
    while let Some(pid) = alive(&state)
        && Instant::now() < deadline
    {
        // SAFETY: no memory is touched. The process holds a lock on this machine's state.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        std::thread::sleep(Duration::from_millis(2));
    }
    // A process that starts right now may make a file while others are removed.
    while fs::remove_dir_all(folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        && Instant::now() < deadline
    {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process that lives on the machine with this state file.
fn alive(state: &Path) -> Option<libc::pid_t> {
    let file = OwnedFd::from(File::options().read(true).write(true).open(state).ok()?);
    // SAFETY: plain data.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock.l_len = SLOTS;
    // SAFETY: `lock` outlives the call.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) } == 0;
    (asked && lock.l_type != libc::F_UNLCK as i16 && lock.l_pid > 0).then_some(lock.l_pid)
}

/// Removes folders of ours whose launcher is gone and on which nobody lives.
fn sweep(parent: &Path) {
    // SAFETY: no preconditions.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let launcher = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<i32>().ok());
        let Some(launcher) = launcher else { continue };
        let ours = entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        // SAFETY: signal 0 only asks.
        let gone =
            unsafe { libc::kill(launcher, 0) } != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
        if ours && gone && alive(&entry.path().join("machine/state")).is_none() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("launcher-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_machine_goes_with_its_folder() {
        let parent = parent("folder");
        let mut machine = Machine::new(Some(&parent), "test").unwrap();
        fs::create_dir(machine.root()).unwrap();
        fs::write(machine.root().join("gpu0"), "x").unwrap();
        let status = machine.run(Command::new("sh").args(["-c", "exit 5"])).unwrap();
        assert_eq!(status.code(), Some(5));
        drop(machine);
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
        fs::remove_dir(parent).unwrap();
    }

    #[test]
    fn a_killed_launcher_leaves_no_folder_and_no_job() {
        let parent = parent("killed");
        let note = parent.join("job");
        // SAFETY: the child makes a machine and a job and waits to be killed.
        let launcher = unsafe { libc::fork() };
        if launcher == 0 {
            let mut machine = Machine::new(Some(&parent), "test").unwrap();
            fs::create_dir(machine.root()).unwrap();
            let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 100", note.display());
            let _ = machine.run(Command::new("sh").args(["-c", &script]));
            // SAFETY: does not return.
            unsafe { libc::_exit(0) };
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while !note.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let job: i32 = fs::read_to_string(&note).unwrap().trim().parse().unwrap();
        // SAFETY: a child of ours.
        unsafe {
            libc::kill(launcher, libc::SIGKILL);
            libc::waitpid(launcher, std::ptr::null_mut(), 0);
        }
        let folders = || {
            fs::read_dir(&parent)
                .unwrap()
                .flatten()
                .filter(|e| e.path().is_dir())
                .count()
        };
        // A zombie whose parent is gone may wait for init to collect it.
        let running = || fs::read_to_string(format!("/proc/{job}/stat")).is_ok_and(|stat| !stat.contains(") Z"));
        while (folders() > 0 || running()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(folders() == 0 && !running());
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn folders_of_dead_launchers_are_swept() {
        let parent = parent("sweep");
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let stale = parent.join(format!("{PREFIX}{}-0", child.id()));
        fs::create_dir(&stale).unwrap();
        let live = parent.join(format!("{PREFIX}{}-77", std::process::id()));
        fs::create_dir(&live).unwrap();
        drop(Machine::new(Some(&parent), "test").unwrap());
        assert!(!stale.exists() && live.exists());
        fs::remove_dir_all(parent).unwrap();
    }
}
