//! The conformance programs of `tests/oracle`: built against Regauge, run over the virtual GPU, compared record by record with
//! what real CUDA answered (`tests/oracle/results`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::exec::{self, BarMode};
use crate::setup::{self, Rocr};
use crate::{Result, bench, process, programs};

/// How one program's records compare with the recorded ones, by `tests/oracle/compare.py` and the list of deviations.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Records that agree.
    pub agree: usize,
    /// Records that differ as a row of `tests/oracle/deviations.tsv` says.
    pub allowed: usize,
    /// Records that differ otherwise, or that our run lacks.
    pub unlisted: usize,
    /// The differences, one a paragraph, those of no row first, for the log.
    pub details: String,
    /// The same by call, as the program's source names it.
    pub calls: BTreeMap<String, Calls>,
    /// Rows of the list about this program's records that describe no difference any more.
    pub stale: Vec<String>,
    /// More than 3 % of the records are allowed to differ as `hardware` or `safer`.
    pub too_many_allowed: bool,
    /// The rows of the list that name a record of this program.
    pub named: Vec<String>,
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
        self.agree + self.allowed + self.unlisted
    }

    /// What makes the comparison fail, in words.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.unlisted > 0 {
            let first = self.details.lines().next().unwrap_or_default();
            complaints.push(format!(
                "{} differences that deviations.tsv does not list, first {first}",
                self.unlisted
            ));
        }
        if !self.stale.is_empty() {
            complaints.push(format!("deviations.tsv has what is none: {}", self.stale.join("; ")));
        }
        if self.too_many_allowed {
            complaints.push("more than 3 % of the records are allowed as 'hardware' or 'safer'".into());
        }
        complaints
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

/// The program that made a record, those of its groups that it ran, and on how many GPUs.
fn recording(name: &str) -> (&str, &[&str], u32) {
    match name {
        "peer" => (name, &[], 2),
        "visible_2gpu" => ("device", &["visible"], 2),
        _ => (name, &[], 1),
    }
}

/// Builds and runs the program of one record, and compares.
pub fn run(name: &str, rocr: &Rocr) -> Result<Comparison> {
    let (program, groups, gpus) = recording(name);
    let program = build(program)?;
    let scratch = bench::Scratch::new("oracle")?;
    let ours = scratch.path().join(format!("{name}.jsonl"));
    let groups = groups.iter().map(PathBuf::from);
    let mut arguments = exec::Arguments::for_command(std::iter::once(program).chain(groups));
    arguments.gpus = gpus;
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
    let comparison = compare(&folder().join(format!("results/{name}.jsonl")), &ours)?;
    std::fs::write(logs.join(format!("oracle-{name}.differences.txt")), &comparison.details)?;
    Ok(comparison)
}

/// The rows of the list of deviations, by name, that name no record of these programs.
pub fn rows_of_nothing<'a>(programs: impl IntoIterator<Item = &'a Comparison>) -> Result<Vec<String>> {
    let named: BTreeSet<&str> = programs
        .into_iter()
        .flat_map(|program| program.named.iter().map(String::as_str))
        .collect();
    let text = std::fs::read_to_string(folder().join("deviations.tsv"))?;
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let names = rows.map(|row| row.split('\t').take(4).collect::<Vec<_>>().join(" / "));
    Ok(names.filter(|name| !named.contains(name.as_str())).collect())
}

/// What `compare.py --json` writes.
#[derive(Deserialize)]
struct Report {
    records: Vec<Record>,
    stale: Vec<String>,
    named: Vec<String>,
    too_many: bool,
}

#[derive(Deserialize)]
struct Record {
    kind: Kind,
    /// Group, case, call, arguments, and which of several equal ones.
    key: (String, String, String, String, usize),
    recorded: Value,
    ours: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Same,
    Allowed,
    Different,
    Missing,
}

/// Compares two record files by `tests/oracle/compare.py`, which alone says what agrees, under `tests/oracle/deviations.tsv`.
pub fn compare(recorded: &Path, ours: &Path) -> Result<Comparison> {
    compare_under(&folder().join("deviations.tsv"), recorded, ours)
}

fn compare_under(deviations: &Path, recorded: &Path, ours: &Path) -> Result<Comparison> {
    let scratch = bench::Scratch::new("compare")?;
    let report = scratch.path().join("report.json");
    let mut command = Command::new("python3");
    command.arg(folder().join("compare.py")).args([recorded, ours]);
    command.arg("--allow").arg(deviations).arg("--json").arg(&report);
    let output = command.output()?;
    // Its exit status says no more than the report; a comparison that failed leaves none.
    let Ok(text) = std::fs::read_to_string(&report) else {
        return Err(format!("compare.py: {}", String::from_utf8_lossy(&output.stderr)).into());
    };
    let report: Report = serde_json::from_str(&text)?;
    let mut comparison = Comparison {
        stale: report.stale,
        named: report.named,
        too_many_allowed: report.too_many,
        ..Comparison::default()
    };
    let mut listed = String::new();
    for Record {
        kind,
        key,
        recorded,
        ours,
    } in report.records
    {
        let (group, case, call, args, n) = key;
        let calls = comparison.calls.entry(call.clone()).or_default();
        calls.records += 1;
        let (count, details) = match kind {
            Kind::Same => {
                comparison.agree += 1;
                calls.agree += 1;
                let success = matches!(recorded["result"].as_str(), Some("cudaSuccess" | "CUDA_SUCCESS"));
                calls.successes += u32::from(success);
                continue;
            }
            Kind::Allowed => (&mut comparison.allowed, &mut listed),
            Kind::Different | Kind::Missing => (&mut comparison.unlisted, &mut comparison.details),
        };
        *count += 1;
        let word = if kind == Kind::Missing { "missing" } else { "differs" };
        let _ = writeln!(
            details,
            "{word}: {group} / {case} / {call} / {args} #{n}\n  recorded {recorded}\n  ours     {ours}\n"
        );
    }
    if !listed.is_empty() {
        let _ = write!(comparison.details, "--- listed in deviations.tsv ---\n\n{listed}");
    }
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(call: &str, result: &str, out: &str) -> String {
        format!(
            "{{\"group\":\"g\",\"case\":\"c\",\"call\":\"{call}\",\"args\":\"x\",\"result\":\"{result}\",\"out\":{out}}}\n"
        )
    }

    fn compared(recorded: &[String], ours: &[String], rows: &[&str]) -> Result<Comparison> {
        let folder = bench::Scratch::new("compare-test").unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("recorded"), recorded.concat()).unwrap();
        std::fs::write(path("ours"), ours.concat()).unwrap();
        std::fs::write(path("list"), rows.join("\n")).unwrap();
        compare_under(&path("list"), &path("recorded"), &path("ours"))
    }

    #[test]
    fn records_agree_by_occurrence_and_crashes_by_refusal() {
        let recorded = [("f", "X"), ("f", "Y"), ("h", "SIGSEGV"), ("k", "Z")].map(|(call, r)| record(call, r, "{}"));
        let ours = [("f", "X"), ("f", "W"), ("h", "ERROR")].map(|(call, r)| record(call, r, "{}"));
        let comparison = compared(&recorded, &ours, &[]).unwrap();
        assert_eq!((comparison.agree, comparison.allowed, comparison.unlisted), (2, 0, 2));
        assert_eq!((comparison.calls["f"].records, comparison.calls["f"].agree), (2, 1));
        assert_eq!(comparison.calls["f"].successes, 0);
        assert!(
            comparison.complaints()[0].contains("g / c / f / x #2"),
            "{:?}",
            comparison.complaints()
        );
    }

    #[test]
    fn a_row_allows_what_it_says_and_nothing_else() {
        let (recorded, ours) = (
            [record("f", "X", r#"{"a":1,"b":2}"#)],
            [record("f", "X", r#"{"a":1,"b":3}"#)],
        );
        let allowed = |row: &str| compared(&recorded, &ours, &[row]).unwrap().allowed;
        assert_eq!(allowed("g\tc\tf\tx\tX {\"b\": 3}\tabsent\twhy"), 1);
        assert_eq!(allowed("g\tc\tf\tx #1\tX {\"b\": \"*\"}\tabsent\twhy"), 1);
        assert_eq!(allowed("g\tc\tf\tx\tX {\"b\": 4}\tabsent\twhy"), 0, "another value");
        assert_eq!(
            allowed("g\tc\tf\tx\tX {\"a\": 1, \"b\": 3}\tabsent\twhy"),
            0,
            "a field that agrees"
        );
        assert_eq!(allowed("g\tc\tf\tx\tX\tabsent\twhy"), 0, "the result agrees");
        assert_eq!(allowed("g\tc\tf\tx\tY\tabsent\twhy"), 0, "another result");
        assert_eq!(
            allowed("g\tc\tf\tx #2\tX {\"b\": 3}\tabsent\twhy"),
            0,
            "another occurrence"
        );
        assert!(
            compared(&recorded, &ours, &["g\tc\tf\tx\tX\tabsent\t"]).is_err(),
            "no reason"
        );
        assert!(
            compared(&recorded, &ours, &["g\tc\tf\tx\tX\tvalue\twhy"]).is_err(),
            "no group of values"
        );
    }

    #[test]
    fn a_record_may_be_listed_as_missing() {
        let recorded = [record("f", "X", "{}"), record("h", "X", "{}")];
        let comparison = compared(&recorded, &[], &["g\tc\tf\tx\tmissing\tabsent\twhy"]).unwrap();
        assert_eq!((comparison.allowed, comparison.unlisted), (1, 1));
    }

    #[test]
    fn a_deviation_that_is_none_any_more_is_stale() {
        let recorded = [record("f", "X", "{}"), record("h", "Y", "{}")];
        let ours = [record("f", "Z", "{}"), record("h", "Y", "{}")];
        let row = |call: &str, result: &str| format!("g\tc\t{call}\tx\t{result}\tabsent\twhy");
        let rows = [row("f", "Z"), row("h", "Y"), row("f", "W"), row("elsewhere", "Z")];
        let comparison = compared(&recorded, &ours, &rows.each_ref().map(String::as_str)).unwrap();
        assert_eq!(comparison.stale, ["g / c / h / x", "g / c / f / x"]);
        assert_eq!(comparison.named.len(), 3, "a row of another program");
    }

    #[test]
    fn few_records_may_be_listed_as_hardware_or_safer() {
        let recorded: Vec<String> = (0..40).map(|n| record(&format!("f{n}"), "X", "{}")).collect();
        let mut ours = recorded.clone();
        ours[0] = record("f0", "Z", "{}");
        ours[1] = record("f1", "Z", "{}");
        let rows = ["g\tc\tf0\tx\tZ\tsafer\twhy", "g\tc\tf1\tx\tZ\thardware\twhy"];
        let comparison = compared(&recorded, &ours, &rows).unwrap();
        assert_eq!((comparison.allowed, comparison.too_many_allowed), (2, true));
        let listed_as_absent = [rows[0], "g\tc\tf1\tx\tZ\tabsent\twhy"];
        assert!(!compared(&recorded, &ours, &listed_as_absent).unwrap().too_many_allowed);
    }
}
