//! `libcuda.so.1`: exports only.
