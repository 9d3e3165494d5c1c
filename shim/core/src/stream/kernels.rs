//! The runtime's own kernels: copies and fills inside a device that follow a stream's work in its ring.
//!
//! A copy engine serves all streams, so what comes behind a kernel waits outside of it until the kernel has ended, and the host sees to
//! that. Inside a device a kernel moves bytes as well, and behind the stream's own packets the ring keeps the order by itself:
//!
//! ```text
//! ring   [kernel] [copy_16] [kernel] [fill_4] [kernel]        nobody is asked, nobody is woken
//! ```
//!
//! A packet here keeps nobody else waiting: it goes only where the stream's last packet is the ring's last ([`Stream::try_packet`]). It needs
//! a wave's place on a compute unit, as the kernel before it does; where nothing is on its way before it, what an engine can do is left to the
//! engines, so that no kernel that fills the device and spins keeps from it what ends the spinning.

use super::completion::{Completion, Resources};
use super::spans::Span;
use super::staging::Chunk;
use super::stream::Stream;
use crate::abi::Result;
use crate::device::Device;
use crate::hsa::executable::Executable;
use crate::hsa::queue::{Dispatch, Packet};
use crate::memory::{self, Kind};

/// Work-items of a work-group.
const GROUP: u16 = 256;
/// Most work-items for each compute unit; they go round.
const ITEMS_PER_UNIT: u64 = 4 * GROUP as u64;
/// Units that a work-item has on their way at once.
const ROUND: u64 = 4;
/// Bytes of units, from the largest, and the last letters of kernels' names.
const UNITS: [(u64, &str); 3] = [(16, "16"), (4, "4"), (1, "1")];
/// Most bytes to be moved one by one; ROCr knows better ways for more.
const SINGLE_BYTES: u64 = 1 << 14;
/// Most units: the number of the next one must fit 32 bits.
const MOST_UNITS: u64 = 1 << 31;
/// Most bytes to be moved over the bus: a few microseconds' worth, which is less than it takes to tell an engine. Of more, the time on the bus
/// is most, and an engine leaves the compute units to others.
const LITTLE: u64 = 1 << 16;
/// Bytes of arguments.
const ARGUMENTS: usize = 32;

/// The kernels, loaded on a device.
pub struct Kernels {
    /// By unit.
    copies: [u64; UNITS.len()],
    fills: [u64; UNITS.len()],
    /// Holds the code.
    _executable: Executable,
}

/// The code for an instruction set: what the assembler makes of `kernels.s`.
fn code(isa: &str) -> Option<&'static [u8]> {
    match isa {
        "gfx90a" => Some(include_bytes!("kernels/gfx90a.co")),
        "gfx942" => Some(include_bytes!("kernels/gfx942.co")),
        _ => None,
    }
}

impl Kernels {
    /// `None` where there is no code for the device; copy engines do the work there.
    pub fn load(device: &Device) -> Option<Self> {
        let loaded = || -> Result<Self> {
            let code = code(&device.agent.name).ok_or(crate::abi::Error::NO_KERNEL_IMAGE_FOR_DEVICE)?;
            let executable = Executable::load(device.agent, code.to_vec())?;
            let mut kernels = [[0; UNITS.len()]; 2];
            for (kernels, kind) in kernels.iter_mut().zip(["copy", "fill"]) {
                for (kernel, (_, unit)) in kernels.iter_mut().zip(UNITS) {
                    *kernel = executable.kernel(&format!("{kind}_{unit}"))?.object;
                }
            }
            let [copies, fills] = kernels;
            Ok(Self {
                copies,
                fills,
                _executable: executable,
            })
        };
        loaded()
            .inspect_err(|error| log::debug!("{device:?} has no kernels of the runtime's own: {error:?}"))
            .ok()
    }
}

/// The largest unit, as its place in [`UNITS`], that addresses and sizes are multiples of, and how many there are. `None` where that
/// would take too many.
fn unit(multiples: u64, bytes: u64) -> Option<(usize, u64)> {
    let (place, (size, _)) = UNITS
        .into_iter()
        .enumerate()
        .find(|(_, (size, _))| multiples.is_multiple_of(*size))?;
    let fits = bytes / size < MOST_UNITS && (size > 1 || bytes <= SINGLE_BYTES);
    fits.then_some((place, bytes / size))
}

/// Memory that kernels of its own device may use, whatever else they may.
fn is_own(device: &Device, address: u64) -> bool {
    memory::lookup(address).is_some_and(|entry| {
        let own = matches!(entry.kind, Kind::Device | Kind::Variable | Kind::Pool | Kind::Graph);
        own && entry.context.device.ordinal == device.ordinal
    })
}

/// Work-items for so many units, and how many rounds they all go.
fn share_out(units: u64, most: u64) -> (u64, u64) {
    let group = u64::from(GROUP);
    match (units / ROUND / group).min(most / group) * group {
        // Too few for rounds.
        0 => (units.min(group), 0),
        items => (items, units / (ROUND * items)),
    }
}

/// A packet, and its arguments.
fn packet(device: &'static Device, kernel: u64, dst: u64, src: u64, units: u64) -> Result<(Packet, Chunk)> {
    let most = u64::from(device.agent.compute_units.max(1)) * ITEMS_PER_UNIT;
    let (items, rounds) = share_out(units, most);
    let mut chunk = Chunk::new(device, ARGUMENTS)?;
    let words = [dst, src, items << 32 | units, rounds];
    for (room, word) in chunk.bytes().chunks_exact_mut(8).zip(words) {
        room.copy_from_slice(&word.to_le_bytes());
    }
    let packet = Packet::dispatch(&Dispatch {
        workgroup: [GROUP, 1, 1],
        grid: [items as u32, 1, 1],
        private_size: 0,
        group_size: 0,
        kernel_object: kernel,
        kernarg: chunk.address(),
    });
    Ok((packet, chunk))
}

/// Copies inside `device`, behind the last packet of `stream`. False where a copy engine has to do it.
///
/// # Errors
/// MEMORY_ALLOCATION, or the process's fault.
pub fn copy(stream: &Stream, device: &'static Device, span: &Span) -> Result<bool> {
    if !is_own(device, span.dst) || !is_own(device, span.src) {
        return Ok(false);
    }
    Ok(enqueue_copy(stream, device, span, &mut None, false)?.is_some())
}

/// Copies a little between `device` and pinned host memory, at the addresses that GPUs know it by, behind the last packet of `stream` if
/// that has not ended. The host's memory is `staging`, or the application's. Returns the end of the copy; `None`, and `staging` is left,
/// where a copy engine has to do it.
///
/// # Errors
/// As [`copy`].
pub fn copy_little(
    stream: &Stream,
    device: &'static Device,
    span: &Span,
    up: bool,
    staging: &mut Option<Chunk>,
) -> Result<Option<Completion>> {
    let address = if up { span.dst } else { span.src };
    if span.len > LITTLE || !is_own(device, address) {
        return Ok(None);
    }
    enqueue_copy(stream, device, span, staging, true)
}

fn enqueue_copy(
    stream: &Stream,
    device: &'static Device,
    span: &Span,
    staging: &mut Option<Chunk>,
    behind: bool,
) -> Result<Option<Completion>> {
    let Some((place, units)) = unit(span.dst | span.src | span.len, span.len) else {
        return Ok(None);
    };
    if stream.device().ordinal != device.ordinal {
        return Ok(None);
    }
    let Some(kernels) = device.kernels() else {
        return Ok(None);
    };
    let (packet, arguments) = packet(device, kernels.copies[place], span.dst, span.src, units)?;
    stream.try_packet(packet, behind, || Resources::Own {
        _arguments: arguments,
        _staging: staging.take(),
    })
}

/// Fills memory of `device` with the low `element` bytes of `value`, behind the last packet of `stream` if that has not ended. False
/// where a copy engine has to do it: it needs no place on a compute unit.
///
/// # Errors
/// As [`copy`].
pub fn fill(
    stream: &Stream,
    device: &'static Device,
    (dst, len): (u64, u64),
    value: u32,
    element: usize,
) -> Result<bool> {
    let pattern = match element {
        1 => (value & 0xff) * 0x0101_0101,
        2 => (value & 0xffff) * 0x0001_0001,
        _ => value,
    };
    let Some((place, units)) = unit(dst | len, len).filter(|(place, _)| UNITS[*place].0 >= element as u64) else {
        return Ok(false);
    };
    if stream.device().ordinal != device.ordinal || !is_own(device, dst) {
        return Ok(false);
    }
    let Some(kernels) = device.kernels() else {
        return Ok(false);
    };
    let (packet, chunk) = packet(device, kernels.fills[place], dst, u64::from(pattern), units)?;
    let resources = || Resources::Own {
        _arguments: chunk,
        _staging: None,
    };
    Ok(stream.try_packet(packet, true, resources)?.is_some())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    #[test]
    fn rounds_move_no_more_than_there_is_and_leave_little() {
        for units in (1..5000).chain([1 << 16, (1 << 20) + 1, (1 << 31) - 1]) {
            for most in [256, 4096, 104 * 1024] {
                let (items, rounds) = share_out(units, most);
                assert!((1..=most.min(units)).contains(&items), "{units}: {items} of {most}");
                assert!(
                    rounds == 0 || items.is_multiple_of(u64::from(GROUP)),
                    "waves of rounds are full"
                );
                let rest = units
                    .checked_sub(rounds * items * ROUND)
                    .expect("not more than there is");
                assert!(
                    rest < ROUND * items.max(u64::from(GROUP)),
                    "{units}: {rest} left by {items}"
                );
            }
        }
    }

    #[test]
    fn units_are_as_large_as_addresses_and_size_allow() {
        assert_eq!(unit(0x1000 | 32, 32), Some((0, 2)));
        assert_eq!(unit(0x1004 | 32, 32), Some((1, 8)));
        assert_eq!(unit(0x1001 | 32, 32), Some((2, 32)));
        assert_eq!(unit(0x1001, SINGLE_BYTES + 1), None);
        assert_eq!(unit(16, 16 << 31), None);
    }

    /// `BLESS=1` makes the code objects anew.
    #[test]
    fn the_code_objects_are_what_their_source_assembles_to() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/stream/kernels");
        for isa in ["gfx90a", "gfx942"] {
            let made = std::env::temp_dir().join(format!("regauge-{}-{isa}.co", std::process::id()));
            let status = Command::new("clang-19")
                .args(["-target", "amdgcn-amd-amdhsa", "-mcode-object-version=4"])
                .arg(format!("-mcpu={isa}"))
                .args(["-Wl,--build-id=none"])
                .arg(folder.join("kernels.s"))
                .arg("-o")
                .arg(&made)
                .status()
                .expect("clang-19, which the bench needs, is there");
            assert!(status.success());
            let bytes = std::fs::read(&made).unwrap();
            let _ = std::fs::remove_file(&made);
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(folder.join(isa).with_extension("co"), bytes).unwrap();
            } else {
                assert!(Some(&bytes[..]) == code(isa), "{isa}.co is not what kernels.s says");
            }
        }
    }
}
