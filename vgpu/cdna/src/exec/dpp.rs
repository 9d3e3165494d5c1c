//! Data-parallel primitives: which lane each lane's first source comes from.

use std::sync::LazyLock;

use crate::isa::Dpp;

/// Source lane per lane, and the lanes whose source exists in the row or wave.
#[derive(Clone, Copy, Debug)]
pub struct Movement {
    /// Source lane of every lane; 0 where there is none.
    pub from: [u8; 64],
    /// Lanes that have a source.
    pub valid: u64,
}

/// The movement a control code asks for; `None` for a reserved code.
pub fn movement(ctrl: u16) -> Option<&'static Movement> {
    static ALL: LazyLock<Vec<Option<Movement>>> = LazyLock::new(|| (0..512).map(compute).collect());
    ALL[usize::from(ctrl & 511)].as_ref()
}

fn compute(ctrl: u16) -> Option<Movement> {
    let mut m = Movement {
        from: [0; 64],
        valid: 0,
    };
    for lane in 0..64i32 {
        let (row, at) = (lane & !15, lane & 15);
        let n = i32::from(ctrl & 15);
        let within_row = |i: i32| (0..16).contains(&i).then_some(row + i);
        let from = match ctrl {
            0x000..=0x0ff => Some((lane & !3) + (i32::from(ctrl) >> (2 * (lane & 3)) & 3)),
            0x101..=0x10f => within_row(at + n),
            0x111..=0x11f => within_row(at - n),
            0x121..=0x12f => Some(row + ((at - n) & 15)),
            0x130 => (lane < 63).then_some(lane + 1),
            0x134 => Some((lane + 1) & 63),
            0x138 => (lane > 0).then_some(lane - 1),
            0x13c => Some((lane - 1) & 63),
            0x140 => Some(row + 15 - at),
            0x141 => Some((lane & !7) + 7 - (lane & 7)),
            0x142 => (lane >= 16).then_some(row - 1),
            0x143 => (lane >= 32).then_some(31),
            0x150..=0x15f => Some(row + n),
            _ => return None,
        };
        if let Some(from) = from {
            m.from[lane as usize] = from as u8;
            m.valid |= 1 << lane;
        }
    }
    Some(m)
}

/// Whether a control code is defined.
pub fn is_defined(ctrl: u16) -> bool {
    matches!(ctrl, 0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x130 | 0x134 | 0x138 | 0x13c
        | 0x140..=0x143 | 0x150..=0x15f)
}

/// Lanes of the rows and banks that are written.
pub fn row_bank_mask(dpp: &Dpp) -> u64 {
    let mut row = 0u64;
    for bank in 0..4 {
        if dpp.bank_mask >> bank & 1 != 0 {
            row |= 0xf << (4 * bank);
        }
    }
    (0..4)
        .filter(|r| dpp.row_mask >> r & 1 != 0)
        .fold(0, |m, r| m | row << (16 * r))
}

/// Lanes whose source exists and is active.
pub fn valid_lanes(m: &Movement, exec: u64) -> u64 {
    let mut mask = 0;
    for (lane, from) in m.from.iter().enumerate() {
        mask |= (exec >> from & 1) << lane;
    }
    mask & m.valid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(ctrl: u16, lane: usize) -> Option<u8> {
        let m = movement(ctrl).unwrap();
        (m.valid >> lane & 1 != 0).then_some(m.from[lane])
    }

    #[test]
    fn row_movements_stay_in_the_row() {
        assert_eq!(from(0x101, 14), Some(15));
        assert_eq!(from(0x101, 15), None);
        assert_eq!(from(0x111, 16), None);
        assert_eq!(from(0x111, 17), Some(16));
        assert_eq!(from(0x121, 16), Some(31));
        assert_eq!(from(0x140, 16), Some(31));
        assert_eq!(from(0x141, 8), Some(15));
        assert_eq!(from(0x153, 40), Some(35));
        assert_eq!(from(0x1b, 4), Some(7), "quad_perm:[3,2,1,0]");
    }

    #[test]
    fn broadcasts_feed_the_following_rows() {
        assert_eq!(from(0x142, 15), None);
        assert_eq!(from(0x142, 16), Some(15));
        assert_eq!(from(0x142, 63), Some(47));
        assert_eq!(from(0x143, 31), None);
        assert_eq!(from(0x143, 32), Some(31));
        assert_eq!(from(0x143, 63), Some(31));
    }

    #[test]
    fn every_defined_code_has_a_movement() {
        for ctrl in 0..512 {
            assert_eq!(movement(ctrl).is_some(), is_defined(ctrl), "{ctrl:#x}");
        }
    }
}
