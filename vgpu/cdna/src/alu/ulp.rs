//! The error of approximate instructions: none by default, or, to find code that leans on that, anything the documented
//! bound allows.
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

/// An f32 result moved by at most one unit in the last place. Zeros, infinities, NaNs and what would become one stay.
pub fn nudge_f32(result: u32, operand: u32, salt: u32) -> u32 {
    let moved = result.wrapping_add_signed((hash(operand.into(), salt) % 3) as i32 - 1);
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
            let r = 0x3f80_0000 + i;
            seen[(nudge_f32(r, i, 7).wrapping_sub(r).wrapping_add(1)) as usize] += 1;
            let r = F64::ONE + u64::from(i);
            assert!(nudge_f64(r, u64::from(i), 7).abs_diff(r) <= 1 << 28);
        }
        assert!(seen.iter().all(|n| *n > 800), "{seen:?}");
        assert_eq!(nudge_f32(0, 5, 1), 0);
        assert!((0..100).all(|i| nudge_f32(F32::INF as u32, i, 1) == F32::INF as u32));
    }
}
