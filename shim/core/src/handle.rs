//! Handles that applications hold: numbers, never addresses.
//!
//! CUDA's handle types are pointers to the C compiler, but nobody may look behind them. Ours name a place in a table and the place's
//! turn. A place gets a new turn each time it is used, and is used no more after the last, so no handle is ever given out twice: a
//! destroyed, foreign or made-up handle is recognised and answered with CUDA's error code. NVIDIA's libraries crash there.
//!
//! ```text
//! 63        56 55        48 47        30 29         8 7     4 3  0
//! [    0x00   |    tag     |    turn    |    place   | shelf | 0  ]
//! ```
//!
//! A table has several shelves with a lock each. Threads put new objects on a shelf of their own, so that they do not meet.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::Lock;

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

/// Bits of a handle that say which shelf, which place and whose turn.
const SHELF_BITS: u32 = 4;
const PLACE_BITS: u32 = 22;
const TURN_BITS: u32 = 18;
/// Where they begin.
const SHELF_AT: u32 = 4;
const PLACE_AT: u32 = SHELF_AT + SHELF_BITS;
const TURN_AT: u32 = PLACE_AT + PLACE_BITS;
const TAG_AT: u32 = TURN_AT + TURN_BITS;

const SHELVES: usize = 1 << SHELF_BITS;
const PLACES: usize = 1 << PLACE_BITS;
/// The last turn of a place.
const LAST_TURN: u64 = (1 << TURN_BITS) - 1;

/// A table of live objects of one type.
pub struct Handles<T> {
    tag: u8,
    shelves: [Lock<Shelf<T>>; SHELVES],
}

/// Alone in its cache lines: other threads use the next one.
#[repr(align(64))]
struct Shelf<T> {
    places: Vec<Place<T>>,
    /// Places that nobody has; the last is taken first, since its memory is near.
    free: Vec<u32>,
}

struct Place<T> {
    /// The turn of the handle that names it, or of the last that did. Turns count from 1.
    turn: u64,
    /// None while nobody has the place, or who has it has not published yet.
    object: Option<Arc<T>>,
}

impl<T> Shelf<T> {
    const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Takes a place and begins its next turn; `None` where the shelf is full.
    fn take(&mut self, object: Option<Arc<T>>) -> Option<(u32, u64)> {
        if let Some(number) = self.free.pop() {
            let place = &mut self.places[number as usize];
            place.turn += 1;
            place.object = object;
            return Some((number, place.turn));
        }
        if self.places.len() == PLACES {
            return None;
        }
        self.places.push(Place { turn: 1, object });
        Some((self.places.len() as u32 - 1, 1))
    }

    /// The place that a handle names, while it is that handle's turn.
    fn place(&mut self, handle: u64) -> Option<&mut Place<T>> {
        let place = self.places.get_mut(place_of(handle))?;
        (place.turn == handle >> TURN_AT & LAST_TURN).then_some(place)
    }

    /// Ends the turn of a handle.
    fn vacate(&mut self, handle: u64) -> Option<Arc<T>> {
        let place = self.place(handle)?;
        let object = place.object.take()?;
        if place.turn < LAST_TURN {
            self.free.push(place_of(handle) as u32);
        }
        Some(object)
    }
}

fn place_of(handle: u64) -> usize {
    (handle >> PLACE_AT) as usize & (PLACES - 1)
}

/// The calling thread's shelf.
fn own_shelf() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    OWN.get().unwrap_or_else(|| {
        let own = NEXT.fetch_add(1, Ordering::Relaxed) % SHELVES;
        OWN.set(Some(own));
        own
    })
}

impl<T> Handles<T> {
    /// An empty table whose handles carry `tag`.
    pub const fn new(tag: u8) -> Self {
        Self {
            tag,
            shelves: [const { Lock::new(Shelf::new()) }; SHELVES],
        }
    }

    fn handle(&self, shelf: usize, place: u32, turn: u64) -> u64 {
        u64::from(self.tag) << TAG_AT | turn << TURN_AT | u64::from(place) << PLACE_AT | (shelf as u64) << SHELF_AT
    }

    /// The shelf that a handle of this table names.
    fn shelf(&self, handle: u64) -> Option<&Lock<Shelf<T>>> {
        let ours = handle >> TAG_AT == u64::from(self.tag) && handle & ((1 << SHELF_AT) - 1) == 0;
        ours.then(|| &self.shelves[(handle >> SHELF_AT) as usize % SHELVES])
    }

    fn take(&self, mut object: Option<Arc<T>>) -> u64 {
        let own = own_shelf();
        for step in 0..SHELVES {
            let number = (own + step) % SHELVES;
            let mut shelf = self.shelves[number].lock();
            if shelf.free.is_empty() && shelf.places.len() == PLACES {
                continue;
            }
            if let Some((place, turn)) = shelf.take(object.take()) {
                return self.handle(number, place, turn);
            }
        }
        // 67 million live objects of one kind.
        panic!("no handle is left");
    }

    /// Reserves a handle for an object that must know its own.
    pub fn reserve(&self) -> u64 {
        self.take(None)
    }

    /// Makes `object` reachable by a handle that came from [`Handles::reserve`].
    pub fn publish(&self, handle: u64, object: Arc<T>) {
        if let Some(shelf) = self.shelf(handle)
            && let Some(place) = shelf.lock().place(handle)
        {
            place.object = Some(object);
        }
    }

    /// Gives `object` a new handle.
    pub fn insert(&self, object: Arc<T>) -> u64 {
        self.take(Some(object))
    }

    /// The object behind `handle`, if it is alive and of this table.
    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        self.shelf(handle)?.lock().place(handle)?.object.clone()
    }

    /// Ends the life of `handle` and returns its object.
    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.shelf(handle)?.lock().vacate(handle)
    }

    /// All live objects and their handles. No lock is held while they are looked at.
    fn all(&self) -> Vec<(u64, Arc<T>)> {
        let mut all = Vec::new();
        for (number, shelf) in self.shelves.iter().enumerate() {
            for (at, place) in shelf.lock().places.iter().enumerate() {
                if let Some(object) = &place.object {
                    all.push((self.handle(number, at as u32, place.turn), Arc::clone(object)));
                }
            }
        }
        all
    }

    /// The handle of a live object.
    pub fn key_of(&self, object: &Arc<T>) -> Option<u64> {
        let known = |(handle, live): (u64, Arc<T>)| Arc::ptr_eq(&live, object).then_some(handle);
        self.all().into_iter().find_map(known)
    }

    /// Calls `f` with every live object.
    pub fn for_each(&self, mut f: impl FnMut(&T)) {
        self.for_each_arc(|object| f(object));
    }

    /// As [`Handles::for_each`], with the shared pointer.
    pub fn for_each_arc(&self, mut f: impl FnMut(&Arc<T>)) {
        self.all().iter().for_each(|(_, object)| f(object));
    }

    /// Removes every object that `dead` names.
    pub fn remove_if(&self, mut dead: impl FnMut(&T) -> bool) {
        for (handle, object) in self.all() {
            if dead(&object) {
                self.remove(handle);
            }
        }
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

    #[test]
    fn a_place_is_given_up_after_its_last_turn() {
        let table = Handles::new(0x51);
        let first = table.insert(Arc::new(()));
        let mut last = first;
        for _ in 1..LAST_TURN {
            table.remove(last);
            last = table.insert(Arc::new(()));
        }
        assert_eq!(place_of(first), place_of(last));
        assert_ne!(first, last);
        table.remove(last);
        let next = table.insert(Arc::new(()));
        assert_ne!(place_of(next), place_of(last));
        assert!(table.get(first).is_none() && table.get(last).is_none() && table.get(next).is_some());
    }

    #[test]
    fn threads_find_their_objects_and_nobody_elses() {
        let table = Handles::new(0x51);
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let table = &table;
                scope.spawn(move || {
                    let mut stale = Vec::new();
                    for round in 0..2000 {
                        let handle = table.insert(Arc::new((thread, round)));
                        assert_eq!(table.get(handle).as_deref(), Some(&(thread, round)));
                        assert_eq!(table.remove(handle).as_deref(), Some(&(thread, round)));
                        stale.push(handle);
                    }
                    assert!(stale.iter().all(|&handle| table.get(handle).is_none()));
                });
            }
        });
        assert!(table.all().is_empty());
    }

    #[test]
    fn a_reserved_handle_is_unknown_until_it_is_published() {
        let table = Handles::new(0x51);
        let handle = table.reserve();
        assert!(table.get(handle).is_none() && table.remove(handle).is_none());
        table.publish(handle, Arc::new(7));
        assert_eq!(table.get(handle).as_deref(), Some(&7));
        assert_eq!(table.key_of(&table.get(handle).unwrap()), Some(handle));
        table.remove_if(|&number| number == 7);
        assert!(table.get(handle).is_none());
    }
}
