//! The common operations on the 64 lanes of a wave at once.
//!
//! Each takes two formulations: `host`, in host arithmetic, for round to nearest even, and `soft`, from [`super::soft`],
//! for everything else. A lane whose host result is NaN is done again in `soft`, because which NaN comes out is the
//! hardware's rule and not the host's. Lanes outside `active` hold unspecified values.

use super::{
    convert::{f16_from_f32_nearest, f32_from_f16},
    features::Level,
    format::{F16, F32, F64, Format},
    mode::Env,
    soft,
};
use crate::wave::{V32, V64};

/// `f` of every lane.
#[inline(always)]
pub fn map1<A: Copy, R: Copy + Default>(a: &[A; 64], f: impl Fn(A) -> R) -> [R; 64] {
    let mut out = [R::default(); 64];
    for lane in 0..64 {
        out[lane] = f(a[lane]);
    }
    out
}

/// `f` of every lane of two operands.
#[inline(always)]
pub fn map2<A: Copy, B: Copy, R: Copy + Default>(a: &[A; 64], b: &[B; 64], f: impl Fn(A, B) -> R) -> [R; 64] {
    let mut out = [R::default(); 64];
    for lane in 0..64 {
        out[lane] = f(a[lane], b[lane]);
    }
    out
}

/// `f` of every lane of three operands.
#[inline(always)]
pub fn map3<A: Copy, B: Copy, C: Copy, R: Copy + Default>(
    a: &[A; 64],
    b: &[B; 64],
    c: &[C; 64],
    f: impl Fn(A, B, C) -> R,
) -> [R; 64] {
    let mut out = [R::default(); 64];
    for lane in 0..64 {
        out[lane] = f(a[lane], b[lane], c[lane]);
    }
    out
}

/// `f` of the lane numbers in `mask`; other lanes are zero. For operations too dear to waste on inactive lanes.
#[inline(always)]
pub fn each<R: Copy + Default>(mask: u64, f: impl Fn(usize) -> R) -> [R; 64] {
    let mut out = [R::default(); 64];
    let mut rest = mask;
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        out[lane] = f(lane);
        rest &= rest - 1;
    }
    out
}

/// Bit n is set where lane n is not zero.
#[inline]
pub fn mask(lanes: &[u8; 64]) -> u64 {
    let mut out = 0;
    for (i, chunk) in lanes.chunks_exact(8).enumerate() {
        // Each byte is 0 or 1; the product gathers the eight of them in the top byte, lane 0 lowest.
        let bytes = u64::from_le_bytes([
            chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7],
        ]);
        out |= (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    out
}

/// The lanes for which `f` holds.
#[inline(always)]
pub fn mask2<A: Copy, B: Copy>(a: &[A; 64], b: &[B; 64], f: impl Fn(A, B) -> bool) -> u64 {
    mask(&map2(a, b, |x, y| u8::from(f(x, y))))
}

#[inline(always)]
fn flush32(x: u32) -> u32 {
    if x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x }
}

#[inline(always)]
fn flush64(x: u64) -> u64 {
    if x & F64::INF == 0 { x & F64::SIGN } else { x }
}

#[inline(always)]
fn flush16(x: u32) -> u32 {
    if x & 0x7c00 == 0 { x & 0x8000 } else { x }
}

/// The lanes of `active` whose f32 is NaN.
#[inline]
fn nans32(x: &V32, active: u64) -> u64 {
    let mut any = 0;
    for v in x {
        any |= u32::from(v & 0x7fff_ffff > 0x7f80_0000);
    }
    if any == 0 {
        0
    } else {
        mask(&map1(x, |v| u8::from(v & 0x7fff_ffff > 0x7f80_0000))) & active
    }
}

/// The lanes of `active` whose f64 is NaN.
#[inline]
fn nans64(x: &V64, active: u64) -> u64 {
    let mut any = false;
    for v in x {
        any |= v & !F64::SIGN > F64::INF;
    }
    if any {
        mask(&map1(x, |v| u8::from(v & !F64::SIGN > F64::INF))) & active
    } else {
        0
    }
}

/// The lanes of `active` whose f16 is NaN.
#[inline]
fn nans16(x: &V32, active: u64) -> u64 {
    let mut any = 0;
    for v in x {
        any |= u32::from(v & 0x7fff > 0x7c00);
    }
    if any == 0 {
        0
    } else {
        mask(&map1(x, |v| u8::from(v & 0x7fff > 0x7c00))) & active
    }
}

#[inline(always)]
fn redo<T: Copy>(out: &mut [T; 64], mut lanes: u64, f: impl Fn(usize) -> T) {
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        out[lane] = f(lane);
        lanes &= lanes - 1;
    }
}

/// An f32 operation of two operands.
#[inline(always)]
pub fn f32_2(
    a: &V32,
    b: &V32,
    env: &Env,
    active: u64,
    host: impl Fn(f32, f32) -> f32,
    soft: impl Fn(u64, u64, &Env) -> u64,
) -> V32 {
    let slow = |l: usize| soft(a[l].into(), b[l].into(), env) as u32;
    if !env.host_rounding() {
        return each(active, slow);
    }
    let f = |x: u32, y: u32| host(f32::from_bits(x), f32::from_bits(y)).to_bits();
    let mut out = match (env.flush_in, env.flush_out) {
        (false, false) => map2(a, b, f),
        (true, true) => map2(a, b, |x, y| flush32(f(flush32(x), flush32(y)))),
        _ => return each(active, slow),
    };
    let nans = nans32(&out, active);
    redo(&mut out, nans, slow);
    out
}

/// An f64 operation of two operands.
#[inline(always)]
pub fn f64_2(
    a: &V64,
    b: &V64,
    env: &Env,
    active: u64,
    host: impl Fn(f64, f64) -> f64,
    soft: impl Fn(u64, u64, &Env) -> u64,
) -> V64 {
    let slow = |l: usize| soft(a[l], b[l], env);
    if !env.host_rounding() {
        return each(active, slow);
    }
    let f = |x: u64, y: u64| host(f64::from_bits(x), f64::from_bits(y)).to_bits();
    let mut out = match (env.flush_in, env.flush_out) {
        (false, false) => map2(a, b, f),
        (true, true) => map2(a, b, |x, y| flush64(f(flush64(x), flush64(y)))),
        _ => return each(active, slow),
    };
    let nans = nans64(&out, active);
    redo(&mut out, nans, slow);
    out
}

/// An f16 operation of two operands, in the low halves. `host` works in f32: for + - * its 24 bits are more than twice
/// f16's 11 plus one, so rounding the f32 result to f16 rounds the exact one.
#[inline(always)]
pub fn f16_2(
    a: &V32,
    b: &V32,
    env: &Env,
    active: u64,
    host: impl Fn(f32, f32) -> f32,
    soft: impl Fn(u64, u64, &Env) -> u64,
) -> V32 {
    let slow = |l: usize| soft((a[l] & 0xffff).into(), (b[l] & 0xffff).into(), env) as u32;
    if !env.host_rounding() || env.fp16_ovfl || env.flush_in != env.flush_out {
        return each(active, slow);
    }
    let wide = |x: u32| f32::from_bits(f32_from_f16(if env.flush_in { flush16(x) } else { x } as u16));
    let mut out = vectorised(|| {
        map2(a, b, |x, y| {
            let r = u32::from(f16_from_f32_nearest(host(wide(x), wide(y)).to_bits()));
            if env.flush_out { flush16(r) } else { r }
        })
    });
    let nans = nans16(&out, active);
    redo(&mut out, nans, slow);
    out
}

/// `a * b + c` in f32, rounded once.
pub fn fma_f32(a: &V32, b: &V32, c: &V32, env: &Env, active: u64) -> V32 {
    let slow = |l: usize| soft::fma::<F32>(a[l].into(), b[l].into(), c[l].into(), env) as u32;
    if !env.host_rounding() || env.flush_in != env.flush_out {
        return each(active, slow);
    }
    let mut out = if env.flush_in {
        let (a, b, c) = (map1(a, flush32), map1(b, flush32), map1(c, flush32));
        map1(&host_fma_f32(&a, &b, &c), flush32)
    } else {
        host_fma_f32(a, b, c)
    };
    let nans = nans32(&out, active);
    redo(&mut out, nans, slow);
    out
}

/// `a * b + c` in f64, rounded once.
pub fn fma_f64(a: &V64, b: &V64, c: &V64, env: &Env, active: u64) -> V64 {
    let slow = |l: usize| soft::fma::<F64>(a[l], b[l], c[l], env);
    if !env.host_rounding() || env.flush_in != env.flush_out {
        return each(active, slow);
    }
    let mut out = if env.flush_in {
        let (a, b, c) = (map1(a, flush64), map1(b, flush64), map1(c, flush64));
        map1(&host_fma_f64(&a, &b, &c), flush64)
    } else {
        host_fma_f64(a, b, c)
    };
    let nans = nans64(&out, active);
    redo(&mut out, nans, slow);
    out
}

/// `a * b + c` in f16, rounded once.
///
/// The product is exact in f32. The sum is rounded to odd there: what it loses (known exactly, by Knuth's two-sum) moves it
/// to the neighbour nearer to zero if it was rounded away, and sets its last bit. Rounding that to f16's eleven bits rounds
/// the exact sum.
pub fn fma_f16(a: &V32, b: &V32, c: &V32, env: &Env, active: u64) -> V32 {
    let low = |x: u32| u64::from(x & 0xffff);
    let slow = |l: usize| soft::fma::<F16>(low(a[l]), low(b[l]), low(c[l]), env) as u32;
    if !env.host_rounding() || env.fp16_ovfl || env.flush_in != env.flush_out {
        return each(active, slow);
    }
    let wide = |x: u32| f32::from_bits(f32_from_f16(if env.flush_in { flush16(x) } else { x } as u16));
    let mut out = vectorised(|| {
        map3(a, b, c, |x, y, z| {
            let (product, addend) = (wide(x) * wide(y), wide(z));
            let sum = product + addend;
            let part = sum - product;
            let lost = (product - (sum - part)) + (addend - part);
            let inexact = u32::from(lost.abs() > 0.0); // false for the NaN that infinities leave
            let away = (lost.to_bits() ^ sum.to_bits()) >> 31 & inexact;
            let odd = (sum.to_bits() - away) | inexact;
            let r = u32::from(f16_from_f32_nearest(odd));
            if env.flush_out { flush16(r) } else { r }
        })
    });
    let nans = nans16(&out, active);
    redo(&mut out, nans, slow);
    out
}

/// `a * b + c` in f32 with the product rounded first and denormals flushed throughout.
pub fn mad_f32(a: &V32, b: &V32, c: &V32, env: &Env, active: u64) -> V32 {
    let env = &env.flushing();
    let slow = |l: usize| soft::mad::<F32>(a[l].into(), b[l].into(), c[l].into(), env) as u32;
    if !env.host_rounding() {
        return each(active, slow);
    }
    let f = f32::from_bits;
    let mut out = map3(a, b, c, |x, y, z| {
        let product = flush32((f(flush32(x)) * f(flush32(y))).to_bits());
        flush32((f(product) + f(flush32(z))).to_bits())
    });
    let nans = nans32(&out, active);
    redo(&mut out, nans, slow);
    out
}

fn host_fma_f32(a: &V32, b: &V32, c: &V32) -> V32 {
    let fused = |x, y, z| {
        f32::from_bits(x)
            .mul_add(f32::from_bits(y), f32::from_bits(z))
            .to_bits()
    };
    vectorised(|| map3(a, b, c, fused))
}

fn host_fma_f64(a: &V64, b: &V64, c: &V64) -> V64 {
    let fused = |x, y, z| {
        f64::from_bits(x)
            .mul_add(f64::from_bits(y), f64::from_bits(z))
            .to_bits()
    };
    vectorised(|| map3(a, b, c, fused))
}

/// Runs a loop compiled for processors with AVX2 and fused multiply-add where this one has them. `f` is inlined into code
/// of those features, so a fused step becomes one instruction per eight lanes instead of a call.
#[inline(always)]
pub fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if Level::of_processor() >= Level::Avx2 {
        #[target_feature(enable = "fma,avx2")]
        fn featured<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        // SAFETY: the processor has the features the function is compiled for.
        return unsafe { featured(f) };
    }
    f()
}

/// An integer that orders f32 values, minus zero below plus zero.
#[inline(always)]
pub(crate) fn total32(x: u32) -> i32 {
    (x ^ ((x as i32 >> 31) as u32 >> 1)) as i32
}

#[inline(always)]
fn total64(x: u64) -> i64 {
    (x ^ ((x as i64 >> 63) as u64 >> 1)) as i64
}

/// Minimum (`want_less`) or maximum in f32.
#[inline(always)]
pub fn extremum_f32(a: &V32, b: &V32, env: &Env, active: u64, want_less: bool) -> V32 {
    let slow = |l: usize| {
        let f = if want_less {
            super::compare::min::<F32>
        } else {
            super::compare::max::<F32>
        };
        f(a[l].into(), b[l].into(), env) as u32
    };
    if env.flush_in != env.flush_out || (nans32(a, active) | nans32(b, active)) != 0 {
        return each(active, slow);
    }
    let pick = |x, y| if (total32(x) < total32(y)) == want_less { x } else { y };
    if env.flush_in {
        map2(a, b, |x, y| pick(flush32(x), flush32(y)))
    } else {
        map2(a, b, pick)
    }
}

/// Minimum (`want_less`) or maximum in f64.
#[inline(always)]
pub fn extremum_f64(a: &V64, b: &V64, env: &Env, active: u64, want_less: bool) -> V64 {
    let slow = |l: usize| {
        let f = if want_less {
            super::compare::min::<F64>
        } else {
            super::compare::max::<F64>
        };
        f(a[l], b[l], env)
    };
    if env.flush_in != env.flush_out || (nans64(a, active) | nans64(b, active)) != 0 {
        return each(active, slow);
    }
    let pick = |x, y| if (total64(x) < total64(y)) == want_less { x } else { y };
    if env.flush_in {
        map2(a, b, |x, y| pick(flush64(x), flush64(y)))
    } else {
        map2(a, b, pick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::{compare, features::testing::at_every_level, testing::Lcg};
    use crate::wave::Mode;

    fn draw32(rng: &mut Lcg) -> V32 {
        std::array::from_fn(|_| rng.f32())
    }

    fn draw64(rng: &mut Lcg) -> V64 {
        std::array::from_fn(|_| rng.f64())
    }

    fn draw16(rng: &mut Lcg) -> V32 {
        std::array::from_fn(|_| rng.f16().into())
    }

    /// Every rounding direction and denormal setting, IEEE on and off.
    fn modes() -> impl Iterator<Item = Mode> {
        (0..512).map(|i| Mode((i & 0xff) | if i & 0x100 != 0 { 0x200 } else { 0 }))
    }

    #[test]
    fn host_lanes_equal_soft_lanes_in_every_mode() {
        at_every_level("lanes", |_| host_lanes_equal_soft_lanes());
    }

    fn host_lanes_equal_soft_lanes() {
        let mut rng = Lcg::new(71);
        for mode in modes().step_by(3) {
            let (env, e64) = (&mode.env_f32(), &mode.env_f64());
            for _ in 0..3 {
                let (a, b, c) = (draw32(&mut rng), draw32(&mut rng), draw32(&mut rng));
                let w = |x: u32| u64::from(x);
                let add = f32_2(&a, &b, env, !0, |x, y| x + y, soft::add::<F32>);
                let mul = f32_2(&a, &b, env, !0, |x, y| x * y, soft::mul::<F32>);
                let fma = fma_f32(&a, &b, &c, env, !0);
                let mad = mad_f32(&a, &b, &c, env, !0);
                let min = extremum_f32(&a, &b, env, !0, true);
                for l in 0..64 {
                    let (x, y, z) = (w(a[l]), w(b[l]), w(c[l]));
                    assert_eq!(w(add[l]), soft::add::<F32>(x, y, env));
                    assert_eq!(w(mul[l]), soft::mul::<F32>(x, y, env));
                    assert_eq!(w(fma[l]), soft::fma::<F32>(x, y, z, env));
                    assert_eq!(w(mad[l]), soft::mad::<F32>(x, y, z, &env.flushing()));
                    assert_eq!(w(min[l]), compare::min::<F32>(x, y, env), "{x:x} {y:x}");
                }
                let (a, b, c) = (draw64(&mut rng), draw64(&mut rng), draw64(&mut rng));
                let add = f64_2(&a, &b, e64, !0, |x, y| x + y, soft::add::<F64>);
                let fma = fma_f64(&a, &b, &c, e64, !0);
                let max = extremum_f64(&a, &b, e64, !0, false);
                for l in 0..64 {
                    assert_eq!(add[l], soft::add::<F64>(a[l], b[l], e64));
                    assert_eq!(fma[l], soft::fma::<F64>(a[l], b[l], c[l], e64));
                    assert_eq!(max[l], compare::max::<F64>(a[l], b[l], e64));
                }
            }
        }
    }

    #[test]
    fn f16_lanes_round_once() {
        at_every_level("lanes of f16", |_| f16_lanes());
    }

    fn f16_lanes() {
        let mut rng = Lcg::new(72);
        for mode in modes().step_by(5) {
            let env = &mode.env_f64();
            for _ in 0..20 {
                let (a, b, c) = (draw16(&mut rng), draw16(&mut rng), draw16(&mut rng));
                let add = f16_2(&a, &b, env, !0, |x, y| x + y, soft::add::<F16>);
                let mul = f16_2(&a, &b, env, !0, |x, y| x * y, soft::mul::<F16>);
                let fma = fma_f16(&a, &b, &c, env, !0);
                for l in 0..64 {
                    let (x, y, z) = (a[l].into(), b[l].into(), c[l].into());
                    assert_eq!(u64::from(add[l]), soft::add::<F16>(x, y, env));
                    assert_eq!(u64::from(mul[l]), soft::mul::<F16>(x, y, env));
                    assert_eq!(u64::from(fma[l]), soft::fma::<F16>(x, y, z, env), "{x:x} {y:x} {z:x}");
                }
            }
        }
    }

    #[test]
    fn masks_gather_lane_bits() {
        let mut rng = Lcg::new(73);
        for _ in 0..100 {
            let want = rng.u64();
            let lanes: [u8; 64] = std::array::from_fn(|l| (want >> l & 1) as u8);
            assert_eq!(mask(&lanes), want);
        }
        let a: [u32; 64] = std::array::from_fn(|l| l as u32);
        assert_eq!(mask2(&a, &[3; 64], |x, y| x < y), 7);
    }
}
