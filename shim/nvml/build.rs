//! Renders the exports of `libnvidia-ml.so.1` and tells the linker about them.

use std::io;

use symbol_versions::{Library, link, render};

fn main() -> io::Result<()> {
    link::library(Library::Nvml, &render::forwards(Library::Nvml), &[])?;
    link::through_libcuda(Library::Nvml)
}
