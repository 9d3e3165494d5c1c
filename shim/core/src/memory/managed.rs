//! Managed memory: `cudaMallocManaged`.
//!
//! GPUs of this family resolve page faults only with XNACK on, which it is not by default; so managed memory is host memory
//! that every GPU uses in place, coherently. It never moves: no advice, no prefetch, and `concurrentManagedAccess` is 0.

use super::{Entry, Kind, host, lookup};
use crate::abi::{CUmem_range_attribute, Error, Result};
use crate::device::Context;

/// `cudaMemAttachGlobal`, `cudaMemAttachHost`: which streams may use the memory; all may, as with every device of this kind.
const ATTACH: [u32; 2] = [1, 2];
/// `CU_DEVICE_INVALID`: no place is preferred.
const NO_DEVICE: i32 = -2;

/// Allocates `size` bytes (not 0). [`Error::INVALID_VALUE`] for unknown flags, [`Error::MEMORY_ALLOCATION`] when there is not
/// enough.
pub fn allocate(context: &'static Context, size: usize, flags: u32) -> Result<Entry> {
    check_flags(flags)?;
    host::block(context, Kind::Managed, size, host::MAPPED)
}

/// The error of flags that are no way to attach.
pub fn check_flags(flags: u32) -> Result<()> {
    if ATTACH.contains(&flags) {
        Ok(())
    } else {
        Err(Error::INVALID_VALUE)
    }
}

/// `cuMemRangeGetAttribute`: as no advice can be given, the answers are those of memory that got none, in 4-byte values.
///
/// [`Error::INVALID_VALUE`] for a range that is not managed memory, and for attributes that CUDA does not have.
pub fn range_attribute(attribute: CUmem_range_attribute, address: u64, size: usize) -> Result<i32> {
    use CUmem_range_attribute as Attribute;
    let entry = lookup(address)
        .filter(|entry| entry.kind == Kind::Managed)
        .ok_or(Error::INVALID_VALUE)?;
    if size == 0 || size as u64 > entry.bytes_left(address) {
        return Err(Error::INVALID_VALUE);
    }
    match attribute {
        Attribute::READ_MOSTLY | Attribute::PREFERRED_LOCATION_TYPE | Attribute::LAST_PREFETCH_LOCATION_TYPE => Ok(0),
        Attribute::PREFERRED_LOCATION
        | Attribute::ACCESSED_BY
        | Attribute::LAST_PREFETCH_LOCATION
        | Attribute::PREFERRED_LOCATION_ID
        | Attribute::LAST_PREFETCH_LOCATION_ID => Ok(NO_DEVICE),
        _ => Err(Error::INVALID_VALUE),
    }
}
