//! Conditional nodes: a word in memory, which kernels write, decides whether and how often bodies run.
//!
//! AMD's command processor does not choose what it executes next. So a launch is submitted up to the node, and from there on the host
//! goes on with it: when all before the node has ended, a thread reads the word and submits a body, into a stream of the node's own,
//! with the next look behind it. What stands behind the node is parked meanwhile, as behind any wait for a value in memory.
//!
//! ```text
//! lane   kernels ── look ── wait for the flag (parked) ── kernels ...
//!                    │          ↑ no body is due
//! body's stream      └─> body ── look ── body ── look
//! ```
//!
//! The handle that kernels get is the word's address: `cudaGraphSetConditional` is a store. Words are never used for anything else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::plan::{Plan, Resources};
use super::{Graph, Operation};
use crate::abi::{CUgraphInstantiateResult, Error, Result};
use crate::device::{Context, Device, context};
use crate::graph::operation::Origin;
use crate::hsa::fault;
use crate::stream::memop::Target;
use crate::stream::staging::Chunk;
use crate::stream::{Internal, Stream, memop};

/// Bytes from one word to the next: a line each.
const STRIDE: usize = 64;
/// Bytes of words that are asked for at once.
const STEP: usize = 4096;

/// Bodies of a node. A graph is made for each at once, so a wild number must not get through.
const MOST_BODIES: u32 = 1 << 16;

/// Words that no handle names, by device.
static WORDS: Mutex<BTreeMap<i32, Vec<u64>>> = Mutex::new(BTreeMap::new());
/// All handles.
static CONDITIONS: Mutex<BTreeMap<u64, Weak<Condition>>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A word of pinned memory for conditions of a device.
fn word(device: &'static Device) -> Result<u64> {
    let mut words = locked(&WORDS);
    let words = words.entry(device.ordinal).or_default();
    if words.is_empty() {
        let mut chunk = Chunk::new(device, STEP)?;
        chunk.bytes().fill(0);
        words.extend(
            (0..STEP / STRIDE)
                .rev()
                .map(|index| chunk.address() + (index * STRIDE) as u64),
        );
        // For ever: a kernel that writes to a condition that is no more must hit nothing else.
        std::mem::forget(chunk);
    }
    words.pop().ok_or(Error::MEMORY_ALLOCATION)
}

/// A value that decides at one node.
pub struct Condition {
    address: u64,
    device: &'static Device,
    /// The context, by the id of its streams.
    owner: u64,
    /// What it becomes when a launch begins.
    default: Option<u32>,
    /// The node that it decides at holds this.
    claim: Mutex<Weak<()>>,
}

impl Condition {
    /// A new one, which a launch begins with `default`, if that is given.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION, or what the context fails with.
    pub fn new(context: &'static Context, initial: u32, assign: bool) -> Result<Arc<Self>> {
        let condition = Arc::new(Self {
            address: word(context.device)?,
            device: context.device,
            owner: context.streams()?.id(),
            default: assign.then_some(initial),
            claim: Mutex::new(Weak::new()),
        });
        // A value that launches do not begin with is none.
        condition
            .cell()
            .store(condition.default.unwrap_or(0), Ordering::Release);
        locked(&CONDITIONS).insert(condition.address, Arc::downgrade(&condition));
        Ok(condition)
    }

    /// What applications and kernels hold.
    pub fn handle(&self) -> u64 {
        self.address
    }

    /// The context, by the id of its streams.
    pub fn owner(&self) -> u64 {
        self.owner
    }

    fn cell(&self) -> &AtomicU32 {
        // SAFETY: a word of [`WORDS`], whose memory is never given back.
        unsafe { AtomicU32::from_ptr(self.address as *mut u32) }
    }

    /// Some node uses it.
    fn is_used(&self) -> bool {
        locked(&self.claim).strong_count() > 0
    }

    /// Makes it the default in the order of `lane`.
    ///
    /// # Errors
    /// As [`Stream::write_memory`].
    pub(super) fn begin(&self, lane: &Stream) -> Result<()> {
        let target = Target::host_word(self.device, Some(self.address), self.address);
        match self.default {
            Some(value) => lane.write_memory(&target, value.into(), Vec::new()),
            None => Ok(()),
        }
    }

    /// Launches give it a value.
    pub(super) fn has_default(&self) -> bool {
        self.default.is_some()
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        locked(&CONDITIONS).remove(&self.address);
        locked(&WORDS)
            .entry(self.device.ordinal)
            .or_default()
            .push(self.address);
    }
}

/// The condition behind a handle.
///
/// # Errors
/// INVALID_VALUE when there is none.
pub fn condition(handle: u64) -> Result<Arc<Condition>> {
    let found = locked(&CONDITIONS).get(&handle).and_then(Weak::upgrade);
    found.ok_or(Error::INVALID_VALUE)
}

/// What a value means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// Not 0: the first body runs; 0: the second, if there is one.
    If,
    /// The body runs until the value is 0.
    While,
    /// The body of that number runs.
    Switch,
}

impl Meaning {
    /// CUDA's number for it, and how many bodies there are.
    ///
    /// # Errors
    /// INVALID_VALUE for other types and for numbers of bodies that the type does not have, MEMORY_ALLOCATION for more than anybody needs.
    pub fn new(number: u32, bodies: u32) -> Result<Self> {
        if bodies > MOST_BODIES {
            return Err(Error::MEMORY_ALLOCATION);
        }
        match (number, bodies) {
            (0, 1 | 2) => Ok(Self::If),
            (1, 1) => Ok(Self::While),
            (2, 1..) => Ok(Self::Switch),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// The body that runs next.
    fn body(self, value: u32, bodies: usize) -> Option<usize> {
        let body = match self {
            Self::If => usize::from(value == 0),
            Self::While if value == 0 => return None,
            Self::While => 0,
            Self::Switch => value as usize,
        };
        (body < bodies).then_some(body)
    }

    /// Its name in CUDA's texts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::If => "IF",
            Self::While => "WHILE",
            Self::Switch => "SWITCH",
        }
    }
}

/// What a conditional node is.
pub struct Conditional {
    /// Decides.
    pub condition: Arc<Condition>,
    /// How.
    pub meaning: Meaning,
    /// What it decides about. The node owns them.
    pub bodies: Vec<Arc<Graph>>,
    /// Their handles, which applications may read while the node is there.
    handles: Box<[u64]>,
    /// Ends with the node, or with this.
    claim: Mutex<Option<Arc<()>>>,
}

impl Conditional {
    /// A node's worth of empty bodies.
    ///
    /// # Errors
    /// INVALID_VALUE when a node uses the condition already (recorded).
    pub fn new(condition: Arc<Condition>, meaning: Meaning, bodies: u32) -> Result<Arc<Self>> {
        let claim = Arc::new(());
        {
            let mut known = locked(&condition.claim);
            if known.strong_count() > 0 {
                return Err(Error::INVALID_VALUE);
            }
            *known = Arc::downgrade(&claim);
        }
        let bodies: Vec<Arc<Graph>> = (0..bodies).map(|_| Graph::new_body()).collect();
        Ok(Arc::new(Self {
            condition,
            meaning,
            handles: bodies.iter().map(|body| body.handle()).collect(),
            bodies,
            claim: Mutex::new(Some(claim)),
        }))
    }

    /// The bodies' handles, valid while the node is there.
    pub fn handles(&self) -> *const u64 {
        self.handles.as_ptr()
    }

    /// The node is gone: its bodies are, and another node may use the condition (recorded).
    pub(super) fn end(&self) {
        locked(&self.claim).take();
        for body in &self.bodies {
            body.end();
        }
    }

    /// An update may replace the one by the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.meaning == other.meaning && self.bodies.len() == other.bodies.len()
    }
}

impl Drop for Conditional {
    fn drop(&mut self) {
        // The handles of bodies whose node was never added.
        if locked(&self.claim).is_some() {
            self.end();
        }
    }
}

/// Why a graph with conditional nodes cannot be instantiated; `None` if it can (recorded).
pub(super) fn refusal(graph: &Graph) -> Option<CUgraphInstantiateResult> {
    if graph.conditions().iter().any(|condition| !condition.is_used()) {
        return Some(CUgraphInstantiateResult::CONDITIONAL_HANDLE_UNUSED);
    }
    graph.nodes().iter().find_map(|node| match node.operation() {
        Operation::Conditional(conditional) => conditional.bodies.iter().find_map(|body| body_refusal(body)),
        _ => None,
    })
}

fn body_refusal(body: &Graph) -> Option<CUgraphInstantiateResult> {
    let own = body.nodes().iter().find_map(|node| match node.operation() {
        Operation::Kernel(_) | Operation::Fill(_) | Operation::Empty | Operation::Conditional(_) => None,
        Operation::Copy(copy) => {
            let pageable = copy.origins.0 == Origin::Other || copy.origins.1 == Origin::Other;
            pageable.then_some(CUgraphInstantiateResult::MULTIPLE_CTXS_NOT_SUPPORTED)
        }
        Operation::Child(child) => body_refusal(&child),
        _ => Some(CUgraphInstantiateResult::NODE_OPERATION_NOT_SUPPORTED),
    });
    own.or_else(|| refusal(body))
}

/// A conditional node of a plan.
pub(super) struct Branching {
    /// Decides.
    pub condition: Arc<Condition>,
    /// How.
    pub meaning: Meaning,
    /// What it decides about.
    pub bodies: Vec<Arc<Plan>>,
}

/// A node of a launch that the host goes on with.
struct Run {
    branching: Arc<Branching>,
    keep: Resources,
    /// Where bodies run.
    stream: Internal,
    /// Not 0 when no body is due any more.
    ended: Arc<AtomicU64>,
}

impl Branching {
    /// Enqueues the node: what is enqueued in `lane` later comes when no body is due any more.
    ///
    /// # Errors
    /// CONTEXT_IS_DESTROYED, and those of [`Stream::decide`].
    pub fn enqueue(self: &Arc<Self>, lane: &Stream, keep: &Resources) -> Result<()> {
        let context = context::of_streams(self.condition.owner).ok_or(Error::CONTEXT_IS_DESTROYED)?;
        let ended = Arc::new(AtomicU64::new(0));
        let run = Arc::new(Run {
            branching: Arc::clone(self),
            keep: Arc::clone(keep),
            stream: context.streams()?.internal(),
            ended: Arc::clone(&ended),
        });
        lane.decide(move |fault| run.look(fault))?;
        let flag = Target::host_word(self.condition.device, None, ended.as_ptr() as u64);
        let over = memop::Condition::new(flag, 1, memop::Width::Eight, memop::Compare::Equal);
        lane.wait_for_memory_with(over, vec![Box::new(ended)])
    }
}

impl Run {
    /// Everything before has ended: submits the body that is due.
    fn look(self: Arc<Self>, fault: Option<Error>) {
        let Branching {
            condition,
            meaning,
            bodies,
        } = &*self.branching;
        let value = condition.cell().load(Ordering::Acquire);
        let due = meaning.body(value, bodies.len()).filter(|_| fault.is_none());
        let Some(body) = due.and_then(|body| bodies.get(body)) else {
            return self.end();
        };
        let next = Arc::clone(&self);
        let submitted = body.submit_body(&self.stream, &self.keep).and_then(|()| {
            self.stream.decide(move |fault| match next.branching.meaning {
                Meaning::While => next.look(fault),
                Meaning::If | Meaning::Switch => next.end(),
            })
        });
        if let Err(error) = submitted {
            // The launch has long returned: the process is told by its next calls.
            if context::of_streams(condition.owner).is_some() && fault::current().is_none() {
                log::error!("the body of a conditional node could not be submitted: {error:?}");
                fault::raise(Error::LAUNCH_FAILURE);
            }
            self.end();
        }
    }

    fn end(&self) {
        self.ended.store(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_choose_bodies() {
        for (meaning, bodies, chosen) in [
            (Meaning::If, 1, [None, Some(0), Some(0), Some(0)]),
            (Meaning::If, 2, [Some(1), Some(0), Some(0), Some(0)]),
            (Meaning::While, 1, [None, Some(0), Some(0), Some(0)]),
            (Meaning::Switch, 2, [Some(0), Some(1), None, None]),
        ] {
            let found = [0, 1, 2, u32::MAX].map(|value| meaning.body(value, bodies));
            assert_eq!(found, chosen, "{meaning:?} of {bodies}");
        }
    }

    #[test]
    fn types_have_their_numbers_of_bodies() {
        let known = |number| [0, 1, 2, 3].map(|bodies| Meaning::new(number, bodies).is_ok());
        assert_eq!(known(0), [false, true, true, false]);
        assert_eq!(known(1), [false, true, false, false]);
        assert_eq!(known(2), [false, true, true, true]);
        assert_eq!(known(3), [false; 4]);
        assert!(Meaning::new(2, MOST_BODIES).is_ok());
        assert_eq!(Meaning::new(2, u32::MAX), Err(Error::MEMORY_ALLOCATION));
    }
}
