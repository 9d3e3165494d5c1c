//! 64-bit results, and sources, in register pairs.
//!
//! Doubles go through the processor's own instructions four lanes at a time: interleaving low and high dwords within
//! 128 bits puts lanes 0, 1, 4, 5 and 2, 3, 6, 7 of a group together, and the reverse shuffle undoes it.

#[cfg(target_arch = "x86_64")]
use super::F64_MODE;
use super::{ANY_MODE, Form, M};
use super::{Fast, Walk, gather, loops, put};
use crate::{isa::Inst, wave::Wave};

trait Pairs {
    fn result(a: u64, b: u64, c: u64) -> u64;
    /// The sum is less than source 2 where it went past 64 bits; that carry goes to the mask that the instruction names.
    const CARRY: bool;
    /// Dwords of the sources, 0 where there is none.
    const SRC: [u16; 3];
}

#[inline(always)]
unsafe fn pairs<O: Pairs, const N: usize>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
    let exec = wave.exec();
    let mut carry = 0;
    let mut same = [[[0; N]; 2]; 3];
    let [[a0, a1], [b0, b1], [c0, c1]] = &mut same;
    // SAFETY: resolved registers are the wave's; the walks end before anything else touches the wave.
    unsafe {
        let wide = |n: usize| O::SRC[n] == 2;
        let a = (
            Walk::new(wave, fast.src[0], false, a0),
            Walk::new(wave, fast.src[0], wide(0), a1),
        );
        let b = (
            Walk::new(wave, fast.src[1], false, b0),
            Walk::new(wave, fast.src[1], wide(1), b1),
        );
        let c = (
            Walk::new(wave, fast.src[2], false, c0),
            Walk::new(wave, fast.src[2], wide(2), c1),
        );
        let low = wave.lanes_at_mut(usize::from(fast.dst));
        let high = wave.lanes_at_mut(usize::from(fast.dst) + 1);
        for k in 0..64 / N {
            let read = |(l, h): (Walk, Walk), n: usize| {
                let (l, h) = (l.get::<N>(k), h.get::<N>(k));
                let mut out = [0u64; N];
                for i in 0..N {
                    out[i] = u64::from(l[i]) | if wide(n) { u64::from(h[i]) << 32 } else { 0 };
                }
                out
            };
            let (x, y, z) = (read(a, 0), read(b, 1), read(c, 2));
            let mut out = [0; N];
            for i in 0..N {
                out[i] = O::result(x[i], y[i], z[i]);
            }
            let (mut l, mut h) = ([0; N], [0; N]);
            for i in 0..N {
                l[i] = out[i] as u32;
            }
            for i in 0..N {
                h[i] = (out[i] >> 32) as u32;
            }
            if O::CARRY {
                let mut carries = [0; N];
                for i in 0..N {
                    carries[i] = if out[i] < z[i] { !0 } else { 0 };
                }
                carry |= gather(&carries) << (k * N);
            }
            put::<N, false>(low, k, exec, l);
            put::<N, false>(high, k, exec, h);
        }
    }
    if O::CARRY {
        wave.write_mask(inst.sdst, carry);
    }
}

macro_rules! table {
    ($($name:ident: $src:expr, $carry:literal, |$a:pat_param, $b:pat_param, $c:pat_param| $e:expr;)*) => {
        fn integers(mnemonic: M) -> Option<Form> {
            $({
                #[allow(non_camel_case_types)]
                struct $name;
                impl Pairs for $name {
                    #[inline(always)]
                    fn result($a: u64, $b: u64, $c: u64) -> u64 { $e }
                    const CARRY: bool = $carry;
                    const SRC: [u16; 3] = $src;
                }
                if mnemonic == M::$name {
                    return Some(Form { loops: loops!(pairs::<$name>), modes: ANY_MODE, dst: 2, src: $src });
                }
            })*
            None
        }

        #[cfg(test)]
        const INTEGERS: &[M] = &[$(M::$name),*];
    };
}

table! {
    v_lshlrev_b64: [1, 2, 0], false, |n, x, _| x.wrapping_shl(n as u32);
    v_lshrrev_b64: [1, 2, 0], false, |n, x, _| x.wrapping_shr(n as u32);
    v_ashrrev_i64: [1, 2, 0], false, |n, x, _| (x as i64).wrapping_shr(n as u32) as u64;
    v_lshl_add_u64: [2, 1, 2], false, |x, n, z| (x << (n & 7)).wrapping_add(z);
    v_mov_b64: [2, 0, 0], false, |x, _, _| x;
    v_mad_u64_u32: [1, 1, 2], true, |x, y, z| x.wrapping_mul(y).wrapping_add(z);
}

/// The lane loops of a mnemonic, and the modes they are good in.
pub(super) fn form(mnemonic: M, signed: bool) -> Option<Form> {
    let form = integers(mnemonic).filter(|_| !signed);
    #[cfg(target_arch = "x86_64")]
    let form = form.or_else(|| doubles::form(mnemonic, signed));
    form
}

/// Every mnemonic that has lane loops here.
#[cfg(test)]
pub(super) fn all() -> Vec<M> {
    #[cfg(target_arch = "x86_64")]
    let doubles = [M::v_add_f64, M::v_mul_f64, M::v_fma_f64, M::v_fmac_f64];
    #[cfg(not(target_arch = "x86_64"))]
    let doubles = [];
    INTEGERS.iter().copied().chain(doubles).collect()
}

#[cfg(target_arch = "x86_64")]
mod doubles {
    use std::arch::x86_64::*;

    use super::{F64_MODE, Fast, Form, Inst, M, Walk, Wave};
    use crate::exec::fast::{Loops, again};

    /// Lane loops of one operation on `__m256d`.
    macro_rules! operation {
        ($name:ident, $sources:literal, |$a:ident, $b:ident, $c:ident| $wide:expr) => {
            mod $name {
                use super::*;

                #[target_feature(enable = "avx2,fma")]
                unsafe fn groups<const SIGNS: bool, const FULL: bool>(
                    wave: &mut Wave,
                    inst: &Inst,
                    fast: &Fast,
                    exec: u64,
                ) {
                    let mut same = [[[0u32; 8]; 2]; 3];
                    let [[a0, a1], [b0, b1], [c0, c1]] = &mut same;
                    // SAFETY: resolved registers are the wave's; the walks end before anything else touches the wave.
                    unsafe {
                        let a = (
                            Walk::new(wave, fast.src[0], false, a0),
                            Walk::new(wave, fast.src[0], true, a1),
                        );
                        let b = (
                            Walk::new(wave, fast.src[1], false, b0),
                            Walk::new(wave, fast.src[1], true, b1),
                        );
                        let c = if $sources == 3 {
                            (
                                Walk::new(wave, fast.src[2], false, c0),
                                Walk::new(wave, fast.src[2], true, c1),
                            )
                        } else {
                            a
                        };
                        let low = wave.lanes_at_mut(usize::from(fast.dst)).cast::<__m256i>();
                        let high = wave.lanes_at_mut(usize::from(fast.dst) + 1).cast::<__m256i>();
                        let signs = fast
                            .signs
                            .map(|(keep, flip)| (_mm256_set1_epi32(keep as i32), _mm256_set1_epi32(flip as i32)));
                        let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                        for k in 0..8 {
                            let read = |(l, h): (Walk, Walk), n: usize| {
                                let l = _mm256_loadu_si256(l.at.add(k * l.step).cast());
                                let mut h = _mm256_loadu_si256(h.at.add(k * h.step).cast());
                                if SIGNS {
                                    h = _mm256_xor_si256(_mm256_and_si256(h, signs[n].0), signs[n].1);
                                }
                                [
                                    _mm256_castsi256_pd(_mm256_unpacklo_epi32(l, h)),
                                    _mm256_castsi256_pd(_mm256_unpackhi_epi32(l, h)),
                                ]
                            };
                            let (x, y) = (read(a, 0), read(b, 1));
                            let z = if $sources == 3 { read(c, 2) } else { x };
                            let one = |$a: __m256d, $b: __m256d, $c: __m256d| $wide;
                            let r = [one(x[0], y[0], z[0]), one(x[1], y[1], z[1])];
                            let nan = |r, s| _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_UNORD_Q>(r, s)) as u64;
                            if nan(r[0], r[1]) != 0 {
                                let (p, q) = (nan(r[0], r[0]), nan(r[1], r[1]));
                                let lanes = p & 3 | (q & 3) << 2 | (p & 12) << 2 | (q & 12) << 4;
                                if lanes & exec >> (8 * k) != 0 {
                                    return again(wave, inst, 8 * k);
                                }
                            }
                            let (p, q) = (_mm256_castpd_ps(r[0]), _mm256_castpd_ps(r[1]));
                            let l = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(p, q));
                            let h = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(p, q));
                            let (low, high) = (low.add(k), high.add(k));
                            if FULL {
                                _mm256_storeu_si256(low, l);
                                _mm256_storeu_si256(high, h);
                            } else {
                                let bits = _mm256_set1_epi32((exec >> (8 * k)) as i32);
                                let mask = _mm256_cmpeq_epi32(_mm256_and_si256(bits, bit), bit);
                                _mm256_storeu_si256(low, _mm256_blendv_epi8(_mm256_loadu_si256(low), l, mask));
                                _mm256_storeu_si256(high, _mm256_blendv_epi8(_mm256_loadu_si256(high), h, mask));
                            }
                        }
                    }
                }

                /// As the others, in scalar arithmetic.
                unsafe fn baseline(wave: &mut Wave, inst: &Inst, _: &Fast) {
                    again(wave, inst, 0);
                }

                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2<const SIGNS: bool>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
                    let exec = wave.exec();
                    // SAFETY: the caller's promise.
                    unsafe {
                        if exec == u64::MAX {
                            groups::<SIGNS, true>(wave, inst, fast, exec);
                        } else if exec != 0 {
                            groups::<SIGNS, false>(wave, inst, fast, exec);
                        }
                    }
                }

                pub(super) fn loops(signed: bool) -> Loops {
                    let avx2 = if signed { avx2::<true> } else { avx2::<false> };
                    Loops {
                        baseline,
                        avx2,
                        avx512: avx2,
                    }
                }
            }
        };
    }

    operation!(add, 2, |a, b, _c| _mm256_add_pd(a, b));
    operation!(mul, 2, |a, b, _c| _mm256_mul_pd(a, b));
    operation!(fma, 3, |a, b, c| _mm256_fmadd_pd(a, b, c));

    pub(super) fn form(mnemonic: M, signed: bool) -> Option<Form> {
        let (loops, sources) = match mnemonic {
            M::v_add_f64 => (add::loops(signed), 2),
            M::v_mul_f64 => (mul::loops(signed), 2),
            M::v_fma_f64 | M::v_fmac_f64 => (fma::loops(signed), 3),
            _ => return None,
        };
        Some(Form {
            loops,
            modes: F64_MODE,
            dst: 2,
            src: if sources == 3 { [2; 3] } else { [2, 2, 0] },
        })
    }
}
