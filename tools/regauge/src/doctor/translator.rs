//! The translator, tried on a tiny kernel, and the cache that keeps its results.

use std::ffi::CString;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Instant;

use kernels_ptx_translate::client::{Client, Config};
use kernels_ptx_translate::protocol::{CompileRequest, Target, TranslateError};
use launcher::Libraries;

use super::Report;

/// Stores one number.
const KERNEL: &[u8] = b".version 7.0
.target sm_70
.address_size 64
.visible .entry doctor(.param .u64 out)
{
    .reg .u64 %rd<3>;
    .reg .u32 %r<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 42;
    st.global.u32 [%rd2], %r1;
    ret;
}
\0";

/// Compiles a kernel for each kind of GPU that there is (for gfx90a where there is none), as programs do.
pub fn check(report: &mut Report, libraries: &Libraries, gpus: &[String]) {
    const CHECK: &str = "translator";
    let mut config = Config::from_environment(libraries.directory().join("regauge-ptx-worker"));
    // A result from yesterday's cache would prove nothing.
    config.cache = None;
    let worker = config.worker.clone();
    if !executable(&worker) {
        let cure = "copy regauge-ptx-worker of the same build beside libcuda.so.1, or name it in REGAUGE_PTX_WORKER";
        report.problem(CHECK, format!("there is no program {}", worker.display()), cure);
        return;
    }
    let client = Client::new(config);
    let mut targets = vec![];
    if gpus.is_empty() || gpus.iter().any(|name| name == "gfx90a") {
        targets.push(Target::Gfx90a);
    }
    if gpus.iter().any(|name| name == "gfx942") {
        targets.push(Target::Gfx942);
    }
    for target in targets {
        let request = CompileRequest {
            entry: "doctor".into(),
            target,
            block: [1, 1, 1],
            opt_level: 3,
        };
        let start = Instant::now();
        match client.compile(KERNEL, &request) {
            Ok(kernel) => report.ok(
                CHECK,
                format!(
                    "a kernel compiles for {target:?} in {:.0} ms ({} bytes)",
                    start.elapsed().as_secs_f64() * 1e3,
                    kernel.code_object.len()
                ),
            ),
            Err(TranslateError::Compiler(why) | TranslateError::NoCompiler(why)) => report.problem(
                CHECK,
                format!("AMD's compiler library (comgr) does not work: {}", first_line(&why)),
                "install it (Debian: libamd-comgr2; AMD: comgr), or name the library in REGAUGE_COMGR",
            ),
            Err(error) => report.problem(
                CHECK,
                format!(
                    "a kernel cannot be compiled for {target:?}: {}",
                    first_line(&error.to_string())
                ),
                format!("try by hand: {} --help", worker.display()),
            ),
        }
    }
}

/// Whether kernels can be kept between runs, and where.
pub fn cache(report: &mut Report) {
    const CHECK: &str = "cache";
    let cure = "name a folder of yours on a file system of this node in REGAUGE_CACHE_DIR";
    let Some(folder) = Config::from_environment(Default::default()).cache else {
        let text = if std::env::var_os("REGAUGE_CACHE").is_some_and(|value| value == "0") {
            "turned off by REGAUGE_CACHE=0: every run translates its kernels anew"
        } else {
            "there is no folder for it (neither REGAUGE_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set)"
        };
        report.warning(CHECK, text, cure);
        return;
    };
    let shown = folder.display().to_string();
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    // SAFETY: no preconditions.
    let user = unsafe { libc::geteuid() };
    let problem = match existing.metadata() {
        Err(error) => Some(format!("{}: {error}", existing.display())),
        Ok(data) if !data.is_dir() => Some(format!("{} is no folder", existing.display())),
        Ok(data) if existing == folder && data.uid() != user => Some(format!("{shown} belongs to user {}", data.uid())),
        Ok(data) if existing == folder && data.mode() & 0o022 != 0 => {
            Some(format!("{shown} can be written by others (chmod go-w)"))
        }
        Ok(_) if !writable(existing) => Some(format!("{} cannot be written", existing.display())),
        Ok(_) => None,
    };
    if let Some(problem) = problem {
        report.warning(
            CHECK,
            format!("{problem}: kernels are translated anew in every run"),
            cure,
        );
    } else if let Some(kind) = network_file_system(existing) {
        report.warning(
            CHECK,
            format!("{shown} is on {kind}: slow at the start of large jobs"),
            cure,
        );
    } else {
        report.ok(CHECK, format!("{shown} is usable"));
    }
}

fn executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

fn writable(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the text ends with NUL and lives through the call.
    CString::new(path.as_os_str().as_bytes()).is_ok_and(|path| unsafe { libc::access(path.as_ptr(), libc::W_OK) } == 0)
}

/// The name of the file system, if other nodes share it.
fn network_file_system(path: &Path) -> Option<&'static str> {
    use std::os::unix::ffi::OsStrExt;
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: an all-zero statfs is a valid place for the result; the text ends with NUL.
    let kind = unsafe {
        let mut result: libc::statfs = core::mem::zeroed();
        (libc::statfs(path.as_ptr(), &raw mut result) == 0).then_some(result.f_type)?
    };
    Some(match kind {
        0x6969 => "NFS",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0x00c3_6400 => "CephFS",
        0x5346_414f => "AFS",
        _ => return None,
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
