//! Enumerations of `cuda.h`.
//!
//! Names are those of the manual without their common prefix; each is a newtype, so a value that CUDA does not name stays
//! a valid value and the check for it is ours.

// The manual documents each constant under its own name; repeating that here would say nothing new.
#![allow(missing_docs, non_camel_case_types)]

use super::c_enum;

c_enum! {
    /// What `cuDeviceGetAttribute` asks for.
    CUdevice_attribute {
        MAX_THREADS_PER_BLOCK = 1,
        MAX_BLOCK_DIM_X = 2,
        MAX_BLOCK_DIM_Y = 3,
        MAX_BLOCK_DIM_Z = 4,
        MAX_GRID_DIM_X = 5,
        MAX_GRID_DIM_Y = 6,
        MAX_GRID_DIM_Z = 7,
        MAX_SHARED_MEMORY_PER_BLOCK = 8,
        SHARED_MEMORY_PER_BLOCK = 8,
        TOTAL_CONSTANT_MEMORY = 9,
        WARP_SIZE = 10,
        MAX_PITCH = 11,
        MAX_REGISTERS_PER_BLOCK = 12,
        REGISTERS_PER_BLOCK = 12,
        CLOCK_RATE = 13,
        TEXTURE_ALIGNMENT = 14,
        GPU_OVERLAP = 15,
        MULTIPROCESSOR_COUNT = 16,
        KERNEL_EXEC_TIMEOUT = 17,
        INTEGRATED = 18,
        CAN_MAP_HOST_MEMORY = 19,
        COMPUTE_MODE = 20,
        MAXIMUM_TEXTURE1D_WIDTH = 21,
        MAXIMUM_TEXTURE2D_WIDTH = 22,
        MAXIMUM_TEXTURE2D_HEIGHT = 23,
        MAXIMUM_TEXTURE3D_WIDTH = 24,
        MAXIMUM_TEXTURE3D_HEIGHT = 25,
        MAXIMUM_TEXTURE3D_DEPTH = 26,
        MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27,
        MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28,
        MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29,
        MAXIMUM_TEXTURE2D_ARRAY_WIDTH = 27,
        MAXIMUM_TEXTURE2D_ARRAY_HEIGHT = 28,
        MAXIMUM_TEXTURE2D_ARRAY_NUMSLICES = 29,
        SURFACE_ALIGNMENT = 30,
        CONCURRENT_KERNELS = 31,
        ECC_ENABLED = 32,
        PCI_BUS_ID = 33,
        PCI_DEVICE_ID = 34,
        TCC_DRIVER = 35,
        MEMORY_CLOCK_RATE = 36,
        GLOBAL_MEMORY_BUS_WIDTH = 37,
        L2_CACHE_SIZE = 38,
        MAX_THREADS_PER_MULTIPROCESSOR = 39,
        ASYNC_ENGINE_COUNT = 40,
        UNIFIED_ADDRESSING = 41,
        MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42,
        MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43,
        CAN_TEX2D_GATHER = 44,
        MAXIMUM_TEXTURE2D_GATHER_WIDTH = 45,
        MAXIMUM_TEXTURE2D_GATHER_HEIGHT = 46,
        MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 47,
        MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = 48,
        MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 49,
        PCI_DOMAIN_ID = 50,
        TEXTURE_PITCH_ALIGNMENT = 51,
        MAXIMUM_TEXTURECUBEMAP_WIDTH = 52,
        MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = 53,
        MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 54,
        MAXIMUM_SURFACE1D_WIDTH = 55,
        MAXIMUM_SURFACE2D_WIDTH = 56,
        MAXIMUM_SURFACE2D_HEIGHT = 57,
        MAXIMUM_SURFACE3D_WIDTH = 58,
        MAXIMUM_SURFACE3D_HEIGHT = 59,
        MAXIMUM_SURFACE3D_DEPTH = 60,
        MAXIMUM_SURFACE1D_LAYERED_WIDTH = 61,
        MAXIMUM_SURFACE1D_LAYERED_LAYERS = 62,
        MAXIMUM_SURFACE2D_LAYERED_WIDTH = 63,
        MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 64,
        MAXIMUM_SURFACE2D_LAYERED_LAYERS = 65,
        MAXIMUM_SURFACECUBEMAP_WIDTH = 66,
        MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = 67,
        MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 68,
        MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69,
        MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70,
        MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71,
        MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72,
        MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = 73,
        MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 74,
        COMPUTE_CAPABILITY_MAJOR = 75,
        COMPUTE_CAPABILITY_MINOR = 76,
        MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = 77,
        STREAM_PRIORITIES_SUPPORTED = 78,
        GLOBAL_L1_CACHE_SUPPORTED = 79,
        LOCAL_L1_CACHE_SUPPORTED = 80,
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
        MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
        MANAGED_MEMORY = 83,
        MULTI_GPU_BOARD = 84,
        MULTI_GPU_BOARD_GROUP_ID = 85,
        HOST_NATIVE_ATOMIC_SUPPORTED = 86,
        SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
        PAGEABLE_MEMORY_ACCESS = 88,
        CONCURRENT_MANAGED_ACCESS = 89,
        COMPUTE_PREEMPTION_SUPPORTED = 90,
        CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
        CAN_USE_STREAM_MEM_OPS_V1 = 92,
        CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93,
        CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94,
        COOPERATIVE_LAUNCH = 95,
        COOPERATIVE_MULTI_DEVICE_LAUNCH = 96,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
        CAN_FLUSH_REMOTE_WRITES = 98,
        HOST_REGISTER_SUPPORTED = 99,
        PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
        DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101,
        VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102,
        VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
        HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
        HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104,
        HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105,
        MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
        GENERIC_COMPRESSION_SUPPORTED = 107,
        MAX_PERSISTING_L2_CACHE_SIZE = 108,
        MAX_ACCESS_POLICY_WINDOW_SIZE = 109,
        GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
        RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
        SPARSE_CUDA_ARRAY_SUPPORTED = 112,
        READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
        TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114,
        MEMORY_POOLS_SUPPORTED = 115,
        GPU_DIRECT_RDMA_SUPPORTED = 116,
        GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
        GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
        MEMPOOL_SUPPORTED_HANDLE_TYPES = 119,
        CLUSTER_LAUNCH = 120,
        DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121,
        CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
        CAN_USE_STREAM_WAIT_VALUE_NOR = 123,
        DMA_BUF_SUPPORTED = 124,
        IPC_EVENT_SUPPORTED = 125,
        MEM_SYNC_DOMAIN_COUNT = 126,
        TENSOR_MAP_ACCESS_SUPPORTED = 127,
        HANDLE_TYPE_FABRIC_SUPPORTED = 128,
        UNIFIED_FUNCTION_POINTERS = 129,
        NUMA_CONFIG = 130,
        NUMA_ID = 131,
        MULTICAST_SUPPORTED = 132,
        MPS_ENABLED = 133,
        HOST_NUMA_ID = 134,
        D3D12_CIG_SUPPORTED = 135,
        MEM_DECOMPRESS_ALGORITHM_MASK = 136,
        MEM_DECOMPRESS_MAXIMUM_LENGTH = 137,
        VULKAN_CIG_SUPPORTED = 138,
        GPU_PCI_DEVICE_ID = 139,
        GPU_PCI_SUBSYSTEM_ID = 140,
        HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 141,
        HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142,
        HOST_NUMA_MULTINODE_IPC_SUPPORTED = 143,
        MAX = 144,
    }
}

c_enum! {
    /// What `cuDeviceGetP2PAttribute` asks for.
    CUdevice_P2PAttribute {
        PERFORMANCE_RANK = 1,
        ACCESS_SUPPORTED = 2,
        NATIVE_ATOMIC_SUPPORTED = 3,
        ACCESS_ACCESS_SUPPORTED = 4,
        CUDA_ARRAY_ACCESS_SUPPORTED = 4,
    }
}

c_enum! {
    /// What `cuPointerGetAttribute` asks for.
    CUpointer_attribute {
        CONTEXT = 1,
        MEMORY_TYPE = 2,
        DEVICE_POINTER = 3,
        HOST_POINTER = 4,
        P2P_TOKENS = 5,
        SYNC_MEMOPS = 6,
        BUFFER_ID = 7,
        IS_MANAGED = 8,
        DEVICE_ORDINAL = 9,
        IS_LEGACY_CUDA_IPC_CAPABLE = 10,
        RANGE_START_ADDR = 11,
        RANGE_SIZE = 12,
        MAPPED = 13,
        ALLOWED_HANDLE_TYPES = 14,
        IS_GPU_DIRECT_RDMA_CAPABLE = 15,
        ACCESS_FLAGS = 16,
        MEMPOOL_HANDLE = 17,
        MAPPING_SIZE = 18,
        MAPPING_BASE_ADDR = 19,
        MEMORY_BLOCK_ID = 20,
        IS_HW_DECOMPRESS_CAPABLE = 21,
    }
}

c_enum! {
    /// Where memory lies, in copies and in the answer to `MEMORY_TYPE`.
    CUmemorytype {
        HOST = 1,
        DEVICE = 2,
        ARRAY = 3,
        UNIFIED = 4,
    }
}

c_enum! {
    /// Flags of contexts: how a thread waits for the device, and more.
    CUctx_flags {
        SCHED_AUTO = 0,
        SCHED_SPIN = 1,
        SCHED_YIELD = 2,
        SCHED_BLOCKING_SYNC = 4,
        BLOCKING_SYNC = 4,
        SCHED_MASK = 7,
        MAP_HOST = 8,
        LMEM_RESIZE_TO_MAX = 16,
        COREDUMP_ENABLE = 32,
        USER_COREDUMP_ENABLE = 64,
        SYNC_MEMOPS = 128,
        FLAGS_MASK = 255,
    }
}

c_enum! {
    /// Limits of a context (`cuCtxSetLimit`).
    CUlimit {
        STACK_SIZE = 0,
        PRINTF_FIFO_SIZE = 1,
        MALLOC_HEAP_SIZE = 2,
        DEV_RUNTIME_SYNC_DEPTH = 3,
        DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
        MAX_L2_FETCH_GRANULARITY = 5,
        PERSISTING_L2_CACHE_SIZE = 6,
        SHMEM_SIZE = 7,
        CIG_ENABLED = 8,
        CIG_SHMEM_FALLBACK_ENABLED = 9,
        MAX = 10,
    }
}

c_enum! {
    /// Preference between L1 cache and shared memory; of no effect on CDNA.
    CUfunc_cache {
        NONE = 0,
        SHARED = 1,
        L1 = 2,
        EQUAL = 3,
    }
}

c_enum! {
    /// Width of shared memory banks; of no effect on CDNA.
    CUsharedconfig {
        DEFAULT_BANK_SIZE = 0,
        FOUR_BYTE_BANK_SIZE = 1,
        EIGHT_BYTE_BANK_SIZE = 2,
    }
}

c_enum! {
    /// How many processes may use a device.
    CUcomputemode {
        DEFAULT = 0,
        PROHIBITED = 2,
        EXCLUSIVE_PROCESS = 3,
    }
}

c_enum! {
    /// What kind of place a [`CUmemLocation`](super::CUmemLocation) is.
    CUmemLocationType {
        INVALID = 0,
        DEVICE = 1,
        HOST = 2,
        HOST_NUMA = 3,
        HOST_NUMA_CURRENT = 4,
        MAX = 2147483647,
    }
}

c_enum! {
    /// What kind of allocation `cuMemCreate` makes.
    CUmemAllocationType {
        INVALID = 0,
        PINNED = 1,
        MAX = 2147483647,
    }
}

c_enum! {
    /// How an allocation can leave the process.
    CUmemAllocationHandleType {
        NONE = 0,
        POSIX_FILE_DESCRIPTOR = 1,
        WIN32 = 2,
        WIN32_KMT = 4,
        FABRIC = 8,
        MAX = 2147483647,
    }
}

c_enum! {
    /// What a location may do with a mapping.
    CUmemAccess_flags {
        NONE = 0,
        READ = 1,
        READWRITE = 3,
        MAX = 2147483647,
    }
}

c_enum! {
    /// Whether the smallest or the best granularity is asked for.
    CUmemAllocationGranularity_flags {
        MINIMUM = 0,
        RECOMMENDED = 1,
    }
}

c_enum! {
    /// What kind of handle `cuMemGetHandleForAddressRange` gives; the one kind is a dma-buf.
    CUmemRangeHandleType {
        DMA_BUF_FD = 1,
        MAX = 2147483647,
    }
}

c_enum! {
    /// How the handle of an address range is to be mapped by others.
    CUmemRangeFlags {
        PCIE = 1,
    }
}

c_enum! {
    /// Whether an allocation may be compressed; never here.
    CUmemAllocationCompType {
        NONE = 0,
        GENERIC = 1,
    }
}

c_enum! {
    /// What `cuMemAdvise` says of managed memory.
    CUmem_advise {
        SET_READ_MOSTLY = 1,
        UNSET_READ_MOSTLY = 2,
        SET_PREFERRED_LOCATION = 3,
        UNSET_PREFERRED_LOCATION = 4,
        SET_ACCESSED_BY = 5,
        UNSET_ACCESSED_BY = 6,
    }
}

c_enum! {
    /// What `cuMemRangeGetAttribute` asks of managed memory.
    CUmem_range_attribute {
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
    CUmemPool_attribute {
        REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
        REUSE_ALLOW_OPPORTUNISTIC = 2,
        REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        RELEASE_THRESHOLD = 4,
        RESERVED_MEM_CURRENT = 5,
        RESERVED_MEM_HIGH = 6,
        USED_MEM_CURRENT = 7,
        USED_MEM_HIGH = 8,
    }
}

c_enum! {
    /// Who may use managed memory at first.
    CUmemAttach_flags {
        GLOBAL = 1,
        HOST = 2,
        SINGLE = 4,
    }
}

c_enum! {
    /// Flags of `cuIpcOpenMemHandle`.
    CUipcMem_flags {
        ACCESS = 1,
    }
}

c_enum! {
    /// The answer to the pointer attribute `ACCESS_FLAGS`.
    CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS {
        NONE = 0,
        READ = 1,
        READWRITE = 3,
    }
}

c_enum! {
    /// Ways to flush what a network card wrote.
    CUflushGPUDirectRDMAWritesOptions {
        HOST = 1,
        MEMOPS = 2,
    }
}

c_enum! {
    /// Flags of `cuStreamCreate`.
    CUstream_flags {
        DEFAULT = 0,
        NON_BLOCKING = 1,
    }
}

c_enum! {
    /// Flags of `cuEventCreate`.
    CUevent_flags {
        DEFAULT = 0,
        BLOCKING_SYNC = 1,
        DISABLE_TIMING = 2,
        INTERPROCESS = 4,
    }
}

c_enum! {
    /// Flags of `cuEventRecordWithFlags`.
    CUevent_record_flags {
        DEFAULT = 0,
        EXTERNAL = 1,
    }
}

c_enum! {
    /// Flags of `cuStreamWaitEvent`.
    CUevent_wait_flags {
        DEFAULT = 0,
        EXTERNAL = 1,
    }
}

c_enum! {
    /// How `cuStreamWaitValue32` and `64` compare.
    CUstreamWaitValue_flags {
        GEQ = 0,
        EQ = 1,
        AND = 2,
        NOR = 3,
        FLUSH = 1073741824,
    }
}

c_enum! {
    /// Flags of `cuStreamWriteValue32` and `64`.
    CUstreamWriteValue_flags {
        DEFAULT = 0,
        NO_MEMORY_BARRIER = 1,
    }
}

c_enum! {
    /// What one operation of `cuStreamBatchMemOp` does.
    CUstreamBatchMemOpType {
        WAIT_VALUE_32 = 1,
        WRITE_VALUE_32 = 2,
        WAIT_VALUE_64 = 4,
        WRITE_VALUE_64 = 5,
        BARRIER = 6,
        FLUSH_REMOTE_WRITES = 3,
    }
}

c_enum! {
    /// Scope of a barrier in `cuStreamBatchMemOp`.
    CUstreamMemoryBarrier_flags {
        SYS = 0,
        GPU = 1,
    }
}

c_enum! {
    /// Which calls of other threads a capture forbids.
    CUstreamCaptureMode {
        GLOBAL = 0,
        THREAD_LOCAL = 1,
        RELAXED = 2,
    }
}

c_enum! {
    /// Whether a stream is being captured.
    CUstreamCaptureStatus {
        NONE = 0,
        ACTIVE = 1,
        INVALIDATED = 2,
    }
}

c_enum! {
    /// What `cuFuncGetAttribute` asks for and `cuFuncSetAttribute` sets.
    CUfunction_attribute {
        MAX_THREADS_PER_BLOCK = 0,
        SHARED_SIZE_BYTES = 1,
        CONST_SIZE_BYTES = 2,
        LOCAL_SIZE_BYTES = 3,
        NUM_REGS = 4,
        PTX_VERSION = 5,
        BINARY_VERSION = 6,
        CACHE_MODE_CA = 7,
        MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
        PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
        CLUSTER_SIZE_MUST_BE_SET = 10,
        REQUIRED_CLUSTER_WIDTH = 11,
        REQUIRED_CLUSTER_HEIGHT = 12,
        REQUIRED_CLUSTER_DEPTH = 13,
        NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
        CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
        MAX = 16,
    }
}

c_enum! {
    /// Whether a function has been loaded.
    CUfunctionLoadingState {
        UNLOADED = 0,
        LOADED = 1,
        MAX = 2,
    }
}

c_enum! {
    /// Flags of the occupancy calls.
    CUoccupancy_flags {
        DEFAULT = 0,
        DISABLE_CACHING_OVERRIDE = 1,
    }
}

c_enum! {
    /// What a launch attribute sets.
    CUlaunchAttributeID {
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
    /// Options of loading and linking code.
    CUjit_option {
        MAX_REGISTERS = 0,
        THREADS_PER_BLOCK = 1,
        WALL_TIME = 2,
        INFO_LOG_BUFFER = 3,
        INFO_LOG_BUFFER_SIZE_BYTES = 4,
        ERROR_LOG_BUFFER = 5,
        ERROR_LOG_BUFFER_SIZE_BYTES = 6,
        OPTIMIZATION_LEVEL = 7,
        TARGET_FROM_CUCONTEXT = 8,
        TARGET = 9,
        FALLBACK_STRATEGY = 10,
        GENERATE_DEBUG_INFO = 11,
        LOG_VERBOSE = 12,
        GENERATE_LINE_INFO = 13,
        CACHE_MODE = 14,
        NEW_SM3X_OPT = 15,
        FAST_COMPILE = 16,
        GLOBAL_SYMBOL_NAMES = 17,
        GLOBAL_SYMBOL_ADDRESSES = 18,
        GLOBAL_SYMBOL_COUNT = 19,
        LTO = 20,
        FTZ = 21,
        PREC_DIV = 22,
        PREC_SQRT = 23,
        FMA = 24,
        REFERENCED_KERNEL_NAMES = 25,
        REFERENCED_KERNEL_COUNT = 26,
        REFERENCED_VARIABLE_NAMES = 27,
        REFERENCED_VARIABLE_COUNT = 28,
        OPTIMIZE_UNUSED_DEVICE_VARIABLES = 29,
        POSITION_INDEPENDENT_CODE = 30,
        MIN_CTA_PER_SM = 31,
        MAX_THREADS_PER_BLOCK = 32,
        OVERRIDE_DIRECTIVE_VALUES = 33,
        NUM_OPTIONS = 34,
    }
}

c_enum! {
    /// What is given to the linker.
    CUjitInputType {
        INPUT_CUBIN = 0,
        INPUT_PTX = 1,
        INPUT_FATBINARY = 2,
        INPUT_OBJECT = 3,
        INPUT_LIBRARY = 4,
        INPUT_NVVM = 5,
        NUM_INPUT_TYPES = 6,
    }
}

c_enum! {
    /// Capabilities that code can be compiled for.
    CUjit_target {
        COMPUTE_30 = 30,
        COMPUTE_32 = 32,
        COMPUTE_35 = 35,
        COMPUTE_37 = 37,
        COMPUTE_50 = 50,
        COMPUTE_52 = 52,
        COMPUTE_53 = 53,
        COMPUTE_60 = 60,
        COMPUTE_61 = 61,
        COMPUTE_62 = 62,
        COMPUTE_70 = 70,
        COMPUTE_72 = 72,
        COMPUTE_75 = 75,
        COMPUTE_80 = 80,
        COMPUTE_86 = 86,
        COMPUTE_87 = 87,
        COMPUTE_89 = 89,
        COMPUTE_90 = 90,
        COMPUTE_100 = 100,
        COMPUTE_101 = 101,
        COMPUTE_103 = 103,
        COMPUTE_120 = 120,
        COMPUTE_121 = 121,
        COMPUTE_90A = 65626,
        COMPUTE_100A = 65636,
        COMPUTE_101A = 65637,
        COMPUTE_103A = 65639,
        COMPUTE_120A = 65656,
        COMPUTE_121A = 65657,
        COMPUTE_100F = 131172,
        COMPUTE_101F = 131173,
        COMPUTE_103F = 131175,
        COMPUTE_120F = 131192,
        COMPUTE_121F = 131193,
    }
}

c_enum! {
    /// Options of `cuLibraryLoadData`.
    CUlibraryOption {
        HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
        BINARY_IS_PRESERVED = 1,
        NUM_OPTIONS = 2,
    }
}

c_enum! {
    /// Whether modules are loaded at once or when needed.
    CUmoduleLoadingMode {
        EAGER_LOADING = 1,
        LAZY_LOADING = 2,
    }
}

c_enum! {
    /// Type of the elements of an array.
    CUarray_format {
        UNSIGNED_INT8 = 1,
        UNSIGNED_INT16 = 2,
        UNSIGNED_INT32 = 3,
        SIGNED_INT8 = 8,
        SIGNED_INT16 = 9,
        SIGNED_INT32 = 10,
        HALF = 16,
        FLOAT = 32,
        NV12 = 176,
        UNORM_INT8X1 = 192,
        UNORM_INT8X2 = 193,
        UNORM_INT8X4 = 194,
        UNORM_INT16X1 = 195,
        UNORM_INT16X2 = 196,
        UNORM_INT16X4 = 197,
        SNORM_INT8X1 = 198,
        SNORM_INT8X2 = 199,
        SNORM_INT8X4 = 200,
        SNORM_INT16X1 = 201,
        SNORM_INT16X2 = 202,
        SNORM_INT16X4 = 203,
        BC1_UNORM = 145,
        BC1_UNORM_SRGB = 146,
        BC2_UNORM = 147,
        BC2_UNORM_SRGB = 148,
        BC3_UNORM = 149,
        BC3_UNORM_SRGB = 150,
        BC4_UNORM = 151,
        BC4_SNORM = 152,
        BC5_UNORM = 153,
        BC5_SNORM = 154,
        BC6H_UF16 = 155,
        BC6H_SF16 = 156,
        BC7_UNORM = 157,
        BC7_UNORM_SRGB = 158,
        P010 = 159,
        P016 = 161,
        NV16 = 162,
        P210 = 163,
        P216 = 164,
        YUY2 = 165,
        Y210 = 166,
        Y216 = 167,
        AYUV = 168,
        Y410 = 169,
        Y416 = 177,
        Y444_PLANAR8 = 178,
        Y444_PLANAR10 = 179,
        YUV444_8BIT_SEMIPLANAR = 180,
        YUV444_16BIT_SEMIPLANAR = 181,
        UNORM_INT_101010_2 = 80,
        MAX = 2147483647,
    }
}

c_enum! {
    /// Kinds of execution affinity.
    CUexecAffinityType {
        SM_COUNT = 0,
        MAX = 1,
    }
}

c_enum! {
    /// Which kind of default stream `cuGetProcAddress` is asked for.
    CUdriverProcAddress_flags {
        DEFAULT = 0,
        LEGACY_STREAM = 1,
        PER_THREAD_DEFAULT_STREAM = 2,
    }
}

c_enum! {
    /// Why `cuGetProcAddress` gives no address.
    CUdriverProcAddressQueryResult {
        SUCCESS = 0,
        SYMBOL_NOT_FOUND = 1,
        VERSION_NOT_SUFFICIENT = 2,
    }
}

c_enum! {
    /// How the L2 cache treats accesses; of no effect on CDNA.
    CUaccessProperty {
        NORMAL = 0,
        STREAMING = 1,
        PERSISTING = 2,
    }
}

c_enum! {
    /// How a thread waits for a stream.
    CUsynchronizationPolicy {
        AUTO = 1,
        SPIN = 2,
        YIELD = 3,
        BLOCKING_SYNC = 4,
    }
}

c_enum! {
    /// How clusters are spread; CDNA has none.
    CUclusterSchedulingPolicy {
        DEFAULT = 0,
        SPREAD = 1,
        LOAD_BALANCING = 2,
    }
}

c_enum! {
    /// Domains of memory fences; of no effect on CDNA.
    CUlaunchMemSyncDomain {
        DEFAULT = 0,
        REMOTE = 1,
    }
}

c_enum! {
    /// What a node of a graph does.
    CUgraphNodeType {
        KERNEL = 0,
        MEMCPY = 1,
        MEMSET = 2,
        HOST = 3,
        GRAPH = 4,
        EMPTY = 5,
        WAIT_EVENT = 6,
        EVENT_RECORD = 7,
        EXT_SEMAS_SIGNAL = 8,
        EXT_SEMAS_WAIT = 9,
        MEM_ALLOC = 10,
        MEM_FREE = 11,
        BATCH_MEM_OP = 12,
        CONDITIONAL = 13,
    }
}

c_enum! {
    /// Flags of `cuGraphInstantiate`.
    CUgraphInstantiate_flags {
        AUTO_FREE_ON_LAUNCH = 1,
        UPLOAD = 2,
        DEVICE_LAUNCH = 4,
        USE_NODE_PRIORITY = 8,
    }
}

c_enum! {
    /// Why a graph could not be instantiated.
    CUgraphInstantiateResult {
        SUCCESS = 0,
        ERROR = 1,
        INVALID_STRUCTURE = 2,
        NODE_OPERATION_NOT_SUPPORTED = 3,
        MULTIPLE_CTXS_NOT_SUPPORTED = 4,
        CONDITIONAL_HANDLE_UNUSED = 5,
    }
}

c_enum! {
    /// Why an executable graph could not be updated.
    CUgraphExecUpdateResult {
        SUCCESS = 0,
        ERROR = 1,
        ERROR_TOPOLOGY_CHANGED = 2,
        ERROR_NODE_TYPE_CHANGED = 3,
        ERROR_FUNCTION_CHANGED = 4,
        ERROR_PARAMETERS_CHANGED = 5,
        ERROR_NOT_SUPPORTED = 6,
        ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
        ERROR_ATTRIBUTES_CHANGED = 8,
    }
}

c_enum! {
    /// How much of the on-chip memory shared memory gets; of no effect on CDNA.
    CUshared_carveout {
        DEFAULT = -1,
        MAX_SHARED = 100,
        MAX_L1 = 0,
    }
}

c_enum! {
    /// Graphics context that a context is made for; none here.
    CUcigDataType {
        D3D12_COMMAND_QUEUE = 1,
        NV_BLOB = 2,
    }
}

c_enum! {
    /// What a side of a copy of a batch is.
    CUmemcpy3DOperandType {
        POINTER = 1,
        ARRAY = 2,
    }
}

c_enum! {
    /// What a texture or surface object reads.
    CUresourcetype {
        ARRAY = 0,
        MIPMAPPED_ARRAY = 1,
        LINEAR = 2,
        PITCH2D = 3,
    }
}
