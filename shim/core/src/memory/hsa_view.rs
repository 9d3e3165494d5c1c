//! What HSA programs are told about our memory where ROCr does not know: see [`crate::hsa::tools`].

use std::collections::HashMap;
use std::os::fd::IntoRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::rights::Rights;
use super::{Kind, lookup, vmm};
use crate::device::{self, Device};
use crate::hsa::Agent;
use crate::hsa::tools::{self, Answer, Callback, Exported, View};

/// Deallocation callbacks of mappings, by the mapping's first address and id.
type Callbacks = Option<HashMap<(u64, u64), Vec<Callback>>>;

static CALLBACKS: Mutex<Callbacks> = Mutex::new(None);

fn callbacks() -> MutexGuard<'static, Callbacks> {
    CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// To be called before anybody asks: with the first device.
pub fn start() {
    tools::answer_with(View {
        answer,
        beyond,
        allow,
        register,
        deregister,
        export,
        imported,
    });
}

fn answer(address: u64) -> Option<Answer> {
    let entry = lookup(address)?;
    let locked = match entry.kind {
        Kind::Mapping => false,
        Kind::Registered => true,
        _ => return None,
    };
    let device = entry.context.device;
    let devices = device::all().unwrap_or_default();
    let users: Vec<&'static Agent> = if locked {
        devices.iter().map(|device| device.agent).collect()
    } else {
        Rights(entry.more)
            .users()
            .filter_map(|ordinal| devices.get(ordinal as usize))
            .map(|device| device.agent)
            .collect()
    };
    Some(Answer {
        locked,
        agent_base: entry.device_base,
        host_base: if locked { entry.base } else { 0 },
        size: entry.size,
        owner: if locked { device.host } else { device.agent },
        users,
    })
}

/// ROCr pins whole pages; what lies on them beside the registered range is the client's own.
fn beyond(address: u64) -> bool {
    const PAGE: u64 = 4096;
    if lookup(address).is_some() {
        return false;
    }
    // Only if one of ours pinned the page.
    let page = address & !(PAGE - 1);
    super::REGISTRY.overlapping(page, PAGE) == Some(Kind::Registered)
}

fn allow(address: u64, agents: &[u64]) -> Option<bool> {
    let entry = lookup(address).filter(|entry| entry.kind == Kind::Mapping)?;
    let rights = Rights(entry.more);
    let wanted: Vec<(&'static Device, u32)> = device::all()
        .unwrap_or_default()
        .iter()
        .filter(|device| agents.iter().any(|&agent| device.agent.is(agent)))
        // Access is only ever added.
        .filter(|device| rights.of(device.ordinal) != 3)
        .map(|device| (device, 3))
        .collect();
    Some(wanted.is_empty() || vmm::set_access(entry.base, entry.size, &wanted).is_ok())
}

fn register(address: u64, callback: Callback) -> bool {
    let Some(entry) = lookup(address).filter(|entry| entry.kind == Kind::Mapping && entry.base == address) else {
        return false;
    };
    let mut callbacks = callbacks();
    let known = callbacks.get_or_insert_default().entry((entry.base, entry.id));
    known.or_default().push(callback);
    true
}

fn deregister(address: u64, callback: Callback) -> bool {
    let mut callbacks = callbacks();
    let Some(callbacks) = callbacks.as_mut() else {
        return false;
    };
    for ((base, _), known) in callbacks.iter_mut() {
        if *base == address
            && let Some(index) = known
                .iter()
                .position(|known| core::ptr::fn_addr_eq(known.0, callback.0))
        {
            known.remove(index);
            return true;
        }
    }
    false
}

/// Tells HSA programs that a mapping ends, which is out of the registry already. No lock may be held.
pub(super) fn mapping_ends(base: u64, id: u64) {
    let called = callbacks().as_mut().and_then(|callbacks| callbacks.remove(&(base, id)));
    for callback in called.unwrap_or_default() {
        // SAFETY: registered, and not taken back.
        unsafe { tools::call(callback, base) };
    }
}

fn export(address: u64) -> Option<Exported> {
    let entry = lookup(address).filter(|entry| entry.kind == Kind::Mapping)?;
    let exported = vmm::export_mapped(entry.base);
    Some(exported.ok().map(|fd| (fd.into_raw_fd(), address - entry.base)))
}

fn imported(address: u64) -> bool {
    lookup(address).is_some_and(|entry| entry.kind == Kind::Imported)
}
