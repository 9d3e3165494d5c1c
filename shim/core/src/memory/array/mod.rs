//! CUDA arrays: memory that is addressed by element, known by a handle and never by an address.
//!
//! These GPUs have no texture units and so no layout of their own for them: elements lie row by row and slice by slice
//! without gaps, in a block of ROCr that is not in the registry, so that copies of whole rows are one span.
//!
//! ```text
//! base                 base + width * element              base + width * rows * element
//! [ row 0 of slice 0 ][ row 1 of slice 0 ] ...             [ row 0 of slice 1 ] ...
//! ```

mod format;
mod shape;

use std::sync::Arc;

pub use format::{Format, Numeric};
pub use shape::{CUBEMAP, Dimensions, Shape};

use super::unlisted::Unlisted;
use crate::abi::{CUdevice_attribute, Error, Result};
use crate::device::{Context, Device, attributes};
use crate::handle::Handles;
use crate::stream::spans::{Extent, Side};

static ARRAYS: Handles<Array> = Handles::new(0x81);
static MIPMAPPED: Handles<Mipmapped> = Handles::new(0x82);

/// Every level of a mipmapped array begins at a multiple of this.
const LEVEL_ALIGNMENT: u64 = 256;

/// An array, or one level of a mipmapped array.
pub struct Array {
    /// What an element is.
    pub format: Format,
    /// How many there are.
    pub shape: Shape,
    handle: u64,
    base: u64,
    /// The block; levels of a mipmapped array share theirs.
    memory: Arc<Unlisted>,
    is_level: bool,
}

/// A mipmapped array.
pub struct Mipmapped {
    levels: Vec<Arc<Array>>,
}

/// A limit of a device.
fn limit(device: &Device) -> impl Fn(CUdevice_attribute) -> u64 {
    |attribute| attributes::get(device, attribute.0).map_or(0, |value| value.max(0).cast_unsigned().into())
}

/// Bytes of all elements.
fn bytes(shape: &Shape, format: &Format) -> Result<u64> {
    let bytes = shape
        .elements()
        .and_then(|count| count.checked_mul(format.element_size()));
    bytes.ok_or(Error::INVALID_VALUE)
}

fn block(context: &'static Context, size: u64) -> Result<Arc<Unlisted>> {
    let size = usize::try_from(size).map_err(|_| Error::MEMORY_ALLOCATION)?;
    Unlisted::new(context, size).map(Arc::new)
}

/// Makes an array and returns its handle.
///
/// # Errors
/// As [`Shape::new`], and MEMORY_ALLOCATION.
pub fn create(context: &'static Context, format: Format, extents: [u64; 3], flags: u32) -> Result<u64> {
    let shape = Shape::new(extents, flags, limit(context.device))?;
    let memory = block(context, bytes(&shape, &format)?)?;
    Ok(publish(format, shape, memory.address(), memory, false).handle)
}

fn publish(format: Format, shape: Shape, base: u64, memory: Arc<Unlisted>, is_level: bool) -> Arc<Array> {
    let handle = ARRAYS.reserve();
    let array = Arc::new(Array {
        format,
        shape,
        handle,
        base,
        memory,
        is_level,
    });
    ARRAYS.publish(handle, Arc::clone(&array));
    array
}

/// The array behind a handle.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for NULL, a destroyed, and a foreign handle.
pub fn get(handle: u64) -> Result<Arc<Array>> {
    ARRAYS.get(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)
}

/// What a call that ends an object says of a handle without one, as recorded.
fn not_there(handle: u64) -> Error {
    if handle == 0 {
        Error::INVALID_RESOURCE_HANDLE
    } else {
        Error::CONTEXT_IS_DESTROYED
    }
}

/// Ends an array, after all work of its context. Levels of a mipmapped array stay until it ends (recorded).
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for NULL, CONTEXT_IS_DESTROYED for a destroyed or foreign handle.
pub fn destroy(handle: u64) -> Result<()> {
    let array = ARRAYS.get(handle).ok_or_else(|| not_there(handle))?;
    if array.is_level {
        return Ok(());
    }
    array.context().synchronize()?;
    ARRAYS.remove(handle).map(drop).ok_or_else(|| not_there(handle))
}

/// Makes a mipmapped array and returns its handle. It gets one level at least, and no more than lead to a single element (recorded).
///
/// # Errors
/// As [`create`].
pub fn create_mipmapped(
    context: &'static Context,
    format: Format,
    extents: [u64; 3],
    flags: u32,
    levels: u32,
) -> Result<u64> {
    let first = Shape::mipmapped(extents, flags, limit(context.device))?;
    let levels = levels.clamp(1, first.levels());
    let shapes: Vec<Shape> = (0..levels).map(|level| first.level(level)).collect();
    let mut size = 0u64;
    let mut starts = Vec::with_capacity(shapes.len());
    for shape in &shapes {
        starts.push(size);
        let end = size.checked_add(bytes(shape, &format)?);
        size = end
            .and_then(|end| end.checked_next_multiple_of(LEVEL_ALIGNMENT))
            .ok_or(Error::INVALID_VALUE)?;
    }
    let memory = block(context, size)?;
    let levels = starts
        .iter()
        .zip(shapes)
        .map(|(start, shape)| publish(format, shape, memory.address() + start, Arc::clone(&memory), true))
        .collect();
    Ok(MIPMAPPED.insert(Arc::new(Mipmapped { levels })))
}

/// The mipmapped array behind a handle.
///
/// # Errors
/// As [`get`].
pub fn mipmapped(handle: u64) -> Result<Arc<Mipmapped>> {
    MIPMAPPED.get(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)
}

/// Ends a mipmapped array and the handles of its levels, after all work of its context.
///
/// # Errors
/// As [`destroy`].
pub fn destroy_mipmapped(handle: u64) -> Result<()> {
    let mipmapped = MIPMAPPED.get(handle).ok_or_else(|| not_there(handle))?;
    if let Some(first) = mipmapped.levels.first() {
        first.context().synchronize()?;
    }
    let ended = MIPMAPPED.remove(handle).ok_or_else(|| not_there(handle))?;
    for level in &ended.levels {
        ARRAYS.remove(level.handle);
    }
    Ok(())
}

/// What a context that ends leaves behind: its handles are unknown from here on, its memory goes back when this is dropped.
pub(crate) struct Ended(#[allow(dead_code, reason = "held for its memory")] Vec<Arc<Array>>);

/// Ends the handles of a context's arrays.
pub(crate) fn take_all(context: &'static Context) -> Ended {
    let mut ended = Vec::new();
    ARRAYS.for_each_arc(|array| {
        if array.context() == context {
            ended.push(Arc::clone(array));
        }
    });
    for array in &ended {
        ARRAYS.remove(array.handle);
    }
    MIPMAPPED.remove_if(|mipmapped| mipmapped.levels.iter().any(|level| level.context() == context));
    Ended(ended)
}

impl Mipmapped {
    /// The handle of a level.
    ///
    /// # Errors
    /// INVALID_VALUE for a level that it does not have.
    pub fn level(&self, level: u32) -> Result<u64> {
        let array = self.levels.get(level as usize).ok_or(Error::INVALID_VALUE)?;
        Ok(array.handle)
    }

    /// All levels, the largest first; one at least.
    pub fn levels(&self) -> &[Arc<Array>] {
        &self.levels
    }
}

impl Array {
    /// The context that owns it.
    pub fn context(&self) -> &'static Context {
        self.memory.context()
    }

    /// First element.
    pub fn address(&self) -> u64 {
        self.base
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.shape.width * self.format.element_size()
    }

    /// The side of a copy of a box that begins `x` bytes, `y` rows and `z` slices from the first element.
    ///
    /// # Errors
    /// INVALID_VALUE for a box that leaves the array.
    pub fn side(&self, [x, y, z]: [u64; 3], extent: &Extent) -> Result<Side> {
        let inside = |start: u64, length: u64, end: u64| start.checked_add(length).is_some_and(|last| last <= end);
        let (pitch, rows) = (self.row_bytes(), self.shape.rows());
        if !inside(x, extent.width, pitch)
            || !inside(y, extent.height, rows)
            || !inside(z, extent.depth, self.shape.slices())
        {
            return Err(Error::INVALID_VALUE);
        }
        Ok(Side {
            start: self.base + (z * rows + y) * pitch + x,
            pitch,
            slice_height: rows,
            array: self.handle,
        })
    }

    /// Where an address inside lies: bytes along the row, row, slice.
    pub fn position(&self, address: u64) -> [u64; 3] {
        let offset = address.saturating_sub(self.base);
        let (pitch, rows) = (self.row_bytes(), self.shape.rows());
        [offset % pitch, offset / pitch % rows, offset / pitch / rows]
    }
}
