//! What a vector memory or LDS instruction does, read off its name once, when it is decoded.

use super::atomic::AtomicOp;
use crate::isa::Mnemonic;

/// Width and extension of a loaded or stored element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    U8,
    I8,
    U16,
    I16,
    /// A number of dwords.
    Dwords(u8),
}

impl Unit {
    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        match self {
            Unit::U8 | Unit::I8 => 1,
            Unit::U16 | Unit::I16 => 2,
            Unit::Dwords(n) => 4 * u32::from(n),
        }
    }
}

/// Which half of the register a 16-bit access uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Half {
    /// The whole register.
    Full,
    /// The low half of a load into 16 bits.
    Low,
    /// The high half.
    High,
}

/// What an instruction does to caches: see [`crate::coherence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Maintenance {
    WriteBackL2,
    InvalidateL1,
    InvalidateL2,
    /// gfx942's `buffer_inv`: which caches, its scope bits say.
    Invalidate,
}

/// One memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MemOp {
    Load {
        unit: Unit,
        half: Half,
    },
    Store {
        unit: Unit,
        half: Half,
    },
    Atomic {
        op: AtomicOp,
        wide: bool,
    },
    /// Load into LDS.
    LoadLds {
        unit: Unit,
    },
    /// Typed load or store through the resource's format: number of components, 16-bit registers.
    LoadFormat {
        components: u8,
        d16: Half,
    },
    StoreFormat {
        components: u8,
        d16: Half,
    },
    /// DS two-address forms: element dwords, offset scale in elements.
    Read2 {
        dwords: u8,
        scale: u16,
    },
    Write2 {
        dwords: u8,
        scale: u16,
    },
    Exchange2 {
        dwords: u8,
        scale: u16,
    },
    /// DS with addresses from M0 and the lane number.
    ReadAddTid,
    WriteAddTid,
    /// DS wave-wide counters.
    Append,
    Consume,
    /// DS lane exchange without memory.
    Swizzle,
    Permute,
    BackPermute,
    /// Cache maintenance.
    Maintain(Maintenance),
    /// Has no effect.
    Nothing,
}

impl MemOp {
    /// Dwords that a lane moves.
    pub fn dwords(self) -> u8 {
        match self {
            MemOp::Load { unit, .. } | MemOp::Store { unit, .. } | MemOp::LoadLds { unit } => {
                unit.bytes().div_ceil(4) as u8
            }
            MemOp::Atomic { wide, .. } => 1 + u8::from(wide),
            MemOp::LoadFormat { components, .. } | MemOp::StoreFormat { components, .. } => components,
            MemOp::Read2 { dwords, .. } | MemOp::Write2 { dwords, .. } | MemOp::Exchange2 { dwords, .. } => 2 * dwords,
            MemOp::Nothing | MemOp::Maintain(_) => 0,
            _ => 1,
        }
    }

    /// It reads memory.
    pub fn loads(self) -> bool {
        matches!(
            self,
            MemOp::Load { .. }
                | MemOp::LoadLds { .. }
                | MemOp::LoadFormat { .. }
                | MemOp::Read2 { .. }
                | MemOp::ReadAddTid
        )
    }

    /// It writes memory.
    pub fn stores(self) -> bool {
        matches!(
            self,
            MemOp::Store { .. } | MemOp::StoreFormat { .. } | MemOp::Write2 { .. } | MemOp::WriteAddTid
        )
    }

    /// It reads and writes memory in one step.
    pub fn is_atomic(self) -> bool {
        matches!(
            self,
            MemOp::Atomic { .. } | MemOp::Exchange2 { .. } | MemOp::Append | MemOp::Consume
        )
    }
}

fn unit(name: &str) -> Option<Unit> {
    Some(match name {
        "ubyte" | "u8" | "byte" | "b8" => Unit::U8,
        "sbyte" | "i8" => Unit::I8,
        "ushort" | "short" | "u16" | "b16" => Unit::U16,
        "sshort" | "i16" => Unit::I16,
        "dword" | "b32" => Unit::Dwords(1),
        "dwordx2" | "b64" => Unit::Dwords(2),
        "dwordx3" | "b96" => Unit::Dwords(3),
        "dwordx4" | "b128" => Unit::Dwords(4),
        _ => return None,
    })
}

fn unit_and_half(name: &str) -> Option<(Unit, Half)> {
    let (name, half) = if let Some(n) = name.strip_suffix("_d16_hi") {
        (n, Half::High)
    } else if let Some(n) = name.strip_suffix("_d16") {
        (n, Half::Low)
    } else {
        (name, Half::Full)
    };
    Some((unit(name)?, half))
}

/// The atomic that vector and scalar memory instructions call so.
pub(super) fn vector_atomic(name: &str) -> Option<MemOp> {
    let (base, wide) = name.strip_suffix("_x2").map_or((name, false), |n| (n, true));
    let (op, wide) = match base {
        "swap" => (AtomicOp::Swap, wide),
        "cmpswap" => (AtomicOp::CmpSwap, wide),
        "add" => (AtomicOp::Add, wide),
        "sub" => (AtomicOp::Sub, wide),
        "smin" => (AtomicOp::Smin, wide),
        "umin" => (AtomicOp::Umin, wide),
        "smax" => (AtomicOp::Smax, wide),
        "umax" => (AtomicOp::Umax, wide),
        "and" => (AtomicOp::And, wide),
        "or" => (AtomicOp::Or, wide),
        "xor" => (AtomicOp::Xor, wide),
        "inc" => (AtomicOp::Inc, wide),
        "dec" => (AtomicOp::Dec, wide),
        "add_f32" => (AtomicOp::FAdd, false),
        "add_f64" => (AtomicOp::FAdd, true),
        "min_f64" => (AtomicOp::FMin, true),
        "max_f64" => (AtomicOp::FMax, true),
        "pk_add_f16" => (AtomicOp::PkAddF16, false),
        "pk_add_bf16" => (AtomicOp::PkAddBf16, false),
        _ => return None,
    };
    Some(MemOp::Atomic { op, wide })
}

/// The operation of a FLAT, GLOBAL, SCRATCH, MUBUF or MTBUF instruction.
pub fn vector(mnemonic: Mnemonic) -> Option<MemOp> {
    let name = mnemonic.name();
    let rest = ["flat_", "global_", "scratch_", "buffer_", "tbuffer_"]
        .iter()
        .find_map(|p| name.strip_prefix(p))?;
    let maintenance = match rest {
        "wbl2" => Some(Maintenance::WriteBackL2),
        "invl2" => Some(Maintenance::InvalidateL2),
        "inv" => Some(Maintenance::Invalidate),
        "wbinvl1" | "wbinvl1_vol" => Some(Maintenance::InvalidateL1),
        _ => None,
    };
    if let Some(what) = maintenance {
        return Some(MemOp::Maintain(what));
    }
    if let Some(n) = rest.strip_prefix("atomic_") {
        return vector_atomic(n);
    }
    let format = |n: &str| -> Option<(u8, Half)> {
        let (n, d16) = if let Some(n) = n.strip_prefix("d16_hi_") {
            (n, Half::High)
        } else if let Some(n) = n.strip_prefix("d16_") {
            (n, Half::Low)
        } else {
            (n, Half::Full)
        };
        Some((["x", "xy", "xyz", "xyzw"].iter().position(|c| *c == n)? as u8 + 1, d16))
    };
    if let Some(n) = rest.strip_prefix("load_format_") {
        return format(n).map(|(components, d16)| MemOp::LoadFormat { components, d16 });
    }
    if let Some(n) = rest.strip_prefix("store_format_") {
        return format(n).map(|(components, d16)| MemOp::StoreFormat { components, d16 });
    }
    if let Some(n) = rest.strip_prefix("load_lds_") {
        return Some(MemOp::LoadLds { unit: unit(n)? });
    }
    if let Some(n) = rest.strip_prefix("load_") {
        return unit_and_half(n).map(|(unit, half)| MemOp::Load { unit, half });
    }
    if let Some(n) = rest.strip_prefix("store_") {
        return unit_and_half(n).map(|(unit, half)| MemOp::Store { unit, half });
    }
    None
}

fn ds_atomic(name: &str) -> Option<MemOp> {
    let mut parts: Vec<&str> = name.split('_').collect();
    let ty = parts.pop()?;
    if parts.last() == Some(&"rtn") {
        parts.pop();
    }
    let wide = ty.ends_with("64");
    let (float, signed) = (ty.starts_with('f'), ty.starts_with('i'));
    let op = match (parts.join("_").as_str(), float, signed) {
        ("add", false, _) => AtomicOp::Add,
        ("add", true, _) => AtomicOp::FAdd,
        ("sub", ..) => AtomicOp::Sub,
        ("rsub", ..) => AtomicOp::Rsub,
        ("inc", ..) => AtomicOp::Inc,
        ("dec", ..) => AtomicOp::Dec,
        ("min", true, _) => AtomicOp::FMin,
        ("max", true, _) => AtomicOp::FMax,
        ("min", false, true) => AtomicOp::Smin,
        ("max", false, true) => AtomicOp::Smax,
        ("min", false, false) => AtomicOp::Umin,
        ("max", false, false) => AtomicOp::Umax,
        ("and", ..) => AtomicOp::And,
        ("or", ..) => AtomicOp::Or,
        ("xor", ..) => AtomicOp::Xor,
        ("mskor", ..) => AtomicOp::MaskedOr,
        ("wrxchg", ..) => AtomicOp::Swap,
        ("cmpst", false, _) => AtomicOp::CmpSwap,
        ("cmpst", true, _) => AtomicOp::FCmpSwap,
        ("wrap", ..) => AtomicOp::Wrap,
        ("condxchg32", ..) => AtomicOp::CondSwap,
        ("pk_add", true, _) => AtomicOp::PkAddF16,
        ("pk_add", false, _) if ty == "bf16" => AtomicOp::PkAddBf16,
        _ => return None,
    };
    Some(MemOp::Atomic { op, wide })
}

/// The operation of a DS instruction; `None` for GWS and ordered count, which need resources that are not modelled.
pub fn ds(mnemonic: Mnemonic) -> Option<MemOp> {
    let name = mnemonic.name().strip_prefix("ds_")?;
    let two = |n: &str| -> Option<(u8, u16)> {
        let (scale, ty) = n
            .strip_prefix("st64_")
            .map_or((1, n.strip_prefix('_').unwrap_or(n)), |t| (64, t));
        match ty.trim_start_matches("rtn_") {
            "b32" => Some((1, scale)),
            "b64" => Some((2, scale)),
            _ => None,
        }
    };
    match name {
        "nop" => return Some(MemOp::Nothing),
        "swizzle_b32" => return Some(MemOp::Swizzle),
        "permute_b32" => return Some(MemOp::Permute),
        "bpermute_b32" => return Some(MemOp::BackPermute),
        "append" => return Some(MemOp::Append),
        "consume" => return Some(MemOp::Consume),
        "read_addtid_b32" => return Some(MemOp::ReadAddTid),
        "write_addtid_b32" => return Some(MemOp::WriteAddTid),
        _ => {}
    }
    if let Some(n) = name.strip_prefix("read2") {
        return two(n).map(|(dwords, scale)| MemOp::Read2 { dwords, scale });
    }
    if let Some(n) = name.strip_prefix("write2") {
        return two(n).map(|(dwords, scale)| MemOp::Write2 { dwords, scale });
    }
    if let Some(n) = name.strip_prefix("wrxchg2") {
        return two(n).map(|(dwords, scale)| MemOp::Exchange2 { dwords, scale });
    }
    if let Some(n) = name.strip_prefix("read_") {
        return unit_and_half(n).map(|(unit, half)| MemOp::Load { unit, half });
    }
    if let Some(n) = name.strip_prefix("write_") {
        return unit_and_half(n).map(|(unit, half)| MemOp::Store { unit, half });
    }
    ds_atomic(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Mnemonic as M;

    #[test]
    fn names_tell_the_operation() {
        assert_eq!(
            vector(M::global_load_short_d16_hi),
            Some(MemOp::Load {
                unit: Unit::U16,
                half: Half::High
            })
        );
        assert_eq!(
            vector(M::flat_atomic_umax_x2),
            Some(MemOp::Atomic {
                op: AtomicOp::Umax,
                wide: true
            })
        );
        assert_eq!(
            vector(M::buffer_load_format_d16_xyz),
            Some(MemOp::LoadFormat {
                components: 3,
                d16: Half::Low
            })
        );
        assert_eq!(
            vector(M::global_load_lds_sbyte),
            Some(MemOp::LoadLds { unit: Unit::I8 })
        );
        assert_eq!(ds(M::ds_read2st64_b64), Some(MemOp::Read2 { dwords: 2, scale: 64 }));
        assert_eq!(
            ds(M::ds_wrxchg2st64_rtn_b32),
            Some(MemOp::Exchange2 { dwords: 1, scale: 64 })
        );
        assert_eq!(
            ds(M::ds_max_rtn_i64),
            Some(MemOp::Atomic {
                op: AtomicOp::Smax,
                wide: true
            })
        );
        assert_eq!(
            ds(M::ds_pk_add_bf16),
            Some(MemOp::Atomic {
                op: AtomicOp::PkAddBf16,
                wide: false
            })
        );
        assert_eq!(ds(M::ds_gws_barrier), None);
    }
}
