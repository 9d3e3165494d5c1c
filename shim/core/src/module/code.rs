//! A module's PTX and what it contains: the part that no context owns.

use kernels_ptx_translate::protocol::{Entry, Global, ModuleInfo};

use super::translator::{Failure, client};
use crate::abi::Error;
use crate::config;

/// The PTX of a module and its table of contents.
#[derive(Debug)]
pub struct Code {
    /// The text, without a NUL at its end.
    pub ptx: Vec<u8>,
    /// Kernels and variables.
    pub info: ModuleInfo,
}

impl Code {
    /// Parses `ptx` (in the translator's process).
    ///
    /// # Errors
    /// INVALID_PTX and its kin, with the message; also for a target above `REGAUGE_HIGHEST_PTX`.
    pub fn new(ptx: Vec<u8>) -> Result<Self, Failure> {
        let info = client().inspect(&ptx)?;
        let code = Self { ptx, info };
        if code.target_version() > *config::HIGHEST_PTX.get() as i32 {
            return Err(Failure::new(
                Error::INVALID_PTX,
                "ptxas fatal   : SM version specified by .target is higher than default SM version assumed",
            ));
        }
        Ok(code)
    }

    /// A kernel by its PTX name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.info.entries.iter().find(|entry| entry.name == name)
    }

    /// A variable by its PTX name.
    pub fn global(&self, name: &str) -> Option<&Global> {
        self.info.globals.iter().find(|global| global.name == name)
    }

    /// The capability that the PTX names as its target, times 10 (`sm_80` is 80); 0 when it names none.
    pub fn target_version(&self) -> i32 {
        let digits = self
            .info
            .target
            .trim_start_matches("sm_")
            .trim_end_matches(|c: char| !c.is_ascii_digit());
        digits.parse().unwrap_or(0)
    }
}
