//! A kernel in a context: its bounds, its compiled forms.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use kernels_ptx_translate::protocol::{CompileRequest, CompiledKernel, Entry, Target, WarpLayout};

use super::launch::Shape;
use super::module::{Block, Module};
use super::occupancy::{self, Needs};
use super::translator::{Failure, client};
use crate::abi::{Error, Result};
use crate::config;
use crate::device::Context;
use crate::hsa::executable::{Executable, KernelSymbol};

/// Shared memory of a block without asking for more (`cudaDevAttrMaxSharedMemoryPerBlock`).
pub const DEFAULT_SHARED: u32 = 49152;

/// The capability we report, times 10: what the binary was compiled for.
fn binary_version() -> i32 {
    let (major, minor) = *config::COMPUTE_CAPABILITY.get();
    (major * 10 + minor) as i32
}

/// A compiled form of a kernel, loaded on its device.
pub struct Loaded {
    compiled: CompiledKernel,
    symbol: KernelSymbol,
    /// Holds the code while anybody may run it.
    _executable: Executable,
}

impl Loaded {
    /// How warps lie on waves.
    pub fn layout(&self) -> WarpLayout {
        self.compiled.layout
    }

    /// It may write to the `printf` ring.
    pub fn uses_printf(&self) -> bool {
        self.compiled.uses_printf
    }

    /// It may allocate on the device's heap.
    pub fn uses_heap(&self) -> bool {
        self.compiled.uses_heap
    }

    /// Where the code is and what it takes.
    pub fn symbol(&self) -> &KernelSymbol {
        &self.symbol
    }
}

/// Compiled forms of a kernel: a list that only grows, so that launches read it without a lock.
#[derive(Default)]
struct Forms(OnceLock<Box<Form>>);

struct Form {
    loaded: Loaded,
    next: Forms,
}

impl Forms {
    fn iter(&self) -> impl Iterator<Item = &Loaded> {
        let mut place = self;
        std::iter::from_fn(move || {
            let form = place.0.get()?;
            place = &form.next;
            Some(&form.loaded)
        })
    }

    /// One that runs blocks of so many threads.
    fn fitting(&self, threads: u32) -> Option<&Loaded> {
        self.iter().find(|loaded| loaded.compiled.max_threads >= threads)
    }

    /// Adds one at the end, unless one that runs as large blocks has come there meanwhile.
    fn add(&self, loaded: Loaded) -> &Loaded {
        let mut new = Box::new(Form {
            loaded,
            next: Self::default(),
        });
        let mut place = self;
        loop {
            match place.0.set(new) {
                Ok(()) => break,
                Err(refused) => new = refused,
            }
            let Some(there) = place.0.get() else { continue };
            if there.loaded.compiled.max_threads >= new.loaded.compiled.max_threads {
                return &there.loaded;
            }
            place = &there.next;
        }
        match place.0.get() {
            Some(form) => &form.loaded,
            None => unreachable!("it was just set"),
        }
    }
}

/// What a kernel knows of its module.
pub(super) struct Home {
    pub module: Weak<Module>,
    /// Where the module is loaded; none in tests.
    pub context: Option<&'static Context>,
    /// [`Module::owner`].
    pub owner: u64,
    /// The module's variables.
    pub data: Option<Arc<Block>>,
}

/// A kernel of a module.
pub struct Function {
    entry: Entry,
    home: Home,
    /// `MAX_DYNAMIC_SHARED_SIZE_BYTES`.
    max_dynamic: AtomicI32,
    /// `PREFERRED_SHARED_MEMORY_CARVEOUT`, a percentage; -1 is the default.
    carveout: AtomicI32,
    /// Compiled forms, in the order they were needed.
    forms: Forms,
    /// `cuFuncSetCacheConfig`: remembered, without effect.
    cache_config: AtomicU32,
}

impl Function {
    pub(super) fn new(entry: Entry, home: Home) -> Self {
        Self {
            max_dynamic: AtomicI32::new(DEFAULT_SHARED.saturating_sub(entry.static_shared) as i32),
            carveout: AtomicI32::new(-1),
            forms: Forms::default(),
            cache_config: AtomicU32::new(0),
            entry,
            home,
        }
    }

    /// The PTX name.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// What the PTX says about it.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Its module is loaded.
    pub fn is_alive(&self) -> bool {
        self.home.module.strong_count() > 0
    }

    /// [`Module::owner`] of its module.
    pub fn owner(&self) -> u64 {
        self.home.owner
    }

    /// Address of its module's variables; 0 when it has none.
    pub fn data_address(&self) -> u64 {
        self.home.data.as_ref().map_or(0, |block| block.address())
    }

    /// The context that its module is loaded in.
    ///
    /// # Errors
    /// INVALID_RESOURCE_HANDLE once the module is unloaded.
    pub fn context(&self) -> Result<&'static Context> {
        self.home
            .context
            .filter(|_| self.is_alive())
            .ok_or(Error::INVALID_RESOURCE_HANDLE)
    }

    /// Its module.
    ///
    /// # Errors
    /// INVALID_RESOURCE_HANDLE once the module is unloaded.
    pub fn module(&self) -> Result<Arc<Module>> {
        self.home.module.upgrade().ok_or(Error::INVALID_RESOURCE_HANDLE)
    }

    /// Checks the kernel's own bounds: `.maxntid`, `.reqntid`, dynamic shared memory.
    ///
    /// # Errors
    /// INVALID_VALUE, as recorded for all three.
    pub fn check_shape(&self, shape: &Shape) -> Result<()> {
        let product = |sizes: &[u32; 3]| sizes.iter().map(|&n| u64::from(n)).product::<u64>();
        let bounded = self
            .entry
            .max_ntid
            .as_ref()
            .is_none_or(|most| shape.threads() <= product(most));
        let required = self.entry.req_ntid.is_none_or(|exact| shape.block == exact);
        let shared = i64::from(shape.dynamic_shared) <= i64::from(self.max_dynamic.load(Ordering::Relaxed));
        if bounded && required && shared {
            Ok(())
        } else {
            Err(Error::INVALID_VALUE)
        }
    }

    /// A compiled form that runs blocks of this size; compiles one when there is none yet.
    ///
    /// # Errors
    /// What the translation failed with; the message is logged.
    pub fn for_block(&self, block: [u32; 3]) -> Result<&Loaded> {
        let threads = block.iter().product::<u32>();
        if let Some(fit) = self.forms.fitting(threads) {
            return Ok(fit);
        }
        // No lock is held here. Threads that meet at a first launch share one compilation through the translator's cache.
        let loaded = self.compile(block).map_err(|failure| {
            log::error!("kernel {}: {}", self.entry.name, failure.log);
            failure.error
        })?;
        Ok(self.forms.add(loaded))
    }

    fn compile(&self, block: [u32; 3]) -> core::result::Result<Loaded, Failure> {
        let module = self
            .module()
            .map_err(|error| Failure::new(error, "the module was unloaded"))?;
        let device = module.device();
        let target = match device.agent.name.as_str() {
            "gfx90a" => Target::Gfx90a,
            "gfx942" => Target::Gfx942,
            other => {
                return Err(Failure::new(
                    Error::NO_KERNEL_IMAGE_FOR_DEVICE,
                    format!("kernels cannot be translated for {other}, only for gfx90a and gfx942"),
                ));
            }
        };
        let request = CompileRequest {
            entry: self.entry.name.clone(),
            target,
            block,
            opt_level: 2,
        };
        let mut compiled = client().compile(&module.code().ptx, &request)?;
        let refused = |error| Failure::new(error, "the HSA runtime refused the translated code object");
        let code = std::mem::take(&mut compiled.code_object);
        let executable = Executable::load(device.agent, code).map_err(refused)?;
        let symbol = executable.kernel(&compiled.symbol).map_err(refused)?;
        Ok(Loaded {
            compiled,
            symbol,
            _executable: executable,
        })
    }

    /// Whatever compiled form there is; compiles one for any block size when there is none.
    fn any(&self) -> Result<&Loaded> {
        match self.forms.iter().next() {
            Some(loaded) => Ok(loaded),
            None => self.for_block(self.entry.req_ntid.or(self.entry.max_ntid).unwrap_or([0; 3])),
        }
    }

    /// Compiles it now (`cuFuncLoad`).
    ///
    /// # Errors
    /// What the translation failed with.
    pub fn load(&self) -> Result<()> {
        self.any().map(|_| ())
    }

    fn needs(&self, loaded: &Loaded) -> Needs {
        Needs {
            vgprs: loaded.compiled.vgprs,
            layout: loaded.compiled.layout,
            static_shared: self.entry.static_shared,
        }
    }

    /// Blocks of this size that one compute unit holds.
    ///
    /// # Errors
    /// What the translation failed with.
    pub fn blocks_per_unit(&self, threads: u32, dynamic_shared: u64) -> Result<u32> {
        if dynamic_shared > self.max_dynamic.load(Ordering::Relaxed).max(0) as u64 {
            return Ok(0);
        }
        // What a launch of such blocks would run: forms for other sizes may have other layouts.
        let loaded = match self.for_block([threads.clamp(1, occupancy::MAX_THREADS), 1, 1]) {
            Ok(loaded) => loaded,
            Err(_) => self.any()?,
        };
        Ok(occupancy::blocks_per_unit(&self.needs(loaded), threads, dynamic_shared))
    }

    /// The block size that keeps most threads resident and the number of such blocks on one compute unit.
    ///
    /// # Errors
    /// What the translation failed with.
    pub fn best_block_size(&self, limit: u32, shared: impl Fn(u32) -> u64) -> Result<(u32, u32)> {
        Ok(occupancy::best_block_size(&self.needs(self.any()?), limit, shared))
    }

    /// Dynamic shared memory that `blocks` blocks on one compute unit may each have.
    pub fn available_dynamic_shared(&self, blocks: u32) -> u64 {
        let each = occupancy::LDS / blocks.max(1);
        let available = each.saturating_sub(self.entry.static_shared);
        u64::from(available).min(self.max_dynamic.load(Ordering::Relaxed).max(0) as u64)
    }

    /// One of `CU_FUNC_ATTRIBUTE_*`.
    ///
    /// # Errors
    /// INVALID_VALUE for an unknown attribute, else what the translation failed with.
    pub fn attribute(&self, attribute: i32) -> Result<i32> {
        Ok(match attribute {
            // MAX_THREADS_PER_BLOCK: `.reqntid` does not show here, as recorded.
            0 => self
                .entry
                .max_ntid
                .map_or(occupancy::MAX_THREADS as i32, |n| n.iter().product::<u32>() as i32),
            1 => self.entry.static_shared as i32,
            // CONST_SIZE_BYTES: the module's constants.
            2 => self.module()?.constant_size() as i32,
            3 => self.entry.local as i32,
            // NUM_REGS of a thread.
            4 => self.any()?.compiled.vgprs as i32,
            5 => self.module()?.code().target_version(),
            6 => binary_version(),
            // CACHE_MODE_CA
            7 => 0,
            8 => self.max_dynamic.load(Ordering::Relaxed),
            9 => self.carveout.load(Ordering::Relaxed),
            // Clusters: none.
            10..=15 => 0,
            _ => return Err(Error::INVALID_VALUE),
        })
    }

    /// Sets one of the two attributes that may be set, or a cluster attribute to 0.
    ///
    /// # Errors
    /// INVALID_VALUE for others and for values out of range.
    pub fn set_attribute(&self, attribute: i32, value: i32) -> Result<()> {
        match attribute {
            8 => {
                let most = (occupancy::LDS - self.entry.static_shared.min(occupancy::LDS)) as i32;
                if !(0..=most).contains(&value) {
                    return Err(Error::INVALID_VALUE);
                }
                self.max_dynamic.store(value, Ordering::Relaxed);
            }
            9 => {
                if !(-1..=100).contains(&value) {
                    return Err(Error::INVALID_VALUE);
                }
                self.carveout.store(value, Ordering::Relaxed);
            }
            10..=15 if value == 0 => {}
            _ => return Err(Error::INVALID_VALUE),
        }
        Ok(())
    }

    /// `cuFuncSetCacheConfig`: a hint without effect here.
    ///
    /// # Errors
    /// INVALID_VALUE for an unknown preference.
    pub fn set_cache_config(&self, config: u32) -> Result<()> {
        if config > 3 {
            return Err(Error::INVALID_VALUE);
        }
        self.cache_config.store(config, Ordering::Relaxed);
        Ok(())
    }

    /// Offset and size of a parameter.
    ///
    /// # Errors
    /// INVALID_VALUE beyond the last.
    pub fn param(&self, index: usize) -> Result<(usize, usize)> {
        let param = self.entry.params.get(index).ok_or(Error::INVALID_VALUE)?;
        Ok((param.offset as usize, param.size as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(edit: impl FnOnce(&mut Entry)) -> Function {
        let mut entry = Entry {
            name: "k".into(),
            params: Vec::new(),
            param_size: 0,
            max_ntid: None,
            req_ntid: None,
            static_shared: 1024,
            local: 0,
        };
        edit(&mut entry);
        let home = Home {
            module: Weak::new(),
            context: None,
            owner: 1,
            data: None,
        };
        Function::new(entry, home)
    }

    fn shape(threads: u32, dynamic_shared: u32) -> Shape {
        Shape {
            grid: [1; 3],
            block: [threads, 1, 1],
            dynamic_shared,
        }
    }

    #[test]
    fn dynamic_shared_memory_is_limited_and_the_limit_can_be_moved() {
        let k = function(|_| ());
        assert_eq!(k.check_shape(&shape(1, 48128)), Ok(()));
        assert_eq!(k.check_shape(&shape(1, 48129)), Err(Error::INVALID_VALUE));
        assert_eq!(k.set_attribute(8, 65536), Err(Error::INVALID_VALUE));
        assert_eq!(k.set_attribute(8, 64512), Ok(()));
        assert_eq!(k.check_shape(&shape(1, 64512)), Ok(()));
        assert_eq!(k.set_attribute(8, 0), Ok(()));
        assert_eq!(k.check_shape(&shape(1, 1024)), Err(Error::INVALID_VALUE));
        assert_eq!(k.set_attribute(8, -1), Err(Error::INVALID_VALUE));
        assert_eq!(k.set_attribute(4, 5), Err(Error::INVALID_VALUE));
    }

    #[test]
    fn block_bounds_hold() {
        let most = function(|e| e.max_ntid = Some([64, 1, 1]));
        assert_eq!(most.check_shape(&shape(64, 0)), Ok(()));
        assert_eq!(most.check_shape(&shape(65, 0)), Err(Error::INVALID_VALUE));
        let exact = function(|e| e.req_ntid = Some([32, 1, 1]));
        assert_eq!(exact.check_shape(&shape(32, 0)), Ok(()));
        let square = Shape {
            grid: [1; 3],
            block: [16, 2, 1],
            dynamic_shared: 0,
        };
        assert_eq!(exact.check_shape(&square), Err(Error::INVALID_VALUE));
    }
}
