//! The ring exchange (`tests/programs/ring_exchange.cu`) as a measurement: run it, read what it said and what the GPUs counted.

use std::time::Duration;

use crate::counters::Counters;
use crate::exec::{self, BarMode};
use crate::setup::Rocr;
use crate::{Result, bench, process, programs, slurm};

/// Counter: IPC memory handles opened.
pub const IPC_IMPORTS: &str = "ipc_imports";
/// Counter: bytes that GPU queues moved between the blocks of two processes.
pub const BYTES_BETWEEN_PROCESSES: &str = "foreign_bytes";

/// How device memory may travel between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// CUDA IPC allowed: peers map each other's blocks.
    Ipc,
    /// CUDA IPC off: through host memory.
    Copy,
    /// MPI without any knowledge of device memory.
    Host,
}

/// One configuration.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// MPI ranks.
    pub ranks: u32,
    /// Virtual GPUs.
    pub gpus: u32,
    /// How the CPU sees device memory.
    pub bar: BarMode,
    /// How device memory may travel.
    pub path: Path,
    /// ROCr.
    pub rocr: Rocr,
    /// Each rank sees the GPU of its number only, by both variables set alike, as Slurm's `--gpus-per-task=1` has it.
    pub isolated: bool,
    /// What starts the ranks.
    pub launcher: exec::Launcher,
    /// What only Slurm's launchers know.
    pub slurm: slurm::Options,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Time limit in seconds.
    pub limit: u64,
}

/// What makes a rank's shell show it one GPU before it becomes the program.
const ISOLATE: [&str; 4] = [
    "bash",
    "-c",
    "export ROCR_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK; exec \"$@\"",
    "isolate",
];

impl Configuration {
    /// The report's: two ranks, one 4 MiB device buffer each.
    pub fn basic() -> Self {
        Self {
            ranks: 2,
            gpus: 2,
            bar: BarMode::Large,
            path: Path::Ipc,
            rocr: Rocr::V612,
            isolated: false,
            launcher: exec::Launcher::Mpirun,
            slurm: slurm::Options::default(),
            arguments: Vec::new(),
            limit: 300,
        }
    }

    /// A line for tables.
    pub fn describe(&self) -> String {
        let bar = match self.bar {
            BarMode::Small => "small BAR",
            BarMode::Large => "large BAR",
        };
        let path = match self.path {
            Path::Ipc => "CUDA IPC",
            Path::Copy => "no IPC",
            Path::Host => "pml ob1",
        };
        let mut text = format!(
            "{} ranks, {} GPUs, {bar}, {path}, ROCr {}",
            self.ranks,
            self.gpus,
            self.rocr.name()
        );
        if self.launcher != exec::Launcher::Mpirun {
            text.push_str(&format!(", {}", self.slurm.describe(self.launcher)));
        }
        if self.isolated {
            text.push_str(", one GPU visible to each");
        }
        if !self.arguments.is_empty() {
            text.push_str(&format!(", {}", self.arguments.join(" ")));
        }
        text
    }

    /// Whether each rank must see one GPU only.
    pub fn shows_one_gpu(&self) -> bool {
        self.isolated || self.slurm.gpus_per_task == Some(1)
    }

    /// Builds the program if need be and runs it.
    pub fn run(&self) -> Result<Run> {
        self.run_in(None)
    }

    /// As [`run`](Self::run), with the cluster that Slurm's launchers need.
    pub fn run_in(&self, cluster: Option<&slurm::Cluster>) -> Result<Run> {
        let program = programs::mpi_cuda("ring_exchange")?;
        let scratch = bench::Scratch::new("ring")?;
        let prefix = scratch.path().join("counters");
        let mut arguments = exec::Arguments::for_command(self.isolated.then_some(ISOLATE).into_iter().flatten());
        arguments.command.push(program.into());
        arguments.command.extend(self.arguments.iter().map(Into::into));
        arguments.ranks = self.ranks;
        arguments.launcher = Some(self.launcher);
        arguments.slurm = self.slurm.clone();
        arguments.gpus = self.gpus;
        arguments.bar = self.bar;
        arguments.rocr = self.rocr.clone();
        arguments.counters = Some(prefix.clone());
        match self.path {
            Path::Ipc => {}
            Path::Copy => arguments.variables.push("UCX_TLS=^cuda_ipc".into()),
            Path::Host => {
                arguments.pml = "ob1".into();
                // After the EFAULT, Open MPI copies with the CPU, which a large BAR would allow: the failed read would be
                // healed. On NVIDIA nobody's CPU reaches device memory; the control takes that for both modes.
                arguments.variables.push("REGAUGE_HOST_ACCESS=never".into());
            }
        }
        let mut command = exec::command(&arguments, &scratch.path().join("gpu"))?;
        cluster.iter().for_each(|cluster| cluster.join(&mut command));
        let outcome = process::run(&mut command, Duration::from_secs(self.limit))?;
        let counters = Counters::read(&prefix)?;
        Ok(Run { outcome, counters })
    }
}

/// What one run gave.
pub struct Run {
    /// Exit status and output.
    pub outcome: process::Outcome,
    /// The virtual GPUs' counters.
    pub counters: Counters,
}

impl Run {
    /// The program ended well and found every byte right on every rank.
    pub fn verified(&self) -> bool {
        self.outcome.success() && self.outcome.output.contains(" 0 wrong: ok")
    }

    /// The failure of a host-only MPI: EFAULT from process_vm_readv, as the report has it.
    pub fn failed_with_efault(&self) -> bool {
        !self.outcome.success() && self.outcome.output.contains("errno = 14")
    }

    /// Whether a rank found one device, its own.
    pub fn saw_one_gpu(&self, rank: u32, ranks: u32) -> bool {
        self.outcome
            .output
            .contains(&format!("rank {rank} of {ranks}: device 0 of 1,"))
    }

    /// Lines that the ranks printed.
    pub fn rank_lines(&self) -> impl Iterator<Item = &str> {
        self.outcome
            .output
            .lines()
            .filter(|line| line.starts_with("rank ") || line.starts_with("ring_exchange:"))
    }
}
