//! A GPU of one dispatch: memory for the code object, the arguments and the buffers, and the interpreter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cdna::dispatch::{Dispatch, Host};
use cdna::exec::code::CodeCache;
use cdna::memory::{GpuMemory, Region};
use goblin::elf::Elf;
use goblin::elf::program_header::PT_LOAD;
use kernels_ptx_translate::protocol::{CompiledKernel, HIDDEN_ARGS_SIZE, ModuleInfo, Target, WarpLayout};

use crate::case::Case;

/// What a kernel left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Output words.
    pub out: Vec<u64>,
    /// Input words afterwards.
    pub input: Vec<u64>,
}

/// A mapped block. Atomics, because the interpreter writes behind a shared reference.
struct Block {
    start: u64,
    bytes: Vec<AtomicU64>,
    executable: bool,
}

struct Memory(Vec<Block>);

impl Memory {
    /// Maps `bytes` at the next free place and gives its address.
    fn map(&mut self, bytes: &[u8], executable: bool) -> u64 {
        let start = self.0.last().map_or(0x10_0000_0000, |b| {
            (b.start + b.bytes.len() as u64 * 8).next_multiple_of(1 << 20) + (1 << 20)
        });
        let mut words: Vec<AtomicU64> = bytes
            .chunks(8)
            .map(|chunk| {
                let mut eight = [0; 8];
                eight[..chunk.len()].copy_from_slice(chunk);
                AtomicU64::new(u64::from_le_bytes(eight))
            })
            .collect();
        words.push(AtomicU64::new(0));
        self.0.push(Block {
            start,
            bytes: words,
            executable,
        });
        start
    }

    fn words(&self, start: u64, count: usize) -> Vec<u64> {
        let block = self.0.iter().find(|b| b.start == start);
        block
            .into_iter()
            .flat_map(|b| &b.bytes)
            .take(count)
            .map(|w| w.load(Ordering::Relaxed))
            .collect()
    }
}

impl GpuMemory for Memory {
    fn region(&self, va: u64) -> Option<Region> {
        let block = self
            .0
            .iter()
            .find(|b| va >= b.start && va < b.start + b.bytes.len() as u64 * 8)?;
        Some(Region {
            start: block.start,
            end: block.start + block.bytes.len() as u64 * 8,
            host: block.bytes.as_ptr() as *mut u8,
            writable: true,
            executable: block.executable,
            foreign: false,
            coarse: false,
        })
    }

    fn generation(&self) -> u64 {
        0
    }
}

struct Clock {
    start: Instant,
    limit: Duration,
}

impl Host for Clock {
    fn interrupt(&self, _data: u32) {}

    fn realtime(&self) -> u64 {
        (self.start.elapsed().as_nanos() / 10) as u64
    }

    fn cancelled(&self) -> bool {
        self.start.elapsed() > self.limit
    }

    fn log(&self, _line: &str) {}
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Loads the code object: the image and the offset of the kernel descriptor in it.
fn image(kernel: &CompiledKernel) -> Result<(Vec<u8>, u64), String> {
    let elf = Elf::parse(&kernel.code_object).map_err(|e| e.to_string())?;
    let loads = elf.program_headers.iter().filter(|p| p.p_type == PT_LOAD);
    let size = loads.clone().map(|p| p.p_vaddr + p.p_memsz).max().unwrap_or(0);
    let mut image = vec![0u8; size as usize];
    for p in loads {
        let (from, to, length) = (p.p_offset as usize, p.p_vaddr as usize, p.p_filesz as usize);
        image[to..to + length].copy_from_slice(&kernel.code_object[from..from + length]);
    }
    let name = format!("{}.kd", kernel.symbol);
    let symbol = elf
        .dynsyms
        .iter()
        .find(|s| elf.dynstrtab.get_at(s.st_name) == Some(&name));
    symbol
        .map(|s| (image, s.st_value))
        .ok_or_else(|| format!("no symbol {name}"))
}

/// Runs a compiled case. `info` is the module it came from.
///
/// # Errors
/// Why the dispatch stopped before its end.
pub fn run(case: &Case, kernel: &CompiledKernel, info: &ModuleInfo, target: Target) -> Result<Outcome, String> {
    let mut memory = Memory(Vec::new());
    let (image, descriptor) = image(kernel)?;
    let code = memory.map(&image, true);
    let mut data = info.data.clone();
    data.resize(info.data_size as usize, 0);
    let data_va = memory.map(&data, false);
    // Relocate: the words hold offsets in the block.
    for r in &info.relocations {
        let block = memory.0.last().ok_or("no data block")?;
        let word = block
            .bytes
            .get(r.at as usize / 8)
            .ok_or("relocation outside the data block")?;
        word.fetch_add(data_va, Ordering::Relaxed);
    }
    let input = memory.map(&bytes_of(&case.input), false);
    let count = (case.grid * case.block * case.out_words) as usize;
    let out = memory.map(&bytes_of(&vec![0xcccc_cccc_cccc_cccc; count]), false);
    let mut args = bytes_of(&[input, out, data_va, 0, 0]);
    for n in [case.block, 1, 1, case.grid, 1, 1, case.shared, 0] {
        args.extend(u32::to_le_bytes(n));
    }
    args.extend(1u64.to_le_bytes());
    args.extend(0u64.to_le_bytes());
    if args.len() as u32 != 16 + HIDDEN_ARGS_SIZE || kernel.kernarg_size != args.len() as u32 {
        return Err(format!(
            "kernel arguments of {} bytes, not {}",
            kernel.kernarg_size,
            args.len()
        ));
    }
    let kernarg_va = memory.map(&args, false);
    let packet_va = memory.map(&[0; 64], false);
    let queue_va = memory.map(&[0; 256], false);
    let threads = match kernel.layout {
        WarpLayout::Paired => case.block,
        WarpLayout::Solo => case.block.div_ceil(32) * 64,
    };
    let clock = Clock {
        start: Instant::now(),
        limit: Duration::from_secs(20),
    };
    let dispatch = Dispatch {
        target: match target {
            Target::Gfx90a => cdna::Target::Gfx90a,
            Target::Gfx942 => cdna::Target::Gfx942,
        },
        packet_va,
        queue_va,
        dispatch_id: 0,
        workgroup_size: [threads, 1, 1],
        grid_size: [threads * case.grid, 1, 1],
        private_segment_size: kernel.private_size,
        group_segment_size: kernel.static_lds + case.shared,
        kernel_object: code + descriptor,
        kernarg_va,
        shared_base: 0x2000_0000_0000_0000,
        private_base: 0x1000_0000_0000_0000,
        code: &CodeCache::default(),
        memory: &memory,
        host: Arc::new(clock),
    };
    cdna::dispatch::run(dispatch, None).map_err(|stop| format!("{stop:?}"))?;
    Ok(Outcome {
        out: memory.words(out, count),
        input: memory.words(input, case.input.len()),
    })
}
