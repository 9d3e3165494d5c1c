//! Memory without an address, of this process or imported.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::abi::{
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationProp_allocFlags, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, Error, Plain, Result,
};
use crate::device::Device;
use crate::hsa::vmem;
use crate::memory::pool;

/// Handles are numbers that no program takes for an address it owns; 0x54 marks memory.
pub(super) const TAG: u64 = 0x54 << 48;

/// What `cuMemCreate` was told, as far as it can be told different things.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    pub handle_types: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub flags: CUmemAllocationProp_allocFlags,
}

impl From<CUmemAllocationProp> for Properties {
    fn from(from: CUmemAllocationProp) -> Self {
        Self {
            handle_types: from.requestedHandleTypes,
            location: from.location,
            flags: from.allocFlags,
        }
    }
}

impl From<Properties> for CUmemAllocationProp {
    fn from(from: Properties) -> Self {
        Self {
            r#type: CUmemAllocationType::PINNED,
            requestedHandleTypes: from.handle_types,
            location: from.location,
            allocFlags: from.flags,
            ..Self::zeroed()
        }
    }
}

/// One memory of ROCr's. Dropping it gives it back.
pub(super) struct Allocation {
    memory: vmem::Memory,
    size: u64,
    /// Where it lies; of imported memory, the importer's.
    pub device: &'static Device,
    pub properties: Properties,
    /// How often a handle was given out and not released.
    pub handles: usize,
    /// How often it is mapped.
    pub mappings: usize,
    /// Of imported memory: the descriptor, which some releases of ROCr still need.
    _descriptor: Option<OwnedFd>,
}

impl Allocation {
    /// Makes `size` bytes on `device`.
    pub fn new(device: &'static Device, size: u64, properties: Properties) -> Result<Self> {
        if size > device.total_memory() {
            return Err(Error::MEMORY_ALLOCATION);
        }
        let memory = vmem::create(device.pool, size as usize).or_else(|_| {
            pool::trim_unused(device);
            vmem::create(device.pool, size as usize)
        });
        Ok(Self {
            memory: memory.map_err(|_| Error::MEMORY_ALLOCATION)?,
            size,
            device,
            properties,
            handles: 1,
            mappings: 0,
            _descriptor: None,
        })
    }

    /// Takes in the memory behind a descriptor.
    pub fn import(device: &'static Device, descriptor: OwnedFd) -> Result<Self> {
        // SAFETY: no memory is touched; a descriptor without a size fails.
        let size = unsafe { libc::lseek(descriptor.as_raw_fd(), 0, libc::SEEK_END) };
        let size = u64::try_from(size).map_err(|_| Error::UNKNOWN)?;
        if !super::is_granular(size) {
            return Err(Error::UNKNOWN);
        }
        let memory = vmem::import(&descriptor).map_err(|error| {
            log::info!("a descriptor cannot be imported: {error}");
            Error::UNKNOWN
        })?;
        let properties = Properties {
            handle_types: CUmemAllocationHandleType::NONE,
            location: CUmemLocation {
                r#type: CUmemLocationType::DEVICE,
                id: device.ordinal,
            },
            flags: CUmemAllocationProp_allocFlags::zeroed(),
        };
        Ok(Self {
            memory,
            size,
            device,
            properties,
            handles: 1,
            mappings: 0,
            _descriptor: Some(descriptor),
        })
    }

    /// ROCr's name for it.
    pub fn memory(&self) -> vmem::Memory {
        self.memory
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Neither a handle nor a mapping is left.
    pub fn is_unused(&self) -> bool {
        self.handles == 0 && self.mappings == 0
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Err(error) = vmem::release(self.memory) {
            log::warn!("{} bytes of mapped memory could not be given back: {error}", self.size);
        }
    }
}
