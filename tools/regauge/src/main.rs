//! The `regauge` command: starts programs with Regauge's libraries, and says what is wrong on a node.

mod advice;
mod doctor;
mod elf;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use launcher::Libraries;

old_glibc::program!();

/// Runs CUDA programs on AMD GPUs.
#[derive(Parser)]
#[command(name = "regauge", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program with Regauge's libraries in front of any others.
    Run(run::Arguments),
    /// Say in words what is wrong on this node; exit status 1 if a CUDA program could not run.
    Doctor(doctor::Arguments),
}

fn main() -> ExitCode {
    // `regauge doctor | head` is no reason to panic.
    // SAFETY: before any other thread is there; the default action has no preconditions.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
    }
}

/// The libraries in `directory`, else in this command's folder or the `lib` beside it.
fn libraries(directory: Option<&Path>) -> std::io::Result<Libraries> {
    if let Some(directory) = directory {
        return Libraries::in_directory(directory);
    }
    let command = std::env::current_exe()?;
    let folder = command.parent().map(PathBuf::from).unwrap_or_default();
    Libraries::in_directory(&folder).or_else(|first| Libraries::in_directory(&folder.join("../lib")).map_err(|_| first))
}
