//! Rules about the tree itself, checked over every tracked text file.

use std::process::Command;

use crate::{Result, bench};

/// Longest Rust file, in lines: past that a file holds more than one concept.
const LONGEST: usize = 1500;

/// Checks the tree; the error lists everything that is wrong.
pub fn check() -> Result<String> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(bench::root())
        .output()?;
    if !output.status.success() {
        return Err("git ls-files failed: the tree's rules are checked in a git checkout".into());
    }
    let listing = String::from_utf8(output.stdout)?;
    let mut faults = Vec::new();
    let mut files = 0;
    for name in listing.split('\0').filter(|name| !name.is_empty()) {
        // A file that is not text (or was just deleted) has no rules.
        let Ok(text) = std::fs::read_to_string(bench::root().join(name)) else {
            continue;
        };
        files += 1;
        faults.extend(faults_in(name, &text));
    }
    if faults.is_empty() {
        Ok(format!("{files} files"))
    } else {
        Err(faults.join("\n").into())
    }
}

fn faults_in(name: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let rust = name.ends_with(".rs");
    if rust && !text.starts_with("//!") {
        faults.push(format!("{name}: does not begin with a //! line that says what it is"));
    }
    if rust && text.lines().count() > LONGEST {
        faults.push(format!("{name}: longer than {LONGEST} lines"));
    }
    // Spelt apart, so that this file keeps its own rule.
    let home_folders = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    for (number, line) in text.lines().enumerate() {
        if home_folders.iter().any(|folder| line.contains(folder)) {
            faults.push(format!("{name}:{}: names a path of one machine", number + 1));
        }
        if rust && line.trim_end() != line {
            faults.push(format!("{name}:{}: trailing white space", number + 1));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_file_without_a_header_and_a_machine_path_are_faults() {
        let path = concat!("/ho", "me/someone");
        assert_eq!(faults_in("a.rs", &format!("fn main() {{}}\n// {path}\n")).len(), 2);
        assert!(faults_in("a.rs", "//! What it is.\n").is_empty());
    }
}
