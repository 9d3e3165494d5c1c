//! C types, constants and error codes of CUDA.

mod error;

pub use error::{Error, Result};
