//! `regauge doctor`: what is wrong on this node, in words, from the kernel driver up to a compiled kernel.
//!
//! Each check leans on the ones before it; where one finds a problem that others would only repeat, they are left out.

mod cuda;
mod kernel;
mod rocr;
mod translator;

use std::path::PathBuf;
use std::process::ExitCode;

use launcher::Libraries;
use serde::Serialize;

use crate::advice::{self, Advice};

const STATUSES: &str = "\
Exit status:
  0  CUDA programs can run here; there may be warnings
  1  there is a problem
  2  wrong usage";

/// Options of `doctor`.
#[derive(clap::Args)]
#[command(after_help = STATUSES)]
pub struct Arguments {
    /// Folder with Regauge's libraries (default: the one this command is in, or `../lib` of it).
    #[arg(long, value_name = "DIR")]
    libraries: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Programs run, but something deserves a look.
    Warning,
    /// CUDA programs cannot run, or not on all that is there.
    Problem,
}

/// One line of the report.
#[derive(Debug, Serialize)]
pub struct Finding {
    check: &'static str,
    verdict: Verdict,
    text: String,
    /// What to do; empty if nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    cure: String,
}

/// Everything found so far.
#[derive(Debug, Default)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// Something is as it should be.
    pub fn ok(&mut self, check: &'static str, text: impl Into<String>) {
        self.add(check, Verdict::Ok, text.into(), String::new());
    }

    /// Something deserves a look.
    pub fn warning(&mut self, check: &'static str, text: impl Into<String>, cure: impl Into<String>) {
        self.add(check, Verdict::Warning, text.into(), cure.into());
    }

    /// Something keeps programs from running.
    pub fn problem(&mut self, check: &'static str, text: impl Into<String>, cure: impl Into<String>) {
        self.add(check, Verdict::Problem, text.into(), cure.into());
    }

    fn add(&mut self, check: &'static str, verdict: Verdict, text: String, cure: String) {
        self.findings.push(Finding {
            check,
            verdict,
            text,
            cure,
        });
    }

    fn warnings(&mut self, check: &'static str, all: Vec<Advice>) -> bool {
        let any = !all.is_empty();
        all.into_iter()
            .for_each(|advice| self.warning(check, advice.text, advice.cure));
        any
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.verdict == verdict)
            .count()
    }

    fn print(&self) {
        for finding in &self.findings {
            let verdict = match finding.verdict {
                Verdict::Ok => "ok",
                Verdict::Warning => "warning",
                Verdict::Problem => "PROBLEM",
            };
            println!("{verdict:8} {}: {}", finding.check, finding.text);
            if !finding.cure.is_empty() {
                println!("{:8}   -> {}", "", finding.cure);
            }
        }
        match (self.count(Verdict::Problem), self.count(Verdict::Warning)) {
            (0, 0) => println!("\nCUDA programs can run here."),
            (0, warnings) => println!("\nCUDA programs can run here; {warnings} warnings."),
            (problems, _) => println!("\n{problems} problems: CUDA programs cannot run here as they should."),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    let report = examine(arguments);
    if arguments.json {
        let json = serde_json::json!({
            "findings": report.findings,
            "problems": report.count(Verdict::Problem),
            "warnings": report.count(Verdict::Warning),
        });
        match serde_json::to_string_pretty(&json) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("regauge: {error}"),
        }
    } else {
        report.print();
    }
    ExitCode::from(u8::from(report.count(Verdict::Problem) > 0))
}

fn examine(arguments: &Arguments) -> Report {
    let mut report = Report::default();
    let libraries = match crate::libraries(arguments.libraries.as_deref()) {
        Ok(libraries) => {
            report.ok(
                "libraries",
                format!("Regauge's are in {}", libraries.directory().display()),
            );
            Some(libraries)
        }
        Err(error) => {
            let cure = "keep this command in one folder with the libraries, or name theirs with --libraries";
            report.problem("libraries", error.to_string(), cure);
            None
        }
    };
    if let Some(libraries) = &libraries {
        conflicts(&mut report, libraries);
    }
    let driver = kernel::check(&mut report);
    let seen = rocr::check(&mut report, driver);
    if !report.warnings("visible devices", advice::visibility(|name| std::env::var(name).ok())) {
        let set = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]
            .iter()
            .filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)))
            .collect::<Vec<_>>();
        let text = if set.is_empty() {
            "no variable hides a GPU".into()
        } else {
            set.join(", ")
        };
        report.ok("visible devices", text);
    }
    if let Some(libraries) = &libraries {
        // Where ROCr sees no GPU, that CUDA sees none either is no news.
        if let Some(targets) = seen.as_ref().filter(|targets| !targets.is_empty()) {
            cuda::check(&mut report, libraries, targets.len());
        }
        translator::check(&mut report, libraries, seen.as_deref().unwrap_or_default());
    }
    translator::cache(&mut report);
    report
}

fn conflicts(report: &mut Report, libraries: &Libraries) {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut found = advice::foreign_libraries(&path, libraries);
    found.extend(advice::two_rocms(&path));
    if !report.warnings("library path", found) {
        report.ok(
            "library path",
            "no other CUDA library comes before Regauge's, and no second ROCm",
        );
    }
}
