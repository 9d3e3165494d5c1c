//! Contracts a product and the sum that uses it into a fused multiply-add, as NVIDIA's assembler does where neither names
//! a rounding (PTX ISA: "mul/add sequences with no rounding modifiers may be optimized to use fused-multiply-add").

use std::collections::HashMap;

use super::warp_layout::{reads, writes};
use crate::ptx::ast::{Body, Instruction, Operand, RegId, ScalarType, Statement};

/// Marks a fused subtraction: the product or the addend is negated. No PTX can spell it.
pub const NEGATE_PRODUCT: &str = "negate product";
/// See [`NEGATE_PRODUCT`].
pub const NEGATE_ADDEND: &str = "negate addend";

/// Whether `i` is an operation of this kind on f32 or f64 without a rounding modifier.
fn is_free(i: &Instruction<'_>, opcodes: &[&str]) -> bool {
    opcodes.contains(&i.opcode)
        && matches!(i.types().last(), Some(ScalarType::F32 | ScalarType::F64))
        && i.types().count() == 1
        && !["rn", "rz", "rm", "rp"].iter().any(|m| i.has(m))
}

/// The fused instruction for each sum of `body` that can have one.
pub fn fused<'m, 'a>(body: &'m Body<'a>) -> HashMap<*const Instruction<'a>, Instruction<'a>> {
    let mut uses: HashMap<RegId, (u32, u32)> = HashMap::new();
    let instructions = body.statements.iter().filter_map(|s| match s {
        Statement::Instruction(i) => Some(i),
        Statement::Label(_) => None,
    });
    for i in instructions {
        reads(i).iter().for_each(|r| uses.entry(*r).or_default().1 += 1);
        writes(i).iter().for_each(|r| uses.entry(*r).or_default().0 += 1);
    }
    let mut found = HashMap::new();
    // Products of this block whose operands still hold.
    let mut products: HashMap<RegId, &'m Instruction<'a>> = HashMap::new();
    for statement in &body.statements {
        let Statement::Instruction(i) = statement else {
            products.clear();
            continue;
        };
        if is_free(i, &["add", "sub"])
            && let Some(fma) = fuse(i, &products)
        {
            found.insert(std::ptr::from_ref(i), fma);
        }
        let changed = writes(i);
        products.retain(|_, p| !reads(p).iter().any(|r| changed.contains(r)));
        if is_free(i, &["mul"]) && !i.has("sat") && i.predicate.is_none() && i.operands.len() == 3 {
            // A product that is looked at twice stays one.
            if let Operand::Register(r) = i.operands[0]
                && uses.get(&r) == Some(&(1, 1))
            {
                products.insert(r, i);
            }
        }
    }
    found
}

fn fuse<'a>(i: &Instruction<'a>, products: &HashMap<RegId, &Instruction<'a>>) -> Option<Instruction<'a>> {
    let [d, a, b] = i.operands.as_slice() else {
        return None;
    };
    let product = |operand: &Operand<'a>| match operand {
        Operand::Register(r) => products.get(r).copied(),
        _ => None,
    };
    let fits = |p: &&Instruction<'a>| p.has("ftz") == i.has("ftz") && p.types().last() == i.types().last();
    let (p, addend, negate) = if let Some(p) = product(a).filter(fits) {
        (p, b, NEGATE_ADDEND)
    } else {
        (product(b).filter(fits)?, a, NEGATE_PRODUCT)
    };
    let mut fma = i.clone();
    fma.opcode = "fma";
    if i.opcode == "sub" {
        fma.modifiers.insert(0, negate);
    }
    fma.operands = vec![d.clone(), p.operands[1].clone(), p.operands[2].clone(), addend.clone()];
    Some(fma)
}
