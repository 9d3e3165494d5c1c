//! Renders the exports of `libcudart.so.13` and tells the linker about them.

use std::io;

use symbol_versions::{Library, link, render};

fn main() -> io::Result<()> {
    link::library(Library::Cudart13, &render::forwards(Library::Cudart13), &[])?;
    link::through_libcuda(Library::Cudart13)
}
