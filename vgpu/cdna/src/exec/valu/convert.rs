//! Conversions.
//!
//! Float to integer truncates, saturates and turns NaN into zero, except where the name says otherwise (`rpi`, `flr`,
//! `norm`). `v_cvt_pk_u8_f32` rounds as MODE says, which HSAIL's `packcvt` asks of it.

use super::{f16, f32, f64, write_f16, write_f32, write_f64};
use crate::{
    alu::{
        Env, F16, F32, F64, Round, convert as cvt,
        fp8::{self, Kind},
        lanes::{each, map1, map2},
    },
    isa::{Inst, Mnemonic as M},
    wave::{V32, V64, Wave},
};

/// Results in f16, f32 or f64.
pub(super) fn to_float(wave: &mut Wave, inst: &Inst) -> bool {
    let (e32, e64) = (&wave.mode.env_f32(), &wave.mode.env_f64());
    let active = wave.active(inst);
    let bits = || wave.src_b32(inst, 0);
    let out: V32 = match inst.mnemonic {
        M::v_cvt_f32_i32 if e32.host_rounding() => map1(&bits(), |x: u32| (x as i32 as f32).to_bits()),
        M::v_cvt_f32_u32 if e32.host_rounding() => map1(&bits(), |x: u32| (x as f32).to_bits()),
        M::v_cvt_f32_i32 => map1(&bits(), |x: u32| cvt::from_i64::<F32>(i64::from(x as i32), e32) as u32),
        M::v_cvt_f32_u32 => map1(&bits(), |x: u32| cvt::from_int::<F32>(false, x.into(), e32) as u32),
        M::v_cvt_f32_ubyte0 => ubyte(&bits(), 0),
        M::v_cvt_f32_ubyte1 => ubyte(&bits(), 1),
        M::v_cvt_f32_ubyte2 => ubyte(&bits(), 2),
        M::v_cvt_f32_ubyte3 => ubyte(&bits(), 3),
        M::v_cvt_off_f32_i4 => map1(&bits(), cvt::offset_i4),
        M::v_cvt_f32_f16 => {
            let a = f16(wave, inst, 0);
            if e64.flush_in {
                each(active, |l| {
                    cvt::float::<F16, F32>((a[l] & 0xffff).into(), e64, e32) as u32
                })
            } else {
                map1(&a, |x: u32| cvt::f32_from_f16(x as u16))
            }
        }
        M::v_cvt_f32_f64 => {
            let a = f64(wave, inst, 0);
            each(active, |l| cvt::float::<F64, F32>(a[l], e64, e32) as u32)
        }
        M::v_cvt_f64_f32 => {
            let a = wave.src_f32(inst, 0);
            let out = each(active, |l| cvt::float::<F32, F64>(a[l].into(), e32, e64));
            write_f64(wave, inst, out, e64);
            return true;
        }
        M::v_cvt_f64_i32 => {
            let out: V64 = map1(&bits(), |x: u32| f64::from(x as i32).to_bits());
            write_f64(wave, inst, out, e64);
            return true;
        }
        M::v_cvt_f64_u32 => {
            let out: V64 = map1(&bits(), |x: u32| f64::from(x).to_bits());
            write_f64(wave, inst, out, e64);
            return true;
        }
        M::v_cvt_f16_f32 => {
            let a = wave.src_f32(inst, 0);
            let plain =
                *e64 == Env {
                    ieee: e64.ieee,
                    ..Env::DEFAULT
                } && !e32.flush_in;
            let out = if plain {
                map1(&a, |x| cvt::f16_from_f32_nearest(x).into())
            } else {
                each(active, |l| cvt::f16_from_f32(a[l], e32, e64).into())
            };
            write_f16(wave, inst, out, e64, false);
            return true;
        }
        M::v_cvt_f16_u16 | M::v_cvt_f16_i16 => {
            let a = wave.src_b16(inst, 0);
            let signed = inst.mnemonic == M::v_cvt_f16_i16;
            let out = map1(&a, |x: u32| {
                let value = if signed {
                    i64::from(x as i16)
                } else {
                    i64::from(x as u16)
                };
                cvt::from_i64::<F16>(value, e64) as u32
            });
            write_f16(wave, inst, out, e64, false);
            return true;
        }
        _ => return false,
    };
    write_f32(wave, inst, out, e32);
    true
}

fn ubyte(a: &V32, n: u32) -> V32 {
    map1(a, |x: u32| ((x >> (8 * n) & 0xff) as f32).to_bits())
}

/// Integer results of one float.
pub(super) fn to_integer(wave: &mut Wave, inst: &Inst) -> bool {
    let (e32, e64) = (&wave.mode.env_f32(), &wave.mode.env_f64());
    let active = wave.active(inst);
    let single = |f: fn(u64, &Env) -> u32| -> V32 {
        let a = wave.src_f32(inst, 0);
        each(active, |l| f(a[l].into(), e32))
    };
    let double = |f: fn(u64, &Env) -> u32| -> V32 {
        let a = wave.src_f64(inst, 0);
        each(active, |l| f(a[l], e64))
    };
    let half = |f: fn(u64, &Env) -> u16| -> V32 {
        let a = f16(wave, inst, 0);
        each(active, |l| f((a[l] & 0xffff).into(), e64).into())
    };
    let out = match inst.mnemonic {
        // Rust's casts truncate, saturate and send NaN to zero: the hardware's rule. Denormals truncate to zero anyway.
        M::v_cvt_i32_f32 => map1(&wave.src_f32(inst, 0), |x| f32::from_bits(x) as i32 as u32),
        M::v_cvt_u32_f32 => map1(&wave.src_f32(inst, 0), |x| f32::from_bits(x) as u32),
        M::v_cvt_i32_f64 => double(cvt::to_i32::<F64>),
        M::v_cvt_u32_f64 => double(cvt::to_u32::<F64>),
        M::v_cvt_flr_i32_f32 => single(cvt::floor_i32),
        M::v_cvt_rpi_i32_f32 => single(cvt::round_half_up_i32),
        M::v_cvt_i16_f16 => return write_half(wave, inst, half(cvt::to_i16)),
        M::v_cvt_u16_f16 => return write_half(wave, inst, half(cvt::to_u16)),
        M::v_cvt_norm_i16_f16 => return write_half(wave, inst, half(|x, _| cvt::snorm16::<F16>(x))),
        M::v_cvt_norm_u16_f16 => return write_half(wave, inst, half(|x, _| cvt::unorm16::<F16>(x))),
        _ => return false,
    };
    wave.write_b32(inst, &out);
    true
}

fn write_half(wave: &mut Wave, inst: &Inst, out: V32) -> bool {
    wave.write_b16(inst, &out, false);
    true
}

/// Two floats into two 16-bit halves, or one into a byte.
pub(super) fn pack(wave: &mut Wave, inst: &Inst) -> bool {
    let (e32, e64) = (&wave.mode.env_f32(), &wave.mode.env_f64());
    let active = wave.active(inst);
    let (mut ba, mut bb) = ([0; 64], [0; 64]);
    let join = |a: &V32, b: &V32, f: &dyn Fn(u64) -> u16| -> V32 {
        each(active, |l| u32::from(f(a[l].into())) | u32::from(f(b[l].into())) << 16)
    };
    let out = match inst.mnemonic {
        M::v_cvt_pkrtz_f16_f32 => {
            let zero = e64.rounding(Round::Zero);
            let (a, b) = (f32(wave, inst, 0, &mut ba), f32(wave, inst, 1, &mut bb));
            join(a, b, &|x| cvt::f16_from_f32(x as u32, e32, &zero))
        }
        M::v_cvt_pknorm_i16_f32 => {
            let (a, b) = (f32(wave, inst, 0, &mut ba), f32(wave, inst, 1, &mut bb));
            join(a, b, &cvt::snorm16::<F32>)
        }
        M::v_cvt_pknorm_u16_f32 => {
            let (a, b) = (f32(wave, inst, 0, &mut ba), f32(wave, inst, 1, &mut bb));
            join(a, b, &cvt::unorm16::<F32>)
        }
        M::v_cvt_pknorm_i16_f16 => join(&f16(wave, inst, 0), &f16(wave, inst, 1), &cvt::snorm16::<F16>),
        M::v_cvt_pknorm_u16_f16 => join(&f16(wave, inst, 0), &f16(wave, inst, 1), &cvt::unorm16::<F16>),
        M::v_cvt_pk_u8_f32 | M::v_cvt_pkaccum_u8_f32 => {
            let (a, at) = (wave.src_f32(inst, 0), wave.src_b32(inst, 1));
            let old = if inst.mnemonic == M::v_cvt_pk_u8_f32 {
                wave.src_b32(inst, 2)
            } else {
                wave.lanes32(inst.dst)
            };
            each(active, |l| {
                let shift = 8 * (at[l] & 3);
                old[l] & !(0xff << shift) | cvt::to_u8(a[l].into(), e32) << shift
            })
        }
        _ => return false,
    };
    wave.write_b32(inst, &out);
    true
}

/// The 8-bit formats of gfx942.
pub(super) fn fp8(wave: &mut Wave, inst: &Inst) -> bool {
    let e32 = &wave.mode.env_f32();
    let saturate = wave.mode.fp16_ovfl();
    let active = wave.active(inst);
    match inst.mnemonic {
        M::v_cvt_f32_fp8 | M::v_cvt_f32_bf8 => {
            let kind = if inst.mnemonic == M::v_cvt_f32_fp8 {
                Kind::Fp8
            } else {
                Kind::Bf8
            };
            let out = map1(&wave.src_b32(inst, 0), |x: u32| fp8::to_f32(x as u8, kind));
            write_f32(wave, inst, out, e32);
        }
        M::v_cvt_pk_f32_fp8 | M::v_cvt_pk_f32_bf8 => {
            let kind = if inst.mnemonic == M::v_cvt_pk_f32_fp8 {
                Kind::Fp8
            } else {
                Kind::Bf8
            };
            let out: V64 = map1(&wave.src_b32(inst, 0), |x: u32| {
                u64::from(fp8::to_f32(x as u8, kind)) | u64::from(fp8::to_f32((x >> 8) as u8, kind)) << 32
            });
            wave.write_b64(inst, &out);
        }
        M::v_cvt_pk_fp8_f32 | M::v_cvt_pk_bf8_f32 => {
            let kind = if inst.mnemonic == M::v_cvt_pk_fp8_f32 {
                Kind::Fp8
            } else {
                Kind::Bf8
            };
            let (a, b, old) = (wave.src_f32(inst, 0), wave.src_f32(inst, 1), wave.lanes32(inst.dst));
            let pair = map2(&a, &b, |x, y| {
                u32::from(fp8::from_f32(x, kind, saturate)) | u32::from(fp8::from_f32(y, kind, saturate)) << 8
            });
            // op_sel bit 3 names the half that is written; the other is kept.
            let shift = if inst.mods.op_sel & 8 != 0 { 16 } else { 0 };
            let out = map2(&pair, &old, |v: u32, old: u32| old & !(0xffff << shift) | v << shift);
            wave.write_b32(inst, &out);
        }
        M::v_cvt_sr_fp8_f32 | M::v_cvt_sr_bf8_f32 => {
            let kind = if inst.mnemonic == M::v_cvt_sr_fp8_f32 {
                Kind::Fp8
            } else {
                Kind::Bf8
            };
            let (a, random, old) = (wave.src_f32(inst, 0), wave.src_b32(inst, 1), wave.lanes32(inst.dst));
            // op_sel bits 3:2 name the byte that is written; the others are kept.
            let shift = 8 * u32::from(inst.mods.op_sel >> 2 & 3);
            let out = each(active, |l| {
                let byte = u32::from(fp8::from_f32_stochastic(a[l], random[l], kind, saturate));
                old[l] & !(0xff << shift) | byte << shift
            });
            wave.write_b32(inst, &out);
        }
        _ => return false,
    }
    true
}
