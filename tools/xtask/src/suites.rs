//! `cargo xtask test`: the suites that CI runs.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::dist_suite::Unpacked;
use crate::exec::{self, BarMode};
use crate::ring::{self, Configuration};
use crate::setup::{self, Rocr};
use crate::{
    Result, audit, bench, conformance, demo, docs, gtl, gtl_pair, hip, hsa_programs, messages, preload, process,
    programs, scenarios, slurm_suite, tidy, tools_suite, ucx, vgpu_kill,
};

/// Options of `test`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Suites to run (default: all, in this order).
    suites: Vec<Suite>,
    /// Test what is built, without asking cargo whether it is up to date.
    #[arg(long)]
    no_build: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Formatting, lints, and rules about the tree itself.
    Style,
    /// `cargo test` of every crate.
    Unit,
    /// The built libraries against the symbol tables and NVIDIA's library; UCX's code patcher.
    Abi,
    /// HSA programs and rocminfo on the virtual GPU, both ROCr builds, SDMA on and off.
    Hsa,
    /// AMD's own HIP runtime on the virtual GPU, its results compared with the CPU's.
    Hip,
    /// The recorded PTX cases through the whole stack.
    Ptx,
    /// The conformance programs.
    Conformance,
    /// Programs compiled by nvcc that check themselves, on both ROCr builds and both BAR modes.
    Cuda,
    /// The ring exchange under MPI.
    Ring,
    /// UCX over device memory: its own perftest, and a program that checks every byte.
    Ucx,
    /// Protocols between processes and streams: the gated halo, thousands of waiting streams.
    Scenarios,
    /// A closed library linked with three linkers, and its kernels.
    Link,
    /// Two ranks over the closed library's stand-in and over its twin that knows HSA alone.
    Gtl,
    /// The archive of `cargo xtask dist`, unpacked and used from a clean folder.
    Dist,
    /// symbol-audit on packages built for CUDA and on the closed library's stand-in, against `readelf` and `strings`.
    Audit,
    /// `regauge run` and `regauge doctor`, with and without virtual GPUs; the messages that docs/troubleshooting.md quotes.
    Tools,
    /// Machines without a device or without ROCr; programs that never call CUDA.
    Absent,
    /// LD_PRELOAD of the libraries into programs that never call CUDA.
    Preload,
    /// The ring exchange under Slurm.
    Srun,
}

/// Counts cases and prints them.
#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
    failures: Vec<String>,
}

impl Tally {
    fn case(&mut self, name: impl Display, outcome: Result<String>) {
        match outcome {
            Ok(note) => {
                self.passed += 1;
                println!("  ok     {name}{}{note}", if note.is_empty() { "" } else { ": " });
            }
            Err(error) => {
                self.failed += 1;
                println!("  FAILED {name}: {error}");
                self.failures.push(name.to_string());
            }
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    setup::packages()?;
    if !arguments.no_build {
        setup::build()?;
    }
    let mut suites = arguments.suites.clone();
    if suites.is_empty() {
        suites.extend(Suite::value_variants());
    }
    let mut total = Tally::default();
    for suite in suites {
        let start = Instant::now();
        println!("suite {suite:?}");
        let mut tally = Tally::default();
        let result = match suite {
            Suite::Style => style(&mut tally),
            Suite::Unit => unit(&mut tally),
            Suite::Abi => abi(&mut tally),
            Suite::Hsa => hsa(&mut tally),
            Suite::Hip => hip::run(&mut |name, outcome| tally.case(name, outcome)),
            Suite::Ptx => ptx(&mut tally),
            Suite::Conformance => conformance_programs(&mut tally),
            Suite::Cuda => cuda_programs(&mut tally),
            Suite::Ring => ring_exchange(&mut tally),
            Suite::Ucx => {
                for case in ucx::cases() {
                    tally.case(case.describe(), case.run());
                }
                Ok(())
            }
            Suite::Scenarios => {
                for case in scenarios::cases() {
                    tally.case(case.describe(), case.run());
                }
                Ok(())
            }
            Suite::Link => gtl::run(&mut |name, outcome| tally.case(name, outcome)),
            Suite::Gtl => gtl_pair::run(&mut |name, outcome| tally.case(name, outcome)),
            Suite::Dist => archive(&mut tally),
            Suite::Audit => audit_packages(&mut tally),
            Suite::Tools => tools_suite::run(&mut |name, outcome| tally.case(name, outcome))
                .and_then(|()| messages::run(&mut |name, outcome| tally.case(name, outcome))),
            Suite::Absent => absent(&mut tally),
            Suite::Preload => preload::run(|name, outcome| tally.case(name, outcome)),
            Suite::Srun => slurm_suite::run(|name, outcome| tally.case(name, outcome)),
        };
        if let Err(error) = result {
            tally.case(format!("suite {suite:?}"), Err(error));
        }
        println!(
            "suite {suite:?}: {} passed, {} failed, {:.0} s\n",
            tally.passed,
            tally.failed,
            start.elapsed().as_secs_f64()
        );
        total.passed += tally.passed;
        total.failed += tally.failed;
        total.failures.extend(tally.failures);
    }
    for failure in &total.failures {
        println!("failed: {failure}");
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    Ok(if total.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(bench::root())
        .args(arguments)
        .env_remove("LD_LIBRARY_PATH");
    command
}

fn style(tally: &mut Tally) -> Result<()> {
    let check = |command: &mut Command| process::must(command).map(|()| String::new());
    tally.case("cargo fmt --check", check(&mut cargo(&["fmt", "--all", "--check"])));
    tally.case(
        "cargo clippy, no warnings",
        check(&mut cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ])),
    );
    tally.case("the tree's own rules", tidy::check());
    tally.case("generated pages are up to date", docs::check());
    Ok(())
}

fn unit(tally: &mut Tally) -> Result<()> {
    tally.case(
        "cargo test --workspace",
        process::must(&mut test_command(&["test", "--workspace", "--no-fail-fast"])?).map(|()| String::new()),
    );
    Ok(())
}

fn test_command(arguments: &[&str]) -> Result<Command> {
    let mut command = cargo(arguments);
    // What tests of built artefacts need to know.
    command.env("REGAUGE_TEST_LIBRARIES", bench::release());
    command.env("REGAUGE_NVIDIA_CUDART", setup::nvcc()?.join("lib64/libcudart.so.12"));
    command.env("REGAUGE_CUDA_INCLUDE", setup::nvcc()?.join("include"));
    for (version, soname, suffix) in [("11.8", "libcudart.so.11.0", "11"), ("13.0", "libcudart.so.13", "13")] {
        let directory = setup::cudart(version)?;
        command.env(
            format!("REGAUGE_NVIDIA_CUDART_{suffix}"),
            directory.join("lib").join(soname),
        );
        command.env(format!("REGAUGE_CUDA_INCLUDE_{suffix}"), directory.join("include"));
    }
    Ok(command)
}

fn abi(tally: &mut Tally) -> Result<()> {
    tally.case("UCX's code patcher installs every hook", ucx_hooks());
    tally.case("NVML tells two GPUs apart", linked_program("nvml", 2));
    tally.case(
        "forked children are told, exec works",
        linked_program("forked_child", 1),
    );
    Ok(())
}

/// Runs `tests/programs/NAME.c`, linked with the libraries, over that many virtual GPUs; it checks itself.
fn linked_program(name: &str, gpus: u32) -> Result<String> {
    let source = bench::root().join("tests/programs").join(name).with_extension("c");
    let mut command = Command::new("gcc");
    command.args(["-O1", "-Wall", "-Werror"]).arg(&source);
    command
        .args(["libcudart.so.12", "libcuda.so.1", "libnvidia-ml.so.1"].map(|library| bench::release().join(library)));
    let program = programs::compile(name, &source, command)?;
    let mut arguments = exec::Arguments::for_command([program]);
    arguments.gpus = gpus;
    let scratch = bench::Scratch::new(name)?;
    let outcome = process::run(&mut exec::command(&arguments, scratch.path())?, Duration::from_secs(60))?;
    if !outcome.success() {
        return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(10)).into());
    }
    Ok(outcome.output.lines().last().unwrap_or_default().to_owned())
}

/// UCM patches the first bytes of the entry points; one it cannot decode disables all CUDA hooks.
fn ucx_hooks() -> Result<String> {
    let ucx = setup::ucx()?;
    let mut arguments = exec::Arguments::for_command([ucx.join("bin/ucx_info")]);
    arguments.command.extend(["-e", "-u", "t"].map(Into::into));
    let scratch = bench::Scratch::new("ucx")?;
    let mut command = exec::command(&arguments, scratch.path())?;
    let inherited = command
        .get_envs()
        .find(|(key, _)| *key == "LD_LIBRARY_PATH")
        .and_then(|(_, value)| value);
    let mut path = ucx.join("lib").into_os_string();
    if let Some(rest) = inherited {
        path.push(":");
        path.push(rest);
    }
    command
        .env("LD_LIBRARY_PATH", path)
        .env("UCX_MODULE_DIR", ucx.join("lib/ucx"))
        .env("UCX_MEM_LOG_LEVEL", "info");
    let outcome = process::run(&mut command, Duration::from_secs(60))?;
    let line = outcome.output.lines().find(|line| line.contains("on driver API"));
    match line {
        Some(line) if line.contains("installed 15 on driver API") => Ok(line.trim().to_owned()),
        Some(line) => Err(line.trim().to_owned().into()),
        None => Err(format!("no hook line ({}):\n{}", outcome.ending(), outcome.tail(10)).into()),
    }
}

/// How many jobs are killed by default; `cargo xtask soak vgpu-kill` kills 500.
const KILLED_JOBS: u32 = 20;

fn hsa(tally: &mut Tally) -> Result<()> {
    for (by_name, order, bar) in [
        (false, "first", BarMode::Large),
        (true, "first", BarMode::Small),
        (false, "last", BarMode::Small),
        (true, "last", BarMode::Large),
    ] {
        let how = if by_name { "by name" } else { "linked" };
        let name = format!("CUDA and HSA agree about memory ({how}, libcuda {order}, {bar:?} BAR)");
        tally.case(name, hsa_view(by_name, order, bar));
    }
    for rocr in [Rocr::V612, Rocr::V523] {
        tally.case(format!("rocminfo, ROCr {}", rocr.name()), rocminfo(&rocr));
    }
    let killed = vgpu_kill::run(KILLED_JOBS).and_then(|report| match &report.faults[..] {
        [] => Ok(format!(
            "{} jobs, {} of them on the way up",
            report.cycles, report.early
        )),
        faults => Err(faults.join("\n").into()),
    });
    tally.case("killed jobs leave nothing behind", killed);
    for case in hsa_programs::cases()? {
        tally.case(case.name(), case.run());
    }
    Ok(())
}

/// Asks CUDA and HSA about the same memory: `tests/programs/hsa_view.c`, with HSA's functions linked or found by name, and
/// CUDA's library loaded before or after HSA has started.
fn hsa_view(by_name: bool, order: &str, bar: BarMode) -> Result<String> {
    let root = Rocr::V612.ensure()?.ok_or("no root")?.join("usr");
    let source = bench::root().join("tests/programs/hsa_view.c");
    let mut command = Command::new("gcc");
    command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"]);
    command
        .arg(setup::nvcc()?.join("include"))
        .arg("-I")
        .arg(root.join("include"));
    command.args(by_name.then_some("-DBY_NAME")).arg(&source);
    if !by_name {
        command.arg("-L").arg(root.join("lib/x86_64-linux-gnu"));
        // Its own libraries come from where it will run.
        command.args([
            "-l:libhsa-runtime64.so.1",
            "-Wl,--unresolved-symbols=ignore-in-shared-libs",
        ]);
    }
    let name = if by_name { "hsa_view_by_name" } else { "hsa_view" };
    let mut arguments = exec::Arguments::for_command([programs::compile(name, &source, command)?]);
    arguments.command.push(order.into());
    arguments.bar = bar;
    arguments.gpus = 1;
    // A driver with shared virtual memory, and one without.
    let svm = u8::from(bar == BarMode::Large);
    arguments.variables.push(format!("VGPU_SVM={svm}"));
    checked(&arguments)
}

fn rocminfo(rocr: &Rocr) -> Result<String> {
    let root = rocr.ensure()?.ok_or("no root")?;
    let arguments = exec::Arguments {
        rocr: rocr.clone(),
        ..exec::Arguments::for_command([root.join("usr/bin/rocminfo")])
    };
    let scratch = bench::Scratch::new("rocminfo")?;
    let outcome = process::run(&mut exec::command(&arguments, scratch.path())?, Duration::from_secs(60))?;
    let agents = outcome
        .output
        .lines()
        .filter(|line| line.trim_start().starts_with("Name:") && line.contains("gfx90a"))
        .count();
    if outcome.success() && agents >= 2 {
        Ok("lists both gfx90a agents".into())
    } else {
        Err(format!("{}, {agents} gfx90a lines:\n{}", outcome.ending(), outcome.tail(20)).into())
    }
}

/// How many of the recorded PTX cases must agree.
const PTX_FLOOR: usize = 600;

fn ptx(tally: &mut Tally) -> Result<()> {
    let comparison = conformance::run("ptx", &Rocr::V612);
    tally.case(
        format!("recorded PTX cases, at least {PTX_FLOOR} agree"),
        comparison.and_then(|result| {
            let text = format!("{} agree, {} differ", result.agree, result.allowed + result.unlisted);
            if result.agree >= PTX_FLOOR {
                Ok(text)
            } else {
                Err(text.into())
            }
        }),
    );
    Ok(())
}

fn conformance_programs(tally: &mut Tally) -> Result<()> {
    let mut compared = Vec::new();
    for (name, floor) in conformance::floors()? {
        let outcome = conformance::run(&name, &Rocr::V612).and_then(|result| {
            let text = format!(
                "{} of {} records agree, {} differ as listed",
                result.agree,
                result.total(),
                result.allowed
            );
            let mut complaints = result.complaints();
            if result.agree < floor {
                complaints.push(format!("the floor is {floor}"));
            }
            compared.push(result);
            if complaints.is_empty() {
                Ok(text)
            } else {
                Err(format!("{text}; {}", complaints.join("; ")).into())
            }
        });
        tally.case(format!("oracle/{name}"), outcome);
    }
    let outcome = conformance::rows_of_nothing(&compared).and_then(|rows| match &rows[..] {
        [] => Ok(String::new()),
        rows => Err(format!("rows that name no record: {}", rows.join("; ")).into()),
    });
    tally.case("oracle/deviations.tsv", outcome);
    Ok(())
}

/// `tests/programs/NAME.cu` and what each is run with beside the defaults.
const CUDA_PROGRAMS: [(&str, Option<&str>); 18] = [
    ("kernel_features", None),
    ("language", None),
    ("matrices", None),
    ("host_calls", None),
    ("thread_stress", None),
    ("ipc_visibility", None),
    ("known_issues", None),
    ("graphs", None),
    ("conditionals", None),
    ("copies", None),
    ("arrays", None),
    ("textures", None),
    ("stream_ordered_memory", None),
    ("stream_order", None),
    ("later_work", None),
    ("cooperative", None),
    // All streams share one hardware queue.
    ("stream_order", Some("REGAUGE_QUEUES=1")),
    ("later_work", Some("REGAUGE_QUEUES=2")),
];

fn cuda_programs(tally: &mut Tally) -> Result<()> {
    for (name, variable) in CUDA_PROGRAMS {
        let program = programs::cuda(name)?;
        for rocr in [Rocr::V612, Rocr::V523] {
            for bar in [BarMode::Small, BarMode::Large] {
                let mut arguments = exec::Arguments::for_command([&program]);
                arguments.rocr = rocr.clone();
                arguments.bar = bar;
                arguments.gpus = 2;
                arguments.variables.extend(variable.map(String::from));
                let case = format!(
                    "{name} {} ({bar:?} BAR, ROCr {})",
                    variable.unwrap_or_default(),
                    rocr.name()
                );
                tally.case(case, checked(&arguments));
            }
        }
    }
    Ok(())
}

/// Runs a program that checks itself; its last line is what it has to say.
fn checked(arguments: &exec::Arguments) -> Result<String> {
    let scratch = bench::Scratch::new("cuda")?;
    let outcome = process::run(&mut exec::command(arguments, scratch.path())?, Duration::from_secs(120))?;
    if !outcome.success() {
        return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into());
    }
    Ok(outcome.output.lines().last().unwrap_or_default().to_owned())
}

fn ring_exchange(tally: &mut Tally) -> Result<()> {
    let sizes = ["1", "3", "8", "511", "4097", "65537", "1M", "4M", "16777213", "64M"];
    let sweep: Vec<String> = sizes
        .iter()
        .flat_map(|size| ["--bytes".to_owned(), (*size).to_owned()])
        .collect();
    let mut cases = Vec::new();
    for ranks in [2, 4] {
        for bar in [BarMode::Small, BarMode::Large] {
            for path in [ring::Path::Ipc, ring::Path::Copy] {
                cases.push(Configuration {
                    ranks,
                    bar,
                    path,
                    ..Configuration::basic()
                });
            }
        }
    }
    for path in [ring::Path::Ipc, ring::Path::Copy] {
        cases.push(Configuration {
            path,
            rocr: Rocr::V523,
            ..Configuration::basic()
        });
    }
    for rocr in [Rocr::V612, Rocr::V523] {
        cases.push(Configuration {
            rocr,
            isolated: true,
            ..Configuration::basic()
        });
    }
    for case in &cases {
        let outcome = case.run().and_then(|run| {
            let faults = demo::exchange_faults(case, &run);
            if faults.is_empty() {
                Ok(String::new())
            } else {
                Err(format!("{}\n{}", faults.join("; "), run.outcome.tail(30)).into())
            }
        });
        tally.case(case.describe(), outcome);
    }
    for memory in ["device", "pageable", "pinned", "registered"] {
        let mut arguments = vec!["--memory".to_owned(), memory.to_owned()];
        arguments.extend(sweep.clone());
        let case = Configuration {
            arguments,
            ..Configuration::basic()
        };
        tally.case(format!("sizes of 1 byte to 64 MiB, {memory} memory"), verified(&case));
    }
    let offset = ["--offset", "3", "--bytes", "1M", "--bytes", "65537"]
        .map(String::from)
        .to_vec();
    tally.case(
        "buffers at odd addresses",
        verified(&Configuration {
            arguments: offset,
            ..Configuration::basic()
        }),
    );
    for bar in [BarMode::Small, BarMode::Large] {
        let case = Configuration {
            bar,
            path: ring::Path::Host,
            ..Configuration::basic()
        };
        let outcome = case.run().and_then(|run| {
            if run.failed_with_efault() {
                Ok("EFAULT".into())
            } else {
                Err(format!("{}\n{}", run.outcome.ending(), run.outcome.tail(20)).into())
            }
        });
        tally.case(
            format!("negative control fails with EFAULT: {}", case.describe()),
            outcome,
        );
    }
    Ok(())
}

fn verified(case: &Configuration) -> Result<String> {
    let run = case.run()?;
    if run.verified() {
        Ok(String::new())
    } else {
        Err(format!("{}\n{}", run.outcome.ending(), run.outcome.tail(30)).into())
    }
}

fn archive(tally: &mut Tally) -> Result<()> {
    let unpacked = Unpacked::new()?;
    tally.case("the archive holds what users look for", unpacked.contents());
    tally.case("nothing needs a newer C library than 2.31", unpacked.glibc());
    tally.case("nothing tells where it was built", unpacked.anonymous());
    tally.case("a C program links by pkg-config and runs", unpacked.c_program());
    tally.case("a CUDA program of nvcc's runs", unpacked.cuda_program());
    tally.case("the Tcl module names the archive's folders", unpacked.tcl_module());
    tally.case("the Lmod module names the archive's folders", unpacked.lua_module());
    Ok(())
}

fn audit_packages(tally: &mut Tally) -> Result<()> {
    for (name, outcome) in audit::packages(&audit::small()?)? {
        tally.case(name, outcome);
    }
    gtl::audit_releases(&mut |name, outcome| tally.case(name, outcome))
}

fn absent(tally: &mut Tally) -> Result<()> {
    let probe = build_probe()?;
    let cases: [(&str, u32, Option<&str>); 2] = [
        ("no device: cuInit and cudaGetDeviceCount give 100", 0, None),
        (
            "no ROCr: the same, and a clear log line",
            1,
            Some("REGAUGE_ROCR=/nonexistent/libhsa-runtime64.so.1"),
        ),
    ];
    for (name, gpus, variable) in cases {
        tally.case(name, probe_run(&probe, gpus, variable));
    }
    Ok(())
}

fn build_probe() -> Result<PathBuf> {
    let source = bench::root().join("tests/programs/no_device.c");
    let mut command = Command::new("gcc");
    command
        .arg(&source)
        .arg(bench::release().join("libcudart.so.12"))
        .arg(bench::release().join("libcuda.so.1"));
    programs::compile("no_device", &source, command)
}

fn probe_run(probe: &Path, gpus: u32, variable: Option<&str>) -> Result<String> {
    let mut arguments = exec::Arguments::for_command([probe]);
    arguments.gpus = gpus;
    arguments.variables.extend(variable.map(String::from));
    let scratch = bench::Scratch::new("absent")?;
    let outcome = process::run(&mut exec::command(&arguments, scratch.path())?, Duration::from_secs(60))?;
    if !outcome.success() {
        return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(10)).into());
    }
    if variable.is_some() && !outcome.output.contains("regauge") {
        return Err(format!("no log line says that ROCr is missing:\n{}", outcome.output).into());
    }
    Ok(outcome.output.lines().last().unwrap_or_default().to_owned())
}
