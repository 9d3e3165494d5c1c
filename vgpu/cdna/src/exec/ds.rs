//! DS: LDS loads, stores and atomics, and lane exchange.

use super::{
    Trouble,
    access::{Address, Spaces, load_dwords, store_dwords},
    atomic::{self, AtomicOp},
    coalesced,
    flat::{self, At},
    memop::MemOp,
    operands::for_lanes,
};
use crate::{
    isa::{Inst, Operand},
    memory::{Access, Fault, FaultReason},
    wave::{V32, Wave},
};

/// Executes a DS instruction.
///
/// # Errors
/// Faults past the allocation, GDS, and operations that have no defined result.
pub fn execute(wave: &mut Wave, spaces: &mut Spaces<'_>, inst: &Inst, op: MemOp) -> Result<(), Trouble> {
    if inst.flag(Inst::GDS) {
        return Err("GDS is not modelled".into());
    }
    let offset = inst.imm as u32;
    let addr = wave.lanes32(inst.src[0]);
    match op {
        MemOp::Swizzle => {
            let from = swizzle(offset);
            let data = addr;
            exchange(wave, inst.dst, &data, |l| from[l]);
            Ok(())
        }
        MemOp::BackPermute => {
            let data = wave.lanes32(inst.src[1]);
            exchange(wave, inst.dst, &data, |l| (addr[l].wrapping_add(offset) / 4 % 64) as u8);
            Ok(())
        }
        MemOp::Permute => {
            let data = wave.lanes32(inst.src[1]);
            let exec = wave.exec();
            let mut out = [0; 64];
            for_lanes(exec, |l| {
                out[(addr[l].wrapping_add(offset) / 4 % 64) as usize] = data[l]
            });
            write(wave, inst.dst, exec, &out);
            Ok(())
        }
        MemOp::Read2 { dwords, scale } => two(wave, spaces, inst, dwords, scale, Two::Read),
        MemOp::Write2 { dwords, scale } => two(wave, spaces, inst, dwords, scale, Two::Write),
        MemOp::Exchange2 { dwords, scale } => two(wave, spaces, inst, dwords, scale, Two::Exchange),
        MemOp::Append | MemOp::Consume => counter(wave, spaces, inst, op == MemOp::Append),
        MemOp::ReadAddTid | MemOp::WriteAddTid => {
            let base = (wave.m0() & 0xffff).wrapping_add(offset);
            let unit = super::memop::Unit::Dwords(1);
            let half = super::memop::Half::Full;
            let op = if op == MemOp::ReadAddTid {
                MemOp::Load { unit, half }
            } else {
                MemOp::Store { unit, half }
            };
            let lanes: V32 = std::array::from_fn(|l| 4 * l as u32);
            flat::perform(wave, spaces, inst, op, At::Lds(base, &lanes))
        }
        MemOp::Nothing | MemOp::Maintain(_) => Ok(()),
        _ => {
            let (words, size) = (&mut spaces.lds[..], spaces.lds_bytes);
            if coalesced::lds(wave, words, size, op, inst.dst, inst.src[1], offset, &addr) {
                return Ok(());
            }
            flat::perform(wave, spaces, inst, op, At::Lds(offset, &addr))
        }
    }
}

fn write(wave: &mut Wave, dst: Operand, lanes: u64, values: &V32) {
    if let Operand::Vgpr(n) = dst {
        let out = wave.v_mut(n);
        for_lanes(lanes, |l| out[l] = values[l]);
    }
}

/// Each active lane takes the data of another; inactive sources read 0.
fn exchange(wave: &mut Wave, dst: Operand, data: &V32, from: impl Fn(usize) -> u8) {
    let exec = wave.exec();
    let out: V32 = std::array::from_fn(|l| {
        let source = from(l);
        if exec >> source & 1 != 0 {
            data[usize::from(source)]
        } else {
            0
        }
    });
    write(wave, dst, exec, &out);
}

/// Source lanes of `ds_swizzle_b32`.
///
/// ```text
/// 15:14 = 11, 13 = 1   FFT            (bit reversal in groups)
/// 15:13 = 110          rotate         9:5 lanes, 10 direction, 4:0 lanes that stay in place
/// 15    = 1            quad permute   7:0 as in DPP
/// 15    = 0            bit mask       4:0 and, 9:5 or, 14:10 xor, within 32 lanes
/// ```
fn swizzle(offset: u32) -> [u8; 64] {
    std::array::from_fn(|lane| {
        let lane = lane as u32;
        let (group, at) = (lane & 32, lane & 31);
        let from = if offset & 0x8000 == 0 {
            group | ((at & offset | offset >> 5) ^ offset >> 10) & 31
        } else if offset >= 0xe000 {
            let mask = offset & 31;
            group | at.reverse_bits() >> 27 >> mask.count_ones() | at & mask
        } else if offset >= 0xc000 {
            let (mask, count) = (offset & 31, offset >> 5 & 31);
            let turned = if offset >> 10 & 1 != 0 {
                at.wrapping_sub(count)
            } else {
                at + count
            } & 31;
            group | at & mask | turned & !mask & 31
        } else {
            lane & !3 | offset >> (2 * (lane & 3)) & 3
        };
        from as u8
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Two {
    Read,
    Write,
    Exchange,
}

fn two(
    wave: &mut Wave,
    spaces: &mut Spaces<'_>,
    inst: &Inst,
    dwords: u8,
    scale: u16,
    what: Two,
) -> Result<(), Trouble> {
    let addr = wave.lanes32(inst.src[0]);
    let n = usize::from(dwords);
    let size = u32::from(dwords) * 4;
    let access = match what {
        Two::Read => Access::Read,
        Two::Write => Access::Write,
        Two::Exchange => Access::Atomic,
    };
    let exec = wave.exec();
    let offset = |i: usize| u32::from(inst.aux[i]) * u32::from(scale) * size;
    let places = [
        spaces.locate_all(exec, size, access, |_, l| Address::Lds(addr[l].wrapping_add(offset(0))))?,
        spaces.locate_all(exec, size, access, |_, l| Address::Lds(addr[l].wrapping_add(offset(1))))?,
    ];
    let data = [inst.src[1], inst.src[2]].map(|o| if let Operand::Vgpr(r) = o { r } else { 0 });
    let mut out = [[0u32; 64]; 4];
    for_lanes(exec, |l| {
        for i in 0..2 {
            let place = places[i].at[l];
            // SAFETY: the lane was located in LDS for this many dwords, writable.
            unsafe {
                if what != Two::Write {
                    let mut words = [0; 2];
                    load_dwords(place.ptr, 4, &mut words[..n]);
                    for k in 0..n {
                        out[i * n + k][l] = words[k];
                    }
                }
                if what != Two::Read {
                    let mut words = [0; 2];
                    for (k, word) in words.iter_mut().enumerate().take(n) {
                        *word = wave.v(data[i] + k as u16)[l];
                    }
                    store_dwords(place.ptr, 4, &words[..n]);
                }
            }
        }
    });
    if what != Two::Write
        && let Operand::Vgpr(dst) = inst.dst
    {
        for (k, values) in out.iter().enumerate().take(2 * n) {
            write(wave, Operand::Vgpr(dst + k as u16), exec, values);
        }
    }
    Ok(())
}

/// `ds_append`, `ds_consume`: one addition of the number of active lanes at M0's high half; all lanes get the old value.
fn counter(wave: &mut Wave, spaces: &mut Spaces<'_>, inst: &Inst, append: bool) -> Result<(), Trouble> {
    let exec = wave.exec();
    let at = Address::Lds((wave.m0() >> 16).wrapping_add(inst.imm as u32));
    let Some(place) = spaces.locate(0, at, 4, Access::Atomic)? else {
        let offset = (wave.m0() >> 16).wrapping_add(inst.imm as u32);
        return Err(Fault {
            va: spaces.shared_base + u64::from(offset),
            reason: FaultReason::Misaligned,
        }
        .into());
    };
    let op = if append { AtomicOp::Add } else { AtomicOp::Sub };
    // SAFETY: the counter was located in LDS for an atomic of four bytes.
    let old = unsafe { atomic::rmw32(place.ptr, op, exec.count_ones(), 0)? };
    write(wave, inst.dst, exec, &[old; 64]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swizzle_modes() {
        let swap = swizzle(0x1f | 1 << 10);
        assert_eq!((swap[0], swap[1], swap[33]), (1, 0, 32));
        let broadcast = swizzle(3 << 5);
        assert_eq!((broadcast[0], broadcast[17], broadcast[40]), (3, 3, 35));
        let quad = swizzle(0x801b);
        assert_eq!((quad[0], quad[3], quad[62]), (3, 0, 61));
        let rotate = swizzle(0xc000 | 1 << 5);
        assert_eq!((rotate[0], rotate[31], rotate[63]), (1, 0, 32));
    }
}
