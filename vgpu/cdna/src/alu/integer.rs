//! Integers: bit fields, counts, wide products, byte permutes, sums of absolute differences.

/// `v_bfe_u32`: `width` bits of `x` from `offset`; both counts are taken modulo 32.
#[inline]
pub fn bfe_u32(x: u32, offset: u32, width: u32) -> u32 {
    let width = width & 31;
    (x >> (offset & 31)) & ((1u32 << width) - 1)
}

/// `v_bfe_i32`: as [`bfe_u32`], sign-extended; a field that reaches past bit 31 ends there.
#[inline]
pub fn bfe_i32(x: u32, offset: u32, width: u32) -> u32 {
    let (offset, width) = (offset & 31, width & 31);
    if width == 0 {
        return 0;
    }
    if offset + width >= 32 {
        return ((x as i32) >> offset) as u32;
    }
    ((x << (32 - offset - width)) as i32 >> (32 - width)) as u32
}

/// `v_bfi_b32`: bits of `a` where `mask` is set, of `b` elsewhere.
#[inline]
pub fn bfi(mask: u32, a: u32, b: u32) -> u32 {
    (mask & a) | (!mask & b)
}

/// `v_bfm_b32`: `width` ones from bit `offset`.
#[inline]
pub fn bfm(width: u32, offset: u32) -> u32 {
    ((1u32 << (width & 31)) - 1) << (offset & 31)
}

/// `v_ffbh_u32`: leading zeros, or all ones for zero.
#[inline]
pub fn ffbh_u32(x: u32) -> u32 {
    if x == 0 { u32::MAX } else { x.leading_zeros() }
}

/// `v_ffbh_i32`: leading bits equal to the sign, or all ones for 0 and -1.
#[inline]
pub fn ffbh_i32(x: u32) -> u32 {
    ffbh_u32(x ^ ((x as i32) >> 31) as u32)
}

/// `v_ffbl_b32`: trailing zeros, or all ones for zero.
#[inline]
pub fn ffbl(x: u32) -> u32 {
    if x == 0 { u32::MAX } else { x.trailing_zeros() }
}

/// The low 24 bits, sign-extended.
#[inline]
pub fn sext24(x: u32) -> i32 {
    ((x << 8) as i32) >> 8
}

/// The low 24 bits.
#[inline]
pub fn low24(x: u32) -> u32 {
    x & 0x00ff_ffff
}

/// High half of the unsigned product.
#[inline]
pub fn mul_hi_u32(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

/// High half of the signed product.
#[inline]
pub fn mul_hi_i32(a: u32, b: u32) -> u32 {
    ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
}

/// High 32 bits of the 48-bit unsigned product of 24-bit operands.
#[inline]
pub fn mul_hi_u24(a: u32, b: u32) -> u32 {
    ((u64::from(low24(a)) * u64::from(low24(b))) >> 32) as u32
}

/// High 32 bits of the signed product of 24-bit operands.
#[inline]
pub fn mul_hi_i24(a: u32, b: u32) -> u32 {
    ((i64::from(sext24(a)) * i64::from(sext24(b))) >> 32) as u32
}

/// `v_mad_u64_u32`: the sum and its carry.
#[inline]
pub fn mad_u64_u32(a: u32, b: u32, c: u64) -> (u64, bool) {
    (u64::from(a) * u64::from(b)).overflowing_add(c)
}

/// `v_mad_i64_i32`: the sum and the carry out of the signed addition (bit 64 of the 65-bit result).
#[inline]
pub fn mad_i64_i32(a: u32, b: u32, c: u64) -> (u64, bool) {
    let sum = i128::from(i64::from(a as i32) * i64::from(b as i32)) + i128::from(c as i64);
    (sum as u64, sum >> 64 & 1 != 0)
}

/// `v_alignbit_b32`: `high:low` shifted right by the low five bits of `shift`.
#[inline]
pub fn alignbit(high: u32, low: u32, shift: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> (shift & 31)) as u32
}

/// `v_alignbyte_b32`: as [`alignbit`] by bytes, the low two bits of `shift`.
#[inline]
pub fn alignbyte(high: u32, low: u32, shift: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> (8 * (shift & 3))) as u32
}

/// `v_perm_b32`: each selector byte takes a byte of `high:low` (0-7), the sign of byte 1, 3, 5 or 7 repeated (8-11), zeros
/// (12) or ones (13 and up).
#[inline]
pub fn perm(high: u32, low: u32, selector: u32) -> u32 {
    let data = u64::from(high) << 32 | u64::from(low);
    let byte = |s: u32| -> u32 {
        match s & 0xff {
            s @ 0..=7 => (data >> (8 * s)) as u32 & 0xff,
            s @ 8..=11 => 0xff * ((data >> (16 * (s - 8) + 15)) as u32 & 1),
            12 => 0,
            _ => 0xff,
        }
    };
    byte(selector) | byte(selector >> 8) << 8 | byte(selector >> 16) << 16 | byte(selector >> 24) << 24
}

/// `v_lerp_u8`: per byte, the average of `a` and `b` with the rounding bit of `c`'s byte.
#[inline]
pub fn lerp_u8(a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(0, |r, i| {
        let at = |x: u32| x >> (8 * i) & 0xff;
        r | ((at(a) + at(b) + (at(c) & 1)) >> 1) << (8 * i)
    })
}

/// Sum of the absolute differences of four bytes.
#[inline]
pub fn sad4(a: u32, b: u32) -> u32 {
    (0..4)
        .map(|i| (a >> (8 * i) & 0xff).abs_diff(b >> (8 * i) & 0xff))
        .sum()
}

/// As [`sad4`], leaving out bytes whose reference `b` is zero.
#[inline]
pub fn msad4(a: u32, b: u32) -> u32 {
    (0..4)
        .map(|i| {
            let reference = b >> (8 * i) & 0xff;
            if reference == 0 {
                0
            } else {
                (a >> (8 * i) & 0xff).abs_diff(reference)
            }
        })
        .sum()
}

/// Sum of the absolute differences of two 16-bit halves.
#[inline]
pub fn sad2(a: u32, b: u32) -> u32 {
    (a & 0xffff).abs_diff(b & 0xffff) + (a >> 16).abs_diff(b >> 16)
}

/// A sum that saturates where `clamp`.
#[inline]
pub fn accumulate(sum: u32, addend: u32, clamp: bool) -> u32 {
    if clamp {
        sum.saturating_add(addend)
    } else {
        sum.wrapping_add(addend)
    }
}

/// `v_qsad_pk_u16_u8`, `v_mqsad_pk_u16_u8`: four sums, of the four bytes of `a` that begin at byte 0, 1, 2, 3, each added
/// to a 16-bit part of `c`.
#[inline]
pub fn qsad(a: u64, b: u32, c: u64, clamp: bool, sad: impl Fn(u32, u32) -> u32) -> u64 {
    (0..4).fold(0, |r, i| {
        let sum = sad((a >> (8 * i)) as u32, b) + (c >> (16 * i)) as u32 % 0x1_0000;
        let sum = if clamp { sum.min(0xffff) } else { sum & 0xffff };
        r | u64::from(sum) << (16 * i)
    })
}

/// `v_mqsad_u32_u8`: as [`qsad`] with 32-bit sums and masked differences.
#[inline]
pub fn mqsad_u32(a: u64, b: u32, c: [u32; 4], clamp: bool) -> [u32; 4] {
    std::array::from_fn(|i| accumulate(msad4((a >> (8 * i)) as u32, b), c[i], clamp))
}

/// Clamps a wide signed result into i32 if `clamp`, else keeps its low bits.
#[inline]
pub fn narrow_i32(x: i64, clamp: bool) -> u32 {
    if clamp {
        x.clamp(i32::MIN.into(), i32::MAX.into()) as u32
    } else {
        x as u32
    }
}

/// Clamps a wide unsigned (or, below zero, underflowed) result into u32 if `clamp`, else keeps its low bits.
#[inline]
pub fn narrow_u32(x: i64, clamp: bool) -> u32 {
    if clamp {
        x.clamp(0, u32::MAX.into()) as u32
    } else {
        x as u32
    }
}

/// Clamps a result into i16 if `clamp`, else keeps its low bits; the high half is zero.
#[inline]
pub fn narrow_i16(x: i32, clamp: bool) -> u32 {
    (if clamp { x.clamp(-32768, 32767) } else { x }) as u32 & 0xffff
}

/// Clamps a result into u16 if `clamp`, else keeps its low bits; the high half is zero.
#[inline]
pub fn narrow_u16(x: i32, clamp: bool) -> u32 {
    (if clamp { x.clamp(0, 65535) } else { x }) as u32 & 0xffff
}

/// The middle of three.
#[inline]
pub fn med3<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.min(b).max(a.max(b).min(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::testing::Lcg;

    #[test]
    fn bit_fields_match_their_definition_bit_by_bit() {
        let mut rng = Lcg::new(51);
        for _ in 0..2_000 {
            let x = rng.u32();
            for offset in 0..32 {
                for width in 0..32 {
                    let want = (0..width)
                        .filter(|i| offset + i < 32 && x >> (offset + i) & 1 != 0)
                        .fold(0, |r, i| r | 1u32 << i);
                    assert_eq!(bfe_u32(x, offset, width + 32), want);
                    let top = width.min(32 - offset);
                    let signed = if top == 0 {
                        0
                    } else {
                        ((want << (32 - top)) as i32 >> (32 - top)) as u32
                    };
                    assert_eq!(bfe_i32(x, offset, width), signed);
                }
            }
        }
        assert_eq!(bfm(4, 8), 0xf00);
        assert_eq!(bfi(0xff00, 0x1111_1111, 0x2222_2222), 0x2222_1122);
    }

    #[test]
    fn counts_of_nothing_are_all_ones() {
        assert_eq!(
            (ffbh_u32(0), ffbl(0), ffbh_i32(0), ffbh_i32(u32::MAX)),
            (!0, !0, !0, !0)
        );
        assert_eq!((ffbh_u32(1), ffbl(8), ffbh_i32(1), ffbh_i32(!1)), (31, 3, 31, 31));
    }

    #[test]
    fn wide_products_carry() {
        assert_eq!(mad_u64_u32(!0, !0, !0), (0xffff_fffe_0000_0000, true));
        assert_eq!(mad_u64_u32(2, 3, 4), (10, false));
        assert_eq!(mad_i64_i32(!0, 3, 1), ((-2i64) as u64, true));
        assert_eq!(mul_hi_i32(!0, 5), !0);
        assert_eq!(mul_hi_i24(0x00ff_ffff, 1), !0);
        assert_eq!(mul_hi_u24(0xffff_ffff, 0x00ff_ffff), 0xffff);
    }

    #[test]
    fn perm_selects_bytes_signs_and_constants() {
        let (high, low) = (0x8899_aabb, 0x4455_66f7);
        assert_eq!(perm(high, low, 0x0706_0504), high);
        assert_eq!(perm(high, low, 0x0302_0100), low);
        assert_eq!(perm(high, low, 0x0d0c_0b08), 0xff00_ff00);
        assert_eq!(perm(high, low, 0x0a09_ff00), 0xff00_fff7);
        assert_eq!(alignbyte(high, low, 1), 0xbb44_5566);
        assert_eq!(alignbit(high, low, 36), 0xb445_566f);
    }

    #[test]
    fn sums_of_differences() {
        assert_eq!(sad4(0x0102_0304, 0x0401_0300), 3 + 1 + 4);
        assert_eq!(msad4(0x0102_0304, 0x0401_0300), 4);
        assert_eq!(sad2(0x0001_0005, 0x0003_0001), 6);
        assert_eq!(lerp_u8(0x01ff_0003, 0x02ff_0004, 0x0100_0000), 0x02ff_0003);
        let q = qsad(0x0000_0000_0403_0201, 0, 0x0001_0000_0000_0000, false, sad4);
        assert_eq!(q, (0x0005 << 48) | (7 << 32) | (9 << 16) | 10);
        assert_eq!(qsad(0xff, 0, 0xffff, true, sad4), 0xffff);
    }
}
