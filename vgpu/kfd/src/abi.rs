//! The kernel's ABI: ioctl numbers and argument structures of the KFD (`linux/kfd_ioctl.h`) and amdgpu DRM devices.
//!
//! Sizes are asserted because the ioctl number carries them: a struct that differs from the kernel's would be answered
//! with `ENOTTY` there and must not be accepted here. [`Request`] takes the number apart.

#![allow(
    missing_docs,
    reason = "field names are the kernel's own and documented in its headers"
)]

/// Type byte of KFD ioctls.
pub const KFD_TYPE: u8 = b'K';
/// Type byte of DRM ioctls.
pub const DRM_TYPE: u8 = b'd';

/// Ioctl numbers of `/dev/kfd`. Those from 0x80 are AMD's out-of-tree driver's, and ROCr's legacy IPC needs them.
pub mod kfd {
    pub const GET_VERSION: u8 = 0x01;
    pub const CREATE_QUEUE: u8 = 0x02;
    pub const DESTROY_QUEUE: u8 = 0x03;
    pub const SET_MEMORY_POLICY: u8 = 0x04;
    pub const GET_CLOCK_COUNTERS: u8 = 0x05;
    pub const UPDATE_QUEUE: u8 = 0x07;
    pub const CREATE_EVENT: u8 = 0x08;
    pub const DESTROY_EVENT: u8 = 0x09;
    pub const SET_EVENT: u8 = 0x0a;
    pub const RESET_EVENT: u8 = 0x0b;
    pub const WAIT_EVENTS: u8 = 0x0c;
    pub const SET_SCRATCH_BACKING_VA: u8 = 0x11;
    pub const GET_TILE_CONFIG: u8 = 0x12;
    pub const SET_TRAP_HANDLER: u8 = 0x13;
    pub const GET_PROCESS_APERTURES_NEW: u8 = 0x14;
    pub const ACQUIRE_VM: u8 = 0x15;
    pub const ALLOC_MEMORY_OF_GPU: u8 = 0x16;
    pub const FREE_MEMORY_OF_GPU: u8 = 0x17;
    pub const MAP_MEMORY_TO_GPU: u8 = 0x18;
    pub const UNMAP_MEMORY_FROM_GPU: u8 = 0x19;
    pub const SET_CU_MASK: u8 = 0x1a;
    pub const GET_DMABUF_INFO: u8 = 0x1c;
    pub const IMPORT_DMABUF: u8 = 0x1d;
    pub const ALLOC_QUEUE_GWS: u8 = 0x1e;
    pub const SVM: u8 = 0x20;
    pub const SET_XNACK_MODE: u8 = 0x21;
    pub const AVAILABLE_MEMORY: u8 = 0x23;
    pub const EXPORT_DMABUF: u8 = 0x24;
    pub const RUNTIME_ENABLE: u8 = 0x25;
    pub const IPC_IMPORT_HANDLE: u8 = 0x80;
    pub const IPC_EXPORT_HANDLE: u8 = 0x81;
}

/// Ioctl numbers of `/dev/dri/renderD*`.
pub mod drm {
    pub const VERSION: u8 = 0x00;
    pub const GEM_CLOSE: u8 = 0x09;
    pub const PRIME_HANDLE_TO_FD: u8 = 0x2d;
    pub const PRIME_FD_TO_HANDLE: u8 = 0x2e;
    pub const AMDGPU_GEM_MMAP: u8 = 0x41;
    pub const AMDGPU_INFO: u8 = 0x45;
    pub const AMDGPU_GEM_METADATA: u8 = 0x46;
    pub const AMDGPU_GEM_VA: u8 = 0x48;
}

/// `KFD_IOC_ALLOC_MEM_FLAGS_*`.
pub mod mem {
    pub const VRAM: u32 = 1 << 0;
    pub const GTT: u32 = 1 << 1;
    pub const USERPTR: u32 = 1 << 2;
    pub const DOORBELL: u32 = 1 << 3;
    pub const MMIO_REMAP: u32 = 1 << 4;
    pub const UNCACHED: u32 = 1 << 25;
    pub const COHERENT: u32 = 1 << 26;
    pub const EXECUTABLE: u32 = 1 << 30;
    pub const WRITABLE: u32 = 1 << 31;
}

/// `KFD_IOCTL_SVM_*`.
pub mod svm {
    pub const OP_SET: u32 = 0;
    pub const OP_GET: u32 = 1;
    pub const PREFERRED_LOC: u32 = 0;
    pub const PREFETCH_LOC: u32 = 1;
    pub const ACCESS: u32 = 2;
    pub const ACCESS_IN_PLACE: u32 = 3;
    pub const NO_ACCESS: u32 = 4;
    pub const SET_FLAGS: u32 = 5;
    pub const CLR_FLAGS: u32 = 6;
    pub const GRANULARITY: u32 = 7;
    pub const FLAG_HOST_ACCESS: u32 = 1 << 0;
    pub const FLAG_COHERENT: u32 = 1 << 1;
    pub const FLAG_GPU_RO: u32 = 1 << 3;
    pub const FLAG_GPU_EXEC: u32 = 1 << 4;
}

/// `KFD_IOC_QUEUE_TYPE_*`.
pub mod queue_type {
    pub const SDMA: u32 = 1;
    pub const COMPUTE_AQL: u32 = 2;
    pub const SDMA_XGMI: u32 = 3;
}

/// `KFD_IOC_EVENT_*`.
pub mod event_type {
    pub const SIGNAL: u32 = 0;
    pub const HW_EXCEPTION: u32 = 3;
    pub const MEMORY: u32 = 8;
}

/// `KFD_IOC_WAIT_RESULT_*`.
pub mod wait_result {
    pub const COMPLETE: u32 = 0;
    pub const TIMEOUT: u32 = 1;
    pub const FAIL: u32 = 2;
}

/// Declares ioctl argument structs and asserts their sizes.
macro_rules! args {
    ($($(#[$meta:meta])* $name:ident ($size:literal) { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $(pub $field: $type,)* }
        const _: () = assert!(size_of::<$name>() == $size);
        impl crate::describe::Describe for $name {
            fn describe(&self, out: &mut String) {
                $(crate::describe::Value::put(&self.$field, stringify!($field), out);)*
            }
        }
    )*};
}

args! {
    /// `kfd_ioctl_get_version_args`
    GetVersion(8) { major_version: u32, minor_version: u32, }
    /// `kfd_ioctl_create_queue_args`
    CreateQueue(88) {
        ring_base_address: u64,
        write_pointer_address: u64,
        read_pointer_address: u64,
        doorbell_offset: u64,
        ring_size: u32,
        gpu_id: u32,
        queue_type: u32,
        queue_percentage: u32,
        queue_priority: u32,
        queue_id: u32,
        eop_buffer_address: u64,
        eop_buffer_size: u64,
        ctx_save_restore_address: u64,
        ctx_save_restore_size: u32,
        ctl_stack_size: u32,
    }
    /// `kfd_ioctl_destroy_queue_args`
    DestroyQueue(8) { queue_id: u32, pad: u32, }
    /// `kfd_ioctl_update_queue_args`
    UpdateQueue(24) {
        ring_base_address: u64,
        queue_id: u32,
        ring_size: u32,
        queue_percentage: u32,
        queue_priority: u32,
    }
    /// `kfd_ioctl_set_cu_mask_args`
    SetCuMask(16) { queue_id: u32, num_cu_mask: u32, cu_mask_ptr: u64, }
    /// `kfd_ioctl_set_memory_policy_args`
    SetMemoryPolicy(32) {
        alternate_aperture_base: u64,
        alternate_aperture_size: u64,
        gpu_id: u32,
        default_policy: u32,
        alternate_policy: u32,
        pad: u32,
    }
    /// `kfd_ioctl_get_clock_counters_args`
    GetClockCounters(40) {
        gpu_clock_counter: u64,
        cpu_clock_counter: u64,
        system_clock_counter: u64,
        system_clock_freq: u64,
        gpu_id: u32,
        pad: u32,
    }
    /// `kfd_process_device_apertures`
    DeviceApertures(56) {
        lds_base: u64,
        lds_limit: u64,
        scratch_base: u64,
        scratch_limit: u64,
        gpuvm_base: u64,
        gpuvm_limit: u64,
        gpu_id: u32,
        pad: u32,
    }
    /// `kfd_ioctl_get_process_apertures_new_args`
    GetProcessAperturesNew(16) { kfd_process_device_apertures_ptr: u64, num_of_nodes: u32, pad: u32, }
    /// `kfd_ioctl_create_event_args`
    CreateEvent(32) {
        event_page_offset: u64,
        event_trigger_data: u32,
        event_type: u32,
        auto_reset: u32,
        node_id: u32,
        event_id: u32,
        event_slot_index: u32,
    }
    /// `kfd_ioctl_{destroy,set,reset}_event_args`
    EventId(8) { event_id: u32, pad: u32, }
    /// `kfd_event_data` as a memory exception (`kfd_hsa_memory_exception_data` in the union).
    ///
    /// ```text
    ///  0        4         8          12         16   24      28         32                  40        44
    ///  NotPresent ReadOnly NoExecute imprecise  va   gpu_id  ErrorType  kfd_event_data_ext  event_id  pad
    ///  `- last_event_age (u64) for signal events
    /// ```
    EventData(48) {
        not_present: u32,
        read_only: u32,
        no_execute: u32,
        imprecise: u32,
        va: u64,
        gpu_id: u32,
        error_type: u32,
        kfd_event_data_ext: u64,
        event_id: u32,
        pad: u32,
    }
    /// `kfd_ioctl_wait_events_args`
    WaitEvents(24) { events_ptr: u64, num_events: u32, wait_for_all: u32, timeout: u32, wait_result: u32, }
    /// `kfd_ioctl_set_scratch_backing_va_args`
    SetScratchBackingVa(16) { va_addr: u64, gpu_id: u32, pad: u32, }
    /// `kfd_ioctl_get_tile_config_args`
    GetTileConfig(40) {
        tile_config_ptr: u64,
        macro_tile_config_ptr: u64,
        num_tile_configs: u32,
        num_macro_tile_configs: u32,
        gpu_id: u32,
        gb_addr_config: u32,
        num_banks: u32,
        num_ranks: u32,
    }
    /// `kfd_ioctl_set_trap_handler_args`
    SetTrapHandler(24) { tba_addr: u64, tma_addr: u64, gpu_id: u32, pad: u32, }
    /// `kfd_ioctl_acquire_vm_args`
    AcquireVm(8) { drm_fd: u32, gpu_id: u32, }
    /// `kfd_ioctl_alloc_memory_of_gpu_args`
    AllocMemory(40) { va_addr: u64, size: u64, handle: u64, mmap_offset: u64, gpu_id: u32, flags: u32, }
    /// `kfd_ioctl_free_memory_of_gpu_args`
    FreeMemory(8) { handle: u64, }
    /// `kfd_ioctl_{map_memory_to,unmap_memory_from}_gpu_args`
    MapMemory(24) { handle: u64, device_ids_array_ptr: u64, n_devices: u32, n_success: u32, }
    /// `kfd_ioctl_alloc_queue_gws_args`
    AllocQueueGws(16) { queue_id: u32, num_gws: u32, first_gws: u32, pad: u32, }
    /// `kfd_ioctl_get_dmabuf_info_args`
    GetDmabufInfo(32) {
        size: u64,
        metadata_ptr: u64,
        metadata_size: u32,
        gpu_id: u32,
        flags: u32,
        dmabuf_fd: u32,
    }
    /// `kfd_ioctl_import_dmabuf_args`
    ImportDmabuf(24) { va_addr: u64, handle: u64, gpu_id: u32, dmabuf_fd: u32, }
    /// `kfd_ioctl_export_dmabuf_args`
    ExportDmabuf(16) { handle: u64, flags: u32, dmabuf_fd: u32, }
    /// `kfd_ioctl_set_xnack_mode_args`
    SetXnackMode(4) { xnack_enabled: i32, }
    /// `kfd_ioctl_svm_args`; `nattr` attributes follow, which the request's size counts
    SvmArgs(24) { start_addr: u64, size: u64, op: u32, nattr: u32, }
    /// `kfd_ioctl_svm_attribute`
    SvmAttribute(8) { kind: u32, value: u32, }
    /// `kfd_ioctl_get_available_memory_args`
    AvailableMemory(16) { available: u64, gpu_id: u32, pad: u32, }
    /// `kfd_ioctl_runtime_enable_args`
    RuntimeEnable(16) { r_debug: u64, mode_mask: u32, capabilities_mask: u32, }
    /// `kfd_ioctl_ipc_export_handle_args`
    IpcExport(32) { handle: u64, share_handle: [u32; 4], gpu_id: u32, flags: u32, }
    /// `kfd_ioctl_ipc_import_handle_args`
    IpcImport(48) {
        handle: u64,
        va_addr: u64,
        mmap_offset: u64,
        share_handle: [u32; 4],
        gpu_id: u32,
        flags: u32,
    }

    /// `drm_version`
    DrmVersion(64) {
        major: i32,
        minor: i32,
        patch: i32,
        name_len: u64,
        name: u64,
        date_len: u64,
        date: u64,
        desc_len: u64,
        desc: u64,
    }
    /// `drm_amdgpu_info`, up to the query's own arguments
    DrmInfo(32) { return_pointer: u64, return_size: u32, query: u32, arguments: [u32; 4], }
    /// `drm_prime_handle`
    DrmPrime(12) { handle: u32, flags: u32, fd: i32, }
    /// `drm_gem_close`
    DrmGemClose(8) { handle: u32, pad: u32, }
    /// `drm_amdgpu_gem_mmap`: the handle goes in where the offset comes out
    DrmGemMmap(8) { handle_or_offset: u64, }
    /// `drm_amdgpu_gem_va`
    DrmGemVa(40) {
        handle: u32,
        pad: u32,
        operation: u32,
        flags: u32,
        va_address: u64,
        offset_in_bo: u64,
        map_size: u64,
    }
}

/// An ioctl request taken apart: `size << 16 | type << 8 | nr`, the direction in the two top bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub type_: u8,
    pub nr: u8,
    pub size: usize,
}

impl Request {
    /// Splits the number that user space passes to `ioctl`.
    pub fn new(request: u64) -> Self {
        Self {
            type_: (request >> 8) as u8,
            nr: request as u8,
            size: (request >> 16 & 0x3fff) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn a_request_names_type_number_and_size() {
        // AMDKFD_IOC_GET_VERSION = _IOR('K', 1, 8 bytes)
        assert_eq!(
            Request::new(0x8008_4b01),
            Request {
                type_: b'K',
                nr: kfd::GET_VERSION,
                size: 8
            }
        );
        // AMDKFD_IOC_IPC_IMPORT_HANDLE = _IOWR('K', 0x80, 48 bytes)
        assert_eq!(
            Request::new(0xc030_4b80),
            Request {
                type_: b'K',
                nr: kfd::IPC_IMPORT_HANDLE,
                size: 48
            }
        );
    }

    #[test]
    fn event_data_has_the_kernels_offsets() {
        assert_eq!(offset_of!(EventData, va), 16);
        assert_eq!(offset_of!(EventData, gpu_id), 24);
        assert_eq!(offset_of!(EventData, event_id), 40);
    }

    #[test]
    fn drm_structs_have_the_kernels_offsets() {
        assert_eq!(offset_of!(DrmVersion, name_len), 16);
        assert_eq!(offset_of!(DrmGemVa, va_address), 16);
        assert_eq!(offset_of!(DrmInfo, arguments), 16);
    }
}
