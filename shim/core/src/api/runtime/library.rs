//! Library Management: `cudaLibrary*`, `cudaKernel*`.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::abi::{Error, cudaKernel_t, cudaLibrary_t};
use crate::api::driver;
use crate::device::context;
use crate::module;
use crate::runtime;

runtime! {
    /// CUDA Runtime API, Library Management: `cudaLibraryLoadData`.
    fn cudaLibraryLoadData(
        library: *mut cudaLibrary_t, code: *const c_void, _jit_options: *mut c_int, _jit_values: *mut *mut c_void,
        _jit_count: c_uint, _options: *mut c_int, _values: *mut *mut c_void, _count: c_uint,
    ) {
        context::runtime_current()?;
        driver::load_library(library, code)
    }

    /// CUDA Runtime API, Library Management: `cudaLibraryLoadFromFile`.
    fn cudaLibraryLoadFromFile(
        library: *mut cudaLibrary_t, name: *const c_char, _jit_options: *mut c_int, _jit_values: *mut *mut c_void,
        _jit_count: c_uint, _options: *mut c_int, _values: *mut *mut c_void, _count: c_uint,
    ) {
        context::runtime_current()?;
        driver::load_library_file(library, name)
    }

    /// CUDA Runtime API, Library Management: `cudaLibraryUnload`.
    fn cudaLibraryUnload(library: cudaLibrary_t) {
        context::runtime_current()?;
        module::library(library as u64)?.unload();
        Ok(())
    }

    /// CUDA Runtime API, Library Management: `cudaLibraryGetKernel`.
    fn cudaLibraryGetKernel(kernel: *mut cudaKernel_t, library: cudaLibrary_t, name: *const c_char) {
        context::runtime_current()?;
        driver::library_kernel(kernel, library, name)
    }

    /// CUDA Runtime API, Library Management: `cudaLibraryGetKernelCount`.
    fn cudaLibraryGetKernelCount(count: *mut c_uint, library: cudaLibrary_t) {
        context::runtime_current()?;
        driver::library_kernel_count(count, library)
    }

    /// CUDA Runtime API, Library Management: `cudaLibraryEnumerateKernels`.
    fn cudaLibraryEnumerateKernels(kernels: *mut cudaKernel_t, count: c_uint, library: cudaLibrary_t) {
        context::runtime_current()?;
        driver::library_kernels(kernels, count, library)
    }

    /// CUDA Runtime API, Library Management: `cudaLibraryGetGlobal`.
    fn cudaLibraryGetGlobal(address: *mut *mut c_void, size: *mut usize, library: cudaLibrary_t, name: *const c_char) {
        driver::library_global(address.cast(), size, library, name, false, context::runtime_current()?)
    }

    /// CUDA Runtime API, Library Management: `cudaLibraryGetManaged`.
    fn cudaLibraryGetManaged(address: *mut *mut c_void, size: *mut usize, library: cudaLibrary_t, name: *const c_char) {
        driver::library_global(address.cast(), size, library, name, true, context::runtime_current()?)
    }

    /// CUDA Runtime API, Library Management: `cudaKernelSetAttributeForDevice`.
    fn cudaKernelSetAttributeForDevice(kernel: cudaKernel_t, attribute: c_int, value: c_int, device: c_int) {
        context::runtime_current()?;
        if kernel.is_null() {
            return Err(Error::INVALID_DEVICE_FUNCTION);
        }
        driver::kernel_on(kernel, device)?.set_attribute(attribute, value)
    }
}
