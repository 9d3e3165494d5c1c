//! `cargo xtask tested`: writes `symbol-versions/tables/tested.tsv` from the last conformance run and from the sources of the
//! programs that check themselves. symbol-audit's verdicts come from that table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use symbol_versions::{Library, tested};

use crate::conformance::{self, Calls};
use crate::{Result, bench, setup};

/// Options of `tested`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder with the records of a conformance run (default: target/logs). Programs without records there keep their rows.
    #[arg(long)]
    logs: Option<PathBuf>,
}

const HEADER: &str = "\
# Which symbols the data-checking tests exercised; written by `cargo xtask tested`, see src/tested.rs.
# Columns: symbol, source, recorded calls, those whose answer agrees, those of them that succeed. Programs that check themselves have no records: 0 0 0.
";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let logs = arguments.logs.clone().unwrap_or_else(bench::logs);
    let path = bench::root().join("symbol-versions/tables/tested.tsv");
    let old = std::fs::read_to_string(&path)?;
    // (symbol, source) -> records, agreeing, agreeing successes
    let mut rows: BTreeMap<(String, String), [u32; 3]> = BTreeMap::new();
    for row in tested::parse(&old)? {
        // What is kept: records of programs that did not run this time.
        if row.records > 0 && !log(&logs, row.source).exists() {
            let key = (row.symbol.to_owned(), row.source.to_owned());
            rows.insert(key, [row.records, row.agree, row.successes]);
        }
    }
    let renames = renames()?;
    for entry in std::fs::read_dir(conformance::folder().join("results"))? {
        let recorded = entry?.path();
        let name = recorded.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let source = format!("oracle/{name}");
        let ours = log(&logs, &source);
        if recorded.extension().is_none_or(|extension| extension != "jsonl") || !ours.exists() {
            continue;
        }
        let comparison = conformance::compare(&recorded, &ours)?;
        println!("{source}: {} of {} records agree", comparison.agree, comparison.total());
        for (
            call,
            Calls {
                records,
                agree,
                successes,
            },
        ) in comparison.calls
        {
            let Some(symbol) = symbol_of(&call, &renames) else {
                continue;
            };
            let row = rows.entry((symbol, source.clone())).or_default();
            *row = [row[0] + records, row[1] + agree, row[2] + successes];
        }
    }
    for (source, symbols) in tested::self_checking(&bench::root().join("tests"))? {
        for symbol in symbols {
            rows.insert((symbol.to_owned(), source.clone()), [0; 3]);
        }
    }
    let mut text = HEADER.to_owned();
    for ((symbol, source), [records, agree, successes]) in &rows {
        let _ = writeln!(text, "{symbol}\t{source}\t{records}\t{agree}\t{successes}");
    }
    std::fs::write(&path, text)?;
    let mut symbols: Vec<&String> = rows.keys().map(|(symbol, _)| symbol).collect();
    symbols.dedup();
    println!("tested.tsv: {} symbols", symbols.len());
    Ok(ExitCode::SUCCESS)
}

/// The records of our run of `source`.
fn log(logs: &Path, source: &str) -> PathBuf {
    logs.join(format!("{}.jsonl", source.replace('/', "-")))
}

/// The symbol that a name in a conformance program means; `None`: none of ours (a note, a helper).
fn symbol_of(call: &str, renames: &BTreeMap<String, String>) -> Option<String> {
    let name = renames.get(call).map_or(call, String::as_str);
    let known = Library::ALL.iter().any(|library| library.table().get(name).is_some());
    known.then(|| name.to_owned())
}

/// What NVIDIA's headers rename: `cuMemAlloc` is `cuMemAlloc_v2`.
fn renames() -> Result<BTreeMap<String, String>> {
    let include = setup::nvcc()?.join("include");
    let mut command = Command::new("g++");
    command.args([
        "-E",
        "-dM",
        "-x",
        "c++",
        "-include",
        "cuda.h",
        "-include",
        "cuda_runtime_api.h",
    ]);
    let output = command.arg("-I").arg(include).arg("/dev/null").output()?;
    if !output.status.success() {
        return Err(format!("g++ -E: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let defines = text
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split_once(' '));
    Ok(defines
        .map(|(name, value)| {
            // Without per-thread default stream the wrappers give their argument.
            let inner = value.strip_suffix(')').and_then(|value| value.split_once('('));
            let wrapped =
                inner.filter(|(wrapper, _)| wrapper.starts_with("__CUDA_API_") || wrapper.starts_with("__CUDART_API_"));
            (
                name.to_owned(),
                wrapped.map_or(value, |(_, argument)| argument).to_owned(),
            )
        })
        .filter(|(name, value)| name.starts_with("cu") && value.starts_with("cu"))
        .collect())
}
