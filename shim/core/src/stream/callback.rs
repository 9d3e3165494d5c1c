//! Calls on the host in stream order: host functions and stream callbacks.
//!
//! A thread of our own runs them, never one of ROCr's: a callback that blocks must not stop ROCr's event handling. Calls
//! of one stream are in order because each waits for the one before it; across streams whoever is ready goes first.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use super::completion::{Countdown, Frontier};
use crate::abi::Error;
use crate::hsa::{fault, patience};

/// What is called; it gets the process's fault, if there is one by then.
pub type Call = Box<dyn FnOnce(Option<Error>) + Send>;

struct Work {
    after: Frontier,
    call: Call,
    completion: Arc<Countdown>,
}

/// Calls and the thread that makes them.
pub struct Queue {
    thread: &'static str,
    waiting: Mutex<State>,
    arrived: Condvar,
}

struct State {
    works: Vec<Work>,
    started: bool,
}

impl Queue {
    const fn new(thread: &'static str) -> Self {
        Self {
            thread,
            waiting: Mutex::new(State {
                works: Vec::new(),
                started: false,
            }),
            arrived: Condvar::new(),
        }
    }
}

/// Calls of the application's, which may block.
pub static HOST_FUNCTIONS: Queue = Queue::new("regauge-callback");

/// Calls of ours, which do not: what runs next in a graph.
pub static DECISIONS: Queue = Queue::new("regauge-decide");

/// Runs `call` once everything in `after` has ended, then ends `completion`.
pub(super) fn submit(queue: &'static Queue, after: Frontier, call: Call, completion: Arc<Countdown>) {
    let mut state = queue.waiting.lock().unwrap_or_else(|e| e.into_inner());
    state.works.push(Work {
        after,
        call,
        completion,
    });
    if !state.started {
        state.started = true;
        let spawned = std::thread::Builder::new()
            .name(queue.thread.into())
            .spawn(move || run(queue));
        if let Err(error) = spawned {
            log::error!("cannot start the thread {}: {error}", queue.thread);
            state.started = false;
        }
    }
    drop(state);
    queue.arrived.notify_one();
}

/// The worker: takes the first call that is ready, or waits for the GPU or for a new call.
fn run(queue: &Queue) {
    patience::sharpen_timer();
    let mut idle_since = Instant::now();
    let mut state = queue.waiting.lock().unwrap_or_else(|e| e.into_inner());
    loop {
        let failed = fault::current().is_some();
        if let Some(ready) = state.works.iter().position(|work| failed || work.after.is_done()) {
            let work = state.works.remove(ready);
            drop(state);
            (work.call)(fault::current());
            work.completion.finish(1);
            idle_since = Instant::now();
            state = queue.waiting.lock().unwrap_or_else(|e| e.into_inner());
        } else if state.works.is_empty() {
            state = queue.arrived.wait(state).unwrap_or_else(|e| e.into_inner());
            idle_since = Instant::now();
        } else {
            let pause = patience::pause(idle_since.elapsed());
            let (woken, waited) = queue
                .arrived
                .wait_timeout(state, pause)
                .unwrap_or_else(|e| e.into_inner());
            state = woken;
            if !waited.timed_out() {
                idle_since = Instant::now();
            }
        }
    }
}
