//! An executable graph: instantiated, updated, launched.

use std::sync::{Arc, Mutex, MutexGuard};

use super::flat::{Difference, Item, find, flatten, has_order, pair};
use super::memory::Allocation;
use super::operation::Copy;
use super::plan::{Plan, Resources};
use super::user_object::Held;
use super::{EXECS, Graph, Operation, capture};
use crate::abi::{CUgraphExecUpdateResult, Error, Result};
use crate::hsa::fault;
use crate::stream::Stream;
use crate::stream::completion::Frontier;

/// `CU_GRAPH_INSTANTIATE_FLAG_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u64);

impl Flags {
    const AUTO_FREE: u64 = 1;
    const UPLOAD: u64 = 2;
    const DEVICE_LAUNCH: u64 = 4;
    const NODE_PRIORITY: u64 = 8;

    /// Checks flags; `upload` is allowed where the call takes a stream for it.
    ///
    /// # Errors
    /// INVALID_VALUE for unknown ones, and for a launch by the device together with memory freed at launches.
    pub fn new(flags: u64, upload: bool) -> Result<Self> {
        let known = Self::AUTO_FREE | Self::DEVICE_LAUNCH | Self::NODE_PRIORITY | if upload { Self::UPLOAD } else { 0 };
        let both = Self::AUTO_FREE | Self::DEVICE_LAUNCH;
        if flags & !known != 0 || flags & both == both {
            return Err(Error::INVALID_VALUE);
        }
        Ok(Self(flags))
    }

    /// As `cuGraphExecGetFlags` reads them back: an upload is over, and node priorities are not shown (recorded).
    pub fn read_back(self) -> u64 {
        self.0 & (Self::AUTO_FREE | Self::DEVICE_LAUNCH)
    }
}

/// How an update ended, and the nodes of the new graph at which it failed, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// What happened.
    pub result: CUgraphExecUpdateResult,
    /// Where.
    pub node: u64,
    /// Where the dependency comes from that is another than before.
    pub from: u64,
}

/// An executable graph.
pub struct Exec {
    handle: u64,
    flags: Flags,
    state: Mutex<State>,
    /// What [`Graph::claim_instance`] gave.
    claim: Arc<()>,
    /// User objects and the claim; launches on their way keep them.
    keep: Resources,
}

struct State {
    items: Vec<Item>,
    /// `None` after a change of parameters.
    plan: Option<Arc<Plan>>,
    /// The end of the last launch: launches of one executable graph run one after the other.
    last: Frontier,
}

impl Exec {
    /// Instantiates a graph and returns the handle.
    ///
    /// # Errors
    /// INVALID_VALUE for a cycle and where [`Graph::refusal`] says so, NOT_SUPPORTED for a second executable graph of a graph with memory
    /// or conditional nodes, and what preparing a kernel fails with.
    pub fn instantiate(graph: &Graph, flags: Flags) -> Result<u64> {
        let items = flatten(graph);
        let by_device = flags.0 & Flags::DEVICE_LAUNCH != 0 && items.iter().any(|item| !item.bodies.is_empty());
        if graph.refusal().is_some() || by_device {
            return Err(Error::INVALID_VALUE);
        }
        // Recorded: a second executable graph is refused before a cycle is.
        let claim = graph.claim_instance()?;
        if !has_order(&items) {
            return Err(Error::INVALID_VALUE);
        }
        let plan = Arc::new(Plan::new(&items)?);
        let objects = graph.objects();
        objects.iter().for_each(|object| object.retain(1));
        let handle = EXECS.reserve();
        let exec = Self {
            handle,
            flags,
            state: Mutex::new(State {
                items,
                plan: Some(plan),
                last: Frontier::default(),
            }),
            claim: Arc::clone(&claim),
            keep: Arc::new((claim, Held(objects))),
        };
        EXECS.publish(handle, Arc::new(exec));
        Ok(handle)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Ends the handle. Launches on their way go on.
    pub fn destroy(&self) {
        EXECS.remove(self.handle);
    }

    /// What it was instantiated with.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// Enqueues the graph as one operation of `stream`.
    ///
    /// # Errors
    /// STREAM_CAPTURE_UNSUPPORTED in a stream that is captured (recorded), INVALID_VALUE when it allocates what was not freed since
    /// the last launch, and what an operation fails with.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        fault::check()?;
        capture::refuse(stream)?;
        let mut state = self.state();
        let plan = state.plan()?;
        let freed = self.freed_at_launch(&state.items);
        plan.check(stream, &freed)?;
        freed.iter().try_for_each(|block| block.end())?;
        if !state.last.is_done() {
            stream.wait_for(&state.last);
        }
        plan.submit(stream, &self.keep)?;
        state.last = stream.frontier()?;
        Ok(())
    }

    /// Makes the next launch fast: everything is prepared already, but for changed parameters.
    ///
    /// # Errors
    /// What preparing a kernel fails with.
    pub fn prepare(&self) -> Result<()> {
        self.state().plan().map(|_| ())
    }

    /// What earlier launches allocated and nobody has freed since, if launches free that.
    fn freed_at_launch(&self, items: &[Item]) -> Vec<Arc<Allocation>> {
        if self.flags.0 & Flags::AUTO_FREE == 0 {
            return Vec::new();
        }
        let live = |item: &Item| match &item.operation {
            Operation::Alloc(block) if block.is_live() => Some(Arc::clone(block)),
            _ => None,
        };
        items.iter().filter_map(live).collect()
    }

    /// Replaces the parameters of the node that `node` was instantiated as.
    ///
    /// # Errors
    /// INVALID_VALUE for a node that is not in it, for another type, and for what an update may not change.
    pub fn set(&self, node: u64, operation: Operation) -> Result<()> {
        let mut state = self.state();
        let item = state.item(node)?;
        if !may_become(&item.operation, &operation) {
            return Err(Error::INVALID_VALUE);
        }
        item.operation = operation;
        state.plan = None;
        Ok(())
    }

    /// Replaces the parameters of a child's nodes by those of a graph of the same structure.
    ///
    /// # Errors
    /// INVALID_VALUE otherwise.
    pub fn set_child(&self, node: u64, graph: &Graph) -> Result<()> {
        let mut state = self.state();
        let item = state.item(node)?;
        if !matches!(item.operation, Operation::Child(_)) {
            return Err(Error::INVALID_VALUE);
        }
        let range = item.children.clone();
        let new = flatten(graph);
        // The child's own list begins at 0, and its roots come after nothing.
        let first = range.start;
        let old: Vec<Item> = state.items[range.clone()]
            .iter()
            .map(|item| {
                let mut item = item.clone();
                item.after.retain(|&before| before >= first);
                item.after.iter_mut().for_each(|before| *before -= first);
                if let Operation::Child(_) = item.operation {
                    item.children = item.children.start - first..item.children.end - first;
                }
                item
            })
            .collect();
        let pairs = pair(&old, &new).map_err(|_| Error::INVALID_VALUE)?;
        let allowed = |(old, &place): (&Item, &usize)| may_become(&old.operation, &new[place].operation);
        if !old.iter().zip(&pairs).all(allowed) {
            return Err(Error::INVALID_VALUE);
        }
        for (item, place) in state.items[range].iter_mut().zip(pairs) {
            item.operation = new[place].operation.clone();
        }
        state.plan = None;
        Ok(())
    }

    /// Switches a node on or off.
    ///
    /// # Errors
    /// INVALID_VALUE for a node that is not in it and for types that cannot be switched.
    pub fn set_enabled(&self, node: u64, enabled: bool) -> Result<()> {
        let mut state = self.state();
        let item = state.item(node)?;
        if !item.operation.can_be_disabled() {
            return Err(Error::INVALID_VALUE);
        }
        item.enabled = enabled;
        state.plan = None;
        Ok(())
    }

    /// Whether a node is switched on.
    ///
    /// # Errors
    /// As [`Exec::set_enabled`].
    pub fn is_enabled(&self, node: u64) -> Result<bool> {
        let mut state = self.state();
        let item = state.item(node)?;
        if item.operation.can_be_disabled() {
            Ok(item.enabled)
        } else {
            Err(Error::INVALID_VALUE)
        }
    }

    /// Takes over the parameters of a graph of the same structure: all, or none.
    ///
    /// # Errors
    /// NOT_SUPPORTED for a graph with memory nodes that has another executable graph (recorded). What the update failed with is in
    /// the answer.
    pub fn update(&self, graph: &Graph) -> Result<Update> {
        if graph.is_claimed_by_other(&self.claim) {
            return Err(Error::NOT_SUPPORTED);
        }
        let new = flatten(graph);
        let mut state = self.state();
        state.items = match updated(&state.items, &new) {
            Ok(items) => items,
            Err(update) => return Ok(update),
        };
        state.plan = None;
        drop(state);
        Ok(Update {
            result: CUgraphExecUpdateResult::SUCCESS,
            node: 0,
            from: 0,
        })
    }
}

impl State {
    fn plan(&mut self) -> Result<Arc<Plan>> {
        match &self.plan {
            Some(plan) => Ok(Arc::clone(plan)),
            None => Ok(Arc::clone(self.plan.insert(Arc::new(Plan::new(&self.items)?)))),
        }
    }

    fn item(&mut self, node: u64) -> Result<&mut Item> {
        let found = (node != 0).then(|| find(&mut self.items, node)).flatten();
        found.ok_or(Error::INVALID_VALUE)
    }
}

/// A list with the parameters of another of the same structure; nodes that are switched off stay so. Else why there is none, and the
/// other's nodes that are the reason. Bodies come last.
fn updated(old: &[Item], new: &[Item]) -> core::result::Result<Vec<Item>, Update> {
    type Why = CUgraphExecUpdateResult;
    let node = |place: Option<usize>| place.and_then(|place| new.get(place)).map_or(0, |item| item.node);
    let failed = |result, place, from| Update {
        result,
        node: node(place),
        from: node(from),
    };
    let pairs = pair(old, new).map_err(|difference| match difference {
        Difference::Edges(place, from) => failed(Why::ERROR_TOPOLOGY_CHANGED, place, from),
        Difference::Type(place) => failed(Why::ERROR_NODE_TYPE_CHANGED, Some(place), None),
    })?;
    let both = || old.iter().zip(&pairs).map(|(old, &place)| (old, place));
    let own = both().find_map(|(old, place)| match (&old.operation, &new[place].operation) {
        (Operation::Conditional(old), Operation::Conditional(other)) => {
            (!old.is_like(other)).then_some((Why::ERROR_NOT_SUPPORTED, place))
        }
        (old, other) => (!may_become(old, other)).then_some((Why::ERROR_PARAMETERS_CHANGED, place)),
    });
    if let Some((why, place)) = own {
        return Err(failed(why, Some(place), None));
    }
    let item = |(old, place): (&Item, usize)| {
        let bodies = old.bodies.iter().zip(&new[place].bodies);
        let mut item = old.clone();
        item.bodies = bodies
            .map(|(old, new)| updated(old, new))
            .collect::<core::result::Result<_, _>>()?;
        item.operation = new[place].operation.clone();
        Ok(item)
    };
    both().map(item).collect()
}

/// Whether an update may replace one operation by the other, as recorded: a copy keeps the kinds of its sides (of copies in the
/// default direction there is one), and may have only one
/// dimension where it touches an array; a fill keeps its number of dimensions, and memory nodes their block.
fn may_become(old: &Operation, new: &Operation) -> bool {
    match (old, new) {
        (Operation::Copy(old), Operation::Copy(new)) => {
            let fixed = |copy: &Copy| {
                let flat = copy.extent.height == 1 && copy.extent.depth == 1;
                !flat && (copy.dst.array != 0 || copy.src.array != 0)
            };
            // As the application described them, not what they are.
            let described = |copy: &Copy| (copy.params.0.dstMemoryType, copy.params.0.srcMemoryType);
            described(old) == described(new) && !fixed(old) && !fixed(new)
        }
        (Operation::Fill(old), Operation::Fill(new)) => (old.params.height > 1) == (new.params.height > 1),
        (Operation::Alloc(old), Operation::Alloc(new)) | (Operation::Free(old), Operation::Free(new)) => {
            Arc::ptr_eq(old, new)
        }
        (old, new) => old.node_type() == new.node_type(),
    }
}
