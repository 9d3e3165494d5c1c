//! What can be wrong with an environment, found without starting anything of CUDA. `run` warns of it, `doctor` reports it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use launcher::Libraries;
use launcher::libraries::SONAMES;

use crate::elf;

/// One finding: what is the matter, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What is the matter.
    pub text: String,
    /// What to do.
    pub cure: String,
}

fn advice(text: impl Into<String>, cure: impl Into<String>) -> Advice {
    Advice {
        text: text.into(),
        cure: cure.into(),
    }
}

/// The visibility variables, by their values.
pub fn visibility(variable: impl Fn(&str) -> Option<String>) -> Vec<Advice> {
    let mut all = Vec::new();
    let cuda = variable("CUDA_VISIBLE_DEVICES").map(|text| text.trim().to_owned());
    let rocr = variable("ROCR_VISIBLE_DEVICES").map(|text| text.trim().to_owned());
    for (name, value) in [("CUDA_VISIBLE_DEVICES", &cuda), ("ROCR_VISIBLE_DEVICES", &rocr)] {
        if value.as_deref().is_some_and(|value| value.is_empty() || value == "-1") {
            all.push(advice(
                format!(
                    "{name} is set to {:?}, which hides every GPU",
                    value.as_deref().unwrap_or_default()
                ),
                format!("unset {name}, or ask the batch system for a GPU"),
            ));
        }
    }
    if let (Some(cuda), Some(rocr)) = (&cuda, &rocr)
        && cuda != rocr
        && !rocr.is_empty()
    {
        all.push(advice(
            format!(
                "ROCR_VISIBLE_DEVICES={rocr} and CUDA_VISIBLE_DEVICES={cuda} differ: the first chooses among the node's \
                 GPUs, the second among those that are left"
            ),
            "unset one of them, or set both alike (then the choice is made once)",
        ));
    }
    if let Some(hip) = variable("HIP_VISIBLE_DEVICES")
        && cuda.is_none()
        && rocr.is_none()
    {
        all.push(advice(
            format!("HIP_VISIBLE_DEVICES={hip} chooses for HIP programs only"),
            "set ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES for CUDA programs",
        ));
    }
    all
}

/// Folders of a library path that hold another libcudart, libcuda or NVML before ours comes.
pub fn foreign_libraries(path: &OsStr, ours: &Libraries) -> Vec<Advice> {
    let mut all = Vec::new();
    for folder in std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()) {
        if is_ours(&folder, ours) {
            break;
        }
        for soname in SONAMES {
            let file = folder.join(soname);
            if file.exists() && !file.canonicalize().is_ok_and(|real| real.starts_with(ours.directory())) {
                all.push(advice(
                    format!("{} comes before Regauge's on LD_LIBRARY_PATH", file.display()),
                    format!(
                        "put {} in front, or start programs by `regauge run`",
                        ours.directory().display()
                    ),
                ));
            }
        }
    }
    all
}

fn is_ours(folder: &Path, ours: &Libraries) -> bool {
    folder.canonicalize().is_ok_and(|folder| folder == ours.directory())
}

/// Folders of a library path with another ROCr or HIP than the first such folder: two ROCms in one process do not work.
pub fn two_rocms(path: &OsStr) -> Vec<Advice> {
    let rocm = |folder: &PathBuf| {
        [
            "libhsa-runtime64.so.1",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
            "libamdhip64.so.7",
        ]
        .iter()
        .any(|name| folder.join(name).exists())
    };
    let mut folders: Vec<PathBuf> = std::env::split_paths(path)
        .filter(rocm)
        .filter_map(|folder| folder.canonicalize().ok())
        .collect();
    folders.dedup();
    match &folders[..] {
        [first, second, ..] => vec![advice(
            format!(
                "LD_LIBRARY_PATH has two ROCms, {} and {}",
                first.display(),
                second.display()
            ),
            "keep one of them: unload a rocm module",
        )],
        _ => Vec::new(),
    }
}

/// What the dynamic loader would do with `program` in the environment of `start`, which makes a command for the loader.
pub fn program(program: &Path, ours: &Libraries, start: impl FnOnce(&Path) -> Command) -> Vec<Advice> {
    let Some(interpreter) = elf::interpreter(program) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    if elf::has_static_cudart(program) {
        all.push(advice(
            format!(
                "NVIDIA's CUDA runtime is linked statically into {}; it works with NVIDIA's driver only, and its calls will \
                 fail with error 500",
                program.display()
            ),
            "relink with `-cudart shared` (nvcc's default is static)",
        ));
    }
    // The loader's own answer, as `ldd` asks for it: it lists and runs nothing. Its option --list would stop at the first library
    // that is missing.
    let mut loader = start(&interpreter);
    loader.env("LD_TRACE_LOADED_OBJECTS", "1").arg(program);
    let Ok(output) = loader.output() else {
        return all;
    };
    all.extend(listed(&String::from_utf8_lossy(&output.stdout), ours));
    all
}

/// The loader's list: `NAME => PATH (ADDRESS)`, or `NAME => not found`.
fn listed(list: &str, ours: &Libraries) -> Vec<Advice> {
    let mut all = Vec::new();
    for line in list.lines() {
        let Some((name, found)) = line.trim().split_once(" => ") else {
            continue;
        };
        let cuda = name.starts_with("libcudart.so.") || SONAMES.contains(&name);
        if !cuda {
            continue;
        }
        let path = found.rsplit_once(" (").map_or(found, |(path, _)| path);
        if path == "not found" {
            all.push(advice(
                format!("the program needs {name}, and neither Regauge nor the library path has it"),
                "Regauge stands in for the runtimes whose names are in its folder; build the program with that CUDA version",
            ));
        } else if !Path::new(path)
            .canonicalize()
            .is_ok_and(|real| real.starts_with(ours.directory()))
        {
            all.push(advice(
                format!("the program's own path (DT_RPATH) or LD_PRELOAD loads {path} instead of Regauge's {name}"),
                "use `regauge run --preload`, or remove that library from its path (patchelf --remove-rpath)",
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pairs: &[(&str, &str)]) -> Vec<String> {
        let find = |name: &str| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        visibility(find).into_iter().map(|advice| advice.text).collect()
    }

    #[test]
    fn what_slurm_sets_is_no_conflict() {
        let slurm = [
            ("CUDA_VISIBLE_DEVICES", "1"),
            ("ROCR_VISIBLE_DEVICES", "1"),
            ("HIP_VISIBLE_DEVICES", "1"),
        ];
        assert!(texts(&slurm).is_empty());
        assert!(texts(&[]).is_empty());
    }

    #[test]
    fn conflicting_variables_are_named() {
        let different = texts(&[("CUDA_VISIBLE_DEVICES", "1"), ("ROCR_VISIBLE_DEVICES", "2,3")]);
        assert!(
            different.len() == 1 && different[0].contains("ROCR_VISIBLE_DEVICES=2,3"),
            "{different:?}"
        );
        assert!(texts(&[("CUDA_VISIBLE_DEVICES", "")])[0].contains("hides every GPU"));
        assert!(texts(&[("HIP_VISIBLE_DEVICES", "0")])[0].contains("HIP programs only"));
    }
}
