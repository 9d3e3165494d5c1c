//! Linking a closed library: a stand-in for a closed GPU transport layer, built against NVIDIA's own runtime, then linked and run
//! with ours.
//!
//! The stand-in (`tests/gtl`) has the import list of the real thing, and kernels in a fat binary made by hand.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cuda_fatbin::write::{Compression, Image, container};
use serde_json::Value;
use symbol_versions::{Library, Status};

use crate::{Result, audit, bench, exec, process, programs, setup};

/// A major version of the runtime.
struct Runtime {
    soname: &'static str,
    /// The version of NVIDIA's package; `None`: nvcc's own.
    package: Option<&'static str>,
    /// What `cudaRuntimeGetVersion` answers, which is also the least that `cudaDriverGetVersion` may answer.
    version: u32,
}

const RUNTIMES: [Runtime; 3] = [
    Runtime {
        soname: "libcudart.so.12",
        package: None,
        version: 12090,
    },
    Runtime {
        soname: "libcudart.so.13",
        package: Some("13.0"),
        version: 13000,
    },
    Runtime {
        soname: "libcudart.so.11.0",
        package: Some("11.8"),
        version: 11080,
    },
];

/// The linkers of the program, and the compression of the kernels in the library that each run uses.
const RUNS: [(&str, Compression); 3] = [
    ("bfd", Compression::Raw),
    ("gold", Compression::Lz4),
    ("lld", Compression::Zstd),
];

/// The releases of CUDA 12: there is no runtime package of 12.7.
const RELEASES: [&str; 9] = ["12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.8", "12.9"];

/// Those of them against whose runtime the stand-in is built to be run, beside nvcc's own 12.9.
const RUN_RELEASES: [(&str, &str, Compression); 2] =
    [("12.0", "gold", Compression::Lz4), ("12.6", "lld", Compression::Zstd)];

const STAND_IN: &str = "libmpi_gtl_standin.so";

impl Runtime {
    /// A release of CUDA 12.
    const fn release(version: &'static str) -> Self {
        Self {
            soname: "libcudart.so.12",
            package: Some(version),
            version: 12090,
        }
    }

    /// NVIDIA's library, and the folders of its headers.
    fn nvidia(&self) -> Result<(PathBuf, Vec<PathBuf>)> {
        let nvcc = setup::nvcc()?;
        let common = nvcc.join("include");
        Ok(match self.package {
            None => (nvcc.join("lib64").join(self.soname), vec![common]),
            Some(version) => {
                let directory = setup::cudart(version)?;
                // What is not in the package, `crt/`, is the same in all versions as far as C sees it.
                (
                    directory.join("lib").join(self.soname),
                    vec![directory.join("include"), common],
                )
            }
        })
    }

    /// gcc for a source of `tests/gtl`, to run in `folder`, which holds the fat binary.
    fn cc(&self, folder: &Path, source: &str) -> Result<Command> {
        let mut command = Command::new("gcc");
        // CUDA 13 calls a name deprecated that it has all the same.
        command.arg("-Wno-deprecated-declarations");
        // Fused multiply-add would make the host's results differ from a kernel that has none.
        command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]);
        for include in self.nvidia()?.1 {
            command.arg("-isystem").arg(include);
        }
        command.arg("-DFATBIN=\"reductions.fatbin\"").current_dir(folder);
        command.arg(sources().join(source));
        Ok(command)
    }

    /// Writes the kernels' fat binary into `folder`, where the compiler looks for it.
    fn kernels(folder: &Path, compression: Compression) -> Result<()> {
        let mut ptx = fs::read(ptx()?)?;
        ptx.push(0);
        let image = Image::ptx(75, &ptx).compressed(compression);
        Ok(fs::write(folder.join("reductions.fatbin"), container(&[image]))?)
    }

    /// Builds the stand-in in `folder`, against NVIDIA's runtime and a driver that has the names of the list.
    fn stand_in(&self, folder: &Path, compression: Compression) -> Result<PathBuf> {
        Self::kernels(folder, compression)?;
        let driver = folder.join("libcuda.so.1");
        let [_, driver_names] = imports()?;
        dummy(&driver, "libcuda.so.1", &driver_names)?;
        let library = folder.join(STAND_IN);
        let mut command = self.cc(folder, "standin.c")?;
        command
            .args(["-shared", "-fPIC", "-Wl,-z,defs"])
            .arg(format!("-Wl,-soname,{STAND_IN}"))
            .arg("-o")
            .arg(&library)
            .arg(self.nvidia()?.0)
            .arg(driver);
        quietly(&mut command)?;
        Ok(library)
    }

    /// What `library` imports must be the list, the runtime's names at the runtime's version node.
    fn compare_imports(&self, library: &Path) -> Result<String> {
        let [mut expected, driver] = imports()?;
        expected = expected.iter().map(|name| format!("{name}@{}", self.soname)).collect();
        expected.extend(driver);
        let output = quietly(Command::new("readelf").args(["-W", "--dyn-syms"]).arg(library))?;
        let undefined = output.lines().filter(|line| line.contains(" UND "));
        let found: BTreeSet<String> = undefined
            .filter_map(|line| line.split_whitespace().nth(7))
            .filter(|name| name.trim_start_matches('_').starts_with("cu"))
            .map(str::to_owned)
            .collect();
        if found == expected {
            return Ok(format!("{} names", found.len()));
        }
        let difference: Vec<_> = found.symmetric_difference(&expected).collect();
        Err(format!("the stand-in's imports differ from the list in {difference:?}").into())
    }

    /// Links `tests/gtl/SOURCE` in `folder` with one linker against `library` and the libraries of `ours`, with no undefined
    /// reference allowed, in the libraries neither.
    fn link(&self, folder: &Path, source: &str, linker: &str, library: Option<&Path>, ours: &Path) -> Result<PathBuf> {
        // gcc looks for `ld.lld`; Debian calls it by its version.
        let lld = folder.join("ld.lld");
        if !lld.exists() {
            std::os::unix::fs::symlink("/usr/bin/ld.lld-19", lld)?;
        }
        let program = folder.join(format!("{source}-{linker}"));
        let mut command = self.cc(folder, source)?;
        command.arg(format!("-B{}", folder.display()));
        command.args([
            &format!("-fuse-ld={linker}"),
            "-Wl,--no-undefined",
            "-Wl,--no-allow-shlib-undefined",
        ]);
        command.arg(format!("-Wl,-rpath,{}", folder.display()));
        command.arg("-o").arg(&program).args(library);
        command.args([self.soname, "libcuda.so.1"].map(|name| ours.join(name)));
        command.arg("-lm");
        quietly(&mut command)?;
        Ok(program)
    }

    /// Runs the program with every symbol bound at the start; it checks itself.
    fn run(&self, program: &Path) -> Result<String> {
        let mut arguments = exec::Arguments::for_command([program]);
        let version = self.version.to_string();
        arguments.command.extend([version.clone().into(), version.into()]);
        arguments.variables.push("LD_BIND_NOW=1".into());
        let scratch = bench::Scratch::new("gtl")?;
        let outcome = process::run(
            &mut exec::command(&arguments, scratch.path())?,
            Duration::from_secs(180),
        )?;
        if !outcome.success() {
            return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into());
        }
        Ok(outcome.output.lines().last().unwrap_or_default().to_owned())
    }

    /// A runtime with the right names and no version node must not link: this is the error that users quote. Returns it.
    fn unversioned(&self, folder: &Path, library: &Path) -> Result<String> {
        let imitation = folder.join("unversioned");
        fs::create_dir_all(&imitation)?;
        let [mut names, _] = imports()?;
        names.extend(["cudaSetDevice", "cudaRuntimeGetVersion", "cudaDriverGetVersion"].map(String::from));
        dummy(&imitation.join(self.soname), self.soname, &names)?;
        std::os::unix::fs::symlink(bench::release().join("libcuda.so.1"), imitation.join("libcuda.so.1"))?;
        match self.link(folder, "program.c", "bfd", Some(library), &imitation) {
            Ok(_) => Err("it links".into()),
            Err(error) => {
                let wanted = format!("undefined reference to `cudaMalloc@{}'", self.soname);
                if error.to_string().contains(&wanted) {
                    Ok(error.to_string())
                } else {
                    Err(error)
                }
            }
        }
    }
}

/// Runs every case and hands its outcome to `case`.
pub fn run(case: &mut dyn FnMut(String, Result<String>)) -> Result<()> {
    for runtime in &RUNTIMES {
        for (linker, compression) in RUNS {
            let scratch = bench::Scratch::new("gtl-build")?;
            let folder = scratch.path();
            let library = runtime.stand_in(folder, compression)?;
            let name = format!("{}, kernels stored {compression:?}", runtime.soname);
            case(format!("imports, {name}"), runtime.compare_imports(&library));
            case(
                // The first of the known issues: no version node, no link.
                format!("scale_validation_66: linked by {linker}, LD_BIND_NOW=1, {name}"),
                runtime
                    .link(folder, "program.c", linker, Some(&library), &bench::release())
                    .and_then(|program| runtime.run(&program)),
            );
            if linker == "bfd" {
                case(
                    format!("structures fill the room that the headers give, {}", runtime.soname),
                    runtime
                        .link(folder, "structures.c", linker, None, &bench::release())
                        .and_then(|program| runtime.run(&program)),
                );
                case(
                    format!("without version nodes nothing links, {}", runtime.soname),
                    runtime.unversioned(folder, &library).map(|_| String::new()),
                );
            }
        }
    }
    for (release, linker, compression) in RUN_RELEASES {
        let scratch = bench::Scratch::new("gtl-build")?;
        let runtime = Runtime::release(release);
        let library = runtime.stand_in(scratch.path(), compression)?;
        case(
            format!(
                "linked by {linker}, LD_BIND_NOW=1, built against the runtime of CUDA {release}, kernels stored {compression:?}"
            ),
            runtime
                .link(scratch.path(), "program.c", linker, Some(&library), &bench::release())
                .and_then(|program| runtime.run(&program)),
        );
    }
    Ok(())
}

/// Builds `exchange.c` in `folder` over the stand-in with its message layer; returns the program.
pub fn exchange(folder: &Path) -> Result<PathBuf> {
    Runtime::kernels(folder, Compression::Zstd)?;
    let ours = ["libcudart.so.12", "libcuda.so.1"].map(|name| bench::release().join(name));
    let library = folder.join(STAND_IN);
    let mut command = RUNTIMES[0].cc(folder, "standin.c")?;
    command.args(["transport.c", "transport_cuda.c"].map(|source| sources().join(source)));
    command.args(["-shared", "-fPIC", "-Wl,-z,defs", &format!("-Wl,-soname,{STAND_IN}")]);
    quietly(command.args(&ours).arg("-o").arg(&library))?;
    let program = folder.join("exchange-cuda");
    let mut command = RUNTIMES[0].cc(folder, "exchange.c")?;
    command
        .args(["-DREDUCTIONS", &format!("-Wl,-rpath,{}", folder.display())])
        .arg(&library);
    quietly(command.args(&ours).arg("-o").arg(&program))?;
    Ok(program)
}

/// What GNU ld says where the stand-in meets a runtime without version nodes.
pub fn unversioned_link() -> Result<String> {
    let scratch = bench::Scratch::new("gtl-build")?;
    let library = RUNTIMES[0].stand_in(scratch.path(), Compression::Raw)?;
    RUNTIMES[0].unversioned(scratch.path(), &library)
}

/// symbol-audit of the stand-in, built against the runtime of each release of CUDA 12.
pub fn audit_releases(case: &mut dyn FnMut(String, Result<String>)) -> Result<()> {
    audit::build()?;
    for (index, release) in RELEASES.into_iter().enumerate() {
        let compression = RUNS[index % RUNS.len()].1;
        let outcome = audited(&Runtime::release(release), compression);
        case(
            format!("the stand-in built against cudart {release}, {compression:?}"),
            outcome,
        );
    }
    Ok(())
}

/// Builds the stand-in, audits it, and says what the audit must say, by `readelf` and by our libraries' tables.
fn audited(runtime: &Runtime, compression: Compression) -> Result<String> {
    let scratch = bench::Scratch::new("gtl-audit")?;
    let library = runtime.stand_in(scratch.path(), compression)?;
    runtime.compare_imports(&library)?;
    // This compares names, nodes and the count of fat binaries with binutils'.
    let audit::Audited { code, json, .. } = audit::audit(&library)?;
    let mut faults = Vec::new();
    let mut expect = |what: &str, found: &Value, expected: Value| {
        if *found != expected {
            faults.push(format!("{what} is {found}, not {expected}"));
        }
    };
    expect("the role", &json["role"], "client".into());
    expect("NEEDED", &json["needed"], vec![runtime.soname, "libcuda.so.1"].into());
    expect("the list of problems", &json["problems"], Value::Array(Vec::new()));
    expect(
        "the count of kernels' sections",
        &json["kernels"].as_array().map_or(0, Vec::len).into(),
        1.into(),
    );
    let kernels = &json["kernels"][0];
    let taken = kernels["taken"]
        .as_object()
        .and_then(|taken| taken.keys().next().cloned());
    if !taken.is_some_and(|text| text.starts_with("PTX for sm_75, version ")) {
        return Err(format!("the PTX for sm_75 is not taken: {kernels}").into());
    }
    let stored = format!("{compression:?}").to_lowercase();
    expect("the compression", &kernels["code"][0]["compression"], stored.into());
    let mut verdicts = BTreeSet::new();
    let mut failing = false;
    for symbol in json["symbols"].as_array().into_iter().flatten() {
        let name = symbol["name"].as_str().unwrap_or_default();
        let (of, node) = if name.trim_start_matches('_').starts_with("cuda") {
            (Library::Cudart, Value::from(runtime.soname))
        } else {
            (Library::Cuda, Value::Null)
        };
        expect(&format!("{name}'s library"), &symbol["library"], of.soname().into());
        expect(&format!("{name}'s node"), &symbol["node"], node);
        let verdict = symbol["verdict"].as_str().unwrap_or_default();
        let status = of.table().get(name).map(|row| row.status);
        let allowed: &[&str] = match status {
            Some(Status::Impl) => &["works", "partial", "untested"],
            Some(Status::Refuse) => &["refused"],
            Some(Status::Stub) | None => &["missing"],
        };
        failing |= status != Some(Status::Impl);
        if !allowed.contains(&verdict) {
            verdicts.insert(format!("{name}: {verdict}, not one of {allowed:?}"));
        }
    }
    expect("the exit status", &code.into(), i32::from(failing).into());
    faults.extend(verdicts);
    // NVIDIA's runtimes of all releases have one version node, so each would do for the others' clients.
    for release in RELEASES {
        let nvidia = Runtime::release(release).nvidia()?.0;
        let mut command = Command::new(bench::release().join("symbol-audit"));
        command.args(["--json", "--against"]).arg(nvidia).arg(&library);
        let against: Value = serde_json::from_str(&quietly(&mut command)?)?;
        let provided = &against["files"][0]["link"]["provided"];
        if provided.as_u64() != Some(imports()?[0].len() as u64) {
            faults.push(format!("cudart {release} provides {provided}"));
        }
    }
    if !faults.is_empty() {
        return Err(faults.join("; ").into());
    }
    Ok(format!(
        "{} names as readelf has them; each release's runtime has them",
        json["symbols"].as_array().map_or(0, Vec::len)
    ))
}

fn sources() -> PathBuf {
    bench::root().join("tests/gtl")
}

/// The reduction kernels as PTX.
fn ptx() -> Result<PathBuf> {
    let source = sources().join("reductions.cu");
    let mut command = Command::new(setup::nvcc()?.join("bin/nvcc"));
    command.args(["-ptx", "-arch=compute_75", "-O2"]).arg(&source);
    programs::compile("gtl-reductions.ptx", &source, command)
}

/// The names of `tests/gtl/imports.txt`: the runtime's and the driver's.
fn imports() -> Result<[BTreeSet<String>; 2]> {
    let text = fs::read_to_string(sources().join("imports.txt"))?;
    let names = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned);
    let (runtime, driver) = names.partition(|name| name.trim_start_matches('_').starts_with("cuda"));
    Ok([runtime, driver])
}

/// A library of that SONAME which defines `names`, unversioned, for linkers only.
fn dummy(path: &Path, soname: &str, names: &BTreeSet<String>) -> Result<()> {
    let mut source = String::new();
    for name in names {
        writeln!(
            source,
            ".globl {name}\n.type {name},@function\n{name}: ud2\n.size {name}, .-{name}"
        )?;
    }
    source.push_str(".section .note.GNU-stack,\"\",@progbits\n");
    let assembly = path.with_extension("s");
    fs::write(&assembly, source)?;
    let mut command = Command::new("gcc");
    command.args(["-shared", "-nostdlib", &format!("-Wl,-soname,{soname}"), "-o"]);
    quietly(command.arg(path).arg(assembly)).map(drop)
}

/// Runs a tool; its output, or an error that holds it.
fn quietly(command: &mut Command) -> Result<String> {
    let outcome = process::run(command, Duration::from_secs(60))?;
    if outcome.success() {
        Ok(outcome.output)
    } else {
        Err(format!("{command:?}: {}\n{}", outcome.ending(), outcome.output).into())
    }
}
