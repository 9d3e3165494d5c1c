//! Names and texts of all error codes, as recorded from NVIDIA's 12.9 runtime and 580 driver.
//!
//! The two APIs share the numbers but not all names: some codes have a name in one of them only.

use core::ffi::CStr;

use super::Error;

/// What the runtime says of a code that it does not know.
const UNRECOGNIZED: &CStr = c"unrecognized error code";

/// A code's names and texts.
struct Entry {
    code: i32,
    /// `cudaGetErrorName` and `cudaGetErrorString`.
    runtime: Option<(&'static CStr, &'static CStr)>,
    /// `cuGetErrorName` and `cuGetErrorString`.
    driver: Option<(&'static CStr, &'static CStr)>,
}

/// A row whose text is the same in both APIs.
const fn both(code: i32, runtime: &'static CStr, driver: &'static CStr, text: &'static CStr) -> Entry {
    Entry {
        code,
        runtime: Some((runtime, text)),
        driver: Some((driver, text)),
    }
}

/// A code of the runtime only.
const fn runtime(code: i32, name: &'static CStr, text: &'static CStr) -> Entry {
    Entry {
        code,
        runtime: Some((name, text)),
        driver: None,
    }
}

/// A code of the driver only.
const fn driver(code: i32, name: &'static CStr, text: &'static CStr) -> Entry {
    Entry {
        code,
        runtime: None,
        driver: Some((name, text)),
    }
}

/// Sorted by code.
static TABLE: &[Entry] = &[
    both(0, c"cudaSuccess", c"CUDA_SUCCESS", c"no error"),
    both(1, c"cudaErrorInvalidValue", c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    both(2, c"cudaErrorMemoryAllocation", c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    both(3, c"cudaErrorInitializationError", c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    both(4, c"cudaErrorCudartUnloading", c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    both(5, c"cudaErrorProfilerDisabled", c"CUDA_ERROR_PROFILER_DISABLED", c"profiler disabled while using external profiling tool"),
    both(6, c"cudaErrorProfilerNotInitialized", c"CUDA_ERROR_PROFILER_NOT_INITIALIZED", c"profiler not initialized: call cudaProfilerInitialize()"),
    both(7, c"cudaErrorProfilerAlreadyStarted", c"CUDA_ERROR_PROFILER_ALREADY_STARTED", c"profiler already started"),
    both(8, c"cudaErrorProfilerAlreadyStopped", c"CUDA_ERROR_PROFILER_ALREADY_STOPPED", c"profiler already stopped"),
    runtime(9, c"cudaErrorInvalidConfiguration", c"invalid configuration argument"),
    runtime(12, c"cudaErrorInvalidPitchValue", c"invalid pitch argument"),
    runtime(13, c"cudaErrorInvalidSymbol", c"invalid device symbol"),
    runtime(16, c"cudaErrorInvalidHostPointer", c"invalid host pointer"),
    runtime(17, c"cudaErrorInvalidDevicePointer", c"invalid device pointer"),
    runtime(18, c"cudaErrorInvalidTexture", c"invalid texture reference"),
    runtime(19, c"cudaErrorInvalidTextureBinding", c"texture is not bound to a pointer"),
    runtime(20, c"cudaErrorInvalidChannelDescriptor", c"invalid channel descriptor"),
    runtime(21, c"cudaErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    runtime(22, c"cudaErrorAddressOfConstant", c"invalid address of constant"),
    runtime(23, c"cudaErrorTextureFetchFailed", c"fetch from texture failed"),
    runtime(24, c"cudaErrorTextureNotBound", c"cannot fetch from a texture that is not bound"),
    runtime(25, c"cudaErrorSynchronizationError", c"incorrect use of __syncthreads()"),
    runtime(26, c"cudaErrorInvalidFilterSetting", c"linear filtering not supported for non-float type"),
    runtime(27, c"cudaErrorInvalidNormSetting", c"read as normalized float not supported for data type"),
    runtime(28, c"cudaErrorMixedDeviceExecution", c"device emulation mode and device execution mode cannot be mixed"),
    runtime(31, c"cudaErrorNotYetImplemented", c"feature not yet implemented"),
    runtime(32, c"cudaErrorMemoryValueTooLarge", c"memory size or pointer value too large to fit in 32 bit"),
    both(34, c"cudaErrorStubLibrary", c"CUDA_ERROR_STUB_LIBRARY", c"CUDA driver is a stub library"),
    runtime(35, c"cudaErrorInsufficientDriver", c"CUDA driver version is insufficient for CUDA runtime version"),
    both(36, c"cudaErrorCallRequiresNewerDriver", c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", c"API call is not supported in the installed CUDA driver"),
    runtime(37, c"cudaErrorInvalidSurface", c"invalid surface reference"),
    runtime(43, c"cudaErrorDuplicateVariableName", c"duplicate global variable looked up by string name"),
    runtime(44, c"cudaErrorDuplicateTextureName", c"duplicate texture looked up by string name"),
    runtime(45, c"cudaErrorDuplicateSurfaceName", c"duplicate surface looked up by string name"),
    both(46, c"cudaErrorDevicesUnavailable", c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable"),
    runtime(49, c"cudaErrorIncompatibleDriverContext", c"incompatible driver context"),
    runtime(52, c"cudaErrorMissingConfiguration", c"__global__ function call is not configured"),
    runtime(53, c"cudaErrorPriorLaunchFailure", c"unspecified launch failure in prior launch"),
    runtime(65, c"cudaErrorLaunchMaxDepthExceeded", c"launch would exceed maximum depth of nested launches"),
    runtime(66, c"cudaErrorLaunchFileScopedTex", c"launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)"),
    runtime(67, c"cudaErrorLaunchFileScopedSurf", c"launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported)"),
    runtime(68, c"cudaErrorSyncDepthExceeded", c"cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth"),
    runtime(69, c"cudaErrorLaunchPendingCountExceeded", c"launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount"),
    runtime(98, c"cudaErrorInvalidDeviceFunction", c"invalid device function"),
    both(100, c"cudaErrorNoDevice", c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
    both(101, c"cudaErrorInvalidDevice", c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    both(102, c"cudaErrorDeviceNotLicensed", c"CUDA_ERROR_DEVICE_NOT_LICENSED", c"device doesn't have valid Grid license"),
    runtime(103, c"cudaErrorSoftwareValidityNotEstablished", c"integrity checks failed"),
    runtime(127, c"cudaErrorStartupFailure", c"startup failure in cuda runtime"),
    both(200, c"cudaErrorInvalidKernelImage", c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid"),
    both(201, c"cudaErrorDeviceUninitialized", c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    driver(202, c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT", c"context already current"),
    both(205, c"cudaErrorMapBufferObjectFailed", c"CUDA_ERROR_MAP_FAILED", c"mapping of buffer object failed"),
    both(206, c"cudaErrorUnmapBufferObjectFailed", c"CUDA_ERROR_UNMAP_FAILED", c"unmapping of buffer object failed"),
    both(207, c"cudaErrorArrayIsMapped", c"CUDA_ERROR_ARRAY_IS_MAPPED", c"array is mapped"),
    both(208, c"cudaErrorAlreadyMapped", c"CUDA_ERROR_ALREADY_MAPPED", c"resource already mapped"),
    both(209, c"cudaErrorNoKernelImageForDevice", c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device"),
    both(210, c"cudaErrorAlreadyAcquired", c"CUDA_ERROR_ALREADY_ACQUIRED", c"resource already acquired"),
    both(211, c"cudaErrorNotMapped", c"CUDA_ERROR_NOT_MAPPED", c"resource not mapped"),
    both(212, c"cudaErrorNotMappedAsArray", c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY", c"resource not mapped as array"),
    both(213, c"cudaErrorNotMappedAsPointer", c"CUDA_ERROR_NOT_MAPPED_AS_POINTER", c"resource not mapped as pointer"),
    both(214, c"cudaErrorECCUncorrectable", c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable ECC error encountered"),
    both(215, c"cudaErrorUnsupportedLimit", c"CUDA_ERROR_UNSUPPORTED_LIMIT", c"limit is not supported on this architecture"),
    both(216, c"cudaErrorDeviceAlreadyInUse", c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", c"exclusive-thread device already in use by a different thread"),
    both(217, c"cudaErrorPeerAccessUnsupported", c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"peer access is not supported between these two devices"),
    both(218, c"cudaErrorInvalidPtx", c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
    both(219, c"cudaErrorInvalidGraphicsContext", c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", c"invalid OpenGL or DirectX context"),
    both(220, c"cudaErrorNvlinkUncorrectable", c"CUDA_ERROR_NVLINK_UNCORRECTABLE", c"uncorrectable NVLink error detected during the execution"),
    both(221, c"cudaErrorJitCompilerNotFound", c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", c"PTX JIT compiler library not found"),
    both(222, c"cudaErrorUnsupportedPtxVersion", c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the provided PTX was compiled with an unsupported toolchain."),
    both(223, c"cudaErrorJitCompilationDisabled", c"CUDA_ERROR_JIT_COMPILATION_DISABLED", c"PTX JIT compilation was disabled"),
    both(224, c"cudaErrorUnsupportedExecAffinity", c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", c"the provided execution affinity is not supported"),
    both(225, c"cudaErrorUnsupportedDevSideSync", c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", c"the provided PTX contains unsupported call to cudaDeviceSynchronize"),
    both(226, c"cudaErrorContained", c"CUDA_ERROR_CONTAINED", c"Invalid access of peer GPU memory over nvlink or a hardware error"),
    both(300, c"cudaErrorInvalidSource", c"CUDA_ERROR_INVALID_SOURCE", c"device kernel image is invalid"),
    both(301, c"cudaErrorFileNotFound", c"CUDA_ERROR_FILE_NOT_FOUND", c"file not found"),
    both(302, c"cudaErrorSharedObjectSymbolNotFound", c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", c"shared object symbol not found"),
    both(303, c"cudaErrorSharedObjectInitFailed", c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", c"shared object initialization failed"),
    both(304, c"cudaErrorOperatingSystem", c"CUDA_ERROR_OPERATING_SYSTEM", c"OS call failed or operation not supported on this OS"),
    both(400, c"cudaErrorInvalidResourceHandle", c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    both(401, c"cudaErrorIllegalState", c"CUDA_ERROR_ILLEGAL_STATE", c"the operation cannot be performed in the present state"),
    both(402, c"cudaErrorLossyQuery", c"CUDA_ERROR_LOSSY_QUERY", c"attempted introspection would be semantically lossy"),
    both(500, c"cudaErrorSymbolNotFound", c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    both(600, c"cudaErrorNotReady", c"CUDA_ERROR_NOT_READY", c"device not ready"),
    both(700, c"cudaErrorIllegalAddress", c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
    both(701, c"cudaErrorLaunchOutOfResources", c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch"),
    both(702, c"cudaErrorLaunchTimeout", c"CUDA_ERROR_LAUNCH_TIMEOUT", c"the launch timed out and was terminated"),
    both(703, c"cudaErrorLaunchIncompatibleTexturing", c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", c"launch uses incompatible texturing mode"),
    both(704, c"cudaErrorPeerAccessAlreadyEnabled", c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is already enabled"),
    both(705, c"cudaErrorPeerAccessNotEnabled", c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access has not been enabled"),
    both(708, c"cudaErrorSetOnActiveProcess", c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", c"cannot set while device is active in this process"),
    both(709, c"cudaErrorContextIsDestroyed", c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"context is destroyed"),
    both(710, c"cudaErrorAssert", c"CUDA_ERROR_ASSERT", c"device-side assert triggered"),
    both(711, c"cudaErrorTooManyPeers", c"CUDA_ERROR_TOO_MANY_PEERS", c"peer mapping resources exhausted"),
    both(712, c"cudaErrorHostMemoryAlreadyRegistered", c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"part or all of the requested memory range is already mapped"),
    both(713, c"cudaErrorHostMemoryNotRegistered", c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"pointer does not correspond to a registered memory region"),
    both(714, c"cudaErrorHardwareStackError", c"CUDA_ERROR_HARDWARE_STACK_ERROR", c"hardware stack error"),
    both(715, c"cudaErrorIllegalInstruction", c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"an illegal instruction was encountered"),
    both(716, c"cudaErrorMisalignedAddress", c"CUDA_ERROR_MISALIGNED_ADDRESS", c"misaligned address"),
    both(717, c"cudaErrorInvalidAddressSpace", c"CUDA_ERROR_INVALID_ADDRESS_SPACE", c"operation not supported on global/shared address space"),
    both(718, c"cudaErrorInvalidPc", c"CUDA_ERROR_INVALID_PC", c"invalid program counter"),
    both(719, c"cudaErrorLaunchFailure", c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
    both(720, c"cudaErrorCooperativeLaunchTooLarge", c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"too many blocks in cooperative launch"),
    both(721, c"cudaErrorTensorMemoryLeak", c"CUDA_ERROR_TENSOR_MEMORY_LEAK", c"tensor memory not completely freed"),
    both(800, c"cudaErrorNotPermitted", c"CUDA_ERROR_NOT_PERMITTED", c"operation not permitted"),
    both(801, c"cudaErrorNotSupported", c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    both(802, c"cudaErrorSystemNotReady", c"CUDA_ERROR_SYSTEM_NOT_READY", c"system not yet initialized"),
    both(803, c"cudaErrorSystemDriverMismatch", c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"system has unsupported display driver / cuda driver combination"),
    both(804, c"cudaErrorCompatNotSupportedOnDevice", c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", c"forward compatibility was attempted on non supported HW"),
    both(805, c"cudaErrorMpsConnectionFailed", c"CUDA_ERROR_MPS_CONNECTION_FAILED", c"MPS client failed to connect to the MPS control daemon or the MPS server"),
    both(806, c"cudaErrorMpsRpcFailure", c"CUDA_ERROR_MPS_RPC_FAILURE", c"the remote procedural call between the MPS server and the MPS client failed"),
    both(807, c"cudaErrorMpsServerNotReady", c"CUDA_ERROR_MPS_SERVER_NOT_READY", c"MPS server is not ready to accept new MPS client requests"),
    both(808, c"cudaErrorMpsMaxClientsReached", c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", c"the hardware resources required to create MPS client have been exhausted"),
    both(809, c"cudaErrorMpsMaxConnectionsReached", c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", c"the hardware resources required to support device connections have been exhausted"),
    both(810, c"cudaErrorMpsClientTerminated", c"CUDA_ERROR_MPS_CLIENT_TERMINATED", c"the MPS client has been terminated by the server"),
    both(811, c"cudaErrorCdpNotSupported", c"CUDA_ERROR_CDP_NOT_SUPPORTED", c"is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it"),
    both(812, c"cudaErrorCdpVersionMismatch", c"CUDA_ERROR_CDP_VERSION_MISMATCH", c"unsupported interaction between different versions of CUDA Dynamic Parallelism"),
    both(900, c"cudaErrorStreamCaptureUnsupported", c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"operation not permitted when stream is capturing"),
    both(901, c"cudaErrorStreamCaptureInvalidated", c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"operation failed due to a previous error during capture"),
    both(902, c"cudaErrorStreamCaptureMerge", c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"operation would result in a merge of separate capture sequences"),
    both(903, c"cudaErrorStreamCaptureUnmatched", c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"capture was not ended in the same stream as it began"),
    both(904, c"cudaErrorStreamCaptureUnjoined", c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"capturing stream has unjoined work"),
    both(905, c"cudaErrorStreamCaptureIsolation", c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"dependency created on uncaptured work in another stream"),
    both(906, c"cudaErrorStreamCaptureImplicit", c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"operation would make the legacy stream depend on a capturing blocking stream"),
    both(907, c"cudaErrorCapturedEvent", c"CUDA_ERROR_CAPTURED_EVENT", c"operation not permitted on an event last recorded in a capturing stream"),
    both(908, c"cudaErrorStreamCaptureWrongThread", c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"attempt to terminate a thread-local capture sequence from another thread"),
    both(909, c"cudaErrorTimeout", c"CUDA_ERROR_TIMEOUT", c"wait operation timed out"),
    both(910, c"cudaErrorGraphExecUpdateFailure", c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"),
    both(911, c"cudaErrorExternalDevice", c"CUDA_ERROR_EXTERNAL_DEVICE", c"an async error has occured in external entity outside of CUDA"),
    both(912, c"cudaErrorInvalidClusterSize", c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"a kernel launch error has occurred due to cluster misconfiguration"),
    both(913, c"cudaErrorFunctionNotLoaded", c"CUDA_ERROR_FUNCTION_NOT_LOADED", c"the function handle is not loaded when calling an API that requires a loaded function"),
    both(914, c"cudaErrorInvalidResourceType", c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"one or more resources passed in are not valid resource types for the operation"),
    both(915, c"cudaErrorInvalidResourceConfiguration", c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", c"one or more resources are insufficient or non-applicable for the operation"),
    driver(916, c"CUDA_ERROR_KEY_ROTATION", c"an error happened during the key rotation sequence"),
    both(999, c"cudaErrorUnknown", c"CUDA_ERROR_UNKNOWN", c"unknown error"),
    runtime(10000, c"cudaErrorApiFailureBase", c"api failure base"),
];

/// The row of a code.
fn entry(error: Error) -> Option<&'static Entry> {
    TABLE
        .binary_search_by_key(&error.0, |entry| entry.code)
        .ok()
        .map(|index| &TABLE[index])
}

impl Error {
    /// What `cudaGetErrorName` answers: always a text.
    pub fn runtime_name(self) -> &'static CStr {
        entry(self)
            .and_then(|entry| entry.runtime)
            .map_or(UNRECOGNIZED, |(name, _)| name)
    }

    /// What `cudaGetErrorString` answers: always a text.
    pub fn runtime_text(self) -> &'static CStr {
        entry(self)
            .and_then(|entry| entry.runtime)
            .map_or(UNRECOGNIZED, |(_, text)| text)
    }

    /// What `cuGetErrorName` answers; `None` for a code that the driver API does not have.
    pub fn driver_name(self) -> Option<&'static CStr> {
        entry(self)?.driver.map(|(name, _)| name)
    }

    /// What `cuGetErrorString` answers; `None` for a code that the driver API does not have.
    pub fn driver_text(self) -> Option<&'static CStr> {
        entry(self)?.driver.map(|(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by(|a, b| a.code < b.code));
    }

    #[test]
    fn names_are_those_of_each_api() {
        assert_eq!(Error::NOT_READY.runtime_name(), c"cudaErrorNotReady");
        assert_eq!(Error::NOT_READY.driver_name(), Some(c"CUDA_ERROR_NOT_READY"));
        assert_eq!(Error::INVALID_SYMBOL.runtime_text(), c"invalid device symbol");
        assert_eq!(Error::INVALID_SYMBOL.driver_name(), None);
        assert_eq!(Error(202).runtime_name(), UNRECOGNIZED);
        assert_eq!(Error(202).driver_text(), Some(c"context already current"));
        assert_eq!(Error(10000).runtime_name(), c"cudaErrorApiFailureBase");
    }

    #[test]
    fn unknown_codes_have_the_recorded_text() {
        for code in [-1, 50, 1001, 9999, 10001, 12345] {
            assert_eq!(Error(code).runtime_name(), UNRECOGNIZED);
            assert_eq!(Error(code).runtime_text(), UNRECOGNIZED);
            assert_eq!(Error(code).driver_name(), None);
        }
    }
}
