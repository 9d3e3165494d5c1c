//! Execution Control: `cuLaunch*`, `cuFunc*`.

use core::ffi::c_void;

use super::stream::{launch_host_function, resolve};
use crate::abi::{CUhostFn, CUstream};
use crate::streamed;

streamed! { driver
    /// CUDA Driver API, Execution Control: `cuLaunchHostFunc`.
    fn cuLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void), fn cuLaunchHostFunc_ptsz(..) |default| {
        launch_host_function(&*resolve(stream, default)?, function, data)
    }
}
