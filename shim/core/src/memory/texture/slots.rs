//! Where descriptors of objects lie: places in blocks of device memory that are never moved.
//!
//! A place whose object is gone keeps its bytes, because kernels on their way may still read them, until its context has been
//! waited for; only then it is written again.

use std::sync::{Mutex, MutexGuard};

use kernels_ptx_translate::texture::{Descriptor, SIZE};

use crate::abi::Result;
use crate::device::Context;
use crate::memory::unlisted::Unlisted;
use crate::stream::copy;

/// Places in a block.
const IN_BLOCK: u64 = 100;

/// The places of one context.
struct Slots {
    context: &'static Context,
    blocks: Vec<Unlisted>,
    /// Never used, or not since the context was last waited for.
    free: Vec<u64>,
    /// Without an object, perhaps still read.
    left: Vec<u64>,
}

static ALL: Mutex<Vec<Slots>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<Slots>> {
    ALL.lock().unwrap_or_else(|e| e.into_inner())
}

/// A place with a descriptor; it is left when this is dropped.
#[derive(Debug)]
pub struct Slot {
    address: u64,
    context: &'static Context,
}

impl Slot {
    /// Its address, as kernels know it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Who owns it.
    pub fn context(&self) -> &'static Context {
        self.context
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slots) = all().iter_mut().find(|slots| slots.context == self.context)
            && slots.blocks.iter().any(|block| contains(block, self.address))
        {
            slots.left.push(self.address);
        }
    }
}

fn contains(block: &Unlisted, address: u64) -> bool {
    address.wrapping_sub(block.address()) < block.size()
}

/// Puts a descriptor into device memory.
///
/// # Errors
/// MEMORY_ALLOCATION, and the failure of the context.
pub fn take(context: &'static Context, descriptor: &Descriptor) -> Result<Slot> {
    let slot = Slot {
        address: place(context)?,
        context,
    };
    let stream = context.streams()?.internal();
    copy::upload_raw(&stream, context.device, slot.address, &descriptor.bytes())?;
    stream.synchronize()?;
    Ok(slot)
}

/// A place that nobody reads.
fn place(context: &'static Context) -> Result<u64> {
    if let Some(address) = free_place(context) {
        return Ok(address);
    }
    let block = Unlisted::new(context, SIZE * IN_BLOCK as usize)?;
    let first = block.address();
    let mut all = all();
    let slots = of(&mut all, context);
    slots.blocks.push(block);
    slots
        .free
        .extend((1..IN_BLOCK).rev().map(|at| first + at * SIZE as u64));
    Ok(first)
}

fn of<'a>(all: &'a mut Vec<Slots>, context: &'static Context) -> &'a mut Slots {
    let at = all
        .iter()
        .position(|slots| slots.context == context)
        .unwrap_or(all.len());
    if at == all.len() {
        all.push(Slots {
            context,
            blocks: Vec::new(),
            free: Vec::new(),
            left: Vec::new(),
        });
    }
    &mut all[at]
}

fn free_place(context: &'static Context) -> Option<u64> {
    let left = {
        let mut all = all();
        let slots = of(&mut all, context);
        if let Some(address) = slots.free.pop() {
            return Some(address);
        }
        if slots.left.len() < IN_BLOCK as usize {
            return None;
        }
        std::mem::take(&mut slots.left)
    };
    // No lock is held while others' kernels are waited for.
    let waited = context.synchronize().is_ok();
    let mut all = all();
    let slots = of(&mut all, context);
    if waited {
        slots.free.extend(left);
    } else {
        slots.left.extend(left);
    }
    slots.free.pop()
}

/// The blocks of a context that has ended.
pub(crate) struct Ended(#[allow(dead_code, reason = "held for its memory")] Vec<Unlisted>);

/// Takes the places of a context out of the table.
pub fn take_all(context: &'static Context) -> Ended {
    let mut all = all();
    let at = all.iter().position(|slots| slots.context == context);
    Ended(at.map_or_else(Vec::new, |at| all.swap_remove(at).blocks))
}
