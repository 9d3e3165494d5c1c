//! File tests of the lowering: each `tests/lower/*.ptx` holds a module and, in comments, what its LLVM IR must contain.
//!
//! ```text
//! // block: 64 1 1             the launch that it is compiled for; 0 0 0 when absent
//! // layout: Solo              the warp layout
//! // check: <fragment>         lines of the IR, in order, each containing its fragment; %N stands for any value
//! // check-not: <fragment>     no line contains it
//! // error: <text>             lowering must fail with this error instead
//! ```
//!
//! `BLESS=1` rewrites the `.ll` beside each file: the whole IR, for reading, and compared on every run.

#![cfg(feature = "translator")]

use std::path::{Path, PathBuf};

use kernels_ptx_translate::lower::lower_kernel;
use kernels_ptx_translate::protocol::{CompileRequest, Target};
use kernels_ptx_translate::ptx;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lower");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .collect();
    found.sort();
    found
}

/// Values get numbers that change with every edit of the emitter: fragments are compared without them.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.trim();
    while let Some(at) = rest.find('%') {
        let end = rest[at + 1..]
            .find(|c: char| !c.is_ascii_alphanumeric())
            .map_or(rest.len(), |n| at + 1 + n);
        let name = &rest[at + 1..end];
        out.push_str(&rest[..at + 1]);
        let numbered =
            name.len() > 1 && name[1..].bytes().all(|b| b.is_ascii_digit()) && name.starts_with(['v', 't', 's']);
        out.push_str(if numbered || name == "N" { "N" } else { name });
        rest = &rest[end..];
    }
    out + rest
}

fn directives<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let prefix = format!("// {name}: ");
    text.lines().filter_map(|l| l.strip_prefix(prefix.as_str())).collect()
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let block = match directives(&text, "block").first() {
        Some(list) => {
            let n: Vec<u32> = list.split_whitespace().map(|w| w.parse().unwrap()).collect();
            [n[0], n[1], n[2]]
        }
        None => [0; 3],
    };
    let module = ptx::parse(&text).map_err(|e| e.to_string())?;
    let entry = module
        .functions
        .iter()
        .find(|f| f.is_entry)
        .ok_or("no entry")?
        .name
        .to_string();
    let request = CompileRequest {
        entry,
        target: Target::Gfx90a,
        block,
        opt_level: 3,
    };
    let lowered = lower_kernel(&module, &request);
    if let Some(expected) = directives(&text, "error").first() {
        return match lowered {
            Err(error) if error.to_string() == *expected => Ok(()),
            other => Err(format!("expected the error {expected:?}, got {other:?}")),
        };
    }
    let lowered = lowered.map_err(|e| e.to_string())?;
    if let Some(layout) = directives(&text, "layout").first()
        && format!("{:?}", lowered.layout) != *layout
    {
        return Err(format!("layout {:?}, expected {layout}", lowered.layout));
    }
    let mut lines = lowered.llvm_ir.lines().map(plain);
    for fragment in directives(&text, "check") {
        if !lines.any(|line| line.contains(&plain(fragment))) {
            return Err(format!("no line (in order) contains {fragment:?}"));
        }
    }
    for fragment in directives(&text, "check-not") {
        if let Some(line) = lowered
            .llvm_ir
            .lines()
            .map(plain)
            .find(|l| l.contains(&plain(fragment)))
        {
            return Err(format!("{line:?} contains {fragment:?}"));
        }
    }
    let golden = path.with_extension("ll");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, &lowered.llvm_ir).map_err(|e| e.to_string())?;
    } else if std::fs::read_to_string(&golden).unwrap_or_default() != lowered.llvm_ir {
        return Err(format!(
            "the IR is not that of {} (BLESS=1 rewrites it)",
            golden.display()
        ));
    }
    Ok(())
}

#[test]
fn every_file_lowers_as_it_says() {
    let files = files();
    assert!(files.len() >= 8, "the test files are missing");
    let failures: Vec<String> = files
        .iter()
        .filter_map(|f| check(f).err().map(|e| format!("{}: {e}", f.display())))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
