//! `cargo xtask exec`: any command over a virtual GPU with Regauge's libraries in front.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::ValueEnum;
use launcher::{Bar, Environment, Libraries, Link, RocrRoot, VirtualGpu};

use crate::interrupt::Guarded;
use crate::setup::{self, Rocr};
use crate::{Result, bench, slurm};

/// How ranks are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Launcher {
    /// Debian's Open MPI with UCX's CUDA transports.
    Mpirun,
    /// `srun --mpi=pmix` in a Slurm of one node, which is started for the command.
    Srun,
    /// Open MPI's mpirun inside `salloc`.
    Salloc,
    /// No launcher: one process.
    None,
}

/// How the CPU sees device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BarMode {
    /// The CPU cannot reach device memory.
    Small,
    /// The CPU can load and store it.
    Large,
}

impl From<BarMode> for Bar {
    fn from(mode: BarMode) -> Self {
        match mode {
            BarMode::Small => Self::Small,
            BarMode::Large => Self::Large,
        }
    }
}

/// What connects the GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LinkMode {
    /// One hive.
    Xgmi,
    /// PCIe only.
    Pcie,
}

impl From<LinkMode> for Link {
    fn from(mode: LinkMode) -> Self {
        match mode {
            LinkMode::Xgmi => Self::Xgmi,
            LinkMode::Pcie => Self::Pcie,
        }
    }
}

/// Options of `exec`.
#[derive(Clone, clap::Args)]
pub struct Arguments {
    /// Start this many MPI ranks.
    #[arg(long, default_value_t = 1)]
    pub ranks: u32,
    /// How to start them (default: mpirun for more than one rank).
    #[arg(long)]
    pub launcher: Option<Launcher>,
    /// Virtual GPUs; 0 for a machine without any.
    #[arg(long, default_value_t = 2)]
    pub gpus: u32,
    /// Their instruction set.
    #[arg(long, default_value = "gfx90a", value_parser = ["gfx90a", "gfx942"])]
    pub arch: String,
    /// How the CPU sees device memory.
    #[arg(long, default_value = "large")]
    pub bar: BarMode,
    /// What connects the GPUs.
    #[arg(long, default_value = "xgmi")]
    pub link: LinkMode,
    /// Memory per GPU in MiB (default: the virtual GPU's own).
    #[arg(long)]
    pub memory: Option<u64>,
    /// ROCr to run over: 6.1.2, 5.2.3, sid, system, or a folder.
    #[arg(long, default_value = "6.1.2")]
    pub rocr: Rocr,
    /// Open MPI's point-to-point layer: ucx, or ob1, which knows nothing of device memory.
    #[arg(long, default_value = "ucx")]
    pub pml: String,
    /// Set a variable for the command (repeatable).
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// What only Slurm's launchers know.
    #[command(flatten)]
    pub slurm: slurm::Options,
    /// Write the virtual GPU's counters of each process to files with this prefix.
    #[arg(long)]
    pub counters: Option<PathBuf>,
    /// Run what is built, without asking cargo whether it is up to date.
    #[arg(long)]
    pub no_build: bool,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

impl Arguments {
    /// The defaults for running `command`.
    pub fn for_command(command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            ranks: 1,
            launcher: None,
            gpus: 2,
            arch: "gfx90a".into(),
            bar: BarMode::Large,
            link: LinkMode::Xgmi,
            memory: None,
            rocr: Rocr::V612,
            pml: "ucx".into(),
            variables: Vec::new(),
            slurm: slurm::Options::default(),
            counters: None,
            no_build: false,
            command: command.into_iter().map(Into::into).collect(),
        }
    }
}

/// Runs the command with this terminal's streams.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.no_build {
        setup::build()?;
    }
    let scratch = bench::Scratch::new("exec")?;
    let mut command = command(arguments, scratch.path())?;
    let cluster = match arguments.launcher {
        Some(Launcher::Srun | Launcher::Salloc) => Some(slurm::Cluster::find_or_start()?),
        _ => None,
    };
    cluster.iter().for_each(|cluster| cluster.join(&mut command));
    let status = Guarded::spawn(&mut command, false)?.wait()?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}

/// The command, ready to start (under Slurm once it has joined a cluster); `root` is the virtual machine's folder and must
/// outlive it.
pub fn command(arguments: &Arguments, root: &Path) -> Result<Command> {
    let mut environment = Environment {
        libraries: Some(Libraries::in_directory(&bench::release())?),
        ..Environment::default()
    };
    if arguments.gpus > 0 {
        let mut vgpu = VirtualGpu::new(&bench::release().join("libvgpu.so"), &root.join("machine"))?;
        vgpu.gpus = arguments.gpus;
        vgpu.arch.clone_from(&arguments.arch);
        vgpu.bar = arguments.bar.into();
        vgpu.link = arguments.link.into();
        vgpu.memory = arguments.memory.map(|mib| mib << 20);
        vgpu.counters.clone_from(&arguments.counters);
        environment.vgpu = Some(vgpu);
    }
    environment.rocr = match arguments.rocr.ensure()? {
        Some(directory) => Some(RocrRoot::in_directory(&directory)?),
        None => None,
    };
    for variable in &arguments.variables {
        let (name, value) = variable
            .split_once('=')
            .ok_or_else(|| format!("--env {variable}: not NAME=VALUE"))?;
        environment.variables.push((name.into(), value.into()));
    }
    let default = if arguments.ranks > 1 {
        Launcher::Mpirun
    } else {
        Launcher::None
    };
    match arguments.launcher.unwrap_or(default) {
        Launcher::None => {
            let mut command = environment.command(&arguments.command[0]);
            command.args(&arguments.command[1..]);
            Ok(command)
        }
        Launcher::Mpirun => mpirun(arguments, &mut environment),
        launcher => slurm::command(arguments, environment, launcher),
    }
}

fn mpirun(arguments: &Arguments, environment: &mut Environment) -> Result<Command> {
    let ucx = setup::ucx()?;
    environment.variables.extend(mpi_variables(&ucx, &arguments.pml));
    let mut command = environment.command("mpirun");
    put_ucx_in_front(&mut command, &ucx);
    command.args([
        "-n",
        &arguments.ranks.to_string(),
        "--oversubscribe",
        "--bind-to",
        "none",
    ]);
    command
        .args(["-x", "LD_LIBRARY_PATH", "-x", "UCX_MODULE_DIR"])
        .args(&arguments.command);
    Ok(command)
}

/// What Open MPI and UCX need to know, whoever starts the ranks.
pub fn mpi_variables(ucx: &Path, pml: &str) -> Vec<(OsString, OsString)> {
    vec![
        ("UCX_MODULE_DIR".into(), ucx.join("lib/ucx").into_os_string()),
        ("OMPI_ALLOW_RUN_AS_ROOT".into(), "1".into()),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM".into(), "1".into()),
        ("OMPI_MCA_pml".into(), pml.into()),
        ("OMPI_MCA_pml_ucx_tls".into(), "any".into()),
        ("OMPI_MCA_pml_ucx_devices".into(), "any".into()),
    ]
}

/// Puts UCX's own libraries in front of the command's others and of Debian's older UCX.
pub fn put_ucx_in_front(command: &mut Command, ucx: &Path) {
    let inherited = command
        .get_envs()
        .find(|(key, _)| *key == "LD_LIBRARY_PATH")
        .and_then(|(_, value)| value);
    let mut path = ucx.join("lib").into_os_string();
    for part in [Some(ucx.join("lib/ucx").as_os_str()), inherited].into_iter().flatten() {
        path.push(":");
        path.push(part);
    }
    command.env("LD_LIBRARY_PATH", path);
}
