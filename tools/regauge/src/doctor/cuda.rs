//! The libraries themselves: load them as a program would, and ask what CUDA sees.

use core::ffi::c_int;

use launcher::Libraries;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::Report;

const CHECK: &str = "CUDA";

/// Compares CUDA's devices with the `gpus` that ROCr shows.
pub fn check(report: &mut Report, libraries: &Libraries, gpus: usize) {
    let mut count = Err("not asked".to_owned());
    for file in libraries.files() {
        // SAFETY: the libraries' constructors have no preconditions.
        match unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) } {
            Ok(library) => {
                if file.ends_with("libcuda.so.1") {
                    count = devices(&library);
                }
                // Their threads and handlers stay until the end.
                core::mem::forget(library);
            }
            Err(error) => {
                let cure = "the libraries of one build belong together: copy all of them, from one release";
                report.problem(CHECK, format!("{} does not load: {error}", file.display()), cure);
                return;
            }
        }
    }
    match count {
        Ok(count) if count > 0 => report.ok(CHECK, format!("{count} devices (ROCr shows {gpus} GPUs)")),
        Ok(_) => report.problem(CHECK, "CUDA sees no device", "see what CUDA_VISIBLE_DEVICES says"),
        Err(why) => report.problem(
            CHECK,
            why,
            "set REGAUGE_LOG=info for more; a device list may name a GPU twice",
        ),
    }
}

/// `cuInit` and `cuDeviceGetCount`.
fn devices(library: &Library) -> Result<c_int, String> {
    type Init = unsafe extern "C" fn(u32) -> c_int;
    type Count = unsafe extern "C" fn(*mut c_int) -> c_int;
    let mut count = 0;
    // SAFETY: the signatures are those of cuda.h; the result lives through the call.
    let (init, counted) = unsafe {
        let init = library.get::<Init>(b"cuInit\0").map_err(|error| error.to_string())?;
        let get = library
            .get::<Count>(b"cuDeviceGetCount\0")
            .map_err(|error| error.to_string())?;
        (init(0), get(&raw mut count))
    };
    match (init, counted) {
        (0, 0) => Ok(count),
        (100, _) => Err("cuInit fails with 100, no CUDA-capable device is detected".into()),
        (0, error) => Err(format!("cuDeviceGetCount fails with error {error}")),
        (error, _) => Err(format!("cuInit fails with error {error}")),
    }
}
