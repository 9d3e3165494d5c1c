//! What an address is to a copy.

use core::sync::atomic::Ordering;

use super::spans::{Extent, Side, Span};
use crate::abi::{Error, Result};
use crate::device::{Context, Device, peer};
use crate::memory::rights::Rights;
use crate::memory::{self, Entry, Kind, array, pool};

/// What a range of addresses is to a copy.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Memory of a device.
    Device(&'static Device),
    /// Host memory that GPUs reach.
    Pinned(Views),
    /// Host memory that they do not reach, or an address that CUDA does not know.
    Pageable,
}

/// The two views of pinned memory, as what must be added to the address that the application gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Views {
    /// To get the GPUs' address.
    pub device: u64,
    /// To get the host's address.
    pub host: u64,
}

impl Place {
    /// Whether the host may touch it.
    pub fn is_host(&self) -> bool {
        !matches!(self, Self::Device(_))
    }

    /// What must be added to get the host's address.
    pub fn host_shift(&self) -> u64 {
        match self {
            Self::Pinned(views) => views.host,
            _ => 0,
        }
    }
}

/// Finds out what a side of a transfer is.
///
/// # Errors
/// As [`locate`] for memory that has addresses; INVALID_RESOURCE_HANDLE for an array that is no more.
pub fn place(side: &Side, extent: &Extent) -> Result<Place> {
    let reach = side.reach(extent)?;
    match side.array {
        0 => locate(side.start, reach),
        // It was within the array when the side was made, and arrays never change.
        handle => Ok(Place::Device(array::get(handle)?.context().device)),
    }
}

/// Finds out what `[start, start + len)` is.
///
/// # Errors
/// INVALID_VALUE for NULL, and for a range that leaves the block it begins in.
pub fn locate(start: u64, len: u64) -> Result<Place> {
    if start == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let Some(entry) = memory::lookup(start) else {
        // Nobody may touch reserved addresses without memory.
        let reserved = memory::vmm::is_reserved(start);
        return if reserved {
            Err(Error::INVALID_VALUE)
        } else {
            Ok(Place::Pageable)
        };
    };
    let inside = entry.bytes_left(start) >= len;
    Ok(match entry.kind {
        Kind::Host | Kind::Managed | Kind::Registered if inside => Place::Pinned(Views {
            device: entry.device_address(start).wrapping_sub(start),
            host: entry.host_address(start).wrapping_sub(start),
        }),
        // Memory that is registered in part only.
        Kind::Registered if entry.base == entry.device_base || start.wrapping_sub(entry.base) < entry.size => {
            Place::Pageable
        }
        Kind::Mapping | Kind::HostMapping => Place::Device(mapped(&entry, start, len)?),
        _ if inside && entry.kind.is_device() => Place::Device(entry.context.device),
        _ => return Err(Error::INVALID_VALUE),
    })
}

/// A device that may use the mappings from `start` on, of which `first` is the first: the one they lie on if it may.
fn mapped(first: &Entry, start: u64, len: u64) -> Result<&'static Device> {
    let mut rights = Rights(first.more);
    let mut at = first.base + first.size;
    if !memory::pointer::accessible(first) {
        return Err(Error::INVALID_VALUE);
    }
    // A range may go on in the next mapping (recorded).
    while at < start + len {
        let next = memory::lookup(at).filter(|next| next.kind == first.kind && memory::pointer::accessible(next));
        let next = next.ok_or(Error::INVALID_VALUE)?;
        rights = Rights(rights.0 & next.more);
        at += next.size;
    }
    let owner = first.context.device;
    if rights.of(owner.ordinal) != 0 {
        return Ok(owner);
    }
    let other = rights.users().next().ok_or(Error::INVALID_VALUE)?;
    crate::device::get(other)
}

/// Whether kernels of `context` may use the device memory at `start`: by peer access, or by rights of that memory alone.
pub fn usable(start: u64, context: &Context) -> bool {
    let device = context.device;
    memory::lookup(start).is_some_and(|entry| match entry.kind {
        Kind::Mapping | Kind::HostMapping => Rights(entry.more).of(device.ordinal) != 0,
        _ => pool::rights_in(&entry, device)
            .map_or_else(|| peer::enabled(context, entry.context.device), |flags| flags != 0),
    })
}

/// Whether one of the two GPUs may access both sides of the copies: ROCr lets the source's do the work, and it needs access to
/// the destination's blocks.
pub fn reachable(spans: &[Span], dst: &Device, src: &Device) -> bool {
    let granted = dst.readers.load(Ordering::Acquire) & peer::bit(src) != 0;
    let entry = spans.first().and_then(|span| memory::lookup(span.dst));
    entry.is_some_and(|entry| match entry.kind {
        // Memory of another process was attached for its opener only.
        Kind::Imported => false,
        Kind::Mapping | Kind::HostMapping => Rights(entry.more).of(src.ordinal) == 3,
        Kind::Pool => pool::rights_of_memory(entry.more).is_some_and(|rights| rights.of(src.ordinal) == 3),
        _ => granted,
    })
}
