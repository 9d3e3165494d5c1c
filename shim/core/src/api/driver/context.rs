//! Context Management: `cuCtx*`.

use core::ffi::{c_int, c_uint};

use crate::abi::{
    CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUexecAffinityParam_param, CUexecAffinitySmCount,
    CUexecAffinityType, CUlimit, Error, Result, conv,
};
use crate::device::{self, Context, context};
use crate::driver;
use crate::graph::capture;
use crate::hsa::fault;
use crate::stream::GREATEST_PRIORITY;

/// What `cuCtxGetApiVersion` says of every context (recorded).
const API_VERSION: c_uint = 3020;

fn create(to: *mut CUcontext, flags: c_uint, device: CUdevice) -> Result<()> {
    device::initialized()?;
    if to.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    conv::write(to, context::create(device::get(device)?, flags)?.handle())
}

fn destroy(context: CUcontext) -> Result<()> {
    device::initialized()?;
    context::destroy(Context::from_handle(context)?)
}

fn push(context: CUcontext) -> Result<()> {
    device::initialized()?;
    context::push(Context::from_handle(context)?);
    Ok(())
}

fn pop(to: *mut CUcontext) -> Result<()> {
    device::initialized()?;
    conv::write_if(to, context::pop()?.handle());
    Ok(())
}

/// The context of a handle, or the current one for NULL; dead or alive.
fn given_or_current(context: CUcontext) -> Result<&'static Context> {
    device::initialized()?;
    if context.is_null() {
        context::peek().ok_or(Error::DEVICE_UNINITIALIZED)
    } else {
        Context::from_handle(context)
    }
}

/// As [`given_or_current`], of calls that a fault does not stop where they name the context, but else (recorded).
fn named_or_current(context: CUcontext) -> Result<&'static Context> {
    if context.is_null() {
        fault::check()?;
    }
    given_or_current(context)
}

/// Waits for all work of a context, which cannot be while streams of it are captured.
pub(in crate::api) fn wait(context: &'static Context) -> Result<()> {
    context.check()?;
    capture::check_context(context.streams()?.id())?;
    context.synchronize()
}

driver! {
    /// CUDA Driver API, Context Management: `cuCtxCreate` of CUDA 3.2 to 12.
    fn cuCtxCreate_v2(context: *mut CUcontext, flags: c_uint, device: CUdevice) {
        create(context, flags, device)
    }

    /// CUDA Driver API, Context Management: `cuCtxCreate_v3`. A share of the multiprocessors cannot be asked for.
    fn cuCtxCreate_v3(
        context: *mut CUcontext, _affinity: *mut CUexecAffinityParam, count: c_int, flags: c_uint, device: CUdevice,
    ) {
        if count != 0 {
            return Err(Error::UNSUPPORTED_EXEC_AFFINITY);
        }
        create(context, flags, device)
    }

    /// CUDA Driver API, Context Management: `cuCtxCreate_v4`, as `cuCtxCreate_v3`; no graphics interop either.
    fn cuCtxCreate_v4(context: *mut CUcontext, parameters: *mut CUctxCreateParams, flags: c_uint, device: CUdevice) {
        if !parameters.is_null() {
            let parameters = conv::read(parameters)?;
            if parameters.numExecAffinityParams != 0 {
                return Err(Error::UNSUPPORTED_EXEC_AFFINITY);
            }
            if !parameters.cigParams.is_null() {
                return Err(Error::NOT_SUPPORTED);
            }
        }
        create(context, flags, device)
    }

    /// CUDA Driver API, Context Management: `cuCtxDestroy`.
    fn cuCtxDestroy_v2(context: CUcontext) {
        destroy(context)
    }

    /// CUDA Driver API, Context Management: `cuCtxDestroy` of CUDA 2.
    fn cuCtxDestroy(context: CUcontext) {
        destroy(context)
    }

    /// CUDA Driver API, Context Management: `cuCtxPushCurrent`. A destroyed context can be pushed (recorded).
    fn cuCtxPushCurrent_v2(context: CUcontext) {
        push(context)
    }

    /// CUDA Driver API, Context Management: `cuCtxPushCurrent` of CUDA 2.
    fn cuCtxPushCurrent(context: CUcontext) {
        push(context)
    }

    /// CUDA Driver API, Context Management: `cuCtxPopCurrent`. The result may be NULL.
    fn cuCtxPopCurrent_v2(context: *mut CUcontext) {
        pop(context)
    }

    /// CUDA Driver API, Context Management: `cuCtxPopCurrent` of CUDA 2.
    fn cuCtxPopCurrent(context: *mut CUcontext) {
        pop(context)
    }

    /// CUDA Driver API, Context Management: `cuCtxSetCurrent`. NULL takes the current one off the stack.
    fn cuCtxSetCurrent(context: CUcontext) {
        device::initialized()?;
        context::set_current(if context.is_null() { None } else { Some(Context::from_handle(context)?) });
        Ok(())
    }

    /// CUDA Driver API, Context Management: `cuCtxGetCurrent`.
    fn cuCtxGetCurrent(context: *mut CUcontext) {
        device::initialized()?;
        conv::write(context, context::peek().map_or(core::ptr::null_mut(), Context::handle))
    }

    /// CUDA Driver API, Context Management: `cuCtxGetDevice`.
    fn cuCtxGetDevice(device: *mut CUdevice) {
        conv::write(device, given_or_current(core::ptr::null_mut())?.device.ordinal)
    }

    /// CUDA Driver API, Context Management: `cuCtxGetDevice_v2`.
    fn cuCtxGetDevice_v2(device: *mut CUdevice, context: CUcontext) {
        conv::write(device, given_or_current(context)?.device.ordinal)
    }

    /// CUDA Driver API, Context Management: `cuCtxGetFlags`.
    fn cuCtxGetFlags(flags: *mut c_uint) {
        conv::write(flags, given_or_current(core::ptr::null_mut())?.flags())
    }

    /// CUDA Driver API, Context Management: `cuCtxSetFlags`. `CU_CTX_SYNC_MEMOPS` is always so here.
    fn cuCtxSetFlags(flags: c_uint) {
        // Also after a fault (recorded).
        let context = given_or_current(core::ptr::null_mut())?;
        if !context.is_active() {
            return Err(Error::CONTEXT_IS_DESTROYED);
        }
        context.set_flags(flags)
    }

    /// CUDA Driver API, Context Management: `cuCtxGetId`.
    fn cuCtxGetId(context: CUcontext, id: *mut u64) {
        let context = named_or_current(context)?;
        if !context.is_active() {
            return Err(Error::CONTEXT_IS_DESTROYED);
        }
        conv::write(id, context.id)
    }

    /// CUDA Driver API, Context Management: `cuCtxGetApiVersion`.
    fn cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint) {
        named_or_current(context)?;
        conv::write(version, API_VERSION)
    }

    /// CUDA Driver API, Context Management: `cuCtxSynchronize`.
    fn cuCtxSynchronize() {
        wait(context::current()?)
    }

    /// CUDA Driver API, Context Management: `cuCtxSynchronize_v2`.
    fn cuCtxSynchronize_v2(context: CUcontext) {
        wait(given_or_current(context)?)
    }

    /// CUDA Driver API, Context Management: `cuCtxGetStreamPriorityRange`. Either result may be NULL.
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        context::current()?;
        conv::write_if(least, 0);
        conv::write_if(greatest, GREATEST_PRIORITY);
        Ok(())
    }

    /// CUDA Driver API, Context Management: `cuCtxGetLimit`.
    fn cuCtxGetLimit(value: *mut usize, limit: CUlimit) {
        let context = context::current()?;
        conv::write(value, context.settings().limit(limit, context.device)?)
    }

    /// CUDA Driver API, Context Management: `cuCtxSetLimit`.
    fn cuCtxSetLimit(limit: CUlimit, value: usize) {
        context::current()?.settings().set_limit(limit, value)
    }

    /// CUDA Driver API, Context Management: `cuCtxGetCacheConfig`.
    fn cuCtxGetCacheConfig(config: *mut c_int) {
        conv::write(config, context::current()?.settings().cache_config)
    }

    /// CUDA Driver API, Context Management: `cuCtxSetCacheConfig`.
    fn cuCtxSetCacheConfig(config: c_int) {
        context::current()?.settings().set_cache_config(config)
    }

    /// CUDA Driver API, Context Management (deprecated): `cuCtxGetSharedMemConfig`; always four-byte banks (recorded).
    fn cuCtxGetSharedMemConfig(config: *mut c_int) {
        context::current()?;
        conv::write(config, 1)
    }

    /// CUDA Driver API, Context Management (deprecated): `cuCtxSetSharedMemConfig`; accepted and without effect (recorded).
    fn cuCtxSetSharedMemConfig(_config: c_int) {
        context::current().map(drop)
    }

    /// CUDA Driver API, Context Management: `cuCtxResetPersistingL2Cache`; no lines persist.
    fn cuCtxResetPersistingL2Cache() {
        context::current().map(drop)
    }

    /// CUDA Driver API, Context Management: `cuCtxGetExecAffinity`. Every context has all of the compute units.
    fn cuCtxGetExecAffinity(affinity: *mut CUexecAffinityParam, kind: c_int) {
        let device = context::current()?.device;
        if affinity.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        if kind != CUexecAffinityType::SM_COUNT.0 {
            return Err(Error::UNSUPPORTED_EXEC_AFFINITY);
        }
        let count = CUexecAffinitySmCount {
            val: device.agent.compute_units,
        };
        conv::write(affinity, CUexecAffinityParam {
            r#type: CUexecAffinityType::SM_COUNT,
            param: CUexecAffinityParam_param { smCount: count },
        })
    }

    /// CUDA Driver API, Context Management (deprecated): `cuCtxAttach`.
    fn cuCtxAttach(context: *mut CUcontext, flags: c_uint) {
        let current = context::current()?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(context, current.handle())?;
        context::attach(current)
    }

    /// CUDA Driver API, Context Management (deprecated): `cuCtxDetach`.
    fn cuCtxDetach(context: CUcontext) {
        device::initialized()?;
        context::detach(Context::from_handle(context)?)
    }
}
