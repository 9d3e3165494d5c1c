//! `regauge run`: finds the libraries, sets and checks the environment, and becomes the program, or prints the environment for
//! a job script.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use launcher::{Bar, Environment, Libraries, RocrRoot, VirtualGpu};

use crate::advice;

/// Options of `run`.
#[derive(clap::Args)]
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
    let result = crate::libraries(arguments.libraries.as_deref()).and_then(|libraries| {
        if arguments.print_env {
            print!("{}", exports(&libraries, arguments.preload));
            return Ok(ExitCode::SUCCESS);
        }
        start(arguments, libraries)
    });
    result.unwrap_or_else(|error| {
        let subject = arguments.program.first().map_or(OsStr::new("run"), |program| program);
        eprintln!("regauge: {}: {error}", subject.to_string_lossy());
        // As shells have it.
        ExitCode::from(match error.kind() {
            std::io::ErrorKind::NotFound => 127,
            std::io::ErrorKind::PermissionDenied => 126,
            _ => 1,
        })
    })
}

fn start(arguments: &Arguments, libraries: Libraries) -> std::io::Result<ExitCode> {
    let environment = environment(arguments, libraries.clone())?;
    if !arguments.no_check {
        check(&arguments.program[0], &environment, &libraries);
    }
    let mut command = environment.command(&arguments.program[0]);
    command.args(&arguments.program[1..]);
    let Some(vgpu) = environment.vgpu else {
        // Nothing to tidy up afterwards: become the program. exec returns only on failure.
        return Err(command.exec());
    };
    let status = command.status();
    // The virtual machine ends with its program; a leftover in a temporary folder is no failure.
    let _ = std::fs::remove_dir_all(vgpu.root());
    Ok(ExitCode::from(status?.code().unwrap_or(1) as u8))
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

fn environment(arguments: &Arguments, libraries: Libraries) -> std::io::Result<Environment> {
    let mut environment = Environment {
        preload: arguments.preload,
        ..Environment::default()
    };
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
