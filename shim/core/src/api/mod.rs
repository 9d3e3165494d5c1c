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
#[macro_export]
macro_rules! driver {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        /// Pointers must be what the CUDA Driver API manual asks for.
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            $crate::trace_arguments!($name, $($arg),*);
            $crate::api::guard::driver(stringify!($name), move || -> $crate::abi::Result<()> { $body })
        }
    )*};
}

/// Defines runtime API functions; as [`driver!`](macro@crate::driver), and a failure also becomes the thread's last error.
#[macro_export]
macro_rules! runtime {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        /// Pointers must be what the CUDA Runtime API manual asks for.
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            $crate::trace_arguments!($name, $($arg),*);
            $crate::api::guard::runtime(stringify!($name), move || -> $crate::abi::Result<()> { $body })
        }
    )*};
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
