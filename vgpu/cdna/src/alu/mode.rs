//! What the MODE register (CDNA2 ISA guide, "Mode register") means for one floating-point format.

use crate::wave::Mode;

/// A rounding direction, in the encoding of MODE's two round fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To nearest, ties to even.
    Nearest = 0,
    /// Towards plus infinity.
    Up = 1,
    /// Towards minus infinity.
    Down = 2,
    /// Towards zero.
    Zero = 3,
}

impl Round {
    /// The direction that a two-bit round field selects; higher bits are ignored.
    #[inline]
    pub fn from_bits(bits: u32) -> Round {
        match bits & 3 {
            0 => Round::Nearest,
            1 => Round::Up,
            2 => Round::Down,
            _ => Round::Zero,
        }
    }
}

impl Mode {
    /// What clang's kernels start with: nearest even, all denormals kept, DX10_CLAMP and IEEE set.
    pub const COMPILER_DEFAULT: Mode = Mode(0x3f0);

    /// The environment of f32 results.
    #[inline]
    pub fn env_f32(self) -> Env {
        self.env(0, 4)
    }

    /// The environment of f64 and f16 results.
    #[inline]
    pub fn env_f64(self) -> Env {
        self.env(2, 6)
    }

    #[inline]
    fn env(self, round: u32, denormals: u32) -> Env {
        Env {
            round: Round::from_bits(self.0 >> round),
            flush_in: self.0 >> denormals & 1 == 0,
            flush_out: self.0 >> (denormals + 1) & 1 == 0,
            ieee: self.ieee(),
            fp16_ovfl: self.fp16_ovfl(),
        }
    }
}

/// How one operation in one format rounds and treats denormals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Env {
    /// The rounding direction.
    pub round: Round,
    /// Denormal operands count as zeros of their sign.
    pub flush_in: bool,
    /// Denormal results, after rounding, become zeros of their sign.
    pub flush_out: bool,
    /// MODE.IEEE.
    pub ieee: bool,
    /// MODE.FP16_OVFL.
    pub fp16_ovfl: bool,
}

impl Env {
    /// Round to nearest even, denormals kept, IEEE: IEEE 754's defaults.
    pub const DEFAULT: Env = Env {
        round: Round::Nearest,
        flush_in: false,
        flush_out: false,
        ieee: true,
        fp16_ovfl: false,
    };

    /// This environment with denormals flushed both ways: `v_mad` and `v_mac` know no denormals.
    #[inline]
    pub fn flushing(self) -> Env {
        Env {
            flush_in: true,
            flush_out: true,
            ..self
        }
    }

    /// This environment with another rounding direction.
    #[inline]
    pub fn rounding(self, round: Round) -> Env {
        Env { round, ..self }
    }

    /// True where host arithmetic (nearest even, overflow to infinity) gives this environment's rounding.
    #[inline]
    pub fn host_rounding(&self) -> bool {
        self.round == Round::Nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_sit_where_the_guide_puts_them() {
        let env = Mode(0b01_10_11_01).env_f32();
        assert_eq!((env.round, env.flush_in, env.flush_out), (Round::Up, true, false));
        let env = Mode(0b01_10_11_01).env_f64();
        assert_eq!((env.round, env.flush_in, env.flush_out), (Round::Zero, false, true));
        assert_eq!(Mode::COMPILER_DEFAULT.env_f32(), Env::DEFAULT);
        assert_eq!(Mode::COMPILER_DEFAULT.env_f64(), Env::DEFAULT);
        assert!(Mode(1 << 23).fp16_ovfl() && Mode(1 << 8).dx10_clamp() && Mode(1 << 9).ieee());
    }
}
