//! The benches that measure each call beside AMD's HIP runtime doing the same on the same virtual GPU and ROCr.
//!
//! One C source per bench (`tests/bench`), built once with CUDA's names for our libraries and once with HIP's. The two run in turn, over
//! ROCr 5.2.3 (HIP's own), a few times; each figure is the median of its side's runs, and the ratio the median of the pairs' ratios,
//! so a machine that is busy for a while hits both sides alike.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::measure::{Row, h200};
use crate::setup::{self, Rocr};
use crate::{Result, bench, exec, hip, process, programs};

/// What a run gave for a name, and what the H200's record calls the same.
struct Measured {
    name: String,
    /// In `unit`, or why there is none.
    value: std::result::Result<f64, i32>,
    h200: String,
    unit: &'static str,
}

/// `cargo xtask bench memory`.
pub fn memory(pairs: u32) -> Result<(String, Vec<Row>)> {
    // HIP asks its own map and ROCr, each time: with 100 000 live blocks its side alone takes minutes.
    rows("memory", false, ["1000000", "1000"], pairs)
}

/// `cargo xtask bench streams`.
pub fn streams(pairs: u32) -> Result<(String, Vec<Row>)> {
    rows("streams", true, ["", ""], pairs)
}

fn rows(name: &str, kernels: bool, arguments: [&str; 2], pairs: u32) -> Result<(String, Vec<Row>)> {
    let ours = build(name, kernels, false)?;
    let theirs = build(name, kernels, true)?;
    let recorded = h200()?;
    let mut order = Vec::new();
    let mut sides: [HashMap<String, Vec<std::result::Result<f64, i32>>>; 2] = Default::default();
    let pairs = pairs.max(1);
    for pair in 1..=pairs {
        for (side, program) in [&ours, &theirs].into_iter().enumerate() {
            let stage = format!("{name}, pair {pair} of {pairs}, {}", ["Regauge", "HIP"][side]);
            for row in measure(program, arguments[side], side == 1, &stage)? {
                if !order.iter().any(|(known, _, _)| *known == row.name) {
                    order.push((row.name.clone(), row.h200, row.unit));
                }
                sides[side].entry(row.name).or_default().push(row.value);
            }
        }
    }
    let mut rows = Vec::new();
    for (name, in_record, unit) in order {
        let of = |side: usize| -> Vec<f64> {
            let runs = sides[side].get(&name).map_or(&[][..], Vec::as_slice);
            runs.iter().filter_map(|run| run.ok()).collect()
        };
        let ratios: Vec<f64> = of(0).iter().zip(of(1)).map(|(ours, theirs)| ours / theirs).collect();
        rows.push(Row {
            yardstick: median(of(1)),
            ratio: median(ratios),
            h200: recorded.get(&in_record).copied(),
            ..Row::new(name.clone(), median(of(0)).unwrap_or(f64::NAN), unit)
        });
        for (side, who) in ["Regauge", "HIP"].into_iter().enumerate() {
            let failed = sides[side].get(&name).into_iter().flatten().find_map(|run| run.err());
            if let Some(error) = failed.filter(|error| *error != NOT_SUPPORTED) {
                eprintln!("bench: {name}: {who} returned {error}");
            }
        }
    }
    Ok((
        "HIP 5.2 doing the same on the same virtual GPU and ROCr 5.2.3".into(),
        rows,
    ))
}

/// CUDA's and HIP's number for a call that is not there.
const NOT_SUPPORTED: i32 = 801;

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Builds `tests/bench/NAME.c` for one side, with `kernels.cu` compiled by that side's compiler if asked.
fn build(name: &str, kernels: bool, for_hip: bool) -> Result<PathBuf> {
    let folder = bench::root().join("tests/bench");
    let side = if for_hip { "hip" } else { "cuda" };
    let mut objects = Vec::new();
    if kernels {
        let source = folder.join("kernels.cu");
        let compiler = if for_hip {
            let mut clang = hip::clang()?;
            clang.args(["-x", "hip", "-c"]).arg(&source);
            clang
        } else {
            let mut nvcc = Command::new(setup::nvcc()?.join("bin/nvcc"));
            nvcc.args([
                "-cudart",
                "shared",
                "-cudadevrt",
                "none",
                "-arch=compute_75",
                "-O2",
                "-c",
            ])
            .arg(&source);
            nvcc
        };
        objects.push(programs::compile(
            &format!("bench-kernels-{side}.o"),
            &source,
            compiler,
        )?);
    }
    if name == "memory" {
        objects.push(walk(&folder)?);
    }
    let source = folder.join(name).with_extension("c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Werror"]).arg(&source).args(objects);
    if for_hip {
        gcc.arg("-DHIP");
        let rocr = Rocr::V523.ensure()?.ok_or("ROCr 5.2.3 has a root")?;
        for include in [setup::hip()?.join("usr/include"), rocr.join("usr/include")] {
            gcc.arg("-isystem").arg(include);
        }
        hip::link(&mut gcc)?;
    } else {
        gcc.arg("-isystem").arg(setup::nvcc()?.join("include"));
        gcc.args(["libcudart.so.12", "libcuda.so.1"].map(|library| bench::release().join(library)));
    }
    gcc.args(["-lpthread", "-lstdc++"]);
    programs::compile(&format!("bench-{name}-{side}"), &source, gcc)
}

/// Builds the library of a bare table walk, which `memory` measures queries against.
fn walk(folder: &Path) -> Result<PathBuf> {
    let source = folder.join("walk.c");
    // Programs find it by this name, wherever they are started.
    let name = "libbench-walk.so";
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC"]).arg(&source);
    gcc.arg(format!("-Wl,-soname,{}", bench::programs().join(name).display()));
    programs::compile(name, &source, gcc)
}

/// Runs one side; each of its lines shows at once, after `stage`, where somebody looks.
fn measure(program: &Path, argument: &str, on_hip: bool, stage: &str) -> Result<Vec<Measured>> {
    let mut arguments = exec::Arguments::for_command([program.as_os_str(), argument.as_ref()]);
    arguments.gpus = 1;
    arguments.rocr = Rocr::V523;
    let scratch = bench::Scratch::new("bench")?;
    let mut command = if on_hip {
        hip::command(&arguments, scratch.path())?
    } else {
        exec::command(&arguments, scratch.path())?
    };
    let start = Instant::now();
    let shown = stage.to_owned();
    let outcome = process::run_heard(&mut command, Duration::from_secs(600), move |line| {
        if std::io::stderr().is_terminal() {
            // Over the line before.
            eprint!("\r\x1b[K{shown}: {}\r", line.split('\t').next().unwrap_or_default());
        }
    })?;
    eprintln!("{stage}: {:.0} s", start.elapsed().as_secs_f64());
    let results: Vec<Measured> = outcome
        .output
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once('\t')?;
            let mut fields = rest.split('\t');
            let (text, h200) = (fields.next()?, fields.next()?);
            let value: f64 = text.parse().ok()?;
            // An error is a whole number without a point: 801, or any other negated.
            let error = !text.contains('.');
            Some(Measured {
                name: name.into(),
                value: if error { Err((value as i32).abs()) } else { Ok(value) },
                h200: h200.into(),
                unit: if fields.next() == Some("times") { "times" } else { "ns" },
            })
        })
        .collect();
    if !outcome.success() || results.is_empty() {
        return Err(format!("{}: {}:\n{}", program.display(), outcome.ending(), outcome.tail(20)).into());
    }
    Ok(results)
}
