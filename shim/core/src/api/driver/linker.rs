//! Module Management: `cuLink*`.

use core::ffi::{c_char, c_int, c_uint, c_void};

use super::module::read_file;
use crate::abi::{CUlinkState, Error, Result, conv};
use crate::device::context;
use crate::driver;
use crate::module::linker::{self, Linker};
use crate::module::translator::Failure;
use crate::module::{image, jit};

/// `CU_JIT_INPUT_*`.
const CUBIN: c_int = 0;
const PTX: c_int = 1;
const FAT_BINARY: c_int = 2;
const OBJECT: c_int = 3;
const LIBRARY: c_int = 4;

/// What archives begin with.
const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";
/// Bytes of an ELF header.
const SMALLEST_IMAGE: usize = 64;

/// Makes a linker.
///
/// # Safety
/// The arrays have `count` elements; log buffers stay until the linker is destroyed.
unsafe fn create(count: c_uint, options: *mut c_int, values: *mut *mut c_void, out: *mut CUlinkState) -> Result<()> {
    context::current()?;
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let options = unsafe { jit::Options::read(count, options, values) }?;
    conv::write(out, Linker::create(options) as CUlinkState)
}

/// Adds an input to a linker. Only PTX can be linked, in whatever wrapping: fat binaries and objects hold it beside machine code.
///
/// # Safety
/// `data` is `size` bytes of what `kind` says; `name` is NULL or a C string.
unsafe fn add(state: CUlinkState, kind: c_int, data: *const c_void, size: usize, name: *const c_char) -> Result<()> {
    let linker = linker::find(state as u64)?;
    if data.is_null() || size == 0 || !(CUBIN..=LIBRARY).contains(&kind) {
        return Err(Error::INVALID_VALUE);
    }
    let name = match name.is_null() {
        true => "",
        // SAFETY: the caller's promise.
        false => unsafe { conv::string(name) }?,
    };
    // SAFETY: as above.
    let bytes = unsafe { conv::slice(data.cast::<u8>(), size) }?;
    let is_container = bytes.starts_with(&cuda_fatbin::CONTAINER_MAGIC.to_le_bytes());
    let one = |text: core::result::Result<Vec<u8>, Failure>| text.map(|text| vec![text]);
    let texts = match kind {
        PTX => {
            // Text need not end with a NUL.
            let mut text = bytes.to_vec();
            text.push(0);
            // SAFETY: text with a NUL at its end.
            one(unsafe { image::ptx_of(text.as_ptr()) })
        }
        CUBIN | FAT_BINARY if is_container => one(image::ptx_of_container(bytes)),
        // Other images have to tell their own size from their header.
        CUBIN | FAT_BINARY if size >= SMALLEST_IMAGE => {
            // SAFETY: the caller's promise.
            one(unsafe { image::ptx_of(bytes.as_ptr()) })
        }
        OBJECT => image::ptx_of_object(bytes),
        LIBRARY if !bytes.starts_with(ARCHIVE_MAGIC) => {
            Err(Failure::new(Error::UNKNOWN, "error   : this is no archive of objects"))
        }
        LIBRARY => Err(Failure::new(
            Error::NO_KERNEL_IMAGE_FOR_DEVICE,
            "error   : libraries cannot be linked, only PTX",
        )),
        _ => Err(Failure::new(
            Error::INVALID_KERNEL_IMAGE,
            "error   : the image is too short",
        )),
    };
    match texts {
        // A fat binary with nothing for this GPU is as good as empty (recorded): what is missing shows when all is there.
        Err(failure) if kind == FAT_BINARY && failure.error == Error::NO_KERNEL_IMAGE_FOR_DEVICE && is_container => {
            log::warn!("{name} adds nothing to what is linked: {}", failure.log);
            linker.add(name, Ok(Vec::new()))
        }
        texts => linker.add(name, texts),
    }
}

/// As [`add`], of a file.
///
/// # Safety
/// `path` is NULL or a C string.
unsafe fn add_file(state: CUlinkState, kind: c_int, path: *const c_char) -> Result<()> {
    linker::find(state as u64)?;
    let bytes = read_file(path)?;
    // SAFETY: the bytes of the file; `path` as the caller promises.
    unsafe { add(state, kind, bytes.as_ptr().cast(), bytes.len(), path) }
}

driver! {
    /// CUDA Driver API before 6.5: `cuLinkCreate`.
    fn cuLinkCreate(count: c_uint, options: *mut c_int, values: *mut *mut c_void, state: *mut CUlinkState) {
        // SAFETY: the application promises the arrays and the buffers in them.
        unsafe { create(count, options, values, state) }
    }

    /// CUDA Driver API, Module Management: `cuLinkCreate`.
    fn cuLinkCreate_v2(count: c_uint, options: *mut c_int, values: *mut *mut c_void, state: *mut CUlinkState) {
        // SAFETY: as above.
        unsafe { create(count, options, values, state) }
    }

    /// CUDA Driver API before 6.5: `cuLinkAddData`.
    fn cuLinkAddData(
        state: CUlinkState, kind: c_int, data: *mut c_void, size: usize, name: *const c_char, _count: c_uint,
        _options: *mut c_int, _values: *mut *mut c_void,
    ) {
        // SAFETY: the application promises what the kind says.
        unsafe { add(state, kind, data, size, name) }
    }

    /// CUDA Driver API, Module Management: `cuLinkAddData`.
    fn cuLinkAddData_v2(
        state: CUlinkState, kind: c_int, data: *mut c_void, size: usize, name: *const c_char, _count: c_uint,
        _options: *mut c_int, _values: *mut *mut c_void,
    ) {
        // SAFETY: as above.
        unsafe { add(state, kind, data, size, name) }
    }

    /// CUDA Driver API before 6.5: `cuLinkAddFile`.
    fn cuLinkAddFile(
        state: CUlinkState, kind: c_int, path: *const c_char, _count: c_uint, _options: *mut c_int, _values: *mut *mut c_void,
    ) {
        // SAFETY: the application promises a C string.
        unsafe { add_file(state, kind, path) }
    }

    /// CUDA Driver API, Module Management: `cuLinkAddFile`.
    fn cuLinkAddFile_v2(
        state: CUlinkState, kind: c_int, path: *const c_char, _count: c_uint, _options: *mut c_int, _values: *mut *mut c_void,
    ) {
        // SAFETY: as above.
        unsafe { add_file(state, kind, path) }
    }

    /// CUDA Driver API, Module Management: `cuLinkComplete`. The image belongs to the linker.
    fn cuLinkComplete(state: CUlinkState, image: *mut *mut c_void, size: *mut usize) {
        let (data, length) = linker::find(state as u64)?.complete()?;
        conv::write(image, data.cast_mut().cast())?;
        conv::write_if(size, length);
        Ok(())
    }

    /// CUDA Driver API, Module Management: `cuLinkDestroy`.
    fn cuLinkDestroy(state: CUlinkState) {
        linker::find(state as u64)?.destroy();
        Ok(())
    }
}
