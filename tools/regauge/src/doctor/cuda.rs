//! The libraries themselves: load them as a program would, and ask what CUDA sees.

use core::ffi::c_int;

use launcher::Libraries;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::Report;

const CHECK: &str = "CUDA";

/// Compares CUDA's devices with the `gpus` that ROCr shows.
pub fn check(report: &mut Report, libraries: &Libraries, gpus: usize) {
    let mut count = Err(Refusal::Other("not asked".to_owned()));
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
        // 100 where ROCr has GPUs: nothing else hides them.
        Ok(_) | Err(Refusal::NoDevice) => report.problem(
            CHECK,
            format!("CUDA sees none of the {gpus} GPUs that ROCr shows (cuInit fails with 100, no CUDA-capable device is detected)"),
            "see what CUDA_VISIBLE_DEVICES says",
        ),
        Err(Refusal::Other(why)) => report.problem(
            CHECK,
            why,
            "set REGAUGE_LOG=info for more; a device list may name a GPU twice",
        ),
    }
}

/// Why there is no count.
enum Refusal {
    /// Error 100.
    NoDevice,
    Other(String),
}

/// `cuInit` and `cuDeviceGetCount`.
fn devices(library: &Library) -> Result<c_int, Refusal> {
    type Init = unsafe extern "C" fn(u32) -> c_int;
    type Count = unsafe extern "C" fn(*mut c_int) -> c_int;
    let mut count = 0;
    let absent = |error: libloading::Error| Refusal::Other(error.to_string());
    // SAFETY: the signatures are those of cuda.h; the result lives through the call.
    let (init, counted) = unsafe {
        let init = library.get::<Init>(b"cuInit\0").map_err(absent)?;
        let get = library.get::<Count>(b"cuDeviceGetCount\0").map_err(absent)?;
        (init(0), get(&raw mut count))
    };
    match (init, counted) {
        (0, 0) => Ok(count),
        (100, _) => Err(Refusal::NoDevice),
        (0, error) => Err(Refusal::Other(format!("cuDeviceGetCount fails with error {error}"))),
        (error, _) => Err(Refusal::Other(format!("cuInit fails with error {error}"))),
    }
}
