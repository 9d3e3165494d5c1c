//! The HSA test programs of `tests/hsa`: AMD's runtime alone over the virtual GPU.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::exec::{self, BarMode};
use crate::setup::Rocr;
use crate::{Result, bench, process, programs};

/// A built program and how it is run.
pub struct Program {
    /// Its name.
    pub name: &'static str,
    path: PathBuf,
    arguments: Vec<String>,
    gpus: u32,
    memory: Option<u64>,
}

/// What a program needs beside itself.
struct Recipe {
    name: &'static str,
    /// Takes the compiled kernels as its first argument.
    code: bool,
    gpus: u32,
    /// Memory per GPU in MiB.
    memory: Option<u64>,
    argument: Option<&'static str>,
}

const RECIPES: [Recipe; 10] = [
    Recipe {
        name: "queues",
        code: false,
        gpus: 1,
        memory: None,
        argument: None,
    },
    Recipe {
        name: "copies",
        code: false,
        gpus: 1,
        memory: None,
        argument: None,
    },
    Recipe {
        name: "kernels",
        code: true,
        gpus: 1,
        memory: None,
        argument: None,
    },
    Recipe {
        name: "faults",
        code: true,
        gpus: 1,
        memory: None,
        argument: None,
    },
    // It fills the device, so the device is small.
    Recipe {
        name: "memory",
        code: false,
        gpus: 1,
        memory: Some(256),
        argument: None,
    },
    Recipe {
        name: "ipc",
        code: false,
        gpus: 1,
        memory: None,
        argument: None,
    },
    Recipe {
        name: "vmm",
        code: false,
        gpus: 2,
        memory: None,
        argument: None,
    },
    Recipe {
        name: "peers",
        code: false,
        gpus: 2,
        memory: None,
        argument: None,
    },
    Recipe {
        name: "fork",
        code: false,
        gpus: 1,
        memory: None,
        argument: None,
    },
    Recipe {
        name: "stress",
        code: false,
        gpus: 1,
        memory: None,
        argument: Some("3"),
    },
];

/// Builds every program against the older ROCr's headers and library, so that one build runs over both.
pub fn build() -> Result<Vec<Program>> {
    let folder = bench::root().join("tests/hsa");
    let root = Rocr::V523.ensure()?.ok_or("ROCr 5.2.3 has a root")?;
    let library = root.join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    let kernels = folder.join("kernels.cl");
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
    let code = programs::compile("hsa-kernels.co", &kernels, {
        clang.arg(&kernels);
        clang
    })?;
    let mut built = Vec::new();
    for recipe in &RECIPES {
        let source = folder.join(format!("{}.c", recipe.name));
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-Wall", "-Wextra", "-std=gnu11", "-I"])
            .arg(root.join("usr/include"))
            .arg(&source);
        // What ROCr itself needs is found at run time, in whichever root the program runs over.
        gcc.arg(&library)
            .args(["-lpthread", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]);
        let path = programs::compile(&format!("hsa-{}", recipe.name), &source, gcc)?;
        let mut arguments = Vec::new();
        if recipe.code {
            arguments.push(code.display().to_string());
        }
        arguments.extend(recipe.argument.map(String::from));
        built.push(Program {
            name: recipe.name,
            path,
            arguments,
            gpus: recipe.gpus,
            memory: recipe.memory,
        });
    }
    Ok(built)
}

impl Program {
    /// Runs it; success means that it checked its data and said ok, or cannot run on this ROCr and said so.
    pub fn run(&self, rocr: &Rocr, bar: BarMode, sdma: bool) -> Result<String> {
        const CANNOT_RUN_HERE: i32 = 77;
        let mut arguments = exec::Arguments::for_command([&self.path]);
        arguments.command.extend(self.arguments.iter().map(Into::into));
        arguments.gpus = self.gpus;
        arguments.memory = self.memory;
        arguments.bar = bar;
        arguments.rocr = rocr.clone();
        arguments.variables.push(format!("HSA_ENABLE_SDMA={}", u8::from(sdma)));
        let scratch = bench::Scratch::new("hsa")?;
        let outcome = process::run(
            &mut exec::command(&arguments, scratch.path())?,
            Duration::from_secs(120),
        )?;
        if outcome.status.code() == Some(CANNOT_RUN_HERE) {
            return Ok(format!("not on this ROCr: {}", outcome.tail(1)));
        }
        if outcome.success() && outcome.output.contains(&format!("{}: ok", self.name)) {
            return Ok(String::new());
        }
        Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into())
    }
}
