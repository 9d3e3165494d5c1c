//! The three IEEE formats of the vector ALU and the NaN rules that hold for all operations.

use super::mode::Env;

/// A binary interchange format whose values travel in the low bits of a `u64`.
pub trait Format: Copy {
    /// Stored significand bits.
    const MANT: u32;
    /// Exponent bits.
    const EXP: u32;
    /// MODE.FP16_OVFL applies.
    const HALF: bool = false;

    /// All bits.
    const WIDTH: u32 = 1 + Self::MANT + Self::EXP;
    /// Exponent bias.
    const BIAS: i32 = (1 << (Self::EXP - 1)) - 1;
    /// The sign bit.
    const SIGN: u64 = 1 << (Self::WIDTH - 1);
    /// Plus infinity.
    const INF: u64 = ((1 << Self::EXP) - 1) << Self::MANT;
    /// The bit that makes a NaN quiet.
    const QUIET: u64 = 1 << (Self::MANT - 1);
    /// The NaN of invalid operations.
    const NAN: u64 = Self::INF | Self::QUIET;
    /// One.
    const ONE: u64 = (Self::BIAS as u64) << Self::MANT;
    /// The largest finite value.
    const MAX: u64 = Self::INF - 1;
    /// The smallest normal value.
    const MIN_NORMAL: u64 = 1 << Self::MANT;
    /// All bits of the value.
    const MASK: u64 = Self::SIGN | (Self::SIGN - 1);

    /// The value without its sign.
    #[inline]
    fn magnitude(x: u64) -> u64 {
        x & (Self::SIGN - 1)
    }

    /// The biased exponent field.
    #[inline]
    fn exponent(x: u64) -> i32 {
        (Self::magnitude(x) >> Self::MANT) as i32
    }

    /// The sign bit is set.
    #[inline]
    fn negative(x: u64) -> bool {
        x & Self::SIGN != 0
    }

    /// A NaN of either kind.
    #[inline]
    fn is_nan(x: u64) -> bool {
        Self::magnitude(x) > Self::INF
    }

    /// A signalling NaN.
    #[inline]
    fn is_signalling(x: u64) -> bool {
        Self::is_nan(x) && x & Self::QUIET == 0
    }

    /// An infinity of either sign.
    #[inline]
    fn is_inf(x: u64) -> bool {
        Self::magnitude(x) == Self::INF
    }

    /// A zero of either sign.
    #[inline]
    fn is_zero(x: u64) -> bool {
        Self::magnitude(x) == 0
    }

    /// A nonzero value below the smallest normal one.
    #[inline]
    fn is_denormal(x: u64) -> bool {
        Self::magnitude(x).wrapping_sub(1) < Self::MIN_NORMAL - 1
    }

    /// A denormal becomes a zero of its sign when `flush`.
    #[inline]
    fn flush(x: u64, flush: bool) -> u64 {
        if flush && Self::magnitude(x) < Self::MIN_NORMAL {
            x & Self::SIGN
        } else {
            x
        }
    }

    /// An operand as the operation sees it.
    #[inline]
    fn input(x: u64, env: &Env) -> u64 {
        Self::flush(x, env.flush_in)
    }

    /// A result as it is written.
    #[inline]
    fn output(x: u64, env: &Env) -> u64 {
        Self::flush(x, env.flush_out)
    }

    /// The first NaN among the operands, quietened.
    #[inline]
    fn propagate(operands: &[u64]) -> Option<u64> {
        operands
            .iter()
            .copied()
            .find(|&x| Self::is_nan(x))
            .map(|x| x | Self::QUIET)
    }

    /// Sign and magnitude.
    #[inline]
    fn with_sign(negative: bool, magnitude: u64) -> u64 {
        if negative { magnitude | Self::SIGN } else { magnitude }
    }
}

/// binary16.
#[derive(Clone, Copy, Debug)]
pub struct F16;
/// binary32.
#[derive(Clone, Copy, Debug)]
pub struct F32;
/// binary64.
#[derive(Clone, Copy, Debug)]
pub struct F64;

impl Format for F16 {
    const MANT: u32 = 10;
    const EXP: u32 = 5;
    const HALF: bool = true;
}

impl Format for F32 {
    const MANT: u32 = 23;
    const EXP: u32 = 8;
}

impl Format for F64 {
    const MANT: u32 = 52;
    const EXP: u32 = 11;
}

/// The result of an output modifier and clamp, in the order of the hardware: round, `omod`, clamp.
///
/// `omod` is the VOP3 field: 1 times two, 2 times four, 3 divided by two. The Vega guide ("Output modifiers") ignores it
/// while MODE keeps denormal results or sets IEEE; where it applies, denormals and minus zero become plus zero.
pub fn modify_output<F: Format>(x: u64, omod: u32, clamp: bool, dx10_clamp: bool, env: &Env) -> u64 {
    let mut x = x;
    if omod != 0 && env.flush_out && !env.ieee {
        let n = [0, 1, 2, -1][omod as usize & 3];
        x = F::flush(super::soft::ldexp::<F>(x, n, env), true);
        if F::is_zero(x) {
            x = 0;
        }
    }
    if clamp {
        x = self::clamp::<F>(x, dx10_clamp);
    }
    x
}

/// To [0, 1]; NaN to zero if `dx10_clamp`, else kept. Minus zero becomes plus zero.
#[inline]
pub fn clamp<F: Format>(x: u64, dx10_clamp: bool) -> u64 {
    if F::is_nan(x) {
        if dx10_clamp { 0 } else { x }
    } else if F::negative(x) {
        0
    } else {
        x.min(F::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wave::Mode;

    #[test]
    fn constants_are_the_formats_own() {
        assert_eq!(F32::ONE, 1f32.to_bits().into());
        assert_eq!(F32::INF, f32::INFINITY.to_bits().into());
        assert_eq!(F32::MAX, f32::MAX.to_bits().into());
        assert_eq!(F64::ONE, 1f64.to_bits());
        assert_eq!(F64::MIN_NORMAL, f64::MIN_POSITIVE.to_bits());
        assert_eq!(
            (F16::ONE, F16::INF, F16::NAN, F16::MASK),
            (0x3c00, 0x7c00, 0x7e00, 0xffff)
        );
    }

    #[test]
    fn clamp_follows_dx10_clamp_for_nan() {
        assert_eq!(clamp::<F32>(F32::NAN, true), 0);
        assert_eq!(clamp::<F32>(F32::NAN, false), F32::NAN);
        assert_eq!(clamp::<F32>((-1f32).to_bits().into(), true), 0);
        assert_eq!(clamp::<F32>(7f32.to_bits().into(), true), F32::ONE);
        assert_eq!(clamp::<F16>(0x3555, true), 0x3555);
    }

    #[test]
    fn output_modifiers_need_flushed_denormals_and_no_ieee() {
        let three = u64::from(3f32.to_bits());
        let off = Mode(0).env_f32();
        assert_eq!(
            modify_output::<F32>(three, 1, false, false, &off),
            6f32.to_bits().into()
        );
        assert_eq!(
            modify_output::<F32>(three, 2, false, false, &off),
            12f32.to_bits().into()
        );
        assert_eq!(
            modify_output::<F32>(three, 3, false, false, &off),
            1.5f32.to_bits().into()
        );
        assert_eq!(modify_output::<F32>(F32::SIGN, 1, false, false, &off), 0);
        assert_eq!(
            modify_output::<F32>(three, 1, false, false, &Mode::COMPILER_DEFAULT.env_f32()),
            three
        );
    }
}
