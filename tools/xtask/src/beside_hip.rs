//! The benches that measure each call beside AMD's HIP runtime doing the same on the same virtual GPU and ROCr.
//!
//! One C source per bench (`tests/bench`), built once with CUDA's names for our libraries and once with HIP's. The two run in turn, over
//! ROCr 5.2.3 (HIP's own), a few times; each figure is the median of its side's runs, and the ratio the median of the pairs' ratios,
//! so a machine that is busy for a while hits both sides alike.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::measure::{Row, h200};
use crate::setup::{self, Rocr};
use crate::{Result, bench, exec, hip, process, programs};

/// What a run gave for a name, and what the H200's record calls the same.
struct Measured {
    name: String,
    /// Nanoseconds, or why there are none.
    ns: std::result::Result<f64, i32>,
    h200: String,
}

/// `cargo xtask bench memory`.
pub fn memory(pairs: u32) -> Result<(String, Vec<Row>)> {
    // HIP asks its own map and ROCr: with 100 000 live blocks its run takes minutes already.
    rows("memory", false, ["1000000", "100000"], pairs)
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
    for _ in 0..pairs.max(1) {
        for (side, program) in [&ours, &theirs].into_iter().enumerate() {
            for Measured { name, ns, h200 } in measure(program, arguments[side], side == 1)? {
                if !order.iter().any(|(known, _)| *known == name) {
                    order.push((name.clone(), h200));
                }
                sides[side].entry(name).or_default().push(ns);
            }
        }
    }
    let mut rows = Vec::new();
    for (name, in_record) in order {
        let of = |side: usize| -> Vec<f64> {
            let runs = sides[side].get(&name).map_or(&[][..], Vec::as_slice);
            runs.iter().filter_map(|run| run.ok()).collect()
        };
        let ratios: Vec<f64> = of(0).iter().zip(of(1)).map(|(ours, theirs)| ours / theirs).collect();
        rows.push(Row {
            yardstick: median(of(1)),
            ratio: median(ratios),
            h200: recorded.get(&in_record).copied(),
            ..Row::new(name.clone(), median(of(0)).unwrap_or(f64::NAN), "ns")
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

fn measure(program: &Path, argument: &str, on_hip: bool) -> Result<Vec<Measured>> {
    let mut arguments = exec::Arguments::for_command([program.as_os_str(), argument.as_ref()]);
    arguments.gpus = 1;
    arguments.rocr = Rocr::V523;
    let scratch = bench::Scratch::new("bench")?;
    let mut command = if on_hip {
        hip::command(&arguments, scratch.path())?
    } else {
        exec::command(&arguments, scratch.path())?
    };
    let outcome = process::run(&mut command, Duration::from_secs(600))?;
    let results: Vec<Measured> = outcome
        .output
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once('\t')?;
            let (value, h200) = rest.split_once('\t')?;
            let value: f64 = value.parse().ok()?;
            // An error is a whole number without a point: 801, or any other negated.
            let error = rest.split('\t').next().is_some_and(|text| !text.contains('.'));
            Some(Measured {
                name: name.into(),
                ns: if error { Err((value as i32).abs()) } else { Ok(value) },
                h200: h200.into(),
            })
        })
        .collect();
    if !outcome.success() || results.is_empty() {
        return Err(format!("{}: {}:\n{}", program.display(), outcome.ending(), outcome.tail(20)).into());
    }
    Ok(results)
}
