//! The virtual GPU as an environment: which library to preload and what to tell it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Whether the CPU can reach device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// The CPU can load and store device memory; `process_vm_readv` on it fails with EFAULT, as on the card.
    Large,
    /// Device memory is inaccessible to the CPU: a stray dereference faults at once.
    Small,
}

impl Bar {
    /// The word that `VGPU_BAR` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Small => "small",
        }
    }
}

/// What connects the GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// One hive: each GPU reaches each other's memory directly.
    Xgmi,
    /// PCIe switches: peers reach each other's memory with a large BAR only.
    Pcie,
}

impl Link {
    /// The word that `VGPU_LINK` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xgmi => "xgmi",
            Self::Pcie => "pcie",
        }
    }
}

/// One virtual machine's GPUs. Processes that share `root` see the same GPUs.
#[derive(Clone, Debug)]
pub struct VirtualGpu {
    library: PathBuf,
    root: PathBuf,
    /// Number of GPUs.
    pub gpus: u32,
    /// Instruction set, `gfx90a` or `gfx942`.
    pub arch: String,
    /// How the CPU sees device memory.
    pub bar: Bar,
    /// What connects them.
    pub link: Link,
    /// Bytes of memory per GPU; `None` leaves the default.
    pub memory: Option<u64>,
    /// Every process writes its counters to this prefix at exit.
    pub counters: Option<PathBuf>,
    /// What is traced, and where to: `ioctl,packet,kernel:FILE`.
    pub trace: Option<OsString>,
    /// Stores reach others only at a release, loads may be stale until an acquire.
    pub hostile_coherence: bool,
    /// One thread, and an order of waves that follows from this number.
    pub seed: Option<u64>,
}

impl VirtualGpu {
    /// One gfx90a GPU with a large BAR, whose shared state lives in the folder `root` (made if missing).
    ///
    /// # Errors
    /// `NotFound` where the preload library is missing, else what making the folder gave.
    pub fn new(library: &Path, root: &Path) -> io::Result<Self> {
        let library = library.canonicalize().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{}: {error} (build the workspace first)", library.display()),
            )
        })?;
        std::fs::create_dir_all(root)?;
        let root = root.canonicalize()?;
        Ok(Self {
            library,
            root,
            gpus: 1,
            arch: "gfx90a".into(),
            bar: Bar::Large,
            link: Link::Xgmi,
            memory: None,
            counters: None,
            trace: None,
            hostile_coherence: false,
            seed: None,
        })
    }

    /// The library for LD_PRELOAD.
    pub fn preload(&self) -> &Path {
        &self.library
    }

    /// The folder that the GPU's processes share.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The variables that the preload library reads.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![
            ("VGPU_ROOT", self.root.clone().into_os_string()),
            ("VGPU_GPUS", self.gpus.to_string().into()),
            ("VGPU_ARCH", self.arch.clone().into()),
            ("VGPU_BAR", self.bar.name().into()),
            ("VGPU_LINK", self.link.name().into()),
        ];
        variables.extend(self.trace.clone().map(|trace| ("VGPU_TRACE", trace)));
        variables.extend(self.hostile_coherence.then(|| ("VGPU_COHERENCE", "hostile".into())));
        variables.extend(self.seed.map(|seed| ("VGPU_SEED", seed.to_string().into())));
        variables.extend(self.memory.map(|bytes| ("VGPU_MEMORY", bytes.to_string().into())));
        variables.extend(
            self.counters
                .clone()
                .map(|prefix| ("VGPU_COUNTERS", prefix.into_os_string())),
        );
        variables
    }
}
