//! `libcudart.so.13`: exports only.
//!
//! Every export jumps through a private table in `libcuda.so.1`, which holds all code and all state: whichever of the
//! libraries is loaded first, there is one state. The assembly is rendered by `build.rs` from `symbol-versions/tables`.

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
