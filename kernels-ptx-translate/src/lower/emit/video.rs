//! Video instructions (PTX ISA, "Scalar Video" and "SIMD Video" instructions).

use super::{Emit, Result};
use crate::lower::text::{Val, int, ir};
use crate::ptx::ast::{Instruction, Operand, ScalarType};

/// What follows the first result of a video instruction.
fn second_operation(i: &Instruction<'_>) -> Option<&'static str> {
    ["add", "min", "max"].into_iter().find(|m| i.has(m))
}

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn video(&mut self, i: &Instruction<'a>) -> Result<()> {
        let base = i.opcode.trim_end_matches(['2', '4']);
        if !matches!(
            base,
            "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vmad" | "vset" | "vavrg"
        ) {
            return Err(i.unsupported());
        }
        match i.opcode.as_bytes().last() {
            Some(b'2') => self.simd_video(i, base, 2),
            Some(b'4') => self.simd_video(i, base, 4),
            _ => self.scalar_video(i, base),
        }
    }

    /// An operand of a scalar video instruction, its part chosen and extended to 64 bits.
    fn video_source(&mut self, i: &Instruction<'a>, operand: &Operand<'a>, signed: bool) -> Result<Val> {
        let v = match operand {
            Operand::Part(r, part) => {
                let word = self.load_reg(*r);
                let (bits, at) = match part.as_bytes() {
                    [b'b', n @ b'0'..=b'3'] => (8, u32::from(n - b'0')),
                    [b'h', n @ b'0'..=b'1'] => (16, u32::from(n - b'0')),
                    _ => return Err(i.unsupported()),
                };
                self.part(&word, at, bits, signed)
            }
            other => self.src(i, other, 32)?,
        };
        Ok(self.resize(&v, 32, 64, signed))
    }

    fn scalar_video(&mut self, i: &Instruction<'a>, base: &str) -> Result<()> {
        let types: Vec<ScalarType> = i.types().collect();
        let (to, ta, tb) = match (base, types.as_slice()) {
            ("vset", &[a, b]) => (ScalarType::U32, a, b),
            (_, &[d, a, b]) => (d, a, b),
            _ => return Err(i.unsupported()),
        };
        let signed = to.is_signed();
        let (oa, ob) = (self.operand(i, 1)?, self.operand(i, 2)?);
        let a = self.video_source(i, oa, ta.is_signed())?;
        let b = self.video_source(i, ob, tb.is_signed())?;
        let mut v = match base {
            "vadd" => ir!(self.t, "add i64 {a}, {b}"),
            "vsub" => ir!(self.t, "sub i64 {a}, {b}"),
            "vabsdiff" => {
                let high = self.t.call("llvm.smax.i64", &[&a, &b]);
                let low = self.t.call("llvm.smin.i64", &[&a, &b]);
                ir!(self.t, "sub i64 {high}, {low}")
            }
            "vmin" => self.t.call("llvm.smin.i64", &[&a, &b]),
            "vmax" => self.t.call("llvm.smax.i64", &[&a, &b]),
            "vshl" | "vshr" => {
                let n = if i.has("wrap") {
                    ir!(self.t, "and i64 {b}, 31")
                } else {
                    self.t.call("llvm.umin.i64", &[&b, "32"])
                };
                if base == "vshl" {
                    ir!(self.t, "shl i64 {a}, {n}")
                } else {
                    ir!(self.t, "ashr i64 {a}, {n}")
                }
            }
            "vset" => self.video_compare(i, &a, &b)?,
            "vmad" => return self.vmad(i, to, &a, &b),
            _ => return Err(i.unsupported()),
        };
        let (part, destination) = match self.operand(i, 0)? {
            Operand::Part(r, part) => (Some(*part), Operand::Register(*r)),
            other => (None, other.clone()),
        };
        let bits = match part.map(str::as_bytes) {
            None => 32,
            Some([b'b', b'0'..=b'3']) => 8,
            Some([b'h', b'0'..=b'1']) => 16,
            Some(_) => return Err(i.unsupported()),
        };
        // Recorded against the manual: an unsigned sum wraps, and what is saturated into a signed part takes any
        // negative value for a large one.
        let wraps = base == "vadd" && !signed && !ta.is_signed() && !tb.is_signed() && part.is_none();
        if i.has("sat") && !wraps {
            let (low, high) = if signed {
                (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1)
            } else {
                (0, (1i64 << bits) - 1)
            };
            if part.is_some() && signed {
                v = self.t.call("llvm.umin.i64", &[&v, &high.to_string()]);
            } else {
                v = self.t.call("llvm.smax.i64", &[&v, &low.to_string()]);
                v = self.t.call("llvm.smin.i64", &[&v, &high.to_string()]);
            }
        }
        let mut v = self.resize(&v, 64, 32, false);
        if let (Some(operand), None) = (i.operands.get(3), part) {
            let c = self.src(i, operand, 32)?;
            v = match second_operation(i) {
                Some("add") => ir!(self.t, "add i32 {v}, {c}"),
                Some(op) => self.min_max(op == "min", signed, 32, &v, &c),
                None => v,
            };
        } else if let (Some(operand), Some(part)) = (i.operands.get(3), part) {
            // Merge: the other parts come from c.
            let c = self.src(i, operand, 32)?;
            let at = u32::from(part.as_bytes()[1].saturating_sub(b'0')) & 3;
            let mask = (((1u64 << bits) - 1) << (at * bits)) & 0xffff_ffff;
            let up = ir!(self.t, "shl i32 {v}, {}", at * bits);
            let up = ir!(self.t, "and i32 {up}, {}", int(mask, 32));
            let rest = ir!(self.t, "and i32 {c}, {}", int(!mask & 0xffff_ffff, 32));
            v = ir!(self.t, "or i32 {up}, {rest}");
        }
        self.dst(i, &destination, &v, 32, false)
    }

    fn video_compare(&mut self, i: &Instruction<'a>, a: &str, b: &str) -> Result<Val> {
        let op = ["eq", "ne", "lt", "le", "gt", "ge"]
            .into_iter()
            .find(|m| i.has(m))
            .ok_or_else(|| i.unsupported())?;
        let code = if matches!(op, "eq" | "ne") {
            op.to_string()
        } else {
            format!("s{op}")
        };
        let p = ir!(self.t, "icmp {code} i64 {a}, {b}");
        Ok(ir!(self.t, "zext i1 {p} to i64"))
    }

    /// `vmad`: a * b + c, plus one with `.po`, shifted right by the scale, saturated.
    fn vmad(&mut self, i: &Instruction<'a>, to: ScalarType, a: &str, b: &str) -> Result<()> {
        let operand = self.operand(i, 3)?;
        let c = self.video_source(i, operand, to.is_signed())?;
        let wide: Vec<Val> = [a, b, c.as_str()]
            .into_iter()
            .map(|v| self.resize(v, 64, 128, true))
            .collect();
        let p = ir!(self.t, "mul i128 {}, {}", wide[0], wide[1]);
        let mut v = ir!(self.t, "add i128 {p}, {}", wide[2]);
        if i.has("po") {
            v = ir!(self.t, "add i128 {v}, 1");
        }
        let shift = if i.has("shr7") {
            7
        } else if i.has("shr15") {
            15
        } else {
            0
        };
        if shift > 0 {
            v = ir!(self.t, "ashr i128 {v}, {shift}");
        }
        if i.has("sat") {
            let (low, high) = if to.is_signed() {
                (i64::from(i32::MIN), i64::from(i32::MAX))
            } else {
                (0, 0xffff_ffff)
            };
            let under = ir!(self.t, "icmp slt i128 {v}, {low}");
            let over = ir!(self.t, "icmp sgt i128 {v}, {high}");
            v = ir!(self.t, "select i1 {under}, i128 {low}, i128 {v}");
            v = ir!(self.t, "select i1 {over}, i128 {high}, i128 {v}");
        }
        let v = self.resize(&v, 128, 32, false);
        self.result(i, &v, 32)
    }

    /// Where the lanes of a SIMD operand come from: digits after `h` or `b`, most significant lane first.
    fn lane_choice(part: &str, lanes: usize) -> Option<Vec<u32>> {
        let digits = part.strip_prefix(['h', 'b'])?;
        let list: Vec<u32> = digits.bytes().rev().map(|d| u32::from(d.wrapping_sub(b'0'))).collect();
        (list.len() == lanes && list.iter().all(|&d| d < 2 * lanes as u32)).then_some(list)
    }

    fn simd_video(&mut self, i: &Instruction<'a>, base: &str, lanes: u32) -> Result<()> {
        let types: Vec<ScalarType> = i.types().collect();
        let (to, ta, tb) = match (base, types.as_slice()) {
            ("vset", &[a, b]) => (ScalarType::U32, a, b),
            (_, &[d, a, b]) => (d, a, b),
            _ => return Err(i.unsupported()),
        };
        let bits = 32 / lanes;
        let natural: Vec<u32> = (0..lanes).collect();
        let mut words = Vec::new();
        let mut choices = Vec::new();
        for (at, first) in [(1usize, 0u32), (2, lanes)] {
            match self.operand(i, at)? {
                Operand::Part(r, part) => {
                    words.push(self.load_reg(*r));
                    choices.push(Self::lane_choice(part, lanes as usize).ok_or_else(|| i.unsupported())?);
                }
                other => {
                    words.push(self.src(i, other, 32)?);
                    choices.push(natural.iter().map(|n| n + first).collect());
                }
            }
        }
        let c = match i.operands.get(3) {
            Some(operand) => self.src(i, operand, 32)?,
            None => "0".into(),
        };
        let (written, destination) = match self.operand(i, 0)? {
            Operand::Part(r, part) => {
                let digits = part.strip_prefix(['h', 'b']).unwrap_or_default();
                let list: Vec<u32> = digits.bytes().map(|d| u32::from(d.wrapping_sub(b'0'))).collect();
                (list, Operand::Register(*r))
            }
            other => (natural.clone(), other.clone()),
        };
        let adds = i.has("add");
        let mut all: Option<Val> = adds.then(|| c.clone());
        for lane in 0..lanes {
            let pick = |e: &mut Self, which: usize, signed: bool| {
                let n = choices[which][lane as usize];
                let word = &words[if n >= lanes { 1 } else { 0 }];
                e.part(word, n % lanes, bits, signed)
            };
            let (a, b) = (pick(self, 0, ta.is_signed()), pick(self, 1, tb.is_signed()));
            let mut v = match base {
                "vadd" => ir!(self.t, "add i32 {a}, {b}"),
                "vsub" => ir!(self.t, "sub i32 {a}, {b}"),
                "vavrg" => {
                    // Rounded away from zero.
                    let s = ir!(self.t, "add i32 {a}, {b}");
                    let n = ir!(self.t, "ashr i32 {s}, 31");
                    let s = ir!(self.t, "add i32 {s}, {n}");
                    let s = ir!(self.t, "add i32 {s}, 1");
                    ir!(self.t, "ashr i32 {s}, 1")
                }
                "vabsdiff" => {
                    let high = self.min_max(false, true, 32, &a, &b);
                    let low = self.min_max(true, true, 32, &a, &b);
                    ir!(self.t, "sub i32 {high}, {low}")
                }
                "vmin" | "vmax" => self.min_max(base == "vmin", true, 32, &a, &b),
                "vset" => {
                    let (x, y) = (self.resize(&a, 32, 64, true), self.resize(&b, 32, 64, true));
                    let v = self.video_compare(i, &x, &y)?;
                    self.resize(&v, 64, 32, false)
                }
                _ => return Err(i.unsupported()),
            };
            if i.has("sat") {
                let (low, high) = if to.is_signed() {
                    (-1i32 << (bits - 1), (1i32 << (bits - 1)) - 1)
                } else {
                    (0, (1i32 << bits) - 1)
                };
                v = self.min_max(false, true, 32, &v, &low.to_string());
                v = self.min_max(true, true, 32, &v, &high.to_string());
            }
            if adds {
                if written.contains(&lane)
                    && let Some(sum) = all.take()
                {
                    all = Some(ir!(self.t, "add i32 {sum}, {v}"));
                }
                continue;
            }
            let v = if written.contains(&lane) {
                v
            } else {
                self.part(&c, lane, bits, false)
            };
            let v = ir!(self.t, "and i32 {v}, {}", (1u32 << bits) - 1);
            let v = if lane == 0 {
                v
            } else {
                ir!(self.t, "shl i32 {v}, {}", lane * bits)
            };
            all = Some(match all {
                None => v,
                Some(low) => ir!(self.t, "or i32 {low}, {v}"),
            });
        }
        let v = all.unwrap_or_else(|| "0".into());
        self.dst(i, &destination, &v, 32, false)
    }
}
