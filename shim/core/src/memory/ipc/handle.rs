//! The bytes of a `cudaIpcMemHandle_t`.

use crate::abi::{Error, Result};
use crate::hsa::IpcHandle;

/// Bytes of a `cudaIpcMemHandle_t`.
pub const HANDLE_SIZE: usize = 64;

/// A decoded handle.
///
/// ```text
///  0..32  ROCr's handle of the block
/// 32..40  where the exporter has published it (`published.rs`)
/// 40..48  size of the memory as requested, which address range queries of importers give
/// 48..56  identity of the exporting process, so that it knows its own handles
/// 56..60  "RGI2"
/// 60..64  checksum of the bytes before: a handle that was cut or mixed up is refused without asking anybody
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    pub block: IpcHandle,
    pub slot: u64,
    pub size: u64,
    pub exporter: u64,
}

const MAGIC: [u8; 4] = *b"RGI2";

impl Handle {
    /// The bytes that travel.
    pub fn encode(&self) -> [u8; HANDLE_SIZE] {
        let mut bytes = [0; HANDLE_SIZE];
        for (to, from) in bytes.chunks_exact_mut(4).zip(self.block.0) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        bytes[32..40].copy_from_slice(&self.slot.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.size.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.exporter.to_le_bytes());
        seal(&mut bytes, MAGIC);
        bytes
    }

    /// Reads a handle; [`Error::INVALID_VALUE`] for bytes that [`Handle::encode`] did not make. Whoever can compute a checksum
    /// can make others: what counts is that the exporter has published them.
    pub fn decode(bytes: &[u8; HANDLE_SIZE]) -> Result<Self> {
        if !is_sealed(bytes, MAGIC) {
            return Err(Error::INVALID_VALUE);
        }
        let handle = Self {
            block: IpcHandle(core::array::from_fn(|index| word(bytes, index * 4))),
            slot: long(bytes, 32),
            size: long(bytes, 40),
            exporter: long(bytes, 48),
        };
        if handle.size == 0 || handle.size > 1 << 47 {
            return Err(Error::INVALID_VALUE);
        }
        Ok(handle)
    }
}

/// Ends 64 bytes with what they are and a checksum.
pub(crate) fn seal(bytes: &mut [u8; 64], magic: [u8; 4]) {
    bytes[56..60].copy_from_slice(&magic);
    let sum = checksum(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
}

/// Whether 64 bytes end as [`seal`] does.
pub(crate) fn is_sealed(bytes: &[u8; 64], magic: [u8; 4]) -> bool {
    bytes[56..60] == magic && word(bytes, 60) == checksum(&bytes[..60])
}

fn word(bytes: &[u8; 64], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The 64-bit number at `at`.
pub(crate) fn long(bytes: &[u8; 64], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// FNV-1a, 32 bits.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Handle {
        Handle {
            block: IpcHandle([1, 2, 3, 4, 5, 6, 0x8000_0007, 8]),
            slot: 3,
            size: 4_194_305,
            exporter: 0x0123_4567_89ab_cdef,
        }
    }

    #[test]
    fn a_handle_survives_its_journey() {
        assert_eq!(Handle::decode(&sample().encode()), Ok(sample()));
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let good = sample().encode();
        for index in 0..HANDLE_SIZE {
            for flip in [1u8, 0x80, 0xff] {
                let mut bad = good;
                bad[index] ^= flip;
                assert_eq!(
                    Handle::decode(&bad),
                    Err(Error::INVALID_VALUE),
                    "byte {index} with {flip:#x} flipped"
                );
            }
        }
    }

    #[test]
    fn bytes_that_are_no_handle_are_refused() {
        for bytes in [[0; HANDLE_SIZE], [0xff; HANDLE_SIZE], [0xaa; HANDLE_SIZE]] {
            assert_eq!(Handle::decode(&bytes), Err(Error::INVALID_VALUE));
        }
        for size in [0, (1 << 47) + 1, u64::MAX] {
            let handle = Handle { size, ..sample() };
            assert_eq!(
                Handle::decode(&handle.encode()),
                Err(Error::INVALID_VALUE),
                "{handle:?}"
            );
        }
    }
}
