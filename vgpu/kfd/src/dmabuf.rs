//! dma-buf descriptors.
//!
//! A dma-buf is an open file of `VGPU_ROOT/dmabuf/`: as long as the buffer (libdrm asks with `lseek`), its first bytes
//! say which buffer it is. Each exported descriptor holds a shared `flock`, which follows it through `dup`, `fork` and
//! `SCM_RIGHTS` and ends when the last copy is closed: that is how the buffer's memory is known to be in use.

use std::{
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::fs::MetadataExt as _,
    },
};

use crate::{
    bo::{Buffers, GemObject},
    os,
    process::Process,
    shared::Guard,
    tables::{Extent, ExtentRef},
};

type Errno = i32;

const MAGIC: [u8; 8] = *b"vgpu-dma";

/// ```text
///  0      8      12   16
///  magic  index  pad  id
/// ```
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    magic: [u8; 8],
    index: u32,
    pad: u32,
    id: u64,
}

/// A buffer that a dma-buf names, as the shared table describes it.
#[derive(Clone, Copy)]
pub struct Imported {
    /// The entry.
    pub extent: ExtentRef,
    /// Its contents.
    pub entry: Extent,
    /// Another process allocated it.
    pub foreign: bool,
}

impl Imported {
    /// The GEM object for it.
    pub fn gem(&self) -> GemObject {
        GemObject::new(
            self.extent,
            self.entry.gpu(),
            self.entry.offset,
            self.entry.size,
            self.entry.flags,
            self.foreign,
        )
    }
}

/// Makes a descriptor for a buffer.
///
/// # Errors
/// `EINVAL` if the buffer is gone, or what the file system says.
pub fn export(process: &Process, extent: ExtentRef, size: u64) -> Result<OwnedFd, Errno> {
    if !process.shared.mark_exported(extent) {
        return Err(libc::EINVAL);
    }
    let make = || -> io::Result<OwnedFd> {
        let fd = os::open(
            &process.shared.dmabuf_path(extent.id),
            libc::O_RDWR | libc::O_CREAT,
            0o600,
        )?;
        // SAFETY: a descriptor of ours.
        os::check(unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_SH) })?;
        os::set_len(&fd, size)?;
        let header = Header {
            magic: MAGIC,
            index: extent.index,
            pad: 0,
            id: extent.id,
        };
        // SAFETY: plain data of the given size.
        let n = unsafe { libc::pwrite64(fd.as_raw_fd(), (&raw const header).cast(), size_of::<Header>(), 0) };
        if n == size_of::<Header>() as isize {
            Ok(fd)
        } else {
            Err(io::Error::last_os_error())
        }
    };
    let fd = make().map_err(|error| {
        log::error!("cannot export a dma-buf: {error}");
        error.raw_os_error().unwrap_or(libc::EIO)
    })?;
    process.counters.add(&process.counters.dmabuf_exports, 1);
    Ok(fd)
}

/// Which buffer a descriptor names, if it is a dma-buf of this virtual machine.
pub fn identify(process: &Process, fd: RawFd) -> Option<ExtentRef> {
    // SAFETY: plain data, filled by the kernel.
    let header = unsafe {
        let mut header: Header = std::mem::zeroed();
        let n = libc::pread64(fd, (&raw mut header).cast(), size_of::<Header>(), 0);
        (n == size_of::<Header>() as isize).then_some(header)
    }?;
    if header.magic != MAGIC {
        return None;
    }
    // Another machine's buffers have the same numbers: the file itself must be ours.
    let ours = fs::metadata(process.shared.dmabuf_path(header.id)).ok()?;
    (os::identity(fd)? == (ours.dev(), ours.ino())).then_some(ExtentRef {
        index: header.index,
        id: header.id,
    })
}

/// Looks a descriptor's buffer up and holds it.
///
/// # Errors
/// `EINVAL`: not a dma-buf, or of another virtual machine.
pub fn open(process: &Process, buffers: &mut Buffers, fd: RawFd) -> Result<Imported, Errno> {
    let extent = identify(process, fd).ok_or(libc::EINVAL)?;
    hold(process, buffers, &mut process.shared.lock(), extent)
}

/// Holds a buffer, here and in the shared table, under the locks of both: its last other holder may be letting go.
///
/// # Errors
/// `EINVAL`: it is gone.
pub fn hold(
    process: &Process,
    buffers: &mut Buffers,
    guard: &mut Guard<'_>,
    extent: ExtentRef,
) -> Result<Imported, Errno> {
    if !process.shared.hold(guard, extent) {
        return Err(libc::EINVAL);
    }
    buffers.hold(extent);
    let entry = *guard.extent(extent.index, extent.id).ok_or(libc::EINVAL)?;
    Ok(Imported {
        extent,
        entry,
        foreign: entry.owner != process.shared.slot as u32,
    })
}

/// The file and the offset that a dma-buf's bytes are really at, if `fd` is one.
pub fn backing(process: &Process, fd: RawFd) -> Option<(RawFd, u64)> {
    // Reading from a file that is not even on our file system might do something.
    if os::identity(fd)?.0 != process.gpus[0].identity.0 {
        return None;
    }
    let extent = identify(process, fd)?;
    let guard = process.shared.lock();
    let entry = guard.extent(extent.index, extent.id)?;
    Some((process.shared.heap_file(entry.gpu()).as_raw_fd(), entry.offset))
}
