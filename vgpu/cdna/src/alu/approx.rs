//! The transcendental instructions, correctly rounded to nearest even.
//!
//! Hardware gives these within a documented error (about one unit in the last place for f32 and f16, far less accuracy for
//! f64's reciprocals) from tables that are not public. The correctly rounded result of the exact function lies within every
//! such bound and is the same on every host. Method: an estimate in f64 with host `+ - * /` and square root, which
//! IEEE 754 fixes bit for bit; where its error bound leaves two candidates, exact or 128-bit arithmetic decides.

use super::{
    convert,
    fixed::{self, mul_high},
    format::{F16, F32, F64, Format},
    lanes::{each, mask, vectorised},
    mode::Env,
    soft::Exact,
};
use crate::wave::V32;
use std::sync::OnceLock;

/// The estimates below are good to a few units of 2^-52; this leaves a wide margin.
const MARGIN: f64 = 1.0 / (1u64 << 45) as f64;

/// A result format that an f64 estimate is rounded to.
trait Narrow: Format {
    fn narrow(x: f64) -> u64;
}

impl Narrow for F32 {
    #[inline]
    fn narrow(x: f64) -> u64 {
        (x as f32).to_bits().into()
    }
}

impl Narrow for F16 {
    #[inline]
    fn narrow(x: f64) -> u64 {
        convert::f16_from_f64_nearest(x).into()
    }
}

/// The rounded estimate, or the exact answer where the estimate is too near a boundary.
#[inline]
fn decide<F: Narrow>(estimate: f64, exact: impl FnOnce() -> Exact) -> u64 {
    let slack = estimate * MARGIN;
    let (low, high) = (F::narrow(estimate - slack), F::narrow(estimate + slack));
    if low == high {
        low
    } else {
        exact().round::<F>(&Env::DEFAULT)
    }
}

/// Operand flushing, NaN quietening, result flushing, FP16_OVFL around a function of the operand's value.
#[inline]
fn around<F: Format>(x: u64, env: &Env, f: impl FnOnce(u64) -> u64) -> u64 {
    if F::is_nan(x) {
        return x | F::QUIET;
    }
    let x = F::input(x, env);
    let r = F::output(f(x), env);
    if F::HALF && env.fp16_ovfl && F::is_inf(r) && !F::is_inf(x) && !F::is_zero(x) {
        r - 1
    } else {
        r
    }
}

#[inline]
fn wide16(x: u64) -> f64 {
    f32::from_bits(convert::f32_from_f16(x as u16)).into()
}

#[inline]
fn wide32(x: u64) -> f64 {
    f32::from_bits(x as u32).into()
}

/// `v_rcp_f32`.
///
/// The f64 quotient rounds to the right f32: 1/x and a boundary m between f32 values differ by |1 - x m| / x, and x m has
/// at most 49 bits, so unless they are equal they are at least 2^-49 apart, more than f64's rounding moves.
#[inline]
pub fn rcp_f32(x: u32, env: &Env) -> u32 {
    around::<F32>(x.into(), env, |x| F32::narrow(1.0 / wide32(x))) as u32
}

/// `v_rcp_f16`; exact by the argument of [`rcp_f32`].
#[inline]
pub fn rcp_f16(x: u32, env: &Env) -> u32 {
    around::<F16>(x.into(), env, |x| F16::narrow(1.0 / wide16(x))) as u32
}

/// `v_rcp_f64`.
#[inline]
pub fn rcp_f64(x: u64, env: &Env) -> u64 {
    around::<F64>(x, env, |x| (1.0 / f64::from_bits(x)).to_bits())
}

/// `v_sqrt_f32`.
#[inline]
pub fn sqrt_f32(x: u32, env: &Env) -> u32 {
    around::<F32>(x.into(), env, |x| {
        if F32::negative(x) && !F32::is_zero(x) {
            F32::NAN
        } else {
            f32::from_bits(x as u32).sqrt().to_bits().into()
        }
    }) as u32
}

/// `v_sqrt_f16`: f64's root of an 11-bit number is nearer than any f16 boundary (12 bits, whose square has 24).
#[inline]
pub fn sqrt_f16(x: u32, env: &Env) -> u32 {
    around::<F16>(x.into(), env, |x| {
        if F16::negative(x) && !F16::is_zero(x) {
            F16::NAN
        } else {
            F16::narrow(wide16(x).sqrt())
        }
    }) as u32
}

/// `v_sqrt_f64`.
#[inline]
pub fn sqrt_f64(x: u64, env: &Env) -> u64 {
    around::<F64>(x, env, |x| {
        if F64::negative(x) && !F64::is_zero(x) {
            F64::NAN
        } else {
            f64::from_bits(x).sqrt().to_bits()
        }
    })
}

/// 1/sqrt of zeros, infinities and negative numbers, as every width has it.
#[inline]
fn rsq_special<F: Format>(x: u64) -> Option<u64> {
    if F::is_zero(x) {
        Some((x & F::SIGN) | F::INF)
    } else if F::negative(x) {
        Some(F::NAN)
    } else if F::is_inf(x) {
        Some(0)
    } else {
        None
    }
}

/// `v_rsq_f32`.
pub fn rsq_f32(x: u32, env: &Env) -> u32 {
    around::<F32>(x.into(), env, |x| {
        rsq_special::<F32>(x).unwrap_or_else(|| {
            let estimate = 1.0 / wide32(x).sqrt();
            let slack = estimate * MARGIN;
            let (low, high) = (F32::narrow(estimate - slack), F32::narrow(estimate + slack));
            if low == high { low } else { nearest_rsq::<F32>(x, low) }
        })
    }) as u32
}

/// `v_rsq_f16`: by the argument of [`rcp_f32`], x m^2 having at most 35 bits.
pub fn rsq_f16(x: u32, env: &Env) -> u32 {
    around::<F16>(x.into(), env, |x| {
        rsq_special::<F16>(x).unwrap_or_else(|| F16::narrow(1.0 / wide16(x).sqrt()))
    }) as u32
}

/// `v_rsq_f64`.
pub fn rsq_f64(x: u64, env: &Env) -> u64 {
    around::<F64>(x, env, |x| {
        rsq_special::<F64>(x).unwrap_or_else(|| nearest_rsq::<F64>(x, (1.0 / f64::from_bits(x).sqrt()).to_bits()))
    })
}

/// Walks from a near `guess` to the value nearest to 1/sqrt(x), by comparing x m^2 with one at each boundary m.
fn nearest_rsq<F: Format>(x: u64, guess: u64) -> u64 {
    let x = Exact::unpack::<F>(x);
    // Whether the boundary above `y` is still below 1/sqrt(x). Its significand is odd, so x m^2 is never exactly one.
    let boundary_below = |y: u64| {
        let y = Exact::unpack::<F>(y);
        let (m, exp) = (2 * y.sig + 1, y.exp - 1);
        let square = m * m; // at most 108 bits
        let (high, low) = (mul_high(square, x.sig), square.wrapping_mul(x.sig));
        let length = 256
            - if high != 0 {
                high.leading_zeros()
            } else {
                128 + low.leading_zeros()
            } as i32;
        length - 1 < -(x.exp + 2 * exp)
    };
    let mut y = guess;
    while boundary_below(y) {
        y += 1;
    }
    while !boundary_below(y - 1) {
        y -= 1;
    }
    y
}

/// 2^(j/64).
fn powers() -> &'static [f64; 64] {
    static TABLE: OnceLock<[f64; 64]> = OnceLock::new();
    TABLE.get_or_init(|| {
        std::array::from_fn(|j| f64::from_bits(fixed::exp2(j as f64 / 64.0).round::<F64>(&Env::DEFAULT)))
    })
}

/// 2^x in f64 for x within f32's exponents, a few units of 2^-53 off.
#[inline(always)]
fn exp2_estimate(x: f64, powers: &[f64; 64]) -> f64 {
    let k = (x * 64.0).round_ties_even();
    let z = (x - k / 64.0) * std::f64::consts::LN_2; // |z| < 0.0055
    let p = 1.0
        + z * (1.0 + z * 0.5 * (1.0 + z * (1.0 / 3.0) * (1.0 + z * 0.25 * (1.0 + z * 0.2 * (1.0 + z * (1.0 / 6.0))))));
    let k = k as i32;
    powers[(k & 63) as usize] * p * f64::from_bits(((k >> 6) + 1023) as u64 * (1 << 52))
}

fn exp<F: Narrow>(x: f64) -> u64 {
    if x >= 1000.0 {
        return F::INF;
    }
    if x <= -1000.0 {
        return 0;
    }
    decide::<F>(exp2_estimate(x, powers()), || fixed::exp2(x))
}

/// `v_exp_f32`: 2^x; denormals are flushed whatever MODE says.
#[inline]
pub fn exp_f32(x: u32, env: &Env) -> u32 {
    around::<F32>(x.into(), &env.flushing(), |x| exp::<F32>(wide32(x))) as u32
}

/// `v_exp_f16`.
#[inline]
pub fn exp_f16(x: u32, env: &Env) -> u32 {
    // An infinite operand is not an overflow.
    around::<F16>(x.into(), env, |x| exp::<F16>(wide16(x))) as u32
}

/// 1/3, 1/5 ... 1/23.
const ODD_RECIPROCALS: [f64; 11] = {
    let mut table = [0.0; 11];
    let mut i = 0;
    while i < 11 {
        table[i] = 1.0 / (2 * i + 3) as f64;
        i += 1;
    }
    table
};

/// 1/(2k (2k + 1)) and 1/(2k (2k - 1)) for k from 1: the ratios of successive terms of the sine and the cosine.
const SERIES_RATIOS: [[f64; 9]; 2] = {
    let mut table = [[0.0; 9]; 2];
    let mut i = 0;
    while i < 9 {
        let k = (i + 1) as f64;
        table[0][i] = 1.0 / (2.0 * k * (2.0 * k + 1.0));
        table[1][i] = 1.0 / (2.0 * k * (2.0 * k - 1.0));
        i += 1;
    }
    table
};

/// log2 in f64 for a positive normal x, a few units of 2^-52 off in relative terms.
#[inline(always)]
fn log2_estimate(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut e = (bits >> 52) as i32 - 1023;
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let above = m > std::f64::consts::SQRT_2;
    m *= if above { 0.5 } else { 1.0 };
    e += i32::from(above);
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s; // below 0.0295
    let r = ODD_RECIPROCALS.iter().rev().fold(0.0, |r, c| r * s2 + c);
    // The leading term apart keeps the relative error of small logarithms down.
    let atanh = s + s * (s2 * r);
    f64::from(e) + atanh * (2.0 / std::f64::consts::LN_2)
}

fn log<F: Narrow>(x: u64, value: f64) -> u64 {
    if F::is_zero(x) {
        return F::SIGN | F::INF;
    }
    if F::negative(x) {
        return F::NAN;
    }
    if F::is_inf(x) {
        return F::INF;
    }
    if value.to_bits() & ((1 << 52) - 1) == 0 {
        // A power of two: its logarithm is an integer.
        return F::narrow(f64::from((value.to_bits() >> 52) as i32 - 1023));
    }
    decide::<F>(log2_estimate(value), || fixed::log2(value))
}

/// `v_log_f32`: log2; denormals are flushed whatever MODE says.
#[inline]
pub fn log_f32(x: u32, env: &Env) -> u32 {
    around::<F32>(x.into(), &env.flushing(), |x| log::<F32>(x, wide32(x))) as u32
}

/// `v_log_f16`.
#[inline]
pub fn log_f16(x: u32, env: &Env) -> u32 {
    around::<F16>(x.into(), env, |x| log::<F16>(x, wide16(x))) as u32
}

/// Sine of `x` turns plus `quarter` quarters. Out of +-256 the hardware gives 0 (sine) and 1 (cosine).
fn sine<F: Narrow>(x: u64, value: f64, quarter: i32) -> u64 {
    if F::is_inf(x) {
        return F::NAN;
    }
    if value.abs() > 256.0 {
        return if quarter == 0 { 0 } else { F::ONE };
    }
    // To the nearest quarter turn; the rest is exact and at most an eighth.
    let q = (value * 4.0).round_ties_even();
    let y = value - q / 4.0;
    let q = (q as i32 + quarter) & 3;
    if y == 0.0 {
        return match q {
            0 | 2 if quarter == 0 => x & F::SIGN,
            0 | 2 => 0,
            1 => F::ONE,
            _ => F::SIGN | F::ONE,
        };
    }
    let (sine, cosine) = sin_cos_estimate(y);
    let result = if q & 1 == 0 {
        decide::<F>(sine, || fixed::sin_cos_turns(y).0)
    } else {
        decide::<F>(cosine, || fixed::sin_cos_turns(y).1)
    };
    result ^ if q >= 2 { F::SIGN } else { 0 }
}

/// Sine and cosine of y turns for |y| <= 1/8, a few units of 2^-53 off in relative terms.
#[inline(always)]
fn sin_cos_estimate(y: f64) -> (f64, f64) {
    let theta = y * std::f64::consts::TAU;
    let t2 = theta * theta;
    let series = |ratios: &[f64]| ratios.iter().rev().fold(1.0, |r, c| 1.0 - t2 * c * r);
    (theta * series(&SERIES_RATIOS[0][..8]), series(&SERIES_RATIOS[1]))
}

/// `v_sin_f32`: the sine of x turns.
#[inline]
pub fn sin_f32(x: u32, env: &Env) -> u32 {
    around::<F32>(x.into(), env, |x| sine::<F32>(x, wide32(x), 0)) as u32
}

/// `v_cos_f32`: the cosine of x turns.
#[inline]
pub fn cos_f32(x: u32, env: &Env) -> u32 {
    around::<F32>(x.into(), env, |x| sine::<F32>(x, wide32(x), 1)) as u32
}

/// `v_sin_f16`.
#[inline]
pub fn sin_f16(x: u32, env: &Env) -> u32 {
    around::<F16>(x.into(), env, |x| sine::<F16>(x, wide16(x), 0)) as u32
}

/// `v_cos_f16`.
#[inline]
pub fn cos_f16(x: u32, env: &Env) -> u32 {
    around::<F16>(x.into(), env, |x| sine::<F16>(x, wide16(x), 1)) as u32
}

/// The f32 functions above, to name one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Function {
    Rcp,
    Rsq,
    Sqrt,
    Exp,
    Log,
    Sin,
    Cos,
}

/// The value of a function of an f32, good to a few units of 2^-52 in relative terms, where it is finite.
pub fn estimate_f32(function: Function, x: u32) -> f64 {
    let x = f64::from(f32::from_bits(x));
    match function {
        Function::Rcp => 1.0 / x,
        Function::Rsq => 1.0 / x.sqrt(),
        Function::Sqrt => x.sqrt(),
        Function::Exp if x.abs() < 1000.0 => exp2_estimate(x, powers()),
        Function::Log if x > 0.0 => log2_estimate(x),
        Function::Sin => turn_estimate(x, 0),
        Function::Cos => turn_estimate(x, 1),
        _ => f64::NAN,
    }
}

/// All lanes of an f32 function: estimates where `domain` holds and the rounding is certain, `scalar` for the rest.
#[inline(always)]
fn all_lanes(
    a: &V32,
    env: &Env,
    active: u64,
    domain: impl Fn(f32) -> bool,
    estimate: impl Fn(f64) -> f64,
    scalar: fn(u32, &Env) -> u32,
) -> V32 {
    let (mut out, mut sure) = ([0; 64], [0u8; 64]);
    vectorised(|| {
        for lane in 0..64 {
            let x = f32::from_bits(a[lane]);
            let inside = domain(x);
            let value = estimate(if inside { x.into() } else { 1.0 });
            let slack = value * MARGIN;
            let (low, high) = ((value - slack) as f32, (value + slack) as f32);
            out[lane] = low.to_bits();
            sure[lane] = u8::from(inside && low == high);
        }
    });
    let rest = active & !mask(&sure);
    if rest != 0 {
        let slow = each(rest, |l| scalar(a[l], env));
        for (l, v) in slow.iter().enumerate().filter(|(l, _)| rest >> l & 1 != 0) {
            out[l] = *v;
        }
    }
    out
}

/// [`exp_f32`] of all lanes.
pub fn exp_lanes(a: &V32, env: &Env, active: u64) -> V32 {
    let powers = powers();
    all_lanes(
        a,
        env,
        active,
        |x| x.abs() < 125.0,
        |x| exp2_estimate(x, powers),
        exp_f32,
    )
}

/// [`log_f32`] of all lanes. Powers of two go the scalar way, being exact.
pub fn log_lanes(a: &V32, env: &Env, active: u64) -> V32 {
    let ordinary = |x: f32| x.to_bits().wrapping_sub(0x0080_0000) < 0x7f00_0000 && x.to_bits() & 0x007f_ffff != 0;
    all_lanes(a, env, active, ordinary, log2_estimate, log_f32)
}

/// [`sin_f32`] of all lanes.
pub fn sin_lanes(a: &V32, env: &Env, active: u64) -> V32 {
    all_lanes(a, env, active, turns, |x| turn_estimate(x, 0), sin_f32)
}

/// [`cos_f32`] of all lanes.
pub fn cos_lanes(a: &V32, env: &Env, active: u64) -> V32 {
    all_lanes(a, env, active, turns, |x| turn_estimate(x, 1), cos_f32)
}

/// Operands of sine and cosine whose results are normal: in the hardware's range and not near zero. (Exact quarter turns
/// give zero estimates, which are never certain to be of the right sign: see [`turn_estimate`].)
#[inline(always)]
fn turns(x: f32) -> bool {
    x.abs() <= 256.0 && x.abs() > 1e-20
}

/// As [`sine`] in f64; NaN for exact quarter turns, which sends the lane the scalar way.
#[inline(always)]
fn turn_estimate(x: f64, quarter: i32) -> f64 {
    let q = (x * 4.0).round_ties_even();
    let y = x - q * 0.25;
    let q = q as i32 + quarter;
    let (sine, cosine) = sin_cos_estimate(y);
    let value = if q & 1 == 0 { sine } else { cosine };
    let value = if q & 2 != 0 { -value } else { value };
    if y == 0.0 { f64::NAN } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::testing::Lcg;

    const E: &Env = &Env::DEFAULT;

    /// Whether `got` is the nearest f32 to a value given as an exact number's rounding at twice the precision.
    #[track_caller]
    fn nearest_f32(x: u32, got: u32, exact: Exact) {
        assert_eq!(u64::from(got), exact.round::<F32>(E), "operand {x:08x}");
    }

    #[test]
    fn reciprocals_are_correctly_rounded() {
        // |x y - 1| decides: the neighbours of y must not be nearer to 1/x. Products are exact in f64 up to 48 bits.
        let mut rng = Lcg::new(61);
        for _ in 0..300_000 {
            let x = rng.u32();
            let v = f32::from_bits(x);
            if !v.is_normal() {
                continue;
            }
            let y = rcp_f32(x, E);
            let error = |y: u32| (f64::from(f32::from_bits(y)) * f64::from(v) - 1.0).abs();
            if f32::from_bits(y).is_normal() {
                assert!(error(y) <= error(y + 1) && error(y) <= error(y - 1), "{x:08x} {y:08x}");
            }
        }
        for (x, want) in [
            (0u32, 0x7f80_0000u32),
            (0x8000_0000, 0xff80_0000),
            (0x7f80_0000, 0),
            (0xff80_0000, 1 << 31),
        ] {
            assert_eq!(rcp_f32(x, E), want);
        }
        assert_eq!(rcp_f32(0x7f80_0001, E), 0x7fc0_0001);
    }

    #[test]
    fn reciprocal_roots_are_correctly_rounded() {
        let mut rng = Lcg::new(62);
        for _ in 0..100_000 {
            let x = rng.u32() & 0x7fff_ffff;
            if u64::from(x) < F32::INF && x != 0 {
                let y = rsq_f32(x, E);
                assert_eq!(u64::from(y), nearest_rsq::<F32>(x.into(), y.into()), "{x:08x}");
            }
            let x = rng.u64() >> 1;
            if x < F64::INF && x != 0 {
                let y = f64::from_bits(rsq_f64(x, E));
                // In double-double: x y^2 is one within a unit.
                let v = f64::from_bits(x);
                if v.is_normal() {
                    let p = y * v.sqrt();
                    assert!((p - 1.0).abs() < 4e-16, "{x:016x}");
                }
            }
        }
        assert_eq!(rsq_f32(1 << 31, E), 0xff80_0000);
        assert_eq!(rsq_f64(0, E), F64::INF);
        assert_eq!(u64::from(rsq_f32(0xbf80_0000, E)), F32::NAN);
        assert_eq!(f64::from_bits(rsq_f64(4f64.to_bits(), E)), 0.5);
        assert_eq!(rsq_f64(F64::INF, E), 0);
    }

    #[test]
    fn rsq_f64_from_a_distant_guess_finds_the_same_value() {
        let mut rng = Lcg::new(63);
        for _ in 0..20_000 {
            let x = (rng.u64() >> 12) | (1000 + u64::from(rng.u32() % 40)) << 52;
            let y = rsq_f64(x, E);
            assert_eq!(nearest_rsq::<F64>(x, y + 3), y);
            assert_eq!(nearest_rsq::<F64>(x, y - 3), y);
        }
    }

    #[test]
    fn exponentials_agree_with_128_bit_arithmetic() {
        let mut rng = Lcg::new(64);
        for _ in 0..40_000 {
            let x = ((rng.u32() as i32 as f32) / (1u32 << 24) as f32).to_bits();
            let want = fixed::exp2(f32::from_bits(x).into());
            let r = want.round::<F32>(E);
            assert_eq!(u64::from(exp_f32(x, E)), F32::flush(r, true), "{x:08x}");
        }
        assert_eq!(f32::from_bits(exp_f32(10f32.to_bits(), E)), 1024.0);
        assert_eq!(f32::from_bits(exp_f32((-1e9f32).to_bits(), E)), 0.0);
        assert_eq!(u64::from(exp_f32(128f32.to_bits(), E)), F32::INF);
        assert_eq!(u64::from(exp_f32(F32::INF as u32, E)), F32::INF);
        assert_eq!(exp_f32(0xff80_0000, E), 0);
    }

    #[test]
    fn logarithms_agree_with_128_bit_arithmetic() {
        let mut rng = Lcg::new(65);
        for i in 0..40_000 {
            let mut x = rng.u32() & 0x7fff_ffff;
            if i & 1 == 0 {
                x = 0x3f80_0000 - (1 << 20) + (x & 0x1f_ffff); // around one
            }
            if !(0x0080_0000..0x7f80_0000).contains(&x) || x & 0x007f_ffff == 0 {
                continue;
            }
            nearest_f32(x, log_f32(x, E), fixed::log2(f32::from_bits(x).into()));
        }
        assert_eq!(f32::from_bits(log_f32(1f32.to_bits(), E)).to_bits(), 0);
        assert_eq!(f32::from_bits(log_f32(0.125f32.to_bits(), E)), -3.0);
        assert_eq!(log_f32(1 << 31, E), 0xff80_0000);
        assert_eq!(log_f32(1, E), 0xff80_0000, "denormals count as zero");
        assert_eq!(u64::from(log_f32((-1f32).to_bits(), E)), F32::NAN);
    }

    #[test]
    fn sines_agree_with_128_bit_arithmetic() {
        let mut rng = Lcg::new(66);
        for _ in 0..40_000 {
            let x = rng.f32();
            let v = f64::from(f32::from_bits(x));
            if v == 0.0 || v.abs() > 0.125 || v.is_nan() {
                continue;
            }
            let (s, c) = fixed::sin_cos_turns(v);
            nearest_f32(x, sin_f32(x, E), s);
            nearest_f32(x, cos_f32(x, E), c);
        }
        let f = |x: f32| x.to_bits();
        for (x, s, c) in [
            (0.25, 1.0, 0.0),
            (0.5, 0.0, -1.0),
            (-0.25, -1.0, 0.0),
            (1.0, 0.0, 1.0),
            (0.0, 0.0, 1.0),
        ] {
            assert_eq!(
                (f32::from_bits(sin_f32(f(x), E)), f32::from_bits(cos_f32(f(x), E))),
                (s, c),
                "{x}"
            );
        }
        assert_eq!(sin_f32(f(100.125), E), f(std::f32::consts::FRAC_1_SQRT_2));
        assert_eq!(cos_f32(f(0.625), E), f(-std::f32::consts::FRAC_1_SQRT_2));
        assert_eq!((sin_f32(f(1e9), E), cos_f32(f(1e9), E)), (0, f(1.0)));
        assert!(f32::from_bits(sin_f32(f(f32::INFINITY), E)).is_nan());
    }

    /// Every f16 operand of every f16 function against exact arithmetic or 128-bit fixed point.
    #[test]
    fn all_f16_operands_round_correctly() {
        for x in 0..=0xffffu32 {
            let v = wide16(x.into());
            if !v.is_finite() || v == 0.0 {
                continue;
            }
            let check = |got: u32, want: Exact| assert_eq!(u64::from(got), want.round::<F16>(E), "{x:04x}");
            check(exp_f16(x, E), fixed::exp2(v));
            if v > 0.0 {
                if v.to_bits() & ((1 << 52) - 1) != 0 {
                    check(log_f16(x, E), fixed::log2(v));
                }
                // An odd-bit quotient of 2^60 scaled numerators carries a sticky bit far below f16.
                let root = v.sqrt();
                let residual = (-root).mul_add(root, v);
                let sticky = Exact::unpack::<F64>(root.to_bits());
                let sticky = Exact {
                    exp: sticky.exp - 2,
                    sig: (sticky.sig << 2) | u128::from(residual > 0.0),
                    ..sticky
                };
                check(sqrt_f16(x, E), sticky);
            }
            if v.abs() <= 0.125 {
                let (s, c) = fixed::sin_cos_turns(v);
                check(sin_f16(x, E), s);
                check(cos_f16(x, E), c);
            }
            let m = Exact::unpack::<F16>(x.into());
            let numerator = 1u128 << 60;
            let (q, r) = (numerator / m.sig, numerator % m.sig);
            let quotient = Exact {
                negative: m.negative,
                exp: -60 - m.exp - 1,
                sig: q << 1 | u128::from(r != 0),
            };
            check(rcp_f16(x, E), quotient);
        }
    }

    #[test]
    fn lanes_equal_single_operands() {
        let mut rng = Lcg::new(68);
        for round in 0..600 {
            let a: V32 = std::array::from_fn(|l| match (round + l) % 4 {
                0 => rng.f32(),
                1 => ((rng.u32() as i32 as f32) / (1u32 << 24) as f32).to_bits(),
                2 => ((rng.u32() % 2048) as f32 / 8.0 - 128.0).to_bits(),
                _ => rng.u32(),
            });
            for (lanes, single) in [
                (exp_lanes(&a, E, !0), exp_f32 as fn(u32, &Env) -> u32),
                (log_lanes(&a, E, !0), log_f32),
                (sin_lanes(&a, E, !0), sin_f32),
                (cos_lanes(&a, E, !0), cos_f32),
            ] {
                for l in 0..64 {
                    assert_eq!(lanes[l], single(a[l], E), "{:08x}", a[l]);
                }
            }
        }
    }
}
