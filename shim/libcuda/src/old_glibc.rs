//! Keeps the library loadable with the C library of older systems (2.31 and later).
//!
//! glibc 2.34 moved the functions of libpthread and libdl into libc and gave them a new version, and 2.33 did the like for
//! `stat`. Linked on a newer system, the library would need those versions and not load on an older one, though nothing
//! changed but the name. So the calls go to functions here, hidden from other libraries, that jump to the old version of the
//! same function, which every glibc has. `build.rs` makes the library need libpthread and libdl, where an older system has them.
//!
//! ```text
//!   std: call pthread_create ──► pthread_create (here) ──► pthread_create@GLIBC_2.2.5 (libpthread, or libc since 2.34)
//! ```
//!
//! A test reads the versions that the built library needs. What it finds above 2.31 belongs into the list below.

use core::arch::global_asm;

/// Defines hidden functions that jump to the named version of the C library's function of the same name.
macro_rules! old_versions {
    ($($version:literal: $($name:ident)*;)*) => {$($(
        global_asm!(
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

old_versions! {
    "2.2.5":
        dladdr dlclose dlerror dlopen dlsym
        pthread_attr_getguardsize pthread_attr_getstack pthread_attr_setguardsize pthread_attr_setstacksize
        pthread_create pthread_detach pthread_getattr_np pthread_getspecific pthread_join pthread_key_create
        pthread_key_delete pthread_kill pthread_mutex_trylock pthread_mutexattr_destroy pthread_mutexattr_init
        pthread_mutexattr_settype pthread_once pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock
        pthread_setspecific pthread_sigmask
        sem_destroy sem_init sem_post sem_timedwait sem_trywait sem_wait;
    "2.3.3":
        dladdr1 dlinfo pthread_condattr_setclock;
    "2.3.4":
        pthread_getaffinity_np pthread_setaffinity_np;
    "2.12":
        pthread_getname_np pthread_setname_np pthread_mutex_consistent pthread_mutexattr_setrobust;
}

/// Defines hidden functions that call the `stat` family as it was: with the version of the structure (1) as first argument.
macro_rules! old_stat {
    ($($name:ident = $old:ident { $($move_argument:literal)* })*) => {$(
        global_asm!(
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
    )*};
}

old_stat! {
    stat64 = __xstat64 { "mov rdx, rsi" "mov rsi, rdi" }
    lstat64 = __lxstat64 { "mov rdx, rsi" "mov rsi, rdi" }
    fstat64 = __fxstat64 { "mov rdx, rsi" "mov esi, edi" }
    fstatat64 = __fxstatat64 { "mov r8d, ecx" "mov rcx, rdx" "mov rdx, rsi" "mov esi, edi" }
}
