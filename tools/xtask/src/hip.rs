//! AMD's own HIP runtime over the virtual GPU: the programs of `tests/hip`, and the yardstick of benches.
//!
//! Debian's HIP 5.2 with the clang it was made for, unpacked under `target/`, runs over ROCr 5.2.3, unmodified.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::exec::{self, BarMode};
use crate::setup::{self, Rocr};
use crate::{Result, bench, process, programs};

/// The programs of `tests/hip`, and whether each takes the compiled module as its argument.
const PROGRAMS: [(&str, bool); 7] = [
    ("memory", false),
    ("streams", false),
    ("kernels", false),
    ("graphs", false),
    ("module", true),
    ("printf", false),
    ("ipc", false),
];

fn libraries() -> Result<PathBuf> {
    Ok(setup::hip()?.join("usr/lib/x86_64-linux-gnu"))
}

/// HIP's clang: compiles HIP sources for gfx90a and the machine's CPU.
pub fn clang() -> Result<Command> {
    let usr = setup::hip()?.join("usr");
    let rocr = Rocr::V523.ensure()?.ok_or("ROCr 5.2.3 has a root")?;
    let llvm = usr.join("lib/llvm-15");
    let libraries = libraries()?;
    let mut command = Command::new(llvm.join("bin/clang++"));
    // Its own libraries; the programs that it calls lie beside it.
    command.env("LD_LIBRARY_PATH", joined(&[&libraries, &llvm.join("lib")]));
    command.args(["--offload-arch=gfx90a", "--hip-version=5.2", "-O2", "-Wall"]);
    // A fused multiplication and addition would round once where the CPU rounds twice.
    command.arg("-ffp-contract=off");
    command.arg(option("--rocm-path=", &usr));
    command.arg(option("--hip-device-lib-path=", &libraries.join("amdgcn/bitcode")));
    for include in [usr.join("include"), rocr.join("usr/include")] {
        command.arg("-isystem").arg(include);
    }
    Ok(command)
}

/// The arguments with which any compiler links HIP's runtime. What it needs itself is found at run time.
pub fn link(command: &mut Command) -> Result<()> {
    command.arg("-L").arg(libraries()?);
    command.args([
        "-l:libamdhip64.so.5",
        "-lpthread",
        "-Wl,--unresolved-symbols=ignore-in-shared-libs",
    ]);
    Ok(())
}

/// The command as `cargo xtask exec` would start it, over ROCr 5.2.3 and with HIP's libraries.
pub fn command(arguments: &exec::Arguments, root: &Path) -> Result<Command> {
    let mut arguments = arguments.clone();
    arguments.rocr = Rocr::V523;
    let mut command = exec::command(&arguments, root)?;
    let inherited = command.get_envs().find(|(key, _)| *key == "LD_LIBRARY_PATH");
    let mut path = libraries()?.into_os_string();
    if let Some(rest) = inherited.and_then(|(_, value)| value) {
        path.push(":");
        path.push(rest);
    }
    command.env("LD_LIBRARY_PATH", path);
    Ok(command)
}

/// Runs every program on the virtual GPU and on the CPU and compares what they print.
pub fn run(case: &mut dyn FnMut(&str, Result<String>)) -> Result<()> {
    let folder = bench::root().join("tests/hip");
    let module = programs::compile("hip-module-kernels.co", &folder.join("module_kernels.hip"), {
        let mut command = clang()?;
        command.arg("--cuda-device-only").arg(folder.join("module_kernels.hip"));
        command
    })?;
    for (name, takes_module) in PROGRAMS {
        let source = folder.join(name).with_extension("hip");
        let gpu = programs::compile(&format!("hip-{name}"), &source, {
            let mut command = clang()?;
            command.arg("-no-hip-rt").arg(&source);
            link(&mut command)?;
            command
        })?;
        let cpu = programs::compile(&format!("hip-{name}-cpu"), &source, {
            let mut command = Command::new("g++");
            command
                .args(["-std=c++17", "-O1", "-Wall", "-ffp-contract=off", "-x", "c++"])
                .arg(&source);
            command
        })?;
        let expected = process::run(&mut Command::new(cpu), Duration::from_secs(60))?;
        for bar in [BarMode::Large, BarMode::Small] {
            let mut arguments = exec::Arguments::for_command([&gpu]);
            arguments
                .command
                .extend(takes_module.then(|| module.clone().into_os_string()));
            arguments.bar = bar;
            case(&format!("{name}, {bar:?} BAR"), compared(&arguments, &expected));
        }
    }
    Ok(())
}

fn compared(arguments: &exec::Arguments, expected: &process::Outcome) -> Result<String> {
    let scratch = bench::Scratch::new("hip")?;
    let outcome = process::run(&mut command(arguments, scratch.path())?, Duration::from_secs(120))?;
    if !expected.success() || !outcome.success() {
        return Err(format!(
            "on the CPU {}, on the GPU {}:\n{}",
            expected.ending(),
            outcome.ending(),
            outcome.tail(20)
        )
        .into());
    }
    // Lines of processes and lanes come in any order.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    let (theirs, ours) = (sorted(&expected.output), sorted(&outcome.output));
    if theirs.is_empty() {
        return Err("it printed nothing".into());
    }
    if theirs != ours {
        let first = |some: &[String], others: &[String]| some.iter().find(|line| !others.contains(line)).cloned();
        let (expected, found) = (first(&theirs, &ours), first(&ours, &theirs));
        return Err(format!("expected {expected:?}, found {found:?}").into());
    }
    Ok(format!("{} results as on the CPU", ours.len()))
}

fn option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push(path);
    option
}

fn joined(paths: &[&Path]) -> std::ffi::OsString {
    std::env::join_paths(paths).expect("the bench's folders hold no colon")
}
