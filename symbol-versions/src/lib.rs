//! One table per library: symbol, version node, since, status, return class; and what is rendered from it.
//!
//! The tables in `tables/` are the only list of what the libraries export. From them come, at build time, the linker's
//! version script and the entry points in assembly ([`render`]), and, at run time, the answers of `cuGetProcAddress`
//! ([`procaddr`]) and the names in log lines. `sync` sets the status column from the functions that exist
//! ([`sources`]); a test holds the two together.
//!
//! ```text
//!  tables/cuda.tsv ──┬─ libcuda.so.1:       cuInit: mov eax,0 ×3; jmp regauge::api::driver::cuInit
//!  tables/cudart.tsv ┼─ libcuda.so.1:       regauge_rt_table_<hash>: 435 addresses   ◄──┐
//!                    └─ libcudart.so.12:    cudaMalloc: mov eax,0 ×3; jmp [table + 8·i] ┘
//! ```
//!
//! `cudart11.tsv` and `cudart13.tsv` do the same for `libcudart.so.11.0` and `libcudart.so.13`. Their rows are answered by the functions
//! of `libcudart.so.12`, unless a sixth column says that a version has arguments or structures of its own ([`Answer`]).
//!
//! An entry point begins with three `mov eax, 0` (15 bytes) because UCX's code patcher moves the first instructions of some
//! of them elsewhere and understands only a few instructions; `endbr64`, `lea` and `nop` are not among them. The first entry
//! point that it cannot move makes it drop all its CUDA hooks.

pub mod link;
pub mod procaddr;
pub mod render;
pub mod sources;
mod table;
pub mod tested;

pub use table::{Answer, Class, Library, Status, Symbol, Table};
