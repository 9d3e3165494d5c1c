//! Reserved addresses.

use super::GRANULARITY;
use crate::abi::{Error, Result};
use crate::hsa::vmem;

/// Addresses, aligned in a range that is somewhat larger:
///
/// ```text
/// outer  [    |  base, size: a multiple of the alignment   |    ]
/// ```
pub(super) struct Reservation {
    base: u64,
    size: u64,
    outer: (u64, u64),
    keeper: Keeper,
}

/// Who keeps others away from the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Keeper {
    /// ROCr.
    Rocr,
    /// A mapping of ours that nobody may access. ROCr puts writable memory behind what it reserves, which the kernel refuses
    /// for more than the machine has; so of large ranges ROCr gets only what is mapped.
    Ourselves,
}

/// Where in a range the reservation may begin: at `skew` behind a multiple of `unit`.
#[derive(Clone, Copy, Debug)]
struct Alignment {
    unit: u64,
    skew: u64,
}

impl Alignment {
    /// What the client asked for, 0 for nothing. As recorded, reservations then begin at odd multiples of 2 MiB, large ones
    /// of 8 MiB.
    fn new(wanted: u64, size: u64) -> Self {
        const LARGE: u64 = 32 << 20;
        let skew = if size < LARGE { GRANULARITY } else { 4 * GRANULARITY };
        match wanted {
            0 => Self { unit: 2 * skew, skew },
            _ => Self {
                unit: wanted.max(GRANULARITY),
                skew: 0,
            },
        }
    }

    /// The first suitable address from `at` on.
    fn next(self, at: u64) -> u64 {
        at.saturating_sub(self.skew).next_multiple_of(self.unit) + self.skew
    }
}

/// Where programs' addresses begin: below lies what Linux never maps (`vm.mmap_min_addr`).
const LOWEST: u64 = 1 << 16;

impl Reservation {
    /// See [`super::reserve`], which has checked the arguments.
    pub fn new(size: u64, alignment: u64, hint: u64) -> Result<Self> {
        if hint != 0 && hint < LOWEST {
            return Err(Error::INVALID_VALUE);
        }
        if hint != 0
            && hint.is_multiple_of(alignment.max(GRANULARITY))
            && let Some(reservation) = Self::at(hint, size)
        {
            return Ok(reservation);
        }
        let alignment = Alignment::new(alignment, size);
        let room = size.checked_add(alignment.unit).ok_or(Error::MEMORY_ALLOCATION)?;
        let (outer, keeper) = match vmem::reserve(room as usize, 0) {
            Ok(outer) => (outer, Keeper::Rocr),
            Err(_) => (keep(None, room).ok_or(Error::MEMORY_ALLOCATION)?, Keeper::Ourselves),
        };
        Ok(Self {
            base: alignment.next(outer),
            size,
            outer: (outer, room),
            keeper,
        })
    }

    /// Makes ROCr the keeper of a part in which something is to be mapped.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when another thread was given the addresses in the moment in which nobody kept them.
    pub fn hand_over(&self, address: u64, size: u64) -> Result<()> {
        if self.keeper == Keeper::Rocr {
            return Ok(());
        }
        give_up(address, size);
        match vmem::reserve(size as usize, address) {
            Ok(got) if got == address => return Ok(()),
            Ok(elsewhere) => drop(vmem::unreserve(elsewhere, size as usize)),
            Err(error) => log::debug!("{size} bytes at {address:#x} cannot be reserved: {error}"),
        }
        if keep(Some(address), size).is_none() {
            log::warn!("{size} reserved addresses at {address:#x} were lost to another thread");
        }
        Err(Error::MEMORY_ALLOCATION)
    }

    /// Undoes [`Reservation::hand_over`].
    pub fn take_back(&self, address: u64, size: u64) {
        if self.keeper == Keeper::Rocr {
            return;
        }
        if let Err(error) = vmem::unreserve(address, size as usize) {
            log::warn!("{size} addresses at {address:#x} stay with ROCr: {error}");
        } else if keep(Some(address), size).is_none() {
            log::warn!("{size} reserved addresses at {address:#x} were lost to another thread");
        }
    }

    /// Exactly there, or not at all.
    fn at(address: u64, size: u64) -> Option<Self> {
        let got = vmem::reserve(size as usize, address).ok()?;
        if got == address {
            return Some(Self {
                base: got,
                size,
                outer: (got, size),
                keeper: Keeper::Rocr,
            });
        }
        let _ = vmem::unreserve(got, size as usize);
        None
    }

    /// First address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Gives the addresses back; nothing is mapped there.
    pub fn end(self) -> Result<()> {
        debug_assert!(self.base.is_multiple_of(GRANULARITY));
        if self.keeper == Keeper::Ourselves {
            give_up(self.outer.0, self.outer.1);
            return Ok(());
        }
        vmem::unreserve(self.outer.0, self.outer.1 as usize).map_err(|error| {
            log::warn!(
                "{} reserved bytes at {:#x} could not be given back: {error}",
                self.size,
                self.base
            );
            Error::from(error)
        })
    }
}

/// Maps addresses without access, exactly at `address` or anywhere.
fn keep(address: Option<u64>, size: u64) -> Option<u64> {
    let place = if address.is_some() {
        libc::MAP_FIXED_NOREPLACE
    } else {
        0
    };
    // SAFETY: an anonymous mapping that replaces no other.
    let got = unsafe {
        libc::mmap(
            core::ptr::without_provenance_mut(address.unwrap_or(0) as usize),
            size as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | place,
            -1,
            0,
        )
    };
    if got == libc::MAP_FAILED {
        return None;
    }
    let got = got.expose_provenance() as u64;
    if address.is_some_and(|address| address != got) {
        // A kernel before 4.17 takes the address for a hint.
        give_up(got, size);
        return None;
    }
    Some(got)
}

/// Ends [`keep`], of a part too.
fn give_up(address: u64, size: u64) {
    // SAFETY: a mapping of ours, which nobody can access.
    unsafe { libc::munmap(core::ptr::without_provenance_mut(address as usize), size as usize) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_begin_where_recorded() {
        const MIB: u64 = 1 << 20;
        for (wanted, size, at, expected) in [
            (0, 2 * MIB, 4096, 2 * MIB),
            (0, 2 * MIB, 2 * MIB, 2 * MIB),
            (0, 2 * MIB, 2 * MIB + 1, 6 * MIB),
            (0, 32 * MIB, 9 * MIB, 24 * MIB),
            (4096, 2 * MIB, 3 * MIB, 4 * MIB),
            (1 << 30, 2 * MIB, 1, 1 << 30),
        ] {
            let alignment = Alignment::new(wanted, size);
            let base = alignment.next(at);
            assert_eq!(base, expected, "{wanted:#x} {size:#x} {at:#x}");
            assert!(base + size <= at + size + alignment.unit, "there is room");
        }
    }

    #[test]
    fn our_own_ranges_hold_terabytes_and_are_given_back() {
        let size = 1u64 << 42;
        let base = keep(None, size).expect("addresses");
        assert_eq!(keep(Some(base + (1 << 30)), 4096), None, "kept from others");
        give_up(base, size);
        assert_eq!(keep(Some(base), 4096), Some(base));
        give_up(base, 4096);
    }
}
