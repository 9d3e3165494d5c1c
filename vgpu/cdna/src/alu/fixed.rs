//! Elementary functions in 128-bit fixed point: slow, accurate to better than 2^-70 of the result, the same everywhere.
//!
//! `approx` asks here when its double-precision estimate lies too near a rounding boundary to decide. The closest that a
//! non-trivial f32 result of these functions comes to a boundary is around 2^-56 of itself, so this always decides.
//! Qn means n fraction bits.

use super::{mode::Round, soft::Exact};

/// ln 2, Q128.
const LN2: u128 = 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af;
/// 2 / ln 2, Q126.
const TWO_OVER_LN2: u128 = 0xb8aa_3b29_5c17_f0bb_be87_fed0_691d_3e88;
/// 2 pi, Q125.
const TWO_PI: u128 = 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1;
/// One, Q127.
const ONE: u128 = 1 << 127;

/// The high half of the 256-bit product.
pub fn mul_high(a: u128, b: u128) -> u128 {
    let (ah, al) = (a >> 64, a & u128::from(u64::MAX));
    let (bh, bl) = (b >> 64, b & u128::from(u64::MAX));
    let (low, m1, m2) = (al * bl, ah * bl, al * bh);
    let carry = (low >> 64) + (m1 & u128::from(u64::MAX)) + (m2 & u128::from(u64::MAX));
    ah * bh + (m1 >> 64) + (m2 >> 64) + (carry >> 64)
}

/// 2^x for a finite x.
pub fn exp2(x: f64) -> Exact {
    let n = x.floor();
    let fraction = x - n; // exact: both have x's last bit or a higher one, and |fraction| < 1
    let n = n.clamp(-5000.0, 5000.0) as i32;
    if fraction == 0.0 {
        return Exact {
            negative: false,
            exp: n,
            sig: 1,
        };
    }
    let t = mul_high(to_q128(fraction), LN2);
    // 1 + t (1 + t/2 (1 + t/3 (...))), Q126
    let one = ONE >> 1;
    let r = (1..=40).rev().fold(one, |r, k| one + mul_high(t, r) / k);
    Exact {
        negative: false,
        exp: n - 126,
        sig: r | 1,
    }
}

/// log2(x) for a positive finite x of at most 24 significant bits, not a power of two.
pub fn log2(x: f64) -> Exact {
    let bits = x.to_bits();
    let mut e = (bits >> 52) as i32 - 1023;
    // The significand as an integer, 2^52 standing for one; above the root of two it counts for the next exponent.
    let mut m = i128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let mut one = 1i128 << 52;
    if m > 6_369_051_672_525_773 {
        e += 1;
        one <<= 1;
    }
    // Common trailing zeros shortened away leave room for a long quotient.
    let shift = m.trailing_zeros().min(one.trailing_zeros());
    m >>= shift;
    one >>= shift;
    let (difference, sum) = (m - one, (m + one) as u128);
    let s = (difference.unsigned_abs() << 100) / sum; // Q100, below 0.18
    let s2 = mul_high(s << 28, s << 28);
    // atanh(s) / s = 1 + s2/3 + s2^2/5 + ..., Q127 (the sum stays below 1.02: halve everything)
    let series = (1..=30)
        .rev()
        .fold(0u128, |r, k| mul_high(s2, (ONE >> 1) / (2 * k + 1) + r))
        + (ONE >> 1);
    let scale = mul_high(TWO_OVER_LN2, series << 1); // Q125
    let magnitude = mul_high(s, scale); // Q97
    let mantissa = Exact {
        negative: difference < 0,
        exp: -97,
        sig: magnitude | 1,
    };
    let exponent = Exact {
        negative: e < 0,
        exp: 0,
        sig: e.unsigned_abs().into(),
    };
    exponent.plus(mantissa, Round::Nearest)
}

/// (sin, cos) of y turns for 0 < |y| <= 1/8 with at most 24 significant bits.
pub fn sin_cos_turns(y: f64) -> (Exact, Exact) {
    let bits = y.abs().to_bits();
    let m = u128::from(bits & ((1 << 52) - 1) | 1 << 52) >> 29; // 24 bits
    let q = 1023 + 23 - (bits >> 52) as i32; // |y| = m * 2^-q, q >= 26
    let turns = mul_high(m << 104, TWO_PI); // 2 pi |y| = turns * 2^-(101 + q)
    let theta = match q - 27 {
        s @ 128.. => turns >> s.min(127) >> 1,
        s @ 0.. => turns >> s,
        _ => turns << 1, // q is 26 only for y = 1/8, whose angle is below one
    }; // Q128
    let theta2 = mul_high(theta, theta);
    let sine = (1..=20)
        .rev()
        .fold(ONE, |r, k: u128| ONE - mul_high(theta2, r) / (2 * k * (2 * k + 1)));
    let cosine = (1..=20)
        .rev()
        .fold(ONE, |r, k: u128| ONE - mul_high(theta2, r) / (2 * k * (2 * k - 1)));
    (
        Exact {
            negative: y < 0.0,
            exp: -100 - q,
            sig: mul_high(turns, sine) | 1,
        },
        Exact {
            negative: false,
            exp: -126,
            sig: cosine >> 1 | 1,
        },
    )
}

/// A value in (0, 1), Q128, truncated.
fn to_q128(x: f64) -> u128 {
    let bits = x.to_bits();
    let m = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let shift = 128 - 52 + (bits >> 52) as i32 - 1023;
    if shift >= 0 {
        m << shift
    } else {
        m.checked_shr(-shift as u32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::{format::F64, mode::Env};

    fn f64(x: Exact) -> f64 {
        f64::from_bits(x.round::<F64>(&Env::DEFAULT))
    }

    #[test]
    fn known_values() {
        assert_eq!(mul_high(u128::MAX, u128::MAX), u128::MAX - 1);
        assert_eq!(f64(exp2(0.5)), std::f64::consts::SQRT_2);
        assert_eq!(f64(exp2(-3.0)), 0.125);
        assert_eq!(f64(log2(3.0)), 1.584_962_500_721_156);
        assert_eq!(f64(log2(10.0)), std::f64::consts::LOG2_10);
        assert_eq!(f64(log2(0.75)), -0.415_037_499_278_843_8);
        let (s, c) = sin_cos_turns(0.125);
        assert_eq!(
            (f64(s), f64(c)),
            (std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::FRAC_1_SQRT_2)
        );
        let (s, c) = sin_cos_turns(f64::from(-1e-30f32));
        assert!((f64(s) / (-std::f64::consts::TAU * f64::from(1e-30f32)) - 1.0).abs() < 1e-15);
        assert_eq!(f64(c), 1.0);
    }

    #[test]
    fn sine_and_cosine_lie_on_the_circle() {
        for i in 1..=4096 {
            let (s, c) = sin_cos_turns(f64::from(i) / 32768.0);
            let (s, c) = (f64(s), f64(c));
            assert!((s.mul_add(s, c * c) - 1.0).abs() < 4e-16, "{i}");
        }
    }

    #[test]
    fn exponential_and_logarithm_are_inverse() {
        for i in 1..2000 {
            let x = f64::from(i) / 512.0 + 1.0 / 1024.0;
            let y = f64(log2(x));
            assert!((f64(exp2(y)) / x - 1.0).abs() < 1e-15, "{x}");
        }
    }
}
