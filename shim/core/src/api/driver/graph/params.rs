//! Node parameters: from the driver's structures to operations and back. The runtime's chapter converts to these structures.

use core::ffi::{c_uint, c_void};
use std::sync::Arc;

use crate::abi::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS,
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdeviceptr, CUevent, CUfunction, CUgraphNode, CUkernel,
    CUmemAllocationType, CUmemLocationType, Error, Plain, Result, conv,
};
use crate::api::driver::{check_sides, host_operation, mem_operations, sides_3d};
use crate::device::{self, Context, context};
use crate::graph::memory::Allocation;
use crate::graph::operation::{Copy, Described, EventOperand, Fill, Host, Kernel, MemOps};
use crate::graph::{self, Operation};
use crate::module::args::Source;
use crate::module::{self, Function, Shape};
use crate::stream;
use crate::stream::locate::{Place, locate};
use crate::stream::spans::{Extent, Side};

/// The context that a node works in: NULL is the current one.
pub(in crate::api) fn node_context(handle: CUcontext) -> Result<&'static Context> {
    if handle.is_null() {
        context::current()
    } else {
        Context::from_handle(handle)
    }
}

/// A kernel launch.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for an unknown function, else as [`Kernel::new`].
///
/// # Safety
/// Parameters are what the kernel expects.
pub(in crate::api) unsafe fn kernel(p: &CUDA_KERNEL_NODE_PARAMS) -> Result<Kernel> {
    let handle = if p.func.is_null() { p.kern as u64 } else { p.func as u64 };
    let context = node_context(p.ctx)?;
    let function = module::function(handle, || Ok(context))?;
    let shape = Shape {
        grid: [p.gridDimX, p.gridDimY, p.gridDimZ],
        block: [p.blockDimX, p.blockDimY, p.blockDimZ],
        dynamic_shared: p.sharedMemBytes,
    };
    // SAFETY: the caller's promise.
    unsafe { kernel_of(function, shape, p.kernelParams, p.extra) }
}

/// A kernel launch whose function is known.
///
/// # Errors
/// As [`Kernel::new`].
///
/// # Safety
/// As [`kernel`].
pub(in crate::api) unsafe fn kernel_of(
    function: Arc<Function>,
    shape: Shape,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<Kernel> {
    // SAFETY: the caller's promise.
    unsafe {
        let source: Source = super::super::exec::source(params, extra)?;
        Kernel::new(function, shape, source, false)
    }
}

/// A node's kernel.
///
/// # Errors
/// INVALID_VALUE for a node of another type.
pub(in crate::api) fn kernel_at(node: CUgraphNode) -> Result<Kernel> {
    match graph::node(node as u64)?.operation() {
        Operation::Kernel(kernel) => Ok(kernel),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A kernel launch as the driver API reads it back. The arrays live until the node changes.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE when the module was unloaded.
pub(in crate::api) fn describe_kernel(kernel: &Kernel) -> Result<CUDA_KERNEL_NODE_PARAMS> {
    let Shape {
        grid,
        block,
        dynamic_shared,
    } = kernel.shape;
    let context = kernel.function.module()?.context();
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: module::function_handle(&kernel.function) as CUfunction,
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: dynamic_shared,
        kernelParams: kernel.arguments.pointers(),
        extra: kernel.arguments.extra(),
        kern: module::kernel_of(&kernel.function, context) as CUkernel,
        ctx: context.handle(),
    })
}

/// A copy of a box.
///
/// # Errors
/// INVALID_VALUE for an empty one and for what a copy refuses.
pub(in crate::api) fn copy(params: &CUDA_MEMCPY3D) -> Result<Arc<Copy>> {
    let (dst, src, extent, known) = sides_3d(params)?;
    if extent.is_empty() {
        return Err(Error::INVALID_VALUE);
    }
    check_sides(&dst, &src, &extent, known)?;
    Ok(Arc::new(Copy::described(dst, src, extent, Described(*params))))
}

/// A node's copy.
///
/// # Errors
/// INVALID_VALUE for a node of another type.
pub(in crate::api) fn copy_at(node: CUgraphNode) -> Result<CUDA_MEMCPY3D> {
    match graph::node(node as u64)?.operation() {
        Operation::Copy(copy) => Ok(copy.params.0),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A fill.
///
/// # Errors
/// INVALID_VALUE for an empty one, for elements that are not 1, 2 or 4 bytes, for addresses and pitches that are not multiples of
/// them, and for memory that a fill refuses.
pub(in crate::api) fn fill(params: &CUDA_MEMSET_NODE_PARAMS) -> Result<Fill> {
    let p = params;
    let element = p.elementSize as usize;
    let bytes = p.width.checked_mul(element).ok_or(Error::INVALID_VALUE)?;
    let aligned = |value: usize| matches!(element, 1 | 2 | 4) && value.is_multiple_of(element);
    let rows = p.height > 1;
    if bytes == 0 || p.height == 0 || !aligned(p.dst as usize) || rows && (!aligned(p.pitch) || p.pitch < bytes) {
        return Err(Error::INVALID_VALUE);
    }
    let fill = Fill { params: *p };
    let (side, extent) = fill.place();
    check_fill(&side, &extent)?;
    Ok(fill)
}

fn check_fill(side: &Side, extent: &Extent) -> Result<()> {
    let reach = side.reach(extent)?;
    if graph::memory::owns(side.start) {
        return Ok(());
    }
    match locate(side.start, reach)? {
        Place::Pageable => Err(Error::INVALID_VALUE),
        _ => Ok(()),
    }
}

/// A node's fill.
///
/// # Errors
/// INVALID_VALUE for a node of another type.
pub(in crate::api) fn fill_at(node: CUgraphNode) -> Result<CUDA_MEMSET_NODE_PARAMS> {
    match graph::node(node as u64)?.operation() {
        Operation::Fill(fill) => Ok(fill.params),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A host function.
///
/// # Errors
/// INVALID_VALUE for NULL.
pub(in crate::api) fn host(params: &CUDA_HOST_NODE_PARAMS) -> Result<Host> {
    Ok(host_operation(
        params.r#fn.ok_or(Error::INVALID_VALUE)?,
        params.userData,
    ))
}

/// A node's host function.
///
/// # Errors
/// INVALID_VALUE for a node of another type.
pub(in crate::api) fn host_at(node: CUgraphNode) -> Result<CUDA_HOST_NODE_PARAMS> {
    let Operation::Host(host) = graph::node(node as u64)?.operation() else {
        return Err(Error::INVALID_VALUE);
    };
    let pointer = host.function as *const ();
    Ok(CUDA_HOST_NODE_PARAMS {
        // SAFETY: the number was such a function's address.
        r#fn: Some(unsafe { core::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void)>(pointer) }),
        userData: host.data as *mut c_void,
    })
}

/// An event.
///
/// # Errors
/// INVALID_VALUE for NULL, INVALID_RESOURCE_HANDLE for a destroyed or foreign one.
pub(in crate::api) fn event(handle: CUevent) -> Result<EventOperand> {
    if handle.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let handle = handle as u64;
    Ok(EventOperand {
        handle,
        event: stream::event(handle)?,
    })
}

/// The event that a node records or, with `waits`, waits for.
///
/// # Errors
/// INVALID_VALUE for a node of another type.
pub(in crate::api) fn event_at(node: CUgraphNode, waits: bool) -> Result<CUevent> {
    match (graph::node(node as u64)?.operation(), waits) {
        (Operation::WaitEvent(operand), true) | (Operation::RecordEvent(operand), false) => {
            Ok(operand.handle as CUevent)
        }
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Stream memory operations.
///
/// # Errors
/// INVALID_VALUE without a context, with flags, and for operations that a batch refuses. Addresses are looked at when the graph is
/// launched (recorded).
pub(in crate::api) fn mem_ops(params: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Result<MemOps> {
    let context = Context::from_handle(params.ctx)?;
    if params.flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    let operations = mem_operations(params.count, params.paramArray)?;
    Ok(MemOps::new(&operations, context))
}

/// A node's memory operations, in place: the array that is returned lives until the node changes.
///
/// # Errors
/// INVALID_VALUE for a node of another type.
pub(in crate::api) fn mem_ops_at(node: CUgraphNode) -> Result<CUDA_BATCH_MEM_OP_NODE_PARAMS> {
    match graph::node(node as u64)?.operation() {
        Operation::MemOps(batch) => Ok(CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: core::ptr::without_provenance_mut(batch.context),
            count: batch.params.len() as c_uint,
            paramArray: batch.params.as_ptr().cast_mut(),
            flags: 0,
        }),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A block of an allocation node, on the device that the parameters name.
///
/// # Errors
/// INVALID_VALUE for a size of 0 and for places that are no device, NOT_SUPPORTED for memory to be exported (recorded),
/// MEMORY_ALLOCATION.
pub(in crate::api) fn allocation(params: &CUDA_MEM_ALLOC_NODE_PARAMS) -> Result<Arc<Allocation>> {
    let pool = &params.poolProps;
    if params.bytesize == 0
        || pool.allocType != CUmemAllocationType::PINNED
        || pool.location.r#type != CUmemLocationType::DEVICE
    {
        return Err(Error::INVALID_VALUE);
    }
    let device = device::get(pool.location.id).map_err(|_| Error::INVALID_VALUE)?;
    if pool.handleTypes.0 != 0 {
        return Err(Error::NOT_SUPPORTED);
    }
    // SAFETY: the application promises the descriptions.
    let access = unsafe { conv::slice(params.accessDescs, params.accessDescCount) }?;
    for description in access {
        let known = description.location.r#type == CUmemLocationType::DEVICE;
        if !known || device::get(description.location.id).is_err() {
            return Err(Error::INVALID_VALUE);
        }
    }
    let current = context::current()?;
    let owner = if current.device.ordinal == device.ordinal {
        current
    } else {
        context::runtime_primary(device)?
    };
    Allocation::new(owner, params.bytesize)
}

/// The block that a free node ends. Of one graph's nodes only one may name it.
///
/// # Errors
/// INVALID_VALUE for what is no block of an allocation node, and for a second free.
pub(in crate::api) fn freed(address: CUdeviceptr) -> Result<Arc<Allocation>> {
    let block = graph::memory::at(address).ok_or(Error::INVALID_VALUE)?;
    if block.claim_free_node() {
        Ok(block)
    } else {
        Err(Error::INVALID_VALUE)
    }
}

/// An allocation node as it is read back.
///
/// # Errors
/// INVALID_VALUE for a node of another type.
pub(in crate::api) fn describe_allocation(node: CUgraphNode) -> Result<CUDA_MEM_ALLOC_NODE_PARAMS> {
    let Operation::Alloc(block) = graph::node(node as u64)?.operation() else {
        return Err(Error::INVALID_VALUE);
    };
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::zeroed();
    params.poolProps.allocType = CUmemAllocationType::PINNED;
    params.poolProps.location.r#type = CUmemLocationType::DEVICE;
    params.poolProps.location.id = block.context().device.ordinal;
    params.bytesize = block.size() as usize;
    params.dptr = block.address();
    Ok(params)
}

/// The address that a free node ends.
///
/// # Errors
/// INVALID_VALUE for a node of another type.
pub(in crate::api) fn freed_at(node: CUgraphNode) -> Result<CUdeviceptr> {
    match graph::node(node as u64)?.operation() {
        Operation::Free(block) => Ok(block.address()),
        _ => Err(Error::INVALID_VALUE),
    }
}
