//! FLAT, GLOBAL and SCRATCH, and the loads, stores and atomics that they share with MUBUF and DS.

use super::{
    Trouble,
    access::{Address, Places, Spaces, load_dwords, load8, load16, load32, store_dwords, store8, store16, store32},
    atomic::{self, AtomicOp},
    coalesced,
    memop::{Half, MemOp, Unit},
    operands::for_lanes,
};
use crate::{
    alu::lanes::vectorised,
    isa::{Encoding, Inst, Operand},
    memory::Access,
    wave::{V32, V64, Wave, sreg},
};

const NOT_OUR_SCRATCH: &str = "FLAT_SCRATCH does not point at this wave's scratch";

/// Executes a FLAT, GLOBAL or SCRATCH instruction.
///
/// # Errors
/// Faults, and operations that have no defined result.
pub fn execute(wave: &mut Wave, spaces: &mut Spaces<'_>, inst: &Inst, op: MemOp) -> Result<(), Trouble> {
    let offset = inst.imm;
    let vaddr = inst.src[0];
    match inst.enc {
        Encoding::Flat => {
            if let Some((high, low)) = same_high(wave, vaddr)
                && let base = (u64::from(high) << 32).wrapping_add(i64::from(offset) as u64)
                // An offset may carry into the next 4 GiB, so both neighbours of an aperture count as its own.
                && [spaces.private_base, spaces.shared_base].iter().all(|a| (base >> 32).abs_diff(a >> 32) > 1)
                && coalesced::global(wave, &mut spaces.memory, op, inst.dst, inst.src[1], base, &low)
            {
                return Ok(());
            }
            let va = wave.lanes64(vaddr);
            let base = i64::from(offset) as u64;
            let exec = wave.exec();
            let high = |l: usize| va[l].wrapping_add(base) >> 32;
            let any = |aperture: u64| (0..64).any(|l| exec >> l & 1 != 0 && high(l) == aperture >> 32);
            let private = any(spaces.private_base);
            if private && wave.s64(sreg::FLAT_SCRATCH) != spaces.scratch.va {
                return Err(NOT_OUR_SCRATCH.into());
            }
            if !private && !any(spaces.shared_base) {
                return perform(wave, spaces, inst, op, At::Global(base, &va));
            }
            perform(
                wave,
                spaces,
                inst,
                op,
                At::Each(&mut |s, l| s.route(va[l].wrapping_add(base))),
            )
        }
        Encoding::Global => {
            let offset = i64::from(offset) as u64;
            if inst.base == Operand::None {
                if let Some((high, low)) = same_high(wave, vaddr) {
                    let base = (u64::from(high) << 32).wrapping_add(offset);
                    if coalesced::global(wave, &mut spaces.memory, op, inst.dst, inst.src[1], base, &low) {
                        return Ok(());
                    }
                }
                let va = wave.lanes64(vaddr);
                perform(wave, spaces, inst, op, At::Global(offset, &va))
            } else {
                let base = wave.scalar64(inst.base).wrapping_add(offset);
                let va = wave.lanes32(vaddr);
                if coalesced::global(wave, &mut spaces.memory, op, inst.dst, inst.src[1], base, &va) {
                    return Ok(());
                }
                let va = va.map(u64::from);
                perform(wave, spaces, inst, op, At::Global(base, &va))
            }
        }
        _ => {
            // Lane-private offsets; FLAT_SCRATCH must point at the wave's own part of the window.
            if wave.s64(sreg::FLAT_SCRATCH) != spaces.scratch.va {
                return Err(NOT_OUR_SCRATCH.into());
            }
            let base = wave.scalar32(inst.base).wrapping_add_signed(offset);
            let va = wave.lanes32(vaddr);
            let private = &mut |_: &Spaces<'_>, l: usize| Address::Private(base.wrapping_add(va[l]));
            perform(wave, spaces, inst, op, At::Each(private))
        }
    }
}

/// The high dword of the active lanes' addresses, if it is one, and the low dwords.
#[inline]
fn same_high(wave: &Wave, vaddr: Operand) -> Option<(u32, V32)> {
    let Operand::Vgpr(n) = vaddr else { return None };
    let (exec, high) = (wave.exec(), wave.v(n + 1));
    let first = high[exec.trailing_zeros() as usize & 63];
    let same = if exec == u64::MAX {
        vectorised(|| high.iter().fold(0, |odd, h| odd | (h ^ first)) == 0)
    } else {
        let mut same = true;
        for_lanes(exec, |l| same &= high[l] == first);
        same
    };
    same.then(|| (first, *wave.v(n)))
}

/// The addresses of the active lanes.
pub enum At<'a> {
    /// Global memory at a base plus a lane's offset.
    Global(u64, &'a V64),
    /// LDS at a constant plus a lane's offset.
    Lds(u32, &'a V32),
    /// Whatever the function says.
    Each(&'a mut dyn FnMut(&Spaces<'_>, usize) -> Address),
}

fn locate(spaces: &mut Spaces<'_>, exec: u64, bytes: u32, access: Access, at: At<'_>) -> Result<Places, Trouble> {
    match at {
        At::Global(base, va) => spaces.locate_global(exec, base, va, bytes, access),
        At::Lds(base, addr) => spaces.locate_all(exec, bytes, access, |_, l| Address::Lds(addr[l].wrapping_add(base))),
        At::Each(f) => spaces.locate_all(exec, bytes, access, f),
    }
}

/// Performs a load, store or atomic on the addresses of the active lanes.
///
/// # Errors
/// Faults, and operations that have no defined result.
#[inline]
pub fn perform(wave: &mut Wave, spaces: &mut Spaces<'_>, inst: &Inst, op: MemOp, at: At<'_>) -> Result<(), Trouble> {
    let exec = wave.exec();
    if exec == 0 {
        return Ok(());
    }
    match op {
        MemOp::Load { unit, half } => {
            let places = locate(spaces, exec, unit.bytes(), Access::Read, at)?;
            load(wave, spaces, inst.dst, unit, half, &places)
        }
        MemOp::Store { unit, half } => {
            let places = locate(spaces, exec, unit.bytes(), Access::Write, at)?;
            store(wave, spaces, inst.src[1], unit, half, &places)
        }
        MemOp::Atomic { op, wide } => {
            let places = locate(spaces, exec, if wide { 8 } else { 4 }, Access::Atomic, at)?;
            if !places.split.is_empty() {
                return Err("misaligned atomic".into());
            }
            rmw(wave, inst, op, wide, &places)
        }
        MemOp::LoadLds { unit } => {
            let places = locate(spaces, exec, unit.bytes(), Access::Read, at)?;
            load_lds(wave, spaces, inst.imm, unit, &places)
        }
        _ => Err(super::Unsupported.into()),
    }
}

fn extend(unit: Unit, raw: u32) -> u32 {
    match unit {
        Unit::I8 => raw as i8 as u32,
        Unit::I16 => raw as i16 as u32,
        _ => raw,
    }
}

fn load(
    wave: &mut Wave,
    spaces: &mut Spaces<'_>,
    dst: Operand,
    unit: Unit,
    half: Half,
    places: &Places,
) -> Result<(), Trouble> {
    let Operand::Vgpr(dst) = dst else {
        return Err(super::Unsupported.into());
    };
    if let Unit::Dwords(n) = unit {
        let n = usize::from(n);
        if n == 1 && places.split.is_empty() {
            let register = wave.v_mut(dst);
            for_lanes(places.lanes, |l| {
                let p = places.at[l].ptr;
                // SAFETY: the lane was located for one dword.
                register[l] = if p.is_null() { 0 } else { unsafe { load32(p) } };
            });
            return Ok(());
        }
        let mut out = [[0u32; 64]; 4];
        match n {
            1 => load_lanes::<1>(places, &mut out),
            2 => load_lanes::<2>(places, &mut out),
            3 => load_lanes::<3>(places, &mut out),
            _ => load_lanes::<4>(places, &mut out),
        }
        let mut lanes = places.lanes;
        for (l, at) in &places.split {
            let mut bytes = [0; 16];
            spaces.read_split(*l, *at, &mut bytes[..4 * n])?;
            for k in 0..n {
                out[k][*l] = u32::from_le_bytes([bytes[4 * k], bytes[4 * k + 1], bytes[4 * k + 2], bytes[4 * k + 3]]);
            }
            lanes |= 1 << l;
        }
        for (k, values) in out.iter().enumerate().take(n) {
            let register = wave.v_mut(dst + k as u16);
            if lanes == u64::MAX {
                *register = *values;
            } else {
                for_lanes(lanes, |l| register[l] = values[l]);
            }
        }
        return Ok(());
    }
    let one = unit.bytes() == 1;
    // With SRAM ECC, as these cards report, a 16-bit load writes the whole register: the other half becomes 0.
    let shift = if half == Half::High { 16 } else { 0 };
    let keep = if half == Half::Full { u32::MAX } else { 0xffff };
    let register = wave.v_mut(dst);
    for_lanes(places.lanes, |l| {
        let p = places.at[l].ptr;
        let raw = if p.is_null() {
            0
        } else if one {
            // SAFETY: the lane was located for one byte.
            u32::from(unsafe { load8(p) })
        } else {
            // SAFETY: the lane was located for two bytes.
            u32::from(unsafe { load16(p) })
        };
        register[l] = (extend(unit, raw) & keep) << shift;
    });
    for (l, at) in &places.split {
        let mut bytes = [0; 2];
        spaces.read_split(*l, *at, &mut bytes)?;
        wave.v_mut(dst)[*l] = (extend(unit, u32::from(u16::from_le_bytes(bytes))) & keep) << shift;
    }
    Ok(())
}

/// Loads `N` dwords a lane. The count is a constant so that the loop over lanes has no inner one.
fn load_lanes<const N: usize>(places: &Places, out: &mut [V32; 4]) {
    for (l, place) in places.at.iter().enumerate() {
        if places.lanes >> l & 1 == 0 || place.ptr.is_null() {
            continue;
        }
        let mut words = [0; N];
        // SAFETY: the lane was located for this many dwords.
        unsafe { load_dwords(place.ptr, place.step, &mut words) };
        for (values, word) in out.iter_mut().zip(words) {
            values[l] = word;
        }
    }
}

/// Stores `N` dwords a lane.
fn store_lanes<const N: usize>(wave: &Wave, data: u16, places: &Places) {
    let registers: [&V32; N] = std::array::from_fn(|k| wave.v(data + k as u16));
    for (l, place) in places.at.iter().enumerate() {
        if places.lanes >> l & 1 == 0 || place.ptr.is_null() {
            continue;
        }
        let words: [u32; N] = std::array::from_fn(|k| registers[k][l]);
        // SAFETY: the lane was located for writing this many dwords.
        unsafe { store_dwords(place.ptr, place.step, &words) };
    }
}

fn store(
    wave: &Wave,
    spaces: &mut Spaces<'_>,
    data: Operand,
    unit: Unit,
    half: Half,
    places: &Places,
) -> Result<(), Trouble> {
    let Operand::Vgpr(data) = data else {
        return Err(super::Unsupported.into());
    };
    let shift = if half == Half::High { 16 } else { 0 };
    let n = match unit {
        Unit::Dwords(n) => usize::from(n),
        _ => 1,
    };
    let words = |l: usize| -> [u32; 4] {
        let mut w = [0; 4];
        for (k, word) in w.iter_mut().enumerate().take(n) {
            *word = wave.v(data + k as u16)[l];
        }
        w
    };
    match unit {
        Unit::Dwords(1) => {
            let values = wave.v(data);
            for_lanes(places.lanes, |l| {
                let place = places.at[l];
                if !place.ptr.is_null() {
                    // SAFETY: the lane was located for writing one dword.
                    unsafe { store32(place.ptr, values[l]) };
                }
            });
        }
        Unit::Dwords(2) => store_lanes::<2>(wave, data, places),
        Unit::Dwords(3) => store_lanes::<3>(wave, data, places),
        Unit::Dwords(_) => store_lanes::<4>(wave, data, places),
        _ => {
            let values = wave.v(data);
            for_lanes(places.lanes, |l| {
                let p = places.at[l].ptr;
                let v = values[l] >> shift;
                if p.is_null() {
                } else if unit.bytes() == 1 {
                    // SAFETY: the lane was located for writing one byte.
                    unsafe { store8(p, v as u8) };
                } else {
                    // SAFETY: the lane was located for writing two bytes.
                    unsafe { store16(p, v as u16) };
                }
            });
        }
    }
    for (l, at) in &places.split {
        let mut bytes = [0; 16];
        for (k, w) in words(*l).iter().enumerate() {
            bytes[4 * k..4 * k + 4].copy_from_slice(&(w >> shift).to_le_bytes());
        }
        spaces.write_split(*l, *at, &bytes[..unit.bytes() as usize])?;
    }
    Ok(())
}

/// FLAT and MUBUF data of compare-and-swap is the new value, then the comparand; DS has the comparand in data0.
fn rmw(wave: &mut Wave, inst: &Inst, op: AtomicOp, wide: bool, places: &Places) -> Result<(), Trouble> {
    let ds = inst.enc == Encoding::Ds;
    let compare = matches!(op, AtomicOp::CmpSwap | AtomicOp::FCmpSwap);
    let data0 = inst.src[1];
    let data1 = match (ds, compare, data0) {
        (true, ..) => inst.src[2],
        (false, true, Operand::Vgpr(n)) => Operand::Vgpr(n + if wide { 2 } else { 1 }),
        _ => Operand::None,
    };
    let (data0, data1) = if ds && compare { (data1, data0) } else { (data0, data1) };
    let mut failed = Ok(());
    if wide {
        let (a, b) = (wave.lanes64(data0), wave.lanes64(data1));
        let mut old = [0u64; 64];
        for_lanes(places.lanes, |l| {
            let p = places.at[l].ptr;
            if p.is_null() || failed.is_err() {
                return;
            }
            // SAFETY: the lane was located for an atomic of eight bytes.
            match unsafe { atomic::rmw64(p, op, a[l], b[l]) } {
                Ok(v) => old[l] = v,
                Err(e) => failed = Err(e),
            }
        });
        failed?;
        if let Operand::Vgpr(n) = inst.dst {
            let lo = wave.v_mut(n);
            for_lanes(places.lanes, |l| lo[l] = old[l] as u32);
            let hi = wave.v_mut(n + 1);
            for_lanes(places.lanes, |l| hi[l] = (old[l] >> 32) as u32);
        }
    } else {
        let (a, b) = (wave.lanes32(data0), wave.lanes32(data1));
        let mut old = [0u32; 64];
        for_lanes(places.lanes, |l| {
            let p = places.at[l].ptr;
            if p.is_null() || failed.is_err() {
                return;
            }
            // SAFETY: the lane was located for an atomic of four bytes.
            match unsafe { atomic::rmw32(p, op, a[l], b[l]) } {
                Ok(v) => old[l] = v,
                Err(e) => failed = Err(e),
            }
        });
        failed?;
        if let Operand::Vgpr(n) = inst.dst {
            let out = wave.v_mut(n);
            for_lanes(places.lanes, |l| out[l] = old[l]);
        }
    }
    Ok(())
}

/// Loads go to LDS at M0's low half plus the instruction's offset, one dword per lane.
fn load_lds(wave: &Wave, spaces: &mut Spaces<'_>, offset: i32, unit: Unit, places: &Places) -> Result<(), Trouble> {
    let base = (wave.m0() & 0xffff).wrapping_add_signed(offset);
    let mut values = [0u32; 64];
    for_lanes(places.lanes, |l| {
        let p = places.at[l].ptr;
        if p.is_null() {
            return;
        }
        // SAFETY: the lane was located for the unit's bytes.
        let raw = unsafe {
            match unit {
                Unit::U8 | Unit::I8 => u32::from(load8(p)),
                Unit::U16 | Unit::I16 => u32::from(load16(p)),
                Unit::Dwords(_) => {
                    let mut word = [0];
                    load_dwords(p, 4, &mut word);
                    word[0]
                }
            }
        };
        values[l] = extend(unit, raw);
    });
    for (l, at) in &places.split {
        let mut bytes = [0; 4];
        spaces.read_split(*l, *at, &mut bytes[..unit.bytes() as usize])?;
        values[*l] = extend(unit, u32::from_le_bytes(bytes));
    }
    let to = spaces.locate_all(wave.exec(), 4, Access::Write, |_, l| {
        Address::Lds(base.wrapping_add(4 * l as u32))
    })?;
    for_lanes(to.lanes, |l| {
        // SAFETY: the lane was located in LDS for writing one dword.
        unsafe { store_dwords(to.at[l].ptr, 4, &values[l..=l]) };
    });
    Ok(())
}
