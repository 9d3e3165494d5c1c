//! Child processes with a time limit and captured output.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::Result;
use crate::interrupt::Guarded;

/// What a finished (or stopped) command left.
pub struct Outcome {
    /// Its exit status.
    pub status: ExitStatus,
    /// Standard output and error, in the order they arrived.
    pub output: String,
    /// It ran past its limit and was killed, with all its children.
    pub timed_out: bool,
}

impl Outcome {
    /// Exit status 0 within the limit.
    pub fn success(&self) -> bool {
        self.status.success() && !self.timed_out
    }

    /// The end in words: `exit status 1`, `killed by signal 11`, `timed out`.
    pub fn ending(&self) -> String {
        if self.timed_out {
            return "timed out".into();
        }
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "ended strangely".into(),
        }
    }

    /// The last `lines` lines of the output.
    pub fn tail(&self, lines: usize) -> String {
        let all: Vec<&str> = self.output.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// Runs `command` in a process group of its own for at most `limit`; at the limit the whole group is killed.
pub fn run(command: &mut Command, limit: Duration) -> Result<Outcome> {
    run_watched(command, limit, |_| (), |_| ())
}

/// As [`run`]; `hear` gets each line as it comes.
pub fn run_heard(command: &mut Command, limit: Duration, hear: impl FnMut(&str) + Send + 'static) -> Result<Outcome> {
    run_watched(command, limit, |_| (), hear)
}

/// As [`run`], and the most memory, in KiB, that the command itself had resident.
///
/// The kernel's own count would include this process's memory, which a child has until it becomes the command.
pub fn run_measured(command: &mut Command, limit: Duration) -> Result<(Outcome, u64)> {
    let mut peak = 0;
    let outcome = run_watched(
        command,
        limit,
        |process| {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            let kib = status.lines().find_map(|line| {
                let text = line.strip_prefix("VmHWM:")?;
                text.trim().strip_suffix(" kB")?.parse::<u64>().ok()
            });
            // The mark starts anew where a shell becomes the command; the last one counts.
            peak = kib.unwrap_or(peak);
        },
        |_| (),
    )?;
    Ok((outcome, peak))
}

/// `watch` gets the command's process every few milliseconds, `hear` each whole line of output.
fn run_watched(
    command: &mut Command,
    limit: Duration,
    mut watch: impl FnMut(u32),
    mut hear: impl FnMut(&str) + Send + 'static,
) -> Result<Outcome> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (mut reader, writer) = std::io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let mut child = Guarded::spawn(command, true).map_err(|error| format!("{name}: {error}"))?;
    // The command holds the writing ends; they must close here, or reading never ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (sender, receiver) = mpsc::channel();
    let collector = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut buffer = [0; 8192];
        let mut heard = 0;
        // Until every writer has closed, or the receiver has gone.
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..n]);
            while let Some(length) = bytes[heard..].iter().position(|&byte| byte == b'\n') {
                hear(&String::from_utf8_lossy(&bytes[heard..heard + length]));
                heard += length + 1;
            }
        }
        let _ = sender.send(());
        bytes
    });

    let deadline = Instant::now() + limit;
    let mut timed_out = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        watch(child.id());
        if Instant::now() > deadline {
            timed_out = true;
            kill_group(child.id());
            break child.wait()?;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    // Children that outlive the command and hold its output open are ended with it.
    if receiver.recv_timeout(Duration::from_secs(5)).is_err() {
        kill_group(child.id());
    }
    let bytes = collector.join().map_err(|_| "the output collector panicked")?;
    Ok(Outcome {
        status,
        output: String::from_utf8_lossy(&bytes).into_owned(),
        timed_out,
    })
}

fn kill_group(leader: u32) {
    // SAFETY: kill has no memory effects; the group was made for this command alone.
    unsafe { libc::kill(-(leader as i32), libc::SIGKILL) };
}

/// Runs `command` with this terminal's streams and turns a failure into an error that names it.
pub fn must(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let status = Guarded::spawn(command, false)
        .and_then(|mut child| Ok(child.wait()?))
        .map_err(|error| format!("{name}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name}: {status}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_status_come_back() {
        let outcome = run(
            Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]),
            Duration::from_secs(10),
        )
        .unwrap();
        assert_eq!(outcome.status.code(), Some(3));
        assert!(outcome.output.contains("out") && outcome.output.contains("err"));
    }

    #[test]
    fn lines_are_heard_whole_and_while_the_command_runs() {
        let (sender, lines) = mpsc::channel();
        let script = "printf 'a b'; sleep 0.1; printf 'c\\nd\\n'; read x < /dev/null; sleep 0.5; echo e";
        let start = Instant::now();
        let outcome = run_heard(
            Command::new("sh").args(["-c", script]),
            Duration::from_secs(10),
            move |line| {
                let _ = sender.send((line.to_owned(), start.elapsed()));
            },
        )
        .unwrap();
        let total = start.elapsed();
        let heard: Vec<_> = lines.iter().collect();
        let texts: Vec<&str> = heard.iter().map(|(line, _)| &line[..]).collect();
        assert_eq!(texts, ["a bc", "d", "e"]);
        assert!(
            heard[0].1 + Duration::from_millis(250) < total,
            "{heard:?} of {total:?}"
        );
        assert!(outcome.success());
    }

    #[test]
    fn a_command_past_its_limit_is_killed_with_its_children() {
        let start = Instant::now();
        let outcome = run(
            Command::new("sh").args(["-c", "sleep 60 & sleep 60"]),
            Duration::from_millis(100),
        )
        .unwrap();
        assert!(outcome.timed_out && start.elapsed() < Duration::from_secs(30));
    }
}
