//! Two- and three-dimensional transfers as lists of contiguous spans.
//!
//! ```text
//!          <----- pitch ----->
//! slice 0  [width bytes |.....]  row 0      a slice holds `slice_height` rows,
//!          [width bytes |.....]  row 1      of which `height` are copied
//!          ...
//! slice 1  starts pitch * slice_height bytes further on
//! ```

use crate::abi::{Error, Result};

/// One side of a transfer: where the first byte is and how far rows and slices lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Address of the first byte that takes part.
    pub start: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// Rows from one slice to the next.
    pub slice_height: u64,
    /// The handle of the CUDA array that the bytes are in, or 0 for memory that has addresses.
    pub array: u64,
}

/// How much is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
}

/// A contiguous piece of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Destination address.
    pub dst: u64,
    /// Source address.
    pub src: u64,
    /// Bytes.
    pub len: u64,
}

impl Side {
    /// A run of bytes from `start`.
    pub fn at(start: u64) -> Self {
        Self::boxed(start, 0, 0)
    }

    /// Rows of memory, `pitch` bytes apart, and slices, `slice_height` rows apart.
    pub fn boxed(start: u64, pitch: u64, slice_height: u64) -> Self {
        Self {
            start,
            pitch,
            slice_height,
            array: 0,
        }
    }

    /// Bytes from the first byte to the end of the last one that takes part.
    ///
    /// # Errors
    /// INVALID_VALUE when the address arithmetic overflows.
    pub fn reach(&self, extent: &Extent) -> Result<u64> {
        if extent.is_empty() {
            return Ok(0);
        }
        let slices = self
            .pitch
            .checked_mul(self.slice_height)
            .and_then(|s| s.checked_mul(extent.depth - 1));
        let rows = self.pitch.checked_mul(extent.height - 1);
        slices
            .zip(rows)
            .and_then(|(s, r)| s.checked_add(r)?.checked_add(extent.width))
            .filter(|reach| self.start.checked_add(*reach).is_some())
            .ok_or(Error::INVALID_VALUE)
    }

    fn row(&self, y: u64, z: u64) -> u64 {
        self.start + (z * self.slice_height + y) * self.pitch
    }
}

impl Extent {
    /// A run of `width` bytes.
    pub fn linear(width: u64) -> Self {
        Self {
            width,
            height: 1,
            depth: 1,
        }
    }

    /// No byte is transferred.
    pub fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }
}

/// The spans of a transfer, neighbours on both sides joined. Both sides' [`Side::reach`] must have been checked.
pub fn spans(dst: &Side, src: &Side, extent: &Extent) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    if extent.is_empty() {
        return out;
    }
    for z in 0..extent.depth {
        for y in 0..extent.height {
            let next = Span {
                dst: dst.row(y, z),
                src: src.row(y, z),
                len: extent.width,
            };
            match out.last_mut() {
                Some(last) if last.dst + last.len == next.dst && last.src + last.len == next.src => {
                    last.len += next.len
                }
                _ => out.push(next),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gapless_transfers_are_one_span() {
        let extent = Extent {
            width: 64,
            height: 4,
            depth: 3,
        };
        let side = |start| Side::boxed(start, 64, 4);
        assert_eq!(
            spans(&side(1 << 20), &side(1 << 16), &extent),
            [Span {
                dst: 1 << 20,
                src: 1 << 16,
                len: 64 * 12
            }]
        );
    }

    #[test]
    fn every_byte_is_copied_to_its_place() {
        let extent = Extent {
            width: 5,
            height: 3,
            depth: 2,
        };
        let dst = Side::boxed(7, 9, 4);
        let src = Side::boxed(1, 6, 3);
        let source: Vec<u8> = (0..200).collect();
        let mut expected = vec![0u8; 200];
        for z in 0..2 {
            for y in 0..3 {
                for x in 0..5 {
                    expected[7 + (z * 4 + y) * 9 + x] = source[1 + (z * 3 + y) * 6 + x];
                }
            }
        }
        let mut found = vec![0u8; 200];
        for span in spans(&dst, &src, &extent) {
            let (d, s, n) = (span.dst as usize, span.src as usize, span.len as usize);
            found[d..d + n].copy_from_slice(&source[s..s + n]);
        }
        assert_eq!(found, expected);
        assert_eq!(dst.reach(&extent), Ok((4 + 2) * 9 + 5));
    }

    #[test]
    fn empty_and_overflowing_extents() {
        let side = Side::boxed(1 << 40, u64::MAX / 2, 3);
        assert_eq!(
            side.reach(&Extent {
                width: 1,
                height: 9,
                depth: 9
            }),
            Err(Error::INVALID_VALUE)
        );
        assert_eq!(
            side.reach(&Extent {
                width: 0,
                height: 9,
                depth: 9
            }),
            Ok(0)
        );
        assert!(
            spans(
                &side,
                &side,
                &Extent {
                    width: 8,
                    height: 0,
                    depth: 1
                }
            )
            .is_empty()
        );
    }
}
