//! Kernel arguments as the compiled kernel reads them.
//!
//! ```text
//! 0                      param_size   next multiple of 8              + 72
//! [ parameters, as PTX lays them out ][pad][ hidden arguments          ]
//! ```
//!
//! The hidden arguments are drawn in `kernels_ptx_translate::protocol`.

use kernels_ptx_translate::protocol::{Entry, HIDDEN_ARGS_SIZE};

use super::launch::Shape;
use crate::abi::{Error, Result};

/// What a launch tells the kernel besides its parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hidden {
    /// Address of the module's variables; 0 when it has none.
    pub data: u64,
    /// Address of the `printf` ring; 0 when the kernel does not print.
    pub ring: u64,
    /// Address of the heap; 0 when the kernel does not allocate.
    pub heap: u64,
    /// Number of the launch, unique in the process.
    pub grid_id: u64,
    /// Address of the grid workspace; 0 when the launch is not cooperative.
    pub grid_workspace: u64,
}

/// Where the application's arguments are.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// `kernelParams`: an array of pointers, one for each parameter. May be NULL for a kernel without parameters.
    Pointers(*const *const u8),
    /// `CU_LAUNCH_PARAM_BUFFER_POINTER` and `_SIZE`: the parameter block itself.
    Buffer(*const u8, usize),
}

/// Bytes from the start of the block to the hidden arguments.
fn hidden_offset(entry: &Entry) -> usize {
    (entry.param_size as usize).next_multiple_of(8)
}

/// Bytes of the whole block.
pub fn size(entry: &Entry) -> usize {
    hidden_offset(entry) + HIDDEN_ARGS_SIZE as usize
}

/// Writes the block of a launch, which is [`size`] bytes.
///
/// # Errors
/// INVALID_VALUE for missing pointers or an empty buffer, LAUNCH_OUT_OF_RESOURCES for a buffer larger than the
/// parameters (as recorded: a smaller one is accepted, and the rest reads as zero).
///
/// # Safety
/// The pointers are what the source says: one readable value for each parameter, or a buffer of that many bytes.
pub unsafe fn pack(entry: &Entry, source: Source, shape: &Shape, hidden: &Hidden, block: &mut [u8]) -> Result<()> {
    let at = hidden_offset(entry);
    let (parameters, hidden_room) = block.split_at_mut(at);
    match source {
        Source::Pointers(pointers) => {
            if pointers.is_null() && !entry.params.is_empty() {
                return Err(Error::INVALID_VALUE);
            }
            // What is left out is zero, up to the hidden arguments.
            parameters[entry.param_size as usize..].fill(0);
            for (index, param) in entry.params.iter().enumerate() {
                // SAFETY: the caller promises one pointer for each parameter.
                let value = unsafe { *pointers.add(index) };
                let (at, len) = (param.offset as usize, param.size as usize);
                let room = parameters.get_mut(at..at + len).ok_or(Error::INVALID_KERNEL_IMAGE)?;
                if value.is_null() {
                    return Err(Error::INVALID_VALUE);
                }
                // SAFETY: and that each points to a value of the parameter's size. Most are words.
                unsafe {
                    match len {
                        8 => core::ptr::copy_nonoverlapping(value, room.as_mut_ptr(), 8),
                        4 => core::ptr::copy_nonoverlapping(value, room.as_mut_ptr(), 4),
                        _ => core::ptr::copy_nonoverlapping(value, room.as_mut_ptr(), len),
                    }
                };
            }
        }
        Source::Buffer(buffer, len) => {
            if len == 0 || buffer.is_null() {
                return Err(Error::INVALID_VALUE);
            }
            if len > entry.param_size as usize {
                return Err(Error::LAUNCH_OUT_OF_RESOURCES);
            }
            // SAFETY: the caller promises `len` readable bytes.
            unsafe { core::ptr::copy_nonoverlapping(buffer, parameters.as_mut_ptr(), len) };
            parameters[len..].fill(0);
        }
    }
    let mut words = [0u32; HIDDEN_ARGS_SIZE as usize / 4];
    for (place, address) in [
        (0, hidden.data),
        (2, hidden.ring),
        (4, hidden.heap),
        (14, hidden.grid_id),
        (16, hidden.grid_workspace),
    ] {
        words[place] = address as u32;
        words[place + 1] = (address >> 32) as u32;
    }
    words[6..9].copy_from_slice(&shape.block);
    words[9..12].copy_from_slice(&shape.grid);
    words[12] = shape.dynamic_shared;
    for (room, word) in hidden_room.chunks_exact_mut(4).zip(words) {
        room.copy_from_slice(&word.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kernels_ptx_translate::protocol::Param;

    use super::*;

    /// # Safety
    /// As [`pack`].
    unsafe fn packed(entry: &Entry, source: Source, shape: &Shape, hidden: &Hidden) -> Result<Vec<u8>> {
        let mut block = vec![0xff; size(entry)];
        // SAFETY: the caller's promise.
        unsafe { pack(entry, source, shape, hidden, &mut block) }?;
        Ok(block)
    }

    fn entry() -> Entry {
        // (.param .u64, .param .u8, .param .u32, .param .align 16 .b8[20])
        let params = vec![
            Param {
                offset: 0,
                size: 8,
                align: 8,
            },
            Param {
                offset: 8,
                size: 1,
                align: 1,
            },
            Param {
                offset: 12,
                size: 4,
                align: 4,
            },
            Param {
                offset: 16,
                size: 20,
                align: 16,
            },
        ];
        Entry {
            name: "k".into(),
            params,
            param_size: 36,
            max_ntid: None,
            req_ntid: None,
            static_shared: 0,
            local: 0,
        }
    }

    const SHAPE: Shape = Shape {
        grid: [7, 8, 9],
        block: [4, 5, 6],
        dynamic_shared: 77,
    };
    const HIDDEN: Hidden = Hidden {
        data: 0xD474,
        ring: 0x4175,
        heap: 0x4EA9,
        grid_id: 0x61D,
        grid_workspace: 0x3512,
    };

    fn word(block: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(block[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn parameters_go_to_their_offsets_and_hidden_arguments_follow() {
        let (a, b, c, d) = (0x1122_3344_5566_7788u64, 0xABu8, 0xCAFE_F00Du32, [9u8; 20]);
        let pointers = [(&raw const a).cast(), &raw const b, (&raw const c).cast(), d.as_ptr()];
        // SAFETY: four values of the parameters' sizes.
        let block = unsafe { packed(&entry(), Source::Pointers(pointers.as_ptr()), &SHAPE, &HIDDEN) }.unwrap();
        assert_eq!(block.len(), 40 + 72);
        assert_eq!(block[..8], a.to_le_bytes());
        assert_eq!((block[8], word(&block, 12)), (0xAB, 0xCAFE_F00D));
        assert_eq!(block[16..36], [9; 20]);
        assert_eq!(block[36..40], [0; 4]);
        assert_eq!([40, 48, 56].map(|at| word(&block, at)), [0xD474, 0x4175, 0x4EA9]);
        assert_eq!([64, 68, 72, 76, 80, 84].map(|at| word(&block, at)), [4, 5, 6, 7, 8, 9]);
        assert_eq!([88, 92, 96, 104].map(|at| word(&block, at)), [77, 0, 0x61D, 0x3512]);
    }

    #[test]
    fn a_parameter_buffer_may_be_short_but_not_long_or_empty() {
        let bytes = [0x5Au8; 64];
        // SAFETY: all lengths are within the array.
        let with = |len| unsafe { packed(&entry(), Source::Buffer(bytes.as_ptr(), len), &SHAPE, &HIDDEN) };
        assert_eq!(with(36).unwrap()[..36], [0x5A; 36]);
        assert_eq!(
            with(8).unwrap()[..12],
            [0x5A, 0x5A, 0x5A, 0x5A, 0x5A, 0x5A, 0x5A, 0x5A, 0, 0, 0, 0]
        );
        assert_eq!(with(37), Err(Error::LAUNCH_OUT_OF_RESOURCES));
        assert_eq!(with(0), Err(Error::INVALID_VALUE));
    }

    #[test]
    fn missing_arguments_are_an_error_only_when_there_are_parameters() {
        // SAFETY: no pointer is followed.
        let missing = |entry: &Entry| unsafe { packed(entry, Source::Pointers(core::ptr::null()), &SHAPE, &HIDDEN) };
        assert_eq!(missing(&entry()), Err(Error::INVALID_VALUE));
        let none = Entry {
            params: Vec::new(),
            param_size: 0,
            ..entry()
        };
        assert_eq!(missing(&none).unwrap().len(), 72);
    }
}
