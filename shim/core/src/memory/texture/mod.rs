//! Texture and surface objects: what a kernel reads, and how.
//!
//! An object's number is the address of its descriptor (`kernels_ptx_translate::texture`) in device memory, since kernels
//! sample by code. So these handles alone are addresses; the host still finds an object only in the table.

mod describe;
mod slots;

use std::sync::{Arc, LazyLock};

use dashmap::DashMap;

use super::array::{self, Format};
use crate::abi::{Error, Result};
use crate::device::Context;
use crate::handle::BuildSpread;
pub(crate) use slots::Ended;
use slots::Slot;

/// What an object reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// An array, by its handle.
    Array(u64),
    /// A mipmapped array, by its handle.
    Mipmapped(u64),
    /// Elements in a row.
    Linear {
        /// First element.
        address: u64,
        /// What an element is.
        format: Format,
        /// Bytes in all.
        size: u64,
    },
    /// Rows of elements.
    Pitched {
        /// First element.
        address: u64,
        /// What an element is.
        format: Format,
        /// Elements of a row.
        width: u64,
        /// Rows.
        height: u64,
        /// Bytes from row to row.
        pitch: u64,
    },
}

/// How a texture is read, in the driver's terms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// `CUaddress_mode` of each dimension.
    pub address_modes: [i32; 3],
    /// `CUfilter_mode`.
    pub filter: i32,
    /// `CU_TRSF_*`.
    pub flags: u32,
    /// Taken note of, without effect.
    pub max_anisotropy: u32,
    /// `CUfilter_mode` between levels.
    pub level_filter: i32,
    /// Added to a level.
    pub level_bias: f32,
    /// The least and the greatest level.
    pub levels: [f32; 2],
    /// What lies outside in border mode.
    pub border: [f32; 4],
}

/// An array as if it had another format, fewer levels or fewer layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    /// `CUresourceViewFormat`.
    pub format: i32,
    /// Width, height and depth, which must be the array's.
    pub extents: [u64; 3],
    /// First and last level.
    pub levels: [u32; 2],
    /// First and last layer.
    pub layers: [u32; 2],
}

/// A texture object.
#[derive(Debug)]
pub struct Texture {
    /// What it reads.
    pub resource: Resource,
    /// How.
    pub sampling: Sampling,
    /// The view it was made with.
    pub view: Option<View>,
    slot: Slot,
}

/// A surface object: an array that kernels read and write by element.
#[derive(Debug)]
pub struct Surface {
    /// The array's handle.
    pub array: u64,
    slot: Slot,
}

type Table<T> = LazyLock<DashMap<u64, Arc<T>, BuildSpread>>;

static TEXTURES: Table<Texture> = LazyLock::new(DashMap::default);
static SURFACES: Table<Surface> = LazyLock::new(DashMap::default);

/// Makes a texture object and gives its number.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for an array that is not there, INVALID_VALUE for memory that the device does not know or that
/// is not aligned, and for modes, extents and views that do not fit (recorded); NOT_SUPPORTED for views of compressed formats.
pub fn create(context: &'static Context, resource: Resource, sampling: Sampling, view: Option<View>) -> Result<u64> {
    // Memory has no views: what is said of one is not looked at (recorded).
    let view = view.filter(|_| matches!(resource, Resource::Array(_) | Resource::Mipmapped(_)));
    let descriptor = describe::texture(context, &resource, &sampling, view.as_ref())?;
    let slot = slots::take(context, &descriptor)?;
    let number = slot.address();
    let texture = Texture {
        resource,
        sampling,
        view,
        slot,
    };
    TEXTURES.insert(number, Arc::new(texture));
    Ok(number)
}

/// The texture object of a number.
///
/// # Errors
/// INVALID_VALUE if there is none (recorded).
pub fn get(number: u64) -> Result<Arc<Texture>> {
    let texture = TEXTURES.get(&number).ok_or(Error::INVALID_VALUE)?;
    Ok(Arc::clone(&texture))
}

/// Ends a texture object; one that is not there does no harm (recorded). Kernels on their way may still read through it.
pub fn destroy(number: u64) {
    TEXTURES.remove(&number);
}

/// Makes a surface object of an array and gives its number. The array needs no flag for it (recorded).
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for an array that is not there, MEMORY_ALLOCATION.
pub fn create_surface(context: &'static Context, array: u64) -> Result<u64> {
    let descriptor = describe::surface(&*array::get(array)?);
    let slot = slots::take(context, &descriptor)?;
    let number = slot.address();
    SURFACES.insert(number, Arc::new(Surface { array, slot }));
    Ok(number)
}

/// The surface object of a number.
///
/// # Errors
/// INVALID_VALUE if there is none (recorded).
pub fn surface(number: u64) -> Result<Arc<Surface>> {
    let surface = SURFACES.get(&number).ok_or(Error::INVALID_VALUE)?;
    Ok(Arc::clone(&surface))
}

/// Ends a surface object, as [`destroy`].
pub fn destroy_surface(number: u64) {
    SURFACES.remove(&number);
}

/// Ends the objects of a context that ends; its descriptors are given back when the result is dropped.
pub(crate) fn take_all(context: &'static Context) -> Ended {
    TEXTURES.retain(|_, texture| texture.slot.context() != context);
    SURFACES.retain(|_, surface| surface.slot.context() != context);
    slots::take_all(context)
}

impl Resource {
    /// Whether what it names is still there.
    ///
    /// # Errors
    /// INVALID_VALUE for an array that was freed (recorded).
    pub fn check(&self) -> Result<()> {
        let found = match *self {
            Self::Array(handle) => array::get(handle).map(drop),
            Self::Mipmapped(handle) => array::mipmapped(handle).map(drop),
            Self::Linear { .. } | Self::Pitched { .. } => Ok(()),
        };
        found.map_err(|_| Error::INVALID_VALUE)
    }

    /// What its elements are.
    ///
    /// # Errors
    /// INVALID_RESOURCE_HANDLE for an array that is not there.
    pub fn format(&self) -> Result<Format> {
        Ok(match *self {
            Self::Array(handle) => array::get(handle)?.format,
            Self::Mipmapped(handle) => {
                let mipmapped = array::mipmapped(handle)?;
                mipmapped.levels().first().ok_or(Error::INVALID_RESOURCE_HANDLE)?.format
            }
            Self::Linear { format, .. } | Self::Pitched { format, .. } => format,
        })
    }
}
