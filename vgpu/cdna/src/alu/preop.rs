//! `v_trig_preop_f64`: the 53 bits of 2/pi that matter for reducing an argument of a given size.

use super::{
    format::{F64, Format},
    mode::Env,
    soft::Exact,
};

/// 2/pi, most significant word first: bit 63 of the first word is worth one half.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// The width of the hardware's constant.
const BITS: u32 = 1201;

/// Segment `segment` (0, 1, 2: consecutive 53-bit pieces) of 2/pi for an argument of `x`'s exponent, scaled down by the
/// bits skipped; arguments from 2^945 on get it times 2^128.
pub fn trig_preop(x: u64, segment: u32, env: &Env) -> u64 {
    if F64::is_nan(x) {
        return x | F64::QUIET;
    }
    let exponent = F64::exponent(x) as u32;
    let shift = (segment & 31) * 53 + exponent.saturating_sub(1077);
    let bits = (0..53).fold(0u128, |r, i| r << 1 | u128::from(bit(shift + i)));
    let scale = -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 };
    Exact {
        negative: false,
        exp: scale,
        sig: bits,
    }
    .round::<F64>(env)
}

/// Bit `i` after the binary point.
fn bit(i: u32) -> bool {
    i < BITS && TWO_OVER_PI[(i / 64) as usize] >> (63 - i % 64) & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_segments_add_up_to_two_over_pi() {
        let f = |s| f64::from_bits(trig_preop(F64::ONE, s, &Env::DEFAULT));
        assert_eq!(f(0) + f(1), std::f64::consts::FRAC_2_PI);
        assert!(f(0) <= std::f64::consts::FRAC_2_PI && f(1) < 2f64.powi(-53));
    }

    #[test]
    fn large_arguments_skip_the_bits_that_make_whole_turns() {
        let at = |exponent: u64, s| f64::from_bits(trig_preop(exponent << 52, s, &Env::DEFAULT));
        assert_eq!(at(1077, 0), at(1023, 0));
        // Skipping one bit of 0.1010... leaves the same piece less its leading one half, one bit longer.
        let rest = at(1023, 0) - 0.5;
        assert!((at(1078, 0) - rest).abs() < 2f64.powi(-53));
        assert!(at(1968, 0) > 0.0);
    }
}
