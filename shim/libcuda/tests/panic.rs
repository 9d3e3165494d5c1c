//! A panic inside any of the libraries becomes error 999 and a log line; the program goes on.
//!
//! The libraries are built once more for it, with the feature that makes the call named by `REGAUGE_PANIC_IN` panic.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{compile, library, read, root, succeed};
use symbol_versions::Library;

/// Builds the libraries with the feature, in a directory of their own.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("panic-injection");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root())
        .arg("build")
        .args(["-p", "cuda", "-p", "cudart", "-p", "nvidia-ml"]);
    cargo
        .args(["--features", "cuda/panic-injection", "--target-dir"])
        .arg(&target);
    // It only has to be built quickly.
    cargo
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "false");
    succeed(&mut cargo);
    target.join("debug")
}

#[test]
fn panics_become_the_unknown_error() {
    let folder = build();
    let program = compile("calls");
    for (of, function) in [
        (Library::Cuda, "cuDriverGetVersion"),
        (Library::Cudart, "cudaRuntimeGetVersion"),
        (Library::Nvml, "nvmlSystemGetCudaDriverVersion"),
    ] {
        let run = |panic_in: &str| {
            let mut command = Command::new(&program);
            command
                .arg(folder.join(of.soname()))
                .arg(function)
                .env("REGAUGE_PANIC_IN", panic_in);
            succeed(&mut command)
        };
        let (out, err) = run(function);
        assert_eq!(out, format!("{function} 999\n"), "{err}");
        assert!(err.contains(&format!("error: {function}: internal error")), "{err}");
        assert_eq!(run("another").0, format!("{function} 0\n"));
    }
}

#[test]
fn released_libraries_cannot_be_made_to_panic() {
    for of in Library::ALL {
        let bytes = read(&library(of));
        assert!(!bytes.windows(16).any(|window| window == b"REGAUGE_PANIC_IN"), "{of:?}");
    }
}
