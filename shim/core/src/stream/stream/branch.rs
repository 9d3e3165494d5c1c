//! Work in several streams that counts as one operation of a stream: the launch of a graph.
//!
//! ```text
//! stream   ... A ─┬─> [ lane 0 ... ] ─┬─> B ...
//!                 └─> [ lane 1 ... ] ─┘
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Kind, Stream};
use crate::abi::{Error, Result};
use crate::device::context;
use crate::graph::capture;
use crate::hsa::fault;
use crate::stream::completion::{Frontier, Pending, Resource};
use crate::stream::ring::Ring;
use crate::stream::{NEXT_STREAM_ID, Shared};

/// The lanes of one operation: streams that begin where the stream stands.
pub struct Branches {
    context: Arc<Shared>,
    /// The stream, by its id.
    stream: u64,
    priority: i32,
    start: Frontier,
    /// The stream's ring, for the first lane: there order costs nothing.
    ring: Option<&'static Ring>,
    lanes: Vec<Arc<Stream>>,
}

impl Branches {
    /// Lanes that are opened from now on begin where `lane` stands.
    ///
    /// # Errors
    /// The process's fault.
    pub fn begin_behind(&mut self, lane: &Stream) -> Result<()> {
        self.start = lane.frontier()?;
        Ok(())
    }

    /// A new lane in the context that has the streams `owner`.
    ///
    /// # Errors
    /// CONTEXT_IS_DESTROYED.
    pub fn open(&mut self, owner: u64) -> Result<Arc<Stream>> {
        let mine = owner == self.context.id;
        let shared = if mine {
            Arc::clone(&self.context)
        } else {
            let context = context::of_streams(owner).ok_or(Error::CONTEXT_IS_DESTROYED)?;
            Arc::clone(&context.streams()?.shared)
        };
        let id = NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed);
        let lane = Stream::new(id, Kind::NonBlocking, self.priority, &shared);
        {
            let mut state = lane.state_to_extend();
            state.tail = self.start.clone();
            if mine {
                state.ring = self.ring.take();
                if let Some(ring) = state.ring {
                    ring.hand_over(self.stream, id);
                }
            }
        }
        self.lanes.push(Arc::clone(&lane));
        Ok(lane)
    }
}

impl Stream {
    /// Lets `work` enqueue into lanes. The stream goes on when all of that has ended; `resources` are kept until then. No other
    /// thread's operation comes between.
    ///
    /// # Errors
    /// Those of `work`, of which what it enqueued before the error still runs; and the process's fault.
    pub fn branch(&self, resources: Vec<Resource>, work: impl FnOnce(&mut Branches) -> Result<()>) -> Result<()> {
        fault::check()?;
        capture::refuse(self)?;
        let context = self.context.upgrade().ok_or(Error::CONTEXT_IS_DESTROYED)?;
        let _turn = self.turn();
        let (time, start, ring, _) = self.look();
        start.close()?;
        let mut branches = Branches {
            context,
            stream: self.id,
            priority: self.priority,
            start: start.clone(),
            ring,
            lanes: Vec::new(),
        };
        let result = work(&mut branches);
        let mut end = Frontier::default();
        for lane in &branches.lanes {
            end.join(&lane.state().tail);
        }
        let mut state = self.state_to_extend();
        if let Some(first) = branches.lanes.first()
            && first.owner() == branches.context.id
        {
            state.ring = first.state().ring;
            if let Some(ring) = state.ring {
                ring.hand_over(first.id, self.id);
            }
        }
        // Operations that end in any order: the last to be waited for holds what all need.
        let mut held = Some((resources, branches.lanes));
        let ends: Vec<_> = end.iter().cloned().collect();
        for (index, completion) in ends.iter().enumerate() {
            let resources: Vec<Resource> = if index + 1 == ends.len() {
                vec![Box::new(held.take())]
            } else {
                Vec::new()
            };
            let operation = Pending::new(completion.clone(), start.clone(), resources.into());
            state.pending.push_back((time, operation));
        }
        if held.as_ref().is_some_and(|(_, lanes)| !lanes.is_empty()) || !ends.is_empty() {
            state.tail = end;
        }
        self.advanced(&mut state);
        result
    }
}
