//! Running one wave for a while.

use super::{
    Flow, Trouble,
    access::Spaces,
    buffer,
    code::{Code, Family, FetchError, Op, indexed},
    ds, flat, lane,
    memop::MemOp,
    scalar,
    smem::{self, SmemOp},
    valu,
};
use crate::{Target, dispatch::Host, isa::Inst, wave::Wave};

/// What the instructions of a wave can reach besides its registers.
pub struct Context<'a> {
    /// Memory, LDS of the running work-group and scratch of the running wave.
    pub spaces: Spaces<'a>,
    /// The machine around.
    pub host: &'a dyn Host,
    /// HW_ID of the running wave.
    pub hw_id: u32,
    /// XCC_ID of the running wave: the die, on gfx942.
    pub xcc_id: u32,
}

/// Why a wave stopped running.
#[derive(Debug)]
pub enum Pause {
    /// Its turn is over.
    Quantum,
    /// It sleeps: others first.
    Yield,
    /// It waits at a barrier.
    Barrier,
    /// It has ended.
    End,
    /// `s_trap` with this id.
    Trap(u8),
    /// The instruction at `wave.pc` could not be executed.
    Failed(Trouble),
    /// There is no instruction at `wave.pc`.
    NoInstruction(FetchError),
}

/// What a wave did in its turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Instructions executed.
    pub instructions: u32,
    /// Cycles they took, estimated.
    pub cycles: u64,
    /// Loads from, stores to and atomics on memory other than LDS, and LDS instructions.
    pub loads: u32,
    /// Stores.
    pub stores: u32,
    /// Atomics.
    pub atomics: u32,
    /// LDS instructions.
    pub lds: u32,
}

/// Runs a wave for at most `quantum` instructions. On failure `wave.pc` is the failing instruction's address.
pub fn run(wave: &mut Wave, ctx: &mut Context<'_>, code: &mut Code<'_>, quantum: u32) -> (Work, Pause) {
    // Resolved instructions rely on it.
    assert_eq!(wave.shape(), code.shape(), "code of another kind of wave");
    if ctx.spaces.memory.refresh() {
        code.clear();
    }
    let mut work = Work::default();
    let mut page = None;
    while work.instructions < quantum {
        let pc = wave.pc;
        // The page of the last instruction.
        let here = match &page {
            Some((number, here)) if *number == pc >> 12 => here,
            _ => &page.insert((pc >> 12, code.page(pc, &mut ctx.spaces.memory))).1,
        };
        let Some(op) = here.op(pc) else {
            if let Err(e) = code.decode(here, pc, &mut ctx.spaces.memory) {
                return (work, Pause::NoInstruction(e));
            }
            continue;
        };
        wave.pc = pc + u64::from(op.inst.size);
        work.instructions += 1;
        work.cycles += u64::from(op.cycles);
        if let Family::Fast(fast) = &op.family {
            // SAFETY: the wave has the registers that the code was resolved for, as asserted above.
            if unsafe { fast.execute(wave, &op.inst) } {
                continue;
            }
        }
        match op.family {
            Family::Flat(m) | Family::Buffer(m) => {
                work.loads += u32::from(m.loads());
                work.stores += u32::from(m.stores());
                work.atomics += u32::from(m.is_atomic());
            }
            Family::Smem(m) => {
                work.loads += u32::from(matches!(m, SmemOp::Load(..)));
                work.stores += u32::from(matches!(m, SmemOp::Store(..)));
                work.atomics += u32::from(matches!(m, SmemOp::Atomic { .. }));
            }
            Family::Ds(_) => work.lds += 1,
            _ => {}
        }
        match execute(wave, ctx, op) {
            Ok(Flow::Next) => {}
            Ok(Flow::End) => return (work, Pause::End),
            Ok(Flow::Barrier) => return (work, Pause::Barrier),
            Ok(Flow::Yield) => return (work, Pause::Yield),
            Ok(Flow::FlushCode) => {
                code.clear();
                page = None;
            }
            Ok(Flow::Trap(id)) => {
                wave.pc = pc;
                return (work, Pause::Trap(id));
            }
            Err(trouble) => {
                wave.pc = pc;
                return (work, Pause::Failed(trouble));
            }
        }
    }
    (work, Pause::Quantum)
}

#[inline]
fn execute(wave: &mut Wave, ctx: &mut Context<'_>, op: &Op) -> Result<Flow, Trouble> {
    let inst = &op.inst;
    // Places in the cache are good while it is held; maintenance takes it for itself.
    let _held = match (ctx.spaces.memory.cache(), op.family) {
        (None, _) | (_, Family::Flat(MemOp::Maintain(_)) | Family::Buffer(MemOp::Maintain(_))) => None,
        (Some(cache), Family::Flat(_) | Family::Buffer(_) | Family::Smem(_)) => {
            // A load of agent or system scope.
            let wide = match inst.target {
                Target::Gfx90a => Inst::GLC,
                Target::Gfx942 => Inst::SCC,
            };
            ctx.spaces.memory.bypass = matches!(op.family, Family::Smem(_)) || inst.flag(wide);
            Some(cache.hold())
        }
        _ => None,
    };
    match op.family {
        Family::Scalar => return scalar::execute(wave, ctx, inst),
        Family::Smem(m) => return smem::execute(wave, ctx, inst, m),
        Family::Fast(_) | Family::Valu if wave.mode.gpr_idx() => valu::execute(wave, &indexed(inst, wave)?)?,
        Family::Fast(_) | Family::Valu => valu::execute(wave, inst)?,
        Family::Lane => lane::execute(wave, inst)?,
        Family::Flat(m) => flat::execute(wave, &mut ctx.spaces, inst, m)?,
        Family::Ds(m) => ds::execute(wave, &mut ctx.spaces, inst, m)?,
        Family::Buffer(m) => buffer::execute(wave, &mut ctx.spaces, inst, m)?,
        Family::Unsupported => return Err(super::Unsupported.into()),
    }
    Ok(Flow::Next)
}
