//! Pinned host memory that the runtime itself uses: staging buffers of copies, kernel arguments.
//!
//! Chunks come in powers of two and are carved out of slabs that are never given back; a chunk returns to its list when
//! the operation that used it has ended. The smallest, which hold the arguments of most kernels, return to a list of the thread that lets go
//! of them, mostly the one that takes the next: no lock is needed there.

use core::ptr::NonNull;
use std::sync::Mutex;

use crate::abi::{Error, Result};
use crate::device::{self, Device};
use crate::hsa::memory;
use crate::prefetch;
use crate::thread_state::ThreadState;

/// Bytes of the largest chunk; also what copies move at a time.
pub const LARGEST: usize = 1 << 20;
/// Bytes of the smallest chunk: kernel arguments of most kernels.
const SMALLEST: usize = 256;
/// Least bytes asked of ROCr at once.
const SLAB: usize = 1 << 18;

/// Sizes of chunks: the powers of two from the smallest to the largest.
const CLASSES: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;

/// Addresses of idle chunks, by device ordinal and size.
static IDLE: Mutex<Vec<[Vec<usize>; CLASSES]>> = Mutex::new(Vec::new());

/// The list of one device and size.
fn list(idle: &mut Vec<[Vec<usize>; CLASSES]>, device: i32, size: usize) -> &mut Vec<usize> {
    let device = device.max(0) as usize;
    if idle.len() <= device {
        idle.resize_with(device + 1, Default::default);
    }
    &mut idle[device][(size / SMALLEST).trailing_zeros() as usize]
}

/// How many of the smallest chunks threads take from the common list, and give back to it, at a time.
const HANDFUL: usize = 32;

/// Bytes of a cache line. The arguments of most kernels take two.
const LINE: usize = 64;

/// A thread's own idle chunks of the smallest size, all of one device.
#[derive(Default)]
struct Own {
    device: i32,
    addresses: Vec<usize>,
}

impl Own {
    /// Gives all but `rest` to the common list.
    fn give_back(&mut self, rest: usize) {
        if self.addresses.len() > rest {
            let mut idle = IDLE.lock().unwrap_or_else(|e| e.into_inner());
            list(&mut idle, self.device, SMALLEST).extend(self.addresses.drain(rest..));
        }
    }

    /// Makes it a list of this device.
    fn turn_to(&mut self, device: i32) {
        if self.device != device {
            self.give_back(0);
            self.device = device;
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.give_back(0);
    }
}

thread_local! {
    static OWN: ThreadState<Own> = const { ThreadState::new(Own { device: 0, addresses: Vec::new() }) };
}

/// Takes up to `count` chunks of a size from the common list, which is filled up if it has none.
fn take(device: &'static Device, size: usize, count: usize, taken: &mut Vec<usize>) -> Result<()> {
    let mut idle = IDLE.lock().unwrap_or_else(|e| e.into_inner());
    let list = list(&mut idle, device.ordinal, size);
    if list.is_empty() {
        let slab = size.max(SLAB);
        let base = device.host_pool.allocate(slab)?;
        // Every GPU may use it: a copy between devices without a link goes through here.
        let agents: Vec<_> = device::all()?.iter().map(|device| device.agent).collect();
        memory::allow_access(&agents, base)?;
        list.extend((0..slab / size).rev().map(|index| base.addr().get() + index * size));
    }
    taken.extend(list.drain(list.len().saturating_sub(count)..));
    Ok(())
}

/// A piece of pinned memory that the host and every GPU can use.
#[derive(Debug)]
pub struct Chunk {
    address: NonNull<u8>,
    size: usize,
    device: i32,
}

// SAFETY: a chunk owns its memory.
unsafe impl Send for Chunk {}

impl Chunk {
    /// At least `size` bytes, aligned to 256, near `device`.
    ///
    /// # Errors
    /// INVALID_VALUE above [`LARGEST`]; MEMORY_ALLOCATION when the host has no more.
    pub fn new(device: &'static Device, size: usize) -> Result<Self> {
        if size > LARGEST {
            return Err(Error::INVALID_VALUE);
        }
        let size = size.next_power_of_two().max(SMALLEST);
        let address = if size == SMALLEST {
            ThreadState::change(&OWN, |own| {
                own.turn_to(device.ordinal);
                if own.addresses.is_empty() {
                    take(device, size, HANDFUL, &mut own.addresses)?;
                }
                let taken = own.addresses.pop();
                if let Some(&next) = own.addresses.last() {
                    let next = core::ptr::with_exposed_provenance::<u8>(next);
                    prefetch::for_write(next);
                    prefetch::for_write(next.wrapping_add(LINE));
                }
                Ok::<_, Error>(taken)
            })?
        } else {
            let mut taken = Vec::new();
            take(device, size, 1, &mut taken)?;
            taken.pop()
        };
        let address = address
            .and_then(|address| NonNull::new(address as *mut u8))
            .ok_or(Error::MEMORY_ALLOCATION)?;
        Ok(Self {
            address,
            size,
            device: device.ordinal,
        })
    }

    /// Where it is, for the host and the GPUs alike.
    pub fn address(&self) -> u64 {
        self.address.as_ptr() as u64
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The memory, for the host to write before or read after the GPU's turn.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: pinned host memory that this chunk alone owns; the GPU's turn is over or not begun.
        unsafe { core::slice::from_raw_parts_mut(self.address.as_ptr(), self.size) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let address = self.address.as_ptr() as usize;
        if self.size == SMALLEST {
            ThreadState::change(&OWN, |own| {
                own.turn_to(self.device);
                own.addresses.push(address);
                if own.addresses.len() > 8 * HANDFUL {
                    own.give_back(4 * HANDFUL);
                }
            });
        } else {
            let mut idle = IDLE.lock().unwrap_or_else(|e| e.into_inner());
            list(&mut idle, self.device, self.size).push(address);
        }
    }
}
