//! Launching a kernel: checks, arguments, dispatch.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::args::{self, Hidden, Source};
use super::function::Function;
use super::geometry::geometry;
use super::module::Module;
use super::printf::Ring;
use super::services::Block;
use super::{occupancy, services};
use crate::abi::{Error, Result};
use crate::device::Device;
use crate::graph::operation::Kernel;
use crate::graph::{Operation, capture};
use crate::hsa::fault;
use crate::hsa::queue::{Dispatch, Packet};
use crate::stream::completion::{Resource, Resources};
use crate::stream::staging::Chunk;
use crate::stream::{self, Stream};

/// The dynamic part of shared memory begins at a multiple of this many bytes after the static part.
const DYNAMIC_ALIGNMENT: u32 = 16;

/// Grid, block and dynamic shared memory of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
}

impl Shape {
    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Checks what holds for every kernel.
    ///
    /// # Errors
    /// INVALID_CONFIGURATION for zeroes and for sizes beyond CUDA's limits (the driver API calls it INVALID_VALUE).
    pub fn check(&self) -> Result<()> {
        let limits = [(self.grid, [0x7fff_ffff, 65535, 65535]), (self.block, [1024, 1024, 64])];
        let within = limits
            .iter()
            .all(|(sizes, most)| sizes.iter().zip(most).all(|(n, most)| (1..=*most).contains(n)));
        if within && self.threads() <= u64::from(occupancy::MAX_THREADS) {
            Ok(())
        } else {
            Err(Error::INVALID_CONFIGURATION)
        }
    }
}

/// A launch but for its arguments.
struct Plan {
    dispatch: Dispatch,
    hidden: Hidden,
    services: Option<Box<Services>>,
    /// All work-groups must be on the device at once.
    cooperative: bool,
    /// Bytes that the code reads its arguments from.
    kernarg_size: u32,
}

/// What few kernels need.
struct Services {
    /// What is printed is in its variables.
    module: Arc<Module>,
    ring: Option<Arc<Ring>>,
    _heap: Option<Arc<Block>>,
    _grid_workspace: Option<Arc<Block>>,
}

/// What must live until a launch has ended.
pub struct Launched {
    /// Holds its code, and the variables of its module.
    function: Arc<Function>,
    _services: Option<Box<Services>>,
    /// Where its arguments are, unless somebody else keeps them.
    _arguments: Option<Chunk>,
}

/// The names of the kernels that run now, or run next.
fn in_flight() -> Vec<String> {
    let mut names = stream::running(|launched| launched.function.name().to_owned());
    names.sort_unstable();
    names.dedup();
    names
}

impl Plan {
    /// The `printf` ring, where the kernel may write to one, and its module.
    fn ring(&self) -> Option<(&Arc<Ring>, &Arc<Module>)> {
        let services = self.services.as_ref()?;
        Some((services.ring.as_ref()?, &services.module))
    }

    /// What must live until the launch of `function` has ended.
    fn into_launched(self, function: Arc<Function>, arguments: Option<Chunk>) -> Launched {
        Launched {
            function,
            _services: self.services,
            _arguments: arguments,
        }
    }
}

/// A launch that needs nothing but a place for its arguments and a ring, unless it says otherwise.
pub struct Prepared {
    plan: Plan,
    function: Arc<Function>,
    arguments: Vec<u8>,
}

impl Prepared {
    /// Its packet may go into any ring, beside others: it does not print, which the `printf` ring would have to know, and is not cooperative.
    pub fn is_plain(&self) -> bool {
        self.plan.ring().is_none() && !self.plan.cooperative
    }

    /// The arguments, hidden ones included.
    pub fn arguments(&self) -> &[u8] {
        &self.arguments
    }

    /// Bytes that the arguments need.
    pub fn kernarg_size(&self) -> usize {
        self.arguments.len().max(self.plan.kernarg_size as usize)
    }

    /// The packet, with the arguments at `kernarg`.
    pub fn packet(&self, kernarg: u64) -> Packet {
        Packet::dispatch(&Dispatch {
            kernarg,
            ..self.plan.dispatch
        })
    }

    /// What must live until the launch has ended.
    pub fn into_resource(self) -> Resource {
        Box::new(self.plan.into_launched(self.function, None))
    }
}

/// Checks a launch of `function` on `device` and prepares it. The shape has passed [`Shape::check`].
///
/// # Errors
/// INVALID_VALUE when the shape breaks the kernel's own bounds or the arguments are missing, COOPERATIVE_LAUNCH_TOO_LARGE,
/// or what the translation of the kernel failed with.
///
/// # Safety
/// As [`args::pack`].
pub unsafe fn prepare(
    function: &Arc<Function>,
    device: &'static Device,
    shape: &Shape,
    source: Source,
    cooperative: bool,
) -> Result<Prepared> {
    let plan = plan(function, device, shape, cooperative)?;
    let mut arguments = vec![0; args::size(function.entry())];
    // SAFETY: the caller's promise.
    unsafe { args::pack(function.entry(), source, shape, &plan.hidden, &mut arguments) }?;
    Ok(Prepared {
        plan,
        function: Arc::clone(function),
        arguments,
    })
}

/// Checks a launch of `function` on `device`, arguments aside. The shape has passed [`Shape::check`].
///
/// # Errors
/// As [`prepare`].
pub fn check(function: &Function, device: &'static Device, shape: &Shape, cooperative: bool) -> Result<()> {
    plan(function, device, shape, cooperative).map(|_| ())
}

/// A number for a launch, unique in the process. Threads take them by the thousand.
fn next_grid() -> u64 {
    const SHARE: u64 = 1 << 10;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    let (mut next, mut end) = OWN.get();
    if next == end {
        next = NEXT.fetch_add(SHARE, Ordering::Relaxed);
        end = next + SHARE;
    }
    OWN.set((next + 1, end));
    next
}

fn plan(function: &Function, device: &'static Device, shape: &Shape, cooperative: bool) -> Result<Plan> {
    fault::blame_with(in_flight);
    function.check_shape(shape)?;
    let context = function.context()?;
    if cooperative {
        check_residency(function, device, shape)?;
    }
    let loaded = function.for_block(shape.block)?;
    let ring = loaded.uses_printf().then(|| services::ring(context)).transpose()?;
    let heap = loaded.uses_heap().then(|| services::heap(context)).transpose()?;
    let grid_workspace = cooperative.then(|| services::grid_workspace(context)).transpose()?;
    let address = |block: &Option<Arc<Block>>| block.as_ref().map_or(0, |block| block.address());
    let hidden = Hidden {
        data: function.data_address(),
        ring: ring.as_ref().map_or(0, |ring| ring.address()),
        heap: address(&heap),
        grid_id: next_grid(),
        grid_workspace: address(&grid_workspace),
    };
    let geometry = geometry(loaded.layout(), shape)?;
    let mut group_size = loaded.symbol().group_size;
    if shape.dynamic_shared > 0 {
        group_size = group_size.next_multiple_of(DYNAMIC_ALIGNMENT) + shape.dynamic_shared;
    }
    if group_size > occupancy::LDS {
        return Err(Error::INVALID_VALUE);
    }
    let dispatch = Dispatch {
        workgroup: geometry.workgroup,
        grid: geometry.grid,
        private_size: loaded.symbol().private_size,
        group_size,
        kernel_object: loaded.symbol().object,
        kernarg: 0,
    };
    let services = if ring.is_some() || heap.is_some() || grid_workspace.is_some() {
        Some(Box::new(Services {
            module: function.module()?,
            ring,
            _heap: heap,
            _grid_workspace: grid_workspace,
        }))
    } else {
        None
    };
    log::trace!("launch {} {shape:?} as {geometry:?}", function.name());
    Ok(Plan {
        dispatch,
        hidden,
        services,
        cooperative,
        kernarg_size: loaded.symbol().kernarg_size,
    })
}

/// Checks that the device holds all blocks of a cooperative launch at once.
///
/// # Errors
/// COOPERATIVE_LAUNCH_TOO_LARGE; NOT_SUPPORTED where the device has no ring whose work-groups are sure to be on it together.
fn check_residency(function: &Function, device: &Device, shape: &Shape) -> Result<()> {
    if !device.agent.cooperative {
        log::warn!("{}: no cooperative launches on this device", function.name());
        return Err(Error::NOT_SUPPORTED);
    }
    let blocks: u64 = shape.grid.iter().map(|&n| u64::from(n)).product();
    let resident = function.blocks_per_unit(shape.threads() as u32, u64::from(shape.dynamic_shared))?;
    if blocks > u64::from(resident) * u64::from(device.agent.compute_units) {
        return Err(Error::COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    Ok(())
}

/// Launches `function` in `stream`, or makes the launch a node where that is captured. The shape has passed [`Shape::check`].
///
/// # Errors
/// As [`prepare`], or the process's fault.
///
/// # Safety
/// As [`args::pack`].
pub unsafe fn launch(
    function: Arc<Function>,
    stream: &Stream,
    shape: &Shape,
    source: Source,
    cooperative: bool,
) -> Result<()> {
    fault::check()?;
    if let Some(sequence) = capture::intercept(stream)? {
        if cooperative {
            // Recorded: looked at here, and it spoils the capture.
            check_residency(&function, stream.device(), shape).inspect_err(|_| sequence.invalidate())?;
        }
        // SAFETY: the caller's promise.
        let kernel = unsafe { Kernel::new(function, *shape, source, cooperative) }?;
        return sequence.add(stream, Operation::Kernel(kernel));
    }
    let plan = plan(&function, stream.device(), shape, cooperative)?;
    let size = args::size(function.entry());
    let mut chunk = Chunk::new(stream.device(), size.max(plan.kernarg_size as usize))?;
    // Written where the kernel reads them.
    // SAFETY: the caller's promise.
    unsafe {
        args::pack(
            function.entry(),
            source,
            shape,
            &plan.hidden,
            &mut chunk.bytes()[..size],
        )
    }?;
    let packet = Packet::dispatch(&Dispatch {
        kernarg: chunk.address(),
        ..plan.dispatch
    });
    let printing = plan.ring().map(|(ring, module)| (Arc::clone(ring), Arc::clone(module)));
    let resources = Resources::Launch(plan.into_launched(function, Some(chunk)));
    let submit = || match cooperative {
        true => stream.cooperative_packet(packet, resources),
        false => stream.packet(packet, resources),
    };
    match printing {
        Some((ring, module)) => ring.with_writer(&module, submit),
        None => submit().map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_refused_as_recorded() {
        let shape = |grid, block| Shape {
            grid,
            block,
            dynamic_shared: 0,
        };
        let one = [1, 1, 1];
        for (grid, block) in [
            (one, [1024, 1, 1]),
            (one, [1, 1, 64]),
            ([1, 65535, 1], one),
            ([0x7fff_ffff, 1, 1], one),
            (one, [32, 32, 1]),
        ] {
            assert_eq!(shape(grid, block).check(), Ok(()), "{grid:?} {block:?}");
        }
        for (grid, block) in [
            ([0, 1, 1], one),
            (one, [0, 1, 1]),
            (one, [1025, 1, 1]),
            (one, [1, 1025, 1]),
            (one, [1, 1, 65]),
            (one, [32, 33, 1]),
            ([1, 65536, 1], one),
            ([1, 1, 65536], one),
            ([0x8000_0000, 1, 1], one),
        ] {
            assert_eq!(
                shape(grid, block).check(),
                Err(Error::INVALID_CONFIGURATION),
                "{grid:?} {block:?}"
            );
        }
    }
}
