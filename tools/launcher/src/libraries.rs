//! Where Regauge's libraries are.

use std::io;
use std::path::{Path, PathBuf};

/// The file names that programs ask the dynamic loader for.
pub const SONAMES: [&str; 5] = [
    "libcudart.so.12",
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libcudart.so.11.0",
    "libcudart.so.13",
];

/// Those that LD_PRELOAD takes: one runtime, since what is looked up by name alone must find one answer.
pub const PRELOADED: [&str; 3] = ["libcudart.so.12", "libcuda.so.1", "libnvidia-ml.so.1"];

/// A folder that holds all of Regauge's libraries under their SONAMEs.
#[derive(Clone, Debug)]
pub struct Libraries {
    directory: PathBuf,
}

impl Libraries {
    /// Takes `directory` if every library is in it.
    ///
    /// # Errors
    /// `NotFound`, naming the first library that is missing, or the folder.
    pub fn in_directory(directory: &Path) -> io::Result<Self> {
        let directory = existing(directory)?;
        for soname in SONAMES {
            if !directory.join(soname).exists() {
                let text = format!(
                    "{} has no {soname}: it is no folder of Regauge's, or not all of it is built",
                    directory.display()
                );
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
        }
        Ok(Self { directory })
    }

    /// All libraries.
    pub fn files(&self) -> [PathBuf; SONAMES.len()] {
        SONAMES.map(|soname| self.directory.join(soname))
    }

    /// Those to preload: the runtimes of other CUDA versions are found by their names where a program needs one.
    pub fn preloads(&self) -> [PathBuf; PRELOADED.len()] {
        PRELOADED.map(|soname| self.directory.join(soname))
    }

    /// The folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// The folder's own path, or an error that names it.
pub(crate) fn existing(directory: &Path) -> io::Result<PathBuf> {
    directory
        .canonicalize()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", directory.display())))
}
