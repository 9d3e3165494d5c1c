//! Fat binaries known only by a pointer, as `__cudaRegisterFatBinary` and `cuModuleLoadData` get them.
//!
//! Everything here trusts the caller that the pointer leads to such a thing; lengths come from headers. Once a slice is
//! made, the safe functions of this crate check all else.

use core::ffi::c_void;

use crate::{Error, HEADER_SIZE, WRAPPER_MAGIC, container_size};

/// Most prelinked containers behind one wrapper.
const MAX_PRELINKED: usize = 4096;

/// `__fatBinC_Wrapper_t`.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    container: *const c_void,
    /// Version 1: a file name or null. Version 2: an array of containers, ending in null.
    other: *const c_void,
}

/// The container at `pointer`.
///
/// # Safety
/// `pointer` is null or leads to at least 16 readable bytes and, if those are a container's header, to the whole
/// container, which stays unchanged for `'b`.
pub unsafe fn container<'b>(pointer: *const c_void) -> Result<&'b [u8], Error> {
    if pointer.is_null() {
        return Err(Error::Null);
    }
    // SAFETY: the caller promises 16 readable bytes.
    let header = unsafe { core::slice::from_raw_parts(pointer.cast::<u8>(), HEADER_SIZE) };
    let size = container_size(header)?;
    // SAFETY: the header is a container's, and the caller promises that all of it is there.
    Ok(unsafe { core::slice::from_raw_parts(pointer.cast::<u8>(), size) })
}

/// The containers that a wrapper leads to: its own and, for version 2, the prelinked ones.
///
/// # Safety
/// `pointer` is null or leads to a wrapper (24 readable bytes), whose pointers lead to containers as
/// [`container`] asks.
pub unsafe fn wrapper<'b>(pointer: *const c_void) -> Result<Vec<&'b [u8]>, Error> {
    if pointer.is_null() {
        return Err(Error::Null);
    }
    // SAFETY: the caller promises 24 readable bytes; nothing is assumed of their alignment.
    let wrapper = unsafe { pointer.cast::<Wrapper>().read_unaligned() };
    if wrapper.magic != WRAPPER_MAGIC {
        return Err(Error::Magic);
    }
    // SAFETY: the wrapper's pointer leads to a container.
    let mut found = vec![unsafe { container(wrapper.container) }?];
    if wrapper.version >= 2 && !wrapper.other.is_null() {
        for index in 0..MAX_PRELINKED {
            // SAFETY: the array ends in null, and we stop there.
            let next = unsafe { wrapper.other.cast::<*const c_void>().add(index).read_unaligned() };
            if next.is_null() {
                break;
            }
            // SAFETY: the array's pointers lead to containers. One that does not is left out: the program's own
            // container is what kernels are looked up in first.
            found.extend(unsafe { container(next) });
        }
    }
    Ok(found)
}
