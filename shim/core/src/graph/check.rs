//! What would refuse a launch, looked at before anything of it is enqueued: a launch that is refused does nothing.
//!
//! ```text
//! a: allocate p    b: copy to p    c: free p    d: copy from p     refused for d, as if all had been enqueued in this order
//! ```
//!
//! The graph's own memory is in the registry only from its allocation on, which enqueuing begins; so what the operations before did to
//! it is kept here.

use std::sync::Arc;

use super::condition::Branching;
use super::memory::Allocation;
use super::operation::Copy;
use super::{Operation, deferred};
use crate::abi::{Error, Result};
use crate::device::{Context, context, peer};
use crate::module::launch;
use crate::stream::locate::{Place, place};
use crate::stream::spans::{Extent, Side};
use crate::stream::{Stream, fill, memop};

/// A launch that is being looked at.
pub(super) struct Check<'a> {
    stream: &'a Stream,
    /// Memory of the graph that operations so far began or ended, and whether it lives after them.
    changed: Vec<(Arc<Allocation>, bool)>,
    /// What bodies copy and fill of that: they look it up later, when it must not have been freed.
    bound: Vec<Arc<Allocation>>,
    in_body: bool,
}

impl<'a> Check<'a> {
    /// A launch into `stream` that begins by ending what `freed` holds.
    pub fn new(stream: &'a Stream, freed: &[Arc<Allocation>]) -> Self {
        let changed = freed.iter().map(|block| (Arc::clone(block), false)).collect();
        Self {
            stream,
            changed,
            bound: Vec::new(),
            in_body: false,
        }
    }

    /// Packets of a context's streams.
    ///
    /// # Errors
    /// CONTEXT_IS_DESTROYED.
    pub fn packets(&self, owner: u64) -> Result<()> {
        self.context(owner).map(|_| ())
    }

    fn context(&self, owner: u64) -> Result<&'static Context> {
        context::of_streams(owner).ok_or(Error::CONTEXT_IS_DESTROYED)
    }

    /// A conditional node: any of its bodies may run.
    ///
    /// # Errors
    /// As [`Check::operation`]; NOT_SUPPORTED, at the free, for what bodies copy or fill of memory that the graph frees.
    pub fn conditional(&mut self, branching: &Branching) -> Result<()> {
        self.packets(branching.condition.owner())?;
        let outer = std::mem::replace(&mut self.in_body, true);
        let looked = branching.bodies.iter().try_for_each(|body| body.look(self));
        self.in_body = outer;
        looked
    }

    /// An operation, whose turn to be enqueued comes when all that were looked at before have been.
    ///
    /// # Errors
    /// What it will be refused with.
    pub fn operation(&mut self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Kernel(kernel) => {
                let context = self.context(kernel.function.module()?.owner())?;
                launch::check(&kernel.function, context.device, &kernel.shape, kernel.cooperative)
            }
            Operation::Copy(copy) => {
                self.bind(copy.dst.start);
                self.bind(copy.src.start);
                self.copy(copy)
            }
            Operation::Fill(fill) => {
                let (side, extent) = fill.place();
                if extent.is_empty() {
                    return Ok(());
                }
                self.bind(side.start);
                let context = self.context(self.stream.owner())?;
                match self.own(side.start) {
                    Some(_) => match self.place(&side, &extent)? {
                        Place::Device(device) if peer::enabled(context, device) => Ok(()),
                        _ => Err(Error::INVALID_VALUE),
                    },
                    None => fill::place(context, &side, &extent).map(|_| ()),
                }
            }
            Operation::WaitEvent(operand) => operand.event.check_wait(),
            Operation::RecordEvent(operand) => {
                self.context(operand.event.owner())?;
                operand.event.check()
            }
            Operation::MemOps(batch) => batch.operations.iter().try_for_each(|operation| {
                match operation.address().and_then(|address| self.own(address)) {
                    Some(true) => Ok(()),
                    Some(false) => Err(Error::INVALID_VALUE),
                    None => memop::check(self.stream, operation),
                }
            }),
            Operation::Alloc(block) => self.change(block, true),
            Operation::Free(block) => self.change(block, false),
            Operation::Host(_) | Operation::Child(_) | Operation::Conditional(_) | Operation::Empty => Ok(()),
        }
    }

    /// Memory that a body looks up when it runs.
    fn bind(&mut self, address: u64) {
        if self.in_body
            && let Some((block, _)) = self.block(address)
        {
            let block = Arc::clone(block);
            self.bound.push(block);
        }
    }

    fn copy(&self, copy: &Copy) -> Result<()> {
        if copy.extent.is_empty() {
            return Ok(());
        }
        let (to, from) = (
            self.place(&copy.dst, &copy.extent)?,
            self.place(&copy.src, &copy.extent)?,
        );
        deferred::check(copy, to, from)
    }

    /// Whether the block that holds `address` lives, if operations so far began or ended it.
    fn own(&self, address: u64) -> Option<bool> {
        self.block(address).map(|(_, lives)| *lives)
    }

    fn block(&self, address: u64) -> Option<&(Arc<Allocation>, bool)> {
        self.changed.iter().find(|(block, _)| block.contains(address))
    }

    /// As [`place`], by the time that the operation's turn has come.
    fn place(&self, side: &Side, extent: &Extent) -> Result<Place> {
        let own = (side.array == 0).then(|| self.block(side.start)).flatten();
        let Some((block, lives)) = own else {
            return place(side, extent);
        };
        let inside = side.start + side.reach(extent)? <= block.address() + block.size();
        if *lives && inside {
            Ok(Place::Device(block.context().device))
        } else {
            Err(Error::INVALID_VALUE)
        }
    }

    /// A block's life begins or ends: it must be the other way round before.
    fn change(&mut self, block: &Arc<Allocation>, lives: bool) -> Result<()> {
        let known = self.changed.iter_mut().find(|(known, _)| Arc::ptr_eq(known, block));
        let lived = known.as_ref().map_or_else(|| block.is_live(), |(_, lives)| *lives);
        if lived == lives {
            return Err(Error::INVALID_VALUE);
        }
        if !lives && self.bound.iter().any(|bound| Arc::ptr_eq(bound, block)) {
            log::warn!("a conditional body copies or fills memory that its graph frees: not supported");
            return Err(Error::NOT_SUPPORTED);
        }
        match known {
            Some((_, known)) => *known = lives,
            None => self.changed.push((Arc::clone(block), lives)),
        }
        Ok(())
    }
}
