//! Managed memory: `cudaMallocManaged`.
//!
//! GPUs of this family resolve page faults only with XNACK on, which it is not by default; so managed memory is host memory
//! that every GPU uses in place, coherently. It never moves, and `concurrentManagedAccess` is 0: advice and prefetches are
//! checked, remembered per allocation, and read back.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::{Entry, Kind, host, lookup};
use crate::abi::{CUmem_advise, CUmem_range_attribute, Error, Result};
use crate::device::{self, Context};

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

/// `CU_DEVICE_CPU`: the host as a place.
const HOST: i32 = -1;

/// What an application has said about an allocation.
#[derive(Clone, Debug)]
struct Advice {
    read_mostly: bool,
    preferred: i32,
    last_prefetch: i32,
    accessed_by: Vec<i32>,
}

impl Default for Advice {
    fn default() -> Self {
        Self {
            read_mostly: false,
            preferred: NO_DEVICE,
            last_prefetch: NO_DEVICE,
            accessed_by: Vec::new(),
        }
    }
}

/// By the allocations' ids.
static ADVICE: Mutex<BTreeMap<u64, Advice>> = Mutex::new(BTreeMap::new());

fn with_advice<T>(entry: &Entry, f: impl FnOnce(&mut Advice) -> T) -> T {
    let mut all = ADVICE.lock().unwrap_or_else(|e| e.into_inner());
    f(all.entry(entry.id).or_default())
}

/// The allocation was freed.
pub(super) fn forget(entry: &Entry) {
    ADVICE.lock().unwrap_or_else(|e| e.into_inner()).remove(&entry.id);
}

/// The managed allocation that holds a range.
fn range(address: u64, size: usize) -> Result<Entry> {
    let entry = lookup(address)
        .filter(|entry| entry.kind == Kind::Managed)
        .ok_or(Error::INVALID_VALUE)?;
    if size == 0 || size as u64 > entry.bytes_left(address) {
        return Err(Error::INVALID_VALUE);
    }
    Ok(entry)
}

/// Checks a range of managed memory.
///
/// # Errors
/// INVALID_VALUE for a range that is not in one managed allocation.
pub fn check_range(address: u64, size: usize) -> Result<()> {
    range(address, size).map(drop)
}

/// A device's number, or the host.
///
/// # Errors
/// INVALID_DEVICE for a device that is not there.
pub fn place(location: i32) -> Result<i32> {
    if location != HOST {
        device::get(location)?;
    }
    Ok(location)
}

/// `cuMemAdvise`: remembered, without effect. A part of an allocation stands for all of it.
///
/// # Errors
/// INVALID_VALUE for a range that is not managed memory and for unknown advice, INVALID_DEVICE for an unknown place.
pub fn advise(address: u64, size: usize, advice: CUmem_advise, location: i32) -> Result<()> {
    let entry = range(address, size)?;
    with_advice(&entry, |known| {
        match advice {
            CUmem_advise::SET_READ_MOSTLY => known.read_mostly = true,
            CUmem_advise::UNSET_READ_MOSTLY => known.read_mostly = false,
            CUmem_advise::SET_PREFERRED_LOCATION => known.preferred = place(location)?,
            CUmem_advise::UNSET_PREFERRED_LOCATION => known.preferred = NO_DEVICE,
            CUmem_advise::SET_ACCESSED_BY => {
                let location = place(location)?;
                if !known.accessed_by.contains(&location) {
                    known.accessed_by.push(location);
                }
            }
            CUmem_advise::UNSET_ACCESSED_BY => {
                let location = place(location)?;
                known.accessed_by.retain(|&other| other != location);
            }
            _ => return Err(Error::INVALID_VALUE),
        }
        Ok(())
    })
}

/// `cuMemPrefetchAsync`: remembered, as memory is in its place already.
///
/// # Errors
/// As [`advise`].
pub fn prefetch(address: u64, size: usize, location: i32) -> Result<()> {
    let entry = range(address, size)?;
    let location = place(location)?;
    with_advice(&entry, |known| known.last_prefetch = location);
    Ok(())
}

/// `cuStreamAttachMemAsync`: every stream may use managed memory at any time here, so the flags are checked only.
///
/// # Errors
/// INVALID_VALUE for memory that is not managed, for a part of an allocation (recorded; a length of 0 is all of it) and for unknown
/// flags.
pub fn attach(address: u64, length: u64, flags: u32) -> Result<()> {
    let whole = lookup(address).is_some_and(|entry| {
        entry.kind == Kind::Managed && entry.base == address && (length == 0 || length == entry.size)
    });
    if whole && matches!(flags, 1 | 2 | 4) {
        Ok(())
    } else {
        Err(Error::INVALID_VALUE)
    }
}

/// `cuMemRangeGetAttribute`: what was said about an allocation, in `count` 4-byte values. Only the devices that access it are
/// more than one.
///
/// # Errors
/// INVALID_VALUE for a range that is not managed memory, and for attributes that CUDA does not have.
pub fn range_attribute(attribute: CUmem_range_attribute, address: u64, size: usize, count: usize) -> Result<Vec<i32>> {
    use CUmem_range_attribute as Attribute;
    let entry = range(address, size)?;
    let known = with_advice(&entry, |known| known.clone());
    // CU_MEM_LOCATION_TYPE_INVALID, _DEVICE, _HOST.
    let kind = |location| match location {
        NO_DEVICE => 0,
        HOST => 2,
        _ => 1,
    };
    Ok(match attribute {
        Attribute::READ_MOSTLY => vec![known.read_mostly.into()],
        Attribute::PREFERRED_LOCATION | Attribute::PREFERRED_LOCATION_ID => vec![known.preferred],
        Attribute::PREFERRED_LOCATION_TYPE => vec![kind(known.preferred)],
        Attribute::LAST_PREFETCH_LOCATION | Attribute::LAST_PREFETCH_LOCATION_ID => vec![known.last_prefetch],
        Attribute::LAST_PREFETCH_LOCATION_TYPE => vec![kind(known.last_prefetch)],
        Attribute::ACCESSED_BY => {
            let mut all = known.accessed_by;
            all.resize(count, NO_DEVICE);
            all
        }
        _ => return Err(Error::INVALID_VALUE),
    })
}
