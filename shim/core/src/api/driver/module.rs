//! Module Management: `cuModule*`.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use crate::abi::{CUdeviceptr, CUfunction, CUmodule, Error, Result, conv};
use crate::device::context;
use crate::driver;
use crate::module::code::Code;
use crate::module::translator::Failure;
use crate::module::{self, Module, image, jit};

/// Loads an image as a module of the current context.
fn load(out: *mut CUmodule, image: *const c_void, options: &jit::Options) -> Result<()> {
    let context = context::current()?;
    if out.is_null() || image.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let loaded = || -> core::result::Result<Arc<Module>, Failure> {
        options.check()?;
        // SAFETY: the application promises an image as the manual describes it.
        let ptx = unsafe { image::ptx_of(image.cast()) }?;
        let code = Arc::new(Code::new(ptx)?);
        Module::new(code, context).map_err(|error| Failure::new(error, "error   : the module cannot be loaded"))
    };
    let result = loaded();
    let info = result.as_ref().map(|module| module.info_log()).unwrap_or_default();
    options.report(result.as_ref().err(), &info);
    conv::write(out, result?.handle() as CUmodule)
}

driver! {
    /// CUDA Driver API, Module Management: `cuModuleLoadData`.
    fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void) {
        load(module, image, &jit::Options::default())
    }

    /// CUDA Driver API, Module Management: `cuModuleLoadDataEx`.
    fn cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void,
    ) {
        context::current()?;
        // SAFETY: the application promises `count` options and values.
        let options = unsafe { jit::Options::read(count, options, values) }?;
        load(module, image, &options)
    }

    /// CUDA Driver API, Module Management: `cuModuleLoadFatBinary`.
    fn cuModuleLoadFatBinary(module: *mut CUmodule, image: *const c_void) {
        load(module, image, &jit::Options::default())
    }

    /// CUDA Driver API, Module Management: `cuModuleLoad`.
    fn cuModuleLoad(module: *mut CUmodule, name: *const c_char) {
        context::current()?;
        if module.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let bytes = read_file(name)?;
        load(module, bytes.as_ptr().cast(), &jit::Options::default())
    }

    /// CUDA Driver API, Module Management: `cuModuleUnload`. Waits for the context's work.
    fn cuModuleUnload(module: CUmodule) {
        context::usable()?;
        module::module(module as u64)?.unload()
    }

    /// CUDA Driver API, Module Management: `cuModuleGetFunction`.
    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) {
        context::usable()?;
        if function.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let name = symbol_name(name)?;
        let (handle, _) = module::module(module as u64)?.function(name)?;
        conv::write(function, handle as CUfunction)
    }

    /// CUDA Driver API, Module Management: `cuModuleGetGlobal`. Either output may be NULL, not both.
    fn cuModuleGetGlobal_v2(address: *mut CUdeviceptr, size: *mut usize, module: CUmodule, name: *const c_char) {
        context::usable()?;
        let name = symbol_name(name)?;
        if address.is_null() && size.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let module = module::module(module as u64)?;
        let (at, global) = module.global(name)?;
        conv::write_if(address, at);
        conv::write_if(size, global.size as usize);
        Ok(())
    }

    /// CUDA Driver API, Module Management: `cuModuleGetFunctionCount`.
    fn cuModuleGetFunctionCount(count: *mut c_uint, module: CUmodule) {
        context::usable()?;
        conv::write(count, module::module(module as u64)?.code().info.entries.len() as c_uint)
    }

    /// CUDA Driver API, Module Management: `cuModuleEnumerateFunctions`.
    fn cuModuleEnumerateFunctions(functions: *mut CUfunction, count: c_uint, module: CUmodule) {
        context::usable()?;
        let module = module::module(module as u64)?;
        // SAFETY: the application promises room for `count` handles.
        let out = unsafe { conv::slice_mut(functions, count as usize) }?;
        for (slot, entry) in out.iter_mut().zip(&module.code().info.entries) {
            *slot = module.function(&entry.name)?.0 as CUfunction;
        }
        Ok(())
    }

    /// CUDA Driver API, Module Management: `cuModuleGetLoadingMode`. Kernels are always loaded at first use (2).
    fn cuModuleGetLoadingMode(mode: *mut c_int) {
        conv::write(mode, 2)
    }
}

/// A symbol's name: neither NULL nor empty. A name that is not UTF-8 names nothing that PTX can hold.
pub(super) fn symbol_name<'a>(name: *const c_char) -> Result<&'a str> {
    // SAFETY: the application promises a string that stays for the call.
    let bytes = unsafe { conv::bytes(name) }?;
    if bytes.is_empty() {
        return Err(Error::INVALID_VALUE);
    }
    core::str::from_utf8(bytes).map_err(|_| Error::SYMBOL_NOT_FOUND)
}

/// The content of a file, with a NUL behind it so that text ends.
pub(in crate::api) fn read_file(name: *const c_char) -> Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the application promises a string that stays for the call.
    let name = unsafe { conv::bytes(name) }?;
    let mut bytes = std::fs::read(std::ffi::OsStr::from_bytes(name)).map_err(|_| Error::FILE_NOT_FOUND)?;
    // Four, so that even an empty file can be asked for its magic number.
    bytes.extend([0; 4]);
    Ok(bytes)
}
