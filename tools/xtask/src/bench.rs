//! Where the bench keeps things. Everything it fetches or makes lives under `target/`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

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

/// A folder for one run's shared state, removed when dropped.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a new folder, in memory where the machine has a shared-memory file system.
    pub fn new(purpose: &str) -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() {
            shm.to_owned()
        } else {
            target().join("run")
        };
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("regauge-{purpose}-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover folder in a temporary place is no reason to fail a run.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
