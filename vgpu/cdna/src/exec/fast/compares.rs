//! Compares: a bit per lane. `v_cmpx`, which changes EXEC, is left to the definition.

use super::{ANY_MODE, F32_MODE, Fast, Form, Loops, M, Modes, Same, Walk, gather, loops};
use crate::{isa::Inst, wave::Wave};

trait Relation {
    fn holds(a: u32, b: u32) -> bool;
}

#[inline(always)]
unsafe fn compare<R: Relation, const SIGNS: bool, const N: usize>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
    let mut same = [Same::<N>::uninit(); 2];
    let [sa, sb] = &mut same;
    let mut mask = 0;
    // SAFETY: resolved registers are the wave's; the walks end before anything else touches the wave.
    unsafe {
        let a = Walk::new(wave, fast.src[0], false, sa);
        let b = Walk::new(wave, fast.src[1], false, sb);
        for k in 0..64 / N {
            let (mut x, mut y) = (a.get::<N>(k), b.get::<N>(k));
            for i in 0..N {
                if SIGNS {
                    x[i] = x[i] & fast.signs[0].0 ^ fast.signs[0].1;
                    y[i] = y[i] & fast.signs[1].0 ^ fast.signs[1].1;
                }
                x[i] = if R::holds(x[i], y[i]) { !0 } else { 0 };
            }
            mask |= gather(&x) << (k * N);
        }
    }
    wave.write_mask(inst.dst, mask);
}

macro_rules! table {
    ($($name:ident: $as:expr, $modes:ident, |$a:ident, $b:ident| $e:expr;)*) => {
        pub(super) fn form(mnemonic: M, signed: bool) -> Option<Form> {
            let (loops, modes) = choose_loops(mnemonic, signed)?;
            Some(Form { loops, modes, dst: 0, src: [1; 3] })
        }

        fn choose_loops(mnemonic: M, signed: bool) -> Option<(Loops, Modes)> {
            $({
                #[allow(non_camel_case_types)]
                struct $name;
                impl Relation for $name {
                    #[inline(always)]
                    #[allow(clippy::double_comparisons, clippy::nonminimal_bool, clippy::neg_cmp_op_on_partial_ord)]
                    fn holds(a: u32, b: u32) -> bool {
                        let ($a, $b) = ($as(a), $as(b));
                        $e
                    }
                }
                if mnemonic == M::$name {
                    return Some((if signed { loops!(compare::<$name, true>) } else { loops!(compare::<$name, false>) }, $modes));
                }
            })*
            None
        }

        /// Every mnemonic that has lane loops here.
        #[cfg(test)]
        pub(super) const ALL: &[M] = &[$(M::$name),*];
    };
}

fn signed(x: u32) -> i32 {
    x as i32
}

fn plain(x: u32) -> u32 {
    x
}

table! {
    v_cmp_lt_i32: signed, ANY_MODE, |a, b| a < b;
    v_cmp_le_i32: signed, ANY_MODE, |a, b| a <= b;
    v_cmp_gt_i32: signed, ANY_MODE, |a, b| a > b;
    v_cmp_ge_i32: signed, ANY_MODE, |a, b| a >= b;
    v_cmp_eq_i32: signed, ANY_MODE, |a, b| a == b;
    v_cmp_ne_i32: signed, ANY_MODE, |a, b| a != b;
    v_cmp_lt_u32: plain, ANY_MODE, |a, b| a < b;
    v_cmp_le_u32: plain, ANY_MODE, |a, b| a <= b;
    v_cmp_gt_u32: plain, ANY_MODE, |a, b| a > b;
    v_cmp_ge_u32: plain, ANY_MODE, |a, b| a >= b;
    v_cmp_eq_u32: plain, ANY_MODE, |a, b| a == b;
    v_cmp_ne_u32: plain, ANY_MODE, |a, b| a != b;
    v_cmp_lt_f32: f32::from_bits, F32_MODE, |a, b| a < b;
    v_cmp_le_f32: f32::from_bits, F32_MODE, |a, b| a <= b;
    v_cmp_gt_f32: f32::from_bits, F32_MODE, |a, b| a > b;
    v_cmp_ge_f32: f32::from_bits, F32_MODE, |a, b| a >= b;
    v_cmp_eq_f32: f32::from_bits, F32_MODE, |a, b| a == b;
    v_cmp_lg_f32: f32::from_bits, F32_MODE, |a, b| a < b || a > b;
    v_cmp_nlt_f32: f32::from_bits, F32_MODE, |a, b| !(a < b);
    v_cmp_nle_f32: f32::from_bits, F32_MODE, |a, b| !(a <= b);
    v_cmp_ngt_f32: f32::from_bits, F32_MODE, |a, b| !(a > b);
    v_cmp_nge_f32: f32::from_bits, F32_MODE, |a, b| !(a >= b);
    v_cmp_neq_f32: f32::from_bits, F32_MODE, |a, b| a != b;
    v_cmp_o_f32: f32::from_bits, F32_MODE, |a, b| !a.is_nan() && !b.is_nan();
    v_cmp_u_f32: f32::from_bits, F32_MODE, |a, b| a.is_nan() || b.is_nan();
}
