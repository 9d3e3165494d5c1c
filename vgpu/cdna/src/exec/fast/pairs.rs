//! 64-bit results, and sources, in register pairs: integers. For doubles see [`super::doubles`].

use super::{ANY_MODE, Form, M};
use super::{Fast, Same, Walk, gather, loops, put};
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
    let mut same = [[Same::<N>::uninit(); 2]; 3];
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
        /// The lane loops of a mnemonic, and the modes they are good in.
        pub(super) fn form(mnemonic: M, signed: bool) -> Option<Form> {
            if signed {
                return None;
            }
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

        /// Every mnemonic that has lane loops here.
        #[cfg(test)]
        pub(super) const ALL: &[M] = &[$(M::$name),*];
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
