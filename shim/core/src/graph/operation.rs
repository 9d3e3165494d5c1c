//! What nodes do, and their parameters as applications read them back.

use core::ffi::c_void;
use std::sync::Arc;

use super::Graph;
use super::condition::Conditional;
use super::memory::Allocation;
use crate::abi::{
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUarray, CUgraphNodeType, CUmemorytype, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpParams_waitValue, CUstreamBatchMemOpParams_waitValue_u, CUstreamBatchMemOpParams_writeValue,
    CUstreamBatchMemOpParams_writeValue_u, CUstreamBatchMemOpType, Error, Plain, Result,
};
use crate::device::Context;
use crate::memory::{self, Kind, array};
use crate::module::args::{self, Hidden, Source};
use crate::module::{Function, Shape};
use crate::stream::Event;
use crate::stream::locate::Place;
use crate::stream::memop::{Compare, MemOp, Width};
use crate::stream::spans::{Extent, Side};

/// What a node does. Cloning shares the large parts.
#[derive(Clone)]
pub enum Operation {
    /// Launches a kernel.
    Kernel(Kernel),
    /// Copies a box of bytes.
    Copy(Arc<Copy>),
    /// Fills rows.
    Fill(Fill),
    /// Calls a host function.
    Host(Host),
    /// Runs another graph, which the node owns.
    Child(Arc<Graph>),
    /// Runs graphs that the node owns, as a value says.
    Conditional(Arc<Conditional>),
    /// Nothing: a place where dependencies meet.
    Empty,
    /// Waits for an event's last record at the time of the launch.
    WaitEvent(EventOperand),
    /// Records an event.
    RecordEvent(EventOperand),
    /// Waits for and writes values in memory.
    MemOps(MemOps),
    /// Begins the life of a block of memory.
    Alloc(Arc<Allocation>),
    /// Ends it.
    Free(Arc<Allocation>),
}

impl Operation {
    /// CUDA's number for it.
    pub fn node_type(&self) -> CUgraphNodeType {
        match self {
            Self::Kernel(_) => CUgraphNodeType::KERNEL,
            Self::Copy(_) => CUgraphNodeType::MEMCPY,
            Self::Fill(_) => CUgraphNodeType::MEMSET,
            Self::Host(_) => CUgraphNodeType::HOST,
            Self::Child(_) => CUgraphNodeType::GRAPH,
            Self::Conditional(_) => CUgraphNodeType::CONDITIONAL,
            Self::Empty => CUgraphNodeType::EMPTY,
            Self::WaitEvent(_) => CUgraphNodeType::WAIT_EVENT,
            Self::RecordEvent(_) => CUgraphNodeType::EVENT_RECORD,
            Self::MemOps(_) => CUgraphNodeType::BATCH_MEM_OP,
            Self::Alloc(_) => CUgraphNodeType::MEM_ALLOC,
            Self::Free(_) => CUgraphNodeType::MEM_FREE,
        }
    }

    /// Whether it begins or ends a block's life: such graphs cannot be cloned, and their structure is fixed there.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Alloc(_) | Self::Free(_))
    }

    /// Whether an executable graph may switch it off: kernels, copies and fills only.
    pub fn can_be_disabled(&self) -> bool {
        matches!(self, Self::Kernel(_) | Self::Copy(_) | Self::Fill(_))
    }
}

/// A kernel launch.
#[derive(Clone)]
pub struct Kernel {
    /// The kernel in its context.
    pub function: Arc<Function>,
    /// Grid, block and dynamic shared memory.
    pub shape: Shape,
    /// The parameters' values.
    pub arguments: Arc<Arguments>,
    /// All blocks must be resident at once.
    pub cooperative: bool,
    /// `CU_LAUNCH_ATTRIBUTE_PRIORITY`, read back only.
    pub priority: i32,
}

impl Kernel {
    /// Checks the shape and takes a copy of the arguments.
    ///
    /// # Errors
    /// INVALID_VALUE for a shape beyond CUDA's or the kernel's own limits, else as [`args::pack`].
    ///
    /// # Safety
    /// As [`args::pack`].
    pub unsafe fn new(function: Arc<Function>, shape: Shape, source: Source, cooperative: bool) -> Result<Self> {
        shape.check().map_err(|_| Error::INVALID_VALUE)?;
        function.check_shape(&shape)?;
        // SAFETY: the caller's promise.
        let arguments = Arc::new(unsafe { Arguments::new(&function, &shape, source) }?);
        Ok(Self {
            function,
            shape,
            arguments,
            cooperative,
            priority: 0,
        })
    }
}

/// Values of a kernel's parameters, and the arrays by which they are read back.
pub struct Arguments {
    /// The parameter block as PTX lays it out.
    values: Box<[u8]>,
    /// The address of each value: `kernelParams`. Empty in the other form.
    pointers: Box<[usize]>,
    /// `CU_LAUNCH_PARAM_BUFFER_POINTER`, the block, `CU_LAUNCH_PARAM_BUFFER_SIZE`, the size, end. Empty in the other form.
    extra: Box<[usize]>,
    /// What `extra` points to.
    _size: Box<usize>,
}

impl Arguments {
    /// # Safety
    /// As [`args::pack`].
    unsafe fn new(function: &Function, shape: &Shape, source: Source) -> Result<Self> {
        let entry = function.entry();
        let mut block = vec![0; args::size(entry)];
        // SAFETY: the caller's promise.
        unsafe { args::pack(entry, source, shape, &Hidden::default(), &mut block) }?;
        block.truncate(entry.param_size as usize);
        let values = block.into_boxed_slice();
        let base = values.as_ptr() as usize;
        let size = Box::new(values.len());
        let (pointers, extra) = match source {
            Source::Pointers(_) => (
                entry.params.iter().map(|param| base + param.offset as usize).collect(),
                Box::default(),
            ),
            Source::Buffer(..) => (
                Box::default(),
                Box::from([1, base, 2, core::ptr::from_ref::<usize>(&size) as usize, 0]),
            ),
        };
        Ok(Self {
            values,
            pointers,
            extra,
            _size: size,
        })
    }

    /// Where a launch finds the values, for as long as `self` lives.
    pub fn source(&self) -> Source {
        match self.values.len() {
            0 => Source::Pointers(core::ptr::null()),
            len => Source::Buffer(self.values.as_ptr(), len),
        }
    }

    /// `kernelParams`; NULL for a kernel without parameters and in the other form.
    pub fn pointers(&self) -> *mut *mut c_void {
        array(&self.pointers)
    }

    /// `extra`; NULL when the values were not given so.
    pub fn extra(&self) -> *mut *mut c_void {
        array(&self.extra)
    }
}

fn array(words: &[usize]) -> *mut *mut c_void {
    match words {
        [] => core::ptr::null_mut(),
        words => words.as_ptr().cast_mut().cast(),
    }
}

/// What a side of a copy was when the copy was described.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A device's memory, a graph's included.
    Device,
    /// Host memory that CUDA gave out.
    Pinned,
    /// The application's own.
    Other,
}

impl Origin {
    /// What a side is now.
    fn of(side: &Side) -> Self {
        if side.array != 0 || super::memory::owns(side.start) {
            return Self::Device;
        }
        match memory::lookup(side.start).map(|entry| entry.kind) {
            Some(Kind::Host | Kind::Managed) => Self::Pinned,
            Some(Kind::Registered) | None => Self::Other,
            Some(_) => Self::Device,
        }
    }

    /// Checks that a side still is what it was: the host must not touch addresses that were freed since.
    ///
    /// # Errors
    /// INVALID_VALUE, where CUDA goes on and meets a fault.
    pub fn check(self, now: Place) -> Result<()> {
        match (self, now) {
            (Self::Device, Place::Pinned(_) | Place::Pageable) | (Self::Pinned, Place::Pageable) => {
                Err(Error::INVALID_VALUE)
            }
            _ => Ok(()),
        }
    }
}

/// A copy. Sides that are CUDA arrays are looked up again at every launch.
#[derive(Clone)]
pub struct Copy {
    /// Where the first byte goes.
    pub dst: Side,
    /// Where it comes from.
    pub src: Side,
    /// How much is copied.
    pub extent: Extent,
    /// What destination and source were.
    pub origins: (Origin, Origin),
    /// The application's own description, to be read back.
    pub params: Described,
}

impl Copy {
    /// A copy as the application described it.
    pub fn described(dst: Side, src: Side, extent: Extent, params: Described) -> Self {
        Self {
            dst,
            src,
            extent,
            origins: (Origin::of(&dst), Origin::of(&src)),
            params,
        }
    }

    /// A copy between places that were looked up.
    pub fn new(dst: &Side, src: &Side, extent: &Extent, (to, from): (Place, Place)) -> Self {
        let kind = |side: &Side, place: &Place| match place {
            _ if side.array != 0 => CUmemorytype::ARRAY,
            Place::Device(_) => CUmemorytype::DEVICE,
            Place::Pinned(_) | Place::Pageable => CUmemorytype::HOST,
        };
        let mut params = CUDA_MEMCPY3D {
            srcMemoryType: kind(src, &from),
            srcHost: src.start as *const c_void,
            srcDevice: src.start,
            srcPitch: src.pitch as usize,
            srcHeight: src.slice_height as usize,
            dstMemoryType: kind(dst, &to),
            dstHost: dst.start as *mut c_void,
            dstDevice: dst.start,
            dstPitch: dst.pitch as usize,
            dstHeight: dst.slice_height as usize,
            WidthInBytes: extent.width as usize,
            Height: extent.height as usize,
            Depth: extent.depth as usize,
            ..CUDA_MEMCPY3D::zeroed()
        };
        // Positions in an array instead of addresses.
        if let Ok(array) = array::get(src.array) {
            let [x, y, z] = array.position(src.start).map(|n| n as usize);
            (params.srcHost, params.srcDevice, params.srcPitch, params.srcHeight) = (core::ptr::null(), 0, 0, 0);
            params.srcArray = src.array as CUarray;
            (params.srcXInBytes, params.srcY, params.srcZ) = (x, y, z);
        }
        if let Ok(array) = array::get(dst.array) {
            let [x, y, z] = array.position(dst.start).map(|n| n as usize);
            (params.dstHost, params.dstDevice, params.dstPitch, params.dstHeight) = (core::ptr::null_mut(), 0, 0, 0);
            params.dstArray = dst.array as CUarray;
            (params.dstXInBytes, params.dstY, params.dstZ) = (x, y, z);
        }
        Self::described(*dst, *src, *extent, Described(params))
    }
}

/// A copy's description as the driver API reads it back. Its pointers are never followed.
#[derive(Clone, Copy)]
pub struct Described(pub CUDA_MEMCPY3D);

// SAFETY: a plain structure, which is only handed back to the application.
unsafe impl Send for Described {}
// SAFETY: as above.
unsafe impl Sync for Described {}

/// A fill of rows.
#[derive(Clone, Copy)]
pub struct Fill {
    /// The application's description.
    pub params: CUDA_MEMSET_NODE_PARAMS,
}

impl Fill {
    /// Where it goes and how far.
    pub fn place(&self) -> (Side, Extent) {
        let p = &self.params;
        let extent = Extent {
            width: p.width as u64 * u64::from(p.elementSize),
            height: p.height as u64,
            depth: 1,
        };
        let side = Side::boxed(p.dst, p.pitch as u64, extent.height);
        (side, extent)
    }
}

/// A call on the host.
#[derive(Clone)]
pub struct Host {
    /// The application's function and its data, to be read back.
    pub function: usize,
    /// See `function`.
    pub data: usize,
    /// Calls it; gets the process's fault, if there is one.
    pub call: Arc<dyn Fn(Option<Error>) + Send + Sync>,
}

/// An event and its handle.
#[derive(Clone)]
pub struct EventOperand {
    /// What the application calls it.
    pub handle: u64,
    /// The event.
    pub event: Arc<Event>,
}

/// Stream memory operations.
#[derive(Clone)]
pub struct MemOps {
    /// What is done; addresses are checked when it is launched.
    pub operations: Arc<[MemOp]>,
    /// The same as the application reads it back.
    pub params: Arc<[CUstreamBatchMemOpParams]>,
    /// The context's handle.
    pub context: usize,
}

impl MemOps {
    /// Operations in a context.
    pub fn new(operations: &[MemOp], context: &Context) -> Self {
        Self {
            operations: operations.into(),
            params: operations.iter().map(describe).collect(),
            context: context.handle().addr(),
        }
    }
}

/// An operation as `cuStreamBatchMemOp` takes it.
fn describe(operation: &MemOp) -> CUstreamBatchMemOpParams {
    let mut params = CUstreamBatchMemOpParams::zeroed();
    match *operation {
        MemOp::Write { address, value, width } => {
            params.writeValue = CUstreamBatchMemOpParams_writeValue {
                operation: match width {
                    Width::Four => CUstreamBatchMemOpType::WRITE_VALUE_32,
                    Width::Eight => CUstreamBatchMemOpType::WRITE_VALUE_64,
                },
                address,
                u: CUstreamBatchMemOpParams_writeValue_u { value64: value },
                flags: 0,
                alias: 0,
            }
        }
        MemOp::Wait {
            address,
            value,
            width,
            compare,
        } => {
            params.waitValue = CUstreamBatchMemOpParams_waitValue {
                operation: match width {
                    Width::Four => CUstreamBatchMemOpType::WAIT_VALUE_32,
                    Width::Eight => CUstreamBatchMemOpType::WAIT_VALUE_64,
                },
                address,
                u: CUstreamBatchMemOpParams_waitValue_u { value64: value },
                flags: match compare {
                    Compare::GreaterOrEqual => 0,
                    Compare::Equal => 1,
                    Compare::And => 2,
                    Compare::Nor => 3,
                },
                alias: 0,
            }
        }
        MemOp::Barrier => params.operation = CUstreamBatchMemOpType::BARRIER,
    }
    params
}
