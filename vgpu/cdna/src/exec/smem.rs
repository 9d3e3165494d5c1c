//! SMEM: scalar loads, stores, atomics and clocks.

use super::{
    Flow, Trouble,
    access::Memory,
    atomic::{self, AtomicOp},
    buffer::Resource,
    step::Context,
};
use crate::{
    isa::{Inst, Mnemonic as M, Operand},
    memory::Access,
    wave::Wave,
};

/// Executes a scalar memory instruction.
///
/// # Errors
/// Faults, and operations that have no defined result.
pub fn execute(wave: &mut Wave, ctx: &mut Context<'_>, inst: &Inst) -> Result<Flow, Trouble> {
    let name = inst.mnemonic.name();
    match inst.mnemonic {
        M::s_memrealtime => {
            wave.set_scalar64(inst.dst, ctx.host.realtime());
            return Ok(Flow::Next);
        }
        M::s_memtime => {
            // The shader clock: a constant multiple of the 100 MHz clock, so that spinning for a time takes that time.
            wave.set_scalar64(inst.dst, ctx.host.realtime().wrapping_mul(17));
            return Ok(Flow::Next);
        }
        M::s_dcache_inv
        | M::s_dcache_inv_vol
        | M::s_dcache_wb
        | M::s_dcache_wb_vol
        | M::s_dcache_discard
        | M::s_dcache_discard_x2
        | M::s_atc_probe
        | M::s_atc_probe_buffer => return Ok(Flow::Next),
        _ => {}
    }
    if name.starts_with("s_scratch") {
        return Err(super::Unsupported.into());
    }
    let offset = i64::from(wave.scalar32(inst.soffset)) + i64::from(inst.imm);
    let buffer = name.starts_with("s_buffer");
    let (va, limit) = if buffer {
        let resource = Resource::read(wave, inst.base);
        let at = offset as u64 & !3;
        (
            resource.base.wrapping_add(at),
            Some(resource.bytes().saturating_sub(at)),
        )
    } else {
        (wave.scalar64(inst.base).wrapping_add_signed(offset) & !3, None)
    };
    let memory = &mut ctx.spaces.memory;
    memory.refresh();
    if name.contains("atomic") {
        return scalar_atomic(wave, memory, inst, name, va, limit);
    }
    let count = match name.rsplit("dword").next() {
        Some("x2") => 2,
        Some("x4") => 4,
        Some("x8") => 8,
        Some("x16") => 16,
        _ => 1,
    };
    let inside = limit.map_or(count, |bytes| (bytes / 4).min(count as u64) as usize);
    let mut words = [0u32; 16];
    if name.contains("load") {
        let Operand::Sgpr(dst) = inst.dst else {
            return Err(super::Unsupported.into());
        };
        memory.read_dwords(va, &mut words[..inside], Access::Read)?;
        for (k, word) in words[..count].iter().enumerate() {
            wave.set_scalar32(Operand::Sgpr(dst + k as u8), *word);
        }
    } else {
        let Operand::Sgpr(data) = inst.src[1] else {
            return Err(super::Unsupported.into());
        };
        for (k, word) in words[..inside].iter_mut().enumerate() {
            *word = wave.scalar32(Operand::Sgpr(data + k as u8));
        }
        memory.write_dwords(va, &words[..inside])?;
    }
    Ok(Flow::Next)
}

fn scalar_atomic(
    wave: &mut Wave,
    memory: &mut Memory<'_>,
    inst: &Inst,
    name: &str,
    va: u64,
    limit: Option<u64>,
) -> Result<Flow, Trouble> {
    let wide = name.ends_with("_x2");
    let base = name.trim_end_matches("_x2").rsplit('_').next().unwrap_or_default();
    let op = match base {
        "swap" => AtomicOp::Swap,
        "cmpswap" => AtomicOp::CmpSwap,
        "add" => AtomicOp::Add,
        "sub" => AtomicOp::Sub,
        "smin" => AtomicOp::Smin,
        "umin" => AtomicOp::Umin,
        "smax" => AtomicOp::Smax,
        "umax" => AtomicOp::Umax,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "inc" => AtomicOp::Inc,
        "dec" => AtomicOp::Dec,
        _ => return Err(super::Unsupported.into()),
    };
    let size = if wide { 8 } else { 4 };
    if limit.is_some_and(|bytes| bytes < size) {
        return Ok(Flow::Next);
    }
    let Operand::Sgpr(data) = inst.src[1] else {
        return Err(super::Unsupported.into());
    };
    let Some(ptr) = memory.find(va, size, Access::Atomic)? else {
        return Err("misaligned atomic".into());
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
