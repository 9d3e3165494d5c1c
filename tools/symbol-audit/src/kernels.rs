//! The fat binaries of a file: which code it carries for GPUs, and whether the translator would take it.
//!
//! Only headers are read: a section may have hundreds of MB, nearly all of it payload.

use std::collections::BTreeMap;

use cuda_fatbin::{CONTAINER_MAGIC, Choice, ENTRY_SIZE, Entry, HEADER_SIZE, Kind, choose_ptx, container_size};
use serde::Serialize;

use crate::elf::{Elf, Error, number};

/// Longest header of an entry that is believed.
const MAX_HEADER: usize = 1 << 20;
/// Most entries of a file that are looked at.
const MAX_ENTRIES: u64 = 1 << 20;
/// Highest major version of PTX that the translator knows.
pub const HIGHEST_PTX_VERSION: u16 = 9;

/// What decides about PTX: the loader's own settings.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The compute capability that devices report, times 10 (`REGAUGE_COMPUTE_CAPABILITY`).
    pub capability: u32,
    /// The highest architecture of PTX that is taken where there is none for that capability (`REGAUGE_HIGHEST_PTX`).
    pub highest: u32,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            capability: 80,
            highest: 99,
        }
    }
}

impl Rule {
    /// The rule that a program would meet in this environment; the loader ignores malformed settings, and so do we.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let default = Self::default();
        let capability = variable("REGAUGE_COMPUTE_CAPABILITY").and_then(|text| {
            let (major, minor) = text.split_once('.')?;
            Some(major.parse::<u32>().ok()?.checked_mul(10)? + minor.parse::<u32>().ok().filter(|&minor| minor < 10)?)
        });
        Self {
            capability: capability.unwrap_or(default.capability),
            highest: variable("REGAUGE_HIGHEST_PTX")
                .and_then(|text| text.parse().ok())
                .unwrap_or(default.highest),
        }
    }
}

/// Equal entries, counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Code {
    /// `ptx`, `machine code`, `lto-ir` or `kind N`.
    pub kind: String,
    /// `sm_80`, `sm_90a`.
    pub architecture: String,
    /// `raw`, `lz4` or `zstd`.
    pub compression: &'static str,
    /// Version of PTX, such as 8.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ptx_version: Option<String>,
}

/// The fat binaries of one section.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Kernels {
    /// `.nv_fatbin` or `__nv_relfatbin`.
    pub section: String,
    /// Containers: one for each source file, mostly.
    pub containers: u32,
    /// Containers whose PTX is taken, and which PTX.
    pub taken: BTreeMap<String, u32>,
    /// Containers without PTX that can be taken, and why.
    pub refused: BTreeMap<String, u32>,
    /// Containers without any code.
    pub empty: u32,
    /// Containers that are damaged, and how.
    pub damaged: BTreeMap<String, u32>,
    /// What the entries are.
    #[serde(serialize_with = "as_list")]
    pub code: BTreeMap<Code, u32>,
}

fn as_list<S: serde::Serializer>(code: &BTreeMap<Code, u32>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counted<'c> {
        #[serde(flatten)]
        code: &'c Code,
        count: u32,
    }
    serializer.collect_seq(code.iter().map(|(code, &count)| Counted { code, count }))
}

/// The fat binaries of a file, by section.
///
/// # Errors
/// When the file cannot be read.
pub fn search(elf: &Elf, rule: Rule) -> Result<Vec<Kernels>, Error> {
    let mut all = Vec::new();
    let mut budget = MAX_ENTRIES;
    let named = |name: &str| matches!(name, ".nv_fatbin" | "__nv_relfatbin");
    for section in elf.sections().iter().filter(|section| named(&section.name)) {
        let mut reader = Reader::new(elf, section.offset, section.size);
        let kernels = search_section(&section.name, &mut reader, rule, &mut budget)?;
        all.extend((kernels.containers > 0 || !kernels.damaged.is_empty()).then_some(kernels));
    }
    // Without section headers the containers are among the constants.
    if elf.sections().is_empty() {
        for segment in elf.segments() {
            let size = segment.size.min(elf.size().saturating_sub(segment.offset));
            let mut reader = Reader::new(elf, segment.offset, size);
            let kernels = search_section("(section headers stripped)", &mut reader, rule, &mut budget)?;
            all.extend((kernels.containers > 0).then_some(kernels));
        }
    }
    Ok(all)
}

fn search_section(name: &str, reader: &mut Reader<'_>, rule: Rule, budget: &mut u64) -> Result<Kernels, Error> {
    let mut kernels = Kernels {
        section: name.to_owned(),
        containers: 0,
        taken: BTreeMap::new(),
        refused: BTreeMap::new(),
        empty: 0,
        damaged: BTreeMap::new(),
        code: BTreeMap::new(),
    };
    let mut at = 0;
    while let Some(found) = reader.next_container(at)? {
        at = found;
        let header: [u8; HEADER_SIZE] = match reader.bytes(at, HEADER_SIZE)?.first_chunk() {
            Some(header) => *header,
            None => break,
        };
        let size = match container_size(&header) {
            Ok(size) if size as u64 <= reader.size - at => size as u64,
            Ok(_) => {
                count(&mut kernels.damaged, cuda_fatbin::Error::Truncated.to_string());
                at += 8;
                continue;
            }
            Err(error) => {
                count(&mut kernels.damaged, error.to_string());
                at += 8;
                continue;
            }
        };
        kernels.containers += 1;
        let (headers, problem) = entry_headers(reader, at, size, budget)?;
        if let Some(problem) = problem {
            count(&mut kernels.damaged, problem);
        }
        judge(&headers, rule, &mut kernels);
        at += size.next_multiple_of(8);
    }
    Ok(kernels)
}

fn count(map: &mut BTreeMap<String, u32>, key: String) {
    *map.entry(key).or_default() += 1;
}

/// The headers of the entries of the container at `at`, and what is wrong with it.
fn entry_headers(
    reader: &mut Reader<'_>,
    at: u64,
    size: u64,
    budget: &mut u64,
) -> Result<(Vec<Vec<u8>>, Option<String>), Error> {
    let mut headers = Vec::new();
    let end = at + size;
    let mut at = at + HEADER_SIZE as u64;
    while at < end {
        let problem = |error: cuda_fatbin::Error| Some(error.to_string());
        let fixed = reader.bytes(at, ENTRY_SIZE)?.to_vec();
        // The end of a container may be padded with zeros.
        if end - at < ENTRY_SIZE as u64 {
            let padding = fixed[..fixed.len().min((end - at) as usize)]
                .iter()
                .all(|&byte| byte == 0);
            return Ok((headers, (!padding).then(|| cuda_fatbin::Error::Truncated.to_string())));
        }
        let Some(left) = budget.checked_sub(1) else {
            return Ok((headers, Some("too many entries to look at them all".into())));
        };
        *budget = left;
        let header_size = number::<4>(&fixed, 4) as usize;
        if header_size > MAX_HEADER {
            return Ok((headers, problem(cuda_fatbin::Error::TooLarge)));
        }
        let header = reader.bytes(at, header_size.max(ENTRY_SIZE))?.to_vec();
        match Entry::header(&header) {
            Ok((_, header_size, payload)) if (header_size + payload) as u64 <= end - at => {
                at += (header_size + payload) as u64;
            }
            Ok(_) => return Ok((headers, problem(cuda_fatbin::Error::Truncated))),
            Err(error) => return Ok((headers, problem(error))),
        }
        headers.push(header);
    }
    Ok((headers, None))
}

/// Counts the entries of one container and says which the loader would take.
fn judge(headers: &[Vec<u8>], rule: Rule, kernels: &mut Kernels) {
    let entries: Vec<Entry<'_>> = headers
        .iter()
        .filter_map(|header| Entry::header(header).ok())
        .map(|(entry, ..)| entry)
        .collect();
    for entry in &entries {
        let code = Code {
            kind: match entry.kind {
                Kind::Ptx => "ptx".into(),
                Kind::Cubin => "machine code".into(),
                Kind::LtoIr => "lto-ir".into(),
                Kind::Group => "group".into(),
                Kind::Other(number) => format!("kind {number}"),
            },
            architecture: entry.architecture(),
            compression: entry.compression(),
            ptx_version: (entry.kind == Kind::Ptx).then(|| ptx_version(entry)),
        };
        *kernels.code.entry(code).or_default() += 1;
    }
    // As shim/core/src/module/image.rs: what is above the limit is left out before the choice.
    let (below, above): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.arch <= rule.highest);
    let reason = match choose_ptx(below, rule.capability) {
        Choice::Ptx(entry) if entry.version.0 > HIGHEST_PTX_VERSION => {
            format!("PTX version {} is newer than the translator knows", ptx_version(&entry))
        }
        Choice::Ptx(entry) => {
            return count(
                &mut kernels.taken,
                format!("PTX for {}, version {}", entry.architecture(), ptx_version(&entry)),
            );
        }
        _ if above.iter().any(|entry| entry.kind == Kind::Ptx) => {
            let mut all: Vec<String> = above
                .iter()
                .filter(|entry| entry.kind == Kind::Ptx)
                .map(Entry::architecture)
                .collect();
            all.sort();
            all.dedup();
            format!(
                "PTX only for {}, above the limit of sm_{}",
                all.join(", "),
                rule.highest
            )
        }
        Choice::SpecificOnly(all) => format!("PTX only for the hardware of {}", all.join(", ")),
        Choice::MachineCodeOnly(_) => "machine code only".into(),
        Choice::Empty if above.is_empty() => {
            kernels.empty += 1;
            return;
        }
        Choice::Empty => "machine code only".into(),
    };
    count(&mut kernels.refused, reason);
}

fn ptx_version(entry: &Entry<'_>) -> String {
    format!("{}.{}", entry.version.0, entry.version.1)
}

/// Reads a part of a file a few KiB at a time.
struct Reader<'e> {
    elf: &'e Elf,
    offset: u64,
    size: u64,
    start: u64,
    buffer: Vec<u8>,
}

impl<'e> Reader<'e> {
    fn new(elf: &'e Elf, offset: u64, size: u64) -> Self {
        Self {
            elf,
            offset,
            size,
            start: 0,
            buffer: Vec::new(),
        }
    }

    /// Where the next container begins, from `at` on. Between them is padding, of any length.
    fn next_container(&mut self, mut at: u64) -> Result<Option<u64>, Error> {
        const AHEAD: usize = 1 << 16;
        while at + HEADER_SIZE as u64 <= self.size {
            // What has been read ahead is looked through first: containers stand close together, mostly.
            let known = (self.start + self.buffer.len() as u64).saturating_sub(at);
            let count = if at >= self.start && known >= 8 {
                known as usize
            } else {
                AHEAD
            };
            let bytes = self.bytes(at, count)?;
            let mut words = bytes.chunks_exact(8);
            if let Some(word) = words.position(|word| word[..4] == CONTAINER_MAGIC.to_le_bytes()) {
                let found = at + word as u64 * 8;
                return Ok((found + HEADER_SIZE as u64 <= self.size).then_some(found));
            }
            match bytes.len() / 8 {
                0 => break,
                words => at += words as u64 * 8,
            }
        }
        Ok(None)
    }

    /// `count` bytes at `at`; fewer at the end of the part.
    fn bytes(&mut self, at: u64, count: usize) -> Result<&[u8], Error> {
        let rest = self.size.saturating_sub(at);
        let count = rest.min(count as u64) as usize;
        let from = match at.checked_sub(self.start) {
            Some(from) if from + count as u64 <= self.buffer.len() as u64 => from as usize,
            _ => {
                // Headers are small and close together, so read ahead.
                self.buffer.resize(rest.min((1 << 14).max(count as u64)) as usize, 0);
                self.start = at;
                if let Err(error) = self.elf.read(self.offset.saturating_add(at), &mut self.buffer) {
                    self.buffer.clear();
                    return Err(error);
                }
                0
            }
        };
        Ok(&self.buffer[from..from + count])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_fatbin::write::{Compression, Image, container};

    fn judged(container: &[u8]) -> Kernels {
        let mut kernels = Kernels {
            section: String::new(),
            containers: 1,
            taken: BTreeMap::new(),
            refused: BTreeMap::new(),
            empty: 0,
            damaged: BTreeMap::new(),
            code: BTreeMap::new(),
        };
        let mut headers = Vec::new();
        let mut rest = &container[HEADER_SIZE..];
        while !rest.is_empty() {
            let (_, header, payload) = Entry::header(rest).unwrap();
            headers.push(rest[..header].to_vec());
            rest = &rest[header + payload..];
        }
        judge(&headers, Rule::default(), &mut kernels);
        kernels
    }

    #[test]
    fn the_rule_is_the_loaders() {
        let config = include_str!("../../../shim/core/src/config.rs");
        assert!(config.contains("\"REGAUGE_COMPUTE_CAPABILITY\", \"8.0\""));
        assert!(config.contains("\"REGAUGE_HIGHEST_PTX\", \"99\""));
        let limits = include_str!("../../../kernels-ptx-translate/src/ptx/limits.rs");
        assert!(limits.contains(&format!("VERSION_MAJOR: u32 = {HIGHEST_PTX_VERSION};")));
        let set = |name: &str| match name {
            "REGAUGE_COMPUTE_CAPABILITY" => Some("9.0".to_owned()),
            _ => Some("12x".to_owned()),
        };
        let rule = Rule::from_environment(set);
        assert_eq!((rule.capability, rule.highest), (90, 99));
    }

    #[test]
    fn the_ptx_that_would_be_taken_is_named() {
        let text = b".version 8.5\0";
        let two = container(&[
            Image::ptx(75, text).compressed(Compression::Zstd),
            Image::ptx(120, text).compressed(Compression::Lz4),
        ]);
        let kernels = judged(&two);
        assert_eq!(kernels.taken.keys().collect::<Vec<_>>(), ["PTX for sm_75, version 8.5"]);
        assert_eq!(kernels.code.len(), 2);
        let above = judged(&container(&[Image::ptx(120, text)]));
        assert!(
            above
                .refused
                .keys()
                .next()
                .unwrap()
                .contains("above the limit of sm_99")
        );
        let cubin = Image {
            kind: 2,
            ..Image::ptx(90, b"\x7fELF")
        };
        assert!(judged(&container(&[cubin])).refused.contains_key("machine code only"));
        let newer = Image {
            version: (10, 0),
            ..Image::ptx(80, text)
        };
        assert!(
            judged(&container(&[newer]))
                .refused
                .keys()
                .next()
                .unwrap()
                .contains("newer")
        );
        assert_eq!(judged(&container(&[])).empty, 1);
    }
}
