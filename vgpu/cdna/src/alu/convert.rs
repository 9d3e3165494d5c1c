//! Conversions between floating-point formats and integers.

use super::{
    format::{F16, F32, F64, Format},
    mode::{Env, Round},
    soft::{Exact, round_integral},
};

/// From one format to another: denormal operands as `input` says, rounding and denormal results as `output` says. A NaN
/// keeps its sign and the high bits of its payload, and becomes quiet.
pub fn float<A: Format, B: Format>(x: u64, input: &Env, output: &Env) -> u64 {
    let sign = if A::negative(x) { B::SIGN } else { 0 };
    if A::is_nan(x) {
        let payload = x & (A::MIN_NORMAL - 1);
        let payload = if A::MANT > B::MANT {
            payload >> (A::MANT - B::MANT)
        } else {
            payload << (B::MANT - A::MANT)
        };
        return sign | B::INF | B::QUIET | payload;
    }
    if A::is_inf(x) {
        return sign | B::INF;
    }
    Exact::unpack::<A>(A::input(x, input)).round::<B>(output)
}

/// `v_cvt_f16_f32`. `env32` rules the operand, `env16` the result.
#[inline]
pub fn f16_from_f32(x: u32, env32: &Env, env16: &Env) -> u16 {
    float::<F32, F16>(x.into(), env32, env16) as u16
}

/// f32 to f16, nearest even, denormals kept, in a few integer steps. NaNs keep sign and high payload, quietened.
#[inline]
pub fn f16_from_f32_nearest(x: u32) -> u16 {
    let sign = (x >> 16 & 0x8000) as u16;
    let a = x & 0x7fff_ffff;
    let magnitude = if a >= 0x4780_0000 {
        // 65536 and above, infinity, NaN
        if a > 0x7f80_0000 {
            0x7e00 | (a >> 13 & 0x3ff)
        } else {
            0x7c00
        }
    } else if a < 0x3880_0000 {
        // Below 2^-14: adding 0.5 makes the host round at f16's denormal unit, 2^-24.
        (f32::from_bits(a) + 0.5).to_bits() - 0x3f00_0000
    } else {
        (a + 0xfff + (a >> 13 & 1) - 0x3800_0000) >> 13
    };
    sign | magnitude as u16
}

/// f64 to f16, nearest even, denormals kept: to f32 with the last bit sticky, so that the second rounding sees what the
/// first dropped.
#[inline]
pub fn f16_from_f64_nearest(x: f64) -> u16 {
    let magnitude = |x: f64| x.to_bits() & !(1 << 63);
    let near = x as f32;
    let rounded_up = magnitude(near.into()) > magnitude(x);
    let toward_zero = near.to_bits() - u32::from(rounded_up);
    let sticky = toward_zero | u32::from(f64::from(f32::from_bits(toward_zero)) != x);
    f16_from_f32_nearest(sticky)
}

/// f16 to f32, exact, denormals kept. NaNs become quiet.
#[inline]
pub fn f32_from_f16(x: u16) -> u32 {
    let sign = u32::from(x & 0x8000) << 16;
    let a = u32::from(x & 0x7fff);
    let magnitude = if a >= 0x7c00 {
        0x7f80_0000 | (a << 13 & 0x007f_ffff) | if a > 0x7c00 { 0x0040_0000 } else { 0 }
    } else if a >= 0x400 {
        (a << 13) + 0x3800_0000
    } else {
        (a as i32 as f32 * f32::from_bits(0x3380_0000)).to_bits() // times 2^-24
    };
    sign | magnitude
}

/// An integer (its magnitude and sign) to a format.
#[inline]
pub fn from_int<F: Format>(negative: bool, magnitude: u64, env: &Env) -> u64 {
    // Zero has no sign among integers.
    let exact = Exact {
        negative: negative && magnitude != 0,
        exp: 0,
        sig: magnitude.into(),
    };
    exact.round::<F>(env)
}

/// A signed integer to a format.
#[inline]
pub fn from_i64<F: Format>(x: i64, env: &Env) -> u64 {
    from_int::<F>(x < 0, x.unsigned_abs(), env)
}

/// To an integer after rounding to an integral value in direction `round`; saturates at `low` and `high`, NaN gives zero.
pub fn to_int<F: Format>(x: u64, round: Round, low: i64, high: i64, env: &Env) -> i64 {
    if F::is_nan(x) {
        return 0;
    }
    let x = round_integral::<F>(x, round, env);
    let limit = if F::negative(x) { low } else { high };
    if F::is_inf(x) {
        return limit;
    }
    let exact = Exact::unpack::<F>(x);
    let magnitude = if exact.exp >= 0 {
        // Above 2^75 every integer width saturates.
        if exact.exp > 75 - 53 {
            return limit;
        } else {
            exact.sig << exact.exp
        }
    } else if exact.exp <= -64 {
        0
    } else {
        exact.sig >> -exact.exp
    };
    let value = if exact.negative {
        -(magnitude as i128)
    } else {
        magnitude as i128
    };
    value.clamp(low.into(), high.into()) as i64
}

/// `v_cvt_i32_*`: truncates.
#[inline]
pub fn to_i32<F: Format>(x: u64, env: &Env) -> u32 {
    to_int::<F>(x, Round::Zero, i32::MIN.into(), i32::MAX.into(), env) as u32
}

/// `v_cvt_u32_*`: truncates.
#[inline]
pub fn to_u32<F: Format>(x: u64, env: &Env) -> u32 {
    to_int::<F>(x, Round::Zero, 0, u32::MAX.into(), env) as u32
}

/// `v_cvt_i16_f16`: truncates.
#[inline]
pub fn to_i16(x: u64, env: &Env) -> u16 {
    to_int::<F16>(x, Round::Zero, i16::MIN.into(), i16::MAX.into(), env) as u16
}

/// `v_cvt_u16_f16`: truncates.
#[inline]
pub fn to_u16(x: u64, env: &Env) -> u16 {
    to_int::<F16>(x, Round::Zero, 0, u16::MAX.into(), env) as u16
}

/// `v_cvt_flr_i32_f32`: floor.
#[inline]
pub fn floor_i32(x: u64, env: &Env) -> u32 {
    to_int::<F32>(x, Round::Down, i32::MIN.into(), i32::MAX.into(), env) as u32
}

/// `v_cvt_rpi_i32_f32`: floor of x plus one half, the sum exact.
pub fn round_half_up_i32(x: u64, env: &Env) -> u32 {
    if F32::magnitude(x) >= F32::INF {
        return to_i32::<F32>(x, env);
    }
    let half = Exact {
        negative: false,
        exp: -1,
        sig: 1,
    };
    let sum = Exact::unpack::<F32>(F32::input(x, env)).plus(half, Round::Nearest);
    // Rounding down to f64 keeps every integer that the sum could be above: f32 plus a half fits or is far from one.
    let wide = sum.round::<F64>(&Env::DEFAULT.rounding(Round::Down));
    to_int::<F64>(wide, Round::Down, i32::MIN.into(), i32::MAX.into(), &Env::DEFAULT) as u32
}

/// `v_cvt_pk_u8_f32`'s conversion: rounded by MODE, saturated to a byte.
#[inline]
pub fn to_u8(x: u64, env: &Env) -> u32 {
    to_int::<F32>(x, env.round, 0, 255, env) as u32
}

/// A value in [-1, 1] as a fraction of 32767 (`norm_i16`), nearest even; outside saturates, NaN gives zero.
#[inline]
pub fn snorm16<F: Format>(x: u64) -> u16 {
    scaled::<F>(x, 32767, -32767, 32767) as u16
}

/// A value in [0, 1] as a fraction of 65535 (`norm_u16`), nearest even; outside saturates, NaN gives zero.
#[inline]
pub fn unorm16<F: Format>(x: u64) -> u16 {
    scaled::<F>(x, 65535, 0, 65535) as u16
}

fn scaled<F: Format>(x: u64, factor: u128, low: i64, high: i64) -> i64 {
    if F::magnitude(x) >= F::INF {
        return to_int::<F>(x, Round::Zero, low, high, &Env::DEFAULT);
    }
    let exact = Exact::unpack::<F>(x).times(Exact {
        negative: false,
        exp: 0,
        sig: factor,
    });
    // The product of an f16 or f32 with 16 bits is exact in f64.
    to_int::<F64>(
        exact.round::<F64>(&Env::DEFAULT),
        Round::Nearest,
        low,
        high,
        &Env::DEFAULT,
    )
}

/// `v_cvt_off_f32_i4`: the low four bits as a signed sixteenth.
#[inline]
pub fn offset_i4(x: u32) -> u32 {
    let value = ((x << 28) as i32) >> 28;
    (value as f32 / 16.0).to_bits()
}

/// Clamps a signed value into i16.
#[inline]
pub fn sat_i16(x: i32) -> u32 {
    u32::from(x.clamp(-32768, 32767) as u16)
}

/// Clamps a signed 16-bit value into u8.
#[inline]
pub fn sat_u8(x: u16) -> u32 {
    (x as i16).clamp(0, 255) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::testing::{Lcg, same_f32, same_f64};

    #[test]
    fn every_f16_goes_to_f32_and_back() {
        for x in 0..=0xffffu16 {
            let wide = f32_from_f16(x);
            assert_eq!(
                u64::from(wide),
                float::<F16, F32>(x.into(), &Env::DEFAULT, &Env::DEFAULT),
                "{x:x}"
            );
            let back = f16_from_f32_nearest(wide);
            let quiet = if F16::is_nan(x.into()) { 0x200 } else { 0 };
            assert_eq!(back, x | quiet);
        }
    }

    #[test]
    fn the_short_f16_rounding_is_the_exact_one() {
        let mut rng = Lcg::new(21);
        for i in 0..400_000u32 {
            // Every second operand lies around a rounding boundary of f16.
            let x = if i & 1 == 0 {
                rng.f32()
            } else {
                f32_from_f16(rng.f16())
                    .wrapping_add((rng.u32() & 3) << 12)
                    .wrapping_add(rng.u32() & 3)
                    .wrapping_sub(1)
            };
            assert_eq!(
                f16_from_f32_nearest(x),
                f16_from_f32(x, &Env::DEFAULT, &Env::DEFAULT),
                "{x:08x}"
            );
        }
    }

    #[test]
    fn f64_and_f32_agree_with_the_host() {
        let mut rng = Lcg::new(22);
        for _ in 0..300_000 {
            let (a, b) = (rng.f32(), rng.f64());
            same_f64(
                float::<F32, F64>(a.into(), &Env::DEFAULT, &Env::DEFAULT),
                f64::from(f32::from_bits(a)),
            );
            same_f32(
                float::<F64, F32>(b, &Env::DEFAULT, &Env::DEFAULT),
                f64::from_bits(b) as f32,
            );
        }
    }

    #[test]
    fn integers_agree_with_the_host() {
        let mut rng = Lcg::new(23);
        let env = &Env::DEFAULT;
        for _ in 0..300_000 {
            let (a, b, i) = (rng.f32(), rng.f64(), rng.u32());
            let (x, y) = (f32::from_bits(a), f64::from_bits(b));
            // Rust's casts truncate, saturate and send NaN to zero: the same rule.
            assert_eq!(to_i32::<F32>(a.into(), env), x as i32 as u32);
            assert_eq!(to_u32::<F32>(a.into(), env), x as u32);
            assert_eq!(to_i32::<F64>(b, env), y as i32 as u32);
            assert_eq!(to_u32::<F64>(b, env), y as u32);
            assert_eq!(floor_i32(a.into(), env), x.floor() as i32 as u32);
            assert_eq!(
                round_half_up_i32(a.into(), env),
                (f64::from(x) + 0.5).floor() as i32 as u32,
                "{a:x}"
            );
            same_f32(from_i64::<F32>(i64::from(i as i32), env), i as i32 as f32);
            same_f32(from_int::<F32>(false, i.into(), env), i as f32);
            same_f64(from_i64::<F64>(i64::from(i as i32), env), f64::from(i as i32));
        }
    }

    #[test]
    fn f64_to_f16_rounds_once() {
        let mut rng = Lcg::new(24);
        for i in 0..300_000 {
            // Every second operand lies around a rounding boundary of f16.
            let x = if i & 1 == 0 {
                f64::from_bits((rng.u64() & 0x800f_ffff_ffff_ffff) | u64::from(990 + rng.u32() % 60) << 52)
            } else {
                let x = f64::from(f32::from_bits(
                    f32_from_f16(rng.f16()).wrapping_add((rng.u32() & 1) << 12),
                ));
                f64::from_bits(x.to_bits().wrapping_add(u64::from(rng.u32() & 3)).wrapping_sub(1))
            };
            if !x.is_nan() {
                let want = float::<F64, F16>(x.to_bits(), &Env::DEFAULT, &Env::DEFAULT);
                assert_eq!(u64::from(f16_from_f64_nearest(x)), want, "{x:e}");
            }
        }
    }

    #[test]
    fn directed_conversions_bracket() {
        let x = 0x3f80_0001_u64; // just above one
        let to = |r| float::<F32, F16>(x, &Env::DEFAULT, &Env::DEFAULT.rounding(r));
        assert_eq!(
            (to(Round::Up), to(Round::Down), to(Round::Zero)),
            (0x3c01, 0x3c00, 0x3c00)
        );
        assert_eq!(
            from_i64::<F32>(-16_777_217, &Env::DEFAULT.rounding(Round::Down)) as u32,
            (-16_777_218f32).to_bits()
        );
    }

    #[test]
    fn normalised_integers_saturate_and_round() {
        let f = |x: f32| u64::from(x.to_bits());
        assert_eq!(snorm16::<F32>(f(1.0)), 32767);
        assert_eq!(snorm16::<F32>(f(-2.0)), -32767i16 as u16);
        assert_eq!(unorm16::<F32>(f(0.5)), 32768);
        assert_eq!(unorm16::<F32>(f(-0.5)), 0);
        assert_eq!(unorm16::<F32>(F32::INF), 65535);
        assert_eq!(snorm16::<F32>(F32::NAN), 0);
        assert_eq!(snorm16::<F16>(F16::ONE), 32767);
        assert_eq!(f32::from_bits(offset_i4(8)), -0.5);
        assert_eq!(f32::from_bits(offset_i4(7)), 0.4375);
        assert_eq!(to_u8(f(2.5), &Env::DEFAULT), 2);
        assert_eq!(to_u8(f(300.0), &Env::DEFAULT), 255);
    }
}
