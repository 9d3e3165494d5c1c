//! Slurm: a one-node cluster for the length of a command (`ci/slurm.sh`), and ranks started by `srun` or inside `salloc`.
//!
//! Tasks are children of Slurm's daemons, not of `srun`: what `srun` inherits (the mount namespace of another ROCr above
//! all) does not reach them, only the environment does. So the task's program is this bench's own `task` command, which
//! enters the namespace and becomes the program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::ValueEnum;
use launcher::{Environment, RocrRoot};

use crate::exec::{self, Launcher};
use crate::{Result, bench, process, setup};

/// Debian packages that a cluster needs, and the file by which each is recognised.
const PACKAGES: [(&str, &str); 4] = [
    ("slurm-wlm", "/usr/sbin/slurmctld"),
    (
        "slurm-wlm-basic-plugins",
        "/usr/lib/x86_64-linux-gnu/slurm-wlm/auth_munge.so",
    ),
    ("munge", "/usr/sbin/munged"),
    ("libpmix2", "/usr/lib/x86_64-linux-gnu/libpmix.so.2"),
];

/// How the libraries get into the tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Load {
    /// LD_LIBRARY_PATH, exported before the launcher.
    #[default]
    Path,
    /// LD_PRELOAD, exported before the launcher: it reaches `srun` (or `salloc` and `mpirun`) itself too.
    Preload,
    /// `srun --export=ALL,LD_PRELOAD=...`: tasks only.
    Export,
}

/// Options of the Slurm launchers.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// How the libraries get into the tasks under Slurm.
    #[arg(long, value_enum, default_value_t)]
    pub load: Load,
    /// Generic resources to ask Slurm for, such as gpu:2.
    #[arg(long)]
    pub gres: Option<String>,
    /// GPUs that Slurm binds to each task.
    #[arg(long, value_name = "N")]
    pub gpus_per_task: Option<u32>,
}

impl Options {
    /// The launcher and what it is asked for, as a user would type it.
    pub fn describe(&self, launcher: Launcher) -> String {
        let mut words = match launcher {
            Launcher::Salloc => "salloc".to_owned(),
            _ => "srun --mpi=pmix".to_owned(),
        };
        words.extend(self.gres.iter().map(|gres| format!(" --gres={gres}")));
        words.extend(self.gpus_per_task.map(|gpus| format!(" --gpus-per-task={gpus}")));
        if launcher == Launcher::Salloc {
            words.push_str(" mpirun");
        }
        words.push_str(match self.load {
            Load::Path => ", LD_LIBRARY_PATH exported",
            Load::Preload => ", LD_PRELOAD exported",
            Load::Export => ", LD_PRELOAD by --export",
        });
        words
    }
}

/// A cluster that is up. Ended when dropped, unless it was there before.
pub struct Cluster {
    configuration: PathBuf,
    /// Whether it was started here, not named by the environment.
    own: bool,
}

impl Cluster {
    /// The cluster that SLURM_CONF names, else a new one, whose packages are installed if need be.
    pub fn find_or_start() -> Result<Self> {
        if let Some(configuration) = std::env::var_os("SLURM_CONF") {
            let answers = Command::new("scontrol").arg("ping").output();
            if answers.is_ok_and(|output| output.status.success()) {
                return Ok(Self {
                    configuration: configuration.into(),
                    own: false,
                });
            }
        }
        Self::start()
    }

    /// A new cluster. It also ends by itself should this process be killed.
    pub fn start() -> Result<Self> {
        setup::install(&PACKAGES)?;
        // Not a machine's folder: the daemons need it until they have ended, which is the script's business.
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { bench::target() };
        let folder = parent.join(format!("regauge-slurm-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let cluster = Self {
            configuration: folder.join("slurm.conf"),
            own: true,
        };
        let mut up = cluster.script("up", cluster.folder());
        let outcome = process::run(up.arg(std::process::id().to_string()), Duration::from_secs(120))?;
        if outcome.success() {
            Ok(cluster)
        } else {
            Err(format!("Slurm does not start: {}\n{}", outcome.ending(), outcome.tail(20)).into())
        }
    }

    /// Makes `command` talk to this cluster.
    pub fn join(&self, command: &mut Command) {
        command.env("SLURM_CONF", &self.configuration);
    }

    fn folder(&self) -> &Path {
        self.configuration.parent().unwrap_or(Path::new("/"))
    }

    fn script(&self, verb: &str, folder: &Path) -> Command {
        let mut command = Command::new("bash");
        command.arg(bench::root().join("ci/slurm.sh")).arg(verb).arg(folder);
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.own {
            // Also when a signal is ending this process, and not to be ended by that signal itself: without its daemons'
            // ends the folder must not go. The script's watcher tries again when this process has ended.
            let mut down = self.script("down", self.folder());
            let quiet = down.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if quiet.process_group(0).status().is_ok_and(|status| status.success()) {
                let _ = std::fs::remove_dir_all(self.folder());
            }
        }
    }
}

/// The command that starts the ranks in the cluster that it has [joined](Cluster::join).
pub fn command(arguments: &exec::Arguments, environment: Environment, launcher: Launcher) -> Result<Command> {
    let ucx = setup::ucx()?;
    let options = &arguments.slurm;
    // The namespace is entered by the tasks.
    let Environment {
        libraries,
        vgpu,
        rocr,
        variables,
        ..
    } = environment;
    let mut outer = Environment {
        libraries: libraries.clone().filter(|_| options.load == Load::Path),
        vgpu,
        variables,
        ..Environment::default()
    };
    let inherited = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let mut preload: Vec<OsString> = Vec::new();
    preload.extend(outer.vgpu.as_ref().map(|vgpu| vgpu.preload().into()));
    if options.load != Load::Path {
        let files = libraries.iter().flat_map(launcher::Libraries::preloads);
        preload.extend(files.map(PathBuf::into_os_string));
    }
    preload.extend((!inherited.is_empty()).then_some(inherited));
    let preload = preload.join(std::ffi::OsStr::new(":"));
    outer.variables.extend(exec::mpi_variables(&ucx, &arguments.pml));
    outer.variables.push(("LD_PRELOAD".into(), preload.clone()));

    let mut command = outer.command(match launcher {
        Launcher::Salloc => "salloc",
        _ => "srun",
    });
    exec::put_ucx_in_front(&mut command, &ucx);
    command.args(["-n", &arguments.ranks.to_string(), "--overcommit", "--quiet"]);
    command.args(options.gres.iter().map(|gres| format!("--gres={gres}")));
    command.args(options.gpus_per_task.map(|gpus| format!("--gpus-per-task={gpus}")));
    let unset = |command: &mut Command| {
        command.env_remove("LD_PRELOAD");
    };
    match (launcher, options.load) {
        (Launcher::Salloc, Load::Export) => return Err("--load export is an option of srun, not of salloc".into()),
        (Launcher::Salloc, _) => {
            command.args(["mpirun", "-n", &arguments.ranks.to_string()]);
            command.args(["--oversubscribe", "--bind-to", "none"]);
        }
        (_, load) => {
            command.arg("--mpi=pmix");
            if load == Load::Export {
                unset(&mut command);
                let mut export = OsString::from("--export=ALL,LD_PRELOAD=");
                export.push(&preload);
                command.arg(export);
            }
        }
    }
    if let Some(rocr) = rocr {
        command.arg(std::env::current_exe()?).args(["task", "--rocr"]);
        command.arg(rocr.directory()).arg("--");
    }
    command.args(&arguments.command);
    Ok(command)
}

/// Options of `task`.
#[derive(clap::Args)]
pub struct TaskArguments {
    /// The unpacked ROCr to run over.
    #[arg(long)]
    rocr: PathBuf,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

/// Enters the namespace and becomes the program; returns only if that fails.
pub fn task(arguments: &TaskArguments) -> Result<ExitCode> {
    let environment = Environment {
        rocr: Some(RocrRoot::in_directory(&arguments.rocr)?),
        ..Environment::default()
    };
    let mut command = environment.command(&arguments.program[0]);
    let error = command.args(&arguments.program[1..]).exec();
    Err(format!("{}: {error}", arguments.program[0].to_string_lossy()).into())
}
