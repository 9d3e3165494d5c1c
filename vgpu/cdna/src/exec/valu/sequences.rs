//! Sequences that clang 19 emits for one operator, run as instructions and compared with the host's operator.

use super::*;
use crate::{Target, alu::testing::Lcg, isa::decode, wave::Mode};

/// v0 / v1 to v0.
#[rustfmt::skip]
const DIVIDE_F32: &[&[u32]] = &[
    &[0xd1e0_0402, 0x0402_0301], // v_div_scale_f32 v2, s[4:5], v1, v1, v0
    &[0x7e06_4502],              // v_rcp_f32_e32 v3, v2
    &[0xd1cb_0004, 0x23ca_0702], // v_fma_f32 v4, -v2, v3, 1.0
    &[0x7606_0704],              // v_fmac_f32_e32 v3, v4, v3
    &[0xd1e0_6a04, 0x0402_0300], // v_div_scale_f32 v4, vcc, v0, v1, v0
    &[0x0a0a_0704],              // v_mul_f32_e32 v5, v4, v3
    &[0xd1cb_0006, 0x2412_0b02], // v_fma_f32 v6, -v2, v5, v4
    &[0x760a_0706],              // v_fmac_f32_e32 v5, v6, v3
    &[0xd1cb_0002, 0x2412_0b02], // v_fma_f32 v2, -v2, v5, v4
    &[0xd1e2_0002, 0x0416_0702], // v_div_fmas_f32 v2, v2, v3, v5
    &[0xd1de_0000, 0x0402_0302], // v_div_fixup_f32 v0, v2, v1, v0
];

/// v[0:1] / v[2:3] to v[0:1].
#[rustfmt::skip]
const DIVIDE_F64: &[&[u32]] = &[
    &[0xd1e1_0404, 0x0402_0502], // v_div_scale_f64 v[4:5], s[4:5], v[2:3], v[2:3], v[0:1]
    &[0x7e0c_4b04],              // v_rcp_f64_e32 v[6:7], v[4:5]
    &[0xd1cc_0008, 0x23ca_0d04], // v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0
    &[0x080c_1106],              // v_fmac_f64_e32 v[6:7], v[6:7], v[8:9]
    &[0xd1cc_0008, 0x23ca_0d04], // v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0
    &[0x080c_1106],              // v_fmac_f64_e32 v[6:7], v[6:7], v[8:9]
    &[0xd1e1_6a08, 0x0402_0500], // v_div_scale_f64 v[8:9], vcc, v[0:1], v[2:3], v[0:1]
    &[0xd281_000a, 0x0002_0d08], // v_mul_f64 v[10:11], v[8:9], v[6:7]
    &[0xd1cc_0004, 0x2422_1504], // v_fma_f64 v[4:5], -v[4:5], v[10:11], v[8:9]
    &[0xd1e3_0004, 0x042a_0d04], // v_div_fmas_f64 v[4:5], v[4:5], v[6:7], v[10:11]
    &[0xd1df_0000, 0x0402_0504], // v_div_fixup_f64 v[0:1], v[4:5], v[2:3], v[0:1]
];

/// The root of v0 to v0; s4 is 0x0f800000.
#[rustfmt::skip]
const SQRT_F32: &[&[u32]] = &[
    &[0x0a02_00ff, 0x4f80_0000], // v_mul_f32_e32 v1, 0x4f800000, v0
    &[0x7c88_0004],              // v_cmp_gt_f32_e32 vcc, s4, v0
    &[0x0000_0300],              // v_cndmask_b32_e32 v0, v0, v1, vcc
    &[0x7e02_4f00],              // v_sqrt_f32_e32 v1, v0
    &[0x6804_02c1],              // v_add_u32_e32 v2, -1, v1
    &[0xd1cb_0003, 0x2402_0302], // v_fma_f32 v3, -v2, v1, v0
    &[0xd046_0004, 0x0002_0680], // v_cmp_ge_f32_e64 s[4:5], 0, v3
    &[0x6806_0281],              // v_add_u32_e32 v3, 1, v1
    &[0xd100_0002, 0x0012_0501], // v_cndmask_b32_e64 v2, v1, v2, s[4:5]
    &[0xd1cb_0001, 0x2402_0303], // v_fma_f32 v1, -v3, v1, v0
    &[0xd041_0004, 0x0002_0280], // v_cmp_lt_f32_e64 s[4:5], 0, v1
    &[0xd100_0001, 0x0012_0702], // v_cndmask_b32_e64 v1, v2, v3, s[4:5]
    &[0x0a04_02ff, 0x3780_0000], // v_mul_f32_e32 v2, 0x37800000, v1
    &[0x0002_0501],              // v_cndmask_b32_e32 v1, v1, v2, vcc
    &[0x7e04_02ff, 0x0000_0260], // v_mov_b32_e32 v2, 0x260
    &[0x7c20_0500],              // v_cmp_class_f32_e32 vcc, v0, v2
    &[0x0000_0101],              // v_cndmask_b32_e32 v0, v1, v0, vcc
];

/// The root of v[0:1] to v[0:1]; s[4:5] is 0x10000000_00000000.
#[rustfmt::skip]
const SQRT_F64: &[&[u32]] = &[
    &[0x7cc8_0004],              // v_cmp_gt_f64_e32 vcc, s[4:5], v[0:1]
    &[0xd100_0002, 0x01a9_0280], // v_cndmask_b32_e64 v2, 0, 1, vcc
    &[0x2404_0488],              // v_lshlrev_b32_e32 v2, 8, v2
    &[0xd284_0000, 0x0002_0500], // v_ldexp_f64 v[0:1], v[0:1], v2
    &[0x7e04_4d00],              // v_rsq_f64_e32 v[2:3], v[0:1]
    &[0xd281_0004, 0x0002_0500], // v_mul_f64 v[4:5], v[0:1], v[2:3]
    &[0xd281_0002, 0x0001_e102], // v_mul_f64 v[2:3], v[2:3], 0.5
    &[0xd1cc_0006, 0x23c2_0902], // v_fma_f64 v[6:7], -v[2:3], v[4:5], 0.5
    &[0x0808_0d04],              // v_fmac_f64_e32 v[4:5], v[4:5], v[6:7]
    &[0xd1cc_0008, 0x2402_0904], // v_fma_f64 v[8:9], -v[4:5], v[4:5], v[0:1]
    &[0x0804_0d02],              // v_fmac_f64_e32 v[2:3], v[2:3], v[6:7]
    &[0x0808_0508],              // v_fmac_f64_e32 v[4:5], v[8:9], v[2:3]
    &[0xd1cc_0006, 0x2402_0904], // v_fma_f64 v[6:7], -v[4:5], v[4:5], v[0:1]
    &[0x0808_0506],              // v_fmac_f64_e32 v[4:5], v[6:7], v[2:3]
    &[0x7e04_02ff, 0xffff_ff80], // v_mov_b32_e32 v2, 0xffffff80
    &[0x0004_0480],              // v_cndmask_b32_e32 v2, 0, v2, vcc
    &[0xd284_0002, 0x0002_0504], // v_ldexp_f64 v[2:3], v[4:5], v2
    &[0x7e08_02ff, 0x0000_0260], // v_mov_b32_e32 v4, 0x260
    &[0x7c24_0900],              // v_cmp_class_f64_e32 vcc, v[0:1], v4
    &[0x0000_0102],              // v_cndmask_b32_e32 v0, v2, v0, vcc
    &[0x0002_0303],              // v_cndmask_b32_e32 v1, v3, v1, vcc
];

/// v0 / v1 to v0.
#[rustfmt::skip]
const DIVIDE_U32: &[&[u32]] = &[
    &[0x7e04_0d01],              // v_cvt_f32_u32_e32 v2, v1
    &[0x6a06_0280],              // v_sub_u32_e32 v3, 0, v1
    &[0x7e04_4702],              // v_rcp_iflag_f32_e32 v2, v2
    &[0x0a04_04ff, 0x4f7f_fffe], // v_mul_f32_e32 v2, 0x4f7ffffe, v2
    &[0x7e04_0f02],              // v_cvt_u32_f32_e32 v2, v2
    &[0xd285_0003, 0x0002_0503], // v_mul_lo_u32 v3, v3, v2
    &[0xd286_0003, 0x0002_0702], // v_mul_hi_u32 v3, v2, v3
    &[0x6804_0702],              // v_add_u32_e32 v2, v2, v3
    &[0xd286_0002, 0x0002_0500], // v_mul_hi_u32 v2, v0, v2
    &[0xd285_0003, 0x0002_0302], // v_mul_lo_u32 v3, v2, v1
    &[0x6a00_0700],              // v_sub_u32_e32 v0, v0, v3
    &[0x6808_0481],              // v_add_u32_e32 v4, 1, v2
    &[0x7d9c_0300],              // v_cmp_ge_u32_e32 vcc, v0, v1
    &[0x6a06_0300],              // v_sub_u32_e32 v3, v0, v1
    &[0x0004_0902],              // v_cndmask_b32_e32 v2, v2, v4, vcc
    &[0x0000_0700],              // v_cndmask_b32_e32 v0, v0, v3, vcc
    &[0x6806_0481],              // v_add_u32_e32 v3, 1, v2
    &[0x7d9c_0300],              // v_cmp_ge_u32_e32 vcc, v0, v1
    &[0x0000_0702],              // v_cndmask_b32_e32 v0, v2, v3, vcc
];

/// Runs a sequence on 64 pairs of 64-bit operands, of which 32-bit sequences take the low halves.
fn run(sequence: &[&[u32]], wide: bool, scalar: u64, a: &V64, b: &V64) -> V64 {
    let mut w = Wave::new(Target::Gfx90a, 32, 32, 0xdead_beef);
    w.mode = Mode::COMPILER_DEFAULT;
    w.set_exec(!0);
    w.set_s64(4, scalar);
    let halves = |v: &V64| (v.map(|x| x as u32), v.map(|x| (x >> 32) as u32));
    let ((a0, a1), (b0, b1)) = (halves(a), halves(b));
    *w.v_mut(0) = a0;
    if wide {
        (*w.v_mut(1), *w.v_mut(2), *w.v_mut(3)) = (a1, b0, b1);
    } else {
        *w.v_mut(1) = b0;
    }
    for words in sequence {
        execute(&mut w, &decode(Target::Gfx90a, words).expect("decodes")).expect("executes");
    }
    let high = if wide { *w.v(1) } else { [0; 64] };
    std::array::from_fn(|l| u64::from(w.v(0)[l]) | u64::from(high[l]) << 32)
}

/// `same` compares a result with the host's.
fn check(
    (sequence, wide, scalar): (&[&[u32]], bool, u64),
    seed: u64,
    draw: fn(&mut Lcg) -> u64,
    want: fn(u64, u64) -> u64,
    same: fn(u64, u64) -> bool,
) {
    let mut rng = Lcg::new(seed);
    for _ in 0..400 {
        let a: V64 = std::array::from_fn(|_| draw(&mut rng));
        let b: V64 = std::array::from_fn(|_| draw(&mut rng));
        let got = run(sequence, wide, scalar, &a, &b);
        for l in 0..64 {
            let want = want(a[l], b[l]);
            assert!(
                same(got[l], want),
                "{:x} {:x}: got {:x}, want {want:x}",
                a[l],
                b[l],
                got[l]
            );
        }
    }
}

fn f32_of(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

/// Equal bits, or both NaN: the host's NaN is its own.
fn same_f32(got: u64, want: u64) -> bool {
    got == want || f32_of(got).is_nan() && f32_of(want).is_nan()
}

/// As [`same_f32`].
fn same_f64(got: u64, want: u64) -> bool {
    got == want || f64::from_bits(got).is_nan() && f64::from_bits(want).is_nan()
}

#[test]
fn compiled_f32_division_rounds_correctly() {
    let want = |a, b| (f32_of(a) / f32_of(b)).to_bits().into();
    check((DIVIDE_F32, false, 0), 91, |r| r.f32().into(), want, same_f32);
}

#[test]
fn compiled_f64_division_rounds_correctly() {
    let want = |a, b| (f64::from_bits(a) / f64::from_bits(b)).to_bits();
    check((DIVIDE_F64, true, 0), 92, Lcg::f64, want, same_f64);
}

#[test]
fn compiled_f32_square_root_rounds_correctly() {
    let want = |a, _| f32_of(a).sqrt().to_bits().into();
    check((SQRT_F32, false, 0x0f80_0000), 93, |r| r.f32().into(), want, same_f32);
}

#[test]
fn compiled_f64_square_root_rounds_correctly() {
    let want = |a, _| f64::from_bits(a).sqrt().to_bits();
    check((SQRT_F64, true, 0x1000_0000 << 32), 94, Lcg::f64, want, same_f64);
}

#[test]
fn compiled_integer_division_is_exact() {
    let draw = |r: &mut Lcg| u64::from((r.u32() >> (r.u32() & 31)).max(1));
    check(
        (DIVIDE_U32, false, 0),
        95,
        draw,
        |a, b| u64::from(a as u32 / b as u32),
        |got, want| got == want,
    );
}
