//! `libnvidia-ml.so.1`: exports only.
