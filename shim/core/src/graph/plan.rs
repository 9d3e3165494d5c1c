//! What a launch submits.
//!
//! A graph of kernels alone is one batch of packets for one ring. Kernels are sorted by their depth; the first of each depth
//! waits for all packets before it (the barrier bit), the others run beside it:
//!
//! ```text
//! a ─┬─> b ──> d        [a|barrier] [b|barrier] [c] [d|barrier]  signal
//!    └─> c ─────┘
//! ```
//!
//! Any other graph is a list of steps in lanes, which are streams for the time of the launch. A node goes on in the lane of
//! a node before it, if that is the lane's last; dependencies between lanes are waits. Chains of kernels are one step.

use std::sync::{Arc, Mutex};

use super::check::Check;
use super::condition::{Branching, Condition};
use super::flat::{Item, dependents, order};
use super::memory::Allocation;
use super::operation::Kernel;
use super::{Operation, deferred};
use crate::abi::{Error, Result};
use crate::device::{Device, context};
use crate::hsa::queue::Packet;
use crate::module::launch::{self, Prepared};
use crate::stream::completion::{Frontier, Resource};
use crate::stream::fill;
use crate::stream::staging::{Chunk, LARGEST};
use crate::stream::{Branches, Stream, memop};

/// Lanes of one launch; further branches share them.
const LANES: usize = 8;
/// Kernels' arguments begin at multiples of this.
const KERNARG_ALIGNMENT: usize = 64;

/// What a launch submits, prepared.
pub(super) struct Plan {
    form: Form,
    /// What launches give a value, in bodies too.
    defaults: Vec<Arc<Condition>>,
    /// Code, arguments, and all else that packets refer to. Behind a lock only because nobody ever looks at it.
    _resources: Mutex<Vec<Resource>>,
}

enum Form {
    Nothing,
    /// Packets for one ring of the device that a context (the id of its streams) works on.
    Batch(u64, Arc<[Packet]>),
    Steps(Vec<Step>),
}

struct Step {
    work: Work,
    lane: usize,
    /// Steps of other lanes that must have ended.
    waits: Vec<usize>,
    /// Somebody in another lane waits for this step.
    is_awaited: bool,
}

enum Work {
    Packets(u64, Arc<[Packet]>),
    /// A conditional node.
    Conditional(Arc<Branching>),
    /// Anything else; [`Operation::Empty`] only gathers what it waits for.
    One(Box<Operation>),
}

impl Plan {
    /// Prepares the launches of a list. Kernels are compiled here if they were not yet.
    ///
    /// # Errors
    /// INVALID_VALUE for a cycle, and what preparing a kernel fails with.
    pub fn new(items: &[Item]) -> Result<Self> {
        let order = order(items).ok_or(Error::INVALID_VALUE)?;
        let mut builder = Builder {
            arguments: Arena::default(),
            resources: Vec::new(),
            kernels: Vec::with_capacity(items.len()),
            conditionals: Vec::new(),
        };
        let mut defaults = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Operation::Conditional(conditional) = &item.operation {
                let bodies: Vec<Arc<Self>> = item
                    .bodies
                    .iter()
                    .map(|body| Self::new(body).map(Arc::new))
                    .collect::<Result<_>>()?;
                defaults.extend(Some(Arc::clone(&conditional.condition)).filter(|condition| condition.has_default()));
                defaults.extend(bodies.iter().flat_map(|body| body.defaults.iter().cloned()));
                builder.conditionals.push((
                    index,
                    Arc::new(Branching {
                        condition: Arc::clone(&conditional.condition),
                        meaning: conditional.meaning,
                        bodies,
                    }),
                ));
            }
            let prepared = match item.active() {
                Operation::Kernel(kernel) => builder.prepare(kernel)?,
                _ => None,
            };
            builder.kernels.push(prepared);
        }
        let form = builder.form(items, &order);
        let mut resources = builder.resources;
        resources.extend(
            builder
                .arguments
                .chunks
                .into_iter()
                .map(|chunk| Box::new(chunk) as Resource),
        );
        Ok(Self {
            form,
            defaults,
            _resources: Mutex::new(resources),
        })
    }

    /// Looks whether a launch will be refused. `freed` ends when it begins.
    ///
    /// # Errors
    /// What an operation would be refused with.
    pub fn check(&self, stream: &Stream, freed: &[Arc<Allocation>]) -> Result<()> {
        self.look(&mut Check::new(stream, freed))
    }

    /// As [`Plan::check`], of a plan in its turn.
    ///
    /// # Errors
    /// As [`Plan::check`].
    pub fn look(&self, check: &mut Check) -> Result<()> {
        match &self.form {
            Form::Nothing => Ok(()),
            Form::Batch(owner, _) => check.packets(*owner),
            Form::Steps(steps) => steps.iter().try_for_each(|step| match &step.work {
                Work::Packets(owner, _) => check.packets(*owner),
                Work::Conditional(branching) => check.conditional(branching),
                Work::One(operation) => check.operation(operation),
            }),
        }
    }

    /// Enqueues a launch, which [`Plan::check`] has passed, as one operation of `stream`. `keep` is what must outlive it besides the plan.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when an operation gets no memory to wait in; those before it still run.
    pub fn submit(self: &Arc<Self>, stream: &Stream, keep: &Resources) -> Result<()> {
        self.submit_with(&self.defaults, stream, keep)
    }

    /// As [`Plan::submit`], for the body of a conditional node: values stay as they are.
    ///
    /// # Errors
    /// What an operation fails with.
    pub fn submit_body(self: &Arc<Self>, stream: &Stream, keep: &Resources) -> Result<()> {
        self.submit_with(&[], stream, keep)
    }

    fn submit_with(self: &Arc<Self>, defaults: &[Arc<Condition>], stream: &Stream, keep: &Resources) -> Result<()> {
        let resources = || -> Vec<Resource> { vec![Box::new((Arc::clone(self), Arc::clone(keep)))] };
        match &self.form {
            Form::Nothing => Ok(()),
            Form::Batch(owner, packets) if *owner == stream.owner() => {
                stream.packets(Arc::clone(packets), resources()).map(|_| ())
            }
            Form::Batch(owner, packets) => stream.branch(resources(), |branches| {
                let lane = branches.open(*owner)?;
                lane.packets(Arc::clone(packets), Vec::new()).map(|_| ())
            }),
            Form::Steps(steps) => stream.branch(resources(), |branches| {
                if !defaults.is_empty() {
                    let lane = branches.open(stream.owner())?;
                    defaults.iter().try_for_each(|condition| condition.begin(&lane))?;
                    branches.begin_behind(&lane)?;
                }
                run(steps, stream, branches, keep)
            }),
        }
    }
}

/// What launches on their way keep alive besides their plan.
pub(super) type Resources = Arc<dyn core::any::Any + Send + Sync>;

/// Enqueues steps into lanes.
fn run(steps: &[Step], stream: &Stream, branches: &mut Branches, keep: &Resources) -> Result<()> {
    let mut lanes: Vec<Option<Arc<Stream>>> = vec![None; LANES];
    let mut ends: Vec<Frontier> = Vec::with_capacity(steps.len());
    for step in steps {
        let owner = match &step.work {
            Work::Packets(owner, _) => *owner,
            Work::Conditional(branching) => branching.condition.owner(),
            Work::One(operation) => owner(operation).unwrap_or_else(|| stream.owner()),
        };
        let mut lane = match &lanes[step.lane] {
            Some(lane) => Arc::clone(lane),
            None => branches.open(owner)?,
        };
        if lane.owner() != owner {
            // The next node of the chain works in another context, so the chain goes on in a stream of that one.
            let before = lane.frontier()?;
            lane = branches.open(owner)?;
            lane.wait_for(&before);
        }
        lanes[step.lane] = Some(Arc::clone(&lane));
        for &before in &step.waits {
            lane.wait_for(&ends[before]);
        }
        match &step.work {
            Work::Packets(_, packets) => lane.packets(Arc::clone(packets), Vec::new()).map(|_| ())?,
            Work::Conditional(branching) => branching.enqueue(&lane, keep)?,
            Work::One(operation) => enqueue(&lane, operation)?,
        }
        ends.push(if step.is_awaited {
            lane.frontier()?
        } else {
            Frontier::default()
        });
    }
    Ok(())
}

/// The context, by the id of its streams, that an operation is bound to.
fn owner(operation: &Operation) -> Option<u64> {
    match operation {
        Operation::Kernel(kernel) => kernel.function.module().ok().map(|module| module.owner()),
        Operation::RecordEvent(operand) => Some(operand.event.owner()),
        _ => None,
    }
}

fn enqueue(lane: &Arc<Stream>, operation: &Operation) -> Result<()> {
    match operation {
        Operation::Kernel(kernel) => {
            // SAFETY: the values are the kernel's, and live as long as the operation.
            unsafe {
                launch::launch(
                    Arc::clone(&kernel.function),
                    lane,
                    &kernel.shape,
                    kernel.arguments.source(),
                    kernel.cooperative,
                )
            }
        }
        Operation::Copy(copy) => deferred::enqueue(lane, copy),
        Operation::Fill(fill) => {
            let (side, extent) = fill.place();
            fill::fill(
                lane,
                &side,
                &extent,
                fill.params.value,
                fill.params.elementSize as usize,
            )
        }
        Operation::Host(host) => {
            let call = Arc::clone(&host.call);
            lane.host_call(move |fault| call(fault))
        }
        // A conditional node is work of its own kind.
        Operation::Child(_) | Operation::Conditional(_) | Operation::Empty => Ok(()),
        Operation::WaitEvent(operand) => operand.event.wait_in(lane),
        Operation::RecordEvent(operand) => operand.event.record(lane),
        Operation::MemOps(batch) => memop::enqueue(lane, &batch.operations),
        Operation::Alloc(block) => block.begin(),
        Operation::Free(block) => block.end(),
    }
}

/// A kernel that needs nothing but its packet.
struct Ready {
    owner: u64,
    packet: Packet,
}

struct Builder {
    arguments: Arena,
    resources: Vec<Resource>,
    /// For each item; `None` for what is no kernel, or one whose launches need more than a packet ([`Prepared::is_plain`]).
    kernels: Vec<Option<Ready>>,
    /// By the place of their item.
    conditionals: Vec<(usize, Arc<Branching>)>,
}

impl Builder {
    fn prepare(&mut self, kernel: &Kernel) -> Result<Option<Ready>> {
        let module = kernel.function.module()?;
        let context = context::of_streams(module.owner()).ok_or(Error::CONTEXT_IS_DESTROYED)?;
        // SAFETY: the values are the kernel's own.
        let prepared: Prepared = unsafe {
            launch::prepare(
                &kernel.function,
                context.device,
                &kernel.shape,
                kernel.arguments.source(),
                kernel.cooperative,
            )
        }?;
        if !prepared.is_plain() {
            return Ok(None);
        }
        let kernarg = self
            .arguments
            .put(context.device, prepared.arguments(), prepared.kernarg_size())?;
        let packet = prepared.packet(kernarg);
        self.resources.push(prepared.into_resource());
        Ok(Some(Ready {
            owner: module.owner(),
            packet,
        }))
    }

    fn form(&self, items: &[Item], order: &[usize]) -> Form {
        let work = |index: usize| !matches!(items[index].active(), Operation::Empty);
        let mut owners = order
            .iter()
            .filter(|&&index| work(index))
            .map(|&index| self.kernels[index].as_ref());
        let Some(first) = owners.next() else {
            return Form::Nothing;
        };
        match first.map(|ready| ready.owner) {
            Some(owner) if owners.all(|ready| ready.is_some_and(|ready| ready.owner == owner)) => {
                Form::Batch(owner, self.batch(items, order).into())
            }
            _ => Form::Steps(self.steps(items, order)),
        }
    }

    fn work(&self, index: usize, item: &Item) -> Work {
        match self.conditionals.iter().find(|(place, _)| *place == index) {
            Some((_, branching)) => Work::Conditional(Arc::clone(branching)),
            None => Work::One(Box::new(item.active().clone())),
        }
    }

    /// All kernels, sorted by depth.
    fn batch(&self, items: &[Item], order: &[usize]) -> Vec<Packet> {
        // The depth at which an item begins; a kernel ends one deeper.
        let mut ends = vec![0usize; items.len()];
        let mut kernels = Vec::new();
        for &index in order {
            let depth = items[index].after.iter().map(|&before| ends[before]).max().unwrap_or(0);
            ends[index] = depth;
            if let Some(ready) = &self.kernels[index] {
                ends[index] = depth + 1;
                kernels.push((depth, ready.packet));
            }
        }
        // Stable: the order of creation within a depth.
        kernels.sort_by_key(|(depth, _)| *depth);
        let mut packets = Vec::with_capacity(kernels.len() + 1);
        let mut depth = None;
        for (own, packet) in kernels.iter().copied() {
            packets.push(if depth == Some(own) {
                packet.without_barrier()
            } else {
                packet
            });
            depth = Some(own);
        }
        let widest_last = kernels.iter().rev().take_while(|(own, _)| Some(*own) == depth).count() > 1;
        if widest_last {
            // Its end is the end of all.
            packets.push(Packet::barrier_and(&[]));
        }
        packets
    }

    fn steps(&self, items: &[Item], order: &[usize]) -> Vec<Step> {
        let dependents = dependents(items);
        let mut steps: Vec<Step> = Vec::new();
        // The step that an item belongs to, and the last step of each lane.
        let mut of: Vec<usize> = vec![0; items.len()];
        let mut last: [Option<usize>; LANES] = [None; LANES];
        let mut opened = 0;
        // Chains of kernels, as they grow.
        let mut chains: Vec<Option<Chain>> = Vec::new();
        for &index in order {
            let item = &items[index];
            let ready = self.kernels[index].as_ref();
            let before: Vec<usize> = item.after.iter().map(|&item| of[item]).collect();
            // A kernel whose only predecessor is a kernel with no other successor grows the chain.
            if let (Some(ready), [only]) = (ready, item.after.as_slice())
                && dependents[*only].len() == 1
                && let Some(chain) = &mut chains[of[*only]]
                && chain.owner == ready.owner
                && last[steps[of[*only]].lane] == Some(of[*only])
            {
                chain.packets.push(ready.packet);
                of[index] = of[*only];
                continue;
            }
            let goes_on = before
                .iter()
                .copied()
                .find(|&step| last[steps[step].lane] == Some(step));
            let lane = match goes_on {
                Some(step) => steps[step].lane,
                None => {
                    opened += 1;
                    (opened - 1) % LANES
                }
            };
            let mut waits: Vec<usize> = before.into_iter().filter(|&step| steps[step].lane != lane).collect();
            waits.sort_unstable();
            waits.dedup();
            for &step in &waits {
                steps[step].is_awaited = true;
            }
            of[index] = steps.len();
            last[lane] = Some(steps.len());
            chains.push(ready.map(|ready| Chain {
                owner: ready.owner,
                packets: vec![ready.packet],
            }));
            steps.push(Step {
                work: self.work(index, item),
                lane,
                waits,
                is_awaited: false,
            });
        }
        for (step, chain) in steps.iter_mut().zip(chains) {
            if let Some(chain) = chain {
                step.work = Work::Packets(chain.owner, chain.packets.into());
            }
        }
        steps
    }
}

struct Chain {
    owner: u64,
    packets: Vec<Packet>,
}

/// Memory for the arguments of many kernels.
#[derive(Default)]
struct Arena {
    chunks: Vec<Chunk>,
    /// Bytes of the last chunk that are used, and its device.
    used: usize,
    device: Option<i32>,
}

impl Arena {
    /// Bytes asked for at once.
    const STEP: usize = 1 << 14;

    /// Puts `bytes` into `size` bytes of a chunk and returns their address.
    fn put(&mut self, device: &'static Device, bytes: &[u8], size: usize) -> Result<u64> {
        let size = size.max(bytes.len());
        let at = self.used.next_multiple_of(KERNARG_ALIGNMENT);
        let fits =
            self.device == Some(device.ordinal) && self.chunks.last().is_some_and(|chunk| at + size <= chunk.size());
        let at = if fits {
            at
        } else {
            self.chunks.push(Chunk::new(device, size.clamp(Self::STEP, LARGEST))?);
            self.device = Some(device.ordinal);
            0
        };
        let chunk = self.chunks.last_mut().ok_or(Error::UNKNOWN)?;
        let room = chunk.bytes().get_mut(at..at + size).ok_or(Error::INVALID_VALUE)?;
        room.fill(0);
        room[..bytes.len()].copy_from_slice(bytes);
        self.used = at + size;
        Ok(chunk.address() + at as u64)
    }
}
