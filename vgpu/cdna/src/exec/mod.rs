//! Execution of decoded instructions, one family per file.
//!
//! ```text
//! dispatch -> workgroup (waves in turn) -> wave::step -> scalar | smem | valu | lane | flat | ds | buffer
//!                                                                            \____ access (lanes to bytes) ____/
//! ```

pub mod access;
pub mod atomic;
pub mod buffer;
mod coalesced;
pub mod code;
pub mod dpp;
pub mod ds;
mod fast;
pub mod flat;
pub mod format;
pub mod lane;
pub mod memop;
pub mod operands;
pub mod scalar;
pub mod smem;
pub mod step;
pub mod valu;

use std::borrow::Cow;

use crate::memory::Fault;

/// The instruction is known but not executed by this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported;

/// Why an instruction did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A memory access faulted.
    Fault(Fault),
    /// The instruction is not executed by this crate, or asks for something that has no defined result.
    Illegal(Cow<'static, str>),
}

impl From<Unsupported> for Trouble {
    fn from(_: Unsupported) -> Self {
        Trouble::Illegal(Cow::Borrowed("not executed by this interpreter"))
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}

impl From<&'static str> for Trouble {
    fn from(text: &'static str) -> Self {
        Trouble::Illegal(Cow::Borrowed(text))
    }
}

/// What the wave does after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on at its PC.
    Next,
    /// Has ended.
    End,
    /// Waits for the other waves of its work-group.
    Barrier,
    /// Lets other waves run.
    Yield,
    /// Asked for the trap handler.
    Trap(u8),
    /// Threw away the instruction cache.
    FlushCode,
}
