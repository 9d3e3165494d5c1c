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
use crate::lower::text::{Val, ir, st};
use crate::ptx::ast::{Instruction, Operand, ScalarType};

/// What a fragment of A or B holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Float(ScalarType),
    Integer {
        bits: u32,
        signed: bool,
    },
    /// Single bits, whose products are counted.
    Bits,
}

impl Element {
    /// The element type that a modifier names.
    pub(super) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "f16" => Self::Float(ScalarType::F16),
            "bf16" => Self::Float(ScalarType::Bf16),
            "tf32" => Self::Float(ScalarType::Tf32),
            "f64" => Self::Float(ScalarType::F64),
            "s8" | "u8" | "s4" | "u4" => Self::Integer {
                bits: if word.ends_with('8') { 8 } else { 4 },
                signed: word.starts_with('s'),
            },
            "b1" => Self::Bits,
            _ => return None,
        })
    }

    /// Bits that are multiplied at once.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Float(ty) => ty.bits(),
            Self::Integer { bits, .. } => bits,
            Self::Bits => 32,
        }
    }

    /// Bits of a register.
    pub(super) fn register(self) -> u32 {
        self.bits().max(32)
    }
}

/// What is multiplied, and added to what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) a: Element,
    pub(super) b: Element,
    /// The type of C.
    pub(super) sum: ScalarType,
    /// The type of D.
    pub(super) result: ScalarType,
    /// The sum, an integer, is clamped.
    saturates: bool,
    /// Bits are compared, not multiplied.
    xor: bool,
}

impl Product {
    /// The product of an instruction, with C of type `sum` and D of type `result`.
    ///
    /// # Errors
    /// For combinations that PTX does not have.
    pub(super) fn of(i: &Instruction<'_>, a: Element, b: Element, sum: ScalarType, result: ScalarType) -> Result<Self> {
        let fits = match (a, b) {
            (Element::Float(ScalarType::F16), _) => a == b && matches!(sum, ScalarType::F16 | ScalarType::F32),
            (Element::Float(ScalarType::F64), _) => a == b && sum == ScalarType::F64,
            (Element::Float(_), _) => a == b && sum == ScalarType::F32,
            (Element::Integer { bits, .. }, Element::Integer { bits: other, .. }) => {
                bits == other && sum == ScalarType::S32
            }
            (Element::Bits, Element::Bits) => i.has("popc") && sum == ScalarType::S32,
            _ => false,
        };
        let rounded = ["rz", "rm", "rp"].iter().any(|m| i.has(m));
        let saturates = i.has("satfinite");
        if !fits || rounded || (saturates && sum != ScalarType::S32) {
            return Err(i.unsupported());
        }
        Ok(Self {
            a,
            b,
            sum,
            result,
            saturates,
            xor: i.has("xor"),
        })
    }

    /// The LLVM type of sums.
    fn value(self) -> &'static str {
        match self.sum {
            ScalarType::F64 => "double",
            ScalarType::S32 => "i32",
            _ => "float",
        }
    }

    /// The kind of floating-point value that sums are.
    fn float(self) -> Float {
        if self.sum == ScalarType::F64 {
            Float::F64
        } else {
            Float::F32
        }
    }
}

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn matrix(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.opcode == "movmatrix" {
            self.movmatrix(i)
        } else {
            self.mma(i)
        }
    }

    pub(super) fn vector<'i>(&self, i: &'i Instruction<'a>, at: usize) -> Result<&'i [Operand<'a>]> {
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
    fn element(&mut self, kind: Element, v: &str, at: u32) -> Val {
        let ty = match kind {
            Element::Integer { bits, signed } => return self.part(v, at, bits, signed),
            Element::Bits => return v.to_string(),
            Element::Float(ty) => ty,
        };
        match ty {
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
            _ => self.decode(Float::F64, v),
        }
    }

    fn mma(&mut self, i: &Instruction<'a>) -> Result<()> {
        let elements: Vec<Element> = i.modifiers.iter().filter_map(|m| Element::named(m)).collect();
        let types: Vec<ScalarType> = i.types().collect();
        let (&[_, a, b, _] | &[a, b]) = elements.as_slice() else {
            return Err(i.unsupported());
        };
        let (Some(&td), Some(&tc)) = (types.first(), types.last()) else {
            return Err(i.unsupported());
        };
        let volta = i.has("m8n8k4") && a == Element::Float(ScalarType::F16);
        if volta || td != tc || !i.has("row") || !i.has("col") || i.has("sp") || i.has("sp::ordered_metadata") {
            return Err(i.unsupported());
        }
        let product = Product::of(i, a, b, td, td)?;
        let (x, y) = (self.registers(i, 1, a.register())?, self.registers(i, 2, a.register())?);
        let chunks = y.len();
        let halves = x.len() / chunks.max(1);
        if chunks == 0 || !(1..=2).contains(&halves) || x.len() != chunks * halves {
            return Err(i.unsupported());
        }
        let rows: Vec<&[Val]> = x.chunks(halves).collect();
        let rows: Vec<Vec<Val>> = (0..halves)
            .map(|half| rows.iter().map(|chunk| chunk[half].clone()).collect())
            .collect();
        let sums = self.accumulators(i, 3, product, halves * 2)?;
        let sums = self.multiply_tiles(i, product, &rows, &[y], &sums)?;
        self.give(i, product, &sums)
    }

    /// The registers of a fragment.
    pub(super) fn registers(&mut self, i: &Instruction<'a>, at: usize, bits: u32) -> Result<Vec<Val>> {
        let list = self.vector(i, at)?;
        list.iter().map(|o| self.src(i, o, bits)).collect()
    }

    /// The `count` elements of C that a lane holds, as values to add to.
    pub(super) fn accumulators(
        &mut self,
        i: &Instruction<'a>,
        at: usize,
        product: Product,
        count: usize,
    ) -> Result<Vec<Val>> {
        let registers = self.registers(i, at, product.sum.bits().max(32))?;
        let packed = product.sum == ScalarType::F16;
        let mut sums = Vec::new();
        for at in 0..count {
            let v = registers
                .get(if packed { at / 2 } else { at })
                .ok_or_else(|| i.unsupported())?;
            sums.push(match product.sum {
                ScalarType::F16 => self.element(Element::Float(ScalarType::F16), v, at as u32 % 2),
                ScalarType::S32 => v.clone(),
                _ => self.decode(product.float(), v),
            });
        }
        Ok(sums)
    }

    /// Adds A times B to the sums. `a[m][c]` is the register of rows 8m to 8m+7 and k-chunk c, `b[n][c]` that of columns 8n
    /// to 8n+7; the sums of their product begin at `2 * (m * b.len() + n)`.
    ///
    /// A product is a function that is called: kernels unroll hundreds of them, more than a code generator bears inline.
    pub(super) fn multiply_tiles(
        &mut self,
        i: &Instruction<'a>,
        product: Product,
        a: &[Vec<Val>],
        b: &[Vec<Val>],
        sums: &[Val],
    ) -> Result<Vec<Val>> {
        let chunks = a.first().map_or(0, Vec::len);
        if sums.len() != 2 * a.len() * b.len() || a.iter().chain(b).any(|registers| registers.len() != chunks) {
            return Err(i.unsupported());
        }
        let function = self.product_function(product, a.len(), b.len(), chunks);
        let ty = product.value();
        let registers = a.iter().chain(b).flatten();
        let mut arguments: Vec<String> = registers.map(|v| format!("i{} {v}", product.a.register())).collect();
        arguments.extend(sums.iter().map(|v| format!("{ty} {v}")));
        let (count, arguments) = (sums.len(), arguments.join(", "));
        let all = ir!(self.t, "call [{count} x {ty}] @{function}({arguments}) #3");
        Ok((0..count)
            .map(|at| ir!(self.t, "extractvalue [{count} x {ty}] {all}, {at}"))
            .collect())
    }

    /// The name of the function for products of these sizes, which is written where it is the first of them.
    fn product_function(&mut self, product: Product, m: usize, n: usize, chunks: usize) -> String {
        let key = format!("{product:?} {m} {n} {chunks}");
        let number = self.k.products.len();
        if let Some((name, _)) = self.k.products.get(&key) {
            return name.clone();
        }
        let caller = std::mem::take(&mut self.t);
        let names = |letter: char, count: usize| -> Vec<Vec<Val>> {
            let name = |line, chunk| format!("%{letter}{line}_{chunk}");
            (0..count)
                .map(|line| (0..chunks).map(|chunk| name(line, chunk)).collect())
                .collect()
        };
        let (a, b) = (names('a', m), names('b', n));
        let given: Vec<Val> = (0..2 * m * n).map(|at| format!("%c{at}")).collect();
        let sums = self.product_body(product, &a, &b, &given);
        let (ty, count) = (product.value(), sums.len());
        let mut all = "undef".to_string();
        for (at, sum) in sums.iter().enumerate() {
            all = ir!(self.t, "insertvalue [{count} x {ty}] {all}, {ty} {sum}, {at}");
        }
        st!(self.t, "ret [{count} x {ty}] {all}");
        let mut written = std::mem::replace(&mut self.t, caller);
        self.k.uses.append(&mut written.uses);
        if let Some(what) = written.broken.take() {
            self.t.broken.get_or_insert(what);
        }
        let registers = a.iter().chain(&b).flatten();
        let mut parameters: Vec<String> = registers.map(|v| format!("i{} {v}", product.a.register())).collect();
        parameters.extend(given.iter().map(|v| format!("{ty} {v}")));
        let (name, parameters) = (format!("rg_product{number}"), parameters.join(", "));
        let text = format!(
            "define internal [{count} x {ty}] @{name}({parameters}) #2 {{\n{}}}\n",
            written.finish()
        );
        self.k.products.insert(key, (name.clone(), text));
        name
    }

    fn product_body(&mut self, product: Product, a: &[Vec<Val>], b: &[Vec<Val>], given: &[Val]) -> Vec<Val> {
        // What is clamped is the sum with C: the products alone never leave an i32.
        let mut sums = if product.saturates {
            vec!["0".into(); given.len()]
        } else {
            given.to_vec()
        };
        let lane = self.t.call("rg_lane", &[]);
        let row = ir!(self.t, "and i32 {lane}, -4");
        let t = ir!(self.t, "and i32 {lane}, 3");
        let column = ir!(self.t, "shl i32 {t}, 3");
        let width = product.a.register();
        for chunk in 0..a.first().map_or(0, Vec::len) {
            for part in 0..4 {
                let from = ir!(self.t, "or i32 {row}, {part}");
                let mut rows = Vec::new();
                for registers in a {
                    rows.push(self.gather(&registers[chunk], width, &from));
                }
                let mut columns = Vec::new();
                for registers in b {
                    for n in 0..2 {
                        let from = ir!(self.t, "add i32 {column}, {}", n * 4 + part);
                        columns.push(self.gather(&registers[chunk], width, &from));
                    }
                }
                for e in 0..width / product.a.bits() {
                    let across: Vec<Val> = columns.iter().map(|y| self.element(product.b, y, e)).collect();
                    for (m, x) in rows.iter().enumerate() {
                        let x = self.element(product.a, x, e);
                        for (n, y) in across.iter().enumerate() {
                            let sum = &mut sums[m * across.len() + n];
                            *sum = self.multiply_add(product, &x, y, sum);
                        }
                    }
                }
            }
        }
        if product.saturates {
            for (sum, c) in sums.iter_mut().zip(given) {
                *sum = self.saturating(false, sum, c);
            }
        }
        sums
    }

    fn multiply_add(&mut self, product: Product, x: &str, y: &str, sum: &str) -> Val {
        match product.a {
            Element::Float(ScalarType::F64) => self.t.call("llvm.fma.f64", &[x, y, sum]),
            Element::Float(_) => self.t.call("llvm.fma.f32", &[x, y, sum]),
            Element::Integer { .. } => {
                let p = ir!(self.t, "mul i32 {x}, {y}");
                ir!(self.t, "add i32 {sum}, {p}")
            }
            Element::Bits => {
                let p = ir!(self.t, "{} i32 {x}, {y}", if product.xor { "xor" } else { "and" });
                let p = self.t.call("llvm.ctpop.i32", &[&p]);
                ir!(self.t, "add i32 {sum}, {p}")
            }
        }
    }

    /// Writes sums to D.
    pub(super) fn give(&mut self, i: &Instruction<'a>, product: Product, sums: &[Val]) -> Result<()> {
        let d = self.vector(i, 0)?;
        if product.result == ScalarType::F16 {
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
        for (operand, sum) in d.iter().zip(sums) {
            let v = if product.sum == ScalarType::S32 {
                sum.clone()
            } else {
                self.encode(product.float(), sum)
            };
            self.dst(i, operand, &v, product.result.bits(), false)?;
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
