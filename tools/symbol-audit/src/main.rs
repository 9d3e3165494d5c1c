//! The command: see `symbol-audit --help` and `docs/symbol-audit.md`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use symbol_audit::audit::{Report, audit};
use symbol_audit::elf::Error;
use symbol_audit::kernels::Rule;
use symbol_audit::provider::{OtherLibrary, Provider};
use symbol_audit::{report, walk};

// Programs that run on older systems start the older way.
old_glibc::program!();

const EXAMPLES: &str = "\
Verdicts:
  works     there, and all tests against NVIDIA's recorded answers agree
  partial   there, and some recorded answers differ
  untested  there, but no data-checking test exercised it
  refused   will not be there: the call returns \"not supported\" (801)
  missing   not there (yet): the loader stops, or the call returns \"not supported\" (801)

Examples:
  symbol-audit ./my_program                        what would fail, before srun
  symbol-audit --all /opt/cray/.../libmpi_gtl_cuda.so
  symbol-audit ~/venv/lib/python3.11/site-packages every ELF file below
  symbol-audit $(pgrep -n my_program)              all that a running process has mapped
  symbol-audit --json DIR | jq '.files[] | select(.fails) | .path'
  symbol-audit --against ./libcudart.so.12 FILE    would that library do?

Exit status:
  0  nothing known would fail
  1  something would fail
  2  wrong usage, or a file could not be read";

/// Which CUDA symbols and kernels a program or library needs, and whether Regauge has them.
///
/// Reads ELF files; runs nothing. Symbols are found by link (with their version nodes) and, in files that look functions up,
/// by name; kernels in embedded fat binaries. REGAUGE_COMPUTE_CAPABILITY and REGAUGE_HIGHEST_PTX count as they would at run
/// time.
#[derive(Parser)]
#[command(name = "symbol-audit", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    /// Files, folders (searched for ELF files) or numbers of running processes.
    #[arg(required = true, value_name = "FILE|DIR|PID")]
    what: Vec<String>,
    /// List every symbol and every kind of kernel code.
    #[arg(long, short)]
    all: bool,
    /// Write JSON.
    #[arg(long)]
    json: bool,
    /// Ask this library what it exports instead of Regauge's tables (may be given several times).
    #[arg(long, value_name = "FILE")]
    against: Vec<PathBuf>,
    /// Exit status 1 also for what is partial or untested, for look-ups by name, and for notes.
    #[arg(long)]
    strict: bool,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help and version are no failures; clap's own status for wrong usage is 2.
        Err(error) => error.exit(),
    };
    match run(&arguments) {
        Ok(code) => code,
        // Whoever read the output (`head`) has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("symbol-audit: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let provider = match provider(&arguments.against) {
        Ok(provider) => provider,
        Err(error) => {
            eprintln!("symbol-audit: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let rule = Rule::from_environment(|name| std::env::var(name).ok());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut reports: Vec<Report> = Vec::new();
    let mut errors: Vec<(String, String)> = Vec::new();
    let mut many = false;
    for argument in &arguments.what {
        let files = match walk::files(argument) {
            Ok(files) => files,
            Err(error) => {
                errors.push((argument.clone(), error.to_string()));
                continue;
            }
        };
        many |= files.iter().any(|file| !file.named);
        for file in files {
            match audit(&file.path, &provider, rule) {
                Ok(report) if report.concerns_cuda() || file.named => {
                    if !arguments.json {
                        write!(out, "{}", report::text(&report, arguments.all, arguments.strict))?;
                    }
                    reports.push(report);
                }
                Ok(_) => {}
                // In a folder most files are something else.
                Err(Error::NotElf | Error::Foreign) if !file.named => {}
                Err(error) => errors.push((file.path.display().to_string(), error.to_string())),
            }
        }
    }
    if arguments.json {
        let against: Vec<String> = arguments
            .against
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        writeln!(out, "{}", report::json(&reports, &errors, &against, arguments.strict))?;
    } else if many || arguments.what.len() > 1 {
        writeln!(out, "{}", report::summary(&reports, errors.len(), arguments.strict))?;
    }
    out.flush()?;
    for (file, error) in &errors {
        eprintln!("symbol-audit: {file}: {error}");
    }
    Ok(if !errors.is_empty() {
        ExitCode::from(2)
    } else if reports.iter().any(|report| report.fails(arguments.strict)) {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

fn provider(against: &[PathBuf]) -> Result<Provider, String> {
    if against.is_empty() {
        return Ok(Provider::Regauge);
    }
    let open = |path: &PathBuf| OtherLibrary::open(path).map_err(|error| format!("{}: {error}", path.display()));
    against.iter().map(open).collect::<Result<_, _>>().map(Provider::Others)
}
