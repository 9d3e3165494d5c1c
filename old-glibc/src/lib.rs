//! Keeps libraries and programs loadable with the C library of older systems (glibc 2.31 and later).
//!
//! glibc 2.34 moved the functions of libpthread and libdl into libc and gave them a new version, and 2.33 did the like for
//! `stat`. Linked on a newer system, a library would need those versions and not load on an older one, though nothing
//! changed but the name. So the calls go to functions in the library itself, hidden from others, that jump to the old version
//! of the same function, which every glibc has. [`link`] makes the library need libpthread and libdl, where an older system has
//! them.
//!
//! ```text
//!   std: call pthread_create ──► pthread_create (here) ──► pthread_create@GLIBC_2.2.5 (libpthread, or libc since 2.34)
//! ```
//!
//! Each artefact names what it uses in its own crate, for the functions must be in it and not in a library of its own. Tests
//! read the versions that built files need: what they find above 2.31 belongs into an artefact's list.
//!
//! A build script calls [`link`] as well. This crate has no dependency, so that it may be one of both kinds.

pub mod link;

pub use link::{Artefact, link};

/// Defines hidden functions that jump to the named version of the C library's function of the same name:
/// `old_glibc::functions! { "2.2.5": pthread_create dlopen; }`.
#[macro_export]
macro_rules! functions {
    ($($version:literal: $($name:ident)*;)*) => {$($(
        ::core::arch::global_asm!(
            concat!(".symver regauge_old_", stringify!($name), ", ", stringify!($name), "@GLIBC_", $version),
            concat!(".pushsection .text.regauge_old_", stringify!($name), ",\"ax\",@progbits"),
            concat!(".globl ", stringify!($name)),
            concat!(".hidden ", stringify!($name)),
            concat!(".type ", stringify!($name), ",@function"),
            concat!(stringify!($name), ":"),
            concat!("jmp qword ptr [rip + regauge_old_", stringify!($name), "@GOTPCREL]"),
            concat!(".size ", stringify!($name), ", .-", stringify!($name)),
            ".popsection",
        );
    )*)*};
}

/// Defines hidden functions of the `stat` family (`stat64`, `lstat64`, `fstat64`, `fstatat64`) that call them as they were:
/// with the version of the structure (1) as first argument.
#[macro_export]
macro_rules! stat {
    ($($name:ident)*) => {$( $crate::stat!(@ $name); )*};
    (@ stat64) => { $crate::stat!(@ stat64 = __xstat64 "mov rdx, rsi" "mov rsi, rdi"); };
    (@ lstat64) => { $crate::stat!(@ lstat64 = __lxstat64 "mov rdx, rsi" "mov rsi, rdi"); };
    (@ fstat64) => { $crate::stat!(@ fstat64 = __fxstat64 "mov rdx, rsi" "mov esi, edi"); };
    (@ fstatat64) => {
        $crate::stat!(@ fstatat64 = __fxstatat64 "mov r8d, ecx" "mov rcx, rdx" "mov rdx, rsi" "mov esi, edi");
    };
    (@ $name:ident = $old:ident $($move_argument:literal)*) => {
        ::core::arch::global_asm!(
            concat!(".pushsection .text.regauge_old_", stringify!($name), ",\"ax\",@progbits"),
            concat!(".globl ", stringify!($name)),
            concat!(".hidden ", stringify!($name)),
            concat!(".type ", stringify!($name), ",@function"),
            concat!(stringify!($name), ":"),
            $($move_argument,)*
            "mov edi, 1",
            concat!("jmp qword ptr [rip + ", stringify!($old), "@GOTPCREL]"),
            concat!(".size ", stringify!($name), ", .-", stringify!($name)),
            ".popsection",
        );
    };
}

/// For programs: all that Rust's standard library calls, and the start. Once, in the crate of the program.
///
/// Since 2.34 a program's constructors (std's, which keeps the arguments, is one) are run by `__libc_start_main`; before, the
/// program gave it a function that ran them, and both still do as that function says. So we give one.
#[macro_export]
macro_rules! program {
    () => {
        $crate::functions! {
            "2.2.5":
                dladdr dlclose dlerror dlopen dlsym
                pthread_attr_getguardsize pthread_attr_getstack pthread_attr_setguardsize pthread_attr_setstacksize
                pthread_create pthread_detach pthread_getattr_np pthread_getspecific pthread_join pthread_key_create
                pthread_key_delete pthread_kill pthread_setspecific pthread_sigmask;
            "2.3.4":
                pthread_getaffinity_np pthread_setaffinity_np;
            "2.12":
                pthread_getname_np pthread_setname_np;
        }
        $crate::stat! { stat64 lstat64 fstat64 fstatat64 }
        ::core::arch::global_asm!(
            ".symver regauge_old___libc_start_main, __libc_start_main@GLIBC_2.2.5",
            ".pushsection .text.regauge_old_start,\"ax\",@progbits",
            ".globl __libc_start_main",
            ".hidden __libc_start_main",
            ".type __libc_start_main,@function",
            // (main, argc, argv, init, fini, rtld_fini, stack_end): init is NULL where the start files are of 2.34 or later.
            "__libc_start_main:",
            "lea r10, [rip + regauge_run_constructors]",
            "test rcx, rcx",
            "cmovz rcx, r10",
            "jmp qword ptr [rip + regauge_old___libc_start_main@GOTPCREL]",
            ".size __libc_start_main, .-__libc_start_main",
            ".type regauge_run_constructors,@function",
            // (argc, argv, envp). Five registers saved and the return address: the stack is aligned for the calls.
            "regauge_run_constructors:",
            "push rbx",
            "push rbp",
            "push r12",
            "push r13",
            "push r14",
            "mov r12, rdi",
            "mov r13, rsi",
            "mov r14, rdx",
            "lea rbx, [rip + __init_array_start]",
            "lea rbp, [rip + __init_array_end]",
            "2: cmp rbx, rbp",
            "jae 3f",
            "mov rdi, r12",
            "mov rsi, r13",
            "mov rdx, r14",
            "call qword ptr [rbx]",
            "add rbx, 8",
            "jmp 2b",
            "3: pop r14",
            "pop r13",
            "pop r12",
            "pop rbp",
            "pop rbx",
            "ret",
            ".size regauge_run_constructors, .-regauge_run_constructors",
            ".popsection",
        );
    };
}
