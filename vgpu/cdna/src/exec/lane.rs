//! Lane reads and writes: `v_readlane`, `v_writelane`, `v_readfirstlane`.

use super::Unsupported;
use crate::{
    isa::{Inst, Mnemonic as M, Operand},
    wave::Wave,
};

/// Executes one lane instruction. The lane number is taken modulo 64 and EXEC is ignored, except that
/// `v_readfirstlane` reads the first active lane (lane 0 when none is active).
///
/// # Errors
/// [`Unsupported`] for any other instruction.
pub fn execute(wave: &mut Wave, inst: &Inst) -> Result<(), Unsupported> {
    match inst.mnemonic {
        M::v_readfirstlane_b32 => {
            let exec = wave.exec();
            let lane = if exec == 0 { 0 } else { exec.trailing_zeros() as usize };
            let value = wave.lanes32(inst.src[0])[lane];
            wave.set_scalar32(inst.dst, value);
        }
        M::v_readlane_b32 => {
            let lane = wave.scalar32(inst.src[1]) as usize & 63;
            let value = wave.lanes32(inst.src[0])[lane];
            wave.set_scalar32(inst.dst, value);
        }
        M::v_writelane_b32 => {
            let lane = wave.scalar32(inst.src[1]) as usize & 63;
            let value = wave.scalar32(inst.src[0]);
            let Operand::Vgpr(dst) = inst.dst else {
                return Err(Unsupported);
            };
            wave.v_mut(dst)[lane] = value;
        }
        _ => return Err(Unsupported),
    }
    Ok(())
}
