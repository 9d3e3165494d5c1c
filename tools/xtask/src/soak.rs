//! `cargo xtask soak NAME`: long matrices and stress, run by hand; each writes a dated report.

use std::fmt::Write as _;
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::ValueEnum;

use crate::exec::BarMode;
use crate::ring::{Configuration, Path};
use crate::scenarios::{self, Scenario};
use crate::setup::{self, Rocr};
use crate::{Result, audit, bench, demo, hsa_programs, ucx, vgpu_kill};

/// Options of `soak`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Which one.
    name: Name,
    /// How often to repeat it.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// ROCr builds for hsa-matrix (default: 6.1.2 and 5.2.3; sid is reported and never gates).
    #[arg(long)]
    rocr: Vec<Rocr>,
    /// Run what is built, without asking cargo whether it is up to date.
    #[arg(long)]
    no_build: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Ring exchange: ranks x GPUs x BAR x path x ROCr x kind of memory.
    RingMatrix,
    /// Ring exchange, many rounds: leaks, hangs, lost completions.
    RingRepeat,
    /// Every HSA program: ROCr x BAR x SDMA x GPUs x links.
    HsaMatrix,
    /// The suites hsa, cuda and ring on memory that is no more coherent than it must be: our own missing fences.
    Hostile,
    /// Two-process jobs on a virtual machine, killed at any point: 500 of them leave nothing behind.
    VgpuKill,
    /// The gated halo exchange between processes, up to 100 000 iterations.
    GatedHalo,
    /// Random programs over streams against a sequential model, 10 minutes.
    StreamProperty,
    /// Every kind of memory under eight threads, IPC with another process included, 10 minutes: nothing is left behind.
    MemoryStress,
    /// UCX over device memory: every test and kind of memory of its perftest, and more sizes and offsets of ours.
    Ucx,
    /// Windows of virtual memory over all ranks: descriptors and free memory stay the same.
    SymmetricWindow,
    /// symbol-audit on NVIDIA's packages, the large ones too (NCCL, NVSHMEM, cuBLAS, 1 GiB of kernels), against `readelf` and
    /// `strings`.
    AuditPackages,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.no_build {
        setup::build()?;
    }
    let mut report = format!(
        "# soak {:?}\n\n{}\n{}\n\n",
        arguments.name,
        capture("date", &["-u"])?,
        capture("git", &["log", "-1", "--oneline"])?
    );
    let mut failures = 0;
    if arguments.name == Name::AuditPackages {
        let mut folders = audit::small()?;
        folders.extend(audit::large()?);
        let mut outcomes = audit::packages(&folders)?;
        outcomes.push(("a library of more than 1 GiB".into(), audit::gigabyte()));
        for (name, outcome) in outcomes {
            let line = match outcome {
                Ok(text) => format!("ok      {name}: {text}"),
                Err(error) => {
                    failures += 1;
                    format!("FAILED  {name}: {error}")
                }
            };
            println!("{line}");
            let _ = writeln!(report, "{line}");
        }
    }
    if arguments.name == Name::Hostile {
        let suites = ["test", "--no-build", "hsa", "cuda", "ring"];
        let mut test = Command::new(std::env::current_exe()?);
        // Every program that a suite starts inherits it.
        let passed = test.args(suites).env("VGPU_COHERENCE", "hostile").status()?.success();
        let line = format!("{}  suites hsa, cuda, ring", if passed { "ok" } else { "FAILED" });
        println!("{line}");
        let _ = writeln!(report, "{line}");
        failures += u32::from(!passed);
    }
    if arguments.name == Name::VgpuKill {
        let result = vgpu_kill::run(500 * arguments.repeat)?;
        let text = format!(
            "{} jobs of two processes killed, {} of them before they were up; {} left something behind",
            result.cycles,
            result.early,
            result.faults.len()
        );
        for line in result.faults.iter().chain([&text]) {
            println!("{line}");
            let _ = writeln!(report, "{line}");
        }
        failures += result.faults.len() as u32;
    }
    if arguments.name == Name::HsaMatrix {
        let builds = match &arguments.rocr[..] {
            [] => vec![Rocr::V612, Rocr::V523],
            builds => builds.to_vec(),
        };
        for case in hsa_programs::matrix(&builds)? {
            let start = Instant::now();
            let outcome = case.run();
            let verdict = match &outcome {
                Ok(note) => format!("ok {note}"),
                Err(error) => format!("FAILED: {error}"),
            };
            failures += u32::from(outcome.is_err());
            let line = format!("{:6.1} s  {}  {verdict}", start.elapsed().as_secs_f64(), case.name());
            println!("{line}");
            let _ = writeln!(report, "{line}");
        }
    }
    if arguments.name == Name::Ucx {
        for case in ucx::soak() {
            let start = Instant::now();
            let outcome = case.run();
            failures += u32::from(outcome.is_err());
            let verdict = outcome.map_or_else(|error| format!("FAILED: {error}"), |text| format!("ok {text}"));
            let line = format!(
                "{:6.1} s  {}  {verdict}",
                start.elapsed().as_secs_f64(),
                case.describe()
            );
            println!("{line}");
            let _ = writeln!(report, "{line}");
        }
    }
    for _ in 0..arguments.repeat {
        for scenario in scenario_runs(arguments.name) {
            let start = Instant::now();
            println!("          {} ...", scenario.describe());
            // Long runs say how far they are, so that a slow one is not taken for one that hangs.
            let outcome = scenario.run_heard(move |line| {
                if let Some(text) = line.strip_prefix("progress: ") {
                    println!("{:6.1} s    {text}", start.elapsed().as_secs_f64());
                }
            });
            failures += u32::from(outcome.is_err());
            let verdict = outcome.map_or_else(|error| format!("FAILED: {error}"), |text| format!("ok: {text}"));
            let seconds = start.elapsed().as_secs_f64();
            let line = format!("{seconds:6.1} s  {}  {verdict}", scenario.describe());
            println!("{line}");
            let _ = writeln!(report, "{line}");
        }
        for configuration in configurations(arguments.name) {
            let start = Instant::now();
            let run = configuration.run()?;
            let faults = demo::exchange_faults(&configuration, &run);
            let verdict = if faults.is_empty() {
                "ok".to_owned()
            } else {
                format!("FAILED: {}", faults.join("; "))
            };
            failures += u32::from(!faults.is_empty());
            let line = format!(
                "{:6.1} s  {}  {verdict}",
                start.elapsed().as_secs_f64(),
                configuration.describe()
            );
            println!("{line}");
            let _ = writeln!(report, "{line}");
            if !faults.is_empty() {
                let _ = writeln!(report, "{}\n", run.outcome.tail(30));
            }
        }
    }
    let _ = writeln!(report, "\n{failures} failed");
    let folder = bench::target().join("soak");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!(
        "{:?}-{}.txt",
        arguments.name,
        capture("date", &["-u", "+%Y%m%dT%H%M%S"])?
    ));
    std::fs::write(&path, report)?;
    println!("soak: {failures} failed; report: {}", path.display());
    Ok(if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn scenario_runs(name: Name) -> Vec<Scenario> {
    match name {
        Name::GatedHalo => scenarios::soak(),
        Name::MemoryStress => scenarios::soak_memory(),
        Name::StreamProperty => scenarios::soak_property(),
        Name::SymmetricWindow => scenarios::soak_windows(),
        _ => Vec::new(),
    }
}

fn configurations(name: Name) -> Vec<Configuration> {
    let mut all = Vec::new();
    match name {
        Name::RingMatrix => {
            for rocr in [Rocr::V612, Rocr::V523] {
                for (ranks, gpus) in [(2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (8, 2)] {
                    for bar in [BarMode::Small, BarMode::Large] {
                        for path in [Path::Ipc, Path::Copy] {
                            all.push(Configuration {
                                ranks,
                                gpus,
                                bar,
                                path,
                                rocr: rocr.clone(),
                                ..Configuration::basic()
                            });
                        }
                    }
                }
            }
        }
        Name::RingRepeat => {
            for rocr in [Rocr::V612, Rocr::V523] {
                let arguments = ["--rounds", "200", "--bytes", "4M"].map(String::from).to_vec();
                all.push(Configuration {
                    rocr,
                    arguments,
                    limit: 1200,
                    ..Configuration::basic()
                });
            }
        }
        _ => {}
    }
    all
}

fn capture(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(bench::root())
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
