//! `regauge run`: finds the libraries, sets and checks the environment, and becomes the program, or prints the environment for
//! a job script.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use launcher::{Bar, Environment, Libraries, RocrRoot, VirtualGpu};

use crate::advice;

/// What Regauge's own failures end with, as those of `env`, `nohup` and `timeout` do: the program has not been tried.
const OWN_FAILURE: u8 = 125;

const STATUSES: &str = "\
Exit status: the program's own; it keeps this process's number, so signals reach it too.
  125  Regauge's libraries, or a folder named in an option, are not there
  126  the program is there but cannot be executed
  127  there is no such program
  2    wrong usage";

/// Options of `run`.
#[derive(clap::Args)]
#[command(after_help = STATUSES)]
pub struct Arguments {
    /// Folder with Regauge's libraries (default: the one this command is in, or `../lib` of it).
    #[arg(long, value_name = "DIR")]
    libraries: Option<PathBuf>,
    /// Preload the libraries too: for programs that bring a path (RPATH) to NVIDIA's.
    #[arg(long)]
    preload: bool,
    /// Print what a job script has to export, as lines for sh, and start nothing.
    #[arg(long)]
    print_env: bool,
    /// Do not look for conflicts before starting.
    #[arg(long)]
    no_check: bool,
    /// Give the program this many virtual GPUs instead of the machine's own.
    #[arg(long, value_name = "N", default_value_t = 0)]
    virtual_gpus: u32,
    /// How the CPU sees a virtual GPU's memory.
    #[arg(long, default_value = "large")]
    bar: BarMode,
    /// Run over the ROCr unpacked in this folder instead of the machine's.
    #[arg(long, value_name = "DIR")]
    rocr: Option<PathBuf>,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required_unless_present = "print_env")]
    program: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum BarMode {
    Small,
    Large,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    let started = crate::libraries(arguments.libraries.as_deref()).and_then(|libraries| {
        if arguments.print_env {
            if arguments.preload {
                preloadable(&libraries)?;
            }
            print!("{}", exports(&libraries, arguments.preload));
            return Ok(ExitCode::SUCCESS);
        }
        start(arguments, libraries)
    });
    started.unwrap_or_else(|error| {
        eprintln!("regauge: {error}");
        ExitCode::from(OWN_FAILURE)
    })
}

/// Becomes the program; returns only where that fails.
fn start(arguments: &Arguments, libraries: Libraries) -> io::Result<ExitCode> {
    let environment = environment(arguments, libraries.clone())?;
    let program = &arguments.program[0];
    if !arguments.no_check {
        check(program, &environment, &libraries);
    }
    let mut command = environment.command(program);
    command.args(&arguments.program[1..]);
    if let Some(vgpu) = &environment.vgpu {
        // A leftover in a temporary folder is no reason not to start.
        let _ = remove_afterwards(vgpu.root());
    }
    let error = command.exec();
    let there = find_program(program).is_some();
    let (status, why) = match error.kind() {
        io::ErrorKind::NotFound if !there => (127, "there is no such program".to_owned()),
        // execve says the same of the file that is to interpret the program.
        io::ErrorKind::NotFound => (
            126,
            "its loader, or the interpreter that its first line names, is not there".into(),
        ),
        _ => (126, error.to_string()),
    };
    eprintln!("regauge: {}: {why}", program.to_string_lossy());
    Ok(ExitCode::from(status))
}

/// Leaves a process behind that removes `folder` once this one, which is about to become the program, has ended. So the program is
/// nobody's child but its starter's: exit status, signals and job control are its own.
fn remove_afterwards(folder: &Path) -> io::Result<()> {
    // SAFETY: plain system calls; this process has one thread, so its copy may do what any program may. The copy's copy is the
    // one that stays: `init` adopts it, and the program gets no child that it did not start.
    unsafe {
        let me = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) as i32;
        if me < 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::fork() {
            -1 => return Err(io::Error::last_os_error()),
            0 => {}
            child => {
                libc::waitpid(child, std::ptr::null_mut(), 0);
                libc::close(me);
                return Ok(());
            }
        }
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        libc::setsid();
        // Whoever reads the program's output waits until all that hold it have closed it.
        (0..1024).filter(|&open| open != me).for_each(|open| {
            libc::close(open);
        });
        let mut ended = libc::pollfd {
            fd: me,
            events: libc::POLLIN,
            revents: 0,
        };
        while libc::poll(&raw mut ended, 1, -1) < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
        }
        let _ = std::fs::remove_dir_all(folder);
        libc::_exit(0)
    }
}

/// Warns on standard error; never a reason not to start.
fn check(name: &OsStr, environment: &Environment, libraries: &Libraries) {
    let mut all = advice::visibility(|name| std::env::var(name).ok());
    if let Some(program) = find_program(name) {
        all.extend(advice::program(&program, libraries, |loader| {
            environment.command(loader)
        }));
    }
    for advice in all {
        eprintln!("regauge: warning: {}; {}", advice.text, advice.cure);
    }
}

/// Where the shell would find it.
fn find_program(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return path.exists().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find(|path| path.is_file())
}

fn environment(arguments: &Arguments, libraries: Libraries) -> io::Result<Environment> {
    let mut environment = Environment {
        preload: arguments.preload,
        ..Environment::default()
    };
    if arguments.preload {
        preloadable(&libraries)?;
    }
    if arguments.virtual_gpus > 0 {
        let root = std::env::temp_dir().join(format!("regauge-vgpu-{}", std::process::id()));
        let mut vgpu = VirtualGpu::new(&libraries.directory().join("libvgpu.so"), &root)?;
        vgpu.gpus = arguments.virtual_gpus;
        vgpu.bar = match arguments.bar {
            BarMode::Small => Bar::Small,
            BarMode::Large => Bar::Large,
        };
        environment.vgpu = Some(vgpu);
    }
    if let Some(directory) = &arguments.rocr {
        environment.rocr = Some(RocrRoot::in_directory(directory)?);
    }
    environment.libraries = Some(libraries);
    Ok(environment)
}

/// The loader splits LD_PRELOAD at spaces and colons and knows no quoting: libraries in such a folder would be left out, with a
/// message for every process of the job.
fn preloadable(libraries: &Libraries) -> io::Result<()> {
    let folder = libraries.directory().to_string_lossy();
    if folder.contains([' ', ':']) {
        let text = format!("{folder}: LD_PRELOAD cannot hold a path with a space or a colon; put the folder elsewhere");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// The lines for a job script. Lists that the job has already are kept behind ours.
fn exports(libraries: &Libraries, preload: bool) -> String {
    let mut text = line("LD_LIBRARY_PATH", &libraries.directory().to_string_lossy());
    if preload {
        let files = libraries.preloads().map(|file| file.to_string_lossy().into_owned());
        text.push_str(&line("LD_PRELOAD", &files.join(":")));
    }
    text
}

fn line(variable: &str, value: &str) -> String {
    let quoted = value.replace('\'', "'\\''");
    format!("export {variable}='{quoted}'\"${{{variable}:+:${variable}}}\"\n")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_the_lines_back() {
        let script = format!(
            "X=/old; {}printf %s \"$X\"; unset X; {}printf %s \" $X\"",
            line("X", "/a b'c"),
            line("X", "/n")
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "/a b'c:/old /n");
    }
}
