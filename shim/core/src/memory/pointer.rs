//! What CUDA says about an address: `cuPointerGetAttribute(s)`, `cudaPointerGetAttributes`. Every value is as recorded.

use core::ffi::c_void;

use super::rights::Rights;
use super::{Entry, Glance, Kind, MAPPING_GRANULE, glance, lookup, pool, vmm};
use crate::abi::{CUpointer_attribute, Error, Result};
use crate::device::{self, context, peer};

/// An attribute's value in the width that CUDA writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// 4 bytes.
    Word(u32),
    /// 8 bytes.
    Long(u64),
    /// `CUDA_POINTER_ATTRIBUTE_P2P_TOKENS`: 12 bytes of zeroes; there are no tokens.
    Tokens,
}

impl Value {
    /// Writes the value for the client.
    ///
    /// # Safety
    /// `to` has room for it.
    pub unsafe fn write(self, to: *mut c_void) {
        // SAFETY: the caller's promise; alignment is not assumed.
        unsafe {
            match self {
                Self::Word(value) => to.cast::<u32>().write_unaligned(value),
                Self::Long(value) => to.cast::<u64>().write_unaligned(value),
                Self::Tokens => to.cast::<[u8; 12]>().write_unaligned([0; 12]),
            }
        }
    }
}

/// Whether the calling thread's context (without one: its device) can access the memory.
#[inline]
pub fn accessible(entry: &Entry) -> bool {
    match entry.kind {
        Kind::Mapping | Kind::HostMapping | Kind::Pool => rights(entry) != 0,
        Kind::Imported if pool::share::is_imported(entry) => rights(entry) != 0,
        _ => !entry.kind.is_device() || accessible_on(entry.context.ordinal()),
    }
}

/// Whether the calling thread's context (without one: its device) can access the device's memory.
#[inline]
fn accessible_on(owner: i32) -> bool {
    // Nothing to choose from: most ranks see one GPU.
    if device::is_alone() {
        return true;
    }
    match context::peek() {
        Some(context) => device::get(owner).is_ok_and(|owner| peer::enabled(context, owner)),
        None => owner == context::runtime_device(),
    }
}

/// What the calling thread's device may do with the memory, as `CUmemAccess_flags`.
fn rights(entry: &Entry) -> u32 {
    let device = context::runtime_device();
    match entry.kind {
        Kind::Mapping | Kind::HostMapping => Rights(entry.more).of(device),
        Kind::Pool if device != entry.context.device.ordinal => {
            pool::rights_of_memory(entry.more).map_or(0, |rights| rights.of(device))
        }
        Kind::Imported if pool::share::is_imported(entry) => pool::share::rights_of_memory(entry.more, device),
        _ => 3,
    }
}

/// The mapping that holds the block: the pages of registered memory, and for the rest what NVIDIA's driver would map.
fn mapping(entry: &Entry) -> (u64, u64) {
    const PAGE: u64 = 4096;
    match entry.kind {
        Kind::Pool => pool::mapping_of_memory(entry).unwrap_or((entry.base, entry.size)),
        Kind::Registered => {
            let start = entry.base & !(PAGE - 1);
            (start, (entry.base + entry.size).next_multiple_of(PAGE) - start)
        }
        _ => (entry.base, entry.size.next_multiple_of(MAPPING_GRANULE)),
    }
}

/// `cuPointerGetAttribute`'s answer for one attribute of known memory.
///
/// The outer error is for a number that is no attribute; the inner result says whether the single call succeeds: some values
/// are written although it fails.
pub fn attribute(entry: &Entry, address: u64, attribute: CUpointer_attribute) -> Result<(Value, Result<()>)> {
    use CUpointer_attribute as Attribute;
    use Value::{Long, Tokens, Word};
    let managed = entry.kind == Kind::Managed;
    let device = entry.kind.is_device() || managed;
    let own = entry.kind == Kind::Device;
    let imported_pool = pool::share::is_imported(entry);
    let owned = !matches!(entry.kind, Kind::Pool | Kind::Graph) && !entry.kind.is_mapping() && !imported_pool;
    let mapped = || {
        let mapping = entry.kind.is_mapping();
        mapping.then(|| vmm::about(entry.base)).flatten()
    };
    let ok = |value| Ok((value, Ok(())));
    let unless = |fails: bool, value| Ok((value, if fails { Err(Error::INVALID_VALUE) } else { Ok(()) }));
    match attribute {
        // Neither stream-ordered memory nor mappings have one (recorded), which MPI libraries tell them by.
        Attribute::CONTEXT if !owned => ok(Long(0)),
        Attribute::CONTEXT => ok(Long(entry.context.handle().addr() as u64)),
        Attribute::MEMORY_TYPE => ok(Word(if device { 2 } else { 1 })),
        Attribute::DEVICE_POINTER => match accessible(entry) {
            true => ok(Long(entry.device_address(address))),
            false => unless(true, Long(0)),
        },
        Attribute::HOST_POINTER if entry.kind.is_device() => unless(true, Long(0)),
        Attribute::HOST_POINTER => ok(Long(entry.host_address(address))),
        Attribute::P2P_TOKENS => unless(!device, Tokens),
        // Synchronous already: copies of device memory wait for their stream. Recorded as 0 for pools of other processes.
        Attribute::SYNC_MEMOPS if imported_pool => ok(Word(0)),
        Attribute::SYNC_MEMOPS => ok(Word(u32::from(device))),
        Attribute::MEMORY_BLOCK_ID if entry.kind.is_mapping() => {
            ok(Long(mapped().map_or(entry.id, |about| about.memory)))
        }
        Attribute::BUFFER_ID | Attribute::MEMORY_BLOCK_ID => ok(Long(entry.id)),
        Attribute::IS_MANAGED => ok(Word(u32::from(managed))),
        Attribute::DEVICE_ORDINAL => ok(Word(entry.context.device.ordinal.cast_unsigned())),
        Attribute::IS_LEGACY_CUDA_IPC_CAPABLE => ok(Word(u32::from(own))),
        // Of a mapping, all of what was reserved around it (recorded).
        Attribute::RANGE_START_ADDR => ok(Long(mapped().map_or(entry.base, |about| about.reservation.0))),
        Attribute::RANGE_SIZE => ok(Long(mapped().map_or(entry.size, |about| about.reservation.1))),
        Attribute::MAPPED => ok(Word(1)),
        Attribute::MEMPOOL_HANDLE if entry.kind == Kind::Pool || imported_pool => ok(Long(entry.more)),
        Attribute::ALLOWED_HANDLE_TYPES if entry.kind == Kind::Pool => {
            ok(Long(pool::handle_types_of_memory(entry.more).into()))
        }
        Attribute::ALLOWED_HANDLE_TYPES if entry.kind.is_mapping() => {
            ok(Long(mapped().map_or(0, |about| about.handle_types)))
        }
        // Handles of the virtual memory calls; this memory is not theirs.
        Attribute::ALLOWED_HANDLE_TYPES | Attribute::MEMPOOL_HANDLE => ok(Long(0)),
        // The amdgpu driver lets network cards register ROCr's blocks.
        Attribute::IS_GPU_DIRECT_RDMA_CAPABLE => ok(Word(u32::from(own))),
        Attribute::ACCESS_FLAGS => ok(Word(rights(entry))),
        Attribute::MAPPING_BASE_ADDR => ok(Long(mapping(entry).0)),
        Attribute::MAPPING_SIZE => ok(Long(mapping(entry).1)),
        // Recorded as 1 where the device's mask of algorithms is 0, as it is here.
        Attribute::IS_HW_DECOMPRESS_CAPABLE => ok(Word(u32::from(own))),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// The plural call's answer for memory that CUDA does not know; `None` where it leaves the client's value alone.
fn unknown(address: u64, attribute: CUpointer_attribute) -> Result<Option<Value>> {
    use CUpointer_attribute as Attribute;
    use Value::{Long, Word};
    Ok(match attribute {
        // Addresses that are reserved have a range although nothing is mapped there (recorded).
        Attribute::RANGE_START_ADDR => vmm::reservation(address).map(|(base, _)| Long(base)),
        Attribute::RANGE_SIZE => vmm::reservation(address).map(|(_, size)| Long(size)),
        Attribute::HOST_POINTER => Some(Long(address)),
        Attribute::DEVICE_ORDINAL => Some(Word((-2i32).cast_unsigned())),
        Attribute::CONTEXT
        | Attribute::DEVICE_POINTER
        | Attribute::BUFFER_ID
        | Attribute::MEMORY_BLOCK_ID
        | Attribute::ALLOWED_HANDLE_TYPES
        | Attribute::MEMPOOL_HANDLE
        | Attribute::MAPPING_SIZE
        | Attribute::MAPPING_BASE_ADDR => Some(Long(0)),
        Attribute::MEMORY_TYPE
        | Attribute::SYNC_MEMOPS
        | Attribute::IS_MANAGED
        | Attribute::IS_LEGACY_CUDA_IPC_CAPABLE
        | Attribute::MAPPED
        | Attribute::IS_GPU_DIRECT_RDMA_CAPABLE
        | Attribute::ACCESS_FLAGS
        | Attribute::IS_HW_DECOMPRESS_CAPABLE => Some(Word(0)),
        _ => return Err(Error::INVALID_VALUE),
    })
}

/// One attribute in the plural call, which never fails for an address, known or not. P2P_TOKENS is refused there.
pub fn plural(entry: Option<&Entry>, address: u64, attribute: CUpointer_attribute) -> Result<Option<Value>> {
    if attribute == CUpointer_attribute::P2P_TOKENS {
        return Err(Error::INVALID_VALUE);
    }
    match entry {
        Some(entry) => self::attribute(entry, address, attribute).map(|(value, _)| Some(value)),
        None => unknown(address, attribute),
    }
}

/// The answer of `cudaPointerGetAttributes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// `cudaMemoryType`; 0 for memory that CUDA does not know.
    pub memory: u32,
    /// The device's ordinal, or -2.
    pub device: i32,
    /// The address for GPUs, or 0.
    pub device_pointer: u64,
    /// The address for the host, or 0.
    pub host_pointer: u64,
}

const DEVICE: u32 = 2;

impl Summary {
    #[inline(always)]
    fn unknown(address: u64) -> Self {
        Self {
            memory: 0,
            device: -2,
            device_pointer: 0,
            host_pointer: address,
        }
    }

    #[inline(always)]
    fn plain(address: u64, memory: u32, device: i32) -> Self {
        Self {
            memory,
            device,
            device_pointer: address,
            host_pointer: if memory == DEVICE { 0 } else { address },
        }
    }

    fn of(entry: &Entry, address: u64) -> Self {
        Self {
            memory: entry.kind.memory_type(),
            device: entry.context.ordinal(),
            device_pointer: if accessible(entry) {
                entry.device_address(address)
            } else {
                0
            },
            host_pointer: if entry.kind.is_device() {
                0
            } else {
                entry.host_address(address)
            },
        }
    }

    /// What is true of `address`.
    pub fn at(address: u64) -> Self {
        match glance(address) {
            Glance::Unknown => Self::unknown(address),
            Glance::Plain { memory, device } if memory != DEVICE || accessible_on(device) => {
                Self::plain(address, memory, device)
            }
            Glance::Plain { memory, device } => Self {
                device_pointer: 0,
                ..Self::plain(address, memory, device)
            },
            Glance::More => lookup(address).map_or_else(|| Self::unknown(address), |entry| Self::of(&entry, address)),
        }
    }

    /// As [`Summary::at`], in a process that sees one device, where the table alone can tell.
    #[inline(always)]
    pub fn quick(address: u64) -> Option<Self> {
        match glance(address) {
            Glance::Unknown => Some(Self::unknown(address)),
            Glance::Plain { memory, device } => Some(Self::plain(address, memory, device)),
            Glance::More => None,
        }
    }

    /// What the plural call says for `attribute`; `None` where the summary does not hold it.
    #[inline(always)]
    pub fn attribute(&self, attribute: CUpointer_attribute) -> Option<Value> {
        use CUpointer_attribute as Attribute;
        Some(match attribute {
            // Managed memory is a device's here.
            Attribute::MEMORY_TYPE => Value::Word(self.memory.min(DEVICE)),
            Attribute::DEVICE_ORDINAL => Value::Word(self.device.cast_unsigned()),
            Attribute::IS_MANAGED => Value::Word(u32::from(self.memory > DEVICE)),
            Attribute::DEVICE_POINTER => Value::Long(self.device_pointer),
            Attribute::HOST_POINTER => Value::Long(self.host_pointer),
            Attribute::CONTEXT if self.memory == 0 => Value::Long(0),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Context;

    const BASE: u64 = 0x7f00_0000_0000;

    fn entry(kind: Kind) -> Entry {
        let context = Context::for_tests();
        Entry {
            kind,
            base: BASE,
            size: 1000,
            device_base: BASE,
            context,
            flags: 2,
            more: 0,
            id: 7,
        }
    }

    /// The records of `oracle/pointer.cc` at byte 500 of a block of 1000 bytes. Columns: `cudaMalloc`, `cudaMallocHost`,
    /// `cudaHostRegister`, IPC import, managed. `None` is a single call that fails (whatever it writes).
    #[test]
    fn attributes_are_as_recorded() {
        let kinds = [
            Kind::Device,
            Kind::Host,
            Kind::Registered,
            Kind::Imported,
            Kind::Managed,
        ];
        let at = BASE + 500;
        let all = |value| [Some(value); 5];
        let table: [(i32, [Option<u64>; 5]); 20] = [
            (1, all(Context::for_tests().handle().addr() as u64)),
            (2, [Some(2), Some(1), Some(1), Some(2), Some(2)]),
            (3, all(at)),
            (4, [None, Some(at), Some(at), None, Some(at)]),
            (6, [Some(1), Some(0), Some(0), Some(1), Some(1)]),
            (7, all(7)),
            (8, [Some(0), Some(0), Some(0), Some(0), Some(1)]),
            (9, all(0)),
            (10, [Some(1), Some(0), Some(0), Some(0), Some(0)]),
            (11, all(BASE)),
            (12, all(1000)),
            (13, all(1)),
            (14, all(0)),
            (15, [Some(1), Some(0), Some(0), Some(0), Some(0)]),
            (16, all(3)),
            (17, all(0)),
            (
                18,
                [Some(2 << 20), Some(2 << 20), Some(4096), Some(2 << 20), Some(2 << 20)],
            ),
            (19, all(BASE)),
            (20, all(7)),
            (21, [Some(1), Some(0), Some(0), Some(0), Some(0)]),
        ];
        // Widths in bytes, by attribute from 1.
        let widths = [8, 4, 8, 8, 12, 4, 8, 4, 4, 4, 8, 8, 4, 8, 4, 4, 8, 8, 8, 8, 4];
        for (id, expected) in table {
            for (kind, expected) in kinds.into_iter().zip(expected) {
                let (value, result) = attribute(&entry(kind), at, CUpointer_attribute(id)).unwrap();
                let (number, width) = match value {
                    Value::Word(value) => (u64::from(value), 4),
                    Value::Long(value) => (value, 8),
                    Value::Tokens => unreachable!("{id}"),
                };
                assert_eq!(width, widths[id as usize - 1], "width of {id}");
                assert_eq!(result.ok().map(|()| number), expected, "attribute {id} of {kind:?}");
                let plural = plural(Some(&entry(kind)), at, CUpointer_attribute(id));
                assert_eq!(plural, Ok(Some(value)), "attribute {id} of {kind:?} in the plural call");
            }
        }
        for (kind, succeeds) in kinds.into_iter().zip([true, false, false, true, true]) {
            let (value, result) = attribute(&entry(kind), at, CUpointer_attribute::P2P_TOKENS).unwrap();
            assert_eq!((value, result.is_ok()), (Value::Tokens, succeeds), "{kind:?}");
        }
        for id in [0, 22, 99, -1] {
            assert_eq!(
                attribute(&entry(Kind::Device), at, CUpointer_attribute(id)),
                Err(Error::INVALID_VALUE)
            );
        }
    }

    #[test]
    fn the_plural_call_zeroes_what_it_does_not_know() {
        let zeroes = |id| plural(None, 0x1234, CUpointer_attribute(id));
        for id in [1, 3, 7, 14, 17, 18, 19, 20] {
            assert_eq!(zeroes(id), Ok(Some(Value::Long(0))), "{id}");
        }
        for id in [2, 6, 8, 10, 13, 15, 16, 21] {
            assert_eq!(zeroes(id), Ok(Some(Value::Word(0))), "{id}");
        }
        assert_eq!(zeroes(4), Ok(Some(Value::Long(0x1234))));
        assert_eq!(zeroes(9), Ok(Some(Value::Word(-2i32 as u32))));
        assert_eq!((zeroes(11), zeroes(12)), (Ok(None), Ok(None)), "left untouched");
        assert_eq!(
            (zeroes(5), zeroes(99)),
            (Err(Error::INVALID_VALUE), Err(Error::INVALID_VALUE))
        );
    }

    #[test]
    fn registered_memory_has_a_page_mapping_and_two_addresses() {
        let registered = Entry {
            base: BASE + 100,
            device_base: 0x2_0000_0064,
            ..entry(Kind::Registered)
        };
        let long = |id| match attribute(&registered, BASE + 150, CUpointer_attribute(id)) {
            Ok((Value::Long(value), Ok(()))) => value,
            other => panic!("{other:?}"),
        };
        assert_eq!((long(19), long(18)), (BASE, 4096));
        assert_eq!((long(3), long(4)), (0x2_0000_0064 + 50, BASE + 150));
    }
}
