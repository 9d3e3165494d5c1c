//! Wave instructions per second of whole dispatches, on one core: `cargo run --release -p cdna --example interpreter_speed`.
//!
//! Prints `NAME<tab>MILLIONS PER SECOND<tab>TARGET` lines, the target being 0 where none is set. `cargo xtask bench interpreter` reads them. Each
//! kernel is one wave that runs a loop of 32 instructions of a kind; the three instructions that make the loop count as well.
//! With an argument, only the kinds whose name contains it are run.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use cdna::Target;
use support::{Kernel, Machine};

const FULL: &str = "";
const PARTIAL: &str = ", 24 lanes of 64";

/// Name, least rate, machine words. Registers: v0 lane, v1 lane * 4, v2 lane * 8, v3 lane * 16, v[4:5] address of the lane's dword,
/// v6 scattered offsets, v[8:11] and v[14:15] numbers, s[2:3] data.
const KINDS: &[(&str, f64, &[u32])] = &[
    ("v_add_u32", 40.0, &[0x6818_1308]),
    ("v_mul_lo_u32", 40.0, &[0xd285_000c, 0x0002_1308]),
    ("v_mad_u32_u24", 40.0, &[0xd1c3_000c, 0x042a_1308]),
    ("v_mad_u64_u32", 0.0, &[0xd1e8_060c, 0x042a_1308]),
    ("v_add_f32", 40.0, &[0x0218_1308]),
    ("v_mul_f32", 40.0, &[0x0a18_1308]),
    ("v_fma_f32", 40.0, &[0xd1cb_000c, 0x042a_1308]),
    ("v_add_f64", 40.0, &[0xd280_000c, 0x0002_1508]),
    ("v_mul_f64", 40.0, &[0xd281_000c, 0x0002_1508]),
    ("v_fma_f64", 40.0, &[0xd1cc_000c, 0x043a_1508]),
    ("v_mov_b32", 0.0, &[0x7e18_0308]),
    ("v_lshl_add_u32", 0.0, &[0xd1fd_000c, 0x0425_0508]),
    ("v_add_co_u32", 0.0, &[0x3218_1308]),
    ("v_cmp_lt_f32", 0.0, &[0x7c82_1308]),
    ("v_cndmask_b32", 0.0, &[0x0018_1308]),
    ("s_add_u32", 0.0, &[0x8006_0706]),
    ("global_load_dword, coalesced", 8.0, &[0xdc50_8000, 0x0c02_0001]),
    ("global_store_dword, coalesced", 8.0, &[0xdc70_8000, 0x0002_0801]),
    (
        "global_load_dword, coalesced, 64-bit addresses",
        8.0,
        &[0xdc50_8000, 0x0c7f_0004],
    ),
    (
        "global_store_dword, coalesced, 64-bit addresses",
        8.0,
        &[0xdc70_8000, 0x007f_0804],
    ),
    ("global_load_dwordx2, coalesced", 8.0, &[0xdc54_8000, 0x0c02_0002]),
    ("global_store_dwordx2, coalesced", 8.0, &[0xdc74_8000, 0x0002_0802]),
    ("global_load_dwordx4, coalesced", 8.0, &[0xdc5c_8000, 0x0c02_0003]),
    ("global_store_dwordx4, coalesced", 8.0, &[0xdc7c_8000, 0x0002_0803]),
    ("flat_load_dword, coalesced", 8.0, &[0xdc50_0000, 0x0c00_0004]),
    ("flat_store_dword, coalesced", 8.0, &[0xdc70_0000, 0x0000_0804]),
    ("global_load_dword, divergent", 3.0, &[0xdc50_8000, 0x0c02_0006]),
    ("global_store_dword, divergent", 3.0, &[0xdc70_8000, 0x0002_0806]),
    ("global_atomic_add, returning", 0.0, &[0xdd09_8000, 0x0c02_0801]),
    ("ds_read_b32", 0.0, &[0xd86c_0000, 0x0c00_0001]),
    ("ds_write_b32", 0.0, &[0xd81a_0000, 0x0000_0801]),
];

/// Sets the registers up, with all lanes.
const PROLOGUE: &[u32] = &[
    0xc006_0080,
    0,           // s_load_dwordx2 s[2:3], s[0:1], 0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0x2402_0082, // v_lshlrev_b32 v1, 2, v0
    0x2404_0083, // v_lshlrev_b32 v2, 3, v0
    0x2406_0084, // v_lshlrev_b32 v3, 4, v0
    0x100c_00ff,
    0xa7, // v_mul_u32_u24 v6, 167, v0
    0x260c_0cff,
    0xff, // v_and_b32 v6, 255, v6
    0x100c_0cff,
    0x1040,      // v_mul_u32_u24 v6, 4160, v6
    0x7e08_0202, // v_mov_b32 v4, s2
    0x7e0a_0203, // v_mov_b32 v5, s3
    0x3208_0304, // v_add_co_u32 v4, vcc, v4, v1
    0x380a_0a80, // v_addc_co_u32 v5, vcc, 0, v5, vcc
    0x7e10_2d00, // v_cvt_f64_u32 v[8:9], v0
    0x7e14_2d01, // v_cvt_f64_u32 v[10:11], v1
    0x7e1c_2d02, // v_cvt_f64_u32 v[14:15], v2
    0x7e06_0303, // v_mov_b32 v3, v3
];
/// s_mov_b32 exec_lo, exec_hi: 16 and 16 of each 32 lanes, then of those 8 in the upper half.
const SOME_LANES: &[u32] = &[0xbefe_00ff, 0x5555_5555, 0xbeff_00ff, 0x0505_0505];
const REPEAT: usize = 32;

/// What this thread has had of a processor: other work on the machine does not count.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn rate(words: &[u32], partial: bool, rounds: u32) -> f64 {
    let mut code = PROLOGUE.to_vec();
    if partial {
        code.extend(SOME_LANES);
    }
    code.extend([0xbe94_00ff, rounds]); // s_mov_b32 s20, rounds
    let start = code.len();
    for _ in 0..REPEAT {
        code.extend(words);
    }
    code.extend([0x8094_8114, 0xbf07_8014]); // s_sub_u32 s20, s20, 1; s_cmp_lg_u32 s20, 0
    let back = start as i32 - (code.len() as i32 + 1);
    code.push(0xbf85_0000 | back as u32 & 0xffff); // s_cbranch_scc1
    let kernel = Kernel {
        lds: 4096,
        ..Kernel::new(Target::Gfx90a, &code)
    };
    (0..15)
        .map(|_| {
            let mut machine = Machine::default();
            let data = machine.data(0x4000_0000, &vec![1; 1 << 19]);
            let begin = processor_time();
            let stats = kernel
                .run(&mut machine, &[data as u32, (data >> 32) as u32])
                .expect("the kernel runs");
            stats.instructions as f64 / (processor_time() - begin).as_secs_f64() / 1e6
        })
        // Other work on the machine only ever takes away.
        .fold(0.0, f64::max)
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (name, target, words) in KINDS.iter().filter(|kind| kind.0.contains(&wanted)) {
        println!("{name}{FULL}\t{:.1}\t{target}", rate(words, false, 3_000));
        if !name.contains("coalesced,") && !name.starts_with("s_") {
            println!("{name}{PARTIAL}\t{:.1}\t0", rate(words, true, 3_000));
        }
    }
}
