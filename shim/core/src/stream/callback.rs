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

struct Queue {
    waiting: Mutex<State>,
    arrived: Condvar,
}

struct State {
    works: Vec<Work>,
    started: bool,
}

static QUEUE: Queue = Queue {
    waiting: Mutex::new(State {
        works: Vec::new(),
        started: false,
    }),
    arrived: Condvar::new(),
};

/// Runs `call` once everything in `after` has ended, then ends `completion`.
pub(super) fn submit(after: Frontier, call: Call, completion: Arc<Countdown>) {
    let mut state = QUEUE.waiting.lock().unwrap_or_else(|e| e.into_inner());
    state.works.push(Work {
        after,
        call,
        completion,
    });
    if !state.started {
        state.started = true;
        let spawned = std::thread::Builder::new().name("regauge-callback".into()).spawn(run);
        if let Err(error) = spawned {
            log::error!("cannot start the thread for host functions: {error}");
            state.started = false;
        }
    }
    drop(state);
    QUEUE.arrived.notify_one();
}

/// The worker: takes the first call that is ready, or waits for the GPU or for a new call.
fn run() {
    patience::sharpen_timer();
    let mut idle_since = Instant::now();
    let mut state = QUEUE.waiting.lock().unwrap_or_else(|e| e.into_inner());
    loop {
        let failed = fault::current().is_some();
        if let Some(ready) = state.works.iter().position(|work| failed || work.after.is_done()) {
            let work = state.works.remove(ready);
            drop(state);
            (work.call)(fault::current());
            work.completion.finish(1);
            idle_since = Instant::now();
            state = QUEUE.waiting.lock().unwrap_or_else(|e| e.into_inner());
        } else if state.works.is_empty() {
            state = QUEUE.arrived.wait(state).unwrap_or_else(|e| e.into_inner());
            idle_since = Instant::now();
        } else {
            let pause = patience::pause(idle_since.elapsed());
            let (woken, waited) = QUEUE
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
