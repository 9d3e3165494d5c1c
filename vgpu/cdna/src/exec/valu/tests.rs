//! Whole instructions, decoded from machine words as LLVM's assembler gives them.

use super::*;
use crate::{Target, isa::decode, wave::Mode};

const POISON: u32 = 0xdead_beef;

fn wave() -> Wave {
    let mut w = Wave::new(Target::Gfx90a, 512, 256, POISON);
    w.mode = Mode::COMPILER_DEFAULT;
    w.set_exec(!0);
    w
}

#[track_caller]
fn run(w: &mut Wave, words: &[u32]) {
    let inst = decode(w.target, words).expect("decodes");
    execute(w, &inst).unwrap_or_else(|_| panic!("{} executes", inst.mnemonic));
}

/// v0 and v1 (and v3) hold the values in every lane; the result is lane 5 of v2.
#[track_caller]
fn with(v: [u32; 3], words: &[u32]) -> u32 {
    let mut w = wave();
    *w.v_mut(0) = [v[0]; 64];
    *w.v_mut(1) = [v[1]; 64];
    *w.v_mut(3) = [v[2]; 64];
    run(&mut w, words);
    w.v(2)[5]
}

fn f(x: f32) -> u32 {
    x.to_bits()
}

#[test]
fn results_go_to_active_lanes_only() {
    let mut w = wave();
    *w.v_mut(0) = std::array::from_fn(|l| l as u32);
    *w.v_mut(1) = [100; 64];
    w.set_exec(0b1010);
    run(&mut w, &[0x6804_0300]); // v_add_u32 v2, v0, v1
    assert_eq!(w.v(2)[..5], [POISON, 101, POISON, 103, POISON]);
}

#[test]
fn two_roundings_in_mad_and_literals_in_their_place() {
    // D = S0 * K + S1, D = S0 * S1 + K
    assert_eq!(with([f(3.0), f(0.5), 0], &[0x2e04_0300, 0x4000_0000]), f(6.5));
    assert_eq!(with([f(3.0), f(0.5), 0], &[0x3004_0300, 0x4000_0000]), f(3.5));
}

#[test]
fn modifiers_apply_to_sources_and_results() {
    // v_fma_f32 v2, -v0, |v1|, 1.0
    assert_eq!(with([f(3.0), f(-2.0), 0], &[0xd1cb_0202, 0x23ca_0300]), f(-5.0));
    // v_add_f32_e64 v2, v0, v1 clamp
    assert_eq!(with([f(3.0), f(-2.5), 0], &[0xd101_8002, 0x0002_0300]), f(0.5));
    assert_eq!(with([f(3.0), f(2.5), 0], &[0xd101_8002, 0x0002_0300]), f(1.0));
    // v_mul_f32_e64 v2, v0, v1 mul:2 is ignored while denormals are kept
    assert_eq!(with([f(3.0), f(2.0), 0], &[0xd105_0002, 0x0802_0300]), f(6.0));
}

#[test]
fn carries_travel_through_lane_masks() {
    let mut w = wave();
    *w.v_mut(0) = std::array::from_fn(|l| if l % 2 == 0 { u32::MAX } else { 1 });
    *w.v_mut(1) = [1; 64];
    w.set_exec(0xff);
    run(&mut w, &[0xd119_0402, 0x0002_0300]); // v_add_co_u32 v2, s[4:5], v0, v1
    assert_eq!(w.s64(4), 0x55);
    assert_eq!((w.v(2)[0], w.v(2)[1]), (0, 2));
    w.set_vcc(0x0f);
    run(&mut w, &[0x3804_0300]); // v_addc_co_u32 v2, vcc, v0, v1, vcc
    assert_eq!((w.v(2)[0], w.v(2)[1], w.v(2)[4], w.v(2)[5]), (1, 3, 0, 2));
    assert_eq!(w.vcc(), 0x55);
    *w.v_mut(4) = [u32::MAX; 64];
    *w.v_mut(5) = [u32::MAX; 64];
    run(&mut w, &[0xd1e8_0402, 0x0412_0300]); // v_mad_u64_u32 v[2:3], s[4:5], v0, v1, v[4:5]
    assert_eq!((w.v(2)[1], w.v(3)[1]), (0, 0));
    assert_eq!(w.s64(4), 0xff);
}

#[test]
fn compares_clear_the_bits_of_inactive_lanes() {
    let mut w = wave();
    *w.v_mut(0) = std::array::from_fn(|l| f(l as f32));
    *w.v_mut(1) = [f(3.0); 64];
    w.set_vcc(!0);
    w.set_exec(!2);
    run(&mut w, &[0x7c82_0300]); // v_cmp_lt_f32 vcc, v0, v1
    assert_eq!(w.vcc(), 0b101);
    *w.v_mut(0) = std::array::from_fn(|l| l as u32);
    *w.v_mut(1) = [60; 64];
    run(&mut w, &[0xd0dc_0008, 0x0002_0300]); // v_cmpx_gt_u32 s[8:9], v0, v1
    assert_eq!((w.s64(8), w.exec()), (0b111 << 61, 0b111 << 61));
}

#[test]
fn packed_halves_are_selected_and_negated_apart() {
    let mut w = wave();
    *w.v_mut(0) = [0x4000_3c00; 64]; // 2, 1
    *w.v_mut(1) = [0x4400_4200; 64]; // 4, 3
    *w.v_mut(2) = [0x4800_4500; 64]; // 8, 5
    // v_pk_fma_f16 v2, v0, v1, v2 op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[0,1,0]
    run(&mut w, &[0xd38e_4802, 0x540a_0300]);
    assert_eq!(w.v(2)[9], 0x4a00_bc00); // 1 * 4 + 8 = 12, 2 * -3 + 5 = -1
    *w.v_mut(0) = [f(2.0); 64];
    *w.v_mut(1) = [f(3.0); 64];
    *w.v_mut(4) = [f(10.0); 64];
    *w.v_mut(5) = [f(20.0); 64];
    run(&mut w, &[0xd3b1_4802, 0x1002_0900]); // v_pk_mul_f32 v[2:3], v[0:1], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]
    assert_eq!((w.v(2)[0], w.v(3)[0]), (f(30.0), f(40.0)));
}

#[test]
fn mixes_take_f16_or_f32_and_keep_the_other_half() {
    // v_fma_mix_f32 v2, v0, v1, 2.0 op_sel:[1,0,0] op_sel_hi:[1,0,0]
    assert_eq!(with([0x4200_0000, f(0.5), 0], &[0xd3a0_0802, 0x0bd2_0300]), f(3.5));
    // v_fma_mixhi_f16 v2, v0, v1, v3
    assert_eq!(with([f(1.5), f(2.0), f(1.0)], &[0xd3a2_0002, 0x040e_0300]), 0x4400_beef);
}

#[test]
fn sixteen_bit_results_zero_or_keep_the_high_half() {
    assert_eq!(
        with([0x3c00, 0x3c00, 0], &[0x3e04_0300]),
        0x4000,
        "v_add_f16 v2, v0, v1"
    );
    let mut w = wave();
    *w.v_mut(0) = [0x3c00; 64];
    *w.v_mut(1) = [0x4000; 64];
    *w.v_mut(2) = [0x7777_3c00; 64];
    run(&mut w, &[0xd206_0002, 0x040a_0300]); // v_fma_f16 v2, v0, v1, v2
    assert_eq!(w.v(2)[0], 0x7777_4200);
    // v_med3_i16 v2, v0, v1, v3 op_sel:[0,1,0,1]
    assert_eq!(with([5, 0xffff_0000, 9], &[0xd1fb_5002, 0x040e_0300]), 0x0005_beef);
}

#[test]
fn sdwa_selects_parts_and_dpp_moves_lanes() {
    let mut w = wave();
    *w.v_mut(0) = [0x0000_1200; 64];
    *w.v_mut(1) = [0x0034_0000; 64];
    // v_add_u16_sdwa v2, v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:WORD_1
    run(&mut w, &[0x4c04_02f9, 0x0501_1500]);
    assert_eq!(w.v(2)[3], 0x0046_beef);
    *w.v_mut(0) = std::array::from_fn(|l| l as u32);
    *w.v_mut(1) = [1000; 64];
    run(&mut w, &[0x6804_02fa, 0xff01_1100]); // v_add_u32_dpp v2, v0, v1 row_shr:1
    assert_eq!((w.v(2)[17], w.v(2)[16]), (1016, 0x0046_beef));
}

#[test]
fn wide_operations_use_register_pairs() {
    let mut w = wave();
    *w.v_mut(0) = [36; 64];
    *w.v_mut(4) = [3; 64];
    *w.v_mut(5) = [0; 64];
    run(&mut w, &[0xd28f_0002, 0x0002_0900]); // v_lshlrev_b64 v[2:3], v0, v[4:5]
    assert_eq!((w.v(2)[0], w.v(3)[0]), (0, 0x30));
    let set = |w: &mut Wave, n: u16, x: f64| {
        *w.v_mut(n) = [x.to_bits() as u32; 64];
        *w.v_mut(n + 1) = [(x.to_bits() >> 32) as u32; 64];
    };
    set(&mut w, 0, 1.5);
    set(&mut w, 4, 4.0);
    set(&mut w, 2, 0.25);
    run(&mut w, &[0x0804_0900]); // v_fmac_f64 v[2:3], v[0:1], v[4:5]
    assert_eq!(u64::from(w.v(2)[7]) | u64::from(w.v(3)[7]) << 32, 6.25f64.to_bits());
}

#[test]
fn lanes_count_the_mask_bits_below_them() {
    let mut w = wave();
    *w.v_mut(0) = [10; 64];
    run(&mut w, &[0xd28d_0002, 0x0002_00c1]); // v_mbcnt_hi_u32_b32 v2, -1, v0
    assert_eq!((w.v(2)[0], w.v(2)[31], w.v(2)[33], w.v(2)[63]), (10, 10, 11, 41));
}

#[test]
fn assorted_operations() {
    assert_eq!(
        with([0x8899_aabb, 0x4455_66f7, 0x0706_0100], &[0xd1ed_0002, 0x040e_0300]),
        0x8899_66f7,
        "v_perm_b32"
    );
    assert_eq!(
        with([0xff01_02fe, 0x0101_0101, 10], &[0xd3a8_4002, 0x1c0e_0300]),
        10,
        "v_dot4_i32_i8"
    );
    assert_eq!(with([0x0042_0000, 0, 0], &[0x7e04_2700]), f(66.0), "v_cvt_f32_ubyte2");
    assert_eq!(
        with([f(1.0), f(-65519.9), 0], &[0xd296_0002, 0x0002_0300]),
        0xfbff_3c00,
        "v_cvt_pkrtz_f16_f32"
    );
    let mut w = wave();
    *w.v_mut(0) = [1; 64];
    *w.v_mut(1) = [2; 64];
    w.set_exec(1);
    run(&mut w, &[0x7e00_a301]); // v_swap_b32 v0, v1
    assert_eq!((w.v(0)[..2].to_vec(), w.v(1)[..2].to_vec()), (vec![2, 1], vec![1, 2]));
    run(&mut w, &[0xd3d9_4000, 0x1800_0100]); // v_accvgpr_write_b32 a0, v0
    assert_eq!(w.v(256)[..2], [2, POISON]);
    w.set_vcc(1);
    w.set_exec(3);
    run(&mut w, &[0x0004_0300]); // v_cndmask_b32 v2, v0, v1, vcc
    assert_eq!(w.v(2)[..2], [1, 1]);
    let mut w = wave();
    *w.v_mut(0) = [1; 64]; // a denormal denominator is scaled up
    *w.v_mut(1) = [1; 64];
    *w.v_mut(3) = [f(1.0); 64];
    run(&mut w, &[0xd1e0_0402, 0x040e_0300]); // v_div_scale_f32 v2, s[4:5], v0, v1, v3
    assert_eq!(w.v(2)[0], f(2f32.powi(-85)));
}

/// f32 values by lane, so that every element of a matrix is its own number.
fn ramp(scale: f32, offset: f32) -> V32 {
    std::array::from_fn(|l| f(l as f32 * scale + offset))
}

#[test]
fn outer_products_of_sixteen_blocks() {
    let mut w = wave();
    *w.v_mut(0) = ramp(1.0, 0.0);
    *w.v_mut(1) = ramp(2.0, 1.0);
    for i in 0..4 {
        *w.v_mut(256 + i) = [f(100.0 * f32::from(i)); 64];
    }
    w.set_exec(1); // ignored
    run(&mut w, &[0xd3c2_8000, 0x0402_0300]); // v_mfma_f32_4x4x1f32 a[0:3], v0, v1, a[0:3]
    for block in 0..16 {
        for i in 0..4 {
            for j in 0..4 {
                let (a, b) = ((4 * block + i) as f32, (2 * (4 * block + j) + 1) as f32);
                let got = f32::from_bits(w.v(256 + i as u16)[4 * block + j]);
                assert_eq!(got, 100.0 * i as f32 + a * b, "block {block} [{i}][{j}]");
            }
        }
    }
}

#[test]
fn f16_matrices_of_32_rows() {
    let mut w = wave();
    // A[i][k] = i + k / 8, B[k][j] = j - k: four elements a lane.
    let h = |x: f32| u32::from(crate::alu::convert::f16_from_f32_nearest(f(x)));
    for r in 0..2u16 {
        let pair = |g: &dyn Fn(usize, usize) -> f32| -> V32 {
            std::array::from_fn(|lane| {
                let k = 4 * (lane / 32) + 2 * usize::from(r);
                h(g(lane % 32, k)) | h(g(lane % 32, k + 1)) << 16
            })
        };
        *w.v_mut(r) = pair(&|i, k| i as f32 + k as f32 / 8.0);
        *w.v_mut(2 + r) = pair(&|j, k| j as f32 - k as f32);
    }
    run(&mut w, &[0xd3cc_0010, 0x0202_0500]); // v_mfma_f32_32x32x8f16 v[16:31], v[0:1], v[2:3], 0
    for i in 0..32 {
        for j in 0..32 {
            let want: f32 = (0..8)
                .map(|k| (i as f32 + k as f32 / 8.0) * (j as f32 - k as f32))
                .sum();
            let got = w.v(16 + 4 * (i / 8) + i % 4)[j + 32 * usize::from(i / 4 % 2)];
            assert_eq!(f32::from_bits(got), want, "[{i}][{j}]");
        }
    }
}

#[test]
fn f64_and_integer_matrices_of_16_rows() {
    let mut w = wave();
    let set = |w: &mut Wave, n: u16, g: &dyn Fn(usize) -> f64| {
        *w.v_mut(n) = std::array::from_fn(|l| g(l).to_bits() as u32);
        *w.v_mut(n + 1) = std::array::from_fn(|l| (g(l).to_bits() >> 32) as u32);
    };
    set(&mut w, 0, &|l| (l % 16) as f64 + 0.5);
    set(&mut w, 2, &|l| (l / 16) as f64 - (l % 16) as f64);
    run(&mut w, &[0xd3ee_0010, 0x0202_0500]); // v_mfma_f64_16x16x4f64 v[16:23], v[0:1], v[2:3], 0
    let at = |w: &Wave, i: u16, j: usize| {
        let (lane, n) = (j + 16 * usize::from(i % 4), 16 + 2 * (i / 4));
        f64::from_bits(u64::from(w.v(n)[lane]) | u64::from(w.v(n + 1)[lane]) << 32)
    };
    for i in 0..16 {
        for j in 0..16 {
            let want: f64 = (0..4).map(|k| (f64::from(i) + 0.5) * (f64::from(k) - j as f64)).sum();
            assert_eq!(at(&w, i, j), want, "[{i}][{j}]");
        }
    }
    // A[i][k] = i - k, B[k][j] = k - 2 j: four bytes a lane.
    let bytes = |g: &dyn Fn(i32, i32) -> i32| -> V32 {
        std::array::from_fn(|l| {
            (0..4).fold(0, |r, e| {
                r | (g(l as i32 % 16, 4 * (l as i32 / 16) + e) as u32 & 0xff) << (8 * e)
            })
        })
    };
    *w.v_mut(0) = bytes(&|i, k| i - k);
    *w.v_mut(1) = bytes(&|j, k| k - 2 * j);
    run(&mut w, &[0xd3d5_0010, 0x0202_0300]); // v_mfma_i32_16x16x16i8 v[16:19], v0, v1, 0
    for i in 0..16i32 {
        for j in 0..16i32 {
            let want: i32 = (0..16).map(|k| (i - k) * (k - 2 * j)).sum();
            assert_eq!(w.v(16 + (i % 4) as u16)[(j + 16 * (i / 4)) as usize] as i32, want);
        }
    }
}

#[test]
fn broadcast_fields_move_blocks_and_lane_groups() {
    let mut w = wave();
    *w.v_mut(0) = ramp(1.0, 0.0);
    *w.v_mut(1) = ramp(1.0, 0.0);
    run(&mut w, &[0xd3c5_0010, 0x6202_0300]); // v_mfma_f32_16x16x4f32 v[16:19], v0, v1, 0 blgp:3
    let want: f32 = (0..4)
        .map(|k| (16 * k + 2) as f32 * ((16 * k + 5 + 16) % 64) as f32)
        .sum();
    assert_eq!(f32::from_bits(w.v(18)[5]), want);
    // Four blocks of one column; block 1 of A stands for all.
    for n in 0..4 {
        *w.v_mut(n) = [0; 64];
    }
    *w.v_mut(0) = std::array::from_fn(|l| 0x3c00 + 0x100 * (l as u32 / 16)); // 1, 1.25, 1.5, 1.75 by block
    *w.v_mut(2) = [0x3c00; 64];
    run(&mut w, &[0xd3c9_0a10, 0x0202_0500]); // v_mfma_f32_16x16x4f16 v[16:31], v[0:1], v[2:3], 0 cbsz:2 abid:1
    for register in 16..32 {
        assert_eq!(w.v(register)[33], f(1.25));
    }
}

#[test]
fn gfx90a_flushes_half_precision_denormals_in_matrices() {
    let mut w = wave();
    for n in 0..4 {
        *w.v_mut(n) = [0; 64];
    }
    *w.v_mut(0) = [1; 64]; // the smallest bf16 denormal
    *w.v_mut(2) = [0x7f00; 64];
    run(&mut w, &[0xd3e7_0010, 0x0202_0500]); // v_mfma_f32_16x16x16bf16_1k v[16:19], v[0:1], v[2:3], 0
    assert_eq!(w.v(16)[0], 0);
}

#[test]
fn gfx942_multiplies_sparse_and_eight_bit_matrices() {
    let mut w = wave();
    w.target = Target::Gfx942;
    // Row i of A stores columns 1 and 3 of every four, with value 1; B[k][j] = k.
    *w.v_mut(0) = [0x3c00_3c00; 64];
    *w.v_mut(1) = [0x3c00_3c00; 64];
    let h = |x: usize| u32::from(crate::alu::convert::f16_from_f32_nearest(f(x as f32)));
    for r in 0..4u16 {
        *w.v_mut(4 + r) = std::array::from_fn(|l| {
            let k = 8 * (l / 16) + 2 * usize::from(r);
            h(k) | h(k + 1) << 16
        });
    }
    *w.v_mut(8) = [0b1101_1101 << 8; 64];
    for n in 16..20 {
        *w.v_mut(n) = [f(1000.0); 64];
    }
    // v_smfmac_f32_16x16x32_f16 v[16:19], v[0:1], v[4:7], v8 abid:1
    run(&mut w, &[0xd3e2_0810, 0x0422_0900]);
    let odd: usize = (0..32).filter(|k| k % 2 == 1).sum();
    assert_eq!(f32::from_bits(w.v(17)[40]), 1000.0 + odd as f32);
    // 0x40 is one in fp8 (bias 8) and in bf8 (bias 16).
    for n in 0..4 {
        *w.v_mut(n) = [0x4040_4040; 64];
    }
    run(&mut w, &[0xd3f2_0010, 0x0202_0500]); // v_mfma_f32_16x16x32_fp8_bf8 v[16:19], v[0:1], v[2:3], 0
    assert_eq!(f32::from_bits(w.v(16)[0]), 32.0);
}

/// Instructions of the vector ALU's encodings that this module leaves to others or refuses.
const ELSEWHERE: [&str; 3] = ["v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32"];
/// Reads a table of the graphics front end that no compute part documents.
const REFUSED: [&str; 1] = ["v_screen_partition_4se_b32"];

fn is_vector_alu(enc: crate::isa::Encoding) -> bool {
    use crate::isa::Encoding as E;
    matches!(
        enc,
        E::Vop1 | E::Vop2 | E::Vopc | E::Vop3 | E::Vop3b | E::Vop3p | E::Vop3pMai
    ) || matches!(enc, E::SdwaVop1 | E::SdwaVop2 | E::SdwaVopc | E::DppVop1 | E::DppVop2)
}

#[test]
fn every_sample_of_the_vector_alu_executes() {
    let mut refused = std::collections::BTreeSet::new();
    let mut seen = std::collections::BTreeSet::new();
    for (target, samples) in [
        (Target::Gfx90a, include_str!("../../../isa/samples-gfx90a.txt")),
        (Target::Gfx942, include_str!("../../../isa/samples-gfx942.txt")),
    ] {
        let mut w = wave();
        w.target = target;
        for line in samples.lines() {
            let Some((words, text)) = line.split_once('\t') else {
                continue;
            };
            let words: Vec<u32> = words
                .split(' ')
                .map(|x| u32::from_str_radix(x, 16).expect("hex word"))
                .collect();
            let inst = decode(target, &words).unwrap_or_else(|e| panic!("{text}: {e}"));
            if !is_vector_alu(inst.enc) {
                continue;
            }
            seen.insert(inst.mnemonic);
            w.set_exec(0x8000_0000_ffff_0001);
            if execute(&mut w, &inst).is_err() {
                refused.insert(inst.mnemonic.name());
            }
        }
    }
    let table = crate::isa::rows()
        .iter()
        .filter(|r| is_vector_alu(r.enc))
        .map(|r| r.mnemonic)
        .collect();
    assert_eq!(seen, table);
    let expected = ELSEWHERE.iter().chain(&REFUSED).copied().collect();
    assert_eq!(refused, expected);
}

#[test]
fn half_precision_dot_products_flush_on_gfx90a_only() {
    // v_dot2_f32_f16 v2, v0, v1, v3: a denormal times a large number.
    let words = [0xd3a3_4002, 0x1c0e_0300];
    assert_eq!(with([1, 0x7800, 0], &words), 0);
    let mut w = wave();
    w.target = Target::Gfx942;
    for (n, x) in [(0, 1), (1, 0x7800), (3, 0)] {
        *w.v_mut(n) = [x; 64];
    }
    run(&mut w, &words);
    assert_eq!(w.v(2)[0], f(2f32.powi(-9)));
}

#[test]
fn sparse_indices_past_the_registers_are_refused() {
    let inst = decode(Target::Gfx942, &[0xd3e2_0810, 0x0422_0900 | 0x0fc << 18]).expect("decodes");
    let mut w = Wave::new(Target::Gfx942, 32, 32, 0);
    assert_eq!(execute(&mut w, &inst), Err(Unsupported));
}
