//! Decompression, bounded.

use std::io::Read;

use crate::{Error, MAX_PAYLOAD};

/// One LZ4 block of known size.
pub fn lz4(compressed: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    // A block grows at most 255-fold: a size beyond that is a lie, and nothing is allocated for it.
    if size > MAX_PAYLOAD || size > compressed.len() as u64 * 255 + 64 {
        return Err(Error::TooLarge);
    }
    let bytes = lz4_flex::block::decompress(compressed, size as usize).map_err(|_| Error::Compression)?;
    if bytes.len() as u64 == size {
        Ok(bytes)
    } else {
        Err(Error::Compression)
    }
}

/// One zstd frame of known size.
pub fn zstd(compressed: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    if size > MAX_PAYLOAD {
        return Err(Error::TooLarge);
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(compressed).map_err(|_| Error::Compression)?;
    // Grown as it comes, and stopped one byte past what was declared.
    let mut bytes = Vec::new();
    decoder
        .take(size + 1)
        .read_to_end(&mut bytes)
        .map_err(|_| Error::Compression)?;
    if bytes.len() as u64 == size {
        Ok(bytes)
    } else {
        Err(Error::Compression)
    }
}
