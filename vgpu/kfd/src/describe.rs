//! Ioctls in words, for the trace: the name, and every field that is not zero.

use std::fmt::Write as _;

use crate::abi::{self, DRM_TYPE, Request, drm, kfd};

/// A field's value in words.
pub trait Value {
    /// Appends ` name=value`, or nothing for zero.
    fn put(&self, name: &str, out: &mut String);
}

macro_rules! values {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn put(&self, name: &str, out: &mut String) {
                if *self > 9 {
                    let _ = write!(out, " {name}={self:#x}");
                } else if *self != 0 {
                    let _ = write!(out, " {name}={self}");
                }
            }
        }
    )*};
}
values!(u32 u64 i32);

impl<const N: usize> Value for [u32; N] {
    fn put(&self, name: &str, out: &mut String) {
        if self.iter().any(|word| *word != 0) {
            let _ = write!(out, " {name}={self:x?}");
        }
    }
}

/// A structure in words.
pub trait Describe {
    /// Appends its fields.
    fn describe(&self, out: &mut String);
}

/// Appends name and fields of a request.
///
/// # Safety
/// `argument` is NULL or readable for the request's size; pointers in it are what user space passed to the call.
pub unsafe fn ioctl(out: &mut String, request: Request, argument: *const u8) {
    macro_rules! table {
        ($($module:ident::$number:ident => $type:ident),* $(,)?) => {
            match (request.type_ == DRM_TYPE, request.nr) {
                $((drm, $module::$number) if drm == (stringify!($module) == "drm") => {
                    out.push_str(stringify!($number));
                    if !argument.is_null() && request.size >= size_of::<abi::$type>() {
                        // SAFETY: readable for the request's size, which is large enough.
                        unsafe { argument.cast::<abi::$type>().read_unaligned() }.describe(out);
                    }
                })*
                (_, other) => {
                    let _ = write!(out, "{other:#04x} ({} bytes)", request.size);
                }
            }
        };
    }
    table! {
        kfd::GET_VERSION => GetVersion,
        kfd::CREATE_QUEUE => CreateQueue,
        kfd::DESTROY_QUEUE => DestroyQueue,
        kfd::SET_MEMORY_POLICY => SetMemoryPolicy,
        kfd::GET_CLOCK_COUNTERS => GetClockCounters,
        kfd::UPDATE_QUEUE => UpdateQueue,
        kfd::CREATE_EVENT => CreateEvent,
        kfd::DESTROY_EVENT => EventId,
        kfd::SET_EVENT => EventId,
        kfd::RESET_EVENT => EventId,
        kfd::WAIT_EVENTS => WaitEvents,
        kfd::SET_SCRATCH_BACKING_VA => SetScratchBackingVa,
        kfd::GET_TILE_CONFIG => GetTileConfig,
        kfd::SET_TRAP_HANDLER => SetTrapHandler,
        kfd::GET_PROCESS_APERTURES_NEW => GetProcessAperturesNew,
        kfd::ACQUIRE_VM => AcquireVm,
        kfd::ALLOC_MEMORY_OF_GPU => AllocMemory,
        kfd::FREE_MEMORY_OF_GPU => FreeMemory,
        kfd::MAP_MEMORY_TO_GPU => MapMemory,
        kfd::UNMAP_MEMORY_FROM_GPU => MapMemory,
        kfd::SET_CU_MASK => SetCuMask,
        kfd::GET_DMABUF_INFO => GetDmabufInfo,
        kfd::IMPORT_DMABUF => ImportDmabuf,
        kfd::ALLOC_QUEUE_GWS => AllocQueueGws,
        kfd::SET_XNACK_MODE => SetXnackMode,
        kfd::SVM => SvmArgs,
        kfd::AVAILABLE_MEMORY => AvailableMemory,
        kfd::EXPORT_DMABUF => ExportDmabuf,
        kfd::RUNTIME_ENABLE => RuntimeEnable,
        kfd::IPC_IMPORT_HANDLE => IpcImport,
        kfd::IPC_EXPORT_HANDLE => IpcExport,
        drm::VERSION => DrmVersion,
        drm::GEM_CLOSE => DrmGemClose,
        drm::PRIME_HANDLE_TO_FD => DrmPrime,
        drm::PRIME_FD_TO_HANDLE => DrmPrime,
        drm::AMDGPU_GEM_MMAP => DrmGemMmap,
        drm::AMDGPU_INFO => DrmInfo,
        drm::AMDGPU_GEM_VA => DrmGemVa,
    }
    if request.type_ == DRM_TYPE || argument.is_null() {
        return;
    }
    // What the arrays say that some requests point to.
    const SHOWN: usize = 16;
    match request.nr {
        kfd::MAP_MEMORY_TO_GPU | kfd::UNMAP_MEMORY_FROM_GPU if request.size >= size_of::<abi::MapMemory>() => {
            // SAFETY: large enough; the array is valid for the count, as for the kernel.
            let ids = unsafe {
                let args = argument.cast::<abi::MapMemory>().read_unaligned();
                array::<u32>(args.device_ids_array_ptr, args.n_devices as usize, SHOWN)
            };
            let _ = write!(out, " devices={ids:x?}");
        }
        kfd::WAIT_EVENTS if request.size >= size_of::<abi::WaitEvents>() => {
            // SAFETY: as above.
            let events = unsafe {
                let args = argument.cast::<abi::WaitEvents>().read_unaligned();
                array::<abi::EventData>(args.events_ptr, args.num_events as usize, SHOWN)
            };
            let ids: Vec<u32> = events.iter().map(|event| event.event_id).collect();
            let _ = write!(out, " events={ids:?}");
        }
        kfd::SVM if request.size >= size_of::<abi::SvmArgs>() => {
            let room = (request.size - size_of::<abi::SvmArgs>()) / size_of::<abi::SvmAttribute>();
            // SAFETY: the attributes follow, within the request's size.
            let attributes = unsafe {
                let args = argument.cast::<abi::SvmArgs>();
                let count = room.min(args.read_unaligned().nattr as usize);
                array::<abi::SvmAttribute>(args.add(1) as u64, count, SHOWN)
            };
            for attribute in attributes {
                const NAMES: [&str; 8] = [
                    "preferred-loc",
                    "prefetch-loc",
                    "access",
                    "access-in-place",
                    "no-access",
                    "set-flags",
                    "clear-flags",
                    "granularity",
                ];
                let name = NAMES.get(attribute.kind as usize).unwrap_or(&"?");
                let _ = write!(out, " {name}:{:#x}", attribute.value);
            }
        }
        _ => {}
    }
}

/// Copies at most `most` entries of an array.
///
/// # Safety
/// `pointer` is 0 or valid for `count` entries.
unsafe fn array<T: Copy>(pointer: u64, count: usize, most: usize) -> Vec<T> {
    if pointer == 0 {
        return Vec::new();
    }
    (0..count.min(most))
        // SAFETY: below the count.
        .map(|i| unsafe { (pointer as *const T).add(i).read_unaligned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_zero_are_left_out() {
        let args = abi::AvailableMemory {
            available: 4096,
            gpu_id: 7,
            pad: 0,
        };
        let request = Request {
            type_: abi::KFD_TYPE,
            nr: kfd::AVAILABLE_MEMORY,
            size: 16,
        };
        let mut text = String::new();
        // SAFETY: the structure that belongs to the request.
        unsafe { ioctl(&mut text, request, (&raw const args).cast()) };
        assert_eq!(text, "AVAILABLE_MEMORY available=0x1000 gpu_id=7");
    }

    #[test]
    fn unknown_requests_show_their_number() {
        for type_ in [abi::KFD_TYPE, DRM_TYPE] {
            let mut text = String::new();
            let request = Request {
                type_,
                nr: 0x7f,
                size: 12,
            };
            // SAFETY: no argument.
            unsafe { ioctl(&mut text, request, std::ptr::null()) };
            assert_eq!(text, "0x7f (12 bytes)");
        }
    }
}
