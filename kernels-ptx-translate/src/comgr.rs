//! LLVM IR text to a linked code object, by AMD's code object manager (comgr) or by ROCm's own clang and lld.
//!
//! Only the worker process uses this: LLVM aborts its process on some inputs, and comgr before 6.0 is not thread-safe.
//! The enum values of `amd_comgr.h` changed with version 3 of the library, so they are chosen at run time.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::protocol::{Target, TranslateError};

/// `amd_comgr_status_t`; 0 is success.
type Status = i32;

/// `amd_comgr_data_t`, `amd_comgr_data_set_t` and `amd_comgr_action_info_t`: structures of one 64-bit handle.
#[repr(C)]
#[derive(Clone, Copy)]
struct Handle(u64);

// `amd_comgr_data_kind_t`, the same in every version.
const DATA_LOG: i32 = 5;
const DATA_BC: i32 = 6;
const DATA_EXECUTABLE: i32 = 8;

/// `amd_comgr_action_kind_t`, by major version.
#[derive(Clone, Copy)]
struct Actions {
    codegen_bc_to_relocatable: i32,
    link_relocatable_to_executable: i32,
}

impl Actions {
    fn of(major: usize) -> Self {
        if major >= 3 {
            Self {
                codegen_bc_to_relocatable: 4,
                link_relocatable_to_executable: 7,
            }
        } else {
            Self {
                codegen_bc_to_relocatable: 6,
                link_relocatable_to_executable: 9,
            }
        }
    }
}

macro_rules! functions {
    ($($field:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions of comgr that we call.
        struct Functions { $($field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }

        impl Functions {
            /// Resolves every function, or names the first that is missing.
            ///
            /// # Safety
            /// `library` must be AMD's comgr, whose functions have these signatures, and must stay loaded.
            unsafe fn resolve(library: &Library) -> Result<Self, String> {
                Ok(Self { $($field: {
                    let name = concat!("amd_comgr_", stringify!($field), "\0");
                    // SAFETY: the signature is the one amd_comgr.h gives for this name in versions 2 and 3.
                    *unsafe { library.get(name.as_bytes()) }.map_err(|e| e.to_string())?
                },)* })
            }
        }
    };
}

functions! {
    get_version: fn(*mut usize, *mut usize);
    status_string: fn(Status, *mut *const c_char) -> Status;
    get_isa_count: fn(*mut usize) -> Status;
    get_isa_name: fn(usize, *mut *const c_char) -> Status;
    create_data: fn(i32, *mut Handle) -> Status;
    release_data: fn(Handle) -> Status;
    set_data: fn(Handle, usize, *const c_char) -> Status;
    set_data_name: fn(Handle, *const c_char) -> Status;
    get_data: fn(Handle, *mut usize, *mut c_void) -> Status;
    create_data_set: fn(*mut Handle) -> Status;
    destroy_data_set: fn(Handle) -> Status;
    data_set_add: fn(Handle, Handle) -> Status;
    action_data_count: fn(Handle, i32, *mut usize) -> Status;
    action_data_get_data: fn(Handle, i32, usize, *mut Handle) -> Status;
    create_action_info: fn(*mut Handle) -> Status;
    destroy_action_info: fn(Handle) -> Status;
    action_info_set_isa_name: fn(Handle, *const c_char) -> Status;
    action_info_set_option_list: fn(Handle, *const *const c_char, usize) -> Status;
    action_info_set_logging: fn(Handle, bool) -> Status;
    do_action: fn(i32, Handle, Handle, Handle) -> Status;
}

/// The processor name that LLVM knows.
pub fn processor(target: Target) -> &'static str {
    match target {
        Target::Gfx90a => "gfx90a",
        Target::Gfx942 => "gfx942",
    }
}

/// Something that makes a code object of LLVM IR text.
pub enum Compiler {
    /// AMD's library.
    Comgr(Comgr),
    /// A clang that can reach an lld.
    Clang(PathBuf),
}

impl Compiler {
    /// The library that the user named, and no other; else what [`Compiler::near`] finds.
    pub fn find(named: Option<&Path>) -> Result<Self, String> {
        match named {
            Some(path) => Comgr::open(path).map(Self::Comgr).map_err(|error| {
                let path = path.display();
                format!("the compiler library named by REGAUGE_COMGR, {path}, cannot be loaded: {error}")
            }),
            None => Self::near(None),
        }
    }

    /// The first compiler that works: the library at a `likely` path, by its sonames, then a ROCm clang.
    pub fn near(likely: Option<&Path>) -> Result<Self, String> {
        let mut failures = Vec::new();
        let names = likely
            .into_iter()
            .chain(["libamd_comgr.so.3", "libamd_comgr.so.2"].map(Path::new));
        for name in names {
            match Comgr::open(name) {
                Ok(comgr) => return Ok(Self::Comgr(comgr)),
                Err(error) => failures.push(error),
            }
        }
        match Self::clang() {
            Some(clang) => Ok(clang),
            None => Err(format!(
                "no compiler for the GPU: libamd_comgr cannot be loaded ({}) and there is no ROCm clang; install ROCm's \
                 comgr package",
                failures.join("; ")
            )),
        }
    }

    /// A ROCm or distribution clang with its lld, if there is one.
    pub fn clang() -> Option<Self> {
        find_clang().map(Self::Clang)
    }

    /// What it is, for logs.
    pub fn describe(&self) -> String {
        match self {
            Self::Comgr(comgr) => format!("comgr {}.{}", comgr.version.0, comgr.version.1),
            Self::Clang(path) => format!("clang at {}", path.display()),
        }
    }

    /// Compiles and links one module.
    pub fn compile(&self, ir: &str, target: Target, opt_level: u8) -> Result<Vec<u8>, TranslateError> {
        let level = format!("-O{}", opt_level.min(3));
        match self {
            Self::Comgr(comgr) => comgr.compile(ir, target, &level),
            Self::Clang(path) => compile_with_clang(path, ir, target, &level),
        }
        .map_err(TranslateError::Compiler)
    }
}

/// AMD's code object manager, loaded.
pub struct Comgr {
    functions: Functions,
    actions: Actions,
    version: (usize, usize),
    /// Never closed: LLVM's globals do not survive it.
    _library: std::mem::ManuallyDrop<Library>,
}

impl Comgr {
    /// Loads the library at a path or soname.
    pub fn open(name: &Path) -> Result<Self, String> {
        // SAFETY: comgr's constructors only set up LLVM; we are alone in this process with it.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| e.to_string())?;
        // SAFETY: a library of this name is AMD's comgr; it is never unloaded.
        let functions = unsafe { Functions::resolve(&library) }?;
        let mut version = (0, 0);
        // SAFETY: two valid pointers, as amd_comgr.h asks.
        unsafe { (functions.get_version)(&mut version.0, &mut version.1) };
        let actions = Actions::of(version.0);
        Ok(Self {
            functions,
            actions,
            version,
            _library: std::mem::ManuallyDrop::new(library),
        })
    }

    /// Turns a status into an error that names the step.
    fn check(&self, step: &str, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: a valid pointer; comgr returns a static string.
        let known = unsafe { (self.functions.status_string)(status, &mut text) } == 0 && !text.is_null();
        let text = if known {
            // SAFETY: comgr returned a NUL-terminated static string.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        } else {
            "unknown status".into()
        };
        Err(format!("{step}: {text} ({status})"))
    }

    /// Names of the ISAs that this build can compile for.
    pub fn isas(&self) -> Vec<String> {
        let mut count = 0;
        // SAFETY: a valid pointer.
        if unsafe { (self.functions.get_isa_count)(&mut count) } != 0 {
            return Vec::new();
        }
        let mut names = Vec::new();
        for index in 0..count {
            let mut name = std::ptr::null();
            // SAFETY: the index is below the count and the pointer is valid.
            if unsafe { (self.functions.get_isa_name)(index, &mut name) } == 0 && !name.is_null() {
                // SAFETY: comgr returned a NUL-terminated static string.
                names.push(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
            }
        }
        names
    }

    fn compile(&self, ir: &str, target: Target, level: &str) -> Result<Vec<u8>, String> {
        // comgr before 6.0 crashes when two threads compile; later ones lock by themselves.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let isa = format!("amdgcn-amd-amdhsa--{}", processor(target));
        if !self.isas().contains(&isa) {
            let (major, minor) = self.version;
            return Err(format!(
                "comgr {major}.{minor} does not know {}; use a newer ROCm",
                processor(target)
            ));
        }
        let isa = CString::new(isa).map_err(|e| e.to_string())?;
        let source = Set::new(self)?;
        // A fixed name: comgr uses it as a file name, so nothing of the application's may be in it.
        source.add_text(c"kernel.ll", ir)?;
        let options = [
            c"-mcode-object-version=4".to_owned(),
            CString::new(level).map_err(|e| e.to_string())?,
        ];
        let object = source.run(
            "code generation",
            self.actions.codegen_bc_to_relocatable,
            &isa,
            &options,
        )?;
        let linked = object.run("linking", self.actions.link_relocatable_to_executable, &isa, &[])?;
        linked.bytes(DATA_EXECUTABLE, 0)
    }
}

/// A data set, destroyed with its owner.
struct Set<'c> {
    comgr: &'c Comgr,
    handle: Handle,
}

impl<'c> Set<'c> {
    fn new(comgr: &'c Comgr) -> Result<Self, String> {
        let mut handle = Handle(0);
        // SAFETY: a valid pointer.
        comgr.check("create_data_set", unsafe {
            (comgr.functions.create_data_set)(&mut handle)
        })?;
        Ok(Self { comgr, handle })
    }

    fn add_text(&self, name: &CStr, text: &str) -> Result<(), String> {
        let f = &self.comgr.functions;
        let mut data = Handle(0);
        // SAFETY: a valid pointer.
        let status = unsafe { (f.create_data)(DATA_BC, &mut data) };
        self.comgr.check("create_data", status)?;
        // SAFETY: the data object is live, comgr copies the bytes and the name; the set takes its own reference, so
        // ours is released whatever happened.
        let status = unsafe {
            let mut status = (f.set_data)(data, text.len(), text.as_ptr().cast());
            if status == 0 {
                status = (f.set_data_name)(data, name.as_ptr());
            }
            if status == 0 {
                status = (f.data_set_add)(self.handle, data);
            }
            (f.release_data)(data);
            status
        };
        self.comgr.check("set_data", status)
    }

    /// Runs an action over this set; the log is the error's text when it fails.
    fn run(&self, step: &str, action: i32, isa: &CStr, options: &[CString]) -> Result<Set<'c>, String> {
        let f = &self.comgr.functions;
        let output = Set::new(self.comgr)?;
        let mut info = Handle(0);
        // SAFETY: a valid pointer.
        let status = unsafe { (f.create_action_info)(&mut info) };
        self.comgr.check("create_action_info", status)?;
        let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: all handles are live; the strings outlive the calls, which copy them.
        let status = unsafe {
            let mut status = (f.action_info_set_isa_name)(info, isa.as_ptr());
            if status == 0 {
                status = (f.action_info_set_option_list)(info, options.as_ptr(), options.len());
            }
            if status == 0 {
                status = (f.action_info_set_logging)(info, true);
            }
            if status == 0 {
                status = (f.do_action)(action, info, self.handle, output.handle);
            }
            (f.destroy_action_info)(info);
            status
        };
        match self.comgr.check(step, status) {
            Ok(()) => Ok(output),
            Err(error) => Err(format!("{error}\n{}", output.log()).trim_end().to_owned()),
        }
    }

    fn bytes(&self, kind: i32, index: usize) -> Result<Vec<u8>, String> {
        let f = &self.comgr.functions;
        let mut data = Handle(0);
        // SAFETY: the set is live and the pointer valid.
        let status = unsafe { (f.action_data_get_data)(self.handle, kind, index, &mut data) };
        self.comgr.check("action_data_get_data", status)?;
        let mut bytes = Vec::new();
        // SAFETY: first the size is asked for, then exactly that many bytes are written; our reference is released.
        let status = unsafe {
            let mut size = 0;
            let mut status = (f.get_data)(data, &mut size, std::ptr::null_mut());
            if status == 0 {
                bytes.resize(size, 0u8);
                status = (f.get_data)(data, &mut size, bytes.as_mut_ptr().cast());
            }
            (f.release_data)(data);
            status
        };
        self.comgr.check("get_data", status)?;
        Ok(bytes)
    }

    /// Everything logged into this set.
    fn log(&self) -> String {
        let mut count = 0;
        // SAFETY: the set is live and the pointer valid.
        if unsafe { (self.comgr.functions.action_data_count)(self.handle, DATA_LOG, &mut count) } != 0 {
            return String::new();
        }
        let logs = (0..count).filter_map(|index| self.bytes(DATA_LOG, index).ok());
        let text = logs.map(|bytes| String::from_utf8_lossy(&bytes).trim_matches('\0').to_owned());
        text.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Set<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { (self.comgr.functions.destroy_data_set)(self.handle) };
    }
}

/// Folders where ROCm keeps its clang.
fn find_clang() -> Option<PathBuf> {
    let rocm = std::env::var_os("ROCM_PATH").map(PathBuf::from);
    let roots = rocm.into_iter().chain([PathBuf::from("/opt/rocm")]);
    let mut folders: Vec<PathBuf> = roots
        .flat_map(|r| [r.join("llvm/bin"), r.join("lib/llvm/bin")])
        .collect();
    // Distributions' LLVM, newest first: older than 15 does not read our text.
    folders.extend(
        (15..40)
            .rev()
            .map(|version| PathBuf::from(format!("/usr/lib/llvm-{version}/bin"))),
    );
    folders.push("/usr/bin".into());
    let complete = |f: &PathBuf| f.join("clang").exists() && (f.join("ld.lld").exists() || f.join("lld").exists());
    folders.into_iter().find(complete).map(|f| f.join("clang"))
}

/// Compiles with `clang -x ir`, which runs the `ld.lld` beside it.
fn compile_with_clang(clang: &Path, ir: &str, target: Target, level: &str) -> Result<Vec<u8>, String> {
    let folder = TemporaryFolder::new()?;
    let (input, output) = (folder.0.join("kernel.ll"), folder.0.join("kernel.co"));
    std::fs::write(&input, ir).map_err(|e| format!("{}: {e}", input.display()))?;
    let mut command = Command::new(clang);
    command.args([
        "-target",
        "amdgcn-amd-amdhsa",
        "-nogpulib",
        "-mcode-object-version=4",
        "-x",
        "ir",
    ]);
    command
        .arg(format!("-mcpu={}", processor(target)))
        .arg(level)
        .arg(&input)
        .arg("-o")
        .arg(&output);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let result = command.output().map_err(|e| format!("{}: {e}", clang.display()))?;
    if !result.status.success() {
        return Err(format!(
            "clang: {}\n{}",
            result.status,
            String::from_utf8_lossy(&result.stderr)
        ));
    }
    std::fs::read(&output).map_err(|e| format!("{}: {e}", output.display()))
}

/// A private folder, removed when dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> Result<Self, String> {
        let template = std::env::temp_dir().join("regauge-XXXXXX");
        let template = CString::new(template.into_os_string().into_encoded_bytes()).map_err(|e| e.to_string())?;
        let template = template.into_raw();
        // SAFETY: mkdtemp rewrites the six X in place and keeps the length; the string is taken back below.
        let made = unsafe { !libc::mkdtemp(template).is_null() };
        // SAFETY: the pointer came from into_raw just above.
        let path = unsafe { CString::from_raw(template) };
        if !made {
            return Err(format!("no temporary folder: {}", std::io::Error::last_os_error()));
        }
        use std::os::unix::ffi::OsStringExt;
        Ok(Self(std::ffi::OsString::from_vec(path.into_bytes()).into()))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
