//! What the tests of the built libraries share.
//!
//! The libraries are those in `REGAUGE_TEST_LIBRARIES`, or else in `target/release`.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goblin::elf::Elf;
use symbol_versions::Library;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

/// The directory of the built libraries.
pub fn libraries() -> PathBuf {
    let folder =
        std::env::var_os("REGAUGE_TEST_LIBRARIES").map_or_else(|| root().join("target/release"), PathBuf::from);
    for library in Library::ALL {
        let path = folder.join(library.soname());
        assert!(
            path.exists(),
            "{} is missing: run `cargo build --release` first",
            path.display()
        );
    }
    folder
}

/// The path of a built library.
pub fn library(library: Library) -> PathBuf {
    libraries().join(library.soname())
}

/// A file that the test bench names in a variable.
pub fn from_bench(variable: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) => path.into(),
        None => panic!("{variable} is not set: run `cargo xtask test`, which fetches what this test compares with"),
    }
}

/// An exported symbol, as a client's linker sees it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Export {
    /// Type, binding and visibility.
    pub kind: (u8, u8, u8),
    /// The version node.
    pub node: Option<String>,
    /// Address and size.
    pub place: (u64, u64),
}

/// The bytes of an ELF file.
pub fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Parses an ELF file.
pub fn parse(bytes: &[u8]) -> Elf<'_> {
    Elf::parse(bytes).expect("an ELF file")
}

/// The defined dynamic symbols, without the ones that stand for a version node.
pub fn exports(elf: &Elf<'_>) -> BTreeMap<String, Export> {
    let mut nodes = BTreeMap::new();
    for definition in elf.verdef.iter().flatten() {
        let name = definition
            .iter()
            .next()
            .and_then(|auxiliary| elf.dynstrtab.get_at(auxiliary.vda_name));
        nodes.insert(definition.vd_ndx, name.unwrap_or_default().to_owned());
    }
    let versions: Vec<u16> = elf
        .versym
        .iter()
        .flat_map(|section| section.iter().map(|entry| entry.vs_val))
        .collect();
    let mut exports = BTreeMap::new();
    for (index, symbol) in elf.dynsyms.iter().enumerate() {
        // SHN_ABS: GNU ld marks version nodes so.
        if symbol.st_shndx == 0 || symbol.st_shndx == 0xfff1 {
            continue;
        }
        let name = elf.dynstrtab.get_at(symbol.st_name).unwrap_or_default().to_owned();
        // 0 and 1: no version; the highest bit: not the default version of the name.
        let node = versions
            .get(index)
            .filter(|&&version| version > 1)
            .map(|version| nodes[version].clone());
        let kind = (symbol.st_type(), symbol.st_bind(), symbol.st_visibility());
        exports.insert(
            name,
            Export {
                kind,
                node,
                place: (symbol.st_value, symbol.st_size),
            },
        );
    }
    exports
}

/// Compiles a C program of `tests/programs`.
pub fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
        .with_extension("c");
    // Two tests may compile the same program at once.
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{:?}", std::thread::current().id()));
    let mut command = Command::new("cc");
    command
        .args(["-O1", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(&source)
        .args(["-ldl", "-lpthread"]);
    succeed(&mut command);
    program
}

/// Runs a command that must succeed; its standard output and error.
pub fn succeed(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    (out, err)
}

/// Standard output and error as texts.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
