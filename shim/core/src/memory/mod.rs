//! Allocator and pointer registry.

pub mod host;

use crate::abi::Result;
use crate::device::{Context, Device};

/// Frees everything that a context owns.
pub(crate) fn release_context(_context: &'static Context) {}

/// Maps all memory of `owner` to `reader`'s GPU.
pub(crate) fn grant(_owner: &'static Device, _reader: &'static Device) -> Result<()> {
    Ok(())
}
