//! Contexts: one primary context per device, and those that `cuCtxCreate` makes.
//!
//! A context object lives as long as the process, so that a stale handle, or a context still current in another thread, is
//! an error code and never a dangling pointer. Destroying one ends its streams and frees its memory.

use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::Device;
use super::limits::Settings;
use crate::abi::{CUcontext, Error, Result};
use crate::hsa::fault;
use crate::stream::ContextStreams;
use crate::thread_state::ThreadState;

/// Flags that `cuCtxCreate` and `cuDevicePrimaryCtxSetFlags` accept: scheduling, map host, local memory, core dumps, sync memops.
const FLAGS_MASK: u32 = 0xff;
/// Scheduling bits; more than one of them set is invalid.
const SCHED_MASK: u32 = 0x07;
/// `CU_CTX_MAP_HOST`: always on, and reported by `cuCtxGetFlags`.
pub const MAP_HOST: u32 = 0x08;

/// Life of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Life {
    /// A primary context that nobody retains, or one that was destroyed.
    Inactive = 0,
    Active = 1,
}

/// A context.
pub struct Context {
    /// Where its work runs.
    pub device: &'static Device,
    /// `cuCtxGetId`: unique in the process, never 0.
    pub id: u64,
    /// Whether it is the device's primary context.
    pub primary: bool,
    /// Position in the table of contexts, which its handle names.
    slot: usize,
    life: AtomicU8,
    flags: AtomicU32,
    /// The error that every later call returns; 0 while there is none.
    failure: AtomicI32,
    /// Uses that `cuCtxAttach` counts.
    usage: AtomicU32,
    streams: AtomicPtr<ContextStreams>,
    /// How often the context was activated: what was made in an earlier activation is gone.
    epoch: AtomicU64,
    /// Devices (as bits) that `cuCtxEnablePeerAccess` opened to this context's kernels.
    pub(crate) peers: AtomicU64,
    /// Limits and cache preferences.
    pub settings: Mutex<Settings>,
}

/// Every context ever made, by slot.
static CONTEXTS: RwLock<Vec<&'static Context>> = RwLock::new(Vec::new());

/// Handles are numbers that no program takes for an address it owns: this tag, and the slot in steps of 16.
const HANDLE_TAG: usize = 0x5247_0000_0000_0000 >> 8;

thread_local! {
    static STACK: ThreadState<Vec<&'static Context>> = const { ThreadState::new(Vec::new()) };
    static DEVICE: Cell<Option<i32>> = const { Cell::new(None) };
}

/// The device of threads that chose none.
static DEFAULT_DEVICE: AtomicI32 = AtomicI32::new(0);

impl Context {
    fn new(device: &'static Device, primary: bool, flags: u32) -> &'static Self {
        let mut contexts = CONTEXTS.write().unwrap_or_else(PoisonError::into_inner);
        let slot = contexts.len();
        let context: &'static Self = Box::leak(Box::new(Self {
            device,
            id: slot as u64 + 1,
            primary,
            slot,
            life: AtomicU8::new(Life::Inactive as u8),
            flags: AtomicU32::new(flags),
            failure: AtomicI32::new(0),
            usage: AtomicU32::new(1),
            streams: AtomicPtr::new(core::ptr::null_mut()),
            epoch: AtomicU64::new(0),
            peers: AtomicU64::new(0),
            settings: Mutex::new(Settings::default()),
        }));
        contexts.push(context);
        context
    }

    /// A context for tests that need an owner and no device.
    #[cfg(test)]
    pub(crate) fn for_tests() -> &'static Self {
        static CONTEXT: OnceLock<&'static Context> = OnceLock::new();
        CONTEXT.get_or_init(|| Self::new(Device::for_tests(), false, 0))
    }

    /// The context of a handle, whether it still lives or not. [`Error::INVALID_VALUE`] for NULL,
    /// [`Error::DEVICE_UNINITIALIZED`] (`CUDA_ERROR_INVALID_CONTEXT`) for a handle that was never one.
    pub fn from_handle(handle: CUcontext) -> Result<&'static Self> {
        if handle.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let offset = handle.addr().wrapping_sub(HANDLE_TAG);
        let contexts = CONTEXTS.read().unwrap_or_else(PoisonError::into_inner);
        match contexts.get(offset / 16) {
            Some(context) if offset.is_multiple_of(16) => Ok(context),
            _ => Err(Error::DEVICE_UNINITIALIZED),
        }
    }

    /// Its device's ordinal.
    pub fn ordinal(&self) -> i32 {
        self.device.ordinal
    }

    /// What clients hold.
    pub fn handle(&self) -> CUcontext {
        core::ptr::without_provenance_mut(HANDLE_TAG + self.slot * 16)
    }

    /// Whether it can be used: created and not destroyed; for a primary context, retained.
    pub fn is_active(&self) -> bool {
        self.life.load(Ordering::Acquire) == Life::Active as u8
    }

    /// The streams of the current activation; [`Error::CONTEXT_IS_DESTROYED`] when it is not active.
    pub fn streams(&self) -> Result<&'static ContextStreams> {
        // SAFETY: NULL, or a leaked object.
        unsafe { self.streams.load(Ordering::Acquire).as_ref() }.ok_or(Error::CONTEXT_IS_DESTROYED)
    }

    /// The error that calls on this context must return, if any: destroyed, or a device fault.
    pub fn check(&self) -> Result<()> {
        if !self.is_active() {
            return Err(Error::CONTEXT_IS_DESTROYED);
        }
        match self.failure.load(Ordering::Acquire) {
            0 => fault::check(),
            code => Err(Error(code)),
        }
    }

    /// Makes `error` what every later call on this context, and on any other of the process, returns. The first one stays.
    pub fn fail(&self, error: Error) {
        if self
            .failure
            .compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            log::error!(
                "{:?} failed with {error:?}; the process cannot use CUDA any more",
                self.device
            );
        }
        fault::raise(error);
    }

    /// Waits until all work of the context is done.
    pub fn synchronize(&self) -> Result<()> {
        self.check()?;
        let result = self.streams()?.synchronize();
        self.check()?;
        result
    }

    /// Flags as `cuCtxGetFlags` reports them.
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Replaces the flags; [`Error::INVALID_VALUE`] for bits or combinations that CUDA does not know.
    pub fn set_flags(&self, flags: u32) -> Result<()> {
        self.flags.store(checked_flags(flags)?, Ordering::Relaxed);
        Ok(())
    }

    /// Limits and cache preferences, locked.
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn activate(&self) {
        let streams = Box::leak(Box::new(ContextStreams::new(self.device)));
        self.streams.store(streams, Ordering::Release);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.life.store(Life::Active as u8, Ordering::Release);
        log::debug!("{:?}: context {} is active", self.device, self.id);
    }

    /// Ends the activation: from here on the context is destroyed. What it leaves is given back by [`Ended::finish`], for which
    /// no lock may be held.
    fn end(&'static self) -> Option<Ended> {
        if self.life.swap(Life::Inactive as u8, Ordering::AcqRel) != Life::Active as u8 {
            return None;
        }
        let streams = self.streams.swap(core::ptr::null_mut(), Ordering::AcqRel);
        self.peers.store(0, Ordering::Release);
        self.failure.store(0, Ordering::Release);
        *self.settings() = Settings::default();
        log::debug!("{:?}: context {} has ended", self.device, self.id);
        Some(Ended {
            context: self,
            // SAFETY: NULL, or a leaked object: threads that still hold it find an empty set of streams after its shutdown.
            streams: unsafe { streams.as_ref() },
            memory: crate::memory::take_all(self),
            arrays: crate::memory::array::take_all(self),
            objects: crate::memory::texture::take_all(self),
        })
    }
}

/// What an ended activation leaves behind.
struct Ended {
    context: &'static Context,
    streams: Option<&'static ContextStreams>,
    memory: Vec<crate::memory::Entry>,
    arrays: crate::memory::array::Ended,
    objects: crate::memory::texture::Ended,
}

impl Ended {
    /// Waits for kernels that still run, as `cudaDeviceReset` does, ends the streams and frees the memory. ROCr then runs
    /// other libraries' callbacks, which may call us.
    fn finish(self) {
        if let Some(streams) = self.streams {
            streams.shutdown();
        }
        crate::memory::release_all(&self.memory);
        drop(self.arrays);
        drop(self.objects);
        if self.context.primary {
            crate::memory::pool::device_ended(self.context.device);
        }
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.slot == other.slot
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "context {} of {:?}", self.id, self.device)
    }
}

fn checked_flags(flags: u32) -> Result<u32> {
    if flags & !FLAGS_MASK != 0 || (flags & SCHED_MASK).count_ones() > 1 {
        return Err(Error::INVALID_VALUE);
    }
    Ok(flags)
}

/// A device's primary context and who retains it.
#[derive(Default)]
pub(crate) struct Primary {
    context: OnceLock<&'static Context>,
    state: Mutex<PrimaryState>,
}

#[derive(Default)]
struct PrimaryState {
    /// Retains of the driver API.
    retains: u32,
    /// Whether the runtime API holds it; it does so once, until a reset.
    runtime: bool,
    /// Whether the runtime API ended it itself (`cudaDeviceReset`) and has not used it since.
    ended_by_runtime: bool,
}

impl Primary {
    pub(super) fn context(&self, device: &'static Device) -> &'static Context {
        self.context.get_or_init(|| Context::new(device, true, 0))
    }

    fn lock(&self) -> MutexGuard<'_, PrimaryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `cuDevicePrimaryCtxRetain`.
pub fn retain_primary(device: &'static Device) -> Result<&'static Context> {
    let mut state = device.primary.lock();
    let context = device.primary_context();
    fault::check()?;
    if !context.is_active() {
        context.activate();
    }
    state.retains += 1;
    Ok(context)
}

/// `cuDevicePrimaryCtxRelease`: the last release ends the context. [`Error::DEVICE_UNINITIALIZED`] when nobody retains it.
pub fn release_primary(device: &'static Device) -> Result<()> {
    let mut state = device.primary.lock();
    if state.retains == 0 {
        if !state.runtime {
            return Err(Error::DEVICE_UNINITIALIZED);
        }
        state.runtime = false;
    } else {
        state.retains -= 1;
    }
    let last = state.retains == 0 && !state.runtime;
    let ended = if last { device.primary_context().end() } else { None };
    drop(state);
    if let Some(ended) = ended {
        ended.finish();
    }
    Ok(())
}

/// `cuDevicePrimaryCtxReset`, and `cudaDeviceReset` where `runtime` says so: ends the context whoever retains it. The object,
/// and so the handle, stays.
pub fn reset_primary(device: &'static Device, runtime: bool) {
    let mut state = device.primary.lock();
    *state = PrimaryState {
        ended_by_runtime: runtime,
        ..PrimaryState::default()
    };
    let ended = device.primary_context().end();
    drop(state);
    if let Some(ended) = ended {
        ended.finish();
    }
}

/// `cudaInitDevice`: activates the primary context for the runtime without making it current.
pub fn runtime_primary(device: &'static Device) -> Result<&'static Context> {
    let context = device.primary_context();
    if context.is_active() && device.primary.lock().runtime {
        return context.check().map(|()| context);
    }
    let mut state = device.primary.lock();
    if !context.is_active() {
        // After a fault NVIDIA's runtime finds no device to make a context on; a thread without a current context that comes
        // after a cudaDeviceReset gets the fault itself, since nothing needs to be made anew (both recorded).
        let anew = peek().is_some() || !state.ended_by_runtime;
        fault::check().map_err(|fault| if anew { Error::DEVICES_UNAVAILABLE } else { fault })?;
        context.activate();
    }
    state.runtime = true;
    state.ended_by_runtime = false;
    // NVIDIA's runtime counts the devices when it starts, and then answers with the number in forked children, too.
    crate::fork::note_count_asked();
    context.check().map(|()| context)
}

/// `cuCtxCreate`: the new context becomes current. [`Error::INVALID_VALUE`] for flags that CUDA does not know.
pub fn create(device: &'static Device, flags: u32) -> Result<&'static Context> {
    let flags = checked_flags(flags)?;
    fault::check()?;
    let context = Context::new(device, false, flags);
    context.activate();
    push(context);
    Ok(context)
}

/// `cuCtxDestroy`: also takes the context off the calling thread's stack if it is on top; other threads keep a dead one.
pub fn destroy(context: &'static Context) -> Result<()> {
    if context.primary {
        return Err(Error::DEVICE_UNINITIALIZED);
    }
    // Of two threads that destroy it, one does.
    context.end().ok_or(Error::CONTEXT_IS_DESTROYED)?.finish();
    ThreadState::change(&STACK, |stack| stack.pop_if(|top| **top == *context));
    Ok(())
}

/// The active context whose [`ContextStreams::id`] is `id`.
pub fn of_streams(id: u64) -> Option<&'static Context> {
    let contexts = CONTEXTS.read().unwrap_or_else(PoisonError::into_inner);
    contexts
        .iter()
        .copied()
        .find(|context| context.streams().is_ok_and(|streams| streams.id() == id))
}

/// `cuCtxAttach`: one more use.
pub fn attach(context: &'static Context) -> Result<()> {
    context.usage.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// `cuCtxDetach`: one use less; the last one destroys it.
pub fn detach(context: &'static Context) -> Result<()> {
    if context.usage.fetch_sub(1, Ordering::AcqRel) == 1 {
        destroy(context)
    } else {
        Ok(())
    }
}

/// `cuCtxPushCurrent`.
pub fn push(context: &'static Context) {
    ThreadState::change(&STACK, |stack| stack.push(context));
}

/// `cuCtxPopCurrent`; [`Error::DEVICE_UNINITIALIZED`] when the stack is empty.
pub fn pop() -> Result<&'static Context> {
    ThreadState::change(&STACK, Vec::pop).ok_or(Error::DEVICE_UNINITIALIZED)
}

/// `cuCtxSetCurrent`: replaces the top of the stack; `None` takes it off.
pub fn set_current(context: Option<&'static Context>) {
    ThreadState::change(&STACK, |stack| {
        stack.pop();
        stack.extend(context);
    });
}

/// The calling thread's current context, dead or alive; `None` when there is none.
#[inline]
pub fn peek() -> Option<&'static Context> {
    ThreadState::look(&STACK, |stack| stack.last().copied())
}

/// The calling thread's current context, for driver calls. [`Error::INITIALIZATION_ERROR`] before `cuInit`,
/// [`Error::DEVICE_UNINITIALIZED`] (`CUDA_ERROR_INVALID_CONTEXT`) when none is current, [`Error::CONTEXT_IS_DESTROYED`], or the
/// fault that the context met.
pub fn current() -> Result<&'static Context> {
    super::initialized()?;
    let context = peek().ok_or(Error::DEVICE_UNINITIALIZED)?;
    context.check()?;
    Ok(context)
}

/// What calls need that name an object of some context, a stream or an event, say: no context has to be current (recorded); one
/// that is must be usable.
pub fn usable() -> Result<()> {
    super::initialized()?;
    peek().map_or_else(fault::check, Context::check)
}

/// The current context for runtime calls: initialises the driver, and makes the primary context of the thread's device current
/// when none is.
pub fn runtime_current() -> Result<&'static Context> {
    if let Some(context) = peek() {
        if context.is_active() || !context.primary {
            context.check()?;
            return Ok(context);
        }
        // A primary context that was reset or released comes back at the next runtime call.
        return runtime_primary(context.device);
    }
    super::init()?;
    let context = runtime_primary(super::get(runtime_device())?)?;
    push(context);
    Ok(context)
}

/// `cudaGetDevice`: the current context's device, else the one that `cudaSetDevice` chose, else the default.
pub fn runtime_device() -> i32 {
    let chosen = || DEVICE.get().unwrap_or_else(|| DEFAULT_DEVICE.load(Ordering::Relaxed));
    peek().map_or_else(chosen, |context| context.device.ordinal)
}

/// `cudaSetValidDevices`: the device of threads that choose none.
pub fn set_default_device(ordinal: i32) {
    DEFAULT_DEVICE.store(ordinal, Ordering::Relaxed);
}

/// `cudaSetDevice`: activates the device's primary context and makes it current.
pub fn set_runtime_device(device: &'static Device) -> Result<()> {
    let primary = device.primary_context();
    // As recorded, an active context can be chosen even after a fault; the next call that uses it reports that.
    let context = if primary.is_active() && fault::check().is_err() {
        primary
    } else {
        runtime_primary(device)?
    };
    DEVICE.set(Some(device.ordinal));
    set_current(Some(context));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_checked_as_recorded() {
        for good in [0, 1, 2, 4, 8, 12, 0x10, 0x80, 0x88] {
            assert_eq!(checked_flags(good), Ok(good));
        }
        for bad in [3, 5, 7, 0x100, 0x1000] {
            assert_eq!(checked_flags(bad), Err(Error::INVALID_VALUE), "{bad:#x}");
        }
    }

    #[test]
    fn a_handle_that_was_never_one_is_an_error() {
        assert_eq!(
            Context::from_handle(core::ptr::null_mut()).err(),
            Some(Error::INVALID_VALUE)
        );
        for address in [1, 8, 0x1234_5678, HANDLE_TAG + 1, HANDLE_TAG + 16 * 100_000, usize::MAX] {
            let handle = core::ptr::without_provenance_mut(address);
            assert_eq!(
                Context::from_handle(handle).err(),
                Some(Error::DEVICE_UNINITIALIZED),
                "{address:#x}"
            );
        }
    }

    #[test]
    fn a_thread_starts_without_a_context() {
        assert!(peek().is_none());
        assert_eq!(pop().err(), Some(Error::DEVICE_UNINITIALIZED));
        set_current(None);
        assert_eq!(runtime_device(), 0);
    }
}
