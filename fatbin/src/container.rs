//! Containers and their entries.

use std::borrow::Cow;

use crate::{CONTAINER_MAGIC, ENTRY_SIZE, Error, HEADER_SIZE, container_size, payload, u16_at, u32_at, u64_at};

/// Bits of an entry's flags.
pub mod flags {
    /// 64-bit code.
    pub const ADDRESS_64: u64 = 0x1;
    /// Compiled for debugging.
    pub const DEBUG: u64 = 0x2;
    /// For Linux hosts.
    pub const LINUX: u64 = 0x10;
    /// The payload is an LZ4 block.
    pub const LZ4: u64 = 0x2000;
    /// The payload is a zstd frame.
    pub const ZSTD: u64 = 0x8000;
    /// For exactly this architecture (`sm_90a`).
    pub const ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
    /// For this architecture's family (`sm_100f`).
    pub const FAMILY_SPECIFIC: u64 = 0x20_0000;
}

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// PTX text, ending in a NUL.
    Ptx,
    /// A cubin: an ELF file of NVIDIA machine code.
    Cubin,
    /// Intermediate code for link-time optimisation.
    LtoIr,
    /// What `-concat` of the 13.x tools writes around other entries.
    Group,
    /// Another kind, by its number.
    Other(u16),
}

/// One entry of a container.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'b> {
    /// What it holds.
    pub kind: Kind,
    /// Architecture: 80 for `sm_80` or `compute_80`.
    pub arch: u32,
    /// Version: of PTX for PTX.
    pub version: (u16, u16),
    /// [`flags`].
    pub flags: u64,
    /// Compile options recorded with PTX, such as `--generate-line-info`; empty for none.
    pub options: &'b [u8],
    /// Name of the source file or identifier, if recorded.
    pub name: &'b [u8],
    /// Bytes of the payload as stored, its padding included.
    stored: &'b [u8],
    compressed_size: u32,
    uncompressed_size: u64,
}

impl<'b> Entry<'b> {
    /// `a` for `sm_90a`, `f` for `sm_100f`: code for that architecture or family only.
    pub fn variant(&self) -> Option<char> {
        match self.flags {
            f if f & flags::ARCHITECTURE_SPECIFIC != 0 => Some('a'),
            f if f & flags::FAMILY_SPECIFIC != 0 => Some('f'),
            _ => None,
        }
    }

    /// `sm_90a`.
    pub fn architecture(&self) -> String {
        format!(
            "sm_{}{}",
            self.arch,
            self.variant().map(String::from).unwrap_or_default()
        )
    }

    /// Bytes in the file.
    pub fn stored_size(&self) -> usize {
        self.stored.len()
    }

    /// `raw`, `lz4` or `zstd`.
    pub fn compression(&self) -> &'static str {
        match self.flags {
            f if f & flags::LZ4 != 0 => "lz4",
            f if f & flags::ZSTD != 0 => "zstd",
            _ => "raw",
        }
    }

    /// The payload, decompressed. PTX still has its final NUL; what is stored raw has its padding too.
    pub fn payload(&self) -> Result<Cow<'b, [u8]>, Error> {
        // LTO-IR carries the zstd flag but is in a format of its own.
        if self.kind == Kind::LtoIr || self.flags & (flags::LZ4 | flags::ZSTD) == 0 {
            return Ok(Cow::Borrowed(self.stored));
        }
        // The padding belongs to neither format: exactly the compressed bytes are decompressed.
        let compressed = self
            .stored
            .get(..self.compressed_size as usize)
            .ok_or(Error::Truncated)?;
        let decompress = if self.flags & flags::LZ4 != 0 {
            payload::lz4
        } else {
            payload::zstd
        };
        decompress(compressed, self.uncompressed_size).map(Cow::Owned)
    }

    /// The text of a PTX entry without what follows its NUL.
    pub fn ptx(&self) -> Result<Vec<u8>, Error> {
        let mut text = self.payload()?.into_owned();
        if let Some(end) = text.iter().position(|&b| b == 0) {
            text.truncate(end);
        }
        Ok(text)
    }
}

/// Iterates over the entries of a container; ends after its first error.
#[derive(Clone, Debug)]
pub struct Entries<'b> {
    rest: &'b [u8],
}

/// The entries of the container that `bytes` begins with.
pub fn entries(bytes: &[u8]) -> Result<Entries<'_>, Error> {
    let size = container_size(bytes)?;
    Ok(Entries {
        rest: bytes.get(HEADER_SIZE..size).ok_or(Error::Truncated)?,
    })
}

impl<'b> Entry<'b> {
    /// The entry that `bytes` begins with, which may end before its payload does, and the sizes of its header and of its
    /// payload: for tools that step through a large file without reading payloads. Where the payload ends past `bytes`,
    /// the entry has none.
    pub fn header(bytes: &'b [u8]) -> Result<(Self, usize, usize), Error> {
        Self::read(bytes, false)
    }

    fn read(rest: &'b [u8], whole: bool) -> Result<(Self, usize, usize), Error> {
        let fixed = rest.get(..ENTRY_SIZE).ok_or(Error::Truncated)?;
        let u32 = |at| u32_at(fixed, at).ok_or(Error::Truncated);
        let u64 = |at| u64_at(fixed, at).ok_or(Error::Truncated);
        let u16 = |at| u16_at(fixed, at).ok_or(Error::Truncated);
        let header_size = u32(4)? as usize;
        if header_size < ENTRY_SIZE {
            return Err(Error::Version);
        }
        let header = rest.get(..header_size).ok_or(Error::Truncated)?;
        let payload_size = usize::try_from(u64(8)?).map_err(|_| Error::TooLarge)?;
        let end = header_size.checked_add(payload_size).ok_or(Error::TooLarge)?;
        let stored = match rest.get(header_size..end) {
            Some(stored) => stored,
            None if whole => return Err(Error::Truncated),
            None => &[],
        };

        let part = |offset: u32, length: u32| {
            let start = offset as usize;
            header
                .get(start..start.saturating_add(length as usize))
                .unwrap_or_default()
        };
        // For machine code the same field leads to something else.
        let options_at = if u16(0)? == 1 { u32(20)? } else { 0 };
        let options = match (
            options_at,
            u32_at(header, options_at as usize),
            u32_at(header, options_at as usize + 4),
        ) {
            (1.., Some(offset), Some(length)) => part(offset, length),
            _ => &[],
        };
        let entry = Self {
            kind: match u16(0)? {
                1 => Kind::Ptx,
                2 => Kind::Cubin,
                8 => Kind::LtoIr,
                0x100 => Kind::Group,
                other => Kind::Other(other),
            },
            arch: u32(28)?,
            version: (u16(26)?, u16(24)?),
            flags: u64(40)?,
            options: options.strip_suffix(b"\0").unwrap_or(options),
            name: part(u32(32)?, u32(36)?),
            stored,
            compressed_size: u32(16)?,
            uncompressed_size: u64(56)?,
        };
        Ok((entry, header_size, payload_size))
    }
}

impl<'b> Entries<'b> {
    fn read(&mut self) -> Result<Entry<'b>, Error> {
        let (entry, header_size, payload_size) = Entry::read(self.rest, true)?;
        self.rest = &self.rest[header_size + payload_size..];
        Ok(entry)
    }
}

impl<'b> Iterator for Entries<'b> {
    type Item = Result<Entry<'b>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        // The end of a container may be padded with zeros.
        if self.rest.len() < ENTRY_SIZE && self.rest.iter().all(|&b| b == 0) {
            return None;
        }
        let entry = self.read();
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

/// The containers in the bytes of a section: they are 8-aligned, with padding between, and may be empty. One that
/// reaches past the end is left out.
pub fn containers(section: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0usize;
    std::iter::from_fn(move || {
        while let Some(rest) = section.get(at..).filter(|r| r.len() >= HEADER_SIZE) {
            let container = container_size(rest).ok().and_then(|size| rest.get(..size));
            match container {
                Some(container) if u32_at(rest, 0) == Some(CONTAINER_MAGIC) => {
                    at += container.len().next_multiple_of(8);
                    return Some(container);
                }
                _ => at += 8,
            }
        }
        None
    })
}
