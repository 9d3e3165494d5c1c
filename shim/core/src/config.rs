//! Environment variables: one table, from which code reads and `docs/environment.md` is written.
//!
//! A variable is read once, at its first use. A malformed value is reported and the default taken: an MPI job of
//! ten thousand ranks must not die of a typing error, and must not hide it either. The variables of the worker and of the kernel
//! cache are in `kernels_ptx_translate::config`.

use std::path::PathBuf;
use std::sync::OnceLock;

/// An environment variable.
pub struct Variable<T: 'static> {
    /// Its name.
    pub name: &'static str,
    /// The default, as it would be written.
    pub default: &'static str,
    parse: fn(&str) -> Option<T>,
    value: OnceLock<T>,
}

impl<T> Variable<T> {
    const fn new(name: &'static str, default: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Self {
            name,
            default,
            parse,
            value: OnceLock::new(),
        }
    }

    /// The value: the environment's when it is well-formed, else the default.
    pub fn get(&self) -> &T {
        self.value
            .get_or_init(|| self.evaluate(std::env::var_os(self.name).as_deref()))
    }

    /// As [`Self::get`] for a given content of the environment; `None` and the empty text mean the default.
    fn evaluate(&self, text: Option<&std::ffi::OsStr>) -> T {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            match text.to_str().and_then(self.parse) {
                Some(value) => return value,
                None => log::warn!("{}={text:?} is malformed; using {:?}", self.name, self.default),
            }
        }
        match (self.parse)(self.default) {
            Some(value) => value,
            // A unit test parses every default.
            None => unreachable!("the default of {}", self.name),
        }
    }
}

/// Defines the variables: `static: type = "NAME", "default", parser;` below the doc, which is one sentence.
macro_rules! variables {
    ($(#[doc = $doc:literal] $ident:ident: $ty:ty = $name:literal, $default:literal, $parse:expr;)*) => {
        $(
            #[doc = $doc]
            pub static $ident: Variable<$ty> = Variable::new($name, $default, $parse);
        )*

        #[cfg(test)]
        const NAMES: &[&str] = &[$($name),*];

        #[cfg(test)]
        #[test]
        fn every_default_is_well_formed() {
            $(assert!(($ident.parse)($default).is_some(), $name);)*
        }
    };
}

variables! {
    #[doc = "How much is written to standard error: off, error, warn, info, debug or trace (every call)."]
    LOG: log::LevelFilter = "REGAUGE_LOG", "warn", |text| text.parse().ok();
    #[doc = "The compute capability that devices report, as major.minor."]
    COMPUTE_CAPABILITY: (u32, u32) = "REGAUGE_COMPUTE_CAPABILITY", "8.0", major_minor;
    #[doc = "The CUDA version that the driver reports, as major.minor; empty: 12.9, or 13.0 where libcudart.so.13 is loaded. The runtime's is fixed."]
    DRIVER_VERSION: Option<(u32, u32)> = "REGAUGE_DRIVER_VERSION", "", optional_major_minor;
    #[doc = "ROCr's library, as a path or a name for dlopen; empty: libhsa-runtime64.so.1."]
    ROCR: Option<PathBuf> = "REGAUGE_ROCR", "", path;
    #[doc = "Hardware queues that this process may hold on each GPU; a node runs about 24 per GPU at full speed."]
    QUEUES: usize = "REGAUGE_QUEUES", "8", count;
    #[doc = "The highest capability, times 10, of PTX that is taken from a fat binary without PTX for ours."]
    HIGHEST_PTX: u32 = "REGAUGE_HIGHEST_PTX", "99", number;
    #[doc = "Whether the CPU may touch device memory on a large-BAR card: auto (until allocation calls are hooked, as UCX does), always, never."]
    HOST_ACCESS: HostAccess = "REGAUGE_HOST_ACCESS", "auto", host_access;
    #[doc = "Whether forked children share memory of `cudaHostAlloc` with their parent, as on CUDA: 1; or 0: they die of touching it where ROCr keeps it from them."]
    SHARE_PINNED: bool = "REGAUGE_SHARE_PINNED", "1", switch;
}

/// `8.0` as (8, 0).
fn major_minor(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    let digits = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| part.parse().ok())?
    };
    Some((digits(major)?, digits(minor)?)).filter(|&(major, minor)| major < 1000 && minor < 100)
}

/// As [`major_minor`], or nothing.
// The outer option says whether the text is well-formed.
#[allow(clippy::option_option)]
fn optional_major_minor(text: &str) -> Option<Option<(u32, u32)>> {
    if text.is_empty() {
        return Some(None);
    }
    major_minor(text).map(Some)
}

/// What [`HOST_ACCESS`] can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAccess {
    /// Until somebody hooks the allocation calls.
    Auto,
    /// Even then.
    Always,
    /// From the start.
    Never,
}

/// `auto`, `always` or `never`.
fn host_access(text: &str) -> Option<HostAccess> {
    Some(match text {
        "auto" => HostAccess::Auto,
        "always" => HostAccess::Always,
        "never" => HostAccess::Never,
        _ => return None,
    })
}

/// `0` or `1`.
fn switch(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// A number.
fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// A number from 1.
fn count(text: &str) -> Option<usize> {
    text.parse().ok().filter(|&count| count > 0)
}

/// A path, or none.
// The outer option says whether the text is well-formed, which it always is.
#[allow(clippy::unnecessary_wraps, clippy::option_option)]
fn path(text: &str) -> Option<Option<PathBuf>> {
    Some((!text.is_empty()).then(|| PathBuf::from(text)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn malformed_values_give_the_default() {
        for text in ["", "8", "8.", ".0", "8.x", "-8.0", "+8.0", "8.0.0", "99999999999.0"] {
            assert_eq!(COMPUTE_CAPABILITY.evaluate(Some(OsStr::new(text))), (8, 0), "{text:?}");
        }
        assert_eq!(COMPUTE_CAPABILITY.evaluate(Some(OsStr::from_bytes(b"\xff.0"))), (8, 0));
        assert_eq!(COMPUTE_CAPABILITY.evaluate(Some(OsStr::new("9.0"))), (9, 0));
        assert_eq!(COMPUTE_CAPABILITY.evaluate(None), (8, 0));
    }

    #[test]
    fn names_are_ours_and_unique() {
        let mut names = NAMES.to_vec();
        assert!(names.iter().all(|name| name.starts_with("REGAUGE_")));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
    }
}
