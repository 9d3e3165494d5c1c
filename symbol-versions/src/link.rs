//! For the build scripts of the libraries: what to tell cargo and the linker.
//!
//! Functions here print `cargo:` lines and fail with a text that says what to do: a build script has no better way.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Library, render};

/// Writes the source and the version script of `library` into `OUT_DIR` and sets SONAME and exports.
///
/// Plain `cargo build` names the file `lib<crate>.so`; the versioned name becomes a link beside it, so that
/// `-L target/release` and `LD_LIBRARY_PATH=target/release` work at once.
///
/// # Errors
/// When a file cannot be written.
pub fn library(library: Library, source: &str, extra_exports: &[String]) -> io::Result<()> {
    let out = out_dir();
    fs::write(out.join("exports.rs"), source)?;
    let script = out.join("exports.map");
    fs::write(&script, render::version_script(library, extra_exports))?;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{}", library.soname());
    // rust-lld takes a second script beside rustc's own and lets the exact name win over its `local: *`.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
    link_versioned_name(&out, library.soname())
}

/// Makes `library` find its private table in the `libcuda.so.1` of its own directory.
///
/// DT_RPATH, not DT_RUNPATH: a foreign `libcuda.so.1` on LD_LIBRARY_PATH (containers have one) must not be taken instead.
///
/// # Errors
/// When the stand-in for `libcuda.so.1` cannot be made.
pub fn through_libcuda(library: Library) -> io::Result<()> {
    let table = render::private_table(library);
    let source = format!(
        ".data\n.globl {table}\n.type {table},@object\n.size {table},{}\n{table}: .quad 0\n",
        8 * library.table().symbols().len()
    );
    // Cargo neither orders two cdylibs nor tells where the other one is, so the linker gets a stand-in with the one symbol.
    let stand_in = stand_in("regauge_link", Library::Cuda.soname(), &source)?;
    println!("cargo:rustc-cdylib-link-arg={}", stand_in.display());
    println!("cargo:rustc-cdylib-link-arg=-Wl,--disable-new-dtags,-rpath,$ORIGIN");
    // The library runs no Rust code, but rustc makes the linker load the standard library, whose unwind tables would keep its
    // panic machinery alive, and libgcc_s and a newer libc with it. Without the personality routine nothing of it remains.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,muldefs,--defsym=rust_eh_personality=0");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--strip-debug");
    Ok(())
}

/// Makes the shared library `lib<name>.so` in `OUT_DIR` from assembly, for the linker's eyes only.
///
/// # Errors
/// When `cc` is missing or fails.
pub fn stand_in(name: &str, soname: &str, assembly: &str) -> io::Result<PathBuf> {
    let out = out_dir();
    let source = out.join(format!("{name}.s"));
    fs::write(&source, format!("{assembly}.section .note.GNU-stack,\"\",@progbits\n"))?;
    let library = out.join(format!("lib{name}.so"));
    let mut command = Command::new("cc");
    command
        .args(["-shared", "-nostdlib", &format!("-Wl,-soname,{soname}"), "-o"])
        .arg(&library)
        .arg(&source);
    let status = command
        .status()
        .map_err(|error| io::Error::other(format!("cc (a C compiler is needed): {error}")))?;
    if !status.success() {
        return Err(io::Error::other(format!("{command:?}: {status}")));
    }
    Ok(library)
}

/// The directory for what the build script makes.
///
/// # Panics
/// Outside a build script.
fn out_dir() -> PathBuf {
    std::env::var_os("OUT_DIR")
        .expect("cargo sets OUT_DIR for build scripts")
        .into()
}

/// Makes `libcuda.so.1`, and `libnvidia-ml.so` where cargo's file is called `libnvidia_ml.so`, links to cargo's file.
///
/// That file is in the profile's directory, three above `OUT_DIR`.
fn link_versioned_name(out: &Path, soname: &str) -> io::Result<()> {
    let Some(profile) = out.ancestors().nth(3) else {
        return Err(io::Error::other(format!(
            "{}: not where cargo puts OUT_DIR",
            out.display()
        )));
    };
    let package = std::env::var("CARGO_PKG_NAME").map_err(io::Error::other)?;
    let built = format!("lib{}.so", package.replace('-', "_"));
    let plain = soname.split_inclusive(".so").next().unwrap_or(soname);
    // `libcudart.so` is the one of CUDA 12: the packages of the other versions have another name.
    let plain = (plain == format!("lib{package}.so")).then_some(plain);
    for name in [Some(soname), plain].into_iter().flatten() {
        let link = profile.join(name);
        if name == built || fs::read_link(&link).is_ok_and(|target| target == Path::new(&built)) {
            continue;
        }
        match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => symlink(&built, &link)?,
        }
    }
    Ok(())
}
