//! What each device may do with memory whose users are named one by one: mappings (`cuMemSetAccess`) and pools
//! (`cuMemPoolSetAccess`).

use crate::abi::{CUmemAccess_flags, Error, Result};
use crate::device::Device;

/// Two bits a device, by ordinal: 0 none, 1 read, 3 read and write, which are CUDA's own numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rights(pub u64);

/// Devices that have room.
const DEVICES: i32 = 32;

impl Rights {
    /// Nobody but `device`, which may do everything.
    pub fn only(device: &Device) -> Self {
        Self::default().with(device.ordinal, 3)
    }

    /// What `ordinal` may do, as `CUmemAccess_flags`.
    pub fn of(self, ordinal: i32) -> u32 {
        match ordinal {
            0..DEVICES => (self.0 >> (2 * ordinal)) as u32 & 3,
            _ => 0,
        }
    }

    /// Replaces what `ordinal` may do.
    #[must_use]
    pub fn with(self, ordinal: i32, flags: u32) -> Self {
        match ordinal {
            0..DEVICES => Self(self.0 & !(3 << (2 * ordinal)) | u64::from(flags & 3) << (2 * ordinal)),
            _ => self,
        }
    }

    /// The devices that may do something.
    pub fn users(self) -> impl Iterator<Item = i32> {
        (0..DEVICES).filter(move |&ordinal| self.of(ordinal) != 0)
    }
}

/// CUDA's flags as the number that [`Rights`] keeps; [`Error::INVALID_VALUE`] for what is no right (write alone, recorded),
/// [`Error::NOT_SUPPORTED`] for a device beyond the 32nd.
pub fn checked(flags: CUmemAccess_flags, ordinal: i32) -> Result<u32> {
    if ordinal >= DEVICES {
        return Err(Error::NOT_SUPPORTED);
    }
    match flags.0 {
        0 | 1 | 3 => Ok(flags.0.cast_unsigned()),
        _ => Err(Error::INVALID_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_its_own_rights() {
        let rights = Rights::default().with(0, 3).with(31, 1).with(7, 3).with(7, 0);
        assert_eq!(rights.users().collect::<Vec<_>>(), [0, 31]);
        assert_eq!((rights.of(0), rights.of(31), rights.of(7), rights.of(1)), (3, 1, 0, 0));
        assert_eq!((rights.of(-1), rights.of(32), rights.of(64)), (0, 0, 0));
        assert_eq!(rights.with(99, 3), rights);
    }
}
