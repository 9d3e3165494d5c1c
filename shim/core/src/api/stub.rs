//! What answers for a call that is not there: "not supported" and one log line per symbol and process.
//!
//! There is one function per library and return class. The entry point passes the symbol's number in its table; the caller's
//! own arguments are not looked at.

use core::ffi::{c_char, c_void};
use core::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use symbol_versions::{Library, Status};

use super::guard;
use crate::abi::Error;

/// The symbols of one library that have been reported, one bit each.
struct Reported([AtomicU64; 16]);

impl Reported {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 16])
    }

    /// Whether this is the first report of symbol `index`.
    fn first(&self, index: usize) -> bool {
        let Some(word) = self.0.get(index / 64) else {
            return true;
        };
        let bit = 1 << (index % 64);
        word.fetch_or(bit, Relaxed) & bit == 0
    }
}

/// The name of symbol `index` of `library`; logs that it was called, once.
#[cold]
fn report(library: Library, index: u32) -> &'static str {
    static REPORTED: [Reported; Library::ALL.len()] = [const { Reported::new() }; Library::ALL.len()];
    let index = index as usize;
    let Some(symbol) = library.table().symbols().get(index) else {
        return "?";
    };
    if REPORTED[library as usize].first(index) {
        // The line is written before the guard looks at the call, which may be the first one.
        guard::start();
        let why = if symbol.status == Status::Refuse {
            "not supported on AMD GPUs"
        } else {
            "not implemented yet"
        };
        log::warn!(
            "{}: {} is {why}; the call fails (reported once)",
            library.soname(),
            symbol.name
        );
    }
    symbol.name
}

/// A missing function of the driver API.
pub extern "C" fn driver_err(index: u32) -> i32 {
    let name = report(Library::Cuda, index);
    guard::driver(name, || Err(Error::NOT_SUPPORTED))
}

/// Defines what answers for a missing function of a runtime, by what it returns: an error code, a pointer, nothing, a `char`.
macro_rules! runtime_stubs {
    ($($library:ident: $err:ident, $ptr:ident, $void:ident, $char:ident;)*) => {$(
        #[doc = concat!("A missing function of `Library::", stringify!($library), "`.")]
        pub extern "C" fn $err(index: u32) -> i32 {
            let name = report(Library::$library, index);
            guard::runtime(name, || Err(Error::NOT_SUPPORTED))
        }

        #[doc = concat!("A missing function of `Library::", stringify!($library), "` that returns a pointer.")]
        pub extern "C" fn $ptr(index: u32) -> *mut c_void {
            $err(index);
            ptr::null_mut()
        }

        #[doc = concat!("A missing function of `Library::", stringify!($library), "` that returns nothing.")]
        pub extern "C" fn $void(index: u32) {
            $err(index);
        }

        #[doc = concat!("A missing function of `Library::", stringify!($library), "` that returns a `char`.")]
        pub extern "C" fn $char(index: u32) -> c_char {
            $err(index);
            0
        }
    )*};
}

runtime_stubs! {
    Cudart: runtime_err, runtime_ptr, runtime_void, runtime_char;
    Cudart11: runtime11_err, runtime11_ptr, runtime11_void, runtime11_char;
    Cudart13: runtime13_err, runtime13_ptr, runtime13_void, runtime13_char;
}

/// A missing function of NVML: `NVML_ERROR_NOT_SUPPORTED`.
pub extern "C" fn nvml_err(index: u32) -> i32 {
    report(Library::Nvml, index);
    3
}

/// A missing function of NVML that returns a pointer.
pub extern "C" fn nvml_ptr(index: u32) -> *mut c_void {
    report(Library::Nvml, index);
    ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_symbol_is_reported_once() {
        let reported = Reported::new();
        for index in [0, 1, 63, 64, 700] {
            assert!(reported.first(index));
            assert!(!reported.first(index));
        }
    }

    #[test]
    fn a_missing_runtime_call_sets_the_last_error() {
        guard::take_last_error();
        assert_eq!(runtime_err(0), 801);
        assert_eq!(guard::take_last_error(), 801);
        assert_eq!(driver_err(0), 801);
        assert_eq!(guard::take_last_error(), 0);
    }
}
