//! C types, constants and error codes of CUDA.
//!
//! Everything bears the manual's own name. Enumerations are newtypes over `int`, never Rust enums: a client may pass any
//! value, and an unknown one must be an error code, not undefined behaviour.

pub mod conv;
pub mod cuda11;
pub mod cuda13;
mod driver_enums;
mod driver_types;
mod error;
mod error_table;
mod graph_types;
mod handles;
mod layout;
mod layout11;
mod layout13;
pub mod nvml;
mod runtime_enums;
mod runtime_types;
mod texture_types;

pub use driver_enums::*;
pub use driver_types::*;
pub use error::{Error, Result};
pub use graph_types::*;
pub use handles::*;
pub use runtime_enums::*;
pub use runtime_types::*;
pub use texture_types::*;

/// A C structure for which all zeroes is a value.
///
/// # Safety
/// The implementor must be `repr(C)` and hold only integers, floats, pointers and arrays, structures or unions of them.
pub unsafe trait Plain: Copy {
    /// The value whose bytes, padding included, are all zero.
    fn zeroed() -> Self {
        // SAFETY: the trait's promise.
        unsafe { core::mem::zeroed() }
    }
}

/// Defines a C enumeration as a newtype with constants.
macro_rules! c_enum {
    ($(#[$meta:meta])* $name:ident { $($constant:ident = $value:expr,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
        #[repr(transparent)]
        pub struct $name(pub i32);

        impl $name {
            $(pub const $constant: Self = Self($value);)*
        }
    };
}
use c_enum;

/// Asserts size, alignment and offsets at compile time: `Type: size, align { field: offset, }`.
macro_rules! assert_layout {
    ($($name:ident: $size:literal, $align:literal { $($field:ident: $offset:literal,)* })*) => {
        $(const _: () = {
            assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
            assert!(align_of::<$name>() == $align, concat!("alignment of ", stringify!($name)));
            $(assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!("offset of ", stringify!($name), ".", stringify!($field))
            );)*
        };)*
    };
}
use assert_layout;
