//! The safe wrapper of ROCr.
//!
//! The library is opened and initialised once, at the first CUDA call that needs a device, and is never shut down: other users
//! of the process (MPI, libfabric) hold their own references, and ours keeps the runtime alive at exit when nothing may
//! be torn down any more. Nothing above this folder sees a raw handle.

mod agent;
pub mod copy;
mod error;
pub mod executable;
pub mod fault;
pub mod ipc;
pub mod memory;
pub mod patience;
mod pool;
pub mod queue;
pub mod signal;
pub mod tools;
pub mod vmem;

use std::path::Path;
use std::sync::OnceLock;

use hsa_sys as sys;

pub use agent::{Agent, Kind, Uuid};
pub use error::{Error, Result};
pub use ipc::IpcHandle;
pub use memory::{PointerInfo, PointerType};
pub use pool::Pool;

use crate::{abi, config};

/// ROCr, opened and initialised, with the agents it shows to this process.
pub struct Hsa {
    functions: sys::Functions,
    agents: Vec<Agent>,
    /// Whether `hsa_amd_vmem_*` work here (ROCr 6.0, a recent kernel driver).
    pub virtual_memory: bool,
    /// Whether device memory can be exported as a dma-buf (ROCr 5.6).
    pub dma_buf: bool,
    /// Ticks per second of ROCr's system clock, the domain of all its timestamps.
    pub timestamp_frequency: u64,
}

static HSA: OnceLock<core::result::Result<&'static Hsa, abi::Error>> = OnceLock::new();

/// ROCr; the first call opens it. [`abi::Error::NO_DEVICE`] when it is not installed or finds no kernel driver.
pub fn get() -> abi::Result<&'static Hsa> {
    *HSA.get_or_init(|| Hsa::start().map(|hsa| &*Box::leak(Box::new(hsa))))
}

/// The raw functions, for the files of this folder. Objects that use them exist only after [`get`] succeeded.
fn raw() -> &'static sys::Functions {
    match HSA.get() {
        Some(Ok(hsa)) => &hsa.functions,
        _ => unreachable!("an HSA object exists before HSA was initialised"),
    }
}

impl Hsa {
    fn start() -> abi::Result<Self> {
        let functions = sys::Functions::load(config::ROCR.get().as_deref().map(Path::as_os_str)).map_err(|error| {
            log::warn!("no CUDA device: {error}");
            abi::Error::NO_DEVICE
        })?;
        keep_ipc_in_the_kernel(&functions);
        // SAFETY: no precondition; reference-counted by ROCr.
        let status = unsafe { functions.hsa_init() };
        if status != sys::HSA_STATUS_SUCCESS {
            log::info!(
                "no CUDA device: hsa_init says {status:?} (is the amdgpu driver loaded, is /dev/kfd accessible?)"
            );
            return Err(abi::Error::NO_DEVICE);
        }
        let agents = agent::enumerate(&functions).map_err(|error| {
            log::error!("no CUDA device: HSA agents cannot be enumerated: {error}");
            abi::Error::NO_DEVICE
        })?;
        let flag = |attribute| system_info::<bool>(&functions, attribute).unwrap_or(false);
        Ok(Self {
            virtual_memory: functions.hsa_amd_vmem_handle_create.is_some()
                && flag(sys::HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED),
            dma_buf: functions.hsa_amd_portable_export_dmabuf.is_some()
                && flag(sys::HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED),
            timestamp_frequency: system_info(&functions, sys::HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)
                .unwrap_or(1_000_000_000),
            functions,
            agents,
        })
    }

    /// All agents, CPUs and GPUs, in ROCr's order.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// The GPUs, in ROCr's order (after `ROCR_VISIBLE_DEVICES`).
    pub fn gpus(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().filter(|agent| agent.kind == Kind::Gpu)
    }

    /// The CPUs, one per NUMA node.
    pub fn cpus(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().filter(|agent| agent.kind == Kind::Cpu)
    }

    /// The CPU whose memory `gpu` reaches fastest.
    pub fn nearest_cpu(&self, gpu: &Agent) -> Option<&Agent> {
        gpu.nearest_cpu
            .and_then(|handle| self.agent(handle))
            .or_else(|| self.cpus().next())
    }

    fn agent(&self, handle: sys::hsa_agent_t) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.handle == handle)
    }

    /// Ticks of ROCr's system clock now.
    pub fn timestamp(&self) -> u64 {
        system_info(&self.functions, sys::HSA_SYSTEM_INFO_TIMESTAMP).unwrap_or(0)
    }
}

/// One attribute of the whole system; `T` is the type that the HSA specification names for it.
fn system_info<T: Copy + Default>(functions: &sys::Functions, attribute: u32) -> Result<T> {
    let mut value = T::default();
    // SAFETY: the caller names the attribute's own type.
    error::check(unsafe { functions.hsa_system_get_info(attribute, (&raw mut value).cast()) })?;
    Ok(value)
}

/// Recent ROCr (7.x) may hand memory to other processes through a server thread and a socket, which hangs on freed blocks,
/// breaks across fork and network namespaces, and can map the wrong memory (rocm-systems#9827, #11892). Its older way
/// through the kernel driver has none of that, so it is asked for unless the user decided.
fn keep_ipc_in_the_kernel(functions: &sys::Functions) {
    const VARIABLE: &str = "HSA_ENABLE_IPC_MODE_LEGACY";
    if functions.hsa_amd_memory_get_preferred_copy_engine.is_some() && std::env::var_os(VARIABLE).is_none() {
        // SAFETY: ROCr reads the variable inside hsa_init below; only releases that need it get here.
        unsafe { std::env::set_var(VARIABLE, "1") };
    }
}
