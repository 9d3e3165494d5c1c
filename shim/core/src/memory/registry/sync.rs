//! What the registry's threads meet in: the standard library's atomics and locks, or a model checker's.
//!
//! `tests/registry-model` compiles this folder under `cfg(loom)` and tries all interleavings and all values that the memory model
//! lets a load see. The model checker's types cannot be made in constants, so two macros stand where a constant is wanted.

#[cfg(loom)]
pub(super) use crate::checked::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, MutexGuard, fence};
#[cfg(not(loom))]
pub(super) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence},
};

/// A function without arguments that is `const` where its atomics can be.
macro_rules! constant {
    ($(#[$meta:meta])* $vis:vis fn $name:ident() -> $result:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $name() -> $result $body

        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $name() -> $result $body
    };
}

/// An array of `$count` times what `$element` makes, a constant where its atomics can be.
macro_rules! array {
    ($element:expr; $count:expr) => {{
        #[cfg(not(loom))]
        let array = [const { $element }; $count];
        #[cfg(loom)]
        let array: [_; $count] = core::array::from_fn(|_| $element);
        array
    }};
}

pub(super) use {array, constant};
