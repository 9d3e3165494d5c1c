//! What a context offers its kernels while they run: the `printf` ring, the heap of device-side `malloc`, and the workspace of
//! cooperative launches. Made when the first kernel that uses it is launched, with the limits of that moment.

use core::ptr::NonNull;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use kernels_ptx_translate::protocol::{DEVICE_HEAP_HEADER, GRID_WORKSPACE};

use super::printf::Ring;
use crate::abi::{CUlimit, Error, Result};
use crate::device::Context;
use crate::hsa;
use crate::stream::copy;

/// Smallest heap that is any use.
const SMALLEST_HEAP: usize = 4096;

/// A block of device memory that only kernels use.
pub struct Block {
    base: NonNull<u8>,
}

// SAFETY: device memory, which the host never follows the pointer to.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// `size` bytes on the context's device, of which the first are `header`.
    fn with_header(context: &'static Context, size: usize, header: &[u8]) -> Result<Arc<Self>> {
        let base = context.device.pool.allocate(size)?;
        let block = Arc::new(Self { base });
        let stream = context.streams()?.internal();
        copy::upload_raw(&stream, context.device, block.address(), header)?;
        stream.synchronize()?;
        Ok(block)
    }

    /// A heap of `size` bytes on the context's device; its layout is drawn in `kernels_ptx_translate::protocol`.
    fn heap(context: &'static Context, size: usize) -> Result<Arc<Self>> {
        let size = size.max(SMALLEST_HEAP).next_multiple_of(16);
        let total = size
            .checked_add(DEVICE_HEAP_HEADER as usize)
            .ok_or(Error::INVALID_VALUE)?;
        let mut header = vec![0u8; DEVICE_HEAP_HEADER as usize];
        header[..8].copy_from_slice(&DEVICE_HEAP_HEADER.to_le_bytes());
        header[8..16].copy_from_slice(&(total as u64).to_le_bytes());
        Self::with_header(context, total, &header)
    }

    /// A grid workspace; its layout is drawn in `kernels_ptx_translate::protocol`.
    fn grid_workspace(context: &'static Context) -> Result<Arc<Self>> {
        Self::with_header(context, GRID_WORKSPACE as usize, &GRID_WORKSPACE.to_le_bytes())
    }

    /// Its address, for kernels.
    pub fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`; contexts wait for their kernels before they end.
        let _ = unsafe { hsa::memory::free(self.base) };
    }
}

#[derive(Default)]
struct Services {
    ring: Option<Arc<Ring>>,
    heap: Option<Arc<Block>>,
    grid_workspace: Option<Arc<Block>>,
}

/// By the id of the context's streams.
static SERVICES: Mutex<Option<HashMap<u64, Services>>> = Mutex::new(None);

fn limit(context: &Context, limit: CUlimit) -> Result<usize> {
    context.settings().limit(limit, context.device)
}

/// The ring that kernels of `context` print to.
///
/// # Errors
/// MEMORY_ALLOCATION.
pub fn ring(context: &'static Context) -> Result<Arc<Ring>> {
    let owner = context.streams()?.id();
    let size = limit(context, CUlimit::PRINTF_FIFO_SIZE)?;
    let mut services = SERVICES.lock().unwrap_or_else(|e| e.into_inner());
    let mine = services.get_or_insert_with(HashMap::new).entry(owner).or_default();
    match &mine.ring {
        Some(ring) => Ok(Arc::clone(ring)),
        None => Ok(Arc::clone(mine.ring.insert(Ring::new(context, size)?))),
    }
}

/// The heap that kernels of `context` allocate from.
///
/// # Errors
/// MEMORY_ALLOCATION.
pub fn heap(context: &'static Context) -> Result<Arc<Block>> {
    let owner = context.streams()?.id();
    let size = limit(context, CUlimit::MALLOC_HEAP_SIZE)?;
    let mut services = SERVICES.lock().unwrap_or_else(|e| e.into_inner());
    let mine = services.get_or_insert_with(HashMap::new).entry(owner).or_default();
    match &mine.heap {
        Some(heap) => Ok(Arc::clone(heap)),
        None => Ok(Arc::clone(mine.heap.insert(Block::heap(context, size)?))),
    }
}

/// The workspace of the cooperative launches in `context`, which run one after the other.
///
/// # Errors
/// MEMORY_ALLOCATION.
pub fn grid_workspace(context: &'static Context) -> Result<Arc<Block>> {
    let owner = context.streams()?.id();
    let mut services = SERVICES.lock().unwrap_or_else(|e| e.into_inner());
    let mine = services.get_or_insert_with(HashMap::new).entry(owner).or_default();
    match &mine.grid_workspace {
        Some(workspace) => Ok(Arc::clone(workspace)),
        None => Ok(Arc::clone(mine.grid_workspace.insert(Block::grid_workspace(context)?))),
    }
}

/// Prints what is left and gives everything back.
pub(super) fn context_ended(owner: u64) {
    let services = SERVICES
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .as_mut()
        .and_then(|all| all.remove(&owner));
    if let Some(ring) = services.and_then(|services| services.ring) {
        ring.drain();
    }
}
