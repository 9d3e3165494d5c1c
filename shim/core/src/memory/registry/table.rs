//! From an address to the blocks of its page.
//!
//! Three levels of arrays, each entry of which is nothing, one block that covers the entry's whole span, or the next level:
//!
//! ```text
//! address   46..30: roots (1 GiB each)   29..21: 512 mids (2 MiB)   20..12: 512 leaves (4 KiB)   11..0
//!
//! entry     0            nothing here                  -> miss, at the first or the second level for nearly all host memory
//!           pointer | 1  the next level, or at the last level the shared page
//!           else         a block that covers the span (all but its ends), in one word with what is asked most:
//!
//!           63..52      51..47   46..6     5   4   3..2     1         0
//!           last byte   device   pointer   0   1   memory   whole     0
//!           in page                                type     run
//! ```
//!
//! *Memory type* is `cudaMemoryType`'s number where this word is the whole answer ([`Glance`]): the memory has one address, everybody's
//! rights to it are the same, and of the page it covers the bytes from the first to the last that is named. Otherwise it is 0, and
//! the block's description says if the byte is in it. *Whole run*, at the last level and in the first of 16 aligned entries: this one
//! stands for all 16, of which the others are 0.
//!
//! A word is read at once, so what it says was true at that moment; whoever asks for one answer after another while the memory is being
//! freed may hear of one page that it is gone and of the next that it is there.
//!
//! The design asked for two levels; with them a block of 100 GiB would be 25 million entries to write. Spans keep that to a few
//! hundred, and the runs of 16 a block of 1 MiB to 16. A page on which several blocks lie (registered host memory need not be
//! aligned) has a [`SharedPage`].
//!
//! Levels and shared pages are never freed: readers walk them without a lock. They are bounded by the address ranges that were
//! ever used, 4 KiB for each 2 MiB.

use core::hint::cold_path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::block::{Block, Description, Entry, Kind};
use super::slab::Slab;
use super::sync::{AtomicPtr, AtomicUsize, array, constant};

/// End of the address space of user programs.
pub(super) const ADDRESS_SPACE: u64 = 1 << ADDRESS_BITS;

const ADDRESS_BITS: u32 = ROOT_BITS + ROOTS.trailing_zeros();
const PAGE_BITS: u32 = 12;
const MID_BITS: u32 = PAGE_BITS + FAN_OUT.trailing_zeros();
const ROOT_BITS: u32 = MID_BITS + FAN_OUT.trailing_zeros();
// The model checker follows every entry: there the levels are as small as they can be.
const ROOTS: usize = if cfg!(loom) { 2 } else { 1 << 17 };
const FAN_OUT: usize = if cfg!(loom) { 4 } else { 512 };
/// Leaves that the first of them may stand for.
const RUN: usize = if cfg!(loom) { 2 } else { 16 };
const RUN_BITS: u32 = PAGE_BITS + RUN.trailing_zeros();

/// Bit 0 of an entry: the pointer is that of the next level.
const NEXT: usize = 1;
/// Bit 1: the block covers the run that the entry begins.
const WHOLE_RUN: usize = 2;
/// Bit 4: a block covers the span.
const COVERS: usize = 16;
/// Where the memory type begins.
const MEMORY: u32 = 2;
/// Blocks are aligned to a line of the cache, and lie in the address space of user programs, whatever the size of the table.
const POINTER: usize = (1 << DEVICE) - 64;
/// Where the device begins.
const DEVICE: u32 = 47;
/// Where the last byte begins: at the top, so that an address moved there compares with the whole word.
const LAST_BYTE: u32 = usize::BITS - PAGE_BITS;
/// Devices from this number on have no room in an entry.
const DEVICES: i32 = 1 << (LAST_BYTE - DEVICE);

/// What one entry alone says about an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glance {
    /// No block holds it.
    Unknown,
    /// Memory with one address for host and GPUs, on which everybody has the same rights.
    Plain {
        /// [`Kind::memory_type`].
        memory: u32,
        /// The ordinal of the device whose context owns it.
        device: i32,
    },
    /// There is more to say: look the whole entry up.
    More,
}

/// What entries say of a block beside where it is.
#[derive(Clone, Copy)]
pub(super) struct Says {
    bits: usize,
    base: u64,
    end: u64,
}

impl Says {
    /// What is true of `description` on every page that it covers from the page's first byte on.
    pub(super) fn of(description: &Description) -> Self {
        let &Description { kind, base, size, .. } = description;
        let device = description.context.ordinal();
        // Each device has rights of its own, which are in `more`; to imported pools too.
        let by_device = match kind {
            Kind::Pool | Kind::Mapping | Kind::HostMapping => true,
            Kind::Imported => description.more != 0,
            _ => false,
        };
        let plain = !by_device && description.device_base == base && (0..DEVICES).contains(&device);
        let bits = if plain {
            (kind.memory_type() as usize) << MEMORY | (device as usize) << DEVICE
        } else {
            0
        };
        Self {
            bits,
            base,
            end: base + size,
        }
    }

    /// That the block has to be asked.
    pub(super) fn nothing() -> Self {
        Self {
            bits: 0,
            base: 0,
            end: 0,
        }
    }

    /// On the page (or the span) that starts at `start`, some of which the block covers.
    fn on(self, start: u64) -> usize {
        if self.bits == 0 || self.base > start {
            return 0;
        }
        let last = (self.end - start).min(1 << PAGE_BITS) - 1;
        self.bits | (last as usize) << LAST_BYTE
    }
}

/// One entry of a level.
struct Slot(AtomicUsize);

/// 512 entries, or at the last level as many leaves.
#[repr(align(64))]
struct Level([Slot; FAN_OUT]);

/// Blocks that share a page, and more of them if there are many.
#[repr(align(64))]
struct SharedPage {
    blocks: [AtomicPtr<Block>; 6],
    next: AtomicPtr<SharedPage>,
}

/// The roots, 1 MiB of zeroes of which only what is used becomes memory.
pub(super) struct Table {
    roots: [Slot; ROOTS],
    /// Where look-ups go from a root that is 0. Stays empty.
    empty: Level,
}

enum Content<'a, T> {
    Nothing,
    Covered(&'static Block),
    Next(&'a T),
}

impl Slot {
    constant! {
        fn new() -> Self {
            Self(AtomicUsize::new(0))
        }
    }

    #[inline]
    fn word(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    fn load<T>(&self) -> Content<'_, T> {
        let word = self.word();
        if word == 0 {
            return Content::Nothing;
        }
        // SAFETY: blocks and `T`s in slots are leaked, and each slot's `T` is that of its level.
        unsafe {
            if word & NEXT == 0 {
                Content::Covered(block_of(word))
            } else {
                Content::Next(next_of(word))
            }
        }
    }

    /// Points at a block; `more` is what else the entry says.
    fn cover(&self, block: &'static Block, more: usize) {
        let pointer = core::ptr::from_ref(block).expose_provenance();
        self.0.store(pointer | COVERS | more, Ordering::Release);
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Whether it points at `block`, as one that covers the whole run or as one that does not.
    fn is_covered_by(&self, block: &'static Block, run: usize) -> bool {
        self.0.load(Ordering::Relaxed) & (POINTER | NEXT | WHOLE_RUN) == core::ptr::from_ref(block).addr() | run
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// The next level, made if there is none. Only the writer calls it. A block that covers the span cannot be there: another
    /// block in it would overlap.
    fn next<T: 'static>(&self, make: impl FnOnce() -> &'static T) -> &T {
        match self.load() {
            Content::Next(next) => next,
            Content::Nothing | Content::Covered(_) => {
                let next = make();
                self.point_at(next);
                next
            }
        }
    }

    fn point_at<T: 'static>(&self, next: &'static T) {
        let pointer = core::ptr::from_ref(next).expose_provenance();
        self.0.store(pointer | NEXT, Ordering::Release);
    }
}

/// # Safety
/// `word` is an entry that a block covers.
#[inline]
unsafe fn block_of(word: usize) -> &'static Block {
    // SAFETY: blocks are leaked, the caller promises that this is one's address.
    unsafe { &*core::ptr::with_exposed_provenance::<Block>(word & POINTER) }
}

/// # Safety
/// `word` is an entry that leads to a `T`, which is leaked.
#[inline]
unsafe fn next_of<'a, T>(word: usize) -> &'a T {
    // SAFETY: the caller's promise.
    unsafe { &*core::ptr::with_exposed_provenance::<T>(word - NEXT) }
}

impl Level {
    /// An empty one. Levels of all tables lie side by side.
    fn new() -> &'static Self {
        // Not one of the model checker's: it outlives a run of the model, and nothing happens with it locked.
        static LEVELS: std::sync::Mutex<Slab<Level>> = std::sync::Mutex::new(Slab::new());
        let mut levels = LEVELS.lock().unwrap_or_else(PoisonError::into_inner);
        levels.put(Self(array![Slot::new(); FAN_OUT]))
    }
}

impl SharedPage {
    fn new() -> Self {
        Self {
            blocks: array![AtomicPtr::new(core::ptr::null_mut()); 6],
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    #[cold]
    fn find(&self, address: u64) -> Option<Entry> {
        let mut page = Some(self);
        while let Some(current) = page {
            for block in &current.blocks {
                // SAFETY: NULL or a leaked block.
                let block = unsafe { block.load(Ordering::Acquire).as_ref() };
                if let Some(entry) = block.and_then(Block::read).filter(|entry| entry.contains(address)) {
                    return Some(entry);
                }
            }
            page = current.next();
        }
        None
    }

    fn block(&self, base: u64) -> Option<&'static Block> {
        let mut page = Some(self);
        while let Some(current) = page {
            for block in &current.blocks {
                // SAFETY: NULL or a leaked block.
                let block: Option<&'static Block> = unsafe { block.load(Ordering::Acquire).as_ref() };
                if let Some(block) = block.filter(|block| block.read().is_some_and(|entry| entry.base == base)) {
                    return Some(block);
                }
            }
            page = current.next();
        }
        None
    }

    fn next(&self) -> Option<&SharedPage> {
        // SAFETY: NULL or a leaked page.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn add(&self, block: &'static Block) {
        let mut page = self;
        loop {
            if let Some(free) = page.blocks.iter().find(|slot| slot.load(Ordering::Relaxed).is_null()) {
                free.store(core::ptr::from_ref(block).cast_mut(), Ordering::Release);
                return;
            }
            page = page.next().unwrap_or_else(|| {
                let next = Box::leak(Box::new(SharedPage::new()));
                page.next.store(next, Ordering::Release);
                next
            });
        }
    }

    fn take_out(&self, block: &'static Block) {
        let mut page = Some(self);
        while let Some(current) = page {
            for slot in &current.blocks {
                if core::ptr::eq(slot.load(Ordering::Relaxed), block) {
                    slot.store(core::ptr::null_mut(), Ordering::Release);
                }
            }
            page = current.next();
        }
    }
}

fn root(address: u64) -> usize {
    (address >> ROOT_BITS) as usize
}

fn mid(address: u64) -> usize {
    (address >> MID_BITS) as usize % FAN_OUT
}

fn leaf(address: u64) -> usize {
    (address >> PAGE_BITS) as usize % FAN_OUT
}

impl Table {
    constant! {
        pub(super) fn new() -> Self {
            Self {
                roots: array![Slot::new(); ROOTS],
                empty: Level(array![Slot::new(); FAN_OUT]),
            }
        }
    }

    /// The last entry on the way to `address`: 0, the block's, or that of the shared page.
    #[inline(always)]
    fn word(&self, address: u64) -> usize {
        let Some(slot) = self.roots.get(root(address)) else {
            cold_path();
            return 0;
        };
        let word = slot.word();
        if word & COVERS != 0 {
            cold_path();
            return word;
        }
        // A choice of two addresses, not a branch: host memory lies in the gigabytes of blocks as well as in others, and the processor
        // would guess wrong each second time.
        let mids: &Level = match word {
            0 => &self.empty,
            // SAFETY: a root leads to a level, which is leaked.
            word => unsafe { next_of(word) },
        };
        let word = mids.0[mid(address)].word();
        // The usual address is host memory, and ends here.
        if word & NEXT == 0 {
            return word;
        }
        // SAFETY: so does a mid.
        let leaves: &Level = unsafe { next_of(word) };
        let at = leaf(address);
        let word = leaves.0[at].word();
        if word != 0 {
            return word;
        }
        // The way to a small block is straight.
        cold_path();
        let run = leaves.0[at & !(RUN - 1)].word();
        if run & WHOLE_RUN != 0 { run } else { 0 }
    }

    /// What is to be said about `address` without a look at its block.
    #[inline(always)]
    pub(super) fn glance(&self, address: u64) -> Glance {
        let word = self.word(address);
        let memory = (word >> MEMORY) as u32 & 3;
        if memory == 0 {
            if word == 0 {
                return Glance::Unknown;
            }
            cold_path();
            return Glance::More;
        }
        // What lies below the last byte in the word makes it no smaller than the last byte alone.
        if address << LAST_BYTE > word as u64 {
            cold_path();
            return Glance::Unknown;
        }
        Glance::Plain {
            memory,
            device: (word >> DEVICE) as i32 & (DEVICES - 1),
        }
    }

    /// The entry of the block that holds `address`.
    #[inline(always)]
    pub(super) fn find(&self, address: u64) -> Option<Entry> {
        let word = self.word(address);
        if word == 0 {
            return None;
        }
        if word & NEXT != 0 {
            // SAFETY: past the last level lie shared pages, which are leaked.
            return unsafe { next_of::<SharedPage>(word) }.find(address);
        }
        // SAFETY: what leads nowhere is a block's.
        unsafe { block_of(word) }.read().filter(|entry| entry.contains(address))
    }

    /// The block that starts at `base` or covers that byte's span, whatever it describes now.
    #[inline]
    pub(super) fn block(&self, base: u64) -> Option<&'static Block> {
        let word = self.word(base);
        if word == 0 {
            return None;
        }
        if word & NEXT != 0 {
            // SAFETY: past the last level lie shared pages, which are leaked.
            return unsafe { next_of::<SharedPage>(word) }.block(base);
        }
        // SAFETY: what leads nowhere is a block's.
        Some(unsafe { block_of(word) })
    }

    /// Enters a block that lies in `[base, base + size)`, which nothing else overlaps. Only the writer calls it.
    pub(super) fn insert(&self, base: u64, size: u64, block: &'static Block, says: Says) {
        self.for_each_span(base, size, &mut |place, start| match place {
            Place::Whole(slot) => slot.cover(block, says.on(start)),
            // A page of it may have an old shared page, which readers look at first.
            Place::Run(slots) if slots.iter().all(Slot::is_empty) => slots[0].cover(block, says.on(start) | WHOLE_RUN),
            Place::Run(slots) | Place::Pages(slots) => {
                for (slot, page) in slots.iter().zip((start..).step_by(1 << PAGE_BITS)) {
                    Self::cover_page(slot, block, says.on(page));
                }
            }
        });
    }

    /// Enters a block on one page.
    fn cover_page(slot: &Slot, block: &'static Block, more: usize) {
        match slot.load::<SharedPage>() {
            Content::Nothing => slot.cover(block, more),
            Content::Next(page) => page.add(block),
            Content::Covered(first) => {
                // A second block on this page: both move to a shared page, which readers see at once or not yet.
                let page = SharedPage::new();
                page.add(first);
                page.add(block);
                slot.point_at(Box::leak(Box::new(page)));
            }
        }
    }

    /// Undoes [`Table::insert`]. Only the writer calls it.
    pub(super) fn remove(&self, base: u64, size: u64, block: &'static Block) {
        self.for_each_span(base, size, &mut |place, _| match place {
            Place::Whole(slot) => slot.clear(),
            Place::Run(slots) if slots[0].is_covered_by(block, WHOLE_RUN) => slots[0].clear(),
            Place::Run(slots) | Place::Pages(slots) => {
                for slot in slots {
                    if slot.is_covered_by(block, 0) {
                        slot.clear();
                    } else if let Content::Next(page) = slot.load::<SharedPage>() {
                        page.take_out(block);
                    }
                }
            }
        });
    }

    /// Visits the slots of a range, each time with the first byte of the first: the largest spans that lie wholly in it, and pages
    /// elsewhere.
    ///
    /// A span that already has a next level (small blocks lived there once) is visited through that level: replacing it would
    /// leak it, again each time.
    fn for_each_span(&self, base: u64, size: u64, visit: &mut impl FnMut(Place, u64)) {
        let (mut at, end) = (base, base + size);
        while at < end {
            let in_root = span(at, end, ROOT_BITS);
            let slot = &self.roots[root(at)];
            at = match (in_root.whole, slot.load::<Level>()) {
                (true, Content::Nothing | Content::Covered(_)) => {
                    visit(Place::Whole(slot), at);
                    in_root.end
                }
                _ => {
                    Self::mid_spans(slot.next(Level::new), at, in_root.end, visit);
                    in_root.end
                }
            };
        }
    }

    fn mid_spans(mids: &Level, mut at: u64, end: u64, visit: &mut impl FnMut(Place, u64)) {
        while at < end {
            let in_mid = span(at, end, MID_BITS);
            let slot = &mids.0[mid(at)];
            match (in_mid.whole, slot.load::<Level>()) {
                (true, Content::Nothing | Content::Covered(_)) => visit(Place::Whole(slot), at),
                _ => {
                    let leaves = slot.next(Level::new);
                    let mut page = at;
                    while page < in_mid.end {
                        let in_run = span(page, in_mid.end, RUN_BITS);
                        let slots = &leaves.0[leaf(page)..=leaf(in_run.end - 1)];
                        let place = if in_run.whole {
                            Place::Run(slots)
                        } else {
                            Place::Pages(slots)
                        };
                        visit(place, page & !((1 << PAGE_BITS) - 1));
                        page = in_run.end;
                    }
                }
            }
            at = in_mid.end;
        }
    }
}

enum Place<'a> {
    /// A span that the range covers wholly.
    Whole(&'a Slot),
    /// A run that it covers wholly.
    Run(&'a [Slot]),
    /// Pages of one run that it covers, the first and the last perhaps in part.
    Pages(&'a [Slot]),
}

struct Span {
    /// End of the part of `[at, end)` that lies in `at`'s span.
    end: u64,
    /// Whether that part is the whole span.
    whole: bool,
}

fn span(at: u64, end: u64, bits: u32) -> Span {
    let size = 1u64 << bits;
    let start = at & !(size - 1);
    let last = (start + size).min(end);
    Span {
        end: last,
        whole: at == start && last == start + size,
    }
}
