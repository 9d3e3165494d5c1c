//! From what an application says of an object to what kernels read: every check is made here.

use kernels_ptx_translate::texture::{self, Descriptor, Level, Meaning};

use super::{Resource, Sampling, View};
use crate::abi::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER,
    CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUaddress_mode, CUarray_format, CUdevice_attribute as Attribute,
    CUfilter_mode, CUresourceViewFormat as ViewFormat, Error, Result,
};
use crate::device::{Context, attributes};
use crate::memory::array::{self, Array, CUBEMAP, Dimensions, Format, Numeric};
use crate::memory::{lookup, pointer};

/// Bits that the driver takes, whether they mean something or not (recorded).
const KNOWN_FLAGS: u32 = CU_TRSF_READ_AS_INTEGER
    | CU_TRSF_NORMALIZED_COORDINATES
    | 0xc
    | CU_TRSF_SRGB
    | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
    | CU_TRSF_SEAMLESS_CUBEMAP;

fn limit(context: &Context, attribute: Attribute) -> u64 {
    attributes::get(context.device, attribute.0).map_or(0, |value| value.max(0).cast_unsigned().into())
}

fn require(holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::INVALID_VALUE) }
}

/// The descriptor of a texture.
///
/// # Errors
/// As [`super::create`].
pub fn texture(
    context: &'static Context,
    resource: &Resource,
    sampling: &Sampling,
    view: Option<&View>,
) -> Result<Descriptor> {
    let mut descriptor = match *resource {
        Resource::Array(handle) => of_array(&*array::get(handle)?, sampling, view)?,
        Resource::Mipmapped(handle) => {
            let mipmapped = array::mipmapped(handle)?;
            let all = mipmapped.levels();
            let first = all.first().ok_or(Error::INVALID_RESOURCE_HANDLE)?;
            let mut descriptor = of_array(
                first,
                sampling,
                view.map(|view| View {
                    levels: [0; 2],
                    ..*view
                })
                .as_ref(),
            )?;
            let [from, to] = view.map_or([0, all.len() as u32 - 1], |view| view.levels);
            let levels = all.get(from as usize..=to as usize).filter(|levels| !levels.is_empty());
            let levels = levels.ok_or(Error::INVALID_VALUE)?;
            descriptor.levels = levels.iter().map(|array| level(array, view)).collect();
            descriptor
        }
        Resource::Linear { address, format, size } => {
            check_memory(context, address, &format)?;
            let count = size / format.element_size();
            require(count <= (1 << 30).min((1 << 32) / format.element_size()))?;
            of_memory(sampled(&format, sampling, address)?, sampling, [count as u32, 0], 1, 0)
        }
        Resource::Pitched {
            address,
            format,
            width,
            height,
            pitch,
        } => {
            check_memory(context, address, &format)?;
            let within = |value, attribute| value <= limit(context, attribute);
            require(pitch.is_multiple_of(limit(context, Attribute::TEXTURE_PITCH_ALIGNMENT).max(1)))?;
            require(within(width, Attribute::MAXIMUM_TEXTURE2D_LINEAR_WIDTH))?;
            require(within(height, Attribute::MAXIMUM_TEXTURE2D_LINEAR_HEIGHT))?;
            require(within(pitch, Attribute::MAXIMUM_TEXTURE2D_LINEAR_PITCH))?;
            let (width, rows) = (width as u32, height as u32);
            of_memory(
                sampled(&format, sampling, address)?,
                sampling,
                [width, rows],
                rows,
                pitch as u32,
            )
        }
    };
    check_sampling(sampling, resource)?;
    descriptor.sampling.by_element = matches!(resource, Resource::Linear { .. });
    Ok(descriptor)
}

/// The descriptor of a surface.
pub fn surface(array: &Array) -> Descriptor {
    Descriptor {
        format: format(&array.format, false),
        sampling: texture::Sampling::default(),
        layers: layers(array, None),
        extents: extents(array).map(|extent| extent as u32),
        levels: vec![level(array, None)],
    }
}

fn check_sampling(sampling: &Sampling, resource: &Resource) -> Result<()> {
    let filters = CUfilter_mode::POINT.0..=CUfilter_mode::LINEAR.0;
    let modes = CUaddress_mode::WRAP.0..=CUaddress_mode::BORDER.0;
    require(sampling.address_modes.iter().all(|mode| modes.contains(mode)))?;
    require(filters.contains(&sampling.filter) && filters.contains(&sampling.level_filter))?;
    require(sampling.flags & !KNOWN_FLAGS == 0)?;
    // Only cubes have edges to reach over (recorded).
    require(sampling.flags & CU_TRSF_SEAMLESS_CUBEMAP == 0 || is_cube(resource)?)
}

fn is_cube(resource: &Resource) -> Result<bool> {
    Ok(match *resource {
        Resource::Array(handle) => array::get(handle)?.shape.flags & CUBEMAP != 0,
        Resource::Mipmapped(handle) => {
            let mipmapped = array::mipmapped(handle)?;
            mipmapped.levels().iter().any(|level| level.shape.flags & CUBEMAP != 0)
        }
        Resource::Linear { .. } | Resource::Pitched { .. } => false,
    })
}

/// Memory of its own is known to the device, aligned, and of a format that is not always a fraction (recorded).
fn check_memory(context: &Context, address: u64, format: &Format) -> Result<()> {
    let known = lookup(address).is_some_and(|entry| pointer::accessible(&entry));
    let alignment = limit(context, Attribute::TEXTURE_ALIGNMENT).max(1);
    require(known && address.is_multiple_of(alignment) && !format.normalized)
}

/// An element's format and the address where the device finds the first.
fn sampled(element: &Format, sampling: &Sampling, address: u64) -> Result<(texture::Format, u64)> {
    let address = lookup(address).map_or(address, |entry| entry.device_address(address));
    Ok((read_format(element, sampling)?, address))
}

fn of_memory(
    (format, base): (texture::Format, u64),
    sampling: &Sampling,
    [width, height]: [u32; 2],
    rows: u32,
    pitch: u32,
) -> Descriptor {
    Descriptor {
        format,
        sampling: how(sampling, &format),
        layers: 0,
        extents: [width, height, 0],
        levels: vec![Level {
            base,
            extents: [width, rows, 1],
            pitch,
        }],
    }
}

fn of_array(array: &Array, sampling: &Sampling, view: Option<&View>) -> Result<Descriptor> {
    let element = match view {
        Some(view) => viewed(array, view)?,
        None => array.format,
    };
    let format = read_format(&element, sampling)?;
    let mut how = how(sampling, &format);
    if array.shape.flags & CUBEMAP != 0 {
        // A direction is a place on a face from 0 to 1; over its edge lies another face, or with a seam nothing.
        how.normalized = true;
        if sampling.flags & CU_TRSF_SEAMLESS_CUBEMAP != 0 {
            how.address_modes = [CUaddress_mode::CLAMP.0.cast_unsigned(); 3];
            if how.linear {
                log::warn!("linear filters over the edges of cubes are not supported");
                return Err(Error::NOT_SUPPORTED);
            }
        }
    }
    Ok(Descriptor {
        format,
        sampling: how,
        layers: layers(array, view),
        extents: extents(array).map(|extent| extent as u32),
        levels: vec![level(array, view)],
    })
}

/// The format that a view gives to an array, whose size and shape it must keep (recorded).
fn viewed(array: &Array, view: &View) -> Result<Format> {
    if (ViewFormat::UNSIGNED_BC1.0..=ViewFormat::UNSIGNED_BC7.0).contains(&view.format) {
        log::warn!("views of compressed formats are not supported");
        return Err(Error::NOT_SUPPORTED);
    }
    let format = view_format(view.format).ok_or(Error::INVALID_VALUE)?;
    let shape = &array.shape;
    require(format.element_size() == array.format.element_size())?;
    require(view.extents == [shape.width, shape.height, shape.depth])?;
    require(view.levels == [0; 2])?;
    let [first, last] = view.layers;
    require(first <= last && u64::from(last) < layer_count(array).max(1))?;
    Ok(format)
}

/// Layers or faces that a view may leave out.
fn layer_count(array: &Array) -> u64 {
    match array.shape.dimensions {
        Dimensions::One | Dimensions::Two | Dimensions::Three => 0,
        _ => array.shape.depth,
    }
}

fn view_format(format: i32) -> Option<Format> {
    let plain = format
        .checked_sub(ViewFormat::UINT_1X8.0)
        .filter(|at| (0..24).contains(at))?;
    let channels = [1, 2, 4][plain as usize % 3];
    let names = [
        CUarray_format::UNSIGNED_INT8,
        CUarray_format::SIGNED_INT8,
        CUarray_format::UNSIGNED_INT16,
        CUarray_format::SIGNED_INT16,
        CUarray_format::UNSIGNED_INT32,
        CUarray_format::SIGNED_INT32,
        CUarray_format::HALF,
        CUarray_format::FLOAT,
    ];
    Format::new(names[plain as usize / 3], channels).ok()
}

/// The format with what a texture makes of integers.
fn read_format(element: &Format, sampling: &Sampling) -> Result<texture::Format> {
    let small = element.numeric != Numeric::Float && element.channel_size < 4;
    let fraction = small && (element.normalized || sampling.flags & CU_TRSF_READ_AS_INTEGER == 0);
    let bytes = element.channel_size == 1 && element.numeric == Numeric::Unsigned;
    // For all other formats the flag is without effect.
    if fraction && bytes && sampling.flags & CU_TRSF_SRGB != 0 {
        log::warn!("textures of sRGB are not supported");
        return Err(Error::NOT_SUPPORTED);
    }
    Ok(format(element, fraction))
}

fn format(element: &Format, fraction: bool) -> texture::Format {
    texture::Format {
        channel_size: element.channel_size,
        channels: element.channels,
        meaning: match element.numeric {
            Numeric::Unsigned => Meaning::Unsigned,
            Numeric::Signed => Meaning::Signed,
            Numeric::Float => Meaning::Float,
        },
        fraction,
    }
}

fn how(sampling: &Sampling, format: &texture::Format) -> texture::Sampling {
    let has = |flag| sampling.flags & flag != 0;
    // There is nothing between two integers.
    let mixes = format.fraction || format.meaning == Meaning::Float;
    texture::Sampling {
        address_modes: sampling.address_modes.map(i32::cast_unsigned),
        linear: mixes && sampling.filter == CUfilter_mode::LINEAR.0,
        normalized: has(CU_TRSF_NORMALIZED_COORDINATES),
        linear_levels: mixes && sampling.level_filter == CUfilter_mode::LINEAR.0,
        by_element: false,
        bias: sampling.level_bias,
        levels: sampling.levels,
        border: sampling.border,
    }
}

/// What `txq` and `suq` say.
fn extents(array: &Array) -> [u64; 3] {
    [array.shape.width, array.shape.height, array.shape.depth]
}

/// Layers of a layered array, faces of cubes.
fn layers(array: &Array, view: Option<&View>) -> u32 {
    let count = view.map_or(layer_count(array) as u32, |view| view.layers[1] - view.layers[0] + 1);
    match array.shape.dimensions {
        Dimensions::One | Dimensions::Two | Dimensions::Three => 0,
        _ => count,
    }
}

fn level(array: &Array, view: Option<&View>) -> Level {
    let shape = &array.shape;
    let pitch = array.row_bytes();
    let first = view.map_or(0, |view| u64::from(view.layers[0]));
    Level {
        base: array.address() + first * pitch * shape.rows(),
        extents: [shape.width, shape.rows(), shape.slices()].map(|extent| extent as u32),
        pitch: pitch as u32,
    }
}
