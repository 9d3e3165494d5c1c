//! Renders the exports of `libcuda.so.1` and tells the linker about them.

use std::io;

use symbol_versions::{Library, link, render};

fn main() -> io::Result<()> {
    let private = [
        render::private_table(Library::Cudart),
        render::private_table(Library::Nvml),
    ];
    link::library(Library::Cuda, &render::implementation(), &private)?;
    // Threads of ours may run when a client calls dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Where an older system has the functions of `src/old_glibc.rs`. Stand-ins, as a newer system has no such libraries to link.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-as-needed");
    for (name, soname) in [("regauge_pthread", "libpthread.so.0"), ("regauge_dl", "libdl.so.2")] {
        println!(
            "cargo:rustc-cdylib-link-arg={}",
            link::stand_in(name, soname, "")?.display()
        );
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,--as-needed");
    Ok(())
}
