//! Typed buffer accesses: conversion between memory formats and registers.

use super::{
    Trouble,
    access::{Address, Spaces},
    atomic::{f16_from_f32, f32_from_f16},
    buffer::Resource,
    memop::Half,
};
use crate::{
    isa::{Encoding, Inst, Operand},
    memory::Access,
    wave::Wave,
};

/// Component widths of a data format, first component first, in the order of memory bits.
fn widths(data_format: u8) -> Option<&'static [u32]> {
    Some(match data_format {
        1 => &[8],
        2 => &[16],
        3 => &[8, 8],
        4 => &[32],
        5 => &[16, 16],
        // Names of the packed formats begin with the highest bits.
        6 => &[11, 11, 10],
        7 => &[10, 11, 11],
        8 => &[2, 10, 10, 10],
        9 => &[10, 10, 10, 2],
        10 => &[8, 8, 8, 8],
        11 => &[32, 32],
        12 => &[16, 16, 16, 16],
        13 => &[32, 32, 32],
        14 => &[32, 32, 32, 32],
        _ => return None,
    })
}

/// Number formats.
mod number {
    pub const UNORM: u8 = 0;
    pub const SNORM: u8 = 1;
    pub const USCALED: u8 = 2;
    pub const SSCALED: u8 = 3;
    pub const UINT: u8 = 4;
    pub const SINT: u8 = 5;
    pub const FLOAT: u8 = 7;
}

fn is_integer(format: u8) -> bool {
    matches!(format, number::UINT | number::SINT)
}

fn sign_extend(raw: u32, bits: u32) -> i32 {
    ((raw << (32 - bits)) as i32) >> (32 - bits)
}

/// A memory component as register bits: f32, or a 32-bit integer.
fn widen(raw: u32, bits: u32, format: u8) -> Option<u32> {
    let top = |b: u32| ((1u64 << b) - 1) as f64;
    Some(match format {
        number::UNORM => ((f64::from(raw) / top(bits)) as f32).to_bits(),
        number::SNORM => ((f64::from(sign_extend(raw, bits)) / top(bits - 1)).max(-1.0) as f32).to_bits(),
        number::USCALED => (raw as f32).to_bits(),
        number::SSCALED => (sign_extend(raw, bits) as f32).to_bits(),
        number::UINT => raw,
        number::SINT => sign_extend(raw, bits) as u32,
        number::FLOAT => match bits {
            32 => raw,
            16 => f32_from_f16(raw as u16).to_bits(),
            // Unsigned, five exponent bits: f16 without sign and with fewer mantissa bits.
            10 | 11 => f32_from_f16((raw << (15 - bits)) as u16).to_bits(),
            _ => return None,
        },
        _ => return None,
    })
}

/// Register bits as a memory component.
fn narrow(value: u32, bits: u32, format: u8) -> Option<u32> {
    let f = f64::from(f32::from_bits(value));
    let f = if f.is_nan() { 0.0 } else { f };
    let top = ((1u64 << bits) - 1) as f64;
    let signed_top = ((1u64 << (bits - 1)) - 1) as f64;
    let mask = top as u32;
    Some(match format {
        number::UNORM => (f.clamp(0.0, 1.0) * top).round_ties_even() as u32,
        number::SNORM => ((f.clamp(-1.0, 1.0) * signed_top).round_ties_even() as i32 as u32) & mask,
        number::USCALED => f.clamp(0.0, top) as u32,
        number::SSCALED => (f.clamp(-signed_top - 1.0, signed_top) as i32 as u32) & mask,
        number::UINT => value.min(mask),
        number::SINT => (i64::from(value as i32).clamp(-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) as u32) & mask,
        number::FLOAT => match bits {
            32 => value,
            16 => u32::from(f16_from_f32(f32::from_bits(value))),
            10 | 11 => u32::from(f16_from_f32(f32::from_bits(value).max(0.0))) >> (15 - bits),
            _ => return None,
        },
        _ => return None,
    })
}

const NO_FORMAT: &str = "typed access with an invalid data or number format";

fn bytes_of(layout: &[u32]) -> usize {
    layout.iter().sum::<u32>() as usize / 8
}

/// `load_format`: reads one element per lane and writes `components` registers (halves with d16).
///
/// # Errors
/// Faults, and formats that do not exist.
#[allow(clippy::too_many_arguments)]
pub fn load(
    wave: &mut Wave,
    spaces: &mut Spaces<'_>,
    inst: &Inst,
    formats: (u8, u8),
    components: u8,
    d16: Half,
    resource: &Resource,
    at: impl Fn(usize, u32) -> Address,
) -> Result<(), Trouble> {
    let Operand::Vgpr(dst) = inst.dst else {
        return Err(super::Unsupported.into());
    };
    let (data_format, number_format) = formats;
    let layout = widths(data_format).ok_or(NO_FORMAT)?;
    let one = if is_integer(number_format) { 1 } else { 1f32.to_bits() };
    spaces.memory.refresh();
    let exec = wave.exec();
    for lane in (0..64).filter(|l| exec >> l & 1 != 0) {
        let mut bytes = [0u8; 16];
        let n = bytes_of(layout);
        let outside = at(lane, 0) == Address::Nowhere;
        for (i, byte) in bytes.iter_mut().enumerate().take(if outside { 0 } else { n }) {
            let mut b = [0];
            spaces.read_split(lane, at(lane, i as u32), &mut b)?;
            *byte = b[0];
        }
        let all = u128::from_le_bytes(bytes);
        let mut values = [0, 0, 0, one];
        let mut bit = 0;
        for (k, bits) in layout.iter().enumerate() {
            let raw = ((all >> bit) & ((1u128 << bits) - 1)) as u32;
            values[k] = widen(raw, *bits, number_format).ok_or(NO_FORMAT)?;
            bit += bits;
        }
        if outside {
            values = [0; 4];
        }
        // MUBUF takes the resource's destination selects: 0, 1, then x y z w from 4.
        let selected: [u32; 4] = std::array::from_fn(|k| {
            if inst.enc == Encoding::Mtbuf {
                return values[k];
            }
            match resource.word3 >> (3 * k) & 7 {
                1 => one,
                s @ 4..=7 => values[s as usize - 4],
                _ => 0,
            }
        });
        for (k, value) in selected.into_iter().enumerate().take(usize::from(components)) {
            if d16 == Half::Full {
                wave.v_mut(dst + k as u16)[lane] = value;
                continue;
            }
            let half = if is_integer(number_format) {
                value & 0xffff
            } else {
                u32::from(f16_from_f32(f32::from_bits(value)))
            };
            let high = d16 == Half::High || k % 2 == 1;
            let register = &mut wave.v_mut(dst + k as u16 / 2)[lane];
            *register = if high { *register & 0xffff | half << 16 } else { half };
        }
    }
    Ok(())
}

/// `store_format`: writes one element per lane from `components` registers (halves with d16).
///
/// # Errors
/// Faults, and formats that do not exist.
pub fn store(
    wave: &mut Wave,
    spaces: &mut Spaces<'_>,
    inst: &Inst,
    formats: (u8, u8),
    components: u8,
    d16: Half,
    at: impl Fn(usize, u32) -> Address,
) -> Result<(), Trouble> {
    let Operand::Vgpr(data) = inst.src[1] else {
        return Err(super::Unsupported.into());
    };
    let (data_format, number_format) = formats;
    let layout = widths(data_format).ok_or(NO_FORMAT)?;
    spaces.memory.refresh();
    let exec = wave.exec();
    for lane in (0..64).filter(|l| exec >> l & 1 != 0) {
        if at(lane, 0) == Address::Nowhere {
            continue;
        }
        let mut all = 0u128;
        let mut bit = 0;
        for (k, bits) in layout.iter().enumerate() {
            let value = if k >= usize::from(components) {
                0
            } else if d16 == Half::Full {
                wave.v(data + k as u16)[lane]
            } else {
                let high = d16 == Half::High || k % 2 == 1;
                let half = (wave.v(data + k as u16 / 2)[lane] >> if high { 16 } else { 0 }) as u16;
                match number_format {
                    number::UINT => u32::from(half),
                    number::SINT => half as i16 as u32,
                    _ => f32_from_f16(half).to_bits(),
                }
            };
            all |= u128::from(narrow(value, *bits, number_format).ok_or(NO_FORMAT)?) << bit;
            bit += bits;
        }
        for (i, byte) in all.to_le_bytes().iter().enumerate().take(bytes_of(layout)) {
            let address = at(lane, i as u32);
            spaces.locate(lane, address, 1, Access::Write)?;
            spaces.write_split(lane, address, &[*byte])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_round_trip() {
        for format in [number::UNORM, number::SNORM, number::UINT, number::SINT, number::FLOAT] {
            for raw in [0u32, 1, 5, 0x7f] {
                let bits = if format == number::FLOAT { 16 } else { 8 };
                let wide = widen(raw, bits, format).unwrap();
                assert_eq!(narrow(wide, bits, format), Some(raw), "format {format} raw {raw}");
            }
        }
        assert_eq!(widen(255, 8, number::UNORM), Some(1f32.to_bits()));
        assert_eq!(widen(0x80, 8, number::SNORM), Some((-1f32).to_bits()));
        assert_eq!(narrow((-1i32) as u32, 8, number::SINT), Some(0xff));
    }
}
