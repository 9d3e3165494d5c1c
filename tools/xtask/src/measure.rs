//! `cargo xtask bench`: measurements, as a table and as JSON under `target/bench-results/`.
//!
//! A time on a shared machine means little alone, so every bench measures its own yardstick in the same run, and `ratio` is
//! the time over the yardstick's. Where NVIDIA's H200 has a recorded time for the same call (`tests/oracle/timing.cc` measured
//! there), it stands beside ours. Nothing here is a test: no time passes or fails.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use symbol_versions::{Library, Status};

use crate::counters::Counters;
use crate::{Result, bench, beside_hip, conformance, exec, process, programs, setup};

/// Options of `bench`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Which ones (default: all).
    names: Vec<Name>,
    /// Measure what is built, without asking cargo whether it is up to date.
    #[arg(long)]
    no_build: bool,
    /// Runs of each program that `preload` starts.
    #[arg(long, default_value_t = 500)]
    runs: u32,
    /// Runs of each side of `memory` and `streams`, in turn.
    #[arg(long, default_value_t = 3)]
    pairs: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// What preloading a library costs a program that never calls it: time and memory, beside NVIDIA's cudart.
    Preload,
    /// Pointer queries, hit and miss, with 1, 1000 and 100 000 live blocks.
    Pointer,
    /// Launches of an empty kernel, alone and back to back.
    Launch,
    /// Copies by kind and size.
    Copy,
    /// Pointer queries up to a million live blocks, allocation, host memory, handles: beside AMD's HIP runtime.
    Memory,
    /// Launches, events, queries, small copies, memory operations, graphs, callbacks: beside AMD's HIP runtime.
    Streams,
    /// Wave instructions per second of the virtual GPU.
    Interpreter,
}

/// One measured quantity.
#[derive(Serialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what: `ns`, `us`, `KiB`, `Minstr/s`, `times` another row.
    pub unit: &'static str,
    /// What the bench's yardstick took, where that is measured row by row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yardstick: Option<f64>,
    /// The value over that of the bench's yardstick, measured in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The median that an H200 gave for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub h200: Option<f64>,
}

impl Row {
    /// A row without anything beside it.
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            value,
            unit,
            yardstick: None,
            ratio: None,
            h200: None,
        }
    }
}

/// What a bench gave.
#[derive(Serialize)]
struct Report {
    bench: String,
    commit: String,
    date: String,
    /// What `ratio` is relative to.
    yardstick: String,
    rows: Vec<Row>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.no_build {
        setup::build()?;
    }
    let names = if arguments.names.is_empty() {
        Name::value_variants()
    } else {
        &arguments.names
    };
    for &name in names {
        let (yardstick, rows) = match name {
            Name::Preload => preload(arguments.runs)?,
            Name::Pointer => recorded(&["pointers", "small_calls"], |row| {
                row.contains("Pointer") || row.contains("AddressRange")
            })?,
            Name::Launch => recorded(&["launches", "small_calls"], |row| {
                row.contains("kernel") || row.contains("Kernel")
            })?,
            Name::Copy => copies()?,
            Name::Memory => beside_hip::memory(arguments.pairs)?,
            Name::Streams => beside_hip::streams(arguments.pairs)?,
            Name::Interpreter => interpreter()?,
        };
        let report = Report {
            bench: format!("{name:?}").to_lowercase(),
            commit: capture("git", &["log", "-1", "--format=%h"])?,
            date: capture("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])?,
            yardstick,
            rows,
        };
        print_table(&report);
        let path = write(&report)?;
        println!("bench: {}\n", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn print_table(report: &Report) {
    println!("{} (ratio: to {})", report.bench, report.yardstick);
    let beside = report.rows.iter().any(|row| row.yardstick.is_some());
    let yardstick = if beside { "yardstick" } else { "" };
    println!(
        "  {:<76} {:>12} {:<9} {:>12} {:>8} {:>10}",
        "", "here", "", yardstick, "ratio", "H200"
    );
    for row in &report.rows {
        let number =
            |value: Option<f64>, digits: usize| value.map_or(String::new(), |value| format!("{value:.digits$}"));
        // NaN: the call is not there.
        let here = if row.value.is_nan() {
            "801".into()
        } else {
            format!("{:.1}", row.value)
        };
        println!(
            "  {:<76} {:>12} {:<9} {:>12} {:>8} {:>10}",
            row.name,
            here,
            row.unit,
            number(row.yardstick, 1),
            number(row.ratio, 2),
            number(row.h200, 1)
        );
    }
}

fn write(report: &Report) -> Result<PathBuf> {
    let folder = bench::target().join("bench-results");
    std::fs::create_dir_all(&folder)?;
    let date: String = report.date.chars().filter(char::is_ascii_alphanumeric).collect();
    let path = folder.join(format!("{}-{date}.json", report.bench));
    std::fs::write(&path, serde_json::to_string_pretty(report)? + "\n")?;
    Ok(path)
}

/// Times `/bin/true` with each preload in turn within one run, so that the machine's noise hits all alike.
pub fn preload(runs: u32) -> Result<(String, Vec<Row>)> {
    let mut preloads: Vec<(String, Option<PathBuf>)> = vec![("nothing".into(), None)];
    preloads.push((
        "NVIDIA's libcudart.so.12".into(),
        Some(setup::nvcc()?.join("lib64/libcudart.so.12")),
    ));
    for library in ["libcudart.so.12", "libcuda.so.1", "libnvidia-ml.so.1", "libvgpu.so"] {
        preloads.push((format!("Regauge's {library}"), Some(bench::release().join(library))));
    }
    // What `regauge run --preload` and the job scripts' pages have users export.
    preloads.push(("all three of Regauge's".into(), Some(crate::preload::list().into())));
    let mut times = vec![Vec::new(); preloads.len()];
    for _ in 0..runs {
        for ((_, library), samples) in preloads.iter().zip(&mut times) {
            let mut command = with_preload("/bin/true", library.as_deref());
            let start = Instant::now();
            if !command.status()?.success() {
                return Err(format!("{command:?} failed").into());
            }
            samples.push(start.elapsed());
        }
    }
    let mut rows = Vec::new();
    times.iter_mut().for_each(|samples| samples.sort());
    // Others' work on the machine lengthens the median, hardly the fastest runs.
    for (what, rank) in [("median", 2), ("fastest tenth", 10)] {
        let mut base = None;
        for ((name, _), samples) in preloads.iter().zip(&times) {
            let time = samples[samples.len() / rank].as_secs_f64() * 1e6;
            let yardstick = *base.get_or_insert(time);
            rows.push(Row {
                ratio: Some(time / yardstick),
                ..Row::new(format!("/bin/true, {what}, preloaded: {name}"), time, "us")
            });
        }
    }
    // Memory has no noise worth a median: one process says what it holds.
    for field in ["Rss", "Private_Dirty"] {
        let mut base = None;
        for (name, library) in &preloads {
            let kib = memory(library.as_deref(), field)?;
            let yardstick = *base.get_or_insert(kib);
            rows.push(Row {
                ratio: Some(kib / yardstick),
                ..Row::new(format!("{field}, preloaded: {name}"), kib, "KiB")
            });
        }
    }
    Ok(("the same without a preload".into(), rows))
}

fn with_preload(program: &str, library: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    command
}

/// A field of its own `smaps_rollup` that `cat` prints, in KiB.
fn memory(library: Option<&Path>, field: &str) -> Result<f64> {
    let output = with_preload("/bin/cat", library)
        .arg("/proc/self/smaps_rollup")
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let value = text.lines().find_map(|line| {
        let rest = line.strip_prefix(field)?.strip_prefix(':')?;
        rest.trim().strip_suffix("kB")?.trim().parse().ok()
    });
    value.ok_or_else(|| format!("/proc/self/smaps_rollup has no {field}").into())
}

/// The H200's median of each of the program's measurements.
pub fn h200() -> Result<HashMap<String, f64>> {
    let text = std::fs::read_to_string(conformance::folder().join("results/timing_summary.tsv"))?;
    let rows = text.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        Some((columns.first()?.trim().to_owned(), columns.get(2)?.parse().ok()?))
    });
    Ok(rows.collect())
}

/// Runs groups of the oracle's timing program, the one that was measured on the H200, over a virtual GPU.
fn recorded(groups: &[&str], wanted: impl Fn(&str) -> bool) -> Result<(String, Vec<Row>)> {
    const YARDSTICK: &str = "clock_gettime (overhead)";
    let program = conformance::build("timing")?;
    let scratch = bench::Scratch::new("timing")?;
    let records = scratch.path().join("timing.jsonl");
    let mut arguments = exec::Arguments::for_command([program]);
    arguments.command.extend(groups.iter().map(Into::into));
    arguments.gpus = 1;
    let mut command = exec::command(&arguments, &scratch.path().join("gpu"))?;
    command.env("ORACLE_OUT", &records).env("ORACLE_JOBS", "1");
    let outcome = process::run(&mut command, Duration::from_secs(600))?;
    let text = std::fs::read_to_string(&records)
        .map_err(|_| format!("no records ({}):\n{}", outcome.ending(), outcome.tail(20)))?;
    let mut all = Vec::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line)?;
        let field = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("call") == "<process>" && field("result") != "exit 0" {
            return Err(format!("{}: {}\n{}", field("group"), field("result"), outcome.tail(20)).into());
        }
        let Some(out) = record.get("out").and_then(Value::as_object) else {
            continue;
        };
        if field("call") == "<timing>" {
            all.extend(
                out.get("median_ns")
                    .and_then(Value::as_f64)
                    .map(|ns| (field("args").to_owned(), ns)),
            );
        } else {
            let what = if field("call") == "<note>" {
                field("args")
            } else {
                field("call")
            };
            all.extend(
                out.iter()
                    .filter_map(|(key, value)| Some((format!("{what} / {key}"), value.as_f64()?))),
            );
        }
    }
    let yardstick = all.iter().find(|(name, _)| name == YARDSTICK).map(|(_, ns)| *ns);
    let h200 = h200()?;
    let rows: Vec<Row> = all
        .into_iter()
        .filter(|(name, _)| wanted(name) && is_there(name))
        .map(|(name, ns)| Row {
            ratio: yardstick.map(|yardstick| ns / yardstick),
            h200: h200.get(&name).copied(),
            ..Row::new(name, ns, "ns")
        })
        .collect();
    if rows.is_empty() {
        return Err(format!("nothing was measured:\n{}", outcome.tail(20)).into());
    }
    Ok((YARDSTICK.into(), rows))
}

/// Whether every call that a measurement's name mentions is there: the program does not look at results, and a call that
/// refuses at once must not pass for a fast one.
fn is_there(measurement: &str) -> bool {
    let words = measurement.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("cu")).all(|word| {
        let versions = ["", "_v2", "_v3"].map(|version| format!("{word}{version}"));
        let mut known = Library::ALL
            .into_iter()
            .flat_map(|library| versions.iter().filter_map(move |name| library.table().get(name)))
            .peekable();
        known.peek().is_none() || known.any(|symbol| symbol.status == Status::Impl)
    })
}

/// Builds `tests/bench/NAME.c`.
fn program(name: &str) -> Result<PathBuf> {
    let source = bench::root().join("tests/bench").join(name).with_extension("c");
    let mut command = Command::new("gcc");
    command.args(["-O2", "-Wall", "-Werror"]).arg(&source);
    command.args(["libcudart.so.12", "libcuda.so.1"].map(|library| bench::release().join(library)));
    programs::compile(&format!("bench-{name}"), &source, command)
}

/// Runs a program of `tests/bench` over one virtual GPU and reads its `NAME<tab>VALUE` lines.
fn measured(arguments: exec::Arguments) -> Result<Vec<(String, f64)>> {
    let scratch = bench::Scratch::new("bench")?;
    let outcome = process::run(
        &mut exec::command(&arguments, scratch.path())?,
        Duration::from_secs(300),
    )?;
    if !outcome.success() {
        return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into());
    }
    let lines = outcome.output.lines().filter_map(|line| {
        let (name, value) = line.split_once('\t')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Ok(lines.collect())
}

fn copies() -> Result<(String, Vec<Row>)> {
    let (_, mut rows) = recorded(&["copies", "small_calls"], |row| {
        row.contains("Memcpy") || row.contains("memset") || row.contains("Memset")
    })?;
    rows.iter_mut().for_each(|row| row.ratio = None);
    let mut arguments = exec::Arguments::for_command([program("copy_sizes")?]);
    arguments.gpus = 1;
    let mut base = f64::NAN;
    for (name, ns) in measured(arguments)? {
        if name.starts_with("memcpy ") {
            base = ns;
        }
        rows.push(Row {
            ratio: Some(ns / base),
            ..Row::new(name, ns, "ns")
        });
    }
    Ok(("memcpy of the same size between host buffers".into(), rows))
}

fn interpreter() -> Result<(String, Vec<Row>)> {
    const LAUNCHES: u32 = 5;
    let program = program("interpreter")?;
    let mut rows: Vec<Row> = Vec::new();
    for kernel in ["arithmetic", "memory", "shared"] {
        let scratch = bench::Scratch::new("counters")?;
        let prefix = scratch.path().join("counters-");
        let mut arguments =
            exec::Arguments::for_command([program.as_os_str(), kernel.as_ref(), LAUNCHES.to_string().as_ref()]);
        arguments.gpus = 1;
        arguments.counters = Some(prefix.clone());
        let results = measured(arguments)?;
        let &(_, ns) = results.first().ok_or("the program printed nothing")?;
        let instructions = Counters::read(&prefix)?.total("instructions") as f64;
        // The first of the launches is not in the time.
        let timed = instructions * f64::from(LAUNCHES - 1) / f64::from(LAUNCHES);
        let rate = timed / ns * 1e3;
        let first = rows.first().map_or(rate, |row| row.value);
        rows.push(Row {
            ratio: Some(rate / first),
            ..Row::new(format!("{kernel}, wave instructions"), rate, "Minstr/s")
        });
    }
    for row in &mut rows {
        row.name.insert_str(0, "whole stack: ");
    }
    rows.extend(instructions()?);
    Ok((
        "the whole stack's first kernel; of single instructions the rate that is asked for".into(),
        rows,
    ))
}

/// Rates of single instructions in the interpreter alone, per core: `vgpu/cdna/examples/interpreter_speed.rs`.
fn instructions() -> Result<Vec<Row>> {
    let mut command = setup::cargo_build(&["cdna"]);
    process::must(command.args(["--example", "interpreter_speed"]))?;
    let example = bench::release().join("examples/interpreter_speed");
    let outcome = process::run(&mut Command::new(example), Duration::from_secs(600))?;
    if !outcome.success() {
        return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into());
    }
    let rows = outcome.output.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let name = fields.next()?;
        let (rate, asked): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Row {
            ratio: (asked > 0.0).then(|| rate / asked),
            ..Row::new(name, rate, "Minstr/s")
        })
    });
    Ok(rows.collect())
}

fn capture(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(bench::root())
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_not_there_are_not_measured() {
        assert!(is_there("cuMemGetAddressRange host miss, 1 live"));
        assert!(is_there("empty kernel launch+cudaStreamSynchronize (NULL stream)"));
        assert!(!is_there("cudaGLMapBufferObject+cudaStreamSynchronize"));
    }
}
