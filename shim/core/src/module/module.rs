//! A module in a context: its variables in device memory, its kernels.

use core::ptr::NonNull;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use kernels_ptx_translate::protocol::Global;

use super::code::Code;
use super::function::{Function, Home};
use super::{FUNCTIONS, MODULES};
use crate::abi::{Error, Result};
use crate::device::{Context, Device};
use crate::hsa;
use crate::memory::{self, Entry};
use crate::stream::spans::{Extent, Side};
use crate::stream::{Kind, copy, fill};

/// A module loaded in a context.
pub struct Module {
    code: Arc<Code>,
    context: &'static Context,
    /// [`crate::stream::ContextStreams::id`] of the activation it was loaded in.
    owner: u64,
    data: Option<Data>,
    functions: Mutex<HashMap<String, (u64, Arc<Function>)>>,
    handle: OnceLock<u64>,
    this: Weak<Self>,
}

/// A module's variables: one block, at the offsets that the translator laid them out at.
struct Data {
    block: Arc<Block>,
    /// The block lies in host memory, because a variable of it is managed.
    managed: bool,
    /// The variables in the registry.
    entries: Vec<Entry>,
}

impl Drop for Data {
    fn drop(&mut self) {
        for entry in &self.entries {
            memory::leave_variable(entry);
        }
    }
}

/// The memory of a module's variables. Its kernels hold it as well: so a launch, which holds its kernel, need not hold the module.
pub struct Block(NonNull<u8>);

// SAFETY: the block is memory of a GPU or pinned; nothing here follows the pointer.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Its address, for hosts and GPUs alike.
    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        memory::host_access::leave(self.address());
        // SAFETY: allocated by `Data::new`; launches that may still run hold their kernel, and so the block.
        if let Err(error) = unsafe { hsa::memory::free(self.0) } {
            log::warn!("the variables of a module could not be freed: {error}");
        }
    }
}

impl Data {
    /// Allocates and fills the block; `None` for a module without variables.
    fn new(code: &Code, context: &'static Context) -> Result<Option<Self>> {
        let info = &code.info;
        if info.data_size == 0 {
            return Ok(None);
        }
        let device = context.device;
        let managed = info.globals.iter().any(|global| global.managed);
        let pool = if managed { device.host_pool } else { device.pool };
        let base = pool.allocate(info.data_size as usize)?;
        let mut data = Self {
            block: Arc::new(Block(base)),
            managed,
            entries: Vec::new(),
        };
        if managed {
            let agents: Vec<_> = crate::device::all()?.iter().map(|device| device.agent).collect();
            hsa::memory::allow_access(&agents, base)?;
        }
        let start = data.address();
        if !start.is_multiple_of(info.data_align.max(1)) {
            log::error!(
                "a block of variables needs an alignment of {}, which ROCr did not give",
                info.data_align
            );
            return Err(Error::MEMORY_ALLOCATION);
        }
        for global in info.globals.iter().filter(|global| global.size > 0) {
            data.entries
                .push(memory::enter_variable(context, start + global.offset, global.size)?);
        }
        data.initialise(&initial_bytes(code, start)?, info.data_size, context)?;
        if device.host_accessible && !managed {
            memory::host_access::enter(start, info.data_size);
        }
        Ok(Some(data))
    }

    fn address(&self) -> u64 {
        self.block.address()
    }

    fn initialise(&self, bytes: &[u8], size: u64, context: &'static Context) -> Result<()> {
        if self.managed {
            // SAFETY: a block of `size` bytes of host memory that nobody else knows yet.
            let block = unsafe { core::slice::from_raw_parts_mut(self.block.0.as_ptr(), size as usize) };
            let (front, rest) = block.split_at_mut(bytes.len());
            front.copy_from_slice(bytes);
            rest.fill(0);
            return Ok(());
        }
        // A stream of its own: loading a module must not wait for the application's streams.
        let stream = context.streams()?.internal();
        debug_assert_eq!(stream.kind(), Kind::NonBlocking);
        let zeroes = Extent::linear(size - bytes.len() as u64);
        let rest = self.address() + bytes.len() as u64;
        fill::raw(&stream, context.device, &Side::at(rest), &zeroes, 0, 1)?;
        copy::upload_raw(&stream, context.device, self.address(), bytes)?;
        stream.synchronize()
    }
}

/// The block's initial bytes with pointers made absolute.
fn initial_bytes(code: &Code, base: u64) -> Result<Vec<u8>> {
    let info = &code.info;
    let mut bytes = info.data.clone();
    let needed = info
        .relocations
        .iter()
        .map(|r| r.at.saturating_add(8))
        .max()
        .unwrap_or(0);
    if needed > info.data_size || bytes.len() as u64 > info.data_size {
        return Err(Error::INVALID_KERNEL_IMAGE);
    }
    if (bytes.len() as u64) < needed {
        bytes.resize(needed as usize, 0);
    }
    for relocation in &info.relocations {
        let at = relocation.at as usize;
        let mut word = [0u8; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        let address = u64::from_le_bytes(word).wrapping_add(base);
        bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
    }
    Ok(bytes)
}

impl Module {
    /// Loads `code` in `context`. It has no handle yet.
    ///
    /// # Errors
    /// MEMORY_ALLOCATION when there is no room for its variables, or the process's fault.
    pub fn new(code: Arc<Code>, context: &'static Context) -> Result<Arc<Self>> {
        context.check()?;
        let owner = context.streams()?.id();
        let data = Data::new(&code, context)?;
        Ok(Arc::new_cyclic(|this| Self {
            code,
            context,
            owner,
            data,
            functions: Mutex::default(),
            handle: OnceLock::new(),
            this: Weak::clone(this),
        }))
    }

    /// The number by which applications know it; given at the first question.
    pub fn handle(&self) -> u64 {
        *self.handle.get_or_init(|| {
            let handle = MODULES.reserve();
            if let Some(this) = self.this.upgrade() {
                MODULES.publish(handle, this);
            }
            handle
        })
    }

    /// Its PTX and contents.
    pub fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// The device it is loaded on.
    pub fn device(&self) -> &'static Device {
        self.context.device
    }

    /// The context it is loaded in.
    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// What a variable at `address` held when the module was loaded, to the end of all initial data; `None` when the address is
    /// not in the module's variables. What lies behind the initial data is zero.
    pub fn initial_bytes_at(&self, address: u64) -> Option<&[u8]> {
        let offset = address
            .checked_sub(self.data_address())
            .filter(|&at| at < self.code.info.data_size)?;
        Some(self.code.info.data.get(offset as usize..).unwrap_or_default())
    }

    /// The context's streams it belongs to.
    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// Address of its variables; 0 when it has none.
    pub fn data_address(&self) -> u64 {
        self.data.as_ref().map_or(0, Data::address)
    }

    /// What ptxas says of a module: variables that nothing defines, and the size of all (recorded). It goes on with figures of
    /// NVIDIA's machine code, which there is none of.
    pub fn info_log(&self) -> String {
        let undefined = self.code.info.globals.iter().filter(|global| global.external);
        let warnings = undefined.map(|global| {
            format!(
                "ptxas warning : Unresolved extern variable '{}' in whole program compilation, ignoring extern qualifier\n",
                global.name
            )
        });
        warnings.collect::<String>() + &format!("ptxas info    : {} bytes gmem", self.global_size())
    }

    /// Bytes of its global variables.
    pub fn global_size(&self) -> u64 {
        self.code
            .info
            .globals
            .iter()
            .filter(|global| !global.constant)
            .map(|global| global.size)
            .sum()
    }

    /// Bytes of its constants.
    pub fn constant_size(&self) -> u64 {
        self.code
            .info
            .globals
            .iter()
            .filter(|global| global.constant)
            .map(|global| global.size)
            .sum()
    }

    /// A kernel by name, and its handle: the same at every question.
    ///
    /// # Errors
    /// SYMBOL_NOT_FOUND.
    pub fn function(&self, name: &str) -> Result<(u64, Arc<Function>)> {
        let entry = self.code.entry(name).ok_or(Error::SYMBOL_NOT_FOUND)?;
        let mut functions = self.functions.lock().unwrap_or_else(|e| e.into_inner());
        let (handle, function) = functions.entry(name.to_owned()).or_insert_with(|| {
            let home = Home {
                module: Weak::clone(&self.this),
                context: Some(self.context),
                owner: self.owner,
                data: self.data.as_ref().map(|data| Arc::clone(&data.block)),
            };
            let function = Arc::new(Function::new(entry.clone(), home));
            (FUNCTIONS.insert(Arc::clone(&function)), function)
        });
        Ok((*handle, Arc::clone(function)))
    }

    /// Address and size of a variable.
    ///
    /// # Errors
    /// SYMBOL_NOT_FOUND, or INVALID_VALUE when the name is a kernel's (as recorded).
    pub fn global(&self, name: &str) -> Result<(u64, &Global)> {
        if self.code.entry(name).is_some() {
            return Err(Error::INVALID_VALUE);
        }
        let global = self.code.global(name).ok_or(Error::SYMBOL_NOT_FOUND)?;
        Ok((self.data_address() + global.offset, global))
    }

    /// Ends its handles and, once its work has ended, frees it.
    ///
    /// # Errors
    /// The process's fault.
    pub fn unload(&self) -> Result<()> {
        let result = match self.context.streams() {
            Ok(streams) if streams.id() == self.owner => streams.synchronize(),
            // The context went first and waited.
            _ => Ok(()),
        };
        self.forget();
        result
    }

    /// Ends its handles.
    pub(super) fn forget(&self) {
        if let Some(handle) = self.handle.get() {
            MODULES.remove(*handle);
        }
        for (_, (handle, _)) in self.functions.lock().unwrap_or_else(|e| e.into_inner()).drain() {
            FUNCTIONS.remove(handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use kernels_ptx_translate::protocol::{ModuleInfo, Relocation};

    use super::*;

    fn code(data: Vec<u8>, data_size: u64, at: &[u64]) -> Code {
        let relocations = at.iter().map(|&at| Relocation { at }).collect();
        Code {
            ptx: Vec::new(),
            info: ModuleInfo {
                data,
                data_size,
                relocations,
                ..Default::default()
            },
        }
    }

    #[test]
    fn pointers_in_variables_become_absolute() {
        let bytes = initial_bytes(
            &code(vec![0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 7], 32, &[4, 16]),
            0x1000,
        )
        .unwrap();
        assert_eq!(bytes.len(), 24);
        assert_eq!(bytes[4..12], 0x1010u64.to_le_bytes());
        assert_eq!(bytes[12], 7);
        assert_eq!(bytes[16..24], 0x1000u64.to_le_bytes());
    }

    #[test]
    fn relocations_outside_the_block_are_refused() {
        for (size, at) in [(8, 1), (8, u64::MAX), (0, 0)] {
            assert_eq!(
                initial_bytes(&code(Vec::new(), size, &[at]), 0),
                Err(Error::INVALID_KERNEL_IMAGE)
            );
        }
        assert_eq!(
            initial_bytes(&code(vec![0; 9], 8, &[]), 0),
            Err(Error::INVALID_KERNEL_IMAGE)
        );
    }
}
