//! Jobs that are killed at any point: nothing of them may remain. `cargo xtask soak vgpu-kill` runs many, the suite hsa a few.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::setup::Rocr;
use crate::{Result, bench, hsa_programs};

/// How long whatever has to disappear may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Marks the processes of a job, in their environment.
const MARK: &str = "VGPU_KILL_CYCLE";

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Launcher,
    First,
    Second,
    Group,
}

/// What the cycles came to.
pub struct Report {
    /// Cycles run.
    pub cycles: u32,
    /// Of those, jobs killed before they were up.
    pub early: u32,
    /// What went wrong.
    pub faults: Vec<String>,
}

/// Runs `cycles` jobs of two processes on two GPUs and kills each somewhere. In a thread of its own, whose `/dev/shm` and
/// `/tmp` are private and empty: every file that is left is found.
pub fn run(cycles: u32) -> Result<Report> {
    let job = Job {
        program: hsa_programs::compiled("churn")?,
        code: hsa_programs::kernels()?,
        rocr: [Rocr::V612.ensure()?, Rocr::V523.ensure()?].map(|root| root.unwrap_or_default()),
    };
    std::thread::spawn(move || job.cycles(cycles).map_err(|error| error.to_string()))
        .join()
        .map_err(|_| "the thread panicked")?
        .map_err(Into::into)
}

struct Job {
    program: PathBuf,
    code: PathBuf,
    rocr: [PathBuf; 2],
}

impl Job {
    fn cycles(&self, cycles: u32) -> Result<Report> {
        let folders = private_folders()?;
        let mut report = Report {
            cycles,
            early: 0,
            faults: Vec::new(),
        };
        // The same each time: a failure can be repeated.
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |n: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 20) % n
        };
        for cycle in 0..cycles {
            let victim = [Victim::Launcher, Victim::First, Victim::Second, Victim::Group][random(4) as usize];
            // A third is killed on the way up, the rest at work.
            let early = random(3) == 0;
            let delay = Duration::from_micros(if early { random(150_000) } else { random(60_000) });
            report.early += u32::from(early);
            let setting = (random(2) == 0, random(2) as usize);
            let what = format!(
                "cycle {cycle}: {victim:?} killed {delay:?} after {} ({} BAR, {})",
                if early { "its start" } else { "the job was up" },
                if setting.0 { "small" } else { "large" },
                self.rocr[setting.1].file_name().unwrap_or_default().to_string_lossy()
            );
            let mark = format!("{}-{cycle}", std::process::id());
            if let Err(error) = self.cycle(&mark, victim, early, delay, setting) {
                report.faults.push(format!("{what}: {error}"));
            }
            let deadline = Instant::now() + PATIENCE;
            let mut left = leftovers(&mark, &folders);
            while !left.is_empty() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
                left = leftovers(&mark, &folders);
            }
            if !left.is_empty() {
                report.faults.push(format!("{what}: left {left:?}"));
                for folder in &folders {
                    for entry in fs::read_dir(folder)?.flatten() {
                        let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
                    }
                }
            }
        }
        Ok(report)
    }

    fn cycle(
        &self,
        mark: &str,
        victim: Victim,
        early: bool,
        delay: Duration,
        (small, rocr): (bool, usize),
    ) -> Result<()> {
        let mut command = Command::new(bench::release().join("vgpu"));
        command.args([
            "run",
            "--gpus",
            "2",
            "--bar",
            if small { "small" } else { "large" },
            "--rocr",
        ]);
        command
            .arg(&self.rocr[rocr])
            .arg("--")
            .arg(&self.program)
            .arg(&self.code);
        command.env(MARK, mark).process_group(0);
        let mut launcher = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = launcher.stdout.take().ok_or("no output")?;
        let second = if early {
            None
        } else {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line)?;
            match line
                .strip_prefix("running ")
                .and_then(|pid| pid.trim().parse::<i32>().ok())
            {
                Some(pid) => Some(pid),
                None => {
                    kill(-(launcher.id() as i32));
                    launcher.wait()?;
                    return Err(format!("the job did not come up: {line:?}").into());
                }
            }
        };
        std::thread::sleep(delay);
        self.kill(victim, &launcher, second);
        // The other processes of the job do not wait for the dead one: whoever is left is killed too.
        if matches!(victim, Victim::First | Victim::Second) {
            std::thread::sleep(Duration::from_millis(1));
            kill(launcher.id() as i32);
        }
        launcher.wait()?;
        Ok(())
    }

    fn kill(&self, victim: Victim, launcher: &Child, second: Option<i32>) {
        let pid = launcher.id() as i32;
        match (victim, second) {
            (Victim::Launcher, _) => kill(pid),
            (Victim::Group, _) => kill(-pid),
            (Victim::Second, Some(second)) => kill(second),
            _ => children(pid).into_iter().for_each(kill),
        }
    }
}

fn kill(pid: i32) {
    // SAFETY: no memory is touched; the process is one of this job.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// The children of a process, without its guardian.
fn children(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .filter(|pid| !name(pid).starts_with("vgpu"))
        .collect()
}

/// Files in the private folders, and processes of the job that are not just waiting to be collected.
fn leftovers(mark: &str, folders: &[PathBuf]) -> BTreeSet<String> {
    let mut left = BTreeSet::new();
    for folder in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            left.insert(entry.path().display().to_string());
        }
    }
    let mark = format!("{MARK}={mark}\0");
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.windows(mark.len()).any(|window| window == mark.as_bytes()) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            left.insert(format!(
                "process {} {}",
                entry.file_name().to_string_lossy(),
                name.trim()
            ));
        }
    }
    left
}

/// Lays empty file systems over `/dev/shm` and `/tmp`, for this thread and its children.
fn private_folders() -> Result<Vec<PathBuf>> {
    let tmpfs = |target: &CStr| {
        // SAFETY: NUL-terminated strings.
        check(unsafe {
            libc::mount(
                c"tmpfs".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                std::ptr::null(),
            )
        })
    };
    let enter = || {
        // SAFETY: plain system calls; the file-system view of this thread is its own from here on.
        unsafe {
            check(libc::unshare(libc::CLONE_NEWNS))?;
            let flags = libc::MS_REC | libc::MS_PRIVATE;
            check(libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                flags,
                std::ptr::null(),
            ))?;
        }
        tmpfs(c"/dev/shm")?;
        tmpfs(c"/tmp")
    };
    enter().map_err(|error: io::Error| format!("needs a mount namespace of its own: {error}"))?;
    Ok(["/dev/shm", "/tmp"].map(|folder| Path::new(folder).to_owned()).to_vec())
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
