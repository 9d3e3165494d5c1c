//! Stream memory operations: a stream stores a value to memory, or waits until memory holds one.
//!
//! This file is their meaning, whoever enqueues them: a call, a batch, or a node of a graph that is launched many times.
//! Which memory is accepted is as recorded (`tests/oracle`, area `memops`).

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::spans::Span;
use super::staging::Chunk;
use super::stream::Stream;
use crate::abi::{Error, Result};
use crate::device::{Device, context, peer};
use crate::graph::operation::MemOps;
use crate::graph::{Operation, capture};
use crate::memory::{self, Kind, host_access};

/// One operation, checked by [`enqueue`]. Plain data: a graph keeps them and enqueues them at every launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemOp {
    /// Stores the low bytes of `value`.
    Write {
        /// Where, a multiple of the width.
        address: u64,
        /// What.
        value: u64,
        /// How many bytes.
        width: Width,
    },
    /// Waits until memory and `value` compare.
    Wait {
        /// Where, a multiple of the width.
        address: u64,
        /// What memory is compared with.
        value: u64,
        /// How many bytes are compared.
        width: Width,
        /// How.
        compare: Compare,
    },
    /// Orders memory accesses before and after. Every operation of a stream does.
    Barrier,
}

/// Bytes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits.
    Four,
    /// 64 bits.
    Eight,
}

impl Width {
    /// As a number.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// How a wait compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `memory - value >= 0` as a signed number of the width: counters may wrap around.
    GreaterOrEqual,
    /// `memory == value`.
    Equal,
    /// `memory & value != 0`.
    And,
    /// `~(memory | value) != 0`.
    Nor,
}

impl Compare {
    /// Whether `memory` satisfies a wait for `value`.
    pub fn holds(self, memory: u64, value: u64, width: Width) -> bool {
        let (memory, value, full) = match width {
            Width::Four => (memory & 0xffff_ffff, value & 0xffff_ffff, 0xffff_ffff),
            Width::Eight => (memory, value, u64::MAX),
        };
        match (self, width) {
            (Self::GreaterOrEqual, Width::Four) => (memory as i32).wrapping_sub(value as i32) >= 0,
            (Self::GreaterOrEqual, Width::Eight) => (memory as i64).wrapping_sub(value as i64) >= 0,
            (Self::Equal, _) => memory == value,
            (Self::And, _) => memory & value != 0,
            (Self::Nor, _) => !(memory | value) & full != 0,
        }
    }
}

/// A word of memory that a stream may write or wait for.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The device whose engine reaches it: its owner, or the stream's for host memory.
    pub device: &'static Device,
    /// As that device sees it; 0 for host memory that no device sees.
    pub address: u64,
    /// As the host sees it: pinned memory only.
    host: Option<u64>,
    /// Bytes of the operation that lie inside the allocation. Recorded: only the first must.
    bytes: u64,
}

impl Target {
    /// The word at `address`, for operations of `stream`.
    ///
    /// # Errors
    /// INVALID_VALUE for an address that is not aligned to the width, and for memory that is not (device, imported, VMM) memory of the
    /// stream's device or an enabled peer, nor pinned or registered host memory.
    pub fn of(stream: &Stream, address: u64, width: Width) -> Result<Self> {
        if !address.is_multiple_of(width.bytes()) {
            return Err(Error::INVALID_VALUE);
        }
        let entry = memory::lookup(address).ok_or(Error::INVALID_VALUE)?;
        let bytes = entry.bytes_left(address).min(width.bytes());
        match entry.kind {
            Kind::Host | Kind::Registered => Ok(Self {
                device: stream.device(),
                address: entry.device_address(address),
                host: Some(entry.host_address(address)),
                bytes,
            }),
            // Recorded: no memory of pools.
            Kind::Pool => Err(Error::INVALID_VALUE),
            Kind::Mapping if !memory::pointer::accessible(&entry) => Err(Error::INVALID_VALUE),
            kind if kind.is_device() => {
                let context = context::of_streams(stream.owner()).ok_or(Error::CONTEXT_IS_DESTROYED)?;
                if kind != Kind::Mapping && !peer::enabled(context, entry.context.device) {
                    return Err(Error::INVALID_VALUE);
                }
                Ok(Self {
                    device: entry.context.device,
                    address,
                    host: None,
                    bytes,
                })
            }
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// Eight bytes of host memory of the runtime's own, at `device_address` for GPUs if they see it.
    pub fn host_word(device: &'static Device, device_address: Option<u64>, host: u64) -> Self {
        Self {
            device,
            address: device_address.unwrap_or(0),
            host: Some(host),
            bytes: 8,
        }
    }

    /// A device can write it.
    pub(super) fn is_for_device(&self) -> bool {
        self.address != 0
    }

    /// It is host memory.
    pub fn is_host(&self) -> bool {
        self.host.is_some()
    }

    /// Stores `value` from the host; for host memory, when everything before it has ended.
    pub fn store(&self, value: u64) {
        let Some(address) = self.host else { return };
        // What GPUs wrote has been seen to have ended; it must not become visible after the flag.
        fence(Ordering::SeqCst);
        match self.bytes {
            // SAFETY: pinned memory of the application's, aligned to its width, which it keeps while streams use it.
            8 => unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(value, Ordering::Release),
            // SAFETY: as above.
            4 => unsafe { AtomicU32::from_ptr(address as *mut u32) }.store(value as u32, Ordering::Release),
            // SAFETY: as above; an allocation that ends within the word.
            bytes => unsafe {
                core::ptr::copy_nonoverlapping(value.to_le_bytes().as_ptr(), address as *mut u8, bytes as usize);
            },
        }
    }

    /// Stores `value` to device memory from the host, when everything before it has ended; false where that cannot be.
    pub(super) fn store_to_device(&self, value: u64) -> bool {
        host_access::store(self.device, self.address, &value.to_le_bytes()[..self.bytes as usize])
    }

    /// The store as a copy by the device's engine, from a chunk that must live until it has ended.
    pub(super) fn span(&self, value: u64) -> Result<(Span, Chunk)> {
        let mut chunk = Chunk::new(self.device, 8)?;
        chunk.bytes()[..8].copy_from_slice(&value.to_le_bytes());
        let span = Span {
            dst: self.address,
            src: chunk.address(),
            len: self.bytes,
        };
        Ok((span, chunk))
    }

    /// What the word holds, if the host can see it.
    fn load(&self) -> Option<u64> {
        match (self.host, self.bytes) {
            // SAFETY: as in `store`.
            (Some(address), 8) => Some(unsafe { AtomicU64::from_ptr(address as *mut u64) }.load(Ordering::Acquire)),
            (Some(address), 4) => {
                // SAFETY: as in `store`.
                Some(
                    unsafe { AtomicU32::from_ptr(address as *mut u32) }
                        .load(Ordering::Acquire)
                        .into(),
                )
            }
            (Some(address), bytes) => {
                let mut word = [0; 8];
                // SAFETY: as in `store`.
                unsafe { core::ptr::copy_nonoverlapping(address as *const u8, word.as_mut_ptr(), bytes as usize) };
                Some(u64::from_le_bytes(word))
            }
            (None, bytes) => host_access::load(self.address, bytes),
        }
    }

    /// Bytes of the operation that lie inside the allocation.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What a stream waits for.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// Where it looks.
    pub target: Target,
    value: u64,
    width: Width,
    compare: Compare,
}

impl Condition {
    /// Memory at `target` and `value` compare.
    pub fn new(target: Target, value: u64, width: Width, compare: Compare) -> Self {
        Self {
            target,
            value,
            width,
            compare,
        }
    }

    /// What memory is compared with.
    pub(super) fn value(&self) -> u64 {
        self.value
    }

    /// Whether it holds now; `None` where only the device can look at the memory.
    pub fn is_met(&self) -> Option<bool> {
        self.target.load().map(|memory| self.is_met_by(memory))
    }

    /// Whether it holds when memory holds `memory`.
    pub fn is_met_by(&self, memory: u64) -> bool {
        self.compare.holds(memory, self.value, self.width)
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = self.target.address;
        write!(f, "a wait for {:?} {:#x} at {address:#x}", self.compare, self.value)?;
        match self.target.load() {
            Some(memory) => write!(f, ", which holds {memory:#x}"),
            None => write!(f, " of {:?}", self.target.device),
        }
    }
}

impl MemOp {
    /// Where it looks or writes.
    pub fn address(&self) -> Option<u64> {
        match *self {
            Self::Write { address, .. } | Self::Wait { address, .. } => Some(address),
            Self::Barrier => None,
        }
    }
}

enum Checked {
    Write(Target, u64),
    Wait(Condition),
    Barrier,
}

fn checked(stream: &Stream, operation: &MemOp) -> Result<Checked> {
    Ok(match *operation {
        MemOp::Write { address, value, width } => Checked::Write(Target::of(stream, address, width)?, value),
        MemOp::Wait {
            address,
            value,
            width,
            compare,
        } => Checked::Wait(Condition {
            target: Target::of(stream, address, width)?,
            value,
            width,
            compare,
        }),
        MemOp::Barrier => Checked::Barrier,
    })
}

/// Whether `stream` may do an operation.
///
/// # Errors
/// As [`Target::of`].
pub fn check(stream: &Stream, operation: &MemOp) -> Result<()> {
    checked(stream, operation).map(|_| ())
}

/// Enqueues operations in `stream`, one after the other; none if one of them is refused. Where it is captured they become a node.
///
/// # Errors
/// As [`Target::of`], MEMORY_ALLOCATION, or the process's fault.
pub fn enqueue(stream: &Stream, operations: &[MemOp]) -> Result<()> {
    if let Some(sequence) = capture::intercept(stream)? {
        let context = context::of_streams(stream.owner()).ok_or(Error::CONTEXT_IS_DESTROYED)?;
        // As recorded, addresses are looked at when the graph is launched.
        return sequence.add(stream, Operation::MemOps(MemOps::new(operations, context)));
    }
    let checked: Vec<Checked> = operations
        .iter()
        .map(|operation| checked(stream, operation))
        .collect::<Result<_>>()?;
    for operation in checked {
        match operation {
            Checked::Write(target, value) => stream.write_memory(&target, value, Vec::new())?,
            Checked::Wait(condition) => stream.wait_for_memory(condition)?,
            Checked::Barrier => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greater_or_equal_is_cyclic_in_both_widths() {
        let geq = Compare::GreaterOrEqual;
        for (width, half, top) in [
            (Width::Four, 1u64 << 31, u64::from(u32::MAX)),
            (Width::Eight, 1 << 63, u64::MAX),
        ] {
            for (memory, value, holds) in [
                (0, 0, true),
                (1, 0, true),
                (0, 1, false),
                // Across the sign and across the end.
                (half, half - 1, true),
                (half - 1, half, false),
                (5, top - 15, true),
                (top - 15, 5, false),
                (2, top - 1, true),
                // Half the range ahead counts as behind.
                (half, 0, false),
                (half - 1, 0, true),
            ] {
                assert_eq!(
                    geq.holds(memory, value, width),
                    holds,
                    "{memory:#x} {value:#x} {width:?}"
                );
            }
        }
        assert!(
            geq.holds(0xdead_beef_0000_0001, 1, Width::Four),
            "the upper word is not looked at"
        );
        assert!(!geq.holds(0xffff_ffff, 0x1_0000_0000, Width::Eight));
    }

    #[test]
    fn the_other_comparisons_are_bitwise() {
        for width in [Width::Four, Width::Eight] {
            assert!(Compare::Equal.holds(5, 5, width) && !Compare::Equal.holds(6, 5, width));
            assert!(Compare::And.holds(0xf0, 0x1f, width) && !Compare::And.holds(0xf0, 0x0f, width));
            assert!(!Compare::And.holds(u64::MAX, 0, width), "nothing satisfies value 0");
            assert!(Compare::Nor.holds(0xffff_fff0, 7, width));
        }
        assert!(!Compare::Nor.holds(0xffff_fff0, 0xf, Width::Four));
        assert!(Compare::Nor.holds(0xffff_fff0, 0xf, Width::Eight));
    }
}
