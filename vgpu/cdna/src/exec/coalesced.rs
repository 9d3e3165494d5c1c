//! Loads and stores whose lanes all lie in one region, or in LDS: one look-up for all of them, and where the lanes are
//! neighbours in memory, whole vectors of them at once. All else is left to [`super::flat`].

use super::{
    access::{Memory, SCRATCH_WINDOW, load_dwords, load8, load16, load32, store_dwords, store8, store16, store32},
    memop::{Half, MemOp, Unit},
    operands::for_lanes,
};
use crate::{
    alu::lanes::vectorised,
    isa::Operand,
    memory::Access,
    wave::{V32, Wave},
};

/// Where the offsets of the active lanes lie.
struct Extent {
    least: u32,
    most: u32,
    /// All lanes are active, and each lies right behind the one before it.
    contiguous: bool,
}

impl Extent {
    /// `exec` is not 0.
    fn of(offsets: &V32, exec: u64, bytes: u32) -> Extent {
        let first = offsets[exec.trailing_zeros() as usize & 63];
        if exec != u64::MAX {
            let (mut least, mut most) = (first, first);
            for_lanes(exec, |l| {
                least = least.min(offsets[l]);
                most = most.max(offsets[l]);
            });
            return Extent {
                least,
                most,
                contiguous: false,
            };
        }
        let odd = vectorised(|| {
            let mut odd = 0;
            for (l, offset) in offsets.iter().enumerate() {
                odd |= offset ^ first.wrapping_add(l as u32 * bytes);
            }
            odd
        });
        if odd == 0 && first.checked_add(63 * bytes).is_some() {
            return Extent {
                least: first,
                most: first + 63 * bytes,
                contiguous: true,
            };
        }
        let (least, most) = vectorised(|| {
            offsets
                .iter()
                .fold((first, first), |(least, most), o| (least.min(*o), most.max(*o)))
        });
        Extent {
            least,
            most,
            contiguous: false,
        }
    }
}

/// Performs a load or store at `base` plus 32-bit offsets if all lanes lie in one region; false, with nothing done, if
/// not, or for other operations.
#[inline]
pub fn global(
    wave: &mut Wave,
    memory: &mut Memory<'_>,
    op: MemOp,
    dst: Operand,
    data: Operand,
    base: u64,
    offsets: &V32,
) -> bool {
    let (unit, half, access, register) = match op {
        MemOp::Load { unit, half } => (unit, half, Access::Read, dst),
        MemOp::Store { unit, half } => (unit, half, Access::Write, data),
        _ => return false,
    };
    let (exec, Operand::Vgpr(register)) = (wave.exec(), register) else {
        return false;
    };
    if exec == 0 || memory.cache().is_some() {
        return false;
    }
    memory.refresh();
    let bytes = unit.bytes();
    let extent = Extent::of(offsets, exec, bytes);
    let Some(last) = base.checked_add(u64::from(extent.most) + u64::from(bytes)) else {
        return false;
    };
    if last > SCRATCH_WINDOW {
        return false;
    }
    let va = base + u64::from(extent.least);
    let Ok(Some(host)) = memory.find(va, last - va, access) else {
        return false;
    };
    memory.count(u64::from(bytes) * u64::from(exec.count_ones()), access);
    // The place of offset 0, which need not be mapped itself.
    let host = host.wrapping_sub(extent.least as usize);
    // SAFETY: `find` allowed every byte between the least and the last.
    unsafe { perform(wave, host, offsets, exec, &extent, access, unit, half, register) };
    true
}

/// As [`global`], in LDS of `size` bytes.
#[inline]
#[allow(clippy::too_many_arguments)]
pub fn lds(
    wave: &mut Wave,
    words: &mut [u64],
    size: u32,
    op: MemOp,
    dst: Operand,
    data: Operand,
    base: u32,
    offsets: &V32,
) -> bool {
    let (unit, half, access, register) = match op {
        MemOp::Load { unit, half } => (unit, half, Access::Read, dst),
        MemOp::Store { unit, half } => (unit, half, Access::Write, data),
        _ => return false,
    };
    let (exec, Operand::Vgpr(register)) = (wave.exec(), register) else {
        return false;
    };
    if exec == 0 {
        return false;
    }
    let extent = Extent::of(offsets, exec, unit.bytes());
    let end = u64::from(extent.most) + u64::from(base) + u64::from(unit.bytes());
    if end > u64::from(size) || end > words.len() as u64 * 8 {
        return false;
    }
    let host = words.as_mut_ptr().cast::<u8>().wrapping_add(base as usize);
    // SAFETY: the last byte is inside.
    unsafe { perform(wave, host, offsets, exec, &extent, access, unit, half, register) };
    true
}

/// # Safety
/// The unit's bytes at `host` plus the offset of each lane of `exec` may be accessed.
#[inline]
#[allow(clippy::too_many_arguments)]
unsafe fn perform(
    wave: &mut Wave,
    host: *mut u8,
    offsets: &V32,
    exec: u64,
    extent: &Extent,
    access: Access,
    unit: Unit,
    half: Half,
    register: u16,
) {
    let at = |l: usize| host.wrapping_add(offsets[l] as usize);
    let shift = if half == Half::High { 16 } else { 0 };
    let aligned = (at(0) as usize).is_multiple_of(4);
    // SAFETY: the caller's promise, for each lane that is accessed.
    unsafe {
        match (access, unit) {
            #[cfg(target_arch = "x86_64")]
            (Access::Read, Unit::Dwords(n @ (1 | 2 | 4))) if extent.contiguous && aligned => {
                vectors::load(wave, at(0), n, register);
            }
            #[cfg(target_arch = "x86_64")]
            (Access::Write, Unit::Dwords(n @ (1 | 2 | 4))) if extent.contiguous && aligned => {
                vectors::store(wave, at(0), n, register);
            }
            (Access::Read, Unit::Dwords(1)) => {
                let out = wave.v_mut(register);
                for_lanes(exec, |l| out[l] = load32(at(l)));
            }
            (Access::Read, Unit::Dwords(n)) => {
                let n = usize::from(n).min(4);
                let mut out = [[0; 64]; 4];
                for_lanes(exec, |l| {
                    let mut words = [0; 4];
                    load_dwords(at(l), 4, &mut words[..n]);
                    for k in 0..n {
                        out[k][l] = words[k];
                    }
                });
                for (k, values) in out.iter().enumerate().take(n) {
                    let to = wave.v_mut(register + k as u16);
                    if exec == u64::MAX {
                        *to = *values;
                    } else {
                        for_lanes(exec, |l| to[l] = values[l]);
                    }
                }
            }
            (Access::Read, _) => {
                // With SRAM ECC, as these cards report, a 16-bit load writes the whole register.
                let keep = if half == Half::Full { u32::MAX } else { 0xffff };
                let out = wave.v_mut(register);
                for_lanes(exec, |l| {
                    let raw = match unit {
                        Unit::U8 => u32::from(load8(at(l))),
                        Unit::I8 => load8(at(l)) as i8 as u32,
                        Unit::U16 => u32::from(load16(at(l))),
                        _ => load16(at(l)) as i16 as u32,
                    };
                    out[l] = (raw & keep) << shift;
                });
            }
            (_, Unit::Dwords(1)) => {
                let values = wave.v(register);
                for_lanes(exec, |l| store32(at(l), values[l]));
            }
            (_, Unit::Dwords(n)) => {
                let n = usize::from(n).min(4);
                for_lanes(exec, |l| {
                    let mut words = [0; 4];
                    for (k, word) in words.iter_mut().enumerate().take(n) {
                        *word = wave.v(register + k as u16)[l];
                    }
                    store_dwords(at(l), 4, &words[..n]);
                });
            }
            (_, Unit::U8 | Unit::I8) => {
                let values = wave.v(register);
                for_lanes(exec, |l| store8(at(l), (values[l] >> shift) as u8));
            }
            _ => {
                let values = wave.v(register);
                for_lanes(exec, |l| store16(at(l), (values[l] >> shift) as u16));
            }
        }
    }
}

/// Whole vectors. Other processors may access the memory meanwhile: aligned dwords are never torn, and the accesses are
/// written in assembly because the language knows no vector atomics.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::{asm, x86_64::*};

    use crate::wave::Wave;

    #[inline(always)]
    unsafe fn get(p: *const u8) -> __m128 {
        let x;
        // SAFETY: the caller may read sixteen bytes.
        unsafe {
            asm!("movups {x}, [{p}]", x = out(xmm_reg) x, p = in(reg) p, options(nostack, preserves_flags, readonly))
        };
        x
    }

    #[inline(always)]
    unsafe fn put(p: *mut u8, x: __m128) {
        // SAFETY: the caller may write sixteen bytes.
        unsafe { asm!("movups [{p}], {x}", x = in(xmm_reg) x, p = in(reg) p, options(nostack, preserves_flags)) };
    }

    /// Loads `n` (1, 2, 4) dwords a lane from consecutive memory.
    ///
    /// # Safety
    /// 256 * `n` bytes may be read.
    pub unsafe fn load(wave: &mut Wave, from: *const u8, n: u8, register: u16) {
        let mut to = [std::ptr::null_mut::<f32>(); 4];
        for (k, to) in to.iter_mut().enumerate().take(n.into()) {
            *to = wave.v_mut(register + k as u16).as_mut_ptr().cast();
        }
        // SAFETY: sixteen groups of four lanes each, in registers of 64 lanes; the caller's promise.
        unsafe {
            for group in 0..16 {
                let at = |k: usize| get(from.add((group * usize::from(n) + k) * 16));
                let save = |k: usize, x: __m128| _mm_storeu_ps(to[k].add(4 * group), x);
                match n {
                    1 => save(0, at(0)),
                    2 => {
                        let (a, b) = (at(0), at(1));
                        save(0, _mm_shuffle_ps::<0b10_00_10_00>(a, b));
                        save(1, _mm_shuffle_ps::<0b11_01_11_01>(a, b));
                    }
                    _ => {
                        let (mut a, mut b, mut c, mut d) = (at(0), at(1), at(2), at(3));
                        _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
                        for (k, x) in [a, b, c, d].into_iter().enumerate() {
                            save(k, x);
                        }
                    }
                }
            }
        }
    }

    /// Stores `n` (1, 2, 4) dwords a lane to consecutive memory.
    ///
    /// # Safety
    /// 256 * `n` bytes may be written.
    pub unsafe fn store(wave: &Wave, to: *mut u8, n: u8, register: u16) {
        let mut from = [std::ptr::null::<f32>(); 4];
        for (k, from) in from.iter_mut().enumerate().take(n.into()) {
            *from = wave.v(register + k as u16).as_ptr().cast();
        }
        // SAFETY: as in `load`.
        unsafe {
            for group in 0..16 {
                let at = |k: usize| _mm_loadu_ps(from[k].add(4 * group));
                let save = |k: usize, x: __m128| put(to.add((group * usize::from(n) + k) * 16), x);
                match n {
                    1 => save(0, at(0)),
                    2 => {
                        let (a, b) = (at(0), at(1));
                        save(0, _mm_unpacklo_ps(a, b));
                        save(1, _mm_unpackhi_ps(a, b));
                    }
                    _ => {
                        let (mut a, mut b, mut c, mut d) = (at(0), at(1), at(2), at(3));
                        _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
                        for (k, x) in [a, b, c, d].into_iter().enumerate() {
                            save(k, x);
                        }
                    }
                }
            }
        }
    }
}
