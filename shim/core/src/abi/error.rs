//! The one error type of both APIs.

/// A CUDA error code. The driver's `CUresult` and the runtime's `cudaError_t` number the same errors alike, so one
/// newtype serves both; a code without a constant here is still a valid value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Error(pub i32);

/// A result whose error is a CUDA code.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// 1: invalid argument.
    pub const INVALID_VALUE: Self = Self(1);
    /// 2: out of memory.
    pub const MEMORY_ALLOCATION: Self = Self(2);
    /// 3: initialization error.
    pub const INITIALIZATION_ERROR: Self = Self(3);
    /// 4: driver shutting down.
    pub const CUDART_UNLOADING: Self = Self(4);
    /// 5: profiler disabled while using external profiling tool.
    pub const PROFILER_DISABLED: Self = Self(5);
    /// 6: profiler not initialized: call cudaProfilerInitialize().
    pub const PROFILER_NOT_INITIALIZED: Self = Self(6);
    /// 7: profiler already started.
    pub const PROFILER_ALREADY_STARTED: Self = Self(7);
    /// 8: profiler already stopped.
    pub const PROFILER_ALREADY_STOPPED: Self = Self(8);
    /// 9: invalid configuration argument.
    pub const INVALID_CONFIGURATION: Self = Self(9);
    /// 12: invalid pitch argument.
    pub const INVALID_PITCH_VALUE: Self = Self(12);
    /// 13: invalid device symbol.
    pub const INVALID_SYMBOL: Self = Self(13);
    /// 16: invalid host pointer.
    pub const INVALID_HOST_POINTER: Self = Self(16);
    /// 17: invalid device pointer.
    pub const INVALID_DEVICE_POINTER: Self = Self(17);
    /// 18: invalid texture reference.
    pub const INVALID_TEXTURE: Self = Self(18);
    /// 19: texture is not bound to a pointer.
    pub const INVALID_TEXTURE_BINDING: Self = Self(19);
    /// 20: invalid channel descriptor.
    pub const INVALID_CHANNEL_DESCRIPTOR: Self = Self(20);
    /// 21: invalid copy direction for memcpy.
    pub const INVALID_MEMCPY_DIRECTION: Self = Self(21);
    /// 22: invalid address of constant.
    pub const ADDRESS_OF_CONSTANT: Self = Self(22);
    /// 23: fetch from texture failed.
    pub const TEXTURE_FETCH_FAILED: Self = Self(23);
    /// 24: cannot fetch from a texture that is not bound.
    pub const TEXTURE_NOT_BOUND: Self = Self(24);
    /// 25: incorrect use of __syncthreads().
    pub const SYNCHRONIZATION_ERROR: Self = Self(25);
    /// 26: linear filtering not supported for non-float type.
    pub const INVALID_FILTER_SETTING: Self = Self(26);
    /// 27: read as normalized float not supported for data type.
    pub const INVALID_NORM_SETTING: Self = Self(27);
    /// 28: device emulation mode and device execution mode cannot be mixed.
    pub const MIXED_DEVICE_EXECUTION: Self = Self(28);
    /// 31: feature not yet implemented.
    pub const NOT_YET_IMPLEMENTED: Self = Self(31);
    /// 32: memory size or pointer value too large to fit in 32 bit.
    pub const MEMORY_VALUE_TOO_LARGE: Self = Self(32);
    /// 34: CUDA driver is a stub library.
    pub const STUB_LIBRARY: Self = Self(34);
    /// 35: CUDA driver version is insufficient for CUDA runtime version.
    pub const INSUFFICIENT_DRIVER: Self = Self(35);
    /// 36: API call is not supported in the installed CUDA driver.
    pub const CALL_REQUIRES_NEWER_DRIVER: Self = Self(36);
    /// 37: invalid surface reference.
    pub const INVALID_SURFACE: Self = Self(37);
    /// 43: duplicate global variable looked up by string name.
    pub const DUPLICATE_VARIABLE_NAME: Self = Self(43);
    /// 44: duplicate texture looked up by string name.
    pub const DUPLICATE_TEXTURE_NAME: Self = Self(44);
    /// 45: duplicate surface looked up by string name.
    pub const DUPLICATE_SURFACE_NAME: Self = Self(45);
    /// 46: CUDA-capable device(s) is/are busy or unavailable.
    pub const DEVICES_UNAVAILABLE: Self = Self(46);
    /// 49: incompatible driver context.
    pub const INCOMPATIBLE_DRIVER_CONTEXT: Self = Self(49);
    /// 52: __global__ function call is not configured.
    pub const MISSING_CONFIGURATION: Self = Self(52);
    /// 53: unspecified launch failure in prior launch.
    pub const PRIOR_LAUNCH_FAILURE: Self = Self(53);
    /// 65: launch would exceed maximum depth of nested launches.
    pub const LAUNCH_MAX_DEPTH_EXCEEDED: Self = Self(65);
    /// 66: launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported).
    pub const LAUNCH_FILE_SCOPED_TEX: Self = Self(66);
    /// 67: launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported).
    pub const LAUNCH_FILE_SCOPED_SURF: Self = Self(67);
    /// 68: cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth.
    pub const SYNC_DEPTH_EXCEEDED: Self = Self(68);
    /// 69: launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount.
    pub const LAUNCH_PENDING_COUNT_EXCEEDED: Self = Self(69);
    /// 98: invalid device function.
    pub const INVALID_DEVICE_FUNCTION: Self = Self(98);
    /// 100: no CUDA-capable device is detected.
    pub const NO_DEVICE: Self = Self(100);
    /// 101: invalid device ordinal.
    pub const INVALID_DEVICE: Self = Self(101);
    /// 102: device doesn't have valid Grid license.
    pub const DEVICE_NOT_LICENSED: Self = Self(102);
    /// 103: integrity checks failed.
    pub const SOFTWARE_VALIDITY_NOT_ESTABLISHED: Self = Self(103);
    /// 127: startup failure in cuda runtime.
    pub const STARTUP_FAILURE: Self = Self(127);
    /// 200: device kernel image is invalid.
    pub const INVALID_KERNEL_IMAGE: Self = Self(200);
    /// 201: invalid device context.
    pub const DEVICE_UNINITIALIZED: Self = Self(201);
    /// 202: unrecognized error code.
    pub const CONTEXT_ALREADY_CURRENT: Self = Self(202);
    /// 205: mapping of buffer object failed.
    pub const MAP_BUFFER_OBJECT_FAILED: Self = Self(205);
    /// 206: unmapping of buffer object failed.
    pub const UNMAP_BUFFER_OBJECT_FAILED: Self = Self(206);
    /// 207: array is mapped.
    pub const ARRAY_IS_MAPPED: Self = Self(207);
    /// 208: resource already mapped.
    pub const ALREADY_MAPPED: Self = Self(208);
    /// 209: no kernel image is available for execution on the device.
    pub const NO_KERNEL_IMAGE_FOR_DEVICE: Self = Self(209);
    /// 210: resource already acquired.
    pub const ALREADY_ACQUIRED: Self = Self(210);
    /// 211: resource not mapped.
    pub const NOT_MAPPED: Self = Self(211);
    /// 212: resource not mapped as array.
    pub const NOT_MAPPED_AS_ARRAY: Self = Self(212);
    /// 213: resource not mapped as pointer.
    pub const NOT_MAPPED_AS_POINTER: Self = Self(213);
    /// 214: uncorrectable ECC error encountered.
    pub const ECC_UNCORRECTABLE: Self = Self(214);
    /// 215: limit is not supported on this architecture.
    pub const UNSUPPORTED_LIMIT: Self = Self(215);
    /// 216: exclusive-thread device already in use by a different thread.
    pub const DEVICE_ALREADY_IN_USE: Self = Self(216);
    /// 217: peer access is not supported between these two devices.
    pub const PEER_ACCESS_UNSUPPORTED: Self = Self(217);
    /// 218: a PTX JIT compilation failed.
    pub const INVALID_PTX: Self = Self(218);
    /// 219: invalid OpenGL or DirectX context.
    pub const INVALID_GRAPHICS_CONTEXT: Self = Self(219);
    /// 220: uncorrectable NVLink error detected during the execution.
    pub const NVLINK_UNCORRECTABLE: Self = Self(220);
    /// 221: PTX JIT compiler library not found.
    pub const JIT_COMPILER_NOT_FOUND: Self = Self(221);
    /// 222: the provided PTX was compiled with an unsupported toolchain..
    pub const UNSUPPORTED_PTX_VERSION: Self = Self(222);
    /// 223: PTX JIT compilation was disabled.
    pub const JIT_COMPILATION_DISABLED: Self = Self(223);
    /// 224: the provided execution affinity is not supported.
    pub const UNSUPPORTED_EXEC_AFFINITY: Self = Self(224);
    /// 225: the provided PTX contains unsupported call to cudaDeviceSynchronize.
    pub const UNSUPPORTED_DEV_SIDE_SYNC: Self = Self(225);
    /// 226: Invalid access of peer GPU memory over nvlink or a hardware error.
    pub const CONTAINED: Self = Self(226);
    /// 300: device kernel image is invalid.
    pub const INVALID_SOURCE: Self = Self(300);
    /// 301: file not found.
    pub const FILE_NOT_FOUND: Self = Self(301);
    /// 302: shared object symbol not found.
    pub const SHARED_OBJECT_SYMBOL_NOT_FOUND: Self = Self(302);
    /// 303: shared object initialization failed.
    pub const SHARED_OBJECT_INIT_FAILED: Self = Self(303);
    /// 304: OS call failed or operation not supported on this OS.
    pub const OPERATING_SYSTEM: Self = Self(304);
    /// 400: invalid resource handle.
    pub const INVALID_RESOURCE_HANDLE: Self = Self(400);
    /// 401: the operation cannot be performed in the present state.
    pub const ILLEGAL_STATE: Self = Self(401);
    /// 402: attempted introspection would be semantically lossy.
    pub const LOSSY_QUERY: Self = Self(402);
    /// 500: named symbol not found.
    pub const SYMBOL_NOT_FOUND: Self = Self(500);
    /// 600: device not ready.
    pub const NOT_READY: Self = Self(600);
    /// 700: an illegal memory access was encountered.
    pub const ILLEGAL_ADDRESS: Self = Self(700);
    /// 701: too many resources requested for launch.
    pub const LAUNCH_OUT_OF_RESOURCES: Self = Self(701);
    /// 702: the launch timed out and was terminated.
    pub const LAUNCH_TIMEOUT: Self = Self(702);
    /// 703: launch uses incompatible texturing mode.
    pub const LAUNCH_INCOMPATIBLE_TEXTURING: Self = Self(703);
    /// 704: peer access is already enabled.
    pub const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);
    /// 705: peer access has not been enabled.
    pub const PEER_ACCESS_NOT_ENABLED: Self = Self(705);
    /// 708: cannot set while device is active in this process.
    pub const SET_ON_ACTIVE_PROCESS: Self = Self(708);
    /// 709: context is destroyed.
    pub const CONTEXT_IS_DESTROYED: Self = Self(709);
    /// 710: device-side assert triggered.
    pub const ASSERT: Self = Self(710);
    /// 711: peer mapping resources exhausted.
    pub const TOO_MANY_PEERS: Self = Self(711);
    /// 712: part or all of the requested memory range is already mapped.
    pub const HOST_MEMORY_ALREADY_REGISTERED: Self = Self(712);
    /// 713: pointer does not correspond to a registered memory region.
    pub const HOST_MEMORY_NOT_REGISTERED: Self = Self(713);
    /// 714: hardware stack error.
    pub const HARDWARE_STACK_ERROR: Self = Self(714);
    /// 715: an illegal instruction was encountered.
    pub const ILLEGAL_INSTRUCTION: Self = Self(715);
    /// 716: misaligned address.
    pub const MISALIGNED_ADDRESS: Self = Self(716);
    /// 717: operation not supported on global/shared address space.
    pub const INVALID_ADDRESS_SPACE: Self = Self(717);
    /// 718: invalid program counter.
    pub const INVALID_PC: Self = Self(718);
    /// 719: unspecified launch failure.
    pub const LAUNCH_FAILURE: Self = Self(719);
    /// 720: too many blocks in cooperative launch.
    pub const COOPERATIVE_LAUNCH_TOO_LARGE: Self = Self(720);
    /// 721: tensor memory not completely freed.
    pub const TENSOR_MEMORY_LEAK: Self = Self(721);
    /// 800: operation not permitted.
    pub const NOT_PERMITTED: Self = Self(800);
    /// 801: operation not supported.
    pub const NOT_SUPPORTED: Self = Self(801);
    /// 802: system not yet initialized.
    pub const SYSTEM_NOT_READY: Self = Self(802);
    /// 803: system has unsupported display driver / cuda driver combination.
    pub const SYSTEM_DRIVER_MISMATCH: Self = Self(803);
    /// 804: forward compatibility was attempted on non supported HW.
    pub const COMPAT_NOT_SUPPORTED_ON_DEVICE: Self = Self(804);
    /// 805: MPS client failed to connect to the MPS control daemon or the MPS server.
    pub const MPS_CONNECTION_FAILED: Self = Self(805);
    /// 806: the remote procedural call between the MPS server and the MPS client failed.
    pub const MPS_RPC_FAILURE: Self = Self(806);
    /// 807: MPS server is not ready to accept new MPS client requests.
    pub const MPS_SERVER_NOT_READY: Self = Self(807);
    /// 808: the hardware resources required to create MPS client have been exhausted.
    pub const MPS_MAX_CLIENTS_REACHED: Self = Self(808);
    /// 809: the hardware resources required to support device connections have been exhausted.
    pub const MPS_MAX_CONNECTIONS_REACHED: Self = Self(809);
    /// 810: the MPS client has been terminated by the server.
    pub const MPS_CLIENT_TERMINATED: Self = Self(810);
    /// 811: is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it.
    pub const CDP_NOT_SUPPORTED: Self = Self(811);
    /// 812: unsupported interaction between different versions of CUDA Dynamic Parallelism.
    pub const CDP_VERSION_MISMATCH: Self = Self(812);
    /// 900: operation not permitted when stream is capturing.
    pub const STREAM_CAPTURE_UNSUPPORTED: Self = Self(900);
    /// 901: operation failed due to a previous error during capture.
    pub const STREAM_CAPTURE_INVALIDATED: Self = Self(901);
    /// 902: operation would result in a merge of separate capture sequences.
    pub const STREAM_CAPTURE_MERGE: Self = Self(902);
    /// 903: capture was not ended in the same stream as it began.
    pub const STREAM_CAPTURE_UNMATCHED: Self = Self(903);
    /// 904: capturing stream has unjoined work.
    pub const STREAM_CAPTURE_UNJOINED: Self = Self(904);
    /// 905: dependency created on uncaptured work in another stream.
    pub const STREAM_CAPTURE_ISOLATION: Self = Self(905);
    /// 906: operation would make the legacy stream depend on a capturing blocking stream.
    pub const STREAM_CAPTURE_IMPLICIT: Self = Self(906);
    /// 907: operation not permitted on an event last recorded in a capturing stream.
    pub const CAPTURED_EVENT: Self = Self(907);
    /// 908: attempt to terminate a thread-local capture sequence from another thread.
    pub const STREAM_CAPTURE_WRONG_THREAD: Self = Self(908);
    /// 909: wait operation timed out.
    pub const TIMEOUT: Self = Self(909);
    /// 910: the graph update was not performed because it included changes which violated constraints specific to instantiated graph update.
    pub const GRAPH_EXEC_UPDATE_FAILURE: Self = Self(910);
    /// 911: an async error has occured in external entity outside of CUDA.
    pub const EXTERNAL_DEVICE: Self = Self(911);
    /// 912: a kernel launch error has occurred due to cluster misconfiguration.
    pub const INVALID_CLUSTER_SIZE: Self = Self(912);
    /// 913: the function handle is not loaded when calling an API that requires a loaded function.
    pub const FUNCTION_NOT_LOADED: Self = Self(913);
    /// 914: one or more resources passed in are not valid resource types for the operation.
    pub const INVALID_RESOURCE_TYPE: Self = Self(914);
    /// 915: one or more resources are insufficient or non-applicable for the operation.
    pub const INVALID_RESOURCE_CONFIGURATION: Self = Self(915);
    /// 916: unrecognized error code.
    pub const KEY_ROTATION: Self = Self(916);
    /// 999: unknown error.
    pub const UNKNOWN: Self = Self(999);
}

impl core::fmt::Debug for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Error({})", self.0)
    }
}
