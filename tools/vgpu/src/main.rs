//! The `vgpu` command: starts programs over virtual AMD GPUs. It needs `libvgpu.so`, and a ROCr that the programs find.

mod run;
mod size;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

old_glibc::program!();

/// Runs ROCm programs on virtual AMD GPUs: AMD's own runtime, unmodified, over an emulated driver.
#[derive(Parser)]
#[command(name = "vgpu", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a command on a virtual machine of its own. All its children share the GPUs; whatever still uses them when the
    /// command ends is killed, and nothing is left behind.
    Run(Box<run::Arguments>),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
    }
}
