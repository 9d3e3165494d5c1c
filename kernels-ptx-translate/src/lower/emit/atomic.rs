//! `atom` and `red` (PTX ISA, "Parallel Synchronization and Communication Instructions").

use super::float::Float;
use super::memory::{Space, scope};
use super::{Emit, Result};
use crate::lower::text::{Val, ir, st};
use crate::ptx::ast::{Instruction, Operand, ScalarType};

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn atomic(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.has("async") {
            return Err(i.unsupported());
        }
        let ty = self.ty(i)?;
        if ty.bits() > 64 {
            return Err(i.unsupported());
        }
        let first = usize::from(i.opcode == "atom");
        let space = Space::of(i);
        let (p, pt) = self.pointer_at(i, first, space)?;
        let value = self.operand(i, first + 1)?;
        if let Operand::Vector(values) = value {
            // The vector forms promise atomicity of each element only.
            for (at, value) in values.iter().enumerate() {
                let q = ir!(self.t, "getelementptr i8, {pt} {p}, i32 {}", at as u32 * ty.bytes());
                let old = self.one_atomic(i, ty, space, &q, value, None)?;
                if first == 1 {
                    match self.operand(i, 0)? {
                        Operand::Vector(list) if at < list.len() => self.dst(i, &list[at], &old, ty.bits(), false)?,
                        Operand::Sink => {}
                        _ => return Err(i.unsupported()),
                    }
                }
            }
            return Ok(());
        }
        let old = self.one_atomic(i, ty, space, &p, value, i.operands.get(first + 2))?;
        if first == 1 {
            let operand = self.operand(i, 0)?;
            self.dst(i, operand, &old, ty.bits(), ty.is_signed())?;
        }
        Ok(())
    }

    /// One atomic operation; gives the bits that were there.
    fn one_atomic(
        &mut self,
        i: &Instruction<'a>,
        ty: ScalarType,
        space: Space,
        p: &str,
        value: &Operand<'a>,
        other: Option<&Operand<'a>>,
    ) -> Result<Val> {
        let (bits, pt, scope) = (ty.bits(), space.pointer(), scope(i));
        let v = self.src(i, value, bits)?;
        let order = if i.has("acq_rel") {
            "acq_rel"
        } else if i.has("acquire") {
            "acquire"
        } else if i.has("release") {
            "release"
        } else {
            "monotonic"
        };
        let failure = if matches!(order, "acq_rel" | "acquire") {
            "acquire"
        } else {
            "monotonic"
        };
        let op = ["add", "inc", "dec", "min", "max", "and", "or", "xor", "exch", "cas"]
            .into_iter()
            .find(|m| i.has(m));
        let Some(op) = op else { return Err(i.unsupported()) };
        let rmw = match op {
            "cas" => {
                let Some(other) = other else {
                    return Err(i.unsupported());
                };
                let new = self.src(i, other, bits)?;
                let r = ir!(
                    self.t,
                    "cmpxchg {pt} {p}, i{bits} {v}, i{bits} {new} {scope}{order} {failure}"
                );
                return Ok(ir!(self.t, "extractvalue {{ i{bits}, i1 }} {r}, 0"));
            }
            "inc" | "dec" => {
                let number = pt
                    .strip_prefix("ptr addrspace(")
                    .and_then(|s| s.strip_suffix(')'))
                    .unwrap_or("0");
                let name = format!("llvm.amdgcn.atomic.{op}.i32.p{number}");
                return Ok(self.t.call(&name, &[p, &v, "2", "2", "false"]));
            }
            "add" if ty.is_float() => return self.float_add(i, ty, space, p, &v),
            "exch" => "xchg",
            "min" if !ty.is_signed() => "umin",
            "max" if !ty.is_signed() => "umax",
            other => other,
        };
        if ty.is_float() {
            return Err(i.unsupported());
        }
        Ok(ir!(
            self.t,
            "atomicrmw {rmw} {pt} {p}, i{bits} {v} {scope}{order}, align {}",
            bits / 8
        ))
    }

    fn float_add(&mut self, i: &Instruction<'a>, ty: ScalarType, space: Space, p: &str, v: &str) -> Result<Val> {
        let pt = space.pointer();
        match ty {
            // Hardware does these in memory; on fine-grained host memory it cannot, so system scope retries instead.
            ScalarType::F32 | ScalarType::F64 if !i.has("sys") => {
                let (l, bits) = if ty == ScalarType::F32 {
                    ("float", 32)
                } else {
                    ("double", 64)
                };
                let f = ir!(self.t, "bitcast i{bits} {v} to {l}");
                let old = ir!(
                    self.t,
                    "atomicrmw fadd {pt} {p}, {l} {f} {}monotonic, align {}, !amdgpu.no.fine.grained.memory !1, \
                     !amdgpu.ignore.denormal.mode !1",
                    scope(i),
                    bits / 8
                );
                let old = ir!(self.t, "bitcast {l} {old} to i{bits}");
                if ty == ScalarType::F32 {
                    self.correct_sum(i, pt, p, &old, v, space != Space::Shared);
                }
                Ok(old)
            }
            ScalarType::F32 => self.retry(i, pt, p, 32, |e, old| Ok(e.single_sum(old, v, true).1)),
            ScalarType::F64 => self.retry(i, pt, p, 64, |e, old| {
                let a = e.decode(Float::F64, old);
                let b = e.decode(Float::F64, v);
                let s = ir!(e.t, "fadd double {a}, {b}");
                Ok(e.encode(Float::F64, &s))
            }),
            ScalarType::F16x2 | ScalarType::Bf16x2 => {
                let f = if ty == ScalarType::F16x2 {
                    Float::F16
                } else {
                    Float::Bf16
                };
                self.retry(i, pt, p, 32, |e, old| {
                    let mut sums = Vec::new();
                    for at in 0..2 {
                        let (a, b) = (e.half_of(old, at), e.half_of(v, at));
                        sums.push(e.half_sum(f, &a, &b));
                    }
                    Ok(e.join16(&sums[0].clone(), &sums[1].clone()))
                })
            }
            ScalarType::F16 | ScalarType::Bf16 => {
                let f = if ty == ScalarType::F16 { Float::F16 } else { Float::Bf16 };
                self.retry(i, pt, p, 16, |e, old| Ok(e.half_sum(f, old, v)))
            }
            _ => Err(i.unsupported()),
        }
    }

    /// The sum of two singles as the hardware leaves it, and as NVIDIA's does: its global add flushes subnormals, the one
    /// in shared memory does not, and NaN is its own.
    fn single_sum(&mut self, old: &str, v: &str, flush: bool) -> (Val, Val) {
        let mut a = self.decode(Float::F32, old);
        let mut b = self.decode(Float::F32, v);
        let plain = ir!(self.t, "fadd float {a}, {b}");
        let plain_bits = self.encode(Float::F32, &plain);
        let mut sum = plain;
        if flush {
            a = self.t.call("rg_ftz_f32", &[&a]);
            b = self.t.call("rg_ftz_f32", &[&b]);
            sum = ir!(self.t, "fadd float {a}, {b}");
            sum = self.t.call("rg_ftz_f32", &[&sum]);
        }
        let sum = self.encode(Float::F32, &sum);
        (plain_bits, self.canonical_bits(Float::F32, &sum))
    }

    /// Where the hardware's sum is not NVIDIA's (NaN, subnormals), replaces it unless somebody has added to it since.
    fn correct_sum(&mut self, i: &Instruction<'a>, pt: &str, p: &str, old: &str, v: &str, flush: bool) {
        let (plain, wanted) = self.single_sum(old, v, flush);
        let (fix, done) = (self.t.label(), self.t.label());
        let differs = ir!(self.t, "icmp ne i32 {plain}, {wanted}");
        st!(self.t, "br i1 {differs}, label %{fix}, label %{done}");
        self.t.place(&fix);
        // Which of two NaNs the hardware passes on is its own affair: any NaN that is there is replaced.
        let now = ir!(self.t, "load atomic i32, {pt} {p} {}monotonic, align 4", scope(i));
        let magnitude = ir!(self.t, "and i32 {now}, 2147483647");
        let is_nan = ir!(self.t, "icmp ugt i32 {magnitude}, 2139095040");
        let of_nan = ir!(self.t, "icmp eq i32 {wanted}, 2147483647");
        let both = ir!(self.t, "and i1 {is_nan}, {of_nan}");
        let expected = ir!(self.t, "select i1 {both}, i32 {now}, i32 {plain}");
        ir!(
            self.t,
            "cmpxchg {pt} {p}, i32 {expected}, i32 {wanted} {}monotonic monotonic",
            scope(i)
        );
        st!(self.t, "br label %{done}");
        self.t.place(&done);
    }

    fn half_sum(&mut self, f: Float, a: &str, b: &str) -> Val {
        let (a, b) = (self.decode(f, a), self.decode(f, b));
        let s = ir!(self.t, "fadd {} {a}, {b}", f.llvm());
        let s = self.encode(f, &s);
        self.canonical_bits(f, &s)
    }

    /// Compare-and-swap until nobody came between; gives the bits that were there.
    fn retry(
        &mut self,
        i: &Instruction<'a>,
        pt: &str,
        p: &str,
        bits: u32,
        new: impl FnOnce(&mut Self, &str) -> Result<Val>,
    ) -> Result<Val> {
        let scope = scope(i);
        let slot = self.t.slot(&format!("i{bits}"), 8);
        let first = ir!(
            self.t,
            "load atomic i{bits}, {pt} {p} {scope}monotonic, align {}",
            bits / 8
        );
        st!(self.t, "store i{bits} {first}, ptr addrspace(5) {slot}, align 8");
        let (again, done) = (self.t.label(), self.t.label());
        st!(self.t, "br label %{again}");
        self.t.place(&again);
        let old = ir!(self.t, "load i{bits}, ptr addrspace(5) {slot}, align 8");
        let v = new(self, &old)?;
        let r = ir!(
            self.t,
            "cmpxchg {pt} {p}, i{bits} {old}, i{bits} {v} {scope}monotonic monotonic"
        );
        let found = ir!(self.t, "extractvalue {{ i{bits}, i1 }} {r}, 0");
        st!(self.t, "store i{bits} {found}, ptr addrspace(5) {slot}, align 8");
        let ok = ir!(self.t, "extractvalue {{ i{bits}, i1 }} {r}, 1");
        st!(self.t, "br i1 {ok}, label %{done}, label %{again}");
        self.t.place(&done);
        Ok(found)
    }
}
