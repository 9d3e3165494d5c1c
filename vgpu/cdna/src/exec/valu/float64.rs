//! Arithmetic in f64, on register pairs. f64 and f16 share MODE's second round and denormal fields.

use super::{super::operands::for_lanes, f64, write_f64};
use crate::{
    alu::{
        Env, F64, Round, approx, divide,
        lanes::{self, each},
        preop, soft, ulp,
    },
    isa::{Inst, Mnemonic as M},
    wave::{V64, Wave},
};

/// Executes the instruction if it is of this family.
pub(super) fn execute(wave: &mut Wave, inst: &Inst) -> bool {
    let env = &wave.mode.env_f64();
    let active = wave.active(inst);
    let a = || f64(wave, inst, 0);
    let b = || f64(wave, inst, 1);
    let c = || f64(wave, inst, 2);
    let one = |f: fn(u64, &Env) -> u64| -> V64 {
        let a = a();
        each(active, |l| f(a[l], env))
    };
    let integral = |r: Round| -> V64 {
        let a = a();
        each(active, |l| soft::round_integral::<F64>(a[l], r, env))
    };
    let out = match inst.mnemonic {
        M::v_add_f64 => lanes::f64_2(&a(), &b(), env, active, |x, y| x + y, soft::add::<F64>),
        M::v_mul_f64 => lanes::f64_2(&a(), &b(), env, active, |x, y| x * y, soft::mul::<F64>),
        M::v_fma_f64 | M::v_fmac_f64 => lanes::fma_f64(&a(), &b(), &c(), env, active),
        M::v_min_f64 => lanes::extremum_f64(&a(), &b(), env, active, true),
        M::v_max_f64 => lanes::extremum_f64(&a(), &b(), env, active, false),
        M::v_trunc_f64 => integral(Round::Zero),
        M::v_ceil_f64 => integral(Round::Up),
        M::v_floor_f64 => integral(Round::Down),
        M::v_rndne_f64 => integral(Round::Nearest),
        M::v_fract_f64 => one(soft::fract::<F64>),
        M::v_frexp_mant_f64 => one(soft::frexp_mant::<F64>),
        M::v_rcp_f64 => one(approx::rcp_f64),
        M::v_rsq_f64 => one(approx::rsq_f64),
        M::v_sqrt_f64 => one(approx::sqrt_f64),
        M::v_ldexp_f64 => {
            let (a, n) = (a(), wave.src_b32(inst, 1));
            each(active, |l| soft::ldexp::<F64>(a[l], n[l] as i32, env))
        }
        M::v_trig_preop_f64 => {
            let (a, n) = (a(), wave.src_b32(inst, 1));
            each(active, |l| preop::trig_preop(a[l], n[l], env))
        }
        M::v_div_fixup_f64 => {
            let (a, b, c) = (a(), b(), c());
            each(active, |l| divide::div_fixup::<F64>(a[l], b[l], c[l]))
        }
        M::v_div_fmas_f64 => {
            let (a, b, c, vcc) = (a(), b(), c(), wave.vcc());
            let mut out = lanes::fma_f64(&a, &b, &c, env, active);
            for_lanes(active & vcc, |l| {
                out[l] = divide::div_fmas::<F64>(a[l], b[l], c[l], true, env)
            });
            out
        }
        M::v_div_scale_f64 => {
            let (a, b, c) = (a(), b(), c());
            let scaled: [(u64, bool); 64] = each(active, |l| divide::div_scale::<F64>(a[l], b[l], c[l]));
            let flags = scaled.iter().enumerate().fold(0, |m, (l, s)| m | u64::from(s.1) << l);
            write_f64(wave, inst, scaled.map(|s| s.0), env);
            wave.write_mask(inst.sdst, flags);
            return true;
        }
        M::v_frexp_exp_i32_f64 => {
            let a = a();
            let out = each(active, |l| soft::frexp_exp::<F64>(a[l], env) as u32);
            wave.write_b32(inst, &out);
            return true;
        }
        _ => return false,
    };
    let approximate = matches!(inst.mnemonic, M::v_rcp_f64 | M::v_rsq_f64 | M::v_sqrt_f64);
    let out = if approximate && ulp::hostile() {
        lanes::map2(&out, &a(), |r, x| ulp::nudge_f64(r, x, inst.mnemonic as u32))
    } else {
        out
    };
    write_f64(wave, inst, out, env);
    true
}
