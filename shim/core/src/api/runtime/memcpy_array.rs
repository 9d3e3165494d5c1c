//! Memory Management: copies to, from and between CUDA arrays, of rows and of runs of bytes.

use core::ffi::c_void;
use std::sync::Arc;

use super::memcpy::own;
use super::stream::resolve;
use crate::abi::{Error, Result, cudaArray_t, cudaMemcpyKind, cudaStream_t};
use crate::api::driver::{ACROSS, DOWN, Known, UNIFIED, UP, transfer};
use crate::memory::array::{self, Array};
use crate::stream::Stream;
use crate::stream::spans::{Extent, Side};
use crate::streamed;

/// What one side of a copy is: an array, from a byte and a row on, or memory with a pitch.
#[derive(Clone)]
enum Place {
    Array { array: Arc<Array>, x: u64, y: u64 },
    Memory { address: u64, pitch: u64 },
}

impl Place {
    fn array(handle: cudaArray_t, x: usize, y: usize) -> Result<Self> {
        Ok(Self::Array {
            array: array::get(handle as u64)?,
            x: x as u64,
            y: y as u64,
        })
    }

    fn side(&self, extent: &Extent) -> Result<Side> {
        match self {
            Self::Array { array, x, y } => array.side([*x, *y, 0], extent),
            Self::Memory { address, pitch } if extent.width <= *pitch => Ok(Side::boxed(*address, *pitch, 0)),
            Self::Memory { .. } if extent.height > 1 => Err(Error::INVALID_PITCH_VALUE),
            Self::Memory { .. } => Err(Error::INVALID_VALUE),
        }
    }

    /// How many bytes of a run fit its present row; all, in memory.
    fn room(&self) -> u64 {
        match self {
            Self::Array { array, x, .. } => array.row_bytes().saturating_sub(*x),
            Self::Memory { .. } => u64::MAX,
        }
    }

    /// Bytes of a row, where it is at the beginning of one; memory is whatever the other side is.
    fn whole_row(&self) -> Option<u64> {
        match self {
            Self::Array { array, x: 0, .. } => Some(array.row_bytes()),
            Self::Array { .. } => None,
            Self::Memory { pitch, .. } => Some(*pitch),
        }
    }

    /// Goes on by `rows` rows of `width` bytes.
    fn advance(&mut self, width: u64, rows: u64) {
        match self {
            Self::Array { array, x, y } => {
                *x += width;
                if *x == array.row_bytes() {
                    (*x, *y) = (0, *y + rows);
                }
            }
            Self::Memory { address, .. } => *address = address.wrapping_add(width.wrapping_mul(rows)),
        }
    }
}

/// The three kinds of copies with arrays.
#[derive(Clone, Copy)]
enum Direction {
    To,
    From,
    Between,
}

impl Direction {
    /// Which sides a kind asserts to be known. As recorded, the kind must fit the call.
    fn known(self, kind: cudaMemcpyKind) -> Result<Known> {
        match (self, kind.0) {
            (_, 4) => Ok(UNIFIED),
            (Self::To, 1) => Ok(UP),
            (Self::From, 2) => Ok(DOWN),
            (_, 3) => Ok(ACROSS),
            _ => Err(Error::INVALID_MEMCPY_DIRECTION),
        }
    }

    /// As [`Direction::known`] in the calls for runs, which do nothing for a kind that there is not (recorded).
    fn known_of_run(self, kind: cudaMemcpyKind) -> Result<Option<Known>> {
        match kind.0 {
            0..=4 => self.known(kind).map(Some),
            _ => Ok(None),
        }
    }
}

/// Copies `height` rows of `width` bytes. Nothing is looked at when there are none.
fn rows(
    stream: &Stream,
    (dst, src): (Result<Place>, Result<Place>),
    (width, height): (usize, usize),
    known: Result<Known>,
    wait: bool,
) -> Result<()> {
    let extent = Extent {
        width: width as u64,
        height: height as u64,
        depth: 1,
    };
    if extent.is_empty() {
        return Ok(());
    }
    let (known, dst, src) = (known?, dst?, src?);
    transfer(stream, &dst.side(&extent)?, &src.side(&extent)?, &extent, known, wait)
}

/// Copies a run of bytes that goes on in the next row, as NVIDIA's runtime does it: the rest of a row, whole rows, the beginning of one.
/// What comes before a part that is refused has been copied (recorded).
fn run(
    stream: &Stream,
    (dst, src): (Result<Place>, Result<Place>),
    count: usize,
    known: Result<Option<Known>>,
    wait: bool,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let Some(known) = known? else { return Ok(()) };
    let (mut dst, mut src) = (dst?, src?);
    // Memory is packed: its rows are as long as the array's.
    let row = [&dst, &src]
        .into_iter()
        .find_map(|place| match place {
            Place::Array { array, .. } => Some(array.row_bytes()),
            Place::Memory { .. } => None,
        })
        .unwrap_or(count as u64);
    for place in [&mut dst, &mut src] {
        if let Place::Memory { pitch, .. } = place {
            *pitch = row;
        }
    }
    let mut left = count as u64;
    while left > 0 {
        for place in [&mut dst, &mut src] {
            // An offset of a whole row begins in the next.
            place.advance(0, 1);
        }
        let both_whole = dst.whole_row().is_some() && dst.whole_row() == src.whole_row();
        let (width, height) = if both_whole && left >= row {
            (row, left / row)
        } else {
            (left.min(dst.room()).min(src.room()), 1)
        };
        if width == 0 {
            return Err(Error::INVALID_VALUE);
        }
        let extent = Extent {
            width,
            height,
            depth: 1,
        };
        transfer(stream, &dst.side(&extent)?, &src.side(&extent)?, &extent, known, wait)?;
        dst.advance(width, height);
        src.advance(width, height);
        left -= width * height;
    }
    Ok(())
}

fn memory(address: *const c_void, pitch: usize) -> Result<Place> {
    Ok(Place::Memory {
        address: address as u64,
        pitch: pitch as u64,
    })
}

streamed! { runtime
    /// CUDA Runtime API, Memory Management: `cudaMemcpy2DToArray`.
    fn cudaMemcpy2DToArray(
        dst: cudaArray_t, x: usize, y: usize, src: *const c_void, pitch: usize, width: usize, height: usize, kind: cudaMemcpyKind,
    ), fn cudaMemcpy2DToArray_ptds(..) |default| {
        let sides = (Place::array(dst, x, y), memory(src, pitch));
        rows(&*own(default)?, sides, (width, height), Direction::To.known(kind), true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy2DToArrayAsync`.
    fn cudaMemcpy2DToArrayAsync(
        dst: cudaArray_t, x: usize, y: usize, src: *const c_void, pitch: usize, width: usize, height: usize, kind: cudaMemcpyKind,
        stream: cudaStream_t,
    ), fn cudaMemcpy2DToArrayAsync_ptsz(..) |default| {
        let sides = (Place::array(dst, x, y), memory(src, pitch));
        rows(&*resolve(stream, default)?, sides, (width, height), Direction::To.known(kind), false)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy2DFromArray`.
    fn cudaMemcpy2DFromArray(
        dst: *mut c_void, pitch: usize, src: cudaArray_t, x: usize, y: usize, width: usize, height: usize, kind: cudaMemcpyKind,
    ), fn cudaMemcpy2DFromArray_ptds(..) |default| {
        let sides = (memory(dst, pitch), Place::array(src, x, y));
        rows(&*own(default)?, sides, (width, height), Direction::From.known(kind), true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy2DFromArrayAsync`.
    fn cudaMemcpy2DFromArrayAsync(
        dst: *mut c_void, pitch: usize, src: cudaArray_t, x: usize, y: usize, width: usize, height: usize, kind: cudaMemcpyKind,
        stream: cudaStream_t,
    ), fn cudaMemcpy2DFromArrayAsync_ptsz(..) |default| {
        let sides = (memory(dst, pitch), Place::array(src, x, y));
        rows(&*resolve(stream, default)?, sides, (width, height), Direction::From.known(kind), false)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpy2DArrayToArray`.
    fn cudaMemcpy2DArrayToArray(
        dst: cudaArray_t, x: usize, y: usize, src: cudaArray_t, src_x: usize, src_y: usize, width: usize, height: usize,
        kind: cudaMemcpyKind,
    ), fn cudaMemcpy2DArrayToArray_ptds(..) |default| {
        let sides = (Place::array(dst, x, y), Place::array(src, src_x, src_y));
        rows(&*own(default)?, sides, (width, height), Direction::Between.known(kind), true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyToArray`.
    fn cudaMemcpyToArray(
        dst: cudaArray_t, x: usize, y: usize, src: *const c_void, count: usize, kind: cudaMemcpyKind,
    ), fn cudaMemcpyToArray_ptds(..) |default| {
        let sides = (Place::array(dst, x, y), memory(src, 0));
        run(&*own(default)?, sides, count, Direction::To.known_of_run(kind), true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyToArrayAsync`.
    fn cudaMemcpyToArrayAsync(
        dst: cudaArray_t, x: usize, y: usize, src: *const c_void, count: usize, kind: cudaMemcpyKind, stream: cudaStream_t,
    ), fn cudaMemcpyToArrayAsync_ptsz(..) |default| {
        let sides = (Place::array(dst, x, y), memory(src, 0));
        run(&*resolve(stream, default)?, sides, count, Direction::To.known_of_run(kind), false)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyFromArray`.
    fn cudaMemcpyFromArray(
        dst: *mut c_void, src: cudaArray_t, x: usize, y: usize, count: usize, kind: cudaMemcpyKind,
    ), fn cudaMemcpyFromArray_ptds(..) |default| {
        let sides = (memory(dst, 0), Place::array(src, x, y));
        run(&*own(default)?, sides, count, Direction::From.known_of_run(kind), true)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyFromArrayAsync`.
    fn cudaMemcpyFromArrayAsync(
        dst: *mut c_void, src: cudaArray_t, x: usize, y: usize, count: usize, kind: cudaMemcpyKind, stream: cudaStream_t,
    ), fn cudaMemcpyFromArrayAsync_ptsz(..) |default| {
        let sides = (memory(dst, 0), Place::array(src, x, y));
        run(&*resolve(stream, default)?, sides, count, Direction::From.known_of_run(kind), false)
    }

    /// CUDA Runtime API, Memory Management: `cudaMemcpyArrayToArray`.
    fn cudaMemcpyArrayToArray(
        dst: cudaArray_t, x: usize, y: usize, src: cudaArray_t, src_x: usize, src_y: usize, count: usize, kind: cudaMemcpyKind,
    ), fn cudaMemcpyArrayToArray_ptds(..) |default| {
        let sides = (Place::array(dst, x, y), Place::array(src, src_x, src_y));
        run(&*own(default)?, sides, count, Direction::Between.known_of_run(kind), true)
    }
}
