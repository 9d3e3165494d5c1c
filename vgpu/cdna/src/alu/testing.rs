//! Operand generators and comparisons shared by the tests of this folder.

/// A linear congruential generator whose high bits are used; the tests draw the same operands on every run.
pub struct Lcg(u64);

impl Lcg {
    pub fn new(seed: u64) -> Lcg {
        Lcg(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub fn u32(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    /// f32 bits of every kind: uniform, near one another in exponent, few significand bits, denormals, specials.
    pub fn f32(&mut self) -> u32 {
        let r = self.u32();
        match self.u32() % 8 {
            0..=2 => r,
            3 | 4 => (r & 0x807f_ffff) | (120 + (self.u32() & 15)) << 23,
            5 => (r & 0x807f_ffff & !((1u32 << (self.u32() % 24)) - 1)) | (110 + (self.u32() & 31)) << 23,
            6 => r & 0x807f_ffff,
            _ => SPECIAL_F32[r as usize % SPECIAL_F32.len()],
        }
    }

    /// f64 bits of every kind.
    pub fn f64(&mut self) -> u64 {
        let r = self.u64();
        match self.u32() % 8 {
            0..=2 => r,
            3 | 4 => (r & 0x800f_ffff_ffff_ffff) | u64::from(1010 + (self.u32() & 31)) << 52,
            5 => {
                (r & 0x800f_ffff_ffff_ffff & !((1u64 << (self.u32() % 53)) - 1))
                    | u64::from(990 + (self.u32() & 63)) << 52
            }
            6 => r & 0x800f_ffff_ffff_ffff,
            _ => SPECIAL_F64[r as usize % SPECIAL_F64.len()],
        }
    }

    pub fn f16(&mut self) -> u16 {
        self.u32() as u16
    }
}

pub const SPECIAL_F32: [u32; 18] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0xffc0_1234,
];

pub const SPECIAL_F64: [u64; 16] = [
    0,
    1 << 63,
    1,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x0010_0000_0000_0001,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0001,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
];

/// Bit equality, except that any NaN equals any NaN (the host's NaN bits are its own).
#[track_caller]
pub fn same_f32(got: u64, want: f32) {
    assert!(
        got == u64::from(want.to_bits()) || want.is_nan() && f32::from_bits(got as u32).is_nan(),
        "got {got:08x}, want {:08x}",
        want.to_bits()
    );
}

/// As [`same_f32`].
#[track_caller]
pub fn same_f64(got: u64, want: f64) {
    assert!(
        got == want.to_bits() || want.is_nan() && f64::from_bits(got).is_nan(),
        "got {got:016x}, want {:016x}",
        want.to_bits()
    );
}
