//! C structures and handles, with their layout asserted at compile time (x86-64, ROCr 5.2 to 6.x alike).

use core::ffi::c_void;

use crate::status::hsa_status_t;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
        #[repr(C)]
        pub struct $name {
            /// Opaque to the user; 0 is no object.
            pub handle: u64,
        }
    )*};
}

handles! {
    /// A CPU or a GPU.
    hsa_agent_t;
    /// A signal: a 64-bit value that agents and the host can wait on.
    hsa_signal_t;
    /// An instruction set.
    hsa_isa_t;
    /// Loaded code of one or several code objects.
    hsa_executable_t;
    /// A symbol of an executable.
    hsa_executable_symbol_t;
    /// A code object as it lies in memory.
    hsa_code_object_reader_t;
    /// A code object inside an executable.
    hsa_loaded_code_object_t;
    /// A memory pool of an agent.
    hsa_amd_memory_pool_t;
    /// Physical memory of the virtual memory calls.
    hsa_amd_vmem_alloc_handle_t;
}

/// The value of a signal.
pub type hsa_signal_value_t = i64;

/// Three extents or offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct hsa_dim3_t {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// The part of a queue that users may read.
#[derive(Debug)]
#[repr(C)]
pub struct hsa_queue_t {
    pub type_: u32,
    pub features: u32,
    /// Ring of `size` packets of 64 bytes.
    pub base_address: *mut c_void,
    pub doorbell_signal: hsa_signal_t,
    /// Packets in the ring; a power of two.
    pub size: u32,
    pub reserved1: u32,
    pub id: u64,
}

/// AQL packet that launches a kernel.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct hsa_kernel_dispatch_packet_t {
    pub header: u16,
    pub setup: u16,
    pub workgroup_size_x: u16,
    pub workgroup_size_y: u16,
    pub workgroup_size_z: u16,
    pub reserved0: u16,
    /// In work-items, not workgroups.
    pub grid_size_x: u32,
    pub grid_size_y: u32,
    pub grid_size_z: u32,
    pub private_segment_size: u32,
    pub group_segment_size: u32,
    pub kernel_object: u64,
    pub kernarg_address: *mut c_void,
    pub reserved2: u64,
    pub completion_signal: hsa_signal_t,
}

/// AQL packet that waits until all (AND) or one (OR) of five signals are 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct hsa_barrier_packet_t {
    pub header: u16,
    pub reserved0: u16,
    pub reserved1: u32,
    pub dep_signal: [hsa_signal_t; 5],
    pub reserved2: u64,
    pub completion_signal: hsa_signal_t,
}

/// AMD's vendor packet that waits until `(signal & mask) cond value`; signed comparison.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct hsa_amd_barrier_value_packet_t {
    pub header: u16,
    /// `HSA_AMD_PACKET_TYPE_BARRIER_VALUE`.
    pub amd_format: u8,
    pub reserved: u8,
    pub reserved0: u32,
    pub signal: hsa_signal_t,
    pub value: hsa_signal_value_t,
    pub mask: hsa_signal_value_t,
    pub cond: u32,
    pub reserved1: u32,
    pub reserved2: u64,
    pub reserved3: u64,
    pub completion_signal: hsa_signal_t,
}

/// What ROCr knows about an address.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct hsa_amd_pointer_info_t {
    /// In: the size the caller compiled with. Out: how much of it was filled.
    pub size: u32,
    pub type_: u32,
    pub agent_base_address: *mut c_void,
    pub host_base_address: *mut c_void,
    pub size_in_bytes: usize,
    pub user_data: *mut c_void,
    pub agent_owner: hsa_agent_t,
    pub global_flags: u32,
}

/// Handle of memory (or of a signal) that another process can attach.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(C)]
pub struct hsa_amd_ipc_memory_t {
    pub handle: [u32; 8],
}

/// Handle of an IPC signal; same layout as memory's.
pub type hsa_amd_ipc_signal_t = hsa_amd_ipc_memory_t;

/// A pitched block, for rectangular copies.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct hsa_pitched_ptr_t {
    pub base: *mut c_void,
    pub pitch: usize,
    pub slice: usize,
}

/// How one agent reaches a pool.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct hsa_amd_memory_pool_link_info_t {
    pub min_latency: u32,
    pub max_latency: u32,
    pub min_bandwidth: u32,
    pub max_bandwidth: u32,
    pub atomic_support_32bit: bool,
    pub atomic_support_64bit: bool,
    pub coherent_support: bool,
    pub link_type: u32,
    pub numa_distance: u32,
}

/// Start and end of a dispatch or of a copy, in ticks.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct hsa_amd_profiling_time_t {
    pub start: u64,
    pub end: u64,
}

/// A system event: a memory fault, an exception of the hardware, or (6.3) a failed free.
///
/// The union's members all begin with the agent and end within 24 bytes:
///
/// ```text
///  0 event_type  4 pad  8 agent  16 virtual_address | reset_type,cause  24 reason mask
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct hsa_amd_event_t {
    pub event_type: u32,
    pub agent: hsa_agent_t,
    /// Memory fault: the address. Hardware exception: reset type (low half) and cause (high half).
    pub virtual_address: u64,
    /// Memory fault: `HSA_AMD_MEMORY_FAULT_*` bits.
    pub reason_mask: u32,
}

/// One attribute of shared virtual memory.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct hsa_amd_svm_attribute_pair_t {
    pub attribute: u64,
    pub value: u64,
}

/// Access of one agent to a range of virtual memory.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct hsa_amd_memory_access_desc_t {
    pub permissions: u32,
    pub agent_handle: hsa_agent_t,
}

/// `hsa_iterate_agents`' callback.
pub type hsa_agent_callback = unsafe extern "C" fn(hsa_agent_t, *mut c_void) -> hsa_status_t;
/// `hsa_amd_agent_iterate_memory_pools`' callback.
pub type hsa_pool_callback = unsafe extern "C" fn(hsa_amd_memory_pool_t, *mut c_void) -> hsa_status_t;
/// `hsa_agent_iterate_isas`' callback.
pub type hsa_isa_callback = unsafe extern "C" fn(hsa_isa_t, *mut c_void) -> hsa_status_t;
/// `hsa_executable_iterate_agent_symbols`' callback.
pub type hsa_symbol_callback =
    unsafe extern "C" fn(hsa_executable_t, hsa_agent_t, hsa_executable_symbol_t, *mut c_void) -> hsa_status_t;
/// Called when a queue meets an error; the queue is then dead.
pub type hsa_queue_callback = unsafe extern "C" fn(hsa_status_t, *mut hsa_queue_t, *mut c_void);
/// `hsa_amd_signal_async_handler`'s handler: true keeps waiting.
pub type hsa_amd_signal_handler = unsafe extern "C" fn(hsa_signal_value_t, *mut c_void) -> bool;
/// `hsa_amd_register_system_event_handler`'s handler.
pub type hsa_amd_system_event_callback_t = unsafe extern "C" fn(*const hsa_amd_event_t, *mut c_void) -> hsa_status_t;
/// `hsa_amd_register_deallocation_callback`'s callback.
pub type hsa_amd_deallocation_callback_t = unsafe extern "C" fn(*mut c_void, *mut c_void);
/// `hsa_amd_pointer_info`'s allocator of the list of agents.
pub type hsa_amd_pointer_info_alloc = unsafe extern "C" fn(usize) -> *mut c_void;

macro_rules! layout {
    ($($name:ident: $size:literal, $align:literal $({ $($field:ident: $offset:literal),* })?;)*) => {$(
        const _: () = assert!(size_of::<$name>() == $size && align_of::<$name>() == $align);
        $($(const _: () = assert!(core::mem::offset_of!($name, $field) == $offset);)*)?
    )*};
}

layout! {
    hsa_agent_t: 8, 8;
    hsa_dim3_t: 12, 4;
    hsa_queue_t: 40, 8 { base_address: 8, doorbell_signal: 16, size: 24, id: 32 };
    hsa_kernel_dispatch_packet_t: 64, 8
        { grid_size_x: 12, group_segment_size: 28, kernel_object: 32, kernarg_address: 40, completion_signal: 56 };
    hsa_barrier_packet_t: 64, 8 { dep_signal: 8, completion_signal: 56 };
    hsa_amd_barrier_value_packet_t: 64, 8
        { amd_format: 2, signal: 8, value: 16, mask: 24, cond: 32, completion_signal: 56 };
    hsa_amd_pointer_info_t: 56, 8
        { type_: 4, agent_base_address: 8, host_base_address: 16, size_in_bytes: 24, user_data: 32, agent_owner: 40, global_flags: 48 };
    hsa_amd_ipc_memory_t: 32, 4;
    hsa_pitched_ptr_t: 24, 8;
    hsa_amd_memory_pool_link_info_t: 28, 4 { link_type: 20, numa_distance: 24 };
    hsa_amd_profiling_time_t: 16, 8;
    hsa_amd_event_t: 32, 8 { agent: 8, virtual_address: 16, reason_mask: 24 };
    hsa_amd_svm_attribute_pair_t: 16, 8;
    hsa_amd_memory_access_desc_t: 16, 8 { agent_handle: 8 };
}
