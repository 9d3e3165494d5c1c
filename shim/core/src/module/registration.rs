//! What nvcc's start-up code registers: fat binaries, kernels, variables.
//!
//! Nothing is read or loaded here: registration runs in constructors, where no thread, file or device may be touched.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::function::Function;
use super::image;
use super::library::{Kernel, Library};
use super::module::Module;
use crate::abi::{Error, Result};
use crate::device::Context;
use crate::handle::BuildSpread;

/// A variable of the program as the host names it.
#[derive(Clone)]
pub struct Variable {
    library: Arc<Library>,
    name: String,
    size: u64,
}

/// A registered fat binary.
struct FatBinary {
    /// `None` behind a wrong magic number, which is silently ignored, as recorded.
    library: Option<Arc<Library>>,
    /// Kernels and variables that exist from `__cudaRegisterFatBinaryEnd` on.
    kernels: Vec<(usize, Arc<Kernel>)>,
    variables: Vec<(usize, Variable)>,
    /// Host pointers that must point to managed variables.
    managed: Vec<(usize, String)>,
    complete: bool,
}

#[derive(Default)]
struct Registered {
    binaries: HashMap<usize, FatBinary>,
    kernels: HashMap<usize, Arc<Kernel>, BuildSpread>,
    variables: HashMap<usize, Variable>,
}

static REGISTERED: Mutex<Option<Registered>> = Mutex::new(None);

/// Changes whenever a host function comes to stand for another kernel, or for none.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Kernels that a thread remembers.
const REMEMBERED: usize = 16;

/// A kernel that the calling thread has launched.
struct Remembered {
    host: usize,
    /// Of the context: the id of its streams.
    owner: u64,
    generation: u64,
    function: Weak<Function>,
}

thread_local! {
    static LAUNCHED: RefCell<[Option<Remembered>; REMEMBERED]> = const { RefCell::new([const { None }; REMEMBERED]) };
}

fn with<T>(f: impl FnOnce(&mut Registered) -> T) -> T {
    f(REGISTERED
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .get_or_insert_with(Registered::default))
}

/// `__cudaRegisterFatBinary`: returns the key of the registration, the address of a word that is never used again.
///
/// # Safety
/// `wrapper` is a fat binary's wrapper, and stays.
pub unsafe fn begin(wrapper: *const u8) -> usize {
    // SAFETY: the caller's promise.
    let library = unsafe { image::is_wrapper(wrapper) }.then(|| Library::registered(wrapper));
    // The application holds a `void**`, so the key is an address of ours: one word, leaked.
    let key = Box::leak(Box::new(wrapper as usize)) as *mut usize as usize;
    let binary = FatBinary {
        library,
        kernels: Vec::new(),
        variables: Vec::new(),
        managed: Vec::new(),
        complete: false,
    };
    with(|registered| registered.binaries.insert(key, binary));
    key
}

/// `__cudaRegisterFunction`: `host` stands for the kernel called `name`.
pub fn add_kernel(key: usize, host: usize, name: &str) {
    with(|registered| {
        if let Some(binary) = registered.binaries.get_mut(&key)
            && let Some(library) = &binary.library
        {
            binary.kernels.push((host, library.kernel(name)));
        }
    });
    publish_if_complete(key);
}

/// `__cudaRegisterVar`: `host` stands for the variable called `name`.
pub fn add_variable(key: usize, host: usize, name: &str, size: u64) {
    with(|registered| {
        if let Some(binary) = registered.binaries.get_mut(&key)
            && let Some(library) = &binary.library
        {
            binary.variables.push((
                host,
                Variable {
                    library: Arc::clone(library),
                    name: name.to_owned(),
                    size,
                },
            ));
        }
    });
    publish_if_complete(key);
}

/// `__cudaRegisterManagedVar`: the pointer at `host` must hold the address of the managed variable `name`.
pub fn add_managed(key: usize, host: usize, name: &str, size: u64) {
    with(|registered| {
        if let Some(binary) = registered.binaries.get_mut(&key) {
            binary.managed.push((host, name.to_owned()));
        }
    });
    add_variable(key, host, name, size);
}

/// Programs of CUDA before 10.1 do not call `__cudaRegisterFatBinaryEnd`, and late additions must show, too.
fn publish_if_complete(key: usize) {
    with(|registered| {
        let Registered {
            binaries,
            kernels,
            variables,
        } = registered;
        if let Some(binary) = binaries.get_mut(&key)
            && binary.complete
        {
            kernels.extend(binary.kernels.iter().cloned());
            GENERATION.fetch_add(1, Ordering::Release);
            variables.extend(binary.variables.iter().cloned());
        }
    });
}

/// `__cudaRegisterFatBinaryEnd`: from here on the kernels and variables exist.
pub fn end(key: usize) {
    with(|registered| {
        if let Some(binary) = registered.binaries.get_mut(&key) {
            binary.complete = true;
        }
    });
    publish_if_complete(key);
}

/// `__cudaUnregisterFatBinary`.
pub fn remove(key: usize) {
    let binary = with(|registered| {
        let binary = registered.binaries.remove(&key)?;
        GENERATION.fetch_add(1, Ordering::Release);
        for (host, kernel) in &binary.kernels {
            if registered
                .kernels
                .get(host)
                .is_some_and(|known| Arc::ptr_eq(known, kernel))
            {
                registered.kernels.remove(host);
            }
        }
        for (host, _) in &binary.variables {
            registered.variables.remove(host);
        }
        Some(binary)
    });
    if let Some(library) = binary.and_then(|binary| binary.library) {
        library.unload();
    }
}

/// The kernel that a host function stands for.
pub fn kernel(host: usize) -> Option<Arc<Kernel>> {
    with(|registered| registered.kernels.get(&host).cloned())
}

/// The kernel that a host function stands for in a context. Programs launch the same few kernels many times, so each thread
/// remembers some.
///
/// # Errors
/// As [`Kernel::function`]; `None` when the host function stands for none.
pub fn function(host: usize, context: &'static Context) -> Option<Result<Arc<Function>>> {
    let owner = match context.streams() {
        Ok(streams) => streams.id(),
        Err(error) => return Some(Err(error)),
    };
    // Host functions are aligned.
    let place = (host >> 4) % REMEMBERED;
    let generation = GENERATION.load(Ordering::Acquire);
    let remembered = |all: &RefCell<[Option<Remembered>; REMEMBERED]>| {
        let all = all.borrow();
        let known = all[place].as_ref()?;
        let same = known.host == host && known.owner == owner && known.generation == generation;
        known.function.upgrade().filter(|function| same && function.is_alive())
    };
    if let Ok(Some(function)) = LAUNCHED.try_with(remembered) {
        return Some(Ok(function));
    }
    let found = kernel(host)?.function(context).map(|(_, function)| function);
    if let Ok(function) = &found {
        let new = Remembered {
            host,
            owner,
            generation,
            function: Arc::downgrade(function),
        };
        let _ = LAUNCHED.try_with(|all| all.borrow_mut()[place] = Some(new));
    }
    Some(found)
}

/// The host function that stands for the kernel which is `function` in `context`.
pub fn symbol_of(function: &Arc<Function>, context: &'static Context) -> Option<usize> {
    let named: Vec<_> = with(|registered| {
        let kernels = registered.kernels.iter();
        kernels
            .filter(|(_, kernel)| kernel.name() == function.name())
            .map(|(host, kernel)| (*host, Arc::clone(kernel)))
            .collect()
    });
    let same = |kernel: &Kernel| {
        kernel
            .function(context)
            .is_ok_and(|(_, known)| Arc::ptr_eq(&known, function))
    };
    named.iter().find(|(_, kernel)| same(kernel)).map(|(host, _)| *host)
}

/// The variable that a host variable stands for.
pub fn variable(host: usize) -> Option<Variable> {
    with(|registered| registered.variables.get(&host).cloned())
}

/// Calls `f` with the library of every registered fat binary.
pub(super) fn for_each_library(mut f: impl FnMut(&Library)) {
    let libraries: Vec<_> = with(|registered| registered.binaries.values().filter_map(|b| b.library.clone()).collect());
    libraries.iter().for_each(|library| f(library));
}

impl Variable {
    /// The variable's name in its module.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The handle of the library that has it.
    pub fn library(&self) -> u64 {
        self.library.handle()
    }

    /// Address and size in a context, which loads the module at first use.
    ///
    /// # Errors
    /// INVALID_SYMBOL when the module has no such variable, else as [`Library::module`].
    pub fn locate(&self, context: &'static Context) -> Result<(u64, u64)> {
        let module = self.library.module(context)?;
        let (address, global) = module.global(&self.name).map_err(|_| Error::INVALID_SYMBOL)?;
        Ok((address, global.size.max(self.size)))
    }
}

/// `__cudaInitModule`: loads the modules that hold managed variables in `context` and sets the host's pointers to them.
///
/// # Errors
/// As [`Library::module`].
pub fn set_managed_pointers(context: &'static Context) -> Result<()> {
    let work = with(|registered| {
        let some = registered.binaries.values().filter(|binary| !binary.managed.is_empty());
        some.filter_map(|binary| Some((binary.library.clone()?, binary.managed.clone())))
            .collect::<Vec<_>>()
    });
    for (library, pointers) in work {
        let module: Arc<Module> = library.module(context)?;
        for (host, name) in pointers {
            let (address, _) = module.global(&name)?;
            // SAFETY: nvcc registered the address of a pointer variable of the program.
            unsafe { (host as *mut u64).write(address) };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrapper whose fat binary is never read here.
    fn wrapper() -> *const u8 {
        let words: &'static mut [u64; 3] = Box::leak(Box::new([0x1_4662_43b1, 0x1000, 0]));
        words.as_ptr().cast()
    }

    #[test]
    fn kernels_exist_from_the_end_of_registration_until_they_are_unregistered() {
        let host = Box::leak(Box::new(0u8)) as *const u8 as usize;
        // SAFETY: a wrapper, leaked.
        let key = unsafe { begin(wrapper()) };
        add_kernel(key, host, "k");
        assert!(kernel(host).is_none());
        end(key);
        assert_eq!(
            kernel(host).map(|kernel| kernel.name().to_owned()).as_deref(),
            Some("k")
        );
        remove(key);
        assert!(kernel(host).is_none());
        remove(key);
    }

    #[test]
    fn a_wrong_magic_number_is_ignored() {
        let words: &'static [u64; 3] = Box::leak(Box::new([0x1_1234_5678, 0x1000, 0]));
        // SAFETY: readable as a wrapper.
        let key = unsafe { begin(words.as_ptr().cast()) };
        assert_ne!(key, 0);
        add_kernel(key, 77, "k");
        end(key);
        assert!(kernel(77).is_none());
    }
}
