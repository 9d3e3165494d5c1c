//! Streams, events, copies, callbacks.

pub mod attributes;
pub mod callback;
pub mod command;
pub mod completion;
pub mod copy;
pub mod event;
pub mod fill;
pub mod ipc_event;
pub mod kernels;
pub mod locate;
pub mod memop;
mod proxy;
pub mod ring;
pub mod spans;
pub mod staging;
#[allow(clippy::module_inception)]
mod stream;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use completion::Resources;
pub use event::Event;
use stream::Progress;
pub use stream::{Branches, Kind, Stream};

use crate::abi::{Error, Result};
use crate::attention;
use crate::config;
use crate::device::Device;
use crate::graph::capture;
use crate::handle::Handles;
use crate::hsa::fault;
use crate::module::launch::Launched;
use crate::thread_state::ThreadState;

/// `CU_STREAM_LEGACY`.
pub const LEGACY: u64 = 1;
/// `CU_STREAM_PER_THREAD`.
pub const PER_THREAD: u64 = 2;
/// The highest priority, as a number the lowest.
pub const GREATEST_PRIORITY: i32 = -5;

static STREAMS: Handles<Stream> = Handles::new(0x51);
static EVENTS: Handles<Event> = Handles::new(0x52);

/// Which stream the handle 0 means: `_ptsz` and `_ptds` functions mean the thread's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultStream {
    /// The legacy default stream.
    Legacy,
    /// The calling thread's default stream.
    PerThread,
}

/// Stream ids count through the process. NVIDIA's first legacy stream is 7, so ours are told apart from small handles too.
static NEXT_STREAM_ID: AtomicU64 = AtomicU64::new(7);
static NEXT_CONTEXT_ID: AtomicU64 = AtomicU64::new(1);

/// What runs at every synchronisation.
static ON_SYNCHRONIZE: OnceLock<fn()> = OnceLock::new();

/// Sets what runs whenever the host has waited for a GPU: the output of `printf` appears then. The first one stays.
pub fn on_synchronize(f: fn()) {
    let _ = ON_SYNCHRONIZE.set(f);
}

/// The host has waited for a GPU.
fn synchronized() {
    crate::memory::pool::release_excess();
    if let Some(f) = ON_SYNCHRONIZE.get() {
        f();
    }
}

/// What the streams of one context share.
pub struct Shared {
    id: u64,
    device: &'static Device,
    rings: OnceLock<&'static ring::RingSet>,
    /// All streams, and destroyed ones until their work has ended. The legacy stream comes first.
    streams: Mutex<Vec<Arc<Stream>>>,
    legacy: OnceLock<Arc<Stream>>,
    progress: Arc<Progress>,
    /// The context ends: parked operations are dropped.
    cancelled: AtomicBool,
}

/// The streams of all contexts.
static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// What `name` makes of the kernels that run now, or run next, in all streams of the process.
pub fn running<T>(name: impl Fn(&Launched) -> T) -> Vec<T> {
    let contexts: Vec<Arc<Shared>> = {
        let all = ALL.lock().unwrap_or_else(|e| e.into_inner());
        all.iter().filter_map(Weak::upgrade).collect()
    };
    let mut found = Vec::new();
    for stream in contexts.iter().flat_map(|context| context.streams()) {
        stream.visit_running(|resources| match resources {
            Resources::Launch(launched) => found.push(name(launched)),
            Resources::Own { .. } | Resources::Other(_) => {}
        });
    }
    found
}

impl Shared {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn streams(&self) -> Vec<Arc<Stream>> {
        self.streams.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn legacy(&self) -> Option<&Arc<Stream>> {
        self.legacy.get().filter(|legacy| !legacy.is_destroyed())
    }

    fn rings(&self) -> Result<&'static ring::RingSet> {
        Ok(*self
            .rings
            .get_or_init(|| ring::of(self.device.agent, *config::QUEUES.get())))
    }

    fn add(self: &Arc<Self>, kind: Kind, priority: i32) -> Arc<Stream> {
        let stream = Stream::new(NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed), kind, priority, self);
        let mut streams = self.streams.lock().unwrap_or_else(|e| e.into_inner());
        streams.retain(|stream| !stream.is_gone());
        streams.push(Arc::clone(&stream));
        stream
    }
}

/// A stream of the runtime's own. It ends with this, as an application's does with its handle: its context keeps it until its work
/// has ended. Marked as destroyed before, it could be taken for one whose work has.
pub struct Internal(Arc<Stream>);

impl std::ops::Deref for Internal {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.0
    }
}

impl Drop for Internal {
    fn drop(&mut self) {
        self.0.mark_destroyed();
    }
}

/// The streams of one context.
pub struct ContextStreams {
    shared: Arc<Shared>,
}

impl ContextStreams {
    /// The streams of a new context on `device`: the legacy default stream, idle.
    pub fn new(device: &'static Device) -> Self {
        let shared = Arc::new(Shared {
            id: NEXT_CONTEXT_ID.fetch_add(1, Ordering::Relaxed),
            device,
            rings: OnceLock::new(),
            streams: Mutex::new(Vec::new()),
            legacy: OnceLock::new(),
            progress: Arc::default(),
            cancelled: AtomicBool::new(false),
        });
        {
            let mut all = ALL.lock().unwrap_or_else(|e| e.into_inner());
            all.retain(|context| context.strong_count() > 0);
            all.push(Arc::downgrade(&shared));
        }
        let legacy = shared.add(Kind::Legacy, 0);
        let _ = shared.legacy.set(legacy);
        Self { shared }
    }

    /// Identifies the context among all of the process.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Waits for all work of the context, that of destroyed streams too.
    ///
    /// # Errors
    /// The process's fault.
    pub fn synchronize(&self) -> Result<()> {
        fault::check()?;
        // Each stream answers for itself here, so what the legacy stream would add is asked for anyway.
        let busy: Vec<_> = {
            let streams = self.shared.streams.lock().unwrap_or_else(|e| e.into_inner());
            streams.iter().filter(|stream| !stream.is_quiet()).cloned().collect()
        };
        if busy.is_empty() {
            synchronized();
            return fault::check();
        }
        for stream in busy {
            stream.synchronize()?;
        }
        self.shared
            .streams
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .retain(|stream| !stream.is_gone());
        fault::check()
    }

    /// The legacy default stream.
    ///
    /// # Errors
    /// CONTEXT_IS_DESTROYED.
    pub fn legacy(&self) -> Result<Arc<Stream>> {
        self.shared.legacy().cloned().ok_or(Error::CONTEXT_IS_DESTROYED)
    }

    /// A new stream for the runtime's own use: without a handle, and without a relation to the application's streams.
    pub fn internal(&self) -> Internal {
        Internal(self.shared.add(Kind::NonBlocking, 0))
    }

    /// The calling thread's default stream in this context.
    pub fn per_thread(&self) -> Arc<Stream> {
        ThreadState::change(&MINE, |mine| {
            if let Some(own) = mine.iter().find(|own| own.context == self.shared.id) {
                return Arc::clone(&own.stream);
            }
            let stream = self.shared.add(Kind::PerThread, 0);
            mine.push(PerThread {
                context: self.shared.id,
                stream: Arc::clone(&stream),
            });
            stream
        })
    }

    /// The default stream that `default` names.
    ///
    /// # Errors
    /// CONTEXT_IS_DESTROYED.
    pub fn default(&self, default: DefaultStream) -> Result<Arc<Stream>> {
        match default {
            DefaultStream::Legacy => self.legacy(),
            DefaultStream::PerThread => Ok(self.per_thread()),
        }
    }

    /// The stream behind a handle: 0 is `default`, 1 and 2 the default streams by name, others may be of any context.
    ///
    /// # Errors
    /// INVALID_RESOURCE_HANDLE for a destroyed or foreign handle.
    pub fn resolve(&self, handle: u64, default: DefaultStream) -> Result<Arc<Stream>> {
        match handle {
            0 => self.default(default),
            LEGACY => self.legacy(),
            PER_THREAD => Ok(self.per_thread()),
            handle => find(handle),
        }
    }

    /// Calls `f` with the stream behind a handle, as [`ContextStreams::resolve`] would find it.
    ///
    /// # Errors
    /// Those of [`ContextStreams::resolve`] and of `f`.
    pub fn with<T>(&self, handle: u64, default: DefaultStream, f: impl FnOnce(&Arc<Stream>) -> Result<T>) -> Result<T> {
        if handle == LEGACY || handle == 0 && default == DefaultStream::Legacy {
            return f(self.shared.legacy().ok_or(Error::CONTEXT_IS_DESTROYED)?);
        }
        let mut f = Some(f);
        let known = LAST.try_with(|last| {
            let last = last.borrow();
            let (_, stream) = last
                .as_ref()
                .filter(|(last, stream)| *last == handle && !stream.is_destroyed())?;
            f.take().map(|f| f(stream))
        });
        if let Ok(Some(result)) = known {
            return result;
        }
        let stream = self.resolve(handle, default)?;
        f.take().map_or(Err(Error::UNKNOWN), |f| f(&stream))
    }

    /// Creates a stream; priorities out of range are clamped.
    pub fn create(&self, non_blocking: bool, priority: i32) -> u64 {
        let kind = if non_blocking {
            Kind::NonBlocking
        } else {
            Kind::Blocking
        };
        STREAMS.insert(self.shared.add(kind, priority.clamp(GREATEST_PRIORITY, 0)))
    }

    /// Creates an event.
    ///
    /// # Errors
    /// As [`Event::new`].
    pub fn create_event(&self, flags: u32) -> Result<u64> {
        Ok(EVENTS.insert(Event::new(flags, self.shared.id)?))
    }

    /// Opens an event of another process.
    ///
    /// # Errors
    /// As [`ipc_event::Slot::open`].
    pub fn open_event(&self, handle: &[u8; ipc_event::HANDLE_SIZE]) -> Result<u64> {
        let slot = ipc_event::Slot::open(handle)?;
        Ok(EVENTS.insert(Arc::new(Event::of_process(slot, self.shared.id))))
    }
}

impl ContextStreams {
    /// Waits for all work that is on its way, drops what still waits for a value in memory, and ends the streams' and events'
    /// handles.
    pub fn shutdown(&self) {
        capture::context_ended(self.shared.id);
        self.shared.cancelled.store(true, Ordering::Release);
        if let Err(error) = self.synchronize() {
            log::debug!("a context ends with {error:?}");
        }
        crate::module::context_ended(self.shared.id);
        STREAMS.remove_if(|stream| {
            let ours = stream.owner() == self.shared.id;
            if ours {
                stream.mark_destroyed();
            }
            ours
        });
        EVENTS.for_each(|event| {
            if event.owner() == self.shared.id {
                event.orphan();
            }
        });
        let streams = std::mem::take(&mut *self.shared.streams.lock().unwrap_or_else(|e| e.into_inner()));
        for stream in streams {
            stream.mark_destroyed();
            if !stream.is_gone() {
                // A GPU that met a fault may still read arguments and staging memory.
                std::mem::forget(stream);
            }
        }
    }
}

/// The stream behind a handle that names one. Threads use the same stream many times in a row, so each remembers its last.
fn find(handle: u64) -> Result<Arc<Stream>> {
    let known = |last: &RefCell<Option<(u64, Arc<Stream>)>>| {
        let last = last.borrow();
        let (_, stream) = last.as_ref().filter(|(last, _)| *last == handle)?;
        // Handles are given out once, and every way to end one marks the stream.
        (!stream.is_destroyed()).then(|| Arc::clone(stream))
    };
    if let Ok(Some(stream)) = LAST.try_with(known) {
        return Ok(stream);
    }
    let stream = STREAMS.get(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)?;
    // Not while it is borrowed, by a call further out.
    let _ = LAST.try_with(|last| {
        last.try_borrow_mut()
            .map(|mut last| last.replace((handle, Arc::clone(&stream))))
    });
    Ok(stream)
}

/// The stream behind a handle for a thread without a current context, where handles of default streams mean nothing (recorded).
///
/// # Errors
/// DEVICE_UNINITIALIZED (`CUDA_ERROR_INVALID_CONTEXT`) for a default stream, else as [`ContextStreams::resolve`].
pub fn named(handle: u64) -> Result<Arc<Stream>> {
    match handle {
        0 | LEGACY | PER_THREAD => Err(Error::DEVICE_UNINITIALIZED),
        handle => find(handle),
    }
}

/// Whether the stream behind a handle is known to have done everything, and nothing else is to be said: as far as that shows without a
/// look at the device, and at streams that the calling thread did not use last.
#[inline]
pub fn is_known_done(handle: u64) -> bool {
    let known = |last: &RefCell<Option<(u64, Arc<Stream>)>>| {
        last.borrow()
            .as_ref()
            .is_some_and(|(last, stream)| *last == handle && !stream.is_destroyed() && stream.is_known_done())
    };
    attention::load() == 0 && fault::current().is_none() && LAST.try_with(known).unwrap_or(false)
}

/// Destroys a stream: its handle ends now, its work goes on.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for a default, destroyed or foreign handle.
pub fn destroy(handle: u64) -> Result<()> {
    let stream = STREAMS.remove(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)?;
    capture::stream_destroyed(&stream);
    attributes::forget(&stream);
    stream.mark_destroyed();
    Ok(())
}

/// The event behind a handle.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for a destroyed or foreign handle.
pub fn event(handle: u64) -> Result<Arc<Event>> {
    EVENTS.get(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)
}

/// Calls `f` with the event behind a handle. Threads ask about the same event many times in a row, so each remembers its last.
///
/// # Errors
/// As [`event`], and those of `f`.
pub fn with_event<T>(handle: u64, f: impl FnOnce(&Event) -> Result<T>) -> Result<T> {
    let mut f = Some(f);
    let known = LAST_EVENT.try_with(|last| {
        let last = last.borrow();
        let (_, event) = last
            .as_ref()
            .filter(|(last, event)| *last == handle && !event.is_destroyed())?;
        f.take().map(|f| f(event))
    });
    if let Ok(Some(result)) = known {
        return result;
    }
    let event = event(handle)?;
    let result = f.take().map_or(Err(Error::UNKNOWN), |f| f(&event));
    if event.is_of_one_process() {
        let _ = LAST_EVENT.try_with(|last| last.try_borrow_mut().map(|mut last| last.replace((handle, event))));
    }
    result
}

/// The bytes that another process opens an event with.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for an event that is not interprocess, or no event.
pub fn export_event(handle: u64) -> Result<[u8; ipc_event::HANDLE_SIZE]> {
    event(handle)?.export()
}

/// Destroys an event; a record on its way goes on.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE for a destroyed or foreign handle.
pub fn destroy_event(handle: u64) -> Result<()> {
    let event = EVENTS.remove(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)?;
    Event::end(event);
    Ok(())
}

/// A thread's default stream in one context.
struct PerThread {
    context: u64,
    stream: Arc<Stream>,
}

impl Drop for PerThread {
    fn drop(&mut self) {
        self.stream.mark_destroyed();
    }
}

thread_local! {
    static LAST_EVENT: RefCell<Option<(u64, Arc<Event>)>> = const { RefCell::new(None) };
    static LAST: RefCell<Option<(u64, Arc<Stream>)>> = const { RefCell::new(None) };
    static MINE: ThreadState<Vec<PerThread>> = const { ThreadState::new(Vec::new()) };
}
