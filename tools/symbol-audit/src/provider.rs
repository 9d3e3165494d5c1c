//! Who answers for a symbol: Regauge, by its tables, or other libraries, by what they export.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use symbol_versions::{Library, Status, Symbol, procaddr, tested};

use crate::elf::{Elf, Error, Version};
use crate::names::family;

/// What will happen when the symbol is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Not there: the loader stops, or the call returns "not supported" (801).
    Missing,
    /// Will not be there, on purpose: the call returns "not supported" (801).
    Refused,
    /// There, and some recorded answers of NVIDIA's library differ.
    Partial,
    /// There, but no data-checking test exercised it.
    Untested,
    /// There, and all tests agree.
    Works,
    /// The other library (`--against`) has it; nothing more is known.
    Provided,
}

impl Verdict {
    /// All, the worst first.
    pub const ALL: [Self; 6] = [
        Self::Missing,
        Self::Refused,
        Self::Partial,
        Self::Untested,
        Self::Works,
        Self::Provided,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Refused => "refused",
            Self::Partial => "partial",
            Self::Untested => "untested",
            Self::Works => "works",
            Self::Provided => "provided",
        }
    }

    /// A program that uses the symbol would fail.
    pub const fn fails(self) -> bool {
        matches!(self, Self::Missing | Self::Refused)
    }
}

/// A verdict and, where one word is not enough, why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub note: Option<String>,
    /// The library that was asked, by its name.
    pub library: String,
}

/// A library given with `--against`.
#[derive(Debug)]
pub struct OtherLibrary {
    /// Its SONAME, or its file's name.
    name: String,
    /// Symbol -> its version nodes; `None` for one without.
    symbols: HashMap<String, Vec<Option<String>>>,
}

impl OtherLibrary {
    /// Reads what a library exports.
    ///
    /// # Errors
    /// When it is not a readable ELF file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let elf = Elf::open(path)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut symbols: HashMap<String, Vec<Option<String>>> = HashMap::new();
        for export in elf.exports(|name| !name.is_empty())? {
            symbols.entry(export.name).or_default().push(export.node);
        }
        Ok(Self {
            name: elf.soname().unwrap_or(file),
            symbols,
        })
    }
}

/// Who answers.
#[derive(Debug)]
pub enum Provider {
    /// Regauge.
    Regauge,
    /// These libraries.
    Others(Vec<OtherLibrary>),
}

impl Provider {
    /// Whether an undefined symbol is looked at at all.
    pub fn concerns(&self, name: &str, version: Option<&Version>) -> bool {
        match self {
            // Another library's functions may be called cuSomething too; a version says whose they are.
            Self::Regauge => match version {
                Some(version) => cuda_library(&version.file).is_some() || cuda_library(&version.node).is_some(),
                None => family(name).is_some(),
            },
            Self::Others(libraries) => match version {
                Some(version) => libraries.iter().any(|library| same_stem(&library.name, &version.file)),
                // Without a version nothing says whose it is: one of a CUDA library's family that it lacks is missing.
                None => libraries.iter().any(|library| {
                    library.symbols.contains_key(name)
                        || family(name).is_some_and(|family| same_stem(&library.name, family.soname()))
                }),
            },
        }
    }

    /// What happens to a reference by link.
    pub fn link(&self, name: &str, version: Option<&Version>) -> Answer {
        match self {
            Self::Regauge => regauge_link(name, version),
            Self::Others(libraries) => others_link(libraries, name, version),
        }
    }

    /// What happens to a look-up by name; `resolves`: the file asks `cuGetProcAddress`, for which a name without a version
    /// stands for the newest. `None`: no such name is known.
    pub fn by_name(&self, name: &str, resolves: bool) -> Option<(Answer, Option<&'static str>)> {
        let library = family(name)?;
        match self {
            Self::Regauge => {
                let newest = || procaddr::resolve_symbol(name, NEWEST, false).ok();
                let resolved = (resolves && library == Library::Cuda).then(newest).flatten();
                let symbol = resolved.or_else(|| library.table().get(name)).or_else(newest)?;
                let other = (symbol.name != name).then_some(symbol.name);
                Some((judge(symbol, library.soname()), other))
            }
            Self::Others(libraries) => {
                let known =
                    library.table().get(name).is_some() || procaddr::resolve_symbol(name, NEWEST, false).is_ok();
                let asked = libraries
                    .iter()
                    .find(|other| same_stem(&other.name, library.soname()))?;
                let has = asked.symbols.contains_key(name);
                (has || known).then(|| {
                    let verdict = if has { Verdict::Provided } else { Verdict::Missing };
                    (answer(verdict, None, &asked.name), None)
                })
            }
        }
    }
}

/// The driver version that Regauge reports: what a client may ask for at most.
const NEWEST: u32 = 12_090;

fn answer(verdict: Verdict, note: Option<String>, library: &str) -> Answer {
    Answer {
        verdict,
        note,
        library: library.to_owned(),
    }
}

/// The stem and the version of a library's file name: `libcudart`, `12`.
pub fn stem(file: &str) -> (&str, &str) {
    match file.split_once(".so") {
        Some((stem, rest)) => (stem, rest.trim_start_matches('.')),
        None => (file, ""),
    }
}

fn same_stem(a: &str, b: &str) -> bool {
    unmangled(stem(a).0) == unmangled(stem(b).0)
}

/// `libcudart` of `libcudart-256e6409` (auditwheel's style) and of `libcudart.e8e8b82a` (PyTorch's): Python wheels carry private
/// copies under such names.
pub fn unmangled(stem: &str) -> &str {
    match stem.rsplit_once(['-', '.']) {
        Some((plain, hash)) if hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => plain,
        _ => stem,
    }
}

/// Whether the name is that of a private copy.
pub fn is_private_copy(file: &str) -> bool {
    let (stem, _) = stem(file);
    unmangled(stem) != stem
}

/// Which of our libraries goes by that stem, whatever the version.
pub fn cuda_library(file: &str) -> Option<Library> {
    Library::ALL
        .into_iter()
        .find(|library| same_stem(library.soname(), file))
}

fn regauge_link(name: &str, version: Option<&Version>) -> Answer {
    let Some(version) = version else {
        let Some(library) = family(name) else {
            return answer(Verdict::Missing, None, "?");
        };
        return match library.table().get(name) {
            Some(symbol) => judge(symbol, library.soname()),
            None => answer(Verdict::Missing, Some("no such symbol".into()), library.soname()),
        };
    };
    let exact = Library::ALL
        .into_iter()
        .find(|library| library.soname() == version.file);
    // A private copy that is replaced has the usual name and the node that is asked for.
    let by_node = || {
        Library::ALL
            .into_iter()
            .find(|library| library.soname() == version.node)
    };
    let library = exact.or_else(|| is_private_copy(&version.file).then(by_node).flatten());
    let Some(library) = library else {
        let note = format!(
            "version {} of {}, which Regauge does not have",
            version.node, version.file
        );
        return answer(Verdict::Missing, Some(note), &version.file);
    };
    match library.table().get(name) {
        Some(symbol) if symbol.node == Some(version.node.as_str()) || symbol.node.is_none() => {
            judge(symbol, library.soname())
        }
        Some(symbol) => {
            let has = symbol.node.unwrap_or("none");
            let note = format!("asked at version {}, there at {has}", version.node);
            answer(Verdict::Missing, Some(note), library.soname())
        }
        None => answer(Verdict::Missing, Some("no such symbol".into()), library.soname()),
    }
}

/// The verdict about a symbol that Regauge exports.
fn judge(symbol: &Symbol, library: &str) -> Answer {
    let evidence = tested::evidence(symbol.name).unwrap_or_default();
    match symbol.status {
        Status::Stub => {
            let note = "there is an entry point; a call returns \"not supported\" (801)";
            answer(Verdict::Missing, Some(note.into()), library)
        }
        Status::Refuse => answer(
            Verdict::Refused,
            Some("a call returns \"not supported\" (801)".into()),
            library,
        ),
        Status::Impl if !evidence.exercised() => answer(Verdict::Untested, None, library),
        Status::Impl if evidence.differing() > 0 => {
            let note = format!(
                "{} of {} recorded answers differ",
                evidence.differing(),
                evidence.records
            );
            answer(Verdict::Partial, Some(note), library)
        }
        Status::Impl => answer(Verdict::Works, None, library),
    }
}

fn others_link(libraries: &[OtherLibrary], name: &str, version: Option<&Version>) -> Answer {
    let Some(version) = version else {
        let having = libraries.iter().find(|library| library.symbols.contains_key(name));
        return match having {
            Some(library) => answer(Verdict::Provided, None, &library.name),
            None => {
                let asked = family(name).map_or("?", Library::soname);
                answer(Verdict::Missing, Some("no such symbol".into()), asked)
            }
        };
    };
    let exact = libraries.iter().find(|library| library.name == version.file);
    let Some(library) = exact.or_else(|| libraries.iter().find(|other| same_stem(&other.name, &version.file))) else {
        return answer(Verdict::Missing, Some("no such library given".into()), &version.file);
    };
    match library.symbols.get(name) {
        None => answer(Verdict::Missing, Some("no such symbol".into()), &library.name),
        Some(nodes) if nodes.iter().flatten().any(|node| *node == version.node) => {
            answer(Verdict::Provided, None, &library.name)
        }
        // The loader accepts a library without any versions, and says so; the linker does not.
        Some(nodes) if nodes.iter().all(Option::is_none) => {
            let note = format!("asked at version {}, there without one", version.node);
            answer(Verdict::Provided, Some(note), &library.name)
        }
        Some(nodes) => {
            let has: Vec<&str> = nodes.iter().flatten().map(String::as_str).collect();
            let note = format!("asked at version {}, there at {}", version.node, has.join(", "));
            answer(Verdict::Missing, Some(note), &library.name)
        }
    }
}

/// What a difference of version nodes means, in words, and what to do; `None`: there is none.
pub fn explain(version: &Version, provider: &Provider) -> Option<(String, String)> {
    let Version { node, file } = version;
    match provider {
        Provider::Regauge => explain_regauge(node, file),
        Provider::Others(libraries) => {
            let library = libraries.iter().find(|library| same_stem(&library.name, file))?;
            let mut nodes: Vec<&str> = library
                .symbols
                .values()
                .flatten()
                .flatten()
                .map(String::as_str)
                .collect();
            nodes.sort_unstable();
            nodes.dedup();
            let name = &library.name;
            if nodes.contains(&node.as_str()) {
                return None;
            }
            Some(if nodes.is_empty() {
                (
                    format!(
                        "It asks for symbols at version node {node}; {name} defines its symbols without versions. The loader \
                         binds them all the same and prints \"{name}: no version information available\"; GNU ld refuses to \
                         link (\"undefined reference to `...@{node}'\")."
                    ),
                    format!("Rebuild {name} with a version script that has the node {node}."),
                )
            } else {
                // A library's own name counts as a node of it, so only the symbols are missed then.
                let words = if name == node {
                    format!("undefined symbol: ..., version {node}")
                } else {
                    format!("version `{node}' not found")
                };
                (
                    format!(
                        "It asks for symbols at version node {node}; {name} has {} only. The loader stops with \"{words}\".",
                        nodes.join(", ")
                    ),
                    format!("Use a {name} of the version that this file was linked against."),
                )
            })
        }
    }
}

fn explain_regauge(node: &str, file: &str) -> Option<(String, String)> {
    let library = cuda_library(file)?;
    let ours = library.table().symbols().first().and_then(|symbol| symbol.node);
    let exact = Library::ALL.into_iter().any(|library| library.soname() == file);
    if is_private_copy(file) {
        let by_node = Library::ALL
            .into_iter()
            .find(|other| other.soname() == node)
            .unwrap_or(library);
        return Some((
            format!(
                "It asks for {file}: a private copy of NVIDIA's {} under a name of its own, as Python wheels carry them. \
                 The loader takes that file whatever LD_LIBRARY_PATH and LD_PRELOAD say, and NVIDIA's runtime does not run \
                 over another driver library.",
                unmangled(stem(file).0)
            ),
            format!(
                "Change the name in a copy of this file: patchelf --replace-needed {file} {}",
                by_node.soname()
            ),
        ));
    }
    if exact && ours.is_none_or(|ours| ours == node) {
        return None;
    }
    if exact {
        let ours = ours.unwrap_or_default();
        return Some((
            format!(
                "It asks for symbols at version node {node} of {file}; NVIDIA's {file} and Regauge's have the node {ours}. The \
                 loader stops with \"version `{node}' not found\"."
            ),
            "It was linked against some other library of that name: relink it against a CUDA 12 toolkit.".into(),
        ));
    }
    let (_, version) = stem(file);
    let major = version.split('.').next().unwrap_or_default();
    let built = match major.parse::<u32>() {
        Ok(major @ 9..) => format!("It was built for CUDA {major}"),
        _ => "No CUDA release since 9 has a library of that name".into(),
    };
    let have: Vec<&str> = Library::ALL
        .into_iter()
        .filter(|other| same_stem(other.soname(), file))
        .map(Library::soname)
        .collect();
    let have = have.join(", ");
    Some((
        format!(
            "It asks for {file} (version node {node}); Regauge has {have}. {built}. The name and the node belong to one major \
             version, whose structures differ from the others': the loader looks for the file {file} by name, and a link of \
             that name to {have} ends in \"version `{node}' not found\"."
        ),
        format!(
            "Use the build of this library or program for CUDA 12 ({})",
            Library::Cudart.soname()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(file: &str, node: &str) -> Version {
        Version {
            file: file.into(),
            node: node.into(),
        }
    }

    #[test]
    fn statuses_and_tests_make_verdicts() {
        let cudart = version("libcudart.so.12", "libcudart.so.12");
        let verdict = |name: &str, version: Option<&Version>| Provider::Regauge.link(name, version).verdict;
        for library in Library::ALL {
            for symbol in library.table().symbols() {
                let own = symbol.node.map(|node| version(library.soname(), node));
                let got = verdict(symbol.name, own.as_ref());
                let exercised = tested::evidence(symbol.name).is_some_and(tested::Evidence::exercised);
                let fits = match symbol.status {
                    Status::Stub => got == Verdict::Missing,
                    Status::Refuse => got == Verdict::Refused,
                    Status::Impl if exercised => matches!(got, Verdict::Works | Verdict::Partial),
                    Status::Impl => got == Verdict::Untested,
                };
                assert!(fits, "{}: {got:?}", symbol.name);
            }
        }
        assert_eq!(verdict("cudaNoSuchThing", None), Verdict::Missing);
        assert!(!verdict("cudaMalloc", Some(&cudart)).fails());
        assert!(
            !verdict("cudaMalloc", None).fails(),
            "unversioned references bind to the default"
        );
    }

    #[test]
    fn other_major_versions_are_missing_and_explained() {
        for (file, words) in [
            ("libcudart.so.11.0", "It was built for CUDA 11"),
            ("libcudart.so.1", "No CUDA release"),
            ("libcudart.so.99", "It was built for CUDA 99"),
        ] {
            if Library::ALL.iter().any(|library| library.soname() == file) {
                continue;
            }
            let other = version(file, file);
            assert_eq!(
                Provider::Regauge.link("cudaMalloc", Some(&other)).verdict,
                Verdict::Missing
            );
            let (what, cure) = explain(&other, &Provider::Regauge).unwrap();
            assert!(what.contains(words) && what.contains("libcudart.so.12"), "{what}");
            assert!(cure.contains("CUDA 12"));
        }
        let odd = version("libcudart.so.12", "libcudart.so.12.5");
        assert!(
            explain(&odd, &Provider::Regauge)
                .unwrap()
                .0
                .contains("`libcudart.so.12.5' not found")
        );
        assert_eq!(
            explain(&version("libcudart.so.12", "libcudart.so.12"), &Provider::Regauge),
            None
        );
        assert_eq!(explain(&version("libc.so.6", "GLIBC_2.34"), &Provider::Regauge), None);
    }

    #[test]
    fn private_copies_are_known_by_their_hash() {
        let private = version("libcudart-256e6409.so.12.9.79", "libcudart.so.12");
        let (what, cure) = explain(&private, &Provider::Regauge).unwrap();
        assert!(what.contains("private copy"));
        assert!(cure.ends_with("--replace-needed libcudart-256e6409.so.12.9.79 libcudart.so.12"));
        for file in ["libcudart-256e6409.so.12.9.79", "libcudart.e8e8b82a.so.12"] {
            let private = version(file, "libcudart.so.12");
            assert!(is_private_copy(file) && explain(&private, &Provider::Regauge).is_some());
            assert_eq!(
                Provider::Regauge.link("cudaMalloc", Some(&private)).verdict,
                Provider::Regauge.link("cudaMalloc", None).verdict
            );
        }
        assert!(!is_private_copy("libcudart.so.12") && !is_private_copy("libcudart-static.so"));
    }

    #[test]
    fn names_mean_the_newest_form_only_to_get_proc_address() {
        let by = |resolves| Provider::Regauge.by_name("cuMemAlloc", resolves).unwrap();
        assert_eq!(by(true).1, Some("cuMemAlloc_v2"));
        assert_eq!(by(false).1, None);
        assert_eq!(Provider::Regauge.by_name("cuNoSuchThing", true), None);
    }
}
