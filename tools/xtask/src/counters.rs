//! The virtual GPU's counters, as its processes write them at exit: one `NAME<tab>VALUE` line each.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;

/// The counters of each process of a run.
#[derive(Debug, Default)]
pub struct Counters {
    processes: Vec<BTreeMap<String, u64>>,
}

impl Counters {
    /// Reads every `PREFIX*.tsv` file.
    pub fn read(prefix: &Path) -> Result<Self> {
        let folder = prefix.parent().ok_or("the counters' prefix has no folder")?;
        let stem = prefix
            .file_name()
            .ok_or("the counters' prefix has no name")?
            .to_string_lossy()
            .into_owned();
        let mut processes = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&stem) && name.ends_with(".tsv") {
                processes.push(parse(&std::fs::read_to_string(entry.path())?)?);
            }
        }
        Ok(Self { processes })
    }

    /// The sum of one counter over all processes.
    pub fn total(&self, name: &str) -> u64 {
        self.processes.iter().filter_map(|process| process.get(name)).sum()
    }

    /// In how many processes the counter is not zero.
    pub fn processes_with(&self, name: &str) -> usize {
        self.processes
            .iter()
            .filter(|process| process.get(name).is_some_and(|value| *value > 0))
            .count()
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, u64>> {
    let mut counters = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line
            .split_once('\t')
            .ok_or_else(|| format!("not a counter line: {line}"))?;
        // Text rows (a program's name) are for people.
        if let Ok(value) = value.trim().parse() {
            counters.insert(name.to_owned(), value);
        }
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_over_processes() {
        let counters = Counters {
            processes: vec![parse("a\t1\nb\t2\n").unwrap(), parse("a\t0\nb\t5\n").unwrap()],
        };
        assert_eq!((counters.total("b"), counters.processes_with("a")), (7, 1));
    }

    #[test]
    fn a_line_without_a_tab_is_refused() {
        assert!(parse("dispatches 3").is_err());
    }
}
