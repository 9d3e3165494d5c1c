//! Whether anything is out of the ordinary: one word that every API call reads.
//!
//! The usual call finds it zero. It lies below the API so that what raises a bit (a fork, the end of the process) need not
//! know who asks.
//!
//! ```text
//! 31                        16 15         4   3        2       1         0
//! [ host callbacks running   | CAPTURING  | TRACING FORKED EXITING FIRST_CALL ]
//! ```

use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

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
/// One host callback: values from here on count those that run now.
pub const CALLBACK: u32 = 1 << 16;

static WORD: AtomicU32 = AtomicU32::new(FIRST_CALL);

/// All bits and the count of callbacks.
#[inline]
pub fn load() -> u32 {
    WORD.load(Relaxed)
}

/// Sets `bits`. One atomic operation, safe in a fork handler.
pub fn raise(bits: u32) {
    WORD.fetch_or(bits, SeqCst);
}

/// Clears `bits`.
pub fn lower(bits: u32) {
    WORD.fetch_and(!bits, SeqCst);
}

/// Ends the state before the first call.
pub fn first_call_made() {
    WORD.fetch_and(!FIRST_CALL, Relaxed);
}

/// A host callback begins.
pub fn enter_callback() {
    WORD.fetch_add(CALLBACK, Relaxed);
}

/// A host callback has ended.
pub fn leave_callback() {
    WORD.fetch_sub(CALLBACK, Relaxed);
}
