//! Vector ALU instructions.

use super::Unsupported;
use crate::{isa::Inst, wave::Wave};

/// Executes one vector ALU instruction (VOP1, VOP2, VOPC, VOP3, VOP3P, MAI and their SDWA and DPP forms), except lane
/// reads and writes.
///
/// # Errors
/// [`Unsupported`] when the instruction is not implemented; the wave is unchanged then.
pub fn execute(wave: &mut Wave, inst: &Inst) -> Result<(), Unsupported> {
    let _ = (wave, inst);
    Err(Unsupported)
}
