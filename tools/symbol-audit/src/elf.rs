//! ELF files, read piece by piece.
//!
//! A library may be larger than memory and may be damaged on purpose: nothing is mapped (a file that shrinks meanwhile would
//! kill the process) and nothing is read whole. Every table is walked through a window of a few KiB; every offset, size and
//! count is checked against the file and against a limit. What the loader would use (`.dynamic` and what it names, by
//! address) is preferred over section headers, which may be stripped.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use goblin::elf::dynamic::{
    DT_GNU_HASH, DT_HASH, DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ, DT_STRTAB, DT_SYMTAB, DT_VERDEF,
    DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM, DT_VERSYM,
};
use goblin::elf::header::{ELFCLASS64, ELFDATA2LSB, ELFMAG, ET_CORE};
use goblin::elf::program_header::{PT_DYNAMIC, PT_LOAD};
use goblin::elf::section_header::{SHN_XINDEX, SHT_NOBITS, SHT_SYMTAB};

/// Most section headers that are believed.
const MAX_SECTIONS: u64 = 1 << 18;
/// Most entries of `.dynamic`, of a version table and of a symbol table that are believed.
const MAX_ENTRIES: u64 = 1 << 24;
/// Longest name that is read; a CUDA name has some 60 bytes, a mangled C++ name that is longer is none of ours.
const MAX_NAME: usize = 1024;
/// Bytes of a window.
const WINDOW: usize = 4096;
/// Bytes of a symbol.
const SYMBOL_SIZE: u64 = 24;

/// Why a file cannot be audited.
#[derive(Debug)]
pub enum Error {
    /// Reading failed.
    Io(io::Error),
    /// It is not an ELF file.
    NotElf,
    /// It is an ELF file for another kind of machine.
    Foreign,
    /// It is damaged: this is what is wrong.
    Malformed(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotElf => f.write_str("not an ELF file"),
            Self::Foreign => f.write_str("not a 64-bit little-endian ELF file"),
            Self::Malformed(what) => write!(f, "malformed ELF file: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

type Result<T> = std::result::Result<T, Error>;

/// Little-endian numbers in bytes that are long enough by construction.
pub(crate) fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    if let Some(part) = bytes.get(at..at + N) {
        eight[..N].copy_from_slice(part);
    }
    u64::from_le_bytes(eight)
}

/// A section of the file.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name, such as `.rodata`.
    pub name: String,
    /// `SHT_*`.
    pub kind: u32,
    /// `SHF_*`.
    pub flags: u64,
    /// Where it is in the file.
    pub offset: u64,
    /// Its bytes in the file; 0 for `.bss`.
    pub size: u64,
    link: u32,
}

/// A loaded segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// `PF_*`.
    pub flags: u32,
    /// Where it is in the file.
    pub offset: u64,
    /// Its address.
    address: u64,
    /// Its bytes in the file.
    pub size: u64,
}

/// An undefined symbol.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Import {
    /// Its name.
    pub name: String,
    /// The version it asks for, if it asks for one.
    pub version: Option<Version>,
    /// It may stay undefined.
    pub weak: bool,
}

/// A version that a file needs of another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// The version node, such as `libcudart.so.12`.
    pub node: String,
    /// The file that must have it, by the name that is also in NEEDED.
    pub file: String,
}

/// A defined symbol.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Its version node, if it has one.
    pub node: Option<String>,
    /// It answers references without a version, and links made today.
    pub default: bool,
}

/// An open ELF file.
#[derive(Debug)]
pub struct Elf {
    file: Source,
    sections: Vec<Section>,
    segments: Vec<Segment>,
    dynamic: Vec<(u64, u64)>,
}

/// The file and its length when it was opened.
#[derive(Debug)]
struct Source {
    file: File,
    size: u64,
}

impl Source {
    /// Fills `buffer` from `offset`.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return Err(Error::Malformed("a table reaches past the end of the file"));
        }
        Ok(self.file.read_exact_at(buffer, offset)?)
    }
}

/// A part of the file, read through a window.
struct Window<'f> {
    source: &'f Source,
    offset: u64,
    size: u64,
    state: RefCell<(u64, Vec<u8>)>,
}

impl<'f> Window<'f> {
    /// The `size` bytes at `offset`, as far as the file has them.
    fn new(source: &'f Source, offset: u64, size: u64) -> Self {
        let size = size.min(source.size.saturating_sub(offset));
        let state = RefCell::new((0, Vec::new()));
        Self {
            source,
            offset,
            size,
            state,
        }
    }

    /// Hands `count` bytes at `at` to `use_them`; fewer at the end of the part.
    fn with<T>(&self, at: u64, count: usize, use_them: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let mut state = self.state.borrow_mut();
        let (start, bytes) = &mut *state;
        let count = count.min(usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX));
        let inside = at >= *start && at - *start + count as u64 <= bytes.len() as u64;
        if !inside {
            let want = (self.size.saturating_sub(at)).min(WINDOW.max(count) as u64) as usize;
            bytes.resize(want, 0);
            *start = at;
            if let Err(error) = self.source.read(self.offset.saturating_add(at), bytes) {
                bytes.clear();
                return Err(error);
            }
        }
        let from = (at - *start) as usize;
        Ok(use_them(&bytes[from..from + count]))
    }

    /// The record of `N` bytes at `at`.
    fn record<const N: usize>(&self, at: u64) -> Result<[u8; N]> {
        self.with(at, N, |bytes| bytes.first_chunk().copied())?
            .ok_or(Error::Malformed("a table ends too early"))
    }

    /// The text at `at`, up to its NUL; empty for one that is too long or not UTF-8.
    fn text(&self, at: u64) -> Result<String> {
        self.with(at, MAX_NAME, |bytes| {
            let end = bytes.iter().position(|&byte| byte == 0);
            let text = end.and_then(|end| std::str::from_utf8(&bytes[..end]).ok());
            text.unwrap_or_default().to_owned()
        })
    }
}

impl Elf {
    /// Opens a file. [`Error::NotElf`] for other kinds of file, core dumps included.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(Error::NotElf);
        }
        Self::new(Source { size: data.len(), file })
    }

    fn new(file: Source) -> Result<Self> {
        let mut header = [0; 64];
        let have = file.size.min(64) as usize;
        file.read(0, &mut header[..have])?;
        if have < 4 || header[..4] != *ELFMAG {
            return Err(Error::NotElf);
        }
        if have < 64 {
            return Err(Error::Malformed("its header ends too early"));
        }
        if header[4] != ELFCLASS64 || header[5] != ELFDATA2LSB {
            return Err(Error::Foreign);
        }
        if number::<2>(&header, 16) == u64::from(ET_CORE) {
            return Err(Error::NotElf);
        }
        let mut elf = Self {
            file,
            sections: Vec::new(),
            segments: Vec::new(),
            dynamic: Vec::new(),
        };
        elf.read_segments(&header)?;
        elf.read_sections(&header)?;
        Ok(elf)
    }

    fn read_segments(&mut self, header: &[u8; 64]) -> Result<()> {
        let (offset, size, count) = (
            number::<8>(header, 32),
            number::<2>(header, 54),
            number::<2>(header, 56),
        );
        if count != 0 && size != 56 {
            return Err(Error::Malformed("its program headers have an unknown size"));
        }
        let table = Window::new(&self.file, offset, count * size);
        let mut dynamic = None;
        for index in 0..count {
            let entry: [u8; 56] = table.record(index * size)?;
            let segment = Segment {
                flags: number::<4>(&entry, 4) as u32,
                offset: number::<8>(&entry, 8),
                address: number::<8>(&entry, 16),
                size: number::<8>(&entry, 32),
            };
            match number::<4>(&entry, 0) as u32 {
                PT_LOAD => self.segments.push(segment),
                PT_DYNAMIC => dynamic = Some(segment),
                _ => {}
            }
        }
        let Some(segment) = dynamic else { return Ok(()) };
        let table = Window::new(&self.file, segment.offset, segment.size);
        for index in 0..(table.size / 16).min(MAX_ENTRIES) {
            let entry: [u8; 16] = table.record(index * 16)?;
            match number::<8>(&entry, 0) {
                0 => break,
                tag => self.dynamic.push((tag, number::<8>(&entry, 8))),
            }
        }
        Ok(())
    }

    fn read_sections(&mut self, header: &[u8; 64]) -> Result<()> {
        let (offset, size) = (number::<8>(header, 40), number::<2>(header, 58));
        let (mut count, mut names) = (number::<2>(header, 60), number::<2>(header, 62));
        if offset == 0 {
            return Ok(());
        }
        if size != 64 {
            return Err(Error::Malformed("its section headers have an unknown size"));
        }
        let table = Window::new(&self.file, offset, MAX_SECTIONS * size);
        // More sections than 16 bits can count are counted in the first header.
        if count == 0 || names == u64::from(SHN_XINDEX) {
            let first: [u8; 64] = table.record(0)?;
            count = if count == 0 { number::<8>(&first, 32) } else { count };
            names = if names == u64::from(SHN_XINDEX) {
                number::<4>(&first, 40)
            } else {
                names
            };
        }
        if count > MAX_SECTIONS {
            return Err(Error::Malformed("implausibly many sections"));
        }
        let parse = |entry: &[u8; 64]| Section {
            name: String::new(),
            kind: number::<4>(entry, 4) as u32,
            flags: number::<8>(entry, 8),
            offset: number::<8>(entry, 24),
            size: number::<8>(entry, 32),
            link: number::<4>(entry, 40) as u32,
        };
        let strings = if names < count {
            parse(&table.record(names * size)?)
        } else {
            parse(&[0; 64])
        };
        let strings = Window::new(&self.file, strings.offset, strings.size);
        for index in 0..count {
            let entry: [u8; 64] = table.record(index * size)?;
            let mut section = parse(&entry);
            section.name = strings.text(number::<4>(&entry, 0)).unwrap_or_default();
            if section.kind == SHT_NOBITS {
                section.size = 0;
            }
            // A section past the end of the file is cut there, as `readelf` does.
            section.size = section.size.min(self.file.size.saturating_sub(section.offset));
            self.sections.push(section);
        }
        Ok(())
    }

    /// All sections; empty if their headers were stripped.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The loaded segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.file.size
    }

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// When the file ends before, or cannot be read.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read(offset, buffer)
    }

    /// The value of a dynamic tag.
    fn tag(&self, tag: u64) -> Option<u64> {
        self.dynamic.iter().find(|(t, _)| *t == tag).map(|(_, value)| *value)
    }

    /// Where an address is in the file, and how many bytes the file has from there.
    fn at_address(&self, address: u64) -> Option<(u64, u64)> {
        self.segments.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            let rest = segment.size.checked_sub(inside).filter(|&rest| rest > 0)?;
            Some((segment.offset.checked_add(inside)?, rest))
        })
    }

    /// The part of the file that a dynamic tag leads to.
    fn part(&self, tag: u64) -> Option<Window<'_>> {
        let (offset, rest) = self.at_address(self.tag(tag)?)?;
        Some(Window::new(&self.file, offset, rest))
    }

    /// The strings of `.dynstr`.
    fn dynamic_strings(&self) -> Option<Window<'_>> {
        let (offset, rest) = self.at_address(self.tag(DT_STRTAB)?)?;
        let size = self.tag(DT_STRSZ).unwrap_or(rest).min(rest);
        Some(Window::new(&self.file, offset, size))
    }

    fn dynamic_texts(&self, tag: u64) -> Vec<String> {
        let Some(strings) = self.dynamic_strings() else {
            return Vec::new();
        };
        let values = self.dynamic.iter().filter(|(t, _)| *t == tag);
        values.filter_map(|(_, at)| strings.text(*at).ok()).collect()
    }

    /// The libraries that it needs, by name.
    pub fn needed(&self) -> Vec<String> {
        self.dynamic_texts(DT_NEEDED)
    }

    /// Its own name.
    pub fn soname(&self) -> Option<String> {
        self.dynamic_texts(DT_SONAME).pop()
    }

    /// DT_RPATH, which the loader asks before LD_LIBRARY_PATH, unless there is a DT_RUNPATH, which it asks after.
    pub fn rpath(&self) -> Option<String> {
        if self.tag(DT_RUNPATH).is_some() {
            return None;
        }
        self.dynamic_texts(DT_RPATH).pop()
    }

    /// The symbol table and its strings: `.dynsym`, or `.symtab` of an object file.
    fn symbol_table(&self) -> Result<Option<(Window<'_>, Window<'_>)>> {
        if let (Some(mut symbols), Some(strings)) = (self.part(DT_SYMTAB), self.dynamic_strings()) {
            symbols.size = symbols
                .size
                .min(self.dynamic_symbol_count()?.saturating_mul(SYMBOL_SIZE));
            return Ok(Some((symbols, strings)));
        }
        let Some(section) = self.sections.iter().find(|section| section.kind == SHT_SYMTAB) else {
            return Ok(None);
        };
        let strings = self
            .sections
            .get(section.link as usize)
            .ok_or(Error::Malformed("its symbol table has no strings"))?;
        Ok(Some((
            Window::new(&self.file, section.offset, section.size),
            Window::new(&self.file, strings.offset, strings.size),
        )))
    }

    /// How many symbols `.dynsym` has. Only hash tables and section headers know.
    fn dynamic_symbol_count(&self) -> Result<u64> {
        let by_address = self.tag(DT_SYMTAB).and_then(|address| self.at_address(address));
        let section = self
            .sections
            .iter()
            .find(|section| by_address.is_some_and(|(offset, _)| section.offset == offset && section.size > 0));
        if let Some(section) = section {
            return Ok((section.size / SYMBOL_SIZE).min(MAX_ENTRIES));
        }
        if let Some(hash) = self.part(DT_HASH) {
            return Ok(number::<4>(&hash.record::<8>(0)?, 4).min(MAX_ENTRIES));
        }
        match self.part(DT_GNU_HASH) {
            Some(hash) => gnu_hash_count(&hash),
            // Without a hash table nothing is exported; linkers place the strings after the symbols.
            None => {
                let (symbols, strings) = (self.tag(DT_SYMTAB), self.tag(DT_STRTAB));
                let bytes = symbols.zip(strings).and_then(|(a, b)| b.checked_sub(a));
                Ok((bytes.unwrap_or(0) / SYMBOL_SIZE).min(MAX_ENTRIES))
            }
        }
    }

    /// The undefined symbols whose name `wanted` accepts, sorted.
    ///
    /// # Errors
    /// When a table is damaged.
    pub fn imports(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Import>> {
        let versions = self.needed_versions()?;
        let mut found = Vec::new();
        self.each_symbol(|name, symbol, index| {
            if symbol.defined || symbol.binding == 0 || !wanted(&name) {
                return;
            }
            found.push(Import {
                version: index.and_then(|index| versions.get(&(index & 0x7fff)).cloned()),
                weak: symbol.binding == 2,
                name,
            });
        })?;
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// The defined global symbols whose name `wanted` accepts, sorted.
    ///
    /// # Errors
    /// When a table is damaged.
    pub fn exports(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Export>> {
        let nodes = self.defined_versions()?;
        let mut found = Vec::new();
        self.each_symbol(|name, symbol, index| {
            // Version 0 is local to the file.
            let hidden = symbol.binding == 0 || !symbol.visible || index == Some(0);
            if !symbol.defined || hidden || !wanted(&name) {
                return;
            }
            found.push(Export {
                node: index.and_then(|index| nodes.get(&(index & 0x7fff)).cloned()),
                default: index.is_none_or(|index| index & 0x8000 == 0),
                name,
            });
        })?;
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Walks the symbol table: name, symbol, and index of its version.
    fn each_symbol(&self, mut visit: impl FnMut(String, Symbol, Option<u16>)) -> Result<()> {
        let Some((symbols, strings)) = self.symbol_table()? else {
            return Ok(());
        };
        let versions = self.part(DT_VERSYM);
        for index in 1..symbols.size / SYMBOL_SIZE {
            let entry: [u8; SYMBOL_SIZE as usize] = symbols.record(index * SYMBOL_SIZE)?;
            let symbol = Symbol {
                binding: entry[4] >> 4,
                visible: matches!(entry[5] & 3, 0 | 3),
                defined: number::<2>(&entry, 6) != 0,
            };
            let name = strings.text(number::<4>(&entry, 0))?;
            let version = match &versions {
                Some(table) => Some(number::<2>(&table.record::<2>(index * 2)?, 0) as u16),
                None => None,
            };
            visit(name, symbol, version);
        }
        Ok(())
    }

    /// The versions that it needs, by index.
    ///
    /// ```text
    /// need      0 u16 1 | 2 u16 number of versions | 4 u32 -> file name | 8 u32 to the versions | 12 u32 to the next need
    /// version   0 u32 hash | 4 u16 flags | 6 u16 index | 8 u32 -> node name | 12 u32 to the next version
    /// ```
    fn needed_versions(&self) -> Result<HashMap<u16, Version>> {
        let mut versions = HashMap::new();
        let (Some(table), Some(strings)) = (self.part(DT_VERNEED), self.dynamic_strings()) else {
            return Ok(versions);
        };
        let mut budget = MAX_ENTRIES.min(1 << 16);
        let mut at = 0;
        for _ in 0..self.tag(DT_VERNEEDNUM).unwrap_or(0) {
            let need: [u8; 16] = table.record(at)?;
            let file = strings.text(number::<4>(&need, 4))?;
            let mut inner = at + number::<4>(&need, 8);
            for _ in 0..number::<2>(&need, 2) {
                // The chains of a damaged file may be endless.
                budget = budget
                    .checked_sub(1)
                    .ok_or(Error::Malformed("implausibly many version needs"))?;
                let version: [u8; 16] = table.record(inner)?;
                let node = strings.text(number::<4>(&version, 8))?;
                let file = file.clone();
                versions.insert(number::<2>(&version, 6) as u16 & 0x7fff, Version { node, file });
                match number::<4>(&version, 12) {
                    0 => break,
                    next => inner += next,
                }
            }
            budget = budget
                .checked_sub(1)
                .ok_or(Error::Malformed("implausibly many version needs"))?;
            match number::<4>(&need, 12) {
                0 => break,
                next => at += next,
            }
        }
        Ok(versions)
    }

    /// The versions that it defines, by index, without that of the file itself (index 1).
    ///
    /// ```text
    /// definition  0 u16 1 | 2 u16 flags | 4 u16 index | 6 u16 names | 8 u32 hash | 12 u32 to the names | 16 u32 to the next
    /// name        0 u32 -> node name | 4 u32 to the next
    /// ```
    fn defined_versions(&self) -> Result<HashMap<u16, String>> {
        let mut nodes = HashMap::new();
        let (Some(table), Some(strings)) = (self.part(DT_VERDEF), self.dynamic_strings()) else {
            return Ok(nodes);
        };
        let mut at = 0;
        for _ in 0..self.tag(DT_VERDEFNUM).unwrap_or(0).min(1 << 16) {
            let definition: [u8; 20] = table.record(at)?;
            let index = number::<2>(&definition, 4) as u16 & 0x7fff;
            let name: [u8; 8] = table.record(at + number::<4>(&definition, 12))?;
            if index > 1 {
                nodes.insert(index, strings.text(number::<4>(&name, 0))?);
            }
            match number::<4>(&definition, 16) {
                0 => break,
                next => at += next,
            }
        }
        Ok(nodes)
    }
}

/// What matters of a symbol.
struct Symbol {
    /// `STB_*`: 0 local, 1 global, 2 weak.
    binding: u8,
    /// Other files see it.
    visible: bool,
    defined: bool,
}

/// How many symbols a GNU hash table knows of: one more than the last of its longest chain.
///
/// ```text
/// 0 u32 buckets | 4 u32 first symbol | 8 u32 bloom words | 12 u32 shift | bloom u64... | buckets u32... | chains u32...
/// ```
fn gnu_hash_count(table: &Window<'_>) -> Result<u64> {
    let header: [u8; 16] = table.record(0)?;
    let (buckets, first) = (number::<4>(&header, 0), number::<4>(&header, 4));
    let bucket_table = 16 + number::<4>(&header, 8) * 8;
    let mut last = 0;
    for bucket in 0..buckets.min(MAX_ENTRIES) {
        last = last.max(number::<4>(&table.record::<4>(bucket_table + bucket * 4)?, 0));
    }
    // No symbol is exported: all that there are come before the first hashed one.
    let Some(mut chain) = last.checked_sub(first).filter(|_| last != 0) else {
        return Ok(first.min(MAX_ENTRIES));
    };
    let chains = bucket_table + buckets * 4;
    while number::<4>(&table.record::<4>(chains + chain * 4)?, 0) & 1 == 0 && chain < MAX_ENTRIES {
        chain += 1;
    }
    Ok((first + chain + 1).min(MAX_ENTRIES))
}
