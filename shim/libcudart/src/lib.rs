//! `libcudart.so.12`: exports only.
