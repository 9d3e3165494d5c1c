//! Which CUDA symbols and kernels a file needs, and whether Regauge has them: before `srun`, not after it.
//!
//! ```text
//!  file ── elf ──── imports by link, with version nodes ─┐
//!        ├ names ── names looked up by string ───────────┼─ provider ─ verdict per symbol ─┐
//!        └ kernels  fat binaries: PTX, machine code ─────┘   (tables, or --against)        ├─ report: text, JSON
//!                                                                     audit ─ problems ────┘
//! ```

pub mod audit;
pub mod elf;
pub mod kernels;
pub mod names;
pub mod provider;
pub mod report;
pub mod walk;
