//! A machine small enough for tests: blocks of memory at fixed addresses, and a host that records messages.

#![allow(dead_code, reason = "each user takes what it needs")]

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cdna::{
    Target,
    coherence::Cache,
    dispatch::{Dispatch, Host, Stats, Stop, run},
    exec::code::CodeCache,
    memory::{GpuMemory, Region},
};

struct Block {
    start: u64,
    bytes: usize,
    // 64-bit words, so that atomics are aligned.
    words: Vec<u64>,
    writable: bool,
    executable: bool,
}

/// Memory and host in one.
#[derive(Default)]
pub struct Machine {
    blocks: Vec<Block>,
    /// Data of `s_sendmsg(MSG_INTERRUPT)`, in order.
    pub interrupts: Mutex<Vec<u32>>,
    code: CodeCache,
    /// All memory is coarse-grained, behind this cache.
    pub cache: Option<Cache>,
    clock: AtomicU64,
    begun: OnceLock<Instant>,
}

// SAFETY: blocks are only written through the pointers given to the interpreter, and by tests between dispatches.
unsafe impl Sync for Machine {}

impl Machine {
    /// Maps a block with these bytes; returns its address.
    pub fn map(&mut self, start: u64, bytes: &[u8], writable: bool, executable: bool) -> u64 {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        for (i, b) in bytes.iter().enumerate() {
            words[i / 8] |= u64::from(*b) << (8 * (i % 8));
        }
        self.blocks.push(Block {
            start,
            bytes: bytes.len(),
            words,
            writable,
            executable,
        });
        start
    }

    /// Unmaps the block at an address, if there is one.
    pub fn unmap(&mut self, start: u64) {
        for block in self.blocks.iter().filter(|b| b.start == start) {
            if let Some(cache) = &self.cache {
                let host = block.words.as_ptr() as usize;
                cache.discard((host, host + block.bytes));
            }
        }
        self.blocks.retain(|b| b.start != start);
    }

    /// Writes a dword of the block at an address, as the host does.
    pub fn poke(&mut self, start: u64, index: usize, value: u32) {
        let block = self
            .blocks
            .iter_mut()
            .find(|b| b.start == start)
            .expect("no such block");
        let (word, shift) = (&mut block.words[index / 2], 32 * (index % 2));
        *word = *word & !(0xffff_ffff << shift) | u64::from(value) << shift;
    }

    /// Maps dwords to read and write.
    pub fn data(&mut self, start: u64, words: &[u32]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.map(start, &bytes, true, false)
    }

    /// The dwords of the block at an address.
    pub fn dwords(&self, start: u64) -> Vec<u32> {
        let block = self.blocks.iter().find(|b| b.start == start).expect("no such block");
        let all = block.words.iter().flat_map(|w| [*w as u32, (*w >> 32) as u32]);
        all.take(block.bytes / 4).collect()
    }
}

impl GpuMemory for Machine {
    fn region(&self, va: u64) -> Option<Region> {
        let b = self
            .blocks
            .iter()
            .find(|b| va >= b.start && va < b.start + b.bytes as u64)?;
        Some(Region {
            start: b.start,
            end: b.start + b.bytes as u64,
            host: b.words.as_ptr().cast::<u8>().cast_mut(),
            writable: b.writable,
            executable: b.executable,
            foreign: false,
            coarse: self.cache.is_some(),
        })
    }

    fn generation(&self) -> u64 {
        0
    }

    fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }
}

impl Host for Machine {
    fn interrupt(&self, data: u32) {
        self.interrupts.lock().expect("no panic holds it").push(data);
    }

    fn realtime(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn cancelled(&self) -> bool {
        // A test that hangs should fail instead.
        self.begun.get_or_init(Instant::now).elapsed() > Duration::from_secs(20)
    }

    fn log(&self, line: &str) {
        eprintln!("{line}");
    }
}

/// Where tests put the kernel descriptor; code follows 256 bytes later.
pub const KERNEL: u64 = 0x10_0000;
/// Where tests put the kernel arguments, read-only.
pub const KERNARG: u64 = 0x20_0000;

/// Begins kernels whose first argument is the address of a buffer: it is in s[6:7] then.
const BUFFER: &[u32] = &[
    0xc006_0180,
    0x0000_0000, // s_load_dwordx2 s[6:7], s[0:1], 0x0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
];

/// The words of a kernel that begins with the address of its buffer in s[6:7].
pub fn with_buffer(parts: &[&[u32]]) -> Vec<u32> {
    [BUFFER, &parts.concat()].concat()
}

/// A kernel made of instruction words.
#[derive(Clone)]
pub struct Kernel {
    /// The instruction set.
    pub target: Target,
    /// Instructions.
    pub code: Vec<u32>,
    /// VGPRs of a lane, a multiple of 8; AGPRs begin at half of them.
    pub vgprs: u32,
    /// Bytes of LDS.
    pub lds: u32,
    /// Bytes of scratch per lane.
    pub scratch: u32,
    /// Dwords of kernel arguments in SGPRs, after the kernarg pointer.
    pub preload: u32,
    /// Work-items in a work-group, and work-groups.
    pub size: [u32; 3],
    /// Grid in work-items.
    pub grid: [u32; 3],
    /// Fixes the interleaving.
    pub seed: Option<u64>,
}

impl Kernel {
    /// One wave of 64 lanes with 32 registers.
    pub fn new(target: Target, code: &[u32]) -> Kernel {
        Kernel {
            target,
            code: code.to_vec(),
            vgprs: 32,
            lds: 0,
            scratch: 0,
            preload: 0,
            size: [64, 1, 1],
            grid: [64, 1, 1],
            seed: None,
        }
    }

    /// Runs it. The kernel finds its private segment resource in s[0:3] when it uses scratch on gfx90a, then the kernarg
    /// pointer in the next pair, then work-group ids x, y, z, then the scratch wave offset.
    pub fn run(&self, machine: &mut Machine, kernargs: &[u32]) -> Result<Stats, Stop> {
        self.run_on(machine, kernargs, |machine| machine)
    }

    /// As [`Kernel::run`], on the host that `host` makes of the machine.
    pub fn run_on<'a, H: Host + 'a>(
        &self,
        machine: &'a mut Machine,
        kernargs: &[u32],
        host: impl FnOnce(&'a Machine) -> H,
    ) -> Result<Stats, Stop> {
        let scratch_resource = self.scratch > 0 && self.target == Target::Gfx90a;
        let mut words = vec![0u32; 64];
        words[0] = self.lds;
        words[1] = self.scratch;
        words[4] = 256;
        words[11] = (self.vgprs / 2).div_ceil(4) - 1;
        // Denormals on, DX10_CLAMP, IEEE.
        words[12] = (self.vgprs / 8 - 1) | 0xf0 << 12 | 1 << 21 | 1 << 23;
        let user_sgprs = if scratch_resource { 6 } else { 2 } + self.preload;
        words[13] = u32::from(self.scratch > 0) | user_sgprs << 1 | 7 << 7;
        words[14] = 8 | u32::from(scratch_resource) | self.preload << 16;
        words.extend(&self.code);
        words.push(0xbf81_0000);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        machine.unmap(KERNEL);
        machine.unmap(KERNARG);
        machine.map(KERNEL, &bytes, false, true);
        let mut args: Vec<u8> = kernargs.iter().flat_map(|w| w.to_le_bytes()).collect();
        args.resize(64, 0);
        machine.map(KERNARG, &args, false, false);
        let machine: &Machine = machine;
        let dispatch = Dispatch {
            target: self.target,
            packet_va: 0,
            queue_va: 0,
            dispatch_id: 0,
            workgroup_size: self.size,
            grid_size: self.grid,
            private_segment_size: self.scratch,
            group_segment_size: self.lds,
            kernel_object: KERNEL,
            kernarg_va: KERNARG,
            shared_base: 0x1_0000_0000_0000,
            private_base: 0x2_0000_0000_0000,
            code: &machine.code,
            memory: machine,
            host: Arc::new(host(machine)),
        };
        run(dispatch, self.seed)
    }
}
