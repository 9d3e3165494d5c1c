//! Exact arithmetic on finite values with one rounding in any direction: the reference that all fast paths agree with.

use super::{
    format::Format,
    mode::{Env, Round},
};

/// A finite value: `sig` times two to the `exp`, exactly, except that bit 0 of `sig` may stand for anything nonzero below
/// it ("sticky") when the significand is at least two bits longer than the format's.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    /// The value is negative (meaningful for zero too).
    pub negative: bool,
    /// Exponent of bit 0 of `sig`.
    pub exp: i32,
    /// Below 2^127.
    pub sig: u128,
}

impl Exact {
    /// The value of finite bits.
    #[inline]
    pub fn unpack<F: Format>(x: u64) -> Exact {
        let field = F::exponent(x);
        let mantissa = F::magnitude(x) & (F::MIN_NORMAL - 1);
        let (exp, sig) = if field == 0 {
            (1, mantissa)
        } else {
            (field, mantissa | F::MIN_NORMAL)
        };
        Exact {
            negative: F::negative(x),
            exp: exp - F::BIAS - F::MANT as i32,
            sig: sig.into(),
        }
    }

    /// The product, exact for significands that together have at most 127 bits.
    #[inline]
    pub fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative ^ other.negative,
            exp: self.exp + other.exp,
            sig: self.sig * other.sig,
        }
    }

    /// The sum, with everything below 2^-126 of the larger operand gathered in the sticky bit. Two exact zeros of unlike
    /// sign, or an exact cancellation, give the zero that `round` asks for.
    #[inline]
    pub fn plus(self, other: Exact, round: Round) -> Exact {
        if self.sig == 0 && other.sig == 0 {
            let negative = if self.negative == other.negative {
                self.negative
            } else {
                round == Round::Down
            };
            return Exact {
                negative,
                exp: 0,
                sig: 0,
            };
        }
        if self.sig == 0 {
            return other;
        }
        if other.sig == 0 {
            return self;
        }
        // Both to a leading bit at 125: the sum then fits below bit 127, and what the alignment drops lies far under
        // the last bit that can survive a cancellation (which needs exponents within one of each other).
        let (mut big, mut small) = (self.normalised(), other.normalised());
        if big.exp < small.exp {
            (big, small) = (small, big);
        }
        let shift = (big.exp - small.exp) as u32;
        let aligned = shift_sticky(small.sig, shift);
        if big.negative == small.negative {
            return Exact {
                sig: big.sig + aligned,
                ..big
            };
        }
        if big.sig == aligned {
            return Exact {
                negative: round == Round::Down,
                exp: 0,
                sig: 0,
            };
        }
        if big.sig > aligned {
            Exact {
                sig: big.sig - aligned,
                ..big
            }
        } else {
            Exact {
                negative: small.negative,
                sig: aligned - big.sig,
                exp: big.exp,
            }
        }
    }

    #[inline]
    fn normalised(self) -> Exact {
        let shift = self.sig.leading_zeros() as i32 - 2;
        debug_assert!(shift >= 0);
        Exact {
            sig: self.sig << shift,
            exp: self.exp - shift,
            ..self
        }
    }

    /// The nearest value of the format in the environment's direction, with its overflow and denormal rules.
    #[inline]
    pub fn round<F: Format>(self, env: &Env) -> u64 {
        let sign = if self.negative { F::SIGN } else { 0 };
        if self.sig == 0 {
            return sign;
        }
        let leading = 127 - self.sig.leading_zeros() as i32;
        let e = self.exp + leading;
        if e > F::BIAS {
            return sign | overflow::<F>(self.negative, env);
        }
        let lsb = e.max(1 - F::BIAS) - F::MANT as i32;
        let shift = lsb - self.exp;
        let (mut q, up) = if shift <= 0 {
            ((self.sig << -shift) as u64, false)
        } else {
            let (q, rest, half) = if shift >= 128 {
                (0, self.sig, u128::MAX)
            } else {
                (
                    (self.sig >> shift) as u64,
                    self.sig & ((1 << shift) - 1),
                    1 << (shift - 1),
                )
            };
            let up = match env.round {
                Round::Nearest => rest > half || (rest == half && q & 1 != 0),
                Round::Up => rest != 0 && !self.negative,
                Round::Down => rest != 0 && self.negative,
                Round::Zero => false,
            };
            (q, up)
        };
        q += u64::from(up);
        // A carry out of the significand moves into the exponent field by itself.
        let bits = q + (((lsb + F::MANT as i32 + F::BIAS - 1) as u64) << F::MANT);
        if bits >= F::INF {
            return sign | overflow::<F>(self.negative, env);
        }
        sign | F::output(bits, env)
    }
}

/// `sig >> shift` with bit 0 set if a one was shifted out.
#[inline]
fn shift_sticky(sig: u128, shift: u32) -> u128 {
    if shift >= 127 {
        return u128::from(sig != 0);
    }
    let kept = sig >> shift;
    kept | u128::from(kept << shift != sig)
}

/// The magnitude of a result too large for the format.
#[inline]
fn overflow<F: Format>(negative: bool, env: &Env) -> u64 {
    let to_infinity = match env.round {
        Round::Nearest => true,
        Round::Up => !negative,
        Round::Down => negative,
        Round::Zero => false,
    };
    if to_infinity && !(F::HALF && env.fp16_ovfl) {
        F::INF
    } else {
        F::MAX
    }
}

/// a + b.
pub fn add<F: Format>(a: u64, b: u64, env: &Env) -> u64 {
    if let Some(nan) = F::propagate(&[a, b]) {
        return nan;
    }
    let (a, b) = (F::input(a, env), F::input(b, env));
    match (F::is_inf(a), F::is_inf(b)) {
        (true, true) if a != b => F::NAN,
        (true, _) => a,
        (_, true) => b,
        _ => Exact::unpack::<F>(a)
            .plus(Exact::unpack::<F>(b), env.round)
            .round::<F>(env),
    }
}

/// a - b.
#[inline]
pub fn sub<F: Format>(a: u64, b: u64, env: &Env) -> u64 {
    // Negation is the operand modifier's, so a NaN subtrahend keeps its own sign here.
    if F::is_nan(b) {
        add::<F>(a, b, env)
    } else {
        add::<F>(a, b ^ F::SIGN, env)
    }
}

/// a * b.
pub fn mul<F: Format>(a: u64, b: u64, env: &Env) -> u64 {
    if let Some(nan) = F::propagate(&[a, b]) {
        return nan;
    }
    let (a, b) = (F::input(a, env), F::input(b, env));
    if F::is_inf(a) || F::is_inf(b) {
        if F::is_zero(a) || F::is_zero(b) {
            return F::NAN;
        }
        return ((a ^ b) & F::SIGN) | F::INF;
    }
    Exact::unpack::<F>(a).times(Exact::unpack::<F>(b)).round::<F>(env)
}

/// a * b + c, rounded once.
pub fn fma<F: Format>(a: u64, b: u64, c: u64, env: &Env) -> u64 {
    fma_scaled::<F>(a, b, c, 0, env)
}

/// (a * b + c) * 2^`scale`, rounded once.
pub fn fma_scaled<F: Format>(a: u64, b: u64, c: u64, scale: i32, env: &Env) -> u64 {
    if let Some(nan) = F::propagate(&[a, b, c]) {
        return nan;
    }
    let (a, b, c) = (F::input(a, env), F::input(b, env), F::input(c, env));
    if F::is_inf(a) || F::is_inf(b) {
        let product = ((a ^ b) & F::SIGN) | F::INF;
        if F::is_zero(a) || F::is_zero(b) || (F::is_inf(c) && c != product) {
            return F::NAN;
        }
        return product;
    }
    if F::is_inf(c) {
        return c;
    }
    let product = Exact::unpack::<F>(a).times(Exact::unpack::<F>(b));
    let sum = product.plus(Exact::unpack::<F>(c), env.round);
    Exact {
        exp: sum.exp + scale,
        ..sum
    }
    .round::<F>(env)
}

/// a * b + c with the product rounded first (`v_mad`, `v_mac`). The caller passes a flushing environment.
pub fn mad<F: Format>(a: u64, b: u64, c: u64, env: &Env) -> u64 {
    if let Some(nan) = F::propagate(&[a, b, c]) {
        return nan;
    }
    add::<F>(mul::<F>(a, b, env), c, env)
}

/// a * b where zero times anything is plus zero (`v_mul_legacy`, the DirectX 9 rule).
pub fn mul_legacy<F: Format>(a: u64, b: u64, env: &Env) -> u64 {
    if F::is_zero(F::input(a, env)) || F::is_zero(F::input(b, env)) {
        0
    } else {
        mul::<F>(a, b, env)
    }
}

/// x * 2^n.
pub fn ldexp<F: Format>(x: u64, n: i32, env: &Env) -> u64 {
    if F::is_nan(x) {
        return x | F::QUIET;
    }
    let x = F::input(x, env);
    if F::is_inf(x) || F::is_zero(x) {
        return x;
    }
    let exact = Exact::unpack::<F>(x);
    // Past this range every format over- or underflows anyway.
    Exact {
        exp: exact.exp + n.clamp(-6000, 6000),
        ..exact
    }
    .round::<F>(env)
}

/// The significand of x in [0.5, 1) with x's sign; zeros, infinities and NaNs (quietened) are returned.
pub fn frexp_mant<F: Format>(x: u64, env: &Env) -> u64 {
    if F::is_nan(x) {
        return x | F::QUIET;
    }
    let x = F::input(x, env);
    if F::is_inf(x) || F::is_zero(x) {
        return x;
    }
    let exact = Exact::unpack::<F>(x);
    let leading = 127 - exact.sig.leading_zeros() as i32;
    Exact {
        exp: -leading - 1,
        ..exact
    }
    .round::<F>(&Env::DEFAULT)
}

/// The exponent that belongs to [`frexp_mant`]; zero for zeros, infinities and NaNs.
pub fn frexp_exp<F: Format>(x: u64, env: &Env) -> i32 {
    let x = F::input(x, env);
    if F::magnitude(x) >= F::INF || F::is_zero(x) {
        return 0;
    }
    let exact = Exact::unpack::<F>(x);
    exact.exp + 128 - exact.sig.leading_zeros() as i32
}

/// x rounded to an integral value in direction `round` (the direction of the instruction, not of MODE).
pub fn round_integral<F: Format>(x: u64, round: Round, env: &Env) -> u64 {
    if F::is_nan(x) {
        return x | F::QUIET;
    }
    let x = F::input(x, env);
    let e = F::exponent(x) - F::BIAS;
    if e >= F::MANT as i32 {
        return x;
    }
    let (sign, magnitude) = (x & F::SIGN, F::magnitude(x));
    if e < 0 {
        let up = match round {
            Round::Nearest => magnitude > F::ONE - F::MIN_NORMAL, // above one half
            Round::Up => magnitude != 0 && sign == 0,
            Round::Down => magnitude != 0 && sign != 0,
            Round::Zero => false,
        };
        return sign | if up { F::ONE } else { 0 };
    }
    let shift = F::MANT - e as u32;
    let (mask, rest) = ((1u64 << shift) - 1, magnitude & ((1 << shift) - 1));
    let half = 1u64 << (shift - 1);
    let up = match round {
        Round::Nearest => rest > half || (rest == half && magnitude >> shift & 1 != 0),
        Round::Up => rest != 0 && sign == 0,
        Round::Down => rest != 0 && sign != 0,
        Round::Zero => false,
    };
    sign | ((magnitude & !mask) + if up { mask + 1 } else { 0 })
}

/// x - floor(x), below one: the largest value under one stands for results that round up to it. Infinities give NaN.
pub fn fract<F: Format>(x: u64, env: &Env) -> u64 {
    if F::is_nan(x) {
        return x | F::QUIET;
    }
    let r = sub::<F>(x, round_integral::<F>(x, Round::Down, env), env);
    if r == F::ONE { F::ONE - 1 } else { r }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::{
        format::{F16, F32, F64},
        testing::{Lcg, same_f32, same_f64},
    };

    const N: usize = 300_000;

    #[test]
    fn nearest_f32_agrees_with_host_arithmetic() {
        let mut rng = Lcg::new(1);
        let env = &Env::DEFAULT;
        for _ in 0..N {
            let (a, b, c) = (rng.f32(), rng.f32(), rng.f32());
            let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
            let (a, b, c) = (a.into(), b.into(), c.into());
            same_f32(add::<F32>(a, b, env), x + y);
            same_f32(sub::<F32>(a, b, env), x - y);
            same_f32(mul::<F32>(a, b, env), x * y);
            same_f32(fma::<F32>(a, b, c, env), x.mul_add(y, z));
        }
    }

    #[test]
    fn nearest_f64_agrees_with_host_arithmetic() {
        let mut rng = Lcg::new(2);
        let env = &Env::DEFAULT;
        for _ in 0..N {
            let (a, b, c) = (rng.f64(), rng.f64(), rng.f64());
            let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            same_f64(add::<F64>(a, b, env), x + y);
            same_f64(sub::<F64>(a, b, env), x - y);
            same_f64(mul::<F64>(a, b, env), x * y);
            same_f64(fma::<F64>(a, b, c, env), x.mul_add(y, z));
        }
    }

    /// Directed results bracket the exact one and are adjacent unless it is representable; nearest is one of them.
    #[test]
    fn directed_rounding_brackets_the_exact_result() {
        fn ordered<F: Format>(x: u64) -> i64 {
            if F::negative(x) {
                -(F::magnitude(x) as i64)
            } else {
                x as i64
            }
        }
        fn check<F: Format>(op: impl Fn(&Env) -> u64) {
            let [near, up, down, zero] =
                [Round::Nearest, Round::Up, Round::Down, Round::Zero].map(|r| op(&Env::DEFAULT.rounding(r)));
            if F::is_nan(near) {
                assert!(F::is_nan(up) && F::is_nan(down) && F::is_nan(zero));
                return;
            }
            let (n, u, d, z) = (
                ordered::<F>(near),
                ordered::<F>(up),
                ordered::<F>(down),
                ordered::<F>(zero),
            );
            assert!(d <= n && n <= u && u - d <= 1, "{near:x} {up:x} {down:x}");
            assert_eq!(z, if u > 0 { d } else { u }, "{up:x} {down:x} {zero:x}");
        }
        let mut rng = Lcg::new(3);
        for _ in 0..N / 4 {
            let (a, b, c) = (rng.f64(), rng.f64(), rng.f64());
            check::<F64>(|e| add::<F64>(a, b, e));
            check::<F64>(|e| mul::<F64>(a, b, e));
            check::<F64>(|e| fma::<F64>(a, b, c, e));
            let (a, b, c) = (rng.f16().into(), rng.f16().into(), rng.f16().into());
            check::<F16>(|e| add::<F16>(a, b, e));
            check::<F16>(|e| mul::<F16>(a, b, e));
            check::<F16>(|e| fma::<F16>(a, b, c, e));
        }
    }

    /// Products and sums of f16 values are exact in f64 or far from f16's midpoints; see `fast::fma_f16`.
    #[test]
    fn f32_directed_rounding_agrees_with_exact_f64_products() {
        let mut rng = Lcg::new(4);
        for _ in 0..N {
            let (a, b) = (rng.f32(), rng.f32());
            let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
            if exact.is_nan() || exact.is_infinite() {
                continue;
            }
            let up = f32::from_bits(mul::<F32>(a.into(), b.into(), &Env::DEFAULT.rounding(Round::Up)) as u32);
            let down = f32::from_bits(mul::<F32>(a.into(), b.into(), &Env::DEFAULT.rounding(Round::Down)) as u32);
            assert!(f64::from(up) >= exact && f64::from(down) <= exact);
            assert!(up == down || f64::from(up) != exact && f64::from(down) != exact);
        }
    }

    #[test]
    fn exact_cancellation_gives_the_zero_of_the_direction() {
        let one = F32::ONE;
        assert_eq!(sub::<F32>(one, one, &Env::DEFAULT), 0);
        assert_eq!(sub::<F32>(one, one, &Env::DEFAULT.rounding(Round::Down)), F32::SIGN);
        assert_eq!(add::<F32>(F32::SIGN, F32::SIGN, &Env::DEFAULT), F32::SIGN);
        assert_eq!(
            fma::<F32>(one, one, one | F32::SIGN, &Env::DEFAULT.rounding(Round::Down)),
            F32::SIGN
        );
    }

    #[test]
    fn nan_rules_take_the_first_nan_and_quieten_it() {
        let env = &Env::DEFAULT;
        assert_eq!(add::<F32>(0x7f80_0001, 0xffc1_2345, env), 0x7fc0_0001);
        assert_eq!(add::<F32>(F32::ONE, 0xff81_2345, env), 0xffc1_2345);
        assert_eq!(sub::<F32>(F32::INF, F32::INF, env), F32::NAN);
        assert_eq!(
            fma::<F64>(F64::INF, 0, 0x7ff0_0000_0000_0005, env),
            0x7ff8_0000_0000_0005
        );
        assert_eq!(mul::<F16>(F16::INF, 0, env), F16::NAN);
    }

    #[test]
    fn denormals_are_flushed_where_the_environment_says() {
        let env = Env {
            flush_in: true,
            ..Env::DEFAULT
        };
        assert_eq!(add::<F32>(1, 1, &env), 0);
        assert_eq!(add::<F32>(F32::SIGN | 1, F32::SIGN | 1, &env), F32::SIGN);
        let env = Env {
            flush_out: true,
            ..Env::DEFAULT
        };
        assert_eq!(add::<F32>(1, 1, &env), 0);
        assert_eq!(add::<F32>(F32::MIN_NORMAL, 1, &env), F32::MIN_NORMAL + 1);
        assert_eq!(mul::<F32>(F32::MIN_NORMAL, (0.5f32).to_bits().into(), &env), 0);
        assert_eq!(add::<F32>(1, 1, &Env::DEFAULT), 2);
    }

    #[test]
    fn fp16_ovfl_keeps_finite_overflow_finite() {
        let env = Env {
            fp16_ovfl: true,
            ..Env::DEFAULT
        };
        assert_eq!(add::<F16>(F16::MAX, F16::MAX, &env), F16::MAX);
        assert_eq!(add::<F16>(F16::MAX, F16::MAX, &Env::DEFAULT), F16::INF);
        assert_eq!(add::<F16>(F16::INF, F16::ONE, &env), F16::INF);
        assert_eq!(add::<F32>(F32::MAX, F32::MAX, &env), F32::INF);
    }

    #[test]
    fn mad_rounds_twice() {
        let mut rng = Lcg::new(5);
        let env = &Env::DEFAULT;
        let mut differs = 0;
        for _ in 0..N / 4 {
            let (a, b, c) = (rng.f32(), rng.f32(), rng.f32());
            let want = f32::from_bits(a) * f32::from_bits(b) + f32::from_bits(c);
            let got = mad::<F32>(a.into(), b.into(), c.into(), env);
            same_f32(got, want);
            differs += usize::from(got != fma::<F32>(a.into(), b.into(), c.into(), env));
        }
        assert!(differs > 0);
    }

    #[test]
    fn rounding_to_integers_agrees_with_the_host() {
        let mut rng = Lcg::new(6);
        let env = &Env::DEFAULT;
        for _ in 0..N {
            let a = rng.f32();
            let x = f32::from_bits(a);
            same_f32(
                round_integral::<F32>(a.into(), Round::Nearest, env),
                x.round_ties_even(),
            );
            same_f32(round_integral::<F32>(a.into(), Round::Up, env), x.ceil());
            same_f32(round_integral::<F32>(a.into(), Round::Down, env), x.floor());
            same_f32(round_integral::<F32>(a.into(), Round::Zero, env), x.trunc());
            let b = rng.f64();
            let y = f64::from_bits(b);
            same_f64(round_integral::<F64>(b, Round::Nearest, env), y.round_ties_even());
            same_f64(round_integral::<F64>(b, Round::Up, env), y.ceil());
            same_f64(round_integral::<F64>(b, Round::Down, env), y.floor());
            same_f64(round_integral::<F64>(b, Round::Zero, env), y.trunc());
        }
    }

    #[test]
    fn frexp_and_ldexp_are_inverse() {
        let mut rng = Lcg::new(7);
        let env = &Env::DEFAULT;
        for _ in 0..N / 4 {
            let a = u64::from(rng.f32());
            let (m, e) = (frexp_mant::<F32>(a, env), frexp_exp::<F32>(a, env));
            if F32::magnitude(a) >= F32::INF || F32::is_zero(a) {
                assert_eq!((m & !F32::QUIET, e), (a & !F32::QUIET, 0));
                continue;
            }
            let mant = f32::from_bits(m as u32).abs();
            assert!((0.5..1.0).contains(&mant));
            assert_eq!(ldexp::<F32>(m, e, env), a);
        }
        assert_eq!(ldexp::<F64>(F64::ONE, -1074, env), 1);
        assert_eq!(ldexp::<F64>(F64::ONE, i32::MAX, env), F64::INF);
        assert_eq!(ldexp::<F16>(F16::ONE, i32::MIN, env), 0);
    }

    #[test]
    fn fract_stays_below_one() {
        let env = &Env::DEFAULT;
        let f = |x: f32| f32::from_bits(fract::<F32>(x.to_bits().into(), env) as u32);
        assert_eq!(f(1.25), 0.25);
        assert_eq!(f(-1.25), 0.75);
        assert_eq!(f(-1e-30).to_bits(), 0x3f7f_ffff);
        assert!(f(f32::INFINITY).is_nan());
        assert_eq!(f(-3.0).to_bits(), 0);
    }
}
