//! What an application hands over as a module: PTX text, or a fat binary with PTX in it.

use core::ffi::CStr;

use cuda_fatbin::{Choice, memory};

use super::linker;
use super::translator::Failure;
use crate::abi::Error;
use crate::config;

/// Magic of an ELF file, here a cubin: NVIDIA machine code.
const ELF_MAGIC: u32 = 0x464c_457f;
/// More than this much is no PTX text: a bound for text whose end is only a NUL.
const TEXT_LIMIT: usize = 1 << 30;

fn invalid_image(what: &str) -> Failure {
    Failure::new(Error::INVALID_KERNEL_IMAGE, format!("error   : {what}"))
}

/// Whether a program's wrapper has the right magic number; NVIDIA ignores others.
///
/// # Safety
/// `wrapper` is null or what nvcc passes to `__cudaRegisterFatBinary`.
pub unsafe fn is_wrapper(wrapper: *const u8) -> bool {
    // SAFETY: the caller's promise; a wrapper begins with its magic number.
    !wrapper.is_null() && unsafe { wrapper.cast::<u32>().read_unaligned() } == cuda_fatbin::WRAPPER_MAGIC
}

/// Copies the PTX out of an image of unknown kind and length, NUL-terminated if it is text.
///
/// # Errors
/// INVALID_KERNEL_IMAGE for what is neither PTX nor a fat binary, NO_KERNEL_IMAGE_FOR_DEVICE for a fat binary or cubin without
/// PTX that we take.
///
/// # Safety
/// `image` is what the CUDA manual asks of `cuModuleLoadData`: text with a NUL, or a whole binary.
pub unsafe fn ptx_of(image: *const u8) -> Result<Vec<u8>, Failure> {
    // SAFETY: every kind of image has at least the bytes up to its first NUL, read here one by one up to four.
    let magic = unsafe {
        let mut bytes = [0u8; 4];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = image.add(index).read();
            if *byte == 0 && index < 3 {
                break;
            }
        }
        u32::from_le_bytes(bytes)
    };
    match magic {
        // SAFETY: the magic says what it is.
        cuda_fatbin::WRAPPER_MAGIC => ptx_of_containers(&unsafe { memory::wrapper(image.cast()) }.map_err(malformed)?),
        cuda_fatbin::CONTAINER_MAGIC => {
            // SAFETY: as above.
            let container = unsafe { memory::container(image.cast()) }.map_err(malformed)?;
            ptx_of_containers(&[container])
        }
        // SAFETY: as above.
        ELF_MAGIC => match unsafe { linker::text_of(image) } {
            linker::Elf::Linked(text) => Ok(text),
            linker::Elf::MachineCode => Err(Failure::new(
                Error::NO_KERNEL_IMAGE_FOR_DEVICE,
                "error   : the image is NVIDIA machine code (a cubin); only PTX can be translated",
            )),
            linker::Elf::Foreign => Err(invalid_image("the ELF file is no image of device code")),
        },
        _ => {
            // SAFETY: not a binary of ours, so text with a NUL at its end.
            let text = unsafe { CStr::from_ptr(image.cast()) }.to_bytes();
            check_text(text)?;
            Ok(text.to_vec())
        }
    }
}

/// PTX begins with `.version`, after blanks and comments.
fn check_text(text: &[u8]) -> Result<(), Failure> {
    if text.len() > TEXT_LIMIT {
        return Err(invalid_image("the text is too long for PTX"));
    }
    if skip_blank(text).starts_with(b".version") {
        Ok(())
    } else {
        Err(invalid_image("Binary format for key='0', ident='' is not recognized"))
    }
}

/// The PTX of a container of `bytes`, which need not be all of it.
///
/// # Errors
/// As [`ptx_of`].
pub fn ptx_of_container(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    ptx_of_containers(&[bytes])
}

/// The PTX in a host object file, container by container: code compiled with `-rdc` has one for each source.
///
/// # Errors
/// UNKNOWN for another kind of file (recorded), INVALID_KERNEL_IMAGE for one without device code; else as [`ptx_of`].
pub fn ptx_of_object(file: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
    let sections = cuda_fatbin::elf::sections(file)
        .map_err(|error| Failure::new(Error::UNKNOWN, format!("error   : this is no object file: {error}")))?;
    let containers: Vec<_> = sections
        .iter()
        .flat_map(cuda_fatbin::elf::Section::containers)
        .collect();
    if containers.is_empty() {
        return Err(invalid_image("the object has no device code"));
    }
    let (texts, refused): (Vec<_>, Vec<_>) = containers.into_iter().map(ptx_of_container).partition(Result::is_ok);
    // nvcc writes empty containers too, for sources without device code.
    match refused.into_iter().find_map(Result::err) {
        Some(failure) if texts.is_empty() => Err(failure),
        _ => Ok(texts.into_iter().flatten().collect()),
    }
}

/// What follows blanks and comments.
fn skip_blank(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        let end = match text {
            [b'/', b'/', rest @ ..] => rest.iter().position(|&c| c == b'\n').map(|at| &rest[at..]),
            [b'/', b'*', rest @ ..] => rest.windows(2).position(|pair| pair == b"*/").map(|at| &rest[at + 2..]),
            _ => return text,
        };
        text = end.unwrap_or_default();
    }
}

fn malformed(error: cuda_fatbin::Error) -> Failure {
    invalid_image(&format!("malformed fat binary: {error}"))
}

/// The PTX we take out of fat binaries: of the first that has any.
fn ptx_of_containers(containers: &[&[u8]]) -> Result<Vec<u8>, Failure> {
    let (major, minor) = *config::COMPUTE_CAPABILITY.get();
    let limit = *config::HIGHEST_PTX.get();
    let mut refused = Vec::new();
    for container in containers {
        let entries: Vec<_> = cuda_fatbin::entries(container)
            .map_err(malformed)?
            .collect::<Result<_, _>>()
            .map_err(malformed)?;
        let (taken, above): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.arch <= limit);
        refused.extend(above.iter().map(cuda_fatbin::Entry::architecture));
        match cuda_fatbin::choose_ptx(taken, major * 10 + minor) {
            Choice::Ptx(entry) => {
                let text = entry.ptx().map_err(malformed)?;
                check_text(&text)?;
                return Ok(text);
            }
            Choice::MachineCodeOnly(all) | Choice::SpecificOnly(all) => refused.extend(all),
            Choice::Empty => {}
        }
    }
    Err(Failure::new(
        Error::NO_KERNEL_IMAGE_FOR_DEVICE,
        format!(
            "error   : the fat binary holds no PTX that can be translated, only code for [{}]",
            refused.join(", ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(image: &[u8]) -> Result<Vec<u8>, Error> {
        // SAFETY: each image below ends with a NUL or is a whole binary.
        unsafe { ptx_of(image.as_ptr()) }.map_err(Error::from)
    }

    #[test]
    fn text_is_ptx_when_it_begins_with_its_version() {
        assert_eq!(load(b".version 7.8\n\0").as_deref(), Ok(&b".version 7.8\n"[..]));
        assert!(load(b"// by nvcc\n /* x */\n\t.version 7.8\n\0").is_ok());
        for text in [
            &b"\0"[..],
            b"hello world, no PTX here\0",
            b".target sm_70\n\0",
            b"/* never closed\0",
        ] {
            assert_eq!(load(text), Err(Error::INVALID_KERNEL_IMAGE), "{text:?}");
        }
    }

    #[test]
    fn machine_code_and_empty_fat_binaries_have_nothing_for_us() {
        let mut elf = [0u8; 64];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        assert_eq!(load(&elf), Err(Error::INVALID_KERNEL_IMAGE));
        let mut cubin = elf;
        cubin[18] = 190;
        assert_eq!(load(&cubin), Err(Error::NO_KERNEL_IMAGE_FOR_DEVICE));
        let mut empty = [0u8; 16];
        empty[..4].copy_from_slice(&cuda_fatbin::CONTAINER_MAGIC.to_le_bytes());
        empty[4] = 1;
        empty[6] = 16;
        assert_eq!(load(&empty), Err(Error::NO_KERNEL_IMAGE_FOR_DEVICE));
    }
}
