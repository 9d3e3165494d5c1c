//! Writes one PTX function as LLVM IR: registers become stack slots (LLVM's mem2reg turns them into values), each
//! instruction a few lines.
//!
//! A register holds its bits as an integer of its width, so that no conversion ever loses a NaN's payload. Floating-point
//! instructions cast at their edges.

mod atomic;
mod control;
mod convert;
pub mod float;
mod integer;
mod matrix;
mod memory;
mod special;
mod texture;
mod video;
mod warp;
mod wmma;

use std::collections::HashMap;

use super::flow::{self, Flow};
use super::text::{Text, Val, int, ir, st};
use super::{Kernel, contract, nan};
use crate::protocol::{TranslateError, WarpLayout};
use crate::ptx::ast::{
    Body, FuncId, Immediate, Instruction, Operand, Parameter, Predicate, RegId, ScalarType, StateSpace, Symbol, VarId,
};
pub use float::Float;
pub use warp::CELLS_SIZE;

type Result<T> = std::result::Result<T, TranslateError>;

/// Where a `.param` or `.local` variable of the function is.
#[derive(Clone, Debug)]
enum Place {
    /// A pointer in address space 5.
    Stack(Val),
    /// An offset in the kernel's parameter block.
    KernelParam(u32),
}

/// A function being written.
pub struct Emit<'k, 'm, 'a> {
    k: &'k mut Kernel<'m, 'a>,
    id: FuncId,
    body: &'m Body<'a>,
    t: Text,
    /// Register contents known at this point of the block.
    known: HashMap<RegId, Val>,
    /// Registers that hold results of floating-point arithmetic whose NaN is still the hardware's.
    raw_nan: HashMap<RegId, Float>,
    places: HashMap<VarId, Place>,
    carry: Option<Val>,
    /// Sums to be written as fused multiply-adds.
    fused: HashMap<*const Instruction<'a>, Instruction<'a>>,
}

/// The LLVM integer type of `bits` bits.
fn ity(bits: u32) -> String {
    format!("i{bits}")
}

impl<'k, 'm, 'a> Emit<'k, 'm, 'a> {
    /// Writes function `id`; the kernel itself when it is an entry. Returns the definition.
    pub fn function(k: &'k mut Kernel<'m, 'a>, id: FuncId) -> Result<String> {
        let module = k.module;
        let function = module.function(id);
        let Some(body) = &function.body else {
            return Err(TranslateError::Unsupported {
                line: function.line,
                construct: format!("call of {}, which has no body", function.name),
            });
        };
        let raw_nan = nan::deferred(body);
        let mut e = Emit {
            k,
            id,
            body,
            t: Text::default(),
            known: HashMap::new(),
            raw_nan,
            places: HashMap::new(),
            carry: None,
            fused: contract::fused(body),
        };
        e.prologue()?;
        e.blocks()?;
        e.finish()
    }

    fn is_kernel(&self) -> bool {
        self.id == self.k.entry
    }

    fn solo(&self) -> bool {
        self.k.layout == WarpLayout::Solo
    }

    /// Registers, local variables and, for a kernel, what the launch passes in.
    fn prologue(&mut self) -> Result<()> {
        for (at, register) in self.body.registers.iter().enumerate() {
            let ty = ity(register.ty.bits());
            let align = register.ty.bytes().min(16);
            self.t
                .at_entry(format_args!("%r{at} = alloca {ty}, align {align}, addrspace(5)"));
        }
        let function = self.k.module.function(self.id);
        for &id in &self.body.variables {
            let variable = self.k.module.variable(id);
            if matches!(variable.space, StateSpace::Local | StateSpace::Param) {
                let size = u32::try_from(variable.size).ok().filter(|&s| s < 1 << 24);
                let Some(size) = size else {
                    return Err(TranslateError::Unsupported {
                        line: variable.line,
                        construct: format!("local variable {} of {} bytes", variable.name, variable.size),
                    });
                };
                let slot = self.t.slot(&format!("[{} x i8]", size.max(1)), variable.align.max(4));
                self.places.insert(id, Place::Stack(slot));
            }
        }
        if self.is_kernel() {
            let params = crate::ptx::layout::params(self.k.module, function);
            for (parameter, place) in function.params.iter().zip(&params) {
                if let Parameter::Variable(id) = parameter {
                    self.places.insert(*id, Place::KernelParam(place.offset));
                }
            }
            let offset = self.k.hidden_offset;
            self.t.at_entry(format_args!(
                "%hid = getelementptr i8, ptr addrspace(4) %p, i64 {offset}"
            ));
        } else {
            let all = function.returns.iter().chain(&function.params).enumerate();
            for (at, parameter) in all {
                match *parameter {
                    Parameter::Variable(id) => {
                        self.places.insert(id, Place::Stack(format!("%a{at}")));
                    }
                    Parameter::Register(r, _) if at >= function.returns.len() => {
                        let ty = ity(self.reg_bits(r));
                        let v = ir!(self.t, "load {ty}, ptr addrspace(5) %a{at}, align 1");
                        self.store_reg(r, &v);
                    }
                    Parameter::Register(..) => {}
                }
            }
        }
        self.t
            .at_entry(format_args!("%data = load i64, ptr addrspace(4) %hid, align 8"));
        if self.is_kernel() && self.solo() {
            let present = self.t.call("rg_present_solo", &["%hid"]);
            let run = self.t.label();
            st!(self.t, "br i1 {present}, label %{run}, label %leave");
            self.t.place(&run);
        }
        if self.is_kernel() && self.k.static_lds > 0 && !self.k.shared.dynamic.is_empty() {
            // Dynamic shared memory is addressed as what follows the static block, so that must not be optimised away.
            st!(
                self.t,
                "call void asm sideeffect \"; static LDS at $0\", \"v\"(i32 ptrtoint (ptr addrspace(3) @rg_shared to i32))"
            );
        }
        if self.is_kernel() && self.k.demands.named_barriers {
            self.clear_barrier_cells();
        }
        st!(self.t, "br label %b0");
        Ok(())
    }

    fn blocks(&mut self) -> Result<()> {
        let flow = Flow::of(self.body)?;
        for (at, block) in flow.blocks.iter().enumerate() {
            self.t.place(&format!("b{at}"));
            self.known.clear();
            let next = if at + 1 == flow.exit() {
                "leave".into()
            } else {
                format!("b{}", at + 1)
            };
            let mut ended = false;
            for i in &block.instructions {
                if flow::is_transfer(i) {
                    self.transfer(i, &flow, at, &next)?;
                    ended = true;
                } else if let Some(fma) = self.fused.remove(&std::ptr::from_ref(*i)) {
                    self.guarded(&fma)?;
                } else {
                    self.guarded(i)?;
                }
            }
            if !ended {
                st!(self.t, "br label %{next}");
            }
        }
        self.t.place("leave");
        self.known.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<String> {
        let function = self.k.module.function(self.id);
        let head = if self.is_kernel() {
            format!(
                "define protected amdgpu_kernel void @{}(ptr addrspace(4) byref([{} x i8]) align 16 %p) #0",
                super::SYMBOL,
                self.k.kernarg_size
            )
        } else {
            for (at, parameter) in function.returns.iter().enumerate() {
                if let Parameter::Register(r, _) = *parameter {
                    let v = self.load_reg(r);
                    let ty = ity(self.reg_bits(r));
                    st!(self.t, "store {ty} {v}, ptr addrspace(5) %a{at}, align 1");
                }
            }
            let count = function.returns.len() + function.params.len();
            let args: String = (0..count).map(|at| format!(", ptr addrspace(5) %a{at}")).collect();
            let attributes = if self.k.recursive.contains(&self.id) { 2 } else { 1 };
            format!(
                "define internal void @rg_f{}(ptr addrspace(4) %hid{args}) #{attributes}",
                self.id.0
            )
        };
        st!(self.t, "ret void");
        if let Some(what) = self.t.broken {
            return Err(TranslateError::Compiler(format!("internal: {what}")));
        }
        self.k.uses.append(&mut self.t.uses);
        Ok(format!("{head} {{\n{}}}\n", self.t.finish()))
    }

    /// An instruction under its guard.
    fn guarded(&mut self, i: &Instruction<'a>) -> Result<()> {
        let Some(guard) = i.predicate else {
            return self.checked(i);
        };
        let condition = self.guard(guard);
        let (then, join) = (self.t.label(), self.t.label());
        st!(self.t, "br i1 {condition}, label %{then}, label %{join}");
        self.t.place(&then);
        let before = self.known.clone();
        self.checked(i)?;
        // What was known before still is, unless the instruction changed it.
        let after = std::mem::replace(&mut self.known, before);
        self.known.retain(|r, v| after.get(r) == Some(v));
        st!(self.t, "br label %{join}");
        self.t.place(&join);
        Ok(())
    }

    /// An instruction; types that no helper or intrinsic exists for make it unsupported.
    fn checked(&mut self, i: &Instruction<'a>) -> Result<()> {
        self.instruction(i)?;
        match &self.t.broken {
            None => Ok(()),
            Some(what) => {
                log::debug!("line {}: {}: {what}", i.line, i.name());
                Err(i.unsupported())
            }
        }
    }

    fn guard(&mut self, guard: Predicate) -> Val {
        let p = self.load_reg(guard.register);
        if guard.negated {
            ir!(self.t, "xor i1 {p}, true")
        } else {
            p
        }
    }

    fn instruction(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.opcode {
            "ld" | "ldu" | "st" | "cvta" | "isspacep" | "cp" | "prefetch" | "prefetchu" | "applypriority"
            | "discard" | "createpolicy" | "ldmatrix" | "stmatrix" => self.memory(i),
            "atom" | "red" => self.atomic(i),
            "membar" | "fence" | "bar" | "barrier" | "nanosleep" | "mbarrier" | "griddepcontrol" => self.synchronise(i),
            "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => self.warp(i),
            "call" => self.call(i),
            "trap" => {
                self.t.call("llvm.trap", &[]);
                Ok(())
            }
            "brkpt" => {
                self.t.call("llvm.debugtrap", &[]);
                Ok(())
            }
            "pmevent" | "setmaxnreg" => Ok(()),
            "mov" => self.mov(i),
            "cvt" => self.convert(i),
            "mma" | "movmatrix" => self.matrix(i),
            "wmma" => self.wmma(i),
            "tex" | "tld4" | "txq" | "suld" | "sust" | "sured" | "suq" | "istypep" => self.texture(i),
            "testp" | "copysign" => self.float(i),
            "set" | "setp" => self.compare(i),
            "selp" | "slct" => self.select(i),
            op if op.starts_with('v') => self.video(i),
            _ => {
                let ty = i.types().last();
                match ty {
                    Some(ty) if ty.is_float() => self.float(i),
                    _ => self.integer(i),
                }
            }
        }
    }

    // ---- registers

    fn reg_ty(&self, r: RegId) -> ScalarType {
        self.body.register(r).ty
    }

    fn reg_bits(&self, r: RegId) -> u32 {
        self.reg_ty(r).bits()
    }

    /// The bits of a register, whatever NaN they are.
    fn load_raw(&mut self, r: RegId) -> Val {
        if let Some(v) = self.known.get(&r) {
            return v.clone();
        }
        let ty = self.body.register(r).ty;
        let (bits, align) = (ty.bits(), ty.bytes().min(16));
        let v = ir!(self.t, "load i{bits}, ptr addrspace(5) %r{}, align {align}", r.0);
        self.known.insert(r, v.clone());
        v
    }

    /// The bits of a register as PTX defines them.
    fn load_reg(&mut self, r: RegId) -> Val {
        let v = self.load_raw(r);
        match self.raw_nan.get(&r) {
            Some(&float) => self.canonical_bits(float, &v),
            None => v,
        }
    }

    fn store_reg(&mut self, r: RegId, v: &str) {
        let ty = self.body.register(r).ty;
        let (bits, align) = (ty.bits(), ty.bytes().min(16));
        st!(self.t, "store i{bits} {v}, ptr addrspace(5) %r{}, align {align}", r.0);
        self.known.insert(r, v.to_string());
    }

    /// Changes the width of an integer.
    fn resize(&mut self, v: &str, from: u32, to: u32, signed: bool) -> Val {
        if from == to {
            return v.to_string();
        }
        let op = match (from > to, signed) {
            (true, _) => "trunc",
            (false, true) => "sext",
            (false, false) => "zext",
        };
        ir!(self.t, "{op} i{from} {v} to i{to}")
    }

    /// The first `bits` bits of an operand.
    fn src(&mut self, i: &Instruction<'a>, operand: &Operand<'a>, bits: u32) -> Result<Val> {
        Ok(match operand {
            Operand::Register(r) => {
                let v = self.load_reg(*r);
                self.resize(&v, self.reg_bits(*r), bits, false)
            }
            Operand::Not(r) => {
                let v = self.load_reg(*r);
                ir!(self.t, "xor i{} {v}, -1", self.reg_bits(*r))
            }
            Operand::Negate(r) => {
                let v = self.load_reg(*r);
                let v = self.resize(&v, self.reg_bits(*r), bits, true);
                ir!(self.t, "sub i{bits} 0, {v}")
            }
            Operand::Immediate(value) => int(immediate_bits(*value, bits), bits),
            Operand::Special(name, component) => {
                let (v, width) = self.special(i, name, *component)?;
                self.resize(&v, width, bits, false)
            }
            Operand::Symbol(symbol, offset) => {
                let v = self.symbol_address(i, *symbol, *offset)?;
                self.resize(&v, 64, bits, false)
            }
            Operand::Vector(list) => self.pack(i, list, bits)?,
            _ => return Err(i.unsupported()),
        })
    }

    /// Operand `at`, or the error that it is missing.
    fn operand<'i>(&self, i: &'i Instruction<'a>, at: usize) -> Result<&'i Operand<'a>> {
        i.operands.get(at).ok_or_else(|| {
            TranslateError::invalid(
                i.line,
                format!("{} needs more than {} operands", i.name(), i.operands.len()),
            )
        })
    }

    fn src_at(&mut self, i: &Instruction<'a>, at: usize, bits: u32) -> Result<Val> {
        let operand = self.operand(i, at)?;
        self.src(i, operand, bits)
    }

    /// Writes `bits` bits to a destination; a wider register is filled by sign or zeros.
    fn dst(&mut self, i: &Instruction<'a>, operand: &Operand<'a>, v: &str, bits: u32, signed: bool) -> Result<()> {
        match operand {
            Operand::Register(r) => {
                let v = self.resize(v, bits, self.reg_bits(*r), signed);
                self.store_reg(*r, &v);
                Ok(())
            }
            Operand::Sink => Ok(()),
            Operand::Vector(list) => self.unpack(i, list, v, bits),
            _ => Err(i.unsupported()),
        }
    }

    /// Writes the result of an instruction.
    fn result(&mut self, i: &Instruction<'a>, v: &str, bits: u32) -> Result<()> {
        let operand = self.operand(i, 0)?;
        self.dst(i, operand, v, bits, false)
    }

    /// Puts a vector of registers together, first element lowest.
    fn pack(&mut self, i: &Instruction<'a>, list: &[Operand<'a>], bits: u32) -> Result<Val> {
        let each = bits / list.len().max(1) as u32;
        let mut all: Option<Val> = None;
        for (at, operand) in list.iter().enumerate() {
            let v = self.src(i, operand, each)?;
            let v = self.resize(&v, each, bits, false);
            let shift = int(u64::from(each) * at as u64, bits);
            let v = if at == 0 {
                v
            } else {
                ir!(self.t, "shl i{bits} {v}, {shift}")
            };
            all = Some(match all {
                None => v,
                Some(low) => ir!(self.t, "or i{bits} {low}, {v}"),
            });
        }
        all.ok_or_else(|| i.unsupported())
    }

    /// Takes a value apart into a vector of registers.
    fn unpack(&mut self, i: &Instruction<'a>, list: &[Operand<'a>], v: &str, bits: u32) -> Result<()> {
        let each = bits / list.len().max(1) as u32;
        for (at, operand) in list.iter().enumerate() {
            let shift = int(u64::from(each) * at as u64, bits);
            let part = if at == 0 {
                v.to_string()
            } else {
                ir!(self.t, "lshr i{bits} {v}, {shift}")
            };
            let part = self.resize(&part, bits, each, false);
            self.dst(i, operand, &part, each, false)?;
        }
        Ok(())
    }

    /// The instruction's last type.
    fn ty(&self, i: &Instruction<'a>) -> Result<ScalarType> {
        i.types().last().ok_or_else(|| i.unsupported())
    }

    fn mov(&mut self, i: &Instruction<'a>) -> Result<()> {
        let bits = self.ty(i)?.bits();
        let source = self.operand(i, 1)?;
        let v = match source {
            // `mov.pred p, %is_explicit_cluster` and packed forms alike.
            Operand::Vector(list) => self.pack(i, list, bits)?,
            other => self.src(i, other, bits)?,
        };
        self.result(i, &v, bits)
    }

    /// The value of an address-taken symbol in 64 bits: the address in its own state space.
    fn symbol_address(&mut self, i: &Instruction<'a>, symbol: Symbol, offset: i64) -> Result<Val> {
        let id = match symbol {
            Symbol::Function(id) => {
                return Ok(int(
                    crate::ptx::layout::function_token(id).wrapping_add_signed(offset),
                    64,
                ));
            }
            Symbol::Variable(id) => id,
        };
        let variable = self.k.module.variable(id);
        let v = match variable.space {
            StateSpace::Global | StateSpace::Const | StateSpace::Tex => {
                let Some(at) = self.k.data.offset(id) else {
                    return Err(TranslateError::Unsupported {
                        line: i.line,
                        construct: format!("the external variable {}", variable.name),
                    });
                };
                let at = at.wrapping_add_signed(offset) as i64;
                return Ok(ir!(self.t, "add i64 %data, {at}"));
            }
            StateSpace::Shared => {
                let pointer = self.shared_pointer(id)?;
                ir!(self.t, "ptrtoint ptr addrspace(3) {pointer} to i32")
            }
            StateSpace::Local | StateSpace::Param => match self.places.get(&id).cloned() {
                Some(Place::Stack(slot)) => ir!(self.t, "ptrtoint ptr addrspace(5) {slot} to i32"),
                Some(Place::KernelParam(at)) => {
                    let base = ir!(self.t, "ptrtoint ptr addrspace(4) %p to i64");
                    let at = i64::from(at) + offset;
                    return Ok(ir!(self.t, "add i64 {base}, {at}"));
                }
                None => return Err(i.unsupported()),
            },
        };
        let wide = ir!(self.t, "zext i32 {v} to i64");
        Ok(if offset == 0 {
            wide
        } else {
            ir!(self.t, "add i64 {wide}, {offset}")
        })
    }

    /// The LDS address of a shared variable.
    fn shared_pointer(&mut self, id: VarId) -> Result<Val> {
        let block = &self.k.shared;
        if let Some((_, at)) = block.offsets.iter().find(|(v, _)| *v == id) {
            let at = *at;
            return Ok(if at == 0 {
                "@rg_shared".into()
            } else {
                ir!(self.t, "getelementptr i8, ptr addrspace(3) @rg_shared, i32 {at}")
            });
        }
        Ok(format!("inttoptr (i32 {} to ptr addrspace(3))", self.k.static_lds))
    }
}

/// The low `bits` bits of a constant used where a type of that width is expected.
fn immediate_bits(value: Immediate, bits: u32) -> u64 {
    match value {
        Immediate::Int(v) => v,
        Immediate::F32(v) if bits == 64 => f64::from(f32::from_bits(v)).to_bits(),
        Immediate::F32(v) => u64::from(v),
        Immediate::F64(v) if bits == 32 => u64::from((f64::from_bits(v) as f32).to_bits()),
        Immediate::F64(v) => v,
    }
}
