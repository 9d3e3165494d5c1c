//! Small kernels, written as instruction words, that check what a wave sees and does.

mod support;

use cdna::{
    Target::{Gfx90a, Gfx942},
    dispatch::Stop,
    memory::{Fault, FaultReason},
};
use support::{KERNARG, Kernel, Machine, with_buffer};

const OUT: u64 = 0x30_0000;

const LANE_IDS: &[u32] = &[
    0x2602_00ff,
    0x0000_03ff, // v_and_b32_e32 v1, 0x3ff, v0
    0xd1c8_0002,
    0x0229_1500, // v_bfe_u32 v2, v0, 10, 10
    0xd1fd_0003,
    0x0409_0403, // v_lshl_add_u32 v3, s3, 2, v2
    0xd1fd_0004,
    0x0405_0602, // v_lshl_add_u32 v4, s2, 3, v1
    0xd1fd_0004,
    0x0411_0903, // v_lshl_add_u32 v4, v3, 4, v4
    0x2408_0882, // v_lshlrev_b32_e32 v4, 2, v4
    0x680a_0081, // v_add_u32_e32 v5, 1, v0
    0xdc70_8000,
    0x0006_0504, // global_store_dword v4, v5, s[6:7]
];

const BARRIER: &[u32] = &[
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x1004_0083, // v_mul_u32_u24_e32 v2, 3, v0
    0xd81a_0000,
    0x0000_0201, // ds_write_b32 v1, v2
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xbf8a_0000, // s_barrier
    0x6a06_02ff,
    0x0000_01fc, // v_sub_u32_e32 v3, 0x1fc, v1
    0xd86c_0000,
    0x0400_0003, // ds_read_b32 v4, v3
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000,
    0x0006_0401, // global_store_dword v1, v4, s[6:7]
];

const WAIT_FOR_NEXT_GROUP: &[u32] = &[
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0x7e04_0281, // v_mov_b32_e32 v2, 1
    0xbf06_8002, // s_cmp_eq_u32 s2, 0
    0xbf84_0006, // s_cbranch_scc0 6
    0xc002_0203,
    0x0000_0000, // s_load_dword s8, s[6:7], 0x0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xbf06_8008, // s_cmp_eq_u32 s8, 0
    0xbf85_fffb, // s_cbranch_scc1 65531
    0xbf81_0000, // s_endpgm
    0xdc70_8000,
    0x0006_0201, // global_store_dword v1, v2, s[6:7]
];

const SCRATCH_MUBUF: &[u32] = &[
    0xc006_0302,
    0x0000_0000, // s_load_dwordx2 s[12:13], s[4:5], 0x0
    0x8000_0900, // s_add_u32 s0, s0, s9
    0x8201_8001, // s_addc_u32 s1, s1, 0
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x6804_0087, // v_add_u32_e32 v2, 7, v0
    0xe070_0008,
    0x8000_0200, // buffer_store_dword v2, off, s[0:3], 0 offset:8
    0xe070_0004,
    0x8000_0000, // buffer_store_dword v0, off, s[0:3], 0 offset:4
    0xbf8c_0f70, // s_waitcnt vmcnt(0)
    0x7e08_0288, // v_mov_b32_e32 v4, 8
    0xe050_1000,
    0x8000_0304, // buffer_load_dword v3, v4, s[0:3], 0 offen
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000,
    0x000c_0301, // global_store_dword v1, v3, s[12:13]
];

const SCRATCH_FLAT: &[u32] = &[
    0xc006_0300,
    0x0000_0000, // s_load_dwordx2 s[12:13], s[0:1], 0x0
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x6804_0087, // v_add_u32_e32 v2, 7, v0
    0xdc70_4008,
    0x007f_0200, // scratch_store_dword off, v2, off offset:8
    0xdc70_4004,
    0x007f_0000, // scratch_store_dword off, v0, off offset:4
    0x7e08_0288, // v_mov_b32_e32 v4, 8
    0xbe8e_01ed, // s_mov_b64 s[14:15], src_private_base
    0x7e0a_020f, // v_mov_b32_e32 v5, s15
    0xdc50_0000,
    0x0300_0004, // flat_load_dword v3, v[4:5]
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000,
    0x000c_0301, // global_store_dword v1, v3, s[12:13]
];

const UNALIGNED_SCRATCH: &[u32] = &[
    0xc006_0300,
    0x0000_0000, // s_load_dwordx2 s[12:13], s[0:1], 0x0
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x7e04_02ff,
    0x4433_2211, // v_mov_b32_e32 v2, 0x44332211
    0x7e06_02ff,
    0x8877_6655, // v_mov_b32_e32 v3, 0x88776655
    0xdc74_4004,
    0x007f_0200, // scratch_store_dwordx2 off, v[2:3], off offset:4
    0xdc50_4006,
    0x037f_0000, // scratch_load_dword v3, off, off offset:6
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000,
    0x000c_0301, // global_store_dword v1, v3, s[12:13]
];

const STORE_UNMAPPED: &[u32] = &[
    0x7e04_02ff,
    0x0000_5000, // v_mov_b32_e32 v2, 0x5000
    0x7e06_0280, // v_mov_b32_e32 v3, 0
    0xdc70_8004,
    0x007f_0002, // global_store_dword v[2:3], v0, off offset:4
];

const STORE_KERNARG: &[u32] = &[
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0xdc70_8000,
    0x0000_0001, // global_store_dword v1, v0, s[0:1]
];

const LDS_PAST_END: &[u32] = &[
    0x7e02_02ff,
    0x0000_0100, // v_mov_b32_e32 v1, 0x100
    0xd86c_0000,
    0x0200_0001, // ds_read_b32 v2, v1
];

const MISALIGNED_ATOMIC: &[u32] = &[
    0x7e02_0282, // v_mov_b32_e32 v1, 2
    0xdd08_8000,
    0x0006_0001, // global_atomic_add v1, v0, s[6:7]
];

const ATOMIC_OLD: &[u32] = &[
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0x7e04_0283, // v_mov_b32_e32 v2, 3
    0xdd09_8000,
    0x0306_0201, // global_atomic_add v3, v1, v2, s[6:7] glc
    0x2408_0082, // v_lshlrev_b32_e32 v4, 2, v0
    0xdc70_8004,
    0x0006_0304, // global_store_dword v4, v3, s[6:7] offset:4
];

const CMPSWAP: &[u32] = &[
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0x7e04_02ff,
    0x0000_0063, // v_mov_b32_e32 v2, 0x63
    0x7e06_0285, // v_mov_b32_e32 v3, 5
    0xdd05_8000,
    0x0406_0201, // global_atomic_cmpswap v4, v1, v[2:3], s[6:7] glc
    0x240a_0082, // v_lshlrev_b32_e32 v5, 2, v0
    0xdc70_8004,
    0x0006_0405, // global_store_dword v5, v4, s[6:7] offset:4
];

const MESSAGES: &[u32] = &[
    0xbefc_00aa, // s_mov_b32 m0, 42
    0xbf90_0001, // s_sendmsg sendmsg(MSG_INTERRUPT)
    0xbf92_0002, // s_trap 2
];

const INDEXED: &[u32] = &[
    0x7e0a_028b, // v_mov_b32_e32 v5, 11
    0x7e0c_0296, // v_mov_b32_e32 v6, 22
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0xbe88_0082, // s_mov_b32 s8, 2
    0xbf11_0108, // s_set_gpr_idx_on s8, gpr_idx(SRC0)
    0x7e04_0304, // v_mov_b32_e32 v2, v4
    0xbf9c_0000, // s_set_gpr_idx_off
    0xdc70_8000,
    0x0006_0201, // global_store_dword v1, v2, s[6:7]
];

const LANES: &[u32] = &[
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x2a04_02ff,
    0x0000_00fc, // v_xor_b32_e32 v2, 0xfc, v1
    0xd87e_0000,
    0x0300_0002, // ds_bpermute_b32 v3, v2, v0
    0xd289_0008,
    0x0001_2300, // v_readlane_b32 s8, v0, 17
    0x6806_0608, // v_add_u32_e32 v3, s8, v3
    0xbe89_00ff,
    0x0000_03e8, // s_mov_b32 s9, 0x3e8
    0xd28a_0003,
    0x0001_0a09, // v_writelane_b32 v3, s9, 5
    0x6806_06fa,
    0xff09_1100, // v_add_u32_dpp v3, v0, v3 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000,
    0x0006_0301, // global_store_dword v1, v3, s[6:7]
];

const PAST_REGISTERS: &[u32] = &[
    0x7e50_0280, // v_mov_b32_e32 v40, 0
];

const SCALAR_MEMORY: &[u32] = &[
    0xc00a_0100,
    0x0000_0000, // s_load_dwordx4 s[4:7], s[0:1], 0x0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xbe88_0004, // s_mov_b32 s8, s4
    0xbe89_0005, // s_mov_b32 s9, s5
    0xbe8a_0088, // s_mov_b32 s10, 8
    0xbe8b_0080, // s_mov_b32 s11, 0
    0xc02a_0304,
    0x0000_0000, // s_buffer_load_dwordx4 s[12:15], s[8:11], 0x0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0x800c_0d0c, // s_add_u32 s12, s12, s13
    0xc042_0302,
    0x0000_0008, // s_store_dword s12, s[4:5], 0x8
    0xc042_0382,
    0x0000_000c, // s_store_dword s14, s[4:5], 0xc
];

const TYPED: &[u32] = &[
    0xc006_0100,
    0x0000_0000, // s_load_dwordx2 s[4:5], s[0:1], 0x0
    0xbe86_0084, // s_mov_b32 s6, 4
    0xbe87_00ff,
    0x0005_0fac, // s_mov_b32 s7, 0x50fac
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0x8705_ff05,
    0x0004_0000, // s_or_b32 s5, s5, 0x40000
    0xbefe_0181, // s_mov_b64 exec, 1
    0x7e02_0281, // v_mov_b32_e32 v1, 1
    0xe00c_2000,
    0x8001_0401, // buffer_load_format_xyzw v[4:7], v1, s[4:7], 0 idxen
    0x7e04_0280, // v_mov_b32_e32 v2, 0
    0x8605_ff05,
    0x0000_ffff, // s_and_b32 s5, s5, 0xffff
    0x2410_0083, // v_lshlrev_b32_e32 v8, 3, v0
    0xbf8c_0f70, // s_waitcnt vmcnt(0)
    0xdc7c_8008,
    0x0004_0408, // global_store_dwordx4 v8, v[4:7], s[4:5] offset:8
];

const PRELOADED: &[u32] = &[
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x7e04_0204, // v_mov_b32_e32 v2, s4
    0xdc70_8000,
    0x0002_0201, // global_store_dword v1, v2, s[2:3]
];

const DS_WIDTHS: &[u32] = &[
    0x2402_0084, // v_lshlrev_b32_e32 v1, 4, v0
    0x7e04_02ff,
    0x8182_f384, // v_mov_b32_e32 v2, 0x8182f384
    0x7e06_02ff,
    0x1122_3344, // v_mov_b32_e32 v3, 0x11223344
    0xd81c_0100,
    0x0003_0201, // ds_write2_b32 v1, v2, v3 offset1:1
    0xd8a8_0008,
    0x0000_0201, // ds_write_b8_d16_hi v1, v2 offset:8
    0xd83e_000a,
    0x0000_0201, // ds_write_b16 v1, v2 offset:10
    0xd83c_0009,
    0x0000_0201, // ds_write_b8 v1, v2 offset:9
    0xd86c_0008,
    0x0400_0001, // ds_read_b32 v4, v1 offset:8
    0xd872_0001,
    0x0500_0001, // ds_read_i8 v5, v1 offset:1
    0xd874_0001,
    0x0600_0001, // ds_read_u8 v6, v1 offset:1
    0xd876_0002,
    0x0700_0001, // ds_read_i16 v7, v1 offset:2
    0xd8b6_0000,
    0x0800_0001, // ds_read_u16_d16_hi v8, v1
    0xd8ec_0002,
    0x0a00_0001, // ds_read_b64 v[10:11], v1 offset:2
    0x2412_0085, // v_lshlrev_b32_e32 v9, 5, v0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc7c_8000,
    0x0006_0409, // global_store_dwordx4 v9, v[4:7], s[6:7]
    0xdc7c_8010,
    0x0006_0809, // global_store_dwordx4 v9, v[8:11], s[6:7] offset:16
];

const DS_COUNTERS: &[u32] = &[
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0x7e04_02ff,
    0x0000_0064, // v_mov_b32_e32 v2, 0x64
    0xd81a_0000,
    0x0000_0201, // ds_write_b32 v1, v2
    0x7e06_0287, // v_mov_b32_e32 v3, 7
    0x7e08_02ff,
    0x0000_0107, // v_mov_b32_e32 v4, 0x107
    0xbefc_0080, // s_mov_b32 m0, 0
    0xbefe_01bf, // s_mov_b64 exec, 63
    0xd97c_0000,
    0x0600_0000, // ds_append v6
    0xbefe_0183, // s_mov_b64 exec, 3
    0xd97a_0000,
    0x0700_0000, // ds_consume v7
    0xbefe_01c1, // s_mov_b64 exec, -1
    0xd86c_0000,
    0x0800_0001, // ds_read_b32 v8, v1
    0xd85a_0000,
    0x0900_0301, // ds_wrxchg_rtn_b32 v9, v1, v3
    0x2414_0084, // v_lshlrev_b32_e32 v10, 4, v0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc7c_8000,
    0x0006_060a, // global_store_dwordx4 v10, v[6:9], s[6:7]
];

const DS_LANES: &[u32] = &[
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x6804_0288, // v_add_u32_e32 v2, 8, v1
    0xd87c_0000,
    0x0400_0002, // ds_permute_b32 v4, v2, v0
    0xd87a_101f,
    0x0500_0000, // ds_swizzle_b32 v5, v0 offset:swizzle(SWAP,4)
    0xd87a_8039,
    0x0600_0000, // ds_swizzle_b32 v6, v0 offset:swizzle(QUAD_PERM,1,2,3,0)
    0xd87a_044d,
    0x0700_0000, // ds_swizzle_b32 v7, v0 offset:swizzle(BITMASK_PERM,"0pp1i")
    0x2412_0084, // v_lshlrev_b32_e32 v9, 4, v0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc7c_8000,
    0x0006_0409, // global_store_dwordx4 v9, v[4:7], s[6:7]
];

const LOAD_LDS_GLOBAL: &[u32] = &[
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0xbefc_00c0, // s_mov_b32 m0, 64
    0xdca0_8004,
    0x0006_0001, // global_load_lds_ushort v1, s[6:7] offset:4
    0xbf8c_0f70, // s_waitcnt vmcnt(0)
    0xd86c_0044,
    0x0200_0001, // ds_read_b32 v2, v1 offset:68
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8200,
    0x0006_0201, // global_store_dword v1, v2, s[6:7] offset:512
];

const LOAD_LDS_BUFFER: &[u32] = &[
    0xc006_0100,
    0x0000_0000, // s_load_dwordx2 s[4:5], s[0:1], 0x0
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0xbe86_00ff,
    0x0000_0080, // s_mov_b32 s6, 0x80
    0xbe87_0080, // s_mov_b32 s7, 0
    0xbefc_00c0, // s_mov_b32 m0, 64
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xe051_1004,
    0x8001_0001, // buffer_load_dword v1, s[4:7], 0 offen offset:4 lds
    0xbf8c_0f70, // s_waitcnt vmcnt(0)
    0xd86c_0044,
    0x0200_0001, // ds_read_b32 v2, v1 offset:68
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8200,
    0x0004_0201, // global_store_dword v1, v2, s[4:5] offset:512
];

const TWO_REGIONS: &[u32] = &[
    0xc006_0100,
    0x0000_0000, // s_load_dwordx2 s[4:5], s[0:1], 0x0
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0x2408_0083, // v_lshlrev_b32_e32 v4, 3, v0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc54_80fc,
    0x0204_0001, // global_load_dwordx2 v[2:3], v1, s[4:5] offset:252
    0xbf8c_0f70, // s_waitcnt vmcnt(0)
    0xbefe_0181, // s_mov_b64 exec, 1
    0xdc74_8000,
    0x0004_0201, // global_store_dwordx2 v1, v[2:3], s[4:5]
    0x7e04_02ff,
    0x1122_3344, // v_mov_b32_e32 v2, 0x11223344
    0x7e06_02ff,
    0x5566_7788, // v_mov_b32_e32 v3, 0x55667788
    0xdc74_80fe,
    0x0004_0201, // global_store_dwordx2 v1, v[2:3], s[4:5] offset:254
];

/// Runs a kernel whose first argument is the address of a buffer; returns the buffer.
fn run(kernel: &Kernel, buffer: &[u32]) -> Result<Vec<u32>, Stop> {
    let mut machine = Machine::default();
    machine.data(OUT, buffer);
    kernel.run(&mut machine, &[OUT as u32, 0, 0, 0])?;
    Ok(machine.dwords(OUT))
}

fn both(code: &[u32]) -> [Kernel; 2] {
    [Kernel::new(Gfx90a, code), Kernel::new(Gfx942, code)]
}

#[test]
fn partial_work_groups_run_only_their_items() {
    // Groups of 8 x 4, a grid of 12 x 6: two by two groups, the outer ones smaller. The kernel writes its packed item
    // id plus 1 at (group y * 4 + y) * 16 + group x * 8 + x.
    for mut kernel in both(&with_buffer(&[LANE_IDS])) {
        kernel.size = [8, 4, 1];
        kernel.grid = [12, 6, 1];
        let out = run(&kernel, &[0; 128]).unwrap();
        for (i, v) in out.iter().enumerate() {
            let (x, y) = (i as u32 % 16, i as u32 / 16);
            let expected = if x < 12 && y < 6 {
                1 + (x % 8) + ((y % 4) << 10)
            } else {
                0
            };
            assert_eq!(*v, expected, "x {x} y {y}");
        }
    }
}

#[test]
fn kernel_arguments_arrive_in_sgprs_when_asked_for() {
    for target in [Gfx90a, Gfx942] {
        // Code for command processors that cannot preload comes first; here it traps, as LLVM's does.
        let mut code = vec![0xbf92_0002; 64];
        code.extend(PRELOADED);
        let mut kernel = Kernel::new(target, &code);
        kernel.preload = 3;
        let mut machine = Machine::default();
        machine.data(OUT, &[0; 64]);
        kernel.run(&mut machine, &[OUT as u32, 0, 55]).unwrap();
        assert_eq!(machine.dwords(OUT), [55; 64]);
    }
}

#[test]
fn waves_meet_at_the_barrier() {
    for mut kernel in both(&with_buffer(&[BARRIER])) {
        kernel.size = [128, 1, 1];
        kernel.grid = [128, 1, 1];
        kernel.lds = 512;
        let out = run(&kernel, &[0; 128]).unwrap();
        let expected: Vec<u32> = (0..128).map(|i| 3 * (127 - i)).collect();
        assert_eq!(out, expected, "each wave reads what the other wrote");
    }
}

#[test]
fn a_work_group_may_wait_for_a_later_one() {
    for mut kernel in both(&with_buffer(&[WAIT_FOR_NEXT_GROUP])) {
        kernel.grid = [128, 1, 1];
        assert_eq!(run(&kernel, &[0]).unwrap(), [1]);
    }
}

#[test]
fn scratch_is_private_to_the_lane() {
    for (target, code) in [(Gfx90a, SCRATCH_MUBUF), (Gfx942, SCRATCH_FLAT)] {
        let mut kernel = Kernel::new(target, code);
        kernel.scratch = 16;
        let out = run(&kernel, &[0; 64]).unwrap();
        assert_eq!(out, (7..71).collect::<Vec<u32>>(), "{target:?}");
    }
}

#[test]
fn unaligned_scratch_crosses_the_swizzle() {
    let mut kernel = Kernel::new(Gfx942, UNALIGNED_SCRATCH);
    kernel.scratch = 16;
    assert_eq!(run(&kernel, &[0; 64]).unwrap(), [0x6655_4433; 64]);
}

#[test]
fn scratch_past_the_allocation_faults() {
    let mut kernel = Kernel::new(Gfx942, SCRATCH_FLAT);
    kernel.scratch = 0;
    assert!(matches!(run(&kernel, &[0; 64]), Err(Stop::MemoryFault { .. })));
}

fn message(code: &[u32]) -> (Stop, String) {
    let mut kernel = Kernel::new(Gfx90a, code);
    kernel.lds = 256;
    let stop = run(&kernel, &[0; 80]).unwrap_err();
    let text = match &stop {
        Stop::MemoryFault { message, .. } | Stop::IllegalInstruction { message, .. } => message.clone(),
        other => format!("{other:?}"),
    };
    (stop, text)
}

#[test]
fn a_store_to_nowhere_names_instruction_address_and_kernel() {
    let (stop, text) = message(STORE_UNMAPPED);
    let expected = Fault {
        va: 0x5004,
        reason: FaultReason::NotPresent,
    };
    assert!(
        matches!(stop, Stop::MemoryFault { fault, .. } if fault == expected),
        "{text}"
    );
    for part in [
        "global_store_dword v[2:3], v0, off offset:4",
        "0x5004",
        "kernel object 0x100000",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn read_only_memory_refuses_stores() {
    let (stop, text) = message(STORE_KERNARG);
    let expected = Fault {
        va: KERNARG,
        reason: FaultReason::ReadOnly,
    };
    assert!(
        matches!(stop, Stop::MemoryFault { fault, .. } if fault == expected),
        "{text}"
    );
    assert!(text.contains("read-only"), "{text}");
}

#[test]
fn lds_ends_where_the_dispatch_said() {
    let (stop, text) = message(LDS_PAST_END);
    assert!(
        matches!(stop, Stop::MemoryFault { .. }) && text.contains("LDS"),
        "{text}"
    );
}

#[test]
fn undefined_results_stop() {
    let (stop, text) = message(&with_buffer(&[MISALIGNED_ATOMIC]));
    assert!(
        matches!(stop, Stop::MemoryFault { fault, .. } if fault.reason == FaultReason::Misaligned),
        "{text}"
    );
    assert!(
        text.contains("misaligned atomic") && text.contains("wave 0 of work-group [0, 0, 0]"),
        "{text}"
    );
    assert!(message(PAST_REGISTERS).1.contains("v40 is past the 32 registers"));
    let (stop, text) = message(&[0x7e00_02fe]);
    assert!(matches!(stop, Stop::IllegalInstruction { .. }), "{text}");
    assert!(text.contains("7e0002fe"), "reserved source 254: {text}");
    let (stop, text) = message(&[0xffff_ffff]);
    assert!(
        matches!(stop, Stop::IllegalInstruction { .. }) && text.contains("no instruction"),
        "{text}"
    );
}

#[test]
fn atomics_return_each_old_value_once() {
    for kernel in both(&with_buffer(&[ATOMIC_OLD])) {
        let out = run(&kernel, &[0; 65]).unwrap();
        assert_eq!(out[0], 3 * 64);
        let mut old = out[1..].to_vec();
        old.sort_unstable();
        assert_eq!(old, (0..64).map(|i| 3 * i).collect::<Vec<u32>>());
    }
}

#[test]
fn compare_and_swap_takes_new_value_then_comparand() {
    for kernel in both(&with_buffer(&[CMPSWAP])) {
        let mut buffer = [0; 65];
        buffer[0] = 5;
        let out = run(&kernel, &buffer).unwrap();
        assert_eq!(out[0], 99);
        assert_eq!(out.iter().filter(|v| **v == 5).count(), 1, "one lane saw the old value");
        assert_eq!(out[1..].iter().filter(|v| **v == 99).count(), 63);
    }
}

#[test]
fn messages_and_traps_reach_the_host() {
    for target in [Gfx90a, Gfx942] {
        let mut machine = Machine::default();
        let stop = Kernel::new(target, MESSAGES).run(&mut machine, &[]).unwrap_err();
        assert!(matches!(stop, Stop::Trap { id: 2, .. }), "{stop:?}");
        assert_eq!(*machine.interrupts.lock().unwrap(), [42]);
    }
}

#[test]
fn vgpr_indexing_adds_m0_to_enabled_operands() {
    for kernel in both(&with_buffer(&[INDEXED])) {
        assert_eq!(
            run(&kernel, &[0; 64]).unwrap(),
            [22; 64],
            "v_mov_b32 v2, v4 with index 2 reads v6"
        );
    }
}

#[test]
fn lanes_exchange_values() {
    for kernel in both(&with_buffer(&[LANES])) {
        let out = run(&kernel, &[0; 64]).unwrap();
        for (lane, v) in out.iter().enumerate() {
            let lane = lane as u32;
            let reversed = if lane == 5 { 1000 } else { 17 + 63 - lane };
            let shifted = if lane.is_multiple_of(16) { 0 } else { lane - 1 };
            assert_eq!(*v, reversed + shifted, "lane {lane}");
        }
    }
}

#[test]
fn scalar_buffer_loads_stop_at_the_end() {
    // The resource has eight bytes: the third and fourth dwords read 0.
    for kernel in both(SCALAR_MEMORY) {
        assert_eq!(run(&kernel, &[3, 4, 77, 78]).unwrap(), [3, 4, 7, 0]);
    }
}

#[test]
fn typed_loads_convert() {
    for kernel in both(TYPED) {
        let out = run(&kernel, &[0, 0xff00_80ff, 0, 0, 0, 0]).unwrap();
        let expected = [1.0, 128.0 / 255.0, 0.0, 1.0f32].map(f32::to_bits);
        assert_eq!(out[2..6], expected);
    }
}

#[test]
fn the_packet_and_descriptor_are_checked() {
    let refused = |change: &dyn Fn(&mut Kernel)| {
        let mut kernel = Kernel::new(Gfx90a, &[]);
        change(&mut kernel);
        matches!(kernel.run(&mut Machine::default(), &[0]), Err(Stop::InvalidDispatch(_)))
    };
    assert!(refused(&|k| k.size = [2048, 1, 1]));
    assert!(refused(&|k| k.size = [0, 1, 1]));
    assert!(refused(&|k| k.grid = [0, 1, 1]));
    assert!(refused(&|k| k.lds = 65537));
    assert!(!refused(&|_| {}));
}

fn with_lds(target: cdna::Target, code: &[u32]) -> Kernel {
    Kernel {
        lds: 1024,
        ..Kernel::new(target, code)
    }
}

#[test]
fn lds_accesses_of_all_widths() {
    for target in [Gfx90a, Gfx942] {
        let out = run(&with_lds(target, &with_buffer(&[DS_WIDTHS])), &[0; 512]).unwrap();
        for lane in out.chunks(8) {
            let expected = [0xf384_8482, 0xffff_fff3, 0xf3, 0xffff_8182, 0xf384_0000];
            assert_eq!(lane[..5], expected, "{target:?}");
            assert_eq!(lane[6..], [0x3344_8182, 0x8482_1122], "an unaligned pair");
        }
    }
}

#[test]
fn lds_counters_add_the_active_lanes() {
    for target in [Gfx90a, Gfx942] {
        let out = run(&with_lds(target, &with_buffer(&[DS_COUNTERS])), &[0; 256]).unwrap();
        let lanes: Vec<&[u32]> = out.chunks(4).collect();
        // Six lanes append, two consume; all active lanes get the old value.
        assert_eq!((lanes[0][0], lanes[5][0]), (100, 100));
        assert_eq!((lanes[0][1], lanes[1][1]), (106, 106));
        assert!(lanes.iter().all(|l| l[2] == 104));
        // Exchanges happen lane by lane: the first gets the counter, the others what the lane before wrote.
        assert_eq!((lanes[0][3], lanes[1][3], lanes[63][3]), (104, 7, 7));
    }
}

#[test]
fn lds_hardware_moves_values_between_lanes() {
    for target in [Gfx90a, Gfx942] {
        let out = run(&with_lds(target, &with_buffer(&[DS_LANES])), &[0; 256]).unwrap();
        for (lane, values) in out.chunks(4).enumerate() {
            let lane = lane as u32;
            let pattern = lane & 32 | lane & 0b01100 | 0b00010 | !lane & 1;
            let quad = lane & !3 | (lane + 1) & 3;
            assert_eq!(values, [(lane + 62) % 64, lane ^ 4, quad, pattern], "lane {lane}");
        }
    }
}

#[test]
fn loads_into_lds_go_to_m0_plus_offset() {
    // The offset counts on both sides: memory at base + offset, LDS at M0 + offset + 4 * lane.
    let buffer: Vec<u32> = (0..256).map(|i| 0x8000_8000 + i).collect();
    let out = run(&with_lds(Gfx942, &with_buffer(&[LOAD_LDS_GLOBAL])), &buffer).unwrap();
    assert_eq!(
        out[128..192],
        (1..65).map(|i| 0x8000 + i).collect::<Vec<u32>>(),
        "halves, zero-extended"
    );
    // The buffer has 128 bytes; loads past it give 0.
    let out = run(&with_lds(Gfx90a, LOAD_LDS_BUFFER), &buffer).unwrap();
    let expected: Vec<u32> = (1..65).map(|i| if i < 32 { 0x8000_8000 + i } else { 0 }).collect();
    assert_eq!(out[128..192], expected);
}

#[test]
fn accesses_may_span_two_mappings() {
    let mut machine = Machine::default();
    machine.data(OUT, &[7; 64]);
    machine.data(OUT + 256, &[8; 64]);
    Kernel::new(Gfx90a, TWO_REGIONS)
        .run(&mut machine, &[OUT as u32, 0])
        .unwrap();
    let (low, high) = (machine.dwords(OUT), machine.dwords(OUT + 256));
    assert_eq!(low[..2], [7, 8], "loaded across the border");
    assert_eq!(
        (low[63], high[0], high[1]),
        (0x3344_0007, 0x7788_1122, 0x0000_5566),
        "stored across it"
    );
}
