//! Dot products of packed operands.

use super::{convert::f32_from_f16, format::F32, mode::Env, soft::fma};

/// Part `i` of `x`, `bits` wide, zero-extended.
#[inline]
pub fn unsigned(x: u32, i: u32, bits: u32) -> i64 {
    i64::from(x >> (i * bits) & ((1 << bits) - 1))
}

/// Part `i` of `x`, `bits` wide, sign-extended.
#[inline]
pub fn signed(x: u32, i: u32, bits: u32) -> i64 {
    i64::from((x << (32 - bits - i * bits)) as i32 >> (32 - bits))
}

/// The sum of the products of `bits`-wide parts (`part` is [`signed`] or [`unsigned`]); add the accumulator and narrow.
#[inline]
pub fn products(a: u32, b: u32, bits: u32, part: impl Fn(u32, u32, u32) -> i64) -> i64 {
    (0..32 / bits).map(|i| part(a, i, bits) * part(b, i, bits)).sum()
}

/// `v_dot2_f32_f16`, `v_dot2c_f32_f16`: a0 * b0 + a1 * b1 + c on f16 halves given apart.
///
/// The order is fixed here: c first, then the low product, then the high one, each step one fma in f32. The operands' f16
/// denormals count.
#[inline]
pub fn dot2_f16(a: [u16; 2], b: [u16; 2], c: u32, env: &Env) -> u32 {
    (0..2).fold(u64::from(c), |sum, i| {
        fma::<F32>(f32_from_f16(a[i]).into(), f32_from_f16(b[i]).into(), sum, env)
    }) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u16 = 0x3c00;

    #[test]
    fn integer_parts_extend() {
        assert_eq!(products(0x80ff_0102, 0x0201_0304, 8, signed), -256 - 1 + 3 + 8);
        assert_eq!(products(0x80ff_0102, 0x0201_0304, 8, unsigned), 256 + 255 + 3 + 8);
        assert_eq!(products(0xf000_000f, 0x1000_0001, 4, signed), -2);
        assert_eq!(products(0xffff_0002, 0x0003_0004, 16, signed), -3 + 8);
    }

    #[test]
    fn f16_products_accumulate_in_order() {
        let c = 0.5f32.to_bits();
        assert_eq!(dot2_f16([ONE; 2], [ONE; 2], c, &Env::DEFAULT), 2.5f32.to_bits());
        // 2^24 + 1 is lost when added one at a time.
        let c = 16_777_216f32.to_bits();
        assert_eq!(dot2_f16([ONE; 2], [ONE; 2], c, &Env::DEFAULT), c);
    }
}
