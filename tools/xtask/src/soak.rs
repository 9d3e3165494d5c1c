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
    /// Run only the cases whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
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

/// What has been run, and how it went.
struct Report {
    text: String,
    /// Only cases whose name contains it are run.
    only: Option<String>,
    run: u32,
    failures: u32,
}

impl Report {
    /// Runs one case, and says how it went as soon as it is known.
    fn case(&mut self, name: &str, run: impl FnOnce() -> Result<String>) {
        if self.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        let start = Instant::now();
        let outcome = run();
        self.run += 1;
        self.failures += u32::from(outcome.is_err());
        let verdict = outcome.map_or_else(|error| format!("FAILED: {error}"), |text| format!("ok {text}"));
        let line = format!("{:6.1} s  {name}  {verdict}", start.elapsed().as_secs_f64());
        println!("{line}");
        let _ = writeln!(self.text, "{line}");
    }

    fn write(mut self, name: Name) -> Result<ExitCode> {
        if self.run == 0 {
            return Err(format!("no case of this name contains {:?}", self.only.unwrap_or_default()).into());
        }
        if let Some(only) = &self.only {
            let _ = writeln!(self.text, "\nonly cases with {only:?} in their name");
        }
        let _ = writeln!(self.text, "\n{} failed", self.failures);
        let folder = bench::target().join("soak");
        std::fs::create_dir_all(&folder)?;
        let date = capture("date", &["-u", "+%Y%m%dT%H%M%S"])?;
        let path = folder.join(format!("{name:?}-{date}.txt"));
        std::fs::write(&path, self.text)?;
        println!(
            "soak: {} failed of {}; report: {}",
            self.failures,
            self.run,
            path.display()
        );
        Ok(if self.failures == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.no_build {
        setup::build()?;
    }
    let mut report = Report {
        text: format!(
            "# soak {:?}\n\n{}\n{}\n\n",
            arguments.name,
            capture("date", &["-u"])?,
            capture("git", &["log", "-1", "--oneline"])?
        ),
        only: arguments.only.clone(),
        run: 0,
        failures: 0,
    };
    match arguments.name {
        Name::AuditPackages => audits(&mut report)?,
        Name::Hostile => report.case("suites hsa, cuda, ring", hostile),
        Name::VgpuKill => kills(&mut report, 500 * arguments.repeat)?,
        Name::HsaMatrix => {
            let builds = match &arguments.rocr[..] {
                [] => vec![Rocr::V612, Rocr::V523],
                builds => builds.to_vec(),
            };
            for case in hsa_programs::matrix(&builds)? {
                report.case(&case.name(), || case.run());
            }
        }
        Name::Ucx => {
            for case in ucx::soak() {
                report.case(&case.describe(), || case.run());
            }
        }
        name => {
            for _ in 0..arguments.repeat {
                for scenario in scenario_runs(name) {
                    report.case(&scenario.describe(), || heard(&scenario));
                }
                for configuration in configurations(name) {
                    report.case(&configuration.describe(), || exchange(&configuration));
                }
            }
        }
    }
    report.write(arguments.name)
}

fn audits(report: &mut Report) -> Result<()> {
    let mut folders = audit::small()?;
    folders.extend(audit::large()?);
    for (name, outcome) in audit::packages(&folders)? {
        report.case(&name, || outcome);
    }
    report.case("a library of more than 1 GiB", audit::gigabyte);
    Ok(())
}

/// The suites whose programs would notice a fence that we forgot.
fn hostile() -> Result<String> {
    let suites = ["test", "--no-build", "hsa", "cuda", "ring"];
    let mut test = Command::new(std::env::current_exe()?);
    // Every program that a suite starts inherits it.
    let status = test.args(suites).env("VGPU_COHERENCE", "hostile").status()?;
    if status.success() {
        Ok(String::new())
    } else {
        Err("see above".into())
    }
}

fn kills(report: &mut Report, jobs: u32) -> Result<()> {
    let result = vgpu_kill::run(jobs)?;
    for fault in &result.faults {
        report.case(fault, || Err("left something behind".into()));
    }
    let name = format!("{} jobs of two processes killed", result.cycles);
    report.case(&name, || Ok(format!("{} of them before they were up", result.early)));
    Ok(())
}

/// Runs a scenario. Long ones say how far they are, so that a slow one is not taken for one that hangs.
fn heard(scenario: &Scenario) -> Result<String> {
    let start = Instant::now();
    println!("          {} ...", scenario.describe());
    scenario.run_heard(move |line| {
        if let Some(text) = line.strip_prefix("progress: ") {
            println!("{:6.1} s    {text}", start.elapsed().as_secs_f64());
        }
    })
}

fn exchange(configuration: &Configuration) -> Result<String> {
    let run = configuration.run()?;
    let faults = demo::exchange_faults(configuration, &run);
    if faults.is_empty() {
        return Ok(String::new());
    }
    Err(format!("{}\n{}", faults.join("; "), run.outcome.tail(30)).into())
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
