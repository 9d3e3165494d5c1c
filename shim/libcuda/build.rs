//! Renders the exports of `libcuda.so.1` and tells the linker about them.

use std::io;

use symbol_versions::{Library, link, render};

fn main() -> io::Result<()> {
    let private = Library::FORWARDING.map(render::private_table);
    link::library(Library::Cuda, &render::implementation(), &private)?;
    // Threads of ours may run when a client calls dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    old_glibc::link(old_glibc::Artefact::Library)?;
    Ok(())
}
