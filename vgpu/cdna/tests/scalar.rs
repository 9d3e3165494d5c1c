//! Scalar ALU instructions one by one: result and SCC.

mod support;

use cdna::{
    Target::{Gfx90a, Gfx942},
    isa::decode,
};
use support::{Kernel, Machine};

/// Text, words, s[2:3], s[4:5], what s0 or s[0:1] becomes, what SCC becomes.
type Case = (&'static str, &'static [u32], u64, u64, Option<u64>, Option<bool>);

const CASES: &[Case] = &[
    (
        "s_add_u32 s0, s2, s4",
        &[0x80000402],
        0xffffffff,
        0x2,
        Some(0x1),
        Some(true),
    ),
    (
        "s_sub_u32 s0, s2, s4",
        &[0x80800402],
        0x1,
        0x2,
        Some(0xffffffff),
        Some(true),
    ),
    (
        "s_add_i32 s0, s2, s4",
        &[0x81000402],
        0x7fffffff,
        0x1,
        Some(0x80000000),
        Some(true),
    ),
    (
        "s_add_i32 s0, s2, s4",
        &[0x81000402],
        0xffffffff,
        0x2,
        Some(0x1),
        Some(false),
    ),
    (
        "s_sub_i32 s0, s2, s4",
        &[0x81800402],
        0x80000000,
        0x1,
        Some(0x7fffffff),
        Some(true),
    ),
    (
        "s_min_i32 s0, s2, s4",
        &[0x83000402],
        0xffffffff,
        0x1,
        Some(0xffffffff),
        Some(true),
    ),
    (
        "s_min_u32 s0, s2, s4",
        &[0x83800402],
        0xffffffff,
        0x1,
        Some(0x1),
        Some(false),
    ),
    (
        "s_max_i32 s0, s2, s4",
        &[0x84000402],
        0xffffffff,
        0x1,
        Some(0x1),
        Some(false),
    ),
    (
        "s_max_u32 s0, s2, s4",
        &[0x84800402],
        0xffffffff,
        0x1,
        Some(0xffffffff),
        Some(true),
    ),
    ("s_and_b32 s0, s2, s4", &[0x86000402], 0xf0, 0xf, Some(0x0), Some(false)),
    ("s_or_b32 s0, s2, s4", &[0x87000402], 0xf0, 0xf, Some(0xff), Some(true)),
    (
        "s_xor_b64 s[0:1], s[2:3], s[4:5]",
        &[0x88800402],
        0xff00000000000001,
        0x1,
        Some(0xff00000000000000),
        Some(true),
    ),
    (
        "s_andn2_b64 s[0:1], s[2:3], s[4:5]",
        &[0x89800402],
        0xff,
        0xf,
        Some(0xf0),
        Some(true),
    ),
    (
        "s_orn2_b32 s0, s2, s4",
        &[0x8a000402],
        0x0,
        0xfffffff0,
        Some(0xf),
        Some(true),
    ),
    (
        "s_nand_b32 s0, s2, s4",
        &[0x8b000402],
        0xffffffff,
        0xffffffff,
        Some(0x0),
        Some(false),
    ),
    (
        "s_nor_b32 s0, s2, s4",
        &[0x8c000402],
        0x0,
        0x0,
        Some(0xffffffff),
        Some(true),
    ),
    (
        "s_xnor_b32 s0, s2, s4",
        &[0x8d000402],
        0x5,
        0x5,
        Some(0xffffffff),
        Some(true),
    ),
    ("s_lshl_b32 s0, s2, s4", &[0x8e000402], 0x3, 0x21, Some(0x6), Some(true)),
    (
        "s_lshr_b64 s[0:1], s[2:3], s4",
        &[0x8f800402],
        0x8000000000000000,
        0x3f,
        Some(0x1),
        Some(true),
    ),
    (
        "s_ashr_i32 s0, s2, s4",
        &[0x90000402],
        0x80000000,
        0x1f,
        Some(0xffffffff),
        Some(true),
    ),
    (
        "s_ashr_i64 s[0:1], s[2:3], s4",
        &[0x90800402],
        0x8000000000000000,
        0x3f,
        Some(0xffffffffffffffff),
        Some(true),
    ),
    ("s_bfm_b32 s0, s2, s4", &[0x91000402], 0x4, 0x8, Some(0xf00), None),
    (
        "s_bfm_b64 s[0:1], s2, s4",
        &[0x91800402],
        0x8,
        0x3c,
        Some(0xf000000000000000),
        None,
    ),
    (
        "s_mul_i32 s0, s2, s4",
        &[0x92000402],
        0xffffffff,
        0x3,
        Some(0xfffffffd),
        None,
    ),
    (
        "s_mul_hi_u32 s0, s2, s4",
        &[0x96000402],
        0xffffffff,
        0xffffffff,
        Some(0xfffffffe),
        None,
    ),
    (
        "s_mul_hi_i32 s0, s2, s4",
        &[0x96800402],
        0xffffffff,
        0xffffffff,
        Some(0x0),
        None,
    ),
    (
        "s_bfe_u32 s0, s2, s4",
        &[0x92800402],
        0x12345678,
        0x80004,
        Some(0x67),
        Some(true),
    ),
    (
        "s_bfe_i32 s0, s2, s4",
        &[0x93000402],
        0xf00,
        0x40008,
        Some(0xffffffff),
        Some(true),
    ),
    (
        "s_bfe_i64 s[0:1], s[2:3], s4",
        &[0x94000402],
        0x8000000000,
        0x10027,
        Some(0xffffffffffffffff),
        Some(true),
    ),
    (
        "s_absdiff_i32 s0, s2, s4",
        &[0x95000402],
        0x3,
        0xa,
        Some(0x7),
        Some(true),
    ),
    (
        "s_lshl3_add_u32 s0, s2, s4",
        &[0x98000402],
        0x20000000,
        0x5,
        Some(0x5),
        Some(true),
    ),
    (
        "s_pack_lh_b32_b16 s0, s2, s4",
        &[0x99800402],
        0x11112222,
        0x33334444,
        Some(0x33332222),
        None,
    ),
    (
        "s_pack_hh_b32_b16 s0, s2, s4",
        &[0x9a000402],
        0x11112222,
        0x33334444,
        Some(0x33331111),
        None,
    ),
    (
        "s_not_b32 s0, s2",
        &[0xbe800402],
        0xffffffff,
        0x0,
        Some(0x0),
        Some(false),
    ),
    (
        "s_brev_b64 s[0:1], s[2:3]",
        &[0xbe800902],
        0x1,
        0x0,
        Some(0x8000000000000000),
        None,
    ),
    (
        "s_bcnt1_i32_b64 s0, s[2:3]",
        &[0xbe800d02],
        0xff000000000000ff,
        0x0,
        Some(0x10),
        Some(true),
    ),
    (
        "s_bcnt0_i32_b32 s0, s2",
        &[0xbe800a02],
        0xffffffff,
        0x0,
        Some(0x0),
        Some(false),
    ),
    (
        "s_ff1_i32_b64 s0, s[2:3]",
        &[0xbe801102],
        0x10000000000,
        0x0,
        Some(0x28),
        None,
    ),
    (
        "s_ff0_i32_b32 s0, s2",
        &[0xbe800e02],
        0xffffffff,
        0x0,
        Some(0xffffffff),
        None,
    ),
    ("s_flbit_i32_b32 s0, s2", &[0xbe801202], 0x1, 0x0, Some(0x1f), None),
    ("s_flbit_i32 s0, s2", &[0xbe801402], 0xfffffff0, 0x0, Some(0x1c), None),
    ("s_sext_i32_i8 s0, s2", &[0xbe801602], 0x80, 0x0, Some(0xffffff80), None),
    ("s_sext_i32_i16 s0, s2", &[0xbe801702], 0x7fff, 0x0, Some(0x7fff), None),
    (
        "s_abs_i32 s0, s2",
        &[0xbe803002],
        0xffffffff,
        0x0,
        Some(0x1),
        Some(true),
    ),
    (
        "s_wqm_b64 s[0:1], s[2:3]",
        &[0xbe800702],
        0x8000000000000010,
        0x0,
        Some(0xf0000000000000f0),
        Some(true),
    ),
    (
        "s_quadmask_b32 s0, s2",
        &[0xbe802802],
        0x10000001,
        0x0,
        Some(0x81),
        Some(true),
    ),
    (
        "s_bitreplicate_b64_b32 s[0:1], s2",
        &[0xbe803702],
        0x80000005,
        0x0,
        Some(0xc000000000000033),
        None,
    ),
    ("s_cmp_lt_i32 s2, s4", &[0xbf040402], 0xffffffff, 0x1, None, Some(true)),
    ("s_cmp_lt_u32 s2, s4", &[0xbf0a0402], 0xffffffff, 0x1, None, Some(false)),
    (
        "s_cmp_lg_u64 s[2:3], s[4:5]",
        &[0xbf130402],
        0x10000000000,
        0x0,
        None,
        Some(true),
    ),
    ("s_bitcmp1_b32 s2, s4", &[0xbf0d0402], 0x10, 0x4, None, Some(true)),
    (
        "s_bitcmp0_b64 s[2:3], s4",
        &[0xbf0e0402],
        0x10000000000,
        0x28,
        None,
        Some(false),
    ),
    (
        "s_cmpk_gt_i32 s2, 0xfffe",
        &[0xb202fffe],
        0xffffffff,
        0x0,
        None,
        Some(true),
    ),
    ("s_cmpk_lt_u32 s2, 0xfffe", &[0xb602fffe], 0xfffd, 0x0, None, Some(true)),
    ("s_movk_i32 s0, 0x8000", &[0xb0008000], 0x0, 0x0, Some(0xffff8000), None),
    (
        "s_mov_b64 s[0:1], 0x80000000",
        &[0xbe8001ff, 0x80000000],
        0x0,
        0x0,
        Some(0x80000000),
        None,
    ),
    (
        "s_mov_b64 s[0:1], -2",
        &[0xbe8001c2],
        0x0,
        0x0,
        Some(0xfffffffffffffffe),
        None,
    ),
    (
        "s_mov_b64 s[0:1], 1.0",
        &[0xbe8001f2],
        0x0,
        0x0,
        Some(0x3ff0000000000000),
        None,
    ),
];

/// Stores s[0:1] and SCC at s[8:9].
const SAVE: &[u32] = &[
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0x7e08_0200, // v_mov_b32_e32 v4, s0
    0x7e0a_0201, // v_mov_b32_e32 v5, s1
    0x8506_8081, // s_cselect_b32 s6, 1, 0
    0x7e0c_0206, // v_mov_b32_e32 v6, s6
    0xdc78_8000,
    0x0008_0401, // global_store_dwordx3 v1, v[4:6], s[8:9]
];

const OUT: u64 = 0x30_0000;

fn literal(register: u32, value: u32) -> [u32; 2] {
    // s_mov_b32 sN, literal
    [0xbe80_00ff | register << 16, value]
}

#[test]
fn results_and_scc() {
    for target in [Gfx90a, Gfx942] {
        for (text, words, a, b, result, scc) in CASES {
            assert_eq!(decode(target, words).unwrap().to_string(), *text);
            // Both states of SCC before, to see that instructions leave it alone that should.
            for before in [false, true] {
                let mut code = Vec::new();
                let registers = [
                    (2, a),
                    (3, &(a >> 32)),
                    (4, b),
                    (5, &(b >> 32)),
                    (8, &OUT),
                    (9, &0),
                    (0, &0),
                    (1, &0),
                ];
                code.extend(registers.iter().flat_map(|(r, v)| literal(*r, **v as u32)));
                // s_cmp_eq_u32 0, 0 or 0, 1
                code.push(if before { 0xbf06_8080 } else { 0xbf06_8180 });
                code.extend(*words);
                code.extend(SAVE);
                let mut machine = Machine::default();
                machine.data(OUT, &[0; 3]);
                Kernel::new(target, &code).run(&mut machine, &[]).unwrap();
                let out = machine.dwords(OUT);
                let value = u64::from(out[0]) | u64::from(out[1]) << 32;
                if let Some(expected) = result {
                    assert_eq!(value, *expected, "{text}");
                }
                assert_eq!(out[2] != 0, scc.unwrap_or(before), "SCC of {text}");
            }
        }
    }
}
