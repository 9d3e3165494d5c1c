//! symbol-audit on NVIDIA's packages: its imports against `readelf`'s, its time and its memory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Result, bench, process, setup};

/// Most address space that an audit may take, whatever the file's size.
const MOST_MEMORY_KIB: u64 = 128 << 10;
/// Longest audit of one file; a library of 1 GB takes seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Builds the tool and audits every library below `folders`; one outcome a file.
pub fn packages(folders: &[PathBuf]) -> Result<Vec<(String, Result<String>)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(bench::root())
        .args(["build", "--release", "--quiet", "-p", "symbol-audit"]);
    process::must(command.env_remove("LD_LIBRARY_PATH"))?;
    let mut files = Vec::new();
    for folder in folders {
        libraries(folder, &mut files)?;
    }
    files.sort();
    let outcomes = files.into_iter().map(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = audit(&file);
        (name, outcome)
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
    for entry in std::fs::read_dir(folder)? {
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

/// Audits one file and compares the CUDA imports by link with what `readelf` lists.
fn audit(file: &Path) -> Result<String> {
    let tool = bench::release().join("symbol-audit");
    let start = Instant::now();
    // Past the limit an allocation fails, and with it the audit.
    let mut command = Command::new("bash");
    let script = format!("ulimit -v {MOST_MEMORY_KIB}; exec \"$0\" --json \"$1\"");
    command.args(["-c", &script]).arg(&tool).arg(file);
    let outcome = process::run(&mut command, LIMIT)?;
    let elapsed = start.elapsed();
    if outcome.timed_out || !matches!(outcome.status.code(), Some(0 | 1)) {
        return Err(format!("{}: {}", outcome.ending(), outcome.tail(5)).into());
    }
    let json: Value = serde_json::from_str(&outcome.output)?;
    let ours: BTreeSet<String> = json["files"][0]["symbols"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|symbol| symbol["how"] == "link")
        .map(|symbol| {
            let name = symbol["name"].as_str().unwrap_or_default();
            symbol["node"]
                .as_str()
                .map_or_else(|| name.to_owned(), |node| format!("{name}@{node}"))
        })
        .collect();
    let expected = readelf_imports(file)?;
    if ours != expected {
        let different: Vec<&String> = ours.symmetric_difference(&expected).take(10).collect();
        return Err(format!("differs from readelf in {different:?}").into());
    }
    Ok(format!(
        "{} MB, {} imports agree, {:.2} s",
        file.metadata()?.len() / 1_000_000,
        ours.len(),
        elapsed.as_secs_f64()
    ))
}

/// The undefined CUDA symbols, with their versions, that `readelf` lists.
fn readelf_imports(file: &Path) -> Result<BTreeSet<String>> {
    let output = Command::new("readelf").args(["-W", "--dyn-syms"]).arg(file).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let imports = text.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, _, _, _, "UND", symbol, ..] = columns.as_slice() else {
            return None;
        };
        let (name, node) = symbol
            .split_once('@')
            .map_or((*symbol, None), |(name, node)| (name, Some(node)));
        let prefix = ["__cuda", "cuda", "cu", "nvml"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()));
        let ours = match node {
            Some(node) => node.starts_with("libcudart.so"),
            None => prefix,
        };
        ours.then(|| node.map_or_else(|| name.to_owned(), |node| format!("{name}@{node}")))
    });
    Ok(imports.collect())
}
