//! loom's atomics, lock and fence, of which a class can be made too weak on purpose: how the models show that they would notice.

use std::cell::Cell;
use std::sync::atomic::Ordering;

pub use loom::sync::{Mutex, MutexGuard};

/// What is weakened in this thread's models. (All threads of a model are one thread of the system.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weakness {
    /// Nothing: the code as it ships.
    None,
    /// Fences do nothing.
    Fences,
    /// Stores to 64-bit words (a block's sequence number) publish nothing.
    SequenceStores,
    /// Loads of 64-bit words see nothing that was published.
    SequenceLoads,
    /// Stores to entries of the table publish nothing.
    TableStores,
    /// Loads of entries of the table see nothing that was published.
    TableLoads,
    /// Stores to a shared page publish nothing.
    PageStores,
    /// Loads of a shared page see nothing that was published.
    PageLoads,
}

impl Weakness {
    /// All that can be weakened.
    pub const ALL: [Self; 7] = [
        Self::Fences,
        Self::SequenceStores,
        Self::SequenceLoads,
        Self::TableStores,
        Self::TableLoads,
        Self::PageStores,
        Self::PageLoads,
    ];
}

thread_local! {
    static WEAKNESS: Cell<Weakness> = const { Cell::new(Weakness::None) };
}

/// Runs `f` with `weakness`.
pub fn with<T>(weakness: Weakness, f: impl FnOnce() -> T) -> T {
    struct Restore(Weakness);
    impl Drop for Restore {
        fn drop(&mut self) {
            WEAKNESS.set(self.0);
        }
    }
    let _restore = Restore(WEAKNESS.replace(weakness));
    f()
}

fn unless(weakness: Weakness, ordering: Ordering) -> Ordering {
    if WEAKNESS.get() == weakness {
        Ordering::Relaxed
    } else {
        ordering
    }
}

/// As `std::sync::atomic::fence`.
pub fn fence(ordering: Ordering) {
    if WEAKNESS.get() != Weakness::Fences {
        loom::sync::atomic::fence(ordering);
    }
}

/// A point where another thread may come in before something is done to one word.
///
/// loom tries another order where an access depends on the *last* one that another thread made; a thread that loads a word and
/// then stores to it hides the others' loads before its own. A condition variable on which nobody waits is passed in every order,
/// and orders no memory.
#[derive(Debug)]
struct Crossing(loom::sync::Condvar);

impl Crossing {
    fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    fn pass(&self) {
        self.0.notify_one();
    }
}

/// An atomic type of loom's with the operations that the registry uses.
macro_rules! atomic {
    ($name:ident $(<$parameter:ident>)?, $value:ty, $stores:ident, $loads:ident) => {
        /// loom's type of the same name.
        #[derive(Debug)]
        pub struct $name $(<$parameter>)? {
            word: loom::sync::atomic::$name $(<$parameter>)?,
            crossing: Crossing,
        }

        impl $(<$parameter>)? $name $(<$parameter>)? {
            /// As the standard library's, but for being no constant.
            pub fn new(value: $value) -> Self {
                Self {
                    word: loom::sync::atomic::$name::new(value),
                    crossing: Crossing::new(),
                }
            }

            /// As the standard library's.
            #[track_caller]
            pub fn load(&self, ordering: Ordering) -> $value {
                self.crossing.pass();
                self.word.load(unless(Weakness::$loads, ordering))
            }

            /// As the standard library's.
            #[track_caller]
            pub fn store(&self, value: $value, ordering: Ordering) {
                self.crossing.pass();
                self.word.store(value, unless(Weakness::$stores, ordering));
            }
        }
    };
}

atomic!(AtomicU64, u64, SequenceStores, SequenceLoads);
atomic!(AtomicUsize, usize, TableStores, TableLoads);
atomic!(AtomicPtr<T>, *mut T, PageStores, PageLoads);

impl AtomicU64 {
    /// As the standard library's.
    #[track_caller]
    pub fn fetch_add(&self, value: u64, ordering: Ordering) -> u64 {
        self.crossing.pass();
        self.word.fetch_add(value, ordering)
    }

    /// As the standard library's.
    #[track_caller]
    pub fn compare_exchange(&self, old: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.crossing.pass();
        self.word.compare_exchange(old, new, success, failure)
    }
}
