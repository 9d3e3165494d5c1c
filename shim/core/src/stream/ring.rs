//! The rings of a device: a limited resource that streams borrow.
//!
//! The packets of a ring run one after the other, so their ends need one signal for all. Packets count it down by one; an operation's
//! [`Ticket`] is the number in that count at which it has ended. While packets come faster than they run, only one of some
//! counts, and those before it share its number: the *batch* is open until then. Whoever wants to know closes it with an empty packet;
//! and whoever's later work must not be waited for, too.
//!
//! ```text
//! ring      [A #1] [B] [C] [D #2] [E]          count: START - 1      A has ended; B, C, D: at 2; E: at 3, which nothing counts yet
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::completion::{Completion, Countdown, Frontier};
use crate::abi::{Error, Result};
use crate::hsa::Agent;
use crate::hsa::queue::{BARRIER_SIGNALS, Packet, Priority, Progress, Queue, watch_system_events};
use crate::hsa::signal::{Signal, SignalRef};
use crate::lock::{Guard, Lock};

/// What a ring's signal counts down from: never reached by nanosecond packets in a century.
const START: i64 = i64::MAX / 2;

/// One hardware queue. Rings are never given back.
pub struct Ring {
    id: u64,
    priority: Priority,
    /// Counts tickets down.
    count: Signal,
    /// Tickets that somebody has seen to have ended. The count is in a cache line that the device writes all the time.
    seen: AtomicU64,
    /// The number of the last packet that counts.
    issued: AtomicU64,
    /// The stream that submitted last, by its id.
    user: AtomicU64,
    progress: Progress,
    state: Lock<State>,
}

/// Packets of the longest batch.
const BATCH: u32 = 128;
/// How many packets will be counted after somebody has asked about one.
const WATCHED: u32 = 16;

/// How the end of an operation shows.
#[derive(Clone, Copy)]
pub enum End<'a> {
    /// By a signal of its own.
    Own(&'a Arc<Countdown>),
    /// By the ring's count, and somebody will want to know.
    Counted,
    /// By the ring's count.
    Batched,
}

/// What changes with every submission.
struct State {
    queue: Queue,
    /// Packets of the open batch.
    open: u32,
    /// So many packets will be counted, since somebody closed a batch: who waits for one packet often waits for the next.
    watched: u32,
    /// The end of the last packet, where that is no ticket.
    last: Option<Arc<Countdown>>,
}

/// The end of a packet of a ring.
#[derive(Clone, Copy)]
pub struct Ticket {
    ring: &'static Ring,
    number: u64,
    /// The packet's place in the order of all packets of the ring.
    index: u64,
}

impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        self.is_of(other.ring) && self.index == other.index
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "packet {} of ring {}", self.index, self.ring.id)
    }
}

impl Ticket {
    /// It is a packet of that ring.
    #[inline]
    pub fn is_of(&self, ring: &Ring) -> bool {
        core::ptr::eq(self.ring, ring)
    }

    /// The packet is known to have ended. Of an open batch nobody knows.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.ring.is_past(self.number)
    }

    /// As [`Ticket::is_done`]; an open batch is closed, so that it will be known. Never waits.
    pub fn ask(&self) -> bool {
        self.is_done() || {
            if self.is_open()
                && let Some(mut state) = self.ring.state.try_lock()
                && self.is_open()
                && state.queue.has_space()
                && self.ring.close(&mut state).is_ok()
            {
                state.watched = WATCHED;
            }
            self.is_done()
        }
    }

    /// Closes the batch if it is open: what is submitted later is not waited for. May wait for room in the ring.
    ///
    /// # Errors
    /// As [`Ring::submit`].
    pub fn close(&self) -> Result<()> {
        if self.is_open() {
            let mut state = self.ring.state();
            if self.is_open() {
                self.ring.close(&mut state)?;
                state.watched = WATCHED;
            }
        }
        Ok(())
    }

    /// Nothing in the ring counts up to it yet.
    fn is_open(&self) -> bool {
        self.ring.issued.load(Ordering::Acquire) < self.number
    }

    /// The command processor has done with the packet; it may still run.
    pub fn is_read(&self) -> bool {
        self.ring.progress.load() > self.index
    }

    /// A packet for other rings that waits for the end.
    fn awaited(&self) -> Packet {
        Packet::until_below(self.ring.count.name(), START - self.number as i64 + 1)
    }
}

impl Ring {
    /// Identifies the ring; never 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The stream that submitted last, by its id: what others submitted since would come between its operations.
    #[inline]
    pub fn user(&self) -> u64 {
        self.user.load(Ordering::Relaxed)
    }

    /// What `from` submitted last counts as the other stream's from now on, unless somebody else has submitted since: `to` goes on where
    /// `from` stands.
    pub fn hand_over(&self, from: u64, to: u64) {
        let _ = self
            .user
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// The packets up to that number have ended.
    #[inline]
    fn is_past(&self, number: u64) -> bool {
        if self.seen.load(Ordering::Acquire) >= number {
            return true;
        }
        let ended = (START - self.count.load()) as u64;
        // Pairs with the load above: what the device wrote is visible to whoever believes it.
        self.seen.fetch_max(ended, Ordering::AcqRel);
        ended >= number
    }

    fn is_idle(&self) -> bool {
        // Whoever has the lock submits, and may wait for room.
        let Some(mut state) = self.state.try_lock() else {
            return false;
        };
        if state.open > 0 {
            let _ = !state.queue.has_space() || self.close(&mut state).is_err();
            return false;
        }
        self.is_known_idle(&state)
    }

    /// All packets are known to have ended.
    fn is_known_idle(&self, state: &State) -> bool {
        state.open == 0
            && match &state.last {
                Some(last) => last.is_done(),
                None => self.is_past(self.issued.load(Ordering::Relaxed)),
            }
    }

    /// Ends the open batch with a packet that counts.
    fn close(&self, state: &mut State) -> Result<()> {
        let packet = Packet::barrier_and(&[]).completing(self.count.name());
        state.queue.submit(&[packet])?;
        self.counted(state);
        state.last = None;
        Ok(())
    }

    /// A packet that counts has been submitted.
    fn counted(&self, state: &mut State) -> u64 {
        state.open = 0;
        state.watched = state.watched.saturating_sub(1);
        // Changed by who has the lock only.
        let number = self.issued.load(Ordering::Relaxed) + 1;
        self.issued.store(number, Ordering::Release);
        number
    }

    /// Whether the next packet is to count. One that the device is about to run costs little: nothing is behind it yet.
    fn is_next_counted(&self, state: &State) -> bool {
        state.watched > 0
            || state.open + 1 >= BATCH
            || state.open == 0 && self.is_past(self.issued.load(Ordering::Relaxed))
    }

    /// Puts `packets` behind everything in `waits_for`, for the stream with the id `user`, and returns the end of the last.
    /// The first waits for all before it (the barrier bit), the last for all others. Tickets of other rings in `waits_for` are closed.
    ///
    /// # Errors
    /// The process's fault, when it happens while the ring is full.
    pub fn submit(
        &'static self,
        user: u64,
        waits_for: &Frontier,
        packets: &[Packet],
        end: End<'_>,
    ) -> Result<Completion> {
        let Some((last, others)) = packets.split_last() else {
            return Err(Error::UNKNOWN);
        };
        let mut state = self.state();
        // Nobody waits for another stream's later work.
        if state.open > 0 && self.user() != user {
            self.close(&mut state)?;
        }
        let counts = match end {
            End::Own(_) => false,
            End::Counted => true,
            End::Batched => self.is_next_counted(&state),
        };
        let last = match end {
            End::Own(own) => {
                own.set_ring(self);
                last.completing(own.signal())
            }
            _ if counts => last.completing(self.count.name()),
            _ => *last,
        };
        // Packets of this ring that were submitted before need no wait: the first packet has the barrier bit.
        let index = if others.is_empty() && waits_for.iter().all(|c| c.is_on_ring(self)) {
            state.queue.submit(&[last])?
        } else {
            let mut all = Vec::with_capacity(packets.len() + 2);
            self.await_others(waits_for, &mut all);
            all.extend(others);
            all.push(last);
            state.queue.submit(&all)?
        };
        self.user.store(user, Ordering::Relaxed);
        state.last = None;
        if let End::Own(own) = end {
            state.last = Some(Arc::clone(own));
            return Ok(Completion::Countdown(Arc::clone(own)));
        }
        Ok(Completion::Packet(self.ticket(&mut state, counts, index)))
    }

    /// As [`Ring::submit`] of one packet that needs nothing but the ring's own order and no end of its own; `None` where that would
    /// take waiting, be it for another stream's packets, or more than one packet.
    pub fn try_submit(&'static self, user: u64, packet: Packet) -> Option<Completion> {
        let mut state = self.state.try_lock()?;
        if !state.queue.has_space() {
            return None;
        }
        if self.user() != user {
            if !self.is_known_idle(&state) {
                return None;
            }
            self.user.store(user, Ordering::Relaxed);
        }
        let counts = self.is_next_counted(&state);
        let packet = if counts {
            packet.completing(self.count.name())
        } else {
            packet
        };
        let index = state.queue.submit(&[packet]).ok()?;
        state.last = None;
        Some(Completion::Packet(self.ticket(&mut state, counts, index)))
    }

    /// The ticket of a packet that was just submitted.
    fn ticket(&'static self, state: &mut State, counts: bool, index: u64) -> Ticket {
        let number = if counts {
            self.counted(state)
        } else {
            state.open += 1;
            self.issued.load(Ordering::Relaxed) + 1
        };
        Ticket {
            ring: self,
            number,
            index,
        }
    }

    /// Adds the packets that wait for what this ring's order does not bring.
    fn await_others(&self, waits_for: &Frontier, packets: &mut Vec<Packet>) {
        let mut signals: Vec<SignalRef> = Vec::new();
        for completion in waits_for.iter().filter(|c| !c.is_on_ring(self)) {
            match completion {
                Completion::Packet(ticket) if ticket.is_done() => {}
                Completion::Packet(ticket) => packets.push(ticket.awaited()),
                Completion::Countdown(countdown) => signals.push(countdown.signal()),
            }
        }
        packets.extend(signals.chunks(BARRIER_SIGNALS).map(Packet::barrier_and));
    }
}

/// The rings of one device, shared by all its streams and contexts.
pub struct RingSet {
    agent: &'static Agent,
    limit: usize,
    rings: Mutex<Vec<&'static Ring>>,
    cooperative: Mutex<Option<&'static Ring>>,
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
                cooperative: Mutex::new(None),
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
    pub fn borrow(&self, priority: i32, current: Option<&'static Ring>) -> Result<&'static Ring> {
        if let Some(ring) = current.filter(|ring| ring.is_idle()) {
            return Ok(ring);
        }
        let priority = match priority {
            0.. => Priority::Normal,
            _ => Priority::High,
        };
        let mut rings = self.rings.lock().unwrap_or_else(|e| e.into_inner());
        let mine = || rings.iter().copied().filter(|ring| ring.priority == priority);
        if let Some(ring) = mine().find(|ring| ring.is_idle()) {
            return Ok(ring);
        }
        let count = mine().count();
        if count < self.limit {
            match self.open(priority) {
                Ok(ring) => {
                    rings.push(ring);
                    return Ok(ring);
                }
                // The node's queues are spent (other processes hold some): share ours.
                Err(error) if rings.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        if let Some(ring) = current {
            return Ok(ring);
        }
        let candidates: Vec<_> = if count > 0 { mine().collect() } else { rings.clone() };
        // Spread: streams come in any order, so a running number is as good as a count of users.
        let pick = NEXT_ID.load(Ordering::Relaxed) as usize + candidates.len();
        NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(candidates[pick % candidates.len()])
    }

    /// The device's ring for launches whose work-groups must be on it at once. Of such launches, one runs at a time: in the process by
    /// the ring's order, among processes by the kernel driver, for which the queue holds the device's global wave sync.
    ///
    /// # Errors
    /// NOT_SUPPORTED where the device has no such queue.
    pub fn cooperative(&self) -> Result<&'static Ring> {
        let mut cooperative = self.cooperative.lock().unwrap_or_else(|e| e.into_inner());
        match *cooperative {
            Some(ring) => Ok(ring),
            None => Ok(*cooperative.insert(Self::around(Queue::cooperative(self.agent)?, Priority::Normal)?)),
        }
    }

    fn open(&self, priority: Priority) -> Result<&'static Ring> {
        Self::around(Queue::new(self.agent, priority)?, priority)
    }

    fn around(queue: Queue, priority: Priority) -> Result<&'static Ring> {
        Ok(Box::leak(Box::new(Ring {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            priority,
            count: Signal::new(START)?,
            seen: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            user: AtomicU64::new(0),
            progress: queue.progress(),
            state: Lock::new(State {
                queue,
                open: 0,
                watched: 0,
                last: None,
            }),
        })))
    }
}
