//! The suite `dist`: the archive, unpacked into a clean folder and used from there with nothing else of the tree in sight.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::setup::Rocr;
use crate::{Result, bench, dist, process, programs};

/// The newest glibc that released files may need.
const GLIBC: (u32, u32) = (2, 31);

/// An unpacked archive.
pub struct Unpacked {
    scratch: bench::Scratch,
    tree: PathBuf,
}

impl Unpacked {
    /// Makes the archive, unpacks it, and moves the folder: it must not matter where it lies.
    pub fn new() -> Result<Self> {
        let archive = dist::make(false)?;
        let scratch = bench::Scratch::new("dist")?;
        process::must(
            Command::new("tar")
                .arg("-xzf")
                .arg(&archive.path)
                .arg("-C")
                .arg(scratch.path()),
        )?;
        let tree = scratch.path().join("moved-here").join("regauge");
        fs::create_dir_all(scratch.path().join("moved-here"))?;
        fs::rename(scratch.path().join(&archive.folder), &tree)?;
        Ok(Self { scratch, tree })
    }

    fn lib(&self) -> PathBuf {
        self.tree.join("lib")
    }

    /// A command that sees the system and the archive only.
    fn clean(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.scratch.path())
            .current_dir(self.scratch.path());
        command
    }

    /// `regauge run` of the archive's own, over virtual GPUs.
    fn regauge_run(&self, program: &Path) -> Result<Command> {
        let mut command = self.clean(self.tree.join("bin/regauge"));
        command.args(["run", "--virtual-gpus", "2"]);
        if let Some(rocr) = Rocr::V612.ensure()? {
            command.arg("--rocr").arg(rocr);
        }
        command.arg("--").arg(program);
        Ok(command)
    }

    /// Every ELF file of the archive.
    fn binaries(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for folder in ["bin", "lib"] {
            for entry in fs::read_dir(self.tree.join(folder))? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    found.push(entry.path());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Names, links and documents are where users look for them.
    pub fn contents(&self) -> Result<String> {
        let version = dist::VERSION;
        let mut expected: Vec<String> = ["bin/regauge", "bin/vgpu", "lib/regauge-ptx-worker", "lib/libvgpu.so"]
            .map(String::from)
            .to_vec();
        expected.extend(launcher::libraries::SONAMES.map(|soname| format!("lib/{soname}")));
        expected.extend(["cuda", "cudart", "nvidia-ml"].map(|name| format!("lib/pkgconfig/{name}-12.9.pc")));
        expected.extend(
            [
                "README.md",
                "LICENSE-MIT",
                "LICENSE-APACHE",
                "share/doc/regauge/api-status.md",
            ]
            .map(String::from),
        );
        expected.extend(["", ".lua"].map(|end| format!("share/modulefiles/regauge/{version}{end}")));
        for name in &expected {
            let kind = self.tree.join(name).symlink_metadata();
            if !kind.is_ok_and(|data| data.is_file()) {
                return Err(format!("{name} is no file of the archive").into());
            }
        }
        for name in ["libcudart.so", "libcuda.so", "libnvidia-ml.so"] {
            let target = fs::read_link(self.lib().join(name)).map_err(|error| format!("{name}: {error}"))?;
            if target.components().count() != 1 || !self.lib().join(&target).is_file() {
                return Err(format!("{name} points to {}", target.display()).into());
            }
        }
        Ok(format!("{} files and 3 links", expected.len()))
    }

    /// Nothing needs a newer C library than old systems have.
    pub fn glibc(&self) -> Result<String> {
        let mut faults = Vec::new();
        let mut newest = (0, 0);
        for file in self.binaries()? {
            let listing = readelf(&file, "--version-info")?;
            for word in listing.split_whitespace() {
                let Some(version) = word.strip_prefix("GLIBC_").and_then(two_numbers) else {
                    continue;
                };
                newest = newest.max(version);
                if version > GLIBC {
                    faults.push(format!("{} needs {word}", file.display()));
                }
            }
        }
        faults.dedup();
        if faults.is_empty() {
            Ok(format!("at most GLIBC_{}.{}", newest.0, newest.1))
        } else {
            Err(faults.join("\n").into())
        }
    }

    /// No search path but `$ORIGIN`, no folder of the builder's in any file, no debug information.
    pub fn anonymous(&self) -> Result<String> {
        let mut faults = Vec::new();
        let folders = dist::builder_folders()?;
        for file in self.binaries()? {
            let name = file.display();
            for line in readelf(&file, "--dynamic")?.lines() {
                let path = line.contains("(RPATH)") || line.contains("(RUNPATH)");
                if path && !line.contains("[$ORIGIN]") {
                    faults.push(format!("{name}: {}", line.trim()));
                }
            }
            if readelf(&file, "--sections")?.contains(".debug_info") {
                faults.push(format!("{name}: has debug information"));
            }
            let bytes = fs::read(&file)?;
            for (folder, _) in &folders {
                let folder = folder.as_os_str().as_encoded_bytes();
                if let Some(at) = bytes.windows(folder.len()).position(|window| window == folder) {
                    let end = bytes.len().min(at + 160);
                    let text = String::from_utf8_lossy(&bytes[at..end]);
                    let text = text.split('\0').next().unwrap_or_default();
                    faults.push(format!("{name}: names a folder of the builder's: {text}"));
                }
            }
        }
        if faults.is_empty() {
            Ok(String::new())
        } else {
            Err(faults.join("\n").into())
        }
    }

    /// A C program, linked by what pkg-config says, runs on the archive's libraries and on no others.
    pub fn c_program(&self) -> Result<String> {
        let output = self
            .clean("pkg-config")
            .env("PKG_CONFIG_PATH", self.lib().join("pkgconfig"))
            .args(["--cflags", "--libs", "cuda-12.9", "cudart-12.9", "nvidia-ml-12.9"])
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        if !output.status.success() {
            return Err(format!("pkg-config: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let flags = shell_words(text.trim());
        for expected in ["-lcuda", "-lcudart", "-lnvidia-ml"] {
            if !flags.iter().any(|flag| flag == expected) {
                return Err(format!("pkg-config does not say {expected}: {text}").into());
            }
        }
        let program = self.scratch.path().join("installed");
        let source = bench::root().join("tests/programs/installed.c");
        let mut command = self.clean("gcc");
        command
            .args(["-O1", "-Wall", "-Werror"])
            .arg(&source)
            .arg("-o")
            .arg(&program);
        process::must(command.args(&flags))?;
        let output = self.runs(&program)?;
        let lib = self.lib().canonicalize()?;
        // A program of CUDA 12 maps no other major version's runtime.
        for soname in ["libcudart.so.12", "libcuda.so.1", "libnvidia-ml.so.1"] {
            let line = output
                .lines()
                .filter_map(|line| line.strip_prefix("mapped "))
                .find(|path| path.ends_with(soname))
                .ok_or_else(|| format!("{soname} is not mapped:\n{output}"))?;
            if Path::new(line) != lib.join(soname) {
                return Err(format!("{soname} came from {line}").into());
            }
        }
        Ok(output.lines().next().unwrap_or_default().to_owned())
    }

    /// A CUDA program that nvcc linked to NVIDIA's library runs on the archive's: its kernel is translated and computes.
    pub fn cuda_program(&self) -> Result<String> {
        let program = programs::cuda("vadd")?;
        let output = self.runs(&program)?;
        Ok(output.lines().last().unwrap_or_default().to_owned())
    }

    fn runs(&self, program: &Path) -> Result<String> {
        let outcome = process::run(&mut self.regauge_run(program)?, Duration::from_secs(120))?;
        if outcome.success() {
            Ok(outcome.output)
        } else {
            Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into())
        }
    }

    /// The Tcl module file, read by a Tcl shell that knows the module commands, names the folders of the archive.
    pub fn tcl_module(&self) -> Result<String> {
        let file = self.tree.join("share/modulefiles/regauge").join(dist::VERSION);
        // Modules binds this variable and these commands before it reads a module file.
        let reader = r#"
            set ModulesCurrentModulefile [lindex $argv 0]
            proc prepend-path {name value} { puts "$name=$value" }
            proc module-whatis {args} {}
            proc conflict {args} {}
            source [lindex $argv 0]
        "#;
        let script = self.scratch.path().join("module.tcl");
        fs::write(&script, reader)?;
        self.check_paths(self.clean("tclsh").arg(&script).arg(&file))
    }

    /// The same for Lmod's.
    pub fn lua_module(&self) -> Result<String> {
        let file = format!(
            "{}/share/modulefiles/regauge/{}.lua",
            self.tree.display(),
            dist::VERSION
        );
        let reader = r#"
            local file = arg[1]
            function myFileName() return file end
            function pathJoin(a, b) return a .. "/" .. b end
            function prepend_path(name, value) print(name .. "=" .. value) end
            help, whatis, conflict = print, function() end, function() end
            help = function() end
            dofile(file)
        "#;
        let script = self.scratch.path().join("module.lua");
        fs::write(&script, reader)?;
        self.check_paths(self.clean("lua5.4").arg(&script).arg(&file))
    }

    /// Each of the module's variables must name a folder of the archive.
    fn check_paths(&self, command: &mut Command) -> Result<String> {
        let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
        let text = String::from_utf8(output.stdout)?;
        if !output.status.success() {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let mut names = Vec::new();
        for line in text.lines() {
            let (name, folder) = line.split_once('=').ok_or_else(|| format!("not a variable: {line}"))?;
            if !Path::new(folder).starts_with(&self.tree) || !Path::new(folder).is_dir() {
                return Err(format!("{line} is no folder of the archive").into());
            }
            names.push(name.to_owned());
        }
        names.sort();
        let expected = ["LD_LIBRARY_PATH", "LIBRARY_PATH", "PATH", "PKG_CONFIG_PATH"];
        if names == expected {
            Ok(names.join(", "))
        } else {
            Err(format!("sets {names:?}").into())
        }
    }
}

fn readelf(file: &Path, what: &str) -> Result<String> {
    let output = Command::new("readelf").args(["--wide", what]).arg(file).output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("readelf {what} {}: {}", file.display(), output.status).into())
    }
}

/// `2.31` as (2, 31); of `2.3.4` the first two.
fn two_numbers(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The words of pkg-config's output, which escapes spaces of folder names with a backslash.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, words.last_mut()) {
            (' ', _) => words.push(String::new()),
            ('\\', Some(word)) => word.extend(characters.next()),
            (_, Some(word)) => word.push(character),
            (_, None) => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(two_numbers("2.4") < two_numbers("2.31"));
        assert_eq!(two_numbers("2.3.4"), Some((2, 3)));
        assert_eq!(two_numbers("PRIVATE"), None);
    }

    #[test]
    fn escaped_spaces_belong_to_a_word() {
        assert_eq!(shell_words(r"-L/a\ b/lib  -lcuda"), ["-L/a b/lib", "-lcuda"]);
    }
}
