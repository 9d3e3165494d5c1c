//! The registry's own files (`shim/core/src/memory/registry`), compiled with loom's atomics and lock, and models that run them:
//! see `tests/models.rs`.
//!
//! Under `cfg(loom)`, which `build.rs` sets for this crate alone, those files differ from what ships in two points: their atomics
//! are those of [`checked`], and a level of the table has four entries, of which the first of two may stand for both. So everything is
//! tried with three levels and 32 pages.

pub mod checked;

#[path = "../../../shim/core/src/memory/registry/mod.rs"]
pub mod registry;

/// What the registry needs of the crate that it is part of.
pub mod device {
    /// Stands for a context: the registry passes references on, and asks for the number of the device.
    #[derive(PartialEq, Eq, Debug)]
    pub struct Context(pub i32);

    impl Context {
        /// Its device's ordinal.
        pub fn ordinal(&self) -> i32 {
            self.0
        }
    }
}
