//! Matrix instructions.

use crate::{isa::Inst, wave::Wave};

/// Executes the instruction if it is of this family.
pub(super) fn execute(wave: &mut Wave, inst: &Inst) -> bool {
    let _ = (wave, inst);
    false
}
