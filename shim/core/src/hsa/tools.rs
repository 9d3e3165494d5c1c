//! Answers to HSA programs about memory that ROCr itself does not know, or knows less exactly: mappings of the virtual memory
//! calls and registered host memory.
//!
//! MPI libraries ask CUDA and HSA about the same address. Blocks of pools are ROCr's own, and its answers are right by
//! construction. For the rest ROCr lets a library replace entries of the table that all its functions go through: ROCr 5.4
//! and later look, in `hsa_init`, for loaded libraries that export `HSA_AMD_TOOL_PRIORITY`, and call their `OnLoad`. Older ones look at
//! `HSA_TOOLS_LIB` only. A library that was loaded after `hsa_init` is not asked.
//!
//! Every replacement forwards first, and changes the answer only where ROCr said that it does not know.

use core::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hsa_sys as sys;

use super::agent::Agent;

/// What is to be said about an address.
pub struct Answer {
    /// `HSA_EXT_POINTER_TYPE_HSA`, or `_LOCKED` for registered host memory.
    pub locked: bool,
    /// First byte as agents see it.
    pub agent_base: u64,
    /// First byte as the host sees it; 0 for memory that it does not reach.
    pub host_base: u64,
    /// Bytes.
    pub size: u64,
    /// Whose memory it is.
    pub owner: &'static Agent,
    /// Who may use it.
    pub users: Vec<&'static Agent>,
}

/// A client's deallocation callback.
pub type Callback = (sys::hsa_amd_deallocation_callback_t, usize);

/// A descriptor and the offset of the address in it, if one could be made.
pub type Exported = Option<(i32, u64)>;

/// What knows the memory that ROCr does not.
#[derive(Clone, Copy)]
pub struct View {
    /// About any address; must not call HSA.
    pub answer: fn(u64) -> Option<Answer>,
    /// Whether registered host memory ends before an address that ROCr, by pages, takes for it.
    pub beyond: fn(u64) -> bool,
    /// Lets agents use the mapping at an address; `None` where there is none.
    pub allow: fn(u64, &[u64]) -> Option<bool>,
    /// Keeps a callback for the mapping that begins at an address; false where there is none.
    pub register: fn(u64, Callback) -> bool,
    /// Forgets one; false where there is none.
    pub deregister: fn(u64, Callback) -> bool,
    /// A descriptor of the mapping at an address and its offset in it; `None` where there is no mapping.
    pub export: fn(u64) -> Option<Exported>,
    /// Whether an address is memory of another process, of which ROCr must not be asked for a descriptor.
    pub imported: fn(u64) -> bool,
}

static VIEW: OnceLock<View> = OnceLock::new();

/// Sets what answers; the first one stays.
pub fn answer_with(view: View) {
    let _ = VIEW.set(view);
}

impl Agent {
    /// Whether a number is the agent's handle.
    pub fn is(&self, handle: u64) -> bool {
        self.handle.handle == handle
    }
}

/// The entries that are replaced: their places in `AmdExtTable`, in bytes. The table only ever grows at its end.
macro_rules! replaced {
    ($($offset:literal $original:ident: $ty:ty = $hook:ident;)*) => {
        $(static $original: AtomicUsize = AtomicUsize::new(0);)*

        /// Replaces the entries of a table of `size` bytes.
        ///
        /// # Safety
        /// `table` is ROCr's, of that size, and nobody calls through it yet.
        unsafe fn replace(table: *mut u8, size: usize) {
            $(if $offset + 8 <= size {
                let hook: $ty = $hook;
                // SAFETY: the entry lies in the table, by its size.
                let entry = unsafe { table.add($offset) }.cast::<usize>();
                // SAFETY: as above.
                $original.store(unsafe { entry.read() }, Ordering::Release);
                // SAFETY: as above; the hook has the entry's type.
                unsafe { entry.write(hook as usize) };
            })*
        }
    };
}

type PointerInfo = unsafe extern "C" fn(
    *const c_void,
    *mut sys::hsa_amd_pointer_info_t,
    Option<sys::hsa_amd_pointer_info_alloc>,
    *mut u32,
    *mut *mut sys::hsa_agent_t,
) -> sys::hsa_status_t;
type AllowAccess = unsafe extern "C" fn(u32, *const sys::hsa_agent_t, *const u32, *const c_void) -> sys::hsa_status_t;
type Register =
    unsafe extern "C" fn(*mut c_void, sys::hsa_amd_deallocation_callback_t, *mut c_void) -> sys::hsa_status_t;
type Deregister = unsafe extern "C" fn(*mut c_void, sys::hsa_amd_deallocation_callback_t) -> sys::hsa_status_t;
type Export = unsafe extern "C" fn(*const c_void, usize, *mut i32, *mut u64) -> sys::hsa_status_t;

replaced! {
    168 ALLOW_ACCESS: AllowAccess = allow_access;
    240 POINTER_INFO: PointerInfo = pointer_info;
    360 REGISTER: Register = register;
    368 DEREGISTER: Deregister = deregister;
    440 EXPORT: Export = export;
}

/// ROCr's own function behind a hook, which runs only after it was kept.
macro_rules! original {
    ($original:ident as $ty:ty) => {{
        let address = $original.load(Ordering::Acquire);
        // SAFETY: the hook is in the table because `replace` kept the entry's function first.
        unsafe { core::mem::transmute::<usize, $ty>(address) }
    }};
}

/// Version of a table: `minor` is its size in bytes.
#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
    step: u32,
    reserved: u32,
}

/// The beginning of `HsaApiTable`.
#[repr(C)]
struct Tables {
    version: Version,
    core: *mut Version,
    amd_ext: *mut Version,
}

/// `OnLoad`: ROCr calls it inside `hsa_init` with its tables. True keeps the library loaded.
///
/// # Safety
/// `tables` are ROCr's.
pub unsafe extern "C" fn on_load(tables: *mut c_void, _: u64, _: u64, _: *const *const core::ffi::c_char) -> bool {
    // SAFETY: ROCr's tables begin so in every release that looks for tools.
    let Some(tables) = (unsafe { tables.cast::<Tables>().as_ref() }) else {
        return true;
    };
    // SAFETY: as above.
    if let Some(table) = unsafe { tables.amd_ext.as_ref() }
        && matches!(table.major, 1 | 2)
        && POINTER_INFO.load(Ordering::Acquire) == 0
    {
        let size = table.minor as usize;
        // SAFETY: ROCr gives the table to be changed, and says its size.
        unsafe { replace(tables.amd_ext.cast(), size) };
    }
    true
}

/// `OnUnload`: ROCr has put its own entries back.
pub extern "C" fn on_unload() {}

unsafe extern "C" fn pointer_info(
    address: *const c_void,
    info: *mut sys::hsa_amd_pointer_info_t,
    allocate: Option<sys::hsa_amd_pointer_info_alloc>,
    count: *mut u32,
    accessible: *mut *mut sys::hsa_agent_t,
) -> sys::hsa_status_t {
    let forward = original!(POINTER_INFO as PointerInfo);
    // SAFETY: the client's arguments, as they came.
    let status = unsafe { forward(address, info, allocate, count, accessible) };
    let (Some(view), sys::HSA_STATUS_SUCCESS) = (VIEW.get(), status) else {
        return status;
    };
    // SAFETY: ROCr has filled it.
    let info = unsafe { &mut *info };
    let address = address.addr() as u64;
    match info.type_ {
        sys::HSA_EXT_POINTER_TYPE_HSA | sys::HSA_EXT_POINTER_TYPE_IPC => return status,
        sys::HSA_EXT_POINTER_TYPE_LOCKED if (view.beyond)(address) => {
            info.type_ = sys::HSA_EXT_POINTER_TYPE_UNKNOWN;
            return status;
        }
        _ => {}
    }
    let Some(answer) = (view.answer)(address) else {
        return status;
    };
    let pointer = |address: u64| core::ptr::without_provenance_mut(address as usize);
    // ROCr knows who owns what it pinned; with shared virtual memory it pins nothing, and knows nothing.
    let known = info.type_ == sys::HSA_EXT_POINTER_TYPE_LOCKED;
    info.type_ = if answer.locked {
        sys::HSA_EXT_POINTER_TYPE_LOCKED
    } else {
        sys::HSA_EXT_POINTER_TYPE_HSA
    };
    info.agent_base_address = pointer(answer.agent_base);
    info.host_base_address = pointer(answer.host_base);
    info.size_in_bytes = answer.size as usize;
    if !known {
        info.agent_owner = answer.owner.handle;
        info.global_flags = if answer.locked {
            sys::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED
        } else {
            sys::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED
        };
        info.user_data = core::ptr::null_mut();
    }
    if let (Some(allocate), false, false) = (allocate, count.is_null(), accessible.is_null())
        && !known
    {
        // SAFETY: the client's allocator and places for the list.
        unsafe {
            let list = allocate(answer.users.len() * size_of::<sys::hsa_agent_t>()).cast::<sys::hsa_agent_t>();
            if list.is_null() {
                return sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES;
            }
            for (index, agent) in answer.users.iter().enumerate() {
                list.add(index).write(agent.handle);
            }
            count.write(answer.users.len() as u32);
            accessible.write(list);
        }
    }
    status
}

unsafe extern "C" fn allow_access(
    count: u32,
    agents: *const sys::hsa_agent_t,
    flags: *const u32,
    address: *const c_void,
) -> sys::hsa_status_t {
    if let Some(view) = VIEW.get()
        && !agents.is_null()
    {
        // SAFETY: the client's list.
        let agents = unsafe { core::slice::from_raw_parts(agents, count as usize) };
        let handles: Vec<u64> = agents.iter().map(|agent| agent.handle).collect();
        match (view.allow)(address.addr() as u64, &handles) {
            Some(true) => return sys::HSA_STATUS_SUCCESS,
            Some(false) => return sys::HSA_STATUS_ERROR_INVALID_ARGUMENT,
            None => {}
        }
    }
    let forward = original!(ALLOW_ACCESS as AllowAccess);
    // SAFETY: the client's arguments, as they came.
    unsafe { forward(count, agents, flags, address) }
}

unsafe extern "C" fn register(
    address: *mut c_void,
    callback: sys::hsa_amd_deallocation_callback_t,
    data: *mut c_void,
) -> sys::hsa_status_t {
    let kept = |view: &View| (view.register)(address.addr() as u64, (callback, data.expose_provenance()));
    if VIEW.get().is_some_and(kept) {
        return sys::HSA_STATUS_SUCCESS;
    }
    let forward = original!(REGISTER as Register);
    // SAFETY: the client's arguments, as they came.
    unsafe { forward(address, callback, data) }
}

unsafe extern "C" fn deregister(
    address: *mut c_void,
    callback: sys::hsa_amd_deallocation_callback_t,
) -> sys::hsa_status_t {
    if VIEW
        .get()
        .is_some_and(|view| (view.deregister)(address.addr() as u64, (callback, 0)))
    {
        return sys::HSA_STATUS_SUCCESS;
    }
    let forward = original!(DEREGISTER as Deregister);
    // SAFETY: the client's arguments, as they came.
    unsafe { forward(address, callback) }
}

unsafe extern "C" fn export(address: *const c_void, size: usize, fd: *mut i32, offset: *mut u64) -> sys::hsa_status_t {
    if let Some(view) = VIEW.get() {
        let at = address.addr() as u64;
        match (view.export)(at) {
            Some(Some((descriptor, distance))) => {
                // SAFETY: the client's places for the results.
                unsafe {
                    fd.write(descriptor);
                    offset.write(distance);
                }
                return sys::HSA_STATUS_SUCCESS;
            }
            Some(None) => return sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES,
            // ROCr would follow a NULL pointer.
            None if (view.imported)(at) => return sys::HSA_STATUS_ERROR_INVALID_ALLOCATION,
            None => {}
        }
    }
    let forward = original!(EXPORT as Export);
    // SAFETY: the client's arguments, as they came.
    unsafe { forward(address, size, fd, offset) }
}

/// Runs a client's callback.
///
/// # Safety
/// `callback` came from [`View::register`], and the client has not taken it back. No lock is held.
pub unsafe fn call((callback, data): Callback, address: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        callback(
            core::ptr::with_exposed_provenance_mut(address as usize),
            core::ptr::with_exposed_provenance_mut(data),
        );
    }
}
