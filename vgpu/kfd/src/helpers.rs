//! Threads that help the queues' own with long dispatches: the other processors of this machine.
//!
//! Every dispatch is worked on by its queue's thread, so none waits for another. Helpers are an addition: as many threads as
//! there are further processors, started when a dispatch first asks for help, asleep when none does.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use cdna::dispatch::Work;

use crate::{process::Process, queue};

/// How long a helper stays with a dispatch while others have no helper.
const STAY: Duration = Duration::from_millis(10);

/// A dispatch that wants help.
struct Job {
    number: u64,
    work: *const Work<'static>,
    /// Helpers at it.
    inside: usize,
    /// It has something for another helper.
    open: bool,
}

// SAFETY: the work is Sync, and is called only while its owner waits in `share`.
unsafe impl Send for Job {}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    last: u64,
    threads: usize,
    asleep: usize,
}

/// The helpers of a process.
#[derive(Default)]
pub struct Helpers {
    state: Mutex<State>,
    /// A job was added.
    added: Condvar,
    /// A helper left a job.
    left: Condvar,
    /// Open jobs that nobody helps with.
    alone: AtomicUsize,
}

impl Helpers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_alone(&self, state: &State) {
        let alone = state.jobs.iter().filter(|job| job.open && job.inside == 0).count();
        self.alone.store(alone, Ordering::Relaxed);
    }

    /// See [`cdna::dispatch::Host::share`].
    pub fn share(&self, process: &'static Process, work: &Work<'_>) {
        let most = thread::available_parallelism().map_or(1, usize::from) - 1;
        if most == 0 {
            work(true, &mut || false);
            return;
        }
        // SAFETY: only the lifetime is changed: nobody has the pointer any more when this function returns.
        let erased: *const Work<'static> = unsafe { std::mem::transmute::<*const Work<'_>, _>(work) };
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.jobs.push(Job {
            number,
            work: erased,
            inside: 0,
            open: true,
        });
        self.count_alone(&state);
        if state.asleep == 0 && state.threads < most {
            let name = format!("vgpu-help{}", state.threads);
            match queue::spawn(name, move || process.helpers.help()) {
                Ok(_) => state.threads += 1,
                Err(error) => log::warn!("no thread to help with kernels: {error}"),
            }
        }
        drop(state);
        self.added.notify_all();
        // Even if the work panics, helpers must be out of it before its data goes away.
        let _end = Ending { helpers: self, number };
        work(true, &mut || false);
    }

    /// A helper's life.
    fn help(&self) {
        let mut state = self.state();
        loop {
            let open = state.jobs.iter_mut().filter(|job| job.open);
            let Some(job) = open.min_by_key(|job| job.inside) else {
                state.asleep += 1;
                state = self.added.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.asleep -= 1;
                continue;
            };
            job.inside += 1;
            let (number, work) = (job.number, job.work);
            self.count_alone(&state);
            drop(state);
            let begin = Instant::now();
            let mut left = false;
            // SAFETY: the owner waits until this helper is no longer inside.
            unsafe {
                (*work)(false, &mut || {
                    left = self.alone.load(Ordering::Relaxed) > 0 && begin.elapsed() > STAY;
                    left
                });
            }
            state = self.state();
            if let Some(job) = state.jobs.iter_mut().find(|job| job.number == number) {
                job.inside -= 1;
                // A dispatch that had nothing for this helper will have nothing later: work-groups only get fewer.
                job.open &= left;
            }
            self.count_alone(&state);
            self.left.notify_all();
        }
    }
}

struct Ending<'a> {
    helpers: &'a Helpers,
    number: u64,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.helpers.state();
        loop {
            let Some(job) = state.jobs.iter_mut().find(|job| job.number == self.number) else {
                return;
            };
            job.open = false;
            if job.inside == 0 {
                break;
            }
            state = self.helpers.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.jobs.retain(|job| job.number != self.number);
        self.helpers.count_alone(&state);
    }
}
