//! One process as the driver sees it: its GPUs, buffers, events and queues. Made when a device path is first touched.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI32, AtomicPtr, Ordering},
    },
};

use cdna::{
    exec::code::CodeCache,
    memory::{Fault, FaultReason},
};

use crate::{
    bo::Buffers,
    config::{Bar, Config, Link},
    counters::Counters,
    event::{Events, MemoryException},
    helpers::Helpers,
    kernel_name::KernelNames,
    os,
    queue::{Bell, Queues},
    shared::Shared,
    sink,
    svm::Svm,
    sysfs,
    trace::Trace,
    vm::AddressSpace,
};

/// Doorbells of one GPU for one process: two pages of 8-byte doorbells.
pub const DOORBELLS: usize = 1024;
const DOORBELL_BYTES: usize = DOORBELLS * 8;
/// Where the MMIO remap page (HDP flush registers) is in the KFD file.
const MMIO_OFFSET: u64 = 0x4000;

/// One GPU.
pub struct Gpu {
    /// From 0.
    pub index: u32,
    /// As ioctls name it.
    pub id: u32,
    /// Its page table for this process.
    pub vm: AddressSpace,
    /// Code that its queues have decoded.
    pub code: CodeCache,
    /// This process's own view of the GPU's whole file: the queues work through it, whatever the application's own
    /// mappings are (none in small-BAR mode).
    alias: *mut u8,
    /// Device and inode of the GPU's file.
    pub identity: (u64, u64),
    doorbells: *mut u8,
}

// SAFETY: the pointers are to shared mappings that stay for the life of the process.
unsafe impl Send for Gpu {}
// SAFETY: as above; what they point to is device memory, which anything may touch at any time.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Address in this process of a byte of the GPU's file.
    pub fn at(&self, offset: u64) -> usize {
        self.alias as usize + offset as usize
    }

    /// The doorbell with the given number.
    pub fn doorbell(&self, index: usize) -> &std::sync::atomic::AtomicU64 {
        assert!(index < DOORBELLS);
        // SAFETY: inside the doorbell pages, aligned, mapped for the life of the process.
        unsafe { std::sync::atomic::AtomicU64::from_ptr(self.doorbells.cast::<u64>().add(index)) }
    }

    /// Address in this process of the doorbell pages.
    pub fn doorbell_pages(&self) -> usize {
        self.doorbells as usize
    }

    /// Where the doorbell pages are in the KFD file.
    ///
    /// A multiple of 4 GiB: libhsakmt clears the low 32 bits of the offset at its first queue, because the mask it
    /// computes from a size of 0 is only 32 bits wide.
    pub fn doorbell_offset(&self) -> u64 {
        u64::from(self.index + 1) << 32
    }
}

/// This process.
pub struct Process {
    pid: i32,
    /// What the environment said.
    pub config: Config,
    /// The virtual machine's shared state.
    pub shared: Shared,
    /// All GPUs of the machine.
    pub gpus: Vec<Gpu>,
    kfd: OwnedFd,
    kfd_identity: (u64, u64),
    mmio: *mut u8,
    /// Buffer objects and GEM handles.
    buffers: Mutex<Buffers>,
    /// Events.
    pub events: Events,
    /// Queues.
    pub queues: Queues,
    /// What idle queue threads sleep on.
    pub bell: Bell,
    /// Ranges of shared virtual memory.
    pub svm: Svm,
    /// Threads that help the queues'.
    pub helpers: Helpers,
    /// Counters.
    pub counters: Counters,
    /// Trace.
    pub trace: Trace,
    /// What kernels are called.
    pub names: KernelNames,
    /// The process that forked this one after using a GPU: its descriptors are still open here.
    parent: Option<&'static Process>,
}

// SAFETY: `mmio` is a shared mapping that stays for the life of the process; the rest is Sync.
unsafe impl Sync for Process {}
// SAFETY: as above.
unsafe impl Send for Process {}

/// What a file descriptor is.
#[derive(Clone, Copy)]
pub enum Device {
    /// Not ours.
    Other,
    /// `/dev/kfd`, opened by the given process.
    Kfd(&'static Process),
    /// A render node: the GPU's index.
    Render(usize),
}

static CURRENT: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());
/// The process whose thread is making [`CURRENT`]; its pid, so that a child forked meanwhile is not locked out.
static STARTING: AtomicI32 = AtomicI32::new(0);
/// The process that could not start: it has no GPU, and has said so once.
static FAILED: AtomicI32 = AtomicI32::new(0);

fn latest() -> Option<&'static Process> {
    // SAFETY: only ever set to a leaked box.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

impl Process {
    /// This process, if it has touched a device.
    pub fn current() -> Option<&'static Self> {
        latest().filter(|process| process.pid == os::pid())
    }

    /// This process, which comes into being now if need be. `None`: no GPU; the reason has been logged.
    pub fn start() -> Option<&'static Self> {
        if let Some(process) = Self::current() {
            return Some(process);
        }
        let pid = os::pid();
        loop {
            if FAILED.load(Ordering::Acquire) == pid {
                return None;
            }
            match STARTING.load(Ordering::Acquire) {
                other if other != pid => {
                    if STARTING
                        .compare_exchange(other, pid, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {
                        break;
                    }
                }
                // Another thread is at it.
                _ => std::thread::sleep(std::time::Duration::from_micros(100)),
            }
            if let Some(process) = Self::current() {
                return Some(process);
            }
        }
        sink::install();
        let made = match Config::from_env() {
            Ok(None) => None,
            Ok(Some(config)) => match Self::new(config, latest()) {
                Ok(process) => Some(process),
                Err(error) => {
                    log::error!("no virtual GPU: {error}");
                    None
                }
            },
            Err(malformed) => {
                log::error!("no virtual GPU: {malformed}");
                None
            }
        };
        match made {
            Some(process) => CURRENT.store(Box::into_raw(Box::new(process)), Ordering::Release),
            None => FAILED.store(pid, Ordering::Release),
        }
        STARTING.store(0, Ordering::Release);
        Self::current()
    }

    /// Joins the machine that the configuration names. `parent`: the process that this one was forked from.
    pub fn new(config: Config, parent: Option<&'static Self>) -> io::Result<Self> {
        cdna::alu::ulp::set_hostile(config.hostile_ulp);
        let machine = config.machine;
        let shared = Shared::attach(&config.root, &machine, |root| sysfs::write_tree(root, &machine))?;
        let kfd = os::memfd(c"vgpu-kfd")?;
        os::set_len(&kfd, u64::from(machine.gpus + 1) << 32 | DOORBELL_BYTES as u64)?;
        let identity = |fd: &OwnedFd| os::identity(fd.as_raw_fd()).ok_or_else(io::Error::last_os_error);
        let gpus = (0..machine.gpus)
            .map(|index| {
                let file = shared.heap_file(index as usize);
                let len = shared.layout().file_len();
                let alias = os::map_shared(file, len as usize, 0).map_err(|error| {
                    io::Error::other(format!(
                        "{} GiB of addresses for the memory of GPU {index}: {error} (use a smaller VGPU_MEMORY; \
                         under valgrind 2G)",
                        len >> 30
                    ))
                })?;
                Ok(Gpu {
                    index,
                    id: sysfs::gpu_id(index),
                    vm: AddressSpace::new(config.hostile_coherence),
                    code: CodeCache::default(),
                    alias,
                    identity: identity(file)?,
                    doorbells: os::map_shared(&kfd, DOORBELL_BYTES, u64::from(index + 1) << 32)?,
                })
            })
            .collect::<io::Result<Vec<_>>>()?;
        let counters = Counters::new(config.counters.as_ref());
        let trace = Trace::new(config.trace.clone());
        Ok(Self {
            pid: os::pid(),
            mmio: os::map_shared(&kfd, 4096, MMIO_OFFSET)?,
            kfd_identity: identity(&kfd)?,
            kfd,
            config,
            shared,
            gpus,
            buffers: Mutex::default(),
            events: Events::default(),
            queues: Queues::default(),
            bell: Bell::default(),
            svm: Svm::default(),
            helpers: Helpers::default(),
            counters,
            trace,
            names: KernelNames::default(),
            parent,
        })
    }

    /// Buffers and GEM handles, locked.
    pub fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The GPU that an ioctl names.
    pub fn gpu_by_id(&self, id: u32) -> Option<&Gpu> {
        self.gpus.iter().find(|gpu| gpu.id == id)
    }

    /// Address in this process of the MMIO remap page.
    pub fn mmio_page(&self) -> usize {
        self.mmio as usize
    }

    /// Where the MMIO remap page is in the KFD file.
    pub fn mmio_offset(&self) -> u64 {
        MMIO_OFFSET
    }

    /// Whether a GPU can address another one's memory: over XGMI always, over PCIe where it has an address on the bus.
    pub fn reaches(&self, gpu: &Gpu, owner: usize) -> bool {
        owner == gpu.index as usize || self.config.machine.link == Link::Xgmi || self.large_bar()
    }

    /// The host can address device memory.
    pub fn large_bar(&self) -> bool {
        self.config.machine.bar == Bar::Large
    }

    /// The file behind `/dev/kfd`.
    pub fn kfd_file(&self) -> RawFd {
        self.kfd.as_raw_fd()
    }

    /// The file behind a render node, by minor.
    pub fn render_file(&self, minor: u32) -> Option<RawFd> {
        let gpu = minor
            .checked_sub(sysfs::FIRST_RENDER_MINOR)
            .filter(|gpu| *gpu < self.config.machine.gpus)?;
        Some(self.shared.heap_file(gpu as usize).as_raw_fd())
    }

    /// Reports a queue's memory fault: the log names it, and ROCr hears of it through its memory-exception event.
    pub fn memory_fault(&self, gpu: &Gpu, fault: Fault, what: &str) {
        self.counters.add(&self.counters.memory_faults, 1);
        let why = match fault.reason {
            FaultReason::NotPresent => "nothing is mapped there for this GPU",
            FaultReason::ReadOnly => "the mapping is read-only",
            FaultReason::NoExecute => "the mapping is not executable",
            FaultReason::Misaligned => "misaligned atomic",
        };
        log::error!("GPU {}: memory fault at {:#x} ({why}): {what}", gpu.index, fault.va);
        let raised = self.events.raise_memory_exception(MemoryException {
            gpu_id: gpu.id,
            va: fault.va & !0xfff,
            not_present: fault.reason == FaultReason::NotPresent,
            read_only: fault.reason == FaultReason::ReadOnly,
            no_execute: fault.reason == FaultReason::NoExecute,
        });
        if raised == 0 {
            log::warn!("no memory-exception event: the runtime will not hear of the fault");
        }
    }

    /// What has to be done when the process exits in good order.
    fn finish(&self) {
        self.queues.cancel_all();
        self.counters.publish();
        self.shared.release_all();
    }
}

/// What a descriptor is. Recognised by device and inode, so that duplicates (libdrm makes some) are found too.
pub fn device_of(fd: RawFd) -> Device {
    let Some(latest) = latest() else { return Device::Other };
    if fd < 0 {
        return Device::Other;
    }
    let Some(identity) = os::identity(fd) else {
        return Device::Other;
    };
    if let Some(gpu) = latest.gpus.iter().position(|gpu| gpu.identity == identity) {
        return Device::Render(gpu);
    }
    let mut process = Some(latest);
    while let Some(candidate) = process {
        if candidate.kfd_identity == identity {
            return Device::Kfd(candidate);
        }
        process = candidate.parent;
    }
    Device::Other
}

/// Runs when the process exits: preloaded libraries are finished after those that use them.
#[ctor::dtor]
fn at_exit() {
    if let Some(process) = Process::current() {
        process.finish();
    }
}
