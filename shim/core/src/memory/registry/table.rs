//! From an address to the blocks of its page.
//!
//! Three levels of arrays, each entry of which is nothing, one block that covers the entry's whole span, or the next level:
//!
//! ```text
//! address   46..30: roots (1 GiB each)   29..21: 512 mids (2 MiB)   20..12: 512 leaves (4 KiB)   11..0
//!
//! entry     0                nothing here          -> miss, at the first level for nearly all host memory
//!           pointer | 0      the next level, or at the last level the shared page
//!           pointer | 1      a block that covers the span (all but its ends): its description says if the byte is in it
//!           pointer | 3      at the last level, in the first of 16 aligned entries: as above, for all 16, of which the others are 0
//! ```
//!
//! The design asked for two levels; with them a block of 100 GiB would be 25 million entries to write. Spans keep that to a few
//! hundred, and the runs of 16 a block of 1 MiB to 16. A page on which several blocks lie (registered host memory need not be
//! aligned) has a [`SharedPage`].
//!
//! Levels and shared pages are never freed: readers walk them without a lock. They are bounded by the address ranges that were
//! ever used, 4 KiB for each 2 MiB.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::block::{Block, Entry};
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

/// Bit 0 of an entry: the pointer is a block's.
const COVERED: usize = 1;
/// Bit 1, beside bit 0: the block covers the run that the entry begins.
const WHOLE_RUN: usize = 2;

/// One entry of a level.
struct Slot(AtomicUsize);

/// 512 entries, or at the last level as many leaves.
struct Level([Slot; FAN_OUT]);

/// Blocks that share a page, and more of them if there are many.
struct SharedPage {
    blocks: [AtomicPtr<Block>; 6],
    next: AtomicPtr<SharedPage>,
}

/// The roots, 1 MiB of zeroes of which only what is used becomes memory.
pub(super) struct Table {
    roots: [Slot; ROOTS],
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
    fn load<T>(&self) -> Content<'_, T> {
        let value = self.0.load(Ordering::Acquire);
        if value == 0 {
            return Content::Nothing;
        }
        // SAFETY: blocks and `T`s in slots are leaked, and each slot's `T` is that of its level.
        unsafe {
            if value & COVERED != 0 {
                Content::Covered(&*core::ptr::with_exposed_provenance::<Block>(
                    value & !(COVERED | WHOLE_RUN),
                ))
            } else {
                Content::Next(&*core::ptr::with_exposed_provenance::<T>(value))
            }
        }
    }

    /// The block that covers the run which this leaf begins.
    #[inline]
    fn run(&self) -> Option<&'static Block> {
        let value = self.0.load(Ordering::Acquire);
        if value & WHOLE_RUN == 0 {
            return None;
        }
        // SAFETY: blocks are leaked.
        Some(unsafe { &*core::ptr::with_exposed_provenance::<Block>(value & !(COVERED | WHOLE_RUN)) })
    }

    /// Points at a block; `how` is [`COVERED`], with [`WHOLE_RUN`] or without.
    fn cover(&self, block: &'static Block, how: usize) {
        let pointer = core::ptr::from_ref(block).expose_provenance();
        self.0.store(pointer | how, Ordering::Release);
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    fn is_covered_by(&self, block: &'static Block, how: usize) -> bool {
        self.0.load(Ordering::Relaxed) == core::ptr::from_ref(block).addr() | how
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
                self.0
                    .store(core::ptr::from_ref(next).expose_provenance(), Ordering::Release);
                next
            }
        }
    }
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
            }
        }
    }

    /// The entry of the block that holds `address`.
    #[inline(always)]
    pub(super) fn find(&self, address: u64) -> Option<Entry> {
        // The usual address is host memory, and ends here.
        let roots: Content<'_, Level> = self.roots.get(root(address))?.load();
        let leaf = match roots {
            Content::Nothing => return None,
            Content::Covered(block) => Content::Covered(block),
            Content::Next(mids) => match mids.0[mid(address)].load::<Level>() {
                Content::Nothing => return None,
                Content::Covered(block) => Content::Covered(block),
                Content::Next(leaves) => {
                    let at = leaf(address);
                    match leaves.0[at].load::<SharedPage>() {
                        Content::Nothing => Content::Covered(leaves.0[at & !(RUN - 1)].run()?),
                        here => here,
                    }
                }
            },
        };
        match leaf {
            Content::Nothing => None,
            Content::Covered(block) => block.read().filter(|entry| entry.contains(address)),
            Content::Next(page) => page.find(address),
        }
    }

    /// The block that starts at `base` or covers that byte's span, whatever it describes now. The leaf of a block's first byte is never
    /// one that another stands for.
    pub(super) fn block(&self, base: u64) -> Option<&'static Block> {
        let mids: &Level = match self.roots.get(root(base))?.load() {
            Content::Nothing => return None,
            Content::Covered(block) => return Some(block),
            Content::Next(mids) => mids,
        };
        let leaves: &Level = match mids.0[mid(base)].load() {
            Content::Nothing => return None,
            Content::Covered(block) => return Some(block),
            Content::Next(leaves) => leaves,
        };
        match leaves.0[leaf(base)].load::<SharedPage>() {
            Content::Nothing => None,
            Content::Covered(block) => Some(block),
            Content::Next(page) => page.block(base),
        }
    }

    /// Enters a block that lies in `[base, base + size)`, which nothing else overlaps. Only the writer calls it.
    pub(super) fn insert(&self, base: u64, size: u64, block: &'static Block) {
        self.for_each_span(base, size, &mut |place| match place {
            Place::Whole(slot) => slot.cover(block, COVERED),
            // A page of it may have an old shared page, which readers look at first.
            Place::Run(slots) if slots.iter().all(Slot::is_empty) => slots[0].cover(block, COVERED | WHOLE_RUN),
            Place::Run(slots) | Place::Pages(slots) => {
                for slot in slots {
                    Self::cover_page(slot, block);
                }
            }
        });
    }

    /// Enters a block on one page.
    fn cover_page(slot: &Slot, block: &'static Block) {
        match slot.load::<SharedPage>() {
            Content::Nothing => slot.cover(block, COVERED),
            Content::Next(page) => page.add(block),
            Content::Covered(_) => {
                // A second block on this page: both move to a shared page, which readers see at once or not yet.
                let page = SharedPage::new();
                let value = slot.0.load(Ordering::Relaxed) & !COVERED;
                page.blocks[0].store(core::ptr::with_exposed_provenance_mut(value), Ordering::Relaxed);
                page.add(block);
                let page = Box::leak(Box::new(page));
                slot.0
                    .store(core::ptr::from_ref(page).expose_provenance(), Ordering::Release);
            }
        }
    }

    /// Undoes [`Table::insert`]. Only the writer calls it.
    pub(super) fn remove(&self, base: u64, size: u64, block: &'static Block) {
        self.for_each_span(base, size, &mut |place| match place {
            Place::Whole(slot) => slot.clear(),
            Place::Run(slots) if slots[0].is_covered_by(block, COVERED | WHOLE_RUN) => slots[0].clear(),
            Place::Run(slots) | Place::Pages(slots) => {
                for slot in slots {
                    if slot.is_covered_by(block, COVERED) {
                        slot.clear();
                    } else if let Content::Next(page) = slot.load::<SharedPage>() {
                        page.take_out(block);
                    }
                }
            }
        });
    }

    /// Visits the slots of a range: the largest spans that lie wholly in it, and pages elsewhere.
    ///
    /// A span that already has a next level (small blocks lived there once) is visited through that level: replacing it would
    /// leak it, again each time.
    fn for_each_span(&self, base: u64, size: u64, visit: &mut impl FnMut(Place)) {
        let (mut at, end) = (base, base + size);
        while at < end {
            let in_root = span(at, end, ROOT_BITS);
            let slot = &self.roots[root(at)];
            at = match (in_root.whole, slot.load::<Level>()) {
                (true, Content::Nothing | Content::Covered(_)) => {
                    visit(Place::Whole(slot));
                    in_root.end
                }
                _ => {
                    Self::mid_spans(slot.next(Level::new), at, in_root.end, visit);
                    in_root.end
                }
            };
        }
    }

    fn mid_spans(mids: &Level, mut at: u64, end: u64, visit: &mut impl FnMut(Place)) {
        while at < end {
            let in_mid = span(at, end, MID_BITS);
            let slot = &mids.0[mid(at)];
            match (in_mid.whole, slot.load::<Level>()) {
                (true, Content::Nothing | Content::Covered(_)) => visit(Place::Whole(slot)),
                _ => {
                    let leaves = slot.next(Level::new);
                    let mut page = at;
                    while page < in_mid.end {
                        let in_run = span(page, in_mid.end, RUN_BITS);
                        let slots = &leaves.0[leaf(page)..=leaf(in_run.end - 1)];
                        visit(if in_run.whole {
                            Place::Run(slots)
                        } else {
                            Place::Pages(slots)
                        });
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
