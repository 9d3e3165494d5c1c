//! Two ranks over a stand-in for a closed GPU transport layer (`tests/gtl/exchange.c`): one that asks CUDA about every buffer, and
//! its twin, which asks HSA alone about memory that the same application got from CUDA.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::exec::{self, BarMode};
use crate::setup::{self, Rocr};
use crate::{Result, bench, gtl, process};

/// Runs every case and hands its outcome to `case`.
pub fn run(case: &mut dyn FnMut(String, Result<String>)) -> Result<()> {
    let scratch = bench::Scratch::new("gtl-pair")?;
    let cuda = gtl::exchange(scratch.path())?;
    let hsa = twin(scratch.path())?;
    for (name, program, argument) in [
        ("CUDA", &cuda, None),
        ("HSA", &hsa, None),
        ("HSA", &hsa, Some("--hsa-first")),
    ] {
        for (rocr, bar, gpus) in [(Rocr::V612, BarMode::Large, 2), (Rocr::V523, BarMode::Small, 1)] {
            let mut arguments = exec::Arguments::for_command([program]);
            arguments.command.extend(argument.map(Into::into));
            let text = format!(
                "two ranks, transport layer of {name} {} ({gpus} GPU, {bar:?} BAR, ROCr {})",
                argument.unwrap_or_default(),
                rocr.name()
            );
            (arguments.rocr, arguments.bar, arguments.gpus) = (rocr, bar, gpus);
            case(text, checked(&arguments));
        }
    }
    Ok(())
}

/// Runs a program that checks itself; its last line is what it has to say.
fn checked(arguments: &exec::Arguments) -> Result<String> {
    let scratch = bench::Scratch::new("gtl")?;
    let limit = Duration::from_secs(170);
    let outcome = process::run(&mut exec::command(arguments, scratch.path())?, limit)?;
    if !outcome.success() {
        return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into());
    }
    Ok(outcome.output.lines().last().unwrap_or_default().to_owned())
}

/// The program over the layer that knows HSA alone, built against the older ROCr so that it runs over both.
fn twin(folder: &Path) -> Result<PathBuf> {
    let root = Rocr::V523.ensure()?.ok_or("ROCr 5.2.3 has a root")?;
    let sources = bench::root().join("tests/gtl");
    let library = folder.join("libmpi_gtl_hsa_standin.so");
    let compiler = || {
        let mut command = Command::new("gcc");
        command.args(["-O2", "-Wall", "-Wextra", "-Werror"]);
        command
    };
    let mut command = compiler();
    command.args(["-shared", "-fPIC", "-I"]).arg(root.join("usr/include"));
    command.args(["transport.c", "transport_hsa.c"].map(|source| sources.join(source)));
    // What ROCr itself needs is found at run time, in whichever root the program runs over.
    command
        .arg(root.join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1"))
        .arg("-Wl,--unresolved-symbols=ignore-in-shared-libs");
    process::must(command.arg("-o").arg(&library))?;
    let program = folder.join("exchange-hsa");
    let mut command = compiler();
    command.arg("-isystem").arg(setup::nvcc()?.join("include"));
    command.arg(sources.join("exchange.c")).arg(&library);
    command
        .arg(bench::release().join("libcuda.so.1"))
        .arg(format!("-Wl,-rpath,{},--allow-shlib-undefined", folder.display()));
    process::must(command.arg("-o").arg(&program))?;
    Ok(program)
}
