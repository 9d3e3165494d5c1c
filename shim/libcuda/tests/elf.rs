//! The built libraries, read as ELF files: what a linker and a loader see of them.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{exports, from_bench, library, parse, read, root, succeed};
use goblin::elf::dynamic::{DF_1_NODELETE, DT_FLAGS_1, DT_TEXTREL};
use goblin::elf::sym::{STB_GLOBAL, STT_FUNC, STT_OBJECT, STV_DEFAULT};
use symbol_versions::{Library, render};

#[test]
fn exports_are_the_tables_and_nothing_else() {
    for of in Library::ALL {
        let bytes = read(&library(of));
        let mut built = exports(&parse(&bytes));
        if of == Library::Cuda {
            for private in Library::FORWARDING {
                let table = built
                    .remove(&render::private_table(private))
                    .expect("the private table");
                assert_eq!(table.kind.0, STT_OBJECT);
                assert_eq!(table.place.1, 8 * private.table().symbols().len() as u64);
            }
            // What ROCr looks for in loaded libraries (`src/tool.rs`).
            for (name, kind) in [
                ("OnLoad", STT_FUNC),
                ("OnUnload", STT_FUNC),
                ("HSA_AMD_TOOL_PRIORITY", STT_OBJECT),
            ] {
                assert_eq!(built.remove(name).expect(name).kind.0, kind, "{name}");
            }
        }
        let expected: BTreeMap<&str, Option<&str>> = of
            .table()
            .symbols()
            .iter()
            .map(|symbol| (symbol.name, symbol.node))
            .collect();
        let found: BTreeMap<&str, Option<&str>> = built
            .iter()
            .map(|(name, export)| (name.as_str(), export.node.as_deref()))
            .collect();
        assert_eq!(found, expected, "{of:?}");
        for (name, export) in &built {
            assert_eq!(export.kind, (STT_FUNC, STB_GLOBAL, STV_DEFAULT), "{name}");
        }
    }
}

#[test]
fn the_runtime_looks_as_nvidias_does() {
    let interface = |bytes: &[u8]| -> BTreeMap<String, _> {
        exports(&parse(bytes))
            .into_iter()
            .map(|(name, export)| (name, (export.kind, export.node)))
            .collect()
    };
    for (of, variable) in [
        (Library::Cudart, "REGAUGE_NVIDIA_CUDART"),
        (Library::Cudart11, "REGAUGE_NVIDIA_CUDART_11"),
        (Library::Cudart13, "REGAUGE_NVIDIA_CUDART_13"),
    ] {
        let theirs = read(&from_bench(variable));
        let ours = read(&library(of));
        assert_eq!(interface(&ours), interface(&theirs), "{}", of.soname());
    }
}

#[test]
fn the_driver_has_every_name_that_nvidias_exports() {
    let recorded = fs::read_to_string(root().join("tests/oracle/results/driver_symbols.txt")).unwrap();
    let table = Library::Cuda.table();
    let missing: Vec<&str> = recorded
        .split_whitespace()
        .filter(|name| table.get(name).is_none())
        .collect();
    assert!(recorded.lines().count() > 600);
    assert_eq!(missing, [""; 0]);
}

/// UCX's code patcher moves the first instructions of an entry point; it knows how to move `mov $imm32,%reg`, and it must not
/// run into the next function. What ROCr calls is no entry point.
#[test]
fn entry_points_begin_with_what_ucx_can_move() {
    const MOV_EAX_0: [u8; 5] = [0xb8, 0, 0, 0, 0];
    for of in Library::ALL {
        let bytes = read(&library(of));
        let elf = parse(&bytes);
        let mut starts = BTreeSet::new();
        for (name, export) in exports(&elf)
            .into_iter()
            .filter(|(name, export)| export.kind.0 == STT_FUNC && !["OnLoad", "OnUnload"].contains(&name.as_str()))
        {
            let (address, size) = export.place;
            assert!(starts.insert(address), "{name} shares its code with another name");
            assert!(size >= 20, "{name}: {size} bytes");
            let segment = elf
                .program_headers
                .iter()
                .find(|header| header.vm_range().contains(&(address as usize)));
            let segment = segment.expect("a segment that holds the function");
            let offset = (address - segment.p_vaddr + segment.p_offset) as usize;
            assert_eq!(bytes[offset..offset + 15], MOV_EAX_0.repeat(3), "{name}");
        }
    }
}

#[test]
fn names_and_dependencies_are_right() {
    for of in Library::ALL {
        let bytes = read(&library(of));
        let elf = parse(&bytes);
        assert_eq!(elf.soname, Some(of.soname()));
        assert!(
            elf.runpaths.is_empty(),
            "{of:?}: DT_RUNPATH loses against LD_LIBRARY_PATH"
        );
        if of == Library::Cuda {
            let allowed = [
                "libc.so.6",
                "libgcc_s.so.1",
                "libpthread.so.0",
                "libdl.so.2",
                "libm.so.6",
                "ld-linux-x86-64.so.2",
            ];
            for needed in &elf.libraries {
                assert!(allowed.contains(needed), "{needed}");
            }
        } else {
            assert_eq!(elf.libraries, ["libcuda.so.1"], "{of:?}");
            assert_eq!(elf.rpaths, ["$ORIGIN"], "{of:?}");
        }
    }
}

#[test]
fn libcuda_stays_loaded_and_shares_its_text() {
    let bytes = read(&library(Library::Cuda));
    let elf = parse(&bytes);
    let dynamic = elf.dynamic.as_ref().expect("a dynamic section");
    let flags = dynamic
        .dyns
        .iter()
        .find(|entry| entry.d_tag == DT_FLAGS_1)
        .map_or(0, |entry| entry.d_val);
    assert_ne!(flags & DF_1_NODELETE, 0);
    assert!(dynamic.dyns.iter().all(|entry| entry.d_tag != DT_TEXTREL));
}

/// A Cray of today has glibc 2.31.
#[test]
fn nothing_newer_than_glibc_2_31_is_needed() {
    for of in Library::ALL {
        let bytes = read(&library(of));
        let elf = parse(&bytes);
        for need in elf.verneed.iter().flatten() {
            for auxiliary in need.iter() {
                let version = elf.dynstrtab.get_at(auxiliary.vna_name).unwrap_or_default();
                let Some(number) = version.strip_prefix("GLIBC_") else {
                    continue;
                };
                let parts: Vec<u32> = number.split('.').map(|part| part.parse().expect("a number")).collect();
                assert!(
                    parts <= vec![2, 31],
                    "{of:?} needs {version}; symbols: {:?} (shim/libcuda/src/old_glibc.rs)",
                    symbols_at(&elf, auxiliary.vna_other)
                );
            }
        }
    }
}

/// `layout.rs`, whose assertions the compiler checks, says what NVIDIA's headers say.
#[test]
fn layouts_agree_with_nvidias_headers() {
    let include = from_bench("REGAUGE_CUDA_INCLUDE");
    for (variable, source, rust) in [
        ("REGAUGE_CUDA_INCLUDE", "layout", "layout"),
        ("REGAUGE_CUDA_INCLUDE_11", "layout_versions", "layout11"),
        ("REGAUGE_CUDA_INCLUDE_13", "layout_versions", "layout13"),
    ] {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(rust);
        let mut cc = Command::new("cc");
        cc.arg("-I").arg(from_bench(variable)).arg("-I").arg(&include);
        cc.arg(root().join("tests/abi").join(source).with_extension("c"))
            .arg("-o")
            .arg(&program);
        succeed(&mut cc);
        let (theirs, _) = succeed(&mut Command::new(&program));
        let file = root().join("shim/core/src/abi").join(rust).with_extension("rs");
        let ours = fs::read_to_string(file).unwrap();
        let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
        let (ours, theirs) = (lines(&ours), lines(&theirs));
        let first = ours.iter().zip(&theirs).position(|(our, their)| our != their);
        // The whole of both is too long to read.
        if let Some(line) = first {
            panic!(
                "{rust}.rs, line {}: {:?}, of the headers {:?}",
                line + 1,
                ours[line],
                theirs[line]
            );
        }
        assert_eq!(ours.len(), theirs.len(), "{rust}");
    }
}

/// The undefined symbols of a version.
fn symbols_at(elf: &goblin::elf::Elf<'_>, version: u16) -> Vec<String> {
    let versions = elf.versym.iter().flat_map(|section| section.iter());
    elf.dynsyms
        .iter()
        .zip(versions)
        .filter(|(_, of)| of.vs_val == version)
        .map(|(symbol, _)| elf.dynstrtab.get_at(symbol.st_name).unwrap_or_default().to_owned())
        .collect()
}
