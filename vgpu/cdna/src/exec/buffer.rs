//! MUBUF and MTBUF: addresses through a buffer resource.
//!
//! ```text
//! resource    word 0  31:0  base address
//!             word 1  15:0  base address 47:32   29:16 stride   30 cache swizzle   31 swizzle
//!             word 2  31:0  number of records (bytes when the stride is 0)
//!             word 3  11:0  destination selects  14:12 number format  18:15 data format  20:19 element size
//!                     22:21 index stride         23 add lane number to the index
//! ```

use super::{
    Trouble,
    access::{Address, Spaces},
    flat::{self, At},
    format,
    memop::MemOp,
};
use crate::{
    isa::{Encoding, Inst, Operand},
    wave::Wave,
};

/// A buffer resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Base address, 48 bits.
    pub base: u64,
    /// Bytes between records.
    pub stride: u32,
    /// Records are interleaved.
    pub swizzle: bool,
    /// Records, or bytes when the stride is 0.
    pub records: u32,
    /// Word 3.
    pub word3: u32,
}

impl Resource {
    /// Reads the four SGPRs of a resource.
    pub fn read(wave: &Wave, base: Operand) -> Resource {
        let Operand::Sgpr(n) = base else {
            return Resource {
                base: 0,
                stride: 0,
                swizzle: false,
                records: 0,
                word3: 0,
            };
        };
        let word = |i: u8| wave.scalar32(Operand::Sgpr(n + i));
        let word3 = word(3);
        let mut stride = word(1) >> 16 & 0x3fff;
        if word3 >> 23 & 1 != 0 {
            // With the lane number in the index, the data format field extends the stride.
            stride |= (word3 >> 15 & 15) << 14;
        }
        Resource {
            base: u64::from(word(0)) | u64::from(word(1) & 0xffff) << 32,
            stride,
            swizzle: word(1) >> 31 != 0,
            records: word(2),
            word3,
        }
    }

    /// Size in bytes, for scalar buffer loads.
    pub fn bytes(&self) -> u64 {
        u64::from(self.records) * u64::from(self.stride.max(1))
    }

    fn add_lane(&self) -> bool {
        self.word3 >> 23 & 1 != 0
    }

    /// The number and data format of typed accesses.
    pub fn formats(&self) -> (u8, u8) {
        ((self.word3 >> 15 & 15) as u8, (self.word3 >> 12 & 7) as u8)
    }

    /// The byte offset of one access from base plus scalar offset, or `None` when out of range: past the bytes of a raw
    /// buffer, less the scalar offset; past the records of a structured one, or past the record where an index chose it.
    fn offset(&self, index: u32, offset: u32, scalar: u32, indexed: bool) -> Option<u64> {
        let outside = if self.stride == 0 {
            offset >= self.records.saturating_sub(scalar)
        } else {
            index >= self.records || indexed && offset >= self.stride
        };
        if outside {
            return None;
        }
        if !self.swizzle {
            return Some(u64::from(index) * u64::from(self.stride) + u64::from(offset));
        }
        // Element size and index stride are powers of two.
        let (element, interleave) = (1 + (self.word3 >> 19 & 3), 3 + (self.word3 >> 21 & 3));
        let (index, offset) = (u64::from(index), u64::from(offset));
        let low = |v: u64, bits: u32| v & ((1 << bits) - 1);
        let record = (index >> interleave) * u64::from(self.stride) + (offset >> element << element);
        Some((record << interleave) + (low(index, interleave) << element) + low(offset, element))
    }
}

/// Executes an MUBUF or MTBUF instruction.
///
/// # Errors
/// Faults, and operations that have no defined result.
pub fn execute(wave: &mut Wave, spaces: &mut Spaces<'_>, inst: &Inst, op: MemOp) -> Result<(), Trouble> {
    if let MemOp::Maintain(what) = op {
        spaces.memory.maintain(what, inst);
        return Ok(());
    }
    let resource = Resource::read(wave, inst.base);
    let scalar = wave.scalar32(inst.soffset);
    let base = resource.base.wrapping_add(u64::from(scalar));
    let (offen, idxen) = (inst.flag(Inst::OFFEN), inst.flag(Inst::IDXEN));
    let first = wave.lanes32(inst.src[0]);
    let second = match (offen && idxen, inst.src[0]) {
        (true, Operand::Vgpr(n)) => *wave.v(n + 1),
        _ => first,
    };
    let (tid, imm) = (resource.add_lane(), inst.imm as u32);
    let at = move |l: usize, extra: u32| -> Address {
        let index = if idxen { first[l] } else { 0 }.wrapping_add(if tid { l as u32 } else { 0 });
        let offset = if offen { second[l] } else { 0 }.wrapping_add(imm).wrapping_add(extra);
        resource
            .offset(index, offset, scalar, idxen || tid)
            .map_or(Address::Nowhere, |o| Address::Global(base.wrapping_add(o)))
    };
    let formats = if inst.enc == Encoding::Mtbuf {
        (inst.aux[0] & 15, inst.aux[0] >> 4)
    } else {
        resource.formats()
    };
    match op {
        MemOp::LoadFormat { components, d16 } => {
            format::load(wave, spaces, inst, formats, components, d16, &resource, at)
        }
        MemOp::StoreFormat { components, d16 } => format::store(wave, spaces, inst, formats, components, d16, at),
        MemOp::Load {
            unit: super::memop::Unit::Dwords(n),
            ..
        }
        | MemOp::Store {
            unit: super::memop::Unit::Dwords(n),
            ..
        } if n > 1 => {
            // Each dword is checked and, in a swizzled buffer, placed on its own.
            let load = matches!(op, MemOp::Load { .. });
            let mut part = *inst;
            for k in 0..u16::from(n) {
                let shifted = |o: Operand| {
                    if let Operand::Vgpr(r) = o {
                        Operand::Vgpr(r + k)
                    } else {
                        o
                    }
                };
                part.dst = shifted(inst.dst);
                part.src[1] = shifted(inst.src[1]);
                let unit = super::memop::Unit::Dwords(1);
                let half = super::memop::Half::Full;
                let op = if load {
                    MemOp::Load { unit, half }
                } else {
                    MemOp::Store { unit, half }
                };
                flat::perform(wave, spaces, &part, op, At::Each(&mut |_, l| at(l, 4 * u32::from(k))))?;
            }
            Ok(())
        }
        _ => flat::perform(wave, spaces, inst, op, At::Each(&mut |_, l| at(l, 0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(stride: u32, swizzle: bool, records: u32, word3: u32) -> Resource {
        Resource {
            base: 0,
            stride,
            swizzle,
            records,
            word3,
        }
    }

    #[test]
    fn raw_and_structured_ranges() {
        let raw = resource(0, false, 64, 0);
        assert_eq!(raw.offset(0, 60, 0, false), Some(60));
        assert_eq!(raw.offset(0, 64, 0, false), None);
        let structured = resource(16, false, 4, 0);
        assert_eq!(raw.offset(0, 60, 4, false), None, "the scalar offset counts");
        assert_eq!(structured.offset(3, 20, 0, false), Some(68));
        assert_eq!(structured.offset(3, 12, 0, true), Some(60));
        assert_eq!(structured.offset(3, 16, 0, true), None, "past the record");
        assert_eq!(structured.offset(4, 0, 0, true), None);
    }

    #[test]
    fn scratch_swizzle_interleaves_lanes_by_dword() {
        // Element size 4, index stride 64.
        let scratch = resource(0, true, u32::MAX, 1 << 19 | 3 << 21 | 1 << 23);
        assert_eq!(scratch.offset(5, 0, 128, true), Some(20));
        assert_eq!(scratch.offset(5, 4, 128, true), Some(256 + 20));
        assert_eq!(scratch.offset(0, 7, 128, true), Some(256 + 3));
    }
}
