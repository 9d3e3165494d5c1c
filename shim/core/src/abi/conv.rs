//! Where C arguments become Rust values: the only place that follows a client's pointer to a plain value.
//!
//! A NULL pointer is [`Error::INVALID_VALUE`]. Whether a pointer that is not NULL points to memory of the right size is the
//! client's promise, in Rust as in C: that is what each entry point's safety section says.

// The functions that follow one pointer are safe to name so that bodies of API calls read as plain Rust; the promise is made
// where the pointer enters, at the `unsafe extern "C"` entry point.
#![allow(clippy::not_unsafe_ptr_arg_deref)]

use core::ffi::{CStr, c_char};
use core::slice;

use super::{Error, Result};

/// What an API function that another one calls has returned.
///
/// # Errors
/// The error that `code` is.
pub fn result(code: i32) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(Error(code)),
    }
}

/// Writes an output argument. The pointer may be unaligned.
#[inline]
pub fn write<T: Copy>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: not NULL; the caller of the C function promises room for a `T`.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Writes an output argument that may be NULL when the client does not want it.
pub fn write_if<T: Copy>(out: *mut T, value: T) {
    let _ = write(out, value);
}

/// Reads an input structure. The pointer may be unaligned.
pub fn read<T: Copy>(input: *const T) -> Result<T> {
    if input.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: not NULL; the caller of the C function promises a `T`, and every bit pattern of our C types is a value.
    Ok(unsafe { input.read_unaligned() })
}

/// The `count` elements of an input array; an empty array may be NULL.
///
/// # Safety
/// `input`, when not NULL, must be aligned and point to `count` elements that live and stay unchanged for `'a`.
pub unsafe fn slice<'a, T>(input: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check_array(input, count)?;
    // SAFETY: aligned and not NULL (checked), of a size that a slice may have (checked), alive (the caller's promise).
    Ok(unsafe { slice::from_raw_parts(input, count) })
}

/// The `count` elements of an output array; an empty array may be NULL.
///
/// # Safety
/// As [`slice`], and nothing else may refer to the elements during `'a`.
pub unsafe fn slice_mut<'a, T>(output: *mut T, count: usize) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check_array(output, count)?;
    // SAFETY: as in `slice`; unaliased by the caller's promise.
    Ok(unsafe { slice::from_raw_parts_mut(output, count) })
}

/// Refuses what no array can be: NULL, misaligned, or larger than the address space allows.
fn check_array<T>(pointer: *const T, count: usize) -> Result<()> {
    let fits = count
        .checked_mul(size_of::<T>())
        .is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if pointer.is_null() || !pointer.is_aligned() || !fits {
        return Err(Error::INVALID_VALUE);
    }
    Ok(())
}

/// A C string's bytes, without the terminating NUL.
///
/// # Safety
/// `text`, when not NULL, must end with a NUL and stay unchanged for `'a`.
pub unsafe fn bytes<'a>(text: *const c_char) -> Result<&'a [u8]> {
    if text.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: not NULL; terminated by the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A C string that must be UTF-8 (names of functions, variables, devices); otherwise [`Error::INVALID_VALUE`].
///
/// # Safety
/// As [`bytes`].
pub unsafe fn string<'a>(text: *const c_char) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    core::str::from_utf8(unsafe { bytes(text) }?).map_err(|_| Error::INVALID_VALUE)
}

/// Whether `firsts`, where the parts of a batch of `count` begin, are that: the first part begins at 0, and none is empty.
pub fn divides(firsts: &[usize], count: usize) -> bool {
    firsts.first() == Some(&0) && firsts.is_sorted_by(|a, b| a < b) && firsts.iter().all(|&at| at < count)
}

/// Writes `text` and a NUL into a buffer of `len` bytes, cut off where it does not fit. With `len` 0 nothing is written.
pub fn write_string(out: *mut c_char, len: usize, text: &str) -> Result<()> {
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let Some(room) = len.checked_sub(1) else { return Ok(()) };
    let count = text.len().min(room);
    // SAFETY: `count + 1 <= len` bytes, for which the caller of the C function promises room.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, count);
        out.add(count).write(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_an_invalid_value() {
        assert_eq!(write(core::ptr::null_mut(), 1), Err(Error::INVALID_VALUE));
        assert_eq!(read::<i32>(core::ptr::null()), Err(Error::INVALID_VALUE));
        // SAFETY: NULL is what is being tested.
        assert_eq!(unsafe { bytes(core::ptr::null()) }, Err(Error::INVALID_VALUE));
        // SAFETY: as above.
        assert_eq!(unsafe { slice::<u32>(core::ptr::null(), 1) }, Err(Error::INVALID_VALUE));
        // SAFETY: as above.
        assert_eq!(unsafe { slice::<u32>(core::ptr::null(), 0) }, Ok(&[][..]));
    }

    #[test]
    fn an_array_larger_than_the_address_space_is_refused() {
        // SAFETY: refused before it is looked at.
        assert_eq!(unsafe { slice(&1u64, usize::MAX) }, Err(Error::INVALID_VALUE));
    }

    #[test]
    fn the_parts_of_a_batch_begin_with_its_first_and_are_not_empty() {
        for firsts in [&[0][..], &[0, 1], &[0, 2], &[0, 1, 2]] {
            assert!(divides(firsts, 3), "{firsts:?}");
        }
        for firsts in [&[][..], &[1], &[0, 0], &[0, 2, 1], &[0, 3]] {
            assert!(!divides(firsts, 3), "{firsts:?}");
        }
    }

    #[test]
    fn strings_are_cut_to_the_buffer_and_always_end() {
        for (len, expected) in [(0, "......"), (1, "\0....."), (4, "Reg\0.."), (6, "Regau\0")] {
            let mut buffer = *b"......";
            write_string(buffer.as_mut_ptr().cast(), len, "Regauge").unwrap();
            assert_eq!(buffer, expected.as_bytes(), "length {len}");
        }
    }
}
