//! SMEM: scalar loads, stores, atomics and clocks.

use super::{
    Flow, Trouble,
    access::Memory,
    atomic::{self, AtomicOp},
    buffer::Resource,
    memop::{self, MemOp},
    step::Context,
};
use crate::{
    isa::{Inst, Mnemonic as M, Operand},
    memory::{Access, Fault, FaultReason},
    wave::Wave,
};

/// What a scalar memory instruction does, read off its name once, when it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmemOp {
    /// Load this many dwords; through a buffer resource if so.
    Load(u8, bool),
    /// Store this many dwords.
    Store(u8, bool),
    /// Atomic on a dword or a pair.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// Of 64 bits.
        wide: bool,
        /// Through a buffer resource.
        buffer: bool,
    },
    /// The shader clock.
    Time,
    /// The 100 MHz clock.
    RealTime,
    /// Cache maintenance and probes: memory is coherent here.
    Nothing,
}

/// The operation of an SMEM instruction; `None` for scalar access to private memory, which is not modelled.
pub fn operation(mnemonic: M) -> Option<SmemOp> {
    let name = mnemonic.name();
    let (buffer, rest) = match name.strip_prefix("s_buffer_") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix("s_")?),
    };
    let count = |n: &str| match n {
        "dword" => Some(1),
        "dwordx2" => Some(2),
        "dwordx4" => Some(4),
        "dwordx8" => Some(8),
        "dwordx16" => Some(16),
        _ => None,
    };
    if let Some(n) = rest.strip_prefix("load_") {
        return Some(SmemOp::Load(count(n)?, buffer));
    }
    if let Some(n) = rest.strip_prefix("store_") {
        return Some(SmemOp::Store(count(n)?, buffer));
    }
    if let Some(n) = rest.strip_prefix("atomic_") {
        return match memop::vector_atomic(n)? {
            MemOp::Atomic { op, wide } => Some(SmemOp::Atomic { op, wide, buffer }),
            _ => None,
        };
    }
    match rest {
        "memtime" => Some(SmemOp::Time),
        "memrealtime" => Some(SmemOp::RealTime),
        _ if rest.starts_with("dcache") || rest.starts_with("atc_probe") => Some(SmemOp::Nothing),
        _ => None,
    }
}

/// Executes a scalar memory instruction.
///
/// # Errors
/// Faults, and operations that have no defined result.
pub fn execute(wave: &mut Wave, ctx: &mut Context<'_>, inst: &Inst, op: SmemOp) -> Result<Flow, Trouble> {
    let buffer = match op {
        SmemOp::Load(_, buffer) | SmemOp::Store(_, buffer) | SmemOp::Atomic { buffer, .. } => buffer,
        SmemOp::RealTime => {
            wave.set_scalar64(inst.dst, ctx.host.realtime());
            return Ok(Flow::Next);
        }
        SmemOp::Time => {
            // The shader clock: a constant multiple of the 100 MHz clock, so that spinning for a time takes that time.
            wave.set_scalar64(inst.dst, ctx.host.realtime().wrapping_mul(17));
            return Ok(Flow::Next);
        }
        SmemOp::Nothing => return Ok(Flow::Next),
    };
    let offset = i64::from(wave.scalar32(inst.soffset)) + i64::from(inst.imm);
    let (va, limit) = if buffer {
        let resource = Resource::read(wave, inst.base);
        let at = offset as u64 & !3;
        (resource.base.wrapping_add(at), resource.bytes().saturating_sub(at))
    } else {
        (wave.scalar64(inst.base).wrapping_add_signed(offset) & !3, u64::MAX)
    };
    let memory = &mut ctx.spaces.memory;
    memory.refresh();
    // Buffer accesses stop at the end of the resource: loads read 0, stores are dropped.
    let inside = |count: u8| (limit / 4).min(u64::from(count)) as usize;
    let mut words = [0u32; 16];
    match op {
        SmemOp::Load(count, _) => {
            let Operand::Sgpr(dst) = inst.dst else {
                return Err(super::Unsupported.into());
            };
            memory.read_dwords(va, &mut words[..inside(count)], Access::Read)?;
            for k in 0..count {
                wave.set_scalar32(Operand::Sgpr(dst + k), words[usize::from(k)]);
            }
        }
        SmemOp::Store(count, _) => {
            let Operand::Sgpr(data) = inst.src[1] else {
                return Err(super::Unsupported.into());
            };
            for k in 0..count {
                words[usize::from(k)] = wave.scalar32(Operand::Sgpr(data + k));
            }
            memory.write_dwords(va, &words[..inside(count)])?;
        }
        SmemOp::Atomic { op, wide, .. } => return scalar_atomic(wave, memory, inst, op, wide, va, limit),
        SmemOp::Time | SmemOp::RealTime | SmemOp::Nothing => {}
    }
    Ok(Flow::Next)
}

fn scalar_atomic(
    wave: &mut Wave,
    memory: &mut Memory<'_>,
    inst: &Inst,
    op: AtomicOp,
    wide: bool,
    va: u64,
    limit: u64,
) -> Result<Flow, Trouble> {
    let size = if wide { 8 } else { 4 };
    if limit < size {
        return Ok(Flow::Next);
    }
    let Operand::Sgpr(data) = inst.src[1] else {
        return Err(super::Unsupported.into());
    };
    if !va.is_multiple_of(size) {
        let reason = FaultReason::Misaligned;
        return Err(Fault { va, reason }.into());
    }
    let Some(ptr) = memory.find(va, size, Access::Atomic)? else {
        let reason = FaultReason::Misaligned;
        return Err(Fault { va, reason }.into());
    };
    let returns = inst.flag(Inst::GLC);
    if wide {
        let (new, compare) = (wave.s64(data), wave.s64(data + 2));
        // SAFETY: `find` returned the host address of eight writable bytes.
        let old = unsafe { atomic::rmw64(ptr, op, new, compare)? };
        if returns {
            wave.set_s64(data, old);
        }
    } else {
        let (new, compare) = (wave.scalar32(inst.src[1]), wave.scalar32(Operand::Sgpr(data + 1)));
        // SAFETY: `find` returned the host address of four writable bytes.
        let old = unsafe { atomic::rmw32(ptr, op, new, compare)? };
        if returns {
            wave.set_scalar32(inst.src[1], old);
        }
    }
    Ok(Flow::Next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_operation() {
        assert_eq!(operation(M::s_load_dwordx16), Some(SmemOp::Load(16, false)));
        assert_eq!(operation(M::s_buffer_store_dwordx2), Some(SmemOp::Store(2, true)));
        let swap = SmemOp::Atomic {
            op: AtomicOp::Swap,
            wide: true,
            buffer: false,
        };
        assert_eq!(operation(M::s_atomic_swap_x2), Some(swap));
        assert_eq!(operation(M::s_dcache_wb_vol), Some(SmemOp::Nothing));
        assert_eq!(operation(M::s_scratch_load_dword), None);
    }
}
