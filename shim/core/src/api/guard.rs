//! What surrounds every API call: panics, forked children, exit, host callbacks, tracing, the last error.
//!
//! The usual call pays a few loads: the word of [`attention`] is zero unless something is out of the ordinary.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::driver::entry_point;
use crate::abi::{Error, Result};
use crate::attention::{self, CALLBACK, CAPTURING, EXITING, FIRST_CALL, FORKED, TRACING};
use crate::graph::capture;
use crate::{config, device, exit, fork, memory};

thread_local! {
    static LAST_ERROR: Cell<i32> = const { Cell::new(0) };
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Whether a call may be answered without all that follows here: nothing is out of the ordinary, and the driver has started and sees
/// one device.
#[inline(always)]
pub fn is_plain() -> bool {
    attention::is_plain()
}

/// Runs the body of a driver API call.
#[inline]
pub fn driver(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    if attention::is_patched() {
        memory::host_access::close();
    }
    let mut start = None;
    if attention::load() != 0 {
        if let Some(code) = closer_look(name) {
            return code;
        }
        start = (attention::load() & TRACING != 0).then(Instant::now);
    }
    let code = code(name, body);
    if let Some(start) = start {
        trace_end(name, code, start);
    }
    code
}

/// Runs the body of a runtime API call and keeps the thread's last error (`NotReady` never becomes it).
#[inline]
pub fn runtime(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    let code = driver(name, body);
    if code != 0 && code != Error::NOT_READY.0 {
        set_last_error(Error(code));
    }
    code
}

/// Runs the body of a call that returns no error code (`__cudaRegisterFatBinary`); `refused` is what it returns in a forked
/// child, during exit and after a panic.
pub fn plain<T>(name: &'static str, refused: T, body: impl FnOnce() -> T) -> T {
    let mut answer = None;
    driver(name, || {
        answer = Some(body());
        Ok(())
    });
    answer.unwrap_or(refused)
}

/// Runs `body` and makes a code of what it returns, or of its panic.
#[inline]
fn code(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    #[cfg(feature = "panic-injection")]
    let body = || {
        assert!(
            std::env::var_os("REGAUGE_PANIC_IN").is_none_or(|wanted| wanted != name),
            "injected into {name}"
        );
        body()
    };
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(Error(code))) => code,
        Err(_) => panicked(name),
    }
}

/// After a panic: the state of the context is unknown, so every later call that uses it must fail.
#[cold]
fn panicked(name: &'static str) -> i32 {
    // Logging or marking may panic as well; the call still has to return.
    let _ = catch_unwind(|| {
        log::error!(
            "{name}: internal error (a panic, see above); the context is marked failed and the call returns 999"
        );
        if let Some(context) = device::context::peek() {
            context.fail(Error::UNKNOWN);
        }
    });
    Error::UNKNOWN.0
}

/// The code with which a call must return at once, if any.
#[cold]
fn closer_look(name: &'static str) -> Option<i32> {
    let word = attention::load();
    if word & EXITING != 0 {
        let answers = ANSWER_AT_EXIT.contains(&name) || (name == "cudaGetDeviceCount" && fork::count_asked());
        return (!answers).then_some(Error::CUDART_UNLOADING.0);
    }
    if word & FORKED != 0 {
        let answers = ANSWER_IN_CHILD.contains(&name) || (name == "cudaGetDeviceCount" && fork::count_asked());
        return (!answers).then_some(Error::INITIALIZATION_ERROR.0);
    }
    if word & FIRST_CALL != 0 {
        start();
    }
    let allowed = || ANSWER_IN_CALLBACK.contains(&name) || name.starts_with("nvml");
    if word >= CALLBACK && IN_CALLBACK.get() && !allowed() {
        return Some(Error::NOT_PERMITTED.0);
    }
    if word & CAPTURING != 0 && UNSAFE_IN_CAPTURE.contains(&name) {
        return capture::check_unsafe_call().err().map(|error| error.0);
    }
    None
}

/// What must be ready before the first call: the log and the exit handler. No device is touched.
#[cold]
pub fn start() {
    crate::log::init();
    exit::register();
    entry_point::watch();
    let tracing = *config::LOG.get() >= log::LevelFilter::Trace;
    attention::raise(if tracing { TRACING } else { 0 });
    attention::first_call_made();
}

/// Calls that may wait for a device behind the scenes, which a capture forbids to the threads that its mode names (recorded
/// for those of the runtime).
const UNSAFE_IN_CAPTURE: &[&str] = &[
    "cudaMalloc",
    "cudaMallocPitch",
    "cudaMalloc3D",
    "cudaMallocArray",
    "cudaMalloc3DArray",
    "cudaMallocMipmappedArray",
    "cudaMallocManaged",
    "cudaMallocHost",
    "cudaHostAlloc",
    "cudaFree",
    "cudaFreeHost",
    "cudaFreeArray",
    "cudaFreeMipmappedArray",
    "cudaHostRegister",
    "cudaHostUnregister",
    "cudaDeviceSetLimit",
    "cudaDeviceReset",
    "cudaMemPoolCreate",
    "cudaMemPoolTrimTo",
    "cudaMemPoolDestroy",
    "cudaIpcOpenMemHandle",
    "cudaIpcCloseMemHandle",
    "cudaGraphInstantiate",
    "cudaGraphInstantiateWithFlags",
    "cudaGraphInstantiateWithParams",
    "cudaGraphInstantiateWithParams_ptsz",
    "cudaGraphExecDestroy",
    "cudaLibraryUnload",
    "cuMemAlloc",
    "cuMemAlloc_v2",
    "cuMemAllocPitch",
    "cuMemAllocPitch_v2",
    "cuMemAllocManaged",
    "cuMemAllocHost",
    "cuMemAllocHost_v2",
    "cuMemHostAlloc",
    "cuMemFree",
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuArrayCreate",
    "cuArrayCreate_v2",
    "cuArray3DCreate",
    "cuArray3DCreate_v2",
    "cuArrayDestroy",
    "cuMipmappedArrayCreate",
    "cuMipmappedArrayDestroy",
    "cuMemHostRegister",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuCtxSetLimit",
    "cuMemPoolCreate",
    "cuMemPoolTrimTo",
    "cuMemPoolDestroy",
    "cuIpcOpenMemHandle",
    "cuIpcOpenMemHandle_v2",
    "cuIpcCloseMemHandle",
    "cuGraphInstantiate",
    "cuGraphInstantiate_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphInstantiateWithParams",
    "cuGraphInstantiateWithParams_ptsz",
    "cuGraphExecDestroy",
    "cuModuleUnload",
    "cuLibraryUnload",
];

/// Calls that a forked child may make: they need no device.
const ANSWER_IN_CHILD: &[&str] = &[
    "cuDriverGetVersion",
    "cudaDriverGetVersion",
    "cudaRuntimeGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuGetProcAddress_v2_ptsz",
];

/// Calls that still answer once `exit` has run our handler; every other fails, those that give something back too
/// (recorded: `tests/oracle/exit.cc`).
const ANSWER_AT_EXIT: &[&str] = &[
    "cudaDriverGetVersion",
    "cudaRuntimeGetVersion",
    "cudaProfilerStart",
    "cudaProfilerStop",
];

/// Calls that a host callback may make.
const ANSWER_IN_CALLBACK: &[&str] = &[
    "cudaGetDeviceCount",
    "cuDriverGetVersion",
    "cudaDriverGetVersion",
    "cudaRuntimeGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// Logs a call's end.
#[cold]
fn trace_end(name: &'static str, code: i32, start: Instant) {
    log::trace!("{name} -> {code} ({:.1} us)", start.elapsed().as_secs_f64() * 1e6);
}

/// Runs what logs a call's arguments, out of the way of calls that are not traced.
#[cold]
#[inline(never)]
pub fn trace(arguments: impl FnOnce()) {
    arguments();
}

/// Whether calls are logged.
#[inline]
pub fn is_tracing() -> bool {
    let word = attention::load();
    if word & FIRST_CALL != 0 {
        start();
    }
    word & (FIRST_CALL | TRACING) != 0 && attention::load() & TRACING != 0
}

/// Runs a client's host function or stream callback: CUDA calls inside fail with `NotPermitted`.
pub fn host_callback<R>(callback: impl FnOnce() -> R) -> R {
    /// Ends the callback even when a Rust client's callback panics.
    struct Running(bool);
    impl Drop for Running {
        fn drop(&mut self) {
            IN_CALLBACK.set(self.0);
            attention::leave_callback();
        }
    }
    attention::enter_callback();
    let _running = Running(IN_CALLBACK.replace(true));
    callback()
}

/// Makes `error` the calling thread's last error.
pub fn set_last_error(error: Error) {
    LAST_ERROR.set(error.0);
}

/// The calling thread's last error; 0 is none.
pub fn last_error() -> i32 {
    LAST_ERROR.get()
}

/// Returns and clears the calling thread's last error.
pub fn take_last_error() -> i32 {
    LAST_ERROR.replace(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_the_unknown_error() {
        assert_eq!(driver("cuTest", || panic!("on purpose")), 999);
        take_last_error();
        assert_eq!(runtime("cudaTest", || panic!("on purpose")), 999);
        assert_eq!(take_last_error(), 999);
        assert_eq!(plain("__cudaTest", 7, || panic!("on purpose")), 7);
    }

    #[test]
    fn not_ready_never_becomes_the_last_error() {
        take_last_error();
        assert_eq!(runtime("cudaStreamQuery", || Err(Error::NOT_READY)), 600);
        assert_eq!(last_error(), 0);
        assert_eq!(runtime("cudaMalloc", || Err(Error::MEMORY_ALLOCATION)), 2);
        assert_eq!(runtime("cudaFree", || Ok(())), 0);
        assert_eq!(last_error(), 2, "success does not clear it");
        assert_eq!(take_last_error(), 2);
        assert_eq!(last_error(), 0);
    }

    #[test]
    fn callbacks_may_only_count_devices() {
        let code = host_callback(|| {
            std::thread::spawn(|| assert_eq!(driver("cuMemAlloc_v2", || Ok(())), 0, "another thread"))
                .join()
                .unwrap();
            assert_eq!(driver("cudaGetDeviceCount", || Ok(())), 0);
            driver("cuMemAlloc_v2", || Ok(()))
        });
        assert_eq!(code, 800);
        assert_eq!(driver("cuMemAlloc_v2", || Ok(())), 0);
    }
}
