//! What the program may do with its own memory: drivers pin for writing what it may write.

use std::{
    fs::File,
    io::Read as _,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use crate::os;

type Errno = i32;

/// A run of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First byte.
    pub start: u64,
    /// Past the last byte.
    pub end: u64,
    /// The program may write it.
    pub writable: bool,
}

/// What lies in `start..end`, which are multiples of the page size: the longest runs of pages that may all be written, or all not.
///
/// # Errors
/// `EFAULT` where there is nothing, or nothing that may be read.
pub fn runs(start: u64, end: u64) -> Result<Vec<Run>, Errno> {
    let maps = open().ok_or(libc::EFAULT)?;
    let mut runs: Vec<Run> = Vec::new();
    let mut at = start;
    while at < end {
        let Some(area) = query(&maps, at).unwrap_or_else(|| listed(at)) else {
            return Err(libc::EFAULT);
        };
        if !area.readable {
            return Err(libc::EFAULT);
        }
        let until = area.end.min(end);
        match runs.last_mut() {
            Some(run) if run.writable == area.writable => run.end = until,
            _ => runs.push(Run {
                start: at,
                end: until,
                writable: area.writable,
            }),
        }
        at = until;
    }
    Ok(runs)
}

fn open() -> Option<OwnedFd> {
    os::open(Path::new("/proc/self/maps"), libc::O_RDONLY, 0).ok()
}

/// What the kernel knows of one area.
struct Area {
    end: u64,
    readable: bool,
    writable: bool,
}

/// The area that holds an address, by `PROCMAP_QUERY`; the outer `None` where the kernel knows no such question (before Linux 6.11).
fn query(maps: &impl AsRawFd, address: u64) -> Option<Option<Area>> {
    /// `struct procmap_query`
    #[repr(C)]
    #[derive(Default)]
    struct Query {
        size: u64,
        flags: u64,
        address: u64,
        start: u64,
        end: u64,
        /// 1 readable, 2 writable.
        permissions: u64,
        rest: [u64; 7],
    }
    /// `_IOWR('f', 17, struct procmap_query)`
    const PROCMAP_QUERY: usize = 0xc068_6611;
    let mut query = Query {
        size: size_of::<Query>() as u64,
        address,
        ..Query::default()
    };
    let fd = maps.as_raw_fd() as usize;
    let args = [fd, PROCMAP_QUERY, &raw mut query as usize, 0, 0, 0];
    // SAFETY: the kernel reads and writes the structure, whose size it is told.
    if unsafe { os::raw(libc::SYS_ioctl, args) } != 0 {
        return (std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOENT)).then_some(None);
    }
    Some(Some(Area {
        end: query.end,
        readable: query.permissions & 1 != 0,
        writable: query.permissions & 2 != 0,
    }))
}

/// The area that holds an address, from the whole list of them.
fn listed(address: u64) -> Option<Area> {
    let mut maps = String::new();
    File::from(open()?).read_to_string(&mut maps).ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let bound = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (bound(start)?, bound(end)?);
        (start..end).contains(&address).then(|| Area {
            end,
            readable: rest.starts_with('r'),
            writable: rest[1..].starts_with('w'),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    #[test]
    fn runs_are_as_long_as_they_can_be_and_holes_are_faults() {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), 8 * PAGE as usize, protection, flags, -1, 0) } as u64;
        let at = |page: u64| (start + page * PAGE) as *mut libc::c_void;
        // SAFETY: a page of the test's own.
        let protect = |page, protection| unsafe { assert_eq!(libc::mprotect(at(page), PAGE as usize, protection), 0) };
        let run = |from: u64, to: u64, writable| Run {
            start: start + from * PAGE,
            end: start + to * PAGE,
            writable,
        };
        let of = |from: u64, to: u64| runs(start + from * PAGE, start + to * PAGE);
        assert_eq!(of(0, 8), Ok(vec![run(0, 8, true)]));
        protect(2, libc::PROT_READ);
        // Executable: an area of its own that may be written as its neighbour may.
        protect(5, protection | libc::PROT_EXEC);
        assert_eq!(of(1, 7), Ok(vec![run(1, 2, true), run(2, 3, false), run(3, 7, true)]));
        let listed: Vec<bool> = (0..8)
            .map(|page| listed(start + page * PAGE).unwrap().writable)
            .collect();
        assert_eq!(listed, [true, true, false, true, true, true, true, true]);
        protect(6, libc::PROT_NONE);
        assert_eq!(of(3, 7), Err(libc::EFAULT));
        // SAFETY: a page of the test's own.
        assert_eq!(unsafe { libc::munmap(at(4), PAGE as usize) }, 0);
        assert_eq!(of(3, 6), Err(libc::EFAULT));
        assert_eq!(of(3, 4), Ok(vec![run(3, 4, true)]));
    }
}
