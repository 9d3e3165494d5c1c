//! What processes have exported, for importers to compare handles with.
//!
//! ROCr believes the 32 bytes of its handles: it takes the size of the memory from them, which the kernel does not check, and
//! older releases use one of them as an index. Bytes that were tampered with would map past the block, over other mappings, or
//! crash. So the exporter writes each handle into a file of its own, and the importer opens nothing that is not there, bit for
//! bit:
//!
//! ```text
//! /dev/shm/regauge-memory-<identity of the exporter>      slots of 64 bytes: a handle, or zeroes
//! ```
//!
//! Only processes of the exporter's user can read it, so nobody else can import, and who has ended exports nothing any more.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use super::handle::{HANDLE_SIZE, Handle};
use super::identity;
use crate::abi::{Error, Result};
use crate::shared_file::SharedFile;

/// What the files hold.
const KIND: &str = "memory";

/// This process's file.
#[derive(Default)]
struct Own {
    file: Option<SharedFile>,
    /// Slots below it were used.
    next: u64,
    free: Vec<u64>,
}

static OWN: Mutex<Option<Own>> = Mutex::new(None);

/// A handle that can be opened as long as this lives.
#[derive(Debug)]
pub struct Published {
    /// The handle.
    pub bytes: [u8; HANDLE_SIZE],
    slot: u64,
}

impl Own {
    fn publish(&mut self, handle: Handle) -> io::Result<Published> {
        if self.file.is_none() {
            let create = || SharedFile::create(KIND, &identity().to_le_bytes(), 0);
            let again = |error: io::Error| match error.kind() {
                io::ErrorKind::Interrupted => create(),
                _ => Err(error),
            };
            self.file = Some(create().or_else(again).or_else(again)?);
        }
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let slot = self.free.last().copied().unwrap_or(self.next);
        let bytes = Handle { slot, ..handle }.encode();
        file.file().write_all_at(&bytes, slot * HANDLE_SIZE as u64)?;
        if self.free.pop().is_none() {
            self.next += 1;
        }
        Ok(Published { bytes, slot })
    }
}

impl Published {
    /// Publishes a handle of this process; its slot is decided here.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION where there is no shared memory to do it in.
    pub fn new(handle: Handle) -> Result<Self> {
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        let own = own.get_or_insert_default();
        own.publish(handle).map_err(|error| {
            log::warn!("memory cannot be exported without a file in /dev/shm: {error}");
            Error::MEMORY_ALLOCATION
        })
    }

    /// Where it stands in this process's file.
    pub fn slot(&self) -> u64 {
        self.slot
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = own.as_mut()
            && let Some(file) = &own.file
            && file
                .file()
                .write_all_at(&[0; HANDLE_SIZE], self.slot * HANDLE_SIZE as u64)
                .is_ok()
        {
            own.free.push(self.slot);
        }
    }
}

/// Exporters whose files are open.
static OPENED: Mutex<Option<HashMap<u64, SharedFile>>> = Mutex::new(None);

/// What another process has published in a slot of its file.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE when the exporter has ended, or is another user's; INVALID_VALUE for a slot that it does not have.
pub fn read(exporter: u64, slot: u64) -> Result<[u8; HANDLE_SIZE]> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let opened = opened.get_or_insert_default();
    // Who imports from many processes, one after the other, keeps the files of the living.
    opened.retain(|_, file| !file.is_orphan() && file.is_of_this_user());
    let file = match opened.entry(exporter) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(room) => room.insert(open(exporter).map_err(|error| {
            log::info!("the process that exported this memory has ended, or is another user's: {error}");
            Error::INVALID_RESOURCE_HANDLE
        })?),
    };
    let mut bytes = [0; HANDLE_SIZE];
    let at = slot.checked_mul(HANDLE_SIZE as u64).ok_or(Error::INVALID_VALUE)?;
    match file.file().read_exact_at(&mut bytes, at) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Error::INVALID_VALUE),
    }
}

/// A living process's file.
fn open(exporter: u64) -> io::Result<SharedFile> {
    let file = SharedFile::open(KIND, &exporter.to_le_bytes())?;
    if file.is_orphan() {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    Ok(file)
}
