//! Compares, classes, minimum, maximum and median.

use super::{format::Format, mode::Env};
use std::cmp::Ordering;

/// How two floating-point operands relate; `None` if either is a NaN. Zeros of either sign are equal.
#[inline]
pub fn order<F: Format>(a: u64, b: u64, env: &Env) -> Option<Ordering> {
    if F::is_nan(a) || F::is_nan(b) {
        return None;
    }
    let (a, b) = (F::input(a, env), F::input(b, env));
    Some(if F::is_zero(a) && F::is_zero(b) {
        Ordering::Equal
    } else {
        total::<F>(a).cmp(&total::<F>(b))
    })
}

/// An integer that orders non-NaN values, minus zero below plus zero.
#[inline]
fn total<F: Format>(x: u64) -> i64 {
    if F::negative(x) {
        !(F::magnitude(x) as i64)
    } else {
        x as i64
    }
}

/// The smaller operand. Under IEEE a signalling NaN wins, quietened; otherwise a NaN loses against a number, and of two NaNs
/// the first is given. Minus zero is below plus zero.
#[inline]
pub fn min<F: Format>(a: u64, b: u64, env: &Env) -> u64 {
    extremum::<F>(a, b, env, |x, y| x <= y)
}

/// The larger operand, by the rules of [`min`].
#[inline]
pub fn max<F: Format>(a: u64, b: u64, env: &Env) -> u64 {
    extremum::<F>(a, b, env, |x, y| x >= y)
}

/// The operand that `first` prefers, or what the NaN rules of [`min`] give.
#[inline]
fn extremum<F: Format>(a: u64, b: u64, env: &Env, first: impl Fn(i64, i64) -> bool) -> u64 {
    if F::is_nan(a) || F::is_nan(b) {
        if env.ieee {
            if F::is_signalling(a) {
                return a | F::QUIET;
            }
            if F::is_signalling(b) {
                return b | F::QUIET;
            }
        }
        let winner = if !F::is_nan(b) { b } else { a };
        return if F::is_nan(winner) {
            winner | F::QUIET
        } else {
            F::output(F::input(winner, env), env)
        };
    }
    let (a, b) = (F::input(a, env), F::input(b, env));
    F::output(if first(total::<F>(a), total::<F>(b)) { a } else { b }, env)
}

/// The middle of three; with a NaN among them the minimum of the three.
#[inline]
pub fn med3<F: Format>(a: u64, b: u64, c: u64, env: &Env) -> u64 {
    if F::is_nan(a) || F::is_nan(b) || F::is_nan(c) {
        return min::<F>(min::<F>(a, b, env), c, env);
    }
    max::<F>(min::<F>(a, b, env), min::<F>(max::<F>(a, b, env), c, env), env)
}

/// `v_cmp_class`: whether `mask` names the class of `x`.
///
/// Bits: 0 signalling NaN, 1 quiet NaN, 2 -inf, 3 -normal, 4 -denormal, 5 -0, 6 +0, 7 +denormal, 8 +normal, 9 +inf.
/// Denormals are seen as such whatever MODE says.
#[inline]
pub fn class<F: Format>(x: u64, mask: u32) -> bool {
    let bit = if F::is_nan(x) {
        u32::from(!F::is_signalling(x))
    } else {
        let kind = if F::is_inf(x) {
            3
        } else if F::is_zero(x) {
            0
        } else if F::is_denormal(x) {
            1
        } else {
            2
        };
        if F::negative(x) { 5 - kind } else { 6 + kind }
    };
    mask >> bit & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::{
        format::{F16, F32},
        testing::Lcg,
    };

    #[test]
    fn order_agrees_with_the_host() {
        let mut rng = Lcg::new(11);
        for _ in 0..200_000 {
            let (a, b) = (rng.f32(), rng.f32());
            let want = f32::from_bits(a).partial_cmp(&f32::from_bits(b));
            assert_eq!(order::<F32>(a.into(), b.into(), &Env::DEFAULT), want, "{a:x} {b:x}");
        }
        let flush = Env::DEFAULT.flushing();
        assert_eq!(order::<F32>(1, F32::SIGN | 5, &flush), Some(Ordering::Equal));
    }

    #[test]
    fn minimum_and_maximum_order_zeros_and_skip_nans() {
        let e = &Env::DEFAULT;
        let off = &Env {
            ieee: false,
            ..Env::DEFAULT
        };
        assert_eq!(min::<F32>(0, F32::SIGN, e), F32::SIGN);
        assert_eq!(max::<F32>(F32::SIGN, 0, e), 0);
        assert_eq!(min::<F32>(F32::NAN, F32::ONE, e), F32::ONE);
        assert_eq!(max::<F32>(F32::ONE, F32::NAN, e), F32::ONE);
        assert_eq!(max::<F32>(F32::ONE, 0x7f80_0001, e), 0x7fc0_0001);
        assert_eq!(max::<F32>(F32::ONE, 0x7f80_0001, off), F32::ONE);
        assert_eq!(max::<F16>(0x7e01, 0xfe02, e), 0x7e01);
    }

    #[test]
    fn median_is_the_middle_one() {
        let e = &Env::DEFAULT;
        let f = |x: f32| u64::from(x.to_bits());
        for p in [[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 3.0, 1.0], [3.0, 2.0, 1.0]] {
            assert_eq!(med3::<F32>(f(p[0]), f(p[1]), f(p[2]), e), f(2.0));
        }
        assert_eq!(med3::<F32>(f(5.0), F32::NAN, f(4.0), e), f(4.0));
    }

    #[test]
    fn every_f16_is_in_exactly_one_class() {
        for x in 0..=0xffffu64 {
            assert_eq!((0..10).filter(|bit| class::<F16>(x, 1 << bit)).count(), 1, "{x:x}");
        }
        assert!(class::<F32>(0x7f80_0001, 1) && class::<F32>(0x7fc0_0000, 2) && class::<F32>(0xff80_0000, 4));
        assert!(class::<F32>(0xbf80_0000, 8) && class::<F32>(0x8000_0001, 16) && class::<F32>(0x8000_0000, 32));
        assert!(class::<F32>(0, 64) && class::<F32>(1, 128) && class::<F32>(0x3f80_0000, 256));
        assert!(class::<F32>(0x7f80_0000, 512));
    }
}
