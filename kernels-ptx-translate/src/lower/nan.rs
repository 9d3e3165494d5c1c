//! Postpones the canonical NaN.
//!
//! NVIDIA's f32, f16 and bf16 arithmetic gives one NaN, 0x7fffffff (0x7fff); AMD's passes a payload on. Correcting each
//! result would cost two instructions each, so a register that only arithmetic writes keeps the hardware's NaN and is
//! corrected where its bits can be seen: stored, moved, selected, taken as an integer. Arithmetic cannot tell NaNs apart.

use std::collections::HashMap;

use super::emit::Float;
use super::warp_layout::writes;
use crate::ptx::ast::{Body, Instruction, Operand, RegId, Statement};

/// The scalar floating-point type whose canonical NaN the instruction's result may be.
fn arithmetic(i: &Instruction<'_>) -> Option<Float> {
    let known = matches!(
        i.opcode,
        "add"
            | "sub"
            | "mul"
            | "fma"
            | "mad"
            | "div"
            | "rcp"
            | "sqrt"
            | "rsqrt"
            | "sin"
            | "cos"
            | "lg2"
            | "ex2"
            | "tanh"
    );
    let float = Float::of(i.types().last()?)?;
    (known && float != Float::F64 && matches!(i.operands.first(), Some(Operand::Register(_)))).then_some(float)
}

/// Registers of `body` that are written by arithmetic of one type only.
pub fn deferred(body: &Body<'_>) -> HashMap<RegId, Float> {
    let mut found: HashMap<RegId, Option<Float>> = HashMap::new();
    for statement in &body.statements {
        let Statement::Instruction(i) = statement else { continue };
        let kind = arithmetic(i);
        for r in writes(i) {
            let kind = kind.filter(|f| f.bits() == body.register(r).ty.bits());
            found
                .entry(r)
                .and_modify(|k| *k = k.filter(|_| *k == kind))
                .or_insert(kind);
        }
    }
    found.into_iter().filter_map(|(r, k)| Some((r, k?))).collect()
}
