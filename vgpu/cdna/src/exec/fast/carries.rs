//! Additions and subtractions with carry out, and with carry in. Carries are lane masks.

use super::{ANY_MODE, Fast, Form, M, Same, Walk, gather, loops, put, select};
use crate::{isa::Inst, wave::Wave};

trait Sum {
    /// The sum, and whether it went past 32 bits. `carry` is 0 or 1.
    fn sum(a: u32, b: u32, carry: u32) -> (u32, bool);
    /// Takes a carry in, from the mask that is source 2.
    const CARRY_IN: bool;
}

#[inline(always)]
unsafe fn carries<S: Sum, const N: usize>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
    let exec = wave.exec();
    let carry_in = if S::CARRY_IN { wave.scalar64(inst.src[2]) } else { 0 };
    let mut same = [Same::<N>::uninit(); 2];
    let [sa, sb] = &mut same;
    let mut carry_out = 0;
    // SAFETY: resolved registers are the wave's; the walks end before anything else touches the wave.
    unsafe {
        let a = Walk::new(wave, fast.src[0], false, sa);
        let b = Walk::new(wave, fast.src[1], false, sb);
        let to = wave.lanes_at_mut(usize::from(fast.dst));
        for k in 0..64 / N {
            let (x, y) = (a.get::<N>(k), b.get::<N>(k));
            let carry = if S::CARRY_IN {
                select(carry_in >> (k * N), &[1; N], &[0; N])
            } else {
                [0; N]
            };
            let (mut out, mut carries) = ([0; N], [0; N]);
            for i in 0..N {
                out[i] = S::sum(x[i], y[i], carry[i]).0;
            }
            for i in 0..N {
                carries[i] = if S::sum(x[i], y[i], carry[i]).1 { !0 } else { 0 };
            }
            carry_out |= gather(&carries) << (k * N);
            put::<N, false>(to, k, exec, out);
        }
    }
    wave.write_mask(inst.sdst, carry_out);
}

macro_rules! table {
    ($($name:ident: $carry_in:literal, |$a:ident, $b:ident, $c:pat_param| $e:expr;)*) => {
        pub(super) fn form(mnemonic: M, signed: bool) -> Option<Form> {
            $({
                #[allow(non_camel_case_types)]
                struct $name;
                impl Sum for $name {
                    #[inline(always)]
                    fn sum($a: u32, $b: u32, $c: u32) -> (u32, bool) { $e }
                    const CARRY_IN: bool = $carry_in;
                }
                if mnemonic == M::$name && !signed {
                    return Some(Form { loops: loops!(carries::<$name>), modes: ANY_MODE, dst: 1, src: [1; 3] });
                }
            })*
            None
        }

        /// Every mnemonic that has lane loops here.
        #[cfg(test)]
        pub(super) const ALL: &[M] = &[$(M::$name),*];
    };
}

#[inline(always)]
fn add(a: u32, b: u32, carry: u32) -> (u32, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(carry);
    (sum, first | second)
}

#[inline(always)]
fn subtract(a: u32, b: u32, borrow: u32) -> (u32, bool) {
    let (rest, first) = a.overflowing_sub(b);
    let (rest, second) = rest.overflowing_sub(borrow);
    (rest, first | second)
}

table! {
    v_add_co_u32: false, |a, b, _| a.overflowing_add(b);
    v_sub_co_u32: false, |a, b, _| a.overflowing_sub(b);
    v_subrev_co_u32: false, |a, b, _| b.overflowing_sub(a);
    v_addc_co_u32: true, |a, b, c| add(a, b, c);
    v_subb_co_u32: true, |a, b, c| subtract(a, b, c);
    v_subbrev_co_u32: true, |a, b, c| subtract(b, a, c);
}
