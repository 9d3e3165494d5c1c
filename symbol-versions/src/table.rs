//! The tables and their format.

use std::fmt;
use std::sync::OnceLock;

/// A library that has a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    /// `libcuda.so.1`, the driver API.
    Cuda,
    /// `libcudart.so.12`, the runtime API.
    Cudart,
    /// `libnvidia-ml.so.1`, NVML.
    Nvml,
    /// `libcudart.so.11.0`, the runtime API of CUDA 11.
    Cudart11,
    /// `libcudart.so.13`, the runtime API of CUDA 13.
    Cudart13,
}

impl Library {
    /// All libraries.
    pub const ALL: [Self; 5] = [Self::Cuda, Self::Cudart, Self::Nvml, Self::Cudart11, Self::Cudart13];

    /// The libraries that are jumps through a private table in `libcuda.so.1`.
    pub const FORWARDING: [Self; 4] = [Self::Cudart, Self::Nvml, Self::Cudart11, Self::Cudart13];

    /// The library's SONAME.
    pub const fn soname(self) -> &'static str {
        match self {
            Self::Cuda => "libcuda.so.1",
            Self::Cudart => "libcudart.so.12",
            Self::Nvml => "libnvidia-ml.so.1",
            Self::Cudart11 => "libcudart.so.11.0",
            Self::Cudart13 => "libcudart.so.13",
        }
    }

    /// The table's file name in `tables/`.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Cuda => "cuda.tsv",
            Self::Cudart => "cudart.tsv",
            Self::Nvml => "nvml.tsv",
            Self::Cudart11 => "cudart11.tsv",
            Self::Cudart13 => "cudart13.tsv",
        }
    }

    /// The Rust module that holds the library's own functions.
    pub const fn module(self) -> &'static str {
        match self {
            Self::Cuda => "regauge::api::driver",
            Self::Cudart => "regauge::api::runtime",
            Self::Nvml => "regauge::api::nvml",
            Self::Cudart11 => "regauge::api::runtime11",
            Self::Cudart13 => "regauge::api::runtime13",
        }
    }

    /// The library whose functions also answer for this one's symbols, where arguments and structures are the same.
    pub const fn shares_with(self) -> Self {
        match self {
            Self::Cudart11 | Self::Cudart13 => Self::Cudart,
            other => other,
        }
    }

    /// The prefix of the functions in `regauge::api::stub` that answer for the library's missing calls.
    pub const fn stub_prefix(self) -> &'static str {
        match self {
            Self::Cuda => "driver",
            Self::Cudart => "runtime",
            Self::Nvml => "nvml",
            Self::Cudart11 => "runtime11",
            Self::Cudart13 => "runtime13",
        }
    }

    /// The table, parsed once per process.
    pub fn table(self) -> &'static Table {
        static TABLES: [OnceLock<Table>; Library::ALL.len()] = [const { OnceLock::new() }; Library::ALL.len()];
        let text = match self {
            Self::Cuda => include_str!("../tables/cuda.tsv"),
            Self::Cudart => include_str!("../tables/cudart.tsv"),
            Self::Nvml => include_str!("../tables/nvml.tsv"),
            Self::Cudart11 => include_str!("../tables/cudart11.tsv"),
            Self::Cudart13 => include_str!("../tables/cudart13.tsv"),
        };
        TABLES[self as usize].get_or_init(|| match Table::parse(text) {
            Ok(table) => table,
            // The text is part of this program, and a unit test parses it.
            Err(error) => panic!("{}: {error}", self.file()),
        })
    }
}

/// What a library does when the symbol is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// A function of `regauge::api` answers.
    Impl,
    /// Not there yet: "not supported", and one log line.
    Stub,
    /// Will not be there (graphics interoperability): "not supported", and one log line.
    Refuse,
}

impl Status {
    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Impl => "impl",
            Self::Stub => "stub",
            Self::Refuse => "refuse",
        }
    }
}

/// What a function returns, as far as a stub must know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// An error code (`int`).
    Err,
    /// A pointer; a stub returns NULL.
    Ptr,
    /// Nothing.
    Void,
    /// A `char`; a stub returns 0.
    Char,
    /// A structure through a hidden pointer: a stub would leave it unwritten, so the function must exist.
    Struct,
}

impl Class {
    /// The word in the table, also the suffix of the stub function.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Err => "err",
            Self::Ptr => "ptr",
            Self::Void => "void",
            Self::Char => "char",
            Self::Struct => "struct",
        }
    }
}

/// Which function answers for a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The function of the symbol's name, of the library that this one [shares with](Library::shares_with): itself, mostly.
    Same,
    /// Only a function of the library's own: another version's has other arguments or structures.
    Own,
    /// The function by which the library that it shares with calls the same thing.
    As(&'static str),
}

/// One exported symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// The symbol's name.
    pub name: &'static str,
    /// The version node it is defined in; `None`: unversioned.
    pub node: Option<&'static str>,
    /// The CUDA version (major × 1000 + minor × 10) that introduced it, when known.
    pub since: Option<u32>,
    /// What happens on a call.
    pub status: Status,
    /// What a call returns.
    pub class: Class,
    /// The function that is called.
    pub answer: Answer,
}

impl Symbol {
    /// The library and the name of the function that answers for this symbol of `library`, once it is there.
    pub fn function(&self, library: Library) -> (Library, &'static str) {
        match self.answer {
            Answer::Same => (library.shares_with(), self.name),
            Answer::Own => (library, self.name),
            Answer::As(name) => (library.shares_with(), name),
        }
    }
}

/// A library's symbols, sorted by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    symbols: Vec<Symbol>,
}

/// What is wrong with a table, and where.
#[derive(PartialEq, Eq, Debug)]
pub struct ParseError {
    line: usize,
    reason: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl Table {
    /// Parses a table: tab-separated columns, `#` begins a comment line.
    pub fn parse(text: &'static str) -> Result<Self, ParseError> {
        let mut symbols: Vec<Symbol> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let symbol = parse_line(line).map_err(|reason| ParseError {
                line: index + 1,
                reason,
            })?;
            if symbols.last().is_some_and(|last| last.name >= symbol.name) {
                let reason = format!("{} is out of order or there twice", symbol.name);
                return Err(ParseError {
                    line: index + 1,
                    reason,
                });
            }
            symbols.push(symbol);
        }
        Ok(Self { symbols })
    }

    /// All symbols, sorted by name. A symbol's position is its number in private tables and stubs.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The symbol of that name.
    pub fn get(&self, name: &str) -> Option<&Symbol> {
        self.index(name).map(|index| &self.symbols[index])
    }

    /// The position of the symbol of that name.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.symbols.binary_search_by(|symbol| symbol.name.cmp(name)).ok()
    }

    /// A hash of the names in order (FNV-1a): two libraries that agree on it agree on the layout of a private table.
    pub fn hash(&self) -> u64 {
        let bytes = self
            .symbols
            .iter()
            .flat_map(|symbol| symbol.name.bytes().chain([b'\n']));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }
}

/// Parses one line that is not a comment.
fn parse_line(line: &'static str) -> Result<Symbol, String> {
    let columns: Vec<&'static str> = line.split('\t').collect();
    let &[name, node, since, status, class, ref answer @ ..] = columns.as_slice() else {
        return Err(format!("{} columns where 5 belong", columns.len()));
    };
    let answer = match *answer {
        [] => Answer::Same,
        ["own"] => Answer::Own,
        [other] => match other.strip_prefix('=') {
            Some(name) => Answer::As(name),
            None => return Err(format!("answer {other:?} is neither own nor =NAME")),
        },
        _ => return Err(format!("{} columns where 6 are the most", columns.len())),
    };
    let since = match since {
        "-" => None,
        digits => Some(digits.parse().map_err(|_| format!("since: {digits:?} is no version"))?),
    };
    let status = match status {
        "impl" => Status::Impl,
        "stub" => Status::Stub,
        "refuse" => Status::Refuse,
        other => return Err(format!("status {other:?} is none of impl, stub, refuse")),
    };
    let class = match class {
        "err" => Class::Err,
        "ptr" => Class::Ptr,
        "void" => Class::Void,
        "char" => Class::Char,
        "struct" => Class::Struct,
        other => {
            return Err(format!(
                "return class {other:?} is none of err, ptr, void, char, struct"
            ));
        }
    };
    if class == Class::Struct && status != Status::Impl {
        return Err(format!(
            "{name} returns a structure by hidden pointer: it cannot be a stub"
        ));
    }
    Ok(Symbol {
        name,
        node: (node != "-").then_some(node),
        since,
        status,
        class,
        answer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_parses() {
        for library in Library::ALL {
            assert!(!library.table().symbols().is_empty(), "{library:?}");
        }
    }

    #[test]
    fn the_runtime_has_435_names_at_one_node() {
        let symbols = Library::Cudart.table().symbols();
        assert_eq!(symbols.len(), 435);
        assert!(symbols.iter().all(|symbol| symbol.node == Some("libcudart.so.12")));
    }

    #[test]
    fn other_versions_of_the_runtime_have_their_names_at_their_node() {
        for (library, count) in [(Library::Cudart11, 395), (Library::Cudart13, 422)] {
            let symbols = library.table().symbols();
            assert_eq!(symbols.len(), count);
            assert!(symbols.iter().all(|symbol| symbol.node == Some(library.soname())));
            for symbol in symbols {
                let shared = library.shares_with().table();
                match symbol.answer {
                    Answer::Same => assert!(shared.get(symbol.name).is_some(), "{}", symbol.name),
                    Answer::As(name) => assert!(shared.get(name).is_some(), "{}: {name}", symbol.name),
                    Answer::Own => {}
                }
            }
        }
    }

    #[test]
    fn bad_lines_are_named() {
        for (line, reason) in [
            ("cuA\t-\t-\tstub", "line 1: 4 columns where 5 belong"),
            ("cuA\t-\tx\tstub\terr", "line 1: since: \"x\" is no version"),
            (
                "cuA\t-\t-\tmaybe\terr",
                "line 1: status \"maybe\" is none of impl, stub, refuse",
            ),
            (
                "cuA\t-\t-\tstub\tint",
                "line 1: return class \"int\" is none of err, ptr, void, char, struct",
            ),
            (
                "cuA\t-\t-\tstub\terr\tcuB",
                "line 1: answer \"cuB\" is neither own nor =NAME",
            ),
            (
                "cuB\t-\t-\tstub\terr\ncuA\t-\t-\tstub\terr",
                "line 2: cuA is out of order or there twice",
            ),
            (
                "cuA\t-\t-\tstub\tstruct",
                "line 1: cuA returns a structure by hidden pointer: it cannot be a stub",
            ),
        ] {
            assert_eq!(Table::parse(line).unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn the_hash_depends_on_names_only() {
        let hash = |text| Table::parse(text).unwrap().hash();
        assert_eq!(hash("cuA\t-\t-\tstub\terr"), hash("cuA\tn\t1\timpl\tptr"));
        assert_ne!(
            hash("cuA\t-\t-\tstub\terr\ncuB\t-\t-\tstub\terr"),
            hash("cuAB\t-\t-\tstub\terr")
        );
    }
}
