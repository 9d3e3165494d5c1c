//! Which functions of the tables exist: reads the sources of `shim/core/src/api`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Library, Status, Symbol, Table};

/// The sources that hold the functions of `library`.
fn files(library: Library) -> io::Result<Vec<PathBuf>> {
    let api = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shim/core/src/api");
    let folder = match library {
        Library::Cuda => api.join("driver"),
        Library::Cudart => api.join("runtime"),
        Library::Nvml => return Ok(vec![api.join("nvml.rs")]),
        Library::Cudart11 => return Ok(vec![api.join("runtime11.rs")]),
        Library::Cudart13 => return Ok(vec![api.join("runtime13.rs")]),
    };
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// Whether `name` is in the style of an export of `library`: `cuInit`, `cudaFree`, `__cudaInitModule`, `nvmlInit`.
fn looks_exported(library: Library, name: &str) -> bool {
    let prefixes: &[&str] = match library {
        Library::Cuda => &["cu"],
        Library::Cudart | Library::Cudart11 | Library::Cudart13 => &["cuda", "__cuda"],
        Library::Nvml => &["nvml"],
    };
    prefixes.iter().any(|prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    })
}

/// The names of the functions in `text` that look like exports of `library`; comments are skipped.
fn functions_in(library: Library, text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("fn ").skip(1))
        .filter_map(|rest| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
            rest[end..].starts_with('(').then(|| rest[..end].to_owned())
        })
        .filter(|name| looks_exported(library, name))
        .collect()
}

/// The symbols of `library` for which a function exists.
///
/// # Errors
/// When a source cannot be read.
pub fn implemented(library: Library) -> io::Result<BTreeSet<String>> {
    let own = functions(library)?;
    if library.shares_with() == library {
        return Ok(own);
    }
    let shared = functions(library.shares_with())?;
    let mut unused = own.clone();
    let mut names = BTreeSet::new();
    for symbol in library.table().symbols() {
        let (of, function) = symbol.function(library);
        let there = if of == library {
            unused.remove(function);
            own.contains(function)
        } else {
            shared.contains(function)
        };
        if there {
            names.insert(symbol.name.to_owned());
        }
    }
    // Nothing calls these: `differences` reports names that the table lacks.
    names.extend(unused.into_iter().map(|name| format!("{name} (marked `own`)")));
    Ok(names)
}

/// The functions in the sources of `library`.
fn functions(library: Library) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for file in files(library)? {
        let text =
            fs::read_to_string(&file).map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
        names.extend(functions_in(library, &text));
    }
    Ok(names)
}

/// What in `table` disagrees with the functions that exist: one line each.
pub fn differences(table: &Table, functions: &BTreeSet<String>) -> Vec<String> {
    let unknown = functions.iter().filter(|name| table.get(name).is_none());
    let mut lines: Vec<String> = unknown
        .map(|name| format!("{name}: a function that the table lacks"))
        .collect();
    for symbol in table.symbols() {
        match (symbol.status, functions.contains(symbol.name)) {
            (Status::Impl, false) => lines.push(format!("{}: impl, but there is no function", symbol.name)),
            (Status::Stub, true) => lines.push(format!("{}: stub, but there is a function", symbol.name)),
            (Status::Refuse, true) => lines.push(format!("{}: refuse, but there is a function", symbol.name)),
            _ => {}
        }
    }
    lines
}

/// `text` (a table) with the status column set from `functions`; comment lines and rows marked `refuse` stay.
pub fn with_status(text: &str, functions: &BTreeSet<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        if let &[name, node, since, status, class, ref answer @ ..] = columns.as_slice()
            && !line.starts_with('#')
            && status != Status::Refuse.as_str()
        {
            let status = if functions.contains(name) {
                Status::Impl
            } else {
                Status::Stub
            };
            let _ = write!(out, "{name}\t{node}\t{since}\t{}\t{class}", status.as_str());
            answer.iter().for_each(|answer| {
                let _ = write!(out, "\t{answer}");
            });
            out.push('\n');
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

/// How many symbols of `table` have each status: implemented, missing, refused.
pub fn coverage(table: &Table) -> [usize; 3] {
    let count = |status| {
        table
            .symbols()
            .iter()
            .filter(|symbol: &&Symbol| symbol.status == status)
            .count()
    };
    [count(Status::Impl), count(Status::Stub), count(Status::Refuse)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_macros_and_outside() {
        let text = "driver! {\n    fn cuInit(flags: u32) {\n}\n}\npub unsafe extern \"C\" fn cuGetX(a: u8) -> i32 {}\n\
            // fn cuNot(a: u8)\nfn helper(a: u8) {}\nfn cu_not(b: u8) {}\n";
        let found = functions_in(Library::Cuda, text);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["cuGetX", "cuInit"]);
    }

    #[test]
    fn the_tables_say_what_the_sources_have() {
        for library in Library::ALL {
            let differences = differences(library.table(), &implemented(library).unwrap());
            assert!(
                differences.is_empty(),
                "{} (run `cargo run -p symbol-versions --bin sync`):\n{}",
                library.file(),
                differences.join("\n")
            );
        }
    }

    #[test]
    fn setting_the_status_keeps_everything_else() {
        let text = "# note\ncuA\t-\t2000\tstub\terr\ncuB\tn\t-\timpl\tptr\t=cuA\ncuGL\t-\t-\trefuse\terr\n";
        let functions = BTreeSet::from(["cuA".to_owned()]);
        let expected = "# note\ncuA\t-\t2000\timpl\terr\ncuB\tn\t-\tstub\tptr\t=cuA\ncuGL\t-\t-\trefuse\terr\n";
        assert_eq!(with_status(text, &functions), expected);
    }
}
