//! The safe wrapper of ROCr.
