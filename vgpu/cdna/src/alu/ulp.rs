//! The error of approximate instructions: none by default, or, to find code that leans on that, anything the documented
//! bound allows.
//!
//! Divisions by a denominator whose significand is all ones then may be a unit off, as the compiler's own sequence is for
//! such a seed.
//!
//! Hostile results are a fixed function of operand and instruction, so that runs repeat.

use super::format::{F32, F64, Format};
use std::sync::atomic::{AtomicBool, Ordering};

static HOSTILE: AtomicBool = AtomicBool::new(false);

/// Turns hostile results on or off for the whole process; meant for start-up.
pub fn set_hostile(on: bool) {
    HOSTILE.store(on, Ordering::Relaxed);
}

/// Whether results of approximate instructions are to be moved.
#[inline]
pub fn hostile() -> bool {
    HOSTILE.load(Ordering::Relaxed)
}

/// An f32 result, or its neighbour on the other side of the exact value, which `estimate` gives far more precisely: both
/// are within one unit in the last place of it. Exact results, zeros, infinities, NaNs and denormals stay.
pub fn nudge_f32(result: u32, estimate: f64, operand: u32, salt: u32) -> u32 {
    let value = f64::from(f32::from_bits(result));
    let moved = if (estimate / value - 1.0).abs() < 1e-14 || hash(operand.into(), salt) & 1 == 0 {
        result
    } else if estimate.abs() > value.abs() {
        result.wrapping_add(1)
    } else {
        result.wrapping_sub(1)
    };
    let normal = |x: u32| (1..0xff).contains(&F32::exponent(x.into()));
    if normal(result) && normal(moved) { moved } else { result }
}

/// An f64 result of `v_rcp_f64`, `v_rsq_f64` or `v_sqrt_f64` moved by at most 2^28 units, half the guide's bound.
pub fn nudge_f64(result: u64, operand: u64, salt: u32) -> u64 {
    let moved = result.wrapping_add_signed((hash(operand, salt) % (1 << 29)) as i64 - (1 << 28));
    let normal = |x: u64| (1..0x7ff).contains(&F64::exponent(x));
    if normal(result) && normal(moved) { moved } else { result }
}

fn hash(operand: u64, salt: u32) -> u64 {
    let x = (operand ^ u64::from(salt) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nudges_stay_within_the_bound_and_go_every_way() {
        let mut seen = [0; 3];
        for i in 0..3000u32 {
            let x = 1.5f32.to_bits() + i;
            let exact = 1.0 / f64::from(f32::from_bits(x));
            let r = (exact as f32).to_bits();
            let moved = nudge_f32(r, exact, x, 7);
            seen[(moved.wrapping_sub(r).wrapping_add(1)) as usize] += 1;
            let unit = f64::from(f32::from_bits(r + 1)) - f64::from(f32::from_bits(r));
            assert!((f64::from(f32::from_bits(moved)) - exact).abs() < unit);
            let r = F64::ONE + u64::from(i);
            assert!(nudge_f64(r, u64::from(i), 7).abs_diff(r) <= 1 << 28);
        }
        assert!(seen.iter().all(|n| *n > 600), "{seen:?}");
        assert_eq!(nudge_f32(0, 0.0, 5, 1), 0);
        assert!((0..100).all(|i| nudge_f32(F32::INF as u32, f64::INFINITY, i, 1) == F32::INF as u32));
    }
}
