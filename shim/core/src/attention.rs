//! Whether anything is out of the ordinary: one word that every API call reads, and one byte of an entry point.
//!
//! The usual call finds the word zero and the byte as the linker left it. They lie below the API so that what raises a bit (a fork,
//! the end of the process) need not know who asks.
//!
//! ```text
//! 31                        16 15         5         4          3        2       1         0
//! [ host callbacks running   |         SEVERAL | CAPTURING | TRACING FORKED EXITING FIRST_CALL ]
//! ```

use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

/// No call has been made yet.
pub const FIRST_CALL: u32 = 1;
/// `exit` has run our handler.
pub const EXITING: u32 = 1 << 1;
/// This is a forked child of a process that had initialised the driver.
pub const FORKED: u32 = 1 << 2;
/// Calls are logged.
pub const TRACING: u32 = 1 << 3;
/// Streams are captured.
pub const CAPTURING: u32 = 1 << 4;
/// The driver has not started, or sees several devices; no concern of most calls.
const SEVERAL: u32 = 1 << 5;
/// One host callback: values from here on count those that run now.
pub const CALLBACK: u32 = 1 << 16;

/// What every call reads, in one line of the cache.
#[repr(align(16))]
struct State {
    word: AtomicU32,
    /// The first byte of an entry point, or [`UNTOUCHED`].
    watched: AtomicPtr<u8>,
}

/// The first byte of entry points as the linker leaves them: `mov $imm32, %eax`.
static UNTOUCHED: u8 = 0xb8;

static STATE: State = State {
    word: AtomicU32::new(FIRST_CALL | SEVERAL),
    watched: AtomicPtr::new((&raw const UNTOUCHED).cast_mut()),
};

/// All bits that concern every call, and the count of callbacks.
#[inline]
pub fn load() -> u32 {
    STATE.word.load(Relaxed) & !SEVERAL
}

/// Whether the driver sees one device, and nothing is out of the ordinary.
#[inline(always)]
pub fn is_plain() -> bool {
    STATE.word.load(Relaxed) == 0 && !is_patched()
}

/// Whether the driver has started and sees one device.
#[inline]
pub fn is_alone() -> bool {
    STATE.word.load(Relaxed) & SEVERAL == 0
}

/// The driver has started and sees one device.
pub fn set_alone() {
    lower(SEVERAL);
}

/// Whether somebody overwrote the entry point that is watched.
#[inline]
pub fn is_patched() -> bool {
    let byte = STATE.watched.load(Relaxed);
    // SAFETY: a byte of this library, which stays loaded; others may write it at any time, hence volatile.
    unsafe { byte.read_volatile() != UNTOUCHED }
}

/// From now on watches the entry point that starts at `entry`, or none.
///
/// # Safety
/// `entry` is an entry point of this library.
pub unsafe fn watch(entry: Option<*mut u8>) {
    STATE
        .watched
        .store(entry.unwrap_or((&raw const UNTOUCHED).cast_mut()), Relaxed);
}

/// Sets `bits`. One atomic operation, safe in a fork handler.
pub fn raise(bits: u32) {
    STATE.word.fetch_or(bits, SeqCst);
}

/// Clears `bits`.
pub fn lower(bits: u32) {
    STATE.word.fetch_and(!bits, SeqCst);
}

/// Ends the state before the first call.
pub fn first_call_made() {
    STATE.word.fetch_and(!FIRST_CALL, Relaxed);
}

/// A host callback begins.
pub fn enter_callback() {
    STATE.word.fetch_add(CALLBACK, Relaxed);
}

/// A host callback has ended.
pub fn leave_callback() {
    STATE.word.fetch_sub(CALLBACK, Relaxed);
}
