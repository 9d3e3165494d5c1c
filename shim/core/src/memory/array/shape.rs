//! Extents of arrays, and which of them go with which flags.
//!
//! ```text
//!                 width  height   depth        flags
//! 1D              > 0    0        0
//! 2D              > 0    > 0      0
//! 3D              > 0    > 0      > 0
//! 1D layered      > 0    0        layers       LAYERED
//! 2D layered      > 0    > 0      layers       LAYERED
//! cubemap         > 0    = width  6            CUBEMAP
//! cubemap layered > 0    = width  6 * layers   CUBEMAP | LAYERED
//! ```
//! (CUDA Driver API, Memory Management: `cuArray3DCreate`, where the largest extents are device attributes.)

use crate::abi::{CUdevice_attribute as Attribute, Error, Result};

/// `CUDA_ARRAY3D_LAYERED`: the depth counts layers.
pub const LAYERED: u32 = 1;
/// `CUDA_ARRAY3D_SURFACE_LDST`: surface objects may use it.
pub const SURFACE: u32 = 2;
/// `CUDA_ARRAY3D_CUBEMAP`: the depth counts faces.
pub const CUBEMAP: u32 = 4;
/// `CUDA_ARRAY3D_TEXTURE_GATHER`: for `tld4`.
pub const GATHER: u32 = 8;
/// `CUDA_ARRAY3D_SPARSE` and `CUDA_ARRAY3D_DEFERRED_MAPPING`, one of them: memory that is mapped later.
const SPARSE: u32 = 0x40;
const DEFERRED: u32 = 0x80;
/// `CUDA_ARRAY3D_VIDEO_ENCODE_DECODE`: without effect here, and not for layers (recorded).
const VIDEO: u32 = 0x100;

/// How coordinates select an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dimensions {
    /// A row.
    One,
    /// Rows.
    Two,
    /// Slices of rows.
    Three,
    /// Rows that are addressed by number.
    OneLayered,
    /// Slices that are addressed by number.
    TwoLayered,
    /// Six square slices.
    Cubemap,
    /// Groups of six.
    CubemapLayered,
}

/// Extents in elements as the application gave them, and flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Elements of a row.
    pub width: u64,
    /// Rows of a slice; 0 without that dimension.
    pub height: u64,
    /// Slices, layers or faces; 0 without that dimension.
    pub depth: u64,
    /// `CUDA_ARRAY3D_*`.
    pub flags: u32,
    /// What the extents and flags say together.
    pub dimensions: Dimensions,
}

impl Shape {
    /// Checks extents and flags; `limit` gives a device's attributes.
    ///
    /// # Errors
    /// INVALID_VALUE for combinations and sizes that no array has, NOT_SUPPORTED for sparse arrays and deferred mappings.
    pub fn new([width, height, depth]: [u64; 3], flags: u32, limit: impl Fn(Attribute) -> u64) -> Result<Self> {
        let known = LAYERED | SURFACE | CUBEMAP | GATHER | SPARSE | DEFERRED | VIDEO;
        let both = SPARSE | DEFERRED;
        let video_layers = flags & VIDEO != 0 && flags & (LAYERED | CUBEMAP) != 0;
        if flags & !known != 0 || flags & both == both || video_layers || width == 0 {
            return Err(Error::INVALID_VALUE);
        }
        let dimensions = match (flags & (LAYERED | CUBEMAP), height, depth) {
            (0, 0, 0) => Dimensions::One,
            (0, 1.., 0) => Dimensions::Two,
            (0, 1.., 1..) => Dimensions::Three,
            (LAYERED, 0, 1..) => Dimensions::OneLayered,
            (LAYERED, 1.., 1..) => Dimensions::TwoLayered,
            (CUBEMAP, _, 6) if width == height => Dimensions::Cubemap,
            (flags, _, 6..) if flags == CUBEMAP | LAYERED && width == height && depth % 6 == 0 => {
                Dimensions::CubemapLayered
            }
            _ => return Err(Error::INVALID_VALUE),
        };
        let needs_two = flags & GATHER != 0 && dimensions != Dimensions::Two;
        let needs_more = flags & SPARSE != 0 && matches!(dimensions, Dimensions::One | Dimensions::OneLayered);
        if needs_two || needs_more {
            return Err(Error::INVALID_VALUE);
        }
        if flags & both != 0 {
            log::warn!("arrays whose memory is mapped later are not supported");
            return Err(Error::NOT_SUPPORTED);
        }
        let shape = Self {
            width,
            height,
            depth,
            flags,
            dimensions,
        };
        if shape.limits().iter().any(|limits| shape.fits(limits, &limit)) {
            Ok(shape)
        } else {
            Err(Error::INVALID_VALUE)
        }
    }

    /// As [`Shape::new`], of a mipmapped array's first level.
    ///
    /// # Errors
    /// As [`Shape::new`]; rows and planes have limits of their own.
    pub fn mipmapped(extents: [u64; 3], flags: u32, limit: impl Fn(Attribute) -> u64) -> Result<Self> {
        let shape = Self::new(extents, flags, &limit)?;
        let limits: &[Attribute] = match shape.dimensions {
            Dimensions::One => &[Attribute::MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH],
            Dimensions::Two => &[
                Attribute::MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH,
                Attribute::MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT,
            ],
            _ => &[],
        };
        if shape.fits(limits, &limit) {
            Ok(shape)
        } else {
            Err(Error::INVALID_VALUE)
        }
    }

    fn fits(&self, limits: &[Attribute], limit: impl Fn(Attribute) -> u64) -> bool {
        let extents = [self.width, self.height, self.depth];
        // A layered row has no height, and its second limit is that of the layers.
        let given = extents.iter().filter(|&&extent| extent != 0);
        given
            .zip(limits)
            .all(|(&extent, &attribute)| extent <= limit(attribute))
    }

    /// The attributes that bound the extents: it must be within one of the lists.
    fn limits(&self) -> &'static [&'static [Attribute]] {
        type A = Attribute;
        match (self.dimensions, self.flags & SURFACE != 0) {
            (Dimensions::One, false) => &[&[A::MAXIMUM_TEXTURE1D_WIDTH]],
            (Dimensions::One, true) => &[&[A::MAXIMUM_SURFACE1D_WIDTH]],
            (Dimensions::Two, _) if self.flags & GATHER != 0 => {
                &[&[A::MAXIMUM_TEXTURE2D_GATHER_WIDTH, A::MAXIMUM_TEXTURE2D_GATHER_HEIGHT]]
            }
            (Dimensions::Two, false) => &[&[A::MAXIMUM_TEXTURE2D_WIDTH, A::MAXIMUM_TEXTURE2D_HEIGHT]],
            (Dimensions::Two, true) => &[&[A::MAXIMUM_SURFACE2D_WIDTH, A::MAXIMUM_SURFACE2D_HEIGHT]],
            (Dimensions::Three, false) => &[
                &[
                    A::MAXIMUM_TEXTURE3D_WIDTH,
                    A::MAXIMUM_TEXTURE3D_HEIGHT,
                    A::MAXIMUM_TEXTURE3D_DEPTH,
                ],
                &[
                    A::MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
                    A::MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
                    A::MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE,
                ],
            ],
            (Dimensions::Three, true) => &[&[
                A::MAXIMUM_SURFACE3D_WIDTH,
                A::MAXIMUM_SURFACE3D_HEIGHT,
                A::MAXIMUM_SURFACE3D_DEPTH,
            ]],
            (Dimensions::OneLayered, false) => {
                &[&[A::MAXIMUM_TEXTURE1D_LAYERED_WIDTH, A::MAXIMUM_TEXTURE1D_LAYERED_LAYERS]]
            }
            (Dimensions::OneLayered, true) => {
                &[&[A::MAXIMUM_SURFACE1D_LAYERED_WIDTH, A::MAXIMUM_SURFACE1D_LAYERED_LAYERS]]
            }
            (Dimensions::TwoLayered, false) => &[&[
                A::MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
                A::MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
                A::MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
            ]],
            (Dimensions::TwoLayered, true) => &[&[
                A::MAXIMUM_SURFACE2D_LAYERED_WIDTH,
                A::MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
                A::MAXIMUM_SURFACE2D_LAYERED_LAYERS,
            ]],
            (Dimensions::Cubemap, false) => &[&[A::MAXIMUM_TEXTURECUBEMAP_WIDTH]],
            (Dimensions::Cubemap, true) => &[&[A::MAXIMUM_SURFACECUBEMAP_WIDTH]],
            (Dimensions::CubemapLayered, false) => &[&[
                A::MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
                A::MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
                A::MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS,
            ]],
            (Dimensions::CubemapLayered, true) => &[&[
                A::MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
                A::MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
                A::MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS,
            ]],
        }
    }

    /// Whether the depth is that of space, and not a number of layers or faces.
    fn is_deep(&self) -> bool {
        self.dimensions == Dimensions::Three
    }

    /// Rows of a slice that have memory.
    pub fn rows(&self) -> u64 {
        self.height.max(1)
    }

    /// Slices that have memory.
    pub fn slices(&self) -> u64 {
        self.depth.max(1)
    }

    /// Elements in all; `None` when the number does not fit.
    pub fn elements(&self) -> Option<u64> {
        self.width.checked_mul(self.rows())?.checked_mul(self.slices())
    }

    /// Levels down to one element: what a mipmapped array has at most.
    pub fn levels(&self) -> u32 {
        let depth = if self.is_deep() { self.depth } else { 0 };
        self.width.max(self.height).max(depth).ilog2() + 1
    }

    /// A level of a mipmapped array: half the extents per level, rounded down, and never less than one. Layers and faces stay.
    pub fn level(&self, level: u32) -> Self {
        let halved = |extent: u64| if extent == 0 { 0 } else { (extent >> level).max(1) };
        Self {
            width: halved(self.width),
            height: halved(self.height),
            depth: if self.is_deep() { halved(self.depth) } else { self.depth },
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded limits that the tests touch.
    fn limit(attribute: Attribute) -> u64 {
        match attribute {
            Attribute::MAXIMUM_TEXTURE1D_WIDTH | Attribute::MAXIMUM_TEXTURE2D_WIDTH => 131_072,
            Attribute::MAXIMUM_TEXTURE2D_HEIGHT => 65_536,
            Attribute::MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE | Attribute::MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE => 8192,
            Attribute::MAXIMUM_TEXTURE3D_WIDTH
            | Attribute::MAXIMUM_TEXTURE3D_HEIGHT
            | Attribute::MAXIMUM_TEXTURE3D_DEPTH => 16_384,
            Attribute::MAXIMUM_TEXTURE1D_LAYERED_LAYERS => 2048,
            _ => 32_768,
        }
    }

    fn shape(extents: [u64; 3], flags: u32) -> Result<Shape> {
        Shape::new(extents, flags, limit)
    }

    #[test]
    fn extents_and_flags_say_what_an_array_is() {
        let dimensions = |extents, flags| shape(extents, flags).map(|shape| shape.dimensions);
        assert_eq!(dimensions([8, 0, 0], 0), Ok(Dimensions::One));
        assert_eq!(dimensions([8, 8, 0], GATHER), Ok(Dimensions::Two));
        assert_eq!(dimensions([8, 8, 8], SURFACE), Ok(Dimensions::Three));
        assert_eq!(dimensions([8, 0, 8], LAYERED), Ok(Dimensions::OneLayered));
        assert_eq!(dimensions([8, 4, 8], LAYERED), Ok(Dimensions::TwoLayered));
        assert_eq!(dimensions([8, 8, 6], CUBEMAP), Ok(Dimensions::Cubemap));
        assert_eq!(
            dimensions([8, 8, 12], CUBEMAP | LAYERED),
            Ok(Dimensions::CubemapLayered)
        );
        for (extents, flags) in [
            ([0, 8, 0], 0),
            ([8, 0, 8], 0),
            ([8, 8, 0], LAYERED),
            ([8, 4, 6], CUBEMAP),
            ([8, 8, 7], CUBEMAP),
            ([8, 8, 7], CUBEMAP | LAYERED),
            ([8, 8, 8], GATHER),
            ([8, 0, 0], 0x200),
            ([8, 0, 0], 0x20),
            ([8, 0, 0], 0x40),
            ([8, 8, 0], 0xc0),
            ([8, 8, 8], VIDEO | LAYERED),
        ] {
            assert_eq!(
                dimensions(extents, flags),
                Err(Error::INVALID_VALUE),
                "{extents:?}, {flags}"
            );
        }
        assert_eq!(dimensions([8, 8, 0], 0x40), Err(Error::NOT_SUPPORTED));
    }

    #[test]
    fn extents_end_at_the_devices_limits() {
        assert!(shape([131_072, 65_536, 0], 0).is_ok());
        assert!(shape([131_073, 1, 0], 0).is_err());
        assert!(shape([1, 65_537, 0], 0).is_err());
        assert!(shape([16_384, 16_384, 16_384], 0).is_ok());
        assert!(shape([16_384, 16_384, 32_768], 0).is_err());
        assert!(shape([8192, 8192, 32_768], 0).is_ok(), "the alternate limits");
        assert!(shape([1, 0, 2048], LAYERED).is_ok());
        assert!(
            shape([1, 0, 2049], LAYERED).is_err(),
            "layers, where there is no height"
        );
    }

    #[test]
    fn mipmapped_arrays_have_limits_of_their_own() {
        assert!(Shape::mipmapped([32_768, 1, 0], 0, limit).is_ok());
        assert!(Shape::mipmapped([32_769, 1, 0], 0, limit).is_err());
        assert!(Shape::mipmapped([32_769, 0, 0], 0, limit).is_err());
        assert!(Shape::mipmapped([9, 5, 3], 0, limit).is_ok());
    }

    #[test]
    fn levels_halve_space_but_not_layers() {
        let deep = shape([9, 5, 3], 0).unwrap();
        assert_eq!(deep.levels(), 4);
        let extents = |shape: Shape| [shape.width, shape.height, shape.depth];
        assert_eq!(extents(deep.level(1)), [4, 2, 1]);
        assert_eq!(extents(deep.level(3)), [1, 1, 1]);
        let layered = shape([8, 0, 100], LAYERED).unwrap();
        assert_eq!(layered.levels(), 4);
        assert_eq!(extents(layered.level(3)), [1, 0, 100]);
    }
}
