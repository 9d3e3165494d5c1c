//! The environment variables, all in one table, and what they mean.

use std::{env, ffi::OsString, fmt, path::PathBuf};

use cdna::Target;

use crate::trace::Wanted;

/// One environment variable: the table is the documentation.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What an unset (or empty) variable means.
    pub default: &'static str,
    /// What it does, one or two sentences.
    pub doc: &'static str,
}

/// Every variable this library reads.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "VGPU_GPUS",
        default: "1",
        doc: "Number of GPUs, 0 to 16.",
    },
    Variable {
        name: "VGPU_ARCH",
        default: "gfx90a",
        doc: "Instruction set of all GPUs: gfx90a or gfx942.",
    },
    Variable {
        name: "VGPU_MEMORY",
        default: "64G",
        doc: "Device memory of each GPU in bytes, with K, M, G or T (powers of 1024). It is sparse: only what is written takes host memory.",
    },
    Variable {
        name: "VGPU_BAR",
        default: "large",
        doc: "large: the host can load and store device memory. small: it cannot, and a host access is a SIGSEGV.",
    },
    Variable {
        name: "VGPU_LINK",
        default: "xgmi",
        doc: "xgmi: the GPUs form one hive, linked as in an MI250X node (gfx90a) or each with each (gfx942). pcie: they have no links of their own, and peers reach each other with a large BAR only.",
    },
    Variable {
        name: "VGPU_ROOT",
        default: "a directory of this user in /dev/shm",
        doc: "Directory of the virtual machine. Processes with the same directory share its GPUs.",
    },
    Variable {
        name: "VGPU_COUNTERS",
        default: "none",
        doc: "File prefix: each process that opens a GPU writes PREFIX<pid>.tsv, and PREFIX<pid>.kernels with a line per kernel, when its queues fall idle and at exit.",
    },
    Variable {
        name: "VGPU_SVM",
        default: "1",
        doc: "1: the driver has shared virtual memory, as kernels from 5.14 on; ROCr 6.x then registers host memory at the host's own address. 0: it has not, as older kernels and those built without HMM.",
    },
    Variable {
        name: "VGPU_TRACE",
        default: "none",
        doc: "What to write line by line: ioctl, packet, kernel or several with commas, and after a colon the file to append to (default: stderr).",
    },
    Variable {
        name: "VGPU_ULP",
        default: "exact",
        doc: "exact: approximate instructions round correctly. hostile: they are off within their documented bound.",
    },
    Variable {
        name: "VGPU_COHERENCE",
        default: "coherent",
        doc: "coherent: all memory is. hostile: stores of kernels to coarse-grained memory reach the host, copy engines and other GPUs at a release of system scope only, and loads may be stale until an acquire.",
    },
    Variable {
        name: "VGPU_SEED",
        default: "none",
        doc: "A number that fixes how waves, work-groups and queues are interleaved; one thread then runs all queues. Without it kernels run on all processors.",
    },
    Variable {
        name: "VGPU_LOG",
        default: "error",
        doc: "Lines on stderr: off, error, warn, info, debug or trace.",
    },
];

/// How much of device memory the host can address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// Resizable BAR: all of it.
    Large,
    /// None of it (what is left of 256 MiB is the driver's).
    Small,
}

/// What connects the GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// One hive.
    Xgmi,
    /// The PCIe root complex.
    Pcie,
}

/// What all processes of one virtual machine agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineConfig {
    /// Number of GPUs, at least 1.
    pub gpus: u32,
    /// Their instruction set.
    pub target: Target,
    /// Device memory per GPU in bytes, a multiple of 2 MiB.
    pub memory: u64,
    /// Host access to device memory.
    pub bar: Bar,
    /// What connects the GPUs.
    pub link: Link,
    /// The driver has shared virtual memory.
    pub svm: bool,
}

/// The whole configuration of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The machine.
    pub machine: MachineConfig,
    /// Its directory.
    pub root: PathBuf,
    /// Where counters go, if anywhere.
    pub counters: Option<PathBuf>,
    /// What is traced.
    pub trace: Wanted,
    /// Approximate instructions are to be off within their documented bound.
    pub hostile_ulp: bool,
    /// Memory is to be no more coherent than it must be.
    pub hostile_coherence: bool,
    /// Fixes the interleaving of waves, work-groups and queues.
    pub seed: Option<u64>,
}

/// A variable that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    name: &'static str,
    value: String,
    expected: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={:?} is not understood: expected {}",
            self.name, self.value, self.expected
        )
    }
}

/// Most GPUs of one machine; the shared state has room for as many.
pub const MAX_GPUS: u32 = 16;

/// Granule of `VGPU_MEMORY`: what the kernel driver reserves device memory in.
const MEMORY_GRANULE: u64 = 2 << 20;

impl MachineConfig {
    /// Bytes of each GPU's memory that can be allocated. The driver keeps back what it expects its page tables to need: a
    /// 16384th of the memory of all GPUs, and at least 8 MiB (`amdgpu_amdkfd_gpuvm.c`, `ESTIMATE_PT_SIZE`).
    pub fn allocatable(&self) -> u64 {
        let page_tables = ((u64::from(self.gpus) * self.memory) >> 14).max(8 << 20);
        self.memory - page_tables
    }
}

impl Config {
    /// Reads the environment. `Ok(None)` means a machine without GPU (`VGPU_GPUS=0`).
    ///
    /// # Errors
    /// The first variable that is malformed.
    pub fn from_env() -> Result<Option<Self>, Malformed> {
        Self::from_lookup(|name| env::var_os(name))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, Malformed> {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name).map(|value| value.to_string_lossy().into_owned());

        let gpus = parse("VGPU_GPUS", text("VGPU_GPUS"), 1, "a number from 0 to 16", |s| {
            s.parse().ok().filter(|n| *n <= MAX_GPUS)
        })?;
        let target = parse(
            "VGPU_ARCH",
            text("VGPU_ARCH"),
            Target::Gfx90a,
            "gfx90a or gfx942",
            |s| match s {
                "gfx90a" => Some(Target::Gfx90a),
                "gfx942" => Some(Target::Gfx942),
                _ => None,
            },
        )?;
        let memory = parse(
            "VGPU_MEMORY",
            text("VGPU_MEMORY"),
            64 << 30,
            "bytes with an optional K, M, G or T, from 16M to 1T",
            |s| parse_bytes(s).filter(|n| (16 << 20..=1 << 40).contains(n)),
        )?;
        let bar = parse(
            "VGPU_BAR",
            text("VGPU_BAR"),
            Bar::Large,
            "small or large",
            |s| match s {
                "large" => Some(Bar::Large),
                "small" => Some(Bar::Small),
                _ => None,
            },
        )?;
        let link = parse(
            "VGPU_LINK",
            text("VGPU_LINK"),
            Link::Xgmi,
            "xgmi or pcie",
            |s| match s {
                "xgmi" => Some(Link::Xgmi),
                "pcie" => Some(Link::Pcie),
                _ => None,
            },
        )?;
        let svm = parse("VGPU_SVM", text("VGPU_SVM"), true, "0 or 1", |s| match s {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })?;
        let hostile_ulp = parse("VGPU_ULP", text("VGPU_ULP"), false, "exact or hostile", |s| match s {
            "exact" => Some(false),
            "hostile" => Some(true),
            _ => None,
        })?;
        let trace = parse(
            "VGPU_TRACE",
            text("VGPU_TRACE"),
            Wanted::default(),
            "ioctl, packet, kernel or several with commas, and :FILE",
            Wanted::parse,
        )?;
        let hostile_coherence = parse(
            "VGPU_COHERENCE",
            text("VGPU_COHERENCE"),
            false,
            "coherent or hostile",
            |s| match s {
                "coherent" => Some(false),
                "hostile" => Some(true),
                _ => None,
            },
        )?;
        let seed = parse("VGPU_SEED", text("VGPU_SEED"), None, "a number", |s| {
            s.parse().ok().map(Some)
        })?;
        if gpus == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            machine: MachineConfig {
                gpus,
                target,
                memory: memory / MEMORY_GRANULE * MEMORY_GRANULE,
                bar,
                link,
                svm,
            },
            root: set("VGPU_ROOT").map_or_else(default_root, PathBuf::from),
            counters: set("VGPU_COUNTERS").map(PathBuf::from),
            trace,
            hostile_ulp,
            hostile_coherence,
            seed,
        }))
    }
}

/// Without `VGPU_ROOT` every program of a user runs on the same machine, as it would on real hardware.
fn default_root() -> PathBuf {
    // SAFETY: geteuid has no preconditions and cannot fail.
    let uid = unsafe { libc::geteuid() };
    PathBuf::from(format!("/dev/shm/vgpu-{uid}"))
}

/// The level of `VGPU_LOG`; read on its own because errors of the rest must be logged too.
pub fn log_level() -> Result<log::LevelFilter, Malformed> {
    let value = env::var("VGPU_LOG").ok().filter(|value| !value.is_empty());
    parse(
        "VGPU_LOG",
        value,
        log::LevelFilter::Error,
        "off, error, warn, info, debug or trace",
        |s| s.parse().ok(),
    )
}

fn parse<T>(
    name: &'static str,
    value: Option<String>,
    default: T,
    expected: &'static str,
    parser: impl Fn(&str) -> Option<T>,
) -> Result<T, Malformed> {
    match value {
        None => Ok(default),
        Some(value) => parser(value.trim()).ok_or(Malformed { name, value, expected }),
    }
}

/// `64G`, `64GiB`, `1048576`: a number and a power of 1024.
fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..]
        .to_ascii_lowercase()
        .trim_end_matches("ib")
        .trim_end_matches('b')
    {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<Option<Config>, Malformed> {
        Config::from_lookup(|name| {
            assert!(VARIABLES.iter().any(|v| v.name == name), "{name} is not in the table");
            pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v))
        })
    }

    #[test]
    fn defaults_are_one_gfx90a_with_64_gib_and_large_bar() {
        let config = config(&[]).unwrap().unwrap();
        assert_eq!(
            config.machine,
            MachineConfig {
                gpus: 1,
                target: Target::Gfx90a,
                memory: 64 << 30,
                bar: Bar::Large,
                link: Link::Xgmi,
                svm: true
            }
        );
        assert_eq!(config.counters, None);
    }

    #[test]
    fn sizes_take_binary_suffixes() {
        for (text, bytes) in [
            ("64G", 64 << 30),
            ("512m", 512 << 20),
            ("1GiB", 1 << 30),
            ("33554432", 32 << 20),
        ] {
            assert_eq!(
                config(&[("VGPU_MEMORY", text)]).unwrap().unwrap().machine.memory,
                bytes,
                "{text}"
            );
        }
    }

    #[test]
    fn malformed_values_are_named() {
        for (name, value) in [
            ("VGPU_GPUS", "two"),
            ("VGPU_GPUS", "17"),
            ("VGPU_GPUS", "-1"),
            ("VGPU_ARCH", "gfx1100"),
            ("VGPU_MEMORY", "64X"),
            ("VGPU_MEMORY", "99999999999999999999G"),
            ("VGPU_MEMORY", "G"),
            ("VGPU_MEMORY", "1"),
            ("VGPU_BAR", "medium"),
            ("VGPU_SVM", "yes"),
            ("VGPU_LINK", "nvlink"),
            ("VGPU_COHERENCE", "friendly"),
            ("VGPU_SEED", "-1"),
            ("VGPU_TRACE", "everything"),
        ] {
            let error = config(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn no_gpu_is_a_choice() {
        assert_eq!(config(&[("VGPU_GPUS", "0")]), Ok(None));
    }

    #[test]
    fn an_empty_variable_is_an_unset_one() {
        assert_eq!(config(&[("VGPU_GPUS", ""), ("VGPU_ROOT", "")]), config(&[]));
    }
}
