//! Reports: text for people, JSON for scripts.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::audit::{How, Needed, Report, Role};
use crate::kernels::Kernels;
use crate::provider::Verdict;

/// Names on a line of the short text.
const SHORT: usize = 6;
/// Columns of a line.
const WIDTH: usize = 110;

/// All reports of a run, as JSON has them.
#[derive(Serialize)]
struct Json<'r> {
    /// Version of this format; it changes when a field changes its meaning or goes.
    format: u32,
    /// The libraries of `--against`; none: Regauge's tables.
    against: &'r [String],
    files: Vec<JsonFile<'r>>,
    errors: &'r [(String, String)],
    /// Something would fail.
    fails: bool,
}

#[derive(Serialize)]
struct JsonFile<'r> {
    #[serde(flatten)]
    report: &'r Report,
    fails: bool,
    link: BTreeMap<&'static str, usize>,
    name: BTreeMap<&'static str, usize>,
}

/// The JSON of a run.
pub fn json(reports: &[Report], errors: &[(String, String)], against: &[String], strict: bool) -> String {
    let words = |report: &Report, how| {
        let counts = report.counts(how);
        counts.into_iter().map(|(verdict, n)| (verdict.word(), n)).collect()
    };
    let files = reports.iter().map(|report| JsonFile {
        report,
        fails: report.fails(strict),
        link: words(report, How::Link),
        name: words(report, How::Name),
    });
    let json = Json {
        format: 1,
        against,
        files: files.collect(),
        errors,
        fails: reports.iter().any(|report| report.fails(strict)),
    };
    // Strings, numbers, lists and maps with string keys only.
    serde_json::to_string_pretty(&json).unwrap_or_default()
}

/// The text about one file; `all`: every symbol with its verdict and note.
pub fn text(report: &Report, all: bool, strict: bool) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_report(&mut text, report, all, strict);
    text
}

fn write_report(out: &mut String, report: &Report, all: bool, strict: bool) -> fmt::Result {
    let outcome = match report.role {
        Role::None => "does not use CUDA",
        Role::Regauge => "a library of Regauge's",
        Role::Runtime => "a CUDA runtime",
        Role::Driver => "a driver library",
        // Its entry points are all there: it loads, and may well do without those calls.
        _ if report.loads() && report.fails(strict) => "some calls would fail",
        _ if report.fails(strict) => "WOULD FAIL",
        _ => "nothing known would fail",
    };
    writeln!(out, "{}: {outcome}", report.path.display())?;
    for (how, title) in [(How::Link, "by link"), (How::Name, "by name")] {
        let symbols: Vec<&Needed> = report.symbols.iter().filter(|symbol| symbol.how == how).collect();
        if symbols.is_empty() {
            continue;
        }
        writeln!(out, "  {title}: {}", sources(&symbols))?;
        if how == How::Name && report.role == Role::StaticCudart && !all {
            writeln!(out, "    nearly all are the linked-in runtime's own (--all lists them)")?;
            continue;
        }
        for verdict in Verdict::ALL {
            let these: Vec<&Needed> = symbols
                .iter()
                .copied()
                .filter(|symbol| symbol.verdict == verdict)
                .collect();
            if !these.is_empty() {
                write_symbols(out, verdict, &these, all)?;
            }
        }
    }
    if !report.unknown_names.is_empty() {
        let count = report.unknown_names.len();
        writeln!(
            out,
            "  {count} more strings look like CUDA names and are in no table{}",
            if all { ":" } else { "" }
        )?;
        if all {
            wrapped(out, "    ", report.unknown_names.iter().map(String::as_str))?;
        }
    }
    for kernels in &report.kernels {
        write_kernels(out, kernels, all)?;
    }
    for problem in &report.problems {
        let mark = if problem.fails { "FAILS" } else { "note" };
        wrapped(out, &format!("  {mark}: "), problem.what.split(' '))?;
        wrapped(out, "    -> ", problem.cure.split(' '))?;
    }
    Ok(())
}

/// `28 of libcudart.so.12 (node libcudart.so.12), 4 of libcuda.so.1`
fn sources(symbols: &[&Needed]) -> String {
    let mut sources: BTreeMap<String, usize> = BTreeMap::new();
    for symbol in symbols {
        let name = match (&symbol.file, &symbol.node) {
            (Some(file), Some(node)) => format!("{file} (node {node})"),
            _ if symbol.how == How::Link => format!("{} (no version)", symbol.library),
            _ => symbol.library.clone(),
        };
        *sources.entry(name).or_default() += 1;
    }
    let parts: Vec<String> = sources.into_iter().map(|(name, n)| format!("{n} of {name}")).collect();
    parts.join(", ")
}

fn write_symbols(out: &mut String, verdict: Verdict, symbols: &[&Needed], all: bool) -> fmt::Result {
    let head = format!("    {:<9} {:>4}", verdict.word(), symbols.len());
    if all {
        writeln!(out, "{head}")?;
        for symbol in symbols {
            write!(out, "      {}", symbol.name)?;
            if let Some(other) = symbol.resolves_to {
                write!(out, " (-> {other})")?;
            }
            if symbol.weak {
                write!(out, " (weak)")?;
            }
            match &symbol.note {
                Some(note) => writeln!(out, ": {note}")?,
                None => writeln!(out)?,
            }
        }
        return Ok(());
    }
    // What fails is named in full; of the rest a few are enough.
    let shown = match verdict {
        Verdict::Missing | Verdict::Refused => symbols.len().min(4 * SHORT),
        Verdict::Partial | Verdict::Untested => symbols.len().min(SHORT),
        Verdict::Works | Verdict::Provided => return writeln!(out, "{head}"),
    };
    let mut names: Vec<String> = symbols[..shown].iter().map(|symbol| symbol.name.clone()).collect();
    if shown < symbols.len() {
        names.push(format!("and {} more", symbols.len() - shown));
    }
    let names = names.join(", ");
    wrapped(out, &format!("{head}  "), names.split(' '))
}

fn write_kernels(out: &mut String, kernels: &Kernels, all: bool) -> fmt::Result {
    let count = kernels.containers;
    writeln!(
        out,
        "  kernels: {count} fat binar{} in {}",
        if count == 1 { "y" } else { "ies" },
        kernels.section
    )?;
    for (what, n) in &kernels.taken {
        writeln!(out, "    taken     {n:>4}  {what}")?;
    }
    for (why, n) in &kernels.refused {
        writeln!(out, "    refused   {n:>4}  {why}")?;
    }
    if kernels.empty > 0 {
        writeln!(out, "    empty     {:>4}", kernels.empty)?;
    }
    for (why, n) in &kernels.damaged {
        writeln!(out, "    damaged   {n:>4}  {why}")?;
    }
    if all {
        for (code, n) in &kernels.code {
            let version = code
                .ptx_version
                .as_ref()
                .map_or(String::new(), |version| format!(" version {version}"));
            writeln!(
                out,
                "      {n:>5} {} {}{version}, {}",
                code.kind, code.architecture, code.compression
            )?;
        }
        return Ok(());
    }
    // By kind: which architectures, and how they are stored.
    let mut kinds: BTreeMap<&str, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for code in kernels.code.keys() {
        let (architectures, compressions) = kinds.entry(&code.kind).or_default();
        architectures.push(&code.architecture);
        compressions.push(code.compression);
    }
    for (kind, (mut architectures, mut compressions)) in kinds {
        architectures.dedup();
        compressions.sort_unstable();
        compressions.dedup();
        writeln!(
            out,
            "    {kind}: {} ({})",
            architectures.join(" "),
            compressions.join(", ")
        )?;
    }
    if kernels.section == "__nv_relfatbin" {
        writeln!(
            out,
            "    (relocatable device code: kernels that call functions of other objects need a device linker)"
        )?;
    }
    Ok(())
}

/// Writes words after `head`, in lines of [`WIDTH`], the later ones indented as far as the head reaches.
fn wrapped<'w>(out: &mut String, head: &str, words: impl Iterator<Item = &'w str>) -> fmt::Result {
    let mut line = head.to_owned();
    let mut empty = true;
    for word in words {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line = " ".repeat(head.chars().count());
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    writeln!(out, "{line}")
}

/// One line about many files.
pub fn summary(reports: &[Report], errors: usize, strict: bool) -> String {
    let failing = reports.iter().filter(|report| report.fails(strict)).count();
    let mut line = format!("{} files that use CUDA, {failing} would fail", reports.len());
    if errors > 0 {
        let _ = write!(line, ", {errors} could not be read");
    }
    line
}
