//! Initialization: `cuInit`.
