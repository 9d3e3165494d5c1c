//! Builds the test programs: CUDA ones with the bench's nvcc, C and C++ ones with the machine's compilers.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::{Result, bench, process, setup};

/// `cargo xtask nvcc`.
pub fn run_nvcc(arguments: &[String]) -> Result<ExitCode> {
    let status = Command::new(setup::nvcc()?.join("bin/nvcc")).args(arguments).status()?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}

/// An MPI program in CUDA C++: `tests/programs/NAME.cu`, built for `libcudart.so.12` with PTX of compute_75 in it.
pub fn mpi_cuda(name: &str) -> Result<PathBuf> {
    let source = bench::root().join("tests/programs").join(format!("{name}.cu"));
    let include = mpicc(&["--showme:incdirs"])?;
    let libraries = mpicc(&["--showme:libdirs"])?;
    let mut command = Command::new(setup::nvcc()?.join("bin/nvcc"));
    command
        .args(["-cudart", "shared", "-cudadevrt", "none", "-arch=compute_75", "-O2"])
        .arg(&source);
    command.args(include.split_whitespace().map(|directory| format!("-I{directory}")));
    command
        .args(libraries.split_whitespace().map(|directory| format!("-L{directory}")))
        .arg("-lmpi");
    compile(name, &source, command)
}

/// A program in CUDA C++: `tests/programs/NAME.cu`, built as [`mpi_cuda`] does, without MPI. A first line `// arch: compute_80`
/// asks for PTX of that kind.
pub fn cuda(name: &str) -> Result<PathBuf> {
    let source = bench::root().join("tests/programs").join(format!("{name}.cu"));
    let text = std::fs::read_to_string(&source)?;
    let arch = text.lines().next().and_then(|line| line.strip_prefix("// arch: "));
    let arch = format!("-arch={}", arch.unwrap_or("compute_75"));
    let mut command = Command::new(setup::nvcc()?.join("bin/nvcc"));
    command
        .args([
            "-std=c++17",
            "-cudart",
            "shared",
            "-cudadevrt",
            "none",
            &arch,
            "-O2",
            "--extended-lambda",
        ])
        .arg(&source)
        .arg("-L")
        .arg(bench::release())
        .arg("-lcuda");
    compile(name, &source, command)
}

/// `tests/programs/vadd.cu` as nvcc builds it by default: with NVIDIA's runtime linked into it.
pub fn static_cudart() -> Result<PathBuf> {
    let source = bench::root().join("tests/programs/vadd.cu");
    let mut command = Command::new(setup::nvcc()?.join("bin/nvcc"));
    command
        .args(["-cudart", "static", "-cudadevrt", "none", "-arch=compute_75", "-O2"])
        .arg(&source);
    compile("vadd_static", &source, command)
}

/// Runs `command` with `-o target/programs/NAME` unless the program is newer than its source.
pub fn compile(name: &str, source: &Path, mut command: Command) -> Result<PathBuf> {
    let program = bench::programs().join(name);
    std::fs::create_dir_all(bench::programs())?;
    let modified = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let newest = newest_source(source).or_else(|| modified(source));
    if modified(&program).is_some_and(|built| newest.is_some_and(|written| built > written)) {
        return Ok(program);
    }
    process::must(command.arg("-o").arg(&program))?;
    Ok(program)
}

/// The latest change among the source's folder, so that an edited header rebuilds its programs.
fn newest_source(source: &Path) -> Option<std::time::SystemTime> {
    let entries = std::fs::read_dir(source.parent()?).ok()?;
    entries
        .filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok())
        .max()
}

fn mpicc(arguments: &[&str]) -> Result<String> {
    let output = Command::new("mpicc")
        .args(arguments)
        .output()
        .map_err(|error| format!("mpicc: {error}"))?;
    Ok(String::from_utf8(output.stdout)?)
}
