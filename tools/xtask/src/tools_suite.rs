//! The suite `tools`: `regauge run` and `regauge doctor` as users meet them, on virtual GPUs and without any.
//!
//! Every finding of the doctor is produced for real: by a missing file, a variable, a folder with other rights, a library that
//! lacks functions. What needs another `/dev` gets one in a mount namespace of its own.

mod doctor;
mod run;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use launcher::{Environment, RocrRoot, VirtualGpu};

use crate::setup::{self, Rocr};
use crate::{Result, bench, process};

const LIMIT: Duration = Duration::from_secs(90);

/// Runs the cases, each reported to `case` as name and outcome.
pub fn run(case: &mut dyn FnMut(String, Result<String>)) -> Result<()> {
    process::must(&mut setup::cargo_build(&["regauge-cli"]))?;
    let bench = Bench::new()?;
    for (name, test) in run::CASES {
        case(format!("regauge run: {name}"), test(&bench));
    }
    for doctor in bench.patients()? {
        let name = format!("regauge doctor: {}", doctor.name);
        case(name, bench.examine(&doctor));
    }
    case("regauge doctor: text, usage, help".into(), bench.doctor_text());
    Ok(())
}

/// What all cases use.
struct Bench {
    scratch: bench::Scratch,
    regauge: PathBuf,
    rocr: PathBuf,
}

impl Bench {
    fn new() -> Result<Self> {
        Ok(Self {
            scratch: bench::Scratch::new("tools")?,
            regauge: bench::release().join("regauge"),
            rocr: Rocr::V612.ensure()?.ok_or("no ROCr root")?,
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.scratch.path().join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    fn c_library(&self, name: &str, source: &str, options: &[&str]) -> Result<PathBuf> {
        let file = self.write(&format!("{name}.c"), source)?;
        let library = self.scratch.path().join(name);
        let mut command = Command::new("gcc");
        command
            .args(["-shared", "-fPIC", "-w", "-o"])
            .arg(&library)
            .arg(&file)
            .args(options);
        process::must(&mut command)?;
        Ok(library)
    }

    /// A machine: so many virtual GPUs, or its own, and that ROCr, or its own.
    fn environment(&self, gpus: Option<u32>, rocr: Option<&Path>) -> Result<Environment> {
        let mut environment = Environment::default();
        if let Some(gpus) = gpus {
            let mut vgpu = VirtualGpu::new(
                &bench::release().join("libvgpu.so"),
                &self.scratch.path().join(format!("vgpu-{gpus}")),
            )?;
            vgpu.gpus = gpus;
            environment.vgpu = Some(vgpu);
        }
        environment.rocr = rocr.map(RocrRoot::in_directory).transpose()?;
        Ok(environment)
    }
}

fn contains(output: &str, words: &[impl AsRef<str>]) -> Result<()> {
    match words.iter().find(|text| !output.contains(text.as_ref())) {
        Some(text) => Err(format!("{:?} is not in:\n{output}", text.as_ref()).into()),
        None => Ok(()),
    }
}

/// A folder of links to all that belongs beside the libraries, but for the files `without`.
fn linked_folder(folder: &Path, without: &[&str]) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let names = launcher::libraries::SONAMES
        .into_iter()
        .chain(["regauge-ptx-worker", "libvgpu.so"]);
    for name in names.filter(|name| !without.contains(name)) {
        symlink(bench::release().join(name).canonicalize()?, folder.join(name))?;
    }
    Ok(folder.to_owned())
}
