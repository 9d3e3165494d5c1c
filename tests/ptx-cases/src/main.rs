//! `ptx-cases`: runs the recorded PTX cases and says which agree with real CUDA.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;
use kernels_ptx_translate::comgr::Compiler;
use kernels_ptx_translate::protocol::{CompileRequest, Target, TranslateError};
use kernels_ptx_translate::translate;
use ptx_cases::case::{self, Case, Record};
use ptx_cases::machine;
use ptx_cases::verdict::{Verdict, compare};
use serde::{Deserialize, Serialize};

/// Runs the recorded PTX cases through the translator and the CDNA interpreter and compares with NVIDIA's results.
#[derive(Parser)]
struct Options {
    /// Folder with `ptx_cases.txt` and `results/ptx.jsonl`.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../oracle"))]
    oracle: PathBuf,
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// GPU to compile for and interpret.
    #[arg(long, default_value = "gfx90a", value_parser = ["gfx90a", "gfx942"])]
    arch: String,
    /// The comgr library to use.
    #[arg(long)]
    comgr: Option<PathBuf>,
    /// Processes at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// LLVM optimisation level.
    #[arg(long, default_value_t = 3)]
    opt: u8,
    /// Exit with an error when fewer cases agree.
    #[arg(long, default_value_t = 0)]
    at_least: usize,
    /// Compile only.
    #[arg(long)]
    compile_only: bool,
    /// Print the LLVM IR of each case instead of running it.
    #[arg(long)]
    print_ir: bool,
    /// Translate every kernel of this PTX file instead, for blocks of unknown size, and say what came of it.
    #[arg(long)]
    ptx: Option<PathBuf>,
    /// Run these cases (FIRST:STEP) in this process and print one JSON line each.
    #[arg(long, hide = true)]
    part: Option<String>,
}

/// One line of a part's output.
#[derive(Serialize, Deserialize)]
struct Line {
    at: usize,
    verdict: Verdict,
}

impl Options {
    fn target(&self) -> Target {
        if self.arch == "gfx942" {
            Target::Gfx942
        } else {
            Target::Gfx90a
        }
    }

    fn load(&self) -> Result<Vec<(Case, Record)>, String> {
        let read = |name: &str| {
            let path = self.oracle.join(name);
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        let mut records = case::records(&read("results/ptx.jsonl")?)?;
        let cases = case::parse(&read("ptx_cases.txt")?)?;
        let cases = cases.into_iter().filter(|c| c.name.contains(&self.filter));
        Ok(cases.filter_map(|c| records.remove(&c.name).map(|r| (c, r))).collect())
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.part {
        Some(part) => run_part(&options, part),
        None if options.ptx.is_some() => translate_file(&options),
        None if options.print_ir => print_ir(&options),
        None => run_all(&options),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ptx-cases: {error}");
            ExitCode::from(2)
        }
    }
}

fn request(case: &Case, options: &Options) -> CompileRequest {
    CompileRequest {
        entry: "t".into(),
        target: options.target(),
        block: [case.block, 1, 1],
        opt_level: options.opt,
    }
}

fn print_ir(options: &Options) -> Result<ExitCode, String> {
    for (case, _) in options.load()? {
        println!("; {}", case.name);
        let lowered = kernels_ptx_translate::ptx::parse(&case.ptx)
            .and_then(|module| kernels_ptx_translate::lower::lower_kernel(&module, &request(&case, options)));
        match lowered {
            Ok(lowered) => println!("{}", lowered.llvm_ir),
            Err(error) => println!("; {error}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn translate_file(options: &Options) -> Result<ExitCode, String> {
    let path = options.ptx.as_deref().unwrap_or(std::path::Path::new(""));
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let info = translate::inspect(text.as_bytes()).map_err(|e| e.to_string())?;
    let compiler = Compiler::find(options.comgr.as_deref())?;
    let mut failed = 0;
    for entry in &info.entries {
        let request = CompileRequest {
            entry: entry.name.clone(),
            target: options.target(),
            block: [0; 3],
            opt_level: options.opt,
        };
        if options.print_ir {
            let lowered = kernels_ptx_translate::ptx::parse(&text)
                .and_then(|module| kernels_ptx_translate::lower::lower_kernel(&module, &request));
            match lowered {
                Ok(lowered) => println!("; {}\n{}", entry.name, lowered.llvm_ir),
                Err(error) => println!("; {}: {error}", entry.name),
            }
            continue;
        }
        match translate::compile(text.as_bytes(), &request, &compiler) {
            Ok(k) => println!(
                "{}: {:?}, {} threads, {} VGPRs, {} bytes of scratch, {} of LDS",
                entry.name, k.layout, k.max_threads, k.vgprs, k.private_size, k.static_lds
            ),
            Err(error) => {
                failed += 1;
                println!("{}: {error}", entry.name);
            }
        }
    }
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn judge(case: &Case, record: &Record, options: &Options, compiler: &Compiler) -> Verdict {
    let kernel = match translate::compile(case.ptx.as_bytes(), &request(case, options), compiler) {
        Ok(kernel) => kernel,
        Err(TranslateError::Unsupported { construct, .. }) => return Verdict::Unsupported(construct),
        Err(error) => return Verdict::Fails(error.to_string()),
    };
    if options.compile_only {
        return Verdict::Agrees;
    }
    let outcome = translate::inspect(case.ptx.as_bytes())
        .map_err(|e| e.to_string())
        .and_then(|info| machine::run(case, &kernel, &info, options.target()));
    match outcome {
        Ok(outcome) => compare(case, record, &outcome),
        Err(why) => Verdict::Fails(why),
    }
}

/// The cases of one process. The code generator may take the process down: the parent then goes on behind that case.
fn run_part(options: &Options, part: &str) -> Result<ExitCode, String> {
    let (first, step) = part.split_once(':').ok_or("--part needs FIRST:STEP")?;
    let first: usize = first.parse().map_err(|_| "--part needs numbers")?;
    let step: usize = step.parse().map_err(|_| "--part needs numbers")?;
    let compiler = Compiler::find(options.comgr.as_deref())?;
    let mut out = std::io::stdout().lock();
    for (at, (case, record)) in options.load()?.iter().enumerate().skip(first).step_by(step.max(1)) {
        let line = Line {
            at,
            verdict: judge(case, record, options, &compiler),
        };
        let line = serde_json::to_string(&line).map_err(|e| e.to_string())?;
        writeln!(out, "{line}").map_err(|e| e.to_string())?;
        out.flush().map_err(|e| e.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs every `step`-th case from `first` in child processes, a new one behind each case that kills its process.
fn supervise(first: usize, step: usize, count: usize) -> Result<Vec<(usize, Verdict)>, String> {
    let mut found = Vec::new();
    let mut next = first;
    while next < count {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(program);
        command
            .args(std::env::args_os().skip(1))
            .arg(format!("--part={next}:{step}"));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let output = child.stdout.take().ok_or("no output of a part")?;
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|e| e.to_string())?;
            let line: Line = serde_json::from_str(&line).map_err(|e| format!("{e}: {line}"))?;
            next = line.at + step;
            found.push((line.at, line.verdict));
        }
        let status = child.wait().map_err(|e| e.to_string())?;
        if status.code() == Some(2) {
            return Err("a part could not start; run with --part=0:1 to see why".into());
        }
        if next < count {
            found.push((next, Verdict::Fails(format!("the process died: {status}"))));
            next += step;
        }
    }
    Ok(found)
}

/// Groups failures that differ in numbers only.
fn reason(text: &str) -> String {
    let short: String = text.chars().take(90).collect();
    short
        .split_whitespace()
        .map(|w| if w.starts_with("0x") { "0x.." } else { w })
        .collect::<Vec<_>>()
        .join(" ")
}

fn run_all(options: &Options) -> Result<ExitCode, String> {
    let cases = options.load()?;
    let count = cases.len();
    let jobs = options.jobs.clamp(1, 64);
    let results: Vec<Result<Vec<(usize, Verdict)>, String>> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..jobs)
            .map(|first| scope.spawn(move || supervise(first, jobs, count)))
            .collect();
        parts
            .into_iter()
            .map(|p| p.join().unwrap_or_else(|_| Err("a supervisor panicked".into())))
            .collect()
    });
    let mut verdicts = Vec::new();
    for part in results {
        verdicts.extend(part?);
    }
    verdicts.sort_by_key(|(at, _)| *at);
    let (mut exact, mut close, mut differ, mut unsupported, mut failed) = (0, 0, 0, 0, 0);
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (at, verdict) in &verdicts {
        let name = cases[*at].0.name.as_str();
        match verdict {
            Verdict::Agrees => exact += 1,
            Verdict::WithinDocumentedError => close += 1,
            Verdict::Differs(what) => {
                differ += 1;
                println!("differs: {name}: {what}");
            }
            Verdict::Unsupported(what) => {
                unsupported += 1;
                reasons.entry(format!("not supported: {what}")).or_default().push(name);
            }
            Verdict::Fails(what) => {
                failed += 1;
                reasons
                    .entry(format!("fails: {}", reason(what)))
                    .or_default()
                    .push(name);
            }
        }
    }
    for (reason, names) in &reasons {
        println!("{reason}: {}", names.join(" "));
    }
    let agree = exact + close;
    println!(
        "{agree} agree ({close} of them approximations within the documented error), {differ} differ, \
         {unsupported} unsupported, {failed} fail, of {} recorded cases on {}",
        verdicts.len(),
        options.arch
    );
    Ok(if agree >= options.at_least {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
