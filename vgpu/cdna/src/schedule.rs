//! The work-groups of a dispatch, taken in turn by every thread that works on it.
//!
//! A thread takes the work-group that has waited longest, lets it run for a turn and puts it back. New ones are admitted
//! in the place of those that ended, and beside the resident ones when none of those ended in a whole round, up to what the
//! card would hold: spinning on another work-group makes progress, and short work-groups run one after the other with warm
//! caches. With a seed one thread does all, and the seed decides who is next and for how long.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Target,
    coherence::Cache,
    dispatch::{Dispatch, Stats, Stop},
    exec::access::Memory,
    random::Random,
    setup::Setup,
    workgroup::{COMPUTE_UNITS, Group, Turn, Unit},
};

/// Waves and LDS of a compute unit: with their number, what bounds the number of resident work-groups.
const WAVES_PER_UNIT: u32 = 32;
const LDS_PER_UNIT: u32 = 64 * 1024;
/// Compute units of the larger card: grids may be made to fill it.
const COMPUTE_UNITS_OF_GFX942: u32 = 304;
/// Host memory that resident work-groups may take, two work-groups at least.
const RESIDENT_BYTES: u64 = 2 << 30;
/// How long a dispatch runs on its queue's own thread before others are asked to help: waking them takes as long.
const ALONE: Duration = Duration::from_micros(100);

/// A dispatch that has been checked, and runs.
pub struct Running<'a> {
    d: Dispatch<'a>,
    setup: Setup,
    /// Work-groups in x, y and z.
    groups: [u64; 3],
    /// Most that are resident at once.
    limit: usize,
    seeded: bool,
    pool: Mutex<Pool>,
    /// Something was put into the pool, or the dispatch has ended.
    changed: Condvar,
}

/// Work-groups that nobody is running.
struct Pool {
    /// The next to be started.
    next: u64,
    resident: VecDeque<Group>,
    /// Started and not ended, those that are being run included.
    live: usize,
    spare: Vec<Group>,
    /// Turns since a work-group last ended or was admitted, and how many of them in a row were idle.
    turns: usize,
    idle: usize,
    random: Option<Random>,
    stop: Option<Stop>,
    stats: Stats,
}

/// What [`Running::one`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A work-group had a turn.
    Worked,
    /// One had, and all have slept for a while: they wait for something outside.
    Asleep,
    /// Other threads have all that is left.
    Nothing,
    /// The dispatch has ended.
    Ended,
}

impl<'a> Running<'a> {
    /// Checks the dispatch and starts it. `seed` fixes the interleaving.
    ///
    /// # Errors
    /// [`Stop::InvalidDispatch`], or a fault at the kernel descriptor.
    pub fn new(d: Dispatch<'a>, seed: Option<u64>) -> Result<Self, Stop> {
        let _held = d.memory.cache().map(Cache::hold);
        let setup = Setup::new(&d, &mut Memory::new(d.memory))?;
        let waves = d.workgroup_size.iter().product::<u32>().div_ceil(64);
        let units = match d.target {
            Target::Gfx90a => COMPUTE_UNITS,
            Target::Gfx942 => COMPUTE_UNITS_OF_GFX942,
        };
        let by_waves = units * (WAVES_PER_UNIT / waves).max(1);
        let by_lds = LDS_PER_UNIT
            .checked_div(d.group_segment_size)
            .map_or(u32::MAX, |n| n.max(1) * units);
        let registers = u64::from(setup.vgprs) * 256 + u64::from(setup.lane_bytes) * 64;
        let by_memory = RESIDENT_BYTES / (registers * u64::from(waves) + u64::from(d.group_segment_size));
        let limit = by_memory.clamp(2, u64::from(by_waves.min(by_lds))) as usize;
        let groups = setup.groups.map(u64::from);
        Ok(Running {
            d,
            setup,
            groups,
            limit,
            seeded: seed.is_some(),
            pool: Mutex::new(Pool {
                next: 0,
                resident: VecDeque::new(),
                live: 0,
                spare: Vec::new(),
                turns: 0,
                idle: 0,
                random: seed.map(Random::new),
                stop: None,
                stats: Stats::default(),
            }),
            changed: Condvar::new(),
        })
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn total(&self) -> u64 {
        self.groups.iter().product()
    }

    /// One turn of one work-group. The pool is not locked while it runs.
    fn one(&self, unit: &mut Unit<'_>) -> Progress {
        let mut pool = self.pool();
        if pool.stop.is_some() {
            return Progress::Ended;
        }
        let more = pool.next < self.total() && pool.live < self.limit;
        let admit = more
            && match &mut pool.random {
                // Few at first, so that short work-groups meet only some others.
                Some(random) => random.below(4) == 0,
                None => pool.turns >= pool.live,
            };
        let mut group = if admit || more && pool.resident.is_empty() {
            let (number, [nx, ny, _]) = (pool.next, self.groups);
            let id = [number % nx, number / nx % ny, number / nx / ny].map(|n| n as u32);
            pool.next += 1;
            pool.live += 1;
            pool.turns = 0;
            let spare = pool.spare.pop();
            drop(pool);
            match unit.start(id, number, spare) {
                Ok(group) => group,
                Err(stop) => return self.fail(stop),
            }
        } else {
            let waiting = pool.resident.len();
            let group = match &mut pool.random {
                Some(random) if waiting > 1 => {
                    let at = random.below(waiting as u64) as usize;
                    pool.resident.remove(at)
                }
                _ => pool.resident.pop_front(),
            };
            let Some(group) = group else {
                return if pool.live == 0 {
                    Progress::Ended
                } else {
                    Progress::Nothing
                };
            };
            drop(pool);
            group
        };
        if self.d.host.cancelled() {
            return self.fail(Stop::Cancelled);
        }
        let mut random = if self.seeded { self.pool().random.take() } else { None };
        let turn = unit.turn(&mut group, random.as_mut());
        let mut pool = self.pool();
        if self.seeded {
            pool.random = random;
        }
        match turn {
            Err(stop) => {
                drop(pool);
                return self.fail(stop);
            }
            Ok(Turn::Ended) => {
                pool.spare.push(group);
                pool.live -= 1;
                // The next one takes its place at once.
                pool.turns = pool.live;
                pool.idle = 0;
                if pool.live == 0 && pool.next >= self.total() {
                    drop(pool);
                    self.changed.notify_all();
                    return Progress::Ended;
                }
                return Progress::Worked;
            }
            Ok(Turn::Busy) => pool.idle = 0,
            Ok(Turn::Idle) => pool.idle += 1,
        }
        pool.turns += 1;
        let asleep = pool.idle > 100 * pool.live;
        pool.resident.push_back(group);
        drop(pool);
        if asleep { Progress::Asleep } else { Progress::Worked }
    }

    fn fail(&self, stop: Stop) -> Progress {
        let mut pool = self.pool();
        // The first reason counts: others may be its consequences.
        pool.stop.get_or_insert(stop);
        drop(pool);
        self.changed.notify_all();
        Progress::Ended
    }

    /// Works until the dispatch has ended, or `leave` says so. `owner` waits for the work-groups that other threads
    /// have; the others go when there is nothing for them.
    fn work(&self, owner: bool, mut leave: impl FnMut() -> bool) -> Progress {
        let mut unit = Unit::new(&self.d, &self.setup);
        let progress = loop {
            match self.one(&mut unit) {
                Progress::Worked => {}
                // Leave the processor to what they wait for.
                Progress::Asleep => std::thread::sleep(Duration::from_micros(20)),
                Progress::Nothing if owner => {
                    let pool = self.pool();
                    // Work-groups come back without notice, so that nobody pays for one.
                    drop(self.changed.wait_timeout(pool, Duration::from_micros(50)));
                }
                end => break end,
            }
            if leave() {
                break Progress::Worked;
            }
        };
        let stats = unit.stats();
        self.pool().stats.add(&stats);
        progress
    }

    /// Runs it to its end: alone if it is short, else with the help that the host has.
    ///
    /// # Errors
    /// See [`Stop`].
    pub fn run(self) -> Result<Stats, Stop> {
        let begin = Instant::now();
        let mut turns = 0u32;
        let progress = self.work(true, || {
            turns += 1;
            !self.seeded && turns.is_multiple_of(16) && begin.elapsed() > ALONE && self.has_work_for_two()
        });
        if progress != Progress::Ended {
            self.d.host.share(&|owner, leave| {
                self.work(owner, leave);
            });
        }
        self.finish()
    }

    fn has_work_for_two(&self) -> bool {
        let pool = self.pool();
        pool.live as u64 + (self.total() - pool.next) > 1
    }

    /// One turn, for a host that runs several dispatches on one thread.
    pub fn turn(&self) -> Progress {
        let mut unit = Unit::new(&self.d, &self.setup);
        let progress = self.one(&mut unit);
        let stats = unit.stats();
        self.pool().stats.add(&stats);
        progress
    }

    /// The result of a dispatch that has ended.
    ///
    /// # Errors
    /// See [`Stop`].
    pub fn finish(self) -> Result<Stats, Stop> {
        let pool = self.pool.into_inner().unwrap_or_else(PoisonError::into_inner);
        match pool.stop {
            Some(stop) => Err(stop),
            None => Ok(pool.stats),
        }
    }
}
