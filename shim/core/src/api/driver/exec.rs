//! Execution Control: `cuLaunch*`, `cuFunc*`.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use super::library::lasting_name;
use super::stream::{context_of, launch_host_function, resolve, with};
use crate::abi::{CUfunction, CUhostFn, CUlaunchConfig, CUmodule, CUstream, Error, Result, conv};
use crate::device::context;
use crate::module::args::Source;
use crate::module::{self, Function, Shape, launch};
use crate::stream::{DefaultStream, Stream};
use crate::{driver, streamed};

/// `CU_LAUNCH_PARAM_*`: what follows in the array of extra parameters.
const PARAM_END: usize = 0;
const PARAM_BUFFER_POINTER: usize = 1;
const PARAM_BUFFER_SIZE: usize = 2;

/// The function behind a handle. A kernel's handle needs a current context, a function's does not (recorded).
fn function(handle: CUfunction) -> Result<Arc<Function>> {
    context::usable()?;
    module::function(handle as u64, context::current)
}

/// Where a launch's arguments are. Exactly one of the two forms may be given.
///
/// # Safety
/// `extra` is NULL or an array as the manual describes it.
pub(super) unsafe fn source(params: *mut *mut c_void, extra: *mut *mut c_void) -> Result<Source> {
    if extra.is_null() {
        return Ok(Source::Pointers(params.cast_const().cast()));
    }
    if !params.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let (mut buffer, mut size, mut at) = (None, None, 0);
    loop {
        // SAFETY: the caller's promise: pairs of a key and a value, then the end key.
        let key = unsafe { *extra.add(at) } as usize;
        if key == PARAM_END {
            break;
        }
        // SAFETY: as above.
        let value = unsafe { *extra.add(at + 1) };
        match key {
            PARAM_BUFFER_POINTER => buffer = Some(value),
            PARAM_BUFFER_SIZE => size = Some(conv::read(value.cast::<usize>())?),
            _ => return Err(Error::INVALID_VALUE),
        }
        at += 2;
    }
    match (buffer, size) {
        (Some(buffer), Some(size)) => Ok(Source::Buffer(buffer.cast_const().cast(), size)),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A launch by the driver API.
///
/// # Safety
/// Parameters are what the kernel expects.
unsafe fn launch_kernel(
    handle: CUfunction,
    shape: &Shape,
    stream: CUstream,
    default: DefaultStream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    cooperative: bool,
) -> Result<()> {
    let launch = |target: &Arc<Stream>| {
        let function = module::function(handle as u64, || context_of(target))?;
        // The driver API calls a bad configuration a bad value.
        shape.check().map_err(|_| Error::INVALID_VALUE)?;
        // SAFETY: the caller's promise.
        let source = unsafe { source(params, extra) }?;
        if target.owner() != function.owner() {
            return Err(Error::INVALID_RESOURCE_HANDLE);
        }
        // SAFETY: as above.
        unsafe { launch::launch(function, target, shape, source, cooperative) }
    };
    with(stream, default, launch)
}

/// Launch attributes that change what we do.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::api) struct Attributes {
    /// All blocks must be resident at once.
    pub(in crate::api) cooperative: bool,
}

/// Reads launch attributes: id, and the first words of the value. Hints are accepted without effect.
pub(in crate::api) fn attributes(list: impl Iterator<Item = (c_int, [c_int; 3])>) -> Result<Attributes> {
    let mut read = Attributes::default();
    for (id, value) in list {
        match id {
            2 => read.cooperative = value[0] != 0,
            // Clusters: capability 8.0, which we report, has none; a cluster of one block is no cluster.
            4 if value != [1, 1, 1] => return Err(Error::INVALID_CLUSTER_SIZE),
            0..=14 => {}
            _ => return Err(Error::INVALID_VALUE),
        }
    }
    Ok(read)
}

streamed! { driver
    /// CUDA Driver API, Execution Control: `cuLaunchKernel`.
    fn cuLaunchKernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared: c_uint, stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void,
    ), fn cuLaunchKernel_ptsz(..) |default| {
        let shape =
            Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], dynamic_shared: shared };
        // SAFETY: the application promises the parameters of its kernel.
        unsafe { launch_kernel(function, &shape, stream, default, params, extra, false) }
    }

    /// CUDA Driver API, Execution Control: `cuLaunchCooperativeKernel`.
    fn cuLaunchCooperativeKernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared: c_uint, stream: CUstream, params: *mut *mut c_void,
    ), fn cuLaunchCooperativeKernel_ptsz(..) |default| {
        let shape =
            Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], dynamic_shared: shared };
        // SAFETY: the application promises the parameters of its kernel.
        unsafe { launch_kernel(function, &shape, stream, default, params, core::ptr::null_mut(), true) }
    }

    /// CUDA Driver API, Execution Control: `cuLaunchKernelEx`.
    fn cuLaunchKernelEx(
        config: *const CUlaunchConfig, function: CUfunction, params: *mut *mut c_void, extra: *mut *mut c_void,
    ), fn cuLaunchKernelEx_ptsz(..) |default| {
        let c = conv::read(config)?;
        // SAFETY: the application promises `numAttrs` attributes.
        let list = unsafe { conv::slice(c.attrs.cast_const(), c.numAttrs as usize) }?;
        let attributes = attributes(list.iter().map(|a| {
            // SAFETY: every bit pattern of the union is three integers.
            let dim = unsafe { a.value.clusterDim };
            (a.id.0, [dim.x as c_int, dim.y as c_int, dim.z as c_int])
        }))?;
        let shape = Shape {
            grid: [c.gridDimX, c.gridDimY, c.gridDimZ],
            block: [c.blockDimX, c.blockDimY, c.blockDimZ],
            dynamic_shared: c.sharedMemBytes,
        };
        // SAFETY: the application promises the parameters of its kernel.
        unsafe { launch_kernel(function, &shape, c.hStream, default, params, extra, attributes.cooperative) }
    }

    /// CUDA Driver API, Execution Control: `cuLaunchHostFunc`.
    fn cuLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void), fn cuLaunchHostFunc_ptsz(..) |default| {
        launch_host_function(&*resolve(stream, default)?, function, data)
    }
}

driver! {
    /// CUDA Driver API, Execution Control: `cuFuncGetAttribute`.
    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, hfunc: CUfunction) {
        let function = function(hfunc)?;
        if value.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        conv::write(value, function.attribute(attribute)?)
    }

    /// CUDA Driver API, Execution Control: `cuFuncSetAttribute`.
    fn cuFuncSetAttribute(hfunc: CUfunction, attribute: c_int, value: c_int) {
        function(hfunc)?.set_attribute(attribute, value)
    }

    /// CUDA Driver API, Execution Control: `cuFuncSetCacheConfig`.
    fn cuFuncSetCacheConfig(hfunc: CUfunction, config: c_uint) {
        function(hfunc)?.set_cache_config(config)
    }

    /// CUDA Driver API, Execution Control: `cuFuncSetSharedMemConfig`. Banks have one size here.
    fn cuFuncSetSharedMemConfig(hfunc: CUfunction, config: c_uint) {
        function(hfunc)?;
        if config > 2 { Err(Error::INVALID_VALUE) } else { Ok(()) }
    }

    /// CUDA Driver API, Execution Control: `cuFuncGetModule`.
    fn cuFuncGetModule(module: *mut CUmodule, hfunc: CUfunction) {
        conv::write(module, function(hfunc)?.module()?.handle() as CUmodule)
    }

    /// CUDA Driver API, Execution Control: `cuFuncGetName`.
    fn cuFuncGetName(name: *mut *const c_char, hfunc: CUfunction) {
        conv::write(name, lasting_name(function(hfunc)?.name())?)
    }

    /// CUDA Driver API, Execution Control: `cuFuncGetParamInfo`.
    fn cuFuncGetParamInfo(hfunc: CUfunction, index: usize, offset: *mut usize, size: *mut usize) {
        let (at, bytes) = function(hfunc)?.param(index)?;
        conv::write(offset, at)?;
        conv::write_if(size, bytes);
        Ok(())
    }

    /// CUDA Driver API, Execution Control: `cuFuncIsLoaded`. As recorded, a function that was looked up is loaded (1).
    fn cuFuncIsLoaded(state: *mut c_int, hfunc: CUfunction) {
        function(hfunc)?;
        conv::write(state, 1)
    }

    /// CUDA Driver API, Execution Control: `cuFuncLoad`. Compiles it.
    fn cuFuncLoad(hfunc: CUfunction) {
        function(hfunc)?.load()
    }
}
