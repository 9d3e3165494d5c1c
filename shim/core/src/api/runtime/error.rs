//! Error Handling: `cudaGetLastError`, `cudaGetErrorString`.
//!
//! These four cannot fail, so they are no `runtime!` functions: the code that two of them return is not their own, and it must
//! not become the last error again.

use core::ffi::{c_char, c_int};

use crate::abi::Error;
use crate::api::guard;

/// CUDA Runtime API, Error Handling: `cudaGetLastError`. Per thread; clears it.
#[allow(non_snake_case)]
pub extern "C" fn cudaGetLastError() -> c_int {
    guard::take_last_error()
}

/// CUDA Runtime API, Error Handling: `cudaPeekAtLastError`.
#[allow(non_snake_case)]
pub extern "C" fn cudaPeekAtLastError() -> c_int {
    guard::last_error()
}

/// CUDA Runtime API, Error Handling: `cudaGetErrorName`. The text is ours and lives for ever.
#[allow(non_snake_case)]
pub extern "C" fn cudaGetErrorName(error: c_int) -> *const c_char {
    Error(error).runtime_name().as_ptr()
}

/// CUDA Runtime API, Error Handling: `cudaGetErrorString`. The text is ours and lives for ever.
#[allow(non_snake_case)]
pub extern "C" fn cudaGetErrorString(error: c_int) -> *const c_char {
    Error(error).runtime_text().as_ptr()
}
