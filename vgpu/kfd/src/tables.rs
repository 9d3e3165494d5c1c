//! Who has which part of the GPUs' memory: one table in shared memory for all processes of a virtual machine.
//!
//! A process may die between any two stores to it, so the entries alone are the truth: an entry exists from the moment its
//! `id` is stored, and lists, sums and cursors can be rebuilt from the entries.

use std::sync::atomic::{Ordering, fence};

use crate::{config::MAX_GPUS, shared::SLOTS};

/// Buffers that can exist on one virtual machine at a time.
const EXTENTS: usize = 1 << 16;
/// Two heaps per GPU.
const HEAPS: usize = 2 * MAX_GPUS as usize;
/// Offsets in a GPU's file are handed out from a space this many times larger than its memory, so that fragmentation
/// never refuses what the byte count allows (the card has page tables for that).
const SPREAD: u64 = 4;
/// Granule of allocations.
pub const PAGE: u64 = 4096;
/// Buffers of this size and more start on a huge page, as the driver places them.
const HUGE: u64 = 2 << 20;
/// No entry; no slot.
pub const NONE: u32 = u32::MAX;

/// One of the two kinds of memory that a GPU's file backs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapKind {
    /// Device memory.
    Vram,
    /// Host memory that the driver allocates for the device.
    Gtt,
}

/// Where each heap is in a GPU's file.
#[derive(Clone, Copy, Debug)]
pub struct HeapLayout {
    memory: u64,
}

impl HeapLayout {
    /// The layout for GPUs with `memory` bytes.
    pub fn new(memory: u64) -> Self {
        Self { memory }
    }

    /// Length of the file, and of each process's mapping of it.
    pub fn file_len(self) -> u64 {
        2 * SPREAD * self.memory
    }

    /// Offsets of a heap: from (inclusive) to (exclusive).
    fn span(self, kind: HeapKind) -> (u64, u64) {
        match kind {
            // Offset 0 is never given out: libhsakmt takes an mmap offset of 0 for "no mapping".
            HeapKind::Vram => (HUGE, SPREAD * self.memory),
            HeapKind::Gtt => (SPREAD * self.memory, 2 * SPREAD * self.memory),
        }
    }
}

/// The number of a heap of a GPU.
pub fn heap_number(gpu: usize, kind: HeapKind) -> usize {
    2 * gpu + usize::from(kind == HeapKind::Gtt)
}

fn heap_kind(heap: usize) -> HeapKind {
    if heap.is_multiple_of(2) {
        HeapKind::Vram
    } else {
        HeapKind::Gtt
    }
}

/// A reference to a buffer as one process holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExtentRef {
    /// Index in the table.
    pub index: u32,
    /// The entry's id.
    pub id: u64,
}

/// A buffer in device or GTT memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    /// Never reused; 0 marks a free entry. Written last when an entry is made and first when it is dropped.
    pub id: u64,
    /// First byte in the GPU's file.
    pub offset: u64,
    /// Bytes, a multiple of the page size.
    pub size: u64,
    /// Bit i: the process in slot i holds it.
    holders: [u64; SLOTS / 64],
    /// The IPC handle under which others may open it; zeros for none.
    pub ipc_key: [u32; 4],
    /// `HsaMemFlags` that the exporter passed; importers get them back.
    pub ipc_flags: u32,
    /// `KFD_IOC_ALLOC_MEM_FLAGS_*` of the allocation.
    pub flags: u32,
    /// The slot that allocated it.
    pub owner: u32,
    /// Heap number: `2 * gpu`, plus 1 for GTT.
    heap: u32,
    /// Not 0: a dma-buf of it has been handed out and may be alive.
    pub exported: u32,
    next: u32,
    prev: u32,
    pad: u32,
}

impl Extent {
    /// The GPU whose file holds it.
    pub fn gpu(&self) -> usize {
        self.heap as usize / 2
    }

    fn end(&self) -> u64 {
        self.offset + self.size
    }

    /// Notes a holder.
    pub fn hold(&mut self, slot: usize) {
        self.holders[slot / 64] |= 1 << (slot % 64);
    }

    /// Takes a holder away; whether it was one.
    pub fn unhold(&mut self, slot: usize) -> bool {
        let bit = 1 << (slot % 64);
        let was = self.holders[slot / 64] & bit != 0;
        self.holders[slot / 64] &= !bit;
        was
    }

    /// Whether any process holds it.
    pub fn held(&self) -> bool {
        self.holders.iter().any(|word| *word != 0)
    }
}

/// What the mutex protects. Entries `0..HEAPS` of `extents` are list heads, one per heap, in address order.
#[repr(C)]
pub struct Tables {
    next_id: u64,
    used: [u64; HEAPS],
    limit: [u64; HEAPS],
    cursor: [u32; HEAPS],
    /// First entry of the list of free ones.
    free: u32,
    /// Entries from here on were never used; nobody looks at them, so they take no memory.
    top: u32,
    extents: [Extent; EXTENTS],
}

impl Tables {
    /// An empty machine whose GPUs give out `memory` bytes each, on a host with `host_memory`.
    pub fn reset(&mut self, layout: HeapLayout, memory: u64, host_memory: u64) {
        self.next_id = 1;
        self.top = HEAPS as u32;
        for heap in 0..HEAPS {
            let kind = heap_kind(heap);
            self.limit[heap] = if kind == HeapKind::Vram {
                memory
            } else {
                host_memory.min(layout.span(kind).1 / 2)
            };
            let head = &mut self.extents[heap];
            head.heap = heap as u32;
            (head.offset, head.size) = (layout.span(kind).0, 0);
        }
        self.rebuild();
    }

    /// Makes lists, sums and cursors anew from the entries alone: the owner of the mutex may have died half way.
    pub fn rebuild(&mut self) {
        self.used = [0; HEAPS];
        let mut live: Vec<u32> = Vec::new();
        self.free = NONE;
        for index in (HEAPS as u32..self.top.min(EXTENTS as u32)).rev() {
            let extent = &mut self.extents[index as usize];
            if extent.id == 0 {
                extent.next = self.free;
                self.free = index;
            } else {
                live.push(index);
            }
        }
        live.sort_by_key(|index| (self.extents[*index as usize].heap, self.extents[*index as usize].offset));
        for heap in 0..HEAPS as u32 {
            self.cursor[heap as usize] = heap;
            self.extents[heap as usize].next = NONE;
            self.extents[heap as usize].prev = NONE;
        }
        let mut last: Vec<u32> = (0..HEAPS as u32).collect();
        for index in live {
            let heap = self.extents[index as usize].heap as usize;
            self.used[heap] += self.extents[index as usize].size;
            self.extents[index as usize].prev = last[heap];
            self.extents[index as usize].next = NONE;
            self.extents[last[heap] as usize].next = index;
            last[heap] = index;
        }
    }

    /// Takes `size` bytes of a heap for `slot`: next fit, address order.
    pub fn allocate(&mut self, layout: HeapLayout, heap: usize, size: u64, flags: u32, slot: usize) -> Option<u32> {
        if self.used[heap].checked_add(size)? > self.limit[heap] {
            return None;
        }
        let kind = heap_kind(heap);
        let align = if size >= HUGE { HUGE } else { PAGE };
        let space_end = layout.span(kind).1;
        let fits = |tables: &Self, at: u32| {
            let start = tables.extents[at as usize].end().next_multiple_of(align);
            let next = tables.extents[at as usize].next;
            let end = if next == NONE {
                space_end
            } else {
                tables.extents[next as usize].offset
            };
            (start.saturating_add(size) <= end).then_some(start)
        };
        let mut at = self.cursor[heap];
        let mut wrapped = false;
        let offset = loop {
            if let Some(offset) = fits(self, at) {
                break offset;
            }
            at = self.extents[at as usize].next;
            if at == NONE {
                if wrapped {
                    return None;
                }
                (at, wrapped) = (heap as u32, true);
            }
        };

        let index = self.free;
        if index != NONE {
            self.free = self.extents[index as usize].next;
        }
        let index = match index {
            NONE if self.top as usize == EXTENTS => return None,
            NONE => {
                let index = self.top;
                self.extents[index as usize].id = 0;
                self.top += 1;
                index
            }
            index => index,
        };
        let next = self.extents[at as usize].next;
        let id = self.next_id;
        self.next_id += 1;
        let extent = &mut self.extents[index as usize];
        *extent = Extent {
            id: 0,
            offset,
            size,
            holders: [0; SLOTS / 64],
            ipc_key: [0; 4],
            ipc_flags: 0,
            flags,
            owner: slot as u32,
            heap: heap as u32,
            exported: 0,
            next,
            prev: at,
            pad: 0,
        };
        extent.hold(slot);
        // Committed only now: a process killed above leaves an entry that rebuild() takes for free.
        fence(Ordering::Release);
        extent.id = id;
        self.extents[at as usize].next = index;
        if next != NONE {
            self.extents[next as usize].prev = index;
        }
        self.used[heap] += size;
        self.cursor[heap] = index;
        Some(index)
    }

    /// Drops an entry.
    pub fn unlink(&mut self, index: u32) {
        let extent = self.extents[index as usize];
        let heap = extent.heap as usize;
        self.extents[index as usize].id = 0;
        self.extents[extent.prev as usize].next = extent.next;
        if extent.next != NONE {
            self.extents[extent.next as usize].prev = extent.prev;
        }
        self.used[heap] -= extent.size;
        if self.cursor[heap] == index {
            self.cursor[heap] = extent.prev;
        }
        self.extents[index as usize].next = self.free;
        self.free = index;
    }

    /// The live entry that an index and an id name together.
    pub fn extent(&self, index: u32, id: u64) -> Option<&Extent> {
        self.extents
            .get(index as usize)
            .filter(|extent| index < self.top && id != 0 && extent.id == id)
    }

    /// As [`extent`](Self::extent), to change it.
    pub fn extent_mut(&mut self, extent: ExtentRef) -> Option<&mut Extent> {
        let in_use = extent.index < self.top && extent.id != 0;
        self.extents
            .get_mut(extent.index as usize)
            .filter(|found| in_use && found.id == extent.id)
    }

    /// All entries that may be live; those with id 0 are not.
    pub fn indices(&self) -> std::ops::Range<u32> {
        HEAPS as u32..self.top.min(EXTENTS as u32)
    }

    /// An entry, live or not.
    pub fn entry(&self, index: u32) -> &Extent {
        &self.extents[index as usize]
    }

    /// As [`entry`](Self::entry), to change it.
    pub fn entry_mut(&mut self, index: u32) -> &mut Extent {
        &mut self.extents[index as usize]
    }

    /// Bytes of a heap that are not allocated.
    pub fn unused(&self, heap: usize) -> u64 {
        self.limit[heap] - self.used[heap]
    }

    /// The reference to a live entry.
    pub fn reference(&self, index: u32) -> Option<ExtentRef> {
        let id = self.extents.get(index as usize)?.id;
        (id != 0).then_some(ExtentRef { index, id })
    }

    /// The entry whose IPC handle is `key`.
    pub fn find_ipc(&self, key: [u32; 4]) -> Option<u32> {
        // The handle carries the index, so that nothing needs searching; the rest of it is random.
        let index = key[0];
        let extent = self
            .extents
            .get(index as usize)
            .filter(|_| (HEAPS as u32..self.top).contains(&index))?;
        (extent.id != 0 && key != [0; 4] && extent.ipc_key == key).then_some(index)
    }
}
