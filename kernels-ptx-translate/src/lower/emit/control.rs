//! Transfers of control and calls (PTX ISA, "Control Flow Instructions").

use super::{Emit, Place, Result};
use crate::lower::flow::{self, Flow};
use crate::lower::text::{Val, ir, st};
use crate::protocol::TranslateError;
use crate::ptx::ast::{Call, FuncId, Instruction, LabelKind, Operand, Parameter, Symbol};
use crate::ptx::layout::{function_token, is_refused_service};

impl<'a> Emit<'_, '_, 'a> {
    /// The last instruction of block `at`. `next` is the label of what follows it.
    pub(super) fn transfer(&mut self, i: &Instruction<'a>, flow: &Flow<'_, 'a>, at: usize, next: &str) -> Result<()> {
        let label = |label| match flow.at_label.get(&label) {
            Some(at) => Ok(format!("b{at}")),
            None => Err(TranslateError::invalid(i.line, "branch to a label of no code")),
        };
        if i.opcode == "exit" && !self.is_kernel() {
            return Err(TranslateError::Unsupported {
                line: i.line,
                construct: "exit in a function".into(),
            });
        }
        let mut guard = i.predicate.map(|p| self.guard(p));
        // LLVM would see that the lanes which took a lock leave the loop next, and move what they do with it behind the
        // loop: a wave leaves a loop when its last lane does, so the lock would never be released.
        if self
            .k
            .waits
            .get(&self.id)
            .is_some_and(|branches| branches.contains(&at))
        {
            guard = guard.map(|guard| self.t.call("rg_opaque", &[&guard]));
        }
        if i.opcode == "brx" {
            if let Some(guard) = guard {
                let taken = self.t.label();
                st!(self.t, "br i1 {guard}, label %{taken}, label %{next}");
                self.t.place(&taken);
            }
            let index = self.src_at(i, 0, 32)?;
            let mut cases = String::new();
            let mut last = next.to_string();
            for (at, target) in flow::branch_table(self.body, i)?.iter().enumerate() {
                last = label(*target)?;
                cases.push_str(&format!("i32 {at}, label %{last} "));
            }
            st!(self.t, "switch i32 {index}, label %{last} [ {cases}]");
            return Ok(());
        }
        let target = if i.opcode == "bra" {
            label(flow::branch_target(i)?)?
        } else {
            "leave".into()
        };
        match guard {
            Some(guard) => st!(self.t, "br i1 {guard}, label %{target}, label %{next}"),
            None => st!(self.t, "br label %{target}"),
        }
        Ok(())
    }

    pub(super) fn call(&mut self, i: &Instruction<'a>) -> Result<()> {
        let Some(call) = i.call.as_deref() else {
            return Err(i.unsupported());
        };
        match &call.callee {
            Operand::Symbol(Symbol::Function(id), _) => {
                let id = self.k.definition(*id);
                let function = self.k.module.function(id);
                if function.body.is_none() {
                    return self.service(i, call, function.name);
                }
                self.direct_call(i, call, id)
            }
            Operand::Register(r) => {
                let token = self.load_reg(*r);
                let token = self.resize(&token, self.reg_bits(*r), 64, false);
                self.indirect_call(i, call, &token)
            }
            _ => Err(i.unsupported()),
        }
    }

    /// Pointers to what is passed and returned; and the registers to fill afterwards.
    fn direct_call(&mut self, i: &Instruction<'a>, call: &Call<'a>, id: FuncId) -> Result<()> {
        let module = self.k.module;
        let function = module.function(id);
        if function.returns.len() != call.returns.len() || function.params.len() != call.arguments.len() {
            let message = format!("call of {} with another number of parameters", function.name);
            return Err(TranslateError::invalid(i.line, message));
        }
        let size = |p: &Parameter| match *p {
            Parameter::Variable(id) => (
                module.variable(id).size.min(1 << 20) as u32,
                module.variable(id).align.max(4),
            ),
            Parameter::Register(_, ty) => (ty.bytes(), ty.bytes().max(4)),
        };
        let mut pointers = vec!["ptr addrspace(4) %hid".to_string()];
        let mut back = Vec::new();
        for (operand, formal) in call.returns.iter().zip(&function.returns) {
            let (bytes, align) = size(formal);
            let pointer = match operand {
                Operand::Symbol(..) => self.stack_of(i, operand)?,
                _ => {
                    let slot = self.t.slot(&format!("[{bytes} x i8]"), align);
                    back.push((operand, slot.clone(), bytes));
                    slot
                }
            };
            pointers.push(format!("ptr addrspace(5) {pointer}"));
        }
        for (operand, formal) in call.arguments.iter().zip(&function.params) {
            let (bytes, align) = size(formal);
            let pointer = match operand {
                Operand::Symbol(Symbol::Variable(_), _) => self.stack_of(i, operand)?,
                _ => {
                    let slot = self.t.slot(&format!("[{bytes} x i8]"), align);
                    let v = self.src(i, operand, bytes * 8)?;
                    st!(
                        self.t,
                        "store i{} {v}, ptr addrspace(5) {slot}, align {align}",
                        bytes * 8
                    );
                    slot
                }
            };
            pointers.push(format!("ptr addrspace(5) {pointer}"));
        }
        st!(self.t, "call void @rg_f{}({})", id.0, pointers.join(", "));
        for (operand, slot, bytes) in back {
            let v = ir!(self.t, "load i{}, ptr addrspace(5) {slot}, align 4", bytes * 8);
            self.dst(i, operand, &v, bytes * 8, false)?;
        }
        Ok(())
    }

    /// A pointer to a `.param` variable of this function.
    fn stack_of(&self, i: &Instruction<'a>, operand: &Operand<'a>) -> Result<Val> {
        match operand {
            Operand::Symbol(Symbol::Variable(id), 0) => match self.places.get(id) {
                Some(Place::Stack(slot)) => Ok(slot.clone()),
                _ => Err(i.unsupported()),
            },
            _ => Err(i.unsupported()),
        }
    }

    /// A call through a register: a switch over the numbers of the functions that it may reach.
    fn indirect_call(&mut self, i: &Instruction<'a>, call: &Call<'a>, token: &str) -> Result<()> {
        let listed = call.targets.and_then(|label| match &self.body.label(label).kind {
            LabelKind::CallTargets(targets) => Some(targets.clone()),
            _ => None,
        });
        let module = self.k.module;
        let fits = |id: &FuncId| {
            let f = module.function(*id);
            !f.is_entry
                && f.body.is_some()
                && f.params.len() == call.arguments.len()
                && f.returns.len() == call.returns.len()
        };
        let candidates = listed.unwrap_or_else(|| self.k.address_taken.clone());
        let candidates: Vec<FuncId> = candidates.into_iter().filter(fits).collect();
        let (join, bad) = (self.t.label(), self.t.label());
        let labels: Vec<(FuncId, String)> = candidates.into_iter().map(|id| (id, self.t.label())).collect();
        let cases: String = labels
            .iter()
            .map(|(id, label)| format!("i64 {}, label %{label} ", function_token(*id)))
            .collect();
        st!(self.t, "switch i64 {token}, label %{bad} [ {cases}]");
        let before = self.known.clone();
        for (id, label) in &labels {
            self.t.place(label);
            self.known = before.clone();
            self.direct_call(i, call, *id)?;
            st!(self.t, "br label %{join}");
        }
        self.t.place(&bad);
        self.t.call("llvm.trap", &[]);
        st!(self.t, "unreachable");
        self.t.place(&join);
        // Results differ by the arm taken: nothing is known of them.
        self.known.clear();
        Ok(())
    }

    /// The functions that CUDA's device runtime provides.
    fn service(&mut self, i: &Instruction<'a>, call: &Call<'a>, name: &str) -> Result<()> {
        let mut args = Vec::new();
        for operand in &call.arguments {
            let v = match operand {
                Operand::Symbol(Symbol::Variable(id), _) => {
                    let bits = self.k.module.variable(*id).size as u32 * 8;
                    let slot = self.stack_of(i, operand)?;
                    ir!(self.t, "load i{bits}, ptr addrspace(5) {slot}, align {}", bits / 8)
                }
                other => self.src(i, other, 64)?,
            };
            args.push(v);
        }
        let hidden = |e: &mut Self, at: u32| {
            let p = ir!(e.t, "getelementptr i8, ptr addrspace(4) %hid, i64 {at}");
            ir!(e.t, "load i64, ptr addrspace(4) {p}, align 8")
        };
        let result = match (name, args.as_slice()) {
            ("vprintf", [format, values]) => {
                self.k.uses_printf = true;
                let ring = hidden(self, 8);
                Some((self.t.call("rg_vprintf", &[format, values, &ring]), 32))
            }
            ("malloc", [size]) => {
                self.k.uses_heap = true;
                let heap = hidden(self, 16);
                Some((self.t.call("rg_malloc", &[size, &heap]), 64))
            }
            ("free", [pointer]) => {
                self.k.uses_heap = true;
                let heap = hidden(self, 16);
                self.t.call("rg_free", &[pointer, &heap]);
                None
            }
            ("cudaGraphSetConditional", [handle, value]) => {
                // A handle is the address of the word that the host reads when the kernel has ended.
                let word = ir!(self.t, "inttoptr i64 {handle} to ptr addrspace(1)");
                st!(
                    self.t,
                    "store atomic i32 {value}, ptr addrspace(1) {word} monotonic, align 4"
                );
                None
            }
            ("__assertfail", [message, file, line, function, _]) => {
                self.k.uses_printf = true;
                let ring = hidden(self, 8);
                // The thread's place, x and y in one word each.
                let mut place = Vec::new();
                for name in ["%ctaid", "%tid"] {
                    let x = self.special(i, name, Some("x"))?.0;
                    let y = self.special(i, name, Some("y"))?.0;
                    let x = self.resize(&x, 32, 64, false);
                    let y = self.resize(&y, 32, 64, false);
                    let y = ir!(self.t, "shl i64 {y}, 32");
                    place.push(ir!(self.t, "or i64 {x}, {y}"));
                    place.push(self.special(i, name, Some("z"))?.0);
                }
                let place: Vec<&str> = place.iter().map(String::as_str).collect();
                let args = [
                    message.as_str(),
                    file,
                    line,
                    function,
                    &ring,
                    place[0],
                    place[1],
                    place[2],
                    place[3],
                ];
                self.t.call("rg_assertfail", &args);
                None
            }
            _ => {
                let construct = if is_refused_service(name) {
                    format!("call of {name} from a kernel (device-side launch)")
                } else {
                    format!("call of {name}, which this module does not define")
                };
                return Err(TranslateError::Unsupported {
                    line: i.line,
                    construct,
                });
            }
        };
        if let (Some((v, bits)), Some(operand)) = (result, call.returns.first()) {
            if let Operand::Symbol(..) = operand {
                let slot = self.stack_of(i, operand)?;
                st!(self.t, "store i{bits} {v}, ptr addrspace(5) {slot}, align {}", bits / 8);
            } else {
                self.dst(i, operand, &v, bits, false)?;
            }
        }
        Ok(())
    }
}
