//! Matrix instructions: `v_mfma` and the sparse `v_smfmac`. EXEC is ignored, all 64 lanes take part.
//!
//! Where the elements are (AMD's matrix instruction calculator; e is the number of elements that a lane holds):
//!
//! ```text
//! A[i][k] of a block    lane i + M * (block + blocks * (k / e)), element k % e      B[k][j] likewise, with j and N
//! D[i][j]   M = 32      lane j + 32 * (i / 4 % 2)   register 16 * block + 4 * (i / 8) + i % 4
//!           M = 16      lane j + 16 * (i / 4)       register  4 * block + i % 4
//!           M = 4       lane j +  4 * block         register i
//!           f64 16x16   lane j + 16 * (i % 4)       pair i / 4
//!           f64 4x4     lane j + 4 * block + 16 * i
//! ```
//! Denormals: kept, except that gfx90a flushes those of f16 and bf16 operands, and f32 ones of C and D beside them (AMD's
//! account to users of its frameworks).

use crate::{
    Target,
    alu::{
        F16, F32, Format, convert,
        fp8::{self, Kind},
        matrix::{Element, Shape, Term, multiply},
    },
    isa::{Inst, Mnemonic, Operand},
    wave::Wave,
};
use std::sync::OnceLock;

/// Element type of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    F32,
    /// f32 with the significand rounded to ten bits.
    Xf32,
    F16,
    Bf16,
    Fp8,
    Bf8,
    I8,
    F64,
}

impl Ty {
    fn parse(name: &str) -> Option<Ty> {
        Some(match name {
            "f32" => Ty::F32,
            "xf32" => Ty::Xf32,
            "f16" => Ty::F16,
            "bf16" | "bf16_1k" => Ty::Bf16,
            "fp8" => Ty::Fp8,
            "bf8" => Ty::Bf8,
            "i8" => Ty::I8,
            "f64" => Ty::F64,
            _ => return None,
        })
    }

    const fn bits(self) -> usize {
        match self {
            Ty::F64 => 64,
            Ty::F32 | Ty::Xf32 => 32,
            Ty::F16 | Ty::Bf16 => 16,
            Ty::Fp8 | Ty::Bf8 | Ty::I8 => 8,
        }
    }
}

/// A decoded matrix mnemonic.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    a: Ty,
    b: Ty,
    sparse: bool,
    shape: Shape,
}

/// `v_mfma_f32_32x32x1_2b_f32`, `v_mfma_f32_16x16x4bf16_1k`, `v_smfmac_f32_16x16x64_fp8_bf8` ...
fn parse(name: &str) -> Option<Matrix> {
    let (sparse, rest) = match name.strip_prefix("v_smfmac_") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix("v_mfma_")?),
    };
    let (_, rest) = rest.split_once('_')?;
    let mut sizes = rest.splitn(3, 'x');
    let m: usize = sizes.next()?.parse().ok()?;
    let n: usize = sizes.next()?.parse().ok()?;
    let rest = sizes.next()?;
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let k: usize = rest[..digits].parse().ok()?;
    let mut types = rest[digits..].trim_start_matches('_');
    if let Some((blocks, after)) = types.split_once("b_")
        && blocks.parse::<usize>().is_ok()
    {
        types = after;
    }
    let (a, b) = match Ty::parse(types) {
        Some(ty) => (ty, ty),
        None => {
            let (a, b) = types.split_once('_')?;
            (Ty::parse(a)?, Ty::parse(b)?)
        }
    };
    let terms = if sparse { k / 2 } else { k };
    Some(Matrix {
        a,
        b,
        sparse,
        shape: Shape {
            m,
            n,
            k,
            blocks: 1,
            terms,
        },
    })
}

/// The matrix instruction of each mnemonic, with its number of blocks, which the width of the destination tells.
fn table() -> &'static [Option<Matrix>] {
    static TABLE: OnceLock<Vec<Option<Matrix>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: Vec<Option<Matrix>> = Mnemonic::all().map(|m| parse(m.name())).collect();
        for row in crate::isa::rows() {
            if let (Some(matrix), Some(dst)) = (&mut table[row.mnemonic as usize], row.operands.first()) {
                let width = if matrix.a == Ty::F64 { 64 } else { 32 };
                matrix.shape.blocks = usize::from(dst.bits) / width * 64 / (matrix.shape.m * matrix.shape.n);
            }
        }
        table
    })
}

/// Executes the instruction if it is of this family.
pub(super) fn execute(wave: &mut Wave, inst: &Inst) -> bool {
    let Some(matrix) = &table()[inst.mnemonic as usize] else {
        return false;
    };
    let (Operand::Vgpr(_), Operand::Vgpr(_), Operand::Vgpr(_)) = (inst.dst, inst.src[0], inst.src[1]) else {
        return false;
    };
    if matrix.sparse && index_register(inst) >= wave.vector_registers().0 {
        return false;
    }
    match matrix.a {
        Ty::F64 => doubles(wave, inst, matrix),
        Ty::I8 => words(
            wave,
            inst,
            matrix,
            |x, _| i32::from(x as i8),
            |c| c as i32,
            |d: i32| d as u32,
        ),
        _ => {
            let flush = inst.target == Target::Gfx90a && matches!(matrix.a, Ty::F16 | Ty::Bf16);
            let f32 = move |x: u32| f32::from_bits(F32::flush(x.into(), flush) as u32);
            words(
                wave,
                inst,
                matrix,
                move |x, ty| float(x, ty, flush),
                f32,
                move |d: f32| f32(d.to_bits()).to_bits(),
            )
        }
    }
    true
}

/// An element as f32.
fn float(x: u32, ty: Ty, flush: bool) -> f32 {
    f32::from_bits(match ty {
        Ty::F16 => convert::f32_from_f16(F16::flush(x.into(), flush) as u16),
        Ty::Bf16 => F32::flush((x << 16).into(), flush) as u32,
        Ty::Fp8 => fp8::to_f32(x as u8, Kind::Fp8),
        Ty::Bf8 => fp8::to_f32(x as u8, Kind::Bf8),
        // Nearest even on the thirteen bits that go; a NaN must not carry into infinity.
        Ty::Xf32 if x & 0x7fff_ffff <= 0x7f80_0000 => (x + 0xfff + (x >> 13 & 1)) & !0x1fff,
        _ => x,
    })
}

fn vgpr(operand: Operand) -> u16 {
    match operand {
        Operand::Vgpr(n) => n,
        _ => 0,
    }
}

/// The block of A that block `block` reads: `cbsz` groups two to that many blocks, `abid` picks one of the group.
fn broadcast_block(inst: &Inst, matrix: &Matrix, block: usize) -> usize {
    if matrix.sparse || matrix.shape.blocks == 1 {
        return block;
    }
    let (cbsz, abid) = (usize::from(inst.aux[0] & 7), usize::from(inst.aux[0] >> 4));
    let group = (1 << cbsz.min(4)) - 1;
    ((block & !group) | (abid & group)) % matrix.shape.blocks
}

/// The lane whose registers lane `lane` of B comes from, by `blgp`.
fn group_pattern(inst: &Inst, lane: usize) -> usize {
    match inst.aux[1] {
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % 64,
        p @ 4..=7 => lane % 16 + 16 * (usize::from(p) - 4),
        _ => lane,
    }
}

/// Lane of D[i][0], which the rest of the row follows, and register (or pair).
fn place(matrix: &Matrix, block: usize, i: usize) -> (usize, usize) {
    match (matrix.a, matrix.shape.m) {
        (Ty::F64, 16) => (16 * (i % 4), i / 4),
        (Ty::F64, _) => (4 * block + 16 * i, 0),
        (_, 32) => (32 * (i / 4 % 2), 16 * block + 4 * (i / 8) + i % 4),
        (_, 16) => (16 * (i / 4), 4 * block + i % 4),
        _ => (4 * block, i),
    }
}

/// Calls `f` with (block, i) and the elements of that row of D.
fn for_rows<T>(shape: &Shape, d: &mut [T], mut f: impl FnMut(usize, usize, &mut [T])) {
    let mut rows = d.chunks_exact_mut(shape.n);
    for block in 0..shape.blocks {
        for (i, row) in rows.by_ref().take(shape.m).enumerate() {
            f(block, i, row);
        }
    }
}

/// The stored elements of A, each with its column. `read` gives element e of a lane.
fn terms<T: Copy + Default>(
    wave: &Wave,
    inst: &Inst,
    matrix: &Matrix,
    read: impl Fn(usize, usize) -> T,
) -> Vec<Term<T>> {
    let Shape { m, blocks, terms, .. } = matrix.shape;
    let per_lane = terms * m * blocks / 64;
    let mut out = Vec::with_capacity(blocks * m * terms);
    for block in 0..blocks {
        for i in 0..m {
            let first = i + m * broadcast_block(inst, matrix, block);
            for group in 0..terms / per_lane {
                let lane = first + m * blocks * group;
                for e in 0..per_lane {
                    let t = group * per_lane + e;
                    let column = if matrix.sparse {
                        sparse_column(wave, inst, lane, t, e, per_lane)
                    } else {
                        t
                    };
                    out.push((read(lane, e), column as u16));
                }
            }
        }
    }
    out
}

/// The elements of B, row-major.
fn columns<T: Copy + Default>(inst: &Inst, matrix: &Matrix, read: impl Fn(usize, usize) -> T) -> Vec<T> {
    let Shape { n, k, blocks, .. } = matrix.shape;
    let per_lane = k * n * blocks / 64;
    let mut out = Vec::with_capacity(blocks * k * n);
    for block in 0..blocks {
        for group in 0..k / per_lane {
            let first = n * (block + blocks * group);
            for e in 0..per_lane {
                out.extend((first..first + n).map(|lane| {
                    let lane = if matrix.a == Ty::F64 {
                        lane
                    } else {
                        group_pattern(inst, lane)
                    };
                    read(lane, e)
                }));
            }
        }
    }
    out
}

/// The VGPR of a sparse instruction's indices: its field is where other instructions have source 2, whose place the
/// accumulator takes after decoding, so register checks made on decoded operands do not see it.
fn index_register(inst: &Inst) -> u16 {
    (inst.words[1] >> 18 & 0xff) as u16
}

/// The column of stored element `t` of a sparse row. Of every four columns two are stored; the index register has two bits
/// for each, in the order of the elements. `abid` picks the set of indices while `cbsz` is zero.
fn sparse_column(wave: &Wave, inst: &Inst, lane: usize, t: usize, e: usize, per_lane: usize) -> usize {
    let register = index_register(inst);
    let (cbsz, abid) = (inst.aux[0] & 7, usize::from(inst.aux[0] >> 4));
    let bits = 2 * per_lane;
    let set = if cbsz == 0 { abid % (32 / bits) } else { 0 };
    let index = wave.v(register)[lane] >> (set * bits + 2 * e) & 3;
    t / 2 * 4 + index as usize
}

/// All elements of the registers from `first` on, `per_lane` of them in a lane, by lane.
fn unpack<T: Copy + Default>(wave: &Wave, first: u16, per_lane: usize, ty: Ty, value: impl Fn(u32) -> T) -> Vec<T> {
    let mut out = vec![T::default(); 64 * per_lane];
    for e in 0..per_lane {
        let register = wave.v(first + (e * ty.bits() / 32) as u16);
        let shift = e * ty.bits() % 32;
        let mask = u32::MAX >> (32 - ty.bits());
        for (lane, word) in register.iter().enumerate() {
            out[lane * per_lane + e] = value(word >> shift & mask);
        }
    }
    out
}

/// Products with 32-bit results.
fn words<T: Element>(
    wave: &mut Wave,
    inst: &Inst,
    matrix: &Matrix,
    value: impl Fn(u32, Ty) -> T,
    read_c: impl Fn(u32) -> T,
    write_d: impl Fn(T) -> u32,
) {
    let shape = &matrix.shape;
    let per_lane = shape.terms * shape.m * shape.blocks / 64;
    let elements = unpack(wave, vgpr(inst.src[0]), per_lane, matrix.a, |x| value(x, matrix.a));
    let a = terms(wave, inst, matrix, |lane, e| elements[lane * per_lane + e]);
    let per_lane = shape.k * shape.n * shape.blocks / 64;
    let elements = unpack(wave, vgpr(inst.src[1]), per_lane, matrix.b, |x| value(x, matrix.b));
    let b = columns(inst, matrix, |lane, e| elements[lane * per_lane + e]);
    // The sparse forms accumulate into the destination.
    let c = if matrix.sparse { inst.dst } else { inst.src[2] };
    let mut d = vec![T::default(); shape.blocks * shape.m * shape.n];
    for_rows(shape, &mut d, |block, i, row| {
        let (lane, register) = place(matrix, block, i);
        match c {
            Operand::Vgpr(first) => {
                let source = &wave.v(first + register as u16)[lane..][..row.len()];
                row.iter_mut().zip(source).for_each(|(x, &bits)| *x = read_c(bits));
            }
            other => row.fill(read_c(wave.scalar32(other))),
        }
    });
    multiply(shape, &a, &b, &mut d);
    let first = vgpr(inst.dst);
    for_rows(shape, &mut d, |block, i, row| {
        let (lane, register) = place(matrix, block, i);
        let out = &mut wave.v_mut(first + register as u16)[lane..][..row.len()];
        out.iter_mut().zip(row).for_each(|(bits, x)| *bits = write_d(*x));
    });
}

/// Products in f64. gfx942 takes the `blgp` bits as negations of A, B and C.
fn doubles(wave: &mut Wave, inst: &Inst, matrix: &Matrix) {
    let shape = &matrix.shape;
    let negate = |x: f64, source: u8| {
        if inst.target == Target::Gfx942 && inst.aux[1] >> source & 1 != 0 {
            -x
        } else {
            x
        }
    };
    let pair = |wave: &Wave, first: u16, lane: usize| {
        f64::from_bits(u64::from(wave.v(first)[lane]) | u64::from(wave.v(first + 1)[lane]) << 32)
    };
    let a = terms(wave, inst, matrix, |lane, _| {
        negate(pair(wave, vgpr(inst.src[0]), lane), 0)
    });
    let b = columns(inst, matrix, |lane, _| negate(pair(wave, vgpr(inst.src[1]), lane), 1));
    let mut d = vec![0.0; shape.blocks * shape.m * shape.n];
    for_rows(shape, &mut d, |block, i, row| {
        let (lane, register) = place(matrix, block, i);
        for (j, x) in row.iter_mut().enumerate() {
            let c = match inst.src[2] {
                Operand::Vgpr(first) => pair(wave, first + 2 * register as u16, lane + j),
                Operand::Const(c) => double_constant(c),
                other => f64::from_bits(wave.scalar64(other)),
            };
            *x = negate(c, 2);
        }
    });
    multiply(shape, &a, &b, &mut d);
    let first = vgpr(inst.dst);
    for_rows(shape, &mut d, |block, i, row| {
        let (lane, register) = place(matrix, block, i);
        for (j, x) in row.iter().enumerate() {
            let (bits, at) = (x.to_bits(), first + 2 * register as u16);
            wave.v_mut(at)[lane + j] = bits as u32;
            wave.v_mut(at + 1)[lane + j] = (bits >> 32) as u32;
        }
    });
}

/// The f64 inline constant. The decoder gives those of vector operands as 32 bits: f32 values and small integers.
fn double_constant(c: u64) -> f64 {
    match c {
        0x3e22_f983 => f64::from_bits(0x3fc4_5f30_6dc9_c882),
        0x3e00_0000..=0xc0ff_ffff => f64::from(f32::from_bits(c as u32)),
        0..=0xffff_ffff => f64::from_bits(i64::from(c as u32 as i32) as u64),
        _ => f64::from_bits(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_matrix_mnemonic_is_understood() {
        for m in Mnemonic::all().filter(|m| m.name().contains("mfma")) {
            let matrix = table()[m as usize].unwrap_or_else(|| panic!("{m}"));
            let s = matrix.shape;
            // A, B and their lanes fit together.
            assert_eq!(s.terms * s.m * s.blocks % 64, 0, "{m}");
            let row = crate::isa::rows().iter().find(|r| r.mnemonic == m).expect("row");
            let width = |slot| usize::from(row.operand(slot).expect("operand").bits);
            assert_eq!(
                s.terms * s.m * s.blocks / 64 * matrix.a.bits(),
                width(crate::isa::Slot::Src0),
                "{m}"
            );
            assert_eq!(
                s.k * s.n * s.blocks / 64 * matrix.b.bits(),
                width(crate::isa::Slot::Src1),
                "{m}"
            );
        }
    }

    #[test]
    fn places_of_the_result_are_distinct_and_fill_the_registers() {
        for m in Mnemonic::all() {
            let Some(matrix) = table()[m as usize] else { continue };
            let mut seen = vec![false; 64 * 32];
            let count = matrix.shape.blocks * matrix.shape.m * matrix.shape.n;
            for_rows(&matrix.shape, &mut vec![(); count], |block, i, row| {
                let (lane, register) = place(&matrix, block, i);
                for j in 0..row.len() {
                    assert!(!std::mem::replace(&mut seen[register * 64 + lane + j], true), "{m}");
                }
            });
            assert!(seen[..count].iter().all(|x| *x), "{m}");
        }
    }

    #[test]
    fn xf32_rounds_to_ten_bits() {
        assert_eq!(float(0x3f80_1000, Ty::Xf32, false).to_bits(), 0x3f80_0000);
        assert_eq!(float(0x3f80_3000, Ty::Xf32, false).to_bits(), 0x3f80_4000);
        assert_eq!(float(0x7fff_ffff, Ty::Xf32, false).to_bits(), 0x7fff_ffff);
        assert_eq!(double_constant(0x4000_0000), 2.0);
        assert_eq!(double_constant(0xffff_ffff).to_bits(), u64::MAX);
    }
}
