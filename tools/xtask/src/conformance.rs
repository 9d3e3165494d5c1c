//! The conformance programs of `tests/oracle`: built against Regauge, run over the virtual GPU, compared record by record with
//! what real CUDA answered (`tests/oracle/results`).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::exec::{self, BarMode};
use crate::setup::{self, Rocr};
use crate::{Result, bench, process, programs};

/// How one program's records compare with the recorded ones.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Records that agree in result, last error and output.
    pub agree: usize,
    /// Records that differ.
    pub differ: usize,
    /// Recorded, but not produced by our run.
    pub missing: usize,
    /// Groups whose process did not end by itself (crash, hang).
    pub broken_groups: Vec<String>,
    /// The differences, one a paragraph, for the log.
    pub details: String,
    /// The same by call, as the program's source names it.
    pub calls: BTreeMap<String, Calls>,
    /// Rows of `tests/oracle/deviations.tsv` about this program's records that describe no difference any more.
    pub stale: Vec<String>,
}

/// How the records of one call compare.
#[derive(Debug, Default)]
pub struct Calls {
    /// Recorded calls.
    pub records: u32,
    /// Those whose answer agrees.
    pub agree: u32,
    /// Those whose answer agrees and is success.
    pub successes: u32,
}

impl Comparison {
    /// All recorded records.
    pub fn total(&self) -> usize {
        self.agree + self.differ + self.missing
    }
}

/// The folder with programs and records.
pub fn folder() -> PathBuf {
    bench::root().join("tests/oracle")
}

/// The least number of agreeing records that each program must reach: `tests/oracle/floor.tsv`, raised as we get better.
pub fn floors() -> Result<BTreeMap<String, usize>> {
    let text = std::fs::read_to_string(folder().join("floor.tsv"))?;
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let (name, floor) = row.split_once('\t').ok_or_else(|| format!("floor.tsv: {row}"))?;
        Ok((name.to_owned(), floor.trim().parse()?))
    })
    .collect()
}

/// Builds `tests/oracle/NAME.cc` against our libraries.
pub fn build(name: &str) -> Result<PathBuf> {
    let source = folder().join(format!("{name}.cc"));
    let release = bench::release();
    let mut command = Command::new("g++");
    command
        .args(["-std=gnu++17", "-O1", "-w"])
        .arg("-I")
        .arg(setup::nvcc()?.join("include"))
        .arg(&source);
    command
        .arg(release.join("libcudart.so.12"))
        .arg(release.join("libcuda.so.1"))
        .args(["-lpthread", "-ldl"]);
    programs::compile(&format!("oracle-{name}"), &source, command)
}

/// Builds, runs and compares one program.
pub fn run(name: &str, rocr: &Rocr) -> Result<Comparison> {
    let program = build(name)?;
    let scratch = bench::Scratch::new("oracle")?;
    let ours = scratch.path().join(format!("{name}.jsonl"));
    let mut arguments = exec::Arguments::for_command([program]);
    arguments.gpus = 1;
    arguments.bar = BarMode::Large;
    arguments.rocr = rocr.clone();
    if name == "procaddr" {
        // What cuGetProcAddress answers depends on the driver's version; the record's driver was a 13.0.
        arguments.variables.push("REGAUGE_DRIVER_VERSION=13.0".into());
    }
    let mut command = exec::command(&arguments, &scratch.path().join("gpu"))?;
    // Where procaddr finds the list of symbols.
    command.current_dir(folder().join("results"));
    command
        .env("ORACLE_OUT", &ours)
        // Two groups at a time, but for alloc, where one takes all the memory of the GPU that another counts.
        .env("ORACLE_JOBS", if name == "alloc" { "1" } else { "2" })
        .env("ORACLE_PTX", folder().join("ptx_cases.txt"));
    let outcome = process::run(&mut command, Duration::from_secs(600))?;
    let logs = bench::logs();
    std::fs::create_dir_all(&logs)?;
    std::fs::write(logs.join(format!("oracle-{name}.output.txt")), &outcome.output)?;
    if !ours.exists() {
        return Err(format!("{name} left no records ({}):\n{}", outcome.ending(), outcome.tail(20)).into());
    }
    std::fs::copy(&ours, logs.join(format!("oracle-{name}.jsonl")))?;
    let recorded = folder().join(format!("results/{name}.jsonl"));
    let mut comparison = compare(&recorded, &ours)?;
    comparison.stale = stale(&folder().join("deviations.tsv"), &recorded, &ours)?;
    std::fs::write(logs.join(format!("oracle-{name}.differences.txt")), &comparison.details)?;
    Ok(comparison)
}

type Key = (String, usize);

fn load(path: &Path) -> Result<Vec<(Key, Value)>> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut records = Vec::new();
    for line in text.lines() {
        // A group that was killed may leave a torn last line; what it lacks then counts as missing.
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let field = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        let key = ["group", "case", "call", "args"].map(field).join(" / ");
        let n = seen.entry(key.clone()).or_default();
        *n += 1;
        records.push(((key, *n), record));
    }
    Ok(records)
}

/// The rows of a list of deviations that name a recorded call, but no answer of ours to it that differs as they say.
fn stale(deviations: &Path, recorded: &Path, ours: &Path) -> Result<Vec<String>> {
    let recorded = load(recorded)?;
    let ours: HashMap<Key, Value> = load(ours)?.into_iter().collect();
    let text = std::fs::read_to_string(deviations)?;
    let mut stale = Vec::new();
    for row in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = row.split('\t').collect();
        let &[group, case, call, args, result, _, _] = &fields[..] else {
            return Err(format!("deviations.tsv: {row}: not seven fields").into());
        };
        let name = [group, case, call, args].join(" / ");
        let mut named = recorded.iter().filter(|(key, _)| key.0 == name).peekable();
        let known = named.peek().is_some();
        let deviates = |(key, want): &(Key, Value)| {
            let got = ours.get(key);
            got.is_some_and(|got| {
                let same = ["result", "last", "out", "mem"]
                    .iter()
                    .all(|field| want.get(field) == got.get(field));
                // '*' is for records that are no calls and have no result.
                !same && (result == "*" || got.get("result").and_then(Value::as_str) == Some(result))
            })
        };
        if known && !named.any(deviates) {
            stale.push(name);
        }
    }
    Ok(stale)
}

/// Compares two record files by (group, case, call, args, occurrence); where real CUDA crashed, any error of ours agrees.
pub fn compare(recorded: &Path, ours: &Path) -> Result<Comparison> {
    let recorded = load(recorded)?;
    let ours: HashMap<Key, Value> = load(ours)?.into_iter().collect();
    let mut comparison = Comparison::default();
    for (key, want) in &recorded {
        let call = want.get("call").and_then(Value::as_str).unwrap_or("").to_owned();
        let calls = comparison.calls.entry(call).or_default();
        calls.records += 1;
        let Some(got) = ours.get(key) else {
            comparison.missing += 1;
            let _ = writeln!(comparison.details, "missing: {} #{}\n", key.0, key.1);
            continue;
        };
        let result = |record: &Value| record.get("result").and_then(Value::as_str).unwrap_or("").to_owned();
        let refused = !matches!(result(got).as_str(), "" | "SIGSEGV" | "cudaSuccess" | "CUDA_SUCCESS");
        let same = ["result", "last", "out", "mem"]
            .iter()
            .all(|field| want.get(field) == got.get(field));
        if same || (result(want) == "SIGSEGV" && refused) {
            comparison.agree += 1;
            calls.agree += 1;
            calls.successes += u32::from(matches!(result(want).as_str(), "cudaSuccess" | "CUDA_SUCCESS"));
        } else {
            comparison.differ += 1;
            if key.0.contains("<process>") {
                comparison.broken_groups.push(key.0.clone());
            }
            let _ = writeln!(
                comparison.details,
                "differs: {} #{}\n  recorded {want}\n  ours     {got}\n",
                key.0, key.1
            );
        }
    }
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_agree_by_occurrence_and_crashes_by_refusal() {
        let folder = bench::Scratch::new("compare-test").unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        let line =
            |call: &str, result: &str| format!("{{\"group\":\"g\",\"call\":\"{call}\",\"result\":\"{result}\"}}\n");
        std::fs::write(
            &a,
            [line("f", "X"), line("f", "Y"), line("h", "SIGSEGV"), line("k", "Z")].concat(),
        )
        .unwrap();
        std::fs::write(&b, [line("f", "X"), line("f", "W"), line("h", "ERROR")].concat()).unwrap();
        let comparison = compare(&a, &b).unwrap();
        assert_eq!((comparison.agree, comparison.differ, comparison.missing), (2, 1, 1));
        assert_eq!((comparison.calls["f"].records, comparison.calls["f"].agree), (2, 1));
        assert_eq!(comparison.calls["f"].successes, 0);
    }

    #[test]
    fn a_deviation_that_is_none_any_more_is_stale() {
        let folder = bench::Scratch::new("stale-test").unwrap();
        let path = |name: &str| folder.path().join(name);
        let line = |call: &str, result: &str| {
            format!("{{\"group\":\"g\",\"case\":\"c\",\"call\":\"{call}\",\"args\":\"x\",\"result\":\"{result}\"}}\n")
        };
        let row = |call: &str, result: &str| format!("g\tc\t{call}\tx\t{result}\tsafer\twhy\n");
        std::fs::write(path("a"), [line("f", "X"), line("h", "Y")].concat()).unwrap();
        std::fs::write(path("b"), [line("f", "Z"), line("h", "Y")].concat()).unwrap();
        let rows = [row("f", "Z"), row("h", "Y"), row("f", "W"), row("elsewhere", "Z")].concat();
        std::fs::write(path("list"), rows).unwrap();
        let stale = stale(&path("list"), &path("a"), &path("b")).unwrap();
        assert_eq!(stale, ["g / c / h / x", "g / c / f / x"]);
    }
}
