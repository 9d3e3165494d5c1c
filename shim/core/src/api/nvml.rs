//! `nvml*`: what clients ask of NVML at start-up, answered from HSA.
//!
//! UCX, NCCL, launchers and monitors use NVML to count GPUs and to tell them apart. As NVIDIA's, ours knows nothing of
//! `CUDA_VISIBLE_DEVICES`: it numbers all GPUs of the node that ROCr shows. What an AMD GPU has no answer for (NVLink, fabric, MIG)
//! is "not supported", which these clients expect of most cards.

use core::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::driver::driver_version;
use super::guard;
use crate::abi::nvml::{
    NvmlError, NvmlResult, nvmlDevice_t, nvmlFieldValue_t, nvmlMemory_t, nvmlMemory_v2_t, nvmlPciInfo_t,
    nvmlPciInfo_v2_t,
};
use crate::abi::{Plain, conv};
use crate::hsa::{self, Agent};
use crate::{config, device, fork};

/// The driver version that we say we are: the first of the branch that brought CUDA 12.9.
const DRIVER_BRANCH: &str = "575.00";

/// Defines functions of NVML; as `driver!`, with NVML's codes.
macro_rules! nvml {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        /// Pointers must be what the NVML manual asks for.
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            guarded(stringify!($name), move || -> NvmlResult<()> { $body })
        }
    )*};
}

/// Runs the body of a call. After a fork, HSA is gone and so is NVML.
fn guarded(name: &'static str, body: impl FnOnce() -> NvmlResult<()>) -> c_int {
    let mut answer = None;
    let code = guard::driver(name, || {
        answer = Some(body());
        Ok(())
    });
    let error = match (answer, code) {
        (Some(Ok(())), _) | (None, 0) => return 0,
        (Some(Err(error)), _) => error,
        (None, 999) => NvmlError::UNKNOWN,
        (None, _) => NvmlError::UNINITIALIZED,
    };
    error.0.cast_signed()
}

/// How often NVML has been initialised and not shut down again.
static USERS: AtomicU32 = AtomicU32::new(0);

/// Initialises NVML: opens HSA.
fn init() -> NvmlResult<()> {
    hsa::get().map_err(|_| NvmlError::DRIVER_NOT_LOADED)?;
    fork::register();
    USERS.fetch_add(1, Relaxed);
    Ok(())
}

/// The GPUs, in NVML's order.
fn gpus() -> NvmlResult<Vec<&'static Agent>> {
    if USERS.load(Relaxed) == 0 {
        return Err(NvmlError::UNINITIALIZED);
    }
    Ok(hsa::get().map_err(|_| NvmlError::DRIVER_NOT_LOADED)?.gpus().collect())
}

/// Handles are numbers above this, so that neither NULL nor an index passes for one.
const HANDLE_BASE: usize = 0x5247_0001;

/// The GPU of a handle, and its index.
fn gpu(handle: nvmlDevice_t) -> NvmlResult<(usize, &'static Agent)> {
    let gpus = gpus()?;
    let index = handle.wrapping_sub(HANDLE_BASE);
    gpus.get(index)
        .map(|&gpu| (index, gpu))
        .ok_or(NvmlError::INVALID_ARGUMENT)
}

/// Writes the handle of the GPU of which `is` is true.
fn write_handle(out: *mut nvmlDevice_t, is: impl Fn(usize, &Agent) -> bool, missing: NvmlError) -> NvmlResult<()> {
    let index = gpus()?
        .iter()
        .enumerate()
        .position(|(index, gpu)| is(index, gpu))
        .ok_or(missing)?;
    write(out, HANDLE_BASE + index)
}

/// Writes an output argument.
fn write<T: Copy>(out: *mut T, value: T) -> NvmlResult<()> {
    conv::write(out, value).map_err(|_| NvmlError::INVALID_ARGUMENT)
}

/// Writes a text with its NUL; unlike CUDA, NVML refuses a buffer that is too small.
fn write_text(out: *mut c_char, length: c_uint, text: &str) -> NvmlResult<()> {
    if text.len() >= length as usize && !out.is_null() {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    conv::write_string(out, length as usize, text).map_err(|_| NvmlError::INVALID_ARGUMENT)
}

/// A text in a field of a structure, cut and with a NUL.
fn field<const N: usize>(text: &str) -> [c_char; N] {
    let mut chars = [0; N];
    for (to, from) in chars.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = from.cast_signed();
    }
    chars
}

/// Reads a text argument.
fn text<'a>(argument: *const c_char) -> NvmlResult<&'a [u8]> {
    // SAFETY: NULL is checked; the client promises a C string that lives during the call.
    unsafe { conv::bytes(argument) }.map_err(|_| NvmlError::INVALID_ARGUMENT)
}

/// Bus, device and function of a GPU.
fn location(gpu: &Agent) -> [u32; 3] {
    [gpu.pci_bdf >> 8 & 0xff, gpu.pci_bdf >> 3 & 0x1f, gpu.pci_bdf & 7]
}

/// `00000000:C1:00.0`, with `digits` digits of the domain.
fn bus_id(gpu: &Agent, digits: usize) -> String {
    let [bus, device, function] = location(gpu);
    format!("{:0digits$X}:{bus:02X}:{device:02X}.{function:X}", gpu.pci_domain)
}

/// `GPU-` and the digits of the UUID, as CUDA's tools print it.
fn uuid_text(gpu: &Agent) -> String {
    let hex: String = device::uuid(gpu).iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// The information that the three versions of `nvmlDeviceGetPciInfo` share.
fn pci_info(gpu: &Agent) -> nvmlPciInfo_v2_t {
    let [bus, device, _] = location(gpu);
    nvmlPciInfo_v2_t {
        busId: field(&bus_id(gpu, 4)),
        domain: gpu.pci_domain,
        bus,
        device,
        pciDeviceId: gpu.chip_id << 16 | device::pci::AMD,
        pciSubSystemId: 0,
        ..Plain::zeroed()
    }
}

/// Total and free bytes of device memory. ROCr before 5.4 cannot tell what is free: then it is what this process does not hold.
fn memory(gpu: &Agent) -> NvmlResult<(u64, u64)> {
    let total = gpu.coarse_pool().ok_or(NvmlError::NOT_SUPPORTED)?.size as u64;
    let own = || {
        device::all()
            .ok()?
            .iter()
            .find(|device| core::ptr::eq(device.agent, gpu))
    };
    let free = gpu
        .memory_available()
        .unwrap_or_else(|| own().map_or(total, device::Device::free_memory));
    Ok((total, free.min(total)))
}

/// The text of a code. It cannot fail.
#[allow(non_snake_case)]
pub extern "C" fn nvmlErrorString(result: c_uint) -> *const c_char {
    NvmlError(result).text().as_ptr()
}

nvml! {
    /// Initialises NVML.
    fn nvmlInit() {
        init()
    }

    /// Initialises NVML.
    fn nvmlInit_v2() {
        init()
    }

    /// Initialises NVML; the flags change nothing here.
    fn nvmlInitWithFlags(flags: c_uint) {
        let _ = flags;
        init()
    }

    /// Takes back one initialisation. HSA stays open: CUDA may use it.
    fn nvmlShutdown() {
        let taken = USERS.fetch_update(Relaxed, Relaxed, |users| users.checked_sub(1));
        taken.map(drop).map_err(|_| NvmlError::UNINITIALIZED)
    }

    /// The driver's version, which clients parse.
    fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) {
        gpus()?;
        write_text(version, length, DRIVER_BRANCH)
    }

    /// NVML's version: CUDA's major version before the driver's.
    fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) {
        gpus()?;
        write_text(version, length, &format!("{}.{DRIVER_BRANCH}", driver_version() / 1000))
    }

    /// The CUDA version, as `cuDriverGetVersion` gives it.
    fn nvmlSystemGetCudaDriverVersion(cudaDriverVersion: *mut c_int) {
        write(cudaDriverVersion, driver_version())
    }

    /// The CUDA version, as `cuDriverGetVersion` gives it.
    fn nvmlSystemGetCudaDriverVersion_v2(cudaDriverVersion: *mut c_int) {
        write(cudaDriverVersion, driver_version())
    }

    /// The number of GPUs.
    fn nvmlDeviceGetCount(deviceCount: *mut c_uint) {
        write(deviceCount, gpus()?.len() as c_uint)
    }

    /// The number of GPUs.
    fn nvmlDeviceGetCount_v2(deviceCount: *mut c_uint) {
        write(deviceCount, gpus()?.len() as c_uint)
    }

    /// The GPU of an index.
    fn nvmlDeviceGetHandleByIndex(index: c_uint, device: *mut nvmlDevice_t) {
        write_handle(device, |of, _| of == index as usize, NvmlError::INVALID_ARGUMENT)
    }

    /// The GPU of an index.
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) {
        write_handle(device, |of, _| of == index as usize, NvmlError::INVALID_ARGUMENT)
    }

    /// The GPU at a PCI address; domain and function may be missing.
    fn nvmlDeviceGetHandleByPciBusId(pciBusId: *const c_char, device: *mut nvmlDevice_t) {
        by_bus_id(pciBusId, device)
    }

    /// The GPU at a PCI address; domain and function may be missing.
    fn nvmlDeviceGetHandleByPciBusId_v2(pciBusId: *const c_char, device: *mut nvmlDevice_t) {
        by_bus_id(pciBusId, device)
    }

    /// The GPU of a UUID.
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut nvmlDevice_t) {
        let wanted = text(uuid)?;
        write_handle(device, |_, gpu| wanted.eq_ignore_ascii_case(uuid_text(gpu).as_bytes()), NvmlError::NOT_FOUND)
    }

    /// The product's name.
    fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint) {
        let (_, gpu) = gpu(device)?;
        write_text(name, length, if gpu.product.is_empty() { &gpu.name } else { &gpu.product })
    }

    /// The UUID, as text.
    fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint) {
        write_text(uuid, length, &uuid_text(gpu(device)?.1))
    }

    /// The index.
    fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint) {
        write(index, gpu(device)?.0 as c_uint)
    }

    /// The number in the name of the device file; AMD GPUs have one file in common, so it is the index.
    fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, minorNumber: *mut c_uint) {
        write(minorNumber, gpu(device)?.0 as c_uint)
    }

    /// The PCI address, first version: the structure ends with `pciDeviceId`.
    fn nvmlDeviceGetPciInfo(device: nvmlDevice_t, pci: *mut [u32; 8]) {
        let info = pci_info(gpu(device)?.1);
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(info.busId.chunks_exact(4)) {
            *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]].map(i8::cast_unsigned));
        }
        words[4..].copy_from_slice(&[info.domain, info.bus, info.device, info.pciDeviceId]);
        write(pci, words)
    }

    /// The PCI address, second version.
    fn nvmlDeviceGetPciInfo_v2(device: nvmlDevice_t, pci: *mut nvmlPciInfo_v2_t) {
        write(pci, pci_info(gpu(device)?.1))
    }

    /// The PCI address.
    fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) {
        let (_, gpu) = gpu(device)?;
        let old = pci_info(gpu);
        write(pci, nvmlPciInfo_t {
            busIdLegacy: old.busId,
            domain: old.domain,
            bus: old.bus,
            device: old.device,
            pciDeviceId: old.pciDeviceId,
            pciSubSystemId: old.pciSubSystemId,
            busId: field(&bus_id(gpu, 8)),
        })
    }

    /// Bytes of device memory.
    fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t) {
        let (total, free) = self::memory(gpu(device)?.1)?;
        write(memory, nvmlMemory_t { total, free, used: total - free })
    }

    /// Bytes of device memory, second version.
    fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, memory: *mut nvmlMemory_v2_t) {
        const VERSION: c_uint = 2 << 24 | size_of::<nvmlMemory_v2_t>() as c_uint;
        let version: c_uint = conv::read(memory.cast()).map_err(|_| NvmlError::INVALID_ARGUMENT)?;
        if version != VERSION {
            return Err(NvmlError::ARGUMENT_VERSION_MISMATCH);
        }
        let (total, free) = self::memory(gpu(device)?.1)?;
        write(memory, nvmlMemory_v2_t { version, total, reserved: 0, free, used: total - free })
    }

    /// The compute capability that CUDA reports.
    fn nvmlDeviceGetCudaComputeCapability(device: nvmlDevice_t, major: *mut c_int, minor: *mut c_int) {
        gpu(device)?;
        let &(of_major, of_minor) = config::COMPUTE_CAPABILITY.get();
        write(major, of_major.cast_signed())?;
        write(minor, of_minor.cast_signed())
    }

    /// The compute mode: any number of processes may use a GPU.
    fn nvmlDeviceGetComputeMode(device: nvmlDevice_t, mode: *mut c_uint) {
        gpu(device)?;
        write(mode, 0)
    }

    /// Whether two GPUs can do something with each other's memory: 0 is yes, 3 no (a chipset in between does not do it).
    fn nvmlDeviceGetP2PStatus(device1: nvmlDevice_t, device2: nvmlDevice_t, p2pIndex: c_uint, p2pStatus: *mut c_uint) {
        const ATOMICS: c_uint = 3;
        const LAST: c_uint = 4;
        if p2pIndex > LAST {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        let ((_, from), (_, to)) = (gpu(device1)?, gpu(device2)?);
        let reachable = to.coarse_pool().is_some_and(|pool| pool.reachable_by(from));
        write(p2pStatus, if reachable && p2pIndex <= ATOMICS { 0 } else { 3 })
    }

    /// Answers each question on its own: what an AMD GPU has no answer for is "not supported" in its field.
    fn nvmlDeviceGetFieldValues(device: nvmlDevice_t, valuesCount: c_int, values: *mut nvmlFieldValue_t) {
        gpu(device)?;
        let count = usize::try_from(valuesCount).map_err(|_| NvmlError::INVALID_ARGUMENT)?;
        // SAFETY: NULL and size are checked; the client promises that many fields.
        let values = unsafe { conv::slice_mut(values, count) }.map_err(|_| NvmlError::INVALID_ARGUMENT)?;
        for value in values {
            value.nvmlReturn = NvmlError::NOT_SUPPORTED.0;
        }
        Ok(())
    }
}

/// The GPU at the PCI address in the text.
fn by_bus_id(pci_bus_id: *const c_char, device: *mut nvmlDevice_t) -> NvmlResult<()> {
    let [domain, bus, slot, function] = device::pci::parse(text(pci_bus_id)?).ok_or(NvmlError::INVALID_ARGUMENT)?;
    let is = |_, gpu: &Agent| gpu.pci_domain == domain && location(gpu) == [bus, slot, function];
    write_handle(device, is, NvmlError::NOT_FOUND)
}

/// Defines functions to which the answer is "not supported" for a valid device, without a log line: clients ask them
/// routinely and expect that of most cards.
macro_rules! not_supported {
    ($(fn $name:ident($device:ident: nvmlDevice_t $(, $arg:ident: $ty:ty)*);)*) => {$(
        nvml! {
            /// Nothing that an AMD GPU has.
            fn $name($device: nvmlDevice_t $(, $arg: $ty)*) {
                $(let _ = $arg;)*
                gpu($device)?;
                Err(NvmlError::NOT_SUPPORTED)
            }
        }
    )*};
}

not_supported! {
    fn nvmlDeviceGetNvLinkState(device: nvmlDevice_t, link: c_uint, isActive: *mut c_uint);
    fn nvmlDeviceGetNvLinkVersion(device: nvmlDevice_t, link: c_uint, version: *mut c_uint);
    fn nvmlDeviceGetNvLinkCapability(device: nvmlDevice_t, link: c_uint, capability: c_uint, capResult: *mut c_uint);
    fn nvmlDeviceGetNvLinkRemotePciInfo(device: nvmlDevice_t, link: c_uint, pci: *mut c_void);
    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(device: nvmlDevice_t, link: c_uint, pci: *mut c_void);
    fn nvmlDeviceGetNvLinkRemoteDeviceType(device: nvmlDevice_t, link: c_uint, deviceType: *mut c_uint);
    fn nvmlDeviceGetGpuFabricInfo(device: nvmlDevice_t, gpuFabricInfo: *mut c_void);
    fn nvmlDeviceGetGpuFabricInfoV(device: nvmlDevice_t, gpuFabricInfo: *mut c_void);
    fn nvmlDeviceGetPlatformInfo(device: nvmlDevice_t, platformInfo: *mut c_void);
    fn nvmlDeviceGetMigMode(device: nvmlDevice_t, currentMode: *mut c_uint, pendingMode: *mut c_uint);
    fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: *mut c_uint);
    fn nvmlDeviceGetSerial(device: nvmlDevice_t, serial: *mut c_char, length: c_uint);
    fn nvmlDeviceGetBrand(device: nvmlDevice_t, brandType: *mut c_uint);
    fn nvmlDeviceGetTotalEnergyConsumption(device: nvmlDevice_t, energy: *mut c_ulonglong);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_needs_initialisation() {
        let mut count = 7;
        // SAFETY: the pointer is to a number that lives.
        assert_eq!(unsafe { nvmlDeviceGetCount_v2(&raw mut count) }, 1);
        assert_eq!(count, 7);
        // SAFETY: no pointers.
        assert_eq!(unsafe { nvmlShutdown() }, 1);
    }

    #[test]
    fn texts_need_room_for_their_end() {
        let mut buffer: [c_char; 7] = [1; 7];
        assert_eq!(
            write_text(buffer.as_mut_ptr(), 6, DRIVER_BRANCH),
            Err(NvmlError::INSUFFICIENT_SIZE)
        );
        assert_eq!(write_text(buffer.as_mut_ptr(), 7, DRIVER_BRANCH), Ok(()));
        assert_eq!(buffer, field(DRIVER_BRANCH));
        assert_eq!(
            write_text(core::ptr::null_mut(), 7, DRIVER_BRANCH),
            Err(NvmlError::INVALID_ARGUMENT)
        );
    }
}
