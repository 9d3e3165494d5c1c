//! The HSA test programs of `tests/hsa`: AMD's runtime alone over the virtual GPU.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::exec::{self, BarMode, LinkMode};
use crate::setup::Rocr;
use crate::{Result, bench, process, programs};

/// A program and what it needs beside itself.
struct Recipe {
    name: &'static str,
    /// Takes the compiled kernels as its first argument.
    code: bool,
    /// Fewest GPUs.
    gpus: u32,
    /// More GPUs say more: it is run on 2 and 8 as well.
    many: bool,
    /// SDMA on and off are different paths.
    sdma: bool,
    /// Memory per GPU in MiB.
    memory: Option<u64>,
    argument: Option<&'static str>,
    /// Settings of the virtual GPU.
    variables: &'static [&'static str],
}

/// What most programs are: one GPU, no kernels, either way of copying.
const PLAIN: Recipe = Recipe {
    name: "",
    code: false,
    gpus: 1,
    many: false,
    sdma: true,
    memory: None,
    argument: None,
    variables: &[],
};

const RECIPES: [Recipe; 20] = [
    Recipe {
        name: "queues",
        sdma: false,
        ..PLAIN
    },
    Recipe {
        name: "copies",
        ..PLAIN
    },
    Recipe {
        name: "signals",
        sdma: false,
        ..PLAIN
    },
    Recipe {
        name: "idle",
        sdma: false,
        ..PLAIN
    },
    Recipe {
        name: "pools",
        many: true,
        ..PLAIN
    },
    Recipe {
        name: "profiling",
        code: true,
        ..PLAIN
    },
    Recipe {
        name: "svm",
        code: true,
        sdma: false,
        ..PLAIN
    },
    Recipe {
        name: "dmabuf",
        ..PLAIN
    },
    Recipe {
        name: "kernels",
        code: true,
        ..PLAIN
    },
    Recipe {
        name: "faults",
        code: true,
        gpus: 2,
        sdma: false,
        ..PLAIN
    },
    // It fills the device, so the device is small.
    Recipe {
        name: "memory",
        memory: Some(256),
        ..PLAIN
    },
    Recipe { name: "ipc", ..PLAIN },
    // By dma-buf over a socket, where ROCr knows that way (6.4); by ioctl elsewhere.
    Recipe {
        name: "ipc",
        variables: &["HSA_ENABLE_IPC_MODE_LEGACY=0"],
        ..PLAIN
    },
    Recipe {
        name: "vmm",
        gpus: 2,
        ..PLAIN
    },
    Recipe {
        name: "peers",
        gpus: 2,
        many: true,
        ..PLAIN
    },
    Recipe {
        name: "fork",
        sdma: false,
        ..PLAIN
    },
    Recipe {
        name: "stress",
        argument: Some("3"),
        ..PLAIN
    },
    Recipe {
        name: "coherence",
        code: true,
        gpus: 2,
        argument: Some("hostile"),
        variables: &["VGPU_COHERENCE=hostile"],
        ..PLAIN
    },
    // All queues on one thread.
    Recipe {
        name: "kernels",
        code: true,
        sdma: false,
        variables: &["VGPU_SEED=7"],
        ..PLAIN
    },
    Recipe {
        name: "queues",
        sdma: false,
        variables: &["VGPU_SEED=8"],
        ..PLAIN
    },
];

/// One run of a program.
pub struct Case {
    recipe: &'static Recipe,
    path: PathBuf,
    code: PathBuf,
    rocr: Rocr,
    bar: BarMode,
    sdma: bool,
    gpus: u32,
    link: LinkMode,
}

/// What the suite runs: both ROCr builds and both BAR modes; SDMA off, more GPUs and PCIe where that says more.
pub fn cases() -> Result<Vec<Case>> {
    all(&[Rocr::V612, Rocr::V523], |recipe, case| {
        let more = case.gpus > recipe.gpus;
        let usual = case.link == LinkMode::Xgmi;
        (case.sdma || recipe.sdma) && (usual || recipe.many) && (!more || (recipe.many && case.sdma))
    })
}

/// Each program on 1, 2 and 8 GPUs, over each of the ROCr builds and with both BAR modes; with either link and without SDMA
/// where the suite looks at those.
pub fn matrix(builds: &[Rocr]) -> Result<Vec<Case>> {
    all(builds, |recipe, case| {
        let fewest = case.gpus == recipe.gpus;
        (case.sdma || (recipe.sdma && fewest)) && (case.link == LinkMode::Xgmi || recipe.many || recipe.gpus > 1)
    })
}

/// Every case that `wanted` says yes to.
fn all(builds: &[Rocr], wanted: impl Fn(&Recipe, &Case) -> bool) -> Result<Vec<Case>> {
    let code = kernels()?;
    let mut cases = Vec::new();
    let paths: Vec<PathBuf> = RECIPES
        .iter()
        .map(|recipe| compiled(recipe.name))
        .collect::<Result<_>>()?;
    for rocr in builds {
        for bar in [BarMode::Small, BarMode::Large] {
            for sdma in [true, false] {
                for gpus in [1, 2, 8] {
                    for link in [LinkMode::Xgmi, LinkMode::Pcie] {
                        let known = RECIPES.iter().zip(&paths).filter(|(recipe, _)| recipe.gpus <= gpus);
                        cases.extend(known.map(|(recipe, path)| Case {
                            recipe,
                            path: path.clone(),
                            code: code.clone(),
                            rocr: rocr.clone(),
                            bar,
                            sdma,
                            gpus,
                            link,
                        }));
                    }
                }
            }
        }
    }
    // A single GPU has no links.
    cases.retain(|case| (case.gpus > 1 || case.link == LinkMode::Xgmi) && wanted(case.recipe, case));
    Ok(cases)
}

/// The kernels of `kernels.cl`, compiled for gfx90a.
pub fn kernels() -> Result<PathBuf> {
    let source = bench::root().join("tests/hsa/kernels.cl");
    let mut clang = Command::new("clang-19");
    clang.args(["-x", "cl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header"]);
    clang.args([
        "-target",
        "amdgcn-amd-amdhsa",
        "-mcpu=gfx90a",
        "-nogpulib",
        "-O2",
        "-mcode-object-version=4",
    ]);
    programs::compile("hsa-kernels.co", &source, {
        clang.arg(&source);
        clang
    })
}

/// A program of `tests/hsa`, built against the older ROCr's headers and library, so that one build runs over both.
pub fn compiled(name: &str) -> Result<PathBuf> {
    let root = Rocr::V523.ensure()?.ok_or("ROCr 5.2.3 has a root")?;
    let library = root.join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    let source = bench::root().join(format!("tests/hsa/{name}.c"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Wextra", "-std=gnu11", "-I"])
        .arg(root.join("usr/include"))
        .arg(&source);
    // What ROCr itself needs is found at run time, in whichever root the program runs over.
    gcc.arg(&library)
        .args(["-lpthread", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]);
    programs::compile(&format!("hsa-{name}"), &source, gcc)
}

impl Case {
    /// The program and its surroundings.
    pub fn name(&self) -> String {
        let (bar, gpus, rocr) = (self.bar, self.gpus, self.rocr.name());
        let sdma = if self.sdma { "SDMA" } else { "no SDMA" };
        let link = match self.link {
            _ if gpus == 1 => String::new(),
            link => format!("s over {link:?}"),
        };
        let settings: String = self.recipe.variables.iter().map(|v| format!(", {v}")).collect();
        format!(
            "{} ({gpus} GPU{link}, {bar:?} BAR, {sdma}, ROCr {rocr}{settings})",
            self.recipe.name
        )
    }

    /// Runs it; success means that it checked its data and said ok, or cannot run on this ROCr and said so.
    pub fn run(&self) -> Result<String> {
        const CANNOT_RUN_HERE: i32 = 77;
        let mut arguments = exec::Arguments::for_command([&self.path]);
        if self.recipe.code {
            arguments.command.push((&self.code).into());
        }
        arguments.command.extend(self.recipe.argument.map(Into::into));
        arguments.gpus = self.gpus;
        arguments.link = self.link;
        arguments.memory = self.recipe.memory;
        arguments.bar = self.bar;
        arguments.rocr = self.rocr.clone();
        arguments
            .variables
            .push(format!("HSA_ENABLE_SDMA={}", u8::from(self.sdma)));
        // A driver with shared virtual memory takes registered memory another way: both are run.
        let svm = u8::from(self.bar == BarMode::Large);
        arguments.variables.push(format!("VGPU_SVM={svm}"));
        arguments
            .variables
            .extend(self.recipe.variables.iter().map(ToString::to_string));
        let scratch = bench::Scratch::new("hsa")?;
        let outcome = process::run(
            &mut exec::command(&arguments, scratch.path())?,
            Duration::from_secs(120),
        )?;
        if outcome.status.code() == Some(CANNOT_RUN_HERE) {
            return Ok(format!("not here: {}", outcome.tail(1)));
        }
        if outcome.success() && outcome.output.contains(&format!("{}: ok", self.recipe.name)) {
            return Ok(String::new());
        }
        Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into())
    }
}
