//! The three helpers of the compiler's division sequences.
//!
//! ```text
//! d = div_scale(den, den, num)   n, flag = div_scale(num, den, num)
//! r = rcp(d)   Newton steps on r and q = n * r in fma
//! q = div_fmas(error, r, q, flag)   result = div_fixup(q, den, num)
//! ```
//! The rules are those under which the whole sequence is correctly rounded; the tests run it.

use super::{
    format::{F32, F64, Format},
    mode::Env,
    soft::{Exact, fma_scaled, ldexp},
};

/// The constants of a format's division sequence.
pub trait Division: Format {
    /// `v_div_scale` scales by two to this.
    const SCALE: i32;
    /// Exponent differences from here on bring the quotient near overflow.
    const FAR: i32;
    /// Numerator exponents up to here make the remainder denormal.
    const TINY: i32;
}

impl Division for F32 {
    const SCALE: i32 = 64;
    const FAR: i32 = 96;
    const TINY: i32 = 23;
}

impl Division for F64 {
    const SCALE: i32 = 128;
    const FAR: i32 = 768;
    const TINY: i32 = 53;
}

/// `v_div_scale`: `x` (the numerator or the denominator) scaled so that nothing in the sequence under- or overflows, and
/// whether `v_div_fmas` has to undo a scaling of the quotient.
pub fn div_scale<F: Division>(x: u64, den: u64, num: u64) -> (u64, bool) {
    if F::is_zero(den) || F::is_zero(num) {
        return (F::NAN, false);
    }
    if F::magnitude(den) >= F::INF || F::magnitude(num) >= F::INF {
        return (x, false);
    }
    // Most operands: nothing near a limit.
    let (de, ne) = (F::exponent(den), F::exponent(num));
    if de > 0 && de < 2 * F::BIAS - 2 && ne > F::TINY && ne - de < F::FAR && ne - de > 2 - F::BIAS {
        return (x, false);
    }
    let scale = |n| ldexp::<F>(x, n, &Env::DEFAULT);
    let reciprocal_denormal = quotient_denormal::<F>(F::ONE, den);
    let denormal = quotient_denormal::<F>(num, den);
    if F::exponent(num) - F::exponent(den) >= F::FAR {
        (if x == den { scale(F::SCALE) } else { x }, true)
    } else if F::exponent(den) == 0 {
        (scale(F::SCALE), false)
    } else if reciprocal_denormal && denormal {
        (if x == den { scale(-F::SCALE) } else { x }, true)
    } else if reciprocal_denormal {
        (scale(-F::SCALE), false)
    } else if denormal {
        (if x == num { scale(F::SCALE) } else { x }, true)
    } else if F::exponent(num) <= F::TINY {
        (scale(F::SCALE), false)
    } else {
        (x, false)
    }
}

/// |num / den| is below the smallest normal value, exactly.
fn quotient_denormal<F: Format>(num: u64, den: u64) -> bool {
    let normalised = |x| {
        let e = Exact::unpack::<F>(x);
        let shift = e.sig.leading_zeros();
        (e.exp - shift as i32, e.sig << shift)
    };
    let ((ne, ns), (de, ds)) = (normalised(num), normalised(den));
    // The quotient's leading bit is at ne - de, or one lower if the numerator's significand is the smaller.
    ne - de - i32::from(ns < ds) < 1 - F::BIAS
}

/// `v_div_fmas`: a * b + c, times a power of two before the one rounding where the lane's VCC bit says so. The direction
/// follows the quotient's size, which is in `c`: a quotient scaled down is large still, one scaled up is small.
pub fn div_fmas<F: Division>(a: u64, b: u64, c: u64, flag: bool, env: &Env) -> u64 {
    let scale = match (flag, F::exponent(c) > F::BIAS) {
        (false, _) => 0,
        (true, true) => F::SCALE,
        (true, false) => -F::SCALE,
    };
    fma_scaled::<F>(a, b, c, scale, env)
}

/// `v_div_fixup`: the quotient with the special cases put right.
pub fn div_fixup<F: Format>(quotient: u64, den: u64, num: u64) -> u64 {
    let sign = (den ^ num) & F::SIGN;
    if let Some(nan) = F::propagate(&[num, den]) {
        nan
    } else if F::is_zero(den) && F::is_zero(num) || F::is_inf(den) && F::is_inf(num) {
        F::SIGN | F::NAN
    } else if F::is_zero(den) || F::is_inf(num) {
        sign | F::INF
    } else if F::is_inf(den) || F::is_zero(num) || F::exponent(num) - F::exponent(den) < -(F::MANT as i32 + F::BIAS) {
        sign
    } else if F::is_nan(quotient) {
        // Infinity minus infinity on the way: the quotient is too large.
        sign | F::INF
    } else {
        sign | F::magnitude(quotient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::{
        approx,
        mode::Round,
        soft::{fma, mul},
        testing::{Lcg, SPECIAL_F32, SPECIAL_F64, same_f32, same_f64},
        ulp::{nudge_f32, nudge_f64},
    };

    /// The sequence LLVM emits for an IEEE division, with the reciprocal as handed in: exact, or off within its bound.
    fn divide<F: Division>(num: u64, den: u64, rcp: impl Fn(u64) -> u64, steps: u32) -> u64 {
        let env = &Env::DEFAULT;
        let (d, _) = div_scale::<F>(den, den, num);
        let (n, flag) = div_scale::<F>(num, den, num);
        let minus_d = d ^ F::SIGN;
        let mut r = rcp(d);
        for _ in 0..steps {
            let e = fma::<F>(minus_d, r, F::ONE, env);
            r = fma::<F>(e, r, r, env);
        }
        let mut q = mul::<F>(n, r, env);
        if F::MANT < 50 {
            q = fma::<F>(fma::<F>(minus_d, q, n, env), r, q, env);
        }
        let e = fma::<F>(minus_d, q, n, env);
        div_fixup::<F>(div_fmas::<F>(e, r, q, flag, env), den, num)
    }

    /// A significand of all ones has a reciprocal barely above a rounding boundary, which Newton's step only ever nears
    /// from below: no sequence of this shape survives a seed that is off there.
    fn all_ones<F: Format>(x: u64) -> bool {
        x & (F::MIN_NORMAL - 1) == F::MIN_NORMAL - 1
    }

    #[test]
    fn the_f32_sequence_is_a_correctly_rounded_division() {
        let mut rng = Lcg::new(41);
        let check = |a: u32, b: u32| {
            let rcp = |x: u64| approx::rcp_f32(x as u32, &Env::DEFAULT);
            let want = f32::from_bits(a) / f32::from_bits(b);
            same_f32(divide::<F32>(a.into(), b.into(), |x| rcp(x).into(), 1), want);
            let exact = |x: u64| 1.0 / f64::from(f32::from_bits(x as u32));
            let off = |x: u64| nudge_f32(rcp(x), exact(x), x as u32, 1).into();
            if !all_ones::<F32>(b.into()) {
                same_f32(divide::<F32>(a.into(), b.into(), off, 1), want);
            }
        };
        for _ in 0..200_000 {
            check(rng.f32(), rng.f32());
            check(rng.u32(), rng.u32());
            // The extremes: far exponents and denormal quotients.
            check(rng.u32() & 0x80ff_ffff, rng.u32() | 0x7e00_0000);
            check(rng.u32() | 0x7e00_0000, rng.u32() & 0x80ff_ffff);
        }
        for a in SPECIAL_F32 {
            for b in SPECIAL_F32 {
                check(a, b);
            }
        }
    }

    #[test]
    fn the_f64_sequence_is_a_correctly_rounded_division() {
        let mut rng = Lcg::new(42);
        let check = |a: u64, b: u64| {
            let rcp = |x| approx::rcp_f64(x, &Env::DEFAULT);
            let want = f64::from_bits(a) / f64::from_bits(b);
            same_f64(divide::<F64>(a, b, rcp, 2), want);
            if !all_ones::<F64>(b) {
                same_f64(divide::<F64>(a, b, |x| nudge_f64(rcp(x), x, 1), 2), want);
            }
        };
        for _ in 0..150_000 {
            check(rng.f64(), rng.f64());
            check(rng.u64(), rng.u64());
            check(rng.u64() & 0x801f_ffff_ffff_ffff, rng.u64() | 0x7fc0_0000_0000_0000);
            check(rng.u64() | 0x7fc0_0000_0000_0000, rng.u64() & 0x801f_ffff_ffff_ffff);
        }
        for a in SPECIAL_F64 {
            for b in SPECIAL_F64 {
                check(a, b);
            }
        }
    }

    #[test]
    fn invalid_divisions_give_the_negative_default_nan() {
        assert_eq!(div_fixup::<F32>(0, 0, 0), 0xffc0_0000);
        assert_eq!(div_fixup::<F64>(0, F64::INF, F64::INF), 0xfff8_0000_0000_0000);
    }

    #[test]
    fn fmas_honours_the_rounding_direction() {
        let third = (1f32 / 3.0).to_bits().into();
        let run = |r| div_fmas::<F32>(third, third, F32::ONE, false, &Env::DEFAULT.rounding(r));
        assert_eq!(run(Round::Up), run(Round::Down) + 1);
    }
}
