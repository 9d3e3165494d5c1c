//! Execution Control: `cudaLaunch*`, `cudaFunc*`.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use crate::abi::{
    Error, Plain, Result, conv, cudaFuncAttributes, cudaFunction_t, cudaKernel_t, cudaLaunchConfig_t, cudaStream_t,
    dim3,
};
use crate::api::driver;
use crate::device::{Context, context};
use crate::module::args::Source;
use crate::module::{self, Function, Kernel, Shape, launch, registration};
use crate::stream::DefaultStream;
use crate::{runtime, streamed};

/// The kernel that a host function stands for, or that a kernel's handle names. `InvalidDeviceFunction` for NULL,
/// `InvalidResourceHandle` for what was never registered, as recorded.
pub(super) fn by_symbol(symbol: *const c_void) -> Result<Arc<Kernel>> {
    if symbol.is_null() {
        return Err(Error::INVALID_DEVICE_FUNCTION);
    }
    registration::kernel(symbol as usize).map_or_else(|| module::kernel(symbol as u64), Ok)
}

/// As [`by_symbol`], in a context; a function's handle will do as well.
pub(super) fn function_of(symbol: *const c_void, context: &'static Context) -> Result<Arc<Function>> {
    if !symbol.is_null()
        && let Some(function) = registration::function(symbol as usize, context)
    {
        return function;
    }
    match by_symbol(symbol) {
        Ok(kernel) => kernel.function(context).map(|(_, function)| function),
        Err(Error::INVALID_RESOURCE_HANDLE) => module::function(symbol as u64, || Ok(context)),
        Err(error) => Err(error),
    }
}

fn function(symbol: *const c_void) -> Result<Arc<Function>> {
    function_of(symbol, context::runtime_current()?)
}

/// A launch by the runtime API.
///
/// # Safety
/// `args` are what the kernel expects.
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn launch_kernel(
    symbol: *const c_void,
    grid: dim3,
    block: dim3,
    args: *mut *mut c_void,
    shared: usize,
    stream: cudaStream_t,
    default: DefaultStream,
    cooperative: bool,
) -> Result<()> {
    // As recorded, the size is cut to 32 bits: 4 GiB more is nothing more.
    let shape = Shape {
        grid: [grid.x, grid.y, grid.z],
        block: [block.x, block.y, block.z],
        dynamic_shared: shared as u32,
    };
    // After a fault a bad configuration is still called that.
    let context = context::runtime_current().map_err(|error| shape.check().err().unwrap_or(error))?;
    let function = function_of(symbol, context)?;
    shape.check()?;
    context.streams()?.with(stream as u64, default, |target| {
        if target.owner() != function.owner() {
            return Err(Error::INVALID_RESOURCE_HANDLE);
        }
        let source = Source::Pointers(args.cast_const().cast());
        // SAFETY: the caller's promise.
        unsafe { launch::launch(function, target, &shape, source, cooperative) }
    })
}

streamed! { runtime
    /// CUDA Runtime API, Execution Control: `cudaLaunchKernel`.
    fn cudaLaunchKernel(
        symbol: *const c_void, grid: dim3, block: dim3, args: *mut *mut c_void, shared: usize, stream: cudaStream_t,
    ), fn cudaLaunchKernel_ptsz(..) |default| {
        // SAFETY: the application promises the parameters of its kernel.
        unsafe { launch_kernel(symbol, grid, block, args, shared, stream, default, false) }
    }

    /// CUDA Runtime API, Execution Control: `cudaLaunchCooperativeKernel`.
    fn cudaLaunchCooperativeKernel(
        symbol: *const c_void, grid: dim3, block: dim3, args: *mut *mut c_void, shared: usize, stream: cudaStream_t,
    ), fn cudaLaunchCooperativeKernel_ptsz(..) |default| {
        // SAFETY: the application promises the parameters of its kernel.
        unsafe { launch_kernel(symbol, grid, block, args, shared, stream, default, true) }
    }

    /// CUDA Runtime API, Execution Control: `cudaLaunchKernelExC`.
    fn cudaLaunchKernelExC(config: *const cudaLaunchConfig_t, symbol: *const c_void, args: *mut *mut c_void),
    fn cudaLaunchKernelExC_ptsz(..) |default| {
        let c = conv::read(config)?;
        // SAFETY: the application promises `numAttrs` attributes.
        let list = unsafe { conv::slice(c.attrs.cast_const(), c.numAttrs as usize) }?;
        let attributes = driver::attributes(list.iter().map(|a| {
            // SAFETY: every bit pattern of the union is three integers.
            let dim = unsafe { a.val.clusterDim };
            (a.id.0, [dim.x as c_int, dim.y as c_int, dim.z as c_int])
        }))?;
        let cooperative = attributes.cooperative;
        // SAFETY: the application promises the parameters of its kernel.
        unsafe {
            launch_kernel(symbol, c.gridDim, c.blockDim, args, c.dynamicSmemBytes, c.stream, default, cooperative)
        }
    }
}

runtime! {
    /// CUDA Runtime API, Execution Control: `cudaFuncGetAttributes`.
    fn cudaFuncGetAttributes(attributes: *mut cudaFuncAttributes, symbol: *const c_void) {
        let context = context::runtime_current()?;
        if attributes.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let function = function_of(symbol, context)?;
        let mut filled = cudaFuncAttributes::zeroed();
        filled.maxThreadsPerBlock = function.attribute(0)?;
        filled.sharedSizeBytes = function.attribute(1)? as usize;
        filled.constSizeBytes = function.attribute(2)? as usize;
        filled.localSizeBytes = function.attribute(3)? as usize;
        filled.numRegs = function.attribute(4)?;
        filled.ptxVersion = function.attribute(5)?;
        filled.binaryVersion = function.attribute(6)?;
        filled.cacheModeCA = function.attribute(7)?;
        filled.maxDynamicSharedSizeBytes = function.attribute(8)?;
        filled.preferredShmemCarveout = function.attribute(9)?;
        conv::write(attributes, filled)
    }

    /// CUDA Runtime API, Execution Control: `cudaFuncSetAttribute`. The numbers are the driver API's.
    fn cudaFuncSetAttribute(symbol: *const c_void, attribute: c_int, value: c_int) {
        function(symbol)?.set_attribute(attribute, value)
    }

    /// CUDA Runtime API, Execution Control: `cudaFuncSetCacheConfig`. As recorded, an unknown function is an
    /// `InvalidDeviceFunction` here.
    fn cudaFuncSetCacheConfig(symbol: *const c_void, config: c_uint) {
        let function = function(symbol).map_err(unknown_function)?;
        function.set_cache_config(config)
    }

    /// CUDA Runtime API, Execution Control: `cudaFuncSetSharedMemConfig`. Banks have one size here.
    fn cudaFuncSetSharedMemConfig(symbol: *const c_void, config: c_uint) {
        function(symbol).map_err(unknown_function)?;
        if config > 2 { Err(Error::INVALID_VALUE) } else { Ok(()) }
    }

    /// CUDA Runtime API, Execution Control (deprecated): `cudaSetDoubleForDevice`. Devices with native doubles need nothing.
    fn cudaSetDoubleForDevice(_value: *mut f64) {
        context::runtime_current().map(drop)
    }

    /// CUDA Runtime API, Execution Control (deprecated): `cudaSetDoubleForHost`; as above.
    fn cudaSetDoubleForHost(_value: *mut f64) {
        context::runtime_current().map(drop)
    }

    /// CUDA Runtime API, Execution Control: `cudaFuncGetName`.
    fn cudaFuncGetName(name: *mut *const c_char, symbol: *const c_void) {
        conv::write(name, driver::lasting_name(function(symbol)?.name())?)
    }

    /// CUDA Runtime API, Execution Control: `cudaFuncGetParamInfo`.
    fn cudaFuncGetParamInfo(symbol: *const c_void, index: usize, offset: *mut usize, size: *mut usize) {
        let (at, bytes) = function(symbol)?.param(index)?;
        conv::write(offset, at)?;
        conv::write_if(size, bytes);
        Ok(())
    }

    /// CUDA Runtime API, Interactions with the Driver API: `cudaGetFuncBySymbol`.
    fn cudaGetFuncBySymbol(out: *mut cudaFunction_t, symbol: *const c_void) {
        let context = context::runtime_current()?;
        let kernel = by_symbol(symbol).map_err(unknown_function)?;
        conv::write(out, kernel.function(context)?.0 as cudaFunction_t)
    }

    /// CUDA Runtime API, Interactions with the Driver API: `cudaGetKernel`.
    fn cudaGetKernel(out: *mut cudaKernel_t, symbol: *const c_void) {
        let context = context::runtime_current()?;
        let kernel = by_symbol(symbol).map_err(unknown_function)?;
        kernel.function(context)?;
        conv::write(out, kernel.handle() as cudaKernel_t)
    }
}

/// Some calls have another name for a function that was never registered.
fn unknown_function(error: Error) -> Error {
    if error == Error::INVALID_RESOURCE_HANDLE {
        Error::INVALID_DEVICE_FUNCTION
    } else {
        error
    }
}
