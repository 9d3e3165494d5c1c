//! Compares: a bit per lane into an SGPR pair or VCC, and into EXEC for `v_cmpx`.
//!
//! The opcode says in four bits which relations count:
//!
//! ```text
//!  3          2        1      0
//!  unordered  greater  equal  less        nge = 1001: less or unordered
//! ```
//! so the mnemonics are parsed once into these masks instead of being listed one by one. The clamp bit, which asks quiet
//! compares to signal, changes no result.

use super::{b32, f16, f32};
use crate::{
    alu::{F16, F32, F64, Format, compare::class, lanes},
    isa::{Inst, Mnemonic},
    wave::Wave,
};
use std::sync::OnceLock;

/// What the operands are.
#[derive(Clone, Copy)]
enum Ty {
    F16,
    F32,
    F64,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
}

/// A decoded compare mnemonic.
#[derive(Clone, Copy)]
struct Compare {
    ty: Ty,
    /// Which relations count: 1 less, 2 equal, 4 greater, 8 unordered. It is the low opcode nibble. Class tests have none.
    relations: Option<u8>,
    /// `v_cmpx`: EXEC is written too.
    writes_exec: bool,
}

/// The compare that a mnemonic names.
fn parse(name: &str) -> Option<Compare> {
    let (writes_exec, rest) = match name.strip_prefix("v_cmpx_") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix("v_cmp_")?),
    };
    let (relation, ty) = rest.rsplit_once('_')?;
    let ty = match ty {
        "f16" => Ty::F16,
        "f32" => Ty::F32,
        "f64" => Ty::F64,
        "i16" => Ty::I16,
        "u16" => Ty::U16,
        "i32" => Ty::I32,
        "u32" => Ty::U32,
        "i64" => Ty::I64,
        "u64" => Ty::U64,
        _ => return None,
    };
    let relations = match relation {
        "class" => None,
        "f" => Some(0),
        "lt" => Some(1),
        "eq" => Some(2),
        "le" => Some(3),
        "gt" => Some(4),
        "lg" | "ne" => Some(5),
        "ge" => Some(6),
        "o" | "t" => Some(7),
        "u" => Some(8),
        "nge" => Some(9),
        "nlg" => Some(10),
        "ngt" => Some(11),
        "nle" => Some(12),
        "neq" => Some(13),
        "nlt" => Some(14),
        "tru" => Some(15),
        _ => return None,
    };
    Some(Compare {
        ty,
        relations,
        writes_exec,
    })
}

fn table() -> &'static [Option<Compare>] {
    static TABLE: OnceLock<Vec<Option<Compare>>> = OnceLock::new();
    TABLE.get_or_init(|| Mnemonic::all().map(|m| parse(m.name())).collect())
}

/// Executes the instruction if it is of this family.
pub(super) fn execute(wave: &mut Wave, inst: &Inst) -> bool {
    let Some(compare) = table()[inst.mnemonic as usize] else {
        return false;
    };
    let mask = match compare.relations {
        Some(relations) => relate(wave, inst, compare.ty, relations),
        None => classify(wave, inst, compare.ty),
    };
    let mask = mask & wave.exec();
    wave.write_mask(inst.dst, mask);
    if compare.writes_exec {
        wave.set_exec(mask);
    }
    true
}

/// The lanes whose operands stand in one of the wanted relations. Integers are never unordered.
fn relate(wave: &Wave, inst: &Inst, ty: Ty, relations: u8) -> u64 {
    let (mut ba, mut bb) = ([0; 64], [0; 64]);
    match ty {
        Ty::U32 => {
            let (a, b) = (b32(wave, inst, 0, &mut ba), b32(wave, inst, 1, &mut bb));
            ordered(a, b, relations)
        }
        Ty::I32 => {
            let (a, b) = (b32(wave, inst, 0, &mut ba), b32(wave, inst, 1, &mut bb));
            ordered(&a.map(|x| x as i32), &b.map(|x| x as i32), relations)
        }
        Ty::U64 => ordered(&wave.src_b64(inst, 0), &wave.src_b64(inst, 1), relations),
        Ty::I64 => {
            let (a, b) = (wave.src_b64(inst, 0), wave.src_b64(inst, 1));
            ordered(&a.map(|x| x as i64), &b.map(|x| x as i64), relations)
        }
        Ty::U16 => ordered(&wave.src_b16(inst, 0), &wave.src_b16(inst, 1), relations),
        Ty::I16 => {
            let (a, b) = (wave.src_b16(inst, 0), wave.src_b16(inst, 1));
            ordered(&a.map(|x| x as i16), &b.map(|x| x as i16), relations)
        }
        Ty::F32 => {
            let flush = wave.mode.env_f32().flush_in;
            let (a, b) = (f32(wave, inst, 0, &mut ba), f32(wave, inst, 1, &mut bb));
            let value = |x: u32| f32::from_bits(F32::flush(x.into(), flush) as u32);
            floats(&a.map(value), &b.map(value), relations)
        }
        Ty::F64 => {
            let flush = wave.mode.env_f64().flush_in;
            let value = |x: u64| f64::from_bits(F64::flush(x, flush));
            floats(
                &wave.src_f64(inst, 0).map(value),
                &wave.src_f64(inst, 1).map(value),
                relations,
            )
        }
        Ty::F16 => {
            let flush = wave.mode.env_f64().flush_in;
            let value = |x: u32| {
                f32::from_bits(crate::alu::convert::f32_from_f16(
                    F16::flush((x & 0xffff).into(), flush) as u16,
                ))
            };
            floats(
                &f16(wave, inst, 0).map(value),
                &f16(wave, inst, 1).map(value),
                relations,
            )
        }
    }
}

/// One vectorisable loop per relation.
#[inline(always)]
#[allow(clippy::double_comparisons)] // "not equal" would let NaN in
fn ordered<T: Copy + PartialOrd>(a: &[T; 64], b: &[T; 64], relations: u8) -> u64 {
    match relations & 7 {
        0 => 0,
        1 => lanes::mask2(a, b, |x, y| x < y),
        2 => lanes::mask2(a, b, |x, y| x == y),
        3 => lanes::mask2(a, b, |x, y| x <= y),
        4 => lanes::mask2(a, b, |x, y| x > y),
        5 => lanes::mask2(a, b, |x, y| x < y || x > y),
        6 => lanes::mask2(a, b, |x, y| x >= y),
        _ => !0,
    }
}

/// The negated compares are the complements of the ordered ones, unordered lanes included.
#[inline(always)]
fn floats<T: Copy + PartialOrd>(a: &[T; 64], b: &[T; 64], relations: u8) -> u64 {
    match relations {
        15 => !0,
        7 => lanes::mask2(a, b, |x, y| x <= y || x > y),
        r if r & 8 == 0 => ordered(a, b, r),
        8 => !floats(a, b, 7),
        r => !ordered(a, b, !r & 7),
    }
}

/// `v_cmp_class`: the classes wanted are a mask in source 1.
fn classify(wave: &Wave, inst: &Inst, ty: Ty) -> u64 {
    let wanted = wave.src_b32(inst, 1);
    match ty {
        Ty::F16 => lanes::mask2(&f16(wave, inst, 0), &wanted, |x: u32, m| {
            class::<F16>((x & 0xffff).into(), m)
        }),
        Ty::F64 => lanes::mask2(&wave.src_f64(inst, 0), &wanted, class::<F64>),
        _ => lanes::mask2(&wave.src_f32(inst, 0), &wanted, |x: u32, m| class::<F32>(x.into(), m)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_the_opcode_nibbles() {
        for row in crate::isa::rows()
            .iter()
            .filter(|r| r.enc == crate::isa::Encoding::Vopc)
        {
            let compare = parse(row.mnemonic.name()).expect("every VOPC mnemonic is a compare");
            if let Some(relations) = compare.relations {
                let width = if matches!(compare.ty, Ty::F16 | Ty::F32 | Ty::F64) {
                    15
                } else {
                    7
                };
                assert_eq!(u16::from(relations), row.op & width, "{}", row.mnemonic);
            }
        }
    }

    #[test]
    fn float_relations_split_all_lanes() {
        let nan = f32::NAN;
        let a: [f32; 64] = std::array::from_fn(|l| [0.0, 1.0, -1.0, nan][l % 4]);
        let b: [f32; 64] = std::array::from_fn(|l| [-0.0, 2.0, f32::NEG_INFINITY, nan][(l / 4) % 4]);
        for relations in 0..16u8 {
            let want = (0..64).fold(0u64, |m, l| {
                let relation = match a[l].partial_cmp(&b[l]) {
                    Some(std::cmp::Ordering::Less) => 1,
                    Some(std::cmp::Ordering::Equal) => 2,
                    Some(std::cmp::Ordering::Greater) => 4,
                    None => 8,
                };
                m | u64::from(relations & relation != 0) << l
            });
            assert_eq!(floats(&a, &b, relations), want, "{relations}");
        }
    }
}
