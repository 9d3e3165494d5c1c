//! Raw HSA types and the table of ROCr functions resolved at run time.
//!
//! Names are those of `hsa.h` and `hsa_ext_amd.h`. Nothing here is linked: [`Functions::load`] opens
//! `libhsa-runtime64.so.1`, so that a program starts, and gets CUDA's error, on a machine without ROCr.
#![allow(non_camel_case_types)]

pub mod constants;
pub mod functions;
pub mod status;
#[allow(missing_docs)]
pub mod types;
pub mod weak;

pub use constants::*;
pub use functions::{Functions, LoadError};
pub use status::*;
pub use types::*;
