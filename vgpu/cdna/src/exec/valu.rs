//! Vector ALU instructions.
//!
//! One match on the mnemonic per wave instruction, in the file of its family; under each arm a loop over 64 lanes that
//! the compiler can vectorise. Sources come from, and results go through, [`super::operands`].
//!
//! | file | instructions |
//! |---|---|
//! | `integer` | moves, logic, shifts, integer arithmetic of 16, 32 and 64 bits, carries, byte sums |
//! | `float32`, `float64`, `float16` | arithmetic of one format, packed f32 included |
//! | `compare` | VOPC: compares and class tests |
//! | `convert` | between formats and integers, packing, the 8-bit floats of gfx942 |
//! | `packed` | VOP3P: packed 16-bit operations, dot products, mixed precision |
//! | `matrix` | `v_mfma`, `v_smfmac` |
//!
//! Rules that hold throughout, where the guides leave room:
//!
//! - Sixteen-bit results clear the high half, except those of `v_fma_f16`, `v_mad_f16`, `v_mad_u16`, `v_mad_i16` and
//!   `v_div_fixup_f16`, which keep it, as the compiler's own table of such instructions has it.
//! - `v_mad` and `v_mac` of f32 and f16 flush denormals whatever MODE says; their product is rounded.
//! - Conversions round as MODE says for the format of the result.
//! - Integer clamp saturates; float clamp and output modifiers are in [`crate::alu::format`].

mod compare;
mod convert;
mod float16;
mod float32;
mod float64;
mod integer;
mod matrix;
mod packed;

use super::Unsupported;
use crate::{
    alu::{Env, F16, F32, F64, format},
    isa::{Inst, Lanes, Mnemonic, Operand},
    wave::{V32, V64, Wave},
};
use std::sync::atomic::{AtomicU8, Ordering};

/// Executes one vector ALU instruction (VOP1, VOP2, VOPC, VOP3, VOP3P, MAI and their SDWA and DPP forms), except lane
/// reads and writes.
///
/// # Errors
/// [`Unsupported`] when the instruction is not implemented; the wave is unchanged then.
pub fn execute(wave: &mut Wave, inst: &Inst) -> Result<(), Unsupported> {
    let family = &FAMILY_OF[inst.mnemonic as usize];
    let known = family.load(Ordering::Relaxed);
    if known != 0 {
        return if FAMILIES[usize::from(known) - 1](wave, inst) {
            Ok(())
        } else {
            Err(Unsupported)
        };
    }
    for (i, execute) in FAMILIES.iter().enumerate() {
        if execute(wave, inst) {
            family.store(i as u8 + 1, Ordering::Relaxed);
            return Ok(());
        }
    }
    Err(Unsupported)
}

/// Executes the instruction and returns true if its mnemonic belongs to the family; else leaves the wave alone.
type Family = fn(&mut Wave, &Inst) -> bool;

/// Every family. A mnemonic belongs to one only.
static FAMILIES: [Family; 18] = [
    integer::words,
    integer::carries,
    integer::halves,
    integer::pairs,
    integer::moves,
    float32::execute,
    float64::execute,
    float16::execute,
    compare::execute,
    convert::to_float,
    convert::to_integer,
    convert::pack,
    convert::fp8,
    packed::integers,
    packed::floats,
    packed::dots,
    packed::mixed,
    matrix::execute,
];

/// The family of each mnemonic, counted from one; zero until its first execution has found it. Threads that race store the
/// same value.
static FAMILY_OF: [AtomicU8; Mnemonic::COUNT] = [const { AtomicU8::new(0) }; Mnemonic::COUNT];

/// Source `n` as raw 32 bits: the register itself where it needs no work, else gathered into `buffer`.
#[inline]
fn b32<'a>(wave: &'a Wave, inst: &Inst, n: usize, buffer: &'a mut V32) -> &'a V32 {
    match (inst.src[n], &inst.lanes) {
        (Operand::Vgpr(r), Lanes::Plain) => wave.v(r),
        (Operand::None, _) => buffer,
        _ => {
            *buffer = wave.src_b32(inst, n);
            buffer
        }
    }
}

/// Source `n` as f32 with its modifiers applied.
#[inline]
fn f32<'a>(wave: &'a Wave, inst: &Inst, n: usize, buffer: &'a mut V32) -> &'a V32 {
    if (inst.mods.abs | inst.mods.neg) >> n & 1 == 0 {
        return b32(wave, inst, n, buffer);
    }
    *buffer = wave.src_f32(inst, n);
    buffer
}

/// Source `n` as f64 with its modifiers applied; zeros where the form has no such source.
#[inline]
fn f64(wave: &Wave, inst: &Inst, n: usize) -> V64 {
    if inst.src[n] == Operand::None {
        [0; 64]
    } else {
        wave.src_f64(inst, n)
    }
}

/// Source `n` as f16 with its modifiers applied; zeros where the form has no such source.
#[inline]
fn f16(wave: &Wave, inst: &Inst, n: usize) -> V32 {
    if inst.src[n] == Operand::None {
        [0; 64]
    } else {
        wave.src_f16(inst, n)
    }
}

/// Applies output modifier and clamp to f32 results and writes them.
#[inline]
fn write_f32(wave: &mut Wave, inst: &Inst, mut out: V32, env: &Env) {
    if inst.mods.clamp || inst.mods.omod != 0 {
        let dx10 = wave.mode.dx10_clamp();
        for v in &mut out {
            *v = format::modify_output::<F32>((*v).into(), inst.mods.omod.into(), inst.mods.clamp, dx10, env) as u32;
        }
    }
    wave.write_b32(inst, &out);
}

/// Applies output modifier and clamp to f64 results and writes them.
#[inline]
fn write_f64(wave: &mut Wave, inst: &Inst, mut out: V64, env: &Env) {
    if inst.mods.clamp || inst.mods.omod != 0 {
        let dx10 = wave.mode.dx10_clamp();
        for v in &mut out {
            *v = format::modify_output::<F64>(*v, inst.mods.omod.into(), inst.mods.clamp, dx10, env);
        }
    }
    wave.write_b64(inst, &out);
}

/// Applies output modifier and clamp to f16 results and writes them; `keep_high` as in [`Wave::write_b16`].
#[inline]
fn write_f16(wave: &mut Wave, inst: &Inst, mut out: V32, env: &Env, keep_high: bool) {
    if inst.mods.clamp || inst.mods.omod != 0 {
        let dx10 = wave.mode.dx10_clamp();
        for v in &mut out {
            let low = u64::from(*v & 0xffff);
            *v = format::modify_output::<F16>(low, inst.mods.omod.into(), inst.mods.clamp, dx10, env) as u32;
        }
    }
    wave.write_b16(inst, &out, keep_high);
}

#[cfg(test)]
mod sequences;
#[cfg(test)]
mod tests;
