//! Attributes of streams: hints that have no effect on these devices, kept so that they read back.

use std::collections::HashMap;
use std::sync::Mutex;

use super::Stream;
use crate::abi::{CUlaunchAttributeID as Id, CUlaunchAttributeValue, Error, Plain, Result};

/// `CU_SYNC_POLICY_AUTO`, the default, and `CU_SYNC_POLICY_BLOCKING_SYNC`, the last.
const SYNC_POLICIES: core::ops::RangeInclusive<i32> = 1..=4;

/// What was set, by stream id and attribute.
static SET: Mutex<Option<HashMap<u64, HashMap<i32, Value>>>> = Mutex::new(None);

/// A value. Its pointers are never followed.
#[derive(Clone, Copy)]
struct Value(CUlaunchAttributeValue);

// SAFETY: a plain structure, which is only handed back to the application.
unsafe impl Send for Value {}

fn with<T>(f: impl FnOnce(&mut HashMap<u64, HashMap<i32, Value>>) -> T) -> T {
    f(SET
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .get_or_insert_with(HashMap::new))
}

/// The attributes that streams have.
fn check(id: i32) -> Result<()> {
    match Id(id) {
        Id::ACCESS_POLICY_WINDOW
        | Id::SYNCHRONIZATION_POLICY
        | Id::PRIORITY
        | Id::MEM_SYNC_DOMAIN_MAP
        | Id::MEM_SYNC_DOMAIN => Ok(()),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// An attribute's value.
///
/// # Errors
/// INVALID_VALUE for one that streams do not have.
pub fn get(stream: &Stream, id: i32) -> Result<CUlaunchAttributeValue> {
    check(id)?;
    let set = with(|all| all.get(&stream.id()).and_then(|own| own.get(&id)).copied());
    let mut value = set.map_or_else(CUlaunchAttributeValue::zeroed, |value| value.0);
    match Id(id) {
        Id::PRIORITY => value.priority = stream.priority(),
        Id::SYNCHRONIZATION_POLICY if set.is_none() => value.syncPolicy.0 = *SYNC_POLICIES.start(),
        _ => {}
    }
    Ok(value)
}

/// Sets an attribute.
///
/// # Errors
/// INVALID_VALUE for one that streams do not have, or whose value cannot be set, and for an unknown policy.
pub fn set(stream: &Stream, id: i32, value: &CUlaunchAttributeValue) -> Result<()> {
    check(id)?;
    // SAFETY: every bit pattern of the union is an integer.
    let policy = unsafe { value.syncPolicy.0 };
    match Id(id) {
        Id::SYNCHRONIZATION_POLICY if !SYNC_POLICIES.contains(&policy) => return Err(Error::INVALID_VALUE),
        Id::PRIORITY => return Err(Error::INVALID_VALUE),
        _ => {}
    }
    with(|all| all.entry(stream.id()).or_default().insert(id, Value(*value)));
    Ok(())
}

/// Gives `dst` the attributes of `src`.
pub fn copy(dst: &Stream, src: &Stream) {
    with(|all| {
        let values = all.get(&src.id()).cloned().unwrap_or_default();
        all.insert(dst.id(), values);
    });
}

/// The stream was destroyed.
pub(super) fn forget(stream: &Stream) {
    with(|all| all.remove(&stream.id()));
}
