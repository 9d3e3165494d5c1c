//! Reader (and, for tests, writer) of CUDA fat binaries.
