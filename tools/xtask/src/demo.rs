//! `cargo xtask demo`: the main job on a machine with no GPU.

use std::process::ExitCode;

use crate::Result;
use crate::exec::{BarMode, Launcher};
use crate::ring::{BYTES_BETWEEN_PROCESSES, Configuration, IPC_IMPORTS, Path, Run};
use crate::setup::{self, Rocr};
use crate::slurm::{Cluster, Load, Options};

/// Options of `demo`.
#[derive(clap::Args)]
pub struct Arguments {
    /// ROCr to run over: 6.1.2, 5.2.3, sid, system, or a folder.
    #[arg(long, default_value = "6.1.2")]
    rocr: Rocr,
    /// What starts the ranks: mpirun, or Slurm (srun and salloc), in a cluster of one node that is brought up for the demo.
    #[arg(long, default_value = "mpirun")]
    launcher: Launcher,
    /// Show everything that the programs print.
    #[arg(long, short)]
    verbose: bool,
}

/// Bytes of one rank's buffer.
const BUFFER: u64 = 4 << 20;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    println!(
        "Regauge demo: MPI ranks exchange {} MiB of device memory each, in a ring, on virtual MI250X GPUs.",
        BUFFER >> 20
    );
    println!(
        "The program is compiled by nvcc for libcudart.so.12; its kernels run as CDNA machine code under AMD's ROCr.\n"
    );
    setup::packages()?;
    setup::build()?;

    let failures = match arguments.launcher {
        Launcher::None | Launcher::Mpirun => by_mpirun(arguments)?,
        launcher => by_slurm(arguments, launcher)?,
    };
    if failures == 0 {
        println!("demo: every element was right in every configuration");
        Ok(ExitCode::SUCCESS)
    } else {
        println!("demo: {failures} configurations FAILED");
        Ok(ExitCode::FAILURE)
    }
}

/// The exchange under Open MPI's own launcher, in every mode; returns how many configurations failed.
fn by_mpirun(arguments: &Arguments) -> Result<u32> {
    let mut failures = 0;
    for ranks in [2, 4] {
        for bar in [BarMode::Small, BarMode::Large] {
            for path in [Path::Ipc, Path::Copy] {
                let configuration = Configuration {
                    ranks,
                    gpus: 2,
                    bar,
                    path,
                    rocr: arguments.rocr.clone(),
                    ..Configuration::basic()
                };
                println!("== {}", configuration.describe());
                let run = configuration.run()?;
                failures += u32::from(!report(&run, exchange_faults(&configuration, &run), arguments.verbose));
            }
        }
    }
    for bar in [BarMode::Small, BarMode::Large] {
        let configuration = Configuration {
            bar,
            path: Path::Host,
            rocr: arguments.rocr.clone(),
            ..Configuration::basic()
        };
        println!(
            "== negative control: {}: an MPI that takes device pointers for host memory",
            configuration.describe()
        );
        let run = configuration.run()?;
        let faults = if run.failed_with_efault() {
            println!(
                "   fails with EFAULT (errno 14), as the report did: {}",
                first_efault(&run)
            );
            Vec::new()
        } else {
            vec![format!("did not fail with EFAULT: {}", run.outcome.ending())]
        };
        failures += u32::from(!report(&run, faults, arguments.verbose));
    }
    Ok(failures)
}

/// The exchange as job scripts start it; returns how many configurations failed.
fn by_slurm(arguments: &Arguments, launcher: Launcher) -> Result<u32> {
    let cluster = Cluster::find_or_start()?;
    let options = |load, gres: Option<&str>, gpus_per_task| Options {
        load,
        gres: gres.map(String::from),
        gpus_per_task,
    };
    let mut cases = vec![
        options(Load::Path, None, None),
        options(Load::Path, Some("gpu:2"), None),
        options(Load::Preload, Some("gpu:2"), None),
    ];
    if launcher == Launcher::Srun {
        cases.push(options(Load::Export, Some("gpu:2"), None));
        cases.push(options(Load::Path, None, Some(1)));
    }
    let mut failures = 0;
    for slurm in cases {
        let configuration = Configuration {
            launcher,
            slurm,
            rocr: arguments.rocr.clone(),
            ..Configuration::basic()
        };
        println!("== {}", configuration.describe());
        let run = configuration.run_in(Some(&cluster))?;
        failures += u32::from(!report(&run, exchange_faults(&configuration, &run), arguments.verbose));
    }
    Ok(failures)
}

/// What a run of the exchange must show, and what of it is wrong: data, path and counters.
pub fn exchange_faults(configuration: &Configuration, run: &Run) -> Vec<String> {
    let mut faults = Vec::new();
    if !run.verified() {
        faults.push(format!("data not verified: {}", run.outcome.ending()));
    }
    let imports = run.counters.processes_with(IPC_IMPORTS);
    let moved = run.counters.total(BYTES_BETWEEN_PROCESSES);
    if configuration.shows_one_gpu() && !(0..configuration.ranks).all(|rank| run.saw_one_gpu(rank, configuration.ranks))
    {
        faults.push("a rank does not see exactly one GPU".into());
    }
    match configuration.path {
        Path::Ipc => {
            if imports < configuration.ranks as usize {
                faults.push(format!(
                    "only {imports} of {} ranks imported a block by IPC",
                    configuration.ranks
                ));
            }
            if moved < BUFFER {
                faults.push(format!("GPU queues moved only {moved} bytes between processes"));
            }
        }
        Path::Copy => {
            if imports != 0 || moved != 0 {
                faults.push(format!(
                    "IPC is off, yet {imports} ranks imported blocks and {moved} bytes moved between them"
                ));
            }
        }
        Path::Host => {}
    }
    faults
}

fn first_efault(run: &Run) -> &str {
    run.outcome
        .output
        .lines()
        .find(|line| line.contains("errno = 14"))
        .unwrap_or_default()
        .trim()
}

/// Prints what happened; true if nothing was wrong.
fn report(run: &Run, faults: Vec<String>, verbose: bool) -> bool {
    for line in run.rank_lines() {
        println!("   {line}");
    }
    println!(
        "   GPUs: {} dispatches, {} wave instructions, {} SDMA packets, {} IPC imports by {} processes, {} bytes moved between processes",
        run.counters.total("dispatches"),
        run.counters.total("instructions"),
        run.counters.total("sdma_packets"),
        run.counters.total(IPC_IMPORTS),
        run.counters.processes_with(IPC_IMPORTS),
        run.counters.total(BYTES_BETWEEN_PROCESSES),
    );
    for fault in &faults {
        println!("   FAILED: {fault}");
    }
    if verbose || !faults.is_empty() {
        println!(
            "   --- output\n{}\n   ---",
            run.outcome.tail(if verbose { usize::MAX } else { 40 })
        );
    }
    println!();
    faults.is_empty()
}
