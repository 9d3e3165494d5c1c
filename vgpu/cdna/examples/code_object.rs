//! Runs one kernel of a code object and prints its buffers: a way to try compiled kernels without a driver.
//!
//! ```text
//! clang -target amdgcn-amd-amdhsa -mcpu=gfx90a -x cl -nogpulib -O2 k.cl -o k.co
//! cargo run -p cdna --example code_object -- gfx90a k.co saxpy 64 2 iota:f32x128 iota:f32x128 f32:2 u32:100
//! ```
//!
//! After target, file, kernel, work-group size and number of work-groups come the arguments: `TYPE:VALUE`, or a buffer
//! `zero:TYPExN`, `iota:TYPExN`, `hash:TYPExN`, or `lds:BYTES` of dynamic LDS. Types are u32, i32, f32, u64, f64.

#[path = "../tests/support/mod.rs"]
mod support;

use std::{error::Error, sync::Arc, time::Instant};

use cdna::{
    Target,
    dispatch::{Dispatch, run},
    exec::code::CodeCache,
};
use goblin::elf::{Elf, program_header::PT_LOAD};
use support::Machine;

const CODE: u64 = 0x4000_0000;
const KERNARG: u64 = 0x5000_0000;
const BUFFERS: u64 = 0x6000_0000;
const PACKET: u64 = 0x3000_0000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, file, kernel, size, groups, rest @ ..] = args.as_slice() else {
        return Err("usage: code_object TARGET FILE KERNEL SIZE GROUPS ARGUMENT...".into());
    };
    let target = match target.as_str() {
        "gfx90a" => Target::Gfx90a,
        "gfx942" => Target::Gfx942,
        other => return Err(format!("unknown target {other}").into()),
    };
    let bytes = std::fs::read(file)?;
    let elf = Elf::parse(&bytes)?;
    let mut machine = Machine::default();
    let end = elf
        .program_headers
        .iter()
        .filter(|p| p.p_type == PT_LOAD)
        .map(|p| p.p_vaddr + p.p_memsz)
        .max();
    let mut image = vec![0u8; end.ok_or("no segments")? as usize];
    for p in elf.program_headers.iter().filter(|p| p.p_type == PT_LOAD) {
        let from = p.p_offset as usize..(p.p_offset + p.p_filesz) as usize;
        image[p.p_vaddr as usize..(p.p_vaddr + p.p_filesz) as usize].copy_from_slice(&bytes[from]);
    }
    let name = format!("{kernel}.kd");
    let symbol = elf
        .dynsyms
        .iter()
        .find(|s| elf.dynstrtab.get_at(s.st_name) == Some(name.as_str()))
        .ok_or_else(|| format!("no symbol {name}"))?;
    let at = symbol.st_value as usize;
    let word = |o: usize| u32::from_le_bytes(image[at + o..at + o + 4].try_into().expect("four bytes"));
    let (mut lds, scratch) = (word(0).next_multiple_of(16), word(4));
    machine.map(CODE, &image, true, true);

    let mut kernarg = Vec::new();
    let mut buffers = Vec::new();
    let put = |kernarg: &mut Vec<u8>, bytes: &[u8]| {
        kernarg.resize(kernarg.len().next_multiple_of(bytes.len()), 0);
        kernarg.extend(bytes);
    };
    for arg in rest {
        let (kind, what) = arg.split_once(':').ok_or("argument without colon")?;
        match kind {
            "u32" => put(&mut kernarg, &what.parse::<u32>()?.to_le_bytes()),
            "i32" => put(&mut kernarg, &what.parse::<i32>()?.to_le_bytes()),
            "f32" => put(&mut kernarg, &what.parse::<f32>()?.to_le_bytes()),
            "u64" => put(&mut kernarg, &what.parse::<u64>()?.to_le_bytes()),
            "f64" => put(&mut kernarg, &what.parse::<f64>()?.to_le_bytes()),
            "lds" => {
                put(&mut kernarg, &lds.to_le_bytes());
                lds += what.parse::<u32>()?.next_multiple_of(16);
            }
            _ => {
                let (ty, n) = what.split_once('x').ok_or("buffer without length")?;
                let mut data = Vec::new();
                for i in 0..n.parse::<u64>()? {
                    let hash = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let v = match kind {
                        "zero" => 0,
                        "iota" => i,
                        "hash" => hash ^ hash >> 29,
                        other => return Err(format!("unknown buffer {other}").into()),
                    };
                    match ty {
                        "f32" if kind == "hash" => data.extend(((v >> 40) as f32 / 1e6 - 8.0).to_le_bytes()),
                        "f64" if kind == "hash" => data.extend(((v >> 12) as f64 / 1e15 - 2.0).to_le_bytes()),
                        "f32" => data.extend((v as f32).to_le_bytes()),
                        "f64" => data.extend((v as f64).to_le_bytes()),
                        "u64" => data.extend(v.to_le_bytes()),
                        _ => data.extend((v as u32).to_le_bytes()),
                    }
                }
                let start = BUFFERS + 0x100_0000 * buffers.len() as u64;
                put(&mut kernarg, &start.to_le_bytes());
                machine.map(start, &data, true, false);
                buffers.push((start, ty.to_string()));
            }
        }
    }
    // Implicit arguments of code object version 5: work-group counts, sizes, remainders, then offsets, dimensions.
    let (size, groups) = (size.parse::<u32>()?, groups.parse::<u32>()?);
    kernarg.resize(kernarg.len().next_multiple_of(8), 0);
    let mut implicit = vec![0u8; 256];
    for (at, v) in [(0, groups), (4, 1), (8, 1), (12, size | 1 << 16), (16, 1), (64, 1)] {
        implicit[at..at + 4].copy_from_slice(&v.to_le_bytes());
    }
    kernarg.extend(implicit);
    machine.map(KERNARG, &kernarg, false, false);
    // The dispatch packet's header, sizes and segments: kernels read them for get_local_size.
    let packet = [
        1 << 16,
        size | 1 << 16,
        1,
        size * groups,
        1,
        1,
        scratch,
        lds,
        0,
        0,
        KERNARG as u32,
        0,
        0,
        0,
        0,
        0,
    ];
    machine.data(PACKET, &packet);
    let begun = Instant::now();
    let stats = run(
        Dispatch {
            target,
            packet_va: PACKET,
            queue_va: 0,
            dispatch_id: 0,
            workgroup_size: [size, 1, 1],
            grid_size: [size * groups, 1, 1],
            private_segment_size: if scratch == 0 { 0 } else { scratch.max(4096) },
            group_segment_size: lds,
            kernel_object: CODE + symbol.st_value,
            kernarg_va: KERNARG,
            shared_base: 0x1_0000_0000_0000,
            private_base: 0x2_0000_0000_0000,
            code: &CodeCache::default(),
            memory: &machine,
            host: Arc::new(&machine),
        },
        None,
    );
    let time = begun.elapsed();
    match stats {
        Ok(s) => eprintln!(
            "{s:?} in {time:?}, {:.0} ns each",
            time.as_nanos() as f64 / s.instructions as f64
        ),
        Err(stop) => return Err(format!("{stop:?}").into()),
    }
    for (start, ty) in buffers {
        let words = machine.dwords(start);
        let pairs = words
            .chunks(2)
            .map(|p| u64::from(p[0]) | u64::from(*p.get(1).unwrap_or(&0)) << 32);
        let text: Vec<String> = match ty.as_str() {
            "f32" => words.iter().map(|w| format!("{:?}", f32::from_bits(*w))).collect(),
            "f64" => pairs.map(|v| format!("{:?}", f64::from_bits(v))).collect(),
            "u64" => pairs.map(|v| v.to_string()).collect(),
            "i32" => words.iter().map(|w| (*w as i32).to_string()).collect(),
            _ => words.iter().map(u32::to_string).collect(),
        };
        println!("{}", text.join(" "));
    }
    Ok(())
}
