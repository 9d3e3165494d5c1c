//! Warp-wide exchange and synchronisation (PTX ISA, "Parallel Synchronization and Communication Instructions").

use super::{Emit, Result};
use crate::lower::text::{Val, ir, st};
use crate::ptx::ast::{Instruction, Operand};

/// Bytes of a barrier cell in LDS: {arrived, generation, reduction, unused}.
const CELL: u32 = 16;

/// Bytes of all 16 barriers' cells.
pub const CELLS_SIZE: u32 = 16 * CELL;

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn warp(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.opcode {
            "shfl" => self.shfl(i),
            "vote" => self.vote(i),
            "match" => self.matching(i),
            "redux" => self.redux(i),
            "activemask" => {
                let v = self.t.call("rg_ballot", &["true"]);
                self.result(i, &v, 32)
            }
            "elect" => {
                let mask = self.src_at(i, 1, 32)?;
                let active = self.t.call("rg_ballot", &["true"]);
                let members = ir!(self.t, "and i32 {active}, {mask}");
                let leader = self.t.call("llvm.cttz.i32", &[&members, "false"]);
                let me = self.t.call("rg_lane", &[]);
                let p = ir!(self.t, "icmp eq i32 {leader}, {me}");
                self.with_predicate(i, &leader, 32, &p)
            }
            _ => Err(i.unsupported()),
        }
    }

    /// Writes `d|p`, or `d` alone.
    fn with_predicate(&mut self, i: &Instruction<'a>, v: &str, bits: u32, p: &str) -> Result<()> {
        match self.operand(i, 0)? {
            Operand::Pair(d, e) => {
                self.dst(i, d, v, bits, false)?;
                self.dst(i, e, p, 1, false)
            }
            d => self.dst(i, d, v, bits, false),
        }
    }

    fn shfl(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mode = ["up", "down", "bfly", "idx"]
            .into_iter()
            .find(|m| i.has(m))
            .ok_or_else(|| i.unsupported())?;
        let a = self.src_at(i, 1, 32)?;
        let b = self.src_at(i, 2, 32)?;
        let c = self.src_at(i, 3, 32)?;
        let j = self.t.call(&format!("rg_shfl_{mode}"), &[&b, &c]);
        let p = ir!(self.t, "icmp sge i32 {j}, 0");
        let me = self.t.call("rg_lane", &[]);
        let from = ir!(self.t, "select i1 {p}, i32 {j}, i32 {me}");
        let v = self.t.call("rg_gather", &[&a, &from]);
        self.with_predicate(i, &v, 32, &p)
    }

    fn vote(&mut self, i: &Instruction<'a>) -> Result<()> {
        let p = self.src_at(i, 1, 1)?;
        let mask = match i.operands.get(2) {
            Some(operand) => self.src(i, operand, 32)?,
            None => "-1".into(),
        };
        let count = |e: &mut Self, p: &str| {
            let b = e.t.call("rg_ballot", &[p]);
            ir!(e.t, "and i32 {b}, {mask}")
        };
        if i.has("ballot") {
            let v = count(self, &p);
            return self.result(i, &v, 32);
        }
        let any = |e: &mut Self| {
            let yes = count(e, &p);
            ir!(e.t, "icmp ne i32 {yes}, 0")
        };
        let all = |e: &mut Self| {
            let n = ir!(e.t, "xor i1 {p}, true");
            let no = count(e, &n);
            ir!(e.t, "icmp eq i32 {no}, 0")
        };
        let v = if i.has("any") {
            any(self)
        } else if i.has("all") {
            all(self)
        } else {
            let a = all(self);
            let b = any(self);
            let none = ir!(self.t, "xor i1 {b}, true");
            ir!(self.t, "or i1 {a}, {none}")
        };
        self.result(i, &v, 1)
    }

    fn matching(&mut self, i: &Instruction<'a>) -> Result<()> {
        let bits = self.ty(i)?.bits();
        let v = self.src_at(i, 1, bits)?;
        let v = self.resize(&v, bits, 64, false);
        let mask = self.src_at(i, 2, 32)?;
        if i.has("any") {
            let m = self.t.call("rg_match_any", &[&v, &mask]);
            return self.result(i, &m, 32);
        }
        let p = self.t.call("rg_match_all", &[&v, &mask]);
        let m = ir!(self.t, "select i1 {p}, i32 {mask}, i32 0");
        self.with_predicate(i, &m, 32, &p)
    }

    /// A butterfly over a whole warp, else a walk over the members.
    fn redux(&mut self, i: &Instruction<'a>) -> Result<()> {
        let ty = self.ty(i)?;
        if ty.is_float() {
            return Err(i.unsupported());
        }
        let signed = ty.is_signed();
        let op = ["add", "min", "max", "and", "or", "xor"]
            .into_iter()
            .find(|m| i.has(m))
            .ok_or_else(|| i.unsupported())?;
        let combine = |e: &mut Self, a: &str, b: &str| match op {
            "min" | "max" => e.min_max(op == "min", signed, 32, a, b),
            _ => ir!(e.t, "{op} i32 {a}, {b}"),
        };
        let identity = match (op, signed) {
            ("and", _) | ("min", false) => "-1".to_string(),
            ("min", true) => i32::MAX.to_string(),
            ("max", true) => i32::MIN.to_string(),
            _ => "0".to_string(),
        };
        let v = self.src_at(i, 1, 32)?;
        let mask = self.src_at(i, 2, 32)?;
        let (sum, left) = (self.t.slot("i32", 4), self.t.slot("i32", 4));
        let active = self.t.call("rg_ballot", &["true"]);
        let members = ir!(self.t, "and i32 {active}, {mask}");
        let whole = ir!(self.t, "icmp eq i32 {members}, -1");
        let (quick, slow, walk, done) = (self.t.label(), self.t.label(), self.t.label(), self.t.label());
        st!(self.t, "br i1 {whole}, label %{quick}, label %{slow}");
        self.t.place(&quick);
        let me = self.t.call("rg_lane", &[]);
        let mut all = v.clone();
        for step in [1, 2, 4, 8, 16] {
            let other = ir!(self.t, "xor i32 {me}, {step}");
            let x = self.t.call("rg_gather", &[&all, &other]);
            all = combine(self, &all, &x);
        }
        st!(self.t, "store i32 {all}, ptr addrspace(5) {sum}, align 4");
        st!(self.t, "br label %{done}");
        self.t.place(&slow);
        st!(self.t, "store i32 {identity}, ptr addrspace(5) {sum}, align 4");
        st!(self.t, "store i32 {members}, ptr addrspace(5) {left}, align 4");
        st!(self.t, "br label %{walk}");
        self.t.place(&walk);
        let l = ir!(self.t, "load i32, ptr addrspace(5) {left}, align 4");
        let at = self.t.call("llvm.cttz.i32", &[&l, "false"]);
        let x = self.t.call("rg_gather", &[&v, &at]);
        let s = ir!(self.t, "load i32, ptr addrspace(5) {sum}, align 4");
        let s = combine(self, &s, &x);
        st!(self.t, "store i32 {s}, ptr addrspace(5) {sum}, align 4");
        let less = ir!(self.t, "sub i32 {l}, 1");
        let l = ir!(self.t, "and i32 {l}, {less}");
        st!(self.t, "store i32 {l}, ptr addrspace(5) {left}, align 4");
        let more = ir!(self.t, "icmp ne i32 {l}, 0");
        st!(self.t, "br i1 {more}, label %{walk}, label %{done}");
        self.t.place(&done);
        let r = ir!(self.t, "load i32, ptr addrspace(5) {sum}, align 4");
        self.result(i, &r, 32)
    }

    pub(super) fn synchronise(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.opcode {
            "membar" | "fence" => {
                self.fence(i);
                Ok(())
            }
            "nanosleep" => {
                let ns = self.src_at(i, 0, 32)?;
                self.t.call("rg_nanosleep", &[&ns]);
                Ok(())
            }
            "bar" | "barrier" => self.barrier(i),
            "griddepcontrol" => Ok(()),
            "mbarrier" => self.mbarrier(i),
            _ => Err(i.unsupported()),
        }
    }

    fn fence(&mut self, i: &Instruction<'a>) {
        // Proxies (texture, alias, async) see the same caches here.
        let scope = if i.has("cta") {
            "syncscope(\"workgroup\") "
        } else if i.has("gl") || i.has("gpu") || i.has("cluster") {
            "syncscope(\"agent\") "
        } else {
            ""
        };
        let order = if i.has("acq_rel") || i.modifiers.iter().any(|m| m.starts_with("proxy")) {
            "acq_rel"
        } else if i.has("acquire") {
            "acquire"
        } else if i.has("release") {
            "release"
        } else {
            "seq_cst"
        };
        st!(self.t, "fence {scope}{order}");
    }

    /// Barrier cells hold garbage at first, as all of LDS.
    pub(super) fn clear_barrier_cells(&mut self) {
        for id in 0..16 {
            let p = ir!(
                self.t,
                "getelementptr i8, ptr addrspace(3) @rg_shared, i32 {}",
                self.k.cells + id * CELL
            );
            st!(
                self.t,
                "store <4 x i32> zeroinitializer, ptr addrspace(3) {p}, align 16"
            );
        }
        self.t.call("rg_barrier", &[]);
    }

    fn cell(&mut self, i: &Instruction<'a>, at: usize) -> Result<Val> {
        let id = self.src_at(i, at, 32)?;
        let id = ir!(self.t, "and i32 {id}, 15");
        let offset = ir!(self.t, "mul i32 {id}, {CELL}");
        let offset = ir!(self.t, "add i32 {offset}, {}", self.k.cells);
        Ok(ir!(
            self.t,
            "getelementptr i8, ptr addrspace(3) @rg_shared, i32 {offset}"
        ))
    }

    /// Waits for the threads of a barrier: all of the block, or `count` at a cell.
    fn wait(&mut self, cell: Option<&(Val, Val)>) {
        match cell {
            None => {
                self.t.call("rg_barrier", &[]);
            }
            Some((cell, warps)) => {
                let generation = self.t.call("rg_named_arrive", &[cell, warps]);
                self.t.call("rg_named_wait", &[cell, &generation]);
            }
        }
    }

    fn barrier(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.has("warp") {
            st!(self.t, "fence syncscope(\"wavefront\") acq_rel");
            self.t.call("llvm.amdgcn.wave.barrier", &[]);
            return Ok(());
        }
        if i.has("cluster") {
            // A cluster here is one block: its threads meet where they wait.
            if i.has("wait") {
                self.t.call("rg_barrier", &[]);
            }
            return Ok(());
        }
        let red = i.has("red");
        let first = usize::from(red);
        let counted = i.operands.len() > first + 1 + usize::from(red);
        let cell = if counted || i.has("arrive") {
            let cell = self.cell(i, first)?;
            let threads = self.src_at(i, first + 1, 32)?;
            let threads = ir!(self.t, "add i32 {threads}, 31");
            Some((cell, ir!(self.t, "lshr i32 {threads}, 5")))
        } else {
            None
        };
        if i.has("arrive") {
            if let Some((cell, warps)) = &cell {
                self.t.call("rg_named_arrive", &[cell, warps]);
            }
            return Ok(());
        }
        if !red {
            self.wait(cell.as_ref());
            return Ok(());
        }
        // The word is cleared by all, added to by one lane of each warp and read by all.
        let Some(p) = i.operands.last() else {
            return Err(i.unsupported());
        };
        let p = self.src(i, p, 1)?;
        let p = if i.has("and") {
            ir!(self.t, "xor i1 {p}, true")
        } else {
            p
        };
        let base = match &cell {
            Some((cell, _)) => cell.clone(),
            None => self.cell(i, first)?,
        };
        let word = ir!(self.t, "getelementptr i8, ptr addrspace(3) {base}, i32 8");
        self.wait(cell.as_ref());
        st!(self.t, "store i32 0, ptr addrspace(3) {word}, align 4");
        self.wait(cell.as_ref());
        let yes = self.t.call("rg_ballot", &[&p]);
        let count = self.t.call("llvm.ctpop.i32", &[&yes]);
        let active = self.t.call("rg_ballot", &["true"]);
        let lead = self.t.call("llvm.cttz.i32", &[&active, "false"]);
        let me = self.t.call("rg_lane", &[]);
        let leads = ir!(self.t, "icmp eq i32 {lead}, {me}");
        let (add, join) = (self.t.label(), self.t.label());
        st!(self.t, "br i1 {leads}, label %{add}, label %{join}");
        self.t.place(&add);
        ir!(
            self.t,
            "atomicrmw add ptr addrspace(3) {word}, i32 {count} syncscope(\"workgroup\") monotonic, align 4"
        );
        st!(self.t, "br label %{join}");
        self.t.place(&join);
        self.wait(cell.as_ref());
        let sum = ir!(self.t, "load i32, ptr addrspace(3) {word}, align 4");
        if i.has("popc") {
            return self.result(i, &sum, 32);
        }
        let test = if i.has("and") { "eq" } else { "ne" };
        let v = ir!(self.t, "icmp {test} i32 {sum}, 0");
        self.result(i, &v, 1)
    }

    /// Takes `take` off the word of the mbarrier object at `p`, and gives the word as it was.
    fn arrive_at(&mut self, p: &str, pt: &str, take: &str) -> Val {
        st!(self.t, "fence syncscope(\"workgroup\") release");
        let helper = if pt == "ptr" {
            "rg_mbarrier_arrive_p0"
        } else {
            "rg_mbarrier_arrive_p3"
        };
        self.t.call(helper, &[p, take])
    }

    /// `cp.async.mbarrier.arrive`: the thread's copies are done already, so the barrier is arrived at now. Without `.noinc`
    /// it first expects one more, which leaves it as it was.
    pub(super) fn arrive_when_copied(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.has("noinc") {
            let (p, pt) = self.pointer_at(i, 0, super::memory::Space::of(i))?;
            self.arrive_at(&p, pt, "65536");
        }
        Ok(())
    }

    /// mbarrier objects: one word of ours in the 64 bits that PTX reserves.
    ///
    /// ```text
    ///  63        48 47        32 31       16 15        0
    /// | phase      | expected   | pending   | unused    |
    /// ```
    /// An arrival takes 1 from `pending`; at 0 the phase grows by 1 and `pending` is `expected` again.
    fn mbarrier(&mut self, i: &Instruction<'a>) -> Result<()> {
        let unit: u64 = 1 << 16;
        let first = usize::from(!(i.has("init") || i.has("inval")));
        if i.has("pending_count") {
            let state = self.src_at(i, 1, 64)?;
            let n = ir!(self.t, "lshr i64 {state}, 16");
            let n = ir!(self.t, "and i64 {n}, 65535");
            let n = self.resize(&n, 64, 32, false);
            return self.result(i, &n, 32);
        }
        let known = ["init", "inval", "arrive", "arrive_drop", "test_wait", "try_wait"]
            .into_iter()
            .find(|m| i.has(m));
        if known.is_none() || i.has("expect_tx") || i.has("complete_tx") || i.has("remote") {
            return Err(i.unsupported());
        }
        let space = super::memory::Space::of(i);
        let (p, pt) = self.pointer_at(i, first, space)?;
        match known {
            Some("inval") => Ok(()),
            Some("init") => {
                let count = self.src_at(i, 1, 32)?;
                let count = self.resize(&count, 32, 64, false);
                let low = ir!(self.t, "shl i64 {count}, 16");
                let high = ir!(self.t, "shl i64 {count}, 32");
                let v = ir!(self.t, "or i64 {low}, {high}");
                st!(self.t, "store i64 {v}, {pt} {p}, align 8");
                Ok(())
            }
            Some("arrive" | "arrive_drop") => {
                let count = match i.operands.get(2) {
                    Some(operand) => self.src(i, operand, 32)?,
                    None => "1".into(),
                };
                let count = self.resize(&count, 32, 64, false);
                let mut take = ir!(self.t, "mul i64 {count}, {unit}");
                if i.has("arrive_drop") {
                    take = ir!(self.t, "add i64 {take}, {}", unit << 16);
                }
                let old = self.arrive_at(&p, pt, &take);
                let operand = self.operand(i, 0)?;
                self.dst(i, operand, &old, 64, false)
            }
            _ => {
                let state = self.operand(i, 2)?;
                let parity = i.has("parity");
                let wanted = self.src(i, state, if parity { 32 } else { 64 })?;
                let now = ir!(
                    self.t,
                    "load atomic i64, {pt} {p} syncscope(\"workgroup\") acquire, align 8"
                );
                let phase = ir!(self.t, "lshr i64 {now}, 48");
                let v = if parity {
                    // Complete when the phase of that parity is over: the current one has the other.
                    let wanted = self.resize(&wanted, 32, 64, false);
                    let d = ir!(self.t, "xor i64 {phase}, {wanted}");
                    let d = ir!(self.t, "and i64 {d}, 1");
                    ir!(self.t, "icmp ne i64 {d}, 0")
                } else {
                    let then = ir!(self.t, "lshr i64 {wanted}, 48");
                    ir!(self.t, "icmp ne i64 {phase}, {then}")
                };
                self.result(i, &v, 1)
            }
        }
    }
}
