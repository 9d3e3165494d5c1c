//! The common vector instructions with their operands resolved when they are decoded, and lane loops compiled for the
//! processor that runs them.
//!
//! [`resolve`] takes plain forms: no SDWA, no DPP, no clamp, no output modifier. What it returns is executed by
//! [`Fast::execute`] while MODE is as its loop assumes (nearest even, denormals kept); all else, and lanes whose result is a
//! NaN, goes to [`super::valu`], which remains the definition of every instruction. `tests.rs` compares the two.
//!
//! ```text
//! words   32-bit results of 32-bit sources      carries   additions with carry      compares   lane masks
//! pairs   64-bit integers                       doubles   64-bit floating point
//! ```

mod carries;
mod compares;
#[cfg(target_arch = "x86_64")]
mod doubles;
mod pairs;
mod words;

#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use super::valu;
use crate::{
    alu::features::Level,
    isa::{Inst, Lanes, Mnemonic as M, Operand},
    wave::Wave,
};

/// Executes one resolved instruction.
///
/// # Safety
/// The processor has the features that the function was compiled for, and the wave has the registers that the
/// instruction was resolved for.
type Run = unsafe fn(&mut Wave, &Inst, &Fast);

/// Where a source's lanes come from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A register, by its place in the file, and of a pair the next one too.
    Lanes(u16),
    /// A scalar register, or pair.
    Scalar(u8),
    Constant(u64),
}

/// What MODE must be: these bits, with these values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Modes {
    mask: u32,
    value: u32,
}

/// No VGPR indexing.
const ANY_MODE: Modes = Modes {
    mask: 1 << 27,
    value: 0,
};
/// f32 rounds to nearest even and keeps denormals.
const F32_MODE: Modes = Modes {
    mask: 1 << 27 | 0x33,
    value: 0x30,
};
/// f64 does.
const F64_MODE: Modes = Modes {
    mask: 1 << 27 | 0xcc,
    value: 0xc0,
};

/// A resolved instruction.
#[derive(Clone, Copy, Debug)]
pub struct Fast {
    run: Run,
    modes: Modes,
    /// Place of the destination in the register file.
    dst: u16,
    src: [Source; 3],
    /// Per source, what to keep of the dword that holds the sign, and what to flip: abs, neg.
    signs: [(u32, u32); 3],
}

/// Lane loops of one instruction, for each set of processor features.
struct Loops {
    baseline: Run,
    avx2: Run,
    avx512: Run,
}

/// How a mnemonic is executed.
struct Form {
    loops: Loops,
    modes: Modes,
    /// Dwords of the destination, 0 where it is a lane mask.
    dst: u16,
    /// Dwords of the sources.
    src: [u16; 3],
}

impl Loops {
    fn pick(&self) -> Run {
        match Level::of_processor() {
            Level::Avx512 => self.avx512,
            Level::Avx2 => self.avx2,
            Level::Baseline => self.baseline,
        }
    }
}

/// Makes [`Loops`] of a function that is generic over the number of lanes taken at once.
macro_rules! loops {
    ($body:ident::<$op:ty $(, $flag:literal)?>) => {{
        unsafe fn baseline(wave: &mut Wave, inst: &Inst, fast: &Fast) {
            // SAFETY: the caller's promise.
            unsafe { $body::<$op, $($flag,)? 4>(wave, inst, fast) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2(wave: &mut Wave, inst: &Inst, fast: &Fast) {
            // SAFETY: the caller's promise.
            unsafe { $body::<$op, $($flag,)? 8>(wave, inst, fast) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")]
        unsafe fn avx512(wave: &mut Wave, inst: &Inst, fast: &Fast) {
            // SAFETY: the caller's promise.
            unsafe { $body::<$op, $($flag,)? 16>(wave, inst, fast) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        use {baseline as avx2, baseline as avx512};
        $crate::exec::fast::Loops { baseline, avx2, avx512 }
    }};
}
use loops;

fn form(mnemonic: M, signed: bool) -> Option<Form> {
    let form = words::form(mnemonic, signed)
        .or_else(|| pairs::form(mnemonic, signed))
        .or_else(|| compares::form(mnemonic, signed))
        .or_else(|| carries::form(mnemonic, signed));
    #[cfg(target_arch = "x86_64")]
    let form = form.or_else(|| doubles::form(mnemonic, signed));
    form
}

/// The fast form of an instruction for waves of this many registers, AGPRs from `accum_offset` on; `None` where there is
/// none. The instruction names no register past the wave's.
pub fn resolve(inst: &Inst, registers: u16, accum_offset: u16) -> Option<Fast> {
    let mods = &inst.mods;
    if inst.lanes != Lanes::Plain || mods.clamp || mods.omod != 0 || mods.op_sel != 0 {
        return None;
    }
    let signed = mods.abs != 0 || mods.neg != 0;
    let form = form(inst.mnemonic, signed)?;
    let place = |register: u16, count: u16| {
        let at = if register < 256 {
            register
        } else {
            register - 256 + accum_offset
        };
        (at + count <= registers).then_some(at)
    };
    let source = |n: usize| {
        Some(match inst.src[n] {
            Operand::None => Source::Constant(0),
            Operand::Vgpr(r) => Source::Lanes(place(r, form.src[n])?),
            // EXEC changes while lanes are done again.
            Operand::Sgpr(126 | 127) => return None,
            Operand::Sgpr(code) => Source::Scalar(code),
            Operand::Const(c) => Source::Constant(c),
            Operand::Special(_) => return None,
        })
    };
    let dst = match inst.dst {
        Operand::Vgpr(r) => place(r, form.dst)?,
        _ if form.dst == 0 => 0,
        _ => return None,
    };
    let sign = |n: usize| {
        let keep = if mods.abs >> n & 1 != 0 { 0x7fff_ffff } else { !0 };
        (keep, u32::from(mods.neg >> n & 1) << 31)
    };
    Some(Fast {
        run: form.loops.pick(),
        modes: form.modes,
        dst,
        src: [source(0)?, source(1)?, source(2)?],
        signs: [sign(0), sign(1), sign(2)],
    })
}

impl Fast {
    /// Whether the first `count` sources are registers.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn registers(&self, count: usize) -> bool {
        self.src[..count]
            .iter()
            .all(|source| matches!(source, Source::Lanes(_)))
    }

    /// Executes the instruction, or returns false where MODE is not as the loop assumes.
    ///
    /// # Safety
    /// The wave has the number of registers, and the AGPRs where, that the instruction was resolved for.
    #[inline]
    pub unsafe fn execute(&self, wave: &mut Wave, inst: &Inst) -> bool {
        if wave.mode.0 & self.modes.mask != self.modes.value {
            return false;
        }
        // SAFETY: `pick` has asked the processor, and the registers are the caller's promise.
        unsafe { (self.run)(wave, inst, self) };
        true
    }
}

/// The lanes from `first` on, as the definition has them.
#[cold]
#[inline(never)]
fn again(wave: &mut Wave, inst: &Inst, first: usize) {
    let exec = wave.exec();
    wave.set_exec(exec & !0 << first);
    let known = valu::execute(wave, inst);
    wave.set_exec(exec);
    assert!(known.is_ok(), "{} has a fast form only", inst.mnemonic);
}

/// Room for a value that all lanes share: most sources leave it alone, so nobody clears it.
type Same<const N: usize> = MaybeUninit<[u32; N]>;

/// A source as a walk over groups of `N` lanes.
#[derive(Clone, Copy)]
struct Walk {
    at: *const u32,
    /// `N`, or 0 where all lanes are the same.
    step: usize,
}

impl Walk {
    /// The low dwords of a source, or with `high` the high ones. `same` is where a value that all lanes share is put.
    ///
    /// # Safety
    /// The registers of the source are the wave's. The walk is good while neither they nor `same` go away.
    #[inline(always)]
    unsafe fn new<const N: usize>(wave: &Wave, source: Source, high: bool, same: &mut Same<N>) -> Walk {
        match source {
            Source::Lanes(place) => Walk {
                // SAFETY: the caller's promise.
                at: unsafe { wave.lanes_at(usize::from(place) + usize::from(high)) },
                step: N,
            },
            Source::Scalar(code) => {
                let value = wave.sgpr[usize::from(code + u8::from(high)) & 127];
                Walk {
                    at: same.write([value; N]).as_ptr(),
                    step: 0,
                }
            }
            Source::Constant(c) => {
                let value = if high { (c >> 32) as u32 } else { c as u32 };
                Walk {
                    at: same.write([value; N]).as_ptr(),
                    step: 0,
                }
            }
        }
    }

    /// Group `k`.
    ///
    /// # Safety
    /// The walk is still good, and `k` below 64 / `N`.
    #[inline(always)]
    unsafe fn get<const N: usize>(self, k: usize) -> [u32; N] {
        // SAFETY: 64 lanes, or the one group of a shared value.
        unsafe { self.at.add(k * self.step).cast::<[u32; N]>().read() }
    }

    /// Where the group that begins with lane `first` is.
    ///
    /// # Safety
    /// The walk is still good, and `first` below 64.
    #[inline(always)]
    unsafe fn lanes(self, first: usize) -> *const u32 {
        // SAFETY: 64 lanes, or the one group of a shared value.
        unsafe { self.at.add(if self.step == 0 { 0 } else { first }) }
    }
}

/// Lanes of `yes` where their bit is set, of `no` elsewhere. `N` is 4, 8 in code compiled for AVX2, 16 for AVX-512.
#[inline(always)]
fn select<const N: usize>(bits: u64, yes: &[u32; N], no: &[u32; N]) -> [u32; N] {
    let mut out = [0u32; N];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: whole vectors of arrays of `N` lanes; SSE2 is part of x86-64, and code of wider `N` runs where AVX2 is.
    unsafe {
        use std::arch::x86_64::*;
        if N >= 8 {
            let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            for k in (0..N).step_by(8) {
                let mask = _mm256_and_si256(_mm256_set1_epi32((bits >> k) as i32), bit);
                let mask = _mm256_cmpeq_epi32(mask, bit);
                let y = _mm256_loadu_si256(yes.as_ptr().add(k).cast());
                let n = _mm256_loadu_si256(no.as_ptr().add(k).cast());
                _mm256_storeu_si256(out.as_mut_ptr().add(k).cast(), _mm256_blendv_epi8(n, y, mask));
            }
        } else {
            let bit = _mm_setr_epi32(1, 2, 4, 8);
            let mask = _mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32(bits as i32), bit), bit);
            let y = _mm_and_si128(mask, _mm_loadu_si128(yes.as_ptr().cast()));
            let n = _mm_andnot_si128(mask, _mm_loadu_si128(no.as_ptr().cast()));
            _mm_storeu_si128(out.as_mut_ptr().cast(), _mm_or_si128(y, n));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for i in 0..N {
        out[i] = if bits >> i & 1 != 0 { yes[i] } else { no[i] };
    }
    out
}

/// The sign bits of the lanes.
#[inline(always)]
fn gather<const N: usize>(lanes: &[u32; N]) -> u64 {
    let mut out = 0;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `select`.
    unsafe {
        use std::arch::x86_64::*;
        if N >= 8 {
            for k in (0..N).step_by(8) {
                out |= (_mm256_movemask_ps(_mm256_loadu_ps(lanes.as_ptr().add(k).cast())) as u32 as u64) << k;
            }
        } else {
            out |= _mm_movemask_ps(_mm_loadu_ps(lanes.as_ptr().cast())) as u32 as u64;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (i, lane) in lanes.iter().enumerate() {
        out |= u64::from(lane >> 31) << i;
    }
    out
}

/// Writes group `k` of a register in the lanes of `exec`.
///
/// # Safety
/// `to` is a register of the wave, and `k` below 64 / `N`.
#[inline(always)]
unsafe fn put<const N: usize, const FULL: bool>(to: *mut u32, k: usize, exec: u64, values: [u32; N]) {
    // SAFETY: the caller's promise.
    unsafe {
        let to = to.add(k * N).cast::<[u32; N]>();
        if FULL {
            to.write(values);
        } else {
            to.write(select(exec >> (k * N), &values, &*to));
        }
    }
}
