//! Libraries: modules that belong to no context and are loaded in each context at first use. Registered fat binaries are
//! libraries too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::code::Code;
use super::function::Function;
use super::module::Module;
use super::translator::Failure;
use super::{KERNELS, LIBRARIES, image};
use crate::abi::{Error, Result};
use crate::device::Context;

/// Where a library's PTX comes from.
enum Source {
    /// A fat binary's wrapper in the program, which stays in memory and is looked at when first needed.
    Registered(usize),
    /// What `cuLibraryLoadData` was given, or why it was no good: that is reported at first use, as recorded.
    Loaded(core::result::Result<Vec<u8>, Failure>),
}

/// A module that is loaded at most once, by whoever comes first.
type Cell = Arc<OnceLock<Result<Arc<Module>>>>;

/// A library.
pub struct Library {
    source: Source,
    code: OnceLock<core::result::Result<Arc<Code>, Failure>>,
    /// Its modules, by the id of the context's streams.
    modules: Mutex<HashMap<u64, Cell>>,
    kernels: Mutex<HashMap<String, Arc<Kernel>>>,
    handle: OnceLock<u64>,
    this: Weak<Self>,
}

/// A kernel of a library.
pub struct Kernel {
    name: String,
    library: Weak<Library>,
    handle: u64,
    /// The function that the last launch found, with its handle and the id of the context's streams.
    last: Mutex<Option<(u64, u64, Arc<Function>)>>,
}

impl Library {
    fn new(source: Source) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            source,
            code: OnceLock::new(),
            modules: Mutex::default(),
            kernels: Mutex::default(),
            handle: OnceLock::new(),
            this: Weak::clone(this),
        })
    }

    /// A fat binary that the program registered. Nothing is read now.
    pub fn registered(wrapper: *const u8) -> Arc<Self> {
        Self::new(Source::Registered(wrapper as usize))
    }

    /// A library of an image that was read, or could not be.
    pub fn loaded(ptx: core::result::Result<Vec<u8>, Failure>) -> Arc<Self> {
        Self::new(Source::Loaded(ptx))
    }

    /// The number by which applications know it; given at the first question.
    pub fn handle(&self) -> u64 {
        *self.handle.get_or_init(|| {
            let handle = LIBRARIES.reserve();
            if let Some(this) = self.this.upgrade() {
                LIBRARIES.publish(handle, this);
            }
            handle
        })
    }

    /// Its PTX and contents; parsed at first use.
    ///
    /// # Errors
    /// What is wrong with the image. Logged once.
    pub fn code(&self) -> Result<&Arc<Code>> {
        let code = self.code.get_or_init(|| {
            let ptx = match &self.source {
                // SAFETY: what the program registered is a fat binary that stays until it is unregistered.
                Source::Registered(wrapper) => unsafe { image::ptx_of(*wrapper as *const u8) },
                Source::Loaded(ptx) => ptx.clone(),
            };
            let code = ptx.and_then(|ptx| Code::new(ptx).map(Arc::new));
            if let Err(failure) = &code {
                log::error!("a library cannot be used: {}", failure.log);
            }
            code
        });
        code.as_ref().map_err(|failure| failure.error)
    }

    /// Its module in a context; loaded at first use.
    ///
    /// # Errors
    /// What is wrong with the image, or what loading it failed with.
    pub fn module(&self, context: &'static Context) -> Result<Arc<Module>> {
        let owner = context.streams()?.id();
        let cell = {
            let mut modules = self.modules.lock().unwrap_or_else(|e| e.into_inner());
            Arc::clone(modules.entry(owner).or_default())
        };
        let module = cell
            .get_or_init(|| Module::new(Arc::clone(self.code()?), context))
            .clone();
        if let Err(error) = module {
            // Memory may be there next time; a bad image is remembered where it is read.
            self.modules.lock().unwrap_or_else(|e| e.into_inner()).remove(&owner);
            return Err(error);
        }
        module
    }

    /// A kernel by name; the same object at every question. Whether the library has it shows when it is used.
    pub fn kernel(&self, name: &str) -> Arc<Kernel> {
        let mut kernels = self.kernels.lock().unwrap_or_else(|e| e.into_inner());
        let kernel = kernels.entry(name.to_owned()).or_insert_with(|| {
            let handle = KERNELS.reserve();
            let kernel = Arc::new(Kernel {
                name: name.to_owned(),
                library: Weak::clone(&self.this),
                handle,
                last: Mutex::new(None),
            });
            KERNELS.publish(handle, Arc::clone(&kernel));
            kernel
        });
        Arc::clone(kernel)
    }

    /// A kernel that the library has.
    ///
    /// # Errors
    /// SYMBOL_NOT_FOUND, or what is wrong with the image.
    pub fn existing_kernel(&self, name: &str) -> Result<Arc<Kernel>> {
        self.code()?.entry(name).ok_or(Error::SYMBOL_NOT_FOUND)?;
        Ok(self.kernel(name))
    }

    /// Unloads it from every context and ends all handles. Work on its way is waited for.
    pub fn unload(&self) {
        let modules = std::mem::take(&mut *self.modules.lock().unwrap_or_else(|e| e.into_inner()));
        for cell in modules.into_values() {
            if let Some(Ok(module)) = cell.get()
                && let Err(error) = module.unload()
            {
                log::debug!("a module was unloaded after {error:?}");
            }
        }
        for (_, kernel) in self.kernels.lock().unwrap_or_else(|e| e.into_inner()).drain() {
            KERNELS.remove(kernel.handle);
        }
        if let Some(handle) = self.handle.get() {
            LIBRARIES.remove(*handle);
        }
    }

    /// Forgets the module of a context that has ended.
    pub(super) fn forget_context(&self, owner: u64) {
        let cell = self.modules.lock().unwrap_or_else(|e| e.into_inner()).remove(&owner);
        if let Some(Ok(module)) = cell.as_ref().and_then(|cell| cell.get()) {
            module.forget();
        }
    }
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number by which applications know it.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// Its library.
    ///
    /// # Errors
    /// INVALID_RESOURCE_HANDLE once that is unloaded.
    pub fn library(&self) -> Result<Arc<Library>> {
        self.library.upgrade().ok_or(Error::INVALID_RESOURCE_HANDLE)
    }

    /// The kernel in a context, with the handle of that function.
    ///
    /// # Errors
    /// As [`Library::module`], and SYMBOL_NOT_FOUND when the library has no such kernel.
    pub fn function(&self, context: &'static Context) -> Result<(u64, Arc<Function>)> {
        let owner = context.streams()?.id();
        if let Some((known, handle, function)) = &*self.last.lock().unwrap_or_else(|e| e.into_inner())
            && *known == owner
            && function.is_alive()
        {
            return Ok((*handle, Arc::clone(function)));
        }
        let (handle, function) = self.library()?.module(context)?.function(&self.name)?;
        *self.last.lock().unwrap_or_else(|e| e.into_inner()) = Some((owner, handle, Arc::clone(&function)));
        Ok((handle, function))
    }
}
