//! User objects: things of the application's that live as long as the graphs which use them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::USER_OBJECTS;

/// An object of the application's with a count of references.
pub struct UserObject {
    handle: u64,
    references: AtomicU64,
    /// Destroys the object; runs on a thread of its own, as the only destructors that CUDA allows expect.
    destroy: Arc<dyn Fn() + Send + Sync>,
}

impl UserObject {
    /// An object with `references` references, all the caller's; `destroy` is called once, when none is left.
    pub fn create(references: u32, destroy: impl Fn() + Send + Sync + 'static) -> u64 {
        let handle = USER_OBJECTS.reserve();
        USER_OBJECTS.publish(
            handle,
            Arc::new(Self {
                handle,
                references: AtomicU64::new(references.into()),
                destroy: Arc::new(destroy),
            }),
        );
        handle
    }

    /// Adds references.
    pub fn retain(&self, count: u32) {
        self.references.fetch_add(count.into(), Ordering::AcqRel);
    }

    /// Gives references back; more than there are destroy the object once.
    pub fn release(&self, count: u32) {
        let before = self
            .references
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                Some(n.saturating_sub(count.into()))
            })
            .unwrap_or(0);
        if before == 0 || before > count.into() {
            return;
        }
        USER_OBJECTS.remove(self.handle);
        let destroy = Arc::clone(&self.destroy);
        let thread = std::thread::Builder::new().name("regauge-destroy".into());
        if let Err(error) = thread.spawn(move || destroy()) {
            log::error!("cannot start a thread to destroy a user object: {error}");
        }
    }
}

/// References of an executable graph, given back when it and its launches have ended.
pub(super) struct Held(pub Vec<Arc<UserObject>>);

impl Drop for Held {
    fn drop(&mut self) {
        for object in &self.0 {
            object.release(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_reference_destroys_once() {
        let (sender, destroyed) = mpsc::channel();
        let handle = UserObject::create(2, move || sender.send(()).unwrap());
        let object = super::super::user_object(handle).unwrap();
        object.retain(1);
        object.release(2);
        assert!(destroyed.recv_timeout(Duration::from_millis(50)).is_err());
        object.release(1);
        destroyed.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(super::super::user_object(handle).is_err());
        object.release(1);
        assert!(destroyed.recv_timeout(Duration::from_millis(50)).is_err());
    }
}
