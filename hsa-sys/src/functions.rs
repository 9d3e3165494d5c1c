//! The functions of `libhsa-runtime64.so.1`, resolved at run time.
//!
//! One table names them all. The minimum set is in every ROCr from 5.2 on, and [`Functions::load`] refuses a library
//! without it; the optional set names the release that brought each one, and callers have a fallback.

use core::ffi::{c_char, c_void};
use std::ffi::OsStr;

use libloading::os::unix::Library;

use crate::status::hsa_status_t;
use crate::types::*;
use crate::weak;

/// Names tried in order; the second is where AMD's own packages put it.
const LIBRARIES: [&str; 2] = ["libhsa-runtime64.so.1", "/opt/rocm/lib/libhsa-runtime64.so.1"];

/// Why ROCr cannot be used.
#[derive(Debug)]
pub enum LoadError {
    /// No library under any of the names; the text is the loader's.
    NotFound(String),
    /// The library lacks functions of the minimum set.
    TooOld(Vec<&'static str>),
}

impl core::fmt::Display for LoadError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotFound(why) => write!(f, "AMD's HSA runtime (ROCr) is not installed: {why}"),
            Self::TooOld(names) => {
                // An old one lacks a few; another library of that name lacks them all, and nobody reads 70 names.
                let shown = names.len().min(8);
                write!(
                    f,
                    "AMD's HSA runtime (ROCr) is older than 5.2: it lacks {}",
                    names[..shown].join(", ")
                )?;
                match names.len() - shown {
                    0 => Ok(()),
                    more => write!(f, " and {more} more functions"),
                }
            }
        }
    }
}

impl std::error::Error for LoadError {}

macro_rules! functions {
    (
        minimum { $(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)* }
        optional { $($since:literal fn $opt:ident($($oarg:ident: $oty:ty),* $(,)?) $(-> $oret:ty)?;)* }
    ) => {
        /// The table of functions: those of the minimum set as methods, those of the optional set as `Option` fields.
        pub struct Functions {
            $($name: unsafe extern "C" fn($($ty),*) $(-> $ret)?,)*
            $(
                #[doc = concat!("Since ROCr ", $since, ".")]
                pub $opt: Option<unsafe extern "C" fn($($oty),*) $(-> $oret)?>,
            )*
        }

        /// Names of the minimum set.
        pub const MINIMUM: &[&str] = &[$(stringify!($name),)*];
        /// Names of the optional set and the release each came with.
        pub const OPTIONAL: &[(&str, &str)] = &[$((stringify!($opt), $since),)*];

        impl Functions {
            fn resolve(library: &Library) -> Result<Self, LoadError> {
                let missing: Vec<_> = MINIMUM.iter().copied().filter(|name| {
                    // SAFETY: only whether the symbol exists is used.
                    unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_err()
                }).collect();
                if !missing.is_empty() {
                    return Err(LoadError::TooOld(missing));
                }
                let absent = |name: &'static str| move |_| LoadError::TooOld(vec![name]);
                Ok(Self {
                    $($name: {
                        // SAFETY: the type is that of AMD's header; the library is never closed.
                        *unsafe { library.get(stringify!($name).as_bytes()) }.map_err(absent(stringify!($name)))?
                    },)*
                    $($opt: {
                        // SAFETY: as above.
                        unsafe { library.get(stringify!($opt).as_bytes()) }.ok().map(|symbol| *symbol)
                    },)*
                })
            }

            /// The functions of the optional set that this library lacks, each with the release that brought it.
            pub fn missing(&self) -> Vec<(&'static str, &'static str)> {
                let present = [$(self.$opt.is_some()),*];
                OPTIONAL.iter().zip(present).filter(|(_, present)| !present).map(|(entry, _)| *entry).collect()
            }

            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                ///
                /// # Safety
                /// What the HSA specification (or AMD's header for `hsa_amd_*`) asks of the arguments.
                #[inline]
                #[allow(clippy::too_many_arguments)]
                pub unsafe fn $name(&self, $($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the caller keeps the specification's rules.
                    unsafe { (self.$name)($($arg),*) }
                }
            )*
        }
    };
}

functions! {
    minimum {
        fn hsa_init() -> hsa_status_t;
        fn hsa_status_string(status: hsa_status_t, text: *mut *const c_char) -> hsa_status_t;
        fn hsa_system_get_info(attribute: u32, value: *mut c_void) -> hsa_status_t;
        fn hsa_iterate_agents(callback: hsa_agent_callback, data: *mut c_void) -> hsa_status_t;
        fn hsa_agent_get_info(agent: hsa_agent_t, attribute: u32, value: *mut c_void) -> hsa_status_t;
        fn hsa_agent_iterate_isas(agent: hsa_agent_t, callback: hsa_isa_callback, data: *mut c_void) -> hsa_status_t;
        fn hsa_isa_get_info_alt(isa: hsa_isa_t, attribute: u32, value: *mut c_void) -> hsa_status_t;

        fn hsa_queue_create(
            agent: hsa_agent_t, size: u32, type_: u32, callback: Option<hsa_queue_callback>, data: *mut c_void,
            private_segment_size: u32, group_segment_size: u32, queue: *mut *mut hsa_queue_t,
        ) -> hsa_status_t;
        fn hsa_queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t;
        fn hsa_queue_load_read_index_relaxed(queue: *const hsa_queue_t) -> u64;
        fn hsa_queue_load_read_index_scacquire(queue: *const hsa_queue_t) -> u64;
        fn hsa_queue_load_write_index_relaxed(queue: *const hsa_queue_t) -> u64;
        fn hsa_queue_add_write_index_relaxed(queue: *const hsa_queue_t, value: u64) -> u64;
        fn hsa_queue_add_write_index_screlease(queue: *const hsa_queue_t, value: u64) -> u64;
        fn hsa_queue_store_write_index_screlease(queue: *const hsa_queue_t, value: u64);
        fn hsa_amd_queue_set_priority(queue: *mut hsa_queue_t, priority: u32) -> hsa_status_t;
        fn hsa_amd_queue_cu_set_mask(queue: *const hsa_queue_t, count: u32, mask: *const u32) -> hsa_status_t;

        fn hsa_signal_create(
            initial: hsa_signal_value_t, num_consumers: u32, consumers: *const hsa_agent_t, signal: *mut hsa_signal_t,
        ) -> hsa_status_t;
        fn hsa_signal_destroy(signal: hsa_signal_t) -> hsa_status_t;
        fn hsa_signal_load_relaxed(signal: hsa_signal_t) -> hsa_signal_value_t;
        fn hsa_signal_load_scacquire(signal: hsa_signal_t) -> hsa_signal_value_t;
        fn hsa_signal_store_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
        fn hsa_signal_store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
        fn hsa_signal_silent_store_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
        fn hsa_signal_add_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
        fn hsa_signal_subtract_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
        fn hsa_signal_subtract_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
        fn hsa_signal_wait_scacquire(
            signal: hsa_signal_t, condition: u32, compare: hsa_signal_value_t, timeout_hint: u64, wait_state: u32,
        ) -> hsa_signal_value_t;
        fn hsa_signal_wait_relaxed(
            signal: hsa_signal_t, condition: u32, compare: hsa_signal_value_t, timeout_hint: u64, wait_state: u32,
        ) -> hsa_signal_value_t;
        fn hsa_amd_signal_create(
            initial: hsa_signal_value_t, num_consumers: u32, consumers: *const hsa_agent_t, attributes: u64,
            signal: *mut hsa_signal_t,
        ) -> hsa_status_t;
        fn hsa_amd_signal_value_pointer(signal: hsa_signal_t, value: *mut *mut hsa_signal_value_t) -> hsa_status_t;
        fn hsa_amd_signal_wait_any(
            count: u32, signals: *mut hsa_signal_t, conditions: *mut u32, values: *mut hsa_signal_value_t,
            timeout_hint: u64, wait_state: u32, satisfying: *mut hsa_signal_value_t,
        ) -> u32;
        fn hsa_amd_signal_async_handler(
            signal: hsa_signal_t, condition: u32, value: hsa_signal_value_t, handler: hsa_amd_signal_handler,
            arg: *mut c_void,
        ) -> hsa_status_t;

        fn hsa_code_object_reader_create_from_memory(
            code: *const c_void, size: usize, reader: *mut hsa_code_object_reader_t,
        ) -> hsa_status_t;
        fn hsa_code_object_reader_destroy(reader: hsa_code_object_reader_t) -> hsa_status_t;
        fn hsa_executable_create_alt(
            profile: u32, rounding: u32, options: *const c_char, executable: *mut hsa_executable_t,
        ) -> hsa_status_t;
        fn hsa_executable_destroy(executable: hsa_executable_t) -> hsa_status_t;
        fn hsa_executable_load_agent_code_object(
            executable: hsa_executable_t, agent: hsa_agent_t, reader: hsa_code_object_reader_t, options: *const c_char,
            loaded: *mut hsa_loaded_code_object_t,
        ) -> hsa_status_t;
        fn hsa_executable_freeze(executable: hsa_executable_t, options: *const c_char) -> hsa_status_t;
        fn hsa_executable_get_symbol_by_name(
            executable: hsa_executable_t, name: *const c_char, agent: *const hsa_agent_t,
            symbol: *mut hsa_executable_symbol_t,
        ) -> hsa_status_t;
        fn hsa_executable_symbol_get_info(
            symbol: hsa_executable_symbol_t, attribute: u32, value: *mut c_void,
        ) -> hsa_status_t;
        fn hsa_executable_iterate_agent_symbols(
            executable: hsa_executable_t, agent: hsa_agent_t, callback: hsa_symbol_callback, data: *mut c_void,
        ) -> hsa_status_t;

        fn hsa_amd_agent_iterate_memory_pools(
            agent: hsa_agent_t, callback: hsa_pool_callback, data: *mut c_void,
        ) -> hsa_status_t;
        fn hsa_amd_memory_pool_get_info(
            pool: hsa_amd_memory_pool_t, attribute: u32, value: *mut c_void,
        ) -> hsa_status_t;
        fn hsa_amd_agent_memory_pool_get_info(
            agent: hsa_agent_t, pool: hsa_amd_memory_pool_t, attribute: u32, value: *mut c_void,
        ) -> hsa_status_t;
        fn hsa_amd_memory_pool_allocate(
            pool: hsa_amd_memory_pool_t, size: usize, flags: u32, ptr: *mut *mut c_void,
        ) -> hsa_status_t;
        fn hsa_amd_memory_pool_free(ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_agents_allow_access(
            count: u32, agents: *const hsa_agent_t, flags: *const u32, ptr: *const c_void,
        ) -> hsa_status_t;
        fn hsa_amd_memory_async_copy(
            dst: *mut c_void, dst_agent: hsa_agent_t, src: *const c_void, src_agent: hsa_agent_t, size: usize,
            num_dep_signals: u32, dep_signals: *const hsa_signal_t, completion: hsa_signal_t,
        ) -> hsa_status_t;
        fn hsa_amd_memory_async_copy_rect(
            dst: *const hsa_pitched_ptr_t, dst_offset: *const hsa_dim3_t, src: *const hsa_pitched_ptr_t,
            src_offset: *const hsa_dim3_t, range: *const hsa_dim3_t, copy_agent: hsa_agent_t, direction: u32,
            num_dep_signals: u32, dep_signals: *const hsa_signal_t, completion: hsa_signal_t,
        ) -> hsa_status_t;
        fn hsa_amd_memory_fill(ptr: *mut c_void, value: u32, count: usize) -> hsa_status_t;
        fn hsa_amd_memory_lock_to_pool(
            host_ptr: *mut c_void, size: usize, agents: *const hsa_agent_t, num_agents: i32,
            pool: hsa_amd_memory_pool_t, flags: u32, agent_ptr: *mut *mut c_void,
        ) -> hsa_status_t;
        fn hsa_amd_memory_unlock(host_ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_pointer_info(
            ptr: *const c_void, info: *mut hsa_amd_pointer_info_t, alloc: Option<hsa_amd_pointer_info_alloc>,
            num_accessible: *mut u32, accessible: *mut *mut hsa_agent_t,
        ) -> hsa_status_t;
        fn hsa_amd_ipc_memory_create(
            ptr: *mut c_void, len: usize, handle: *mut hsa_amd_ipc_memory_t,
        ) -> hsa_status_t;
        fn hsa_amd_ipc_memory_attach(
            handle: *const hsa_amd_ipc_memory_t, len: usize, num_agents: u32, agents: *const hsa_agent_t,
            ptr: *mut *mut c_void,
        ) -> hsa_status_t;
        fn hsa_amd_ipc_memory_detach(ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_ipc_signal_create(signal: hsa_signal_t, handle: *mut hsa_amd_ipc_signal_t) -> hsa_status_t;
        fn hsa_amd_ipc_signal_attach(handle: *const hsa_amd_ipc_signal_t, signal: *mut hsa_signal_t) -> hsa_status_t;

        fn hsa_amd_profiling_set_profiler_enabled(queue: *mut hsa_queue_t, enable: i32) -> hsa_status_t;
        fn hsa_amd_profiling_async_copy_enable(enable: bool) -> hsa_status_t;
        fn hsa_amd_profiling_get_dispatch_time(
            agent: hsa_agent_t, signal: hsa_signal_t, time: *mut hsa_amd_profiling_time_t,
        ) -> hsa_status_t;
        fn hsa_amd_profiling_get_async_copy_time(
            signal: hsa_signal_t, time: *mut hsa_amd_profiling_time_t,
        ) -> hsa_status_t;
        fn hsa_amd_profiling_convert_tick_to_system_domain(
            agent: hsa_agent_t, agent_tick: u64, system_tick: *mut u64,
        ) -> hsa_status_t;
        fn hsa_amd_register_system_event_handler(
            callback: hsa_amd_system_event_callback_t, data: *mut c_void,
        ) -> hsa_status_t;
        fn hsa_amd_register_deallocation_callback(
            ptr: *mut c_void, callback: hsa_amd_deallocation_callback_t, user_data: *mut c_void,
        ) -> hsa_status_t;
        fn hsa_amd_deregister_deallocation_callback(
            ptr: *mut c_void, callback: hsa_amd_deallocation_callback_t,
        ) -> hsa_status_t;
        fn hsa_amd_svm_attributes_set(
            ptr: *mut c_void, size: usize, attributes: *mut hsa_amd_svm_attribute_pair_t, count: usize,
        ) -> hsa_status_t;
        fn hsa_amd_svm_attributes_get(
            ptr: *mut c_void, size: usize, attributes: *mut hsa_amd_svm_attribute_pair_t, count: usize,
        ) -> hsa_status_t;
        fn hsa_amd_svm_prefetch_async(
            ptr: *mut c_void, size: usize, agent: hsa_agent_t, num_dep_signals: u32, dep_signals: *const hsa_signal_t,
            completion: hsa_signal_t,
        ) -> hsa_status_t;
    }
    optional {
        "5.6" fn hsa_amd_memory_async_copy_on_engine(
            dst: *mut c_void, dst_agent: hsa_agent_t, src: *const c_void, src_agent: hsa_agent_t, size: usize,
            num_dep_signals: u32, dep_signals: *const hsa_signal_t, completion: hsa_signal_t, engine: u32,
            force_copy_on_sdma: bool,
        ) -> hsa_status_t;
        "5.6" fn hsa_amd_memory_copy_engine_status(
            dst_agent: hsa_agent_t, src_agent: hsa_agent_t, engine_mask: *mut u32,
        ) -> hsa_status_t;
        "5.6" fn hsa_amd_portable_export_dmabuf(
            ptr: *const c_void, size: usize, dmabuf: *mut i32, offset: *mut u64,
        ) -> hsa_status_t;
        "5.6" fn hsa_amd_portable_close_dmabuf(dmabuf: i32) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_address_reserve(
            va: *mut *mut c_void, size: usize, address: u64, flags: u64,
        ) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_address_free(va: *mut c_void, size: usize) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_handle_create(
            pool: hsa_amd_memory_pool_t, size: usize, type_: u32, flags: u64, handle: *mut hsa_amd_vmem_alloc_handle_t,
        ) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_handle_release(handle: hsa_amd_vmem_alloc_handle_t) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_map(
            va: *mut c_void, size: usize, in_offset: usize, handle: hsa_amd_vmem_alloc_handle_t, flags: u64,
        ) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_unmap(va: *mut c_void, size: usize) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_set_access(
            va: *mut c_void, size: usize, desc: *const hsa_amd_memory_access_desc_t, count: usize,
        ) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_get_access(
            va: *mut c_void, permissions: *mut u32, agent: hsa_agent_t,
        ) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_export_shareable_handle(
            dmabuf_fd: *mut i32, handle: hsa_amd_vmem_alloc_handle_t, flags: u64,
        ) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_import_shareable_handle(
            dmabuf_fd: i32, handle: *mut hsa_amd_vmem_alloc_handle_t,
        ) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_retain_alloc_handle(
            handle: *mut hsa_amd_vmem_alloc_handle_t, va: *mut c_void,
        ) -> hsa_status_t;
        "6.0" fn hsa_amd_vmem_get_alloc_properties_from_handle(
            handle: hsa_amd_vmem_alloc_handle_t, pool: *mut hsa_amd_memory_pool_t, type_: *mut u32,
        ) -> hsa_status_t;
        "6.4" fn hsa_amd_memory_get_preferred_copy_engine(
            dst_agent: hsa_agent_t, src_agent: hsa_agent_t, recommended_mask: *mut u32,
        ) -> hsa_status_t;
        "6.2" fn hsa_amd_vmem_address_reserve_align(
            va: *mut *mut c_void, size: usize, address: u64, alignment: u64, flags: u64,
        ) -> hsa_status_t;
    }
}

impl Functions {
    /// Opens ROCr and resolves the table. The library is never closed: other users of the process may hold it.
    ///
    /// `library` is opened instead of the usual names when it is given.
    ///
    /// `RTLD_GLOBAL` lets hooks that look ROCr's functions up by name (UCX, libfabric, Cray's GTL) find this one copy.
    pub fn load(library: Option<&OsStr>) -> Result<Self, LoadError> {
        let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL | libc::RTLD_NODELETE;
        let mut why = String::new();
        let usual = LIBRARIES.map(OsStr::new);
        let names = library.as_ref().map_or(usual.as_slice(), core::slice::from_ref);
        for name in names {
            // SAFETY: ROCr's constructors have no preconditions.
            match unsafe { Library::open(Some(name), flags) } {
                Ok(library) => {
                    let functions = Self::resolve(&library);
                    core::mem::forget(library);
                    return functions;
                }
                Err(error) if why.is_empty() => why = error.to_string(),
                Err(_) => {}
            }
        }
        Err(LoadError::NotFound(why))
    }

    /// `hsa_amd_memory_pool_allocate` as hooks see it (see [`weak`]).
    ///
    /// # Safety
    /// `ptr` is valid for a write.
    pub unsafe fn pool_allocate(
        &self,
        pool: hsa_amd_memory_pool_t,
        size: usize,
        flags: u32,
        ptr: *mut *mut c_void,
    ) -> hsa_status_t {
        let call = weak::allocate().unwrap_or(self.hsa_amd_memory_pool_allocate);
        // SAFETY: the caller's promise.
        unsafe { call(pool, size, flags, ptr) }
    }

    /// `hsa_amd_memory_pool_free` as hooks see it (see [`weak`]).
    ///
    /// # Safety
    /// `ptr` came from [`Functions::pool_allocate`] and was not freed.
    pub unsafe fn pool_free(&self, ptr: *mut c_void) -> hsa_status_t {
        let call = weak::free().unwrap_or(self.hsa_amd_memory_pool_free);
        // SAFETY: the caller's promise.
        unsafe { call(ptr) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_and_the_optional_set_do_not_overlap() {
        for (name, _) in OPTIONAL {
            assert!(!MINIMUM.contains(name), "{name} is in both sets");
        }
    }

    #[test]
    fn an_unbound_weak_slot_is_none() {
        // The test program does not link ROCr, so both slots stay 0 and the calls fall back to the resolved ones.
        assert!(weak::allocate().is_none());
        assert!(weak::free().is_none());
    }

    #[test]
    fn a_missing_function_is_named() {
        // The C library stands for a library without the minimum set.
        // SAFETY: it is loaded already.
        let libc = unsafe { Library::open(Some("libc.so.6"), libc::RTLD_NOW) }.expect("the C library");
        match Functions::resolve(&libc) {
            Err(LoadError::TooOld(names)) => assert_eq!(names, MINIMUM),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("the C library is no HSA runtime"),
        }
    }
}
