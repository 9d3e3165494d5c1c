//! The translator's client, and its errors as CUDA's.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kernels_ptx_translate::client::{Client, Config};
use kernels_ptx_translate::protocol::TranslateError;

use crate::abi::Error;

/// Name of the worker program, beside `libcuda.so.1`.
const WORKER: &str = "regauge-ptx-worker";

/// A load or a compilation that failed, with the text for the application's error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// CUDA's error code.
    pub error: Error,
    /// What went wrong, in the form of ptxas' messages.
    pub log: String,
}

impl Failure {
    /// A failure with nothing more to say.
    pub fn new(error: Error, log: impl Into<String>) -> Self {
        Self { error, log: log.into() }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

impl From<TranslateError> for Failure {
    fn from(error: TranslateError) -> Self {
        const ABORTED: &str = "ptxas fatal   : Ptx assembly aborted due to errors";
        match error {
            TranslateError::NotPtx => Self::new(
                Error::INVALID_KERNEL_IMAGE,
                "error   : Binary format for key='0', ident='' is not recognized",
            ),
            TranslateError::UnsupportedVersion { line, major, minor } => Self::new(
                Error::UNSUPPORTED_PTX_VERSION,
                format!(
                    "ptxas application ptx input, line {line}; fatal   : Unsupported .version {major}.{minor}; \
                     current version is '9.0'"
                ),
            ),
            TranslateError::InvalidPtx { line, message, more } => {
                let text = sentence(&message);
                // What ptxas says without a line, and what it stops at (recorded).
                let log = if text.starts_with("Unresolved extern function") {
                    format!("ptxas fatal   : {text}")
                } else if text.contains(" uses too much shared data ") {
                    format!("ptxas error   : {text}")
                } else {
                    let all = std::iter::once((line, message)).chain(more);
                    all.map(|(line, message)| diagnostic(line, &message))
                        .collect::<String>()
                        + ABORTED
                };
                Self::new(Error::INVALID_PTX, log)
            }
            TranslateError::Unsupported { line, construct } => Self::new(
                Error::INVALID_PTX,
                format!("ptxas application ptx input, line {line}; error   : {construct} is not supported\n{ABORTED}"),
            ),
            TranslateError::NoSuchEntry(name) => {
                Self::new(Error::SYMBOL_NOT_FOUND, format!("error   : no entry function '{name}'"))
            }
            TranslateError::BlockTooLarge { max_threads } => Self::new(
                Error::LAUNCH_OUT_OF_RESOURCES,
                format!("error   : at most {max_threads} threads a block can run this kernel"),
            ),
            TranslateError::Worker(what) | TranslateError::NoCompiler(what) => {
                Self::new(Error::JIT_COMPILER_NOT_FOUND, format!("error   : {what}"))
            }
            died @ TranslateError::Died(_) => Self::new(Error::INVALID_PTX, format!("error   : {died}")),
            TranslateError::Compiler(what) | TranslateError::BadCodeObject(what) => {
                Self::new(Error::INVALID_PTX, format!("ptxas fatal   : {what}"))
            }
        }
    }
}

/// One line of ptxas' log.
fn diagnostic(line: u32, message: &str) -> String {
    let text = sentence(message);
    let severity = match text.starts_with("Unsupported .target") || text.starts_with("Parsing error") {
        true => "fatal  ",
        false => "error  ",
    };
    format!("ptxas application ptx input, line {line}; {severity} : {text}\n")
}

/// `text` with a capital letter first, as ptxas begins its messages.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_ascii_uppercase())
        .into_iter()
        .chain(letters)
        .collect()
}

/// The translator, set up at the first module.
pub fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| Client::new(Config::from_environment(worker_path())))
}

/// The program beside this library.
fn worker_path() -> PathBuf {
    match own_path().as_deref().and_then(Path::parent) {
        Some(folder) => folder.join(WORKER),
        None => WORKER.into(),
    }
}

/// The file that this code was loaded from.
fn own_path() -> Option<PathBuf> {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked about; `info` is valid for the write.
    let found = unsafe {
        libc::dladdr(
            (own_path as fn() -> Option<PathBuf> as *const ()).cast(),
            info.as_mut_ptr(),
        )
    };
    if found == 0 {
        return None;
    }
    // SAFETY: dladdr succeeded, so it filled the structure; the name is NULL or a string that stays.
    let name = unsafe {
        let info = info.assume_init();
        (!info.dli_fname.is_null()).then(|| CStr::from_ptr(info.dli_fname))?
    };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    // The file may be reached through links (a job's folder): the worker lies beside the real one or beside the link.
    match path.canonicalize() {
        Ok(real) if real.with_file_name(WORKER).exists() => Some(real),
        _ => Some(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_is_looked_for_beside_this_library() {
        assert_eq!(worker_path().file_name(), Some(OsStr::new(WORKER)));
        assert!(own_path().is_some_and(|path| path.exists()));
    }

    #[test]
    fn translation_errors_have_cuda_codes_and_name_the_line() {
        let failure = Failure::from(TranslateError::Unsupported {
            line: 7,
            construct: "wmma.mma.sync".into(),
        });
        assert_eq!(failure.error, Error::INVALID_PTX);
        assert!(failure.log.contains("line 7") && failure.log.contains("wmma.mma.sync"));
        let died = Failure::from(TranslateError::Died("no such luck".into()));
        assert_eq!(died.log, "error   : the translator worker died: no such luck");
        assert_eq!(
            Failure::from(TranslateError::Worker("x".into())).error,
            Error::JIT_COMPILER_NOT_FOUND
        );
    }
}
