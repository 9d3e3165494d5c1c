//! `vgpu run`.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use clap::ValueEnum;
use launcher::{Bar, Environment, Link, Machine, RocrRoot, VirtualGpu};

use crate::size;

/// Options of `run`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Instruction set of all GPUs.
    #[arg(long, default_value = "gfx90a", value_parser = ["gfx90a", "gfx942"])]
    arch: String,
    /// Number of GPUs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    gpus: u32,
    /// Whether the CPU can load and store device memory.
    #[arg(long, default_value = "large")]
    bar: BarMode,
    /// What connects the GPUs.
    #[arg(long, default_value = "xgmi")]
    link: LinkMode,
    /// Memory of each GPU, as 512M or 64G. Only what is written takes memory of the host.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
    /// Run over the ROCr unpacked in this folder instead of the machine's.
    #[arg(long, value_name = "DIR")]
    rocr: Option<PathBuf>,
    /// Write a line for each ioctl, packet or kernel (several with commas) to a file, or to standard error.
    #[arg(long, value_name = "KINDS[:FILE]", value_parser = trace)]
    trace: Option<String>,
    /// Print each process's counters, and a table of its kernels, when the command has ended.
    #[arg(long)]
    counters: bool,
    /// `hostile`: stores reach the host and other GPUs only at a release, and loads may be stale until an acquire.
    #[arg(long, default_value = "coherent")]
    coherence: Coherence,
    /// Run waves on one thread, in an order that follows from this number.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The emulated driver (default: libvgpu.so beside this command, or in ../lib).
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Folder below which the virtual machine's own is made.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum BarMode {
    Small,
    Large,
}

#[derive(Clone, Copy, ValueEnum)]
enum LinkMode {
    Xgmi,
    Pcie,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Coherence {
    Coherent,
    Hostile,
}

/// Checks the kinds and makes the file's path absolute: the command may change its folder.
fn trace(text: &str) -> Result<String, String> {
    let (kinds, file) = text
        .split_once(':')
        .map_or((text, None), |(kinds, file)| (kinds, Some(file)));
    if let Some(wrong) = kinds
        .split(',')
        .find(|kind| !["ioctl", "packet", "kernel"].contains(kind))
    {
        return Err(format!("{wrong:?} is not one of ioctl, packet and kernel"));
    }
    match file {
        None => Ok(kinds.to_owned()),
        Some("") => Err("no file after the colon".into()),
        Some(file) => {
            let path = std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?;
            Ok(format!("{kinds}:{}", path.display()))
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    match start(arguments) {
        Ok(status) => exit_code(status),
        Err(error) => {
            eprintln!("vgpu: {}: {error}", arguments.command[0].to_string_lossy());
            // As shells have it.
            ExitCode::from(match error.kind() {
                io::ErrorKind::NotFound => 127,
                io::ErrorKind::PermissionDenied => 126,
                _ => 1,
            })
        }
    }
}

/// As shells have it: 128 and the signal's number.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.unwrap_or(1) as u8)
}

fn start(arguments: &Arguments) -> io::Result<ExitStatus> {
    let library = match &arguments.library {
        Some(library) => library.clone(),
        None => library()?,
    };
    let mut machine = Machine::new(arguments.folder.as_deref(), "job")?;
    let mut vgpu = VirtualGpu::new(&library, &machine.root())?;
    vgpu.gpus = arguments.gpus;
    vgpu.arch.clone_from(&arguments.arch);
    vgpu.bar = match arguments.bar {
        BarMode::Small => Bar::Small,
        BarMode::Large => Bar::Large,
    };
    vgpu.link = match arguments.link {
        LinkMode::Xgmi => Link::Xgmi,
        LinkMode::Pcie => Link::Pcie,
    };
    vgpu.memory = arguments.memory;
    vgpu.trace = arguments.trace.clone().map(OsString::from);
    vgpu.hostile_coherence = arguments.coherence == Coherence::Hostile;
    vgpu.seed = arguments.seed;
    vgpu.counters = arguments.counters.then(|| machine.folder().join("counters-"));
    let rocr = arguments.rocr.as_deref().map(RocrRoot::in_directory).transpose()?;
    let environment = Environment {
        vgpu: Some(vgpu),
        rocr,
        ..Environment::default()
    };
    let mut command = environment.command(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    // Ctrl-C is for the command; this process stays to tidy up after it.
    // SAFETY: ignoring a signal has no preconditions; the command gets the default action back.
    unsafe {
        use std::os::unix::process::CommandExt as _;
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    let status = machine.run(&mut command)?;
    if arguments.counters {
        // Processes that outlive the command write theirs when they end, and that is with the machine.
        print_counters(machine.folder());
    }
    Ok(status)
}

/// The library beside this command, or in the `lib` beside its folder.
fn library() -> io::Result<PathBuf> {
    let command = std::env::current_exe()?;
    let folder = command.parent().unwrap_or(Path::new("/"));
    let places = [folder.join("libvgpu.so"), folder.join("../lib/libvgpu.so")];
    places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let text = format!("no libvgpu.so in {} (use --library)", folder.display());
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// Prints what the processes counted to standard error, each with its process id.
fn print_counters(folder: &Path) {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .collect();
    files.sort();
    let mut out = io::stderr().lock();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let pid = name.rsplit('-').next().unwrap_or_default();
        let _ = writeln!(out, "vgpu: counters of process {pid}");
        for line in std::fs::read_to_string(&file).unwrap_or_default().lines() {
            let (name, value) = line.split_once('\t').unwrap_or((line, ""));
            if value != "0" {
                let _ = writeln!(out, "  {name:<24}{value:>16}");
            }
        }
        let table = std::fs::read_to_string(file.with_extension("kernels")).unwrap_or_default();
        let _ = write!(out, "{}", align(&table));
    }
}

/// A table with tabs, its columns aligned.
fn align(table: &str) -> String {
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| {
        rows.iter()
            .filter_map(|row| row.get(i))
            .map(|cell| cell.len())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        text.push(' ');
        for (i, cell) in row.iter().enumerate() {
            let width = widths[i];
            // The name to the left, numbers to the right.
            text += &if i == 0 {
                format!(" {cell:<width$}")
            } else {
                format!("  {cell:>width$}")
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_traces_are_checked() {
        assert_eq!(trace("ioctl,kernel"), Ok("ioctl,kernel".into()));
        assert_eq!(trace("packet:/tmp/t"), Ok("packet:/tmp/t".into()));
        let relative = trace("packet:t").unwrap();
        assert!(
            relative.starts_with("packet:/") && relative.ends_with("/t"),
            "{relative}"
        );
        assert!(trace("ioctls").is_err() && trace("ioctl:").is_err());
    }

    #[test]
    fn tables_line_up() {
        assert_eq!(
            align("kernel\tn\nlonger name\t12\n"),
            "  kernel        n\n  longer name  12\n"
        );
    }
}
