//! The rings of a device: a limited resource that streams borrow.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::completion::{Completion, Frontier};
use crate::abi::{Error, Result};
use crate::hsa::Agent;
use crate::hsa::queue::{BARRIER_SIGNALS, Packet, Priority, Queue, watch_system_events};
use crate::hsa::signal::SignalRef;

/// One hardware queue.
pub struct Ring {
    id: u64,
    queue: Queue,
    priority: Priority,
    /// The last packet's end: the ring is idle when it is over.
    last: Mutex<Option<Arc<Completion>>>,
}

impl Ring {
    /// Identifies the ring in [`Completion::is_on_ring`]; never 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    fn is_idle(&self) -> bool {
        self.last
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .as_ref()
            .is_none_or(|c| c.is_done())
    }

    /// Puts `packets`, the last of which will end with `completion`, behind everything in `waits_for`. The first waits for all
    /// before it (the barrier bit), the last for all others.
    ///
    /// # Errors
    /// The process's fault, when it happens while the ring is full.
    pub fn submit(&self, waits_for: &Frontier, packets: &[Packet], completion: &Arc<Completion>) -> Result<()> {
        let Some((last, others)) = packets.split_last() else {
            return Err(Error::UNKNOWN);
        };
        let last = last.completing(completion.signal());
        completion.set_ring(self.id);
        // Packets of this ring that were submitted before need no wait: the first packet has the barrier bit.
        if others.is_empty() && waits_for.iter().all(|c| c.is_on_ring(self.id)) {
            self.queue.submit(&[last])?;
            *self.last.lock().unwrap_or_else(|e| e.into_inner()) = Some(Arc::clone(completion));
            return Ok(());
        }
        let signals: Vec<SignalRef> = waits_for
            .iter()
            .filter(|c| !c.is_on_ring(self.id))
            .map(|c| c.signal())
            .collect();
        let barriers = signals.chunks(BARRIER_SIGNALS).map(Packet::barrier_and);
        let packets: Vec<Packet> = barriers.chain(others.iter().copied()).chain([last]).collect();
        self.queue.submit(&packets)?;
        *self.last.lock().unwrap_or_else(|e| e.into_inner()) = Some(Arc::clone(completion));
        Ok(())
    }
}

/// The rings of one device, shared by all its streams and contexts.
pub struct RingSet {
    agent: &'static Agent,
    limit: usize,
    rings: Mutex<Vec<Arc<Ring>>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The rings of the device behind `agent`, at most `limit` of each priority.
pub fn of(agent: &'static Agent, limit: usize) -> &'static RingSet {
    static SETS: Mutex<Option<HashMap<usize, &'static RingSet>>> = Mutex::new(None);
    let mut sets = SETS.lock().unwrap_or_else(|e| e.into_inner());
    sets.get_or_insert_with(HashMap::new)
        .entry(std::ptr::from_ref(agent).addr())
        .or_insert_with(|| {
            watch_system_events();
            Box::leak(Box::new(RingSet {
                agent,
                limit: limit.max(1),
                rings: Mutex::new(Vec::new()),
            }))
        })
}

impl RingSet {
    /// A ring for a stream of CUDA priority `priority` (0 lowest, -5 highest) whose packets went to `current` before.
    ///
    /// In this order: the ring it has, if idle; an idle one; a new one while there are few; the one it has; any. Streams
    /// that share a ring run one after the other, which is allowed but slow.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when the device has not one queue to give.
    pub fn borrow(&self, priority: i32, current: Option<&Arc<Ring>>) -> Result<Arc<Ring>> {
        if let Some(ring) = current.filter(|ring| ring.is_idle()) {
            return Ok(Arc::clone(ring));
        }
        let priority = match priority {
            0.. => Priority::Normal,
            _ => Priority::High,
        };
        let mut rings = self.rings.lock().unwrap_or_else(|e| e.into_inner());
        let mine = || rings.iter().filter(|ring| ring.priority == priority);
        if let Some(ring) = mine().find(|ring| ring.is_idle()) {
            return Ok(Arc::clone(ring));
        }
        let count = mine().count();
        if count < self.limit {
            match Queue::new(self.agent, priority) {
                Ok(queue) => {
                    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
                    let ring = Arc::new(Ring {
                        id,
                        queue,
                        priority,
                        last: Mutex::new(None),
                    });
                    rings.push(Arc::clone(&ring));
                    return Ok(ring);
                }
                // The node's queues are spent (other processes hold some): share ours.
                Err(error) if rings.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        if let Some(ring) = current {
            return Ok(Arc::clone(ring));
        }
        let candidates: Vec<_> = if count > 0 {
            mine().collect()
        } else {
            rings.iter().collect()
        };
        // Spread: streams come in any order, so a running number is as good as a count of users.
        let pick = NEXT_ID.load(Ordering::Relaxed) as usize + candidates.len();
        NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::clone(candidates[pick % candidates.len()]))
    }
}
