//! What an element of an array is: one, two or four channels of one type.

use crate::abi::{CUarray_format, Error, Result, cudaChannelFormatDesc, cudaChannelFormatKind};

type Driver = CUarray_format;
type Runtime = cudaChannelFormatKind;

/// What the bits of a channel mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Numeric {
    /// An unsigned integer.
    Unsigned,
    /// A signed integer.
    Signed,
    /// IEEE half or single precision.
    Float,
}

/// The type of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// CUDA's name for it.
    pub name: CUarray_format,
    /// Channels: 1, 2 or 4.
    pub channels: u32,
    /// Bytes of a channel: 1, 2 or 4.
    pub channel_size: u32,
    /// What a channel holds.
    pub numeric: Numeric,
    /// Integers that are always read as fractions, whatever the reader asks for.
    pub normalized: bool,
}

/// A driver's format: its name, the runtime's, bytes of a channel, meaning, and for normalized formats the number of channels.
type Row = (Driver, Runtime, u32, Numeric, Option<u32>);

const ROWS: &[Row] = &[
    (Driver::UNSIGNED_INT8, Runtime::UNSIGNED, 1, Numeric::Unsigned, None),
    (Driver::UNSIGNED_INT16, Runtime::UNSIGNED, 2, Numeric::Unsigned, None),
    (Driver::UNSIGNED_INT32, Runtime::UNSIGNED, 4, Numeric::Unsigned, None),
    (Driver::SIGNED_INT8, Runtime::SIGNED, 1, Numeric::Signed, None),
    (Driver::SIGNED_INT16, Runtime::SIGNED, 2, Numeric::Signed, None),
    (Driver::SIGNED_INT32, Runtime::SIGNED, 4, Numeric::Signed, None),
    (Driver::HALF, Runtime::FLOAT, 2, Numeric::Float, None),
    (Driver::FLOAT, Runtime::FLOAT, 4, Numeric::Float, None),
    (
        Driver::UNORM_INT8X1,
        Runtime::UNSIGNED_NORMALIZED8_X1,
        1,
        Numeric::Unsigned,
        Some(1),
    ),
    (
        Driver::UNORM_INT8X2,
        Runtime::UNSIGNED_NORMALIZED8_X2,
        1,
        Numeric::Unsigned,
        Some(2),
    ),
    (
        Driver::UNORM_INT8X4,
        Runtime::UNSIGNED_NORMALIZED8_X4,
        1,
        Numeric::Unsigned,
        Some(4),
    ),
    (
        Driver::UNORM_INT16X1,
        Runtime::UNSIGNED_NORMALIZED16_X1,
        2,
        Numeric::Unsigned,
        Some(1),
    ),
    (
        Driver::UNORM_INT16X2,
        Runtime::UNSIGNED_NORMALIZED16_X2,
        2,
        Numeric::Unsigned,
        Some(2),
    ),
    (
        Driver::UNORM_INT16X4,
        Runtime::UNSIGNED_NORMALIZED16_X4,
        2,
        Numeric::Unsigned,
        Some(4),
    ),
    (
        Driver::SNORM_INT8X1,
        Runtime::SIGNED_NORMALIZED8_X1,
        1,
        Numeric::Signed,
        Some(1),
    ),
    (
        Driver::SNORM_INT8X2,
        Runtime::SIGNED_NORMALIZED8_X2,
        1,
        Numeric::Signed,
        Some(2),
    ),
    (
        Driver::SNORM_INT8X4,
        Runtime::SIGNED_NORMALIZED8_X4,
        1,
        Numeric::Signed,
        Some(4),
    ),
    (
        Driver::SNORM_INT16X1,
        Runtime::SIGNED_NORMALIZED16_X1,
        2,
        Numeric::Signed,
        Some(1),
    ),
    (
        Driver::SNORM_INT16X2,
        Runtime::SIGNED_NORMALIZED16_X2,
        2,
        Numeric::Signed,
        Some(2),
    ),
    (
        Driver::SNORM_INT16X4,
        Runtime::SIGNED_NORMALIZED16_X4,
        2,
        Numeric::Signed,
        Some(4),
    ),
];

/// Formats that CUDA has and this has not: compressed in blocks of 4 by 4, or several channels in a word. The driver's numbers, the
/// runtime's kinds in the same order, and the bits of the channels by which the runtime knows them.
const REFUSED: &[(core::ops::RangeInclusive<i32>, core::ops::RangeInclusive<i32>, [i32; 4])] = &[
    // BC1, BC2 and BC3, each also as sRGB.
    (0x91..=0x96, 17..=22, [8, 8, 8, 8]),
    // BC4 and BC5, each also signed.
    (0x97..=0x98, 23..=24, [8, 0, 0, 0]),
    (0x99..=0x9a, 25..=26, [8, 8, 0, 0]),
    // BC6H, unsigned and signed.
    (0x9b..=0x9c, 27..=28, [16, 16, 16, 0]),
    // BC7, also as sRGB.
    (0x9d..=0x9e, 29..=30, [8, 8, 8, 8]),
    // Ten bits of three colours and two bits of a fourth channel.
    (0x50..=0x50, 31..=31, [10, 10, 10, 2]),
];

fn refused() -> Error {
    log::warn!("arrays of compressed and packed formats are not supported");
    Error::NOT_SUPPORTED
}

impl Format {
    /// A format of the driver API.
    ///
    /// # Errors
    /// INVALID_VALUE for an unknown format, for planar ones (recorded), and for three, none or more than four channels; NOT_SUPPORTED for
    /// compressed and packed formats.
    pub fn new(name: CUarray_format, channels: u32) -> Result<Self> {
        let has = |bits: &[i32; 4]| bits.iter().filter(|&&bits| bits != 0).count() == channels as usize;
        if REFUSED
            .iter()
            .any(|(names, _, bits)| names.contains(&name.0) && has(bits))
        {
            return Err(refused());
        }
        let row = ROWS.iter().find(|row| row.0 == name).ok_or(Error::INVALID_VALUE)?;
        let channels_fit = match row.4 {
            Some(fixed) => channels == fixed,
            None => matches!(channels, 1 | 2 | 4),
        };
        if channels_fit {
            Ok(Self::of(row, channels))
        } else {
            Err(Error::INVALID_VALUE)
        }
    }

    /// A format of the runtime API: the bits of each channel, and what they mean.
    ///
    /// # Errors
    /// INVALID_CHANNEL_DESCRIPTOR for channels of different sizes, with gaps, three of them, or of a size that the kind does not have;
    /// INVALID_VALUE and NOT_SUPPORTED as [`Format::new`].
    pub fn from_runtime(desc: &cudaChannelFormatDesc) -> Result<Self> {
        let bits = [desc.x, desc.y, desc.z, desc.w];
        if REFUSED
            .iter()
            .any(|(_, kinds, of)| kinds.contains(&desc.f.0) && *of == bits)
        {
            return Err(refused());
        }
        if desc.f == Runtime::NV12 && bits == [8, 8, 8, 0] {
            return Err(Error::INVALID_VALUE);
        }
        let channels = bits.iter().take_while(|&&bits| bits != 0).count();
        let even =
            bits[..channels].iter().all(|&bits| bits == desc.x) && bits[channels..].iter().all(|&bits| bits == 0);
        let row = ROWS.iter().find(|row| {
            row.1 == desc.f && row.2 as i32 * 8 == desc.x && row.4.is_none_or(|fixed| fixed as usize == channels)
        });
        match row {
            Some(row) if even && matches!(channels, 1 | 2 | 4) => Ok(Self::of(row, channels as u32)),
            _ => Err(Error::INVALID_CHANNEL_DESCRIPTOR),
        }
    }

    fn of(row: &Row, channels: u32) -> Self {
        Self {
            name: row.0,
            channels,
            channel_size: row.2,
            numeric: row.3,
            normalized: row.4.is_some(),
        }
    }

    /// As the runtime describes it.
    pub fn runtime(&self) -> cudaChannelFormatDesc {
        let bits = |channel| {
            if channel < self.channels {
                self.channel_size.cast_signed() * 8
            } else {
                0
            }
        };
        let f = ROWS
            .iter()
            .find(|row| row.0 == self.name)
            .map_or(Runtime::NONE, |row| row.1);
        cudaChannelFormatDesc {
            x: bits(0),
            y: bits(1),
            z: bits(2),
            w: bits(3),
            f,
        }
    }

    /// Bytes of an element: a power of two up to 16.
    pub fn element_size(&self) -> u64 {
        u64::from(self.channels * self.channel_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desc(bits: [i32; 4], f: Runtime) -> cudaChannelFormatDesc {
        let [x, y, z, w] = bits;
        cudaChannelFormatDesc { x, y, z, w, f }
    }

    #[test]
    fn both_apis_describe_the_same_formats() {
        for row in ROWS {
            for channels in [1, 2, 4] {
                let Ok(format) = Format::new(row.0, channels) else {
                    assert!(row.4.is_some_and(|fixed| fixed != channels));
                    continue;
                };
                assert_eq!(Format::from_runtime(&format.runtime()), Ok(format));
            }
        }
    }

    #[test]
    fn channels_are_of_one_size_and_one_two_or_four() {
        let refused = [
            [8, 8, 8, 0],
            [0, 0, 0, 0],
            [0, 32, 0, 0],
            [32, 0, 32, 0],
            [32, 16, 0, 0],
            [7, 0, 0, 0],
            [64, 0, 0, 0],
        ];
        for bits in refused {
            let result = Format::from_runtime(&desc(bits, Runtime::UNSIGNED));
            assert_eq!(result, Err(Error::INVALID_CHANNEL_DESCRIPTOR), "{bits:?}");
        }
        assert_eq!(
            Format::from_runtime(&desc([8, 0, 0, 0], Runtime::FLOAT)),
            Err(Error::INVALID_CHANNEL_DESCRIPTOR)
        );
        for channels in [0, 3, 5] {
            assert_eq!(Format::new(Driver::FLOAT, channels), Err(Error::INVALID_VALUE));
        }
        assert_eq!(Format::new(CUarray_format(4), 1), Err(Error::INVALID_VALUE));
        assert_eq!(Format::new(Driver::BC1_UNORM, 4), Err(Error::NOT_SUPPORTED));
        assert_eq!(Format::new(Driver::BC1_UNORM, 3), Err(Error::INVALID_VALUE));
    }

    #[test]
    fn elements_are_powers_of_two() {
        assert_eq!(Format::new(Driver::FLOAT, 4).map(|f| f.element_size()), Ok(16));
        assert_eq!(Format::new(Driver::HALF, 2).map(|f| f.element_size()), Ok(4));
        assert_eq!(Format::new(Driver::UNORM_INT8X2, 2).map(|f| f.element_size()), Ok(2));
    }
}
