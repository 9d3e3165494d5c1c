//! Floating-point arithmetic, comparison and selection (PTX ISA, "Floating Point", "Half Precision", "Comparison and
//! Selection" instructions).
//!
//! bfloat16 is computed in single precision and rounded back; LLVM 15 has no bfloat arithmetic.

use super::{Emit, Result, ity};
use crate::lower::contract;
use crate::lower::text::{Val, int, ir};
use crate::ptx::ast::{Immediate, Instruction, Operand, ScalarType};

/// A scalar floating-point format of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Float {
    F16,
    Bf16,
    F32,
    F64,
}

/// A rounding direction, by the hardware's code in the MODE register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Nearest = 0,
    Up = 1,
    Down = 2,
    Zero = 3,
}

impl Float {
    /// The format of a scalar type.
    pub fn of(ty: ScalarType) -> Option<Self> {
        match ty {
            ScalarType::F16 => Some(Self::F16),
            ScalarType::Bf16 => Some(Self::Bf16),
            ScalarType::F32 => Some(Self::F32),
            ScalarType::F64 => Some(Self::F64),
            _ => None,
        }
    }

    /// The format of an element of a packed type.
    pub fn of_element(ty: ScalarType) -> Option<Self> {
        match ty {
            ScalarType::F16x2 => Some(Self::F16),
            ScalarType::Bf16x2 => Some(Self::Bf16),
            ScalarType::F32x2 => Some(Self::F32),
            _ => None,
        }
    }

    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::F32 => 32,
            Self::F64 => 64,
        }
    }

    /// The LLVM type that it is computed in.
    pub fn llvm(self) -> &'static str {
        match self {
            Self::F16 => "half",
            Self::Bf16 | Self::F32 => "float",
            Self::F64 => "double",
        }
    }

    /// Name suffix of helpers and intrinsics.
    fn suffix(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 | Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The NaN that NVIDIA's arithmetic gives.
    fn canonical_nan(self) -> u64 {
        match self {
            Self::F16 | Self::Bf16 => 0x7fff,
            Self::F32 => 0x7fff_ffff,
            Self::F64 => 0x7fff_ffff_ffff_ffff,
        }
    }
}

/// The rounding modifier of an instruction, nearest when absent.
pub fn rounding(i: &Instruction<'_>) -> Round {
    if i.has("rz") {
        Round::Zero
    } else if i.has("rm") {
        Round::Down
    } else if i.has("rp") {
        Round::Up
    } else {
        Round::Nearest
    }
}

impl<'a> Emit<'_, '_, 'a> {
    /// The bits of a value, any NaN replaced by NVIDIA's.
    pub(super) fn canonical_bits(&mut self, f: Float, bits: &str) -> Val {
        let t = ity(f.bits());
        let nan = int(f.canonical_nan(), f.bits());
        let is = match f {
            Float::Bf16 => {
                let m = ir!(self.t, "and i16 {bits}, 32767");
                ir!(self.t, "icmp ugt i16 {m}, 32640")
            }
            _ => {
                let v = self.decode(f, bits);
                ir!(self.t, "fcmp uno {} {v}, {v}", f.llvm())
            }
        };
        ir!(self.t, "select i1 {is}, {t} {nan}, {t} {bits}")
    }

    /// Bits to the value that LLVM computes with.
    pub(super) fn decode(&mut self, f: Float, bits: &str) -> Val {
        match f {
            Float::Bf16 => {
                let w = ir!(self.t, "zext i16 {bits} to i32");
                let w = ir!(self.t, "shl i32 {w}, 16");
                ir!(self.t, "bitcast i32 {w} to float")
            }
            _ => ir!(self.t, "bitcast i{} {bits} to {}", f.bits(), f.llvm()),
        }
    }

    /// A computed value to bits; bfloat16 is rounded to nearest even.
    pub(super) fn encode(&mut self, f: Float, v: &str) -> Val {
        match f {
            Float::Bf16 => self.t.call("rg_bf16_rn", &[v]),
            _ => ir!(self.t, "bitcast {} {v} to i{}", f.llvm(), f.bits()),
        }
    }

    /// The bits of an operand of floating-point type, its NaN as it is.
    pub(super) fn float_bits(&mut self, i: &Instruction<'a>, operand: &Operand<'a>, bits: u32) -> Result<Val> {
        match operand {
            Operand::Register(r) if self.reg_bits(*r) == bits => Ok(self.load_raw(*r)),
            // A whole number where a float is expected is its value.
            Operand::Immediate(Immediate::Int(n)) if bits == 32 && *n != 0 => {
                Ok(int(u64::from((*n as i64 as f32).to_bits()), 32))
            }
            Operand::Immediate(Immediate::Int(n)) if bits == 64 && *n != 0 => Ok(int((*n as i64 as f64).to_bits(), 64)),
            _ => self.src(i, operand, bits),
        }
    }

    /// Writes the bits of an arithmetic result whose NaN is still the hardware's.
    pub(super) fn float_result(&mut self, i: &Instruction<'a>, f: Float, bits: &str) -> Result<()> {
        if let Operand::Register(r) = self.operand(i, 0)?
            && (self.raw_nan.get(r) == Some(&f) && self.reg_bits(*r) == f.bits())
        {
            self.store_reg(*r, bits);
            return Ok(());
        }
        let bits = if f == Float::F64 {
            bits.to_string()
        } else {
            self.canonical_bits(f, bits)
        };
        self.result(i, &bits, f.bits())
    }

    pub(super) fn float(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.opcode {
            "testp" => return self.testp(i),
            "copysign" => return self.copysign(i),
            _ => {}
        }
        let mut types = i.types();
        let Some(ty) = types.next_back() else {
            return Err(i.unsupported());
        };
        // `add.f32.f16`: operands of another type than the result.
        if types.next_back().is_some() {
            return Err(i.unsupported());
        }
        if let Some(f) = Float::of(ty) {
            let mut args = Vec::new();
            for operand in i.operands.get(1..).unwrap_or_default() {
                let bits = self.float_bits(i, operand, f.bits())?;
                args.push(self.decode(f, &bits));
            }
            let v = self.arithmetic(i, f, &args)?;
            return self.float_result(i, f, &v);
        }
        let Some(f) = Float::of_element(ty) else {
            return Err(i.unsupported());
        };
        let (bits, each) = (ty.bits(), f.bits());
        let mut whole = Vec::new();
        for operand in i.operands.get(1..).unwrap_or_default() {
            whole.push(self.src(i, operand, bits)?);
        }
        let mut all = String::new();
        for at in 0..bits / each {
            let mut args = Vec::new();
            for w in &whole {
                let w = if at == 0 {
                    w.clone()
                } else {
                    ir!(self.t, "lshr i{bits} {w}, {}", at * each)
                };
                let w = self.resize(&w, bits, each, false);
                args.push(self.decode(f, &w));
            }
            let v = self.arithmetic(i, f, &args)?;
            let v = self.canonical_bits(f, &v);
            let v = self.resize(&v, each, bits, false);
            all = if at == 0 {
                v
            } else {
                let v = ir!(self.t, "shl i{bits} {v}, {}", at * each);
                ir!(self.t, "or i{bits} {all}, {v}")
            };
        }
        self.result(i, &all, bits)
    }

    fn flush(&mut self, f: Float, v: &str) -> Val {
        match f {
            Float::F16 => self.t.call("rg_ftz_f16", &[v]),
            Float::F32 | Float::Bf16 => self.t.call("rg_ftz_f32", &[v]),
            Float::F64 => v.to_string(),
        }
    }

    /// One hardware instruction under a directed rounding mode: a single asm statement, so nothing moves between the
    /// writes of the MODE register.
    pub(super) fn rounded(&mut self, round: Round, op: &str, ret: &str, args: &[(&str, &str)]) -> Val {
        let code = round as u32 * 5;
        let list: Vec<String> = (1..=args.len()).map(|n| format!("${n}")).collect();
        let constraints: String = args.iter().map(|_| ",v").collect();
        let values: Vec<String> = args.iter().map(|(t, v)| format!("{t} {v}")).collect();
        let mode = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4)";
        ir!(
            self.t,
            "call {ret} asm \"{mode}, {code}\\0A\\09{op} $0, {}\\0A\\09{mode}, 0\", \"=v{constraints}\"({})",
            list.join(", "),
            values.join(", ")
        )
    }

    /// The bits of an arithmetic result.
    fn arithmetic(&mut self, i: &Instruction<'a>, f: Float, args: &[Val]) -> Result<Val> {
        let mut args = args.to_vec();
        let ftz = i.has("ftz") && f != Float::F64;
        if ftz {
            for v in &mut args {
                *v = self.flush(f, v);
            }
        }
        if i.has(contract::NEGATE_PRODUCT) {
            args[0] = ir!(self.t, "fneg {} {}", f.llvm(), args[0]);
        } else if i.has(contract::NEGATE_ADDEND) {
            args[2] = ir!(self.t, "fneg {} {}", f.llvm(), args[2]);
        }
        let needed = match i.opcode {
            "fma" | "mad" => 3,
            "add" | "sub" | "mul" | "div" | "min" | "max" => 2,
            _ => 1,
        };
        if args.len() < needed || args.len() > 3 {
            return Err(i.unsupported());
        }
        // NVIDIA passes on the NaN of the second operand, AMD that of the first.
        if f == Float::F64 && matches!(i.opcode, "add" | "mul" | "fma" | "mad" | "min" | "max") {
            args.swap(0, 1);
        }
        let (l, s) = (f.llvm(), f.suffix());
        let round = rounding(i);
        if round != Round::Nearest && !matches!(f, Float::F32 | Float::F64) {
            return Err(i.unsupported());
        }
        let mut v = match i.opcode {
            "mul" if f == Float::Bf16 => self.t.call("rg_fma_bf16_odd", &[&args[0], &args[1], "-0.0"]),
            "add" | "sub" | "mul" if round == Round::Nearest => {
                ir!(self.t, "f{} {l} {}, {}", i.opcode, args[0], args[1])
            }
            "add" | "mul" => self.rounded(
                round,
                &format!("v_{}_{s}", i.opcode),
                l,
                &[(l, &args[0]), (l, &args[1])],
            ),
            "sub" => {
                let n = ir!(self.t, "fneg {l} {}", args[1]);
                self.rounded(round, &format!("v_add_{s}"), l, &[(l, &args[0]), (l, &n)])
            }
            "fma" | "mad" if f == Float::Bf16 => self.t.call("rg_fma_bf16_odd", &[&args[0], &args[1], &args[2]]),
            "fma" | "mad" if round == Round::Nearest => {
                self.t.call(&format!("llvm.fma.{s}"), &[&args[0], &args[1], &args[2]])
            }
            "fma" | "mad" => {
                let list = [(l, args[0].as_str()), (l, &args[1]), (l, &args[2])];
                self.rounded(round, &format!("v_fma_{s}"), l, &list)
            }
            "div" | "rcp" => {
                let one = "1.0".to_string();
                let (a, b) = if i.opcode == "rcp" {
                    (&one, &args[0])
                } else {
                    (&args[0], &args[1])
                };
                self.quotient(i, f, round, a, b)?
            }
            "sqrt" => self.root(i, f, round, &args[0])?,
            "rsqrt" => match f {
                Float::F32 if ftz => self.t.call("llvm.amdgcn.rsq.f32", &[&args[0]]),
                Float::F32 => self.t.call("rg_rsqrt_f32", &[&args[0]]),
                Float::F64 => self.rsqrt_f64(i, &args[0]),
                _ => return Err(i.unsupported()),
            },
            "sin" | "cos" | "lg2" | "ex2" | "tanh" => self.transcendental(i, f, ftz, &args[0])?,
            "neg" => ir!(self.t, "fneg {l} {}", args[0]),
            "abs" if f == Float::F16 => {
                let b = ir!(self.t, "bitcast half {} to i16", args[0]);
                let b = ir!(self.t, "and i16 {b}, 32767");
                ir!(self.t, "bitcast i16 {b} to half")
            }
            "abs" => self.t.call(&format!("llvm.fabs.{s}"), &[&args[0]]),
            "min" | "max" => {
                let mut v = self.extremum(i, f, &args[0], &args[1]);
                if let Some(c) = args.get(2) {
                    v = self.extremum(i, f, &v, c);
                }
                v
            }
            _ => return Err(i.unsupported()),
        };
        if i.has("sat") {
            v = self.t.call(&format!("rg_sat_{s}"), &[&v]);
        }
        if i.has("relu") {
            v = self.relu(l, &v);
        }
        if ftz {
            v = self.flush(f, &v);
        }
        Ok(self.encode(f, &v))
    }

    /// max(v, +0), a NaN stays one.
    pub(super) fn relu(&mut self, l: &str, v: &str) -> Val {
        let keep = ir!(self.t, "fcmp ugt {l} {v}, 0.0");
        ir!(self.t, "select i1 {keep}, {l} {v}, {l} 0.0")
    }

    fn quotient(&mut self, i: &Instruction<'a>, f: Float, round: Round, a: &str, b: &str) -> Result<Val> {
        Ok(match f {
            Float::F32 if i.has("approx") => {
                let r = if i.has("ftz") {
                    let r = self.t.call("llvm.amdgcn.rcp.f32", &[b]);
                    self.flush(f, &r)
                } else {
                    self.t.call("rg_rcp_f32", &[b])
                };
                if a == "1.0" {
                    r
                } else {
                    self.approximate_product(i, a, b, &r)
                }
            }
            Float::F64 if i.has("approx") => {
                let v = self.high_word(b);
                let v = ir!(self.t, "fdiv double 1.0, {v}");
                self.gross_result(&v)
            }
            Float::F32 | Float::F64 if round == Round::Nearest => ir!(self.t, "fdiv {} {a}, {b}", f.llvm()),
            // The double quotient of two singles is never so near to a single that rounding twice could matter.
            Float::F32 => {
                let (a, b) = (self.widen(a), self.widen(b));
                let q = ir!(self.t, "fdiv double {a}, {b}");
                self.rounded(round, "v_cvt_f32_f64", "float", &[("double", &q)])
            }
            Float::F64 => self.directed_quotient(round, a, b),
            _ => return Err(i.unsupported()),
        })
    }

    /// `a / b` from the reciprocal `r` of b.
    fn approximate_product(&mut self, i: &Instruction<'a>, a: &str, b: &str, r: &str) -> Val {
        let q = ir!(self.t, "fmul float {a}, {r}");
        if i.has("ftz") {
            return q;
        }
        // With a subnormal or huge divisor the reciprocal alone leaves the range.
        let m = self.t.call("llvm.fabs.f32", &[b]);
        let low = ir!(self.t, "fcmp olt float {m}, 0x3810000000000000");
        let exact = ir!(self.t, "fdiv float {a}, {b}");
        ir!(self.t, "select i1 {low}, float {exact}, float {q}")
    }

    pub(super) fn widen(&mut self, v: &str) -> Val {
        ir!(self.t, "fpext float {v} to double")
    }

    /// Rounds the quotient of the significands in the wanted direction, then scales it under that rounding mode: twice
    /// rounded the same way is rounded once.
    fn directed_quotient(&mut self, round: Round, a: &str, b: &str) -> Val {
        let q = self.t.call("rg_div_frac_f64", &[a, b, &(round as u32).to_string()]);
        let ea = self.t.call("llvm.amdgcn.frexp.exp.i32.f64", &[a]);
        let eb = self.t.call("llvm.amdgcn.frexp.exp.i32.f64", &[b]);
        let e = ir!(self.t, "sub i32 {ea}, {eb}");
        let e1 = ir!(self.t, "ashr i32 {e}, 2");
        let e3 = ir!(self.t, "mul i32 {e1}, 3");
        let e2 = ir!(self.t, "sub i32 {e}, {e3}");
        let s1 = self.t.call("llvm.amdgcn.ldexp.f64", &["1.0", &e1]);
        let s2 = self.t.call("llvm.amdgcn.ldexp.f64", &["1.0", &e2]);
        // The first three steps stay normal unless the last one would leave the range as well.
        let mut v = q;
        for s in [&s1, &s1, &s1, &s2] {
            v = self.rounded(round, "v_mul_f64", "double", &[("double", &v), ("double", s)]);
        }
        let plain = ir!(self.t, "fdiv double {a}, {b}");
        // Zeros, infinities and NaN have nothing to round.
        let p = ir!(self.t, "fmul double {a}, 0.0");
        let p = ir!(self.t, "fcmp oeq double {p}, 0.0");
        let n = ir!(self.t, "fmul double {b}, 0.0");
        let n = ir!(self.t, "fcmp oeq double {n}, 0.0");
        let z = ir!(self.t, "fcmp one double {a}, 0.0");
        let y = ir!(self.t, "fcmp one double {b}, 0.0");
        let c = ir!(self.t, "and i1 {p}, {n}");
        let d = ir!(self.t, "and i1 {z}, {y}");
        let c = ir!(self.t, "and i1 {c}, {d}");
        ir!(self.t, "select i1 {c}, double {v}, double {plain}")
    }

    fn root(&mut self, i: &Instruction<'a>, f: Float, round: Round, a: &str) -> Result<Val> {
        Ok(match f {
            Float::F32 if i.has("approx") && i.has("ftz") => self.t.call("llvm.amdgcn.sqrt.f32", &[a]),
            Float::F32 if i.has("approx") => self.t.call("rg_sqrt_approx_f32", &[a]),
            Float::F32 if round == Round::Nearest => self.t.call("rg_sqrt_f32", &[a]),
            Float::F32 => {
                let w = self.widen(a);
                let s = self.t.call("rg_sqrt_f64", &[&w]);
                self.rounded(round, "v_cvt_f32_f64", "float", &[("double", &s)])
            }
            Float::F64 if round == Round::Nearest => self.t.call("rg_sqrt_f64", &[a]),
            Float::F64 => self.t.call("rg_sqrt_dir_f64", &[a, &(round as u32).to_string()]),
            _ => return Err(i.unsupported()),
        })
    }

    /// The operand of an approximation in double precision: subnormals are zero and the low word is not looked at.
    fn high_word(&mut self, v: &str) -> Val {
        let v = self.t.call("rg_ftz_f64", &[v]);
        self.t.call("rg_high_f64", &[&v])
    }

    /// Its result: the low word is zero, NaN is NVIDIA's.
    fn gross_result(&mut self, v: &str) -> Val {
        let nan = ir!(self.t, "fcmp uno double {v}, {v}");
        let v = self.t.call("rg_high_f64", &[v]);
        let v = self.t.call("rg_ftz_f64", &[&v]);
        ir!(self.t, "select i1 {nan}, double 0x7FFFFFFF00000000, double {v}")
    }

    fn rsqrt_f64(&mut self, i: &Instruction<'a>, a: &str) -> Val {
        if !i.has("ftz") {
            return self.t.call("rg_rsqrt_f64", &[a]);
        }
        let a = self.high_word(a);
        let v = self.t.call("rg_rsqrt_f64", &[&a]);
        self.gross_result(&v)
    }

    fn transcendental(&mut self, i: &Instruction<'a>, f: Float, ftz: bool, a: &str) -> Result<Val> {
        let w = match f {
            Float::F16 => ir!(self.t, "fpext half {a} to float"),
            Float::F32 | Float::Bf16 => a.to_string(),
            Float::F64 => return Err(i.unsupported()),
        };
        let v = match (i.opcode, ftz) {
            ("ex2", true) => self.t.call("llvm.exp2.f32", &[&w]),
            ("lg2", true) => self.t.call("llvm.log2.f32", &[&w]),
            (op, _) => self.t.call(&format!("rg_{op}_f32"), &[&w]),
        };
        Ok(if f == Float::F16 {
            ir!(self.t, "fptrunc float {v} to half")
        } else {
            v
        })
    }

    /// min and max: the number wins over a NaN (`.NaN`: the NaN wins), -0 is less than +0.
    fn extremum(&mut self, i: &Instruction<'a>, f: Float, a: &str, b: &str) -> Val {
        // Half precision is exact in single.
        let (mut x, mut y) = (a.to_string(), b.to_string());
        let (l, s) = if f == Float::F64 {
            ("double", "f64")
        } else {
            ("float", "f32")
        };
        if f == Float::F16 {
            x = ir!(self.t, "fpext half {x} to float");
            y = ir!(self.t, "fpext half {y} to float");
        }
        let sign = i.has("xorsign").then(|| {
            let bits = if f == Float::F64 { 64 } else { 32 };
            let p = ir!(self.t, "bitcast {l} {x} to i{bits}");
            let q = ir!(self.t, "bitcast {l} {y} to i{bits}");
            let r = ir!(self.t, "xor i{bits} {p}, {q}");
            ir!(self.t, "bitcast i{bits} {r} to {l}")
        });
        if i.has("abs") {
            x = self.t.call(&format!("llvm.fabs.{s}"), &[&x]);
            y = self.t.call(&format!("llvm.fabs.{s}"), &[&y]);
        }
        let name = if i.opcode == "min" { "minnum" } else { "maxnum" };
        let mut v = self.t.call(&format!("llvm.{name}.{s}"), &[&x, &y]);
        if let Some(sign) = sign {
            v = self.t.call(&format!("llvm.copysign.{s}"), &[&v, &sign]);
        }
        if i.has("NaN") {
            let nan = ir!(self.t, "fcmp uno {l} {x}, {y}");
            v = ir!(self.t, "select i1 {nan}, {l} 0x7FF8000000000000, {l} {v}");
        }
        if f == Float::F16 {
            ir!(self.t, "fptrunc float {v} to half")
        } else {
            v
        }
    }

    fn testp(&mut self, i: &Instruction<'a>) -> Result<()> {
        let f = Float::of(self.ty(i)?).filter(|f| matches!(f, Float::F32 | Float::F64));
        let f = f.ok_or_else(|| i.unsupported())?;
        let bits = f.bits();
        let operand = self.operand(i, 1)?;
        let v = self.float_bits(i, operand, bits)?;
        let (fraction, top) = if f == Float::F64 { (52, 0x7ff) } else { (23, 0xff) };
        let m = ir!(self.t, "and i{bits} {v}, {}", int(u64::MAX >> (65 - bits), bits));
        let infinity = int(top << fraction, bits);
        let normal = int(1 << fraction, bits);
        let p = match i.modifiers.first().copied() {
            Some("finite") => ir!(self.t, "icmp ult i{bits} {m}, {infinity}"),
            Some("infinite") => ir!(self.t, "icmp eq i{bits} {m}, {infinity}"),
            Some("number") => ir!(self.t, "icmp ule i{bits} {m}, {infinity}"),
            Some("notanumber") => ir!(self.t, "icmp ugt i{bits} {m}, {infinity}"),
            // Recorded: zero is normal.
            Some("normal") => {
                let z = ir!(self.t, "icmp eq i{bits} {m}, 0");
                let a = ir!(self.t, "icmp uge i{bits} {m}, {normal}");
                let b = ir!(self.t, "icmp ult i{bits} {m}, {infinity}");
                let n = ir!(self.t, "and i1 {a}, {b}");
                ir!(self.t, "or i1 {n}, {z}")
            }
            Some("subnormal") => {
                let w = ir!(self.t, "sub i{bits} {m}, 1");
                ir!(self.t, "icmp ult i{bits} {w}, {}", int((1 << fraction) - 1, bits))
            }
            _ => return Err(i.unsupported()),
        };
        self.result(i, &p, 1)
    }

    /// The sign of operand 1 on the magnitude of operand 2.
    fn copysign(&mut self, i: &Instruction<'a>) -> Result<()> {
        let ty = self.ty(i)?;
        if !matches!(ty, ScalarType::F32 | ScalarType::F64) {
            return Err(i.unsupported());
        }
        let bits = ty.bits();
        let (a, b) = self.two(i, bits)?;
        let sign = int(1 << (bits - 1), bits);
        let s = ir!(self.t, "and i{bits} {a}, {sign}");
        let m = ir!(self.t, "and i{bits} {b}, {}", int(u64::MAX >> (65 - bits), bits));
        let v = ir!(self.t, "or i{bits} {s}, {m}");
        self.result(i, &v, bits)
    }

    /// One comparison of two operands given by their bits.
    fn comparison(&mut self, i: &Instruction<'a>, ty: ScalarType, a: &str, b: &str) -> Result<Val> {
        let op = i.modifiers.first().copied().unwrap_or_default();
        if let Some(f) = Float::of(ty) {
            let code = match op {
                "eq" | "lt" | "le" | "gt" | "ge" => format!("o{op}"),
                "ne" => "one".into(),
                "equ" => "ueq".into(),
                "neu" => "une".into(),
                "ltu" | "leu" | "gtu" | "geu" => format!("u{}", &op[..2]),
                "num" => "ord".into(),
                "nan" => "uno".into(),
                _ => return Err(i.unsupported()),
            };
            let (mut a, mut b) = (self.decode(f, a), self.decode(f, b));
            if i.has("ftz") && f != Float::F64 {
                a = self.flush(f, &a);
                b = self.flush(f, &b);
            }
            return Ok(ir!(self.t, "fcmp {code} {} {a}, {b}", f.llvm()));
        }
        let code = match (op, ty.is_signed()) {
            ("eq" | "ne", _) => op.to_string(),
            ("lt" | "le" | "gt" | "ge", true) => format!("s{op}"),
            ("lt" | "lo", _) => "ult".into(),
            ("le" | "ls", _) => "ule".into(),
            ("gt" | "hi", _) => "ugt".into(),
            ("ge" | "hs", _) => "uge".into(),
            _ => return Err(i.unsupported()),
        };
        Ok(ir!(self.t, "icmp {code} i{} {a}, {b}", ty.bits()))
    }

    /// Combines a comparison with the third source of `set` and `setp`.
    fn with_bool(&mut self, i: &Instruction<'a>, p: &str, q: Option<&str>) -> Val {
        match (q, ["and", "or", "xor"].into_iter().find(|m| i.has(m))) {
            (Some(q), Some(op)) => ir!(self.t, "{op} i1 {p}, {q}"),
            _ => p.to_string(),
        }
    }

    pub(super) fn compare(&mut self, i: &Instruction<'a>) -> Result<()> {
        let ty = self.ty(i)?;
        let (oa, ob) = (self.operand(i, 1)?, self.operand(i, 2)?);
        let (a, b) = if Float::of(ty).is_some() {
            (self.float_bits(i, oa, ty.bits())?, self.float_bits(i, ob, ty.bits())?)
        } else {
            (self.src(i, oa, ty.bits())?, self.src(i, ob, ty.bits())?)
        };
        let q = match i.operands.get(3) {
            Some(operand) => Some(self.src(i, operand, 1)?),
            None => None,
        };
        if let Some(f) = Float::of_element(ty) {
            return self.compare_packed(i, f, &a, &b, q.as_deref());
        }
        let p = self.comparison(i, ty, &a, &b)?;
        if i.opcode == "set" {
            let p = self.with_bool(i, &p, q.as_deref());
            let to = i.types().next().ok_or_else(|| i.unsupported())?;
            let bits = to.bits();
            let one = match to {
                ScalarType::F32 => int(0x3f80_0000, 32),
                ScalarType::F16 => int(0x3c00, 16),
                ScalarType::Bf16 => int(0x3f80, 16),
                _ => "-1".into(),
            };
            let v = ir!(self.t, "select i1 {p}, i{bits} {one}, i{bits} 0");
            return self.result(i, &v, bits);
        }
        let yes = self.with_bool(i, &p, q.as_deref());
        match self.operand(i, 0)? {
            Operand::Pair(d, e) => {
                let n = ir!(self.t, "xor i1 {p}, true");
                let no = self.with_bool(i, &n, q.as_deref());
                self.dst(i, d, &yes, 1, false)?;
                self.dst(i, e, &no, 1, false)
            }
            d => self.dst(i, d, &yes, 1, false),
        }
    }

    /// `.f16x2` and `.bf16x2`: `setp` gives the low result and the high one, `set` both halves of a word.
    fn compare_packed(&mut self, i: &Instruction<'a>, f: Float, a: &str, b: &str, q: Option<&str>) -> Result<()> {
        let ty = if f == Float::F16 {
            ScalarType::F16
        } else {
            ScalarType::Bf16
        };
        let mut found = Vec::new();
        for at in 0..2 {
            let (x, y) = (self.half_of(a, at), self.half_of(b, at));
            let p = self.comparison(i, ty, &x, &y)?;
            found.push(self.with_bool(i, &p, q));
        }
        if i.opcode == "setp" {
            return match self.operand(i, 0)? {
                Operand::Pair(d, e) => {
                    self.dst(i, d, &found[0], 1, false)?;
                    self.dst(i, e, &found[1], 1, false)
                }
                _ => Err(i.unsupported()),
            };
        }
        let to = i.types().next().ok_or_else(|| i.unsupported())?;
        let one = match to {
            ScalarType::F16x2 => 0x3c00,
            ScalarType::Bf16x2 => 0x3f80,
            _ => 0xffff,
        };
        let low = ir!(self.t, "select i1 {}, i32 {one}, i32 0", found[0]);
        let high = ir!(self.t, "select i1 {}, i32 {}, i32 0", found[1], int(one << 16, 32));
        let v = ir!(self.t, "or i32 {low}, {high}");
        self.result(i, &v, 32)
    }

    /// Half `at` of a word, 16 bits.
    pub(super) fn half_of(&mut self, v: &str, at: u32) -> Val {
        let v = if at == 0 {
            v.to_string()
        } else {
            ir!(self.t, "lshr i32 {v}, 16")
        };
        self.resize(&v, 32, 16, false)
    }

    pub(super) fn select(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.opcode == "selp" {
            let bits = self.ty(i)?.bits();
            let (a, b) = self.two(i, bits)?;
            let p = self.src_at(i, 3, 1)?;
            let v = ir!(self.t, "select i1 {p}, i{bits} {a}, i{bits} {b}");
            return self.result(i, &v, bits);
        }
        let mut types = i.types();
        let (Some(to), Some(by)) = (types.next(), types.next()) else {
            return Err(i.unsupported());
        };
        let bits = to.bits();
        let (a, b) = self.two(i, bits)?;
        let c = self.src_at(i, 3, 32)?;
        let p = if by == ScalarType::F32 {
            let mut c = self.decode(Float::F32, &c);
            if i.has("ftz") {
                c = self.flush(Float::F32, &c);
            }
            ir!(self.t, "fcmp oge float {c}, 0.0")
        } else {
            ir!(self.t, "icmp sge i32 {c}, 0")
        };
        let v = ir!(self.t, "select i1 {p}, i{bits} {a}, i{bits} {b}");
        self.result(i, &v, bits)
    }
}
