//! Renders the exports of `libcuda.so.1` and tells the linker about them.

use std::io;

use symbol_versions::{Library, link, render};

fn main() -> io::Result<()> {
    let mut extra = Library::FORWARDING.map(render::private_table).to_vec();
    // Of `src/tool.rs`.
    extra.extend(["OnLoad", "OnUnload", "HSA_AMD_TOOL_PRIORITY"].map(String::from));
    link::library(Library::Cuda, &render::implementation(), &extra)?;
    // Threads of ours may run when a client calls dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    old_glibc::link(old_glibc::Artefact::Library)?;
    Ok(())
}
