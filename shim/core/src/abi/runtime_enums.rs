//! Enumerations of `driver_types.h`.
//!
//! Names are those of the manual without their common prefix; each is a newtype, so a value that CUDA does not name stays
//! a valid value and the check for it is ours.

// The manual documents each constant under its own name; repeating that here would say nothing new.
#![allow(missing_docs, non_camel_case_types)]

use super::c_enum;

c_enum! {
    /// Direction of a copy.
    cudaMemcpyKind {
        HOST_TO_HOST = 0,
        HOST_TO_DEVICE = 1,
        DEVICE_TO_HOST = 2,
        DEVICE_TO_DEVICE = 3,
        DEFAULT = 4,
    }
}

c_enum! {
    /// Where memory lies (`cudaPointerGetAttributes`).
    cudaMemoryType {
        UNREGISTERED = 0,
        HOST = 1,
        DEVICE = 2,
        MANAGED = 3,
    }
}

c_enum! {
    /// What `cudaDeviceGetAttribute` asks for; numbered as in the driver API.
    cudaDeviceAttr {
        MAX_THREADS_PER_BLOCK = 1,
        MAX_BLOCK_DIM_X = 2,
        MAX_BLOCK_DIM_Y = 3,
        MAX_BLOCK_DIM_Z = 4,
        MAX_GRID_DIM_X = 5,
        MAX_GRID_DIM_Y = 6,
        MAX_GRID_DIM_Z = 7,
        MAX_SHARED_MEMORY_PER_BLOCK = 8,
        TOTAL_CONSTANT_MEMORY = 9,
        WARP_SIZE = 10,
        MAX_PITCH = 11,
        MAX_REGISTERS_PER_BLOCK = 12,
        CLOCK_RATE = 13,
        TEXTURE_ALIGNMENT = 14,
        GPU_OVERLAP = 15,
        MULTI_PROCESSOR_COUNT = 16,
        KERNEL_EXEC_TIMEOUT = 17,
        INTEGRATED = 18,
        CAN_MAP_HOST_MEMORY = 19,
        COMPUTE_MODE = 20,
        MAX_TEXTURE1_D_WIDTH = 21,
        MAX_TEXTURE2_D_WIDTH = 22,
        MAX_TEXTURE2_D_HEIGHT = 23,
        MAX_TEXTURE3_D_WIDTH = 24,
        MAX_TEXTURE3_D_HEIGHT = 25,
        MAX_TEXTURE3_D_DEPTH = 26,
        MAX_TEXTURE2_D_LAYERED_WIDTH = 27,
        MAX_TEXTURE2_D_LAYERED_HEIGHT = 28,
        MAX_TEXTURE2_D_LAYERED_LAYERS = 29,
        SURFACE_ALIGNMENT = 30,
        CONCURRENT_KERNELS = 31,
        ECC_ENABLED = 32,
        PCI_BUS_ID = 33,
        PCI_DEVICE_ID = 34,
        TCC_DRIVER = 35,
        MEMORY_CLOCK_RATE = 36,
        GLOBAL_MEMORY_BUS_WIDTH = 37,
        L2_CACHE_SIZE = 38,
        MAX_THREADS_PER_MULTI_PROCESSOR = 39,
        ASYNC_ENGINE_COUNT = 40,
        UNIFIED_ADDRESSING = 41,
        MAX_TEXTURE1_D_LAYERED_WIDTH = 42,
        MAX_TEXTURE1_D_LAYERED_LAYERS = 43,
        MAX_TEXTURE2_D_GATHER_WIDTH = 45,
        MAX_TEXTURE2_D_GATHER_HEIGHT = 46,
        MAX_TEXTURE3_D_WIDTH_ALT = 47,
        MAX_TEXTURE3_D_HEIGHT_ALT = 48,
        MAX_TEXTURE3_D_DEPTH_ALT = 49,
        PCI_DOMAIN_ID = 50,
        TEXTURE_PITCH_ALIGNMENT = 51,
        MAX_TEXTURE_CUBEMAP_WIDTH = 52,
        MAX_TEXTURE_CUBEMAP_LAYERED_WIDTH = 53,
        MAX_TEXTURE_CUBEMAP_LAYERED_LAYERS = 54,
        MAX_SURFACE1_D_WIDTH = 55,
        MAX_SURFACE2_D_WIDTH = 56,
        MAX_SURFACE2_D_HEIGHT = 57,
        MAX_SURFACE3_D_WIDTH = 58,
        MAX_SURFACE3_D_HEIGHT = 59,
        MAX_SURFACE3_D_DEPTH = 60,
        MAX_SURFACE1_D_LAYERED_WIDTH = 61,
        MAX_SURFACE1_D_LAYERED_LAYERS = 62,
        MAX_SURFACE2_D_LAYERED_WIDTH = 63,
        MAX_SURFACE2_D_LAYERED_HEIGHT = 64,
        MAX_SURFACE2_D_LAYERED_LAYERS = 65,
        MAX_SURFACE_CUBEMAP_WIDTH = 66,
        MAX_SURFACE_CUBEMAP_LAYERED_WIDTH = 67,
        MAX_SURFACE_CUBEMAP_LAYERED_LAYERS = 68,
        MAX_TEXTURE1_D_LINEAR_WIDTH = 69,
        MAX_TEXTURE2_D_LINEAR_WIDTH = 70,
        MAX_TEXTURE2_D_LINEAR_HEIGHT = 71,
        MAX_TEXTURE2_D_LINEAR_PITCH = 72,
        MAX_TEXTURE2_D_MIPMAPPED_WIDTH = 73,
        MAX_TEXTURE2_D_MIPMAPPED_HEIGHT = 74,
        COMPUTE_CAPABILITY_MAJOR = 75,
        COMPUTE_CAPABILITY_MINOR = 76,
        MAX_TEXTURE1_D_MIPMAPPED_WIDTH = 77,
        STREAM_PRIORITIES_SUPPORTED = 78,
        GLOBAL_L1_CACHE_SUPPORTED = 79,
        LOCAL_L1_CACHE_SUPPORTED = 80,
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
        MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
        MANAGED_MEMORY = 83,
        IS_MULTI_GPU_BOARD = 84,
        MULTI_GPU_BOARD_GROUP_ID = 85,
        HOST_NATIVE_ATOMIC_SUPPORTED = 86,
        SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
        PAGEABLE_MEMORY_ACCESS = 88,
        CONCURRENT_MANAGED_ACCESS = 89,
        COMPUTE_PREEMPTION_SUPPORTED = 90,
        CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
        RESERVED92 = 92,
        RESERVED93 = 93,
        RESERVED94 = 94,
        COOPERATIVE_LAUNCH = 95,
        COOPERATIVE_MULTI_DEVICE_LAUNCH = 96,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
        CAN_FLUSH_REMOTE_WRITES = 98,
        HOST_REGISTER_SUPPORTED = 99,
        PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
        DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101,
        MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
        MAX_PERSISTING_L2_CACHE_SIZE = 108,
        MAX_ACCESS_POLICY_WINDOW_SIZE = 109,
        RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
        SPARSE_CUDA_ARRAY_SUPPORTED = 112,
        HOST_REGISTER_READ_ONLY_SUPPORTED = 113,
        TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114,
        MAX_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114,
        MEMORY_POOLS_SUPPORTED = 115,
        GPU_DIRECT_RDMA_SUPPORTED = 116,
        GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
        GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
        MEMORY_POOL_SUPPORTED_HANDLE_TYPES = 119,
        CLUSTER_LAUNCH = 120,
        DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121,
        RESERVED122 = 122,
        RESERVED123 = 123,
        RESERVED124 = 124,
        IPC_EVENT_SUPPORT = 125,
        MEM_SYNC_DOMAIN_COUNT = 126,
        RESERVED127 = 127,
        RESERVED128 = 128,
        RESERVED129 = 129,
        NUMA_CONFIG = 130,
        NUMA_ID = 131,
        RESERVED132 = 132,
        MPS_ENABLED = 133,
        HOST_NUMA_ID = 134,
        D3_D12_CIG_SUPPORTED = 135,
        VULKAN_CIG_SUPPORTED = 138,
        GPU_PCI_DEVICE_ID = 139,
        GPU_PCI_SUBSYSTEM_ID = 140,
        RESERVED141 = 141,
        HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142,
        HOST_NUMA_MULTINODE_IPC_SUPPORTED = 143,
        MAX = 144,
    }
}

c_enum! {
    /// What `cudaDeviceGetP2PAttribute` asks for.
    cudaDeviceP2PAttr {
        PERFORMANCE_RANK = 1,
        ACCESS_SUPPORTED = 2,
        NATIVE_ATOMIC_SUPPORTED = 3,
        CUDA_ARRAY_ACCESS_SUPPORTED = 4,
    }
}

c_enum! {
    /// Limits of a device (`cudaDeviceSetLimit`).
    cudaLimit {
        STACK_SIZE = 0,
        PRINTF_FIFO_SIZE = 1,
        MALLOC_HEAP_SIZE = 2,
        DEV_RUNTIME_SYNC_DEPTH = 3,
        DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
        MAX_L2_FETCH_GRANULARITY = 5,
        PERSISTING_L2_CACHE_SIZE = 6,
    }
}

c_enum! {
    /// What `cudaFuncSetAttribute` sets.
    cudaFuncAttribute {
        MAX_DYNAMIC_SHARED_MEMORY_SIZE = 8,
        PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
        CLUSTER_DIM_MUST_BE_SET = 10,
        REQUIRED_CLUSTER_WIDTH = 11,
        REQUIRED_CLUSTER_HEIGHT = 12,
        REQUIRED_CLUSTER_DEPTH = 13,
        NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
        CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
        MAX = 16,
    }
}

c_enum! {
    /// Preference between L1 cache and shared memory; of no effect on CDNA.
    cudaFuncCache {
        NONE = 0,
        SHARED = 1,
        L1 = 2,
        EQUAL = 3,
    }
}

c_enum! {
    /// Width of shared memory banks; of no effect on CDNA.
    cudaSharedMemConfig {
        DEFAULT = 0,
        FOUR_BYTE = 1,
        EIGHT_BYTE = 2,
    }
}

c_enum! {
    /// How many processes may use a device.
    cudaComputeMode {
        DEFAULT = 0,
        EXCLUSIVE = 1,
        PROHIBITED = 2,
        EXCLUSIVE_PROCESS = 3,
    }
}

c_enum! {
    /// Type of the elements of an array.
    cudaChannelFormatKind {
        SIGNED = 0,
        UNSIGNED = 1,
        FLOAT = 2,
        NONE = 3,
        NV12 = 4,
        UNSIGNED_NORMALIZED8_X1 = 5,
        UNSIGNED_NORMALIZED8_X2 = 6,
        UNSIGNED_NORMALIZED8_X4 = 7,
        UNSIGNED_NORMALIZED16_X1 = 8,
        UNSIGNED_NORMALIZED16_X2 = 9,
        UNSIGNED_NORMALIZED16_X4 = 10,
        SIGNED_NORMALIZED8_X1 = 11,
        SIGNED_NORMALIZED8_X2 = 12,
        SIGNED_NORMALIZED8_X4 = 13,
        SIGNED_NORMALIZED16_X1 = 14,
        SIGNED_NORMALIZED16_X2 = 15,
        SIGNED_NORMALIZED16_X4 = 16,
        UNSIGNED_BLOCK_COMPRESSED1 = 17,
        UNSIGNED_BLOCK_COMPRESSED1_SRGB = 18,
        UNSIGNED_BLOCK_COMPRESSED2 = 19,
        UNSIGNED_BLOCK_COMPRESSED2_SRGB = 20,
        UNSIGNED_BLOCK_COMPRESSED3 = 21,
        UNSIGNED_BLOCK_COMPRESSED3_SRGB = 22,
        UNSIGNED_BLOCK_COMPRESSED4 = 23,
        SIGNED_BLOCK_COMPRESSED4 = 24,
        UNSIGNED_BLOCK_COMPRESSED5 = 25,
        SIGNED_BLOCK_COMPRESSED5 = 26,
        UNSIGNED_BLOCK_COMPRESSED6_H = 27,
        SIGNED_BLOCK_COMPRESSED6_H = 28,
        UNSIGNED_BLOCK_COMPRESSED7 = 29,
        UNSIGNED_BLOCK_COMPRESSED7_SRGB = 30,
        UNSIGNED_NORMALIZED1010102 = 31,
    }
}

c_enum! {
    /// What `cudaMemAdvise` says of managed memory.
    cudaMemoryAdvise {
        SET_READ_MOSTLY = 1,
        UNSET_READ_MOSTLY = 2,
        SET_PREFERRED_LOCATION = 3,
        UNSET_PREFERRED_LOCATION = 4,
        SET_ACCESSED_BY = 5,
        UNSET_ACCESSED_BY = 6,
    }
}

c_enum! {
    /// What `cudaMemRangeGetAttribute` asks of managed memory.
    cudaMemRangeAttribute {
        READ_MOSTLY = 1,
        PREFERRED_LOCATION = 2,
        ACCESSED_BY = 3,
        LAST_PREFETCH_LOCATION = 4,
        PREFERRED_LOCATION_TYPE = 5,
        PREFERRED_LOCATION_ID = 6,
        LAST_PREFETCH_LOCATION_TYPE = 7,
        LAST_PREFETCH_LOCATION_ID = 8,
    }
}

c_enum! {
    /// Settings and figures of a memory pool.
    cudaMemPoolAttr {
        REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
        REUSE_ALLOW_OPPORTUNISTIC = 2,
        REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        ATTR_RELEASE_THRESHOLD = 4,
        ATTR_RESERVED_MEM_CURRENT = 5,
        ATTR_RESERVED_MEM_HIGH = 6,
        ATTR_USED_MEM_CURRENT = 7,
        ATTR_USED_MEM_HIGH = 8,
    }
}

c_enum! {
    /// What kind of place a [`cudaMemLocation`](super::cudaMemLocation) is.
    cudaMemLocationType {
        INVALID = 0,
        DEVICE = 1,
        HOST = 2,
        HOST_NUMA = 3,
        HOST_NUMA_CURRENT = 4,
    }
}

c_enum! {
    /// What kind of allocation a pool makes.
    cudaMemAllocationType {
        INVALID = 0,
        PINNED = 1,
        MAX = 2147483647,
    }
}

c_enum! {
    /// How a pool can leave the process.
    cudaMemAllocationHandleType {
        NONE = 0,
        POSIX_FILE_DESCRIPTOR = 1,
        WIN32 = 2,
        WIN32_KMT = 4,
        FABRIC = 8,
    }
}

c_enum! {
    /// What a location may do with a pool's memory.
    cudaMemAccessFlags {
        NONE = 0,
        READ = 1,
        READ_WRITE = 3,
    }
}

c_enum! {
    /// Which kind of default stream `cudaGetDriverEntryPoint` is asked for.
    cudaGetDriverEntryPointFlags {
        DEFAULT = 0,
        LEGACY_STREAM = 1,
        PER_THREAD_DEFAULT_STREAM = 2,
    }
}

c_enum! {
    /// Why `cudaGetDriverEntryPoint` gives no address.
    cudaDriverEntryPointQueryResult {
        SUCCESS = 0,
        SYMBOL_NOT_FOUND = 1,
        VERSION_NOT_SUFFICENT = 2,
    }
}

c_enum! {
    /// Which calls of other threads a capture forbids.
    cudaStreamCaptureMode {
        GLOBAL = 0,
        THREAD_LOCAL = 1,
        RELAXED = 2,
    }
}

c_enum! {
    /// Whether a stream is being captured.
    cudaStreamCaptureStatus {
        NONE = 0,
        ACTIVE = 1,
        INVALIDATED = 2,
    }
}

c_enum! {
    /// What a launch attribute sets.
    cudaLaunchAttributeID {
        IGNORE = 0,
        ACCESS_POLICY_WINDOW = 1,
        COOPERATIVE = 2,
        SYNCHRONIZATION_POLICY = 3,
        CLUSTER_DIMENSION = 4,
        CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
        PROGRAMMATIC_STREAM_SERIALIZATION = 6,
        PROGRAMMATIC_EVENT = 7,
        PRIORITY = 8,
        MEM_SYNC_DOMAIN_MAP = 9,
        MEM_SYNC_DOMAIN = 10,
        PREFERRED_CLUSTER_DIMENSION = 11,
        LAUNCH_COMPLETION_EVENT = 12,
        DEVICE_UPDATABLE_KERNEL_NODE = 13,
        PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
    }
}

c_enum! {
    /// How the L2 cache treats accesses; of no effect on CDNA.
    cudaAccessProperty {
        NORMAL = 0,
        STREAMING = 1,
        PERSISTING = 2,
    }
}

c_enum! {
    /// How a thread waits for a stream.
    cudaSynchronizationPolicy {
        AUTO = 1,
        SPIN = 2,
        YIELD = 3,
        BLOCKING_SYNC = 4,
    }
}

c_enum! {
    /// How clusters are spread; CDNA has none.
    cudaClusterSchedulingPolicy {
        DEFAULT = 0,
        SPREAD = 1,
        LOAD_BALANCING = 2,
    }
}

c_enum! {
    /// Domains of memory fences; of no effect on CDNA.
    cudaLaunchMemSyncDomain {
        DEFAULT = 0,
        REMOTE = 1,
    }
}

c_enum! {
    /// Ways to flush what a network card wrote.
    cudaFlushGPUDirectRDMAWritesOptions {
        HOST = 1,
        MEM_OPS = 2,
    }
}

c_enum! {
    /// Options of loading code.
    cudaJitOption {
        MAX_REGISTERS = 0,
        THREADS_PER_BLOCK = 1,
        WALL_TIME = 2,
        INFO_LOG_BUFFER = 3,
        INFO_LOG_BUFFER_SIZE_BYTES = 4,
        ERROR_LOG_BUFFER = 5,
        ERROR_LOG_BUFFER_SIZE_BYTES = 6,
        OPTIMIZATION_LEVEL = 7,
        FALLBACK_STRATEGY = 10,
        GENERATE_DEBUG_INFO = 11,
        LOG_VERBOSE = 12,
        GENERATE_LINE_INFO = 13,
        CACHE_MODE = 14,
        POSITION_INDEPENDENT_CODE = 30,
        MIN_CTA_PER_SM = 31,
        MAX_THREADS_PER_BLOCK = 32,
        OVERRIDE_DIRECTIVE_VALUES = 33,
    }
}

c_enum! {
    /// Options of `cudaLibraryLoadData`.
    cudaLibraryOption {
        HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
        BINARY_IS_PRESERVED = 1,
    }
}

c_enum! {
    /// What a node of a graph does.
    cudaGraphNodeType {
        KERNEL = 0,
        MEMCPY = 1,
        MEMSET = 2,
        HOST = 3,
        GRAPH = 4,
        EMPTY = 5,
        WAIT_EVENT = 6,
        EVENT_RECORD = 7,
        EXT_SEMAPHORE_SIGNAL = 8,
        EXT_SEMAPHORE_WAIT = 9,
        MEM_ALLOC = 10,
        MEM_FREE = 11,
        CONDITIONAL = 13,
        COUNT = 14,
    }
}
