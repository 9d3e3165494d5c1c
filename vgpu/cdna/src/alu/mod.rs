//! Arithmetic of the vector and scalar ALUs as pure functions of bit patterns.
//!
//! Nothing here knows waves, lanes or encodings: a function takes the bits of its operands, the floating-point
//! environment of MODE ([`Env`]) where the instruction honours it, and returns the bits of the result. Every result is
//! the same on every host: the host's libm is never asked, and where host arithmetic is used (round to nearest even, which
//! IEEE 754 fixes bit for bit) the NaN rules of the hardware are applied on top.
//!
//! | file | what |
//! |---|---|
//! | `mode` | the environment that MODE gives one format |
//! | `format` | binary16, binary32, binary64: fields, classes, NaN rules |
//! | `soft` | exact arithmetic with any rounding: add, mul, fma, mad, ldexp, frexp, fract, rounding to integers |
//! | `compare` | compares, classes, minimum, maximum, median |
//! | `convert` | conversions between formats and integers |
//! | `fp8` | the 8-bit FNUZ formats of gfx942 |
//! | `divide` | `v_div_scale`, `v_div_fmas`, `v_div_fixup` |
//! | `approx` | reciprocal, roots, exponential, logarithm, sine, cosine: correctly rounded |
//! | `ulp` | their error within the documented bound, on request |
//! | `preop` | `v_trig_preop_f64` |
//! | `cube` | cube map coordinates |
//! | `integer` | integers, bit fields, sums of absolute differences, byte permutes |
//! | `dot` | dot products of packed operands |
//! | `matrix` | small matrix products |
//! | `lanes` | the common operations on all 64 lanes at once, through host arithmetic where it is exact |
//! | `features` | what the processor has for that |

pub mod approx;
pub mod compare;
pub mod convert;
pub mod cube;
pub mod divide;
pub mod dot;
pub mod features;
mod fixed;
pub mod format;
pub mod fp8;
pub mod integer;
pub mod lanes;
pub mod matrix;
pub mod mode;
pub mod preop;
pub mod soft;
#[cfg(test)]
pub(crate) mod testing;
pub mod ulp;

pub use format::{F16, F32, F64, Format};
pub use mode::{Env, Round};
