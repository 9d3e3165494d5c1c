//! `cuda*`: one file per chapter of the CUDA Runtime API manual.
