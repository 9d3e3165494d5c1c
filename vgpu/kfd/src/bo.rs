//! Buffer objects: what `ALLOC_MEMORY_OF_GPU` makes, and GEM handles on the same memory.

use std::collections::HashMap;

use crate::{
    abi::mem,
    process::{Gpu, Process},
    tables::{ExtentRef, HeapKind},
    vm::Mapping,
};

type Errno = i32;

/// Where a buffer's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// In a GPU's file.
    Extent {
        /// The shared entry.
        extent: ExtentRef,
        /// The GPU whose file it is.
        gpu: usize,
        /// Offset in the file, which is also the mmap offset on the render node.
        offset: u64,
    },
    /// In the application's own memory.
    User(u64),
    /// The doorbell pages of the owning GPU.
    Doorbells,
    /// The MMIO remap page.
    Mmio,
}

/// A buffer object.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// GPU virtual address at which it is mapped when it is.
    pub va: u64,
    /// Bytes.
    pub size: u64,
    /// `KFD_IOC_ALLOC_MEM_FLAGS_*`.
    pub flags: u32,
    /// The GPU it was allocated on.
    pub gpu: usize,
    /// Its bytes.
    pub backing: Backing,
    /// Bit i: mapped on GPU i.
    pub mapped: u32,
    /// Came by IPC or dma-buf.
    pub imported: bool,
    /// Came from another process.
    pub foreign: bool,
}

/// A GEM handle: a render node's name for a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GemObject {
    /// The shared entry.
    pub extent: ExtentRef,
    /// The GPU whose file it is.
    pub gpu: usize,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Allocation flags.
    pub flags: u32,
    /// From another process.
    pub foreign: bool,
    /// Where it is mapped on this node's GPU: address and size.
    pub mappings: Vec<(u64, u64)>,
}

/// All buffers of a process.
#[derive(Debug, Default)]
pub struct Buffers {
    last: u64,
    by_handle: HashMap<u64, Buffer>,
    /// GEM handles by render node and number.
    gems: HashMap<(usize, u32), GemObject>,
    /// How often this process holds each shared entry; at 0 the shared table hears of it.
    holds: HashMap<ExtentRef, u32>,
}

impl Buffers {
    /// Adds a buffer and returns its handle.
    pub fn insert(&mut self, gpu: &Gpu, buffer: Buffer) -> u64 {
        self.last += 1;
        let handle = u64::from(gpu.id) << 32 | self.last;
        self.by_handle.insert(handle, buffer);
        handle
    }

    /// The buffer of a handle.
    pub fn get(&self, handle: u64) -> Option<&Buffer> {
        self.by_handle.get(&handle)
    }

    /// Counts a hold of this process on a shared entry that [`Shared`](crate::shared::Shared) knows of.
    pub fn hold(&mut self, extent: ExtentRef) {
        *self.holds.entry(extent).or_insert(0) += 1;
    }

    fn unhold(&mut self, process: &Process, extent: ExtentRef) {
        if let Some(count) = self.holds.get_mut(&extent) {
            *count -= 1;
            if *count == 0 {
                self.holds.remove(&extent);
                process.shared.release(extent);
            }
        }
    }

    /// Maps a buffer on a GPU. Mapping twice is allowed and does nothing.
    ///
    /// # Errors
    /// `EINVAL`: no such buffer, something else is mapped there, or the GPU cannot reach another one's memory.
    pub fn map(&mut self, process: &Process, handle: u64, gpu: &Gpu) -> Result<(), Errno> {
        let buffer = self.by_handle.get_mut(&handle).ok_or(libc::EINVAL)?;
        if buffer.mapped >> gpu.index & 1 != 0 {
            return Ok(());
        }
        if let Backing::Extent { gpu: owner, .. } = buffer.backing
            && buffer.flags & mem::VRAM != 0
            && !process.reaches(gpu, owner)
        {
            log::info!("GPU {} cannot reach memory of GPU {owner}", gpu.index);
            return Err(libc::EINVAL);
        }
        let mapping = Mapping {
            size: buffer.size,
            host: host_address(process, buffer),
            writable: buffer.flags & mem::WRITABLE != 0,
            executable: buffer.flags & mem::EXECUTABLE != 0,
            foreign: buffer.foreign,
            user: matches!(buffer.backing, Backing::User(_)),
            // The program's own memory it may unmap at any time, before a cache has written anything back.
            coarse: buffer.flags & (mem::COHERENT | mem::UNCACHED) == 0 && !matches!(buffer.backing, Backing::User(_)),
        };
        process.svm.forget(process, buffer.va, buffer.size);
        if !gpu.vm.insert(buffer.va, mapping) {
            log::warn!(
                "GPU {}: {:#x}+{:#x} overlaps another mapping",
                gpu.index,
                buffer.va,
                buffer.size
            );
            return Err(libc::EINVAL);
        }
        buffer.mapped |= 1 << gpu.index;
        Ok(())
    }

    /// Unmaps a buffer from a GPU.
    ///
    /// # Errors
    /// `EINVAL`: no such buffer.
    pub fn unmap(&mut self, handle: u64, gpu: &Gpu) -> Result<(), Errno> {
        let buffer = self.by_handle.get_mut(&handle).ok_or(libc::EINVAL)?;
        if buffer.mapped >> gpu.index & 1 != 0 {
            buffer.mapped &= !(1 << gpu.index);
            gpu.vm.remove(buffer.va);
        }
        Ok(())
    }

    /// Frees a buffer.
    ///
    /// # Errors
    /// `EINVAL`: no such buffer. `EBUSY`: still mapped.
    pub fn free(&mut self, process: &Process, handle: u64) -> Result<(), Errno> {
        let buffer = *self.by_handle.get(&handle).ok_or(libc::EINVAL)?;
        if buffer.mapped != 0 {
            log::debug!("buffer {:#x} is freed while mapped", buffer.va);
            return Err(libc::EBUSY);
        }
        self.by_handle.remove(&handle);
        if let Backing::Extent { extent, .. } = buffer.backing {
            if !buffer.imported {
                process.shared.ipc_withdraw(extent);
            }
            self.unhold(process, extent);
        }
        Ok(())
    }

    /// A render node's handle for a buffer that this process holds: the same one as long as it is open.
    pub fn gem_import(&mut self, process: &Process, node: usize, object: GemObject) -> u32 {
        let known = self
            .gems
            .iter()
            .find(|((n, _), gem)| *n == node && gem.extent == object.extent);
        if let Some(((_, handle), _)) = known {
            let handle = *handle;
            self.unhold(process, object.extent);
            return handle;
        }
        let handle = (1..)
            .find(|handle| !self.gems.contains_key(&(node, *handle)))
            .unwrap_or(0);
        self.gems.insert((node, handle), object);
        handle
    }

    /// The buffer of a GEM handle.
    pub fn gem(&mut self, node: usize, handle: u32) -> Option<&mut GemObject> {
        self.gems.get_mut(&(node, handle))
    }

    /// Closes a GEM handle; mappings made through it go.
    ///
    /// # Errors
    /// `EINVAL`: no such handle.
    pub fn gem_close(&mut self, process: &Process, node: usize, handle: u32) -> Result<(), Errno> {
        let object = self.gems.remove(&(node, handle)).ok_or(libc::EINVAL)?;
        for (va, size) in object.mappings {
            process.gpus[node].vm.clear(va, size);
        }
        self.unhold(process, object.extent);
        Ok(())
    }
}

impl GemObject {
    /// A new object without mappings.
    pub fn new(extent: ExtentRef, gpu: usize, offset: u64, size: u64, flags: u32, foreign: bool) -> Self {
        Self {
            extent,
            gpu,
            offset,
            size,
            flags,
            foreign,
            mappings: Vec::new(),
        }
    }
}

/// Address in this process of a buffer's first byte.
fn host_address(process: &Process, buffer: &Buffer) -> usize {
    match buffer.backing {
        Backing::Extent { gpu, offset, .. } => process.gpus[gpu].at(offset),
        Backing::User(address) => address as usize,
        Backing::Doorbells => process.gpus[buffer.gpu].doorbell_pages(),
        Backing::Mmio => process.mmio_page(),
    }
}

/// The heap that allocation flags ask for, if they ask for one.
pub fn heap_of(flags: u32) -> Option<HeapKind> {
    if flags & mem::VRAM != 0 {
        Some(HeapKind::Vram)
    } else if flags & mem::GTT != 0 {
        Some(HeapKind::Gtt)
    } else {
        None
    }
}
