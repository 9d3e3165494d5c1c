//! A virtual AMD GPU: the amdgpu/KFD system calls under unmodified ROCr.
//!
//! Preloaded (`LD_PRELOAD=libvgpu.so`), this library stands between a process and the kernel for the few paths and
//! ioctls through which ROCr's libhsakmt and libdrm reach an AMD GPU. Everything above those is AMD's own unmodified
//! code; everything below is here: device memory, queues, signals and, through the `cdna` crate, the execution of
//! machine code.
//!
//! ```text
//!   program, ROCr, libhsakmt, libdrm        unmodified
//!   --------------------------------------  libc entry points (hooks)
//!   sysfs | kfd ioctls | drm ioctls | cma   answers
//!   bo, vm, event, queue (aql, sdma)        this process's device state (process)
//!   shared                                  the machine's state, in files of VGPU_ROOT
//! ```
//!
//! A process that never touches a device path pays a few byte comparisons per `open` and nothing else.
//! The environment variables are in [`config::VARIABLES`].

mod abi;
mod apertures;
mod aql;
mod bo;
mod cma;
pub mod config;
mod counters;
mod describe;
mod dmabuf;
mod drm;
mod event;
mod helpers;
mod hooks;
mod kernel_name;
mod kfd;
mod named;
mod os;
mod pm4;
mod process;
mod protection;
mod queue;
mod scratch;
mod sdma;
mod shared;
mod signal;
mod sink;
mod svm;
mod sysfs;
mod tables;
mod trace;
mod vm;

// What of the C library is called in the version that older systems have: not what `hooks` defines itself.
old_glibc::functions! {
    "2.2.5":
        dlsym
        pthread_attr_getguardsize pthread_attr_getstack pthread_attr_setguardsize pthread_attr_setstacksize
        pthread_create pthread_detach pthread_getattr_np pthread_getspecific pthread_join pthread_key_create pthread_key_delete
        pthread_mutexattr_init pthread_mutexattr_setpshared pthread_setspecific pthread_sigmask
        sem_init;
    "2.12":
        pthread_mutex_consistent pthread_mutexattr_setrobust pthread_setname_np;
}
old_glibc::stat! { fstatat64 }
