//! Host memory.

/// Whether registered host memory has the same address on the GPU.
pub fn registered_address_is_same() -> bool {
    false
}
