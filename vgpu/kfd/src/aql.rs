//! The AQL packet processor: kernel dispatches, barriers and AMD's vendor packets.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use cdna::{
    dispatch::{Dispatch, Host, Progress, Running, Stats, Stop, Work},
    memory::{Access, Fault, FaultReason, GpuMemory as _},
};

use crate::{
    apertures, os, pm4,
    process::Process,
    queue::{Context, Control, Engine, Step},
    scratch,
    signal::Signal,
};

/// Bytes of every AQL packet.
const PACKET: u64 = 64;
/// A packet whose header says so is not there yet, or has been consumed.
const INVALID: u8 = 1;

/// Where fields of `amd_queue_t` are, from its start.
mod amd_queue {
    /// `queue_inactive_signal`
    pub const INACTIVE_SIGNAL: u64 = 192;
    /// `read_dispatch_id_field_base_byte_offset`, from `read_dispatch_id`: it leads back to the start.
    pub const BASE_OFFSET_FROM_READ_ID: u64 = 8;
}

/// What the command processor writes into `queue_inactive_signal` (ROCr turns it into the queue callback's status).
mod queue_error {
    pub const INVALID_DIMENSIONS: i64 = 2;
    pub const INVALID_GROUP_MEMORY: i64 = 4;
    pub const INVALID_CODE: i64 = 8;
    pub const INVALID_PACKET: i64 = 32;
    pub const GROUP_TOO_LARGE: i64 = 64;
    pub const INVALID_VENDOR_PACKET: i64 = 256;
    /// ROCr: `HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION`.
    pub const MEMORY_VIOLATION: i64 = 0x2000_0000;
    pub const ILLEGAL_INSTRUCTION: i64 = 0x4000_0000;
    pub const TRAP: i64 = 0x8000_0000;
}

/// A decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packet {
    Dispatch(DispatchPacket),
    /// Goes on when all signals are 0.
    BarrierAnd([u64; 5]),
    /// Goes on when one signal is 0.
    BarrierOr([u64; 5]),
    /// Goes on when `(signal & mask) <condition> value` (`hsa_amd_barrier_value_packet_t`).
    BarrierValue {
        signal: u64,
        value: i64,
        mask: i64,
        condition: u32,
    },
    /// A jump to a buffer of PM4 commands: the four command words.
    Pm4Ib([u32; 4]),
    /// A type or a vendor format that is not defined.
    Unknown {
        kind: u8,
        format: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DispatchPacket {
    dimensions: u16,
    workgroup_size: [u32; 3],
    grid_size: [u32; 3],
    private_segment_size: u32,
    group_segment_size: u32,
    kernel_object: u64,
    kernarg: u64,
}

/// Reads little-endian fields of a packet.
struct Fields<'a>(&'a [u8; PACKET as usize]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }
}

impl Packet {
    fn decode(bytes: &[u8; PACKET as usize]) -> Self {
        let field = Fields(bytes);
        let signals = || std::array::from_fn(|i| field.u64(8 + 8 * i));
        match (bytes[0], bytes[2]) {
            (0, 1) => Self::Pm4Ib(std::array::from_fn(|i| field.u32(4 + 4 * i))),
            (0, 2) => Self::BarrierValue {
                signal: field.u64(8),
                value: field.u64(16) as i64,
                mask: field.u64(24) as i64,
                condition: field.u32(32),
            },
            (2, _) => Self::Dispatch(DispatchPacket {
                dimensions: field.u16(2) & 3,
                workgroup_size: [4, 6, 8].map(|at| field.u16(at).into()),
                grid_size: [12, 16, 20].map(|at| field.u32(at)),
                private_segment_size: field.u32(24),
                group_segment_size: field.u32(28),
                kernel_object: field.u64(32),
                kernarg: field.u64(40),
            }),
            (3, _) => Self::BarrierAnd(signals()),
            (5, _) => Self::BarrierOr(signals()),
            (kind, format) => Self::Unknown { kind, format },
        }
    }
}

impl Packet {
    /// The packet in words, for the trace.
    fn text(&self, completion: u64) -> String {
        let list = |signals: &[u64]| {
            signals
                .iter()
                .filter(|handle| **handle != 0)
                .fold(String::new(), |text, handle| text + &format!(" dep={handle:#x}"))
        };
        let mut text = match self {
            Self::Dispatch(packet) => format!("kernel-dispatch object={:#x} {}", packet.kernel_object, packet.shape()),
            Self::BarrierAnd(signals) => format!("barrier-and{}", list(signals)),
            Self::BarrierOr(signals) => format!("barrier-or{}", list(signals)),
            Self::BarrierValue {
                signal,
                value,
                mask,
                condition,
            } => {
                let sign = ["==", "!=", "<", ">="].get(*condition as usize).unwrap_or(&"?");
                format!("barrier-value signal={signal:#x} & {mask:#x} {sign} {value:#x}")
            }
            Self::Pm4Ib(words) => format!("pm4-ib {words:x?}"),
            Self::Unknown { kind, format } => format!("unknown type={kind} format={format}"),
        };
        if completion != 0 {
            text += &format!(" completion={completion:#x}");
        }
        text
    }
}

impl DispatchPacket {
    /// Sizes and arguments in words.
    fn shape(&self) -> String {
        let of = |sizes: &[u32; 3]| {
            let used: Vec<String> = sizes[..usize::from(self.dimensions).min(3)]
                .iter()
                .map(u32::to_string)
                .collect();
            used.join("x")
        };
        format!(
            "grid={} group={} lds={} private={} kernarg={:#x}",
            of(&self.grid_size),
            of(&self.workgroup_size),
            self.group_segment_size,
            self.private_segment_size,
            self.kernarg
        )
    }
}

/// Why a packet could not be completed.
enum Failure {
    /// A fault of the packet processor or of a wave; the sentence says at what.
    Fault(Fault, String),
    /// A queue error: what goes into `queue_inactive_signal`, and a sentence for the log.
    Error(i64, String),
    /// The queue is being destroyed.
    Cancelled,
}

impl Failure {
    fn at(what: &'static str) -> impl Fn(Fault) -> Self {
        move |fault| Self::Fault(fault, format!("the packet processor, at {what}"))
    }
}

/// An AQL queue's state.
#[derive(Debug)]
pub struct Aql {
    /// Packets consumed.
    read_index: u64,
    /// The doorbell's content when we last looked.
    bell: u64,
    /// Packets below this index may be there.
    rung: u64,
    /// How far the dispatch of the packet at the read index has come.
    stage: Stage,
    scratch: scratch::Requests,
}

/// How far a dispatch has come that takes more than one step.
#[derive(Debug, Default)]
#[allow(clippy::large_enum_variant, reason = "there is one for each queue")]
enum Stage {
    /// Not begun, or waiting for scratch.
    #[default]
    Waiting,
    /// It runs, and takes turns with other queues.
    Running(Started),
    /// It has ended, but the scratch that it used is not handed back yet. The GPU clock at its start.
    Ended(u64),
}

impl Default for Aql {
    fn default() -> Self {
        Self {
            read_index: 0,
            bell: u64::MAX,
            rung: 0,
            stage: Stage::Waiting,
            scratch: scratch::Requests::default(),
        }
    }
}

impl Aql {
    /// Looks at the doorbell. As on the card, a ring says no more than "look at the write index": with several producers
    /// rings come out of order, and a lower one may overwrite a higher before anybody has seen it.
    fn look(&mut self, context: &Context) -> Result<(), Fault> {
        let bell = context.doorbell.load(Ordering::Acquire);
        if bell != self.bell {
            self.bell = bell;
            self.rung = self.rung.max(context.write_pointer()?);
        }
        Ok(())
    }
}

impl Engine for Aql {
    fn waits_for_doorbell(&self) -> bool {
        self.read_index >= self.rung
    }

    fn step(&mut self, context: &Context) -> Step {
        let looked = self.look(context).map_err(Failure::at("the write index"));
        if looked.is_ok() && self.read_index >= self.rung {
            return Step::Idle;
        }
        match looked.and_then(|()| self.packet(context)) {
            Ok(step) => step,
            Err(Failure::Cancelled) => Step::Halted,
            Err(Failure::Fault(fault, what)) => {
                context
                    .process
                    .memory_fault(context.gpu, fault, &format!("queue {}: {what}", context.id));
                Step::Halted
            }
            Err(Failure::Error(code, message)) => {
                context.process.counters.add(&context.process.counters.queue_errors, 1);
                log::error!("GPU {}: queue {} stopped: {message}", context.gpu.index, context.id);
                if let Err(fault) = report(context, code) {
                    context
                        .process
                        .memory_fault(context.gpu, fault, "the queue's error signal");
                }
                Step::Halted
            }
        }
    }
}

impl Aql {
    /// The packet at hand, for the trace.
    fn place(&self, context: &Context) -> String {
        format!("GPU {} queue {} #{}", context.gpu.index, context.id, self.read_index)
    }

    fn packet(&mut self, context: &Context) -> Result<Step, Failure> {
        let vm = &context.gpu.vm;
        let ring = context.control.ring.load(Ordering::Acquire);
        let size = context.control.ring_size.load(Ordering::Acquire);
        let va = ring + self.read_index * PACKET % size;
        let host = vm
            .contiguous(va, PACKET, Access::Write)
            .map_err(Failure::at("the ring"))?;
        // SAFETY: mapped for 64 bytes and 64-byte aligned: producers publish a packet by its header, last.
        let header_word = unsafe { AtomicU16::from_ptr(host.cast()) };
        let header = header_word.load(Ordering::Acquire);
        if header as u8 == INVALID {
            return Ok(Step::Idle);
        }
        // SAFETY: as above; the producer does not touch a valid packet until we mark it consumed.
        let bytes = unsafe { host.cast::<[u8; PACKET as usize]>().read_volatile() };
        let mut begin = os::gpu_clock();
        let completion = Fields(&bytes).u64(56);
        let packet = Packet::decode(&bytes);
        match packet {
            Packet::Dispatch(packet) => match self.dispatch(context, va, &packet, header)? {
                Ok(start) => begin = start,
                Err(step) => return Ok(step),
            },
            Packet::BarrierAnd(signals) => {
                for handle in signals {
                    if load(context, handle)?.is_some_and(|value| value != 0) {
                        return Ok(Step::Idle);
                    }
                }
                count_barrier(context);
            }
            Packet::BarrierOr(signals) => {
                let values = signals.map(|handle| load(context, handle));
                let mut pending = false;
                let mut met = false;
                for value in values {
                    match value? {
                        Some(0) => met = true,
                        Some(_) => pending = true,
                        None => {}
                    }
                }
                if pending && !met {
                    return Ok(Step::Idle);
                }
                count_barrier(context);
            }
            Packet::BarrierValue {
                signal,
                value,
                mask,
                condition,
            } => {
                if let Some(current) = load(context, signal)? {
                    let current = current & mask;
                    let met = match condition {
                        0 => current == value,
                        1 => current != value,
                        2 => current < value,
                        3 => current >= value,
                        other => {
                            let message = format!("barrier-value packet with condition {other}");
                            return Err(Failure::Error(queue_error::INVALID_VENDOR_PACKET, message));
                        }
                    };
                    if !met {
                        return Ok(Step::Idle);
                    }
                }
                count_barrier(context);
            }
            Packet::Pm4Ib(words) => {
                pm4::indirect_buffer(vm, words).map_err(|error| match error {
                    pm4::Error::Fault(fault) => Failure::at("a PM4 buffer")(fault),
                    pm4::Error::Unknown(message) => Failure::Error(queue_error::INVALID_VENDOR_PACKET, message),
                })?;
            }
            Packet::Unknown { kind: 0, format } => {
                let message = format!("vendor packet of unknown format {format}, index {}", self.read_index);
                return Err(Failure::Error(queue_error::INVALID_VENDOR_PACKET, message));
            }
            Packet::Unknown { kind, .. } => {
                let message = format!("packet of type {kind}, index {}", self.read_index);
                return Err(Failure::Error(queue_error::INVALID_PACKET, message));
            }
        }
        context
            .process
            .trace
            .packet(|| format!("{} {}", self.place(context), packet.text(completion)));
        // The work that a packet stands for begins with the acquire, which therefore follows the wait for dependencies.
        if !matches!(packet, Packet::Dispatch(_)) {
            acquire(context, header);
        }
        release(context, header);
        complete(context, completion, begin).map_err(Failure::at("a completion signal"))?;
        header_word.store(header & 0xff00 | u16::from(INVALID), Ordering::Release);
        self.read_index += 1;
        context
            .set_read_pointer(self.read_index)
            .map_err(Failure::at("the read index"))?;
        Ok(Step::Progress)
    }

    /// Brings the dispatch at hand forward: the GPU clock at its start once it is over, else what this step came to.
    fn dispatch(
        &mut self,
        context: &Context,
        packet_va: u64,
        packet: &DispatchPacket,
        header: u16,
    ) -> Result<Result<u64, Step>, Failure> {
        let begin = match std::mem::take(&mut self.stage) {
            Stage::Ended(begin) => begin,
            stage => {
                let started = match stage {
                    Stage::Running(started) => started,
                    _ => match self.start(context, packet_va, packet, header)? {
                        Some(started) => started,
                        None => return Ok(Err(Step::Idle)),
                    },
                };
                let result = if context.process.config.seed.is_none() {
                    started.running.run()
                } else {
                    // One turn, then another queue's.
                    match started.running.turn() {
                        Progress::Ended => started.running.finish(),
                        other => {
                            self.stage = Stage::Running(started);
                            let asleep = other == Progress::Asleep;
                            return Ok(Err(if asleep { Step::Idle } else { Step::Progress }));
                        }
                    }
                };
                self.ended(context, packet, result, started.clock)?;
                started.begin
            }
        };
        if packet.private_segment_size > 0 {
            let queue_va = queue_address(context).map_err(Failure::at("amd_queue_t"))?;
            let released = self.scratch.release(context, queue_va);
            if released.map_err(Failure::at("amd_queue_t"))? == scratch::Outcome::Asked {
                self.stage = Stage::Ended(begin);
                return Ok(Err(Step::Idle));
            }
        }
        Ok(Ok(begin))
    }

    /// Sets a dispatch up; `None` while it waits for scratch.
    fn start(
        &mut self,
        context: &Context,
        packet_va: u64,
        packet: &DispatchPacket,
        header: u16,
    ) -> Result<Option<Started>, Failure> {
        check(packet)?;
        let queue_va = queue_address(context).map_err(Failure::at("amd_queue_t"))?;
        // Dimensions that the packet does not use count as 1, whatever their fields hold.
        let used = |sizes: [u32; 3]| std::array::from_fn(|i| if i < packet.dimensions.into() { sizes[i] } else { 1 });
        let granted = self.scratch.require(context, queue_va, packet.private_segment_size);
        match granted.map_err(Failure::at("amd_queue_t"))? {
            scratch::Outcome::Enough => {}
            scratch::Outcome::Asked => return Ok(None),
            scratch::Outcome::Over => return Err(Failure::Cancelled),
        }
        let begin = os::gpu_clock();
        acquire(context, header);
        let process = context.process;
        let machine = Machine {
            process,
            control: context.control.clone(),
            queue: context.id,
        };
        let kernel = || process.names.kernel(&context.gpu.vm, packet.kernel_object);
        process
            .trace
            .kernel(|| format!("{} {} {}", self.place(context), kernel().label(), packet.shape()));
        let clock = os::clock_ns(libc::CLOCK_MONOTONIC);
        let dispatch = Dispatch {
            target: process.config.machine.target,
            packet_va,
            queue_va,
            dispatch_id: self.read_index,
            workgroup_size: used(packet.workgroup_size),
            grid_size: used(packet.grid_size),
            private_segment_size: packet.private_segment_size,
            group_segment_size: packet.group_segment_size,
            kernel_object: packet.kernel_object,
            kernarg_va: packet.kernarg,
            shared_base: apertures::LDS_BASE,
            private_base: apertures::SCRATCH_BASE,
            code: &context.gpu.code,
            memory: &context.gpu.vm,
            host: Arc::new(machine),
        };
        // Each dispatch of each queue has an interleaving of its own.
        let seed = process
            .config
            .seed
            .map(|seed| seed.rotate_left(32) ^ u64::from(context.id) << 40 ^ self.read_index);
        match Running::new(dispatch, seed) {
            Ok(running) => Ok(Some(Started { running, begin, clock })),
            Err(stop) => Err(self.failure(context, packet, stop)),
        }
    }

    /// Counts a dispatch that has ended.
    fn ended(
        &self,
        context: &Context,
        packet: &DispatchPacket,
        result: Result<Stats, Stop>,
        start: u64,
    ) -> Result<(), Failure> {
        let process = context.process;
        let kernel = || process.names.kernel(&context.gpu.vm, packet.kernel_object);
        match result {
            Ok(stats) => {
                let counters = &process.counters;
                counters.add(&counters.dispatches, 1);
                counters.add(&counters.waves, stats.waves);
                counters.add(&counters.instructions, stats.instructions);
                counters.add(&counters.kernel_loads, stats.loads);
                counters.add(&counters.kernel_stores, stats.stores);
                counters.add(&counters.kernel_atomics, stats.atomics);
                counters.add(&counters.kernel_lds, stats.lds);
                counters.add(&counters.kernel_cycles, stats.cycles);
                counters.add(&counters.kernel_bytes_stored, stats.bytes_stored);
                counters.add(&counters.kernel_bytes_loaded, stats.bytes_loaded);
                counters.add(
                    &counters.foreign_bytes,
                    stats.foreign_bytes_stored + stats.foreign_bytes_loaded,
                );
                let took = os::clock_ns(libc::CLOCK_MONOTONIC) - start;
                if counters.by_kernel() {
                    counters.add_kernel(kernel().label(), &stats, took);
                }
                process.trace.kernel(|| {
                    format!(
                        "{} {} ended: {} waves, {} instructions, {} us",
                        self.place(context),
                        kernel().label(),
                        stats.waves,
                        stats.instructions,
                        took / 1000
                    )
                });
                Ok(())
            }
            Err(stop) => Err(self.failure(context, packet, stop)),
        }
    }

    /// What becomes of a dispatch that stopped before its end.
    fn failure(&self, context: &Context, packet: &DispatchPacket, stop: Stop) -> Failure {
        let process = context.process;
        let kernel = || process.names.kernel(&context.gpu.vm, packet.kernel_object);
        let at = format!("dispatch {}, {}", self.read_index, kernel());
        process
            .trace
            .kernel(|| format!("{} {} stopped: {stop:?}", self.place(context), kernel().label()));
        match stop {
            // What the wave itself sees (MEM_VIOL), before any page is looked up.
            Stop::MemoryFault { fault, message, .. } if is_violation(fault) => {
                Failure::Error(queue_error::MEMORY_VIOLATION, format!("{at}: {message}"))
            }
            Stop::MemoryFault { fault, message, .. } => Failure::Fault(fault, format!("{at}: {message}")),
            Stop::Trap { message, .. } => Failure::Error(queue_error::TRAP, format!("{at}: {message}")),
            Stop::IllegalInstruction { message, .. } => {
                Failure::Error(queue_error::ILLEGAL_INSTRUCTION, format!("{at}: {message}"))
            }
            Stop::InvalidDispatch(message) => Failure::Error(queue_error::INVALID_CODE, format!("{at}: {message}")),
            Stop::Cancelled => Failure::Cancelled,
        }
    }
}

/// A dispatch that runs.
struct Started {
    running: Running<'static>,
    /// GPU clock and monotonic clock at its start.
    begin: u64,
    clock: u64,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Started")
    }
}

/// The scope of a fence in a packet header, at this bit: 2 is the system's. What a narrower one does, every work-group
/// does when it starts.
const SYSTEM_SCOPE: u16 = 2;

/// The packet's acquire fence.
fn acquire(context: &Context, header: u16) {
    if header >> 9 & 3 == SYSTEM_SCOPE
        && let Some(cache) = context.gpu.vm.cache()
    {
        cache.invalidate();
    }
}

/// The packet's release fence.
fn release(context: &Context, header: u16) {
    if header >> 11 & 3 == SYSTEM_SCOPE
        && let Some(cache) = context.gpu.vm.cache()
    {
        cache.write_back();
    }
}

/// Faults that a wave reports as a memory violation and not the page tables as a page fault: misaligned atomics, and
/// addresses that 48 bits and their sign do not make (those past the end of LDS and scratch among them).
fn is_violation(fault: Fault) -> bool {
    let sign = fault.va as i64 >> 47;
    fault.reason == FaultReason::Misaligned || (sign != 0 && sign != -1)
}

/// What the packet processor refuses before it starts a wave.
fn check(packet: &DispatchPacket) -> Result<(), Failure> {
    let dimensions = usize::from(packet.dimensions);
    let fail = |code, message: String| Err(Failure::Error(code, message));
    if dimensions == 0 {
        return fail(queue_error::INVALID_DIMENSIONS, "dispatch with 0 dimensions".into());
    }
    let (groups, grid) = (&packet.workgroup_size[..dimensions], &packet.grid_size[..dimensions]);
    if groups.contains(&0) || grid.contains(&0) {
        let message = format!("dispatch with a size of 0: grid {grid:?}, work-group {groups:?}");
        return fail(queue_error::INVALID_DIMENSIONS, message);
    }
    if groups.iter().map(|n| u64::from(*n)).product::<u64>() > 1024 {
        return fail(
            queue_error::GROUP_TOO_LARGE,
            format!("work-group of {groups:?} work-items: at most 1024"),
        );
    }
    if packet.group_segment_size > 64 << 10 {
        let message = format!(
            "{} bytes of LDS: a work-group has 65536 at most",
            packet.group_segment_size
        );
        return fail(queue_error::INVALID_GROUP_MEMORY, message);
    }
    if packet.kernel_object == 0 {
        return fail(queue_error::INVALID_CODE, "dispatch without a kernel object".into());
    }
    Ok(())
}

fn count_barrier(context: &Context) {
    context.process.counters.add(&context.process.counters.barriers, 1);
}

/// A dependency's value; `None` for "no signal".
fn load(context: &Context, handle: u64) -> Result<Option<i64>, Failure> {
    let signal = Signal::new(context, handle).map_err(Failure::at("a dependency signal"))?;
    Ok(signal.map(|signal| signal.load()))
}

fn complete(context: &Context, handle: u64, begin: u64) -> Result<(), Fault> {
    if let Some(signal) = Signal::new(context, handle)? {
        signal.set_times(begin, os::gpu_clock());
        signal.decrement()?;
    }
    Ok(())
}

/// GPU virtual address of the `amd_queue_t` around the read index.
fn queue_address(context: &Context) -> Result<u64, Fault> {
    let at = context.read_pointer_va + amd_queue::BASE_OFFSET_FROM_READ_ID;
    let offset = context.gpu.vm.contiguous(at, 4, Access::Read)?.cast::<u32>();
    // SAFETY: mapped for 4 bytes; the read index before it is 8-byte aligned.
    Ok(context.read_pointer_va - u64::from(unsafe { offset.read_volatile() }))
}

/// Tells ROCr through the queue's error signal.
fn report(context: &Context, code: i64) -> Result<(), Fault> {
    let at = queue_address(context)? + amd_queue::INACTIVE_SIGNAL;
    let handle = context.gpu.vm.contiguous(at, 8, Access::Read)?.cast::<u64>();
    // SAFETY: mapped for 8 bytes; amd_queue_t is 64-byte aligned.
    let handle = unsafe { handle.read_unaligned() };
    if let Some(signal) = Signal::new(context, handle)? {
        signal.store(code)?;
    }
    Ok(())
}

/// What a kernel can reach of the machine around it.
struct Machine {
    process: &'static Process,
    control: Arc<Control>,
    queue: u32,
}

impl Host for Machine {
    fn interrupt(&self, data: u32) {
        if self.process.events.set(data).is_err() {
            log::debug!("queue {}: a kernel raised event {data}, which is not there", self.queue);
        }
    }

    fn realtime(&self) -> u64 {
        os::gpu_clock()
    }

    fn cancelled(&self) -> bool {
        // With one thread for all queues, a paused one gets no turns, and must not take those of others.
        if self.process.config.seed.is_some() {
            self.control.is_cancelled()
        } else {
            self.control.cancelled()
        }
    }

    fn share(&self, work: &Work<'_>) {
        self.process.helpers.share(self.process, work);
    }

    fn log(&self, line: &str) {
        log::trace!("queue {}: {line}", self.queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_report_what_is_no_page_fault() {
        let violation = |va, reason| is_violation(Fault { va, reason });
        assert!(violation(0x1001, FaultReason::Misaligned));
        assert!(violation(apertures::LDS_BASE + 0x1_0000, FaultReason::NotPresent));
        assert!(violation(0xdead_beef_0000_0000, FaultReason::NotPresent));
        for va in [0, 0x7fff_ffff_ffff, 0xffff_8000_0000_0000, u64::MAX] {
            assert!(!violation(va, FaultReason::NotPresent), "{va:#x}");
        }
    }

    fn packet(fields: &[(usize, u64, usize)]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (at, value, len) in fields {
            bytes[*at..at + len].copy_from_slice(&value.to_le_bytes()[..*len]);
        }
        bytes
    }

    #[test]
    fn a_dispatch_packet_decodes_field_by_field() {
        let bytes = packet(&[
            (0, 0x1502, 2),
            (2, 2, 2),
            (4, 64, 2),
            (6, 4, 2),
            (8, 1, 2),
            (12, 1000, 4),
            (16, 8, 4),
            (20, 1, 4),
            (24, 16, 4),
            (28, 512, 4),
            (32, 0x7f00_0000_1000, 8),
            (40, 0x7f00_0000_2000, 8),
        ]);
        let expected = DispatchPacket {
            dimensions: 2,
            workgroup_size: [64, 4, 1],
            grid_size: [1000, 8, 1],
            private_segment_size: 16,
            group_segment_size: 512,
            kernel_object: 0x7f00_0000_1000,
            kernarg: 0x7f00_0000_2000,
        };
        assert_eq!(Packet::decode(&bytes), Packet::Dispatch(expected));
        assert!(check(&expected).is_ok());
    }

    #[test]
    fn impossible_dispatches_name_their_error() {
        let good = DispatchPacket {
            dimensions: 1,
            workgroup_size: [64, 0, 0],
            grid_size: [64, 0, 0],
            private_segment_size: 0,
            group_segment_size: 0,
            kernel_object: 1,
            kernarg: 0,
        };
        assert!(check(&good).is_ok(), "unused dimensions do not count");
        let code = |packet: DispatchPacket| match check(&packet) {
            Err(Failure::Error(code, _)) => code,
            _ => 0,
        };
        assert_eq!(
            code(DispatchPacket { dimensions: 0, ..good }),
            queue_error::INVALID_DIMENSIONS
        );
        assert_eq!(
            code(DispatchPacket {
                grid_size: [0; 3],
                ..good
            }),
            queue_error::INVALID_DIMENSIONS
        );
        assert_eq!(
            code(DispatchPacket {
                workgroup_size: [1025, 0, 0],
                ..good
            }),
            queue_error::GROUP_TOO_LARGE
        );
        assert_eq!(
            code(DispatchPacket {
                group_segment_size: 65537,
                ..good
            }),
            queue_error::INVALID_GROUP_MEMORY
        );
        assert_eq!(
            code(DispatchPacket {
                kernel_object: 0,
                ..good
            }),
            queue_error::INVALID_CODE
        );
    }

    #[test]
    fn every_header_decodes_and_every_dispatch_is_checked() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for header in 0..=u16::MAX {
            let bytes: [u8; 64] = std::array::from_fn(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed as u8
            });
            let mut packet = bytes;
            packet[..2].copy_from_slice(&header.to_le_bytes());
            if let Packet::Dispatch(dispatch) = Packet::decode(&packet) {
                let _ = check(&dispatch);
            }
        }
    }

    #[test]
    fn barriers_and_vendor_packets_decode() {
        let signals = [(8, 1, 8), (16, 2, 8), (24, 3, 8), (32, 4, 8), (40, 5, 8)];
        let with = |header: u64| packet(&[&[(0, header, 2)][..], &signals[..]].concat());
        assert_eq!(Packet::decode(&with(3)), Packet::BarrierAnd([1, 2, 3, 4, 5]));
        assert_eq!(Packet::decode(&with(5)), Packet::BarrierOr([1, 2, 3, 4, 5]));
        assert_eq!(Packet::decode(&with(4)), Packet::Unknown { kind: 4, format: 0 });
        let value = packet(&[(2, 2, 1), (8, 9, 8), (16, u64::MAX, 8), (24, 0xff, 8), (32, 3, 4)]);
        let expected = Packet::BarrierValue {
            signal: 9,
            value: -1,
            mask: 0xff,
            condition: 3,
        };
        assert_eq!(Packet::decode(&value), expected);
        assert_eq!(
            Packet::decode(&packet(&[(2, 1, 1), (4, 7, 4), (16, 8, 4)])),
            Packet::Pm4Ib([7, 0, 0, 8])
        );
        assert_eq!(
            Packet::decode(&packet(&[(2, 3, 1)])),
            Packet::Unknown { kind: 0, format: 3 }
        );
    }
}
