//! What nvcc's start-up code and launch stubs call: `__cuda*`.
//!
//! The registering functions run in constructors: they note addresses and nothing else.

use core::ffi::{c_char, c_int, c_uint, c_void};

use super::execution::{by_symbol, launch_kernel};
use crate::abi::{Error, conv, cudaKernel_t, cudaStream_t, dim3};
use crate::api::guard;
use crate::device::context;
use crate::module::registration;
use crate::thread_state::ThreadState;
use crate::{runtime, streamed};

/// A launch between `<<<` and the stub's call.
#[derive(Clone, Copy)]
struct Configuration {
    grid: dim3,
    block: dim3,
    shared: usize,
    stream: cudaStream_t,
}

thread_local! {
    static CONFIGURATIONS: ThreadState<Vec<Configuration>> = const { ThreadState::new(Vec::new()) };
}

/// Registers a program's fat binary; the result is the key of the calls below.
///
/// # Safety
/// `wrapper` is nvcc's wrapper of a fat binary, which stays.
#[allow(non_snake_case)]
pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *mut c_void) -> *mut *mut c_void {
    // SAFETY: the caller's promise.
    guard::plain("__cudaRegisterFatBinary", 0, || unsafe {
        registration::begin(wrapper.cast_const().cast())
    }) as *mut _
}

/// Ends a registration: from here on its kernels and variables exist.
///
/// # Safety
/// None: a key that is none does nothing.
#[allow(non_snake_case)]
pub unsafe extern "C" fn __cudaRegisterFatBinaryEnd(key: *mut *mut c_void) {
    guard::plain("__cudaRegisterFatBinaryEnd", (), || registration::end(key as usize));
}

/// Takes a registration back.
///
/// # Safety
/// None: a key that is none does nothing.
#[allow(non_snake_case)]
pub unsafe extern "C" fn __cudaUnregisterFatBinary(key: *mut *mut c_void) {
    guard::plain("__cudaUnregisterFatBinary", (), || registration::remove(key as usize));
}

/// Registers a kernel: `host` is what the program launches. The last six arguments are of another age.
///
/// # Safety
/// `device_name` is a string.
#[allow(non_snake_case, clippy::too_many_arguments)]
pub unsafe extern "C" fn __cudaRegisterFunction(
    key: *mut *mut c_void,
    host: *const c_char,
    _device_function: *mut c_char,
    device_name: *const c_char,
    _thread_limit: c_int,
    _thread_id: *mut c_void,
    _block_id: *mut c_void,
    _block_dim: *mut c_void,
    _grid_dim: *mut c_void,
    _warp_size: *mut c_int,
) {
    guard::plain("__cudaRegisterFunction", (), || {
        // SAFETY: the caller's promise.
        if let Ok(name) = unsafe { conv::string(device_name) } {
            registration::add_kernel(key as usize, host as usize, name);
        }
    });
}

/// Registers a `__device__` or `__constant__` variable.
///
/// # Safety
/// `device_name` is a string.
#[allow(non_snake_case, clippy::too_many_arguments)]
pub unsafe extern "C" fn __cudaRegisterVar(
    key: *mut *mut c_void,
    host: *mut c_char,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    guard::plain("__cudaRegisterVar", (), || {
        // SAFETY: the caller's promise.
        if let Ok(name) = unsafe { conv::string(device_name) } {
            registration::add_variable(key as usize, host as usize, name, size as u64);
        }
    });
}

/// Registers a `__managed__` variable: the pointer at `host` is to hold its address.
///
/// # Safety
/// `host` points to a pointer variable that stays, `device_name` is a string.
#[allow(non_snake_case, clippy::too_many_arguments)]
pub unsafe extern "C" fn __cudaRegisterManagedVar(
    key: *mut *mut c_void,
    host: *mut *mut c_void,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    guard::plain("__cudaRegisterManagedVar", (), || {
        // SAFETY: the caller's promise.
        if let Ok(name) = unsafe { conv::string(device_name) } {
            registration::add_managed(key as usize, host as usize, name, size as u64);
        }
    });
}

/// Makes managed variables usable on the host; 1 when that worked.
///
/// # Safety
/// None.
#[allow(non_snake_case)]
pub unsafe extern "C" fn __cudaInitModule(_key: *mut *mut c_void) -> c_char {
    guard::plain("__cudaInitModule", 0, || {
        match context::runtime_current().and_then(registration::set_managed_pointers) {
            Ok(()) => 1,
            Err(error) => {
                log::error!("managed variables cannot be used: {error:?}");
                0
            }
        }
    })
}

/// Notes the configuration of a launch for the stub that follows; 0 says go on.
///
/// # Safety
/// None.
#[allow(non_snake_case)]
pub unsafe extern "C" fn __cudaPushCallConfiguration(
    grid: dim3,
    block: dim3,
    shared: usize,
    stream: cudaStream_t,
) -> c_uint {
    guard::plain("__cudaPushCallConfiguration", 1, || {
        ThreadState::change(&CONFIGURATIONS, |stack| {
            stack.push(Configuration {
                grid,
                block,
                shared,
                stream,
            })
        });
        0
    })
}

runtime! {
    /// Takes the last configuration of [`__cudaPushCallConfiguration`]; `MissingConfiguration` when there is none.
    fn __cudaPopCallConfiguration(grid: *mut dim3, block: *mut dim3, shared: *mut usize, stream: *mut c_void) {
        let last = ThreadState::change(&CONFIGURATIONS, Vec::pop).ok_or(Error::MISSING_CONFIGURATION)?;
        conv::write(grid, last.grid)?;
        conv::write(block, last.block)?;
        conv::write(shared, last.shared)?;
        conv::write(stream.cast::<cudaStream_t>(), last.stream)
    }

    /// The kernel that a host function stands for.
    fn __cudaGetKernel(kernel: *mut cudaKernel_t, symbol: *const c_void) {
        conv::write(kernel, by_symbol(symbol)?.handle() as cudaKernel_t)
    }
}

streamed! { runtime
    /// Launches a kernel by its handle.
    fn __cudaLaunchKernel(
        kernel: cudaKernel_t, grid: dim3, block: dim3, args: *mut *mut c_void, shared: usize, stream: cudaStream_t,
    ), fn __cudaLaunchKernel_ptsz(..) |default| {
        // SAFETY: nvcc's stub passes what the kernel expects.
        unsafe { launch_kernel(kernel.cast_const().cast(), grid, block, args, shared, stream, default, false) }
    }
}
