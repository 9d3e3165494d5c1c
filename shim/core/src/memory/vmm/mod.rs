//! Virtual memory management: `cuMemAddressReserve`, `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`, sharing by descriptor.
//!
//! ```text
//! reservation   [ mapping        |  free   | mapping ]     addresses, 2 MiB and multiples
//!                    |                          |
//! allocation    [ memory 1 ]               [ memory 1 ]    any number of mappings of one memory
//! ```
//!
//! ROCr maps the whole of a memory or nothing, as NVIDIA's driver does (recorded). All state is under one lock: these calls
//! take microseconds, and none of them is on a message path. Look-ups of mapped addresses are the registry's.

mod allocation;
mod reservation;

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::registry::Description;
use super::rights::Rights;
use super::{Entry, Kind, REGISTRY, unexpected};
use crate::abi::{CUmemAllocationProp, Error, Result};
use crate::device::Device;
use crate::hsa::{self, vmem};

use allocation::Allocation;
use reservation::Reservation;

/// What ROCr maps at full speed, and what NVIDIA's driver says for every kind of memory (recorded).
pub const GRANULARITY: u64 = 2 << 20;

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const POSIX_FD: i32 = 1;

#[derive(Default)]
struct State {
    last_handle: u64,
    allocations: HashMap<u64, Allocation>,
    /// By first address.
    reservations: BTreeMap<u64, Reservation>,
    /// By first address.
    mappings: BTreeMap<u64, Mapping>,
}

/// Memory at an address.
struct Mapping {
    size: u64,
    /// Handle of its allocation.
    memory: u64,
    entry: Entry,
}

/// How many reservations there are.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn locked() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// [`Error::NOT_SUPPORTED`] where ROCr or the kernel driver has no virtual memory.
pub fn check_supported() -> Result<()> {
    if is_supported() {
        Ok(())
    } else {
        Err(Error::NOT_SUPPORTED)
    }
}

/// Whether virtual memory can be had.
pub fn is_supported() -> bool {
    hsa::get().is_ok_and(|hsa| hsa.virtual_memory)
}

fn is_granular(size: u64) -> bool {
    size != 0 && size.is_multiple_of(GRANULARITY)
}

/// Reserves `size` bytes of addresses that are a multiple of `alignment` (0: of the granularity), at `hint` if it is not 0 and
/// those are free.
///
/// # Errors
/// INVALID_VALUE for sizes and hints that are no multiples of the granularity, for an alignment that is no power of two, and for
/// a hint below all that programs have; MEMORY_ALLOCATION when there are not as many addresses.
pub fn reserve(size: u64, alignment: u64, hint: u64) -> Result<u64> {
    if !is_granular(size) || (alignment != 0 && !alignment.is_power_of_two()) || !hint.is_multiple_of(GRANULARITY) {
        return Err(Error::INVALID_VALUE);
    }
    check_supported()?;
    let reservation = Reservation::new(size, alignment, hint)?;
    let base = reservation.base();
    RESERVED.fetch_add(1, Ordering::Relaxed);
    locked().get_or_insert_default().reservations.insert(base, reservation);
    Ok(base)
}

/// Whether an address lies in a reservation. One load where there is none at all.
pub fn is_reserved(address: u64) -> bool {
    reservation(address).is_some()
}

/// Base and size of the reservation around an address. One load where there is none at all.
pub fn reservation(address: u64) -> Option<(u64, u64)> {
    if RESERVED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let state = locked();
    let reservation = state.as_ref()?.reservation(address)?;
    Some((reservation.base(), reservation.size()))
}

/// Ends [`reserve`]; both values must be what it gave.
///
/// # Errors
/// INVALID_VALUE for others, and while something is mapped there.
pub fn unreserve(base: u64, size: u64) -> Result<()> {
    let reservation = {
        let mut state = locked();
        let state = state.as_mut().ok_or(Error::INVALID_VALUE)?;
        let known = state.reservations.get(&base).filter(|known| known.size() == size);
        known.ok_or(Error::INVALID_VALUE)?;
        if state.mappings.range(base..base + size).next().is_some() {
            return Err(Error::INVALID_VALUE);
        }
        RESERVED.fetch_sub(1, Ordering::Relaxed);
        state.reservations.remove(&base)
    };
    reservation.map_or(Ok(()), Reservation::end)
}

/// Makes `size` bytes of memory on `device`; gives its handle. `properties` are kept as the client passed them.
///
/// # Errors
/// MEMORY_ALLOCATION when there is not enough.
pub fn create(device: &'static Device, size: u64, properties: CUmemAllocationProp) -> Result<u64> {
    check_supported()?;
    let allocation = Allocation::new(device, size, properties.into())?;
    Ok(locked().get_or_insert_default().add(allocation))
}

/// The memory behind a descriptor of [`export`], for a process on `device`. The descriptor stays the client's.
///
/// # Errors
/// UNKNOWN for a descriptor that is not open or not of memory (recorded).
pub fn import(device: &'static Device, fd: i32) -> Result<u64> {
    check_supported()?;
    if fd < 0 {
        return Err(Error::UNKNOWN);
    }
    // SAFETY: borrowed for the duplication only, which fails if it is not open.
    let own = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    let allocation = Allocation::import(device, own.map_err(|_| Error::UNKNOWN)?)?;
    Ok(locked().get_or_insert_default().add(allocation))
}

/// A new descriptor of a memory that was made for it.
///
/// # Errors
/// INVALID_VALUE for memory that was made for no descriptors (imported memory is such, recorded), and for an unknown handle.
pub fn export(handle: u64) -> Result<OwnedFd> {
    let memory = {
        let state = locked();
        let allocation = state.as_ref().and_then(|state| state.live(handle));
        let exportable = allocation.filter(|known| known.properties.handle_types.0 & POSIX_FD != 0);
        exportable.ok_or(Error::INVALID_VALUE)?.memory()
    };
    vmem::export(memory).map_err(Into::into)
}

/// A descriptor of the memory that is mapped at exactly `address`, for network cards.
///
/// # Errors
/// NOT_SUPPORTED for an address inside a mapping: the descriptor would begin elsewhere.
pub fn export_mapped(address: u64) -> Result<OwnedFd> {
    let memory = {
        let state = locked();
        let state = state.as_ref().ok_or(Error::INVALID_VALUE)?;
        let mapping = state.mappings.get(&address).ok_or(Error::NOT_SUPPORTED)?;
        state
            .allocations
            .get(&mapping.memory)
            .ok_or(Error::INVALID_VALUE)?
            .memory()
    };
    vmem::export(memory).map_err(Into::into)
}

/// What a memory was made with.
///
/// # Errors
/// INVALID_VALUE for an unknown handle.
pub fn properties(handle: u64) -> Result<CUmemAllocationProp> {
    let state = locked();
    let allocation = state.as_ref().and_then(|state| state.live(handle));
    Ok(allocation.ok_or(Error::INVALID_VALUE)?.properties.into())
}

/// Ends one [`create`], [`import`] or [`retain`]. The memory stays while it is mapped.
///
/// # Errors
/// INVALID_VALUE when as many were ended already.
pub fn release(handle: u64) -> Result<()> {
    let ended = {
        let mut state = locked();
        let state = state.as_mut().ok_or(Error::INVALID_VALUE)?;
        let allocation = state.allocations.get_mut(&handle).ok_or(Error::INVALID_VALUE)?;
        if allocation.handles == 0 {
            return Err(Error::INVALID_VALUE);
        }
        allocation.handles -= 1;
        state.remove_unused(handle)
    };
    drop(ended);
    Ok(())
}

/// The handle of the memory that is mapped at `address`, once more to be released.
///
/// # Errors
/// INVALID_VALUE where nothing is mapped.
pub fn retain(address: u64) -> Result<u64> {
    let mut state = locked();
    let state = state.as_mut().ok_or(Error::INVALID_VALUE)?;
    let handle = state.mapping(address).ok_or(Error::INVALID_VALUE)?.1.memory;
    let allocation = state.allocations.get_mut(&handle).ok_or(Error::INVALID_VALUE)?;
    allocation.handles += 1;
    Ok(handle)
}

/// Maps a memory at a reserved address. Nobody may use it before [`set_access`].
///
/// # Errors
/// INVALID_VALUE for an unknown handle and for addresses that are not reserved or are in use; NOT_SUPPORTED for a part of the
/// memory (recorded).
pub fn map(address: u64, size: u64, offset: u64, handle: u64) -> Result<()> {
    let mut state = locked();
    let state = state.as_mut().ok_or(Error::INVALID_VALUE)?;
    let allocation = state.live(handle).ok_or(Error::INVALID_VALUE)?;
    if size == 0 || address == 0 {
        return Err(Error::INVALID_VALUE);
    }
    if offset != 0 || size != allocation.size() {
        return Err(Error::NOT_SUPPORTED);
    }
    let (device, memory) = (allocation.device, allocation.memory());
    // A mapping that begins in a reservation and leaves it is accepted by NVIDIA's driver, to nobody's good.
    if !address.is_multiple_of(GRANULARITY) || !state.is_reserved(address, size) || state.is_mapped(address, size) {
        return Err(Error::INVALID_VALUE);
    }
    let reservation = state.reservation(address).ok_or(Error::INVALID_VALUE)?;
    reservation.hand_over(address, size)?;
    vmem::map(address, size as usize, memory).inspect_err(|_| reservation.take_back(address, size))?;
    let description = Description::device(Kind::Mapping, address, size, device.primary_context());
    let entry = REGISTRY.insert(description).map_err(|conflict| {
        // SAFETY: nobody has seen the mapping.
        let _ = unsafe { vmem::unmap(address, size as usize) };
        reservation.take_back(address, size);
        unexpected(conflict, &description)
    })?;
    state.mappings.insert(
        address,
        Mapping {
            size,
            memory: handle,
            entry,
        },
    );
    if let Some(allocation) = state.allocations.get_mut(&handle) {
        allocation.mappings += 1;
    }
    Ok(())
}

/// Ends all mappings in a range, which must hold each wholly. Does not wait for kernels (recorded).
///
/// # Errors
/// INVALID_VALUE for a range that is not reserved or cuts a mapping.
pub fn unmap(address: u64, size: u64) -> Result<()> {
    let ending: Vec<(u64, u64)> = {
        let mut state = locked();
        let state = state.as_mut().ok_or(Error::INVALID_VALUE)?;
        if !address.is_multiple_of(GRANULARITY) || !is_granular(size) || !state.is_reserved(address, size) {
            return Err(Error::INVALID_VALUE);
        }
        state.check_whole(address, size)?;
        let inside = state.mappings.range(address..address + size);
        inside.map(|(base, mapping)| (*base, mapping.entry.id)).collect()
    };
    // As with every free: unknown to CUDA first, then HSA programs are told, without a lock, and then it ends.
    let ending: Vec<_> = ending
        .into_iter()
        .filter(|&(base, id)| REGISTRY.remove(base, id).is_some())
        .collect();
    for &(base, id) in &ending {
        super::hsa_view::mapping_ends(base, id);
    }
    let ended = {
        let mut state = locked();
        let state = state.as_mut().ok_or(Error::INVALID_VALUE)?;
        let ended: Result<Vec<_>> = ending.iter().map(|&(base, _)| state.unmap(base)).collect();
        ended?
    };
    drop(ended);
    Ok(())
}

/// Says what devices may do with the mappings in a range, which must be mapped without a gap and hold each wholly.
///
/// # Errors
/// INVALID_VALUE for other ranges, or what ROCr's refusal means.
pub fn set_access(address: u64, size: u64, wanted: &[(&'static Device, u32)]) -> Result<()> {
    let mut state = locked();
    let state = state.as_mut().ok_or(Error::INVALID_VALUE)?;
    if !is_granular(size) || wanted.is_empty() {
        return Err(Error::INVALID_VALUE);
    }
    for (base, mapping) in covering(&mut state.mappings, address, size)? {
        let owner = state
            .allocations
            .get(&mapping.memory)
            .map(|memory| memory.device.ordinal);
        let mut rights = Rights(mapping.entry.more);
        // The owner comes last: in some releases each grant to a peer takes the owner's pages away (rocm-systems#9908).
        let (own, peers): (Vec<_>, Vec<_>) = wanted
            .iter()
            .copied()
            .partition(|(device, _)| Some(device.ordinal) == owner);
        for (device, flags) in peers.into_iter().chain(own) {
            // Taken from a peer, access goes from the owner, too (ROCr 6.1.2): then only what the API says changes, as with peer access.
            if flags != 0 || Some(device.ordinal) == owner {
                vmem::set_access(base, mapping.size as usize, device.agent, flags)?;
            }
            rights = rights.with(device.ordinal, flags);
        }
        mapping.entry.more = rights.0;
        REGISTRY.set_more(base, mapping.entry.id, rights.0);
    }
    Ok(())
}

/// What `device` may do at a mapped address.
///
/// # Errors
/// INVALID_VALUE where nothing is mapped.
pub fn access(address: u64, device: &Device) -> Result<u32> {
    let state = locked();
    let (_, mapping) = state
        .as_ref()
        .and_then(|state| state.mapping(address))
        .ok_or(Error::INVALID_VALUE)?;
    Ok(Rights(mapping.entry.more).of(device.ordinal))
}

/// What pointer queries say about a mapping beyond its registry entry.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The reservation: first address and bytes.
    pub reservation: (u64, u64),
    /// `requestedHandleTypes` of the memory.
    pub handle_types: u64,
    /// Identifies the memory, however often it is mapped.
    pub memory: u64,
}

/// See [`About`]; `None` where nothing is mapped.
pub fn about(address: u64) -> Option<About> {
    let state = locked();
    let state = state.as_ref()?;
    let (_, mapping) = state.mapping(address)?;
    let allocation = state.allocations.get(&mapping.memory)?;
    let reservation = state.reservation(address)?;
    Some(About {
        reservation: (reservation.base(), reservation.size()),
        handle_types: allocation.properties.handle_types.0.cast_unsigned().into(),
        memory: mapping.memory,
    })
}

impl State {
    /// Gives an allocation its handle, which no other ever has.
    fn add(&mut self, allocation: Allocation) -> u64 {
        self.last_handle += 1;
        let handle = allocation::TAG | self.last_handle << 4;
        self.allocations.insert(handle, allocation);
        handle
    }

    /// The allocation of a handle that was not released as often as it was given.
    fn live(&self, handle: u64) -> Option<&Allocation> {
        self.allocations
            .get(&handle)
            .filter(|allocation| allocation.handles > 0)
    }

    fn remove_unused(&mut self, handle: u64) -> Option<Allocation> {
        let unused = self.allocations.get(&handle).is_some_and(Allocation::is_unused);
        if unused { self.allocations.remove(&handle) } else { None }
    }

    fn reservation(&self, address: u64) -> Option<&Reservation> {
        let (&base, reservation) = self.reservations.range(..=address).next_back()?;
        (address - base < reservation.size()).then_some(reservation)
    }

    fn is_reserved(&self, address: u64, size: u64) -> bool {
        let end = address.checked_add(size);
        self.reservation(address)
            .zip(end)
            .is_some_and(|(reservation, end)| end <= reservation.base() + reservation.size())
    }

    fn mapping(&self, address: u64) -> Option<(u64, &Mapping)> {
        let (&base, mapping) = self.mappings.range(..=address).next_back()?;
        (address - base < mapping.size).then_some((base, mapping))
    }

    fn is_mapped(&self, address: u64, size: u64) -> bool {
        self.mapping(address).is_some() || self.mappings.range(address..address + size).next().is_some()
    }

    /// INVALID_VALUE when the range cuts a mapping.
    fn check_whole(&self, address: u64, size: u64) -> Result<()> {
        let cut_at_start = self.mapping(address).is_some_and(|(base, _)| base < address);
        let last = self.mapping(address + size - 1);
        let cut_at_end = last.is_some_and(|(base, mapping)| base + mapping.size > address + size);
        if cut_at_start || cut_at_end {
            return Err(Error::INVALID_VALUE);
        }
        Ok(())
    }

    /// Ends a mapping; gives the memory if nobody uses it any more.
    fn unmap(&mut self, base: u64) -> Result<Option<Allocation>> {
        let Some(mapping) = self.mappings.remove(&base) else {
            return Ok(None);
        };
        // One by one: older releases unmap only one at a time (ROCR-Runtime#285).
        // SAFETY: what kernels still do there is the client's business, as recorded.
        unsafe { vmem::unmap(base, mapping.size as usize) }?;
        if let Some(reservation) = self.reservation(base) {
            reservation.take_back(base, mapping.size);
        }
        if let Some(allocation) = self.allocations.get_mut(&mapping.memory) {
            allocation.mappings -= 1;
        }
        Ok(self.remove_unused(mapping.memory))
    }
}

/// The mappings that fill a range; INVALID_VALUE when they leave a gap, or the range cuts one.
fn covering(mappings: &mut BTreeMap<u64, Mapping>, address: u64, size: u64) -> Result<Vec<(u64, &mut Mapping)>> {
    let end = address.checked_add(size).ok_or(Error::INVALID_VALUE)?;
    let inside = mappings.range_mut(address..end);
    let mappings: Vec<_> = inside.map(|(base, mapping)| (*base, mapping)).collect();
    let mut next = address;
    for (base, mapping) in &mappings {
        if *base != next {
            return Err(Error::INVALID_VALUE);
        }
        next = base + mapping.size;
    }
    if next == end {
        Ok(mappings)
    } else {
        Err(Error::INVALID_VALUE)
    }
}
