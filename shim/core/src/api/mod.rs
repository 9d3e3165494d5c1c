//! The C boundary: check, convert, forward.
//!
//! Every exported function is written inside [`driver!`](macro@crate::driver) or [`runtime!`](macro@crate::runtime): the macro makes the `extern "C"` function that
//! the symbol table names, and runs the body behind [`guard`], so that no panic crosses the boundary and the rules
//! that hold for every call (forked child, exit, host callback) live in one place.

pub mod driver;
pub mod guard;
pub mod nvml;
pub mod runtime;
pub mod runtime11;
pub mod runtime13;
mod streamed;
pub mod stub;
mod texture_fields;

/// Defines driver API functions. The body is that of a closure returning `Result<()>`; arguments are C types.
///
/// ```ignore
/// driver! {
///     /// CUDA Driver API, Memory Management: `cuMemAlloc`.
///     fn cuMemAlloc_v2(dptr: *mut u64, bytesize: usize) {
///         let block = memory::allocate(&context::current()?, bytesize)?;
///         conv::write(dptr, block.address())
///     }
/// }
/// ```
///
/// Before the body, `quick { .. }` may give the code of a call that is asked for every message, where nothing is out of the ordinary
/// ([`guard::is_plain`]): it cannot panic, uses no lock and no thread's state; `None` leaves the call to the body.
#[macro_export]
macro_rules! driver {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(quick $quick:block)? $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        /// Pointers must be what the CUDA Driver API manual asks for.
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            $crate::guarded!(driver, $name, ($($arg: $ty),*), $({ $quick })? $body)
        }
    )*};
}

/// Defines runtime API functions; as [`driver!`](macro@crate::driver), and a failure also becomes the thread's last error.
#[macro_export]
macro_rules! runtime {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(quick $quick:block)? $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        /// Pointers must be what the CUDA Runtime API manual asks for.
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            $crate::guarded!(runtime, $name, ($($arg: $ty),*), $({ $quick })? $body)
        }
    )*};
}

/// The body behind its guard, with what answers before it if there is such a thing.
#[doc(hidden)]
#[macro_export]
macro_rules! guarded {
    ($api:ident, $name:ident, ($($arg:ident: $ty:ty),*), { $quick:block } $body:block) => {{
        // A function of its own: what answers before it needs no stack.
        #[inline(never)]
        unsafe extern "C" fn with_guard($($arg: $ty),*) -> i32 {
            $crate::guarded!($api, $name, ($($arg: $ty),*), $body)
        }
        if $crate::api::guard::is_plain()
            && let Some(code) = (move || -> Option<i32> { $quick })()
        {
            return code;
        }
        // SAFETY: the caller's promise.
        unsafe { with_guard($($arg),*) }
    }};
    ($api:ident, $name:ident, ($($arg:ident: $ty:ty),*), $body:block) => {{
        $crate::trace_arguments!($name, $($arg),*);
        $crate::api::guard::$api(stringify!($name), move || -> $crate::abi::Result<()> { $body })
    }};
}

/// Logs a call's arguments when calls are traced.
#[doc(hidden)]
#[macro_export]
macro_rules! trace_arguments {
    ($name:ident, $($arg:ident),*) => {
        if $crate::api::guard::is_tracing() {
            $crate::api::guard::trace(move || {
                log::trace!(concat!(stringify!($name), ":" $(, " ", stringify!($arg), "={:?}")*) $(, $arg)*);
            });
        }
    };
}
