//! The 8-bit formats of gfx942: FNUZ, "finite, no negative zero".
//!
//! ```text
//!        7   6..3   2..0            7   6..2   1..0
//! fp8   sign exp 4  mant 3   bf8   sign exp 5  mant 2
//! ```
//! Exponent biases are 8 and 16. 0x80 is the one NaN; there are no infinities and no minus zero; all other codes are finite.

use super::{
    format::{F32, Format},
    mode::Env,
    soft::Exact,
};

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Four exponent bits, three significand bits.
    Fp8,
    /// Five exponent bits, two significand bits.
    Bf8,
}

const NAN: u8 = 0x80;

impl Kind {
    const fn mant(self) -> i32 {
        match self {
            Kind::Fp8 => 3,
            Kind::Bf8 => 2,
        }
    }

    const fn bias(self) -> i32 {
        match self {
            Kind::Fp8 => 8,
            Kind::Bf8 => 16,
        }
    }
}

/// f32 bits of an 8-bit value, exact.
pub fn to_f32(x: u8, kind: Kind) -> u32 {
    if x == NAN {
        return F32::NAN as u32;
    }
    let magnitude = u32::from(x & 0x7f);
    let field = (magnitude >> kind.mant()) as i32;
    let fraction = magnitude & ((1 << kind.mant()) - 1);
    let (exp, sig) = if field == 0 {
        (1, fraction)
    } else {
        (field, fraction | 1 << kind.mant())
    };
    let exact = Exact {
        negative: x & 0x80 != 0,
        exp: exp - kind.bias() - kind.mant(),
        sig: sig.into(),
    };
    exact.round::<F32>(&Env::DEFAULT) as u32
}

/// f32 to 8 bits, nearest even. Too large values and infinities give NaN, or the largest value of their sign if
/// `saturate` (MODE.FP16_OVFL).
pub fn from_f32(x: u32, kind: Kind, saturate: bool) -> u8 {
    round(x, kind, saturate, |sig, drop| {
        let half = 1u64 << (drop - 1);
        let rest = sig & ((1 << drop) - 1);
        (sig >> drop) + u64::from(rest > half || (rest == half && sig >> drop & 1 != 0))
    })
}

/// f32 to 8 bits, stochastic: the high bits of `random` are added below the result's last bit, the sum is truncated.
pub fn from_f32_stochastic(x: u32, random: u32, kind: Kind, saturate: bool) -> u8 {
    round(x, kind, saturate, |sig, drop| {
        let noise = u64::from(random) << 32 >> (64 - drop.min(63));
        (sig + noise) >> drop
    })
}

/// `rounding(significand, bits to drop)` gives the kept significand.
fn round(x: u32, kind: Kind, saturate: bool, rounding: impl Fn(u64, u32) -> u64) -> u8 {
    let wide = u64::from(x);
    let sign = if F32::negative(wide) { 0x80 } else { 0 };
    if F32::is_nan(wide) {
        return NAN;
    }
    let largest = sign | 0x7f;
    if F32::is_inf(wide) {
        return if saturate { largest } else { NAN };
    }
    let exact = Exact::unpack::<F32>(wide);
    if exact.sig == 0 {
        return 0;
    }
    // Twenty spare bits keep the dropped count positive for every operand that matters.
    let sig = (exact.sig as u64) << 20;
    let exp = exact.exp - 20;
    let leading = 63 - sig.leading_zeros() as i32 + exp;
    let lsb = leading.max(1 - kind.bias()) - kind.mant();
    let drop = lsb - exp;
    let kept = if drop >= 63 { 0 } else { rounding(sig, drop as u32) };
    let magnitude = kept as i64 + (((lsb + kind.mant() + kind.bias() - 1) as i64) << kind.mant());
    if magnitude > 0x7f {
        return if saturate { largest } else { NAN };
    }
    if magnitude == 0 { 0 } else { sign | magnitude as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::testing::Lcg;

    #[test]
    fn every_code_survives_the_round_trip() {
        for kind in [Kind::Fp8, Kind::Bf8] {
            for x in 0..=255u8 {
                assert_eq!(from_f32(to_f32(x, kind), kind, false), x, "{kind:?} {x:x}");
                assert_eq!(from_f32_stochastic(to_f32(x, kind), 0xffff_ffff, kind, false), x);
            }
        }
        assert_eq!(f32::from_bits(to_f32(0x7f, Kind::Fp8)), 240.0);
        assert_eq!(f32::from_bits(to_f32(0x7f, Kind::Bf8)), 57344.0);
        assert_eq!(f32::from_bits(to_f32(1, Kind::Fp8)), 2f32.powi(-10));
    }

    #[test]
    fn rounding_takes_the_nearest_code() {
        let mut rng = Lcg::new(31);
        for kind in [Kind::Fp8, Kind::Bf8] {
            let codes: Vec<f64> = (0..=0x7fu8).map(|c| f32::from_bits(to_f32(c, kind)).into()).collect();
            for _ in 0..20_000 {
                let x = (rng.u32() & 0x007f_ffff) | (105 + rng.u32() % 38) << 23;
                let v = f64::from(f32::from_bits(x));
                let code = from_f32(x, kind, true);
                let error = (codes[usize::from(code)] - v).abs();
                if v < codes[127] {
                    assert!(codes.iter().all(|c| (c - v).abs() >= error), "{kind:?} {v} {code:x}");
                }
            }
        }
    }

    #[test]
    fn overflow_is_nan_or_saturates() {
        let big = 1e6f32.to_bits();
        assert_eq!(from_f32(big, Kind::Fp8, false), 0x80);
        assert_eq!(from_f32(big, Kind::Fp8, true), 0x7f);
        assert_eq!(from_f32(big | 1 << 31, Kind::Bf8, true), 0xff);
        assert_eq!(from_f32((-0f32).to_bits(), Kind::Bf8, true), 0);
        assert_eq!(from_f32((-1e-20f32).to_bits(), Kind::Bf8, true), 0);
    }

    #[test]
    fn stochastic_rounding_goes_up_in_proportion() {
        // A quarter of the way from 1.0 to the next fp8 value, 1.125.
        let x = (1.0f32 + 0.125 / 4.0).to_bits();
        let mut rng = Lcg::new(32);
        let ups = (0..4000)
            .filter(|_| from_f32_stochastic(x, rng.u32(), Kind::Fp8, false) == 0x41)
            .count();
        assert!((900..1100).contains(&ups), "{ups}");
    }
}
