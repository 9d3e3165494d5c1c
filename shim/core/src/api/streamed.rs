//! Functions that exist twice: programs compiled with `--default-stream per-thread` call the second of each pair.

/// Defines both functions of such a pair from one body, inside [`driver!`](crate::driver) or [`runtime!`](crate::runtime).
/// `$default` is the [`DefaultStream`](crate::stream::DefaultStream) that the handle 0, or a call without a stream, means.
///
/// ```ignore
/// streamed! { driver
///     /// CUDA Driver API, Stream Management: `cuStreamQuery`.
///     fn cuStreamQuery(stream: CUstream), fn cuStreamQuery_ptsz(..) |default| {
///         ...
///     }
/// }
/// ```
#[macro_export]
macro_rules! streamed {
    ($api:ident $(
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?), fn $twin:ident(..) |$default:ident| $body:block
    )*) => {$(
        $crate::$api! {
            $(#[$meta])*
            fn $name($($arg: $ty),*) {
                let $default = $crate::stream::DefaultStream::Legacy;
                $body
            }

            #[doc = concat!("As `", stringify!($name), "`, with the thread's own default stream.")]
            fn $twin($($arg: $ty),*) {
                let $default = $crate::stream::DefaultStream::PerThread;
                $body
            }
        }
    )*};
}
