//! Operands of vector instructions: reading sources through SDWA and DPP, writing results under EXEC.
//!
//! A vector ALU instruction reads its sources with `src_*`, computes 64 results and hands them to `write_*`; the lanes
//! that are written, SDWA's destination selection and DPP's masks are dealt with here.
//!
//! ```text
//! register -> DPP movement (src0) or SDWA selection, sign extension -> abs -> neg -> operation -> omod, clamp (valu)
//!          -> SDWA placement -> lanes of EXEC, DPP rows and banks
//! ```

use super::dpp;
use crate::{
    isa::{Inst, Lanes, Operand, Sdwa, SdwaSel, Unused},
    wave::{V32, V64, Wave, sreg},
};

/// Calls `f` for every set bit of `mask`, lowest first.
#[inline]
pub fn for_lanes(mut mask: u64, mut f: impl FnMut(usize)) {
    if mask == u64::MAX {
        for lane in 0..64 {
            f(lane);
        }
        return;
    }
    while mask != 0 {
        f(mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}

#[inline]
fn select(value: u32, sel: SdwaSel, sext: bool) -> u32 {
    match sel {
        SdwaSel::Dword => value,
        SdwaSel::Word(n) => {
            let w = (value >> (16 * u32::from(n))) as u16;
            if sext { w as i16 as u32 } else { u32::from(w) }
        }
        SdwaSel::Byte(n) => {
            let b = (value >> (8 * u32::from(n))) as u8;
            if sext { b as i8 as u32 } else { u32::from(b) }
        }
    }
}

/// Puts `value` into the selected part of `old`.
#[inline]
fn place(value: u32, old: u32, sdwa: &Sdwa) -> u32 {
    let (shift, width) = match sdwa.dst {
        SdwaSel::Dword => return value,
        SdwaSel::Word(n) => (16 * u32::from(n), 16),
        SdwaSel::Byte(n) => (8 * u32::from(n), 8),
    };
    let field = ((1u32 << width) - 1) << shift;
    let bits = value << shift & field;
    match sdwa.unused {
        Unused::Preserve => old & !field | bits,
        Unused::Pad => bits,
        Unused::Sext => {
            let sign = value >> (width - 1) & 1 != 0;
            let above = if shift + width == 32 {
                0
            } else {
                !0u32 << (shift + width)
            };
            bits | if sign { above } else { 0 }
        }
    }
}

impl Wave {
    /// A 32-bit scalar operand. A vector register gives lane 0.
    #[inline]
    pub fn scalar32(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Sgpr(n) => self.sgpr[usize::from(n & 0x7f)],
            Operand::Const(c) => c as u32,
            Operand::Vgpr(n) => self.v(n)[0],
            Operand::Special(code) => self.special(code) as u32,
            Operand::None => 0,
        }
    }

    /// A 64-bit scalar operand.
    #[inline]
    pub fn scalar64(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Sgpr(n) => self.s64(n),
            Operand::Const(c) => c,
            Operand::Vgpr(n) => u64::from(self.v(n)[0]) | u64::from(self.v(n + 1)[0]) << 32,
            Operand::Special(code) => self.special(code),
            Operand::None => 0,
        }
    }

    /// The read-only operands 235-239 and 251-253. Aperture addresses have a low half of 0, so their 32-bit reads give 0,
    /// which is why compilers read the pair.
    fn special(&self, code: u8) -> u64 {
        match code {
            235 => self.shared_base,
            236 => self.shared_base | 0xffff_ffff,
            237 => self.private_base,
            238 => self.private_base | 0xffff_ffff,
            251 => u64::from(self.vcc() == 0),
            252 => u64::from(self.exec() == 0),
            253 => u64::from(self.scc),
            _ => 0,
        }
    }

    /// Writes a 32-bit scalar register.
    #[inline]
    pub fn set_scalar32(&mut self, operand: Operand, value: u32) {
        if let Operand::Sgpr(n) = operand {
            self.sgpr[usize::from(n & 0x7f)] = value;
        }
    }

    /// Writes a 64-bit scalar register pair, or a lane mask (compare result, carry out).
    #[inline]
    pub fn set_scalar64(&mut self, operand: Operand, value: u64) {
        if let Operand::Sgpr(n) = operand {
            self.set_s64(n, value);
        }
    }

    /// A 32-bit operand in every lane, without SDWA, DPP or modifiers.
    #[inline]
    pub fn lanes32(&self, operand: Operand) -> V32 {
        match operand {
            Operand::Vgpr(n) => *self.v(n),
            other => [self.scalar32(other); 64],
        }
    }

    /// A 64-bit operand in every lane, without DPP or modifiers.
    #[inline]
    pub fn lanes64(&self, operand: Operand) -> V64 {
        match operand {
            Operand::Vgpr(n) => {
                let (lo, hi) = (self.v(n), self.v(n + 1));
                std::array::from_fn(|i| u64::from(lo[i]) | u64::from(hi[i]) << 32)
            }
            other => [self.scalar64(other); 64],
        }
    }

    /// Source `n` of a vector instruction as raw 32 bits: after DPP movement or SDWA selection and sign extension, before
    /// abs and neg. Sixteen-bit operations find their value in the low half (VOP3 `op_sel` not applied: see
    /// [`Wave::src_b16`]).
    #[inline]
    pub fn src_b32(&self, inst: &Inst, n: usize) -> V32 {
        let value = self.lanes32(inst.src[n]);
        match &inst.lanes {
            Lanes::Plain => value,
            Lanes::Sdwa(s) if n < 2 => {
                let (sel, sext) = (s.src[n], s.sext[n]);
                if sel == SdwaSel::Dword {
                    value
                } else {
                    value.map(|v| select(v, sel, sext))
                }
            }
            Lanes::Dpp(d) if n == 0 => self.moved(d.ctrl, |from| value[from]),
            _ => value,
        }
    }

    /// Source `n` as raw 64 bits, after DPP movement.
    #[inline]
    pub fn src_b64(&self, inst: &Inst, n: usize) -> V64 {
        let value = self.lanes64(inst.src[n]);
        match &inst.lanes {
            Lanes::Dpp(d) if n == 0 => self.moved(d.ctrl, |from| value[from]),
            _ => value,
        }
    }

    fn moved<T: Copy + Default>(&self, ctrl: u16, read: impl Fn(usize) -> T) -> [T; 64] {
        let Some(m) = dpp::movement(ctrl) else {
            return [T::default(); 64];
        };
        let exec = self.exec();
        std::array::from_fn(|lane| {
            let from = usize::from(m.from[lane]);
            // An invalid source reads 0; without bound_ctrl the lane is not written either (see `active`).
            if m.valid >> lane & 1 != 0 && exec >> from & 1 != 0 {
                read(from)
            } else {
                T::default()
            }
        })
    }

    /// Source `n` as 16 bits in the low half of each lane, with VOP3's `op_sel` applied, before abs and neg.
    #[inline]
    pub fn src_b16(&self, inst: &Inst, n: usize) -> V32 {
        let value = self.src_b32(inst, n);
        if high_half(inst, n) {
            value.map(|v| v >> 16)
        } else {
            value.map(|v| v & 0xffff)
        }
    }

    /// Source `n` as f32 bits with abs and neg applied.
    #[inline]
    pub fn src_f32(&self, inst: &Inst, n: usize) -> V32 {
        let mut value = self.src_b32(inst, n);
        if inst.mods.abs >> n & 1 != 0 {
            value = value.map(|v| v & 0x7fff_ffff);
        }
        if inst.mods.neg >> n & 1 != 0 {
            value = value.map(|v| v ^ 0x8000_0000);
        }
        value
    }

    /// Source `n` as f16 bits in the low half, with `op_sel`, abs and neg applied.
    #[inline]
    pub fn src_f16(&self, inst: &Inst, n: usize) -> V32 {
        let mut value = self.src_b16(inst, n);
        if inst.mods.abs >> n & 1 != 0 {
            value = value.map(|v| v & 0x7fff);
        }
        if inst.mods.neg >> n & 1 != 0 {
            value = value.map(|v| v ^ 0x8000);
        }
        value
    }

    /// Source `n` as f64 bits with abs and neg applied.
    #[inline]
    pub fn src_f64(&self, inst: &Inst, n: usize) -> V64 {
        let mut value = self.src_b64(inst, n);
        if inst.mods.abs >> n & 1 != 0 {
            value = value.map(|v| v & !(1 << 63));
        }
        if inst.mods.neg >> n & 1 != 0 {
            value = value.map(|v| v ^ 1 << 63);
        }
        value
    }

    /// A 64-bit lane mask source (carry in, `v_cndmask`'s condition).
    #[inline]
    pub fn src_mask(&self, inst: &Inst, n: usize) -> u64 {
        self.scalar64(inst.src[n])
    }

    /// The lanes that a vector instruction writes: EXEC, less what DPP leaves out.
    #[inline]
    pub fn active(&self, inst: &Inst) -> u64 {
        let exec = self.exec();
        match &inst.lanes {
            Lanes::Dpp(d) => {
                let lanes = exec & dpp::row_bank_mask(d);
                match dpp::movement(d.ctrl) {
                    Some(m) if !d.bound_ctrl => lanes & dpp::valid_lanes(m, exec),
                    _ => lanes,
                }
            }
            _ => exec,
        }
    }

    /// Writes 32-bit results to `inst.dst` in the active lanes, through SDWA's destination selection.
    #[inline]
    pub fn write_b32(&mut self, inst: &Inst, value: &V32) {
        let active = self.active(inst);
        let Operand::Vgpr(n) = inst.dst else { return };
        let sdwa = match &inst.lanes {
            Lanes::Sdwa(s) if s.dst != SdwaSel::Dword => Some(*s),
            _ => None,
        };
        let out = self.v_mut(n);
        match sdwa {
            None if active == u64::MAX => *out = *value,
            None => for_lanes(active, |l| out[l] = value[l]),
            Some(s) => for_lanes(active, |l| out[l] = place(value[l], out[l], &s)),
        }
    }

    /// Writes 16-bit results (low half of `value`). VOP3 with `op_sel` bit 3 writes the high half and keeps the low one;
    /// else the high half becomes 0, or stays where `keep_high` (the instruction preserves it).
    #[inline]
    pub fn write_b16(&mut self, inst: &Inst, value: &V32, keep_high: bool) {
        if !matches!(inst.lanes, Lanes::Plain) {
            let low = value.map(|v| v & 0xffff);
            return self.write_b32(inst, &low);
        }
        let active = self.active(inst);
        let Operand::Vgpr(n) = inst.dst else { return };
        let high = high_half(inst, 3);
        let out = self.v_mut(n);
        for_lanes(active, |l| {
            let v = value[l] & 0xffff;
            out[l] = match (high, keep_high) {
                (true, _) => out[l] & 0xffff | v << 16,
                (false, true) => out[l] & 0xffff_0000 | v,
                (false, false) => v,
            };
        });
    }

    /// Writes 64-bit results to the register pair `inst.dst` in the active lanes.
    #[inline]
    pub fn write_b64(&mut self, inst: &Inst, value: &V64) {
        let active = self.active(inst);
        let Operand::Vgpr(n) = inst.dst else { return };
        let lo = self.v_mut(n);
        for_lanes(active, |l| lo[l] = value[l] as u32);
        let hi = self.v_mut(n + 1);
        for_lanes(active, |l| hi[l] = (value[l] >> 32) as u32);
    }

    /// Writes a compare result or carry out: bits of inactive lanes become 0.
    #[inline]
    pub fn write_mask(&mut self, operand: Operand, mask: u64) {
        let mask = mask & self.exec();
        self.set_scalar64(operand, mask);
    }

    /// M0, to write.
    #[inline]
    pub fn set_m0(&mut self, value: u32) {
        self.sgpr[usize::from(sreg::M0)] = value;
    }
}

/// Whether VOP3's `op_sel` takes (source 0-2) or writes (3) the high half. VOP3P applies its own fields.
#[inline]
fn high_half(inst: &Inst, bit: usize) -> bool {
    inst.enc == crate::isa::Encoding::Vop3 && inst.mods.op_sel >> bit & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sdwa_places_and_fills() {
        let s = |dst, unused| Sdwa {
            dst,
            unused,
            src: [SdwaSel::Dword; 2],
            sext: [false; 2],
        };
        assert_eq!(
            place(0x1ff, 0xaabb_ccdd, &s(SdwaSel::Byte(1), Unused::Preserve)),
            0xaabb_ffdd
        );
        assert_eq!(place(0x1ff, 0xaabb_ccdd, &s(SdwaSel::Byte(1), Unused::Pad)), 0xff00);
        assert_eq!(place(0x80, 0, &s(SdwaSel::Byte(1), Unused::Sext)), 0xffff_8000);
        assert_eq!(place(0x8000, 0, &s(SdwaSel::Word(1), Unused::Sext)), 0x8000_0000);
        assert_eq!(select(0x00ff_8000, SdwaSel::Word(0), true), 0xffff_8000);
        assert_eq!(select(0x00ff_8000, SdwaSel::Byte(2), false), 0xff);
    }
}
