//! Execution of decoded instructions, one family per file.

pub mod dpp;
pub mod operands;
pub mod valu;

/// The instruction is known but not executed by this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported;
