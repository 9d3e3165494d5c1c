//! Integer arithmetic, logic, shifts and bit fields (PTX ISA, "Integer Arithmetic", "Extended-Precision", "Logic and
//! Shift" instructions).

use super::{Emit, Result, immediate_bits};
use crate::lower::text::{Val, int, ir, st};
use crate::ptx::ast::{Instruction, Operand, ScalarType};

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn integer(&mut self, i: &Instruction<'a>) -> Result<()> {
        // `mul24`, `dp4a` and others take the type that comes first for a, last for b.
        let ty = match i.opcode {
            "dp4a" | "dp2a" => i.types().next(),
            _ => i.types().last(),
        };
        let Some(ty) = ty else { return Err(i.unsupported()) };
        let (bits, signed) = (ty.bits(), ty.is_signed());
        let t = format!("i{bits}");
        if matches!(ty, ScalarType::S16x2 | ScalarType::U16x2) {
            return self.halves(i, signed);
        }
        let logic = matches!(i.opcode, "and" | "or" | "xor" | "not");
        if !(matches!(bits, 16 | 32 | 64) || logic && bits == 1) {
            return Err(i.unsupported());
        }
        let v = match i.opcode {
            "add" | "sub" | "addc" | "subc" => return self.add_sub(i, bits),
            "mad" | "madc" | "mul" | "mad24" | "mul24" => return self.multiply(i, ty),
            "and" | "or" | "xor" => {
                let (a, b) = self.two(i, bits)?;
                ir!(self.t, "{} {t} {a}, {b}", i.opcode)
            }
            "not" => {
                let a = self.src_at(i, 1, bits)?;
                ir!(self.t, "xor {t} {a}, -1")
            }
            "cnot" => {
                let a = self.src_at(i, 1, bits)?;
                let z = ir!(self.t, "icmp eq {t} {a}, 0");
                ir!(self.t, "zext i1 {z} to {t}")
            }
            "neg" => {
                let a = self.src_at(i, 1, bits)?;
                ir!(self.t, "sub {t} 0, {a}")
            }
            "abs" => {
                let a = self.src_at(i, 1, bits)?;
                let n = ir!(self.t, "sub {t} 0, {a}");
                let c = ir!(self.t, "icmp slt {t} {a}, 0");
                ir!(self.t, "select i1 {c}, {t} {n}, {t} {a}")
            }
            "min" | "max" => {
                let (a, b) = self.two(i, bits)?;
                let v = self.min_max(i.opcode == "min", signed, bits, &a, &b);
                if i.has("relu") {
                    self.min_max(false, true, bits, &v, "0")
                } else {
                    v
                }
            }
            "sad" => {
                let (a, b) = self.two(i, bits)?;
                let c = self.src_at(i, 3, bits)?;
                let d = self.absolute_difference(&a, &b, bits, signed);
                ir!(self.t, "add {t} {d}, {c}")
            }
            "div" | "rem" => {
                let (a, b) = self.two(i, bits)?;
                self.divide(i.opcode == "rem", &a, &b, bits, signed)
            }
            "popc" => {
                let a = self.src_at(i, 1, bits)?;
                let v = self.t.call(&format!("llvm.ctpop.i{bits}"), &[&a]);
                let v = self.resize(&v, bits, 32, false);
                return self.result(i, &v, 32);
            }
            "clz" => {
                let a = self.src_at(i, 1, bits)?;
                let v = self.t.call(&format!("llvm.ctlz.i{bits}"), &[&a, "false"]);
                let v = self.resize(&v, bits, 32, false);
                return self.result(i, &v, 32);
            }
            "bfind" => return self.bfind(i, bits, signed),
            "brev" => {
                let a = self.src_at(i, 1, bits)?;
                self.t.call(&format!("llvm.bitreverse.i{bits}"), &[&a])
            }
            "shl" | "shr" => {
                let a = self.src_at(i, 1, bits)?;
                let n = self.src_at(i, 2, 32)?;
                self.shift(i.opcode == "shl", signed, &a, &n, bits)
            }
            "shf" => self.funnel(i)?,
            "bfe" => self.bfe(i, bits, signed)?,
            "bfi" => self.bfi(i, bits)?,
            "bmsk" => self.bmsk(i)?,
            "szext" => self.szext(i, signed)?,
            "fns" => {
                let (m, b) = self.two(i, 32)?;
                let o = self.src_at(i, 3, 32)?;
                self.t.call("rg_fns", &[&m, &b, &o])
            }
            "lop3" => return self.lop3(i),
            "prmt" => self.prmt(i)?,
            "dp4a" | "dp2a" => self.dot(i)?,
            _ => return Err(i.unsupported()),
        };
        self.result(i, &v, bits)
    }

    /// Operands 1 and 2.
    pub(super) fn two(&mut self, i: &Instruction<'a>, bits: u32) -> Result<(Val, Val)> {
        Ok((self.src_at(i, 1, bits)?, self.src_at(i, 2, bits)?))
    }

    pub(super) fn min_max(&mut self, min: bool, signed: bool, bits: u32, a: &str, b: &str) -> Val {
        let name = match (signed, min) {
            (true, true) => "smin",
            (true, false) => "smax",
            (false, true) => "umin",
            (false, false) => "umax",
        };
        self.t.call(&format!("llvm.{name}.i{bits}"), &[a, b])
    }

    fn absolute_difference(&mut self, a: &str, b: &str, bits: u32, signed: bool) -> Val {
        let less = if signed { "slt" } else { "ult" };
        let c = ir!(self.t, "icmp {less} i{bits} {a}, {b}");
        let x = ir!(self.t, "sub i{bits} {b}, {a}");
        let y = ir!(self.t, "sub i{bits} {a}, {b}");
        ir!(self.t, "select i1 {c}, i{bits} {x}, i{bits} {y}")
    }

    /// The carry flag: a slot, because a chain may be broken by labels.
    fn carry_slot(&mut self) -> Val {
        if self.carry.is_none() {
            let slot = self.t.slot("i1", 1);
            self.carry = Some(slot);
        }
        self.carry.clone().unwrap_or_default()
    }

    /// `a + b + carry in` with the carry out, or the difference with the borrow.
    fn chain(&mut self, i: &Instruction<'a>, sub: bool, with: bool, a: &str, b: &str, bits: u32) -> Val {
        let op = if sub { "sub" } else { "add" };
        let mut v = ir!(self.t, "{op} i{bits} {a}, {b}");
        let mut out = if sub {
            ir!(self.t, "icmp ult i{bits} {a}, {b}")
        } else {
            ir!(self.t, "icmp ult i{bits} {v}, {a}")
        };
        if with {
            let slot = self.carry_slot();
            let c = ir!(self.t, "load i1, ptr addrspace(5) {slot}, align 1");
            let c = ir!(self.t, "zext i1 {c} to i{bits}");
            let w = ir!(self.t, "{op} i{bits} {v}, {c}");
            let o = if sub {
                ir!(self.t, "icmp ult i{bits} {v}, {c}")
            } else {
                ir!(self.t, "icmp ult i{bits} {w}, {v}")
            };
            out = ir!(self.t, "or i1 {out}, {o}");
            v = w;
        }
        if i.has("cc") {
            let slot = self.carry_slot();
            st!(self.t, "store i1 {out}, ptr addrspace(5) {slot}, align 1");
        }
        v
    }

    fn add_sub(&mut self, i: &Instruction<'a>, bits: u32) -> Result<()> {
        let (a, b) = self.two(i, bits)?;
        let sub = i.opcode.starts_with("sub");
        let v = if i.opcode.ends_with('c') || i.has("cc") {
            self.chain(i, sub, i.opcode.ends_with('c'), &a, &b, bits)
        } else if i.has("sat") {
            self.saturating(sub, &a, &b)
        } else {
            ir!(self.t, "{} i{bits} {a}, {b}", i.opcode)
        };
        self.result(i, &v, bits)
    }

    /// Signed 32-bit sum or difference, clamped.
    pub(super) fn saturating(&mut self, sub: bool, a: &str, b: &str) -> Val {
        let a = self.resize(a, 32, 64, true);
        let b = self.resize(b, 32, 64, true);
        let v = ir!(self.t, "{} i64 {a}, {b}", if sub { "sub" } else { "add" });
        self.clamp64(&v, i64::from(i32::MIN), i64::from(i32::MAX), 32)
    }

    /// A 64-bit value clamped to `low..=high`, in `bits` bits.
    pub(super) fn clamp64(&mut self, v: &str, low: i64, high: i64, bits: u32) -> Val {
        let v = self.t.call("llvm.smax.i64", &[v, &low.to_string()]);
        let v = self.t.call("llvm.smin.i64", &[&v, &high.to_string()]);
        self.resize(&v, 64, bits, false)
    }

    /// High half of a product.
    fn mul_hi(&mut self, a: &str, b: &str, bits: u32, signed: bool) -> Val {
        if bits == 64 {
            return self
                .t
                .call(if signed { "rg_mulhi_s64" } else { "rg_mulhi_u64" }, &[a, b]);
        }
        let wide = bits * 2;
        let a = self.resize(a, bits, wide, signed);
        let b = self.resize(b, bits, wide, signed);
        let p = ir!(self.t, "mul i{wide} {a}, {b}");
        let h = ir!(self.t, "lshr i{wide} {p}, {bits}");
        self.resize(&h, wide, bits, false)
    }

    fn multiply(&mut self, i: &Instruction<'a>, ty: ScalarType) -> Result<()> {
        let (bits, signed) = (ty.bits(), ty.is_signed());
        let (mut a, mut b) = self.two(i, bits)?;
        let adds = i.opcode.starts_with("mad");
        if i.has("wide") {
            if bits > 32 {
                return Err(i.unsupported());
            }
            let wide = bits * 2;
            let a = self.resize(&a, bits, wide, signed);
            let b = self.resize(&b, bits, wide, signed);
            let mut v = ir!(self.t, "mul i{wide} {a}, {b}");
            if adds {
                let c = self.src_at(i, 3, wide)?;
                v = ir!(self.t, "add i{wide} {v}, {c}");
            }
            return self.result(i, &v, wide);
        }
        let product = if i.opcode.ends_with("24") {
            let shift = if signed { "ashr" } else { "lshr" };
            for x in [&mut a, &mut b] {
                let up = ir!(self.t, "shl i32 {x}, 8");
                *x = ir!(self.t, "{shift} i32 {up}, 8");
            }
            if i.has("hi") {
                let a = self.resize(&a, 32, 64, signed);
                let b = self.resize(&b, 32, 64, signed);
                let p = ir!(self.t, "mul i64 {a}, {b}");
                let h = ir!(self.t, "lshr i64 {p}, 16");
                self.resize(&h, 64, 32, false)
            } else {
                ir!(self.t, "mul i32 {a}, {b}")
            }
        } else if i.has("hi") {
            self.mul_hi(&a, &b, bits, signed)
        } else {
            ir!(self.t, "mul i{bits} {a}, {b}")
        };
        let v = if adds {
            let c = self.src_at(i, 3, bits)?;
            if i.has("sat") {
                self.saturating(false, &product, &c)
            } else if i.opcode == "madc" || i.has("cc") {
                self.chain(i, false, i.opcode == "madc", &product, &c, bits)
            } else {
                ir!(self.t, "add i{bits} {product}, {c}")
            }
        } else {
            product
        };
        self.result(i, &v, bits)
    }

    /// Division as recorded: anything / 0 and % 0 is all ones, MIN / -1 is MIN with remainder 0.
    fn divide(&mut self, rem: bool, a: &str, b: &str, bits: u32, signed: bool) -> Val {
        let z = ir!(self.t, "icmp eq i{bits} {b}, 0");
        let v = if signed {
            let m = ir!(self.t, "icmp eq i{bits} {b}, -1");
            let odd = ir!(self.t, "or i1 {z}, {m}");
            let safe = ir!(self.t, "select i1 {odd}, i{bits} 1, i{bits} {b}");
            let q = ir!(self.t, "{} i{bits} {a}, {safe}", if rem { "srem" } else { "sdiv" });
            let by_minus_one = if rem {
                "0".to_string()
            } else {
                ir!(self.t, "sub i{bits} 0, {a}")
            };
            ir!(self.t, "select i1 {m}, i{bits} {by_minus_one}, i{bits} {q}")
        } else {
            let safe = ir!(self.t, "select i1 {z}, i{bits} 1, i{bits} {b}");
            ir!(self.t, "{} i{bits} {a}, {safe}", if rem { "urem" } else { "udiv" })
        };
        ir!(self.t, "select i1 {z}, i{bits} -1, i{bits} {v}")
    }

    fn bfind(&mut self, i: &Instruction<'a>, bits: u32, signed: bool) -> Result<()> {
        let mut a = self.src_at(i, 1, bits)?;
        if signed {
            let s = ir!(self.t, "ashr i{bits} {a}, {}", bits - 1);
            a = ir!(self.t, "xor i{bits} {a}, {s}");
        }
        let z = self.t.call(&format!("llvm.ctlz.i{bits}"), &[&a, "false"]);
        let z = self.resize(&z, bits, 32, false);
        let v = if i.has("shiftamt") {
            let none = ir!(self.t, "icmp eq i32 {z}, {bits}");
            ir!(self.t, "select i1 {none}, i32 -1, i32 {z}")
        } else {
            ir!(self.t, "sub i32 {}, {z}", bits - 1)
        };
        self.result(i, &v, 32)
    }

    /// Shift by an unsigned 32-bit amount, clamped at the width.
    fn shift(&mut self, left: bool, signed: bool, a: &str, n: &str, bits: u32) -> Val {
        let over = ir!(self.t, "icmp ugt i32 {n}, {}", bits - 1);
        let instead = if !left && signed { bits - 1 } else { 0 };
        let safe = ir!(self.t, "select i1 {over}, i32 {instead}, i32 {n}");
        let safe = self.resize(&safe, 32, bits, false);
        match (left, signed) {
            (false, true) => ir!(self.t, "ashr i{bits} {a}, {safe}"),
            (left, _) => {
                let v = ir!(self.t, "{} i{bits} {a}, {safe}", if left { "shl" } else { "lshr" });
                ir!(self.t, "select i1 {over}, i{bits} 0, i{bits} {v}")
            }
        }
    }

    fn funnel(&mut self, i: &Instruction<'a>) -> Result<Val> {
        let (a, b) = self.two(i, 32)?;
        let n = self.src_at(i, 3, 32)?;
        let left = i.has("l");
        if i.has("wrap") {
            // The intrinsics take the amount modulo 32.
            return Ok(self
                .t
                .call(if left { "llvm.fshl.i32" } else { "llvm.fshr.i32" }, &[&b, &a, &n]));
        }
        let n = self.t.call("llvm.umin.i32", &[&n, "32"]);
        let n = self.resize(&n, 32, 64, false);
        let a = self.resize(&a, 32, 64, false);
        let b = self.resize(&b, 32, 64, false);
        let b = ir!(self.t, "shl i64 {b}, 32");
        let v = ir!(self.t, "or i64 {a}, {b}");
        let v = if left {
            let v = ir!(self.t, "shl i64 {v}, {n}");
            ir!(self.t, "lshr i64 {v}, 32")
        } else {
            ir!(self.t, "lshr i64 {v}, {n}")
        };
        Ok(self.resize(&v, 64, 32, false))
    }

    /// `length` ones at the bottom, all ones from the width on.
    fn low_ones(&mut self, length: &str, bits: u32) -> Val {
        let ones = self.shift(true, false, "-1", length, bits);
        ir!(self.t, "xor i{bits} {ones}, -1")
    }

    /// Position and length of a bit field: recorded are their low 8 bits in the 32-bit forms, all bits in the others.
    fn field(&mut self, position: &str, length: &str, bits: u32) -> (Val, Val) {
        if bits == 64 {
            return (position.to_string(), length.to_string());
        }
        (
            ir!(self.t, "and i32 {position}, 255"),
            ir!(self.t, "and i32 {length}, 255"),
        )
    }

    fn bfe(&mut self, i: &Instruction<'a>, bits: u32, signed: bool) -> Result<Val> {
        let a = self.src_at(i, 1, bits)?;
        let (p, l) = (self.src_at(i, 2, 32)?, self.src_at(i, 3, 32)?);
        let (p, l) = self.field(&p, &l, bits);
        let v = self.shift(false, signed, &a, &p, bits);
        if !signed {
            let m = self.low_ones(&l, bits);
            return Ok(ir!(self.t, "and i{bits} {v}, {m}"));
        }
        // Sign-extend from the field's top bit.
        let l = self.t.call("llvm.umin.i32", &[&l, &bits.to_string()]);
        let empty = ir!(self.t, "icmp eq i32 {l}, 0");
        let up = ir!(self.t, "sub i32 {bits}, {l}");
        let up = ir!(self.t, "select i1 {empty}, i32 0, i32 {up}");
        let up = self.resize(&up, 32, bits, false);
        let v = ir!(self.t, "shl i{bits} {v}, {up}");
        let v = ir!(self.t, "ashr i{bits} {v}, {up}");
        Ok(ir!(self.t, "select i1 {empty}, i{bits} 0, i{bits} {v}"))
    }

    fn bfi(&mut self, i: &Instruction<'a>, bits: u32) -> Result<Val> {
        let (a, b) = self.two(i, bits)?;
        let (p, l) = (self.src_at(i, 3, 32)?, self.src_at(i, 4, 32)?);
        let (p, l) = self.field(&p, &l, bits);
        let m = self.low_ones(&l, bits);
        let m = self.shift(true, false, &m, &p, bits);
        let a = self.shift(true, false, &a, &p, bits);
        let a = ir!(self.t, "and i{bits} {a}, {m}");
        let n = ir!(self.t, "xor i{bits} {m}, -1");
        let b = ir!(self.t, "and i{bits} {b}, {n}");
        Ok(ir!(self.t, "or i{bits} {a}, {b}"))
    }

    fn bmsk(&mut self, i: &Instruction<'a>) -> Result<Val> {
        let (mut a, mut b) = self.two(i, 32)?;
        if i.has("wrap") {
            a = ir!(self.t, "and i32 {a}, 31");
            b = ir!(self.t, "and i32 {b}, 31");
        }
        let m = self.low_ones(&b, 32);
        Ok(self.shift(true, false, &m, &a, 32))
    }

    fn szext(&mut self, i: &Instruction<'a>, signed: bool) -> Result<Val> {
        let (a, mut n) = self.two(i, 32)?;
        if i.has("wrap") {
            n = ir!(self.t, "and i32 {n}, 31");
        }
        let ones = self.low_ones(&n, 32);
        let v = ir!(self.t, "and i32 {a}, {ones}");
        if !signed {
            return Ok(v);
        }
        // The bit below the cut, none where the field is empty or the whole word.
        let top = ir!(self.t, "lshr i32 {ones}, 1");
        let top = ir!(self.t, "xor i32 {top}, {ones}");
        let bit = ir!(self.t, "and i32 {a}, {top}");
        let negative = ir!(self.t, "icmp ne i32 {bit}, 0");
        let high = ir!(self.t, "xor i32 {ones}, -1");
        let fill = ir!(self.t, "select i1 {negative}, i32 {high}, i32 0");
        Ok(ir!(self.t, "or i32 {v}, {fill}"))
    }

    /// A function of two words given by its truth table; bit `2b + c`.
    fn lut2(&mut self, lut: u32, b: &str, c: &str) -> Val {
        let not = |e: &mut Self, x: &str| ir!(e.t, "xor i32 {x}, -1");
        match lut & 15 {
            0 => "0".into(),
            15 => "-1".into(),
            12 => b.into(),
            10 => c.into(),
            3 => not(self, b),
            5 => not(self, c),
            6 => ir!(self.t, "xor i32 {b}, {c}"),
            8 => ir!(self.t, "and i32 {b}, {c}"),
            14 => ir!(self.t, "or i32 {b}, {c}"),
            4 => {
                let n = not(self, c);
                ir!(self.t, "and i32 {b}, {n}")
            }
            2 => {
                let n = not(self, b);
                ir!(self.t, "and i32 {n}, {c}")
            }
            other => {
                let v = self.lut2(!other, b, c);
                not(self, &v)
            }
        }
    }

    fn lop3(&mut self, i: &Instruction<'a>) -> Result<()> {
        let (a, b) = self.two(i, 32)?;
        let c = self.src_at(i, 3, 32)?;
        let Operand::Immediate(lut) = self.operand(i, 4)? else {
            return Err(i.unsupported());
        };
        let lut = immediate_bits(*lut, 32) as u32;
        let (one, zero) = (lut >> 4 & 15, lut & 15);
        let base = self.lut2(zero, &b, &c);
        let v = if one == zero {
            base
        } else {
            let flip = self.lut2(one ^ zero, &b, &c);
            let flip = ir!(self.t, "and i32 {a}, {flip}");
            ir!(self.t, "xor i32 {base}, {flip}")
        };
        match self.operand(i, 0)? {
            Operand::Pair(d, p) => {
                let q = self.src_at(i, 5, 1)?;
                let nonzero = ir!(self.t, "icmp ne i32 {v}, 0");
                let op = if i.has("and") { "and" } else { "or" };
                let r = ir!(self.t, "{op} i1 {nonzero}, {q}");
                self.dst(i, d, &v, 32, false)?;
                self.dst(i, p, &r, 1, false)
            }
            d => self.dst(i, d, &v, 32, false),
        }
    }

    fn prmt(&mut self, i: &Instruction<'a>) -> Result<Val> {
        let (a, b) = self.two(i, 32)?;
        let mode = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]
            .into_iter()
            .find(|m| i.has(m));
        let Some(mode) = mode else {
            if let Operand::Immediate(sel) = self.operand(i, 3)?
                && immediate_bits(*sel, 32) & 0x8888 == 0
            {
                let sel = immediate_bits(*sel, 32);
                let bytes = (0..4).fold(0, |all, n| all | (sel >> (4 * n) & 7) << (8 * n));
                return Ok(self.t.call("llvm.amdgcn.perm", &[&b, &a, &int(bytes, 32)]));
            }
            let sel = self.src_at(i, 3, 32)?;
            return Ok(self.t.call("rg_prmt", &[&a, &b, &sel]));
        };
        let c = self.src_at(i, 3, 32)?;
        let c = ir!(self.t, "and i32 {c}, 3");
        // Byte selectors for c = 0, 1, 2, 3 (PTX ISA, table of prmt modes; the lowest byte is the last digit).
        let table: [u32; 4] = match mode {
            "f4e" => [0x0302_0100, 0x0403_0201, 0x0504_0302, 0x0605_0403],
            "b4e" => [0x0506_0700, 0x0607_0001, 0x0700_0102, 0x0001_0203],
            "rc8" => [0x0000_0000, 0x0101_0101, 0x0202_0202, 0x0303_0303],
            "ecl" => [0x0302_0100, 0x0302_0101, 0x0302_0202, 0x0303_0303],
            "ecr" => [0x0000_0000, 0x0101_0100, 0x0202_0100, 0x0302_0100],
            _ => [0x0100_0100, 0x0302_0302, 0x0100_0100, 0x0302_0302],
        };
        let mut sel = int(u64::from(table[0]), 32);
        for (n, bytes) in table.iter().enumerate().skip(1) {
            let is = ir!(self.t, "icmp eq i32 {c}, {n}");
            sel = ir!(self.t, "select i1 {is}, i32 {}, i32 {sel}", int(u64::from(*bytes), 32));
        }
        Ok(self.t.call("llvm.amdgcn.perm", &[&b, &a, &sel]))
    }

    /// Part `at` of `bits` bits of a word, extended to 32 bits.
    pub(super) fn part(&mut self, v: &str, at: u32, bits: u32, signed: bool) -> Val {
        let up = ir!(self.t, "shl i32 {v}, {}", 32 - bits * (at + 1));
        ir!(
            self.t,
            "{} i32 {up}, {}",
            if signed { "ashr" } else { "lshr" },
            32 - bits
        )
    }

    fn dot(&mut self, i: &Instruction<'a>) -> Result<Val> {
        let mut types = i.types();
        let sa = types.next().is_some_and(ScalarType::is_signed);
        let sb = types.next().is_some_and(ScalarType::is_signed);
        let (a, b) = self.two(i, 32)?;
        let mut sum = self.src_at(i, 3, 32)?;
        let count = if i.opcode == "dp4a" { 4 } else { 2 };
        let high = if i.has("hi") { 2 } else { 0 };
        for n in 0..count {
            let x = self.part(&a, n, 32 / count, sa);
            let y = self.part(&b, n + high, 8, sb);
            let p = ir!(self.t, "mul i32 {x}, {y}");
            sum = ir!(self.t, "add i32 {sum}, {p}");
        }
        Ok(sum)
    }

    /// `.s16x2` and `.u16x2`: both halves on their own.
    fn halves(&mut self, i: &Instruction<'a>, signed: bool) -> Result<()> {
        let (a, b) = self.two(i, 32)?;
        let mut all = String::new();
        for at in 0..2 {
            let x = self.part(&a, at, 16, signed);
            let y = self.part(&b, at, 16, signed);
            let mut v = match i.opcode {
                "add" | "sub" => ir!(self.t, "{} i32 {x}, {y}", i.opcode),
                "min" | "max" => self.min_max(i.opcode == "min", signed, 32, &x, &y),
                _ => return Err(i.unsupported()),
            };
            if i.has("relu") {
                v = self.min_max(false, true, 32, &v, "0");
            }
            if i.has("sat") && signed {
                v = self.min_max(false, true, 32, &v, "-32768");
                v = self.min_max(true, true, 32, &v, "32767");
            }
            all = if at == 0 {
                ir!(self.t, "and i32 {v}, 65535")
            } else {
                let v = ir!(self.t, "shl i32 {v}, 16");
                ir!(self.t, "or i32 {all}, {v}")
            };
        }
        self.result(i, &all, 32)
    }
}
