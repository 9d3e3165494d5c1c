//! Sizes, alignments and offsets of CUDA's structures, asserted at compile time.
//!
//! Printed by `tests/abi/layout.c` from NVIDIA's 12.9 headers; do not edit.

use super::assert_layout;
use super::driver_types::*;
use super::graph_types::*;
use super::runtime_types::*;
use super::texture_types::*;

assert_layout! {
    CUuuid: 16, 1 {
        bytes: 0,
    }
    CUipcEventHandle: 64, 1 {
        reserved: 0,
    }
    CUipcMemHandle: 64, 1 {
        reserved: 0,
    }
    CUmemFabricHandle: 64, 1 {
        data: 0,
    }
    CUdevprop: 56, 4 {
        maxThreadsPerBlock: 0,
        maxThreadsDim: 4,
        maxGridSize: 16,
        sharedMemPerBlock: 28,
        totalConstantMemory: 32,
        SIMDWidth: 36,
        memPitch: 40,
        regsPerBlock: 44,
        clockRate: 48,
        textureAlign: 52,
    }
    CUmemLocation: 8, 4 {
        r#type: 0,
        id: 4,
    }
    CUmemAllocationProp_allocFlags: 8, 2 {
        compressionType: 0,
        gpuDirectRDMACapable: 1,
        usage: 2,
        reserved: 4,
    }
    CUmemAllocationProp: 32, 8 {
        r#type: 0,
        requestedHandleTypes: 4,
        location: 8,
        win32HandleMetaData: 16,
        allocFlags: 24,
    }
    CUmemAccessDesc: 12, 4 {
        location: 0,
        flags: 8,
    }
    CUmemPoolProps: 88, 8 {
        allocType: 0,
        handleTypes: 4,
        location: 8,
        win32SecurityAttributes: 16,
        maxSize: 24,
        usage: 32,
        reserved: 34,
    }
    CUmemPoolPtrExportData: 64, 1 {
        reserved: 0,
    }
    CUmulticastObjectProp: 32, 8 {
        numDevices: 0,
        size: 8,
        handleTypes: 16,
        flags: 24,
    }
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS: 16, 8 {
        p2pToken: 0,
        vaSpaceToken: 8,
    }
    CUDA_ARRAY_DESCRIPTOR: 24, 8 {
        Width: 0,
        Height: 8,
        Format: 16,
        NumChannels: 20,
    }
    CUDA_ARRAY3D_DESCRIPTOR: 40, 8 {
        Width: 0,
        Height: 8,
        Depth: 16,
        Format: 24,
        NumChannels: 28,
        Flags: 32,
    }
    CUDA_MEMCPY2D: 128, 8 {
        srcXInBytes: 0,
        srcY: 8,
        srcMemoryType: 16,
        srcHost: 24,
        srcDevice: 32,
        srcArray: 40,
        srcPitch: 48,
        dstXInBytes: 56,
        dstY: 64,
        dstMemoryType: 72,
        dstHost: 80,
        dstDevice: 88,
        dstArray: 96,
        dstPitch: 104,
        WidthInBytes: 112,
        Height: 120,
    }
    CUDA_MEMCPY3D: 200, 8 {
        srcXInBytes: 0,
        srcY: 8,
        srcZ: 16,
        srcLOD: 24,
        srcMemoryType: 32,
        srcHost: 40,
        srcDevice: 48,
        srcArray: 56,
        reserved0: 64,
        srcPitch: 72,
        srcHeight: 80,
        dstXInBytes: 88,
        dstY: 96,
        dstZ: 104,
        dstLOD: 112,
        dstMemoryType: 120,
        dstHost: 128,
        dstDevice: 136,
        dstArray: 144,
        reserved1: 152,
        dstPitch: 160,
        dstHeight: 168,
        WidthInBytes: 176,
        Height: 184,
        Depth: 192,
    }
    CUDA_MEMCPY3D_PEER: 200, 8 {
        srcXInBytes: 0,
        srcY: 8,
        srcZ: 16,
        srcLOD: 24,
        srcMemoryType: 32,
        srcHost: 40,
        srcDevice: 48,
        srcArray: 56,
        srcContext: 64,
        srcPitch: 72,
        srcHeight: 80,
        dstXInBytes: 88,
        dstY: 96,
        dstZ: 104,
        dstLOD: 112,
        dstMemoryType: 120,
        dstHost: 128,
        dstDevice: 136,
        dstArray: 144,
        dstContext: 152,
        dstPitch: 160,
        dstHeight: 168,
        WidthInBytes: 176,
        Height: 184,
        Depth: 192,
    }
    CUstreamBatchMemOpParams_waitValue: 40, 8 {
        operation: 0,
        address: 8,
        flags: 24,
        alias: 32,
    }
    CUstreamBatchMemOpParams_writeValue: 40, 8 {
        operation: 0,
        address: 8,
        flags: 24,
        alias: 32,
    }
    CUstreamBatchMemOpParams_flushRemoteWrites: 8, 4 {
        operation: 0,
        flags: 4,
    }
    CUstreamBatchMemOpParams_memoryBarrier: 8, 4 {
        operation: 0,
        flags: 4,
    }
    CUstreamBatchMemOpParams: 48, 8 {
        operation: 0,
        waitValue: 0,
        writeValue: 0,
        flushRemoteWrites: 0,
        memoryBarrier: 0,
        pad: 0,
    }
    CUaccessPolicyWindow: 32, 8 {
        base_ptr: 0,
        num_bytes: 8,
        hitRatio: 16,
        hitProp: 20,
        missProp: 24,
    }
    CUlaunchMemSyncDomainMap: 2, 1 {
        default_: 0,
        remote: 1,
    }
    CUlaunchAttributeValue_clusterDim: 12, 4 {
        x: 0,
        y: 4,
        z: 8,
    }
    CUlaunchAttributeValue_programmaticEvent: 16, 8 {
        event: 0,
        flags: 8,
        triggerAtBlockStart: 12,
    }
    CUlaunchAttributeValue_launchCompletionEvent: 16, 8 {
        event: 0,
        flags: 8,
    }
    CUlaunchAttributeValue_preferredClusterDim: 12, 4 {
        x: 0,
        y: 4,
        z: 8,
    }
    CUlaunchAttributeValue_deviceUpdatableKernelNode: 16, 8 {
        deviceUpdatable: 0,
        devNode: 8,
    }
    CUlaunchAttributeValue: 64, 8 {
        pad: 0,
        accessPolicyWindow: 0,
        cooperative: 0,
        syncPolicy: 0,
        clusterDim: 0,
        clusterSchedulingPolicyPreference: 0,
        programmaticStreamSerializationAllowed: 0,
        programmaticEvent: 0,
        launchCompletionEvent: 0,
        priority: 0,
        memSyncDomainMap: 0,
        memSyncDomain: 0,
        preferredClusterDim: 0,
        deviceUpdatableKernelNode: 0,
        sharedMemCarveout: 0,
    }
    CUlaunchAttribute: 72, 8 {
        id: 0,
        pad: 4,
        value: 8,
    }
    CUlaunchConfig: 56, 8 {
        gridDimX: 0,
        gridDimY: 4,
        gridDimZ: 8,
        blockDimX: 12,
        blockDimY: 16,
        blockDimZ: 20,
        sharedMemBytes: 24,
        hStream: 32,
        attrs: 40,
        numAttrs: 48,
    }
    CUDA_LAUNCH_PARAMS: 56, 8 {
        function: 0,
        gridDimX: 8,
        gridDimY: 12,
        gridDimZ: 16,
        blockDimX: 20,
        blockDimY: 24,
        blockDimZ: 28,
        sharedMemBytes: 32,
        hStream: 40,
        kernelParams: 48,
    }
    CUexecAffinitySmCount: 4, 4 {
        val: 0,
    }
    CUexecAffinityParam_param: 4, 4 {
        smCount: 0,
    }
    CUexecAffinityParam: 8, 4 {
        r#type: 0,
        param: 4,
    }
    CUctxCigParam: 16, 8 {
        sharedDataType: 0,
        sharedData: 8,
    }
    CUctxCreateParams: 24, 8 {
        execAffinityParams: 0,
        numExecAffinityParams: 8,
        cigParams: 16,
    }
    CUlibraryHostUniversalFunctionAndDataTable: 32, 8 {
        functionTable: 0,
        functionWindowSize: 8,
        dataTable: 16,
        dataWindowSize: 24,
    }
    dim3: 12, 4 {
        x: 0,
        y: 4,
        z: 8,
    }
    cudaExtent: 24, 8 {
        width: 0,
        height: 8,
        depth: 16,
    }
    cudaPos: 24, 8 {
        x: 0,
        y: 8,
        z: 16,
    }
    cudaPitchedPtr: 32, 8 {
        ptr: 0,
        pitch: 8,
        xsize: 16,
        ysize: 24,
    }
    cudaChannelFormatDesc: 20, 4 {
        x: 0,
        y: 4,
        z: 8,
        w: 12,
        f: 16,
    }
    cudaDeviceProp: 1032, 8 {
        name: 0,
        uuid: 256,
        luid: 272,
        luidDeviceNodeMask: 280,
        totalGlobalMem: 288,
        sharedMemPerBlock: 296,
        regsPerBlock: 304,
        warpSize: 308,
        memPitch: 312,
        maxThreadsPerBlock: 320,
        maxThreadsDim: 324,
        maxGridSize: 336,
        clockRate: 348,
        totalConstMem: 352,
        major: 360,
        minor: 364,
        textureAlignment: 368,
        texturePitchAlignment: 376,
        deviceOverlap: 384,
        multiProcessorCount: 388,
        kernelExecTimeoutEnabled: 392,
        integrated: 396,
        canMapHostMemory: 400,
        computeMode: 404,
        maxTexture1D: 408,
        maxTexture1DMipmap: 412,
        maxTexture1DLinear: 416,
        maxTexture2D: 420,
        maxTexture2DMipmap: 428,
        maxTexture2DLinear: 436,
        maxTexture2DGather: 448,
        maxTexture3D: 456,
        maxTexture3DAlt: 468,
        maxTextureCubemap: 480,
        maxTexture1DLayered: 484,
        maxTexture2DLayered: 492,
        maxTextureCubemapLayered: 504,
        maxSurface1D: 512,
        maxSurface2D: 516,
        maxSurface3D: 524,
        maxSurface1DLayered: 536,
        maxSurface2DLayered: 544,
        maxSurfaceCubemap: 556,
        maxSurfaceCubemapLayered: 560,
        surfaceAlignment: 568,
        concurrentKernels: 576,
        ECCEnabled: 580,
        pciBusID: 584,
        pciDeviceID: 588,
        pciDomainID: 592,
        tccDriver: 596,
        asyncEngineCount: 600,
        unifiedAddressing: 604,
        memoryClockRate: 608,
        memoryBusWidth: 612,
        l2CacheSize: 616,
        persistingL2CacheMaxSize: 620,
        maxThreadsPerMultiProcessor: 624,
        streamPrioritiesSupported: 628,
        globalL1CacheSupported: 632,
        localL1CacheSupported: 636,
        sharedMemPerMultiprocessor: 640,
        regsPerMultiprocessor: 648,
        managedMemory: 652,
        isMultiGpuBoard: 656,
        multiGpuBoardGroupID: 660,
        hostNativeAtomicSupported: 664,
        singleToDoublePrecisionPerfRatio: 668,
        pageableMemoryAccess: 672,
        concurrentManagedAccess: 676,
        computePreemptionSupported: 680,
        canUseHostPointerForRegisteredMem: 684,
        cooperativeLaunch: 688,
        cooperativeMultiDeviceLaunch: 692,
        sharedMemPerBlockOptin: 696,
        pageableMemoryAccessUsesHostPageTables: 704,
        directManagedMemAccessFromHost: 708,
        maxBlocksPerMultiProcessor: 712,
        accessPolicyMaxWindowSize: 716,
        reservedSharedMemPerBlock: 720,
        hostRegisterSupported: 728,
        sparseCudaArraySupported: 732,
        hostRegisterReadOnlySupported: 736,
        timelineSemaphoreInteropSupported: 740,
        memoryPoolsSupported: 744,
        gpuDirectRDMASupported: 748,
        gpuDirectRDMAFlushWritesOptions: 752,
        gpuDirectRDMAWritesOrdering: 756,
        memoryPoolSupportedHandleTypes: 760,
        deferredMappingCudaArraySupported: 764,
        ipcEventSupported: 768,
        clusterLaunch: 772,
        unifiedFunctionPointers: 776,
        reserved: 780,
    }
    cudaPointerAttributes: 24, 8 {
        r#type: 0,
        device: 4,
        devicePointer: 8,
        hostPointer: 16,
    }
    cudaFuncAttributes: 144, 8 {
        sharedSizeBytes: 0,
        constSizeBytes: 8,
        localSizeBytes: 16,
        maxThreadsPerBlock: 24,
        numRegs: 28,
        ptxVersion: 32,
        binaryVersion: 36,
        cacheModeCA: 40,
        maxDynamicSharedSizeBytes: 44,
        preferredShmemCarveout: 48,
        clusterDimMustBeSet: 52,
        requiredClusterWidth: 56,
        requiredClusterHeight: 60,
        requiredClusterDepth: 64,
        clusterSchedulingPolicyPreference: 68,
        nonPortableClusterSizeAllowed: 72,
        reserved: 76,
    }
    cudaIpcEventHandle_t: 64, 1 {
        reserved: 0,
    }
    cudaIpcMemHandle_t: 64, 1 {
        reserved: 0,
    }
    cudaMemFabricHandle_t: 64, 1 {
        reserved: 0,
    }
    cudaMemcpy3DParms: 160, 8 {
        srcArray: 0,
        srcPos: 8,
        srcPtr: 32,
        dstArray: 64,
        dstPos: 72,
        dstPtr: 96,
        extent: 128,
        kind: 152,
    }
    cudaMemcpy3DPeerParms: 168, 8 {
        srcArray: 0,
        srcPos: 8,
        srcPtr: 32,
        srcDevice: 64,
        dstArray: 72,
        dstPos: 80,
        dstPtr: 104,
        dstDevice: 136,
        extent: 144,
    }
    cudaMemLocation: 8, 4 {
        r#type: 0,
        id: 4,
    }
    cudaMemAccessDesc: 12, 4 {
        location: 0,
        flags: 8,
    }
    cudaMemPoolProps: 88, 8 {
        allocType: 0,
        handleTypes: 4,
        location: 8,
        win32SecurityAttributes: 16,
        maxSize: 24,
        usage: 32,
        reserved: 34,
    }
    cudaMemPoolPtrExportData: 64, 1 {
        reserved: 0,
    }
    cudaAccessPolicyWindow: 32, 8 {
        base_ptr: 0,
        num_bytes: 8,
        hitRatio: 16,
        hitProp: 20,
        missProp: 24,
    }
    cudaLaunchMemSyncDomainMap: 2, 1 {
        default_: 0,
        remote: 1,
    }
    cudaLaunchAttributeValue_clusterDim: 12, 4 {
        x: 0,
        y: 4,
        z: 8,
    }
    cudaLaunchAttributeValue_programmaticEvent: 16, 8 {
        event: 0,
        flags: 8,
        triggerAtBlockStart: 12,
    }
    cudaLaunchAttributeValue_preferredClusterDim: 12, 4 {
        x: 0,
        y: 4,
        z: 8,
    }
    cudaLaunchAttributeValue_launchCompletionEvent: 16, 8 {
        event: 0,
        flags: 8,
    }
    cudaLaunchAttributeValue_deviceUpdatableKernelNode: 16, 8 {
        deviceUpdatable: 0,
        devNode: 8,
    }
    cudaLaunchAttributeValue: 64, 8 {
        pad: 0,
        accessPolicyWindow: 0,
        cooperative: 0,
        syncPolicy: 0,
        clusterDim: 0,
        clusterSchedulingPolicyPreference: 0,
        programmaticStreamSerializationAllowed: 0,
        programmaticEvent: 0,
        priority: 0,
        memSyncDomainMap: 0,
        memSyncDomain: 0,
        preferredClusterDim: 0,
        launchCompletionEvent: 0,
        deviceUpdatableKernelNode: 0,
        sharedMemCarveout: 0,
    }
    cudaLaunchAttribute: 72, 8 {
        id: 0,
        pad: 4,
        val: 8,
    }
    cudaLaunchConfig_t: 56, 8 {
        gridDim: 0,
        blockDim: 12,
        dynamicSmemBytes: 24,
        stream: 32,
        attrs: 40,
        numAttrs: 48,
    }
    cudaLaunchParams: 56, 8 {
        func: 0,
        gridDim: 8,
        blockDim: 20,
        args: 32,
        sharedMem: 40,
        stream: 48,
    }
    CUDA_KERNEL_NODE_PARAMS_v1: 56, 8 {
        func: 0,
        gridDimX: 8,
        gridDimY: 12,
        gridDimZ: 16,
        blockDimX: 20,
        blockDimY: 24,
        blockDimZ: 28,
        sharedMemBytes: 32,
        kernelParams: 40,
        extra: 48,
    }
    CUDA_KERNEL_NODE_PARAMS: 72, 8 {
        func: 0,
        gridDimX: 8,
        gridDimY: 12,
        gridDimZ: 16,
        blockDimX: 20,
        blockDimY: 24,
        blockDimZ: 28,
        sharedMemBytes: 32,
        kernelParams: 40,
        extra: 48,
        kern: 56,
        ctx: 64,
    }
    CUDA_MEMSET_NODE_PARAMS: 40, 8 {
        dst: 0,
        pitch: 8,
        value: 16,
        elementSize: 20,
        width: 24,
        height: 32,
    }
    CUDA_MEMSET_NODE_PARAMS_v2: 48, 8 {
        dst: 0,
        pitch: 8,
        value: 16,
        elementSize: 20,
        width: 24,
        height: 32,
        ctx: 40,
    }
    CUDA_HOST_NODE_PARAMS: 16, 8 {
        r#fn: 0,
        userData: 8,
    }
    CUDA_MEMCPY_NODE_PARAMS: 216, 8 {
        flags: 0,
        reserved: 4,
        copyCtx: 8,
        copyParams: 16,
    }
    CUDA_CHILD_GRAPH_NODE_PARAMS: 16, 8 {
        graph: 0,
        ownership: 8,
    }
    CUDA_EVENT_NODE_PARAMS: 8, 8 {
        event: 0,
    }
    CUDA_BATCH_MEM_OP_NODE_PARAMS: 32, 8 {
        ctx: 0,
        count: 8,
        paramArray: 16,
        flags: 24,
    }
    CUDA_MEM_ALLOC_NODE_PARAMS: 120, 8 {
        poolProps: 0,
        accessDescs: 88,
        accessDescCount: 96,
        bytesize: 104,
        dptr: 112,
    }
    CUDA_MEM_FREE_NODE_PARAMS: 8, 8 {
        dptr: 0,
    }
    CUDA_CONDITIONAL_NODE_PARAMS: 32, 8 {
        handle: 0,
        r#type: 8,
        size: 12,
        phGraph_out: 16,
        ctx: 24,
    }
    cudaConditionalNodeParams: 24, 8 {
        handle: 0,
        r#type: 8,
        size: 12,
        phGraph_out: 16,
    }
    CUDA_GRAPH_INSTANTIATE_PARAMS: 32, 8 {
        flags: 0,
        hUploadStream: 8,
        hErrNode_out: 16,
        result_out: 24,
    }
    CUgraphEdgeData: 8, 1 {
        from_port: 0,
        to_port: 1,
        r#type: 2,
        reserved: 3,
    }
    CUgraphExecUpdateResultInfo: 24, 8 {
        result: 0,
        errorNode: 8,
        errorFromNode: 16,
    }
    CUgraphNodeParams: 256, 8 {
        r#type: 0,
        reserved0: 4,
        u: 16,
        reserved2: 248,
    }
    cudaKernelNodeParams: 56, 8 {
        func: 0,
        gridDim: 8,
        blockDim: 20,
        sharedMemBytes: 32,
        kernelParams: 40,
        extra: 48,
    }
    cudaMemcpyNodeParams: 176, 8 {
        flags: 0,
        reserved: 4,
        copyParams: 16,
    }
    cudaMemAllocNodeParams: 120, 8 {
        poolProps: 0,
        accessDescs: 88,
        accessDescCount: 96,
        bytesize: 104,
        dptr: 112,
    }
    cudaGraphNodeParams: 256, 8 {
        r#type: 0,
        reserved0: 4,
        u: 16,
        reserved2: 248,
    }
    CUmemcpyAttributes: 24, 4 {
        srcAccessOrder: 0,
        srcLocHint: 4,
        dstLocHint: 12,
        flags: 20,
    }
    CUoffset3D: 24, 8 {
        x: 0,
        y: 8,
        z: 16,
    }
    CUextent3D: 24, 8 {
        width: 0,
        height: 8,
        depth: 16,
    }
    CUmemcpy3DOperand_ptr: 32, 8 {
        ptr: 0,
        rowLength: 8,
        layerHeight: 16,
        locHint: 24,
    }
    CUmemcpy3DOperand_array: 32, 8 {
        array: 0,
        offset: 8,
    }
    CUmemcpy3DOperand_op: 32, 8 {
        ptr: 0,
        array: 0,
    }
    CUmemcpy3DOperand: 40, 8 {
        r#type: 0,
        op: 8,
    }
    CUDA_MEMCPY3D_BATCH_OP: 112, 8 {
        src: 0,
        dst: 40,
        extent: 80,
        srcAccessOrder: 104,
        flags: 108,
    }
    CUDA_ARRAY_MEMORY_REQUIREMENTS: 32, 8 {
        size: 0,
        alignment: 8,
        reserved: 16,
    }
    CUDA_ARRAY_SPARSE_PROPERTIES_tileExtent: 12, 4 {
        width: 0,
        height: 4,
        depth: 8,
    }
    CUDA_ARRAY_SPARSE_PROPERTIES: 48, 8 {
        tileExtent: 0,
        miptailFirstLevel: 12,
        miptailSize: 16,
        flags: 24,
        reserved: 28,
    }
    CUDA_RESOURCE_DESC_linear: 24, 8 {
        devPtr: 0,
        format: 8,
        numChannels: 12,
        sizeInBytes: 16,
    }
    CUDA_RESOURCE_DESC_pitch2D: 40, 8 {
        devPtr: 0,
        format: 8,
        numChannels: 12,
        width: 16,
        height: 24,
        pitchInBytes: 32,
    }
    CUDA_RESOURCE_DESC_res: 128, 8 {
        array: 0,
        mipmap: 0,
        linear: 0,
        pitch2D: 0,
        reserved: 0,
    }
    CUDA_RESOURCE_DESC: 144, 8 {
        resType: 0,
        res: 8,
        flags: 136,
    }
    CUDA_TEXTURE_DESC: 104, 4 {
        addressMode: 0,
        filterMode: 12,
        flags: 16,
        maxAnisotropy: 20,
        mipmapFilterMode: 24,
        mipmapLevelBias: 28,
        minMipmapLevelClamp: 32,
        maxMipmapLevelClamp: 36,
        borderColor: 40,
        reserved: 56,
    }
    CUDA_RESOURCE_VIEW_DESC: 112, 8 {
        format: 0,
        width: 8,
        height: 16,
        depth: 24,
        firstMipmapLevel: 32,
        lastMipmapLevel: 36,
        firstLayer: 40,
        lastLayer: 44,
        reserved: 48,
    }
    cudaResourceDesc_linear: 40, 8 {
        devPtr: 0,
        desc: 8,
        sizeInBytes: 32,
    }
    cudaResourceDesc_pitch2D: 56, 8 {
        devPtr: 0,
        desc: 8,
        width: 32,
        height: 40,
        pitchInBytes: 48,
    }
    cudaResourceDesc_res: 56, 8 {
        array: 0,
        mipmap: 0,
        linear: 0,
        pitch2D: 0,
    }
    cudaResourceDesc: 64, 8 {
        resType: 0,
        res: 8,
    }
    cudaTextureDesc: 72, 4 {
        addressMode: 0,
        filterMode: 12,
        readMode: 16,
        sRGB: 20,
        borderColor: 24,
        normalizedCoords: 40,
        maxAnisotropy: 44,
        mipmapFilterMode: 48,
        mipmapLevelBias: 52,
        minMipmapLevelClamp: 56,
        maxMipmapLevelClamp: 60,
        disableTrilinearOptimization: 64,
        seamlessCubemap: 68,
    }
    cudaResourceViewDesc: 48, 8 {
        format: 0,
        width: 8,
        height: 16,
        depth: 24,
        firstMipmapLevel: 32,
        lastMipmapLevel: 36,
        firstLayer: 40,
        lastLayer: 44,
    }
}
