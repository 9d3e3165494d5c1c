//! `process_vm_readv` and `process_vm_writev` ("cross memory attach"), with which MPI moves host memory between ranks.
//!
//! On the card, mappings of device files are page frames without pages behind them: the kernel cannot pin them and these
//! calls fail with `EFAULT` there, in either BAR mode. Here the mappings are ordinary shared memory, so the call is cut
//! short at the first byte of the *remote* process that lies in a mapping of a GPU's file. What a process maps is read from
//! `/proc/<pid>/maps`, and read again only when its slot's counter says that it has made a new mapping since.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt as _,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    config::Config,
    os,
    process::Process,
    shared::{Viewer, is_device_file},
};

/// The machine as this process sees it, whether or not it uses a GPU itself.
struct View {
    viewer: Viewer,
    /// Files of the GPUs: device and inode.
    files: Vec<(u64, u64)>,
    seen: Mutex<HashMap<i32, Seen>>,
}

/// A counter that changed this many nanoseconds ago may still announce a mapping that is being made.
const SETTLED: u64 = 100_000_000;

/// What was read of a process.
struct Seen {
    /// The mapping counter before the maps were read.
    mappings: u64,
    /// When they were read, in nanoseconds of the monotonic clock.
    at: u64,
    ranges: Vec<(u64, u64)>,
}

fn view() -> Option<Arc<View>> {
    static VIEW: Mutex<Option<Arc<View>>> = Mutex::new(None);
    let mut known = VIEW.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(view) = known.as_ref().filter(|view| !view.viewer.over()) {
        return Some(view.clone());
    }
    // Not remembered when absent: the machine may start later.
    let config = Config::from_env().ok().flatten()?;
    let viewer = Viewer::open(&config.root)?;
    let files = fs::read_dir(&config.root)
        .ok()?
        .flatten()
        .filter(|entry| is_device_file(&entry.file_name()))
        .filter_map(|entry| entry.metadata().ok().map(|meta| (meta.dev(), meta.ino())))
        .collect();
    let view = Arc::new(View {
        viewer,
        files,
        seen: Mutex::default(),
    });
    *known = Some(view.clone());
    Some(view)
}

impl View {
    /// The first byte of `start..start+len` that is device memory in process `pid`.
    fn first_device_byte(&self, pid: i32, ranges: &[(u64, u64)]) -> Option<(usize, u64)> {
        let (mappings, mapped_at) = self.viewer.mappings(pid)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let current = |seen: &Seen| seen.mappings == mappings && seen.at > mapped_at + SETTLED;
        let stale = !seen.get(&pid).is_some_and(current);
        if stale {
            let at = os::clock_ns(libc::CLOCK_MONOTONIC);
            seen.insert(
                pid,
                Seen {
                    mappings,
                    at,
                    ranges: self.read(pid),
                },
            );
        }
        let hit = first_overlap(&seen.get(&pid)?.ranges, ranges)?;
        if stale {
            return Some(hit);
        }
        // A refusal must rest on what is mapped now: unmapping is not counted.
        let now = self.read(pid);
        let hit = first_overlap(&now, ranges);
        seen.insert(
            pid,
            Seen {
                mappings,
                at: os::clock_ns(libc::CLOCK_MONOTONIC),
                ranges: now,
            },
        );
        hit
    }

    fn read(&self, pid: i32) -> Vec<(u64, u64)> {
        fs::read_to_string(format!("/proc/{pid}/maps"))
            .map_or_else(|_| Vec::new(), |maps| device_ranges(&maps, &self.files))
    }
}

/// The ranges of a `maps` file that map one of the files.
fn device_ranges(maps: &str, files: &[(u64, u64)]) -> Vec<(u64, u64)> {
    // 7f5a2c000000-7f5a2c400000 rw-s 00200000 00:1a 1234                      /dev/shm/...
    let parse = |line: &str| -> Option<(u64, u64)> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let inode: u64 = fields.next()?.parse().ok()?;
        let hex = |text| u32::from_str_radix(text, 16).ok();
        let device = libc::makedev(hex(major)?, hex(minor)?);
        let range = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        files.contains(&(device, inode)).then_some(range)
    };
    maps.lines().filter_map(parse).collect()
}

/// Index of the first of `ranges` (address, length) that touches a device range, and how many bytes precede it there.
fn first_overlap(device: &[(u64, u64)], ranges: &[(u64, u64)]) -> Option<(usize, u64)> {
    ranges.iter().enumerate().find_map(|(i, (address, len))| {
        let end = address.saturating_add(*len);
        if end == *address {
            return None;
        }
        let first = device
            .iter()
            .filter(|(s, e)| *s < end && *e > *address)
            .map(|(s, _)| (*s).max(*address))
            .min()?;
        Some((i, first - address))
    })
}

/// Both calls: `args` as the kernel takes them (pid, local vector, its length, remote vector, its length, flags).
///
/// # Safety
/// As for the system call.
pub unsafe fn transfer(number: i64, mut args: [usize; 6]) -> isize {
    let (pid, remote, count) = (args[0] as i32, args[3] as *const libc::iovec, args[4]);
    // More than the kernel takes, or nothing at all: its answer is the right one.
    if count == 0 || count > libc::UIO_MAXIOV as usize || remote.is_null() {
        // SAFETY: the caller's contract.
        return unsafe { os::raw(number, args) };
    }
    let Some(view) = view() else {
        // SAFETY: the caller's contract.
        return unsafe { os::raw(number, args) };
    };
    // SAFETY: the caller vouches for the vector.
    let mut vector: Vec<libc::iovec> = unsafe { std::slice::from_raw_parts(remote, count) }.to_vec();
    let ranges: Vec<(u64, u64)> = vector.iter().map(|v| (v.iov_base as u64, v.iov_len as u64)).collect();
    let Some((index, before)) = view.first_device_byte(pid, &ranges) else {
        // SAFETY: the caller's contract.
        return unsafe { os::raw(number, args) };
    };
    if let Some(process) = Process::current() {
        process.counters.add(&process.counters.cma_refusals, 1);
    }
    log::debug!(
        "cross memory attach to process {pid} meets device memory at {:#x}",
        ranges[index].0 + before
    );
    vector.truncate(index + 1);
    vector[index].iov_len = before as usize;
    // The kernel moves what precedes the fault and says how much; only if that is nothing, the call fails.
    if vector.iter().all(|v| v.iov_len == 0) {
        return os::fail(libc::EFAULT) as isize;
    }
    args[3] = vector.as_ptr() as usize;
    args[4] = vector.len();
    // SAFETY: the caller's contract, with a shorter vector that lives until the call returns.
    unsafe { os::raw(number, args) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
7f0000000000-7f0000400000 rw-s 00200000 00:1a 77                         /dev/shm/vgpu/gpu0
7f0000400000-7f0000800000 rw-p 00000000 00:00 0 \n\
7f0000800000-7f0000900000 ---s 00600000 00:1a 77                         /dev/shm/vgpu/gpu0
7f0000900000-7f0000a00000 r--p 00000000 08:01 77                         /usr/lib/x.so
garbage
";

    #[test]
    fn device_mappings_are_found_by_device_and_inode() {
        let ranges = device_ranges(MAPS, &[(libc::makedev(0, 0x1a), 77)]);
        assert_eq!(
            ranges,
            [
                (0x7f00_0000_0000, 0x7f00_0040_0000),
                (0x7f00_0080_0000, 0x7f00_0090_0000)
            ]
        );
    }

    #[test]
    fn transfers_stop_at_the_first_device_byte() {
        let device = [(0x2000, 0x3000), (0x5000, 0x6000)];
        assert_eq!(first_overlap(&device, &[(0x1000, 0x1000)]), None);
        assert_eq!(first_overlap(&device, &[(0x1000, 0x1001)]), Some((0, 0x1000)));
        assert_eq!(
            first_overlap(&device, &[(0x0, 16), (0x2800, 1), (0x5000, 1)]),
            Some((1, 0))
        );
        assert_eq!(first_overlap(&device, &[(0x4000, 0x8000)]), Some((0, 0x1000)));
        assert_eq!(first_overlap(&device, &[(0x2800, 0)]), None, "nothing is asked for");
    }
}
