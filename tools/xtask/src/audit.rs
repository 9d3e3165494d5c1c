//! symbol-audit on NVIDIA's packages: what it finds against `readelf` and `strings`, its time and its memory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use symbol_versions::{Library, procaddr};

use crate::{Result, bench, process, setup};

/// Most address space that an audit may take, whatever the file's size.
const MOST_MEMORY_KIB: u64 = 128 << 10;
/// Longest audit of one file; a library of 1 GB takes a second or two.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes of the structure that stands for each fat binary in `.nvFatBinSegment`.
const WRAPPER: u64 = 24;

/// What is compared, for one file.
pub struct Audited {
    /// The tool's exit status: 0, or 1 if something would fail.
    pub code: i32,
    /// The tool's JSON about the file.
    pub json: Value,
    /// How much was compared, and what it took.
    pub note: String,
}

/// Builds the tool.
pub fn build() -> Result<()> {
    process::must(&mut setup::cargo_build(&["symbol-audit"]))
}

/// Audits every library below `folders`; one outcome a file.
pub fn packages(folders: &[PathBuf]) -> Result<Vec<(String, Result<String>)>> {
    build()?;
    let mut files = Vec::new();
    for folder in folders {
        libraries(folder, &mut files)?;
    }
    files.sort();
    // Wheels have no links: libx.so, libx.so.0 and libx.so.0.0.0 are three copies.
    files.dedup_by(|longer, shorter| {
        let same = longer.to_string_lossy().starts_with(&*shorter.to_string_lossy());
        same && longer.metadata().map(|data| data.len()).ok() == shorter.metadata().map(|data| data.len()).ok()
    });
    let outcomes = files.into_iter().map(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, audit(&file).map(|audited| audited.note))
    });
    Ok(outcomes.collect())
}

/// The packages that CI reads.
pub fn small() -> Result<Vec<PathBuf>> {
    Ok(vec![setup::audit_packages(false)?, setup::ucx()?])
}

/// The large ones.
pub fn large() -> Result<Vec<PathBuf>> {
    Ok(vec![setup::audit_packages(true)?])
}

fn libraries(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            libraries(&path, found)?;
        } else if kind.is_file()
            && path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().contains(".so"))
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Audits one file, in bounded memory, and compares what is found with what binutils list.
pub fn audit(file: &Path) -> Result<Audited> {
    let tool = bench::release().join("symbol-audit");
    let start = Instant::now();
    // Past the limit an allocation fails, and with it the audit.
    let mut command = Command::new("bash");
    let script = format!("ulimit -v {MOST_MEMORY_KIB}; exec \"$0\" --json \"$1\"");
    command.args(["-c", &script]).arg(&tool).arg(file);
    let (outcome, peak) = process::run_measured(&mut command, LIMIT)?;
    let elapsed = start.elapsed();
    let code = match outcome.status.code() {
        Some(code @ (0 | 1)) if !outcome.timed_out => code,
        _ => return Err(format!("{}: {}", outcome.ending(), outcome.tail(5)).into()),
    };
    let mut json: Value = serde_json::from_str(&outcome.output)?;
    let json = json["files"][0].take();
    let listed = Listed::of(file)?;
    let mut faults = Vec::new();
    let mut compare = |what: &str, ours: BTreeSet<String>, theirs: BTreeSet<String>| {
        if ours != theirs {
            let different: Vec<&String> = ours.symmetric_difference(&theirs).take(10).collect();
            faults.push(format!("{what} differ from binutils' in {different:?}"));
        }
        ours.len()
    };
    let imports = compare("imports", linked(&json, false), listed.imports());
    compare("version needs", linked(&json, true), listed.needs.clone());
    compare("NEEDED", texts(&json["needed"]), listed.needed());
    compare(
        "SONAME",
        json["soname"].as_str().map(str::to_owned).into_iter().collect(),
        listed.soname.clone(),
    );
    let names = compare("names", named(&json), listed.names(file, &json)?);
    let containers: u64 = list(&json["kernels"])
        .filter_map(|kernels| kernels["containers"].as_u64())
        .sum();
    // nvcc leaves some without a wrapper: nobody registers them.
    if containers != listed.containers || containers < listed.wrappers {
        faults.push(format!(
            "{containers} fat binaries; {} begin in the sections, {} are registered",
            listed.containers, listed.wrappers
        ));
    }
    if !faults.is_empty() {
        return Err(faults.join("; ").into());
    }
    let mut note = format!(
        "{} MB, {imports} imports, {names} names, {containers} fat binaries agree",
        file.metadata()?.len() / 1_000_000
    );
    // What is over in a few milliseconds has not been watched at its peak.
    if elapsed > Duration::from_millis(50) {
        note += &format!("; {:.2} s, peak {:.1} MiB", elapsed.as_secs_f64(), peak as f64 / 1024.0);
    }
    Ok(Audited { code, json, note })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> BTreeSet<String> {
    list(value).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The symbols by link as `NAME@NODE`, or the versions that they need as `FILE NODE`.
fn linked(json: &Value, versions: bool) -> BTreeSet<String> {
    let symbols = list(&json["symbols"]).filter(|symbol| symbol["how"] == "link");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    symbols
        .filter_map(|symbol| match (versions, symbol["node"].as_str()) {
            (true, node) => Some(format!("{} {}", text(&symbol["file"]), node?)),
            (false, Some(node)) => Some(format!("{}@{node}", text(&symbol["name"]))),
            (false, None) => Some(text(&symbol["name"])),
        })
        .collect()
}

/// The names that may be looked up, known and unknown.
fn named(json: &Value) -> BTreeSet<String> {
    let symbols = list(&json["symbols"]).filter(|symbol| symbol["how"] == "name");
    let names = symbols.filter_map(|symbol| symbol["name"].as_str()).map(str::to_owned);
    names.chain(texts(&json["unknown_names"])).collect()
}

/// A section as `readelf` lists it.
struct Section {
    index: u64,
    name: String,
    kind: String,
    offset: u64,
    size: u64,
    flags: String,
}

/// What binutils say of a file.
struct Listed {
    /// Undefined symbols, as `NAME` or `NAME@NODE`, and defined ones by name.
    undefined: BTreeSet<String>,
    defined: BTreeSet<String>,
    /// Fat binaries, by their first bytes.
    containers: u64,
    /// `FILE NODE` of CUDA's version needs.
    needs: BTreeSet<String>,
    all_needed: BTreeSet<String>,
    soname: BTreeSet<String>,
    sections: Vec<Section>,
    wrappers: u64,
}

impl Listed {
    fn of(file: &Path) -> Result<Self> {
        let mut undefined = BTreeSet::new();
        let mut defined = BTreeSet::new();
        for line in readelf(file, "--dyn-syms")?.lines() {
            let columns: Vec<&str> = line.split_whitespace().collect();
            match columns.as_slice() {
                [_, _, _, _, _, _, "UND", symbol, ..] => undefined.insert((*symbol).to_owned()),
                [_, _, _, _, _, _, _, symbol, ..] => {
                    defined.insert(symbol.split('@').next().unwrap_or_default().to_owned())
                }
                _ => false,
            };
        }
        let mut needs = BTreeSet::new();
        let mut needing = String::new();
        for line in readelf(file, "--version-info")?.lines() {
            if let Some((_, rest)) = line.split_once(" File: ") {
                needing = rest.split_whitespace().next().unwrap_or_default().to_owned();
            } else if let (false, Some((_, rest))) = (needing.is_empty(), line.split_once(" Name: ")) {
                let node = rest.split_whitespace().next().unwrap_or_default();
                if node.starts_with("libcudart.so") {
                    needs.insert(format!("{needing} {node}"));
                }
            } else if line.starts_with("Version ") {
                // The definitions have names of the same form.
                needing.clear();
            }
        }
        let (mut all_needed, mut soname) = (BTreeSet::new(), BTreeSet::new());
        for line in readelf(file, "--dynamic")?.lines() {
            let text = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
            let text = text.map(|(text, _)| text.to_owned());
            if line.contains("(NEEDED)") {
                all_needed.extend(text);
            } else if line.contains("(SONAME)") {
                soname.extend(text);
            }
        }
        let listing = readelf(file, "--sections")?;
        let sections: Vec<Section> = listing.lines().filter_map(section).collect();
        let wrappers = sections.iter().filter(|section| section.name == ".nvFatBinSegment");
        let wrappers = wrappers.map(|section| section.size / WRAPPER).sum();
        let kernels = sections.iter().filter(|section| section.name.contains("fatbin"));
        let containers = kernels.map(|section| magics(file, section)).sum::<Result<u64>>()?;
        Ok(Self {
            undefined,
            defined,
            needs,
            all_needed,
            soname,
            sections,
            wrappers,
            containers,
        })
    }

    /// The undefined CUDA symbols.
    fn imports(&self) -> BTreeSet<String> {
        let ours = |symbol: &&String| match symbol.split_once('@') {
            Some((_, node)) => node.starts_with("libcudart.so"),
            None => cuda_name(symbol),
        };
        self.undefined.iter().filter(ours).cloned().collect()
    }

    /// NVIDIA's libraries in NEEDED: all that are called cu-something, nv-something or nccl.
    fn needed(&self) -> BTreeSet<String> {
        let nvidia = |file: &&String| {
            ["libcu", "libnv", "libnccl"]
                .iter()
                .any(|start| file.starts_with(start))
        };
        self.all_needed.iter().filter(nvidia).cloned().collect()
    }

    /// The names that `strings` finds among the constants of a file that looks names up.
    fn names(&self, file: &Path, json: &Value) -> Result<BTreeSet<String>> {
        let role = json["role"].as_str().unwrap_or_default();
        let plain = |symbol: &String| symbol.split('@').next().unwrap_or_default().to_owned();
        let undefined: BTreeSet<String> = self.undefined.iter().map(plain).collect();
        let looks_up = undefined.iter().any(|name| {
            let starts = |start: &&str| name.starts_with(start);
            matches!(name.as_str(), "dlsym" | "dlvsym")
                || ["cuGetProcAddress", "cudaGetDriverEntryPoint"].iter().any(starts)
        });
        let mut names = BTreeSet::new();
        if !(looks_up || role == "static-cudart") || matches!(role, "runtime" | "driver" | "regauge") {
            return Ok(names);
        }
        let bytes = File::open(file)?;
        for section in &self.sections {
            let constant = section.kind == "PROGBITS" && section.flags.contains('A') && !section.flags.contains('X');
            let code = ["fatbin", ".eh_frame", ".gcc_except_table"];
            if !constant || code.iter().any(|part| section.name.contains(part)) {
                continue;
            }
            let mut command = Command::new("bash");
            command.env("LC_ALL", "C").args([
                "-c",
                "tail -c +$(($1 + 1)) \"$0\" | head -c \"$2\" | strings -a -n 3 -t d",
            ]);
            let output = command
                .arg(file)
                .args([section.offset, section.size].map(|n| n.to_string()))
                .output()?;
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                let Some((at, text)) = line.trim_start().split_once(' ') else {
                    continue;
                };
                let end = at.parse::<u64>()? + text.len() as u64;
                // A tab is no part of a string to us.
                let name = text.rsplit('\t').next().unwrap_or_default();
                let enumerator = name == "cudaSuccess" || name.starts_with("cudaError");
                if !cuda_name(name) || enumerator || undefined.contains(name) || self.defined.contains(name) {
                    continue;
                }
                // `strings` takes what any unprintable byte ends; a name ends with NUL.
                let mut byte = [1];
                if end < section.size && bytes.read_at(&mut byte, section.offset + end)? == 1 && byte == [0] {
                    names.insert(name.to_owned());
                }
            }
        }
        // Where nothing says that the file uses CUDA, strings of the same style are its own affair.
        if self.imports().is_empty() && self.needed().is_empty() && !names.iter().any(|name| known(name)) {
            names.clear();
        }
        Ok(names)
    }
}

/// How often the first bytes of a fat binary stand in a section, at the alignment that they have.
fn magics(file: &Path, section: &Section) -> Result<u64> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(section.offset))?;
    let mut rest = std::io::BufReader::with_capacity(1 << 20, file).take(section.size);
    let (mut eight, mut count) = ([0; 8], 0);
    while rest.read_exact(&mut eight).is_ok() {
        count += u64::from(eight[..4] == [0x50, 0xed, 0x55, 0xba]);
    }
    Ok(count)
}

fn known(name: &str) -> bool {
    Library::ALL.iter().any(|library| library.table().get(name).is_some())
        || procaddr::resolve_symbol(name, 12_090, false).is_ok()
}

fn cuda_name(name: &str) -> bool {
    let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    word && ["__cuda", "cuda", "cu", "nvml"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
}

/// `  [14] .rodata  PROGBITS  000000000860ece0 860ece0 2d8a3d8 00   A  0   0 32`
fn section(line: &str) -> Option<Section> {
    let (number, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let index = number.trim().parse().ok()?;
    let columns: Vec<&str> = rest.split_whitespace().collect();
    let [name, kind, _, offset, size, _, flags, ..] = columns.as_slice() else {
        return None;
    };
    Some(Section {
        index,
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
        offset: u64::from_str_radix(offset, 16).ok()?,
        size: u64::from_str_radix(size, 16).ok()?,
        flags: (*flags).to_owned(),
    })
}

fn readelf(file: &Path, what: &str) -> Result<String> {
    let output = Command::new("readelf").args(["--wide", what]).arg(file).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A library with more than 1 GiB of fat binaries, those of NVIDIA's large libraries one after another: audited, and the count of
/// its fat binaries compared.
pub fn gigabyte() -> Result<String> {
    const ENOUGH: u64 = 1 << 30;
    let scratch = bench::target().join("soak").join("gigabyte");
    fs::create_dir_all(&scratch)?;
    let outcome = gigabyte_in(&scratch, ENOUGH);
    fs::remove_dir_all(&scratch)?;
    outcome
}

fn gigabyte_in(folder: &Path, enough: u64) -> Result<String> {
    let source = folder.join("small.c");
    fs::write(
        &source,
        "__asm__(\".pushsection .nv_fatbin, \\\"a\\\"\\n.quad 0\\n.popsection\\n\");\nint cuInit(int);\nint use(void) { return cuInit(0); }\n",
    )?;
    let library = folder.join("gigabyte.so");
    process::must(
        Command::new("gcc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source),
    )?;
    let mut files = Vec::new();
    for folder in large()? {
        libraries(&folder, &mut files)?;
    }
    files.sort();
    let mut out = fs::OpenOptions::new().read(true).write(true).open(&library)?;
    let start = out.seek(SeekFrom::End(0))?.next_multiple_of(8);
    out.set_len(start)?;
    out.seek(SeekFrom::Start(start))?;
    let (mut size, mut expected) = (0, 0);
    let with_kernels: Vec<(PathBuf, Listed)> = files
        .into_iter()
        .map(|file| Listed::of(&file).map(|listed| (file, listed)))
        .collect::<Result<_>>()?;
    while size < enough {
        let before = size;
        for (file, listed) in &with_kernels {
            expected += listed.containers;
            for section in listed.sections.iter().filter(|section| section.name.contains("fatbin")) {
                let mut from = File::open(file)?;
                from.seek(SeekFrom::Start(section.offset))?;
                let copied = std::io::copy(&mut from.take(section.size), &mut out)?;
                size += copied.next_multiple_of(8);
                out.write_all(&[0; 8][..(copied.next_multiple_of(8) - copied) as usize])?;
            }
        }
        if size == before {
            return Err("no package has a fat binary".into());
        }
    }
    // The section's header leads to them.
    let mut header = [0; 64];
    out.read_exact_at(&mut header, 0)?;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
    let listing = readelf(&library, "--sections")?;
    let section = listing
        .lines()
        .filter_map(section)
        .find(|section| section.name == ".nv_fatbin");
    let at = number(&header[40..48]) + section.ok_or("no section .nv_fatbin")?.index * 64;
    out.write_all_at(&start.to_le_bytes(), at + 24)?;
    out.write_all_at(&size.to_le_bytes(), at + 32)?;
    drop(out);
    let (mut best, mut memory) = (Duration::MAX, 0);
    let mut found = 0;
    for _ in 0..3 {
        let tool = bench::release().join("symbol-audit");
        let mut command = Command::new(tool);
        let began = Instant::now();
        let (outcome, peak) = process::run_measured(command.arg("--json").arg(&library), LIMIT)?;
        best = best.min(began.elapsed());
        memory = memory.max(peak);
        if outcome.timed_out || !matches!(outcome.status.code(), Some(0 | 1)) {
            return Err(format!("{}: {}", outcome.ending(), outcome.tail(5)).into());
        }
        let json: Value = serde_json::from_str(&outcome.output)?;
        found = json["files"][0]["kernels"][0]["containers"]
            .as_u64()
            .unwrap_or_default();
    }
    if found != expected {
        return Err(format!("{found} fat binaries instead of {expected}").into());
    }
    Ok(format!(
        "{:.2} GB, {found} fat binaries; {:.2} s, peak {:.1} MiB",
        library.metadata()?.len() as f64 / 1e9,
        best.as_secs_f64(),
        memory as f64 / 1024.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_readelf_is_a_section() {
        let line = "  [14] .rodata           PROGBITS        000000000860ece0 860ece0 2d8a3d8 00   A  0   0 32";
        let section = section(line).unwrap();
        assert_eq!(
            (section.name.as_str(), section.kind.as_str(), section.flags.as_str()),
            (".rodata", "PROGBITS", "A")
        );
        assert_eq!((section.offset, section.size), (0x860_ece0, 0x2d8_a3d8));
    }

    #[test]
    fn names_of_cuda_have_a_capital_after_the_prefix() {
        assert!(cuda_name("cuInit") && cuda_name("__cudaInitModule") && cuda_name("nvmlInit_v2"));
        assert!(!cuda_name("cublasCreate") && !cuda_name("cuInit failed") && !cuda_name("x"));
    }
}
