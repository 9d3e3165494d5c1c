//! Arithmetic on doubles, in register pairs, with vectors of the processor.
//!
//! A register holds the low dwords of all lanes, the next one the high dwords. Interleaving the two within 128 bits makes
//! doubles of them, and the reverse shuffle undoes it:
//!
//! ```text
//! low    l0 l1 l2 l3 | l4 l5 l6 l7 | ...        even   (l0 h0) (l1 h1) | (l4 h4) (l5 h5) | ...
//! high   h0 h1 h2 h3 | h4 h5 h6 h7 | ...        odd    (l2 h2) (l3 h3) | (l6 h6) (l7 h7) | ...
//! ```

use std::arch::x86_64::*;

use super::{F64_MODE, Fast, Form, Loops, M, Same, Source, Walk, again};
use crate::{isa::Inst, wave::Wave};

/// Vectors of one width. Every function wants a processor that has them.
trait Width {
    /// Dwords of a group of lanes.
    type Words: Copy;
    /// Half as many doubles.
    type Doubles: Copy;
    /// Lanes of a group.
    const LANES: usize;

    unsafe fn load(from: *const u32) -> Self::Words;
    /// Stores the lanes of `exec`; with `FULL` those are all.
    unsafe fn store<const FULL: bool>(to: *mut u32, words: Self::Words, exec: u64);
    /// Each dword `& keep ^ flip`.
    unsafe fn sign(words: Self::Words, keep: u32, flip: u32) -> Self::Words;
    /// Doubles of low and high dwords: `even` and `odd` as drawn above.
    unsafe fn join(low: Self::Words, high: Self::Words) -> [Self::Doubles; 2];
    /// Low and high dwords of doubles.
    unsafe fn split(even: Self::Doubles, odd: Self::Doubles) -> [Self::Words; 2];
    /// A bit for each position at which one of the two is NaN.
    unsafe fn nans(a: Self::Doubles, b: Self::Doubles) -> u64;
    unsafe fn add(a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    unsafe fn mul(a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    unsafe fn fma(a: Self::Doubles, b: Self::Doubles, c: Self::Doubles) -> Self::Doubles;
}

struct Avx2;

impl Width for Avx2 {
    type Words = __m256i;
    type Doubles = __m256d;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m256i {
        // SAFETY: the caller's promise: the feature, and eight dwords.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store<const FULL: bool>(to: *mut u32, words: __m256i, exec: u64) {
        // SAFETY: the caller's promise: the feature, and eight dwords.
        unsafe {
            if FULL {
                _mm256_storeu_si256(to.cast(), words);
            } else {
                let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                let mask = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(exec as i32), bit), bit);
                _mm256_storeu_si256(to.cast(), _mm256_blendv_epi8(Self::load(to), words, mask));
            }
        }
    }

    #[inline(always)]
    unsafe fn sign(words: __m256i, keep: u32, flip: u32) -> __m256i {
        // SAFETY: the caller's promise: the feature.
        unsafe {
            let kept = _mm256_and_si256(words, _mm256_set1_epi32(keep as i32));
            _mm256_xor_si256(kept, _mm256_set1_epi32(flip as i32))
        }
    }

    #[inline(always)]
    unsafe fn join(low: __m256i, high: __m256i) -> [__m256d; 2] {
        // SAFETY: the caller's promise: the feature.
        unsafe {
            [
                _mm256_castsi256_pd(_mm256_unpacklo_epi32(low, high)),
                _mm256_castsi256_pd(_mm256_unpackhi_epi32(low, high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn split(even: __m256d, odd: __m256d) -> [__m256i; 2] {
        // SAFETY: the caller's promise: the feature.
        unsafe {
            let (even, odd) = (_mm256_castpd_ps(even), _mm256_castpd_ps(odd));
            [
                _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(even, odd)),
                _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(even, odd)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn nans(a: __m256d, b: __m256d) -> u64 {
        // SAFETY: the caller's promise: the feature.
        unsafe { _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_UNORD_Q>(a, b)) as u64 }
    }

    #[inline(always)]
    unsafe fn add(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller's promise: the feature.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller's promise: the feature.
        unsafe { _mm256_mul_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: the caller's promise: the feature.
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }
}

struct Avx512;

impl Width for Avx512 {
    type Words = __m512i;
    type Doubles = __m512d;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m512i {
        // SAFETY: the caller's promise: the feature, and sixteen dwords.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store<const FULL: bool>(to: *mut u32, words: __m512i, exec: u64) {
        // SAFETY: the caller's promise: the feature, and sixteen dwords.
        unsafe {
            if FULL {
                _mm512_storeu_si512(to.cast(), words);
            } else {
                _mm512_mask_storeu_epi32(to.cast(), exec as __mmask16, words);
            }
        }
    }

    #[inline(always)]
    unsafe fn sign(words: __m512i, keep: u32, flip: u32) -> __m512i {
        // SAFETY: the caller's promise: the feature.
        unsafe {
            let kept = _mm512_and_si512(words, _mm512_set1_epi32(keep as i32));
            _mm512_xor_si512(kept, _mm512_set1_epi32(flip as i32))
        }
    }

    #[inline(always)]
    unsafe fn join(low: __m512i, high: __m512i) -> [__m512d; 2] {
        // SAFETY: the caller's promise: the feature.
        unsafe {
            [
                _mm512_castsi512_pd(_mm512_unpacklo_epi32(low, high)),
                _mm512_castsi512_pd(_mm512_unpackhi_epi32(low, high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn split(even: __m512d, odd: __m512d) -> [__m512i; 2] {
        // SAFETY: the caller's promise: the feature.
        unsafe {
            let (even, odd) = (_mm512_castpd_ps(even), _mm512_castpd_ps(odd));
            [
                _mm512_castps_si512(_mm512_shuffle_ps::<0b10_00_10_00>(even, odd)),
                _mm512_castps_si512(_mm512_shuffle_ps::<0b11_01_11_01>(even, odd)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn nans(a: __m512d, b: __m512d) -> u64 {
        // SAFETY: the caller's promise: the feature.
        unsafe { _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, b).into() }
    }

    #[inline(always)]
    unsafe fn add(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller's promise: the feature.
        unsafe { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller's promise: the feature.
        unsafe { _mm512_mul_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: the caller's promise: the feature.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
}

/// One operation, in vectors of any width.
trait Operation {
    /// Sources that it takes.
    const SOURCES: usize;

    unsafe fn result<W: Width>(sources: [W::Doubles; 3]) -> W::Doubles;
}

struct Add;

impl Operation for Add {
    const SOURCES: usize = 2;

    #[inline(always)]
    unsafe fn result<W: Width>([a, b, _]: [W::Doubles; 3]) -> W::Doubles {
        // SAFETY: the caller's promise: the width's features.
        unsafe { W::add(a, b) }
    }
}

struct Mul;

impl Operation for Mul {
    const SOURCES: usize = 2;

    #[inline(always)]
    unsafe fn result<W: Width>([a, b, _]: [W::Doubles; 3]) -> W::Doubles {
        // SAFETY: the caller's promise: the width's features.
        unsafe { W::mul(a, b) }
    }
}

struct Fma;

impl Operation for Fma {
    const SOURCES: usize = 3;

    #[inline(always)]
    unsafe fn result<W: Width>([a, b, c]: [W::Doubles; 3]) -> W::Doubles {
        // SAFETY: the caller's promise: the width's features.
        unsafe { W::fma(a, b, c) }
    }
}

/// The lanes, from the first of a group on, of whose doubles these bits speak.
fn lanes_of(even: u64, odd: u64) -> u64 {
    let pair = |bits: u64, k: usize| bits >> (2 * k) & 3;
    (0..4).fold(0, |lanes, k| {
        lanes | pair(even, k) << (4 * k) | pair(odd, k) << (4 * k + 2)
    })
}

/// Lanes of the widest vectors.
const MOST_LANES: usize = Avx512::LANES;

/// Walks over the low and the high dwords of a source.
#[inline(always)]
unsafe fn walks(wave: &Wave, source: Source, same: &mut [Same<MOST_LANES>; 2]) -> [Walk; 2] {
    let [low, high] = same;
    // SAFETY: the caller's promise.
    unsafe { [Walk::new(wave, source, false, low), Walk::new(wave, source, true, high)] }
}

/// The group of a source that begins with lane `first`. `PLAIN`: all sources are registers, so that every address is known when this is
/// compiled.
#[inline(always)]
unsafe fn read<W: Width, const SIGNS: bool, const PLAIN: bool>(
    [low, high]: [Walk; 2],
    first: usize,
    (keep, flip): (u32, u32),
) -> [W::Doubles; 2] {
    // SAFETY: the caller's promise: good walks, of registers if `PLAIN`, and the width's features.
    unsafe {
        let (low, high) = if PLAIN {
            (low.at.add(first), high.at.add(first))
        } else {
            (low.lanes(first), high.lanes(first))
        };
        let (low, high) = (W::load(low), W::load(high));
        W::join(low, if SIGNS { W::sign(high, keep, flip) } else { high })
    }
}

#[inline(always)]
unsafe fn groups<W: Width, O: Operation, const SIGNS: bool, const FULL: bool, const PLAIN: bool>(
    wave: &mut Wave,
    inst: &Inst,
    fast: &Fast,
    exec: u64,
) {
    let mut same = [[Same::<MOST_LANES>::uninit(); 2]; 3];
    let [a, b, c] = &mut same;
    // SAFETY: resolved registers are the wave's; the walks end before anything else touches the wave. The caller promises the
    // width's features.
    unsafe {
        let a = walks(wave, fast.src[0], a);
        let b = walks(wave, fast.src[1], b);
        let c = walks(wave, fast.src[2], c);
        let low = wave.lanes_at_mut(usize::from(fast.dst));
        let high = wave.lanes_at_mut(usize::from(fast.dst) + 1);
        for first in (0..64).step_by(W::LANES) {
            let x = read::<W, SIGNS, PLAIN>(a, first, fast.signs[0]);
            let y = read::<W, SIGNS, PLAIN>(b, first, fast.signs[1]);
            let z = if O::SOURCES == 3 {
                read::<W, SIGNS, PLAIN>(c, first, fast.signs[2])
            } else {
                x
            };
            let even = O::result::<W>([x[0], y[0], z[0]]);
            let odd = O::result::<W>([x[1], y[1], z[1]]);
            if W::nans(even, odd) != 0 && lanes_of(W::nans(even, even), W::nans(odd, odd)) & exec >> first != 0 {
                return again(wave, inst, first);
            }
            let [l, h] = W::split(even, odd);
            W::store::<FULL>(low.add(first), l, exec >> first);
            W::store::<FULL>(high.add(first), h, exec >> first);
        }
    }
}

#[inline(always)]
unsafe fn all<W: Width, O: Operation, const SIGNS: bool>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
    let exec = wave.exec();
    // SAFETY: the caller's promise.
    unsafe {
        if exec == u64::MAX && fast.registers(O::SOURCES) {
            groups::<W, O, SIGNS, true, true>(wave, inst, fast, exec);
        } else if exec == u64::MAX {
            groups::<W, O, SIGNS, true, false>(wave, inst, fast, exec);
        } else if exec != 0 {
            groups::<W, O, SIGNS, false, false>(wave, inst, fast, exec);
        }
    }
}

fn loops<O: Operation, const SIGNS: bool>() -> Loops {
    /// As the others, in scalar arithmetic.
    unsafe fn baseline(wave: &mut Wave, inst: &Inst, _: &Fast) {
        again(wave, inst, 0);
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<O: Operation, const SIGNS: bool>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
        // SAFETY: the caller's promise.
        unsafe { all::<Avx2, O, SIGNS>(wave, inst, fast) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")]
    unsafe fn avx512<O: Operation, const SIGNS: bool>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
        // SAFETY: the caller's promise.
        unsafe { all::<Avx512, O, SIGNS>(wave, inst, fast) }
    }

    Loops {
        baseline,
        avx2: avx2::<O, SIGNS>,
        avx512: avx512::<O, SIGNS>,
    }
}

fn operation<O: Operation>(signed: bool) -> Form {
    Form {
        loops: if signed {
            loops::<O, true>()
        } else {
            loops::<O, false>()
        },
        modes: F64_MODE,
        dst: 2,
        src: [2, 2, if O::SOURCES == 3 { 2 } else { 0 }],
    }
}

/// The lane loops of a mnemonic, and the modes they are good in.
pub(super) fn form(mnemonic: M, signed: bool) -> Option<Form> {
    match mnemonic {
        M::v_add_f64 => Some(operation::<Add>(signed)),
        M::v_mul_f64 => Some(operation::<Mul>(signed)),
        M::v_fma_f64 | M::v_fmac_f64 => Some(operation::<Fma>(signed)),
        _ => None,
    }
}

/// Every mnemonic that has lane loops here.
#[cfg(test)]
pub(super) const ALL: &[M] = &[M::v_add_f64, M::v_mul_f64, M::v_fma_f64, M::v_fmac_f64];
