//! One file's audit: what it needs, who answers, and what would go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::elf::{Elf, Error, Import};
use crate::kernels::{self, Kernels, Rule};
use crate::names::{self, family};
use crate::provider::{Provider, Verdict, cuda_library, explain, is_private_copy, stem, unmangled};

/// How a file comes to a symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// An undefined symbol: the loader binds it.
    Link,
    /// The name is a string in its data, and the file looks names up.
    Name,
}

/// One symbol that a file needs or may look up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Needed {
    /// Its name.
    pub name: String,
    /// How the file comes to it.
    pub how: How,
    /// The library that answers, or would.
    pub library: String,
    /// The file that the reference names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The version node that the reference asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The reference may stay unresolved.
    pub weak: bool,
    /// The symbol that answers a look-up by a name without a version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolves_to: Option<&'static str>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, where one word is not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What would go wrong, or might, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problem {
    /// The program would fail; else this is a warning.
    pub fails: bool,
    /// What it is.
    pub what: String,
    /// What to do.
    pub cure: String,
}

/// What a file is to CUDA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It uses CUDA.
    Client,
    /// It has a cudart of its own linked in.
    StaticCudart,
    /// NVIDIA's runtime, or another: it exports `cudaMalloc` and is not ours.
    Runtime,
    /// A driver library: it exports `cuInit` and is not ours.
    Driver,
    /// One of Regauge's libraries.
    Regauge,
    /// It has nothing to do with CUDA.
    None,
}

/// The audit of one file.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub role: Role,
    /// Its SONAME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soname: Option<String>,
    /// NVIDIA's libraries in NEEDED.
    pub needed: Vec<String>,
    /// The symbols.
    pub symbols: Vec<Needed>,
    /// Names that look like CUDA's and that no table knows.
    pub unknown_names: Vec<String>,
    /// The fat binaries.
    pub kernels: Vec<Kernels>,
    /// What would go wrong.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Whether the file has to do with CUDA.
    pub fn concerns_cuda(&self) -> bool {
        self.role != Role::None
    }

    /// Whether something would fail; `strict`: or is not known to work.
    pub fn fails(&self, strict: bool) -> bool {
        self.problems.iter().any(|problem| problem.fails || strict)
            || self.symbols.iter().any(|symbol| match symbol.how {
                How::Link if !symbol.weak => symbol.verdict.fails() || (strict && symbol.verdict < Verdict::Works),
                _ => strict && symbol.verdict < Verdict::Works,
            })
    }

    /// Whether nothing stands against loading it and running its kernels: only calls would return errors.
    pub fn loads(&self) -> bool {
        let bound = |symbol: &&Needed| symbol.how == How::Link && symbol.verdict == Verdict::Missing && !symbol.weak;
        !self.problems.iter().any(|problem| problem.fails)
            && self
                .symbols
                .iter()
                .filter(bound)
                .all(|symbol| symbol.note.as_ref().is_some_and(|note| note.contains("entry point")))
    }

    /// How many symbols of a kind have each verdict.
    pub fn counts(&self, how: How) -> BTreeMap<Verdict, usize> {
        let mut counts = BTreeMap::new();
        for symbol in self.symbols.iter().filter(|symbol| symbol.how == how) {
            *counts.entry(symbol.verdict).or_default() += 1;
        }
        counts
    }
}

/// Functions by which a file looks other functions up.
fn looks_up(name: &str) -> bool {
    matches!(name, "dlsym" | "dlvsym" | "GetProcAddress") || resolves(name)
}

/// Those for which a name without a version stands for the newest.
fn resolves(name: &str) -> bool {
    ["cuGetProcAddress", "cudaGetDriverEntryPoint"]
        .iter()
        .any(|function| name.starts_with(function))
}

/// Libraries of NVIDIA's that are neither ours nor part of the program.
fn is_other_nvidia(file: &str) -> bool {
    const STEMS: [&str; 23] = [
        "libcublas",
        "libcublasLt",
        "libcudadevrt",
        "libcudnn",
        "libcudss",
        "libcufft",
        "libcufftw",
        "libcufile",
        "libcupti",
        "libcurand",
        "libcusolver",
        "libcusolverMg",
        "libcusparse",
        "libcusparseLt",
        "libcutensor",
        "libcutensorMg",
        "libnccl",
        "libnvJitLink",
        "libnvToolsExt",
        "libnvblas",
        "libnvjpeg",
        "libnvrtc",
        "libnvshmem_host",
    ];
    STEMS.contains(&unmangled(stem(file).0))
}

/// Audits one file.
///
/// # Errors
/// When it is not an ELF file that can be read.
pub fn audit(path: &Path, provider: &Provider, rule: Rule) -> Result<Report, Error> {
    let elf = Elf::open(path)?;
    let imports = elf.imports(|name| !name.is_empty())?;
    let exports: BTreeSet<String> = elf
        .exports(|name| family(name).is_some() || name.starts_with("regauge_"))?
        .into_iter()
        .map(|export| export.name)
        .collect();
    let all_needed = elf.needed();
    let ours = exports.iter().any(|name| name.starts_with("regauge_"))
        || imports.iter().any(|import| import.name.starts_with("regauge_"));
    let has = |name: &str| exports.contains(name);
    let provides = match () {
        () if ours => Some(Role::Regauge),
        () if has("cuInit") && has("cuGetExportTable") => Some(Role::Driver),
        () if has("cudaMalloc") && has("__cudaRegisterFatBinary") => Some(Role::Runtime),
        () => None,
    };

    let found = names::search(&elf)?;
    let mut symbols: Vec<Needed> = imports
        .iter()
        .filter(|import| provider.concerns(&import.name, import.version.as_ref()))
        .map(|import| linked(import, provider))
        .collect();
    let static_cudart = provides.is_none() && found.cudart_interface;
    let mut unknown_names = Vec::new();
    // Without a function to look names up, names in the data are messages.
    let looks = imports.iter().any(|import| looks_up(&import.name)) || static_cudart;
    if provides.is_none() && looks {
        let resolving =
            imports.iter().any(|import| resolves(&import.name)) || found.names.iter().any(|name| resolves(name));
        let known: BTreeSet<&str> = imports.iter().map(|import| import.name.as_str()).collect();
        for name in found
            .names
            .iter()
            .filter(|name| !known.contains(name.as_str()) && !has(name))
        {
            match provider.by_name(name, resolving) {
                Some((answer, resolves_to)) => symbols.push(Needed {
                    name: name.clone(),
                    how: How::Name,
                    library: answer.library,
                    file: None,
                    node: None,
                    weak: false,
                    resolves_to,
                    verdict: answer.verdict,
                    note: answer.note,
                }),
                None => unknown_names.push(name.clone()),
            }
        }
    }
    // Only the functions of a client are worth a line: messages are made of the same words.
    let uses_cuda = !symbols.is_empty() || all_needed.iter().any(|file| cuda_library(file).is_some());
    if !uses_cuda || matches!(provider, Provider::Others(_)) {
        unknown_names.clear();
    }
    let kernels = kernels::search(&elf, rule)?;
    let role = match provides {
        Some(role) => role,
        None if static_cudart => Role::StaticCudart,
        None if uses_cuda || !kernels.is_empty() => Role::Client,
        None => Role::None,
    };
    let nvidia = |file: &&String| cuda_library(file).is_some() || is_other_nvidia(file);
    let needed: Vec<String> = all_needed.iter().filter(nvidia).cloned().collect();
    let mut report = Report {
        path: path.to_owned(),
        role,
        soname: elf.soname(),
        needed,
        symbols,
        unknown_names,
        kernels,
        problems: Vec::new(),
    };
    let by_link: Vec<&Import> = imports
        .iter()
        .filter(|import| provider.concerns(&import.name, import.version.as_ref()))
        .collect();
    report.problems = problems(&elf, &report, &by_link, provider);
    Ok(report)
}

fn linked(import: &Import, provider: &Provider) -> Needed {
    let answer = provider.link(&import.name, import.version.as_ref());
    Needed {
        name: import.name.clone(),
        how: How::Link,
        library: answer.library,
        file: import.version.as_ref().map(|version| version.file.clone()),
        node: import.version.as_ref().map(|version| version.node.clone()),
        weak: import.weak,
        resolves_to: None,
        verdict: answer.verdict,
        note: answer.note,
    }
}

fn problems(elf: &Elf, report: &Report, imports: &[&Import], provider: &Provider) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut versions: Vec<_> = imports.iter().filter_map(|import| import.version.as_ref()).collect();
    versions.sort();
    versions.dedup();
    for version in versions {
        let Some((what, cure)) = explain(version, provider) else {
            continue;
        };
        // A library without versions is accepted by the loader.
        let fails = !what.contains("no version information available");
        problems.push(Problem { fails, what, cure });
    }
    if matches!(provider, Provider::Others(_)) {
        return problems;
    }
    match report.role {
        Role::StaticCudart => problems.push(Problem {
            fails: true,
            what: "It has NVIDIA's CUDA runtime linked in (libcudart_static.a, nvcc's default). That runtime asks the driver for \
                   private tables that Regauge does not answer; its first call fails with \"named symbol not found\" (500)."
                .into(),
            cure: "Relink with the shared runtime: nvcc -cudart shared (CMake: CUDA_RUNTIME_LIBRARY Shared). A closed library: \
                   ask its maker for a build with the shared runtime."
                .into(),
        }),
        Role::Runtime if elf.soname().is_some_and(|name| is_private_copy(&name)) => problems.push(Problem {
            fails: false,
            what: "This is a private copy of NVIDIA's CUDA runtime. It does not run over Regauge's driver library.".into(),
            cure: "Let the libraries beside it ask for libcudart.so.12: patchelf --replace-needed.".into(),
        }),
        Role::Runtime => problems.push(Problem {
            fails: false,
            what: "This is a CUDA runtime other than Regauge's. NVIDIA's does not run over Regauge's driver library.".into(),
            cure: "See that Regauge's is found first: LD_PRELOAD, or its folder first in LD_LIBRARY_PATH.".into(),
        }),
        Role::Driver => problems.push(Problem {
            fails: false,
            what: "This is a driver library other than Regauge's.".into(),
            cure: "See that Regauge's folder comes first in LD_LIBRARY_PATH.".into(),
        }),
        Role::Client | Role::Regauge | Role::None => {}
    }
    if report.role == Role::Client
        && let Some(path) = elf.rpath()
        && let Some(file) = report.needed.iter().find(|file| cuda_library(file).is_some())
    {
        problems.push(Problem {
            fails: false,
            what: format!("Its DT_RPATH ({path}) is searched for {file} before LD_LIBRARY_PATH."),
            cure: "If NVIDIA's library lies there, use LD_PRELOAD, which comes before both.".into(),
        });
    }
    let refused: u32 = report.kernels.iter().flat_map(|kernels| kernels.refused.values()).sum();
    let taken: u32 = report.kernels.iter().flat_map(|kernels| kernels.taken.values()).sum();
    if refused > 0 {
        let mut reasons: Vec<&str> = report
            .kernels
            .iter()
            .flat_map(|kernels| kernels.refused.keys().map(String::as_str))
            .collect();
        reasons.sort_unstable();
        reasons.dedup();
        problems.push(Problem {
            fails: true,
            what: format!(
                "{refused} of {} fat binaries hold no PTX that would be translated ({}). Their kernels fail at launch with \
                 \"no kernel image is available\" (209).",
                refused + taken,
                reasons.join("; ")
            ),
            cure: "Rebuild with PTX in it, for instance: nvcc -gencode arch=compute_80,code=compute_80. Where only the limit is \
                   in the way: REGAUGE_HIGHEST_PTX."
                .into(),
        });
    }
    let others: Vec<&str> = report
        .needed
        .iter()
        .filter(|file| is_other_nvidia(file))
        .map(String::as_str)
        .collect();
    if !others.is_empty() {
        problems.push(Problem {
            fails: false,
            what: format!(
                "It needs libraries of NVIDIA's that are no part of Regauge: {}.",
                others.join(", ")
            ),
            cure: "Audit them too: they must themselves run over Regauge.".into(),
        });
    }
    problems
}
