//! VOP3P: two 16-bit operations in one dword, dot products, mixed precision.
//!
//! ```text
//!            31        16 15         0
//! source n   |   half 1  |  half 0  |     low result takes half op_sel[n], high result half op_sel_hi[n]
//! ```
//! An inline constant fills half 0 only (integers are sign-extended), so code that wants it twice clears its `op_sel_hi`
//! bit. Dot products of bytes and nibbles take their operands whole.

use super::{float16, write_f32};
use crate::{
    Target,
    alu::{
        Env, F16, F32, Format, compare,
        convert::{self, f32_from_f16},
        dot,
        format::clamp as clamp_float,
        integer as int,
        lanes::{self, each, map2, map3},
    },
    isa::{Encoding, Inst, Mnemonic as M, Operand},
    wave::{V32, Wave},
};

/// The half of source `n` that goes into the low (0) or high (1) result, in the low bits, unmodified.
fn half(wave: &Wave, inst: &Inst, n: usize, result: usize) -> V32 {
    if inst.src[n] == Operand::None {
        return [0; 64];
    }
    let select = if result == 0 {
        inst.mods.op_sel
    } else {
        inst.mods.op_sel_hi
    };
    let value = wave.src_b32(inst, n);
    if select >> n & 1 != 0 {
        value.map(|v| v >> 16)
    } else {
        value.map(|v| v & 0xffff)
    }
}

/// As [`half`], negated where `neg_lo` or `neg_hi` says so.
fn half_f16(wave: &Wave, inst: &Inst, n: usize, result: usize) -> V32 {
    let value = half(wave, inst, n, result);
    let negate = if result == 0 { inst.mods.neg } else { inst.mods.neg_hi };
    if negate >> n & 1 != 0 {
        value.map(|v| v ^ 0x8000)
    } else {
        value
    }
}

fn join(low: &V32, high: &V32) -> V32 {
    map2(low, high, |x: u32, y: u32| x & 0xffff | y << 16)
}

/// Packed 16-bit integers.
pub(super) fn integers(wave: &mut Wave, inst: &Inst) -> bool {
    let clamp = inst.mods.clamp;
    let s = |x: u32| i32::from(x as i16);
    let u = |x: u32| x as i32;
    let two = |f: &dyn Fn(u32, u32) -> u32| -> V32 {
        let at = |i| map2(&half(wave, inst, 0, i), &half(wave, inst, 1, i), f);
        join(&at(0), &at(1))
    };
    let three = |f: &dyn Fn(u32, u32, u32) -> u32| -> V32 {
        let at = |i| {
            map3(
                &half(wave, inst, 0, i),
                &half(wave, inst, 1, i),
                &half(wave, inst, 2, i),
                f,
            )
        };
        join(&at(0), &at(1))
    };
    let out = match inst.mnemonic {
        M::v_pk_add_u16 => two(&|x, y| int::narrow_u16(u(x) + u(y), clamp)),
        M::v_pk_sub_u16 => two(&|x, y| int::narrow_u16(u(x) - u(y), clamp)),
        M::v_pk_add_i16 => two(&|x, y| int::narrow_i16(s(x) + s(y), clamp)),
        M::v_pk_sub_i16 => two(&|x, y| int::narrow_i16(s(x) - s(y), clamp)),
        M::v_pk_mul_lo_u16 => two(&|x, y| if clamp { (x * y).min(0xffff) } else { (x * y) & 0xffff }),
        M::v_pk_max_u16 => two(&u32::max),
        M::v_pk_min_u16 => two(&u32::min),
        M::v_pk_max_i16 => two(&|x, y| s(x).max(s(y)) as u32),
        M::v_pk_min_i16 => two(&|x, y| s(x).min(s(y)) as u32),
        M::v_pk_lshlrev_b16 => two(&|n, x| x << (n & 15)),
        M::v_pk_lshrrev_b16 => two(&|n, x| x >> (n & 15)),
        M::v_pk_ashrrev_i16 => two(&|n, x| (s(x) >> (n & 15)) as u32),
        M::v_pk_mad_u16 => three(&|x, y, z| {
            let sum = u64::from(x) * u64::from(y) + u64::from(z);
            if clamp { sum.min(0xffff) as u32 } else { sum as u32 }
        }),
        M::v_pk_mad_i16 => three(&|x, y, z| int::narrow_i16((s(x) * s(y)).saturating_add(s(z)), clamp)),
        _ => return false,
    };
    wave.write_b32(inst, &out);
    true
}

/// Packed f16.
pub(super) fn floats(wave: &mut Wave, inst: &Inst) -> bool {
    let env = &wave.mode.env_f64();
    let active = wave.active(inst);
    let at = |f: &dyn Fn(&V32, &V32, &V32) -> V32| -> V32 {
        let side = |i: usize| {
            let source = |n| half_f16(wave, inst, n, i);
            let r = f(&source(0), &source(1), &source(2));
            if inst.mods.clamp {
                let dx10 = wave.mode.dx10_clamp();
                r.map(|x| clamp_float::<F16>((x & 0xffff).into(), dx10) as u32)
            } else {
                r
            }
        };
        join(&side(0), &side(1))
    };
    let extremum =
        |f: fn(u64, u64, &Env) -> u64| at(&|a, b, _| each(active, |l| f(a[l].into(), b[l].into(), env) as u32));
    let out = match inst.mnemonic {
        M::v_pk_add_f16 => at(&|a, b, _| float16::add(a, b, env, active)),
        M::v_pk_mul_f16 => at(&|a, b, _| float16::mul(a, b, env, active)),
        M::v_pk_fma_f16 => at(&|a, b, c| lanes::fma_f16(a, b, c, env, active)),
        M::v_pk_min_f16 => extremum(compare::min::<F16>),
        M::v_pk_max_f16 => extremum(compare::max::<F16>),
        _ => return false,
    };
    wave.write_b32(inst, &out);
    true
}

/// Dot products; the `c` forms take the destination as the accumulator, which the decoder made source 2.
pub(super) fn dots(wave: &mut Wave, inst: &Inst) -> bool {
    let clamp = inst.mods.clamp;
    // Only the VOP3P forms have selections; the others take the halves in place.
    let selects = inst.enc == Encoding::Vop3p;
    let word = |n: usize| -> V32 {
        let value = wave.src_b32(inst, n);
        if selects && n < 2 && matches!(inst.mnemonic, M::v_dot2_i32_i16 | M::v_dot2_u32_u16) {
            return join(&half(wave, inst, n, 0), &half(wave, inst, n, 1));
        }
        value
    };
    let signed = |bits: u32| -> V32 {
        map3(&word(0), &word(1), &word(2), |a, b, c: u32| {
            int::narrow_i32(dot::products(a, b, bits, dot::signed) + i64::from(c as i32), clamp)
        })
    };
    let unsigned = |bits: u32| -> V32 {
        map3(&word(0), &word(1), &word(2), |a, b, c: u32| {
            int::narrow_u32(dot::products(a, b, bits, dot::unsigned) + i64::from(c), clamp)
        })
    };
    let out = match inst.mnemonic {
        M::v_dot2_i32_i16 | M::v_dot2c_i32_i16 => signed(16),
        M::v_dot2_u32_u16 => unsigned(16),
        M::v_dot4_i32_i8 | M::v_dot4c_i32_i8 => signed(8),
        M::v_dot4_u32_u8 => unsigned(8),
        M::v_dot8_i32_i4 | M::v_dot8c_i32_i4 => signed(4),
        M::v_dot8_u32_u4 => unsigned(4),
        M::v_dot2_f32_f16 | M::v_dot2c_f32_f16 => {
            // gfx90a flushes the denormals of operands and results here, as its matrix instructions do.
            let flush = inst.target == Target::Gfx90a;
            let env = wave.mode.env_f32();
            let env = &if flush { env.flushing() } else { env };
            let active = wave.active(inst);
            let side = |n: usize, i: usize| -> V32 {
                if selects {
                    return half_f16(wave, inst, n, i);
                }
                let (abs, neg) = (inst.mods.abs >> n & 1 != 0, inst.mods.neg >> n & 1 != 0);
                wave.src_b32(inst, n).map(|v| {
                    let v = v >> (16 * i) & if abs { 0x7fff } else { 0xffff };
                    if neg { v ^ 0x8000 } else { v }
                })
            };
            let side = |n, i| side(n, i).map(|v| F16::flush((v & 0xffff).into(), flush) as u32);
            let (a, b) = ([side(0, 0), side(0, 1)], [side(1, 0), side(1, 1)]);
            let mut c = wave.src_b32(inst, 2);
            if inst.mods.neg & 4 != 0 {
                c = c.map(|v| v ^ 0x8000_0000);
            }
            let out = each(active, |l| {
                dot::dot2_f16(
                    [a[0][l] as u16, a[1][l] as u16],
                    [b[0][l] as u16, b[1][l] as u16],
                    c[l],
                    env,
                )
            });
            write_f32(wave, inst, out, env);
            return true;
        }
        _ => return false,
    };
    wave.write_b32(inst, &out);
    true
}

/// `v_fma_mix_f32`, `v_fma_mixlo_f16`, `v_fma_mixhi_f16`: fma in f32 of f32 or f16 sources; the f16 results are rounded a
/// second time, from f32.
pub(super) fn mixed(wave: &mut Wave, inst: &Inst) -> bool {
    let keep_shift = match inst.mnemonic {
        M::v_fma_mix_f32 => None,
        M::v_fma_mixlo_f16 => Some(0),
        M::v_fma_mixhi_f16 => Some(16),
        _ => return false,
    };
    let (e32, e16) = (&wave.mode.env_f32(), &wave.mode.env_f64());
    let active = wave.active(inst);
    let (a, b, c) = (
        mix_source(wave, inst, 0),
        mix_source(wave, inst, 1),
        mix_source(wave, inst, 2),
    );
    let sum = lanes::fma_f32(&a, &b, &c, e32, active);
    let dx10 = wave.mode.dx10_clamp();
    let Some(shift) = keep_shift else {
        write_f32(wave, inst, sum, e32);
        return true;
    };
    let old = wave.lanes32(inst.dst);
    let out = each(active, |l| {
        let mut r = convert::float::<F32, F16>(sum[l].into(), &Env::DEFAULT, e16);
        if inst.mods.clamp {
            r = clamp_float::<F16>(r, dx10);
        }
        old[l] & !(0xffff << shift) | (r as u32) << shift
    });
    wave.write_b32(inst, &out);
    true
}

/// Source `n` of a mix as f32: `op_sel_hi` says f16, `op_sel` which half; `neg_hi` is the absolute value.
fn mix_source(wave: &Wave, inst: &Inst, n: usize) -> V32 {
    let bit = |m: u8| m >> n & 1 != 0;
    let raw = match inst.src[n] {
        // The decoder gives constants in f16; a source taken as f32 has the f32 constant of the same code.
        Operand::Const(c) if !bit(inst.mods.op_sel_hi) => [wide_constant(c as u32); 64],
        _ => wave.src_b32(inst, n),
    };
    let (abs, neg) = (bit(inst.mods.neg_hi), bit(inst.mods.neg));
    if bit(inst.mods.op_sel_hi) {
        let flush = wave.mode.env_f64().flush_in;
        let shift = if bit(inst.mods.op_sel) { 16 } else { 0 };
        raw.map(|v| {
            let mut v = v >> shift & 0xffff;
            if abs {
                v &= 0x7fff;
            }
            if neg {
                v ^= 0x8000;
            }
            f32_from_f16(F16::flush(v.into(), flush) as u16)
        })
    } else {
        raw.map(|v| {
            let v = if abs { v & 0x7fff_ffff } else { v };
            if neg { v ^ 0x8000_0000 } else { v }
        })
    }
}

/// The f32 inline constant whose f16 form is `c`; integers stay as they are.
fn wide_constant(c: u32) -> u32 {
    match c {
        0x3118 => 0x3e22_f983, // 1 / (2 pi), which f16 rounds
        0x3000..=0xc7ff => f32_from_f16(c as u16),
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_mixes_widen() {
        assert_eq!(wide_constant(0x3c00), 1f32.to_bits());
        assert_eq!(wide_constant(0xc400), (-4f32).to_bits());
        assert_eq!(wide_constant(64), 64);
        assert_eq!(wide_constant(-16i32 as u32), -16i32 as u32);
    }
}
