//! `docs/troubleshooting.md` quotes messages: each is produced here as users meet it, or asserted by another test, or is known from
//! public reports of software that is closed. A quote without a row here, and a row without a quote, are faults.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use launcher::{Environment, Libraries, RocrRoot, VirtualGpu};
use symbol_versions::{Library, Status};

use crate::ring::{self, Configuration};
use crate::setup::Rocr;
use crate::{Result, bench, gtl, process, programs};

/// Where a quote comes from.
enum Source {
    /// This makes it, and returns all that was printed.
    Made(fn(&Bench) -> Result<String>),
    /// The test of that file asserts it.
    Asserted(&'static str),
    /// Software that is closed, or hardware: the words are from public reports.
    Reported,
}

use Source::{Asserted, Made, Reported};

/// Each quote, by words of it that no other has, and its source.
const MESSAGES: [(&str, Source); 28] = [
    (
        "no CUDA device: AMD's HSA runtime (ROCr) is not installed",
        Made(|b| b.count(false, false, &[])),
    ),
    (
        "no CUDA device: hsa_init says",
        Made(|b| b.count(false, true, &[("REGAUGE_LOG", "info")])),
    ),
    ("this program uses NVIDIA's CUDA runtime", Made(|b| b.static_runtime())),
    ("is not implemented yet", Made(|b| b.call())),
    ("error: kernel NAME", Made(|b| b.fails("kernel", &[]))),
    ("GPU memory fault at", Made(|b| b.fails("fault", &[]))),
    (
        "names a device twice",
        Made(|b| b.count(true, true, &[("CUDA_VISIBLE_DEVICES", "0,0")])),
    ),
    (
        "is malformed",
        Made(|b| b.fails("fault", &[("REGAUGE_QUEUES", "many")])),
    ),
    (
        "the first chooses among the node's GPUs",
        Made(|b| b.variables_differ()),
    ),
    (
        "NVIDIA's CUDA runtime is linked statically into",
        Made(|b| b.static_runtime()),
    ),
    ("it is no folder of Regauge's", Made(|b| b.no_folder())),
    ("undefined reference to", Made(|_| gtl::unversioned_link())),
    (
        "no version information available",
        Made(|b| b.loader(Some(("libcudart.so.12", "")))),
    ),
    (
        "not found (required by",
        Made(|b| b.loader(Some(("libcudart.so.11.0", "libcudart.so.11.0")))),
    ),
    (
        "symbol lookup error",
        Made(|b| b.loader(Some(("libcudart.so.12", "libcudart.so.11.0")))),
    ),
    ("error while loading shared libraries", Made(|b| b.loader(None))),
    ("MPIDI_CRAY_init", Reported),
    ("process_vm_readv: Bad address", Reported),
    ("cray_common_memops.c at line 461", Reported),
    ("Read -1, expected", Made(|_| efault())),
    ("cuIpcGetMemHandle: invalid argument", Reported),
    ("cuIpcOpenMemHandle: invalid argument", Reported),
    ("hsa_amd_ipc_memory_attach", Reported),
    ("cuIpcOpenMemHandle: resource already mapped", Reported),
    ("cudaHostRegister: no CUDA-capable device is detected", Reported),
    ("hsa_amd_ipc_memory_create", Reported),
    ("Memory access fault by GPU node-", Asserted("tests/hsa/faults.c")),
    (
        "The application appears to have been direct launched using",
        Made(|b| b.direct_launch()),
    ),
];

/// Network adapters' own messages; no quote of the page has no row.
const ADAPTERS: [&str; 3] = ["cxil_map: write error", "cxip_do_map", "NO_TRANSLATION"];

/// Runs the cases, each reported to `case` as name and outcome.
pub fn run(case: &mut dyn FnMut(String, Result<String>)) -> Result<()> {
    let page = fs::read_to_string(bench::root().join("docs/troubleshooting.md"))?;
    let quotes = quotes(&page);
    case(
        "messages: the page's quotes and their tests belong together".into(),
        belong_together(&quotes),
    );
    let bench = Bench::new()?;
    for (words, source) in &MESSAGES {
        let Some(quote) = quotes.iter().find(|quote| quote.contains(words)) else {
            continue;
        };
        let outcome = match source {
            Reported => continue,
            Made(make) => make(&bench).and_then(|output| found(quote, &output)),
            Asserted(file) => {
                let text = fs::read_to_string(bench::root().join(file))?;
                if text.contains(words) {
                    Ok(format!("asserted by {file}"))
                } else {
                    Err(format!("{file} does not speak of it").into())
                }
            }
        };
        case(format!("message: {words}"), outcome);
    }
    Ok(())
}

/// The quotes of the page: what stands between backquotes in lines that begin with `>`.
fn quotes(page: &str) -> Vec<String> {
    let mut quotes = Vec::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("> ")) {
        // Text with a backquote in it stands between two of them.
        if let Some(text) = line.strip_prefix("``").and_then(|text| text.strip_suffix("``")) {
            quotes.push(text.to_owned());
        } else {
            quotes.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    quotes
}

fn belong_together(quotes: &[String]) -> Result<String> {
    let mut faults = Vec::new();
    for quote in quotes {
        let rows = MESSAGES.iter().filter(|(words, _)| quote.contains(words)).count();
        if rows != 1 && !ADAPTERS.iter().any(|words| quote.contains(words)) && !quote.starts_with("--") {
            faults.push(format!("{rows} rows for the quote {quote:?}"));
        }
    }
    for (words, _) in &MESSAGES {
        if !quotes.iter().any(|quote| quote.contains(words)) {
            faults.push(format!("no quote has {words:?}"));
        }
    }
    if faults.is_empty() {
        Ok(format!("{} quotes", quotes.len()))
    } else {
        Err(faults.join("\n").into())
    }
}

/// What stands for something in a quote.
const PLACEHOLDERS: [&str; 15] = [
    "PID", "ADDRESS", "REASON", "STATUS", "NAME", "TEXT", "LIST", "PROGRAM", "FOLDER", "VALUE", "DEFAULT", "A", "B",
    "N", "...",
];

/// The parts of a quote between its placeholders.
fn parts(quote: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut rest = quote;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let placeholder = PLACEHOLDERS.iter().find(|word| {
            let after = rest
                .strip_prefix(**word)
                .map(|after| after.chars().next().unwrap_or(' '));
            // `0xADDRESS` and `cudaNAME` begin in the middle of a word; single letters never do.
            let inside = |c: char| c.is_ascii_uppercase() || c == '_';
            let alone = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            after.is_some_and(|after| match word.len() {
                1 => alone(before) && alone(after),
                _ => **word == "..." || (!inside(before) && !inside(after)),
            })
        });
        let length = placeholder.map_or(first.len_utf8(), |word| word.len());
        match (placeholder, parts.last_mut()) {
            (Some(_), _) => parts.push(String::new()),
            (None, Some(part)) => part.push(first),
            (None, None) => {}
        }
        before = rest[..length].chars().last().unwrap_or(' ');
        rest = &rest[length..];
    }
    parts
}

/// Whether the quote is in the output: its parts, in this order and close to each other; white space may differ.
fn found(quote: &str, output: &str) -> Result<String> {
    const APART: usize = 600;
    let squeezed = output.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = parts(quote);
    let from = |start: usize| {
        let mut at = start;
        parts.iter().all(|part| match squeezed[at..].find(part.as_str()) {
            Some(distance) if distance <= APART || at == start => {
                at += distance + part.len();
                true
            }
            _ => false,
        })
    };
    let starts = squeezed.match_indices(parts[0].as_str()).map(|(at, _)| at);
    if starts.into_iter().any(from) {
        Ok(String::new())
    } else {
        Err(format!("{quote:?} is not in:\n{output}").into())
    }
}

/// Open MPI without CUDA support takes a device pointer for host memory.
fn efault() -> Result<String> {
    let control = Configuration {
        path: ring::Path::Host,
        ..Configuration::basic()
    };
    Ok(control.run()?.outcome.output)
}

struct Bench {
    scratch: bench::Scratch,
    program: PathBuf,
    rocr: PathBuf,
}

impl Bench {
    fn new() -> Result<Self> {
        let source = bench::root().join("tests/programs/messages.c");
        let mut command = Command::new("gcc");
        command.args(["-O1", "-Wall", "-Werror"]).arg(&source);
        command.args(["libcudart.so.12", "libcuda.so.1"].map(|library| bench::release().join(library)));
        Ok(Self {
            scratch: bench::Scratch::new("messages")?,
            program: programs::compile("messages", &source, command)?,
            rocr: Rocr::V612.ensure()?.ok_or("no ROCr root")?,
        })
    }

    /// A command over our libraries, on a virtual GPU and an unpacked ROCr or without them.
    fn command(&self, program: &std::path::Path, vgpu: bool, rocr: bool) -> Result<Command> {
        let mut environment = Environment {
            libraries: Some(Libraries::in_directory(&bench::release())?),
            ..Environment::default()
        };
        if vgpu {
            let root = self.scratch.path().join("gpu");
            environment.vgpu = Some(VirtualGpu::new(&bench::release().join("libvgpu.so"), &root)?);
        }
        environment.rocr = rocr.then(|| RocrRoot::in_directory(&self.rocr)).transpose()?;
        let mut command = environment.command(program);
        for name in ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"] {
            command.env_remove(name);
        }
        command.env("REGAUGE_CACHE_DIR", self.scratch.path().join("cache"));
        Ok(command)
    }

    fn output(&self, command: &mut Command) -> Result<String> {
        let outcome = process::run(command, Duration::from_secs(60))?;
        Ok(format!("{}\n{}", outcome.output, outcome.ending()))
    }

    fn succeeds(&self, command: &mut Command) -> Result<String> {
        let outcome = process::run(command, Duration::from_secs(60))?;
        if outcome.success() {
            Ok(outcome.output)
        } else {
            Err(format!("{}:\n{}", outcome.ending(), outcome.output).into())
        }
    }

    /// `cudaGetDeviceCount`, which fails.
    fn count(&self, vgpu: bool, rocr: bool, variables: &[(&str, &str)]) -> Result<String> {
        let mut command = self.command(&self.program, vgpu, rocr)?;
        self.succeeds(command.arg("count").envs(variables.iter().copied()))
    }

    fn fails(&self, how: &str, variables: &[(&str, &str)]) -> Result<String> {
        let mut command = self.command(&self.program, true, true)?;
        self.succeeds(command.arg(how).envs(variables.iter().copied()))
    }

    /// A call that is not there yet, whichever still is not.
    fn call(&self) -> Result<String> {
        let table = Library::Cuda.table().symbols();
        let stub = table
            .iter()
            .find(|symbol| symbol.status == Status::Stub)
            .ok_or("every call is there")?;
        self.succeeds(self.command(&self.program, true, true)?.args(["call", stub.name]))
    }

    fn static_runtime(&self) -> Result<String> {
        let program = programs::static_cudart()?;
        let mut command = self.command(&bench::release().join("regauge"), true, true)?;
        self.output(command.args(["run", "--"]).arg(program))
    }

    fn variables_differ(&self) -> Result<String> {
        let mut command = self.command(&bench::release().join("regauge"), false, false)?;
        command
            .args(["run", "--", "true"])
            .env("ROCR_VISIBLE_DEVICES", "0")
            .env("CUDA_VISIBLE_DEVICES", "1");
        self.succeeds(&mut command)
    }

    fn no_folder(&self) -> Result<String> {
        let mut command = self.command(&bench::release().join("regauge"), false, false)?;
        self.output(
            command
                .args(["run", "--libraries"])
                .arg(self.scratch.path())
                .args(["--", "true"]),
        )
    }

    /// A program that was linked against a versioned runtime, started with a library in its place that has this SONAME and version
    /// node (none: an empty one), or with no library of that name.
    fn loader(&self, other: Option<(&str, &str)>) -> Result<String> {
        let (soname, node) = other.unwrap_or_default();
        let folder = self.scratch.path().join(format!("loader-{soname}-{node}"));
        fs::create_dir_all(&folder)?;
        let file = if other.is_some() {
            "libcudart.so.12"
        } else {
            "libcudart.so.10.2"
        };
        let library = |soname: &str, node: &str| -> Result<()> {
            fs::write(folder.join("runtime.c"), "int cudaMalloc(void) { return 0; }\n")?;
            let mut command = Command::new("gcc");
            command
                .current_dir(&folder)
                .args(["-shared", "-fPIC", "-w", "runtime.c", "-o", file])
                .arg(format!("-Wl,-soname,{soname}"));
            if !node.is_empty() {
                fs::write(folder.join("map"), format!("{node} {{ global: *; }};"))?;
                command.arg("-Wl,--version-script=map");
            }
            process::must(&mut command)
        };
        library(file, file)?;
        let program = "int cudaMalloc(void); int main(void) { return cudaMalloc(); }\n";
        fs::write(folder.join("program.c"), program)?;
        let mut command = Command::new("gcc");
        command
            .current_dir(&folder)
            .args(["-w", "program.c", file, "-o", "program"]);
        process::must(&mut command)?;
        match other {
            Some((soname, node)) => library(soname, node)?,
            None => fs::remove_file(folder.join(file))?,
        }
        let mut command = Command::new(folder.join("program"));
        command.env("LD_LIBRARY_PATH", &folder);
        self.output(&mut command)
    }

    /// Open MPI believes to be in a step of Slurm's, by its variables, and finds no PMI.
    fn direct_launch(&self) -> Result<String> {
        let source = self.scratch.path().join("mpi.c");
        fs::write(
            &source,
            "#include <mpi.h>\nint main(int argc, char **argv) { MPI_Init(&argc, &argv); return MPI_Finalize(); }\n",
        )?;
        let program = self.scratch.path().join("mpi");
        process::must(Command::new("mpicc").arg(&source).arg("-o").arg(&program))?;
        let mut command = Command::new(&program);
        for (name, value) in [
            ("JOB_ID", "1"),
            ("JOBID", "1"),
            ("STEPID", "0"),
            ("STEP_ID", "0"),
            ("PROCID", "0"),
            ("NTASKS", "1"),
            ("NODELIST", "here"),
        ] {
            command.env(format!("SLURM_{name}"), value);
        }
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        self.output(&mut command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_match_anything_and_words_only_themselves() {
        let quote = "regauge[PID]: error: fault at 0xADDRESS, A and B (CUDA_A)";
        assert_eq!(
            parts(quote),
            ["regauge[", "]: error: fault at 0x", ", ", " and ", " (CUDA_A)"]
        );
        assert!(found(quote, "x\nregauge[12]: error: fault at 0xff,\n 1 and 2 (CUDA_A)\n").is_ok());
        assert!(found(quote, "regauge[12]: error: fault at 0xff, 1 or 2 (CUDA_A)").is_err());
        assert!(found("`cudaNAME@libcudart.so.12'", "`cudaMalloc@libcudart.so.12'").is_ok());
    }

    #[test]
    fn quotes_stand_between_backquotes() {
        let page = "> `one`; two: `three`\ntext `no`\n> ``four `five` ``\n";
        assert_eq!(quotes(page), ["one", "three", "four `five` "]);
    }
}
