//! Starts programs with Regauge's libraries and, if asked, a virtual GPU and a ROCr other than the machine's.
//!
//! One crate serves the `regauge run` command and the test bench, so what the bench measures is what users start.

pub mod libraries;
pub mod machine;
pub mod rocr;
pub mod vgpu;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;

pub use libraries::Libraries;
pub use machine::Machine;
pub use rocr::RocrRoot;
pub use vgpu::{Bar, Link, VirtualGpu};

/// What a system call left in `errno`, if its result says that it failed.
fn check(result: i32) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// How a program is to be started. Every part is optional: nothing set starts the program as the shell would.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Regauge's libraries in front of everything else.
    pub libraries: Option<Libraries>,
    /// Preload the libraries as well, for programs with an RPATH of their own.
    pub preload: bool,
    /// A virtual GPU preloaded into the program and its children.
    pub vgpu: Option<VirtualGpu>,
    /// A ROCr installation laid over the machine's library folder for the program and its children.
    pub rocr: Option<RocrRoot>,
    /// Further variables, set last.
    pub variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// A command for `program` in this environment. Variables of the calling process stay, lists are extended in front.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let mut library_path = PathList::from_environment("LD_LIBRARY_PATH", ':');
        let mut preload = PathList::from_environment("LD_PRELOAD", ':');
        if let Some(libraries) = &self.libraries {
            library_path.push_front(libraries.directory());
            if self.preload {
                libraries
                    .preloads()
                    .iter()
                    .rev()
                    .for_each(|file| preload.push_front(file));
            }
        }
        if let Some(vgpu) = &self.vgpu {
            preload.push_front(vgpu.preload());
            command.envs(vgpu.variables());
        }
        if let Some(rocr) = &self.rocr {
            rocr.prepare(&mut command, &mut library_path);
        }
        library_path.apply(&mut command);
        preload.apply(&mut command);
        command.envs(self.variables.iter().map(|(key, value)| (key, value)));
        command
    }
}

/// A separated list of paths in an environment variable.
pub struct PathList {
    variable: &'static str,
    separator: char,
    value: OsString,
}

impl PathList {
    /// The list as the calling process has it.
    pub fn from_environment(variable: &'static str, separator: char) -> Self {
        Self {
            variable,
            separator,
            value: std::env::var_os(variable).unwrap_or_default(),
        }
    }

    /// Puts `path` in front of the others.
    pub fn push_front(&mut self, path: &Path) {
        let mut value = path.as_os_str().to_owned();
        if !self.value.is_empty() {
            value.push(self.separator.to_string());
            value.push(&self.value);
        }
        self.value = value;
    }

    fn apply(self, command: &mut Command) {
        if !self.value.is_empty() {
            command.env(self.variable, self.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_list_grows_in_front() {
        let mut list = PathList {
            variable: "X",
            separator: ':',
            value: OsString::from("/b"),
        };
        list.push_front(Path::new("/a"));
        assert_eq!(list.value, "/a:/b");
    }

    #[test]
    fn an_empty_environment_changes_no_variable() {
        let command = Environment::default().command("true");
        let set: Vec<_> = command
            .get_envs()
            .filter(|(key, _)| *key != "LD_LIBRARY_PATH" && *key != "LD_PRELOAD")
            .collect();
        assert!(set.is_empty(), "{set:?}");
    }
}
