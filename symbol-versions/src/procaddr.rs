//! Which symbol answers for a name, a version and a kind of default stream: the rules of `cuGetProcAddress`.
//!
//! A base name (`cuMemAlloc`) stands for all symbols that differ from it by `_v2`, `_v3` ... and `_ptds` or `_ptsz` (per-thread
//! default stream). The newest one that is not newer than the version asked for answers. Where a base name has a
//! per-thread form, that form answers a client that asks for it. Checked against NVIDIA's answers for every name.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::{Library, Symbol};

/// Why no symbol answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotFound {
    /// No symbol has that base name (`CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND`).
    Name,
    /// The version asked for is older than every symbol (`CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT`).
    Version,
}

/// The name without version and per-thread suffix, and whether it had the latter.
pub fn base_name(symbol: &str) -> (&str, bool) {
    let plain = symbol.strip_suffix("_ptsz").or_else(|| symbol.strip_suffix("_ptds"));
    let name = plain.unwrap_or(symbol);
    let base = match name.rsplit_once("_v") {
        Some((base, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => name,
    };
    (base, plain.is_some())
}

/// A symbol that may answer for a base name.
struct Candidate {
    index: usize,
    since: u32,
    per_thread: bool,
}

/// The candidates of every base name.
fn candidates() -> &'static HashMap<&'static str, Vec<Candidate>> {
    static CANDIDATES: OnceLock<HashMap<&'static str, Vec<Candidate>>> = OnceLock::new();
    CANDIDATES.get_or_init(|| {
        let mut map: HashMap<&'static str, Vec<Candidate>> = HashMap::new();
        for (index, symbol) in Library::Cuda.table().symbols().iter().enumerate() {
            let Some(since) = symbol.since else { continue };
            let (base, per_thread) = base_name(symbol.name);
            map.entry(base).or_default().push(Candidate {
                index,
                since,
                per_thread,
            });
        }
        map
    })
}

/// The position in the driver's table of the symbol that answers for `base` at `version`.
///
/// # Errors
/// When the name is unknown or the version too old.
pub fn resolve(base: &str, version: u32, per_thread: bool) -> Result<usize, NotFound> {
    let all = candidates().get(base).ok_or(NotFound::Name)?;
    let per_thread = per_thread && all.iter().any(|candidate| candidate.per_thread);
    all.iter()
        .filter(|candidate| candidate.per_thread == per_thread && candidate.since <= version)
        .max_by_key(|candidate| candidate.since)
        .map(|candidate| candidate.index)
        .ok_or(NotFound::Version)
}

/// As [`resolve`], the symbol itself.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_symbol(base: &str, version: u32, per_thread: bool) -> Result<&'static Symbol, NotFound> {
    resolve(base, version, per_thread).map(|index| &Library::Cuda.table().symbols()[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(base: &str, version: u32, per_thread: bool) -> Result<&'static str, NotFound> {
        resolve_symbol(base, version, per_thread).map(|symbol| symbol.name)
    }

    #[test]
    fn suffixes_are_cut() {
        assert_eq!(base_name("cuMemcpyHtoD_v2_ptds"), ("cuMemcpyHtoD", true));
        assert_eq!(base_name("cuStreamQuery_ptsz"), ("cuStreamQuery", true));
        assert_eq!(base_name("cuMemAlloc_v2"), ("cuMemAlloc", false));
        assert_eq!(base_name("cuMemAlloc_vx"), ("cuMemAlloc_vx", false));
    }

    #[test]
    fn the_newest_symbol_not_above_the_version_answers() {
        assert_eq!(name("cuMemAlloc", 1000, false), Err(NotFound::Version));
        assert_eq!(name("cuMemAlloc", 2000, false), Ok("cuMemAlloc"));
        assert_eq!(name("cuMemAlloc", 3020, false), Ok("cuMemAlloc_v2"));
        assert_eq!(name("cuCtxCreate", 11070, false), Ok("cuCtxCreate_v3"));
        assert_eq!(name("cuCtxCreate", 12090, false), Ok("cuCtxCreate_v4"));
    }

    #[test]
    fn per_thread_forms_answer_where_there_is_one() {
        assert_eq!(name("cuStreamQuery", 12000, true), Ok("cuStreamQuery_ptsz"));
        assert_eq!(name("cuMemcpyHtoD", 12000, true), Ok("cuMemcpyHtoD_v2_ptds"));
        assert_eq!(name("cuMemAlloc", 12000, true), Ok("cuMemAlloc_v2"));
    }

    #[test]
    fn symbols_are_not_base_names() {
        for unknown in [
            "cuMemAlloc_v2",
            "cuStreamQuery_ptsz",
            "",
            "cudaMalloc",
            "cuMemAlloc ",
            "cuEGLApiInit",
        ] {
            assert_eq!(name(unknown, 12000, false), Err(NotFound::Name), "{unknown:?}");
        }
    }
}
