//! Matrix fragments (PTX ISA, "Warp Level Matrix Instructions"), computed lane by lane from gathered operands.
//!
//! With g = lane / 4 and t = lane % 4, every shape of `mma.m16n8k*` and `m8n8k*` (but Volta's) lays its registers out
//! alike; a register holds consecutive k:
//!
//! ```text
//! A register 2c+h of lane (g, t): row g+8h, k-chunk c, part t      B register c of lane (g, t): column g, chunk c, part t
//! C and D of lane (g, t): rows g (and g+8), columns 2t and 2t+1
//! ```

use super::float::Float;
use super::memory::Space;
use super::{Emit, Result};
use crate::lower::text::{Val, ir};
use crate::ptx::ast::{Instruction, Operand, ScalarType};

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn matrix(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.opcode == "movmatrix" {
            self.movmatrix(i)
        } else {
            self.mma(i)
        }
    }

    fn vector<'i>(&self, i: &'i Instruction<'a>, at: usize) -> Result<&'i [Operand<'a>]> {
        match self.operand(i, at)? {
            Operand::Vector(list) => Ok(list),
            one => Ok(std::slice::from_ref(one)),
        }
    }

    /// A value of `bits` bits from another lane of the warp.
    fn gather(&mut self, v: &str, bits: u32, lane: &str) -> Val {
        if bits == 32 {
            return self.t.call("rg_gather", &[v, lane]);
        }
        let low = self.resize(v, 64, 32, false);
        let high = ir!(self.t, "lshr i64 {v}, 32");
        let high = self.resize(&high, 64, 32, false);
        let low = self.t.call("rg_gather", &[&low, lane]);
        let high = self.t.call("rg_gather", &[&high, lane]);
        let low = self.resize(&low, 32, 64, false);
        let high = self.resize(&high, 32, 64, false);
        let high = ir!(self.t, "shl i64 {high}, 32");
        ir!(self.t, "or i64 {low}, {high}")
    }

    /// Element `at` of a register of packed elements, as the accumulator's kind of value.
    fn element(&mut self, ty: ScalarType, v: &str, at: u32, acc: Float) -> Result<Val> {
        Ok(match ty {
            ScalarType::F16 => {
                let h = self.half_of(v, at);
                let h = self.decode(Float::F16, &h);
                ir!(self.t, "fpext half {h} to float")
            }
            ScalarType::Bf16 => {
                let h = self.half_of(v, at);
                self.decode(Float::Bf16, &h)
            }
            // The lower 13 bits of a tf32 register are not looked at.
            ScalarType::Tf32 => {
                let v = ir!(self.t, "and i32 {v}, -8192");
                self.decode(Float::F32, &v)
            }
            ScalarType::F64 => self.decode(acc, v),
            _ => self.part(v, at, ty.bits(), ty.is_signed()),
        })
    }

    fn mma(&mut self, i: &Instruction<'a>) -> Result<()> {
        let types: Vec<ScalarType> = i.types().collect();
        let &[td, ta, tb, tc] = types.as_slice() else {
            return Err(i.unsupported());
        };
        let integer = ta.is_integer();
        let element_ok = matches!(
            ta,
            ScalarType::F16 | ScalarType::Bf16 | ScalarType::Tf32 | ScalarType::F64 | ScalarType::S8 | ScalarType::U8
        );
        let volta = i.has("m8n8k4") && ta == ScalarType::F16;
        if !element_ok || volta || td != tc || !i.has("row") || !i.has("col") || i.has("sp") || i.has("satfinite") {
            return Err(i.unsupported());
        }
        let width = if ta == ScalarType::F64 { 64 } else { 32 };
        let read = |e: &mut Self, at: usize, bits: u32| -> Result<Vec<Val>> {
            let list = e.vector(i, at)?;
            list.iter().map(|o| e.src(i, o, bits)).collect()
        };
        let (a, b) = (read(self, 1, width)?, read(self, 2, width)?);
        let chunks = b.len();
        let halves = a.len() / chunks.max(1);
        if chunks == 0 || !(1..=2).contains(&halves) || a.len() != chunks * halves {
            return Err(i.unsupported());
        }
        let packed = td == ScalarType::F16;
        let c = read(self, 3, if td == ScalarType::F64 { 64 } else { 32 })?;
        let acc = if ta == ScalarType::F64 { Float::F64 } else { Float::F32 };
        // Accumulators in order: row g columns 2t, 2t+1, then row g+8.
        let mut sums = Vec::new();
        for at in 0..halves * 2 {
            sums.push(if packed {
                let v = c.get(at / 2).ok_or_else(|| i.unsupported())?.clone();
                self.element(ScalarType::F16, &v, at as u32 % 2, acc)?
            } else {
                let v = c.get(at).ok_or_else(|| i.unsupported())?.clone();
                if integer { v } else { self.decode(acc, &v) }
            });
        }
        let lane = self.t.call("rg_lane", &[]);
        let row = ir!(self.t, "and i32 {lane}, -4");
        let t = ir!(self.t, "and i32 {lane}, 3");
        let column = ir!(self.t, "shl i32 {t}, 3");
        let elements = if width == 64 { 1 } else { 32 / ta.bits() };
        for chunk in 0..chunks {
            for part in 0..4 {
                let from = ir!(self.t, "or i32 {row}, {part}");
                let mut rows = Vec::new();
                for half in 0..halves {
                    rows.push(self.gather(&a[chunk * halves + half], width, &from));
                }
                let mut columns = Vec::new();
                for n in 0..2 {
                    let from = ir!(self.t, "add i32 {column}, {}", n * 4 + part);
                    columns.push(self.gather(&b[chunk], width, &from));
                }
                for e in 0..elements {
                    for (half, x) in rows.iter().enumerate() {
                        let x = self.element(ta, x, e, acc)?;
                        for (n, y) in columns.iter().enumerate() {
                            let y = self.element(tb, y, e, acc)?;
                            let sum = &mut sums[half * 2 + n];
                            *sum = if integer {
                                let p = ir!(self.t, "mul i32 {x}, {y}");
                                ir!(self.t, "add i32 {sum}, {p}")
                            } else {
                                let name = if acc == Float::F64 {
                                    "llvm.fma.f64"
                                } else {
                                    "llvm.fma.f32"
                                };
                                self.t.call(name, &[&x, &y, sum])
                            };
                        }
                    }
                }
            }
        }
        let d = self.vector(i, 0)?;
        if packed {
            for (at, operand) in d.iter().enumerate() {
                let mut parts = Vec::new();
                for sum in sums.get(at * 2..at * 2 + 2).ok_or_else(|| i.unsupported())? {
                    let h = ir!(self.t, "fptrunc float {sum} to half");
                    let h = self.encode(Float::F16, &h);
                    parts.push(self.canonical_bits(Float::F16, &h));
                }
                let v = self.join16(&parts[0].clone(), &parts[1].clone());
                self.dst(i, operand, &v, 32, false)?;
            }
            return Ok(());
        }
        for (operand, sum) in d.iter().zip(&sums) {
            let v = if integer { sum.clone() } else { self.encode(acc, sum) };
            self.dst(i, operand, &v, td.bits(), false)?;
        }
        Ok(())
    }

    /// Rows of 8 halves, two a lane, to columns.
    fn movmatrix(&mut self, i: &Instruction<'a>) -> Result<()> {
        let v = self.src_at(i, 1, 32)?;
        let lane = self.t.call("rg_lane", &[]);
        let g = ir!(self.t, "lshr i32 {lane}, 2");
        let odd = ir!(self.t, "and i32 {g}, 1");
        let odd = ir!(self.t, "icmp ne i32 {odd}, 0");
        let pair = ir!(self.t, "lshr i32 {g}, 1");
        let t = ir!(self.t, "and i32 {lane}, 3");
        let column = ir!(self.t, "shl i32 {t}, 3");
        let column = ir!(self.t, "or i32 {column}, {pair}");
        let mut parts = Vec::new();
        for n in 0..2 {
            let from = ir!(self.t, "add i32 {column}, {}", 4 * n);
            let w = self.t.call("rg_gather", &[&v, &from]);
            let (low, high) = (self.half_of(&w, 0), self.half_of(&w, 1));
            parts.push(ir!(self.t, "select i1 {odd}, i16 {high}, i16 {low}"));
        }
        let v = self.join16(&parts[0].clone(), &parts[1].clone());
        self.result(i, &v, 32)
    }

    /// Lane 8m + r of the warp gives the address of row r of matrix m.
    pub(super) fn ldmatrix(&mut self, i: &Instruction<'a>) -> Result<()> {
        if !i.has("m8n8") || !i.has("b16") {
            return Err(i.unsupported());
        }
        let (p, pt) = self.pointer_at(i, 1, Space::of(i))?;
        let p = if pt == "ptr" {
            ir!(self.t, "addrspacecast ptr {p} to ptr addrspace(3)")
        } else {
            p
        };
        let row = ir!(self.t, "ptrtoint ptr addrspace(3) {p} to i32");
        let lane = self.t.call("rg_lane", &[]);
        let g = ir!(self.t, "lshr i32 {lane}, 2");
        let t = ir!(self.t, "and i32 {lane}, 3");
        let list = self.vector(i, 0)?;
        for (m, operand) in list.iter().enumerate() {
            let load = |e: &mut Self, row_of: &str, offset: &str, bits: u32| {
                let from = ir!(e.t, "add i32 {row_of}, {}", 8 * m);
                let base = e.t.call("rg_gather", &[&row, &from]);
                let at = ir!(e.t, "add i32 {base}, {offset}");
                let q = ir!(e.t, "inttoptr i32 {at} to ptr addrspace(3)");
                ir!(e.t, "load i{bits}, ptr addrspace(3) {q}, align {}", bits / 8)
            };
            let v = if i.has("trans") {
                let offset = ir!(self.t, "shl i32 {g}, 1");
                let c0 = ir!(self.t, "shl i32 {t}, 1");
                let c1 = ir!(self.t, "or i32 {c0}, 1");
                let low = load(self, &c0, &offset, 16);
                let high = load(self, &c1, &offset, 16);
                self.join16(&low, &high)
            } else {
                let offset = ir!(self.t, "shl i32 {t}, 2");
                load(self, &g, &offset, 32)
            };
            self.dst(i, operand, &v, 32, false)?;
        }
        Ok(())
    }
}
