//! Device-side `printf` and `assert`: the ring that kernels write records to, and the text made of them.
//!
//! A ring is host memory, one for each context; its layout is drawn in `kernels_ptx_translate::protocol`. Records are read at
//! synchronisation points, as CUDA documents, and the ring begins anew once no kernel that may write to it runs. Strings
//! are read from the modules' initial data, which the host has: device memory may be out of its reach.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::ffi::CString;
use std::io::Write;
use std::sync::{Arc, Mutex, Weak};

use kernels_ptx_translate::protocol::PRINTF_RING_HEADER;

use super::module::Module;
use crate::abi::{Error, Result};
use crate::device::{self, Context};
use crate::hsa::{self, fault};
use crate::stream::completion::Completion;

/// Longest string that an argument of `%s` is believed to have.
const LONGEST_STRING: usize = 1 << 16;
/// Bytes of an assertion's record.
const ASSERT_RECORD: u64 = 72;

/// The ring of one context.
pub struct Ring {
    base: NonNull<u8>,
    /// Bytes after the header.
    capacity: u64,
    state: Mutex<State>,
}

// SAFETY: the memory is shared with GPUs by atomics; what the host alone changes is under the mutex.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

#[derive(Default)]
struct State {
    /// Bytes of records that were printed.
    read: u64,
    /// Kernels that may write.
    running: Vec<Completion>,
    /// Where formats and strings are.
    modules: Vec<Weak<Module>>,
}

/// All rings of the process, for [`drain_all`].
static RINGS: Mutex<Vec<Weak<Ring>>> = Mutex::new(Vec::new());
/// Whether there is any: what a synchronisation costs when nobody prints.
static IN_USE: AtomicBool = AtomicBool::new(false);

impl Ring {
    /// A ring of `size` bytes.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION.
    pub fn new(context: &'static Context, size: usize) -> Result<Arc<Self>> {
        let capacity = (size as u64).next_multiple_of(8).max(1 << 16);
        let total = (capacity + PRINTF_RING_HEADER) as usize;
        let base = context.device.host_pool.allocate(total)?;
        let agents: Vec<_> = device::all()?.iter().map(|device| device.agent).collect();
        hsa::memory::allow_access(&agents, base)?;
        // SAFETY: `total` bytes of new memory.
        unsafe { base.as_ptr().write_bytes(0, total) };
        let ring = Arc::new(Self {
            base,
            capacity,
            state: Mutex::default(),
        });
        ring.word(8).store(capacity, Ordering::Release);
        fault::refine_with(asserted);
        crate::stream::on_synchronize(drain_all);
        RINGS
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .push(Arc::downgrade(&ring));
        IN_USE.store(true, Ordering::Release);
        Ok(ring)
    }

    /// Its address, for kernels.
    pub fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.capacity + PRINTF_RING_HEADER && offset.is_multiple_of(8));
        // SAFETY: inside the ring, aligned, and shared with GPUs by atomics only.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset as usize).cast()) }
    }

    /// Launches a kernel that may write, by `launch`. The ring does not begin anew meanwhile.
    ///
    /// # Errors
    /// Those of `launch`.
    pub fn with_writer(&self, module: &Arc<Module>, launch: impl FnOnce() -> Result<Completion>) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if self.word(0).load(Ordering::Acquire) > self.capacity / 2 {
            self.print(&mut state);
        }
        if !state
            .modules
            .iter()
            .any(|known| known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, module)))
        {
            state.modules.retain(|known| known.strong_count() > 0);
            state.modules.push(Arc::downgrade(module));
        }
        let completion = launch()?;
        completion.close()?;
        state.running.retain(|kernel| !kernel.is_done());
        state.running.push(completion);
        Ok(())
    }

    /// Prints what has been written; begins anew if nobody writes.
    pub fn drain(&self) {
        // Whoever has the lock prints; a synchronisation inside printing must not wait for itself.
        if let Ok(mut state) = self.state.try_lock() {
            self.print(&mut state);
        }
    }

    fn print(&self, state: &mut State) {
        // Looked at first: what these kernels wrote is then all there.
        let idle = state.running.iter().all(|kernel| kernel.is_done());
        let end = self.word(0).load(Ordering::Acquire).min(self.capacity);
        let modules: Vec<Arc<Module>> = state.modules.iter().filter_map(Weak::upgrade).collect();
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        while let Some(record) = self.record(state.read, end) {
            state.read += record.len() as u64;
            let text = |address| string(&modules, address);
            match word(record, 8) {
                0 => assertion(record, text, &mut errors),
                format => match text(format) {
                    Some(format) => super::format::format(&format, &record[16..], text, &mut out),
                    None => log::warn!("a kernel printed with a format at {format:#x}, which no module has"),
                },
            }
        }
        write_stdout(&out);
        let _ = std::io::stderr().write_all(&errors);
        if idle && state.read > 0 {
            let lost = self.word(16).load(Ordering::Relaxed);
            if lost > 0 {
                log::warn!(
                    "{lost} printf calls of kernels found the buffer full; cudaLimitPrintfFifoSize sets its size"
                );
            }
            for offset in (0..end).step_by(8) {
                self.word(PRINTF_RING_HEADER + offset).store(0, Ordering::Relaxed);
            }
            self.word(16).store(0, Ordering::Relaxed);
            self.word(0).store(0, Ordering::Release);
            state.read = 0;
        }
    }

    /// The record at `offset`, if it has been written to its end.
    fn record(&self, offset: u64, end: u64) -> Option<&[u8]> {
        if offset + 16 > end {
            return None;
        }
        let size = self.word(PRINTF_RING_HEADER + offset).load(Ordering::Acquire);
        if size < 16 || !size.is_multiple_of(8) || size > end - offset {
            return None;
        }
        // SAFETY: inside the ring; its writer has released it and does not touch it again.
        Some(unsafe {
            core::slice::from_raw_parts(
                self.base.as_ptr().add((PRINTF_RING_HEADER + offset) as usize),
                size as usize,
            )
        })
    }

    /// A kernel has failed an assertion and was not reported yet.
    fn has_assertion(&self) -> bool {
        let end = self.word(0).load(Ordering::Acquire).min(self.capacity);
        let mut offset = 0;
        while let Some(record) = self.record(offset, end) {
            if record.len() as u64 == ASSERT_RECORD && word(record, 8) == 0 {
                return true;
            }
            offset += record.len() as u64;
        }
        false
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if fault::current().is_none() {
            // SAFETY: allocated by `new`; contexts wait for their kernels before they end.
            let _ = unsafe { hsa::memory::free(self.base) };
        }
    }
}

/// Prints what kernels have written, in every context.
fn drain_all() {
    if !IN_USE.load(Ordering::Acquire) {
        return;
    }
    rings().iter().for_each(|ring| ring.drain());
}

/// Every ring of the process.
fn rings() -> Vec<Arc<Ring>> {
    let rings = RINGS.lock().unwrap_or_else(|e| e.into_inner());
    rings.iter().filter_map(Weak::upgrade).collect()
}

/// A trap behind an assertion's record is a failed assertion. Its text is printed before anybody learns of the fault, for
/// a call that finds the process faulted returns without synchronising.
fn asserted(error: Error) -> Error {
    let mut rings = rings();
    rings.retain(|ring| ring.has_assertion());
    if rings.is_empty() {
        return error;
    }
    rings.iter().for_each(|ring| ring.drain());
    Error::ASSERT
}

fn word(record: &[u8], at: usize) -> u64 {
    record
        .get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

fn half(record: &[u8], at: usize) -> u32 {
    record
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

/// The string at a device address: of a module's initial data.
fn string(modules: &[Arc<Module>], address: u64) -> Option<Vec<u8>> {
    let bytes = modules.iter().find_map(|module| module.initial_bytes_at(address))?;
    let bytes = &bytes[..bytes.len().min(LONGEST_STRING)];
    Some(bytes[..bytes.iter().position(|&c| c == 0).unwrap_or(bytes.len())].to_vec())
}

/// CUDA's message about a failed assertion.
fn assertion(record: &[u8], text: impl Fn(u64) -> Option<Vec<u8>>, out: &mut Vec<u8>) {
    let name = |at| String::from_utf8_lossy(&text(word(record, at)).unwrap_or_else(|| b"?".to_vec())).into_owned();
    let three = |at| [half(record, at), half(record, at + 4), half(record, at + 8)];
    let ([bx, by, bz], [tx, ty, tz]) = (three(40), three(52));
    let _ = writeln!(
        out,
        "{}:{}: {}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{}` failed.",
        name(24),
        half(record, 64),
        name(32),
        name(16),
    );
}

/// Writes to the C library's standard output, in order with what the program prints.
fn write_stdout(text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    if text.is_empty() {
        return;
    }
    // SAFETY: the C library's stream lives as long as the process.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
}

/// A C string for one conversion.
pub(super) fn c_string(mut bytes: Vec<u8>) -> CString {
    bytes.truncate(bytes.iter().position(|&c| c == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}
