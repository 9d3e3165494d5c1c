//! Arithmetic in f32.
//!
//! Additions, products and fused steps run in host arithmetic while MODE rounds to nearest even, which is nearly always;
//! the rest is done lane by lane in software, for active lanes only.

use super::{super::operands::for_lanes, f32, write_f32};
use crate::{
    alu::{
        Env, F32, Round,
        approx::{self, Function},
        compare, cube, divide,
        lanes::{self, each, mad_f32},
        soft, ulp,
    },
    isa::{Inst, Mnemonic as M, Operand},
    wave::{V32, Wave},
};

/// Executes the instruction if it is of this family.
pub(super) fn execute(wave: &mut Wave, inst: &Inst) -> bool {
    let env = &wave.mode.env_f32();
    let active = wave.active(inst);
    let (mut ba, mut bb, mut bc) = ([0; 64], [0; 64], [0; 64]);
    let a = f32(wave, inst, 0, &mut ba);
    let b = f32(wave, inst, 1, &mut bb);
    let one = |f: fn(u32, &Env) -> u32| -> V32 { each(active, |l| f(a[l], env)) };
    let soft1 = |f: fn(u64, &Env) -> u64| -> V32 { each(active, |l| f(a[l].into(), env) as u32) };
    let integral = |r: Round| -> V32 { each(active, |l| soft::round_integral::<F32>(a[l].into(), r, env) as u32) };
    let mut three =
        |f: fn(&V32, &V32, &V32, &Env, u64) -> V32| -> V32 { f(a, b, f32(wave, inst, 2, &mut bc), env, active) };
    let out = match inst.mnemonic {
        M::v_add_f32 => add(a, b, env, active),
        M::v_sub_f32 => sub(a, b, env, active),
        M::v_subrev_f32 => sub(b, a, env, active),
        M::v_mul_f32 => mul(a, b, env, active),
        M::v_mul_legacy_f32 => each(active, |l| {
            soft::mul_legacy::<F32>(a[l].into(), b[l].into(), env) as u32
        }),
        M::v_fma_f32 | M::v_fmac_f32 | M::v_fmamk_f32 | M::v_fmaak_f32 => three(lanes::fma_f32),
        M::v_mad_f32 | M::v_mac_f32 | M::v_madmk_f32 | M::v_madak_f32 => three(mad_f32),
        M::v_mad_legacy_f32 => three(mad_legacy),
        M::v_min_f32 => lanes::extremum_f32(a, b, env, active, true),
        M::v_max_f32 => lanes::extremum_f32(a, b, env, active, false),
        M::v_min3_f32 => three(min3),
        M::v_max3_f32 => three(max3),
        M::v_med3_f32 => three(med3),
        M::v_trunc_f32 => integral(Round::Zero),
        M::v_ceil_f32 => integral(Round::Up),
        M::v_floor_f32 => integral(Round::Down),
        M::v_rndne_f32 => integral(Round::Nearest),
        M::v_fract_f32 => soft1(soft::fract::<F32>),
        M::v_frexp_mant_f32 => soft1(soft::frexp_mant::<F32>),
        M::v_ldexp_f32 => {
            let n = wave.src_b32(inst, 1);
            each(active, |l| soft::ldexp::<F32>(a[l].into(), n[l] as i32, env) as u32)
        }
        M::v_rcp_f32 | M::v_rcp_iflag_f32 => one(approx::rcp_f32),
        M::v_rsq_f32 => one(approx::rsq_f32),
        M::v_sqrt_f32 => one(approx::sqrt_f32),
        M::v_exp_f32 | M::v_exp_legacy_f32 => approx::exp_lanes(a, env, active),
        M::v_log_f32 | M::v_log_legacy_f32 => approx::log_lanes(a, env, active),
        M::v_sin_f32 => approx::sin_lanes(a, env, active),
        M::v_cos_f32 => approx::cos_lanes(a, env, active),
        M::v_cubeid_f32 => three(|a, b, c, _, active| each(active, |l| cube::id(a[l], b[l], c[l]))),
        M::v_cubesc_f32 => three(|a, b, c, _, active| each(active, |l| cube::sc(a[l], b[l], c[l]))),
        M::v_cubetc_f32 => three(|a, b, c, _, active| each(active, |l| cube::tc(a[l], b[l], c[l]))),
        M::v_cubema_f32 => three(|a, b, c, env, active| each(active, |l| cube::ma(a[l], b[l], c[l], env))),
        M::v_div_fixup_f32 => three(|a, b, c, _, active| {
            each(active, |l| {
                divide::div_fixup::<F32>(a[l].into(), b[l].into(), c[l].into()) as u32
            })
        }),
        M::v_div_fmas_f32 => {
            let vcc = wave.vcc();
            let c = f32(wave, inst, 2, &mut bc);
            let mut out = lanes::fma_f32(a, b, c, env, active);
            for_lanes(active & vcc, |l| {
                out[l] = divide::div_fmas::<F32>(a[l].into(), b[l].into(), c[l].into(), true, env) as u32;
            });
            out
        }
        M::v_div_scale_f32 => {
            let c = f32(wave, inst, 2, &mut bc);
            let scaled: [(u64, bool); 64] = each(active, |l| {
                divide::div_scale::<F32>(a[l].into(), b[l].into(), c[l].into())
            });
            let flags = scaled.iter().enumerate().fold(0, |m, (l, s)| m | u64::from(s.1) << l);
            let out = scaled.map(|s| s.0 as u32);
            write_f32(wave, inst, out, env);
            wave.write_mask(inst.sdst, flags);
            return true;
        }
        // Integers: no output modifiers.
        M::v_frexp_exp_i32_f32 => {
            let out = each(active, |l| soft::frexp_exp::<F32>(a[l].into(), env) as u32);
            wave.write_b32(inst, &out);
            return true;
        }
        M::v_pk_add_f32 | M::v_pk_mul_f32 | M::v_pk_fma_f32 => return packed(wave, inst, env),
        M::v_pk_mov_b32 => {
            let (a, b) = (dwords(wave, inst, 0).0, dwords(wave, inst, 1).1);
            let out = lanes::map2(&a, &b, |x: u32, y: u32| u64::from(x) | u64::from(y) << 32);
            wave.write_b64(inst, &out);
            return true;
        }
        _ => return false,
    };
    let out = match approximation(inst.mnemonic) {
        Some(function) if ulp::hostile() => lanes::map2(&out, a, |r, x| {
            ulp::nudge_f32(r, approx::estimate_f32(function, x), x, inst.mnemonic as u32)
        }),
        _ => out,
    };
    write_f32(wave, inst, out, env);
    true
}

/// The function of an instruction that the guide gives an error bound of one unit in the last place.
fn approximation(mnemonic: M) -> Option<Function> {
    Some(match mnemonic {
        M::v_rcp_f32 | M::v_rcp_iflag_f32 => Function::Rcp,
        M::v_rsq_f32 => Function::Rsq,
        M::v_sqrt_f32 => Function::Sqrt,
        M::v_exp_f32 | M::v_exp_legacy_f32 => Function::Exp,
        M::v_log_f32 | M::v_log_legacy_f32 => Function::Log,
        M::v_sin_f32 => Function::Sin,
        M::v_cos_f32 => Function::Cos,
        _ => return None,
    })
}

fn add(a: &V32, b: &V32, env: &Env, active: u64) -> V32 {
    lanes::f32_2(a, b, env, active, |x, y| x + y, soft::add::<F32>)
}

fn sub(a: &V32, b: &V32, env: &Env, active: u64) -> V32 {
    lanes::f32_2(a, b, env, active, |x, y| x - y, soft::sub::<F32>)
}

fn mul(a: &V32, b: &V32, env: &Env, active: u64) -> V32 {
    lanes::f32_2(a, b, env, active, |x, y| x * y, soft::mul::<F32>)
}

fn mad_legacy(a: &V32, b: &V32, c: &V32, env: &Env, active: u64) -> V32 {
    let env = &env.flushing();
    each(active, |l| {
        let product = soft::mul_legacy::<F32>(a[l].into(), b[l].into(), env);
        soft::add::<F32>(product, c[l].into(), env) as u32
    })
}

fn min3(a: &V32, b: &V32, c: &V32, env: &Env, active: u64) -> V32 {
    lanes::extremum_f32(&lanes::extremum_f32(a, b, env, active, true), c, env, active, true)
}

fn max3(a: &V32, b: &V32, c: &V32, env: &Env, active: u64) -> V32 {
    lanes::extremum_f32(&lanes::extremum_f32(a, b, env, active, false), c, env, active, false)
}

fn med3(a: &V32, b: &V32, c: &V32, env: &Env, active: u64) -> V32 {
    each(active, |l| {
        compare::med3::<F32>(a[l].into(), b[l].into(), c[l].into(), env) as u32
    })
}

/// The dwords that `op_sel` and `op_sel_hi` pick from source `n` for the low and the high result.
fn dwords(wave: &Wave, inst: &Inst, n: usize) -> (V32, V32) {
    if inst.src[n] == Operand::None {
        return ([0; 64], [0; 64]);
    }
    let pair = wave.src_b64(inst, n);
    let pick = |high: bool| -> V32 { pair.map(|v| if high { (v >> 32) as u32 } else { v as u32 }) };
    (
        pick(inst.mods.op_sel >> n & 1 != 0),
        pick(inst.mods.op_sel_hi >> n & 1 != 0),
    )
}

/// `v_pk_{add,mul,fma}_f32`: two f32 operations on register pairs.
///
/// ```text
/// low  result = op(src0[op_sel 0],    src1[op_sel 1],    ...)   negated by neg_lo
/// high result = op(src0[op_sel_hi 0], src1[op_sel_hi 1], ...)   negated by neg_hi
/// ```
fn packed(wave: &mut Wave, inst: &Inst, env: &Env) -> bool {
    let active = wave.active(inst);
    let source = |n: usize| {
        let (low, high) = dwords(wave, inst, n);
        let negate = |v: V32, mask: u8| {
            if mask >> n & 1 != 0 {
                v.map(|x| x ^ 0x8000_0000)
            } else {
                v
            }
        };
        [negate(low, inst.mods.neg), negate(high, inst.mods.neg_hi)]
    };
    let (a, b, c) = (source(0), source(1), source(2));
    let half = |i: usize| -> V32 {
        let r = match inst.mnemonic {
            M::v_pk_add_f32 => add(&a[i], &b[i], env, active),
            M::v_pk_mul_f32 => mul(&a[i], &b[i], env, active),
            _ => lanes::fma_f32(&a[i], &b[i], &c[i], env, active),
        };
        if inst.mods.clamp {
            let dx10 = wave.mode.dx10_clamp();
            r.map(|x| crate::alu::format::clamp::<F32>(x.into(), dx10) as u32)
        } else {
            r
        }
    };
    let out = lanes::map2(&half(0), &half(1), |x: u32, y: u32| u64::from(x) | u64::from(y) << 32);
    wave.write_b64(inst, &out);
    true
}
