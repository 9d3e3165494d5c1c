//! Reader (and, for tests, writer) of CUDA fat binaries.
//!
//! nvcc puts the device code of a program into *containers* in the section `.nv_fatbin` (`__nv_relfatbin` for
//! relocatable device code); a *wrapper* in `.nvFatBinSegment` points to each. A container is a list of *entries*: PTX
//! text or machine code (a cubin) for one architecture, raw, as an LZ4 block or as a zstd frame.
//!
//! ```text
//! wrapper    0 u32 0x466243b1 | 4 u32 version | 8 -> container | 16 version 1: -> file name or 0
//!                                                                   version 2: -> prelinked containers, ending in 0
//! container  0 u32 0xba55ed50 | 4 u16 version 1 | 6 u16 header size 16 | 8 u64 bytes of entries | entries
//! entry      0 u16 kind | 2 u16 version | 4 u32 header size | 8 u64 padded payload | 16 u32 compressed size, 0: raw
//!           20 u32 options offset | 24 u16 minor | 26 u16 major | 28 u32 architecture | 32 u32 name offset
//!           36 u32 name length | 40 u64 flags | 48 u64 0 | 56 u64 uncompressed size | 64 options, names | payload
//! options    0 u32 offset in the entry | 4 u32 length
//! ```
//!
//! The layout was read from the output of nvcc 12.4, 13.0 and 13.5, of clang 19 and from NCCL, NVSHMEM, CuPy and
//! PyTorch. Every size is checked against the bytes at hand; the only unchecked reads are in [`memory`], whose
//! functions are unsafe and say so.

mod container;
pub mod elf;
pub mod memory;
mod payload;
mod select;
pub mod write;

pub use container::{Entries, Entry, Kind, containers, entries, flags};
pub use select::{Choice, choose_ptx};

/// Magic of a wrapper.
pub const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// Magic of a container.
pub const CONTAINER_MAGIC: u32 = 0xba55_ed50;
/// Bytes of a container's header.
pub const HEADER_SIZE: usize = 16;
/// Bytes of the part of an entry's header that is always there.
pub const ENTRY_SIZE: usize = 64;
/// Largest container that is believed.
pub const MAX_CONTAINER: u64 = 4 << 30;
/// Largest payload that is decompressed.
pub const MAX_PAYLOAD: u64 = 1 << 30;

/// What is wrong with a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes do not begin with the magic of what they should be.
    Magic,
    /// A version or header size that nobody has seen.
    Version,
    /// Something reaches past the end of the bytes.
    Truncated,
    /// A size is past this crate's limits.
    TooLarge,
    /// A compressed payload does not decompress to the size it declares.
    Compression,
    /// A null pointer where there must be none.
    Null,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Magic => "wrong magic number",
            Self::Version => "unknown version or header size",
            Self::Truncated => "it ends too early",
            Self::TooLarge => "a size in it is implausibly large",
            Self::Compression => "a compressed part does not decompress",
            Self::Null => "a pointer in it is null",
        })
    }
}

impl std::error::Error for Error {}

/// Size in bytes of a whole container, header included, from its first 16 bytes.
pub fn container_size(header: &[u8]) -> Result<usize, Error> {
    let header: &[u8; HEADER_SIZE] = header.first_chunk().ok_or(Error::Truncated)?;
    if u32_at(header, 0) != Some(CONTAINER_MAGIC) {
        return Err(Error::Magic);
    }
    if u16_at(header, 4) != Some(1) || u16_at(header, 6) != Some(HEADER_SIZE as u16) {
        return Err(Error::Version);
    }
    let size = u64_at(header, 8)
        .filter(|&size| size <= MAX_CONTAINER)
        .ok_or(Error::TooLarge)?;
    Ok(HEADER_SIZE + size as usize)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
