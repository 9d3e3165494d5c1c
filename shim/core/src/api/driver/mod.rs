//! `cu*`: one file per chapter of the CUDA Driver API manual.
