//! Arithmetic in f16, one value per lane, in the low half of a register unless `op_sel` or SDWA say otherwise.

use super::{f16, write_f16};
use crate::{
    alu::{
        Env, F16, Round, approx, compare, divide,
        lanes::{self, each},
        soft,
    },
    isa::{Inst, Mnemonic as M},
    wave::{V32, Wave},
};

/// Executes the instruction if it is of this family.
pub(super) fn execute(wave: &mut Wave, inst: &Inst) -> bool {
    let env = &wave.mode.env_f64();
    let active = wave.active(inst);
    let a = || f16(wave, inst, 0);
    let b = || f16(wave, inst, 1);
    let c = || f16(wave, inst, 2);
    let one = |f: fn(u32, &Env) -> u32| -> V32 {
        let a = a();
        each(active, |l| f(a[l], env))
    };
    let soft1 = |f: fn(u64, &Env) -> u64| -> V32 {
        let a = a();
        each(active, |l| f(a[l].into(), env) as u32)
    };
    let integral = |r: Round| -> V32 {
        let a = a();
        each(active, |l| soft::round_integral::<F16>(a[l].into(), r, env) as u32)
    };
    let soft2 = |f: fn(u64, u64, &Env) -> u64, a: V32, b: V32| -> V32 {
        each(active, |l| f(a[l].into(), b[l].into(), env) as u32)
    };
    let soft3 = |f: fn(u64, u64, u64, &Env) -> u64, env: &Env| -> V32 {
        let (a, b, c) = (a(), b(), c());
        each(active, |l| f(a[l].into(), b[l].into(), c[l].into(), env) as u32)
    };
    let keep = matches!(inst.mnemonic, M::v_fma_f16 | M::v_mad_f16 | M::v_div_fixup_f16);
    let out = match inst.mnemonic {
        M::v_add_f16 => add(&a(), &b(), env, active),
        M::v_sub_f16 => sub(&a(), &b(), env, active),
        M::v_subrev_f16 => sub(&b(), &a(), env, active),
        M::v_mul_f16 => mul(&a(), &b(), env, active),
        M::v_fma_f16 | M::v_fma_legacy_f16 => lanes::fma_f16(&a(), &b(), &c(), env, active),
        M::v_mad_f16 | M::v_mad_legacy_f16 | M::v_mac_f16 | M::v_madmk_f16 | M::v_madak_f16 => {
            soft3(soft::mad::<F16>, &env.flushing())
        }
        M::v_min_f16 => soft2(compare::min::<F16>, a(), b()),
        M::v_max_f16 => soft2(compare::max::<F16>, a(), b()),
        M::v_min3_f16 => soft3(min3, env),
        M::v_max3_f16 => soft3(max3, env),
        M::v_med3_f16 => soft3(compare::med3::<F16>, env),
        M::v_trunc_f16 => integral(Round::Zero),
        M::v_ceil_f16 => integral(Round::Up),
        M::v_floor_f16 => integral(Round::Down),
        M::v_rndne_f16 => integral(Round::Nearest),
        M::v_fract_f16 => soft1(soft::fract::<F16>),
        M::v_frexp_mant_f16 => soft1(soft::frexp_mant::<F16>),
        M::v_ldexp_f16 => {
            let (a, n) = (a(), wave.src_b16(inst, 1));
            each(active, |l| {
                soft::ldexp::<F16>(a[l].into(), i32::from(n[l] as i16), env) as u32
            })
        }
        M::v_rcp_f16 => one(approx::rcp_f16),
        M::v_rsq_f16 => one(approx::rsq_f16),
        M::v_sqrt_f16 => one(approx::sqrt_f16),
        M::v_exp_f16 => one(approx::exp_f16),
        M::v_log_f16 => one(approx::log_f16),
        M::v_sin_f16 => one(approx::sin_f16),
        M::v_cos_f16 => one(approx::cos_f16),
        M::v_div_fixup_f16 | M::v_div_fixup_legacy_f16 => {
            soft3(|q, den, num, _| divide::div_fixup::<F16>(q, den, num), env)
        }
        M::v_frexp_exp_i16_f16 => {
            let a = a();
            let out = each(active, |l| soft::frexp_exp::<F16>(a[l].into(), env) as u32 & 0xffff);
            wave.write_b16(inst, &out, false);
            return true;
        }
        M::v_pack_b32_f16 => {
            let out = lanes::map2(&a(), &b(), |x: u32, y: u32| x & 0xffff | y << 16);
            wave.write_b32(inst, &out);
            return true;
        }
        M::v_pk_fmac_f16 => {
            let (a, b, c) = (wave.src_b32(inst, 0), wave.src_b32(inst, 1), wave.lanes32(inst.dst));
            let high = |v: &V32| v.map(|x| x >> 16);
            let low = lanes::fma_f16(&a, &b, &c, env, active);
            let high = lanes::fma_f16(&high(&a), &high(&b), &high(&c), env, active);
            let out = lanes::map2(&low, &high, |x: u32, y: u32| x & 0xffff | y << 16);
            wave.write_b32(inst, &out);
            return true;
        }
        _ => return false,
    };
    write_f16(wave, inst, out, env, keep);
    true
}

/// Sums of the low halves; packed instructions call it for each side.
pub(super) fn add(a: &V32, b: &V32, env: &Env, active: u64) -> V32 {
    lanes::f16_2(a, b, env, active, |x, y| x + y, soft::add::<F16>)
}

fn sub(a: &V32, b: &V32, env: &Env, active: u64) -> V32 {
    lanes::f16_2(a, b, env, active, |x, y| x - y, soft::sub::<F16>)
}

/// Products of the low halves; packed instructions call it for each side.
pub(super) fn mul(a: &V32, b: &V32, env: &Env, active: u64) -> V32 {
    lanes::f16_2(a, b, env, active, |x, y| x * y, soft::mul::<F16>)
}

fn min3(a: u64, b: u64, c: u64, env: &Env) -> u64 {
    compare::min::<F16>(compare::min::<F16>(a, b, env), c, env)
}

fn max3(a: u64, b: u64, c: u64, env: &Env) -> u64 {
    compare::max::<F16>(compare::max::<F16>(a, b, env), c, env)
}
