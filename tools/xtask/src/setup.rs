//! `cargo xtask setup`: fetches what the bench needs and builds the workspace. Each part is idempotent and can be asked for
//! alone, so a command pays only for what it uses.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::str::FromStr;

use crate::{Result, bench, process};

/// Options of `setup`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the virtual-GPU side: no CUDA toolchain, no MPI, no UCX.
    #[arg(long)]
    minimal: bool,
}

/// Debian packages that the whole bench uses, and the program or file by which each is recognised.
const PACKAGES: [(&str, &str); 14] = [
    ("g++", "/usr/bin/g++"),
    ("unzip", "/usr/bin/unzip"),
    ("patchelf", "/usr/bin/patchelf"),
    ("openmpi-bin", "/usr/bin/mpirun"),
    ("libopenmpi-dev", "/usr/bin/mpicc"),
    ("binutils", "/usr/bin/readelf"),
    // rocminfo of ROCr 5.2.3 asks lsmod for the driver.
    ("kmod", "/usr/bin/lsmod"),
    // The names of the cards: without the list libdrm complains at every start.
    ("libdrm-common", "/usr/share/libdrm/amdgpu.ids"),
    ("clang-19", "/usr/bin/clang-19"),
    ("lld-19", "/usr/bin/ld.lld-19"),
    // How users find the archive: pkg-config, and environment modules in Tcl and Lua.
    ("pkgconf", "/usr/bin/pkg-config"),
    ("tcl", "/usr/bin/tclsh"),
    ("lua5.4", "/usr/bin/lua5.4"),
    // The translator's own tests run outside the ROCr roots.
    ("libamd-comgr2", "/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2"),
];

/// A ROCr build that the bench can run over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rocr {
    /// Debian 13's 6.1.2 with comgr 6.0: the default.
    V612,
    /// Debian 12's 5.2.3.
    V523,
    /// Whatever Debian sid carries: reported, never gating.
    Sid,
    /// The machine's own.
    System,
    /// A folder with an unpacked root.
    Directory(PathBuf),
}

impl FromStr for Rocr {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Ok(match text {
            "6.1.2" => Self::V612,
            "5.2.3" => Self::V523,
            "sid" => Self::Sid,
            "system" => Self::System,
            directory if Path::new(directory).is_dir() => Self::Directory(directory.into()),
            other => {
                return Err(format!(
                    "{other}: not 6.1.2, 5.2.3, sid, system or a folder with an unpacked root"
                ));
            }
        })
    }
}

impl Rocr {
    /// The name for reports.
    pub fn name(&self) -> String {
        match self {
            Self::V612 => "6.1.2".into(),
            Self::V523 => "5.2.3".into(),
            Self::Sid => "sid".into(),
            Self::System => "system".into(),
            Self::Directory(directory) => directory.display().to_string(),
        }
    }

    /// The unpacked root, fetched if need be; `None` for the machine's own.
    pub fn ensure(&self) -> Result<Option<PathBuf>> {
        let suite = match self {
            Self::V612 => "trixie",
            Self::V523 => "bookworm",
            Self::Sid => "sid",
            Self::System => return Ok(None),
            Self::Directory(directory) => return Ok(Some(directory.clone())),
        };
        let directory = bench::downloads().join(format!("rocr-{}", self.name()));
        fetch(
            &format!("ROCr {}", self.name()),
            &directory,
            "make-rocr-root.sh",
            &[suite],
        )?;
        Ok(Some(directory))
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    packages()?;
    Rocr::V612.ensure()?;
    Rocr::V523.ensure()?;
    hip()?;
    if !arguments.minimal {
        nvcc()?;
        cudart("11.8")?;
        cudart("13.0")?;
        nvtx()?;
        ucx()?;
    }
    build()?;
    println!("setup: ready");
    Ok(ExitCode::SUCCESS)
}

/// Installs the bench's Debian packages.
pub fn packages() -> Result<()> {
    let pip = Command::new("python3").args(["-m", "pip", "--version"]).output();
    let pip = pip.is_ok_and(|output| output.status.success());
    // What is there has a file that exists.
    let witness = if pip { "/" } else { "" };
    install(&[&PACKAGES[..], &[("python3-pip", witness)]].concat())
}

/// Installs those of the Debian packages whose file is missing where this user may, else says which command would.
pub fn install(packages: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(_, witness)| !Path::new(witness).exists())
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return Err(format!("Debian packages are missing; as root: apt-get install {list}").into());
    }
    println!("setup: installing Debian packages: {list}");
    let apt = |arguments: &[&str]| {
        process::must(
            Command::new("apt-get")
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    };
    apt(&["update", "-qq"])?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(missing);
    apt(&install)
}

/// The CUDA toolchain; returns its folder.
pub fn nvcc() -> Result<PathBuf> {
    let directory = bench::downloads().join("nvcc");
    fetch("nvcc 13.5 with CUDA 12.9 headers", &directory, "get-nvcc.sh", &[])?;
    Ok(directory)
}

/// NVIDIA's runtime and its headers, of CUDA 11.8, 12.0 to 12.9 or 13.0; returns the folder that holds `lib` and `include`.
pub fn cudart(version: &str) -> Result<PathBuf> {
    let directory = bench::downloads().join(format!("cudart-{version}"));
    fetch(
        &format!("CUDA {version}'s runtime"),
        &directory,
        "get-cudart.sh",
        &[version],
    )?;
    Ok(directory)
}

/// The headers of NVIDIA's Tools Extension; returns the folder that holds `include`.
pub fn nvtx() -> Result<PathBuf> {
    let directory = bench::downloads().join("nvtx");
    fetch("NVTX 12.9", &directory, "get-nvtx.sh", &[])?;
    Ok(directory)
}

/// AMD's HIP runtime and the clang it was made for; returns the folder that holds `usr`.
pub fn hip() -> Result<PathBuf> {
    let directory = bench::downloads().join("hip-5.2");
    fetch("HIP 5.2", &directory, "get-hip.sh", &[])?;
    Ok(directory)
}

/// UCX with CUDA transports; returns the folder that holds `lib` and `bin`.
pub fn ucx() -> Result<PathBuf> {
    let directory = bench::downloads().join("ucx");
    fetch("UCX 1.22 (libucx-cu12)", &directory, "get-ucx.sh", &[])?;
    Ok(directory.join("libucx"))
}

/// The packages whose artefacts users get.
pub const PRODUCTS: &[&str] = &[
    "cuda",
    "cudart",
    "cudart11",
    "cudart13",
    "nvidia-ml",
    "vgpu",
    "vgpu-cli",
    "kernels-ptx-translate",
];

/// NVIDIA's packages for symbol-audit to read; `large`: those that CI does not fetch.
pub fn audit_packages(large: bool) -> Result<PathBuf> {
    let (folder, arguments): (_, &[&str]) = if large {
        ("audit-large", &["all"])
    } else {
        ("audit", &[])
    };
    let directory = bench::downloads().join(folder);
    fetch("packages to audit", &directory, "get-audit-packages.sh", arguments)?;
    Ok(directory)
}

/// Builds the libraries, the virtual GPU and the worker in release mode.
pub fn build() -> Result<()> {
    process::must(&mut cargo_build(PRODUCTS))
}

/// `cargo build --release` of `packages`.
pub fn cargo_build(packages: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(bench::root())
        .args(["build", "--release", "--quiet"]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    // Cargo gave this process the toolchain's libraries; the build gets its own.
    command.env_remove("LD_LIBRARY_PATH");
    command
}

fn fetch(what: &str, directory: &Path, script: &str, arguments: &[&str]) -> Result<()> {
    if directory.join(".complete").exists() {
        return Ok(());
    }
    packages()?;
    println!("setup: fetching {what}");
    // An interrupted download leaves a folder without its mark: start again.
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    let script = bench::root().join("ci").join(script);
    process::must(Command::new("bash").arg(script).arg(directory).args(arguments))
}
