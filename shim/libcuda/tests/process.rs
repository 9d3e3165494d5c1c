//! The built libraries in running programs: load order, preloading, exit, messages.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{compile, from_bench, libraries, library, succeed};
use symbol_versions::Library;

/// A directory with copies of the libraries under their real names, as a package has them.
fn copies(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    for of in Library::ALL {
        let to = folder.join(of.soname());
        // Replaced by a rename: another run may have the old file mapped.
        let fresh = to.with_extension("new");
        fs::copy(library(of), &fresh).unwrap();
        fs::rename(&fresh, &to).unwrap();
    }
    folder
}

#[test]
fn there_is_one_state_in_every_load_order() {
    let program = compile("load_order");
    let folder = copies("order");
    let cuda = folder.join("libcuda.so.1");
    let cudart = folder.join("libcudart.so.12");
    let names: [&Path; 2] = [Path::new("libcuda.so.1"), Path::new("libcudart.so.12")];
    let orders: [Vec<&Path>; 5] = [
        vec![&cuda, &cudart],
        vec![&cudart, &cuda],
        vec![&cudart],
        vec![names[0], names[1]],
        vec![names[1], names[0]],
    ];
    for order in &orders {
        let mut command = Command::new(&program);
        command.args(order).env("LD_LIBRARY_PATH", &folder);
        assert_eq!(succeed(&mut command).0, "one state\n", "{order:?}");
    }
    for preloaded in [vec![&cuda], vec![&cudart], vec![&cuda, &cudart], vec![&cudart, &cuda]] {
        let list: Vec<&str> = preloaded.iter().map(|path| path.to_str().unwrap()).collect();
        for order in [[names[0], names[1]], [names[1], names[0]]] {
            let mut command = Command::new(&program);
            command
                .args(order)
                .env("LD_PRELOAD", list.join(":"))
                .env("LD_LIBRARY_PATH", &folder);
            assert_eq!(
                succeed(&mut command).0,
                "one state\n",
                "preloaded {list:?}, then {order:?}"
            );
        }
    }
}

#[test]
fn a_preloaded_runtime_is_enough() {
    let program = compile("load_order");
    // No search path: libcuda.so.1 must be found beside libcudart.so.12, and by its name ever after.
    let mut command = Command::new(&program);
    command
        .args(["libcudart.so.12", "libcuda.so.1"])
        .env("LD_PRELOAD", library(Library::Cudart));
    assert_eq!(succeed(&mut command).0, "one state\n");
}

#[test]
fn a_foreign_driver_on_the_search_path_is_not_taken() {
    let program = compile("load_order");
    let foreign = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foreign");
    fs::create_dir_all(&foreign).unwrap();
    let mut cc = Command::new("cc");
    cc.args([
        "-shared",
        "-nostdlib",
        "-Wl,-soname,libcuda.so.1",
        "-x",
        "c",
        "/dev/null",
        "-o",
    ]);
    succeed(cc.arg(foreign.join("libcuda.so.1")));
    let mut command = Command::new(&program);
    command.arg(library(Library::Cudart)).env("LD_LIBRARY_PATH", &foreign);
    assert_eq!(succeed(&mut command).0, "one state\n");
}

#[test]
fn late_calls_say_that_the_process_ends_late_frees_too() {
    let mut command = Command::new(compile("late_calls"));
    command.arg(library(Library::Cudart));
    let (out, _) = succeed(&mut command);
    let expected = "cudaFree 4\ncudaEventDestroy 4\ncudaMalloc 4\ncudaDeviceSynchronize 4\ncudaRuntimeGetVersion 0\n";
    assert_eq!(out, expected);
}

#[test]
fn a_missing_call_is_not_supported_and_named_once() {
    let program = compile("calls");
    for (of, code) in [(Library::Cuda, 801), (Library::Cudart, 801), (Library::Nvml, 3)] {
        let symbols = of.table().symbols();
        let missing = symbols.iter().find(|symbol| {
            symbol.status != symbol_versions::Status::Impl && symbol.class == symbol_versions::Class::Err
        });
        let Some(missing) = missing else { continue };
        let mut command = Command::new(&program);
        command
            .arg(library(of))
            .args([missing.name, missing.name])
            .env("REGAUGE_LOG", "warn");
        let (out, err) = succeed(&mut command);
        assert_eq!(out, format!("{0} {code}\n{0} {code}\n", missing.name));
        assert_eq!(err.matches(missing.name).count(), 1, "{err}");
        assert!(err.starts_with("regauge["), "{err}");
    }
}

#[test]
fn the_log_level_decides_what_is_written() {
    let program = compile("calls");
    let run = |level: &str| {
        let mut command = Command::new(&program);
        command
            .arg(library(Library::Cudart))
            .arg("cudaRuntimeGetVersion")
            .env("REGAUGE_LOG", level);
        succeed(&mut command).1
    };
    let trace = run("trace");
    assert!(
        trace.contains("trace: cudaRuntimeGetVersion: runtimeVersion=0x"),
        "{trace}"
    );
    assert!(trace.contains("trace: cudaRuntimeGetVersion -> 0"), "{trace}");
    assert_eq!(run("off"), "");
    assert_eq!(run("warn"), "");
    assert!(run("loud").contains("REGAUGE_LOG=\"loud\" is malformed; using \"warn\""));
}

#[test]
fn nvidias_runtime_is_told_why_it_cannot_work() {
    let mut command = Command::new(compile("export_table"));
    command.arg(library(Library::Cuda));
    let (out, err) = succeed(&mut command);
    assert_eq!(out, "500 500 1\n");
    assert_eq!(err.matches("-cudart shared").count(), 1, "{err}");
}

/// NVIDIA's own `libcudart.so.12` over our `libcuda.so.1`: an error and, where a device lets it come so far, an explanation.
#[test]
fn nvidias_shared_runtime_over_our_driver_fails_cleanly() {
    let mut command = Command::new(compile("calls"));
    command
        .arg(from_bench("REGAUGE_NVIDIA_CUDART"))
        .arg("cudaGetDeviceCount")
        .env("LD_LIBRARY_PATH", libraries());
    let (out, err) = succeed(&mut command);
    match out.as_str() {
        "cudaGetDeviceCount 100\n" => {}
        "cudaGetDeviceCount 500\n" => assert!(err.contains("-cudart shared"), "{err}"),
        _ => panic!("{out}{err}"),
    }
}

/// What a process looks like that preloads the libraries and never calls CUDA: `srun`, `mpirun`, `bash`, `python`.
#[test]
fn preloading_opens_nothing_and_starts_nothing() {
    let threads = |command: &mut Command| {
        let (status, err) = succeed(command.args(["/proc/self/status"]));
        assert_eq!(err, "");
        status
            .lines()
            .find_map(|line| line.strip_prefix("Threads:"))
            .map(str::trim)
            .map(str::to_owned)
    };
    let preload = [Library::Cudart, Library::Nvml]
        .map(|of| library(of).into_os_string().into_string().unwrap())
        .join(":");
    assert_eq!(
        threads(Command::new("cat").env("LD_PRELOAD", &preload)).as_deref(),
        Some("1")
    );

    let open_files = |command: &mut Command| succeed(command.arg("/proc/self/fd")).0;
    let plain = open_files(&mut Command::new("ls"));
    assert_eq!(open_files(Command::new("ls").env("LD_PRELOAD", &preload)), plain);

    let (maps, _) = succeed(Command::new("cat").arg("/proc/self/maps").env("LD_PRELOAD", &preload));
    let names: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| line.rsplit_once('/'))
        .map(|(_, name)| name)
        .collect();
    assert!(names.contains("libcudart.so"), "{names:?}");
    assert!(
        names
            .iter()
            .all(|name| !name.contains("hsa") && !name.contains("comgr")),
        "{names:?}"
    );
}

#[test]
fn preloading_costs_less_than_a_millisecond() {
    let mut command = Command::new(compile("spawn_cost"));
    command.arg(library(Library::Cudart)).arg("/bin/true");
    let (out, _) = succeed(&mut command);
    let (plain, preloaded) = out.trim().split_once(' ').expect("two numbers");
    let (plain, preloaded): (f64, f64) = (plain.parse().unwrap(), preloaded.parse().unwrap());
    println!("{plain} us without, {preloaded} us with the libraries");
    assert!(
        preloaded - plain < 1000.0,
        "{plain} us without, {preloaded} us with the libraries"
    );
}
