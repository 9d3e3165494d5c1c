//! Fat binaries, modules, kernels, launch.
//!
//! ```text
//! image ──> Code (PTX, contents) ──> Module in a context (variables) ──> Function ──> Loaded (compiled, on the device)
//!              └── Library: Code and its Modules, one for each context; Kernel: a name in it
//! ```
//!
//! PTX is parsed when a module is first used and a kernel is compiled when it is first launched, both in the translator's
//! process.

pub mod args;
pub mod code;
mod format;
pub mod function;
pub mod geometry;
pub mod image;
pub mod jit;
pub mod launch;
pub mod library;
pub mod linker;
#[allow(clippy::module_inception)]
pub mod module;
pub mod occupancy;
mod printf;
pub mod registration;
mod services;
pub mod translator;

use std::sync::Arc;

pub use function::Function;
pub use launch::Shape;
pub use library::{Kernel, Library};
pub use module::Module;

use crate::abi::{Error, Result};
use crate::device::Context;
use crate::handle::Handles;

static MODULES: Handles<Module> = Handles::new(0x61);
static FUNCTIONS: Handles<Function> = Handles::new(0x62);
static LIBRARIES: Handles<Library> = Handles::new(0x63);
static KERNELS: Handles<Kernel> = Handles::new(0x64);

/// The module behind a handle.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE.
pub fn module(handle: u64) -> Result<Arc<Module>> {
    MODULES.get(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)
}

/// The library behind a handle.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE.
pub fn library(handle: u64) -> Result<Arc<Library>> {
    LIBRARIES.get(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)
}

/// The kernel behind a handle.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE.
pub fn kernel(handle: u64) -> Result<Arc<Kernel>> {
    KERNELS.get(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)
}

/// The function behind a handle. CUDA takes a kernel's handle for its function in a context: that of the stream where it is
/// launched, else the current one.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE, those of `context`, or as [`Kernel::function`].
pub fn function(handle: u64, context: impl FnOnce() -> Result<&'static Context>) -> Result<Arc<Function>> {
    if let Some(function) = FUNCTIONS.get(handle) {
        return Ok(function);
    }
    kernel(handle)?.function(context()?).map(|(_, function)| function)
}

/// The handle of a function; 0 when its module was unloaded.
pub fn function_handle(function: &Arc<Function>) -> u64 {
    FUNCTIONS.key_of(function).unwrap_or(0)
}

/// The handle of the kernel that is `function` in `context`. Functions of modules are no kernels of libraries; they stand for
/// themselves.
pub fn kernel_of(function: &Arc<Function>, context: &'static Context) -> u64 {
    let mut found = 0;
    KERNELS.for_each(|kernel| {
        let same = kernel.name() == function.name()
            && kernel
                .function(context)
                .is_ok_and(|(_, known)| Arc::ptr_eq(&known, function));
        if same {
            found = kernel.handle();
        }
    });
    if found == 0 { function_handle(function) } else { found }
}

/// Forgets everything that was loaded in a context that has ended; its memory goes with it.
pub(crate) fn context_ended(owner: u64) {
    services::context_ended(owner);
    LIBRARIES.for_each(|library| library.forget_context(owner));
    registration::for_each_library(|library| library.forget_context(owner));
    let mut modules = Vec::new();
    MODULES.for_each_arc(|module| {
        if module.owner() == owner {
            modules.push(Arc::clone(module));
        }
    });
    for module in modules {
        module.forget();
    }
}
