//! Moves, logic, shifts and integer arithmetic of 16, 32 and 64 bits.

use super::{super::operands::for_lanes, b32};
use crate::{
    alu::{
        integer as int,
        lanes::{map1, map2, map3, mask2},
    },
    isa::{Inst, Mnemonic as M, Operand},
    wave::{V32, V64, Wave},
};

/// 32-bit results of 32-bit sources.
///
/// Shift counts are taken modulo the width. The `rev` forms have their operands the other way round, so that the one that
/// may be a scalar or a constant, source 0, can be the count or the subtrahend.
pub(super) fn words(wave: &mut Wave, inst: &Inst) -> bool {
    let clamp = inst.mods.clamp;
    let (mut ba, mut bb) = ([0; 64], [0; 64]);
    let a = b32(wave, inst, 0, &mut ba);
    let b = b32(wave, inst, 1, &mut bb);
    let c = || -> V32 {
        if inst.src[2] == Operand::None {
            [0; 64]
        } else {
            wave.src_b32(inst, 2)
        }
    };
    let s = |x: u32| x as i32;
    let wide = |x: u32| i64::from(x);
    let signed = |x: u32| i64::from(x as i32);
    let out = match inst.mnemonic {
        M::v_mov_b32 | M::v_accvgpr_read_b32 | M::v_accvgpr_write_b32 | M::v_accvgpr_mov_b32 => *a,
        M::v_not_b32 => map1(a, |x: u32| !x),
        M::v_bfrev_b32 => map1(a, u32::reverse_bits),
        M::v_ffbh_u32 => map1(a, int::ffbh_u32),
        M::v_ffbh_i32 => map1(a, int::ffbh_i32),
        M::v_ffbl_b32 => map1(a, int::ffbl),

        M::v_add_u32 if clamp => map2(a, b, u32::saturating_add),
        M::v_add_u32 => map2(a, b, u32::wrapping_add),
        M::v_sub_u32 if clamp => map2(a, b, u32::saturating_sub),
        M::v_sub_u32 => map2(a, b, u32::wrapping_sub),
        M::v_subrev_u32 if clamp => map2(b, a, u32::saturating_sub),
        M::v_subrev_u32 => map2(b, a, u32::wrapping_sub),
        M::v_add_i32 => map2(a, b, |x, y| int::narrow_i32(signed(x) + signed(y), clamp)),
        M::v_sub_i32 => map2(a, b, |x, y| int::narrow_i32(signed(x) - signed(y), clamp)),

        M::v_and_b32 => map2(a, b, |x, y| x & y),
        M::v_or_b32 => map2(a, b, |x, y| x | y),
        M::v_xor_b32 => map2(a, b, |x, y| x ^ y),
        M::v_xnor_b32 => map2(a, b, |x: u32, y| !(x ^ y)),
        M::v_lshlrev_b32 => map2(a, b, |n, x: u32| x.wrapping_shl(n)),
        M::v_lshrrev_b32 => map2(a, b, |n, x: u32| x.wrapping_shr(n)),
        M::v_ashrrev_i32 => map2(a, b, |n, x: u32| s(x).wrapping_shr(n) as u32),
        M::v_min_i32 => map2(a, b, |x, y| s(x).min(s(y)) as u32),
        M::v_max_i32 => map2(a, b, |x, y| s(x).max(s(y)) as u32),
        M::v_min_u32 => map2(a, b, u32::min),
        M::v_max_u32 => map2(a, b, u32::max),

        M::v_mul_lo_u32 => map2(a, b, u32::wrapping_mul),
        M::v_mul_hi_u32 => map2(a, b, int::mul_hi_u32),
        M::v_mul_hi_i32 => map2(a, b, int::mul_hi_i32),
        M::v_mul_u32_u24 => map2(a, b, |x, y| {
            int::narrow_u32(wide(int::low24(x)) * wide(int::low24(y)), clamp)
        }),
        M::v_mul_i32_i24 => map2(a, b, |x, y| {
            int::narrow_i32(i64::from(int::sext24(x)) * i64::from(int::sext24(y)), clamp)
        }),
        M::v_mul_hi_u32_u24 => map2(a, b, int::mul_hi_u24),
        M::v_mul_hi_i32_i24 => map2(a, b, int::mul_hi_i24),

        M::v_bfm_b32 => map2(a, b, int::bfm),
        M::v_bcnt_u32_b32 => map2(a, b, |x: u32, y: u32| x.count_ones().wrapping_add(y)),
        M::v_mbcnt_lo_u32_b32 => below(a, b, 0),
        M::v_mbcnt_hi_u32_b32 => below(a, b, 32),

        M::v_cvt_pk_u16_u32 => map2(a, b, |x: u32, y: u32| x.min(0xffff) | y.min(0xffff) << 16),
        M::v_cvt_pk_i16_i32 => {
            let sat = crate::alu::convert::sat_i16;
            map2(a, b, |x, y| sat(s(x)) | sat(s(y)) << 16)
        }

        M::v_add3_u32 => map3(a, b, &c(), |x: u32, y, z| x.wrapping_add(y).wrapping_add(z)),
        M::v_add_lshl_u32 => map3(a, b, &c(), |x: u32, y, n| x.wrapping_add(y).wrapping_shl(n)),
        M::v_lshl_add_u32 => map3(a, b, &c(), |x: u32, n, z: u32| x.wrapping_shl(n).wrapping_add(z)),
        M::v_lshl_or_b32 => map3(a, b, &c(), |x: u32, n, z| x.wrapping_shl(n) | z),
        M::v_and_or_b32 => map3(a, b, &c(), |x, y, z| x & y | z),
        M::v_or3_b32 => map3(a, b, &c(), |x, y, z| x | y | z),
        M::v_xad_u32 => map3(a, b, &c(), |x: u32, y, z| (x ^ y).wrapping_add(z)),
        M::v_bfe_u32 => map3(a, b, &c(), int::bfe_u32),
        M::v_bfe_i32 => map3(a, b, &c(), int::bfe_i32),
        M::v_bfi_b32 => map3(a, b, &c(), int::bfi),
        M::v_alignbit_b32 => map3(a, b, &c(), int::alignbit),
        M::v_alignbyte_b32 => map3(a, b, &c(), int::alignbyte),
        M::v_perm_b32 => map3(a, b, &c(), int::perm),
        M::v_lerp_u8 => map3(a, b, &c(), int::lerp_u8),

        M::v_min3_u32 => map3(a, b, &c(), |x: u32, y, z| x.min(y).min(z)),
        M::v_max3_u32 => map3(a, b, &c(), |x: u32, y, z| x.max(y).max(z)),
        M::v_med3_u32 => map3(a, b, &c(), int::med3::<u32>),
        M::v_min3_i32 => map3(a, b, &c(), |x, y, z| s(x).min(s(y)).min(s(z)) as u32),
        M::v_max3_i32 => map3(a, b, &c(), |x, y, z| s(x).max(s(y)).max(s(z)) as u32),
        M::v_med3_i32 => map3(a, b, &c(), |x, y, z| int::med3(s(x), s(y), s(z)) as u32),

        M::v_mad_u32_u24 => map3(a, b, &c(), |x, y, z| {
            int::narrow_u32(wide(int::low24(x)) * wide(int::low24(y)) + wide(z), clamp)
        }),
        M::v_mad_i32_i24 => map3(a, b, &c(), |x, y, z| {
            int::narrow_i32(i64::from(int::sext24(x)) * i64::from(int::sext24(y)) + signed(z), clamp)
        }),

        M::v_sad_u8 => map3(a, b, &c(), |x, y, z| int::accumulate(int::sad4(x, y), z, clamp)),
        M::v_sad_hi_u8 => map3(a, b, &c(), |x, y, z| int::accumulate(int::sad4(x, y) << 16, z, clamp)),
        M::v_sad_u16 => map3(a, b, &c(), |x, y, z| int::accumulate(int::sad2(x, y), z, clamp)),
        M::v_sad_u32 => map3(a, b, &c(), |x: u32, y, z| int::accumulate(x.abs_diff(y), z, clamp)),
        M::v_msad_u8 => map3(a, b, &c(), |x, y, z| int::accumulate(int::msad4(x, y), z, clamp)),
        _ => return false,
    };
    wave.write_b32(inst, &out);
    true
}

/// `v_mbcnt`: set bits of the mask at lanes below this one, of which the instruction covers 32 from `first`.
fn below(mask: &V32, addend: &V32, first: u32) -> V32 {
    std::array::from_fn(|lane| {
        let lanes = (lane as u32).saturating_sub(first).min(32);
        let lower = ((1u64 << lanes) - 1) as u32;
        (mask[lane] & lower).count_ones().wrapping_add(addend[lane])
    })
}

/// Additions and subtractions with carry out, and with carry in.
///
/// Each lane's sum is made in 64 bits: bit 32 and up tell the carry, and after a subtraction the borrow. Carries are lane
/// masks in VCC or an SGPR pair, where the bits of lanes that are not written become zero.
pub(super) fn carries(wave: &mut Wave, inst: &Inst) -> bool {
    let (mut ba, mut bb) = ([0; 64], [0; 64]);
    if !matches!(
        inst.mnemonic,
        M::v_add_co_u32
            | M::v_sub_co_u32
            | M::v_subrev_co_u32
            | M::v_addc_co_u32
            | M::v_subb_co_u32
            | M::v_subbrev_co_u32
    ) {
        return false;
    }
    let a = b32(wave, inst, 0, &mut ba);
    let b = b32(wave, inst, 1, &mut bb);
    let add = |a: &V32, b: &V32, carry: u64| -> V64 {
        std::array::from_fn(|l| u64::from(a[l]) + u64::from(b[l]) + (carry >> l & 1))
    };
    let sub = |a: &V32, b: &V32, borrow: u64| -> V64 {
        std::array::from_fn(|l| {
            u64::from(a[l])
                .wrapping_sub(u64::from(b[l]))
                .wrapping_sub(borrow >> l & 1)
        })
    };
    let (wide, adds) = match inst.mnemonic {
        M::v_add_co_u32 => (add(a, b, 0), true),
        M::v_sub_co_u32 => (sub(a, b, 0), false),
        M::v_subrev_co_u32 => (sub(b, a, 0), false),
        M::v_addc_co_u32 => (add(a, b, wave.src_mask(inst, 2)), true),
        M::v_subb_co_u32 => (sub(a, b, wave.src_mask(inst, 2)), false),
        _ => (sub(b, a, wave.src_mask(inst, 2)), false),
    };
    let carry = mask2(&wide, &wide, |x: u64, _| x >> 32 != 0);
    let out = match (inst.mods.clamp, adds) {
        (false, _) => map1(&wide, |x: u64| x as u32),
        (true, true) => map1(&wide, |x: u64| x.min(u32::MAX.into()) as u32),
        (true, false) => map1(&wide, |x: u64| if x >> 32 != 0 { 0 } else { x as u32 }),
    };
    let lanes = wave.active(inst);
    wave.write_b32(inst, &out);
    wave.write_mask(inst.sdst, carry & lanes);
    true
}

/// 16-bit results in the low half, or where `op_sel` says. Two of them have 32-bit accumulators and results.
pub(super) fn halves(wave: &mut Wave, inst: &Inst) -> bool {
    let clamp = inst.mods.clamp;
    let s = |x: u32| i32::from(x as i16);
    let u = |x: u32| x as i32;
    let keep = matches!(inst.mnemonic, M::v_mad_u16 | M::v_mad_i16);
    let a = || wave.src_b16(inst, 0);
    let b = || wave.src_b16(inst, 1);
    let c = || wave.src_b16(inst, 2);
    let out = match inst.mnemonic {
        M::v_add_u16 => map2(&a(), &b(), |x, y| int::narrow_u16(u(x) + u(y), clamp)),
        M::v_sub_u16 => map2(&a(), &b(), |x, y| int::narrow_u16(u(x) - u(y), clamp)),
        M::v_subrev_u16 => map2(&a(), &b(), |x, y| int::narrow_u16(u(y) - u(x), clamp)),
        M::v_mul_lo_u16 => map2(&a(), &b(), |x: u32, y| {
            let product = x * y;
            if clamp { product.min(0xffff) } else { product & 0xffff }
        }),
        M::v_lshlrev_b16 => map2(&a(), &b(), |n, x: u32| x << (n & 15) & 0xffff),
        M::v_lshrrev_b16 => map2(&a(), &b(), |n, x: u32| x >> (n & 15)),
        M::v_ashrrev_i16 => map2(&a(), &b(), |n: u32, x| (s(x) >> (n & 15)) as u32 & 0xffff),
        M::v_min_u16 => map2(&a(), &b(), u32::min),
        M::v_max_u16 => map2(&a(), &b(), u32::max),
        M::v_min_i16 => map2(&a(), &b(), |x, y| s(x).min(s(y)) as u32 & 0xffff),
        M::v_max_i16 => map2(&a(), &b(), |x, y| s(x).max(s(y)) as u32 & 0xffff),
        M::v_add_i16 => map2(&a(), &b(), |x, y| int::narrow_i16(s(x) + s(y), clamp)),
        M::v_sub_i16 => map2(&a(), &b(), |x, y| int::narrow_i16(s(x) - s(y), clamp)),
        M::v_mad_legacy_u16 | M::v_mad_u16 => map3(&a(), &b(), &c(), |x: u32, y, z| {
            let sum = u64::from(x) * u64::from(y) + u64::from(z);
            if clamp {
                sum.min(0xffff) as u32
            } else {
                sum as u32 & 0xffff
            }
        }),
        M::v_mad_legacy_i16 | M::v_mad_i16 => map3(&a(), &b(), &c(), |x, y, z| {
            int::narrow_i16(s(x).wrapping_mul(s(y)).saturating_add(s(z)), clamp)
        }),
        M::v_min3_u16 => map3(&a(), &b(), &c(), |x: u32, y, z| x.min(y).min(z)),
        M::v_max3_u16 => map3(&a(), &b(), &c(), |x: u32, y, z| x.max(y).max(z)),
        M::v_med3_u16 => map3(&a(), &b(), &c(), int::med3::<u32>),
        M::v_min3_i16 => map3(&a(), &b(), &c(), |x, y, z| s(x).min(s(y)).min(s(z)) as u32 & 0xffff),
        M::v_max3_i16 => map3(&a(), &b(), &c(), |x, y, z| s(x).max(s(y)).max(s(z)) as u32 & 0xffff),
        M::v_med3_i16 => map3(&a(), &b(), &c(), |x, y, z| int::med3(s(x), s(y), s(z)) as u32 & 0xffff),
        // Sixteen-bit factors, a 32-bit sum.
        M::v_mad_u32_u16 => {
            let c = wave.src_b32(inst, 2);
            let out = map3(&a(), &b(), &c, |x: u32, y, z| {
                let sum = u64::from(x) * u64::from(y) + u64::from(z);
                if clamp {
                    sum.min(u32::MAX.into()) as u32
                } else {
                    sum as u32
                }
            });
            wave.write_b32(inst, &out);
            return true;
        }
        M::v_mad_i32_i16 => {
            let c = wave.src_b32(inst, 2);
            let out = map3(&a(), &b(), &c, |x, y, z| {
                int::narrow_i32(i64::from(s(x) * s(y)) + i64::from(z as i32), clamp)
            });
            wave.write_b32(inst, &out);
            return true;
        }
        M::v_sat_pk_u8_i16 => {
            let sat = crate::alu::convert::sat_u8;
            map1(&wave.src_b32(inst, 0), |x: u32| {
                sat(x as u16) | sat((x >> 16) as u16) << 8
            })
        }
        _ => return false,
    };
    wave.write_b16(inst, &out, keep);
    true
}

/// Results of 64 bits and more, in two or four consecutive registers.
pub(super) fn pairs(wave: &mut Wave, inst: &Inst) -> bool {
    let word = |n: usize| wave.src_b32(inst, n);
    let pair = |n: usize| wave.src_b64(inst, n);
    let clamp = inst.mods.clamp;
    let out: V64 = match inst.mnemonic {
        M::v_lshlrev_b64 => map2(&word(0), &pair(1), |n, x: u64| x.wrapping_shl(n)),
        M::v_lshrrev_b64 => map2(&word(0), &pair(1), |n, x: u64| x.wrapping_shr(n)),
        M::v_ashrrev_i64 => map2(&word(0), &pair(1), |n, x: u64| (x as i64).wrapping_shr(n) as u64),
        M::v_lshl_add_u64 => map3(&pair(0), &word(1), &pair(2), |x: u64, n: u32, z| {
            // The shift is three bits wide; the guide allows 0 to 4.
            (x << (n & 7)).wrapping_add(z)
        }),
        M::v_mov_b64 => pair(0),
        M::v_mad_u64_u32 | M::v_mad_i64_i32 => {
            let (a, b, c) = (word(0), word(1), pair(2));
            let (mut out, carry) = if inst.mnemonic == M::v_mad_u64_u32 {
                let sum = map3(&a, &b, &c, |x, y, z| int::mad_u64_u32(x, y, z).0);
                (sum, mask2(&sum, &c, |sum, z| sum < z))
            } else {
                let sum = |x, y, z| int::mad_i64_i32(x, y, z);
                let carries = map3(&a, &b, &c, |x, y, z| u8::from(sum(x, y, z).1));
                (
                    map3(&a, &b, &c, |x, y, z| sum(x, y, z).0),
                    crate::alu::lanes::mask(&carries),
                )
            };
            if clamp && inst.mnemonic == M::v_mad_u64_u32 {
                for_lanes(carry, |l| out[l] = u64::MAX);
            }
            let lanes = wave.active(inst);
            wave.write_b64(inst, &out);
            wave.write_mask(inst.sdst, carry & lanes);
            return true;
        }
        M::v_qsad_pk_u16_u8 => map3(&pair(0), &word(1), &pair(2), |x, y, z| {
            int::qsad(x, y, z, clamp, int::sad4)
        }),
        M::v_mqsad_pk_u16_u8 => map3(&pair(0), &word(1), &pair(2), |x, y, z| {
            int::qsad(x, y, z, clamp, int::msad4)
        }),
        M::v_mqsad_u32_u8 => {
            let (Operand::Vgpr(dst), Operand::Vgpr(acc)) = (inst.dst, inst.src[2]) else {
                return false;
            };
            let (a, b) = (pair(0), word(1));
            let c: [V32; 4] = std::array::from_fn(|i| *wave.v(acc + i as u16));
            let sums: [[u32; 4]; 64] = std::array::from_fn(|l| int::mqsad_u32(a[l], b[l], c.map(|v| v[l]), clamp));
            let active = wave.active(inst);
            for i in 0..4u16 {
                let out = wave.v_mut(dst + i);
                for_lanes(active, |l| out[l] = sums[l][usize::from(i)]);
            }
            return true;
        }
        _ => return false,
    };
    wave.write_b64(inst, &out);
    true
}

/// Selections, exchanges and instructions without effect.
pub(super) fn moves(wave: &mut Wave, inst: &Inst) -> bool {
    match inst.mnemonic {
        M::v_nop | M::v_clrexcp => true,
        M::v_cndmask_b32 => {
            let (a, b, condition) = (wave.src_f32(inst, 0), wave.src_f32(inst, 1), wave.src_mask(inst, 2));
            let out = std::array::from_fn(|l| if condition >> l & 1 != 0 { b[l] } else { a[l] });
            wave.write_b32(inst, &out);
            true
        }
        M::v_swap_b32 => {
            let (Operand::Vgpr(x), Operand::Vgpr(y)) = (inst.dst, inst.src[0]) else {
                return false;
            };
            let (old_x, old_y, active) = (*wave.v(x), *wave.v(y), wave.active(inst));
            let out = wave.v_mut(x);
            for_lanes(active, |l| out[l] = old_y[l]);
            let out = wave.v_mut(y);
            for_lanes(active, |l| out[l] = old_x[l]);
            true
        }
        _ => false,
    }
}
