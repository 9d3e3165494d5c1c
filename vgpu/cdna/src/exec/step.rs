//! Running one wave for a while.

use super::{
    Flow, Trouble,
    access::Spaces,
    buffer,
    code::{Code, Family, FetchError, Op, indexed},
    ds, flat, lane, scalar, smem, valu,
};
use crate::{dispatch::Host, wave::Wave};

/// What the instructions of a wave can reach besides its registers.
pub struct Context<'a> {
    /// Memory, LDS of the running work-group and scratch of the running wave.
    pub spaces: Spaces<'a>,
    /// The machine around.
    pub host: &'a dyn Host,
    /// HW_ID of the running wave.
    pub hw_id: u32,
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

/// Runs a wave for at most `quantum` instructions; returns the number executed. On failure `wave.pc` is the failing
/// instruction's address.
pub fn run(wave: &mut Wave, ctx: &mut Context<'_>, code: &mut Code, quantum: u32) -> (u32, Pause) {
    if ctx.spaces.memory.refresh() {
        code.clear();
    }
    let mut done = 0;
    // The page of the last instruction and its number in the cache.
    let mut current = (u64::MAX, 0);
    while done < quantum {
        let pc = wave.pc;
        if pc >> 12 != current.0 {
            current = (pc >> 12, code.page(pc));
        }
        let op = match code.find(current.1, pc, &mut ctx.spaces.memory) {
            Ok(op) => op,
            Err(e) => return (done, Pause::NoInstruction(e)),
        };
        wave.pc = pc + u64::from(op.inst.size);
        done += 1;
        match execute(wave, ctx, op) {
            Ok(Flow::Next) => {}
            Ok(Flow::End) => return (done, Pause::End),
            Ok(Flow::Barrier) => return (done, Pause::Barrier),
            Ok(Flow::Yield) => return (done, Pause::Yield),
            Ok(Flow::FlushCode) => {
                code.clear();
                current.0 = u64::MAX;
            }
            Ok(Flow::Trap(id)) => {
                wave.pc = pc;
                return (done, Pause::Trap(id));
            }
            Err(trouble) => {
                wave.pc = pc;
                return (done, Pause::Failed(trouble));
            }
        }
    }
    (done, Pause::Quantum)
}

#[inline]
fn execute(wave: &mut Wave, ctx: &mut Context<'_>, op: &Op) -> Result<Flow, Trouble> {
    let inst = &op.inst;
    match op.family {
        Family::Scalar => return scalar::execute(wave, ctx, inst),
        Family::Smem(m) => return smem::execute(wave, ctx, inst, m),
        Family::Valu if wave.mode.gpr_idx() => valu::execute(wave, &indexed(inst, wave)?)?,
        Family::Valu => valu::execute(wave, inst)?,
        Family::Lane => lane::execute(wave, inst)?,
        Family::Flat(m) => flat::execute(wave, &mut ctx.spaces, inst, m)?,
        Family::Ds(m) => ds::execute(wave, &mut ctx.spaces, inst, m)?,
        Family::Buffer(m) => buffer::execute(wave, &mut ctx.spaces, inst, m)?,
        Family::Unsupported => return Err(super::Unsupported.into()),
    }
    Ok(Flow::Next)
}
