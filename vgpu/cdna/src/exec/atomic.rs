//! Read-modify-write operations on memory, as host atomics, so that other queues, processes and the host see them whole.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Trouble;

/// What an atomic does with the old value and its data. `data1` is used by compare-and-swap (the comparand), masked or
/// (the bits to set) and wrap (the addend).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomicOp {
    Swap,
    CmpSwap,
    Add,
    Sub,
    Rsub,
    Smin,
    Umin,
    Smax,
    Umax,
    And,
    Or,
    Xor,
    Inc,
    Dec,
    FAdd,
    FMin,
    FMax,
    FCmpSwap,
    PkAddF16,
    PkAddBf16,
    MaskedOr,
    Wrap,
    CondSwap,
}

/// Rounds an f32 to f16 bits, nearest even. The sum of two f16 in f32 rounded so is the correctly rounded sum, because
/// f32 has more than twice f16's precision plus two bits.
pub fn f16_from_f32(v: f32) -> u16 {
    let bits = v.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let abs = bits & 0x7fff_ffff;
    if abs > 0x7f80_0000 {
        return sign | 0x7e00 | (abs >> 13 & 0x1ff) as u16;
    }
    if abs >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    let round = |m: u32, shift: u32| -> u32 {
        let (q, rest, half) = (m >> shift, m & ((1 << shift) - 1), 1 << (shift - 1));
        q + u32::from(rest > half || rest == half && q & 1 != 0)
    };
    if abs >= 0x3880_0000 {
        // Rounding may carry into the exponent, up to infinity: the encoding is made for it.
        return sign | (round(abs - 0x3800_0000, 13) as u16);
    }
    let exponent = abs >> 23;
    if exponent < 102 {
        return sign;
    }
    let mantissa = abs & 0x7f_ffff | 0x80_0000;
    sign | round(mantissa, 126 - exponent) as u16
}

/// The exact value of f16 bits.
pub fn f32_from_f16(h: u16) -> f32 {
    let sign = u32::from(h & 0x8000) << 16;
    let (e, m) = (u32::from(h >> 10 & 31), u32::from(h & 0x3ff));
    let bits = match e {
        0 => return f32::from_bits(sign | (m as f32 * 2f32.powi(-24)).to_bits()),
        31 => 0x7f80_0000 | m << 13,
        _ => (e + 112) << 23 | m << 13,
    };
    f32::from_bits(sign | bits)
}

fn bf16_from_f32(v: f32) -> u16 {
    let bits = v.to_bits();
    if v.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

fn packed(old: u32, data: u32, add: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(add(old as u16, data as u16)) | u32::from(add((old >> 16) as u16, (data >> 16) as u16)) << 16
}

/// A sum. A NaN in memory goes before one of the data, both quieted; opposite infinities give AMD's NaN, whose sign the
/// host's need not have.
fn sum32(old: f32, data: f32) -> u32 {
    match (old.is_nan(), data.is_nan()) {
        (true, _) => old.to_bits() | 0x0040_0000,
        (false, true) => data.to_bits() | 0x0040_0000,
        _ if (old + data).is_nan() => 0x7fc0_0000,
        _ => (old + data).to_bits(),
    }
}

/// As [`sum32`].
fn sum64(old: f64, data: f64) -> u64 {
    match (old.is_nan(), data.is_nan()) {
        (true, _) => old.to_bits() | 1 << 51,
        (false, true) => data.to_bits() | 1 << 51,
        _ if (old + data).is_nan() => 0x7ff8 << 48,
        _ => (old + data).to_bits(),
    }
}

/// The new value where both widths follow the same rule; the arms after it are of one width.
macro_rules! apply {
    ($op:ident, $old:ident, $data:ident, $data1:ident: $signed:ty, $float:ty, $sum:ident; $($own:tt)*) => {{
        let f = <$float>::from_bits;
        let choose = |new: bool| if new { $data } else { $old };
        match $op {
            AtomicOp::Swap => $data,
            AtomicOp::CmpSwap => choose($old == $data1),
            AtomicOp::Add => $old.wrapping_add($data),
            AtomicOp::Sub => $old.wrapping_sub($data),
            AtomicOp::Rsub => $data.wrapping_sub($old),
            AtomicOp::Smin => choose(($data as $signed) < $old as $signed),
            AtomicOp::Umin => $old.min($data),
            AtomicOp::Smax => choose(($data as $signed) > $old as $signed),
            AtomicOp::Umax => $old.max($data),
            AtomicOp::And => $old & $data,
            AtomicOp::Or => $old | $data,
            AtomicOp::Xor => $old ^ $data,
            AtomicOp::Inc => {
                if $old >= $data {
                    0
                } else {
                    $old + 1
                }
            }
            AtomicOp::Dec => {
                if $old == 0 || $old > $data {
                    $data
                } else {
                    $old - 1
                }
            }
            AtomicOp::FAdd => $sum(f($old), f($data)),
            AtomicOp::FMin => choose(f($data) < f($old) || f($old).is_nan()),
            AtomicOp::FMax => choose(f($data) > f($old) || f($old).is_nan()),
            AtomicOp::FCmpSwap => choose(f($old) == f($data1)),
            AtomicOp::MaskedOr => $old & !$data | $data1,
            $($own)*
        }
    }};
}

/// The new 32-bit value.
#[inline]
pub fn apply32(op: AtomicOp, old: u32, data: u32, data1: u32) -> u32 {
    apply! {
        op, old, data, data1: i32, f32, sum32;
        AtomicOp::PkAddF16 => packed(old, data, |a, b| f16_from_f32(f32_from_f16(a) + f32_from_f16(b))),
        AtomicOp::PkAddBf16 => {
            let wide = |b: u16| f32::from_bits(u32::from(b) << 16);
            packed(old, data, |a, b| bf16_from_f32(wide(a) + wide(b)))
        }
        AtomicOp::Wrap => {
            if old >= data {
                old - data
            } else {
                old.wrapping_add(data1)
            }
        }
        AtomicOp::CondSwap => {
            if data >> 31 != 0 {
                data & 0x7fff_ffff
            } else {
                old
            }
        }
    }
}

/// The new 64-bit value.
#[inline]
pub fn apply64(op: AtomicOp, old: u64, data: u64, data1: u64) -> u64 {
    apply! {
        op, old, data, data1: i64, f64, sum64;
        // Two independent dwords.
        AtomicOp::CondSwap | AtomicOp::PkAddF16 | AtomicOp::PkAddBf16 | AtomicOp::Wrap => {
            let half = |s: u32| u64::from(apply32(op, (old >> s) as u32, (data >> s) as u32, (data1 >> s) as u32));
            half(0) | half(32) << 32
        }
    }
}

/// Performs an atomic on a dword and returns the old value.
///
/// # Errors
/// A misaligned address has no defined result.
///
/// # Safety
/// `ptr` must be valid for reads and writes of four bytes.
#[inline]
pub unsafe fn rmw32(ptr: *mut u8, op: AtomicOp, data: u32, data1: u32) -> Result<u32, Trouble> {
    if !(ptr as usize).is_multiple_of(4) {
        return Err("misaligned atomic".into());
    }
    // SAFETY: the caller's promise, and the alignment was checked.
    let cell = unsafe { AtomicU32::from_ptr(ptr.cast()) };
    let mut old = cell.load(Ordering::Acquire);
    loop {
        match cell.compare_exchange_weak(old, apply32(op, old, data, data1), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(old),
            Err(now) => old = now,
        }
    }
}

/// Performs an atomic on a 64-bit value and returns the old value.
///
/// # Errors
/// A misaligned address has no defined result.
///
/// # Safety
/// `ptr` must be valid for reads and writes of eight bytes.
#[inline]
pub unsafe fn rmw64(ptr: *mut u8, op: AtomicOp, data: u64, data1: u64) -> Result<u64, Trouble> {
    if !(ptr as usize).is_multiple_of(8) {
        return Err("misaligned atomic".into());
    }
    // SAFETY: the caller's promise, and the alignment was checked.
    let cell = unsafe { AtomicU64::from_ptr(ptr.cast()) };
    let mut old = cell.load(Ordering::Acquire);
    loop {
        match cell.compare_exchange_weak(old, apply64(op, old, data, data1), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(old),
            Err(now) => old = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_round_trips() {
        for h in 0..=u16::MAX {
            let f = f32_from_f16(h);
            if f.is_nan() {
                assert!(f32_from_f16(f16_from_f32(f)).is_nan());
            } else {
                assert_eq!(f16_from_f32(f), h, "{h:#06x}");
            }
        }
        assert_eq!(f16_from_f32(65520.0), 0x7c00, "ties to even overflow to infinity");
        assert_eq!(f16_from_f32(65519.0), 0x7bff);
        assert_eq!(
            f16_from_f32(2f32.powi(-25)),
            0,
            "half the smallest denormal ties to zero"
        );
        assert_eq!(f16_from_f32(2f32.powi(-25) * 1.5), 1);
    }

    #[test]
    fn wrapping_counters() {
        assert_eq!(apply32(AtomicOp::Inc, 5, 5, 0), 0);
        assert_eq!(apply32(AtomicOp::Inc, 4, 5, 0), 5);
        assert_eq!(apply32(AtomicOp::Dec, 0, 5, 0), 5);
        assert_eq!(apply32(AtomicOp::Dec, 6, 5, 0), 5);
        assert_eq!(apply32(AtomicOp::MaskedOr, 0xff, 0x0f, 0x100), 0x1f0);
        assert_eq!(
            apply32(AtomicOp::FMin, 1f32.to_bits(), f32::NAN.to_bits(), 0),
            1f32.to_bits()
        );
    }
}
