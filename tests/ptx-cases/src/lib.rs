//! The recorded PTX cases: small kernels with inputs, and what an NVIDIA GPU made of them.
//!
//! ```text
//! case -> translator -> code object -> cdna::dispatch::run -> outputs -> verdict against the record
//! ```
//!
//! No ROCr takes part: the interpreter is given its memory directly, so a thousand cases take a minute or two.

pub mod case;
pub mod machine;
pub mod verdict;
