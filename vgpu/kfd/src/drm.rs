//! Answers to the ioctls of a render node, as libdrm and libdrm_amdgpu make them.

use std::os::fd::IntoRawFd as _;

use crate::{
    abi::{self, Request, drm, mem},
    dmabuf,
    process::Process,
    sysfs,
    vm::Mapping,
};

type Errno = i32;
type Answer = Result<(), Errno>;

/// amdgpu's own version; ROCr needs nothing above it.
const VERSION: (i32, i32) = (3, 49);

/// `AMDGPU_INFO` queries.
mod query {
    pub const ACCEL_WORKING: u32 = 0x00;
    pub const HW_IP_COUNT: u32 = 0x03;
    pub const READ_MMR_REG: u32 = 0x15;
    pub const DEV_INFO: u32 = 0x16;
    pub const MEMORY: u32 = 0x19;
}

/// `AMDGPU_VA_OP_*` and `AMDGPU_VM_PAGE_*`.
mod va {
    pub const MAP: u32 = 1;
    pub const UNMAP: u32 = 2;
    pub const CLEAR: u32 = 3;
    pub const REPLACE: u32 = 4;
    pub const DELAY_UPDATE: u32 = 1 << 0;
    pub const READABLE: u32 = 1 << 1;
    pub const WRITEABLE: u32 = 1 << 2;
    pub const EXECUTABLE: u32 = 1 << 3;
    pub const MTYPE_MASK: u32 = 0xf << 5;
    pub const NOALLOC: u32 = 1 << 9;
    /// Flags of a mapping of a buffer; the driver refuses others.
    pub const VALID: u32 = DELAY_UPDATE | READABLE | WRITEABLE | EXECUTABLE | MTYPE_MASK | NOALLOC;
}

/// Looks at an argument as the struct it must be.
///
/// # Safety
/// As for [`crate::kfd::ioctl`].
unsafe fn view<'a, T>(request: Request, argument: *mut u8) -> Result<&'a mut T, Errno> {
    if argument.is_null() {
        return Err(libc::EFAULT);
    }
    if request.size < size_of::<T>() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller vouches for the memory; libdrm's argument structs are aligned, being C structs.
    Ok(unsafe { &mut *argument.cast::<T>() })
}

/// Answers a request on the render node of GPU `node`.
///
/// # Safety
/// `argument` must be valid for the request, as for the kernel.
pub unsafe fn ioctl(process: &'static Process, node: usize, request: Request, argument: *mut u8) -> Answer {
    // SAFETY: in all of them, this function's own contract.
    unsafe {
        match request.nr {
            drm::VERSION => version(view(request, argument)?),
            drm::AMDGPU_INFO => info(process, node, view(request, argument)?),
            drm::PRIME_FD_TO_HANDLE => {
                let args: &mut abi::DrmPrime = view(request, argument)?;
                let mut buffers = process.buffers();
                let imported = dmabuf::open(process, &mut buffers, args.fd)?;
                args.handle = buffers.gem_import(process, node, imported.gem());
                Ok(())
            }
            drm::PRIME_HANDLE_TO_FD => {
                let args: &mut abi::DrmPrime = view(request, argument)?;
                let object = process.buffers().gem(node, args.handle).ok_or(libc::ENOENT)?.clone();
                args.fd = dmabuf::export(process, object.extent, object.size)?.into_raw_fd();
                Ok(())
            }
            drm::GEM_CLOSE => {
                let handle = view::<abi::DrmGemClose>(request, argument)?.handle;
                process.buffers().gem_close(process, node, handle)
            }
            drm::AMDGPU_GEM_MMAP => {
                let args: &mut abi::DrmGemMmap = view(request, argument)?;
                let mut buffers = process.buffers();
                let object = buffers.gem(node, args.handle_or_offset as u32).ok_or(libc::ENOENT)?;
                if object.gpu != node {
                    // The offset is one of another node's file.
                    return Err(libc::EINVAL);
                }
                args.handle_or_offset = object.offset;
                process.shared.own_slot().note_mapping();
                Ok(())
            }
            drm::AMDGPU_GEM_METADATA => Ok(()),
            drm::AMDGPU_GEM_VA => gem_va(process, node, view(request, argument)?),
            other => {
                log::debug!("drm ioctl {other:#x} ({} bytes) is not there", request.size);
                Err(libc::ENOTTY)
            }
        }
    }
}

/// # Safety
/// Pointers and lengths in `args` must describe writable memory.
unsafe fn version(args: &mut abi::DrmVersion) -> Answer {
    (args.major, args.minor, args.patch) = (VERSION.0, VERSION.1, 0);
    let put = |text: &str, to: u64, len: &mut u64| {
        let room = (*len as usize).min(text.len());
        if to != 0 {
            // SAFETY: the caller vouches for `len` bytes.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), to as *mut u8, room) };
        }
        *len = text.len() as u64;
    };
    put("amdgpu", args.name, &mut args.name_len);
    put("20150101", args.date, &mut args.date_len);
    put("AMD GPU", args.desc, &mut args.desc_len);
    Ok(())
}

/// # Safety
/// The return pointer in `args` must describe writable memory.
unsafe fn info(process: &Process, node: usize, args: &mut abi::DrmInfo) -> Answer {
    let product = sysfs::product(process.config.machine.target);
    let mut reply = [0u8; 512];
    let mut put = |at: usize, value: u64, len: usize| reply[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
    match args.query {
        query::ACCEL_WORKING => put(0, 1, 4),
        // No rings for command submission: compute goes through the KFD. Registers read as zero.
        query::HW_IP_COUNT | query::READ_MMR_REG => {}
        query::DEV_INFO => {
            for (offset, value) in [
                (0, product.device_id),      // device_id
                (4, 1),                      // chip_rev
                (8, 1),                      // external_rev
                (12, 0),                     // pci_rev
                (16, 0x8d),                  // family: AI
                (20, product.arrays),        // num_shader_engines
                (24, 1),                     // num_shader_arrays_per_engine
                (28, 100_000),               // gpu_counter_freq in kHz
                (48, product.compute_units), // cu_active_number
                (160, 4096),                 // virtual_address_alignment
                (164, 2 << 20),              // pte_fragment_size
                (168, 4096),                 // gart_page_size
                (176, 6),                    // vram_type: HBM
                (180, product.memory_width), // vram_bit_width
            ] {
                put(offset, value.into(), 4);
            }
            put(32, u64::from(product.engine_clock) * 1000, 8); // max_engine_clock
            put(40, u64::from(product.memory_clock) * 1000, 8); // max_memory_clock
            put(144, 0x20_0000, 8); // virtual_address_offset
            put(152, 0x7fff_fffe_0000, 8); // virtual_address_max
        }
        query::MEMORY => {
            // drm_amdgpu_memory_info: vram, cpu-accessible vram, gtt; each total, usable, used, max allocation.
            let total = process.config.machine.memory;
            let used = total - process.shared.available(node);
            let visible = if process.large_bar() { total } else { 0 };
            for (base, total) in [(0, total), (32, visible)] {
                put(base, total, 8);
                put(base + 8, total, 8);
                put(base + 16, used.min(total), 8);
                put(base + 24, total / 4 * 3, 8);
            }
        }
        other => {
            log::debug!("AMDGPU_INFO query {other:#x} is not there");
            return Err(libc::EINVAL);
        }
    }
    if args.return_pointer == 0 {
        return Err(libc::EFAULT);
    }
    let len = (args.return_size as usize).min(reply.len());
    // SAFETY: the caller vouches for `return_size` bytes.
    unsafe { std::ptr::copy_nonoverlapping(reply.as_ptr(), args.return_pointer as *mut u8, len) };
    Ok(())
}

/// Maps and unmaps at any address.
///
/// The flags count as they are passed. libdrm's `amdgpu_bo_va_op`, through which ROCr maps (6.1.2 and 6.4.3), drops its own and asks
/// for all of them: so a GPU may store to what `hsa_amd_vmem_set_access` made read-only for it, here as on the card.
fn gem_va(process: &Process, node: usize, args: &abi::DrmGemVa) -> Answer {
    let vm = &process.gpus[node].vm;
    if args.flags & !va::VALID != 0 {
        return Err(libc::EINVAL);
    }
    if args.map_size == 0 || !(args.va_address | args.offset_in_bo | args.map_size).is_multiple_of(4096) {
        return Err(libc::EINVAL);
    }
    let mut buffers = process.buffers();
    let place = (args.va_address, args.map_size);
    match args.operation {
        va::MAP | va::REPLACE => {
            let object = buffers.gem(node, args.handle).ok_or(libc::ENOENT)?;
            if object.flags & mem::VRAM != 0 && !process.reaches(&process.gpus[node], object.gpu) {
                return Err(libc::EINVAL);
            }
            if args
                .offset_in_bo
                .checked_add(args.map_size)
                .is_none_or(|end| end > object.size)
            {
                return Err(libc::EINVAL);
            }
            let mapping = Mapping {
                size: args.map_size,
                host: process.gpus[object.gpu].at(object.offset + args.offset_in_bo),
                writable: args.flags & va::WRITEABLE != 0,
                executable: args.flags & va::EXECUTABLE != 0,
                foreign: object.foreign,
                user: false,
                coarse: object.flags & (abi::mem::COHERENT | abi::mem::UNCACHED) == 0,
            };
            if args.operation == va::REPLACE {
                vm.clear(args.va_address, args.map_size);
            }
            process.svm.forget(process, args.va_address, args.map_size);
            if !vm.insert(args.va_address, mapping) {
                return Err(libc::EINVAL);
            }
            object.mappings.push(place);
            Ok(())
        }
        va::UNMAP => {
            let object = buffers.gem(node, args.handle).ok_or(libc::ENOENT)?;
            let known = object
                .mappings
                .iter()
                .position(|(va, _)| *va == args.va_address)
                .ok_or(libc::EINVAL)?;
            let (va, size) = object.mappings.swap_remove(known);
            vm.clear(va, size);
            Ok(())
        }
        va::CLEAR => {
            vm.clear(args.va_address, args.map_size);
            Ok(())
        }
        _ => Err(libc::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use cdna::memory::{Access, FaultReason, GpuMemory as _};

    use super::*;
    use crate::{
        kfd::tests::{done, machine},
        tables::HeapKind,
    };

    const SIZE: u64 = 2 << 20;

    #[test]
    fn a_mapping_may_do_what_its_flags_say() {
        let process = machine("drm-flags");
        let (extent, offset) = process.shared.allocate(0, HeapKind::Vram, SIZE, mem::VRAM).unwrap();
        let handle = {
            let mut buffers = process.buffers();
            buffers.hold(extent);
            let object = crate::bo::GemObject::new(extent, 0, offset, SIZE, mem::VRAM, false);
            buffers.gem_import(process, 0, object)
        };
        let vm = &process.gpus[0].vm;
        let map = |operation, va, flags| {
            let args = abi::DrmGemVa {
                handle,
                pad: 0,
                operation,
                flags,
                va_address: va,
                offset_in_bo: 0,
                map_size: SIZE,
            };
            gem_va(process, 0, &args)
        };
        let everything = va::READABLE | va::WRITEABLE | va::EXECUTABLE;
        map(va::MAP, SIZE, everything).unwrap();
        map(va::MAP, 2 * SIZE, va::READABLE).unwrap();
        assert!(vm.span(SIZE, 4, Access::Write).is_ok() && vm.span(SIZE, 4, Access::Execute).is_ok());
        assert!(vm.span(2 * SIZE, 4, Access::Read).is_ok());
        assert_eq!(
            vm.span(2 * SIZE, 4, Access::Write).unwrap_err().reason,
            FaultReason::ReadOnly
        );
        assert_eq!(
            vm.span(2 * SIZE, 4, Access::Execute).unwrap_err().reason,
            FaultReason::NoExecute
        );
        assert_eq!(
            map(va::MAP, 3 * SIZE, 1 << 20),
            Err(libc::EINVAL),
            "a flag that is none"
        );
        map(va::UNMAP, 2 * SIZE, everything).unwrap();
        assert!(vm.region(2 * SIZE).is_none());
        done(process);
    }
}
