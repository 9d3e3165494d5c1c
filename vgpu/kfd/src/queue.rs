//! Queues: one thread each, so that a kernel that spins on one queue cannot block another.
//!
//! A doorbell is a plain store that nobody can wait for. A queue that was busy lately polls its own; one that has been idle
//! for a moment sleeps, and one thread per process watches the doorbells of all that sleep: idle queues cost nothing each.

use std::{
    collections::BTreeMap,
    io, ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use cdna::{
    memory::{Access, Fault},
    random::Random,
};

use crate::{
    abi::{CreateQueue, UpdateQueue, queue_type},
    aql, os,
    process::{DOORBELLS, Gpu, Process},
    sdma, sysfs,
};

type Errno = i32;

/// Smallest ring that the driver accepts.
const MIN_RING_SIZE: u32 = 1024;
/// Queues of a process (`KFD_MAX_NUM_OF_QUEUES_PER_PROCESS`). Compute queues beyond the hardware's slots take turns; SDMA
/// queues do not: there are as many as slots.
const MOST_QUEUES: usize = 1024;

/// What a queue and the ioctls about it share.
#[derive(Debug)]
pub struct Control {
    /// GPU virtual address of the ring.
    pub ring: AtomicU64,
    /// Bytes of the ring.
    pub ring_size: AtomicU64,
    /// Percentage 0: do nothing until told otherwise.
    paused: AtomicBool,
    /// The thread has seen `paused`.
    parked: AtomicBool,
    /// The queue is being destroyed.
    cancelled: AtomicBool,
    /// The thread has ended.
    finished: AtomicBool,
    /// 1: the thread sleeps until its doorbell is no longer `seen`. What it sleeps on.
    dormant: AtomicU32,
    seen: AtomicU64,
}

impl Control {
    /// Sleeps until the doorbell changes, or the ioctls want something. The watcher looks at the doorbell.
    fn sleep_until_rung(&self, process: &'static Process, seen: u64) {
        self.seen.store(seen, Ordering::Relaxed);
        self.dormant.store(1, Ordering::SeqCst);
        process.queues.watch(process);
        while self.dormant.load(Ordering::SeqCst) == 1
            && !self.cancelled.load(Ordering::SeqCst)
            && !self.paused.load(Ordering::SeqCst)
        {
            os::futex_wait(&self.dormant, 1, Duration::from_secs(1));
        }
        self.dormant.store(0, Ordering::SeqCst);
    }

    /// Ends a sleep.
    fn wake(&self) {
        if self.dormant.swap(0, Ordering::SeqCst) == 1 {
            os::futex_wake_all(&self.dormant);
        }
    }

    /// Asked between packets and, by the interpreter, within kernels: sleeps while the queue is paused (the preempted
    /// wave of a real card), and says whether it is over.
    pub fn cancelled(&self) -> bool {
        while self.paused.load(Ordering::Acquire) && !self.cancelled.load(Ordering::Acquire) {
            self.parked.store(true, Ordering::Release);
            thread::sleep(Duration::from_micros(200));
        }
        self.parked.store(false, Ordering::Release);
        self.cancelled.load(Ordering::Acquire)
    }

    /// Whether the queue is being destroyed; does not wait.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Whether the queue is paused, which whoever paused it hears; does not wait.
    fn is_paused(&self) -> bool {
        let paused = self.paused.load(Ordering::Acquire);
        self.parked.store(paused, Ordering::Release);
        paused
    }
}

/// A queue as its thread sees it.
pub struct Context {
    /// The process.
    pub process: &'static Process,
    /// The GPU.
    pub gpu: &'static Gpu,
    /// As ioctls name it.
    pub id: u32,
    /// Shared with the ioctls.
    pub control: Arc<Control>,
    /// GPU virtual address of the read pointer.
    pub read_pointer_va: u64,
    /// GPU virtual address of the write pointer (AQL: the index of the next packet that a producer will reserve).
    pub write_pointer_va: u64,
    /// The doorbell.
    pub doorbell: &'static AtomicU64,
}

/// What a look at the queue came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A packet was executed.
    Progress,
    /// Nothing to do, or the packet's condition does not hold yet.
    Idle,
    /// The queue stopped for good: a fault or an error, which has been reported.
    Halted,
}

/// A kind of packet processor.
pub trait Engine: Send {
    /// Executes at most one packet.
    fn step(&mut self, context: &Context) -> Step;

    /// After an idle step: nothing can change before the doorbell is rung.
    fn waits_for_doorbell(&self) -> bool;
}

impl Context {
    /// How far producers have reserved the queue.
    ///
    /// # Errors
    /// The write pointer is not mapped for the GPU.
    pub fn write_pointer(&self) -> Result<u64, Fault> {
        let pointer = self.gpu.vm.contiguous(self.write_pointer_va, 8, Access::Read)?;
        // SAFETY: mapped; ROCr aligns it (checked when the queue was made).
        Ok(unsafe { AtomicU64::from_ptr(pointer.cast()) }.load(Ordering::Acquire))
    }

    /// Publishes how far the queue has read.
    ///
    /// # Errors
    /// The read pointer is not mapped for the GPU.
    pub fn set_read_pointer(&self, value: u64) -> Result<(), Fault> {
        let pointer = self.gpu.vm.contiguous(self.read_pointer_va, 8, Access::Write)?;
        // SAFETY: mapped; ROCr aligns it (checked when the queue was made).
        unsafe { AtomicU64::from_ptr(pointer.cast()) }.store(value, Ordering::Release);
        Ok(())
    }
}

/// What idle queue threads sleep on. A doorbell is a plain store that nobody can wait for, so threads poll; whoever
/// knows that something may have changed (an event is waited for, a signal was decremented) rings the bell.
#[derive(Debug, Default)]
pub struct Bell {
    rings: AtomicU32,
    sleepers: AtomicU32,
}

impl Bell {
    /// Wakes the threads that sleep long.
    pub fn ring(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.rings.fetch_add(1, Ordering::SeqCst);
            os::futex_wake_all(&self.rings);
        }
    }

    fn sleep(&self, time: Duration) {
        let seen = self.rings.load(Ordering::SeqCst);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        os::futex_wait(&self.rings, seen, time);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How an idle thread waits: it spins for a moment, then sleeps for an eighth of the time it has been idle, at most a
/// millisecond, four once a second has passed. What it adds to the latency of an operation is thus a small share of the
/// pause before it, and an idle queue costs little.
struct Backoff {
    since: Option<Instant>,
}

impl Backoff {
    /// No longer, and no yielding: where ranks share processors, a yield gives a whole time slice away, while a thread
    /// that sleeps briefly is soon run again.
    const SPIN: Duration = Duration::from_micros(5);
    const SHORTEST: Duration = Duration::from_micros(5);
    const LONGEST: Duration = Duration::from_millis(1);
    const LONG_IDLE: Duration = Duration::from_secs(1);
    /// When a queue goes to sleep and leaves its doorbell to the watcher.
    const DORMANT: Duration = Duration::from_millis(20);

    fn is_over(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() > Self::DORMANT)
    }

    fn wait(&mut self, bell: &Bell, fresh: impl FnOnce()) {
        let since = *self.since.get_or_insert_with(Instant::now);
        let idle = since.elapsed();
        if idle < Self::SPIN {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
            return;
        }
        let longest = if idle < Self::LONG_IDLE {
            Self::LONGEST
        } else {
            4 * Self::LONGEST
        };
        let time = (idle / 8).clamp(Self::SHORTEST, longest);
        if time == longest {
            fresh();
        }
        bell.sleep(time);
    }
}

fn run(context: &Context, engine: &mut dyn Engine) {
    // SAFETY: this thread's own timer slack: a sleep of 10 us must not become one of 60.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000, 0, 0, 0) };
    let mut backoff = Backoff { since: None };
    let mut halted = false;
    while !context.control.cancelled() {
        let seen = context.doorbell.load(Ordering::Acquire);
        let step = if halted { Step::Halted } else { engine.step(context) };
        match step {
            Step::Progress => backoff.since = None,
            Step::Idle if backoff.is_over() && engine.waits_for_doorbell() => {
                context.process.counters.publish();
                context.control.sleep_until_rung(context.process, seen);
                backoff.since = None;
            }
            Step::Idle => backoff.wait(&context.process.bell, || context.process.counters.publish()),
            Step::Halted => {
                halted = true;
                context.process.counters.publish();
                context.control.sleep_until_rung(context.process, seen);
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    context.process.counters.publish();
    context.control.finished.store(true, Ordering::Release);
}

/// A queue that shares one thread with all others.
struct Entry {
    context: Context,
    engine: Box<dyn Engine>,
    halted: bool,
}

/// All queues on one thread, in an order that the seed decides.
fn run_all(process: &'static Process, seed: u64) {
    // SAFETY: as in `run`.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000, 0, 0, 0) };
    let mut random = Random::new(seed);
    let mut backoff = Backoff { since: None };
    let mut entries: Vec<Entry> = Vec::new();
    // Drawn anew when something was done, and only then: how often an idle machine is looked at is up to the clock.
    let mut next = random.draw();
    loop {
        entries.append(&mut process.queues.arrivals());
        entries.retain(|entry| {
            let control = &entry.context.control;
            let stays = !control.is_cancelled();
            if !stays {
                process.counters.publish();
                control.finished.store(true, Ordering::Release);
            }
            stays
        });
        let count = entries.len();
        let progress = (0..count).any(|i| {
            let entry = &mut entries[(next as usize).wrapping_add(i) % count];
            // A queue that stopped can be paused all the same, and whoever does it waits to hear of it.
            if entry.context.control.is_paused() || entry.halted {
                return false;
            }
            let step = entry.engine.step(&entry.context);
            entry.halted = step == Step::Halted;
            step == Step::Progress
        });
        if progress {
            backoff.since = None;
            next = random.draw() >> 8;
        } else {
            backoff.wait(&process.bell, || process.counters.publish());
        }
    }
}

struct Queue {
    control: Arc<Control>,
    gpu: u32,
    /// `KFD_IOC_QUEUE_TYPE_*`
    kind: u32,
    /// Has the process's global wave sync.
    gws: bool,
    doorbell: usize,
    runner: Option<Runner>,
}

/// Who runs a queue.
enum Runner {
    Own(JoinHandle<()>),
    /// The thread that runs all.
    Common,
}

/// The queues of a process.
#[derive(Default)]
pub struct Queues {
    table: Mutex<BTreeMap<u32, Queue>>,
    /// The thread that watches the doorbells of sleeping queues is there.
    watched: AtomicBool,
    /// Changes when a queue goes to sleep.
    sleepers: AtomicU32,
    /// With a seed: queues that the common thread has not yet seen, and whether there is one.
    arrivals: Mutex<(Vec<Entry>, bool)>,
}

/// Watches the doorbells of queues that sleep.
fn watch(process: &'static Process) {
    // SAFETY: this thread's own timer slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000, 0, 0, 0) };
    let queues = &process.queues;
    let mut backoff = Backoff { since: None };
    loop {
        let sleepers = queues.sleepers.load(Ordering::SeqCst);
        let (mut dormant, mut rung) = (false, false);
        for queue in queues.table().values() {
            let control = &queue.control;
            if control.dormant.load(Ordering::SeqCst) != 1 {
                continue;
            }
            dormant = true;
            let doorbell = process.gpus[queue.gpu as usize].doorbell(queue.doorbell);
            if doorbell.load(Ordering::Acquire) != control.seen.load(Ordering::Relaxed) {
                control.wake();
                rung = true;
            }
        }
        if rung {
            backoff.since = None;
        }
        if dormant {
            backoff.wait(&process.bell, || ());
        } else {
            backoff.since = None;
            os::futex_wait(&queues.sleepers, sleepers, Duration::from_secs(10));
        }
    }
}

impl Queues {
    fn arrivals(&self) -> Vec<Entry> {
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut arrivals.0)
    }

    /// Has the common thread run a queue.
    fn join(&self, process: &'static Process, seed: u64, entry: Entry) -> io::Result<Runner> {
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        if !arrivals.1 {
            spawn("vgpu-queues".into(), move || run_all(process, seed))?;
            arrivals.1 = true;
        }
        arrivals.0.push(entry);
        drop(arrivals);
        process.bell.ring();
        Ok(Runner::Common)
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<u32, Queue>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A queue has gone to sleep: somebody has to watch its doorbell.
    fn watch(&self, process: &'static Process) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        os::futex_wake_all(&self.sleepers);
        if !self.watched.swap(true, Ordering::SeqCst)
            && let Err(error) = spawn("vgpu-watch".to_owned(), move || watch(process))
        {
            log::error!("no thread to watch doorbells: {error}");
            self.watched.store(false, Ordering::SeqCst);
        }
    }

    /// `CREATE_QUEUE`.
    ///
    /// # Errors
    /// `EINVAL` for arguments that the driver refuses, `ENOMEM` when doorbells or slots run out.
    pub fn create(&self, process: &'static Process, args: &mut CreateQueue) -> Result<(), Errno> {
        let gpu = process.gpu_by_id(args.gpu_id).ok_or(libc::EINVAL)?;
        let size = args.ring_size;
        let bad = size < MIN_RING_SIZE
            || !size.is_power_of_two()
            || args.queue_percentage > 100
            || args.queue_priority > 15
            || !args.read_pointer_address.is_multiple_of(8)
            || !args.write_pointer_address.is_multiple_of(8)
            || !args.ring_base_address.is_multiple_of(256)
            || args.ring_base_address == 0;
        if bad {
            return Err(libc::EINVAL);
        }
        let mut table = self.table();
        let same = |queue: &&Queue| queue.gpu == gpu.index && queue.kind == args.queue_type;
        let slots = sysfs::sdma_queues(process.config.machine.target, args.queue_type).unwrap_or(MOST_QUEUES);
        if table.len() >= MOST_QUEUES || table.values().filter(same).count() >= slots {
            log::info!("no more queues of type {} on GPU {}", args.queue_type, gpu.index);
            return Err(libc::ENOMEM);
        }
        let id = (0..).find(|id| !table.contains_key(id)).ok_or(libc::ENOMEM)?;
        let free = |index: &usize| {
            !table
                .values()
                .any(|queue| queue.gpu == gpu.index && queue.doorbell == *index)
        };
        let index = (0..DOORBELLS).find(free).ok_or(libc::ENOMEM)?;
        let doorbell = gpu.doorbell(index);
        // "No packet yet" for both kinds: index -1, and a write pointer that no ring reaches.
        doorbell.store(u64::MAX, Ordering::Release);
        let control = Arc::new(Control {
            ring: AtomicU64::new(args.ring_base_address),
            ring_size: AtomicU64::new(size.into()),
            paused: AtomicBool::new(args.queue_percentage == 0),
            parked: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            dormant: AtomicU32::new(0),
            seen: AtomicU64::new(0),
        });
        let context = Context {
            process,
            gpu,
            id,
            control: control.clone(),
            read_pointer_va: args.read_pointer_address,
            write_pointer_va: args.write_pointer_address,
            doorbell,
        };
        let mut engine: Box<dyn Engine> = match args.queue_type {
            queue_type::COMPUTE_AQL => Box::new(aql::Aql::default()),
            queue_type::SDMA | queue_type::SDMA_XGMI => Box::new(sdma::Sdma::default()),
            other => {
                log::error!("queue type {other} is not there: ROCr uses AQL and SDMA queues only");
                return Err(libc::EINVAL);
            }
        };
        let runner = match process.config.seed {
            None => spawn(format!("vgpu-queue{id}"), move || run(&context, &mut *engine)).map(Runner::Own),
            Some(seed) => {
                let entry = Entry {
                    context,
                    engine,
                    halted: false,
                };
                self.join(process, seed, entry)
            }
        };
        let runner = runner.map_err(|error| {
            log::error!("no thread for a queue: {error}");
            libc::ENOMEM
        })?;
        table.insert(
            id,
            Queue {
                control,
                gpu: gpu.index,
                kind: args.queue_type,
                gws: false,
                doorbell: index,
                runner: Some(runner),
            },
        );
        args.queue_id = id;
        args.doorbell_offset = gpu.doorbell_offset() + index as u64 * 8;
        log::debug!(
            "queue {id}: type {} on GPU {}, ring {:#x}+{size:#x}",
            args.queue_type,
            gpu.index,
            args.ring_base_address
        );
        Ok(())
    }

    /// `DESTROY_QUEUE`: when it returns, nothing touches the ring or its pointers any more.
    ///
    /// # Errors
    /// `EINVAL`: no such queue.
    pub fn destroy(&self, process: &Process, id: u32) -> Result<(), Errno> {
        // The entry stays until the thread is gone, so that neither id nor doorbell is given out again before.
        let (runner, control) = {
            let mut table = self.table();
            let queue = table.get_mut(&id).ok_or(libc::EINVAL)?;
            queue.control.cancelled.store(true, Ordering::SeqCst);
            queue.control.wake();
            (queue.runner.take().ok_or(libc::EINVAL)?, queue.control.clone())
        };
        process.bell.ring();
        match runner {
            Runner::Own(thread) => drop(thread.join()),
            Runner::Common => {
                while !control.finished.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        }
        self.table().remove(&id);
        Ok(())
    }

    /// `UPDATE_QUEUE`: percentage 0 stops the queue, and returns only once it has stopped.
    ///
    /// # Errors
    /// `EINVAL`: no such queue, or sizes that the driver refuses.
    pub fn update(&self, process: &Process, args: &UpdateQueue) -> Result<(), Errno> {
        let control = self.table().get(&args.queue_id).ok_or(libc::EINVAL)?.control.clone();
        let resize = args.ring_base_address != 0;
        if args.queue_percentage > 100
            || (resize && (args.ring_size < MIN_RING_SIZE || !args.ring_size.is_power_of_two()))
        {
            return Err(libc::EINVAL);
        }
        if resize {
            control.ring.store(args.ring_base_address, Ordering::Release);
            control.ring_size.store(args.ring_size.into(), Ordering::Release);
        }
        let pause = args.queue_percentage == 0;
        control.paused.store(pause, Ordering::SeqCst);
        control.wake();
        process.bell.ring();
        while pause && !control.parked.load(Ordering::Acquire) && !control.finished.load(Ordering::Acquire) {
            thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }

    /// `ALLOC_QUEUE_GWS`: gives a queue the process's global wave sync, or takes it away.
    ///
    /// # Errors
    /// `EINVAL`: no such queue, or none to take away. `EBUSY`: another queue of the process has it on this GPU.
    pub fn alloc_gws(&self, id: u32, count: u32) -> Result<(), Errno> {
        let mut table = self.table();
        let gpu = table.get(&id).ok_or(libc::EINVAL)?.gpu;
        let taken = table.values().any(|queue| queue.gpu == gpu && queue.gws);
        match (count > 0, taken) {
            (true, true) => return Err(libc::EBUSY),
            (false, false) => return Err(libc::EINVAL),
            _ => {}
        }
        let queue = table.get_mut(&id).ok_or(libc::EINVAL)?;
        queue.gws = count > 0;
        Ok(())
    }

    /// Whether there is such a queue.
    pub fn exists(&self, id: u32) -> bool {
        self.table().contains_key(&id)
    }

    /// Stops all queues, for the end of the process. Waits a moment for them: memory is about to be given back.
    pub fn cancel_all(&self) {
        let Ok(table) = self.table.try_lock() else { return };
        for queue in table.values() {
            queue.control.cancelled.store(true, Ordering::SeqCst);
            queue.control.wake();
        }
        let deadline = Instant::now() + Duration::from_millis(200);
        for queue in table.values() {
            while !queue.control.finished.load(Ordering::Acquire) && Instant::now() < deadline {
                thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// Starts a thread that takes none of the application's signals.
pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // SAFETY: signal sets are plain data, and the mask is this thread's own and put back. A thread inherits it.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        // A fault in the interpreter itself must still be seen.
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            libc::sigdelset(&raw mut all, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        let thread = thread::Builder::new().name(name).stack_size(8 << 20).spawn(body);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, ptr::null_mut());
        thread
    }
}
