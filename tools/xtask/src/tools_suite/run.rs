//! `regauge run`: programs, arguments, statuses, signals, the lines for job scripts, and what goes wrong.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Bench, LIMIT, contains, linked_folder};
use crate::process::{self, Outcome};
use crate::{Result, bench, programs, setup};

type Test = fn(&Bench) -> Result<String>;

/// Every case and its name.
pub const CASES: [(&str, Test); 9] = [
    ("a CUDA program computes, on virtual GPUs of its own", Bench::computes),
    (
        "--print-env, evaluated by sh from a folder with odd characters",
        Bench::printed,
    ),
    (
        "a DT_RPATH to NVIDIA's is warned of, and --preload goes past it",
        Bench::preloads,
    ),
    ("a statically linked runtime is warned of", Bench::warns_of_static),
    (
        "a missing runtime and variables that differ are warned of",
        Bench::warns,
    ),
    ("arguments arrive as they are", Bench::arguments),
    ("exit status and signals are the program's", Bench::statuses),
    ("a signal ends program and virtual GPU", Bench::signalled),
    ("wrong options, folders and programs", Bench::failures),
];

impl Bench {
    /// `regauge run`, with what the machine would have: variables of other tests do not count.
    fn run(&self, options: &[&str]) -> Command {
        let mut command = Command::new(&self.regauge);
        command.arg("run").args(options);
        for name in [
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "CUDA_VISIBLE_DEVICES",
            "ROCR_VISIBLE_DEVICES",
            "HIP_VISIBLE_DEVICES",
        ] {
            command.env_remove(name);
        }
        command.env("REGAUGE_CACHE_DIR", self.scratch.path().join("cache"));
        command
    }

    /// The same on two virtual GPUs.
    fn virtual_run(&self, options: &[&str]) -> Command {
        let mut command = self.run(&["--virtual-gpus", "2", "--rocr"]);
        command.arg(&self.rocr).args(options);
        command
    }

    fn computes(&self) -> Result<String> {
        let program = programs::cuda("vadd")?;
        let outcome = process::run(self.virtual_run(&["--"]).arg(&program), LIMIT)?;
        sums_are_right(&outcome, &[])
    }

    fn printed(&self) -> Result<String> {
        let program = programs::cuda("vadd")?;
        // Links, so that nothing but the printed lines leads to the libraries' folder.
        let ways = [(None, "an odd 'folder' $HOME"), (Some("--preload"), "it's-$HOME")];
        for (option, name) in ways {
            let libraries = linked_folder(&self.scratch.path().join(name), &[])?;
            let environment = self.environment(Some(2), Some(&self.rocr))?;
            let mut command = environment.command("sh");
            command.args(["-c", "eval \"$(\"$0\" run --print-env --libraries \"$1\" $3)\" && printf '%s\\n' \"$LD_LIBRARY_PATH\" && exec \"$2\""]);
            command.arg(&self.regauge).arg(&libraries).arg(&program).args(option);
            command.env("REGAUGE_CACHE_DIR", self.scratch.path().join("cache"));
            let outcome = process::run(&mut command, LIMIT)?;
            let first = format!("{}", libraries.canonicalize()?.display());
            if !outcome.output.lines().any(|line| line.starts_with(&first)) {
                return Err(format!("the path does not begin with {first}:\n{}", outcome.output).into());
            }
            sums_are_right(&outcome, &["cannot be preloaded"])?;
        }
        // No quoting helps against the loader's own splitting.
        let spaces = self.scratch.path().join(ways[0].1);
        let mut command = self.run(&["--print-env", "--preload", "--libraries"]);
        let outcome = process::run(command.arg(&spaces), LIMIT)?;
        contains(
            &outcome.output,
            &["LD_PRELOAD cannot hold a path with a space or a colon"],
        )?;
        if outcome.status.code() != Some(125) {
            return Err(format!("{} instead of 125", outcome.ending()).into());
        }
        Ok("with and without --preload".into())
    }

    /// `vadd`, linked with these options.
    fn vadd(&self, name: &str, options: &[OsString]) -> Result<PathBuf> {
        let source = bench::root().join("tests/programs/vadd.cu");
        let mut command = Command::new(setup::nvcc()?.join("bin/nvcc"));
        command
            .args(["-cudadevrt", "none", "-arch=compute_75", "-O2"])
            .args(options)
            .arg(&source);
        programs::compile(name, &source, command)
    }

    fn preloads(&self) -> Result<String> {
        let nvidia = setup::nvcc()?.join("lib64");
        let rpath = format!("-Xlinker=--disable-new-dtags,-rpath,{}", nvidia.display());
        let program = self.vadd("vadd_rpath", &["-cudart".into(), "shared".into(), rpath.into()])?;
        let without = process::run(self.virtual_run(&["--"]).arg(&program), LIMIT)?;
        let words = [
            "the program's own path (DT_RPATH) or LD_PRELOAD loads",
            "instead of Regauge's libcudart.so.12",
            "regauge run --preload",
        ];
        if without.success() {
            return Err("NVIDIA's runtime runs over our driver library".into());
        }
        contains(&without.output, &words)?;
        let with = process::run(self.virtual_run(&["--preload", "--"]).arg(&program), LIMIT)?;
        sums_are_right(&with, &["DT_RPATH"])
    }

    fn warns_of_static(&self) -> Result<String> {
        let program = programs::static_cudart()?;
        let outcome = process::run(self.virtual_run(&["--"]).arg(&program), LIMIT)?;
        let words = [
            &format!(
                "regauge: warning: NVIDIA's CUDA runtime is linked statically into {}; ",
                program.display()
            ),
            // The driver library's own message, when the program has started all the same.
            "error: this program uses NVIDIA's CUDA runtime, linked into it or into one of its libraries, and that works with NVIDIA's driver only: its calls will fail with error 500. Relink with `-cudart shared`",
        ];
        contains(&outcome.output, &words)?;
        let quiet = process::run(self.virtual_run(&["--no-check", "--"]).arg(&program), LIMIT)?;
        if quiet.output.contains("regauge: warning:") || quiet.ending() != outcome.ending() {
            return Err(format!("--no-check: {}\n{}", quiet.ending(), quiet.output).into());
        }
        Ok(outcome.ending())
    }

    fn warns(&self) -> Result<String> {
        // A program that asks for a runtime that nobody has: it must be told of before the loader's own words.
        let library = self.c_library(
            "libcudart.so.10.2",
            "int cudaMalloc(void) { return 0; }",
            &["-Wl,-soname,libcudart.so.10.2"],
        )?;
        let source = self.write("old.c", "int cudaMalloc(void); int main(void) { return cudaMalloc(); }")?;
        let program = self.scratch.path().join("old");
        process::must(Command::new("gcc").arg(&source).arg(&library).arg("-o").arg(&program))?;
        fs::remove_file(&library)?;
        let outcome = process::run(self.run(&["--"]).arg(&program), LIMIT)?;
        contains(
            &outcome.output,
            &[
                "the program needs libcudart.so.10.2, and neither Regauge nor the library path has it",
                "error while loading shared libraries: libcudart.so.10.2: cannot open shared object file",
            ],
        )?;
        let mut command = self.run(&["--", "true"]);
        command
            .env("CUDA_VISIBLE_DEVICES", "1")
            .env("ROCR_VISIBLE_DEVICES", "0,1");
        let outcome = process::run(&mut command, LIMIT)?;
        contains(
            &outcome.output,
            &[
                "regauge: warning: ROCR_VISIBLE_DEVICES=0,1 and CUDA_VISIBLE_DEVICES=1 differ: the first chooses among the node's GPUs, the second among those that are left; unset one of them",
            ],
        )?;
        Ok(outcome.ending())
    }

    fn arguments(&self) -> Result<String> {
        let given = ["a b", "", "c'd\"e", "--preload", "-x", "$HOME", "*", "new\nline", "--"];
        for mut command in [self.run(&["--"]), self.virtual_run(&["--"])] {
            command.args(["printf", "<%s>"]).args(given);
            let outcome = process::run(&mut command, LIMIT)?;
            let expected: String = given.iter().map(|text| format!("<{text}>")).collect();
            if outcome.output != expected {
                return Err(format!("{} instead of {expected}", outcome.output).into());
            }
        }
        Ok(format!("{} arguments", given.len()))
    }

    fn statuses(&self) -> Result<String> {
        for virtual_gpu in [false, true] {
            let command = || {
                if virtual_gpu {
                    self.virtual_run(&["--"])
                } else {
                    self.run(&["--"])
                }
            };
            for code in [0, 1, 7, 77, 255] {
                let outcome = process::run(command().args(["sh", "-c", &format!("exit {code}")]), LIMIT)?;
                if outcome.status.code() != Some(code) {
                    return Err(format!("{} instead of {code}", outcome.ending()).into());
                }
            }
            for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGABRT] {
                let script = format!("ulimit -c 0; kill -{signal} $$");
                let outcome = process::run(command().args(["sh", "-c", &script]), LIMIT)?;
                if outcome.status.signal() != Some(signal) {
                    return Err(format!("{} instead of signal {signal}", outcome.ending()).into());
                }
            }
        }
        Ok("5 statuses and 3 signals, with and without virtual GPUs".into())
    }

    /// A batch system signals the process that it started: the program must get it, and its virtual GPU's folder go.
    fn signalled(&self) -> Result<String> {
        let mut command = self.virtual_run(&[
            "--",
            "sh",
            "-c",
            "trap 'echo trapped; exit 5' TERM; echo $VGPU_ROOT; while :; do sleep 0.1; done",
        ]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let mut output = std::io::BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut root = String::new();
        std::io::BufRead::read_line(&mut output, &mut root)?;
        let root = PathBuf::from(root.trim());
        let there = root.is_dir();
        // SAFETY: kill has no memory effects; the child is ours and not yet waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut output, &mut rest)?;
        let status = child.wait()?;
        if !there || rest.trim() != "trapped" || status.code() != Some(5) {
            return Err(format!("{}: {there}, {rest:?}, {status}", root.display()).into());
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while root.exists() {
            if Instant::now() > deadline {
                return Err(format!("{} is left", root.display()).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok("and its folder is removed".into())
    }

    fn failures(&self) -> Result<String> {
        let script = self.write("no-interpreter", "#!/no/such/interpreter\n")?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        let plain = self.write("plain", "text")?;
        let empty = self.scratch.path().join("empty");
        fs::create_dir_all(&empty)?;
        let text = |path: &Path| path.display().to_string();
        let (script, plain, empty) = (text(&script), text(&plain), text(&empty));
        let cases: [(&[&str], i32, &str); 13] = [
            (&[], 2, "<PROGRAM>..."),
            (&["--"], 2, "<PROGRAM>..."),
            (&["--no-such-option", "--", "true"], 2, "--no-such-option"),
            (
                &["--virtual-gpus", "many", "--", "true"],
                2,
                "invalid value 'many' for '--virtual-gpus <N>'",
            ),
            (&["--bar", "wide", "--", "true"], 2, "possible values: small, large"),
            (
                &["--libraries", "/no/such/folder", "--", "true"],
                125,
                "regauge: /no/such/folder: No such file or directory",
            ),
            (
                &["--libraries", &empty, "--", "true"],
                125,
                "/empty has no libcudart.so.12: it is no folder of Regauge's",
            ),
            (
                &["--libraries", "/no/such/folder", "--print-env"],
                125,
                "regauge: /no/such/folder: No such file or directory",
            ),
            (
                &["--rocr", "/no/such/folder", "--", "true"],
                125,
                "regauge: /no/such/folder: No such file or directory",
            ),
            (&["--rocr", &empty, "--", "true"], 125, "holds no libhsa-runtime64.so.1"),
            (
                &["--", "no-such-program-anywhere"],
                127,
                "regauge: no-such-program-anywhere: there is no such program",
            ),
            (&["--", &plain], 126, "/plain: Permission denied"),
            (
                &["--", &script],
                126,
                "the interpreter that its first line names, is not there",
            ),
        ];
        for (options, code, words) in cases {
            let outcome = process::run(&mut self.run(options), LIMIT)?;
            if outcome.status.code() != Some(code) || !outcome.output.contains(words) {
                return Err(format!(
                    "{options:?}: {} instead of {code}, {words:?}:\n{}",
                    outcome.ending(),
                    outcome.output
                )
                .into());
            }
        }
        let help = process::run(&mut self.run(&["--help"]), LIMIT)?;
        contains(&help.output, &["Exit status", "125", "126", "127"])?;
        Ok(format!("{} cases", cases.len()))
    }
}

fn sums_are_right(outcome: &Outcome, unwanted: &[&str]) -> Result<String> {
    let last = outcome.output.lines().last().unwrap_or_default();
    let unwanted = unwanted.iter().find(|text| outcome.output.contains(**text));
    if !outcome.success() || !last.ends_with("sums are right") || unwanted.is_some() {
        return Err(format!("{}:\n{}", outcome.ending(), outcome.output).into());
    }
    Ok(last.to_owned())
}
