//! Fast forms against the definition of each instruction, register for register.

use std::collections::HashSet;

use super::*;
use crate::{
    Target,
    alu::{features::testing::at_every_level, testing::Lcg},
    isa::{Encoding, decode, rows},
    wave::{Mode, Wave},
};

fn all() -> Vec<M> {
    let all = [words::ALL, compares::ALL, carries::ALL, pairs::ALL].concat();
    #[cfg(target_arch = "x86_64")]
    let all = [&all, doubles::ALL].concat();
    all
}

/// A wave with numbers of all kinds in its registers.
fn wave(rng: &mut Lcg, mode: u32) -> Wave {
    let mut wave = Wave::new(Target::Gfx90a, 512, 256, 0);
    wave.mode = Mode(mode);
    for s in &mut wave.sgpr {
        *s = rng.f32();
    }
    wave.set_exec(match rng.u32() % 4 {
        0 | 1 => !0,
        2 => rng.u64() & rng.u64(),
        _ => rng.u64() % 3,
    });
    for r in 0..10 {
        // Some registers hold halves of doubles, and few hold no NaN.
        let kind = rng.u32() % 4;
        *wave.v_mut(r) = std::array::from_fn(|_| match kind {
            0 => rng.f32(),
            1 => (rng.f64() >> 32) as u32,
            2 => (f32::from(rng.u32() as u16) - 1000.0).to_bits(),
            _ => rng.u32() % 70,
        });
        *wave.v_mut(256 + r) = *wave.v(r);
    }
    wave
}

/// Registers close together, so that sources and destinations meet.
fn few(operand: &mut Operand) {
    if let Operand::Vgpr(n) = operand {
        *n = *n % 8 + (*n & 256);
    }
}

#[test]
fn fast_forms_do_what_the_definition_says() {
    at_every_level("fast forms", fast_forms_equal_the_definition);
}

fn fast_forms_equal_the_definition(level: Level) {
    let mut rng = Lcg::new(81);
    let mut seen = HashSet::new();
    let wanted: HashSet<M> = all().into_iter().collect();
    for row in rows() {
        if !wanted.contains(&row.mnemonic) {
            continue;
        }
        let target = if row.gfx90a { Target::Gfx90a } else { Target::Gfx942 };
        for _ in 0..200 {
            let word = row.value | rng.u64() & !row.mask;
            let words = [word as u32, (word >> 32) as u32, rng.f32()];
            let Ok(mut inst) = decode(target, &words) else { continue };
            few(&mut inst.dst);
            inst.src.iter_mut().for_each(few);
            if rng.u32().is_multiple_of(2) {
                inst.mods.clamp = false;
                inst.mods.omod = 0;
                inst.mods.op_sel = 0;
            }
            let Some(fast) = resolve(&inst, 512, 256) else { continue };
            let modes = [0x3f0, 0xf0, 0x3c0, 0x30, 0x3f5, 0x3f0];
            let mode = modes[rng.u32() as usize % modes.len()];
            let before = wave(&mut rng, mode);
            let mut want = before.clone();
            valu::execute(&mut want, &inst).unwrap_or_else(|_| panic!("{inst} is defined"));
            let mut got = before.clone();
            // SAFETY: 512 registers, AGPRs from 256.
            if !unsafe { fast.execute(&mut got, &inst) } {
                continue;
            }
            seen.insert(inst.mnemonic);
            assert_eq!(got.sgpr, want.sgpr, "{inst}, {level:?}");
            for r in 0..512 {
                let exec = before.exec();
                assert_eq!(got.v(r), want.v(r), "register {r} of {inst}, {level:?}, exec {exec:x}");
            }
        }
    }
    let missing: Vec<_> = wanted.difference(&seen).collect();
    assert!(missing.is_empty(), "never tried: {missing:?}");
}

#[test]
fn what_has_no_fast_form_is_left_to_the_definition() {
    for (words, why) in [
        (&[0xd101_8002u32, 0x0002_0300][..], "clamp"),
        (&[0x0204_02f9, 0x0606_0600], "SDWA"),
        (&[0x6804_02fa, 0xff00_e400], "DPP"),
        (&[0x7e04_02fd], "SCC as a source"),
    ] {
        let inst = decode(Target::Gfx90a, words).expect("decodes");
        assert!(resolve(&inst, 512, 256).is_none(), "{inst}: {why}");
    }
    let inst = decode(Target::Gfx90a, &[0x6804_0300]).expect("decodes");
    assert!(resolve(&inst, 2, 2).is_none(), "v2 of two registers");
    assert_eq!(inst.enc, Encoding::Vop2);
}
