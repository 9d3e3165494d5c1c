//! A writer of containers, for tests.

use crate::{CONTAINER_MAGIC, ENTRY_SIZE, HEADER_SIZE, flags};

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    Raw,
    /// An LZ4 block.
    Lz4,
    /// A zstd frame.
    Zstd,
}

/// An entry to write.
#[derive(Clone, Debug)]
pub struct Image<'b> {
    /// Number of the kind: 1 PTX, 2 cubin.
    pub kind: u16,
    /// Architecture.
    pub arch: u32,
    /// Version of PTX.
    pub version: (u16, u16),
    /// Flags besides those of the compression.
    pub flags: u64,
    /// Compile options.
    pub options: &'b str,
    /// The payload; PTX should end in a NUL.
    pub payload: &'b [u8],
    /// How to store it.
    pub compression: Compression,
}

impl<'b> Image<'b> {
    /// PTX for an architecture.
    pub fn ptx(arch: u32, text: &'b [u8]) -> Self {
        let flags = flags::ADDRESS_64 | flags::LINUX;
        Self {
            kind: 1,
            arch,
            version: (8, 5),
            flags,
            options: "",
            payload: text,
            compression: Compression::Raw,
        }
    }

    /// The same, compressed.
    pub fn compressed(self, compression: Compression) -> Self {
        Self { compression, ..self }
    }
}

/// Writes a container of these entries.
pub fn container(images: &[Image<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_SIZE];
    for image in images {
        entry(&mut bytes, image);
    }
    let size = (bytes.len() - HEADER_SIZE) as u64;
    bytes[..4].copy_from_slice(&CONTAINER_MAGIC.to_le_bytes());
    bytes[4..6].copy_from_slice(&1u16.to_le_bytes());
    bytes[6..8].copy_from_slice(&(HEADER_SIZE as u16).to_le_bytes());
    bytes[8..16].copy_from_slice(&size.to_le_bytes());
    bytes
}

fn entry(bytes: &mut Vec<u8>, image: &Image<'_>) {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let (stored, flag) = match image.compression {
        Compression::Raw => (image.payload.to_vec(), 0),
        Compression::Lz4 => (lz4_flex::block::compress(image.payload), flags::LZ4),
        Compression::Zstd => (compress_to_vec(image.payload, CompressionLevel::Fastest), flags::ZSTD),
    };
    let compressed = if flag == 0 { 0 } else { stored.len() as u32 };
    let uncompressed = if flag == 0 { 0 } else { image.payload.len() as u64 };
    // The options and where they are come after the fixed part, as nvcc 13 writes them.
    let options_text = ENTRY_SIZE + 8;
    let header_size = (options_text + image.options.len()).next_multiple_of(8);
    let padded = stored.len().next_multiple_of(8);
    let start = bytes.len();
    let mut put = |field: &[u8]| bytes.extend_from_slice(field);
    put(&image.kind.to_le_bytes());
    put(&0x101u16.to_le_bytes());
    put(&(header_size as u32).to_le_bytes());
    put(&(padded as u64).to_le_bytes());
    put(&compressed.to_le_bytes());
    put(&(ENTRY_SIZE as u32).to_le_bytes());
    put(&image.version.1.to_le_bytes());
    put(&image.version.0.to_le_bytes());
    put(&image.arch.to_le_bytes());
    put(&0u64.to_le_bytes());
    put(&(image.flags | flag).to_le_bytes());
    put(&0u64.to_le_bytes());
    put(&uncompressed.to_le_bytes());
    put(&(options_text as u32).to_le_bytes());
    put(&(image.options.len() as u32).to_le_bytes());
    put(image.options.as_bytes());
    bytes.resize(start + header_size, 0);
    bytes.extend_from_slice(&stored);
    bytes.resize(start + header_size + padded, 0);
}
