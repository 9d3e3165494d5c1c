//! `regauge doctor`: every finding, produced for real.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::{Bench, LIMIT, contains, linked_folder};
use crate::Result;
use crate::process::{self, Outcome};
use crate::setup::{self, Rocr};

/// A machine for the doctor, and what it must find: all that is not well, and a word about each check that is.
pub struct Patient {
    /// For reports.
    pub name: &'static str,
    gpus: Option<u32>,
    rocr: Option<PathBuf>,
    variables: Vec<(&'static str, OsString)>,
    options: Vec<OsString>,
    /// A script for sh that makes another `/dev`, in a mount namespace, before the doctor starts; `setpriv` takes away what lets
    /// root open files whose mode forbids it.
    namespace: Option<String>,
    /// Check, `problem` or `warning`, words of the text, words of the cure.
    expected: Vec<[&'static str; 4]>,
    /// Check and words of the text of what is well.
    well: Vec<[&'static str; 2]>,
}

/// A script that runs its arguments with another `/dev`, which `make` fills; `plain`: without what lets root open files whose mode
/// forbids it.
fn other_dev(make: &str, plain: bool) -> String {
    let run = if plain {
        "exec setpriv --bounding-set=-dac_override,-dac_read_search \"$@\""
    } else {
        "exec \"$@\""
    };
    format!(
        "mount -t tmpfs none /mnt && : > /mnt/null && mount --bind /dev/null /mnt/null && cd /mnt && {make} && cd / && \
         mount --rbind /mnt /dev && {run}"
    )
}

/// Takes away every compiler for GPUs: AMD's library, and clang where distributions and ROCm have it.
const NO_COMPILER: &str = "for file in /usr/lib/x86_64-linux-gnu/libamd_comgr.so*; do mount --bind /dev/null $file; done && \
    for folder in /usr/lib/llvm-* /opt; do mount -t tmpfs none $folder || exit; done && exec \"$@\"";

impl Bench {
    /// A machine where all is well.
    fn healthy(&self, name: &'static str) -> Patient {
        Patient {
            name,
            gpus: Some(2),
            rocr: Some(self.rocr.clone()),
            variables: Vec::new(),
            options: Vec::new(),
            namespace: None,
            expected: Vec::new(),
            well: Vec::new(),
        }
    }

    /// All machines.
    pub fn patients(&self) -> Result<Vec<Patient>> {
        let file = |name: &str| self.scratch.path().join(name);
        let with = |name, variable, value: &OsStr, expected: &[[&'static str; 4]]| Patient {
            variables: vec![(variable, value.to_owned())],
            expected: expected.to_vec(),
            ..self.healthy(name)
        };
        // A ROCr that has hsa_init and nothing else.
        let old = self.c_library("libhsa-runtime64.so.1", "int hsa_init(void) { return 0; }", &[])?;
        let no_worker = linked_folder(&file("no-worker"), &["regauge-ptx-worker"])?;
        let no_runtime = linked_folder(&file("no-runtime"), &["libcudart.so.12"])?;
        let mixed = linked_folder(&file("mixed"), &["libcudart.so.12"])?;
        symlink(
            setup::nvcc()?.join("lib64/libcudart.so.12").canonicalize()?,
            mixed.join("libcudart.so.12"),
        )?;
        let open = file("open");
        fs::create_dir_all(&open)?;
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777))?;
        let foreign = file("foreign");
        fs::create_dir_all(&foreign)?;
        for soname in ["libcuda.so.1", "libcudart.so.12"] {
            fs::write(foreign.join(soname), "another's")?;
        }
        let mut rocms = OsString::new();
        for name in ["rocm-a", "rocm-b"] {
            fs::create_dir_all(file(name))?;
            fs::write(file(name).join("libamdhip64.so.6"), "HIP")?;
            rocms.push(file(name));
            rocms.push(":");
        }
        let missing = OsStr::new("/no/such/file");
        let not_installed = [
            "ROCr",
            "problem",
            "AMD's HSA runtime (ROCr) is not installed: ",
            "REGAUGE_ROCR",
        ];
        Ok(vec![
            Patient {
                well: vec![
                    ["kernel driver", "/dev/kfd opens"],
                    ["ROCr", "libhsa-runtime64.so.1"],
                    ["devices", "2 GPUs: gfx90a, gfx90a"],
                    ["visible devices", "no variable hides a GPU"],
                    ["CUDA", "2 devices (ROCr shows 2 GPUs)"],
                    ["translator", "a kernel compiles for Gfx90a"],
                    ["cache", "is usable"],
                ],
                ..self.healthy("all is well")
            },
            Patient {
                rocr: Rocr::V523.ensure()?,
                well: vec![
                    ["ROCr", "it has all that is needed, and lacks the optional "],
                    ["CUDA", "2 devices (ROCr shows 2 GPUs)"],
                ],
                ..self.healthy("ROCr 5.2.3 lacks optional functions")
            },
            with(
                "ROCr that REGAUGE_ROCR names is not there",
                "REGAUGE_ROCR",
                missing,
                &[[
                    "ROCr",
                    "problem",
                    "/no/such/file: cannot open shared object file",
                    "REGAUGE_ROCR names the library to use: correct or unset it",
                ]],
            ),
            with(
                "ROCr is too old",
                "REGAUGE_ROCR",
                old.as_os_str(),
                &[[
                    "ROCr",
                    "problem",
                    "is older than 5.2: it lacks ",
                    "use ROCm 5.2 or newer",
                ]],
            ),
            Patient {
                gpus: None,
                namespace: Some(other_dev("true", false)),
                expected: vec![
                    [
                        "kernel driver",
                        "problem",
                        "there is no /dev/kfd: the amdgpu kernel driver is not loaded, or this is a container without it",
                        "--device=/dev/kfd",
                    ],
                    [
                        "ROCr",
                        "problem",
                        "hsa_init fails: ",
                        "the kernel driver is what is missing",
                    ],
                ],
                ..self.healthy("no kernel driver")
            },
            Patient {
                gpus: None,
                rocr: None,
                variables: vec![("REGAUGE_ROCR", missing.to_owned())],
                namespace: Some(other_dev(": > kfd && chgrp video kfd && chmod 0 kfd", true)),
                expected: vec![
                    [
                        "kernel driver",
                        "problem",
                        "/dev/kfd may not be opened by this user",
                        "it belongs to group video: become a member",
                    ],
                    not_installed,
                ],
                ..self.healthy("/dev/kfd belongs to a group")
            },
            Patient {
                gpus: None,
                rocr: None,
                variables: vec![("REGAUGE_ROCR", missing.to_owned())],
                namespace: Some(other_dev(
                    ": > kfd && mkdir dri && : > dri/renderD128 && chmod 0 dri/renderD128",
                    true,
                )),
                expected: vec![
                    [
                        "kernel driver",
                        "problem",
                        "/dev/dri/renderD128 may not be opened by this user",
                        "become a member",
                    ],
                    not_installed,
                ],
                ..self.healthy("a render node belongs to a group")
            },
            Patient {
                gpus: None,
                rocr: None,
                variables: vec![("REGAUGE_ROCR", missing.to_owned())],
                namespace: Some(other_dev(": > kfd", false)),
                expected: vec![
                    [
                        "kernel driver",
                        "problem",
                        "there is no /dev/dri/renderD* although there is /dev/kfd",
                        "--device=/dev/dri",
                    ],
                    not_installed,
                ],
                ..self.healthy("a container without render nodes")
            },
            with(
                "ROCR_VISIBLE_DEVICES chooses no GPU that there is",
                "ROCR_VISIBLE_DEVICES",
                OsStr::new("7"),
                &[["devices", "problem", "ROCr sees no GPU", "ROCR_VISIBLE_DEVICES"]],
            ),
            with(
                "CUDA_VISIBLE_DEVICES hides every GPU",
                "CUDA_VISIBLE_DEVICES",
                OsStr::new("-1"),
                &[
                    [
                        "visible devices",
                        "warning",
                        "CUDA_VISIBLE_DEVICES is set to \"-1\", which hides every GPU",
                        "unset CUDA_VISIBLE_DEVICES",
                    ],
                    [
                        "CUDA",
                        "problem",
                        "CUDA sees none of the 2 GPUs that ROCr shows (cuInit fails with 100,",
                        "CUDA_VISIBLE_DEVICES",
                    ],
                ],
            ),
            with(
                "CUDA_VISIBLE_DEVICES names a GPU twice",
                "CUDA_VISIBLE_DEVICES",
                OsStr::new("0,0"),
                &[[
                    "CUDA",
                    "problem",
                    "cuInit fails with error 101",
                    "a device list may name a GPU twice",
                ]],
            ),
            Patient {
                variables: vec![
                    ("CUDA_VISIBLE_DEVICES", "0".into()),
                    ("ROCR_VISIBLE_DEVICES", "0,1".into()),
                ],
                expected: vec![[
                    "visible devices",
                    "warning",
                    "ROCR_VISIBLE_DEVICES=0,1 and CUDA_VISIBLE_DEVICES=0 differ",
                    "set both alike",
                ]],
                well: vec![["CUDA", "1 devices (ROCr shows 2 GPUs)"]],
                ..self.healthy("the two variables differ")
            },
            Patient {
                variables: vec![
                    ("CUDA_VISIBLE_DEVICES", "1".into()),
                    ("ROCR_VISIBLE_DEVICES", "1".into()),
                ],
                well: vec![["CUDA", "1 devices (ROCr shows 1 GPUs)"]],
                ..self.healthy("the two variables alike, as Slurm sets them")
            },
            with(
                "HIP_VISIBLE_DEVICES alone",
                "HIP_VISIBLE_DEVICES",
                OsStr::new("0"),
                &[[
                    "visible devices",
                    "warning",
                    "HIP_VISIBLE_DEVICES=0 chooses for HIP programs only",
                    "set ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES",
                ]],
            ),
            with(
                "another's CUDA libraries come first",
                "LD_LIBRARY_PATH",
                foreign.as_os_str(),
                &[
                    [
                        "library path",
                        "warning",
                        "/foreign/libcudart.so.12 comes before Regauge's on LD_LIBRARY_PATH",
                        "in front, or start programs by `regauge run`",
                    ],
                    [
                        "library path",
                        "warning",
                        "/foreign/libcuda.so.1 comes before Regauge's on LD_LIBRARY_PATH",
                        "",
                    ],
                ],
            ),
            with(
                "two ROCms on the path",
                "LD_LIBRARY_PATH",
                &rocms,
                &[[
                    "library path",
                    "warning",
                    "LD_LIBRARY_PATH has two ROCms, ",
                    "unload a rocm module",
                ]],
            ),
            with(
                "the translator's program is not there",
                "REGAUGE_PTX_WORKER",
                missing,
                &[[
                    "translator",
                    "problem",
                    "there is no program /no/such/file",
                    "REGAUGE_PTX_WORKER",
                ]],
            ),
            Patient {
                options: vec!["--libraries".into(), no_worker.into()],
                expected: vec![[
                    "translator",
                    "problem",
                    "/regauge-ptx-worker",
                    "copy regauge-ptx-worker of the same build beside libcuda.so.1",
                ]],
                ..self.healthy("a folder without the translator")
            },
            Patient {
                options: vec!["--libraries".into(), no_runtime.into()],
                expected: vec![[
                    "libraries",
                    "problem",
                    "/no-runtime has no libcudart.so.12",
                    "name theirs with --libraries",
                ]],
                ..self.healthy("a folder without a library")
            },
            Patient {
                options: vec!["--libraries".into(), "/no/such/folder".into()],
                expected: vec![[
                    "libraries",
                    "problem",
                    "/no/such/folder: No such file or directory",
                    "--libraries",
                ]],
                ..self.healthy("no such folder")
            },
            with(
                "REGAUGE_COMGR names nothing",
                "REGAUGE_COMGR",
                missing,
                &[[
                    "translator",
                    "problem",
                    "the compiler library named by REGAUGE_COMGR, /no/such/file, cannot be loaded",
                    "name the library in REGAUGE_COMGR",
                ]],
            ),
            Patient {
                namespace: Some(NO_COMPILER.into()),
                expected: vec![[
                    "translator",
                    "problem",
                    "AMD's compiler library (comgr) does not work: no compiler for the GPU: libamd_comgr cannot be loaded",
                    "REGAUGE_COMGR",
                ]],
                ..self.healthy("AMD's compiler is not there, nor any clang")
            },
            with(
                "the cache can be written by others",
                "REGAUGE_CACHE_DIR",
                open.as_os_str(),
                &[[
                    "cache",
                    "warning",
                    "/open can be written by others (chmod go-w): kernels are translated anew in every run",
                    "REGAUGE_CACHE_DIR",
                ]],
            ),
            with(
                "the cache is below a file",
                "REGAUGE_CACHE_DIR",
                file("libhsa-runtime64.so.1.c").join("x").as_os_str(),
                &[[
                    "cache",
                    "warning",
                    "is no folder: kernels are translated anew",
                    "REGAUGE_CACHE_DIR",
                ]],
            ),
            Patient {
                variables: vec![("REGAUGE_CACHE_DIR", "/mnt/cache".into())],
                namespace: Some("mount -t tmpfs -o ro none /mnt && exec \"$@\"".into()),
                expected: vec![[
                    "cache",
                    "warning",
                    "/mnt cannot be written: kernels are translated anew",
                    "REGAUGE_CACHE_DIR",
                ]],
                ..self.healthy("the cache's file system is read-only")
            },
            with(
                "the cache is turned off",
                "REGAUGE_CACHE",
                OsStr::new("0"),
                &[["cache", "warning", "turned off by REGAUGE_CACHE=0", ""]],
            ),
        ])
    }

    fn doctor(&self, patient: &Patient, json: bool) -> Result<Outcome> {
        let environment = self.environment(patient.gpus, patient.rocr.as_deref())?;
        let mut command = match &patient.namespace {
            None => environment.command(&self.regauge),
            Some(script) => {
                let mut command = environment.command("unshare");
                // SAFETY: no preconditions.
                if unsafe { libc::geteuid() } != 0 {
                    command.arg("--map-root-user");
                }
                command.args(["--mount", "sh", "-c", script, "sh"]).arg(&self.regauge);
                command
            }
        };
        command
            .arg("doctor")
            .args(&patient.options)
            .args(json.then_some("--json"));
        if launcher::rocr::namespaces_allowed() {
            // Cargo's, with which it starts this bench; without namespaces ROCr comes by it.
            command.env_remove("LD_LIBRARY_PATH");
        }
        for name in ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"] {
            command.env_remove(name);
        }
        command.env("REGAUGE_CACHE_DIR", self.scratch.path().join("cache"));
        command.envs(patient.variables.iter().map(|(name, value)| (name, value)));
        process::run(&mut command, LIMIT)
    }

    /// The doctor's JSON: exactly what is expected is not well, and the status follows from it.
    pub fn examine(&self, patient: &Patient) -> Result<String> {
        if patient.namespace.is_some() && !launcher::rocr::namespaces_allowed() {
            return Ok("left out: this user may not make a mount namespace".into());
        }
        let outcome = self.doctor(patient, true)?;
        let wrong = |what: String| Err(format!("{what}\n{}:\n{}", outcome.ending(), outcome.output).into());
        let json = outcome.output.find('{').map_or("", |at| &outcome.output[at..]);
        let Ok(json) = serde_json::from_str::<Value>(json) else {
            return wrong("no JSON".into());
        };
        let findings: Vec<[&str; 4]> = json["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|finding| ["check", "verdict", "text", "cure"].map(|key| finding[key].as_str().unwrap_or_default()))
            .collect();
        let fits = |found: &[&str; 4], wanted: &[&str; 4]| {
            found[0] == wanted[0]
                && found[1] == wanted[1]
                && found[2].contains(wanted[2])
                && found[3].contains(wanted[3])
        };
        for wanted in &patient.expected {
            if !findings.iter().any(|found| fits(found, wanted)) {
                return wrong(format!("not found: {wanted:?}"));
            }
        }
        for found in findings.iter().filter(|found| found[1] != "ok") {
            if !patient.expected.iter().any(|wanted| fits(found, wanted)) {
                return wrong(format!("not expected: {found:?}"));
            }
        }
        for [check, words] in &patient.well {
            if !findings.iter().any(|found| fits(found, &[check, "ok", words, ""])) {
                return wrong(format!("{check} is not well, or does not say {words:?}"));
            }
        }
        let count = |verdict| findings.iter().filter(|found| found[1] == verdict).count();
        let (problems, warnings) = (count("problem"), count("warning"));
        if json["problems"] != problems
            || json["warnings"] != warnings
            || outcome.status.code() != Some(i32::from(problems > 0))
        {
            return wrong(format!("{problems} problems, {warnings} warnings"));
        }
        Ok(format!(
            "{problems} problems, {warnings} warnings, {} well",
            count("ok")
        ))
    }

    /// The report as people read it, and its options.
    pub fn doctor_text(&self) -> Result<String> {
        let well = self.doctor(&self.healthy(""), false)?;
        contains(
            &well.output,
            &["ok       devices: 2 GPUs", "\nCUDA programs can run here.\n"],
        )?;
        let mut patient = self.healthy("");
        patient.variables.push(("REGAUGE_PTX_WORKER", "/no/such/file".into()));
        patient.variables.push(("HIP_VISIBLE_DEVICES", "0".into()));
        let ill = self.doctor(&patient, false)?;
        contains(
            &ill.output,
            &[
                "PROBLEM  translator: there is no program /no/such/file\n           -> copy regauge-ptx-worker",
                "warning  visible devices: HIP_VISIBLE_DEVICES=0",
                "1 problems: CUDA programs cannot run here as they should.",
            ],
        )?;
        if !well.success() || ill.status.code() != Some(1) {
            return Err(format!("{}, {}", well.ending(), ill.ending()).into());
        }
        let mut command = Command::new(&self.regauge);
        let usage = process::run(command.args(["doctor", "--no-such-option"]), LIMIT)?;
        let mut command = Command::new(&self.regauge);
        let help = process::run(command.args(["doctor", "--help"]), LIMIT)?;
        contains(&help.output, &["Exit status"])?;
        if usage.status.code() != Some(2) || !help.success() {
            return Err(format!("usage: {}, help: {}", usage.ending(), help.ending()).into());
        }
        Ok(String::new())
    }
}
