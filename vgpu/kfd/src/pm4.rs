//! PM4 command buffers, as far as ROCr sends them through AQL vendor packets: cache flushes after code was loaded.

use cdna::memory::{Access, Fault, GpuMemory as _};

use crate::vm::AddressSpace;

/// Type-3 opcodes.
mod opcode {
    pub const NOP: u32 = 0x10;
    pub const INDIRECT_BUFFER: u32 = 0x3f;
    pub const ACQUIRE_MEM: u32 = 0x58;
}

/// Why a buffer was not executed.
#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// The buffer is not there.
    Fault(Fault),
    /// A command that this machine does not have.
    Unknown(String),
}

/// Opcode and number of words of a type-3 command.
fn header(word: u32) -> Option<(u32, usize)> {
    (word >> 30 == 3).then_some((word >> 8 & 0xff, (word >> 16 & 0x3fff) as usize + 2))
}

/// Executes the `INDIRECT_BUFFER` command in a vendor packet.
///
/// The interpreter compares the code that it keeps with memory at every dispatch, so a flush has nothing to do but to be
/// understood, and where memory is hostile to flush the L2.
///
/// # Errors
/// The buffer cannot be read, or holds something else than flushes.
pub fn indirect_buffer(vm: &AddressSpace, words: [u32; 4]) -> Result<(), Error> {
    if header(words[0]) != Some((opcode::INDIRECT_BUFFER, 4)) {
        return Err(Error::Unknown(format!(
            "vendor packet with PM4 command {:#010x}: only INDIRECT_BUFFER",
            words[0]
        )));
    }
    let va = u64::from(words[1] & !3) | u64::from(words[2] & 0xffff) << 32;
    let count = (words[3] & 0xf_ffff) as usize;
    let bytes = vm
        .contiguous(va, count as u64 * 4, Access::Read)
        .map_err(Error::Fault)?;
    // SAFETY: mapped for as many bytes, and 4-byte aligned by the mask above; read once, whatever others do to it.
    let commands: Vec<u32> = (0..count)
        .map(|i| unsafe { bytes.cast::<u32>().add(i).read_volatile() })
        .collect();
    execute(&commands)?;
    if let Some(cache) = vm.cache() {
        cache.write_back();
        cache.invalidate();
    }
    Ok(())
}

fn execute(commands: &[u32]) -> Result<(), Error> {
    let mut at = 0;
    while at < commands.len() {
        match header(commands[at]) {
            // A one-word NOP has the count field all ones.
            Some((opcode::NOP, 0x4001)) => at += 1,
            Some((opcode::NOP | opcode::ACQUIRE_MEM, len)) => at += len,
            Some((other, _)) => {
                return Err(Error::Unknown(format!(
                    "PM4 opcode {other:#x} at word {at} of a buffer"
                )));
            }
            // Type 2 is filler.
            None if commands[at] >> 30 == 2 => at += 1,
            None => {
                return Err(Error::Unknown(format!(
                    "PM4 word {:#010x} at word {at} of a buffer",
                    commands[at]
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(op: u32, len: u32) -> u32 {
        3 << 30 | (len - 2) << 16 | op << 8
    }

    #[test]
    fn flushes_are_understood_and_others_named() {
        let mut flush = vec![command(opcode::ACQUIRE_MEM, 7)];
        flush.resize(7, 0);
        assert_eq!(execute(&flush), Ok(()));
        flush.extend([2 << 30, 3 << 30 | 0x3fff << 16 | opcode::NOP << 8]);
        assert_eq!(execute(&flush), Ok(()));
        flush.push(command(0x37, 5));
        assert!(matches!(execute(&flush), Err(Error::Unknown(text)) if text.contains("0x37")));
    }

    #[test]
    fn random_buffers_end() {
        let mut seed = 0x9e37_79b9_u32;
        for len in (0..64).cycle().take(20_000) {
            let words: Vec<u32> = (0..len)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 17;
                    seed ^= seed << 5;
                    // Mostly commands that are known, of any length.
                    if seed & 3 == 0 {
                        seed
                    } else {
                        3 << 30 | seed & 0x3f_0000 | opcode::NOP << 8
                    }
                })
                .collect();
            let _ = execute(&words);
        }
    }

    #[test]
    fn a_buffer_that_is_not_mapped_faults() {
        let words = [command(opcode::INDIRECT_BUFFER, 4), 0x1000, 0, 7];
        assert!(matches!(indirect_buffer(&AddressSpace::default(), words), Err(Error::Fault(f)) if f.va == 0x1000));
    }
}
