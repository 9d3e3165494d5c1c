//! Devices, contexts, attributes, visibility.
//!
//! [`init`] is `cuInit`: it opens HSA and numbers the GPUs that `CUDA_VISIBLE_DEVICES` leaves. Nothing happens before it.

pub mod attributes;
pub mod context;
pub mod limits;
pub mod pci;
pub mod peer;
pub mod properties;
pub mod visibility;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::{Error, Result};
use crate::attention;
use crate::hsa::{self, Agent, Hsa, Pool};
use crate::stream::kernels::Kernels;

pub use context::Context;
use context::Primary;

/// More GPUs than this are not numbered: sets of peers are 64-bit masks.
pub const MAX_DEVICES: usize = 64;

/// A GPU under its CUDA ordinal.
pub struct Device {
    /// Its number in this process, from 0.
    pub ordinal: i32,
    /// The GPU.
    pub agent: &'static Agent,
    /// The CPU whose memory it reaches fastest: where pinned memory and staging buffers lie.
    pub host: &'static Agent,
    /// The pool of `cudaMalloc`.
    pub pool: &'static Pool,
    /// The fine-grained pool of `cudaMallocHost`.
    pub host_pool: &'static Pool,
    /// Whether the host can read and write device memory (large BAR).
    pub host_accessible: bool,
    /// `CUuuid`.
    pub uuid: [u8; 16],
    /// `"AMD Instinct MI250X"`, or the instruction set's name where the card has none.
    pub name: String,
    pub(crate) primary: Primary,
    /// Bytes of device memory that this process holds: stands in where ROCr cannot tell what is free.
    allocated: AtomicU64,
    /// Devices (as bits) to which this device's memory is mapped; only ever grows.
    pub(crate) readers: AtomicU64,
    kernels: OnceLock<Option<Kernels>>,
}

/// The driver after `cuInit`.
struct Driver {
    devices: Vec<Device>,
}

static DRIVER: OnceLock<Result<&'static Driver>> = OnceLock::new();

/// `cuInit`. [`Error::NO_DEVICE`] when there is none; the answer stays the same for the life of the process.
#[inline]
pub fn init() -> Result<()> {
    DRIVER.get_or_init(start).map(|_| ())
}

fn start() -> Result<&'static Driver> {
    let driver = Driver::start()?;
    // From here on a forked child would share ROCr's threads and connection, which are the parent's.
    crate::fork::register();
    if driver.devices.len() == 1 {
        attention::set_alone();
    }
    Ok(Box::leak(Box::new(driver)))
}

/// Whether [`init`] succeeded; [`Error::INITIALIZATION_ERROR`] before it, and after it failed.
pub fn initialized() -> Result<()> {
    driver().map(|_| ())
}

fn driver() -> Result<&'static Driver> {
    match DRIVER.get() {
        Some(Ok(driver)) => Ok(driver),
        _ => Err(Error::INITIALIZATION_ERROR),
    }
}

/// All devices, by ordinal.
pub fn all() -> Result<&'static [Device]> {
    Ok(&driver()?.devices)
}

/// How many devices there are; at least 1.
pub fn count() -> Result<usize> {
    Ok(driver()?.devices.len())
}

/// Whether the driver has started and sees one device.
#[inline]
pub fn is_alone() -> bool {
    attention::is_alone()
}

/// The device of a number; [`Error::INVALID_DEVICE`] outside `0..count`.
pub fn get(ordinal: i32) -> Result<&'static Device> {
    let devices = all()?;
    usize::try_from(ordinal)
        .ok()
        .and_then(|index| devices.get(index))
        .ok_or(Error::INVALID_DEVICE)
}

impl Driver {
    fn start() -> Result<Self> {
        let hsa = hsa::get()?;
        crate::fork::register();
        crate::memory::hsa_view::start();
        let found: Vec<Found> = hsa.gpus().filter_map(|agent| Found::new(hsa, agent)).collect();
        let uuids: Vec<[u8; 16]> = found.iter().map(|gpu| gpu.uuid).collect();
        let order = visibility::from_environment(&uuids)?;
        if order.is_empty() {
            log::info!("no CUDA device: {} GPUs, none visible", found.len());
            return Err(Error::NO_DEVICE);
        }
        if order.len() > MAX_DEVICES {
            log::warn!("{} GPUs, of which the first {MAX_DEVICES} are used", order.len());
        }
        let devices = order
            .iter()
            .take(MAX_DEVICES)
            .zip(0..)
            .map(|(&index, ordinal)| found[index].number(ordinal))
            .collect();
        Ok(Self { devices })
    }
}

/// A GPU that can be a device: it has the pools that CUDA's memory needs.
struct Found {
    agent: &'static Agent,
    host: &'static Agent,
    pool: &'static Pool,
    host_pool: &'static Pool,
    uuid: [u8; 16],
}

impl Found {
    fn new(hsa: &'static Hsa, agent: &'static Agent) -> Option<Self> {
        let host = hsa.nearest_cpu(agent)?;
        match (agent.coarse_pool(), host.fine_pool()) {
            (Some(pool), Some(host_pool)) => Some(Self {
                agent,
                host,
                pool,
                host_pool,
                uuid: uuid(agent),
            }),
            _ => {
                log::warn!(
                    "{} is left out: it has no device memory, or its host no fine-grained memory",
                    agent.name
                );
                None
            }
        }
    }

    fn number(&self, ordinal: i32) -> Device {
        let name = if self.agent.product.is_empty() {
            &self.agent.name
        } else {
            &self.agent.product
        };
        Device {
            ordinal,
            agent: self.agent,
            host: self.host,
            pool: self.pool,
            host_pool: self.host_pool,
            host_accessible: cfg!(not(test)) && self.pool.reachable_by(self.host),
            uuid: self.uuid,
            name: name.clone(),
            primary: Primary::default(),
            allocated: AtomicU64::new(0),
            readers: AtomicU64::new(0),
            kernels: OnceLock::new(),
        }
    }
}

/// The 16 bytes of a CUDA UUID:
///
/// ```text
///  0..8   the card's unique number, high byte first: "GPU-" and ROCr's own digits are a prefix of CUDA's text
///  8..12  PCI domain and bus/device/function: tells cards without a number, and parts of one card, apart
/// 12..16  PCI id of the chip, and "RG"
/// ```
pub(crate) fn uuid(agent: &Agent) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&agent.uuid.unwrap_or(0).to_be_bytes());
    bytes[8..10].copy_from_slice(&(agent.pci_domain as u16).to_be_bytes());
    bytes[10..12].copy_from_slice(&(agent.pci_bdf as u16).to_be_bytes());
    bytes[12..14].copy_from_slice(&(agent.chip_id as u16).to_be_bytes());
    bytes[14..].copy_from_slice(b"RG");
    bytes
}

impl Device {
    /// A device without hardware.
    #[cfg(test)]
    pub(crate) fn for_tests() -> &'static Self {
        let leak = |kind| -> &'static Agent { Box::leak(Box::new(Agent::for_tests(kind))) };
        let (agent, host) = (leak(hsa::Kind::Gpu), leak(hsa::Kind::Cpu));
        let (pool, host_pool) = (&agent.pools[0], &host.pools[0]);
        let found = Found {
            agent,
            host,
            pool,
            host_pool,
            uuid: uuid(agent),
        };
        Box::leak(Box::new(found.number(0)))
    }

    /// Its primary context, active or not; the object is the same for the life of the process.
    pub fn primary_context(&'static self) -> &'static Context {
        self.primary.context(self)
    }

    /// The runtime's own kernels, loaded at the first question; `None` where there is no code for this device.
    pub(crate) fn kernels(&'static self) -> Option<&'static Kernels> {
        self.kernels.get_or_init(|| Kernels::load(self)).as_ref()
    }

    /// Bytes of device memory.
    pub fn total_memory(&self) -> u64 {
        self.pool.size as u64
    }

    /// Bytes of device memory that no process holds. Before ROCr 5.4 only this process's own blocks are counted.
    pub fn free_memory(&self) -> u64 {
        let own = self
            .total_memory()
            .saturating_sub(self.allocated.load(Ordering::Relaxed));
        self.agent
            .memory_available()
            .map_or(own, |available| available.min(self.total_memory()))
    }

    pub(crate) fn count_allocated(&self, size: usize) {
        self.allocated.fetch_add(size as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_freed(&self, size: usize) {
        self.allocated.fetch_sub(size as u64, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "device {} ({})", self.ordinal, self.agent.name)
    }
}
