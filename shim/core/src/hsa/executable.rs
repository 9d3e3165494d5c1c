//! Executables: code objects loaded for a GPU.

use std::ffi::CString;

use hsa_sys::*;

use super::{Agent, raw};
use crate::abi::{Error, Result};

/// A frozen executable made of one code object. Lives as long as kernels of it may run.
pub struct Executable {
    handle: hsa_executable_t,
    agent: hsa_agent_t,
    /// ROCr reads the code object again when asked for symbols, so it stays.
    _code: Vec<u8>,
}

/// A kernel of an executable.
#[derive(Clone, Copy, Debug)]
pub struct KernelSymbol {
    /// Address of the kernel descriptor.
    pub object: u64,
    /// Bytes of arguments.
    pub kernarg_size: u32,
    /// Bytes of static LDS.
    pub group_size: u32,
    /// Bytes of scratch of a work-item.
    pub private_size: u32,
}

fn ok(call: &str, status: hsa_status_t) -> Result<()> {
    if status == HSA_STATUS_SUCCESS {
        return Ok(());
    }
    log::error!("{call}: {status:?}");
    Err(match status {
        HSA_STATUS_ERROR_OUT_OF_RESOURCES => Error::MEMORY_ALLOCATION,
        HSA_STATUS_ERROR_INVALID_ISA | HSA_STATUS_ERROR_INVALID_ISA_NAME => Error::NO_KERNEL_IMAGE_FOR_DEVICE,
        _ => Error::INVALID_KERNEL_IMAGE,
    })
}

impl Executable {
    /// Loads `code` on `agent`.
    ///
    /// # Errors
    /// INVALID_KERNEL_IMAGE when ROCr refuses it, NO_KERNEL_IMAGE_FOR_DEVICE when it is for another GPU,
    /// MEMORY_ALLOCATION when there is no room.
    pub fn load(agent: &Agent, code: Vec<u8>) -> Result<Self> {
        let f = raw();
        let mut reader = hsa_code_object_reader_t::default();
        // SAFETY: the code outlives the reader and the executable, which owns it.
        ok("hsa_code_object_reader_create_from_memory", unsafe {
            f.hsa_code_object_reader_create_from_memory(code.as_ptr().cast(), code.len(), &mut reader)
        })?;
        let agent = agent.handle;
        let mut handle = hsa_executable_t::default();
        // SAFETY: `handle` is valid for the write; no options.
        let created = ok("hsa_executable_create_alt", unsafe {
            f.hsa_executable_create_alt(
                HSA_PROFILE_FULL,
                HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                core::ptr::null(),
                &mut handle,
            )
        });
        let mut executable = None;
        let loaded = created.and_then(|()| {
            executable = Some(Self {
                handle,
                agent,
                _code: code,
            });
            // SAFETY: executable, agent and reader are alive.
            ok("hsa_executable_load_agent_code_object", unsafe {
                f.hsa_executable_load_agent_code_object(handle, agent, reader, core::ptr::null(), core::ptr::null_mut())
            })?;
            // SAFETY: as above.
            ok("hsa_executable_freeze", unsafe {
                f.hsa_executable_freeze(handle, core::ptr::null())
            })
        });
        // SAFETY: the reader is not needed once the code object is loaded.
        let _ = unsafe { f.hsa_code_object_reader_destroy(reader) };
        loaded?;
        executable.ok_or(Error::INVALID_KERNEL_IMAGE)
    }

    /// Finds a kernel by its name without `.kd`.
    ///
    /// # Errors
    /// INVALID_KERNEL_IMAGE when there is none.
    pub fn kernel(&self, name: &str) -> Result<KernelSymbol> {
        let f = raw();
        let name = CString::new(format!("{name}.kd")).map_err(|_| Error::INVALID_KERNEL_IMAGE)?;
        let mut symbol = hsa_executable_symbol_t::default();
        // SAFETY: the executable is alive and frozen; `symbol` is valid for the write.
        ok("hsa_executable_get_symbol_by_name", unsafe {
            f.hsa_executable_get_symbol_by_name(self.handle, name.as_ptr(), &self.agent, &mut symbol)
        })?;
        let mut object = 0u64;
        // SAFETY: this attribute is a 64-bit number.
        ok("hsa_executable_symbol_get_info", unsafe {
            f.hsa_executable_symbol_get_info(
                symbol,
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                (&raw mut object).cast(),
            )
        })?;
        let word = |attribute| {
            let mut value = 0u32;
            // SAFETY: the attributes asked for below are 32-bit numbers.
            ok("hsa_executable_symbol_get_info", unsafe {
                f.hsa_executable_symbol_get_info(symbol, attribute, (&raw mut value).cast())
            })
            .map(|()| value)
        };
        Ok(KernelSymbol {
            object,
            kernarg_size: word(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE)?,
            group_size: word(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE)?,
            private_size: word(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE)?,
        })
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: made by `load`, destroyed once; modules wait for their kernels before they go.
        let _ = unsafe { raw().hsa_executable_destroy(self.handle) };
    }
}
