//! Answers to the ioctls of `/dev/kfd`.

use std::os::fd::IntoRawFd as _;

use crate::{
    abi::{self, Request, kfd, mem},
    apertures,
    bo::{Backing, Buffer, Buffers, heap_of},
    dmabuf, os,
    process::{Device, Gpu, Process, device_of},
    protection,
};

type Errno = i32;
type Answer = Result<(), Errno>;

/// 1.16: enough for everything that ROCr 6.x asks by version (1.9 available memory, 1.12 dma-buf export, 1.14 event
/// age, 1.15 virtual memory management).
const VERSION: (u32, u32) = (1, 16);

/// Looks at an argument as the struct it must be.
///
/// # Safety
/// `argument` is what user space passed for a request of this number, readable and writable for the request's size.
unsafe fn view<'a, T>(request: Request, argument: *mut u8) -> Result<&'a mut T, Errno> {
    if argument.is_null() {
        return Err(libc::EFAULT);
    }
    // The kernel copies as much as the number says and zero-fills the rest; the structs that ROCr passes are whole.
    if request.size < size_of::<T>() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller vouches for the memory; ROCr's argument structs are aligned, being C structs.
    Ok(unsafe { &mut *argument.cast::<T>() })
}

/// Answers a request.
///
/// # Safety
/// `argument` must be valid for the request, as for the kernel.
pub unsafe fn ioctl(process: &'static Process, request: Request, argument: *mut u8) -> Answer {
    // SAFETY: in all of them, this function's own contract.
    unsafe {
        match request.nr {
            kfd::GET_VERSION => {
                let args: &mut abi::GetVersion = view(request, argument)?;
                (args.major_version, args.minor_version) = VERSION;
                Ok(())
            }
            kfd::CREATE_QUEUE => process.queues.create(process, view(request, argument)?),
            kfd::DESTROY_QUEUE => process
                .queues
                .destroy(process, view::<abi::DestroyQueue>(request, argument)?.queue_id),
            kfd::UPDATE_QUEUE => process.queues.update(process, view(request, argument)?),
            kfd::SET_MEMORY_POLICY => {
                let args: &mut abi::SetMemoryPolicy = view(request, argument)?;
                gpu(process, args.gpu_id).map(drop)
            }
            kfd::GET_CLOCK_COUNTERS => get_clock_counters(process, view(request, argument)?),
            kfd::CREATE_EVENT => create_event(process, view(request, argument)?),
            kfd::DESTROY_EVENT => process
                .events
                .destroy(view::<abi::EventId>(request, argument)?.event_id),
            kfd::SET_EVENT => process.events.set(view::<abi::EventId>(request, argument)?.event_id),
            kfd::RESET_EVENT => process.events.reset(view::<abi::EventId>(request, argument)?.event_id),
            kfd::WAIT_EVENTS => wait_events(process, view(request, argument)?),
            // Scratch and trap handlers are the interpreter's own business: the addresses are accepted and unused.
            kfd::SET_SCRATCH_BACKING_VA => {
                gpu(process, view::<abi::SetScratchBackingVa>(request, argument)?.gpu_id).map(drop)
            }
            kfd::SET_TRAP_HANDLER => gpu(process, view::<abi::SetTrapHandler>(request, argument)?.gpu_id).map(drop),
            kfd::GET_TILE_CONFIG => {
                let args: &mut abi::GetTileConfig = view(request, argument)?;
                gpu(process, args.gpu_id)?;
                (args.num_tile_configs, args.num_macro_tile_configs) = (0, 0);
                (args.gb_addr_config, args.num_banks, args.num_ranks) = (0x1000_0444, 4, 1);
                Ok(())
            }
            kfd::GET_PROCESS_APERTURES_NEW => get_process_apertures(process, view(request, argument)?),
            kfd::ACQUIRE_VM => {
                let args: &mut abi::AcquireVm = view(request, argument)?;
                let wanted = gpu(process, args.gpu_id)?;
                match device_of(args.drm_fd as i32) {
                    Device::Render(index) if index == wanted.index as usize => Ok(()),
                    _ => Err(libc::EINVAL),
                }
            }
            kfd::ALLOC_MEMORY_OF_GPU => alloc_memory(process, view(request, argument)?),
            kfd::FREE_MEMORY_OF_GPU => {
                let handle = view::<abi::FreeMemory>(request, argument)?.handle;
                process.buffers().free(process, handle)
            }
            kfd::MAP_MEMORY_TO_GPU => {
                let args: &mut abi::MapMemory = view(request, argument)?;
                for_each_gpu(process, args, |gpu, handle| process.buffers().map(process, handle, gpu))
            }
            kfd::UNMAP_MEMORY_FROM_GPU => {
                let args: &mut abi::MapMemory = view(request, argument)?;
                for_each_gpu(process, args, |gpu, handle| process.buffers().unmap(handle, gpu))
            }
            // Waves run on whatever processor the host has: a mask that names compute units changes nothing.
            kfd::SET_CU_MASK => {
                let args: &mut abi::SetCuMask = view(request, argument)?;
                if args.num_cu_mask == 0
                    || !args.num_cu_mask.is_multiple_of(32)
                    || !process.queues.exists(args.queue_id)
                {
                    return Err(libc::EINVAL);
                }
                Ok(())
            }
            kfd::ALLOC_QUEUE_GWS => {
                let args: &mut abi::AllocQueueGws = view(request, argument)?;
                args.first_gws = 0;
                process.queues.alloc_gws(args.queue_id, args.num_gws)
            }
            kfd::SET_XNACK_MODE => {
                let args: &mut abi::SetXnackMode = view(request, argument)?;
                match args.xnack_enabled {
                    // A question: no retry of faults on this machine.
                    ..0 => {
                        args.xnack_enabled = 0;
                        Ok(())
                    }
                    0 => Ok(()),
                    _ => Err(libc::EPERM),
                }
            }
            kfd::SVM if process.config.machine.svm => {
                let args: &mut abi::SvmArgs = view(request, argument)?;
                let room = (request.size - size_of::<abi::SvmArgs>()) / size_of::<abi::SvmAttribute>();
                if args.nattr as usize > room {
                    return Err(libc::EINVAL);
                }
                let attributes = std::ptr::from_mut(args).add(1).cast();
                process.svm.ioctl(process, args, attributes)
            }
            kfd::AVAILABLE_MEMORY => {
                let args: &mut abi::AvailableMemory = view(request, argument)?;
                args.available = process.shared.available(gpu(process, args.gpu_id)?.index as usize);
                Ok(())
            }
            kfd::RUNTIME_ENABLE => {
                view::<abi::RuntimeEnable>(request, argument)?.capabilities_mask = 0;
                Ok(())
            }
            kfd::EXPORT_DMABUF => export_dmabuf(process, view(request, argument)?),
            kfd::GET_DMABUF_INFO => get_dmabuf_info(process, view(request, argument)?),
            kfd::IMPORT_DMABUF => import_dmabuf(process, view(request, argument)?),
            kfd::IPC_EXPORT_HANDLE => ipc_export(process, view(request, argument)?),
            kfd::IPC_IMPORT_HANDLE => ipc_import(process, view(request, argument)?),
            other => {
                log::debug!("kfd ioctl {other:#x} ({} bytes) is not there", request.size);
                Err(libc::ENOTTY)
            }
        }
    }
}

fn gpu(process: &Process, id: u32) -> Result<&Gpu, Errno> {
    process.gpu_by_id(id).ok_or(libc::EINVAL)
}

fn get_clock_counters(process: &Process, args: &mut abi::GetClockCounters) -> Answer {
    // A GPU id of 0 asks for the host's clocks alone.
    if args.gpu_id != 0 {
        gpu(process, args.gpu_id)?;
    }
    args.gpu_clock_counter = os::gpu_clock();
    args.cpu_clock_counter = os::clock_ns(libc::CLOCK_MONOTONIC_RAW);
    args.system_clock_counter = os::clock_ns(libc::CLOCK_BOOTTIME);
    args.system_clock_freq = 1_000_000_000;
    Ok(())
}

/// # Safety
/// The pointer in `args` must be valid for `num_of_nodes` entries.
unsafe fn get_process_apertures(process: &Process, args: &mut abi::GetProcessAperturesNew) -> Answer {
    let gpus = process.gpus.len() as u32;
    if args.num_of_nodes == 0 {
        args.num_of_nodes = gpus;
        return Ok(());
    }
    if args.kfd_process_device_apertures_ptr == 0 {
        return Err(libc::EFAULT);
    }
    let count = gpus.min(args.num_of_nodes);
    for gpu in &process.gpus[..count as usize] {
        let entry = abi::DeviceApertures {
            lds_base: apertures::LDS_BASE,
            lds_limit: apertures::LDS_LIMIT,
            scratch_base: apertures::SCRATCH_BASE,
            scratch_limit: apertures::SCRATCH_LIMIT,
            gpuvm_base: apertures::GPUVM_BASE,
            gpuvm_limit: apertures::GPUVM_LIMIT,
            gpu_id: gpu.id,
            pad: 0,
        };
        // SAFETY: index below num_of_nodes, for which the caller vouches.
        unsafe {
            let table = args.kfd_process_device_apertures_ptr as *mut abi::DeviceApertures;
            table.add(gpu.index as usize).write_unaligned(entry);
        }
    }
    args.num_of_nodes = count;
    Ok(())
}

fn create_event(process: &Process, args: &mut abi::CreateEvent) -> Answer {
    // The first call hands over the buffer of the events page. Nothing here needs it: mailboxes in it are written
    // through the addresses that signals carry.
    if args.event_page_offset != 0 && process.buffers().get(args.event_page_offset).is_none() {
        return Err(libc::EINVAL);
    }
    let id = process.events.create(args.event_type, args.auto_reset != 0)?;
    (args.event_id, args.event_trigger_data, args.event_slot_index) = (id, id, id);
    if args.event_page_offset == 0 {
        // libhsakmt asks for a nonzero offset before it computes the address of the event's slot.
        args.event_page_offset = process.mmio_offset();
    }
    Ok(())
}

/// # Safety
/// The pointer in `args` must be valid for `num_events` entries.
unsafe fn wait_events(process: &Process, args: &mut abi::WaitEvents) -> Answer {
    if args.num_events > 0 && args.events_ptr == 0 {
        return Err(libc::EFAULT);
    }
    // SAFETY: the caller vouches; the array is the calling thread's own until the ioctl returns.
    let data = unsafe {
        match args.num_events {
            0 => &mut [][..],
            n => std::slice::from_raw_parts_mut(args.events_ptr as *mut abi::EventData, n as usize),
        }
    };
    args.wait_result = abi::wait_result::FAIL;
    args.wait_result =
        // Whoever waits has probably rung a doorbell just before: the queue threads look at once.
        process.events.wait(data, args.wait_for_all != 0, args.timeout, || process.bell.ring())?;
    Ok(())
}

fn alloc_memory(process: &Process, args: &mut abi::AllocMemory) -> Answer {
    let gpu = gpu(process, args.gpu_id)?;
    if args.size == 0 || args.va_addr.checked_add(args.size).is_none() {
        return Err(libc::EINVAL);
    }
    let index = gpu.index as usize;
    let (backing, mmap_offset) = if let Some(kind) = heap_of(args.flags) {
        let allocated = process.shared.allocate(index, kind, args.size, args.flags);
        let (extent, offset) = allocated.ok_or(libc::ENOMEM)?;
        (
            Backing::Extent {
                extent,
                gpu: index,
                offset,
            },
            offset,
        )
    } else if args.flags & mem::USERPTR != 0 {
        if args.mmap_offset == 0 {
            return Err(libc::EINVAL);
        }
        check_pinnable(args.mmap_offset, args.size)?;
        // The driver may need the CPU address again; it leaves the field as it is.
        (Backing::User(args.mmap_offset), args.mmap_offset)
    } else if args.flags & mem::DOORBELL != 0 {
        (Backing::Doorbells, gpu.doorbell_offset())
    } else if args.flags & mem::MMIO_REMAP != 0 {
        (Backing::Mmio, process.mmio_offset())
    } else {
        return Err(libc::EINVAL);
    };
    args.mmap_offset = mmap_offset;
    process.shared.own_slot().note_mapping();
    let mut buffers = process.buffers();
    if let Backing::Extent { extent, .. } = backing {
        buffers.hold(extent);
    }
    args.handle = buffers.insert(
        gpu,
        Buffer {
            va: args.va_addr,
            size: args.size,
            flags: args.flags,
            gpu: index,
            backing,
            mapped: 0,
            imported: false,
            foreign: false,
        },
    );
    log::trace!(
        "alloc {:#x}+{:#x} flags {:#x} on GPU {index}: {backing:?}",
        args.va_addr,
        args.size,
        args.flags
    );
    Ok(())
}

/// Whether the program's own memory can be pinned: for writing, whatever GPUs are to do with it (`init_user_pages` asks for no read-only
/// pages, and `hmm_range_fault` gives none that the program may not write).
///
/// # Errors
/// `EFAULT` where there is no memory, `EPERM` where it may only be read.
fn check_pinnable(address: u64, size: u64) -> Answer {
    let start = address / 4096 * 4096;
    let end = (address + size).checked_next_multiple_of(4096).ok_or(libc::EFAULT)?;
    let runs = protection::runs(start, end)?;
    if runs.iter().all(|run| run.writable) {
        Ok(())
    } else {
        Err(libc::EPERM)
    }
}

/// Goes through the GPUs that the arguments name, from where an earlier call stopped.
///
/// # Safety
/// The pointer in `args` must be valid for `n_devices` ids.
unsafe fn for_each_gpu(
    process: &Process,
    args: &mut abi::MapMemory,
    mut each: impl FnMut(&Gpu, u64) -> Answer,
) -> Answer {
    if args.n_devices == 0 || args.n_success > args.n_devices || args.device_ids_array_ptr == 0 {
        return Err(libc::EINVAL);
    }
    while args.n_success < args.n_devices {
        // SAFETY: index below n_devices, for which the caller vouches.
        let id = unsafe {
            (args.device_ids_array_ptr as *const u32)
                .add(args.n_success as usize)
                .read_unaligned()
        };
        each(gpu(process, id)?, args.handle)?;
        args.n_success += 1;
    }
    Ok(())
}

fn export_dmabuf(process: &Process, args: &mut abi::ExportDmabuf) -> Answer {
    let buffer = *process.buffers().get(args.handle).ok_or(libc::EINVAL)?;
    let Backing::Extent { extent, .. } = buffer.backing else {
        return Err(libc::EINVAL);
    };
    args.dmabuf_fd = dmabuf::export(process, extent, buffer.size)?.into_raw_fd() as u32;
    Ok(())
}

fn get_dmabuf_info(process: &Process, args: &mut abi::GetDmabufInfo) -> Answer {
    let extent = dmabuf::identify(process, args.dmabuf_fd as i32).ok_or(libc::EINVAL)?;
    let guard = process.shared.lock();
    let entry = guard.extent(extent.index, extent.id).ok_or(libc::EINVAL)?;
    args.size = entry.size;
    args.metadata_size = 0;
    args.gpu_id = process.gpus[entry.gpu()].id;
    args.flags = entry.flags;
    Ok(())
}

fn import_dmabuf(process: &Process, args: &mut abi::ImportDmabuf) -> Answer {
    let gpu = gpu(process, args.gpu_id)?;
    let mut buffers = process.buffers();
    let imported = dmabuf::open(process, &mut buffers, args.dmabuf_fd as i32)?;
    args.handle = import(&mut buffers, gpu, args.va_addr, &imported);
    process.counters.add(&process.counters.dmabuf_imports, 1);
    Ok(())
}

/// Makes a buffer object of something that came from elsewhere and is held by this process already.
fn import(buffers: &mut Buffers, gpu: &Gpu, va: u64, imported: &dmabuf::Imported) -> u64 {
    let entry = &imported.entry;
    buffers.insert(
        gpu,
        Buffer {
            va,
            size: entry.size,
            flags: entry.flags,
            gpu: entry.gpu(),
            backing: Backing::Extent {
                extent: imported.extent,
                gpu: entry.gpu(),
                offset: entry.offset,
            },
            mapped: 0,
            imported: true,
            foreign: imported.foreign,
        },
    )
}

fn ipc_export(process: &Process, args: &mut abi::IpcExport) -> Answer {
    let buffer = *process.buffers().get(args.handle).ok_or(libc::EINVAL)?;
    let Backing::Extent { extent, .. } = buffer.backing else {
        return Err(libc::EINVAL);
    };
    args.share_handle = process.shared.ipc_export(extent, args.flags).ok_or(libc::EINVAL)?;
    process.counters.add(&process.counters.ipc_exports, 1);
    Ok(())
}

fn ipc_import(process: &Process, args: &mut abi::IpcImport) -> Answer {
    let gpu = gpu(process, args.gpu_id)?;
    let mut buffers = process.buffers();
    let mut guard = process.shared.lock();
    let extent = guard
        .find_ipc(args.share_handle)
        .and_then(|index| guard.reference(index))
        .ok_or(libc::EINVAL)?;
    let imported = dmabuf::hold(process, &mut buffers, &mut guard, extent)?;
    drop(guard);
    args.handle = import(&mut buffers, gpu, args.va_addr, &imported);
    // libhsakmt maps imports for reading and writing whatever the heap. With a small BAR there is nothing to map: past the
    // end of the file the host finds no memory either (SIGBUS, as from the driver), and 0 would mean "not mappable".
    let hidden = !process.large_bar() && imported.entry.flags & mem::VRAM != 0;
    args.mmap_offset = if hidden {
        process.shared.layout().file_len()
    } else {
        imported.entry.offset
    };
    process.shared.own_slot().note_mapping();
    args.flags = imported.entry.ipc_flags;
    process.counters.add(&process.counters.ipc_imports, 1);
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::config::{Bar, Config, MachineConfig};
    use cdna::{Target, memory::GpuMemory as _};

    const MACHINE: MachineConfig = MachineConfig {
        gpus: 2,
        target: Target::Gfx90a,
        memory: 64 << 20,
        bar: Bar::Large,
        link: crate::config::Link::Xgmi,
        svm: true,
    };

    /// A machine of its own with two GPUs.
    pub fn machine(name: &str) -> &'static Process {
        let root = std::env::temp_dir().join(format!("vgpu-kfd-{}-{name}", os::pid()));
        Box::leak(Box::new(
            Process::new(
                Config {
                    machine: MACHINE,
                    root,
                    counters: None,
                    trace: crate::trace::Wanted::default(),
                    hostile_ulp: false,
                    hostile_coherence: false,
                    seed: None,
                },
                None,
            )
            .unwrap(),
        ))
    }

    pub fn done(process: &Process) {
        std::fs::remove_dir_all(process.shared.root()).unwrap();
    }

    fn call<T>(process: &'static Process, nr: u8, args: &mut T) -> Answer {
        let request = Request {
            type_: abi::KFD_TYPE,
            nr,
            size: size_of::<T>(),
        };
        // SAFETY: the struct that belongs to the number, with valid pointers inside.
        unsafe { ioctl(process, request, std::ptr::from_mut(args).cast()) }
    }

    fn alloc(process: &'static Process, gpu: usize, va: u64, size: u64, flags: u32) -> Result<abi::AllocMemory, Errno> {
        let gpu_id = process.gpus[gpu].id;
        let mut args = abi::AllocMemory {
            va_addr: va,
            size,
            handle: 0,
            mmap_offset: 0,
            gpu_id,
            flags,
        };
        call(process, kfd::ALLOC_MEMORY_OF_GPU, &mut args).map(|()| args)
    }

    fn map(process: &'static Process, nr: u8, handle: u64, ids: &[u32]) -> (Answer, u32) {
        let pointer = ids.as_ptr() as u64;
        let mut args = abi::MapMemory {
            handle,
            device_ids_array_ptr: pointer,
            n_devices: ids.len() as u32,
            n_success: 0,
        };
        (call(process, nr, &mut args), args.n_success)
    }

    #[test]
    fn a_buffer_is_reachable_from_the_gpus_that_it_is_mapped_on() {
        let process = machine("map");
        let ids: Vec<u32> = process.gpus.iter().map(|gpu| gpu.id).collect();
        let buffer = alloc(process, 0, 0x7f00_0000_0000, 8192, mem::VRAM | mem::WRITABLE).unwrap();
        assert_ne!(buffer.mmap_offset, 0);
        assert!(
            process.gpus[0].vm.region(0x7f00_0000_0000).is_none(),
            "not before it is mapped"
        );

        assert_eq!(
            map(process, kfd::MAP_MEMORY_TO_GPU, buffer.handle, &[ids[0], 99]),
            (Err(libc::EINVAL), 1)
        );
        assert!(process.gpus[0].vm.region(0x7f00_0000_1fff).is_some());
        assert!(process.gpus[1].vm.region(0x7f00_0000_0000).is_none());
        assert_eq!(map(process, kfd::MAP_MEMORY_TO_GPU, buffer.handle, &ids), (Ok(()), 2));
        let (a, b) = (
            process.gpus[0].vm.region(buffer.va_addr),
            process.gpus[1].vm.region(buffer.va_addr),
        );
        assert_eq!(a.unwrap().host, b.unwrap().host, "the same bytes");

        let mut free = abi::FreeMemory { handle: buffer.handle };
        assert_eq!(call(process, kfd::FREE_MEMORY_OF_GPU, &mut free), Err(libc::EBUSY));
        assert_eq!(
            map(process, kfd::UNMAP_MEMORY_FROM_GPU, buffer.handle, &ids),
            (Ok(()), 2)
        );
        assert_eq!(call(process, kfd::FREE_MEMORY_OF_GPU, &mut free), Ok(()));
        assert_eq!(call(process, kfd::FREE_MEMORY_OF_GPU, &mut free), Err(libc::EINVAL));
        done(process);
    }

    #[test]
    fn memory_is_wiped_before_it_is_given_out_again() {
        let process = machine("wipe");
        for _ in 0..2 {
            let buffer = alloc(process, 1, 0x7f00_0000_0000, MACHINE.allocatable(), mem::VRAM).unwrap();
            let bytes = process.gpus[1].at(buffer.mmap_offset) as *mut u64;
            // SAFETY: inside the buffer.
            unsafe {
                assert_eq!(bytes.read_volatile(), 0);
                bytes.write_volatile(1);
            }
            assert_eq!(
                alloc(process, 1, 0x7f10_0000_0000, 1, mem::VRAM).err(),
                Some(libc::ENOMEM)
            );
            call(
                process,
                kfd::FREE_MEMORY_OF_GPU,
                &mut abi::FreeMemory { handle: buffer.handle },
            )
            .unwrap();
        }
        done(process);
    }

    #[test]
    fn a_dma_buf_keeps_its_memory_alive() {
        let process = machine("dmabuf");
        let available = || process.shared.available(0);
        let buffer = alloc(process, 0, 0x7f00_0000_0000, 1 << 20, mem::VRAM).unwrap();
        let mut export = abi::ExportDmabuf {
            handle: buffer.handle,
            flags: 0,
            dmabuf_fd: 0,
        };
        call(process, kfd::EXPORT_DMABUF, &mut export).unwrap();
        call(
            process,
            kfd::FREE_MEMORY_OF_GPU,
            &mut abi::FreeMemory { handle: buffer.handle },
        )
        .unwrap();
        assert_eq!(
            available(),
            MACHINE.allocatable() - (1 << 20),
            "the descriptor holds it"
        );

        let stranger = std::fs::read(
            process
                .shared
                .dmabuf_path(process.shared.lock().reference(32).unwrap().id),
        )
        .unwrap();
        let copy = process.shared.root().join("copy");
        std::fs::write(&copy, stranger).unwrap();
        let copy = std::fs::File::open(copy).unwrap();
        let mut foreign = abi::GetDmabufInfo {
            size: 0,
            metadata_ptr: 0,
            metadata_size: 0,
            gpu_id: 0,
            flags: 0,
            dmabuf_fd: std::os::fd::AsRawFd::as_raw_fd(&copy) as u32,
        };
        assert_eq!(
            call(process, kfd::GET_DMABUF_INFO, &mut foreign),
            Err(libc::EINVAL),
            "the same bytes elsewhere"
        );

        let (gpu_id, dmabuf_fd) = (process.gpus[0].id, export.dmabuf_fd);
        let mut import = abi::ImportDmabuf {
            va_addr: 0x7f20_0000_0000,
            handle: 0,
            gpu_id,
            dmabuf_fd,
        };
        call(process, kfd::IMPORT_DMABUF, &mut import).unwrap();
        // SAFETY: a descriptor that is nobody else's.
        unsafe { libc::close(dmabuf_fd as i32) };
        assert_eq!(available(), MACHINE.allocatable() - (1 << 20), "the import holds it");
        call(
            process,
            kfd::FREE_MEMORY_OF_GPU,
            &mut abi::FreeMemory { handle: import.handle },
        )
        .unwrap();
        assert_eq!(available(), MACHINE.allocatable());
        assert_eq!(
            call(process, kfd::IMPORT_DMABUF, &mut import),
            Err(libc::EINVAL),
            "closed"
        );
        done(process);
    }

    #[test]
    fn an_ipc_import_echoes_the_exporters_flags() {
        let process = machine("ipc");
        let gpu_id = process.gpus[1].id;
        let buffer = alloc(process, 1, 0x7f00_0000_0000, 4096, mem::VRAM).unwrap();
        let mut export = abi::IpcExport {
            handle: buffer.handle,
            share_handle: [0; 4],
            gpu_id,
            flags: 0x1234,
        };
        call(process, kfd::IPC_EXPORT_HANDLE, &mut export).unwrap();
        let share_handle = export.share_handle;
        let mut import = abi::IpcImport {
            handle: 0,
            va_addr: 0x7f20_0000_0000,
            mmap_offset: 0,
            share_handle,
            gpu_id,
            flags: 0,
        };
        call(process, kfd::IPC_IMPORT_HANDLE, &mut import).unwrap();
        assert_eq!((import.flags, import.mmap_offset), (0x1234, buffer.mmap_offset));
        call(
            process,
            kfd::FREE_MEMORY_OF_GPU,
            &mut abi::FreeMemory { handle: buffer.handle },
        )
        .unwrap();
        let mut late = import;
        assert_eq!(
            call(process, kfd::IPC_IMPORT_HANDLE, &mut late),
            Err(libc::EINVAL),
            "the exporter has freed it"
        );
        assert_eq!(
            process.shared.available(1),
            MACHINE.allocatable() - 4096,
            "the first import keeps the memory"
        );
        done(process);
    }

    fn queue(process: &'static Process, gpu: usize, queue_type: u32) -> Result<u32, Errno> {
        let mut args: abi::CreateQueue =
            // SAFETY: numbers only.
            unsafe { std::mem::zeroed() };
        (args.ring_base_address, args.ring_size) = (0x7f00_0000_0000, 4096);
        (args.gpu_id, args.queue_type, args.queue_percentage) = (process.gpus[gpu].id, queue_type, 100);
        call(process, kfd::CREATE_QUEUE, &mut args).map(|()| args.queue_id)
    }

    #[test]
    fn copy_engines_have_as_many_queues_as_slots() {
        let process = machine("limits");
        let made: Vec<u32> = std::iter::from_fn(|| queue(process, 0, abi::queue_type::SDMA).ok()).collect();
        assert_eq!(made.len(), 16, "two engines of eight");
        assert_eq!(queue(process, 0, abi::queue_type::SDMA), Err(libc::ENOMEM));
        assert!(
            queue(process, 1, abi::queue_type::SDMA).is_ok(),
            "the other GPU has its own"
        );
        assert!(queue(process, 0, abi::queue_type::SDMA_XGMI).is_ok());
        let mut args = abi::DestroyQueue {
            queue_id: made[3],
            pad: 0,
        };
        call(process, kfd::DESTROY_QUEUE, &mut args).unwrap();
        assert_eq!(queue(process, 0, abi::queue_type::SDMA), Ok(made[3]));
        done(process);
    }

    #[test]
    fn one_queue_of_a_process_has_the_wave_sync() {
        let process = machine("gws");
        let (a, b) = (queue(process, 0, 1).unwrap(), queue(process, 0, 1).unwrap());
        let gws = |queue_id, num_gws| {
            let mut args = abi::AllocQueueGws {
                queue_id,
                num_gws,
                first_gws: 9,
                pad: 0,
            };
            call(process, kfd::ALLOC_QUEUE_GWS, &mut args)
        };
        assert_eq!(gws(a, 0), Err(libc::EINVAL));
        assert_eq!(gws(a, 64), Ok(()));
        assert_eq!(gws(b, 64), Err(libc::EBUSY));
        assert_eq!(gws(99, 64), Err(libc::EINVAL));
        call(
            process,
            kfd::DESTROY_QUEUE,
            &mut abi::DestroyQueue { queue_id: a, pad: 0 },
        )
        .unwrap();
        assert_eq!(gws(b, 64), Ok(()), "it went with its queue");
        done(process);
    }

    #[test]
    fn what_is_not_there_says_so() {
        let process = machine("refusals");
        assert_eq!(call(process, 0x7f, &mut [0u8; 64]), Err(libc::ENOTTY));
        assert_eq!(
            call(process, kfd::GET_VERSION, &mut 0u32),
            Err(libc::EINVAL),
            "too short"
        );
        assert_eq!(
            alloc(process, 0, 0, 4096, 0).err(),
            Some(libc::EINVAL),
            "no kind of memory"
        );
        assert_eq!(alloc(process, 0, u64::MAX, 4096, mem::VRAM).err(), Some(libc::EINVAL));
        assert_eq!(alloc(process, 0, 0, u64::MAX - 1, mem::VRAM).err(), Some(libc::ENOMEM));
        assert_eq!(
            map(process, kfd::MAP_MEMORY_TO_GPU, 77, &[process.gpus[0].id]).0,
            Err(libc::EINVAL)
        );
        done(process);
    }

    #[test]
    fn random_requests_never_panic() {
        let process = machine("random");
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let mut array = [0u64; 64];
        for _ in 0..20_000 {
            // Those that wait or start threads are left out; the rest gets random words, or pointers to some.
            let nr = (next() % 0x28) as u8;
            if matches!(
                nr,
                kfd::WAIT_EVENTS | kfd::CREATE_QUEUE | kfd::DESTROY_QUEUE | kfd::UPDATE_QUEUE
            ) {
                continue;
            }
            array.fill_with(&mut next);
            let pointer = array.as_mut_ptr() as u64;
            let mut args: [u64; 16] = std::array::from_fn(|_| match next() % 4 {
                0 => pointer,
                1 => next() % 8,
                2 => (u64::from(process.gpus[0].id) << 32) | (next() % 8),
                _ => next(),
            });
            if matches!(
                nr,
                kfd::MAP_MEMORY_TO_GPU | kfd::UNMAP_MEMORY_FROM_GPU | kfd::GET_PROCESS_APERTURES_NEW
            ) {
                // Arrays whose length user space vouches for.
                args[if nr == kfd::GET_PROCESS_APERTURES_NEW { 0 } else { 1 }] = pointer;
                args[if nr == kfd::GET_PROCESS_APERTURES_NEW { 1 } else { 2 }] = next() % 8;
            }
            if nr == kfd::ALLOC_MEMORY_OF_GPU {
                args[1] = next() % (1 << 20);
            }
            let _ = call(process, nr, &mut args);
        }
        done(process);
    }
}
