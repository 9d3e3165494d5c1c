//! `cvt` (PTX ISA, "Data Movement and Conversion Instructions: cvt, cvt.pack").
//!
//! As recorded: floating point to integer always saturates; NaN becomes 0 where a single or half goes to 32 bits or
//! fewer, the type's sign bit where a double does or the result has 64 bits.

use super::float::{Float, Round, rounding};
use super::{Emit, Result};
use crate::lower::text::{Val, int, ir};
use crate::ptx::ast::{Instruction, ScalarType};

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn convert(&mut self, i: &Instruction<'a>) -> Result<()> {
        let types: Vec<ScalarType> = i.types().collect();
        let (Some(&to), Some(&from)) = (types.first(), types.get(1)) else {
            return Err(i.unsupported());
        };
        if i.has("pack") {
            return self.convert_pack(i, to);
        }
        let packed = |t| matches!(t, ScalarType::U16x2 | ScalarType::S16x2);
        if packed(to) || packed(from) {
            return Err(i.unsupported());
        }
        match (Float::of(to), Float::of(from)) {
            (None, None) if to.is_integer() && from.is_integer() => self.int_to_int(i, to, from),
            (None, Some(f)) if to.is_integer() => self.float_to_int(i, to, f),
            (Some(f), None) if from.is_integer() => self.int_to_float(i, f, from),
            (Some(t), Some(f)) => {
                let operand = self.operand(i, 1)?;
                let bits = self.src(i, operand, f.bits())?;
                let v = self.float_to_float(i, t, f, &bits)?;
                self.result(i, &v, t.bits())
            }
            (None, Some(Float::F32)) => self.narrow(i, to),
            (None, None) => self.small_floats(i, to, from),
            _ => Err(i.unsupported()),
        }
    }

    fn int_to_int(&mut self, i: &Instruction<'a>, to: ScalarType, from: ScalarType) -> Result<()> {
        let v = self.src_at(i, 1, from.bits())?;
        let mut v = self.resize(&v, from.bits(), 64, from.is_signed());
        if i.has("sat") {
            let max = u64::MAX >> (64 - to.bits() + u32::from(to.is_signed()));
            if from.is_signed() {
                let low = if to.is_signed() { -1i64 << (to.bits() - 1) } else { 0 };
                v = self.t.call("llvm.smax.i64", &[&v, &low.to_string()]);
                if max <= i64::MAX as u64 {
                    v = self.t.call("llvm.smin.i64", &[&v, &max.to_string()]);
                }
            } else {
                v = self.t.call("llvm.umin.i64", &[&v, &int(max, 64)]);
            }
        }
        let v = self.resize(&v, 64, to.bits(), false);
        let operand = self.operand(i, 0)?;
        self.dst(i, operand, &v, to.bits(), to.is_signed())
    }

    /// The operand of a conversion as a single or double.
    fn wide_value(&mut self, i: &Instruction<'a>, f: Float) -> Result<Val> {
        let operand = self.operand(i, 1)?;
        let bits = self.float_bits(i, operand, f.bits())?;
        let v = self.decode(f, &bits);
        let v = if f == Float::F16 {
            ir!(self.t, "fpext half {v} to float")
        } else {
            v
        };
        Ok(if i.has("ftz") && f == Float::F32 {
            self.t.call("rg_ftz_f32", &[&v])
        } else {
            v
        })
    }

    fn round_integral(&mut self, i: &Instruction<'a>, s: &str, v: &str) -> Val {
        let name = if i.has("rni") {
            "rint"
        } else if i.has("rzi") {
            "trunc"
        } else if i.has("rmi") {
            "floor"
        } else if i.has("rpi") {
            "ceil"
        } else {
            return v.to_string();
        };
        self.t.call(&format!("llvm.{name}.{s}"), &[v])
    }

    fn float_to_int(&mut self, i: &Instruction<'a>, to: ScalarType, f: Float) -> Result<()> {
        let v = self.wide_value(i, f)?;
        let (l, s) = if f == Float::F64 {
            ("double", "f64")
        } else {
            ("float", "f32")
        };
        let nan = ir!(self.t, "fcmp uno {l} {v}, {v}");
        let v = self.round_integral(i, s, &v);
        let (bits, signed) = (to.bits(), to.is_signed());
        let name = if bits >= 32 && !signed { "fptoui" } else { "fptosi" };
        let width = bits.max(32);
        let mut n = self.t.call(&format!("llvm.{name}.sat.i{width}.{s}"), &[&v]);
        if bits < 32 {
            let (low, high) = if signed {
                (-1 << (bits - 1), (1 << (bits - 1)) - 1)
            } else {
                (0, (1 << bits) - 1)
            };
            n = self.min_max(false, true, 32, &n, &format!("{low}"));
            n = self.min_max(true, true, 32, &n, &format!("{high}"));
            n = self.resize(&n, 32, bits, false);
        }
        let of_nan = if f == Float::F64 || bits == 64 {
            int(1 << (bits - 1), bits)
        } else {
            "0".into()
        };
        let n = ir!(self.t, "select i1 {nan}, i{bits} {of_nan}, i{bits} {n}");
        let operand = self.operand(i, 0)?;
        self.dst(i, operand, &n, bits, signed)
    }

    /// A 64-bit integer as a double that later roundings cannot tell from the exact value (rounded to odd).
    fn odd_double(&mut self, v: &str, signed: bool) -> Val {
        self.t.call(
            if signed {
                "rg_s64_to_f64_odd"
            } else {
                "rg_u64_to_f64_odd"
            },
            &[v],
        )
    }

    fn int_to_float(&mut self, i: &Instruction<'a>, to: Float, from: ScalarType) -> Result<()> {
        let round = rounding(i);
        let (bits, signed) = (from.bits(), from.is_signed());
        let v = self.src_at(i, 1, bits)?;
        let width = bits.max(32);
        let v = self.resize(&v, bits, width, signed);
        let op = if signed { "sitofp" } else { "uitofp" };
        let f = match to {
            Float::F32 if round == Round::Nearest => ir!(self.t, "{op} i{width} {v} to float"),
            Float::F32 if width == 32 => {
                let name = if signed { "v_cvt_f32_i32" } else { "v_cvt_f32_u32" };
                self.rounded(round, name, "float", &[("i32", &v)])
            }
            Float::F32 => {
                let d = self.odd_double(&v, signed);
                self.rounded(round, "v_cvt_f32_f64", "float", &[("double", &d)])
            }
            Float::F64 if width == 32 || round == Round::Nearest => ir!(self.t, "{op} i{width} {v} to double"),
            Float::F64 => {
                let low = ir!(self.t, "and i64 {v}, 4294967295");
                let low = ir!(self.t, "uitofp i64 {low} to double");
                let high = ir!(self.t, "{} i64 {v}, 32", if signed { "ashr" } else { "lshr" });
                let high = self.resize(&high, 64, 32, false);
                let high = ir!(self.t, "{op} i32 {high} to double");
                let scale = "0x41F0000000000000";
                self.rounded(
                    round,
                    "v_fma_f64",
                    "double",
                    &[("double", &high), ("double", scale), ("double", &low)],
                )
            }
            Float::F16 | Float::Bf16 => {
                let wide = self.resize(&v, width, 64, signed);
                let d = self.odd_double(&wide, signed);
                let f = self.t.call("rg_f64_to_f32_odd", &[&d]);
                let v = self.single_to_half(i, to, &f);
                return self.result(i, &v, 16);
            }
        };
        let f = if i.has("sat") {
            self.t
                .call(if to == Float::F32 { "rg_sat_f32" } else { "rg_sat_f64" }, &[&f])
        } else {
            f
        };
        let v = self.encode(to, &f);
        self.result(i, &v, to.bits())
    }

    /// A single rounded to f16 or bf16 bits, with the instruction's rounding, `.sat` and `.relu`.
    fn single_to_half(&mut self, i: &Instruction<'a>, to: Float, v: &str) -> Val {
        let round = rounding(i);
        let mut v = v.to_string();
        if i.has("sat") {
            v = self.t.call("rg_sat_f32", &[&v]);
        }
        if i.has("relu") {
            v = self.relu("float", &v);
        }
        let bits = match (to, round) {
            (Float::Bf16, Round::Nearest) => self.t.call("rg_bf16_rn", &[&v]),
            (Float::Bf16, _) => self.t.call("rg_bf16_dir", &[&v, &(round as u32).to_string()]),
            (_, Round::Nearest) => {
                let h = ir!(self.t, "fptrunc float {v} to half");
                ir!(self.t, "bitcast half {h} to i16")
            }
            _ => {
                let h = self.rounded(round, "v_cvt_f16_f32", "half", &[("float", &v)]);
                ir!(self.t, "bitcast half {h} to i16")
            }
        };
        let bits = self.canonical_bits(to, &bits);
        if !i.has("satfinite") {
            return bits;
        }
        // The largest finite number in place of infinity.
        let m = ir!(self.t, "and i16 {bits}, 32767");
        let (infinity, largest) = if to == Float::F16 {
            (0x7c00, 0x7bff)
        } else {
            (0x7f80, 0x7f7f)
        };
        let s = ir!(self.t, "and i16 {bits}, -32768");
        let big = ir!(self.t, "or i16 {s}, {largest}");
        let is = ir!(self.t, "icmp eq i16 {m}, {infinity}");
        ir!(self.t, "select i1 {is}, i16 {big}, i16 {bits}")
    }

    fn float_to_float(&mut self, i: &Instruction<'a>, to: Float, from: Float, bits: &str) -> Result<Val> {
        let round = rounding(i);
        let integral = ["rni", "rzi", "rmi", "rpi"].iter().any(|m| i.has(m));
        let ftz = i.has("ftz");
        if to == from && !integral && !ftz && !i.has("sat") && !i.has("relu") {
            return Ok(bits.to_string());
        }
        // bfloat16 keeps its NaN on the way to single: the upper half of the word.
        if (to, from) == (Float::F32, Float::Bf16) && !i.has("sat") && !i.has("relu") {
            let w = ir!(self.t, "zext i16 {bits} to i32");
            return Ok(ir!(self.t, "shl i32 {w}, 16"));
        }
        let mut v = self.decode(from, bits);
        if ftz && from == Float::F32 {
            v = self.t.call("rg_ftz_f32", &[&v]);
            let b = self.encode(Float::F32, &v);
            let b = self.canonical_bits(Float::F32, &b);
            v = self.decode(Float::F32, &b);
        }
        if from == Float::F16 {
            v = ir!(self.t, "fpext half {v} to float");
        }
        let (mut l, mut s) = if from == Float::F64 {
            ("double", "f64")
        } else {
            ("float", "f32")
        };
        if integral {
            v = self.round_integral(i, s, &v);
        }
        match to {
            Float::F64 if l == "float" => {
                v = self.widen(&v);
                (l, s) = ("double", "f64");
            }
            Float::F32 if l == "double" => {
                v = match round {
                    Round::Nearest => ir!(self.t, "fptrunc double {v} to float"),
                    _ => self.rounded(round, "v_cvt_f32_f64", "float", &[("double", &v)]),
                };
                (l, s) = ("float", "f32");
                if ftz {
                    v = self.t.call("rg_ftz_f32", &[&v]);
                }
            }
            Float::F16 | Float::Bf16 => {
                if l == "double" {
                    v = self.t.call("rg_f64_to_f32_odd", &[&v]);
                }
                return Ok(self.single_to_half(i, to, &v));
            }
            _ => {}
        }
        if i.has("sat") {
            v = self.t.call(&format!("rg_sat_{s}"), &[&v]);
        }
        if i.has("relu") {
            v = self.relu(l, &v);
        }
        let b = self.encode(to, &v);
        // f64 conversions keep a NaN's payload, quieted.
        if to == Float::F64 || from == Float::F64 {
            Ok(b)
        } else {
            Ok(self.canonical_bits(to, &b))
        }
    }

    /// From single to a packed half type, tf32 or a pair of 8-bit floats.
    fn narrow(&mut self, i: &Instruction<'a>, to: ScalarType) -> Result<()> {
        let count = i.operands.len().saturating_sub(1);
        let mut values = Vec::new();
        for operand in i.operands.get(1..).unwrap_or_default() {
            let bits = self.float_bits(i, operand, 32)?;
            values.push(self.decode(Float::F32, &bits));
        }
        match (to, Float::of_element(to)) {
            (ScalarType::Tf32, _) if count == 1 => {
                let v = if i.has("relu") {
                    self.relu("float", &values[0])
                } else {
                    values[0].clone()
                };
                let b = ir!(self.t, "bitcast float {v} to i32");
                let r = if i.has("rna") {
                    self.t.call("rg_tf32_rna", &[&b])
                } else if i.has("rz") {
                    self.t.call("rg_tf32_rz", &[&b])
                } else {
                    self.t.call("rg_tf32_rn", &[&b])
                };
                self.result(i, &r, 32)
            }
            // The first source is the upper half.
            (_, Some(f)) if count == 2 && f != Float::F32 => {
                let high = self.single_to_half(i, f, &values[0]);
                let low = self.single_to_half(i, f, &values[1]);
                let v = self.join16(&low, &high);
                self.result(i, &v, 32)
            }
            (ScalarType::E4m3x2 | ScalarType::E5m2x2, _) if count == 2 => {
                let v = self.pair_of_bytes(i, to, &values[1].clone(), &values[0].clone());
                self.result(i, &v, 16)
            }
            _ => Err(i.unsupported()),
        }
    }

    pub(super) fn join16(&mut self, low: &str, high: &str) -> Val {
        let l = ir!(self.t, "zext i16 {low} to i32");
        let h = ir!(self.t, "zext i16 {high} to i32");
        let h = ir!(self.t, "shl i32 {h}, 16");
        ir!(self.t, "or i32 {l}, {h}")
    }

    fn pair_of_bytes(&mut self, i: &Instruction<'a>, to: ScalarType, low: &str, high: &str) -> Val {
        let helper = if to == ScalarType::E4m3x2 { "rg_e4m3" } else { "rg_e5m2" };
        let mut codes = Vec::new();
        for v in [low, high] {
            let v = if i.has("relu") {
                self.relu("float", v)
            } else {
                v.to_string()
            };
            codes.push(self.t.call(helper, &[&v]));
        }
        let h = ir!(self.t, "shl i32 {}, 8", codes[1]);
        let v = ir!(self.t, "or i32 {}, {h}", codes[0]);
        self.resize(&v, 32, 16, false)
    }

    /// Between packed half and pairs of 8-bit floats.
    fn small_floats(&mut self, i: &Instruction<'a>, to: ScalarType, from: ScalarType) -> Result<()> {
        match (to, from) {
            (ScalarType::E4m3x2 | ScalarType::E5m2x2, ScalarType::F16x2) => {
                let v = self.src_at(i, 1, 32)?;
                let mut halves = Vec::new();
                for at in 0..2 {
                    let h = self.half_of(&v, at);
                    let h = ir!(self.t, "bitcast i16 {h} to half");
                    halves.push(ir!(self.t, "fpext half {h} to float"));
                }
                let v = self.pair_of_bytes(i, to, &halves[0].clone(), &halves[1].clone());
                self.result(i, &v, 16)
            }
            (ScalarType::F16x2, ScalarType::E4m3x2 | ScalarType::E5m2x2) => {
                let v = self.src_at(i, 1, 16)?;
                let v = self.resize(&v, 16, 32, false);
                let helper = if from == ScalarType::E4m3x2 {
                    "rg_from_e4m3"
                } else {
                    "rg_from_e5m2"
                };
                let mut halves = Vec::new();
                for at in 0..2 {
                    let b = self.part(&v, at, 8, false);
                    let mut h = self.t.call(helper, &[&b]);
                    if i.has("relu") {
                        let f = ir!(self.t, "bitcast i16 {h} to half");
                        let f = self.relu("half", &f);
                        h = ir!(self.t, "bitcast half {f} to i16");
                    }
                    halves.push(h);
                }
                let v = self.join16(&halves[0].clone(), &halves[1].clone());
                self.result(i, &v, 32)
            }
            _ => Err(i.unsupported()),
        }
    }

    /// `cvt.pack.sat`: operand 1 above operand 2 above what operand 3 shifts up.
    fn convert_pack(&mut self, i: &Instruction<'a>, to: ScalarType) -> Result<()> {
        // s4, u4, s2 and u2 are no types of their own anywhere else.
        let narrow = i.modifiers.iter().find_map(|m| match *m {
            "s4" => Some((4, true)),
            "u4" => Some((4, false)),
            "s2" => Some((2, true)),
            "u2" => Some((2, false)),
            _ => None,
        });
        let (bits, signed) = narrow.unwrap_or((to.bits(), to.is_signed()));
        if bits > 16 {
            return Err(i.unsupported());
        }
        let (a, b) = self.two(i, 32)?;
        let (low, high) = if signed {
            (-1 << (bits - 1), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        };
        let mut parts = Vec::new();
        for v in [a, b] {
            let v = self.min_max(false, true, 32, &v, &format!("{low}"));
            let v = self.min_max(true, true, 32, &v, &format!("{high}"));
            parts.push(ir!(self.t, "and i32 {v}, {}", (1u32 << bits) - 1));
        }
        let up = ir!(self.t, "shl i32 {}, {bits}", parts[0]);
        let mut v = ir!(self.t, "or i32 {up}, {}", parts[1]);
        if i.operands.len() > 3 {
            let c = self.src_at(i, 3, 32)?;
            let c = ir!(self.t, "shl i32 {c}, {}", 2 * bits);
            v = ir!(self.t, "or i32 {v}, {c}");
        }
        self.result(i, &v, 32)
    }
}
