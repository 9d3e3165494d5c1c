//! The case file and the records of real CUDA.
//!
//! ```text
//! @case NAME
//! @launch GRID BLOCK OUTWORDS SHARED
//! @in hex u64 ...            4 words a thread
//! @ptx
//! ...                        kernel `t(.param .u64 pin, .param .u64 pout)`
//! @end
//! ```

use std::collections::HashMap;

use serde::Deserialize;

/// A kernel with its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Blocks.
    pub grid: u32,
    /// Threads per block.
    pub block: u32,
    /// 64-bit words of output per thread.
    pub out_words: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Input words.
    pub input: Vec<u64>,
    /// The module.
    pub ptx: String,
}

/// What real CUDA made of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Record {
    /// Name of the CUresult.
    #[serde(default)]
    pub result: String,
    /// Output words.
    #[serde(default)]
    pub out: Vec<String>,
    /// The input buffer afterwards, where it changed.
    #[serde(default)]
    pub mem: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    case: Option<String>,
    #[serde(flatten)]
    record: Record,
}

/// Reads a case file.
///
/// # Errors
/// A sentence naming the line that is not as described above.
pub fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    let mut in_ptx = false;
    for (at, line) in text.lines().enumerate() {
        let bad = |what: &str| format!("line {}: {what}", at + 1);
        if let Some(name) = line.strip_prefix("@case ") {
            cases.push(Case {
                name: name.to_string(),
                ..Case::default()
            });
            in_ptx = false;
            continue;
        }
        let case = cases.last_mut().ok_or_else(|| bad("no @case before"))?;
        if let Some(rest) = line.strip_prefix("@launch ") {
            let numbers: Result<Vec<u32>, _> = rest.split_whitespace().map(str::parse).collect();
            match numbers.as_deref() {
                Ok(&[grid, block, out_words, shared]) => {
                    (case.grid, case.block, case.out_words, case.shared) = (grid, block, out_words, shared);
                }
                _ => return Err(bad("@launch needs four numbers")),
            }
        } else if let Some(rest) = line.strip_prefix("@in ") {
            let words: Result<Vec<u64>, _> = rest.split_whitespace().map(|w| u64::from_str_radix(w, 16)).collect();
            case.input = words.map_err(|e| bad(&e.to_string()))?;
        } else if line == "@ptx" {
            in_ptx = true;
        } else if line == "@end" {
            in_ptx = false;
        } else if in_ptx {
            case.ptx.push_str(line);
            case.ptx.push('\n');
        }
    }
    Ok(cases)
}

/// Reads the records, by case name.
///
/// # Errors
/// A sentence naming the line that is not JSON.
pub fn records(text: &str) -> Result<HashMap<String, Record>, String> {
    let mut all = HashMap::new();
    for (at, line) in text.lines().enumerate() {
        let line: Line = serde_json::from_str(line).map_err(|e| format!("line {}: {e}", at + 1))?;
        if let Some(name) = line.case {
            all.insert(name, line.record);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_file_reads_back() {
        let text = "@case a\n@launch 1 2 3 4\n@in 1 ff\n@ptx\n.version 8.5\n@p bra L;\n@end\n";
        let cases = parse(text).unwrap();
        assert_eq!(cases[0].input, [1, 255]);
        assert_eq!(
            (cases[0].grid, cases[0].block, cases[0].out_words, cases[0].shared),
            (1, 2, 3, 4)
        );
        assert_eq!(cases[0].ptx, ".version 8.5\n@p bra L;\n");
        assert!(parse("@launch 1").is_err());
    }
}
