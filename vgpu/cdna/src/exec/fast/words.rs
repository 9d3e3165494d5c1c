//! 32-bit results of 32-bit sources.

use super::{ANY_MODE, F32_MODE, Fast, Form, Loops, M, Modes, Same, Walk, again, gather, loops, put, select};
use crate::{
    alu::{integer as int, lanes::total32},
    isa::Inst,
    wave::Wave,
};

trait Words {
    /// The result, from up to three sources.
    fn result(a: u32, b: u32, c: u32) -> u32;

    /// The lane has to be done again, by the definition.
    #[inline(always)]
    fn special(_: u32, _: u32, _: u32) -> bool {
        false
    }
    /// Whether any lane may be.
    const SPECIAL: bool = false;
}

#[inline(always)]
fn nan(x: u32) -> bool {
    x & 0x7fff_ffff > 0x7f80_0000
}

#[inline(always)]
unsafe fn words<O: Words, const SIGNS: bool, const N: usize>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
    let exec = wave.exec();
    // SAFETY: the caller's promise.
    unsafe {
        if exec == u64::MAX {
            groups::<O, SIGNS, N, true>(wave, inst, fast, exec);
        } else if exec != 0 {
            groups::<O, SIGNS, N, false>(wave, inst, fast, exec);
        }
    }
}

#[inline(always)]
unsafe fn groups<O: Words, const SIGNS: bool, const N: usize, const FULL: bool>(
    wave: &mut Wave,
    inst: &Inst,
    fast: &Fast,
    exec: u64,
) {
    let mut same = [Same::<N>::uninit(); 3];
    let [sa, sb, sc] = &mut same;
    // SAFETY: resolved registers are the wave's; the walks end before anything else touches the wave.
    unsafe {
        let a = Walk::new(wave, fast.src[0], false, sa);
        let b = Walk::new(wave, fast.src[1], false, sb);
        let c = Walk::new(wave, fast.src[2], false, sc);
        let to = wave.lanes_at_mut(usize::from(fast.dst));
        for k in 0..64 / N {
            let (mut x, mut y, mut z) = (a.get::<N>(k), b.get::<N>(k), c.get::<N>(k));
            if SIGNS {
                for i in 0..N {
                    x[i] = x[i] & fast.signs[0].0 ^ fast.signs[0].1;
                    y[i] = y[i] & fast.signs[1].0 ^ fast.signs[1].1;
                    z[i] = z[i] & fast.signs[2].0 ^ fast.signs[2].1;
                }
            }
            let mut out = [0; N];
            for i in 0..N {
                out[i] = O::result(x[i], y[i], z[i]);
            }
            if O::SPECIAL {
                let mut special = [0; N];
                for i in 0..N {
                    special[i] = if O::special(x[i], y[i], out[i]) { !0 } else { 0 };
                }
                if gather(&special) & exec >> (k * N) != 0 {
                    return again(wave, inst, k * N);
                }
            }
            put::<N, FULL>(to, k, exec, out);
        }
    }
}

/// `v_cndmask_b32`: lanes of the mask take source 1.
#[inline(always)]
#[allow(clippy::extra_unused_type_parameters, reason = "`loops!` gives one")]
unsafe fn choose<O, const SIGNS: bool, const N: usize>(wave: &mut Wave, inst: &Inst, fast: &Fast) {
    let exec = wave.exec();
    let condition = wave.scalar64(inst.src[2]);
    let mut same = [Same::<N>::uninit(); 2];
    let [sa, sb] = &mut same;
    // SAFETY: resolved registers are the wave's; the walks end before anything else touches the wave.
    unsafe {
        let a = Walk::new(wave, fast.src[0], false, sa);
        let b = Walk::new(wave, fast.src[1], false, sb);
        let to = wave.lanes_at_mut(usize::from(fast.dst));
        for k in 0..64 / N {
            let (mut x, mut y) = (a.get::<N>(k), b.get::<N>(k));
            if SIGNS {
                for i in 0..N {
                    x[i] = x[i] & fast.signs[0].0 ^ fast.signs[0].1;
                    y[i] = y[i] & fast.signs[1].0 ^ fast.signs[1].1;
                }
            }
            put::<N, false>(to, k, exec, select(condition >> (k * N), &y, &x));
        }
    }
}

macro_rules! table {
    (
        integers { $($int:ident = |$ia:pat_param, $ib:pat_param, $ic:pat_param| $ie:expr;)* }
        floats { $($float:ident $(, $also:ident)* = |$fa:ident, $fb:ident, $fc:pat_param| $fe:expr;)* }
        extrema { $($extremum:ident = |$ea:ident, $eb:ident| $ee:expr;)* }
    ) => {
        /// The lane loops of a mnemonic, and the modes they are good in.
        pub(super) fn form(mnemonic: M, signed: bool) -> Option<Form> {
            let (loops, modes) = choose_loops(mnemonic, signed)?;
            Some(Form { loops, modes, dst: 1, src: [1; 3] })
        }

        fn choose_loops(mnemonic: M, signed: bool) -> Option<(Loops, Modes)> {
            $({
                #[allow(non_camel_case_types)]
                struct $int;
                impl Words for $int {
                    #[inline(always)]
                    fn result($ia: u32, $ib: u32, $ic: u32) -> u32 { $ie }
                }
                if mnemonic == M::$int {
                    return (!signed).then(|| (loops!(words::<$int, false>), ANY_MODE));
                }
            })*
            $({
                #[allow(non_camel_case_types)]
                struct $float;
                impl Words for $float {
                    #[inline(always)]
                    fn result(a: u32, b: u32, c: u32) -> u32 {
                        let ($fa, $fb, $fc) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
                        f32::to_bits($fe)
                    }
                    #[inline(always)]
                    fn special(_: u32, _: u32, out: u32) -> bool { nan(out) }
                    const SPECIAL: bool = true;
                }
                if matches!(mnemonic, M::$float $(| M::$also)*) {
                    return Some((if signed { loops!(words::<$float, true>) } else { loops!(words::<$float, false>) }, F32_MODE));
                }
            })*
            $({
                #[allow(non_camel_case_types)]
                struct $extremum;
                impl Words for $extremum {
                    #[inline(always)]
                    fn result($ea: u32, $eb: u32, _: u32) -> u32 { $ee }
                    #[inline(always)]
                    fn special(a: u32, b: u32, _: u32) -> bool { nan(a) || nan(b) }
                    const SPECIAL: bool = true;
                }
                if mnemonic == M::$extremum {
                    return Some((if signed { loops!(words::<$extremum, true>) } else { loops!(words::<$extremum, false>) }, F32_MODE));
                }
            })*
            if mnemonic == M::v_cndmask_b32 {
                return Some((if signed { loops!(choose::<(), true>) } else { loops!(choose::<(), false>) }, ANY_MODE));
            }
            None
        }

        /// Every mnemonic that has lane loops here.
        #[cfg(test)]
        pub(super) const ALL: &[M] = &[$(M::$int,)* $(M::$float, $(M::$also,)*)* $(M::$extremum,)* M::v_cndmask_b32];
    };
}

table! {
    integers {
        v_mov_b32 = |a, _, _| a;
        v_accvgpr_read_b32 = |a, _, _| a;
        v_accvgpr_write_b32 = |a, _, _| a;
        v_accvgpr_mov_b32 = |a, _, _| a;
        v_not_b32 = |a, _, _| !a;
        v_add_u32 = |a, b, _| a.wrapping_add(b);
        v_sub_u32 = |a, b, _| a.wrapping_sub(b);
        v_subrev_u32 = |a, b, _| b.wrapping_sub(a);
        v_add_i32 = |a, b, _| a.wrapping_add(b);
        v_sub_i32 = |a, b, _| a.wrapping_sub(b);
        v_and_b32 = |a, b, _| a & b;
        v_or_b32 = |a, b, _| a | b;
        v_xor_b32 = |a, b, _| a ^ b;
        v_xnor_b32 = |a, b, _| !(a ^ b);
        v_lshlrev_b32 = |n, x, _| x.wrapping_shl(n);
        v_lshrrev_b32 = |n, x, _| x.wrapping_shr(n);
        v_ashrrev_i32 = |n, x, _| (x as i32).wrapping_shr(n) as u32;
        v_min_i32 = |a, b, _| (a as i32).min(b as i32) as u32;
        v_max_i32 = |a, b, _| (a as i32).max(b as i32) as u32;
        v_min_u32 = |a, b, _| a.min(b);
        v_max_u32 = |a, b, _| a.max(b);
        v_mul_lo_u32 = |a, b, _| a.wrapping_mul(b);
        v_mul_hi_u32 = |a, b, _| int::mul_hi_u32(a, b);
        v_mul_hi_i32 = |a, b, _| int::mul_hi_i32(a, b);
        v_mul_u32_u24 = |a, b, _| int::low24(a).wrapping_mul(int::low24(b));
        v_mul_i32_i24 = |a, b, _| int::sext24(a).wrapping_mul(int::sext24(b)) as u32;
        v_mad_u32_u24 = |a, b, c| int::low24(a).wrapping_mul(int::low24(b)).wrapping_add(c);
        v_mad_i32_i24 = |a, b, c| (int::sext24(a).wrapping_mul(int::sext24(b)) as u32).wrapping_add(c);
        v_add3_u32 = |a, b, c| a.wrapping_add(b).wrapping_add(c);
        v_add_lshl_u32 = |a, b, n| a.wrapping_add(b).wrapping_shl(n);
        v_lshl_add_u32 = |a, n, c| a.wrapping_shl(n).wrapping_add(c);
        v_lshl_or_b32 = |a, n, c| a.wrapping_shl(n) | c;
        v_and_or_b32 = |a, b, c| a & b | c;
        v_or3_b32 = |a, b, c| a | b | c;
        v_xad_u32 = |a, b, c| (a ^ b).wrapping_add(c);
        v_bfe_u32 = |a, b, c| int::bfe_u32(a, b, c);
        v_bfe_i32 = |a, b, c| int::bfe_i32(a, b, c);
        v_bfi_b32 = |a, b, c| int::bfi(a, b, c);
        v_alignbit_b32 = |a, b, c| int::alignbit(a, b, c);
    }
    floats {
        v_add_f32 = |a, b, _| a + b;
        v_sub_f32 = |a, b, _| a - b;
        v_subrev_f32 = |a, b, _| b - a;
        v_mul_f32 = |a, b, _| a * b;
        v_fma_f32, v_fmac_f32, v_fmamk_f32, v_fmaak_f32 = |a, b, c| a.mul_add(b, c);
    }
    extrema {
        v_min_f32 = |a, b| if total32(a) < total32(b) { a } else { b };
        v_max_f32 = |a, b| if total32(a) < total32(b) { b } else { a };
    }
}
