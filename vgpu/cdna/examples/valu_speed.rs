//! Prints the time that one wave instruction of each kind takes: `cargo run --release -p cdna --example valu_speed`.

use cdna::{
    Target,
    exec::valu,
    isa::decode,
    wave::{Mode, Wave},
};
use std::{hint::black_box, time::Instant};

/// Machine words and their text.
const INSTRUCTIONS: &[(&str, &[u32])] = &[
    ("v_add_u32 v2, v0, v1", &[0x6804_0300]),
    ("v_mul_lo_u32", &[0xd285_0002, 0x0002_0300]),
    ("v_add_f32 v2, v0, v1", &[0x0204_0300]),
    ("v_fma_f32 v2, v0, v1, v3", &[0xd1cb_0002, 0x040e_0300]),
    ("v_fma_f64 v[2:3], v[0:1], v[4:5], v[6:7]", &[0xd1cc_0002, 0x041a_0900]),
    ("v_pk_fma_f16 v2, v0, v1, v3", &[0xd38e_4002, 0x1c0e_0300]),
    ("v_cmp_lt_f32 vcc, v0, v1", &[0x7c82_0300]),
    ("v_cndmask_b32 v2, v0, v1, vcc", &[0x0004_0300]),
    ("v_add_co_u32 v2, vcc, v0, v1", &[0x3204_0300]),
    (
        "v_mad_u64_u32 v[2:3], s[4:5], v0, v1, v[4:5]",
        &[0xd1e8_0402, 0x0412_0300],
    ),
    ("v_lshlrev_b64 v[2:3], v0, v[4:5]", &[0xd28f_0002, 0x0002_0900]),
    ("v_max_f32 v2, v0, v1", &[0x1604_0300]),
    ("v_rcp_f32 v2, v0", &[0x7e04_4500]),
    ("v_exp_f32 v2, v0", &[0x7e04_4100]),
    ("v_log_f32 v2, v0", &[0x7e04_4300]),
    ("v_sin_f32 v2, v0", &[0x7e04_5300]),
    ("v_cvt_i32_f32 v2, v0", &[0x7e04_1100]),
    ("v_cvt_f16_f32 v2, v0", &[0x7e04_1500]),
    ("v_div_scale_f32 v2, s[4:5], v0, v1, v3", &[0xd1e0_0402, 0x040e_0300]),
    ("v_floor_f32 v2, v0", &[0x7e04_3f00]),
    ("v_mfma_f32_32x32x8f16", &[0xd3cc_0010, 0x0202_0500]),
    ("v_mfma_f32_4x4x1f32", &[0xd3c2_8000, 0x0402_0300]),
];

fn main() {
    for (name, words) in INSTRUCTIONS {
        let inst = decode(Target::Gfx90a, words).expect("decodes");
        for mask in [!0u64, 0x5555_5555_0000_ffff] {
            let mut wave = Wave::new(Target::Gfx90a, 512, 256, 0);
            wave.mode = Mode::COMPILER_DEFAULT;
            wave.set_exec(mask);
            for r in 0..8 {
                *wave.v_mut(r) = std::array::from_fn(|l| (1.5 + l as f32 * 0.37 + f32::from(r)).to_bits());
            }
            // The best of many short runs: other work on the machine only ever adds time.
            let each = (0..100)
                .map(|_| {
                    let start = Instant::now();
                    for _ in 0..100 {
                        let _ = black_box(valu::execute(black_box(&mut wave), black_box(&inst)));
                    }
                    start.elapsed().as_nanos() as f64 / 100.0
                })
                .fold(f64::INFINITY, f64::min);
            println!("{each:8.1} ns  exec {mask:016x}  {name}");
        }
    }
}
