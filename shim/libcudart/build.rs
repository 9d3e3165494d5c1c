//! Renders the exports of `libcudart.so.12` and tells the linker about them.

use std::io;

use symbol_versions::{Library, link, render};

fn main() -> io::Result<()> {
    link::library(Library::Cudart, &render::forwards(Library::Cudart), &[])?;
    link::through_libcuda(Library::Cudart)
}
