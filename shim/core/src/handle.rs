//! Handles that applications hold: numbers, never addresses.
//!
//! CUDA's handle types are pointers to the C compiler, but nobody may look behind them. Ours are keys of a table, and a
//! key is never given out twice, so that a destroyed, foreign or made-up handle is recognised and answered with CUDA's
//! error code. NVIDIA's libraries crash there.
//!
//! ```text
//! 63        56 55        48 47                        4 3  0
//! [    0x00   |    tag     |  serial number, from 1    | 0  ]
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

/// Hashes what needs no defence against collisions: our own serial numbers, and addresses of the program's own functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread(u64);

impl std::hash::Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        // Tables look at the highest and the lowest bits: the product of an odd number spreads upwards, the rotation brings that down.
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
        self.0 = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// For maps keyed by handles or addresses.
pub type BuildSpread = std::hash::BuildHasherDefault<Spread>;

/// A table of live objects of one type.
pub struct Handles<T> {
    tag: u8,
    next: AtomicU64,
    live: std::sync::OnceLock<DashMap<u64, Arc<T>, BuildSpread>>,
}

impl<T> Handles<T> {
    /// An empty table whose handles carry `tag`.
    pub const fn new(tag: u8) -> Self {
        Self {
            tag,
            next: AtomicU64::new(1),
            live: std::sync::OnceLock::new(),
        }
    }

    fn live(&self) -> &DashMap<u64, Arc<T>, BuildSpread> {
        self.live.get_or_init(DashMap::default)
    }

    /// Reserves a handle for an object that must know its own.
    pub fn reserve(&self) -> u64 {
        u64::from(self.tag) << 48 | self.next.fetch_add(1, Ordering::Relaxed) << 4
    }

    /// Makes `object` reachable by a handle that came from [`Handles::reserve`].
    pub fn publish(&self, handle: u64, object: Arc<T>) {
        self.live().insert(handle, object);
    }

    /// Gives `object` a new handle.
    pub fn insert(&self, object: Arc<T>) -> u64 {
        let handle = self.reserve();
        self.publish(handle, object);
        handle
    }

    /// The object behind `handle`, if it is alive and of this table.
    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        if handle >> 48 != u64::from(self.tag) {
            return None;
        }
        self.live().get(&handle).map(|entry| Arc::clone(entry.value()))
    }

    /// Ends the life of `handle` and returns its object.
    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.live().remove(&handle).map(|(_, object)| object)
    }

    /// The handle of a live object.
    pub fn key_of(&self, object: &Arc<T>) -> Option<u64> {
        let live = self.live();
        live.iter()
            .find(|entry| Arc::ptr_eq(entry.value(), object))
            .map(|entry| *entry.key())
    }

    /// Calls `f` with every live object.
    pub fn for_each(&self, mut f: impl FnMut(&T)) {
        self.live().iter().for_each(|entry| f(entry.value()));
    }

    /// As [`Handles::for_each`], with the shared pointer.
    pub fn for_each_arc(&self, mut f: impl FnMut(&Arc<T>)) {
        self.live().iter().for_each(|entry| f(entry.value()));
    }

    /// Removes every object that `dead` names.
    pub fn remove_if(&self, mut dead: impl FnMut(&T) -> bool) {
        self.live().retain(|_, object| !dead(object));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_never_valid_again_after_its_object_is_gone() {
        let table = Handles::new(0x51);
        let first = table.insert(Arc::new(1));
        assert_eq!(table.get(first).as_deref(), Some(&1));
        assert_eq!(table.remove(first).as_deref(), Some(&1));
        let second = table.insert(Arc::new(2));
        assert_ne!(first, second);
        assert!(table.get(first).is_none());
        assert!(table.remove(first).is_none());
    }

    #[test]
    fn foreign_and_made_up_handles_are_unknown() {
        let streams = Handles::new(0x51);
        let events: Handles<()> = Handles::new(0x52);
        let stream = streams.insert(Arc::new(()));
        assert!(events.get(stream).is_none());
        for made_up in [0, 1, 2, 3, 0x1234, u64::MAX, stream + 1, stream + 16] {
            assert!(streams.get(made_up).is_none(), "{made_up:#x}");
        }
    }
}
