//! Address ranges that mean something else than memory, as `GET_PROCESS_APERTURES` reports them.

/// FLAT addresses from here are LDS.
pub const LDS_BASE: u64 = 0x1_0000_0000_0000;
/// Last address of the LDS aperture.
pub const LDS_LIMIT: u64 = LDS_BASE | 0xffff_ffff;
/// FLAT addresses from here are scratch.
pub const SCRATCH_BASE: u64 = 0x2_0000_0000_0000;
/// Last address of the scratch aperture.
pub const SCRATCH_LIMIT: u64 = SCRATCH_BASE | 0xffff_ffff;
/// First GPU virtual address.
pub const GPUVM_BASE: u64 = 0x4000;
/// Last GPU virtual address: 47 bits make libhsakmt use one address for CPU and GPU.
pub const GPUVM_LIMIT: u64 = 0x7fff_ffff_ffff;
