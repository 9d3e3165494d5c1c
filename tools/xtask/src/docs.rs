//! `cargo xtask docs`: the generated pages of `docs/`, and the check that they are up to date.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use symbol_versions::Library;

use crate::{Result, bench, coverage};

/// Writes the pages.
pub fn run() -> Result<ExitCode> {
    for (path, text) in pages()? {
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text)?;
        println!("docs: wrote {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails when a page is not what would be written now.
pub fn check() -> Result<String> {
    let pages = pages()?;
    for (path, text) in &pages {
        if !fs::read_to_string(path).is_ok_and(|old| old == *text) {
            return Err(format!("{} is out of date: run `cargo xtask docs`", path.display()).into());
        }
    }
    Ok(format!("{} pages", pages.len()))
}

fn pages() -> Result<Vec<(PathBuf, String)>> {
    let docs = bench::root().join("docs");
    Ok(vec![
        (docs.join("api-status.md"), api_status()),
        (docs.join("environment.md"), environment()?),
        (docs.join("device-attributes.md"), device_attributes()?),
    ])
}

fn api_status() -> String {
    let mut text = String::from(
        "# API status\n\n\
         Written by `cargo xtask docs` from `symbol-versions/tables`; do not edit. `cargo xtask coverage --list` prints the same for terminals.\n\n\
         - **works**: every call of the chapter is there.\n\
         - **partial**: some are; the others are named below the table.\n\
         - **not yet**: none is. Each call returns CUDA's *not supported* (801; NVML: 3) and says so once in the log.\n\
         - **refused**: as *not yet*, but for good: graphics interoperability has no counterpart on GPUs without displays.\n\n\
         A call that is there answers as NVIDIA's recorded behaviour (`tests/oracle`) has it, with the deviations that its documentation names.\n",
    );
    for library in Library::ALL {
        let chapters = coverage::chapters(library);
        let sum = |column: usize| chapters.values().map(|chapter| chapter.counts()[column]).sum::<usize>();
        let _ = write!(
            text,
            "\n## {}\n\n{} calls are there, {} not yet, {} refused.\n\n| chapter | status | there | not yet | refused |\n|---|---|---:|---:|---:|\n",
            library.soname(),
            sum(0),
            sum(1),
            sum(2)
        );
        for (name, chapter) in &chapters {
            let [implemented, stub, refused] = chapter.counts();
            let tier = chapter.tier().name();
            let _ = writeln!(text, "| {name} | {tier} | {implemented} | {stub} | {refused} |");
        }
        for (title, names) in [("Not yet", 1), ("Refused", 2)] {
            if sum(names) == 0 {
                continue;
            }
            let _ = write!(text, "\n### {title}: {}\n\n", library.soname());
            for (name, chapter) in &chapters {
                let missing = match names {
                    1 => with_reasons(library, &chapter.stub),
                    // One reason holds for all of these, and stands at the top.
                    _ => chapter.refused.join(", "),
                };
                if !missing.is_empty() {
                    let _ = writeln!(text, "- **{name}**: {missing}");
                }
            }
        }
    }
    text
}

/// Names, together where they have one reason.
fn with_reasons(library: Library, names: &[&'static str]) -> String {
    let mut groups: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for &name in names {
        let reason = coverage::reason(library, name);
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, group)) => group.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    // Those without one first, as the list goes on with them most often.
    groups.sort_by_key(|(reason, _)| reason.is_some());
    let texts = groups.iter().map(|(reason, names)| match reason {
        Some(reason) => format!("{} ({reason})", names.join(", ")),
        None => names.join(", "),
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// A variable as a source's table has it.
#[derive(Debug, PartialEq, Eq)]
struct Variable {
    name: String,
    default: String,
    doc: String,
}

/// The sources that hold tables of variables. Where two have a variable, the first describes it.
///
/// They are read as text, as `symbol_versions::sources` does: to link the crates would make every change of the libraries a
/// rebuild of this command.
const TABLES: [&str; 3] = [
    "shim/core/src/config.rs",
    "kernels-ptx-translate/src/config.rs",
    "vgpu/kfd/src/config.rs",
];

fn environment() -> Result<String> {
    let mut variables: Vec<Variable> = Vec::new();
    for table in TABLES {
        let source = fs::read_to_string(bench::root().join(table)).map_err(|error| format!("{table}: {error}"))?;
        for variable in table_in(&source).map_err(|error| format!("{table}: {error}"))? {
            if variables.iter().all(|known| known.name != variable.name) {
                variables.push(variable);
            }
        }
    }
    let mut text = String::from(
        "# Environment variables\n\n\
         Written by `cargo xtask docs` from the `config.rs` of the libraries; do not edit. An empty variable is an unset one. A malformed value\n\
         of a `REGAUGE_` variable is reported once and the default taken.\n",
    );
    for (title, prefix) in [
        ("The libraries and the translator", "REGAUGE_"),
        ("The virtual GPU", "VGPU_"),
    ] {
        let _ = write!(
            text,
            "\n## {title}\n\n| variable | default | meaning |\n|---|---|---|\n"
        );
        let mut rows: Vec<_> = variables
            .iter()
            .filter(|variable| variable.name.starts_with(prefix))
            .collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        for Variable { name, default, doc } in rows {
            let default = if default.is_empty() { "(empty)" } else { default };
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(text, "| `{name}` | {} | {} |", cell(default), cell(doc));
        }
    }
    Ok(text)
}

/// The table of device attributes, read as text like [`TABLES`].
const ATTRIBUTES: &str = "shim/core/src/device/attributes.rs";

fn device_attributes() -> Result<String> {
    let source =
        fs::read_to_string(bench::root().join(ATTRIBUTES)).map_err(|error| format!("{ATTRIBUTES}: {error}"))?;
    let mut text = String::from(
        "# Device attributes\n\n\
         Written by `cargo xtask docs` from the table of the library; do not edit. What `cuDeviceGetAttribute` and `cudaDeviceGetAttribute` answer,\n\
         and why. *measured*: asked of the device or of ROCr; `cudaDeviceProp` has the same values.\n\n\
         | id | `CU_DEVICE_ATTRIBUTE_` | value | reason |\n|---:|---|---:|---|\n",
    );
    for (id, name, value, reason) in attribute_rows(&source)? {
        let _ = writeln!(text, "| {id} | `{name}` | {value} | {reason} |");
    }
    Ok(text)
}

/// Id, name, value and reason of each line `1 NAME = Is(1024), "reason";` of the macro call that holds the table.
fn attribute_rows(source: &str) -> std::result::Result<Vec<(u32, &str, &str, &str)>, String> {
    let table = source
        .split_once("\nattributes! {\n")
        .and_then(|(_, rest)| rest.split_once("\n}"))
        .ok_or("no table of attributes")?
        .0;
    let rows = table.lines().map(|line| {
        let row = || {
            let (id, rest) = line.trim().split_once(' ')?;
            let (name, rest) = rest.split_once(" = ")?;
            let (value, reason) = rest.strip_suffix("\";")?.rsplit_once(", \"")?;
            let constant = value.strip_prefix("Is(").and_then(|value| value.strip_suffix(')'));
            let value = constant.unwrap_or("*measured*");
            Some((id.parse().ok()?, name, value, reason))
        };
        row().ok_or_else(|| format!("not a row of attributes: {line}"))
    });
    rows.collect()
}

/// The variables of a table in Rust's source, which is in one of two forms:
///
/// ```text
/// Variable { name: "NAME", default: "1", doc: "What it does." }
/// #[doc = "What it does."]  STATIC: type = "NAME", "1", parser;
/// ```
fn table_in(source: &str) -> std::result::Result<Vec<Variable>, String> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or(source);
    let mut variables = Vec::new();
    let mut names = 0;
    let mut recent: Vec<String> = Vec::new();
    for (literal, before) in literals(code) {
        let field = |name: &str| before.trim_end().ends_with(&format!("{name}:"));
        let is_name = (literal.starts_with("REGAUGE_") || literal.starts_with("VGPU_"))
            && literal.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase());
        let in_table = field("name") || (before.trim_end().ends_with('=') && !before.contains("doc ="));
        names += usize::from(is_name && in_table);
        recent.push(literal);
        match recent.as_slice() {
            [.., name, default, doc] if field("doc") => variables.push(Variable {
                name: name.clone(),
                default: default.clone(),
                doc: doc.clone(),
            }),
            [.., doc, name, default]
                if before.trim() == "," && (name.starts_with("REGAUGE_") || name.starts_with("VGPU_")) =>
            {
                variables.push(Variable {
                    name: name.clone(),
                    default: default.clone(),
                    doc: doc.clone(),
                });
            }
            _ => {}
        }
    }
    if variables.is_empty() || variables.len() != names {
        return Err(format!(
            "{names} names of variables, but {} descriptions are understood",
            variables.len()
        ));
    }
    Ok(variables)
}

/// The string literals of `code`, each with the code between it and the literal before it. Comments hold no quotes that matter
/// in a table: lines that begin with `//` are left out.
fn literals(code: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = lines.join("\n");
    let mut found = Vec::new();
    let mut before = String::new();
    let mut characters = code.chars();
    while let Some(character) = characters.next() {
        if character != '"' {
            before.push(character);
            continue;
        }
        let mut literal = String::new();
        while let Some(character) = characters.next().filter(|&character| character != '"') {
            literal.push(if character == '\\' {
                characters.next().unwrap_or('\\')
            } else {
                character
            });
        }
        found.push((literal, std::mem::take(&mut before)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_table_are_read() {
        let fields = "const T: &[V] = &[V {\n name: \"VGPU_A\",\n default: \"1\",\n doc: \"Does \\\"a\\\".\",\n}];\nfn f() { g(\"VGPU_A\") }";
        let read = table_in(fields).unwrap();
        assert_eq!((read[0].name.as_str(), read[0].doc.as_str()), ("VGPU_A", "Does \"a\"."));
        let lines = "#[doc = \"Does b.\"]\nB: u32 = \"REGAUGE_B\", \"\", path;\n#[doc = \"C.\"]\nC: x = \"REGAUGE_C\", \"2\", y;";
        let read = table_in(lines).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[1].name.as_str(), read[1].default.as_str(), read[1].doc.as_str()),
            ("REGAUGE_C", "2", "C.")
        );
    }

    #[test]
    fn a_table_in_another_form_is_an_error() {
        assert!(table_in("V { name: \"VGPU_A\", doc: \"x\" }").is_err());
        assert!(table_in("").is_err());
    }

    #[test]
    fn attributes_are_read_from_their_table() {
        let source = "macro_rules! x {}\n\nattributes! {\n    1 A = Is(2), \"b, c\";\n    2 D = Of(|device| f(device, 1)), \"e\";\n}\n";
        assert_eq!(
            attribute_rows(source).unwrap(),
            [(1, "A", "2", "b, c"), (2, "D", "*measured*", "e")]
        );
        assert!(attribute_rows("attributes! {\n    1 A\n}\n").is_err());
        assert!(device_attributes().unwrap().contains("| 10 | `WARP_SIZE` | 32 |"));
    }

    #[test]
    fn the_tables_of_the_tree_are_understood() {
        let page = environment().unwrap();
        for name in ["REGAUGE_LOG", "REGAUGE_COMGR", "VGPU_BAR"] {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}
