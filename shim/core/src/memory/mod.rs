//! Allocator and pointer registry.
