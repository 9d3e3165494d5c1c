//! The SDMA packet processor: copies, fills, fences, atomics, polls and timestamps.
//!
//! Packets are words; the first holds the operation in bits 7:0 and the sub-operation in bits 15:8. Decoding is pure,
//! so that it can be tested without a queue.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use cdna::memory::{Access, Fault, FaultReason};

use crate::{
    os,
    queue::{Context, Engine, Step},
    vm::AddressSpace,
};

mod op {
    pub const NOP: u32 = 0;
    pub const COPY: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const FENCE: u32 = 5;
    pub const TRAP: u32 = 6;
    pub const POLL_REGMEM: u32 = 8;
    pub const ATOMIC: u32 = 10;
    pub const CONST_FILL: u32 = 11;
    pub const TIMESTAMP: u32 = 13;
    pub const GCR: u32 = 17;
}

/// One side of a rectangle copy. All sizes in bytes but rows and slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Address of the window's first byte.
    pub address: u64,
    /// From row to row.
    pub pitch: u64,
    /// From slice to slice.
    pub slice: u64,
}

/// A 32- or 64-bit operation of the atomic packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Store.
    Swap,
    /// Store if equal.
    CompareSwap,
    /// Add.
    Add,
    /// Subtract.
    Sub,
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
}

/// A decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Nothing, also as filler at the end of the ring; HDP and cache flushes, which coherent memory does not need.
    Nop,
    /// `COPY` linear.
    Copy { dst: u64, src: u64, bytes: u64 },
    /// `COPY` of a window between two pitched images.
    CopyRect {
        dst: Side,
        src: Side,
        row_bytes: u64,
        rows: u64,
        slices: u64,
    },
    /// `FENCE`: a 32-bit store after everything before.
    Fence { address: u64, value: u32 },
    /// `TRAP`: raise an event.
    Trap { event: u32 },
    /// `POLL_REGMEM` of memory: wait until `(word & mask) <function> value`.
    Poll {
        address: u64,
        function: u32,
        value: u32,
        mask: u32,
    },
    /// `ATOMIC`.
    Atomic {
        op: AtomicOp,
        wide: bool,
        repeat: bool,
        address: u64,
        source: u64,
        compare: u64,
    },
    /// `CONST_FILL` with a pattern of `1 << size` bytes.
    Fill {
        address: u64,
        value: u32,
        bytes: u64,
        size: u32,
    },
    /// `TIMESTAMP` get global.
    Timestamp { address: u64 },
    /// `WRITE` linear: the data follow the packet's four words.
    Write { address: u64, words: u32 },
}

/// A packet that does not decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The ring holds only part of it yet.
    Short,
    /// The sentence names it.
    Unknown(String),
}

impl Packet {
    /// Decodes the packet at the start of `words` and its length in words.
    ///
    /// # Errors
    /// See [`Bad`].
    pub fn decode(words: &[u32]) -> Result<(Self, usize), Bad> {
        let first = *words.first().ok_or(Bad::Short)?;
        let (operation, sub) = (first & 0xff, first >> 8 & 0xff);
        let len = match (operation, sub) {
            (op::NOP, _) => 1 + (first >> 16 & 0x3fff) as usize,
            (op::COPY, 0) => 7,
            (op::COPY, 4) => 13,
            (op::WRITE, 0) => 4,
            (op::FENCE, _) => 4,
            (op::TRAP, _) => 2,
            (op::POLL_REGMEM, 0) => 6,
            (op::ATOMIC, _) => 8,
            (op::CONST_FILL, _) => 5,
            (op::TIMESTAMP, 2) => 3,
            (op::GCR, _) => 5,
            _ => {
                return Err(Bad::Unknown(format!(
                    "operation {operation}, sub-operation {sub}, first word {first:#010x}"
                )));
            }
        };
        let words = words.get(..len).ok_or(Bad::Short)?;
        let address = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
        let packet = match operation {
            op::COPY if sub == 0 => Self::Copy {
                src: address(3),
                dst: address(5),
                bytes: u64::from(words[1] & 0x3fff_ffff) + 1,
            },
            op::COPY => copy_rect(words),
            op::WRITE => {
                let count = (words[3] & 0xf_ffff) + 1;
                return Ok((
                    Self::Write {
                        address: address(1),
                        words: count,
                    },
                    len + count as usize,
                ));
            }
            op::FENCE => Self::Fence {
                address: address(1),
                value: words[3],
            },
            op::TRAP => Self::Trap {
                event: words[1] & 0xfff_ffff,
            },
            op::POLL_REGMEM => {
                // Bit 31 tells memory from registers, bit 26 an HDP flush: the latter two need no waiting here.
                if first >> 31 == 0 || first >> 26 & 1 != 0 {
                    Self::Nop
                } else {
                    let (function, value, mask) = (first >> 28 & 7, words[3], words[4]);
                    if function == 7 {
                        return Err(Bad::Unknown("POLL_REGMEM with function 7".into()));
                    }
                    Self::Poll {
                        address: address(1),
                        function,
                        value,
                        mask,
                    }
                }
            }
            op::ATOMIC => {
                let (op, wide) = atomic_op(first >> 25)?;
                let repeat = first >> 16 & 1 != 0;
                Self::Atomic {
                    op,
                    wide,
                    repeat,
                    address: address(1),
                    source: address(3),
                    compare: address(5),
                }
            }
            op::CONST_FILL => {
                let size = first >> 30;
                let bytes = u64::from(words[4] & 0x3f_ffff) + 1;
                if size == 3 {
                    return Err(Bad::Unknown("CONST_FILL with fill size 3".into()));
                }
                Self::Fill {
                    address: address(1),
                    value: words[3],
                    bytes,
                    size,
                }
            }
            op::TIMESTAMP => Self::Timestamp { address: address(1) },
            _ => Self::Nop,
        };
        Ok((packet, len))
    }
}

/// ```text
/// word  3: src x 13:0, y 29:16     4: src z 10:0, pitch-1 31:13     5: src slice-1 27:0     (in elements)
///       8: dst x, y                9: dst z, pitch-1               10: dst slice-1
///      11: width-1 13:0, height-1 29:16                            12: depth-1 10:0
/// ```
fn copy_rect(words: &[u32]) -> Packet {
    let element = words[0] >> 29;
    let side = |base: usize| {
        let [xy, z_pitch, slice] = [words[base + 2], words[base + 3], words[base + 4]];
        let pitch = (u64::from(z_pitch >> 13) + 1) << element;
        let slice = (u64::from(slice & 0xfff_ffff) + 1) << element;
        let (x, y, z) = (
            u64::from(xy & 0x3fff) << element,
            u64::from(xy >> 16 & 0x3fff),
            u64::from(z_pitch & 0x7ff),
        );
        let address = u64::from(words[base]) | u64::from(words[base + 1]) << 32;
        Side {
            address: address.wrapping_add(x + y * pitch + z * slice),
            pitch,
            slice,
        }
    };
    Packet::CopyRect {
        src: side(1),
        dst: side(6),
        row_bytes: (u64::from(words[11] & 0x3fff) + 1) << element,
        rows: u64::from(words[11] >> 16 & 0x3fff) + 1,
        slices: u64::from(words[12] & 0x7ff) + 1,
    }
}

/// The cache's operation codes: the forms that return, 32 bit from 0x07 and 64 bit 0x20 above. Those without a return
/// value are 0x40 higher and do the same to memory.
fn atomic_op(code: u32) -> Result<(AtomicOp, bool), Bad> {
    let wide = code & 0x20 != 0;
    let op = match code & 0x1f {
        0x07 => AtomicOp::Swap,
        0x08 => AtomicOp::CompareSwap,
        0x0f => AtomicOp::Add,
        0x10 => AtomicOp::Sub,
        0x15 => AtomicOp::And,
        0x16 => AtomicOp::Or,
        0x17 => AtomicOp::Xor,
        _ => return Err(Bad::Unknown(format!("ATOMIC with operation {code:#x}"))),
    };
    Ok((op, wide))
}

/// An SDMA queue's state.
#[derive(Debug, Default)]
pub struct Sdma {
    /// Bytes consumed; grows for ever, as the write pointer does.
    read: u64,
    /// All that was announced is consumed.
    waiting: bool,
}

/// Longest packet that is decoded in one piece, in words.
const LONGEST: usize = 13;

impl Engine for Sdma {
    fn waits_for_doorbell(&self) -> bool {
        self.waiting
    }

    fn step(&mut self, context: &Context) -> Step {
        let written = context.doorbell.load(Ordering::Acquire);
        self.waiting = written == u64::MAX || self.read >= written;
        if self.waiting {
            return Step::Idle;
        }
        let what = match self.packet(context, written) {
            Ok(step) => return step,
            Err(Failure::Fault(fault, what)) => {
                let message = format!("SDMA queue {}: {what}", context.id);
                context.process.memory_fault(context.gpu, fault, &message);
                return Step::Halted;
            }
            Err(Failure::Unknown(what)) => what,
        };
        context.process.counters.add(&context.process.counters.queue_errors, 1);
        log::error!(
            "GPU {}: SDMA queue {} stopped: packet at byte {:#x} is not understood: {what}",
            context.gpu.index,
            context.id,
            self.read
        );
        // An SDMA queue has no error signal: the card would hang here and be reset.
        context.process.events.raise_hw_exception(context.gpu.id);
        Step::Halted
    }
}

enum Failure {
    Fault(Fault, &'static str),
    Unknown(String),
}

impl Sdma {
    fn packet(&mut self, context: &Context, written: u64) -> Result<Step, Failure> {
        let vm = &context.gpu.vm;
        let ring_va = context.control.ring.load(Ordering::Acquire);
        let size = context.control.ring_size.load(Ordering::Acquire);
        let fault = |what: &'static str| move |fault| Failure::Fault(fault, what);
        let ring = vm
            .contiguous(ring_va, size, Access::Read)
            .map_err(fault("the ring"))?
            .cast::<u32>();
        let available = ((written - self.read) / 4).min(size / 4);
        let word = |i: u64| {
            // SAFETY: inside the ring, which is mapped and aligned. Producers fence before the doorbell.
            unsafe { ring.add(((self.read / 4 + i) % (size / 4)) as usize).read_volatile() }
        };
        let mut words = [0; LONGEST];
        let count = (available as usize).min(LONGEST);
        for (i, slot) in words[..count].iter_mut().enumerate() {
            *slot = word(i as u64);
        }
        let (packet, len) = match Packet::decode(&words[..count]) {
            Ok(decoded) => decoded,
            // A NOP may be longer than what we look at, and it has nothing else to say.
            Err(Bad::Short) if count > 0 && words[0] & 0xff == op::NOP => {
                (Packet::Nop, 1 + (words[0] >> 16 & 0x3fff) as usize)
            }
            Err(Bad::Short) => return Ok(Step::Idle),
            Err(Bad::Unknown(what)) => return Err(Failure::Unknown(what)),
        };
        if len as u64 > available {
            return Ok(Step::Idle);
        }
        let counters = &context.process.counters;
        match packet {
            Packet::Write { address, words } => {
                for i in 0..u64::from(words) {
                    let to = aligned::<u32>(vm, address + 4 * i, Access::Write).map_err(fault("WRITE"))?;
                    // SAFETY: mapped and aligned.
                    unsafe { to.write_volatile(word(4 + i)) };
                }
            }
            Packet::Trap { event } => {
                if context.process.events.set(event).is_err() {
                    log::debug!(
                        "SDMA queue {}: TRAP names event {event}, which is not there",
                        context.id
                    );
                }
            }
            packet => match execute(vm, packet).map_err(|(f, what)| Failure::Fault(f, what))? {
                Done::Blocked => return Ok(Step::Idle),
                Done::Copied { bytes, foreign } => {
                    counters.add(&counters.sdma_bytes_copied, bytes);
                    counters.add(&counters.foreign_bytes, foreign);
                }
                Done::Filled(bytes) => counters.add(&counters.sdma_bytes_filled, bytes),
                Done::Signalled => context.process.bell.ring(),
                Done::Nothing => {}
            },
        }
        if packet != Packet::Nop {
            counters.add(&counters.sdma_packets, 1);
            let (gpu, queue, byte) = (context.gpu.index, context.id, self.read);
            context
                .process
                .trace
                .packet(|| format!("GPU {gpu} SDMA queue {queue} @{byte:#x} {packet:x?}"));
        }
        self.read += len as u64 * 4;
        context.set_read_pointer(self.read).map_err(fault("the read pointer"))?;
        Ok(Step::Progress)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Done {
    Nothing,
    /// The condition does not hold yet.
    Blocked,
    Copied {
        bytes: u64,
        foreign: u64,
    },
    Filled(u64),
    /// A word was written that another queue may wait for.
    Signalled,
}

/// An aligned word of device memory; what is not aligned faults, as the engine's own check does.
fn aligned<T>(vm: &AddressSpace, va: u64, access: Access) -> Result<*mut T, Fault> {
    if !va.is_multiple_of(size_of::<T>() as u64) {
        return Err(Fault {
            va,
            reason: FaultReason::NotPresent,
        });
    }
    vm.contiguous(va, size_of::<T>() as u64, access).map(<*mut u8>::cast)
}

fn execute(vm: &AddressSpace, packet: Packet) -> Result<Done, (Fault, &'static str)> {
    let at = |what: &'static str| move |fault| (fault, what);
    Ok(match packet {
        Packet::Nop | Packet::Trap { .. } | Packet::Write { .. } => Done::Nothing,
        Packet::Copy { dst, src, bytes } => Done::Copied {
            bytes,
            foreign: vm.copy(dst, src, bytes).map_err(at("COPY linear"))?,
        },
        Packet::CopyRect {
            dst,
            src,
            row_bytes,
            rows,
            slices,
        } => {
            let mut foreign = 0;
            for z in 0..slices {
                for y in 0..rows {
                    let to = dst.address.wrapping_add(y * dst.pitch + z * dst.slice);
                    let from = src.address.wrapping_add(y * src.pitch + z * src.slice);
                    foreign += vm.copy(to, from, row_bytes).map_err(at("COPY rectangle"))?;
                }
            }
            Done::Copied {
                bytes: row_bytes * rows * slices,
                foreign,
            }
        }
        Packet::Fence { address, value } => {
            let word = aligned::<u32>(vm, address, Access::Write).map_err(at("FENCE"))?;
            // SAFETY: mapped and aligned.
            unsafe { AtomicU32::from_ptr(word) }.store(value, Ordering::Release);
            Done::Signalled
        }
        Packet::Poll {
            address,
            function,
            value,
            mask,
        } => {
            let word = aligned::<u32>(vm, address, Access::Read).map_err(at("POLL_REGMEM"))?;
            // SAFETY: mapped and aligned.
            let current = unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Acquire) & mask;
            let met = match function {
                1 => current < value,
                2 => current <= value,
                3 => current == value,
                4 => current != value,
                5 => current >= value,
                6 => current > value,
                _ => true,
            };
            if met { Done::Nothing } else { Done::Blocked }
        }
        Packet::Atomic {
            op,
            wide,
            repeat,
            address,
            source,
            compare,
        } => {
            let swapped = if wide {
                let word = aligned::<u64>(vm, address, Access::Atomic).map_err(at("ATOMIC"))?;
                // SAFETY: mapped and aligned.
                atomic64(unsafe { AtomicU64::from_ptr(word) }, op, source, compare)
            } else {
                let word = aligned::<u32>(vm, address, Access::Atomic).map_err(at("ATOMIC"))?;
                // SAFETY: mapped and aligned.
                atomic32(unsafe { AtomicU32::from_ptr(word) }, op, source as u32, compare as u32)
            };
            if swapped || !repeat {
                Done::Signalled
            } else {
                Done::Blocked
            }
        }
        Packet::Fill {
            address,
            value,
            bytes,
            size,
        } => {
            fill(vm, address, value, bytes, size).map_err(at("CONST_FILL"))?;
            Done::Filled(bytes)
        }
        Packet::Timestamp { address } => {
            let word = aligned::<u64>(vm, address, Access::Write).map_err(at("TIMESTAMP"))?;
            // SAFETY: mapped and aligned.
            unsafe { word.write_volatile(os::gpu_clock()) };
            Done::Nothing
        }
    })
}

/// Repeats the low `1 << size` bytes of `value`.
fn fill(vm: &AddressSpace, address: u64, value: u32, bytes: u64, size: u32) -> Result<(), Fault> {
    let pattern = match size {
        0 => u32::from_ne_bytes([value as u8; 4]),
        1 => value & 0xffff | value << 16,
        _ => value,
    }
    .to_le_bytes();
    let mut done = 0;
    while done < bytes {
        let span = vm.span(address + done, bytes - done, Access::Write)?;
        // SAFETY: mapped for `len` bytes. Others may touch them at the same time: no reference outlives this loop, and
        // nothing depends on the values.
        let target = unsafe { std::slice::from_raw_parts_mut(span.host, span.len as usize) };
        for (i, byte) in target.iter_mut().enumerate() {
            *byte = pattern[(done as usize + i) % 4];
        }
        done += span.len;
    }
    Ok(())
}

/// The operations on a word of either width.
macro_rules! atomic {
    ($name:ident, $word:ty, $value:ty) => {
        /// Applies an operation; false only for a compare-and-swap that did not swap.
        fn $name(word: &$word, op: AtomicOp, source: $value, compare: $value) -> bool {
            match op {
                AtomicOp::Swap => word.swap(source, Ordering::AcqRel),
                AtomicOp::CompareSwap => {
                    return word
                        .compare_exchange(compare, source, Ordering::AcqRel, Ordering::Acquire)
                        .is_ok();
                }
                AtomicOp::Add => word.fetch_add(source, Ordering::AcqRel),
                AtomicOp::Sub => word.fetch_sub(source, Ordering::AcqRel),
                AtomicOp::And => word.fetch_and(source, Ordering::AcqRel),
                AtomicOp::Or => word.fetch_or(source, Ordering::AcqRel),
                AtomicOp::Xor => word.fetch_xor(source, Ordering::AcqRel),
            };
            true
        }
    };
}

atomic!(atomic32, AtomicU32, u32);
atomic!(atomic64, AtomicU64, u64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::Mapping;

    /// A machine with 4 KiB at address 0x10000.
    fn memory() -> (AddressSpace, Box<[u64; 512]>) {
        let vm = AddressSpace::default();
        let mut bytes = Box::new([0u64; 512]);
        let host = bytes.as_mut_ptr() as usize;
        let mapping = Mapping {
            size: 4096,
            host,
            writable: true,
            executable: false,
            foreign: false,
            user: false,
            coarse: true,
        };
        assert!(vm.insert(0x10000, mapping));
        (vm, bytes)
    }

    fn decode(words: &[u32]) -> Packet {
        let (packet, len) = Packet::decode(words).unwrap();
        assert_eq!(len, words.len());
        packet
    }

    #[test]
    fn linear_copies_take_30_bit_counts() {
        let packet = decode(&[1, 0x3fff_ffff, 0, 0x1000, 2, 0x2000, 3]);
        assert_eq!(
            packet,
            Packet::Copy {
                src: 0x2_0000_1000,
                dst: 0x3_0000_2000,
                bytes: 1 << 30
            }
        );
    }

    #[test]
    fn a_rectangle_copy_moves_the_window_only() {
        let (vm, mut bytes) = memory();
        for (i, word) in bytes.iter_mut().enumerate().take(256) {
            *word = i as u64;
        }
        // Elements of 8 bytes; source 8 x 4 x 2 at 0x10000, destination 4 x 4 x 2 at 0x10800; window 3 x 2 x 2.
        let side = |z: u32, pitch: u32| z | (pitch - 1) << 13;
        let packet = decode(&[
            1 | 4 << 8 | 3 << 29,
            0x10000,
            0,
            2 | 1 << 16,
            side(0, 8),
            32 - 1,
            0x10800,
            0,
            1 | 2 << 16,
            side(0, 4),
            16 - 1,
            (3 - 1) | (2 - 1) << 16,
            2 - 1,
        ]);
        assert_eq!(execute(&vm, packet), Ok(Done::Copied { bytes: 96, foreign: 0 }));
        for z in 0..2 {
            for y in 0..4 {
                for x in 0..4 {
                    let inside = (1..4).contains(&x) && (2..4).contains(&y);
                    let expected = if inside { (x + 1) + (y - 1) * 8 + z * 32 } else { 0 };
                    assert_eq!(bytes[256 + x + y * 4 + z * 16], expected as u64, "{x} {y} {z}");
                }
            }
        }
    }

    #[test]
    fn fences_polls_and_atomics_work_on_words() {
        let (vm, bytes) = memory();
        let run = |words: &[u32]| execute(&vm, decode(words)).unwrap();
        assert_eq!(run(&[5, 0x10008, 0, 77]), Done::Signalled);
        assert_eq!(bytes[1], 77);
        let poll = |function: u32, value| [8 | function << 28 | 1 << 31, 0x10008, 0, value, u32::MAX, 0];
        for (function, value, met) in [
            (0, 0, true),
            (1, 78, true),
            (2, 76, false),
            (3, 77, true),
            (4, 77, false),
            (5, 77, true),
            (6, 77, false),
        ] {
            assert_eq!(run(&poll(function, value)) == Done::Nothing, met, "function {function}");
        }
        assert_eq!(
            run(&[10 | 47 << 25, 0x10008, 0, u32::MAX, u32::MAX, 0, 0, 0]),
            Done::Signalled
        );
        assert_eq!(bytes[1], 76, "ATOMIC add 64 of -1");
        let swap = |compare| [10 | 1 << 16 | 40 << 25, 0x10008, 0, 5, 0, compare, 0, 0];
        assert_eq!(run(&swap(75)), Done::Blocked, "the looping form waits");
        assert_eq!(run(&swap(76)), Done::Signalled);
        assert_eq!(bytes[1], 5);
        assert_eq!(decode(&[8, 0, 0x8000_0000, 0, 0, 0]), Packet::Nop, "HDP flush");
    }

    #[test]
    fn fills_repeat_their_pattern() {
        let (vm, mut bytes) = memory();
        for (size, pattern) in [
            (0, [0x44; 4]),
            (1, [0x44, 0x33, 0x44, 0x33]),
            (2, [0x44, 0x33, 0x22, 0x11]),
        ] {
            bytes.fill(0);
            let packet = decode(&[11 | size << 30, 0x10001, 0, 0x1122_3344, 7 - 1]);
            assert_eq!(execute(&vm, packet), Ok(Done::Filled(7)));
            let expected: [u8; 16] =
                std::array::from_fn(|i| if (1..8).contains(&i) { pattern[(i - 1) % 4] } else { 0 });
            assert_eq!(
                [bytes[0].to_le_bytes(), bytes[1].to_le_bytes()].concat(),
                expected,
                "size {size}"
            );
        }
    }

    #[test]
    fn unmapped_and_unaligned_addresses_fault() {
        let (vm, _bytes) = memory();
        let fault = |words: &[u32]| execute(&vm, decode(words)).unwrap_err().0.va;
        assert_eq!(fault(&[5, 0x11000, 0, 1]), 0x11000);
        assert_eq!(fault(&[5, 0x10002, 0, 1]), 0x10002);
        assert_eq!(fault(&[13 | 2 << 8, 0x10004, 0]), 0x10004);
        assert_eq!(fault(&[1, 4095, 0, 0x10800, 0, 0x20000, 0]), 0x20000);
    }

    #[test]
    fn short_and_unknown_packets_are_told_apart() {
        assert_eq!(Packet::decode(&[]), Err(Bad::Short));
        assert_eq!(Packet::decode(&[1, 2, 3]), Err(Bad::Short));
        assert!(matches!(Packet::decode(&[99; 13]), Err(Bad::Unknown(text)) if text.contains("99")));
        assert_eq!(Packet::decode(&[3 << 16, 0, 0, 0]), Ok((Packet::Nop, 4)));
    }

    #[test]
    fn random_words_never_panic() {
        let (vm, _bytes) = memory();
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut words = [0u32; LONGEST];
        for _ in 0..200_000 {
            for word in &mut words {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                *word = seed as u32;
            }
            // A likely operation, so that more than the header is exercised.
            words[0] = words[0] & 0xffff_ff00 | ((seed >> 40) as u32 % 20);
            if seed & 1 == 0 {
                words[0] &= !0xff00;
            }
            if let Ok((packet, len)) = Packet::decode(&words[..(seed >> 50) as usize % (LONGEST + 1)]) {
                assert!(len >= 1);
                if !matches!(packet, Packet::CopyRect { .. }) {
                    let _ = execute(&vm, packet);
                }
            }
        }
    }
}
