//! The environment variables of the translator, in one table.

use std::path::PathBuf;
use std::time::Duration;

/// An environment variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its value when unset, in words.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// Every variable that this crate reads.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "REGAUGE_PTX_WORKER",
        default: "regauge-ptx-worker beside libcuda.so.1",
        doc: "Path of the translator worker.",
    },
    Variable {
        name: "REGAUGE_COMGR",
        default: "the library of the ROCm in use",
        doc: "Path of the libamd_comgr.so that compiles kernels.",
    },
    Variable {
        name: "REGAUGE_CACHE",
        default: "1",
        doc: "0 turns the kernel cache on disk off.",
    },
    Variable {
        name: "REGAUGE_CACHE_DIR",
        default: "$XDG_CACHE_HOME/regauge or ~/.cache/regauge",
        doc: "Folder of the kernel cache; must belong to the user and be writable by nobody else.",
    },
    Variable {
        name: "REGAUGE_CACHE_SIZE",
        default: "1G",
        doc: "Size at which the oldest kernels of the cache are dropped; K, M and G suffixes.",
    },
    Variable {
        name: "REGAUGE_PTX_WORKERS",
        default: "the number of processors, at most 4",
        doc: "Most translator workers per process.",
    },
    Variable {
        name: "REGAUGE_PTX_TIMEOUT",
        default: "300",
        doc: "Seconds after which a translation is given up.",
    },
];

/// How a [`Client`](crate::client::Client) works.
#[derive(Clone, Debug)]
pub struct Config {
    /// The worker's executable.
    pub worker: PathBuf,
    /// The comgr library; `None` to look for one.
    pub comgr: Option<PathBuf>,
    /// Folder of the disk cache; `None` for no cache.
    pub cache: Option<PathBuf>,
    /// Bytes at which the cache drops its oldest entries.
    pub cache_size: u64,
    /// Most worker processes.
    pub workers: usize,
    /// How long one request may take.
    pub timeout: Duration,
}

impl Config {
    /// From the environment; `worker` is used where REGAUGE_PTX_WORKER is unset. A value that does not parse is
    /// reported once and its default taken.
    pub fn from_environment(worker: PathBuf) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let number = |name: &str, default: u64| match set(name) {
            None => default,
            Some(text) => text.to_str().and_then(parse_size).unwrap_or_else(|| {
                log::warn!("{name}={} is no number; using {default}", text.to_string_lossy());
                default
            }),
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let off = set("REGAUGE_CACHE").is_some_and(|v| v == "0");
        let folder = set("REGAUGE_CACHE_DIR").map(PathBuf::from).or_else(|| {
            let base = set("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
            base.or_else(|| set("HOME").map(|h| PathBuf::from(h).join(".cache")))
                .map(|b| b.join("regauge"))
        });
        Self {
            worker: set("REGAUGE_PTX_WORKER").map_or(worker, PathBuf::from),
            comgr: set("REGAUGE_COMGR").map(PathBuf::from),
            cache: folder.filter(|_| !off),
            cache_size: number("REGAUGE_CACHE_SIZE", 1 << 30),
            workers: number("REGAUGE_PTX_WORKERS", processors.min(4) as u64).clamp(1, 64) as usize,
            timeout: Duration::from_secs(number("REGAUGE_PTX_TIMEOUT", 300).clamp(1, 86400)),
        }
    }
}

/// `512`, `64K`, `1G`.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_take_suffixes() {
        assert_eq!(parse_size("12"), Some(12));
        assert_eq!(parse_size("3k"), Some(3 << 10));
        assert_eq!(parse_size("2G"), Some(2 << 30));
        for text in ["", "G", "-1", "1T", "99999999999999999999", "18446744073709551615K"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
