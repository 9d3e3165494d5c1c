//! Library Management: `cuLibrary*`, `cuKernel*`.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ffi::CString;
use std::sync::Arc;

use super::module::{read_file, symbol_name};
use crate::abi::{CUdevice, CUdeviceptr, CUfunction, CUkernel, CUlibrary, CUmodule, Error, Result, conv};
use crate::device::{self, context};
use crate::driver;
use crate::module::{self, Function, Library, image};

/// Makes a library of an image. What is wrong with it shows at first use, as recorded.
pub(in crate::api) fn load_library(out: *mut CUlibrary, image: *const c_void) -> Result<()> {
    if out.is_null() || image.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: the application promises an image as the manual describes it. It is copied, so it need not stay.
    let library = Library::loaded(unsafe { image::ptx_of(image.cast()) });
    conv::write(out, library.handle() as CUlibrary)
}

/// As [`load_library`], from a file.
pub(in crate::api) fn load_library_file(out: *mut CUlibrary, name: *const c_char) -> Result<()> {
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    load_library(out, read_file(name)?.as_ptr().cast())
}

/// A kernel of a library by name.
pub(in crate::api) fn library_kernel(out: *mut CUkernel, library: CUlibrary, name: *const c_char) -> Result<()> {
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let name = symbol_name(name)?;
    conv::write(
        out,
        module::library(library as u64)?.existing_kernel(name)?.handle() as CUkernel,
    )
}

/// Address and size of a library's variable in the current context; `managed` asks for a managed one.
pub(in crate::api) fn library_global(
    address: *mut CUdeviceptr,
    size: *mut usize,
    library: CUlibrary,
    name: *const c_char,
    managed: bool,
    context: &'static device::Context,
) -> Result<()> {
    let name = symbol_name(name)?;
    let module = module::library(library as u64)?.module(context)?;
    let (at, global) = module.global(name).map_err(|_| Error::SYMBOL_NOT_FOUND)?;
    if managed && !global.managed {
        return Err(Error::SYMBOL_NOT_FOUND);
    }
    conv::write_if(address, at);
    conv::write_if(size, global.size as usize);
    Ok(())
}

/// How many kernels a library has.
pub(in crate::api) fn library_kernel_count(count: *mut c_uint, library: CUlibrary) -> Result<()> {
    conv::write(
        count,
        module::library(library as u64)?.code()?.info.entries.len() as c_uint,
    )
}

/// The first `count` kernels of a library.
pub(in crate::api) fn library_kernels(kernels: *mut CUkernel, count: c_uint, library: CUlibrary) -> Result<()> {
    let library = module::library(library as u64)?;
    // SAFETY: the application promises room for `count` handles.
    let out = unsafe { conv::slice_mut(kernels, count as usize) }?;
    for (slot, entry) in out.iter_mut().zip(&library.code()?.info.entries) {
        *slot = library.kernel(&entry.name).handle() as CUkernel;
    }
    Ok(())
}

/// A C string of the process that holds `name`: applications keep the pointer as long as the module.
pub(in crate::api) fn lasting_name(name: &str) -> Result<*const c_char> {
    use std::collections::HashMap;
    use std::sync::Mutex;
    static NAMES: Mutex<Option<HashMap<String, CString>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(|e| e.into_inner());
    let names = names.get_or_insert_with(HashMap::new);
    if !names.contains_key(name) {
        names.insert(name.to_owned(), CString::new(name).map_err(|_| Error::INVALID_VALUE)?);
    }
    // The string is owned by the map, which never drops one: its heap address stays.
    names.get(name).map(|text| text.as_ptr()).ok_or(Error::UNKNOWN)
}

/// A kernel's function on a device: in the current context if that is the device's, else in its primary context.
pub(in crate::api) fn kernel_on(kernel: CUkernel, device: CUdevice) -> Result<Arc<Function>> {
    let device = device::get(device)?;
    let kernel = module::kernel(kernel as u64)?;
    let context = match context::peek() {
        Some(current) if current.device.ordinal == device.ordinal => current,
        _ => device.primary_context(),
    };
    kernel.function(context).map(|(_, function)| function)
}

driver! {
    /// CUDA Driver API, Library Management: `cuLibraryLoadData`.
    fn cuLibraryLoadData(
        library: *mut CUlibrary, code: *const c_void, _jit_options: *mut c_int, _jit_values: *mut *mut c_void,
        _jit_count: c_uint, _options: *mut c_int, _values: *mut *mut c_void, _count: c_uint,
    ) {
        device::initialized()?;
        load_library(library, code)
    }

    /// CUDA Driver API, Library Management: `cuLibraryLoadFromFile`.
    fn cuLibraryLoadFromFile(
        library: *mut CUlibrary, name: *const c_char, _jit_options: *mut c_int, _jit_values: *mut *mut c_void,
        _jit_count: c_uint, _options: *mut c_int, _values: *mut *mut c_void, _count: c_uint,
    ) {
        device::initialized()?;
        load_library_file(library, name)
    }

    /// CUDA Driver API, Library Management: `cuLibraryUnload`.
    fn cuLibraryUnload(library: CUlibrary) {
        device::initialized()?;
        module::library(library as u64)?.unload();
        Ok(())
    }

    /// CUDA Driver API, Library Management: `cuLibraryGetKernel`.
    fn cuLibraryGetKernel(kernel: *mut CUkernel, library: CUlibrary, name: *const c_char) {
        device::initialized()?;
        library_kernel(kernel, library, name)
    }

    /// CUDA Driver API, Library Management: `cuLibraryGetKernelCount`.
    fn cuLibraryGetKernelCount(count: *mut c_uint, library: CUlibrary) {
        device::initialized()?;
        library_kernel_count(count, library)
    }

    /// CUDA Driver API, Library Management: `cuLibraryEnumerateKernels`.
    fn cuLibraryEnumerateKernels(kernels: *mut CUkernel, count: c_uint, library: CUlibrary) {
        device::initialized()?;
        library_kernels(kernels, count, library)
    }

    /// CUDA Driver API, Library Management: `cuLibraryGetModule`.
    fn cuLibraryGetModule(module: *mut CUmodule, library: CUlibrary) {
        let context = context::current()?;
        conv::write(module, module::library(library as u64)?.module(context)?.handle() as CUmodule)
    }

    /// CUDA Driver API, Library Management: `cuLibraryGetGlobal`.
    fn cuLibraryGetGlobal(address: *mut CUdeviceptr, size: *mut usize, library: CUlibrary, name: *const c_char) {
        library_global(address, size, library, name, false, context::current()?)
    }

    /// CUDA Driver API, Library Management: `cuLibraryGetManaged`.
    fn cuLibraryGetManaged(address: *mut CUdeviceptr, size: *mut usize, library: CUlibrary, name: *const c_char) {
        library_global(address, size, library, name, true, context::current()?)
    }

    /// CUDA Driver API, Library Management: `cuKernelGetFunction`.
    fn cuKernelGetFunction(function: *mut CUfunction, kernel: CUkernel) {
        let context = context::current()?;
        conv::write(function, module::kernel(kernel as u64)?.function(context)?.0 as CUfunction)
    }

    /// CUDA Driver API, Library Management: `cuKernelGetLibrary`.
    fn cuKernelGetLibrary(library: *mut CUlibrary, kernel: CUkernel) {
        device::initialized()?;
        conv::write(library, module::kernel(kernel as u64)?.library()?.handle() as CUlibrary)
    }

    /// CUDA Driver API, Library Management: `cuKernelGetName`.
    fn cuKernelGetName(name: *mut *const c_char, kernel: CUkernel) {
        device::initialized()?;
        conv::write(name, lasting_name(module::kernel(kernel as u64)?.name())?)
    }

    /// CUDA Driver API, Library Management: `cuKernelGetParamInfo`.
    fn cuKernelGetParamInfo(kernel: CUkernel, index: usize, offset: *mut usize, size: *mut usize) {
        device::initialized()?;
        let kernel = module::kernel(kernel as u64)?;
        let library = kernel.library()?;
        let entry = library.code()?.entry(kernel.name()).ok_or(Error::SYMBOL_NOT_FOUND)?;
        let param = entry.params.get(index).ok_or(Error::INVALID_VALUE)?;
        conv::write(offset, param.offset as usize)?;
        conv::write_if(size, param.size as usize);
        Ok(())
    }

    /// CUDA Driver API, Library Management: `cuKernelGetAttribute`.
    fn cuKernelGetAttribute(value: *mut c_int, attribute: c_int, kernel: CUkernel, device: CUdevice) {
        device::initialized()?;
        conv::write(value, kernel_on(kernel, device)?.attribute(attribute)?)
    }

    /// CUDA Driver API, Library Management: `cuKernelSetAttribute`.
    fn cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: CUkernel, device: CUdevice) {
        device::initialized()?;
        kernel_on(kernel, device)?.set_attribute(attribute, value)
    }

    /// CUDA Driver API, Library Management: `cuKernelSetCacheConfig`.
    fn cuKernelSetCacheConfig(kernel: CUkernel, config: c_uint, device: CUdevice) {
        device::initialized()?;
        kernel_on(kernel, device)?.set_cache_config(config)
    }
}
