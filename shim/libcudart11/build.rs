//! Renders the exports of `libcudart.so.11.0` and tells the linker about them.

use std::io;

use symbol_versions::{Library, link, render};

fn main() -> io::Result<()> {
    link::library(Library::Cudart11, &render::forwards(Library::Cudart11), &[])?;
    link::through_libcuda(Library::Cudart11)
}
