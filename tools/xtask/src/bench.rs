//! Where the bench keeps things. Everything it fetches or makes lives under `target/`.

use std::path::{Path, PathBuf};

use launcher::Machine;

/// The repository's root folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .and_then(Path::parent)
        .expect("tools/xtask lies two folders below the root")
}

/// Cargo's target folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where `cargo build --release` leaves the libraries.
pub fn release() -> PathBuf {
    target().join("release")
}

/// Downloads: toolchains, ROCr roots, UCX.
pub fn downloads() -> PathBuf {
    target().join("bench")
}

/// Test programs, built.
pub fn programs() -> PathBuf {
    target().join("programs")
}

/// Logs and results of runs.
pub fn logs() -> PathBuf {
    target().join("logs")
}

/// A folder for one run's files and its virtual machine. It is removed when dropped, or when this process dies, and what
/// still runs on the machine is killed.
pub struct Scratch {
    machine: Machine,
}

impl Scratch {
    /// Makes a new folder, in memory where the machine has a shared-memory file system.
    pub fn new(purpose: &str) -> std::io::Result<Self> {
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() {
            shm.to_owned()
        } else {
            target().join("run")
        };
        std::fs::create_dir_all(&base)?;
        let machine = Machine::new(Some(&base), purpose)?;
        Ok(Self { machine })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.machine.folder()
    }
}
