//! The `regauge` command: starts programs with Regauge's libraries and, if asked, a virtual GPU.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use launcher::{Bar, Environment, Libraries, RocrRoot, VirtualGpu};

old_glibc::program!();

/// Runs CUDA programs on AMD GPUs.
#[derive(Parser)]
#[command(name = "regauge", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program with Regauge's libraries in front of any others.
    Run(Run),
}

/// Options of `run`.
#[derive(clap::Args)]
struct Run {
    /// Folder with Regauge's libraries (default: the one this command is in, or `../lib` of it).
    #[arg(long, value_name = "DIR")]
    libraries: Option<PathBuf>,
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
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum BarMode {
    Small,
    Large,
}

fn main() -> ExitCode {
    let Command::Run(run) = Arguments::parse().command;
    match start(&run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("regauge: {}: {error}", run.program[0].to_string_lossy());
            ExitCode::FAILURE
        }
    }
}

fn start(run: &Run) -> std::io::Result<ExitCode> {
    let environment = environment(run)?;
    let mut command = environment.command(&run.program[0]);
    command.args(&run.program[1..]);
    let Some(vgpu) = environment.vgpu else {
        // Nothing to tidy up afterwards: become the program. exec returns only on failure.
        return Err(command.exec());
    };
    let status = command.status();
    // The virtual machine ends with its program; a leftover in a temporary folder is no failure.
    let _ = std::fs::remove_dir_all(vgpu.root());
    Ok(ExitCode::from(status?.code().unwrap_or(1) as u8))
}

fn environment(run: &Run) -> std::io::Result<Environment> {
    let libraries = match &run.libraries {
        Some(directory) => Libraries::in_directory(directory)?,
        None => beside_this_command()?,
    };
    let mut environment = Environment::default();
    if run.virtual_gpus > 0 {
        let root = std::env::temp_dir().join(format!("regauge-vgpu-{}", std::process::id()));
        let mut vgpu = VirtualGpu::new(&libraries.directory().join("libvgpu.so"), &root)?;
        vgpu.gpus = run.virtual_gpus;
        vgpu.bar = match run.bar {
            BarMode::Small => Bar::Small,
            BarMode::Large => Bar::Large,
        };
        environment.vgpu = Some(vgpu);
    }
    if let Some(directory) = &run.rocr {
        environment.rocr = Some(RocrRoot::in_directory(directory)?);
    }
    environment.libraries = Some(libraries);
    Ok(environment)
}

fn beside_this_command() -> std::io::Result<Libraries> {
    let command = std::env::current_exe()?;
    let folder = command.parent().unwrap_or(Path::new("/"));
    Libraries::in_directory(folder).or_else(|first| Libraries::in_directory(&folder.join("../lib")).map_err(|_| first))
}
