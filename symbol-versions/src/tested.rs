//! Which symbols the data-checking tests exercised, and how well: `tables/tested.tsv`.
//!
//! A source is a conformance program (`oracle/memcpy`), whose calls are compared one by one with what NVIDIA's library
//! answered, or a program that checks its own results (`programs/ring_exchange`). `cargo xtask tested` writes the table
//! after `cargo xtask test conformance`. A symbol that only ever failed as recorded (bad arguments) is not exercised:
//! nothing has shown that it does its work.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::Library;

/// One row: what one source says about one symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Row<'t> {
    /// The symbol.
    pub symbol: &'t str,
    /// `oracle/NAME` or `programs/NAME`.
    pub source: &'t str,
    /// Recorded calls.
    pub records: u32,
    /// Those whose answer agrees.
    pub agree: u32,
    /// Those whose answer agrees and is success.
    pub successes: u32,
}

/// What all sources together say about a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Evidence {
    /// Recorded calls.
    pub records: u32,
    /// Those whose answer agrees.
    pub agree: u32,
    /// Those whose answer agrees and is success.
    pub successes: u32,
    /// Programs that call it and check their own results.
    pub programs: u32,
}

impl Evidence {
    /// Whether a test has seen it do its work.
    pub const fn exercised(self) -> bool {
        self.successes > 0 || self.programs > 0
    }

    /// Recorded calls whose answer differs.
    pub const fn differing(self) -> u32 {
        self.records.saturating_sub(self.agree)
    }
}

/// The table's text.
pub const TEXT: &str = include_str!("../tables/tested.tsv");

/// Parses the rows of a table; `#` begins a comment line.
///
/// # Errors
/// With the line that is wrong.
pub fn parse(text: &str) -> Result<Vec<Row<'_>>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let &[symbol, source, records, agree, successes] = columns.as_slice() else {
                return Err(format!("{} columns where 5 belong: {line:?}", columns.len()));
            };
            let count = |digits: &str| digits.parse().map_err(|_| format!("{digits:?} is no count: {line:?}"));
            Ok(Row {
                symbol,
                source,
                records: count(records)?,
                agree: count(agree)?,
                successes: count(successes)?,
            })
        })
        .collect()
}

/// What the tests say about `symbol`; `None`: no source mentions it.
pub fn evidence(symbol: &str) -> Option<Evidence> {
    static ALL: OnceLock<HashMap<&'static str, Evidence>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let mut all: HashMap<&'static str, Evidence> = HashMap::new();
        // The text is part of this program, and a unit test parses it.
        for row in parse(TEXT).unwrap_or_else(|error| panic!("tested.tsv: {error}")) {
            let evidence = all.entry(row.symbol).or_default();
            evidence.records += row.records;
            evidence.agree += row.agree;
            evidence.successes += row.successes;
            evidence.programs += u32::from(row.records == 0);
        }
        all
    });
    all.get(symbol).copied()
}

/// The symbols that a C or CUDA source calls by their names: identifiers before a parenthesis, outside comments and
/// strings. A launch in triple brackets stands for what the compiler makes of it. Functions that only name an error are left
/// out: such a program calls them when it has already failed.
pub fn called_in(source: &str) -> Vec<&'static str> {
    let code = without_comments_and_strings(source);
    let mut found: Vec<&'static str> = Vec::new();
    let mut rest = code.as_str();
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        rest = &rest[start..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        rest = after;
        let symbol = after.trim_start().starts_with('(').then(|| symbol_of(name)).flatten();
        found.extend(symbol.filter(|name| !name.ends_with("ErrorString") && !name.ends_with("ErrorName")));
    }
    if code.contains("<<<") {
        found.extend(LAUNCH.iter().filter_map(|name| symbol_of(name)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The self-checking programs below `tests` and the symbols they call, by source.
///
/// # Errors
/// When a source cannot be read.
pub fn self_checking(tests: &std::path::Path) -> std::io::Result<Vec<(String, Vec<&'static str>)>> {
    // Its kernels' outputs are compared word by word, and its host code is the same few calls for each.
    let mut files = vec![("oracle/ptx".to_owned(), tests.join("oracle/ptx.cc"))];
    for entry in std::fs::read_dir(tests.join("programs"))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if path
            .extension()
            .is_some_and(|extension| extension == "c" || extension == "cu")
        {
            files.push((format!("programs/{name}"), path.clone()));
        }
    }
    files.sort();
    files
        .into_iter()
        .map(|(source, path)| Ok((source, called_in(&std::fs::read_to_string(path)?))))
        .collect()
}

/// What nvcc 13.5, which builds the test programs, makes of a launch in triple brackets.
const LAUNCH: [&str; 8] = [
    "__cudaGetKernel",
    "__cudaLaunchKernel",
    "__cudaPopCallConfiguration",
    "__cudaPushCallConfiguration",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaRegisterFunction",
    "__cudaUnregisterFatBinary",
];

/// The exported symbol that a name in a source means: NVIDIA's headers rename some to their newest version.
fn symbol_of(name: &str) -> Option<&'static str> {
    let own = Library::ALL.iter().find_map(|library| library.table().get(name));
    if name.starts_with("cu") && !name.starts_with("cuda") {
        let newest = crate::procaddr::resolve_symbol(name, 12_000, false).ok();
        return newest.or(own).map(|symbol| symbol.name);
    }
    // The one that cuda_runtime_api.h 12.x renames among those that programs use.
    match own.map(|symbol| symbol.name) {
        Some("cudaGetDeviceProperties") => symbol_of("cudaGetDeviceProperties_v2"),
        name => name,
    }
}

fn without_comments_and_strings(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|at| at + 2)
        } else if first == '"' {
            end_of_string(rest)
        } else {
            code.push(first);
            Some(first.len_utf8())
        };
        rest = &rest[skipped.unwrap_or(rest.len())..];
    }
    code
}

/// The length of the string literal that `text` begins with.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn tests_folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests")
    }

    /// The rows of self-checking programs are those that their sources give; records are as many as there are in `results`;
    /// all symbols exist.
    #[test]
    fn the_table_fits_the_tests() {
        let rows = parse(TEXT).unwrap();
        assert!(rows.is_sorted(), "rows are out of order");
        let again = "run `cargo xtask test conformance` and `cargo xtask tested`";
        for row in &rows {
            let known = Library::ALL
                .iter()
                .any(|library| library.table().get(row.symbol).is_some());
            assert!(known, "{} is in no table; {again}", row.symbol);
            assert!(row.agree <= row.records && row.successes <= row.agree, "{row:?}");
            let Some(name) = row.source.strip_prefix("oracle/").filter(|_| row.records > 0) else {
                continue;
            };
            let recorded = fs::read_to_string(tests_folder().join(format!("oracle/results/{name}.jsonl"))).unwrap();
            // In the source the call may have the name without what the headers append to it.
            let renamed = |call| match row.symbol.strip_prefix(call) {
                Some(rest) => rest.is_empty() || rest.starts_with('_') || rest == "WithFlags",
                None => false,
            };
            let calls = recorded.split("\"call\":\"").skip(1);
            let most = calls
                .filter_map(|rest| rest.split('"').next())
                .filter(|&call| renamed(call))
                .count();
            assert!(row.records as usize <= most, "{row:?}: {most} records; {again}");
        }
        let listed: BTreeSet<(&str, &str)> = rows
            .iter()
            .filter(|row| row.records == 0)
            .map(|row| (row.source, row.symbol))
            .collect();
        let sources = self_checking(&tests_folder()).unwrap();
        let scanned: BTreeSet<(&str, &str)> = sources
            .iter()
            .flat_map(|(source, symbols)| symbols.iter().map(|symbol| (source.as_str(), *symbol)))
            .collect();
        assert_eq!(listed, scanned, "{again}");
    }

    #[test]
    fn calls_are_found_outside_comments_and_strings() {
        let source = "// cudaFree(p)\nf(\"cudaFree(\\\"p)\"); /* cudaFree(p) */ cudaMalloc(&p, 8); cuMemAlloc (&q, 8);\n\
            x = cudaMemcpy; cudaGetErrorString(e); nvmlInit_v2();";
        assert_eq!(called_in(source), ["cuMemAlloc_v2", "cudaMalloc", "nvmlInit_v2"]);
        assert!(called_in("k<<<1, 1>>>(p);").contains(&"__cudaRegisterFatBinary"));
    }

    #[test]
    fn bad_rows_are_named() {
        assert!(parse("cuInit\toracle/a\t1\t1").unwrap_err().contains("4 columns"));
        assert!(
            parse("cuInit\toracle/a\t1\tx\t1")
                .unwrap_err()
                .contains("\"x\" is no count")
        );
    }
}
