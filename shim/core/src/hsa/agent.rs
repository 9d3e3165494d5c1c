//! Agents: the CPUs and GPUs that ROCr shows to this process.

use core::ffi::c_void;
use core::ptr::NonNull;

use hsa_sys as sys;

use super::error::{Result, check};
use super::pool::Pool;

/// What an agent is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Host processors of one NUMA node.
    Cpu,
    /// A GPU (on MI250X each half of a card is one).
    Gpu,
    /// Anything else; not used.
    Other,
}

/// The GPU's unique number, if its firmware has one.
pub type Uuid = Option<u64>;

/// `HDP_MEM_FLUSH_CNTL` of a GPU, which ROCr maps for the life of the process.
#[derive(Clone, Copy, Debug)]
pub struct FlushRegister(NonNull<u32>);

// SAFETY: a register that every thread may write; only the write counts.
unsafe impl Send for FlushRegister {}
// SAFETY: as above.
unsafe impl Sync for FlushRegister {}

impl FlushRegister {
    fn of(functions: &sys::Functions, agent: sys::hsa_agent_t) -> Option<Self> {
        // `hsa_amd_hdp_flush_t`: the register for memory, and one for registers.
        let addresses: [usize; 2] = info(functions, agent, sys::HSA_AMD_AGENT_INFO_HDP_FLUSH).ok()?;
        NonNull::new(core::ptr::with_exposed_provenance_mut(addresses[0])).map(Self)
    }

    /// Makes what the host and network cards wrote to the GPU's memory before this visible to its kernels. The read behind the write has the
    /// flush reach the GPU before this returns.
    pub fn flush(self) {
        // SAFETY: ROCr's mapping of the register stays.
        unsafe {
            self.0.write_volatile(1);
            self.0.read_volatile();
        }
    }
}

/// One agent and what was asked about it at start-up. Sizes are bytes, frequencies kHz where CUDA's are.
#[derive(Debug)]
pub struct Agent {
    pub(super) handle: sys::hsa_agent_t,
    /// CPU or GPU.
    pub kind: Kind,
    /// `gfx90a`, or the CPU's model.
    pub name: String,
    /// Marketing name, e.g. `AMD Instinct MI250X`.
    pub product: String,
    /// Full name of the instruction set, with its features: `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`. Empty for CPUs.
    pub isa: String,
    /// The unique number, if any.
    pub uuid: Uuid,
    /// PCI domain.
    pub pci_domain: u32,
    /// PCI bus, device and function: `bus << 8 | device << 3 | function`.
    pub pci_bdf: u32,
    /// PCI device id of the chip.
    pub chip_id: u32,
    /// NUMA node in ROCr's numbering.
    pub node: u32,
    /// Compute units (multiprocessors) that together hold the work-groups of one dispatch; see [`resident_units`].
    pub compute_units: u32,
    /// It has a queue whose dispatches are on the GPU as a whole.
    pub cooperative: bool,
    /// SIMDs in each compute unit.
    pub simds_per_cu: u32,
    /// Waves that one compute unit holds at most.
    pub max_waves_per_cu: u32,
    /// Lanes of a wave.
    pub wavefront_size: u32,
    /// Highest engine clock, MHz.
    pub clock_mhz: u32,
    /// Highest memory clock, MHz.
    pub memory_clock_mhz: u32,
    /// Width of the memory bus, bits.
    pub memory_width: u32,
    /// Size of the L2 cache, bytes.
    pub l2_cache: u32,
    /// Copy engines for the host, 2 where ROCr does not say.
    pub sdma_engines: u32,
    /// Most packets a queue may have.
    pub max_queue_packets: u32,
    /// Its memory pools.
    pub pools: Vec<Pool>,
    /// The register that flushes the path by which the host and network cards write to its memory, where there is one.
    pub hdp_flush: Option<FlushRegister>,
    pub(super) nearest_cpu: Option<sys::hsa_agent_t>,
}

impl Agent {
    fn query(functions: &sys::Functions, handle: sys::hsa_agent_t) -> Result<Self> {
        let number = |attribute| info::<u32>(functions, handle, attribute).unwrap_or(0);
        let kind = match info::<u32>(functions, handle, sys::HSA_AGENT_INFO_DEVICE)? {
            sys::HSA_DEVICE_TYPE_CPU => Kind::Cpu,
            sys::HSA_DEVICE_TYPE_GPU => Kind::Gpu,
            _ => Kind::Other,
        };
        let caches: [u32; 4] = info(functions, handle, sys::HSA_AGENT_INFO_CACHE_SIZE).unwrap_or_default();
        let nearest_cpu: Option<sys::hsa_agent_t> = match kind {
            Kind::Gpu => info(functions, handle, sys::HSA_AMD_AGENT_INFO_NEAREST_CPU).ok(),
            _ => None,
        };
        let name = text::<64>(functions, handle, sys::HSA_AGENT_INFO_NAME)?;
        let compute_units = resident_units(&name, number(sys::HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT));
        Ok(Self {
            handle,
            kind,
            name,
            product: text::<64>(functions, handle, sys::HSA_AMD_AGENT_INFO_PRODUCT_NAME).unwrap_or_default(),
            isa: if kind == Kind::Gpu {
                isa_name(functions, handle)?
            } else {
                String::new()
            },
            uuid: text::<24>(functions, handle, sys::HSA_AMD_AGENT_INFO_UUID)
                .ok()
                .and_then(|text| parse_uuid(&text)),
            pci_domain: number(sys::HSA_AMD_AGENT_INFO_DOMAIN),
            pci_bdf: number(sys::HSA_AMD_AGENT_INFO_BDFID),
            chip_id: number(sys::HSA_AMD_AGENT_INFO_CHIP_ID),
            node: number(sys::HSA_AGENT_INFO_NODE),
            compute_units,
            // ROCr hides compute units from queues, but not from its answers about the agent.
            cooperative: std::env::var_os("HSA_CU_MASK").is_none()
                && info(functions, handle, sys::HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES).unwrap_or(false),
            simds_per_cu: number(sys::HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU),
            max_waves_per_cu: number(sys::HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU),
            wavefront_size: number(sys::HSA_AGENT_INFO_WAVEFRONT_SIZE),
            clock_mhz: number(sys::HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY),
            memory_clock_mhz: number(sys::HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY),
            memory_width: number(sys::HSA_AMD_AGENT_INFO_MEMORY_WIDTH),
            l2_cache: caches[1],
            sdma_engines: info(functions, handle, sys::HSA_AMD_AGENT_INFO_NUM_SDMA_ENG).unwrap_or(2),
            max_queue_packets: number(sys::HSA_AGENT_INFO_QUEUE_MAX_SIZE),
            pools: Pool::of(functions, handle)?,
            hdp_flush: FlushRegister::of(functions, handle),
            nearest_cpu,
        })
    }

    /// An agent that no call of ROCr knows.
    #[cfg(test)]
    pub(crate) fn for_tests(kind: Kind) -> Self {
        Self {
            handle: sys::hsa_agent_t {
                handle: kind as u64 + 1,
            },
            kind,
            name: "gfx90a".into(),
            product: "Test card".into(),
            isa: "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-".into(),
            uuid: Some(0x1234_5678_9abc_def0),
            pci_domain: 0,
            pci_bdf: 0xc100,
            chip_id: 0x7408,
            node: 0,
            compute_units: 96,
            cooperative: true,
            simds_per_cu: 4,
            max_waves_per_cu: 32,
            wavefront_size: 64,
            clock_mhz: 1700,
            memory_clock_mhz: 1600,
            memory_width: 4096,
            l2_cache: 8 << 20,
            sdma_engines: 2,
            max_queue_packets: 1 << 17,
            pools: vec![Pool::for_tests(1 << 36)],
            hdp_flush: None,
            nearest_cpu: None,
        }
    }

    /// The pool of device memory that `cudaMalloc` takes: coarse-grained, for kernels at full speed.
    pub fn coarse_pool(&self) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.coarse_grained && pool.allocatable)
    }

    /// The fine-grained pool; a CPU's is the memory of `cudaMallocHost`.
    pub fn fine_pool(&self) -> Option<&Pool> {
        self.pools
            .iter()
            .find(|pool| pool.fine_grained && !pool.kernarg && pool.allocatable)
            .or_else(|| {
                // Some kernels show one fine-grained pool of the CPU, and it is the kernarg pool too.
                self.pools.iter().find(|pool| pool.fine_grained && pool.allocatable)
            })
    }

    /// Bytes of device memory that are free now; `None` before ROCr 5.4, which cannot say.
    pub fn memory_available(&self) -> Option<u64> {
        info(super::raw(), self.handle, sys::HSA_AMD_AGENT_INFO_MEMORY_AVAIL).ok()
    }
}

impl PartialEq for Agent {
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle
    }
}

impl Eq for Agent {}

/// The compute units of all that a GPU has which hold the work-groups of one dispatch at the same time.
///
/// gfx90a's dispatcher deals work-groups out to the eight shader engines in turn, and does not go on while the one whose turn it is has no room.
/// Cards have engines with fewer units than others, so the rest of the units never fill up. ROCr's corrected answer
/// (`HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT` with `HSA_COOP_CU_COUNT=1`) allows for one unit in each; so does this. CUDA programs
/// multiply the number of multiprocessors by a kernel's occupancy and rely on the product.
fn resident_units(name: &str, units: u32) -> u32 {
    const ENGINES: u32 = 8;
    match name {
        "gfx90a" if units > 2 * ENGINES => units / ENGINES * ENGINES - ENGINES,
        _ => units,
    }
}

/// All agents, in ROCr's order.
pub(super) fn enumerate(functions: &sys::Functions) -> Result<Vec<Agent>> {
    unsafe extern "C" fn collect(agent: sys::hsa_agent_t, data: *mut c_void) -> sys::hsa_status_t {
        // SAFETY: `data` is the vector that `enumerate` passes and holds for the length of the iteration.
        unsafe { &mut *data.cast::<Vec<sys::hsa_agent_t>>() }.push(agent);
        sys::HSA_STATUS_SUCCESS
    }
    let mut handles: Vec<sys::hsa_agent_t> = Vec::new();
    // SAFETY: the callback matches the data.
    check(unsafe { functions.hsa_iterate_agents(collect, (&raw mut handles).cast()) })?;
    handles
        .into_iter()
        .map(|handle| Agent::query(functions, handle))
        .collect()
}

/// One attribute; `T` is the type that the HSA specification names for it.
fn info<T: Copy + Default>(functions: &sys::Functions, agent: sys::hsa_agent_t, attribute: u32) -> Result<T> {
    let mut value = T::default();
    // SAFETY: the callers in this file name each attribute's own type.
    check(unsafe { functions.hsa_agent_get_info(agent, attribute, (&raw mut value).cast()) })?;
    Ok(value)
}

/// A text attribute that ROCr pads with zeroes up to `N` bytes at most.
fn text<const N: usize>(functions: &sys::Functions, agent: sys::hsa_agent_t, attribute: u32) -> Result<String> {
    let mut bytes = [0u8; N];
    // SAFETY: `N` is at least what the specification gives the attribute.
    check(unsafe { functions.hsa_agent_get_info(agent, attribute, bytes.as_mut_ptr().cast()) })?;
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(N);
    Ok(String::from_utf8_lossy(&bytes[..end]).trim().to_owned())
}

/// The name of the agent's first (its own, most specific) instruction set.
fn isa_name(functions: &sys::Functions, agent: sys::hsa_agent_t) -> Result<String> {
    unsafe extern "C" fn first(isa: sys::hsa_isa_t, data: *mut c_void) -> sys::hsa_status_t {
        // SAFETY: `data` is the handle that `isa_name` passes.
        unsafe { *data.cast::<sys::hsa_isa_t>() = isa };
        sys::HSA_STATUS_INFO_BREAK
    }
    let mut isa = sys::hsa_isa_t::default();
    // SAFETY: the callback matches the data.
    check(unsafe { functions.hsa_agent_iterate_isas(agent, first, (&raw mut isa).cast()) })?;
    let mut length = 0u32;
    // SAFETY: the length is a u32; the name has that many bytes with its NUL.
    let name = unsafe {
        check(functions.hsa_isa_get_info_alt(isa, sys::HSA_ISA_INFO_NAME_LENGTH, (&raw mut length).cast()))?;
        let mut name = vec![0u8; length as usize + 1];
        check(functions.hsa_isa_get_info_alt(isa, sys::HSA_ISA_INFO_NAME, name.as_mut_ptr().cast()))?;
        name
    };
    Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

/// ROCr writes `GPU-` and 16 hexadecimal digits, or `GPU-XX` where there is no number.
fn parse_uuid(text: &str) -> Uuid {
    u64::from_str_radix(text.strip_prefix("GPU-")?, 16)
        .ok()
        .filter(|&number| number != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gfx90a_counts_what_all_engines_have() {
        assert_eq!(resident_units("gfx90a", 104), 96);
        assert_eq!(resident_units("gfx90a", 110), 96);
        assert_eq!(resident_units("gfx942", 304), 304);
    }

    #[test]
    fn a_uuid_is_sixteen_digits_or_none() {
        assert_eq!(parse_uuid("GPU-00c0ffee00000001"), Some(0x00c0_ffee_0000_0001));
        for text in ["GPU-XX", "CPU-XX", "", "GPU-", "GPU-0000000000000000"] {
            assert_eq!(parse_uuid(text), None, "{text}");
        }
    }
}
