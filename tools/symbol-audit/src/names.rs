//! CUDA names in the read-only data of a file: what it may look up with `dlsym` or `cuGetProcAddress`, and what a statically
//! linked cudart leaves there.

use std::collections::BTreeSet;

use goblin::elf::section_header::{SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS};
use symbol_versions::Library;

use crate::elf::{Elf, Error};

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// Longest name that is looked for.
const MAX_NAME: usize = 128;
/// Most names that are kept; a file with more is not a program.
const MAX_NAMES: usize = 1 << 16;

/// The table that NVIDIA's cudart, and nothing else, asks the driver for first: `cuGetExportTable` with this UUID.
pub const CUDART_INTERFACE: [u8; 16] = [
    0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9,
];

/// What was found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Found {
    /// Whole strings in the style of CUDA function names.
    pub names: BTreeSet<String>,
    /// The bytes of [`CUDART_INTERFACE`] are there.
    pub cudart_interface: bool,
}

/// The library whose functions have names in the style of `name`; `None` for a name that is not CUDA's.
pub fn family(name: &str) -> Option<Library> {
    let after = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    if after("cuda") || after("__cuda") {
        Some(Library::Cudart)
    } else if after("cu") {
        Some(Library::Cuda)
    } else if after("nvml") {
        Some(Library::Nvml)
    } else {
        None
    }
}

/// Searches the parts of the file where constants are.
///
/// # Errors
/// When the file cannot be read.
pub fn search(elf: &Elf) -> Result<Found, Error> {
    let mut found = Found::default();
    for (offset, size) in constant_parts(elf) {
        search_part(elf, offset, size, &mut found)?;
    }
    Ok(found)
}

/// Sections of loaded constants; without section headers all loaded segments.
fn constant_parts(elf: &Elf) -> Vec<(u64, u64)> {
    let flags = u64::from(SHF_ALLOC | SHF_EXECINSTR);
    let skipped = |name: &str| name.contains("fatbin") || name.starts_with(".eh_frame") || name == ".gcc_except_table";
    if elf.sections().is_empty() {
        let whole = |offset: u64, size: u64| (offset, size.min(elf.size().saturating_sub(offset)));
        return elf.segments().iter().map(|s| whole(s.offset, s.size)).collect();
    }
    let constants = elf.sections().iter().filter(|section| {
        section.kind == SHT_PROGBITS && section.flags & flags == u64::from(SHF_ALLOC) && !skipped(&section.name)
    });
    constants.map(|section| (section.offset, section.size)).collect()
}

fn search_part(elf: &Elf, offset: u64, size: u64, found: &mut Found) -> Result<(), Error> {
    // What a chunk must still know of the one before it: the beginning of a name, or of the UUID.
    const OVERLAP: usize = MAX_NAME + 1;
    let mut buffer = Vec::with_capacity(CHUNK + OVERLAP);
    let mut done = 0;
    while done < size {
        let keep = buffer.len().min(OVERLAP);
        buffer.drain(..buffer.len() - keep);
        let count = (size - done).min(CHUNK as u64) as usize;
        buffer.resize(keep + count, 0);
        elf.read(offset + done, &mut buffer[keep..])?;
        done += count as u64;
        search_bytes(&buffer, found);
    }
    Ok(())
}

fn search_bytes(bytes: &[u8], found: &mut Found) {
    let uuid = || bytes.windows(16).any(|window| window == CUDART_INTERFACE);
    found.cudart_interface = found.cudart_interface || uuid();
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    for piece in bytes.split_inclusive(|&byte| byte == 0) {
        // Only what a NUL ends is a string; what comes before a name may be any other bytes.
        let Some(text) = piece.strip_suffix(b"\0").filter(|text| !text.is_empty()) else {
            continue;
        };
        let text = &text[text.len().saturating_sub(MAX_NAME)..];
        if !in_name(text[text.len() - 1]) {
            continue;
        }
        let start = text.iter().rposition(|&byte| !in_name(byte)).map_or(0, |at| at + 1);
        // A word at the end of a sentence ("cannot call cuInit") is not a name of its own.
        if start > 0 && (text[start - 1].is_ascii_graphic() || text[start - 1] == b' ') {
            continue;
        }
        let Ok(name) = std::str::from_utf8(&text[start..]) else {
            continue;
        };
        // The enumerators of cudaError_t, as cudaGetErrorName gives them, are no functions.
        let enumerator = name == "cudaSuccess" || name.starts_with("cudaError");
        if family(name).is_some() && !enumerator && found.names.len() < MAX_NAMES && !found.names.contains(name) {
            found.names.insert(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bytes: &[u8]) -> Vec<String> {
        let mut found = Found::default();
        search_bytes(bytes, &mut found);
        found.names.into_iter().collect()
    }

    #[test]
    fn names_are_whole_strings() {
        assert_eq!(names(b"cuInit\0"), ["cuInit"]);
        assert_eq!(
            names(b"x\0cuInit\0nvmlInit_v2\0cudaFree\0"),
            ["cuInit", "cudaFree", "nvmlInit_v2"]
        );
        assert_eq!(names(b"\x01\x90cuInit\0"), ["cuInit"], "after other data");
        for text in [
            "cannot call cuInit\0",
            "cuInit failed\0",
            "cuInit",
            "focuInit\0",
            "cublasCreate\0",
            "x.cuInit\0",
            "cudaErrorNoDevice\0",
        ] {
            assert!(names(text.as_bytes()).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn families_follow_prefixes() {
        assert_eq!(family("__cudaInitModule"), Some(Library::Cudart));
        assert_eq!(family("cuInit"), Some(Library::Cuda));
        assert_eq!(family("cufftPlan1d"), None);
        assert_eq!(family("_ZN4cuda3std"), None);
    }
}
