//! Device attributes: one table of id, name, value and reason, from which `docs/device-attributes.md` is written.

use super::Device;
use crate::abi::{Error, Result};
use crate::{config, hsa};

/// Where an attribute's value comes from.
enum Value {
    /// The same on every device.
    Is(i32),
    /// Asked of the device.
    Of(fn(&Device) -> i32),
}
use Value::{Is, Of};

macro_rules! attributes {
    ($($id:literal $name:ident = $value:expr, $reason:literal;)*) => {
        /// Every attribute of CUDA 12.9 and 13.0, in order of id, of which the first is 1.
        const ATTRIBUTES: &[Value] = &[$($value),*];

        /// Id, the manual's name without `CU_DEVICE_ATTRIBUTE_`, and why the value is what it is.
        #[cfg(test)]
        const ROWS: &[(i32, &str, &str)] = &[$(($id, stringify!($name), $reason)),*];
    };
}

/// The capability that programs see, as (major, minor). What the translator covers is closest to the default.
pub fn compute_capability() -> (i32, i32) {
    let &(major, minor) = config::COMPUTE_CAPABILITY.get();
    (major.cast_signed(), minor.cast_signed())
}

/// Bytes of LDS that one workgroup can have.
pub fn shared_memory_optin(_device: &Device) -> usize {
    64 << 10
}

attributes! {
    1 MAX_THREADS_PER_BLOCK = Is(1024), "workgroups of CDNA have at most 1024 work-items";
    2 MAX_BLOCK_DIM_X = Is(1024), "as above";
    3 MAX_BLOCK_DIM_Y = Is(1024), "as above";
    4 MAX_BLOCK_DIM_Z = Is(64), "CUDA's limit of every capability";
    5 MAX_GRID_DIM_X = Is(i32::MAX), "CUDA's limit; the launcher splits what a packet cannot hold";
    6 MAX_GRID_DIM_Y = Is(65535), "CUDA's limit";
    7 MAX_GRID_DIM_Z = Is(65535), "CUDA's limit";
    8 MAX_SHARED_MEMORY_PER_BLOCK = Is(48 << 10), "what a kernel gets without asking, on every capability";
    9 TOTAL_CONSTANT_MEMORY = Is(64 << 10), "the PTX constant bank";
    10 WARP_SIZE = Is(32), "programs are compiled for it; two warps share a wave64";
    11 MAX_PITCH = Is(i32::MAX), "the copy kernels use 64-bit offsets";
    12 MAX_REGISTERS_PER_BLOCK = Is(65536), "capability 8.0's; a compute unit has twice that, so every block that fits there fits here";
    13 CLOCK_RATE = Of(|device| khz(device.agent.clock_mhz)), "the agent's";
    14 TEXTURE_ALIGNMENT = Is(512), "recorded; every block is aligned to a page";
    15 GPU_OVERLAP = Is(1), "the copy engines run beside kernels";
    16 MULTIPROCESSOR_COUNT = Of(|device| int(device.agent.compute_units)), "compute units that one grid fills: on gfx90a one in each shader engine less, and as many in each";
    17 KERNEL_EXEC_TIMEOUT = Is(0), "no watchdog on compute cards";
    18 INTEGRATED = Is(0), "discrete";
    19 CAN_MAP_HOST_MEMORY = Is(1), "pinned memory is mapped to every GPU";
    20 COMPUTE_MODE = Is(0), "any number of processes may use the card";
    21 MAXIMUM_TEXTURE1D_WIDTH = Is(131072), "recorded: where arrays and textures end; software sets no limit of its own";
    22 MAXIMUM_TEXTURE2D_WIDTH = Is(131072), "as 21";
    23 MAXIMUM_TEXTURE2D_HEIGHT = Is(65536), "as 21";
    24 MAXIMUM_TEXTURE3D_WIDTH = Is(16384), "as 21";
    25 MAXIMUM_TEXTURE3D_HEIGHT = Is(16384), "as 21";
    26 MAXIMUM_TEXTURE3D_DEPTH = Is(16384), "as 21";
    27 MAXIMUM_TEXTURE2D_LAYERED_WIDTH = Is(32768), "as 21";
    28 MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = Is(32768), "as 21";
    29 MAXIMUM_TEXTURE2D_LAYERED_LAYERS = Is(2048), "as 21";
    30 SURFACE_ALIGNMENT = Is(512), "recorded";
    31 CONCURRENT_KERNELS = Is(1), "queues run side by side";
    32 ECC_ENABLED = Is(1), "HBM of these cards has ECC, always on";
    33 PCI_BUS_ID = Of(super::pci::bus), "the agent's";
    34 PCI_DEVICE_ID = Of(super::pci::slot), "the agent's";
    35 TCC_DRIVER = Is(0), "Windows only";
    36 MEMORY_CLOCK_RATE = Of(|device| khz(device.agent.memory_clock_mhz)), "the agent's";
    37 GLOBAL_MEMORY_BUS_WIDTH = Of(|device| int(device.agent.memory_width)), "the agent's";
    38 L2_CACHE_SIZE = Of(|device| int(device.agent.l2_cache)), "the agent's";
    39 MAX_THREADS_PER_MULTIPROCESSOR = Of(|device| int(device.agent.max_waves_per_cu * device.agent.wavefront_size)), "waves times lanes";
    40 ASYNC_ENGINE_COUNT = Of(|device| int(device.agent.sdma_engines)), "SDMA engines";
    41 UNIFIED_ADDRESSING = Is(1), "one address space for host and all GPUs";
    42 MAXIMUM_TEXTURE1D_LAYERED_WIDTH = Is(32768), "as 21";
    43 MAXIMUM_TEXTURE1D_LAYERED_LAYERS = Is(2048), "as 21";
    44 CAN_TEX2D_GATHER = Is(1), "the sampler is code, and gathers too";
    45 MAXIMUM_TEXTURE2D_GATHER_WIDTH = Is(32768), "as 21";
    46 MAXIMUM_TEXTURE2D_GATHER_HEIGHT = Is(32768), "as 21";
    47 MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = Is(8192), "as 21";
    48 MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = Is(8192), "as 21";
    49 MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = Is(32768), "as 21";
    50 PCI_DOMAIN_ID = Of(|device| int(device.agent.pci_domain)), "the agent's";
    51 TEXTURE_PITCH_ALIGNMENT = Is(32), "recorded";
    52 MAXIMUM_TEXTURECUBEMAP_WIDTH = Is(32768), "as 21";
    53 MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = Is(32768), "as 21";
    54 MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = Is(2046), "as 21";
    55 MAXIMUM_SURFACE1D_WIDTH = Is(32768), "as 21";
    56 MAXIMUM_SURFACE2D_WIDTH = Is(131072), "as 21";
    57 MAXIMUM_SURFACE2D_HEIGHT = Is(65536), "as 21";
    58 MAXIMUM_SURFACE3D_WIDTH = Is(16384), "as 21";
    59 MAXIMUM_SURFACE3D_HEIGHT = Is(16384), "as 21";
    60 MAXIMUM_SURFACE3D_DEPTH = Is(16384), "as 21";
    61 MAXIMUM_SURFACE1D_LAYERED_WIDTH = Is(32768), "as 21";
    62 MAXIMUM_SURFACE1D_LAYERED_LAYERS = Is(2048), "as 21";
    63 MAXIMUM_SURFACE2D_LAYERED_WIDTH = Is(32768), "as 21";
    64 MAXIMUM_SURFACE2D_LAYERED_HEIGHT = Is(32768), "as 21";
    65 MAXIMUM_SURFACE2D_LAYERED_LAYERS = Is(2048), "as 21";
    66 MAXIMUM_SURFACECUBEMAP_WIDTH = Is(32768), "as 21";
    67 MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = Is(32768), "as 21";
    68 MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = Is(2046), "as 21";
    69 MAXIMUM_TEXTURE1D_LINEAR_WIDTH = Is(268435456), "as 21";
    70 MAXIMUM_TEXTURE2D_LINEAR_WIDTH = Is(131072), "as 21";
    71 MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = Is(65000), "as 21";
    72 MAXIMUM_TEXTURE2D_LINEAR_PITCH = Is(2097120), "as 21";
    73 MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = Is(32768), "as 21";
    74 MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = Is(32768), "as 21";
    75 COMPUTE_CAPABILITY_MAJOR = Of(|_| compute_capability().0), "see compute_capability";
    76 COMPUTE_CAPABILITY_MINOR = Of(|_| compute_capability().1), "see compute_capability";
    77 MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = Is(32768), "as 21";
    78 STREAM_PRIORITIES_SUPPORTED = Is(1), "HSA queues have three";
    79 GLOBAL_L1_CACHE_SUPPORTED = Is(1), "vector L1 caches global loads";
    80 LOCAL_L1_CACHE_SUPPORTED = Is(1), "and scratch";
    81 MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = Is(64 << 10), "LDS of a compute unit";
    82 MAX_REGISTERS_PER_MULTIPROCESSOR = Is(65536), "as 12";
    83 MANAGED_MEMORY = Is(1), "host memory that GPUs use in place";
    84 MULTI_GPU_BOARD = Is(0), "each GPU is its own device";
    85 MULTI_GPU_BOARD_GROUP_ID = Is(0), "as above";
    86 HOST_NATIVE_ATOMIC_SUPPORTED = Is(0), "atomics across PCIe are not promised";
    87 SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = Is(1), "vector FP64 runs at FP32's rate on CDNA2 and later (2 on CDNA3 counts packed FP32)";
    88 PAGEABLE_MEMORY_ACCESS = Is(0), "XNACK is off by default";
    89 CONCURRENT_MANAGED_ACCESS = Is(0), "as above";
    90 COMPUTE_PREEMPTION_SUPPORTED = Is(1), "waves are saved and restored";
    91 CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = Of(|_| i32::from(crate::memory::host::registered_address_is_same())), "tried out once";
    92 CAN_USE_STREAM_MEM_OPS_V1 = Is(0), "recorded";
    93 CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = Is(0), "recorded";
    94 CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = Is(0), "recorded";
    95 COOPERATIVE_LAUNCH = Of(|device| device.agent.cooperative.into()), "where ROCr has a cooperative queue";
    96 COOPERATIVE_MULTI_DEVICE_LAUNCH = Is(0), "the call is refused";
    97 MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = Of(|device| shared_memory_optin(device) as i32), "LDS of a workgroup";
    98 CAN_FLUSH_REMOTE_WRITES = Is(0), "recorded; waits acquire at system scope anyway";
    99 HOST_REGISTER_SUPPORTED = Is(1), "ROCr pins host memory";
    100 PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = Is(0), "XNACK is off";
    101 DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = Is(0), "CUDA means managed memory that resides on the device; ours never does";
    102 VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = Of(|_| virtual_memory()), "ROCr's, from 6.0 on and where the kernel driver has it";
    103 HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = Of(|_| virtual_memory()), "as above";
    104 HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = Is(0), "Windows only";
    105 HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = Is(0), "Windows only";
    106 MAX_BLOCKS_PER_MULTIPROCESSOR = Is(32), "capability 8.0's; a compute unit holds 32 waves";
    107 GENERIC_COMPRESSION_SUPPORTED = Is(0), "no compressible memory";
    108 MAX_PERSISTING_L2_CACHE_SIZE = Is(0), "no part of L2 can be set aside";
    109 MAX_ACCESS_POLICY_WINDOW_SIZE = Is(0), "as above";
    110 GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = Is(0), "ROCr does not know mapped memory when network cards ask it";
    111 RESERVED_SHARED_MEMORY_PER_BLOCK = Is(0), "kernels get all of the LDS";
    112 SPARSE_CUDA_ARRAY_SUPPORTED = Is(0), "memory of arrays is there from the start";
    113 READ_ONLY_HOST_REGISTER_SUPPORTED = Of(|_| i32::from(crate::memory::host::read_only_is_supported())), "tried out once: without shared virtual memory the kernel driver pins for writing";
    114 TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = Is(0), "no graphics interop";
    115 MEMORY_POOLS_SUPPORTED = Is(1), "blocks of ROCr, parts of which are given out in the order of streams";
    116 GPU_DIRECT_RDMA_SUPPORTED = Is(0), "NVIDIA's peer memory kernel interface does not exist here; ROCr's own does";
    117 GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = Of(|device| i32::from(device.agent.hdp_flush.is_some())), "from the host, where ROCr shows the flush register of the GPU's host data path";
    118 GPU_DIRECT_RDMA_WRITES_ORDERING = Is(0), "none: writes of network cards may lie in the host data path until it is flushed";
    119 MEMPOOL_SUPPORTED_HANDLE_TYPES = Of(|_| virtual_memory()), "POSIX descriptors where memory without an address has them; no fabric";
    120 CLUSTER_LAUNCH = Is(0), "not of capability 8.0";
    121 DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = Is(0), "as 112";
    122 CAN_USE_64_BIT_STREAM_MEM_OPS = Is(1), "the _v2 calls";
    123 CAN_USE_STREAM_WAIT_VALUE_NOR = Is(1), "as above";
    124 DMA_BUF_SUPPORTED = Of(|_| i32::from(hsa::get().is_ok_and(|hsa| hsa.dma_buf))), "ROCr's";
    125 IPC_EVENT_SUPPORTED = Is(1), "counters in shared memory";
    126 MEM_SYNC_DOMAIN_COUNT = Is(1), "one domain";
    127 TENSOR_MAP_ACCESS_SUPPORTED = Is(0), "not of capability 8.0";
    128 HANDLE_TYPE_FABRIC_SUPPORTED = Is(0), "no fabric on these GPUs";
    129 UNIFIED_FUNCTION_POINTERS = Is(0), "no device function pointers from the host";
    130 NUMA_CONFIG = Is(0), "device memory is no NUMA node";
    131 NUMA_ID = Is(-1), "as above";
    132 MULTICAST_SUPPORTED = Is(0), "no multicast objects";
    133 MPS_ENABLED = Is(0), "no MPS";
    134 HOST_NUMA_ID = Of(|device| int(device.host.node)), "the nearest CPU's node";
    135 D3D12_CIG_SUPPORTED = Is(0), "Windows only";
    136 MEM_DECOMPRESS_ALGORITHM_MASK = Is(0), "no decompression engine";
    137 MEM_DECOMPRESS_MAXIMUM_LENGTH = Is(0), "as above";
    138 VULKAN_CIG_SUPPORTED = Is(0), "no graphics interop";
    139 GPU_PCI_DEVICE_ID = Of(|device| (device.agent.chip_id << 16 | super::pci::AMD) as i32), "device and vendor, as NVIDIA packs them";
    140 GPU_PCI_SUBSYSTEM_ID = Is(0), "ROCr does not say";
    141 HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = Is(0), "ROCr makes memory without an address on GPUs only";
    142 HOST_NUMA_MEMORY_POOLS_SUPPORTED = Is(0), "pools are a GPU's";
    143 HOST_NUMA_MULTINODE_IPC_SUPPORTED = Is(0), "no pools on the host";
    144 HOST_MEMORY_POOLS_SUPPORTED = Is(0), "as 142";
    145 HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = Is(0), "as 141";
    146 HOST_ALLOC_DMA_BUF_SUPPORTED = Is(0), "ROCr exports device memory only; recorded";
    147 ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED = Is(0), "as 86; recorded";
}

fn virtual_memory() -> i32 {
    i32::from(crate::memory::vmm::is_supported())
}

fn int(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

fn khz(mhz: u32) -> i32 {
    int(mhz.saturating_mul(1000))
}

/// The value of an attribute; [`Error::INVALID_VALUE`] for an id that CUDA 13.0 does not have.
pub fn get(device: &Device, id: i32) -> Result<i32> {
    // Ids have no gaps, which a test checks.
    let index = id.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    let value = index
        .and_then(|index| ATTRIBUTES.get(index))
        .ok_or(Error::INVALID_VALUE)?;
    Ok(match value {
        Is(value) => *value,
        Of(value) => value(device),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `CU_DEVICE_ATTRIBUTE_MAX` of CUDA 13.0's header.
    const MAX: i32 = 148;

    #[test]
    fn every_attribute_of_cuda_13_0_has_its_row() {
        for (&(id, name, reason), expected) in ROWS.iter().zip(1..) {
            assert_eq!(id, expected, "{name}");
            assert!(!reason.is_empty(), "{name}");
        }
        assert_eq!(ATTRIBUTES.len() as i32 + 1, MAX);
    }
}
