//! What a texture or surface object is to a kernel: the address of a descriptor in device memory.
//!
//! GPUs of gfx940 and later have no image instructions, so a kernel samples by code (`lower/runtime/texture.ll`), which
//! finds here all that it must know. Little-endian; levels follow the head, each 32 bytes:
//!
//! ```text
//!  0 u32 format    0-1 log2 of a channel's bytes, 2-3 log2 of the channels, 4-5 meaning (0 unsigned, 1 signed, 2 float),
//!                  6 integers are read as fractions
//!  4 u32 sampling  0-1, 2-3, 4-5 address modes (CUDA's numbers), 6 linear filter, 7 normalized coordinates,
//!                  8 linear filter between levels, 9 linear memory: one dimension, by element only
//!  8 f32 level bias   12 f32 least level   16 f32 greatest level   20 u32 levels
//! 24 u32 layers    or faces; 0 without
//! 28 u32 width     32 u32 height     36 u32 depth: what `txq` and `suq` say, 0 without that dimension
//! 40 unused        48 f32 x 4 border
//! 64 level: 0 u64 first element   8 u32 width   12 u32 height   16 u32 depth, each 1 at least   20 u32 bytes of a row
//!           24 u64 bytes of a slice
//! ```
//!
//! A descriptor of zeroes has levels without extent: every fetch is outside.

/// Bytes of a descriptor: its head and the levels of the largest array.
pub const SIZE: usize = HEAD + LEVEL * MOST_LEVELS;
const HEAD: usize = 64;
const LEVEL: usize = 32;
/// 131072 elements, halved down to one.
pub const MOST_LEVELS: usize = 18;

/// What the bits of a channel mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// An unsigned integer.
    Unsigned = 0,
    /// A signed integer.
    Signed = 1,
    /// IEEE half or single precision.
    Float = 2,
}

/// What an element is, and what is read of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bytes of a channel: 1, 2 or 4.
    pub channel_size: u32,
    /// Channels: 1, 2 or 4.
    pub channels: u32,
    /// What a channel holds.
    pub meaning: Meaning,
    /// Integers are read as fractions of their largest value.
    pub fraction: bool,
}

/// How coordinates become elements.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sampling {
    /// CUDA's address modes: wrap, clamp, mirror, border.
    pub address_modes: [u32; 3],
    /// Elements around are mixed.
    pub linear: bool,
    /// Coordinates go from 0 to 1.
    pub normalized: bool,
    /// Levels around are mixed.
    pub linear_levels: bool,
    /// Linear memory: fetched by element, and float coordinates find nothing.
    pub by_element: bool,
    /// Added to a level.
    pub bias: f32,
    /// Bounds of a level.
    pub levels: [f32; 2],
    /// What lies outside, in border mode.
    pub border: [f32; 4],
}

/// One level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Address of the first element.
    pub base: u64,
    /// Width, height and depth (or layers) in elements; 1 where the dimension is missing.
    pub extents: [u32; 3],
    /// Bytes from row to row.
    pub pitch: u32,
}

/// A descriptor.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// What an element is.
    pub format: Format,
    /// How it is found.
    pub sampling: Sampling,
    /// Layers, or faces of cubes; 0 without.
    pub layers: u32,
    /// Width, height and depth as queries give them.
    pub extents: [u32; 3],
    /// The levels, at least one.
    pub levels: Vec<Level>,
}

impl Format {
    fn word(&self) -> u32 {
        self.channel_size.trailing_zeros()
            | self.channels.trailing_zeros() << 2
            | (self.meaning as u32) << 4
            | u32::from(self.fraction) << 6
    }
}

impl Sampling {
    fn word(&self) -> u32 {
        let flags = [self.linear, self.normalized, self.linear_levels, self.by_element];
        let modes = self
            .address_modes
            .iter()
            .rev()
            .fold(0, |word, mode| word << 2 | mode & 3);
        let flags = flags.iter().rev().fold(0, |word, &flag| word << 1 | u32::from(flag));
        modes | flags << 6
    }
}

impl Descriptor {
    /// The bytes that kernels read. Levels beyond [`MOST_LEVELS`] are left out.
    pub fn bytes(&self) -> Vec<u8> {
        let levels = &self.levels[..self.levels.len().min(MOST_LEVELS)];
        let mut words = vec![self.format.word(), self.sampling.word()];
        let [least, greatest] = self.sampling.levels;
        words.extend([self.sampling.bias, least, greatest].map(f32::to_bits));
        words.extend([levels.len() as u32, self.layers]);
        words.extend(self.extents);
        words.extend([0, 0]);
        words.extend(self.sampling.border.map(f32::to_bits));
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for level in levels {
            let [width, height, depth] = level.extents;
            bytes.extend(level.base.to_le_bytes());
            bytes.extend(
                [width, height, depth, level.pitch]
                    .iter()
                    .flat_map(|word| word.to_le_bytes()),
            );
            bytes.extend((u64::from(level.pitch) * u64::from(height)).to_le_bytes());
        }
        bytes.resize(SIZE, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_where_the_drawing_says() {
        let descriptor = Descriptor {
            format: Format {
                channel_size: 2,
                channels: 4,
                meaning: Meaning::Float,
                fraction: true,
            },
            sampling: Sampling {
                address_modes: [3, 1, 2],
                normalized: true,
                border: [0.0, 0.0, 0.0, 1.0],
                ..Sampling::default()
            },
            layers: 5,
            extents: [7, 8, 0],
            levels: vec![
                Level {
                    base: 0x1234_5678_9000,
                    extents: [7, 8, 1],
                    pitch: 56,
                };
                2
            ],
        };
        let bytes = descriptor.bytes();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(bytes.len(), SIZE);
        assert_eq!(word(0), 1 | 2 << 2 | 2 << 4 | 1 << 6);
        assert_eq!(word(4), 3 | 1 << 2 | 2 << 4 | 1 << 7);
        assert_eq!([word(20), word(24), word(28), word(32), word(36)], [2, 5, 7, 8, 0]);
        assert_eq!(word(60), 1f32.to_bits());
        assert_eq!([word(96), word(100)], [0x5678_9000, 0x1234]);
        assert_eq!(
            [word(104), word(108), word(112), word(116), word(120)],
            [7, 8, 1, 56, 448]
        );
    }
}
