//! SOP1, SOP2, SOPC, SOPK and SOPP.

use super::{Flow, Trouble, step::Context};
use crate::{
    isa::{Encoding, Inst, Mnemonic as M, Operand},
    wave::{Mode, Wave},
};

/// Executes a scalar ALU or program control instruction. `wave.pc` is already the next instruction's.
///
/// # Errors
/// [`Trouble::Illegal`] for what has no meaning outside graphics or the trap handler.
pub fn execute(wave: &mut Wave, ctx: &mut Context<'_>, inst: &Inst) -> Result<Flow, Trouble> {
    match inst.enc {
        Encoding::Sop2 => sop2(wave, inst),
        Encoding::Sop1 => sop1(wave, ctx, inst),
        Encoding::Sopc => sopc(wave, inst),
        Encoding::Sopk => sopk(wave, ctx, inst),
        _ => sopp(wave, ctx, inst),
    }
}

fn bfe32(value: u32, control: u32, signed: bool) -> u32 {
    let (offset, width) = (control & 31, (control >> 16 & 0x7f).min(32));
    if width == 0 {
        return 0;
    }
    let width = width.min(32 - offset);
    let field = value << (32 - offset - width);
    if signed {
        ((field as i32) >> (32 - width)) as u32
    } else {
        field >> (32 - width)
    }
}

fn bfe64(value: u64, control: u32, signed: bool) -> u64 {
    let (offset, width) = (control & 63, (control >> 16 & 0x7f).min(64));
    if width == 0 {
        return 0;
    }
    let width = width.min(64 - offset);
    let field = value << (64 - offset - width);
    if signed {
        ((field as i64) >> (64 - width)) as u64
    } else {
        field >> (64 - width)
    }
}

fn sop2(wave: &mut Wave, inst: &Inst) -> Result<Flow, Trouble> {
    let a = || wave.scalar32(inst.src[0]);
    let b = || wave.scalar32(inst.src[1]);
    let a64 = || wave.scalar64(inst.src[0]);
    let b64 = || wave.scalar64(inst.src[1]);
    /// A result and what becomes of SCC.
    enum R {
        W(u32),
        Scc(u32, bool),
        L(u64),
        LScc(u64, bool),
    }
    // Logic results set SCC when nonzero.
    let logic = |v: u32| R::Scc(v, v != 0);
    let logic64 = |v: u64| R::LScc(v, v != 0);
    let result = match inst.mnemonic {
        M::s_add_u32 => {
            let (v, c) = a().overflowing_add(b());
            R::Scc(v, c)
        }
        M::s_sub_u32 => {
            let (v, c) = a().overflowing_sub(b());
            R::Scc(v, c)
        }
        M::s_add_i32 => {
            let (v, c) = (a() as i32).overflowing_add(b() as i32);
            R::Scc(v as u32, c)
        }
        M::s_sub_i32 => {
            let (v, c) = (a() as i32).overflowing_sub(b() as i32);
            R::Scc(v as u32, c)
        }
        M::s_addc_u32 => {
            let v = u64::from(a()) + u64::from(b()) + u64::from(wave.scc);
            R::Scc(v as u32, v >> 32 != 0)
        }
        M::s_subb_u32 => {
            let v = u64::from(a())
                .wrapping_sub(u64::from(b()))
                .wrapping_sub(u64::from(wave.scc));
            R::Scc(v as u32, v >> 32 != 0)
        }
        M::s_min_i32 => R::Scc((a() as i32).min(b() as i32) as u32, (a() as i32) < b() as i32),
        M::s_min_u32 => R::Scc(a().min(b()), a() < b()),
        M::s_max_i32 => R::Scc((a() as i32).max(b() as i32) as u32, a() as i32 > b() as i32),
        M::s_max_u32 => R::Scc(a().max(b()), a() > b()),
        M::s_cselect_b32 => R::W(if wave.scc { a() } else { b() }),
        M::s_cselect_b64 => R::L(if wave.scc { a64() } else { b64() }),
        M::s_and_b32 => logic(a() & b()),
        M::s_and_b64 => logic64(a64() & b64()),
        M::s_or_b32 => logic(a() | b()),
        M::s_or_b64 => logic64(a64() | b64()),
        M::s_xor_b32 => logic(a() ^ b()),
        M::s_xor_b64 => logic64(a64() ^ b64()),
        M::s_andn2_b32 => logic(a() & !b()),
        M::s_andn2_b64 => logic64(a64() & !b64()),
        M::s_orn2_b32 => logic(a() | !b()),
        M::s_orn2_b64 => logic64(a64() | !b64()),
        M::s_nand_b32 => logic(!(a() & b())),
        M::s_nand_b64 => logic64(!(a64() & b64())),
        M::s_nor_b32 => logic(!(a() | b())),
        M::s_nor_b64 => logic64(!(a64() | b64())),
        M::s_xnor_b32 => logic(!(a() ^ b())),
        M::s_xnor_b64 => logic64(!(a64() ^ b64())),
        M::s_lshl_b32 => logic(a() << (b() & 31)),
        M::s_lshl_b64 => logic64(a64() << (b() & 63)),
        M::s_lshr_b32 => logic(a() >> (b() & 31)),
        M::s_lshr_b64 => logic64(a64() >> (b() & 63)),
        M::s_ashr_i32 => logic((a() as i32 >> (b() & 31)) as u32),
        M::s_ashr_i64 => logic64((a64() as i64 >> (b() & 63)) as u64),
        M::s_bfm_b32 => R::W((((1u64 << (a() & 31)) - 1) << (b() & 31)) as u32),
        M::s_bfm_b64 => R::L(((1u64 << (a() & 63)) - 1) << (b() & 63)),
        M::s_mul_i32 => R::W(a().wrapping_mul(b())),
        M::s_mul_hi_u32 => R::W(((u64::from(a()) * u64::from(b())) >> 32) as u32),
        M::s_mul_hi_i32 => R::W(((i64::from(a() as i32) * i64::from(b() as i32)) >> 32) as u32),
        M::s_bfe_u32 => logic(bfe32(a(), b(), false)),
        M::s_bfe_i32 => logic(bfe32(a(), b(), true)),
        M::s_bfe_u64 => logic64(bfe64(a64(), b(), false)),
        M::s_bfe_i64 => logic64(bfe64(a64(), b(), true)),
        M::s_absdiff_i32 => logic((a() as i32).wrapping_sub(b() as i32).wrapping_abs() as u32),
        M::s_lshl1_add_u32 | M::s_lshl2_add_u32 | M::s_lshl3_add_u32 | M::s_lshl4_add_u32 => {
            let n = match inst.mnemonic {
                M::s_lshl1_add_u32 => 1,
                M::s_lshl2_add_u32 => 2,
                M::s_lshl3_add_u32 => 3,
                _ => 4,
            };
            let v = (u64::from(a()) << n) + u64::from(b());
            R::Scc(v as u32, v >> 32 != 0)
        }
        M::s_pack_ll_b32_b16 => R::W(a() & 0xffff | b() << 16),
        M::s_pack_lh_b32_b16 => R::W(a() & 0xffff | b() & 0xffff_0000),
        M::s_pack_hh_b32_b16 => R::W(a() >> 16 | b() & 0xffff_0000),
        // s_cbranch_g_fork, s_rfe_restore_b64: the branch stack and the trap handler are not modelled.
        _ => return Err(super::Unsupported.into()),
    };
    match result {
        R::W(v) => wave.set_scalar32(inst.dst, v),
        R::Scc(v, scc) => {
            wave.set_scalar32(inst.dst, v);
            wave.scc = scc;
        }
        R::L(v) => wave.set_scalar64(inst.dst, v),
        R::LScc(v, scc) => {
            wave.set_scalar64(inst.dst, v);
            wave.scc = scc;
        }
    }
    Ok(Flow::Next)
}

/// Distance of the first bit that differs from the sign, from the top; -1 when all are equal.
fn sign_bits(value: u64, bits: u32) -> u32 {
    let top = value << (64 - bits);
    let flipped = if (top as i64) < 0 { !top } else { top };
    let n = flipped.leading_zeros();
    if n >= bits { u32::MAX } else { n }
}

fn found(position: u32, bits: u32) -> u32 {
    if position >= bits { u32::MAX } else { position }
}

fn quadmask(value: u64) -> u64 {
    (0..16)
        .filter(|q| value >> (4 * q) & 15 != 0)
        .fold(0, |m, q| m | 1 << q)
}

fn whole_quads(value: u64) -> u64 {
    (0..16)
        .filter(|q| value >> (4 * q) & 15 != 0)
        .fold(0, |m, q| m | 15 << (4 * q))
}

fn sop1(wave: &mut Wave, ctx: &mut Context<'_>, inst: &Inst) -> Result<Flow, Trouble> {
    let src = inst.src[0];
    let a = wave.scalar32(src);
    let a64 = || wave.scalar64(src);
    let (dst, exec) = (inst.dst, wave.exec());
    let set = |wave: &mut Wave, v: u32| wave.set_scalar32(dst, v);
    let set_scc = |wave: &mut Wave, v: u32| {
        wave.set_scalar32(dst, v);
        wave.scc = v != 0;
    };
    let set64_scc = |wave: &mut Wave, v: u64| {
        wave.set_scalar64(dst, v);
        wave.scc = v != 0;
    };
    let save_exec = |wave: &mut Wave, v: u64| {
        wave.set_scalar64(dst, exec);
        wave.set_exec(v);
        wave.scc = v != 0;
    };
    match inst.mnemonic {
        M::s_mov_b32 => set(wave, a),
        M::s_mov_b64 => {
            let v = a64();
            wave.set_scalar64(dst, v);
        }
        M::s_cmov_b32 if wave.scc => set(wave, a),
        M::s_cmov_b64 if wave.scc => {
            let v = a64();
            wave.set_scalar64(dst, v);
        }
        M::s_cmov_b32 | M::s_cmov_b64 => {}
        M::s_not_b32 => set_scc(wave, !a),
        M::s_not_b64 => {
            let v = !a64();
            set64_scc(wave, v);
        }
        M::s_wqm_b32 => set_scc(wave, whole_quads(u64::from(a)) as u32),
        M::s_wqm_b64 => {
            let v = whole_quads(a64());
            set64_scc(wave, v);
        }
        M::s_quadmask_b32 => set_scc(wave, quadmask(u64::from(a)) as u32),
        M::s_quadmask_b64 => {
            let v = quadmask(a64());
            set64_scc(wave, v);
        }
        M::s_brev_b32 => set(wave, a.reverse_bits()),
        M::s_brev_b64 => {
            let v = a64().reverse_bits();
            wave.set_scalar64(dst, v);
        }
        M::s_bcnt0_i32_b32 => set_scc(wave, a.count_zeros()),
        M::s_bcnt1_i32_b32 => set_scc(wave, a.count_ones()),
        M::s_bcnt0_i32_b64 => {
            let v = a64().count_zeros();
            set_scc(wave, v);
        }
        M::s_bcnt1_i32_b64 => {
            let v = a64().count_ones();
            set_scc(wave, v);
        }
        M::s_ff0_i32_b32 => set(wave, found(a.trailing_ones(), 32)),
        M::s_ff1_i32_b32 => set(wave, found(a.trailing_zeros(), 32)),
        M::s_ff0_i32_b64 => {
            let v = found(a64().trailing_ones(), 64);
            set(wave, v);
        }
        M::s_ff1_i32_b64 => {
            let v = found(a64().trailing_zeros(), 64);
            set(wave, v);
        }
        M::s_flbit_i32_b32 => set(wave, found(a.leading_zeros(), 32)),
        M::s_flbit_i32_b64 => {
            let v = found(a64().leading_zeros(), 64);
            set(wave, v);
        }
        M::s_flbit_i32 => set(wave, sign_bits(u64::from(a), 32)),
        M::s_flbit_i32_i64 => {
            let v = sign_bits(a64(), 64);
            set(wave, v);
        }
        M::s_sext_i32_i8 => set(wave, a as i8 as u32),
        M::s_sext_i32_i16 => set(wave, a as i16 as u32),
        M::s_bitset0_b32 => {
            let v = wave.scalar32(dst) & !(1 << (a & 31));
            set(wave, v);
        }
        M::s_bitset1_b32 => {
            let v = wave.scalar32(dst) | 1 << (a & 31);
            set(wave, v);
        }
        M::s_bitset0_b64 => {
            let v = wave.scalar64(dst) & !(1 << (a & 63));
            wave.set_scalar64(dst, v);
        }
        M::s_bitset1_b64 => {
            let v = wave.scalar64(dst) | 1 << (a & 63);
            wave.set_scalar64(dst, v);
        }
        M::s_getpc_b64 => wave.set_scalar64(dst, wave.pc),
        M::s_setpc_b64 => wave.pc = a64() & !3,
        M::s_swappc_b64 => {
            let (target, back) = (a64() & !3, wave.pc);
            wave.set_scalar64(dst, back);
            wave.pc = target;
        }
        M::s_and_saveexec_b64 => {
            let v = a64() & exec;
            save_exec(wave, v);
        }
        M::s_or_saveexec_b64 => {
            let v = a64() | exec;
            save_exec(wave, v);
        }
        M::s_xor_saveexec_b64 => {
            let v = a64() ^ exec;
            save_exec(wave, v);
        }
        M::s_andn2_saveexec_b64 => {
            let v = a64() & !exec;
            save_exec(wave, v);
        }
        M::s_orn2_saveexec_b64 => {
            let v = a64() | !exec;
            save_exec(wave, v);
        }
        M::s_nand_saveexec_b64 => {
            let v = !(a64() & exec);
            save_exec(wave, v);
        }
        M::s_nor_saveexec_b64 => {
            let v = !(a64() | exec);
            save_exec(wave, v);
        }
        M::s_xnor_saveexec_b64 => {
            let v = !(a64() ^ exec);
            save_exec(wave, v);
        }
        M::s_andn1_saveexec_b64 => {
            let v = !a64() & exec;
            save_exec(wave, v);
        }
        M::s_orn1_saveexec_b64 => {
            let v = !a64() | exec;
            save_exec(wave, v);
        }
        M::s_andn1_wrexec_b64 | M::s_andn2_wrexec_b64 => {
            let v = if inst.mnemonic == M::s_andn1_wrexec_b64 {
                !a64() & exec
            } else {
                a64() & !exec
            };
            wave.set_exec(v);
            set64_scc(wave, v);
        }
        M::s_abs_i32 => set_scc(wave, (a as i32).wrapping_abs() as u32),
        M::s_bitreplicate_b64_b32 => {
            let v = (0..32).filter(|i| a >> i & 1 != 0).fold(0u64, |m, i| m | 3 << (2 * i));
            wave.set_scalar64(dst, v);
        }
        M::s_movrels_b32 | M::s_movrels_b64 | M::s_movreld_b32 | M::s_movreld_b64 => {
            let wide = matches!(inst.mnemonic, M::s_movrels_b64 | M::s_movreld_b64);
            let indexed = |base: Operand| -> Result<Operand, Trouble> {
                let Operand::Sgpr(n) = base else {
                    return Err(super::Unsupported.into());
                };
                let at = u32::from(n).wrapping_add(wave.m0());
                // Only SGPRs can be indexed, not the special registers behind them.
                if at > 101 {
                    return Err("relative move past the last SGPR".into());
                }
                Ok(Operand::Sgpr(at as u8))
            };
            let load = matches!(inst.mnemonic, M::s_movrels_b32 | M::s_movrels_b64);
            let (from, to) = if load {
                (indexed(src)?, dst)
            } else {
                (src, indexed(dst)?)
            };
            if wide {
                wave.set_scalar64(to, wave.scalar64(from));
            } else {
                wave.set_scalar32(to, wave.scalar32(from));
            }
        }
        M::s_set_gpr_idx_idx => {
            let m0 = wave.m0() & !0xff | a & 0xff;
            wave.set_m0(m0);
        }
        // s_rfe_b64, s_cbranch_join: the trap handler and the branch stack are not modelled.
        _ => return Err(super::Unsupported.into()),
    }
    let _ = ctx;
    Ok(Flow::Next)
}

fn sopc(wave: &mut Wave, inst: &Inst) -> Result<Flow, Trouble> {
    let (a, b) = (wave.scalar32(inst.src[0]), wave.scalar32(inst.src[1]));
    let (sa, sb) = (a as i32, b as i32);
    let a64 = || wave.scalar64(inst.src[0]);
    wave.scc = match inst.mnemonic {
        M::s_cmp_eq_i32 | M::s_cmp_eq_u32 => a == b,
        M::s_cmp_lg_i32 | M::s_cmp_lg_u32 => a != b,
        M::s_cmp_gt_i32 => sa > sb,
        M::s_cmp_ge_i32 => sa >= sb,
        M::s_cmp_lt_i32 => sa < sb,
        M::s_cmp_le_i32 => sa <= sb,
        M::s_cmp_gt_u32 => a > b,
        M::s_cmp_ge_u32 => a >= b,
        M::s_cmp_lt_u32 => a < b,
        M::s_cmp_le_u32 => a <= b,
        M::s_cmp_eq_u64 => a64() == wave.scalar64(inst.src[1]),
        M::s_cmp_lg_u64 => a64() != wave.scalar64(inst.src[1]),
        M::s_bitcmp0_b32 => a >> (b & 31) & 1 == 0,
        M::s_bitcmp1_b32 => a >> (b & 31) & 1 != 0,
        M::s_bitcmp0_b64 => a64() >> (b & 63) & 1 == 0,
        M::s_bitcmp1_b64 => a64() >> (b & 63) & 1 != 0,
        M::s_set_gpr_idx_on => {
            // The second source field is a four-bit immediate: which operands are indexed.
            let enables = inst.words[0] >> 8 & 15;
            wave.set_m0(wave.m0() & !0xf0ff | a & 0xff | enables << 12);
            wave.mode = Mode(wave.mode.0 | 1 << 27);
            return Ok(Flow::Next);
        }
        _ => return Err(super::Unsupported.into()),
    };
    Ok(Flow::Next)
}

/// Hardware registers by their id in `hwreg(...)`.
mod hwreg {
    pub const MODE: u32 = 1;
    pub const STATUS: u32 = 2;
    pub const TRAPSTS: u32 = 3;
    pub const HW_ID: u32 = 4;
    pub const GPR_ALLOC: u32 = 5;
    pub const LDS_ALLOC: u32 = 6;
    pub const IB_STS: u32 = 7;
    pub const SH_MEM_BASES: u32 = 15;
    pub const XCC_ID: u32 = 20;
}

fn read_hwreg(wave: &Wave, ctx: &Context<'_>, id: u32) -> Result<u32, Trouble> {
    Ok(match id {
        hwreg::MODE => wave.mode.0,
        // 0 SCC, 9 EXECZ, 10 VCCZ, 16 VALID
        hwreg::STATUS => {
            u32::from(wave.scc) | u32::from(wave.exec() == 0) << 9 | u32::from(wave.vcc() == 0) << 10 | 1 << 16
        }
        hwreg::TRAPSTS | hwreg::IB_STS => 0,
        hwreg::HW_ID => ctx.hw_id,
        hwreg::GPR_ALLOC => {
            let (v, a) = wave.vector_registers();
            (u32::from(v + a).div_ceil(8).max(1) - 1) << 8
        }
        hwreg::LDS_ALLOC => ctx.spaces.lds_bytes.div_ceil(512) << 12,
        hwreg::SH_MEM_BASES => (wave.private_base >> 48 & 0xffff | (wave.shared_base >> 48 & 0xffff) << 16) as u32,
        hwreg::XCC_ID => ctx.xcc_id,
        _ => return Err("this hardware register is not modelled".into()),
    })
}

fn sopk(wave: &mut Wave, ctx: &mut Context<'_>, inst: &Inst) -> Result<Flow, Trouble> {
    let imm = inst.imm;
    let uimm = imm as u32 & 0xffff;
    let a = wave.scalar32(inst.src[0]);
    let sa = a as i32;
    // simm16 of s_getreg, s_setreg: id 5:0, offset 10:6, size - 1 15:11.
    let (id, offset, size) = (uimm & 63, uimm >> 6 & 31, (uimm >> 11 & 31) + 1);
    let field = (((1u64 << size) - 1) << offset) as u32;
    match inst.mnemonic {
        M::s_movk_i32 => wave.set_scalar32(inst.dst, imm as u32),
        M::s_cmovk_i32 => {
            if wave.scc {
                wave.set_scalar32(inst.dst, imm as u32);
            }
        }
        M::s_cmpk_eq_i32 => wave.scc = sa == imm,
        M::s_cmpk_lg_i32 => wave.scc = sa != imm,
        M::s_cmpk_gt_i32 => wave.scc = sa > imm,
        M::s_cmpk_ge_i32 => wave.scc = sa >= imm,
        M::s_cmpk_lt_i32 => wave.scc = sa < imm,
        M::s_cmpk_le_i32 => wave.scc = sa <= imm,
        M::s_cmpk_eq_u32 => wave.scc = a == uimm,
        M::s_cmpk_lg_u32 => wave.scc = a != uimm,
        M::s_cmpk_gt_u32 => wave.scc = a > uimm,
        M::s_cmpk_ge_u32 => wave.scc = a >= uimm,
        M::s_cmpk_lt_u32 => wave.scc = a < uimm,
        M::s_cmpk_le_u32 => wave.scc = a <= uimm,
        M::s_addk_i32 => {
            let (v, overflow) = (wave.scalar32(inst.dst) as i32).overflowing_add(imm);
            wave.set_scalar32(inst.dst, v as u32);
            wave.scc = overflow;
        }
        M::s_mulk_i32 => {
            let v = (wave.scalar32(inst.dst) as i32).wrapping_mul(imm);
            wave.set_scalar32(inst.dst, v as u32);
        }
        M::s_getreg_b32 => {
            let v = (read_hwreg(wave, ctx, id)? & field) >> offset;
            wave.set_scalar32(inst.dst, v);
        }
        M::s_setreg_b32 | M::s_setreg_imm32_b32 => {
            let value = if inst.mnemonic == M::s_setreg_b32 {
                a
            } else {
                inst.words[1]
            };
            match id {
                hwreg::MODE => wave.mode = Mode(wave.mode.0 & !field | value << offset & field),
                // Exception flags are not kept, so clearing them changes nothing.
                hwreg::TRAPSTS => {}
                _ => return Err("writing this hardware register is not modelled".into()),
            }
        }
        M::s_call_b64 => {
            wave.set_scalar64(inst.dst, wave.pc);
            wave.pc = wave.pc.wrapping_add_signed(i64::from(imm) * 4);
        }
        _ => return Err(super::Unsupported.into()),
    }
    Ok(Flow::Next)
}

fn sopp(wave: &mut Wave, ctx: &mut Context<'_>, inst: &Inst) -> Result<Flow, Trouble> {
    let branch = |wave: &mut Wave, taken: bool| {
        if taken {
            wave.pc = wave.pc.wrapping_add_signed(i64::from(inst.imm) * 4);
        }
        Ok(Flow::Next)
    };
    let uimm = inst.imm as u32 & 0xffff;
    match inst.mnemonic {
        // Memory operations complete in order here, so there is nothing to wait for.
        M::s_nop
        | M::s_waitcnt
        | M::s_setprio
        | M::s_incperflevel
        | M::s_decperflevel
        | M::s_ttracedata
        | M::s_wakeup => Ok(Flow::Next),
        M::s_endpgm | M::s_endpgm_saved | M::s_endpgm_ordered_ps_done => Ok(Flow::End),
        M::s_branch => branch(wave, true),
        M::s_cbranch_scc0 => branch(wave, !wave.scc),
        M::s_cbranch_scc1 => branch(wave, wave.scc),
        M::s_cbranch_vccz => branch(wave, wave.vcc() == 0),
        M::s_cbranch_vccnz => branch(wave, wave.vcc() != 0),
        M::s_cbranch_execz => branch(wave, wave.exec() == 0),
        M::s_cbranch_execnz => branch(wave, wave.exec() != 0),
        // Conditional debug bits of STATUS are 0 without a debugger.
        M::s_cbranch_cdbgsys | M::s_cbranch_cdbguser | M::s_cbranch_cdbgsys_or_user | M::s_cbranch_cdbgsys_and_user => {
            Ok(Flow::Next)
        }
        M::s_barrier => Ok(Flow::Barrier),
        M::s_sleep => Ok(Flow::Yield),
        M::s_icache_inv => Ok(Flow::FlushCode),
        M::s_trap => Ok(Flow::Trap(uimm as u8)),
        M::s_setkill if uimm & 1 != 0 => Ok(Flow::End),
        M::s_setkill => Ok(Flow::Next),
        M::s_sethalt if uimm & 1 == 0 => Ok(Flow::Next),
        M::s_sendmsg if uimm & 15 == 1 => {
            ctx.host.interrupt(wave.m0() & 0x00ff_ffff);
            Ok(Flow::Next)
        }
        M::s_set_gpr_idx_off => {
            wave.mode = Mode(wave.mode.0 & !(1 << 27));
            Ok(Flow::Next)
        }
        M::s_set_gpr_idx_mode => {
            wave.set_m0(wave.m0() & !0xf000 | (uimm & 15) << 12);
            Ok(Flow::Next)
        }
        _ => Err(super::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_stop_at_the_top() {
        assert_eq!(bfe32(0xf000_0000, 28 | 8 << 16, false), 0xf);
        assert_eq!(bfe32(0xf000_0000, 28 | 8 << 16, true), 0xffff_ffff);
        assert_eq!(bfe32(0x1234_5678, 8 << 16, false), 0x78);
        assert_eq!(bfe32(0x1234_5678, 0, false), 0);
        assert_eq!(bfe64(0x8000_0000_0000_0000, 63 | 1 << 16, true), u64::MAX);
    }

    #[test]
    fn leading_bits() {
        assert_eq!(sign_bits(0, 32), u32::MAX);
        assert_eq!(sign_bits(0xffff_ffff, 32), u32::MAX);
        assert_eq!(sign_bits(0x0000_ffff, 32), 16);
        assert_eq!(sign_bits(0xffff_0000, 32), 16);
        assert_eq!(found(64, 64), u32::MAX);
        assert_eq!(whole_quads(0x10), 0xf0);
        assert_eq!(quadmask(0x10), 2);
    }
}
