//! A work-group: its waves in turn, and barriers between them.

use crate::{
    Target,
    coherence::FirstLevel,
    dispatch::{Dispatch, Stats, Stop},
    exec::{
        Trouble,
        access::{Memory, SCRATCH_WINDOW, Scratch, Spaces},
        code::{Code, FetchError},
        step::{self, Context, Pause},
    },
    isa::decode,
    memory::{Access, FaultReason},
    random::Random,
    setup::{POISON, Setup},
    wave::Wave,
};

/// Instructions a wave runs before the next wave's turn.
const QUANTUM: u32 = 2000;
/// Rounds over its waves that a work-group has before the next work-group's turn.
const ROUNDS: u32 = 8;
/// Compute units of the card, and the shader engines (gfx90a) or dies (gfx942) that work-groups are dealt to in turn.
pub const COMPUTE_UNITS: u32 = 104;
const ENGINES: u32 = 8;

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

/// A work-group that has been started and not yet ended.
#[derive(Default)]
pub struct Group {
    slots: Vec<Slot>,
    lds: Vec<u64>,
    /// Used where the machine has caches.
    l1: FirstLevel,
    id: [u32; 3],
    xcc_id: u32,
}

/// What a work-group did in its turn.
pub enum Turn {
    /// All its waves have ended.
    Ended,
    /// Ran its time out.
    Busy,
    /// Every wave that could run slept.
    Idle,
}

/// One thread's part of the machine: what the waves that it runs can reach.
pub struct Unit<'a> {
    d: &'a Dispatch<'a>,
    setup: &'a Setup,
    code: Code<'a>,
    ctx: Context<'a>,
    stats: Stats,
}

impl<'a> Unit<'a> {
    /// For work-groups of one dispatch.
    pub fn new(d: &'a Dispatch<'a>, setup: &'a Setup) -> Self {
        Unit {
            d,
            setup,
            code: Code::new(d.code, d.target, (setup.vgprs, setup.accum_offset)),
            ctx: Context {
                spaces: Spaces {
                    memory: Memory::new(d.memory),
                    lds: Vec::new(),
                    lds_bytes: d.group_segment_size,
                    scratch: Scratch::default(),
                    shared_base: d.shared_base,
                    private_base: d.private_base,
                },
                host: &*d.host,
                hw_id: 0,
                xcc_id: 0,
            },
            stats: Stats::default(),
        }
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        let m = &self.ctx.spaces.memory;
        Stats {
            bytes_loaded: m.loaded,
            bytes_stored: m.stored,
            foreign_bytes_loaded: m.foreign_loaded,
            foreign_bytes_stored: m.foreign_stored,
            ..self.stats
        }
    }

    /// Starts the work-group with this id and number, in the place of one that has ended if there is one.
    ///
    /// # Errors
    /// See [`Setup::start`].
    pub fn start(&mut self, id: [u32; 3], number: u64, spare: Option<Group>) -> Result<Group, Stop> {
        let items = self.setup.group_size(self.d, id).iter().product::<u32>();
        let waves = items.div_ceil(64) as usize;
        let mut group = spare.unwrap_or_default();
        group.id = id;
        group.l1.end();
        let poison = u64::from(POISON) << 32 | u64::from(POISON);
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
        // Work-groups go to engines, or on gfx942 to dies, in turn; all waves of one share a compute unit.
        let engine = (number % u64::from(ENGINES)) as u32;
        let unit = (number / u64::from(ENGINES)) as u32 % (COMPUTE_UNITS / ENGINES);
        let on_unit = (number / u64::from(COMPUTE_UNITS)) as u32;
        group.xcc_id = if self.d.target == Target::Gfx942 { engine } else { 0 };
        let size = u64::from(self.setup.lane_bytes) * 64;
        // Waves differ in their part of the window, so that code that forgets the wave offset is found out.
        let parts = (u64::from(u32::MAX) + 1).checked_div(size).map_or(1, |n| n.min(16));
        for (index, slot) in group.slots.iter_mut().enumerate() {
            let index = index as u32;
            let sequence = number.wrapping_mul(waves as u64).wrapping_add(index.into());
            slot.state = State::Ready;
            slot.scratch.lane_bytes = self.setup.lane_bytes;
            slot.scratch.va = SCRATCH_WINDOW + sequence % parts * size;
            slot.scratch.words.clear();
            slot.scratch.words.resize(size as usize / 8, poison);
            // 3:0 wave on the SIMD, 5:4 SIMD, 11:8 compute unit, 15:13 shader engine, 19:16 work-group on the unit.
            slot.hw_id = (index / 4 + 4 * on_unit) & 7
                | (index & 3) << 4
                | unit << 8
                | (if self.d.target == Target::Gfx942 { 0 } else { engine }) << 13
                | (on_unit & 15) << 16;
            self.setup.start(self.d, &mut slot.wave, id, index, slot.scratch.va)?;
            self.stats.waves += 1;
        }
        Ok(group)
    }

    /// Lets the work-group run for a while. With `random` it says for how long, and which wave goes first.
    ///
    /// # Errors
    /// See [`Stop`].
    pub fn turn(&mut self, group: &mut Group, random: Option<&mut Random>) -> Result<Turn, Stop> {
        std::mem::swap(&mut self.ctx.spaces.lds, &mut group.lds);
        std::mem::swap(&mut self.ctx.spaces.memory.l1, &mut group.l1);
        self.ctx.xcc_id = group.xcc_id;
        let mut outcome = Ok(Turn::Busy);
        match random {
            Some(random) => {
                let waves = group.slots.len();
                let first = random.below(waves as u64) as usize;
                outcome = self.round(group, first, 1 + random.below(u64::from(QUANTUM) / 4) as u32);
            }
            None => {
                for _ in 0..ROUNDS {
                    match self.round(group, 0, QUANTUM) {
                        Ok(Turn::Busy) => {}
                        other => {
                            outcome = other;
                            break;
                        }
                    }
                }
            }
        }
        std::mem::swap(&mut self.ctx.spaces.lds, &mut group.lds);
        std::mem::swap(&mut self.ctx.spaces.memory.l1, &mut group.l1);
        outcome
    }

    /// Gives every wave that is ready one quantum.
    fn round(&mut self, group: &mut Group, first: usize, quantum: u32) -> Result<Turn, Stop> {
        let mut slept = true;
        let waves = group.slots.len();
        for index in 0..waves {
            let index = (first + index) % waves;
            let slot = &mut group.slots[index];
            if slot.state != State::Ready {
                continue;
            }
            std::mem::swap(&mut self.ctx.spaces.scratch, &mut slot.scratch);
            self.ctx.hw_id = slot.hw_id;
            let (work, pause) = step::run(&mut slot.wave, &mut self.ctx, &mut self.code, quantum);
            std::mem::swap(&mut self.ctx.spaces.scratch, &mut slot.scratch);
            self.stats.instructions += u64::from(work.instructions);
            self.stats.cycles += work.cycles;
            self.stats.loads += u64::from(work.loads);
            self.stats.stores += u64::from(work.stores);
            self.stats.atomics += u64::from(work.atomics);
            self.stats.lds += u64::from(work.lds);
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
                    let message = format!("`s_trap {id}` at {pc:#x} (wave {index} of work-group {group:?})");
                    return Err(Stop::Trap { id, pc, message });
                }
                Pause::Failed(trouble) => {
                    let who = format!("wave {index} of work-group {:?}", group.id);
                    return Err(self.failed(slot.wave.pc, &who, trouble));
                }
                Pause::NoInstruction(e) => {
                    let wave = format!("wave {index} of work-group {:?}", group.id);
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

    /// `who` says which wave, in words.
    fn failed(&mut self, pc: u64, who: &str, trouble: Trouble) -> Stop {
        let inst = self.text_at(pc);
        let kernel = self.d.kernel_object;
        match trouble {
            Trouble::Fault(fault) => {
                let why = match fault.reason {
                    FaultReason::NotPresent => "nothing is mapped there for this GPU",
                    FaultReason::ReadOnly => "the mapping is read-only",
                    FaultReason::NoExecute => "the mapping is not executable",
                    FaultReason::Misaligned => "misaligned atomic: the address must be a multiple of its size",
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
                    format!("`{inst}` at {pc:#x} accessed {space} {va:#x}: {why} ({who}, kernel object {kernel:#x})");
                Stop::MemoryFault { fault, pc, message }
            }
            Trouble::Illegal(why) => Stop::IllegalInstruction {
                pc,
                message: format!("`{inst}` at {pc:#x}: {why} ({who}, kernel object {kernel:#x})"),
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
