//! Loads, stores and addresses (PTX ISA, "Data Movement and Conversion Instructions").

use super::{Emit, Place, Result};
use crate::lower::text::{Val, ir, st};
use crate::ptx::ast::{Address, AddressBase, Instruction, Operand, StateSpace, Symbol};

/// A state space as an instruction names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

impl Space {
    /// The LLVM pointer type.
    pub(super) fn pointer(self) -> &'static str {
        match self {
            Self::Generic => "ptr",
            Self::Global => "ptr addrspace(1)",
            Self::Const => "ptr addrspace(4)",
            Self::Shared => "ptr addrspace(3)",
            Self::Local | Self::Param => "ptr addrspace(5)",
        }
    }

    fn named(word: &str) -> Option<Self> {
        Some(match word.split("::").next()? {
            "global" => Self::Global,
            "const" => Self::Const,
            "shared" => Self::Shared,
            "local" => Self::Local,
            "param" => Self::Param,
            _ => return None,
        })
    }

    /// The first space among an instruction's modifiers.
    pub(super) fn of(i: &Instruction<'_>) -> Self {
        i.modifiers.iter().find_map(|m| Self::named(m)).unwrap_or(Self::Generic)
    }
}

/// The LLVM synchronisation scope of an instruction; CUDA's default is the device.
pub(super) fn scope(i: &Instruction<'_>) -> &'static str {
    if i.has("cta") {
        "syncscope(\"workgroup\") "
    } else if i.has("sys") || i.has("volatile") || i.has("mmio") {
        ""
    } else {
        "syncscope(\"agent\") "
    }
}

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn memory(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.opcode {
            "ld" | "ldu" => self.load(i),
            "st" => self.store(i),
            "cvta" => self.cvta(i),
            "isspacep" => self.isspacep(i),
            "cp" => self.cp_async(i),
            "ldmatrix" => self.ldmatrix(i),
            // Hints.
            "prefetch" | "prefetchu" | "applypriority" | "discard" => Ok(()),
            "createpolicy" => self.result(i, "0", 64),
            _ => Err(i.unsupported()),
        }
    }

    /// The address operand `at` as a pointer and its LLVM type.
    pub(super) fn pointer_at(&mut self, i: &Instruction<'a>, at: usize, space: Space) -> Result<(Val, &'static str)> {
        match self.operand(i, at)? {
            Operand::Address(address) => self.pointer(i, *address, space),
            _ => Err(i.unsupported()),
        }
    }

    fn pointer(&mut self, i: &Instruction<'a>, address: Address, space: Space) -> Result<(Val, &'static str)> {
        let offset = address.offset;
        // Variables whose place LLVM knows keep it: their slots can become registers.
        if let AddressBase::Symbol(Symbol::Variable(id)) = address.base {
            let variable = self.k.module.variable(id);
            let known = match (variable.space, self.places.get(&id)) {
                (StateSpace::Local | StateSpace::Param, Some(Place::Stack(slot))) => {
                    Some((slot.clone(), Space::Local.pointer()))
                }
                (_, Some(Place::KernelParam(at))) => {
                    let at = i64::from(*at) + offset;
                    let p = ir!(self.t, "getelementptr i8, ptr addrspace(4) %p, i64 {at}");
                    return Ok((p, Space::Const.pointer()));
                }
                (StateSpace::Shared, _) if space == Space::Shared => {
                    Some((self.shared_pointer(id)?, Space::Shared.pointer()))
                }
                _ => None,
            };
            if let Some((base, ty)) = known {
                if offset == 0 {
                    return Ok((base, ty));
                }
                return Ok((ir!(self.t, "getelementptr i8, {ty} {base}, i32 {offset}"), ty));
            }
        }
        let v = match address.base {
            AddressBase::Register(r) => {
                let v = self.load_reg(r);
                self.resize(&v, self.reg_bits(r), 64, false)
            }
            AddressBase::Symbol(symbol) => {
                let v = self.symbol_address(i, symbol, offset)?;
                // A variable named without its space is addressed generically.
                if space == Space::Generic
                    && let Symbol::Variable(id) = symbol
                    && self.k.module.variable(id).space == StateSpace::Shared
                {
                    self.generic_address(&v, Space::Shared)
                } else {
                    v
                }
            }
            AddressBase::Absolute => "0".into(),
        };
        let offset = if matches!(address.base, AddressBase::Symbol(_)) {
            0
        } else {
            offset
        };
        let ty = match space {
            // A kernel's parameters are in memory, a function's on the stack.
            Space::Param if self.is_kernel() && matches!(address.base, AddressBase::Register(_)) => {
                Space::Const.pointer()
            }
            _ => space.pointer(),
        };
        if matches!(space, Space::Shared) || ty == Space::Local.pointer() {
            let v = self.resize(&v, 64, 32, false);
            let v = if offset == 0 {
                v
            } else {
                ir!(self.t, "add i32 {v}, {}", offset as i32)
            };
            return Ok((ir!(self.t, "inttoptr i32 {v} to {ty}"), ty));
        }
        let p = ir!(self.t, "inttoptr i64 {v} to {ty}");
        let p = if offset == 0 {
            p
        } else {
            ir!(self.t, "getelementptr i8, {ty} {p}, i64 {offset}")
        };
        Ok((p, ty))
    }

    /// `volatile`, `.relaxed` and the like: the text after `load`/`store` and the ordering at the end.
    fn ordering(&self, i: &Instruction<'a>, bits: u32) -> Option<(String, String)> {
        let load = i.opcode != "st";
        let order = if i.has("acquire") && load {
            "acquire"
        } else if i.has("release") && !load {
            "release"
        } else if i.has("volatile") || i.has("relaxed") || i.has("mmio") || (load && i.has("cv")) {
            "monotonic"
        } else {
            return None;
        };
        let volatile = if i.has("volatile") || i.has("mmio") || i.has("cv") {
            "volatile "
        } else {
            ""
        };
        if bits > 64 {
            return Some(("volatile ".into(), String::new()));
        }
        Some((format!("atomic {volatile}"), format!(" {}{order}", scope(i))))
    }

    fn load(&mut self, i: &Instruction<'a>) -> Result<()> {
        let ty = self.ty(i)?;
        let (bits, signed) = (ty.bits(), ty.is_signed());
        let space = if i.opcode == "ldu" { Space::Global } else { Space::of(i) };
        let (p, pt) = self.pointer_at(i, 1, space)?;
        let destination = self.operand(i, 0)?;
        let n = u32::from(i.vector());
        let ordering = self.ordering(i, bits);
        if n == 1 {
            let (how, order) = ordering.unwrap_or_default();
            let v = ir!(self.t, "load {how}i{bits}, {pt} {p}{order}, align {}", bits / 8);
            return self.dst(i, destination, &v, bits, signed);
        }
        let Operand::Vector(list) = destination else {
            return Err(i.unsupported());
        };
        if list.len() != n as usize {
            return Err(i.unsupported());
        }
        if let Some((how, order)) = ordering {
            for (at, operand) in list.iter().enumerate() {
                let q = ir!(self.t, "getelementptr i8, {pt} {p}, i32 {}", at as u32 * bits / 8);
                let v = ir!(self.t, "load {how}i{bits}, {pt} {q}{order}, align {}", bits / 8);
                self.dst(i, operand, &v, bits, signed)?;
            }
            return Ok(());
        }
        let whole = ir!(self.t, "load <{n} x i{bits}>, {pt} {p}, align {}", n * bits / 8);
        for (at, operand) in list.iter().enumerate() {
            let v = ir!(self.t, "extractelement <{n} x i{bits}> {whole}, i32 {at}");
            self.dst(i, operand, &v, bits, signed)?;
        }
        Ok(())
    }

    fn store(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.has("async") || i.has("bulk") {
            return Err(i.unsupported());
        }
        let bits = self.ty(i)?.bits();
        let (p, pt) = self.pointer_at(i, 0, Space::of(i))?;
        let value = self.operand(i, 1)?;
        let n = u32::from(i.vector());
        let ordering = self.ordering(i, bits);
        if n == 1 {
            let v = self.src(i, value, bits)?;
            let (how, order) = ordering.unwrap_or_default();
            st!(self.t, "store {how}i{bits} {v}, {pt} {p}{order}, align {}", bits / 8);
            return Ok(());
        }
        let Operand::Vector(list) = value else {
            return Err(i.unsupported());
        };
        if list.len() != n as usize {
            return Err(i.unsupported());
        }
        let mut values = Vec::new();
        for operand in list {
            values.push(self.src(i, operand, bits)?);
        }
        if let Some((how, order)) = ordering {
            for (at, v) in values.iter().enumerate() {
                let q = ir!(self.t, "getelementptr i8, {pt} {p}, i32 {}", at as u32 * bits / 8);
                st!(self.t, "store {how}i{bits} {v}, {pt} {q}{order}, align {}", bits / 8);
            }
            return Ok(());
        }
        let mut whole = "undef".to_string();
        for (at, v) in values.iter().enumerate() {
            whole = ir!(self.t, "insertelement <{n} x i{bits}> {whole}, i{bits} {v}, i32 {at}");
        }
        st!(
            self.t,
            "store <{n} x i{bits}> {whole}, {pt} {p}, align {}",
            n * bits / 8
        );
        Ok(())
    }

    /// A 64-bit address in `space` to a generic one.
    fn generic_address(&mut self, v: &str, space: Space) -> Val {
        let pt = space.pointer();
        if !matches!(space, Space::Shared | Space::Local) {
            return v.to_string();
        }
        let v = self.resize(v, 64, 32, false);
        let p = ir!(self.t, "inttoptr i32 {v} to {pt}");
        let g = ir!(self.t, "addrspacecast {pt} {p} to ptr");
        ir!(self.t, "ptrtoint ptr {g} to i64")
    }

    fn cvta(&mut self, i: &Instruction<'a>) -> Result<()> {
        let space = Space::of(i);
        let bits = self.ty(i)?.bits();
        let v = self.src_at(i, 1, 64)?;
        let v = if !i.has("to") {
            self.generic_address(&v, space)
        } else if matches!(space, Space::Shared | Space::Local) {
            let pt = space.pointer();
            let g = ir!(self.t, "inttoptr i64 {v} to ptr");
            let p = ir!(self.t, "addrspacecast ptr {g} to {pt}");
            let v = ir!(self.t, "ptrtoint {pt} {p} to i32");
            self.resize(&v, 32, 64, false)
        } else {
            v
        };
        let v = self.resize(&v, 64, bits, false);
        self.result(i, &v, bits)
    }

    /// As recorded, every address is in exactly one of the windows; null is global.
    fn isspacep(&mut self, i: &Instruction<'a>) -> Result<()> {
        let v = self.src_at(i, 1, 64)?;
        let g = ir!(self.t, "inttoptr i64 {v} to ptr");
        let p = match Space::of(i) {
            Space::Shared => self.t.call("llvm.amdgcn.is.shared", &[&g]),
            Space::Local => self.t.call("llvm.amdgcn.is.private", &[&g]),
            Space::Const => self.in_const(&v),
            Space::Global => {
                let s = self.t.call("llvm.amdgcn.is.shared", &[&g]);
                let l = self.t.call("llvm.amdgcn.is.private", &[&g]);
                let c = self.in_const(&v);
                let any = ir!(self.t, "or i1 {s}, {l}");
                let any = ir!(self.t, "or i1 {any}, {c}");
                ir!(self.t, "xor i1 {any}, true")
            }
            _ => return Err(i.unsupported()),
        };
        self.result(i, &p, 1)
    }

    /// Whether an address is in one of the module's `.const` variables.
    fn in_const(&mut self, v: &str) -> Val {
        let at = ir!(self.t, "sub i64 {v}, %data");
        let mut any = "false".to_string();
        for (start, size) in self.k.const_ranges() {
            let d = ir!(self.t, "sub i64 {at}, {start}");
            let p = ir!(self.t, "icmp ult i64 {d}, {size}");
            any = ir!(self.t, "or i1 {any}, {p}");
        }
        any
    }

    /// `cp.async` is done at once; what waits for it has nothing to wait for.
    fn cp_async(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.has("commit_group") || i.has("wait_group") || i.has("wait_all") {
            return Ok(());
        }
        if i.has("async") && i.has("mbarrier") && i.has("arrive") && !i.has("bulk") {
            return self.arrive_when_copied(i);
        }
        if !i.has("async") || i.has("bulk") || i.has("mbarrier::arrive") || i.has("mbarrier") || i.has("reduce") {
            return Err(i.unsupported());
        }
        let (to, tt) = self.pointer_at(i, 0, Space::Shared)?;
        let (from, ft) = self.pointer_at(i, 1, Space::Global)?;
        let Operand::Immediate(crate::ptx::ast::Immediate::Int(size @ (4 | 8 | 16))) = *self.operand(i, 2)? else {
            return Err(i.unsupported());
        };
        let present = match i.operands.get(3) {
            None => None,
            // A 64-bit register here is a cache policy.
            Some(Operand::Register(r)) if self.reg_bits(*r) == 64 => None,
            Some(Operand::Register(r)) if self.reg_bits(*r) == 1 => {
                let ignore = self.load_reg(*r);
                Some(ir!(self.t, "select i1 {ignore}, i32 0, i32 {size}"))
            }
            Some(operand) => Some(self.src(i, operand, 32)?),
        };
        let Some(present) = present else {
            let words = size / 4;
            let v = ir!(self.t, "load <{words} x i32>, {ft} {from}, align {size}");
            st!(self.t, "store <{words} x i32> {v}, {tt} {to}, align {size}");
            return Ok(());
        };
        // Bytes past the source size are zero and must not be read.
        for at in (0..size).step_by(4) {
            let q = ir!(self.t, "getelementptr i8, {tt} {to}, i32 {at}");
            st!(self.t, "store i32 0, {tt} {q}, align 4");
            let (some, done) = (self.t.label(), self.t.label());
            let c = ir!(self.t, "icmp ugt i32 {present}, {at}");
            st!(self.t, "br i1 {c}, label %{some}, label %{done}");
            self.t.place(&some);
            let p = ir!(self.t, "getelementptr i8, {ft} {from}, i64 {at}");
            let v = ir!(self.t, "load i32, {ft} {p}, align 4");
            let left = ir!(self.t, "sub i32 {present}, {at}");
            let left = self.t.call("llvm.umin.i32", &[&left, "4"]);
            let drop = ir!(self.t, "mul i32 {left}, -8");
            let drop = ir!(self.t, "add i32 {drop}, 32");
            let mask = ir!(self.t, "lshr i32 -1, {drop}");
            let v = ir!(self.t, "and i32 {v}, {mask}");
            st!(self.t, "store i32 {v}, {tt} {q}, align 4");
            st!(self.t, "br label %{done}");
            self.t.place(&done);
        }
        Ok(())
    }
}
