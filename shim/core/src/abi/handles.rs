//! Opaque handles and scalar types of both APIs.
//!
//! A handle is a pointer to a type that only its owner can look into. What a client passes is never followed before
//! the handle has been found in its table.

// These are CUDA's own names.
#![allow(non_camel_case_types)]

use core::ffi::{c_int, c_void};

/// Defines opaque types and the handles (pointers) to them.
macro_rules! handles {
    ($($(#[$meta:meta])* $handle:ident = $opaque:ident;)*) => {$(
        #[doc = concat!("What a `", stringify!($handle), "` points to.")]
        #[repr(C)]
        pub struct $opaque {
            _opaque: [u8; 0],
        }

        $(#[$meta])*
        pub type $handle = *mut $opaque;
    )*};
}

handles! {
    /// A context.
    CUcontext = CUctx_st;
    /// A module.
    CUmodule = CUmod_st;
    /// A function of a module.
    CUfunction = CUfunc_st;
    /// A library (context-independent module).
    CUlibrary = CUlib_st;
    /// A kernel of a library.
    CUkernel = CUkern_st;
    /// A stream; the values 0, 1 and 2 are the default, the legacy and the per-thread stream.
    CUstream = CUstream_st;
    /// An event.
    CUevent = CUevent_st;
    /// A CUDA array (opaque texture layout).
    CUarray = CUarray_st;
    /// A mipmapped array.
    CUmipmappedArray = CUmipmappedArray_st;
    /// A texture reference.
    CUtexref = CUtexref_st;
    /// A surface reference.
    CUsurfref = CUsurfref_st;
    /// A graph.
    CUgraph = CUgraph_st;
    /// A node of a graph.
    CUgraphNode = CUgraphNode_st;
    /// An executable graph.
    CUgraphExec = CUgraphExec_st;
    /// A graph node that device code may update.
    CUgraphDeviceNode = CUgraphDeviceUpdatableNode_st;
    /// A memory pool.
    CUmemoryPool = CUmemPoolHandle_st;
    /// A linker invocation.
    CUlinkState = CUlinkState_st;
    /// Imported external memory.
    CUexternalMemory = CUextMemory_st;
    /// An imported external semaphore.
    CUexternalSemaphore = CUextSemaphore_st;
    /// A graphics resource.
    CUgraphicsResource = CUgraphicsResource_st;
    /// A user object of graphs.
    CUuserObject = CUuserObject_st;
    /// The runtime's array.
    cudaArray_t = cudaArray;
    /// The runtime's mipmapped array.
    cudaMipmappedArray_t = cudaMipmappedArray;
}

/// A device, as its ordinal.
pub type CUdevice = c_int;
/// A device address.
pub type CUdeviceptr = u64;
/// A physical allocation (`cuMemCreate`).
pub type CUmemGenericAllocationHandle = u64;
/// A texture object.
pub type CUtexObject = u64;
/// A surface object.
pub type CUsurfObject = u64;

/// The runtime's stream is the driver's.
pub type cudaStream_t = CUstream;
/// The runtime's event is the driver's.
pub type cudaEvent_t = CUevent;
/// The runtime's memory pool is the driver's.
pub type cudaMemPool_t = CUmemoryPool;
/// The runtime's function is the driver's.
pub type cudaFunction_t = CUfunction;
/// The runtime's kernel is the driver's.
pub type cudaKernel_t = CUkernel;
/// The runtime's library is the driver's.
pub type cudaLibrary_t = CUlibrary;
/// The runtime's graph is the driver's.
pub type cudaGraph_t = CUgraph;
/// The runtime's graph node is the driver's.
pub type cudaGraphNode_t = CUgraphNode;
/// The runtime's executable graph is the driver's.
pub type cudaGraphExec_t = CUgraphExec;
/// The runtime's device node is the driver's.
pub type cudaGraphDeviceNode_t = CUgraphDeviceNode;

/// A host function in a stream (`cuLaunchHostFunc`).
pub type CUhostFn = Option<unsafe extern "C" fn(user_data: *mut c_void)>;
/// A stream callback (`cuStreamAddCallback`); the status is an error code.
pub type CUstreamCallback = Option<unsafe extern "C" fn(stream: CUstream, status: c_int, user_data: *mut c_void)>;
/// Gives the dynamic shared memory that a block of a given size needs (`cuOccupancyMaxPotentialBlockSize`).
pub type CUoccupancyB2DSize = Option<unsafe extern "C" fn(block_size: c_int) -> usize>;

/// The legacy default stream, named explicitly.
pub const CU_STREAM_LEGACY: CUstream = core::ptr::without_provenance_mut(1);
/// The calling thread's own default stream.
pub const CU_STREAM_PER_THREAD: CUstream = core::ptr::without_provenance_mut(2);
