//! The test bench as commands.
//!
//! `cargo xtask demo` and `cargo xtask test` are what the README promises; the rest are the pieces they are made of, for
//! everyone who works on Regauge.

mod audit;
mod bench;
mod beside_hip;
mod conformance;
mod counters;
mod coverage;
mod demo;
mod dist;
mod dist_suite;
mod docs;
mod exec;
mod gtl;
mod gtl_pair;
mod hip;
mod hsa_programs;
mod interrupt;
mod measure;
mod messages;
mod preload;
mod process;
mod programs;
mod ring;
mod scenarios;
mod setup;
mod slurm;
mod slurm_suite;
mod soak;
mod suites;
mod tested;
mod tidy;
mod tools_suite;
mod ucx;
mod vgpu_kill;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A failure that is told to the user as it stands.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Regauge's test bench.
#[derive(Parser)]
#[command(name = "cargo xtask", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch and build all that the other commands need (idempotent; they also do it for themselves).
    Setup(setup::Arguments),
    /// Run the bench's nvcc (13.5, for libcudart.so.12).
    Nvcc {
        /// Arguments for nvcc, after `--`.
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Run any command, children included, over a virtual GPU with Regauge's libraries in front.
    Exec(exec::Arguments),
    /// The main job: MPI ranks exchange device memory over virtual GPUs, with the checks that prove it.
    Demo(demo::Arguments),
    /// Run the test suites (what CI runs).
    Test(suites::Arguments),
    /// Measure: a table, and JSON under target/bench-results/.
    Bench(measure::Arguments),
    /// How much of each library is there, by chapter.
    Coverage(coverage::Arguments),
    /// Write the generated pages of docs/.
    Docs,
    /// Make the relocatable archive of what users install, under target/dist/.
    Dist(dist::Arguments),
    /// Run a long matrix or stress test; writes a dated report under target/soak/.
    Soak(soak::Arguments),
    /// What Slurm's tasks run first: over the ROCr in that folder, become the program.
    #[command(hide = true)]
    Task(slurm::TaskArguments),
    /// Write the table of symbols that data-checking tests exercised, after `test conformance`.
    Tested(tested::Arguments),
}

fn main() -> ExitCode {
    // Whoever reads the output (`head`) may have seen enough: that ends the command, not with a panic.
    // SAFETY: before any other thread is there; the default action has no preconditions.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let arguments = Arguments::parse();
    let result = interrupt::install().and_then(|()| match arguments.command {
        Command::Setup(arguments) => setup::run(&arguments),
        Command::Nvcc { arguments } => programs::run_nvcc(&arguments),
        Command::Exec(arguments) => exec::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => suites::run(&arguments),
        Command::Bench(arguments) => measure::run(&arguments),
        Command::Coverage(arguments) => coverage::run(&arguments),
        Command::Docs => docs::run(),
        Command::Dist(arguments) => dist::run(&arguments),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Task(arguments) => slurm::task(&arguments),
        Command::Tested(arguments) => tested::run(&arguments),
    });
    interrupt::settle();
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
