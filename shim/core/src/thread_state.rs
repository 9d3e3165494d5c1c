//! What a thread owns: kept to the end of the thread, and past the beginning of `exit`.
//!
//! `exit` destroys the calling thread's thread locals first and runs exit handlers afterwards. CUDA still works in handlers
//! that were registered after its first use (recorded: `tests/oracle/exit.cc`), so what an API call needs must outlive the
//! thread locals. Destructors of POSIX thread-specific data run at the end of a thread only, never at `exit`, and after the
//! C++ `thread_local` objects of the host: exactly the life that is wanted.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::thread::LocalKey;

/// A thread's own `T`, to be put into a `thread_local!` with a `const` initialiser.
pub struct ThreadState<T> {
    /// Emptied, not dropped, when the thread ends: a thread local that needs no drop is never destroyed.
    value: ManuallyDrop<RefCell<T>>,
    /// Whether the end of the thread will empty it.
    noted: Cell<bool>,
}

impl<T: Default + 'static> ThreadState<T> {
    /// Holds `value`, which owns nothing yet.
    pub const fn new(value: T) -> Self {
        ThreadState {
            value: ManuallyDrop::new(RefCell::new(value)),
            noted: Cell::new(false),
        }
    }

    /// Looks at the calling thread's value.
    #[inline]
    pub fn look<R>(key: &'static LocalKey<Self>, body: impl FnOnce(&T) -> R) -> R {
        key.with(|state| body(&state.value.borrow()))
    }

    /// Changes the calling thread's value.
    pub fn change<R>(key: &'static LocalKey<Self>, body: impl FnOnce(&mut T) -> R) -> R {
        key.with(|state| {
            if !state.noted.replace(true) {
                at_thread_end(Box::new(|| {
                    let value = key.with(|state| {
                        state.noted.set(false);
                        state.value.take()
                    });
                    drop(value);
                }));
            }
            body(&mut state.value.borrow_mut())
        })
    }
}

/// What runs at the end of a thread.
type Endings = ManuallyDrop<RefCell<Vec<Box<dyn FnOnce()>>>>;

thread_local! {
    static ENDINGS: Endings = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Runs `action` when the calling thread ends, but not when the process does.
fn at_thread_end(action: Box<dyn FnOnce()>) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is writable; `end` is a function of this library, which is never unloaded (`-z nodelete`).
        (unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0).then_some(key)
    });
    // Without a key (the process has used all 1024) what threads own stays until the process ends.
    let Some(key) = *key else { return };
    ENDINGS.with(|endings| endings.borrow_mut().push(action));
    // SAFETY: the key exists; the value only has to be other than null for `end` to be called.
    unsafe { libc::pthread_setspecific(key, std::ptr::dangling::<c_void>()) };
}

/// Called by the C library at the end of a thread.
extern "C" fn end(_: *mut c_void) {
    for action in ENDINGS.with(|endings| std::mem::take(&mut *endings.borrow_mut())) {
        // An unwinding destructor would end the process.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(action));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    thread_local! {
        static MINE: ThreadState<Vec<Arc<()>>> = const { ThreadState::new(Vec::new()) };
    }

    #[test]
    fn is_given_up_at_the_end_of_the_thread_and_not_before_its_thread_locals() {
        struct Late(Cell<usize>);
        impl Drop for Late {
            fn drop(&mut self) {
                self.0.set(ThreadState::look(&MINE, Vec::len));
                assert_eq!(self.0.get(), 1, "still there in a thread local's destructor");
            }
        }
        thread_local! {
            static LATE: Late = const { Late(Cell::new(0)) };
        }
        let held = Arc::new(());
        let mine = held.clone();
        std::thread::spawn(move || {
            LATE.with(|late| late.0.set(7));
            ThreadState::change(&MINE, |list| list.push(mine));
        })
        .join()
        .unwrap();
        // `join` may return before the C library has run the destructors of keys.
        while Arc::strong_count(&held) > 1 {
            std::thread::yield_now();
        }
    }
}
