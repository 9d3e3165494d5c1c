//! `libcuda.so.1`: exports only.
//!
//! All behaviour and state is in the `regauge` crate; here are the entry points of the driver API and the private tables
//! through which `libcudart.so.12` and `libnvidia-ml.so.1` reach theirs. The assembly is rendered by `build.rs` from
//! `symbol-versions/tables`. An export is an assembly label because rustc leaves the symbols that it knows of unversioned.

mod old_glibc;
mod tool;

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
