//! For build scripts: makes an artefact need libpthread and libdl, where systems before glibc 2.34 have the functions.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, io};

/// What a build script links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Artefact {
    /// The package's cdylib.
    Library,
    /// The package's programs.
    Programs,
}

/// Tells cargo to link the artefact so. The linker sees stand-ins, for a newer system has no such libraries to link.
///
/// # Errors
/// When `cc` is missing or fails.
pub fn link(artefact: Artefact) -> io::Result<()> {
    let key = match artefact {
        Artefact::Library => "rustc-cdylib-link-arg",
        Artefact::Programs => "rustc-link-arg-bins",
    };
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:{key}=-Wl,--no-as-needed");
    for (name, soname) in [("regauge_pthread", "libpthread.so.0"), ("regauge_dl", "libdl.so.2")] {
        println!("cargo:{key}={}", stand_in(name, soname)?.display());
    }
    println!("cargo:{key}=-Wl,--as-needed");
    Ok(())
}

/// An empty shared library `lib<name>.so` in `OUT_DIR`, for the linker's eyes only.
fn stand_in(name: &str, soname: &str) -> io::Result<PathBuf> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("not in a build script"))?);
    let source = out.join(format!("{name}.s"));
    fs::write(&source, ".section .note.GNU-stack,\"\",@progbits\n")?;
    let library = out.join(format!("lib{name}.so"));
    let mut command = Command::new("cc");
    command
        .args(["-shared", "-nostdlib", &format!("-Wl,-soname,{soname}"), "-o"])
        .arg(&library)
        .arg(&source);
    let status = command
        .status()
        .map_err(|error| io::Error::other(format!("cc (a C compiler is needed): {error}")))?;
    if status.success() {
        Ok(library)
    } else {
        Err(io::Error::other(format!("{command:?}: {status}")))
    }
}
