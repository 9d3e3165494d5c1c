//! Work-groups and the scheduler that takes their waves in turn.
//!
//! One work-group runs until it ends or has had its turn; then the next resident one follows. A new one is admitted when
//! none of the resident ones ended in a whole round, up to what the card would hold: spinning on another work-group
//! makes progress, and short work-groups run one after the other with warm caches.

use std::{collections::VecDeque, time::Duration};

use crate::{
    dispatch::{Dispatch, Stats, Stop},
    exec::{
        Trouble,
        access::{Memory, SCRATCH_WINDOW, Scratch, Spaces},
        code::{Code, FetchError},
        step::{self, Context, Pause},
    },
    isa::decode,
    memory::{Access, FaultReason},
    setup::{POISON, Setup},
    wave::Wave,
};

/// Instructions a wave runs before the next wave's turn.
const QUANTUM: u32 = 2000;
/// Rounds over its waves that a work-group has before the next work-group's turn.
const ROUNDS: u32 = 8;
/// Compute units, waves on each: what bounds the number of resident work-groups.
const COMPUTE_UNITS: u32 = 104;
const WAVES_PER_UNIT: u32 = 32;
const LDS_PER_UNIT: u32 = 64 * 1024;
/// Host memory that resident work-groups may take, two work-groups at least.
const RESIDENT_BYTES: u64 = 2 << 30;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    AtBarrier,
    Ended,
}

struct Slot {
    wave: Wave,
    scratch: Scratch,
    state: State,
    hw_id: u32,
}

struct Group {
    id: [u32; 3],
    slots: Vec<Slot>,
    lds: Vec<u64>,
}

/// What a work-group did in its turn.
enum Turn {
    Ended,
    /// Ran its time out.
    Busy,
    /// Every wave that could run slept.
    Idle,
}

/// Runs a dispatch; see [`crate::dispatch::run`].
pub fn run(d: &Dispatch<'_>) -> Result<Stats, Stop> {
    let mut memory = Memory::new(d.memory);
    let setup = Setup::new(d, &mut memory)?;
    let probe = Wave::new(d.target, setup.vgprs, setup.accum_offset, POISON);
    let mut machine = Machine {
        d,
        code: Code::new(d.target, probe.vector_registers()),
        setup,
        ctx: Context {
            spaces: Spaces {
                memory,
                lds: Vec::new(),
                lds_bytes: d.group_segment_size,
                scratch: Scratch::default(),
                shared_base: d.shared_base,
                private_base: d.private_base,
            },
            host: d.host,
            hw_id: 0,
        },
        stats: Stats::default(),
        started: 0,
    };
    let end = machine.all_groups();
    let m = &machine.ctx.spaces.memory;
    machine.stats.bytes_loaded = m.loaded;
    machine.stats.bytes_stored = m.stored;
    machine.stats.foreign_bytes_loaded = m.foreign_loaded;
    machine.stats.foreign_bytes_stored = m.foreign_stored;
    end.map(|()| machine.stats)
}

struct Machine<'a> {
    d: &'a Dispatch<'a>,
    setup: Setup,
    code: Code,
    ctx: Context<'a>,
    stats: Stats,
    /// Waves started.
    started: u32,
}

impl Machine<'_> {
    fn all_groups(&mut self) -> Result<(), Stop> {
        let [nx, ny, nz] = self.setup.groups.map(u64::from);
        let total = nx * ny * nz;
        let waves = self.d.workgroup_size.iter().product::<u32>().div_ceil(64);
        let by_waves = COMPUTE_UNITS * (WAVES_PER_UNIT / waves).max(1);
        let by_lds = LDS_PER_UNIT
            .checked_div(self.d.group_segment_size)
            .map_or(u32::MAX, |n| n.max(1) * COMPUTE_UNITS);
        let registers = u64::from(self.setup.vgprs) * 256 + u64::from(self.setup.lane_bytes) * 64;
        let by_memory = RESIDENT_BYTES / (registers * u64::from(waves) + u64::from(self.d.group_segment_size));
        let limit = by_memory.clamp(2, u64::from(by_waves.min(by_lds))) as usize;

        let mut next = 0u64;
        let mut resident: VecDeque<Group> = VecDeque::new();
        let mut spare = Vec::new();
        // Turns since a work-group last ended or was admitted, and how many of them in a row were idle.
        let (mut turns, mut idle) = (0, 0u32);
        loop {
            if resident.len() <= turns && resident.len() < limit && next < total {
                let id = [next % nx, next / nx % ny, next / nx / ny].map(|n| n as u32);
                let group = self.start(id, spare.pop())?;
                resident.push_front(group);
                next += 1;
                turns = 0;
            }
            let Some(mut group) = resident.pop_front() else {
                return Ok(());
            };
            if self.d.host.cancelled() {
                return Err(Stop::Cancelled);
            }
            match self.turn(&mut group)? {
                Turn::Ended => {
                    spare.push(group);
                    // The next one takes its place at once.
                    turns = resident.len();
                    idle = 0;
                    continue;
                }
                Turn::Busy => idle = 0,
                Turn::Idle => idle += 1,
            }
            resident.push_back(group);
            turns += 1;
            if idle as usize > 100 * resident.len() {
                // All wait for something outside this dispatch: leave the processor to it.
                std::thread::sleep(Duration::from_micros(20));
            } else if turns >= resident.len() {
                std::thread::yield_now();
            }
        }
    }

    fn start(&mut self, id: [u32; 3], spare: Option<Group>) -> Result<Group, Stop> {
        let items = self.setup.group_size(self.d, id).iter().product::<u32>();
        let waves = items.div_ceil(64) as usize;
        let mut group = spare.unwrap_or_else(|| Group {
            id,
            slots: Vec::new(),
            lds: Vec::new(),
        });
        let poison = u64::from(POISON) << 32 | u64::from(POISON);
        group.id = id;
        group.lds.clear();
        group.lds.resize(self.d.group_segment_size.div_ceil(8) as usize, poison);
        group.slots.truncate(waves);
        while group.slots.len() < waves {
            group.slots.push(Slot {
                wave: Wave::new(self.d.target, self.setup.vgprs, self.setup.accum_offset, POISON),
                scratch: Scratch::default(),
                state: State::Ready,
                hw_id: 0,
            });
        }
        let size = u64::from(self.setup.lane_bytes) * 64;
        // Waves differ in their part of the window, so that code that forgets the wave offset is found out.
        let parts = (u64::from(u32::MAX) + 1).checked_div(size).map_or(1, |n| n.min(16));
        for (number, slot) in group.slots.iter_mut().enumerate() {
            let sequence = self.started;
            self.started = self.started.wrapping_add(1);
            slot.state = State::Ready;
            slot.scratch.lane_bytes = self.setup.lane_bytes;
            slot.scratch.va = SCRATCH_WINDOW + u64::from(sequence) % parts * size;
            slot.scratch.words.clear();
            slot.scratch.words.resize(size as usize / 8, poison);
            // 3:0 wave, 5:4 SIMD, 11:8 compute unit, 14:13 shader engine.
            slot.hw_id =
                (sequence / 4) & 7 | (sequence & 3) << 4 | ((sequence / 32) & 15) << 8 | ((sequence / 512) & 3) << 13;
            self.setup
                .start(self.d, &mut slot.wave, id, number as u32, slot.scratch.va)?;
            self.stats.waves += 1;
        }
        Ok(group)
    }

    fn turn(&mut self, group: &mut Group) -> Result<Turn, Stop> {
        std::mem::swap(&mut self.ctx.spaces.lds, &mut group.lds);
        let mut outcome = Ok(Turn::Busy);
        for _ in 0..ROUNDS {
            match self.round(group) {
                Ok(Turn::Busy) => {}
                other => {
                    outcome = other;
                    break;
                }
            }
        }
        std::mem::swap(&mut self.ctx.spaces.lds, &mut group.lds);
        outcome
    }

    /// Gives every wave that is ready one quantum.
    fn round(&mut self, group: &mut Group) -> Result<Turn, Stop> {
        let mut slept = true;
        let ready = |(_, s): &(usize, &mut Slot)| s.state == State::Ready;
        for (number, slot) in group.slots.iter_mut().enumerate().filter(ready) {
            std::mem::swap(&mut self.ctx.spaces.scratch, &mut slot.scratch);
            self.ctx.hw_id = slot.hw_id;
            let (count, pause) = step::run(&mut slot.wave, &mut self.ctx, &mut self.code, QUANTUM);
            std::mem::swap(&mut self.ctx.spaces.scratch, &mut slot.scratch);
            self.stats.instructions += u64::from(count);
            match pause {
                Pause::Quantum => slept = false,
                Pause::Yield => {}
                Pause::Barrier => {
                    slot.state = State::AtBarrier;
                    slept = false;
                }
                Pause::End => {
                    slot.state = State::Ended;
                    slept = false;
                }
                Pause::Trap(id) => {
                    let (pc, group) = (slot.wave.pc, group.id);
                    let message = format!("`s_trap {id}` at {pc:#x} (wave {number} of work-group {group:?})");
                    return Err(Stop::Trap { id, pc, message });
                }
                Pause::Failed(trouble) => {
                    let wave = format!("wave {number} of work-group {:?}", group.id);
                    return Err(self.failed(slot.wave.pc, trouble, &wave));
                }
                Pause::NoInstruction(e) => {
                    let wave = format!("wave {number} of work-group {:?}", group.id);
                    return Err(self.no_instruction(slot.wave.pc, e, &wave));
                }
            }
        }
        // Waves that ended no longer count: the barrier opens when all the others have come.
        if group.slots.iter().all(|s| s.state != State::Ready) {
            let mut waiting = false;
            for slot in group.slots.iter_mut().filter(|s| s.state == State::AtBarrier) {
                slot.state = State::Ready;
                waiting = true;
            }
            if !waiting {
                return Ok(Turn::Ended);
            }
        }
        Ok(if slept { Turn::Idle } else { Turn::Busy })
    }

    /// The instruction at an address, for messages.
    fn text_at(&mut self, pc: u64) -> String {
        let mut words = [0u32; 3];
        let mut have = 0;
        let memory = &mut self.ctx.spaces.memory;
        while have < 3
            && memory
                .read_dwords(pc + 4 * have as u64, &mut words[have..=have], Access::Execute)
                .is_ok()
        {
            have += 1;
        }
        match decode(self.d.target, &words[..have]) {
            Ok(inst) => inst.to_string(),
            Err(e) => e.to_string(),
        }
    }

    /// `wave` says which one, in words.
    fn failed(&mut self, pc: u64, trouble: Trouble, wave: &str) -> Stop {
        let inst = self.text_at(pc);
        let kernel = self.d.kernel_object;
        match trouble {
            Trouble::Fault(fault) => {
                let why = match fault.reason {
                    FaultReason::NotPresent => "nothing is mapped there for this GPU",
                    FaultReason::ReadOnly => "the mapping is read-only",
                    FaultReason::NoExecute => "the mapping is not executable",
                    FaultReason::Misaligned => "misaligned atomic",
                };
                let va = fault.va;
                let space = if va >> 32 == self.d.shared_base >> 32 && self.d.shared_base != 0 {
                    "LDS address"
                } else if va >= SCRATCH_WINDOW || va >> 32 == self.d.private_base >> 32 && self.d.private_base != 0 {
                    "scratch address"
                } else {
                    "address"
                };
                let message =
                    format!("`{inst}` at {pc:#x} accessed {space} {va:#x}: {why} ({wave}, kernel object {kernel:#x})");
                Stop::MemoryFault { fault, pc, message }
            }
            Trouble::Illegal(why) => Stop::IllegalInstruction {
                pc,
                message: format!("`{inst}` at {pc:#x}: {why} ({wave}, kernel object {kernel:#x})"),
            },
        }
    }

    fn no_instruction(&self, pc: u64, error: FetchError, wave: &str) -> Stop {
        let kernel = self.d.kernel_object;
        match error {
            FetchError::Fault(fault) => Stop::MemoryFault {
                fault,
                pc,
                message: format!(
                    "instruction fetch at {pc:#x}: {:?} ({wave}, kernel object {kernel:#x})",
                    fault.reason
                ),
            },
            FetchError::Reserved(e) => Stop::IllegalInstruction {
                pc,
                message: format!("at {pc:#x}: {e} ({wave}, kernel object {kernel:#x})"),
            },
            FetchError::Register(inst, why) => Stop::IllegalInstruction {
                pc,
                message: format!("`{inst}` at {pc:#x}: {why} ({wave}, kernel object {kernel:#x})"),
            },
        }
    }
}
