//! The linker of the driver API (`cuLink*`): several PTX texts become one.
//!
//! Machine code is made per kernel at its first launch, so linking is done on text: declarations of other texts' functions and
//! variables give way to their definitions, and names that are private to a text are told apart. The result looks like a
//! cubin to whoever passes it on, an ELF header of NVIDIA's machine, behind which the text lies:
//!
//! ```text
//! 0  7f 'E' 'L' 'F'  2 1 1 ...   9 mark (7 bytes)   18 machine 190   ...   64 u64 length   72 text, NUL
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use super::jit::Options;
use super::translator::Failure;
use crate::abi::{Error, Result};
use crate::handle::Handles;

static LINKERS: Handles<Linker> = Handles::new(0x65);

/// What tells our images from NVIDIA's: in the padding of the ELF identification.
const MARK: &[u8; 7] = b"regauge";
const ELF_HEADER: usize = 64;
/// `EM_CUDA`.
const MACHINE: u16 = 190;

/// Functions that the device offers: they stay declared only.
const BUILT_IN: [&str; 6] = [
    "vprintf",
    "malloc",
    "free",
    "__assertfail",
    "__assert_fail",
    "cudaGraphSetConditional",
];

/// A linker at work.
pub struct Linker {
    handle: u64,
    state: Mutex<State>,
}

struct State {
    options: Kept,
    inputs: Vec<(String, String)>,
    /// The first input that was refused.
    failed: Option<Error>,
    image: Option<Box<[u8]>>,
}

/// Options whose log buffers belong to the application.
struct Kept(Options);

// SAFETY: the application promises that its buffers stay until the linker is destroyed; only the lock's holder uses them.
unsafe impl Send for Kept {}

/// The linker behind a handle.
///
/// # Errors
/// INVALID_RESOURCE_HANDLE.
pub fn find(handle: u64) -> Result<Arc<Linker>> {
    LINKERS.get(handle).ok_or(Error::INVALID_RESOURCE_HANDLE)
}

impl Linker {
    /// Makes a linker that writes its logs as `options` say, and returns the handle.
    pub fn create(options: Options) -> u64 {
        let handle = LINKERS.reserve();
        let state = State {
            options: Kept(options),
            inputs: Vec::new(),
            failed: None,
            image: None,
        };
        let linker = Self {
            handle,
            state: Mutex::new(state),
        };
        LINKERS.publish(handle, Arc::new(linker));
        handle
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Ends the handle, and the image with it.
    pub fn destroy(&self) {
        LINKERS.remove(self.handle);
    }

    /// Adds the texts of an input, or what it was refused with.
    ///
    /// # Errors
    /// That, and INVALID_VALUE when the linker is complete.
    pub fn add(&self, name: &str, texts: core::result::Result<Vec<Vec<u8>>, Failure>) -> Result<()> {
        let mut state = self.state();
        if state.image.is_some() {
            return Err(Error::INVALID_VALUE);
        }
        match texts {
            Ok(texts) => {
                let texts = texts.iter().map(|text| String::from_utf8_lossy(text).into_owned());
                state.inputs.extend(texts.map(|text| (name.to_owned(), text)));
                Ok(())
            }
            Err(failure) => {
                log::debug!("{name} cannot be linked: {}", failure.log);
                Err(*state.failed.get_or_insert(failure.error))
            }
        }
    }

    /// Links; the image that is returned lives as long as the linker.
    ///
    /// # Errors
    /// That of an input that was refused, INVALID_SOURCE for undefined and twice defined names.
    pub fn complete(&self) -> Result<(*const u8, usize)> {
        let mut state = self.state();
        if let Some(error) = state.failed {
            return Err(error);
        }
        if state.image.is_none() {
            let linked = link(&state.inputs);
            state.options.0.report(linked.as_ref().err(), "");
            state.image = Some(image(&linked?));
        }
        let image = state.image.as_deref().unwrap_or_default();
        Ok((image.as_ptr(), image.len()))
    }
}

fn image(text: &str) -> Box<[u8]> {
    let mut image = vec![0u8; ELF_HEADER];
    image[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    image[9..16].copy_from_slice(MARK);
    // Executable, of that machine, version 1, with a header of 64 bytes.
    image[16..18].copy_from_slice(&2u16.to_le_bytes());
    image[18..20].copy_from_slice(&MACHINE.to_le_bytes());
    image[20..24].copy_from_slice(&1u32.to_le_bytes());
    image[52..54].copy_from_slice(&64u16.to_le_bytes());
    image.extend((text.len() as u64).to_le_bytes());
    image.extend(text.as_bytes());
    image.push(0);
    image.into()
}

/// What an ELF file is to a loader of device code.
#[derive(Debug, PartialEq, Eq)]
pub enum Elf {
    /// An image of [`Linker::complete`], and its text.
    Linked(Vec<u8>),
    /// A cubin: machine code of NVIDIA's.
    MachineCode,
    /// For another machine.
    Foreign,
}

/// Looks what an ELF file is.
///
/// # Safety
/// `elf` is a whole ELF file.
pub unsafe fn text_of(elf: *const u8) -> Elf {
    // SAFETY: every ELF file has its 64 bytes of header.
    let header = unsafe { core::slice::from_raw_parts(elf, ELF_HEADER) };
    if header[18..20] != MACHINE.to_le_bytes() {
        return Elf::Foreign;
    }
    if header[9..16] != *MARK {
        return Elf::MachineCode;
    }
    // SAFETY: the mark says that an image of ours follows: a length and that many bytes.
    unsafe {
        let length = elf.add(ELF_HEADER).cast::<u64>().read_unaligned();
        Elf::Linked(core::slice::from_raw_parts(elf.add(ELF_HEADER + 8), length as usize).to_vec())
    }
}

/// A statement at the level of the module.
#[derive(Debug, PartialEq, Eq)]
struct Item<'t> {
    text: &'t str,
    linkage: Linkage,
    /// What it declares or defines; empty for others.
    name: &'t str,
    is_function: bool,
    /// A function with its body, or a variable that is not external.
    is_definition: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linkage {
    Extern,
    Visible,
    Weak,
    /// Private to its text.
    Private,
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// Replaces comments by blanks, so that places in the text stay.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if from.starts_with("/*") {
            from.find("*/").map_or(from.len(), |end| end + 2)
        } else {
            // A string, or a slash of an expression: kept.
            let end = match from.strip_prefix('"') {
                Some(inside) => inside.find('"').map_or(from.len(), |end| end + 2),
                None => 1,
            };
            out.push_str(&from[..end]);
            rest = &from[end..];
            continue;
        };
        out.extend(from[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &from[end..];
    }
    out.push_str(rest);
    out
}

/// The statements of a text, and its header: version, target.
fn items(text: &str) -> (BTreeMap<&str, &str>, Vec<Item<'_>>) {
    let mut header = BTreeMap::new();
    let mut items = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let word = rest.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
        if matches!(word, ".version" | ".target" | ".address_size" | ".file" | ".loc") {
            let end = rest.find('\n').unwrap_or(rest.len());
            header.entry(word).or_insert(rest[word.len()..end].trim());
            rest = rest[end..].trim_start();
            continue;
        }
        let item = item(rest);
        rest = rest[item.text.len()..].trim_start();
        // Debug sections describe machine code that will never be.
        if word != ".section" {
            items.push(item);
        }
    }
    (header, items)
}

/// The first statement of a text.
fn item(text: &str) -> Item<'_> {
    let head_end = text.find([';', '{', '=']).unwrap_or(text.len());
    let head = &text[..head_end];
    let words = |word: &str| head.split_whitespace().any(|known| known == word);
    let is_function = words(".func") || words(".entry");
    let in_braces = is_function || text.starts_with(".section");
    let mut depth = 0usize;
    let end = text.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && in_braces {
                    return Some(at + 1);
                }
            }
            ';' if depth == 0 => return Some(at + 1),
            _ => {}
        }
        None
    });
    let text = &text[..end.unwrap_or(text.len())];
    let linkage = match () {
        () if words(".extern") => Linkage::Extern,
        () if words(".visible") => Linkage::Visible,
        () if words(".weak") || words(".common") => Linkage::Weak,
        () => Linkage::Private,
    };
    let name = if is_function {
        function_name(head)
    } else if text.starts_with(".section") || text.starts_with(".pragma") || text.starts_with(".alias") {
        ""
    } else {
        // The last word of the declaration, before its dimensions.
        let declarator = head.split('[').next().unwrap_or_default().trim_end();
        declarator.rsplit(|c| !is_name(c)).next().unwrap_or_default()
    };
    Item {
        text,
        linkage,
        name,
        is_function,
        is_definition: if is_function {
            text.ends_with('}')
        } else {
            linkage != Linkage::Extern && !name.is_empty()
        },
    }
}

/// `.func (.param .b32 r) NAME (...)`
fn function_name(head: &str) -> &str {
    let after = [".func", ".entry"]
        .iter()
        .find_map(|word| head.find(word).map(|at| head[at + word.len()..].trim_start()));
    let mut rest = after.unwrap_or_default();
    if rest.starts_with('(') {
        rest = rest.find(')').map_or("", |end| rest[end + 1..].trim_start());
    }
    rest.split(|c| !is_name(c)).next().unwrap_or_default()
}

/// Replaces whole names.
fn renamed(text: &str, names: &BTreeMap<&str, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_name(c)).unwrap_or(from.len());
        out.push_str(before);
        out.push_str(names.get(&from[..end]).map_or(&from[..end], String::as_str));
        rest = &from[end..];
    }
    out.push_str(rest);
    out
}

fn undefined(what: &str) -> Failure {
    Failure::new(Error::INVALID_SOURCE, format!("error   : {what}"))
}

/// A version as a pair, for comparison.
fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.trim().parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// The architecture's number of a `.target`.
fn architecture(text: &str) -> u32 {
    let digits: String = text
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or(0)
}

/// Makes one text of several.
fn link(inputs: &[(String, String)]) -> core::result::Result<String, Failure> {
    let clean: Vec<String> = inputs.iter().map(|(_, text)| without_comments(text)).collect();
    let parsed: Vec<_> = clean.iter().map(|text| items(text)).collect();
    // Who defines what for everybody, and which private names occur more than once.
    let mut defined: BTreeMap<&str, usize> = BTreeMap::new();
    let mut users: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (index, (_, items)) in parsed.iter().enumerate() {
        for item in items.iter().filter(|item| !item.name.is_empty()) {
            users.entry(item.name).or_default().insert(index);
            if !item.is_definition || item.linkage == Linkage::Private {
                continue;
            }
            match defined.get(item.name) {
                Some(&first) if item.linkage == Linkage::Visible && first != index => {
                    let (name, first) = (item.name, &inputs[first].0);
                    return Err(undefined(&format!(
                        "Multiple definition of '{name}' in '{}', first defined in '{first}'",
                        inputs[index].0
                    )));
                }
                Some(_) => {}
                None => {
                    defined.insert(item.name, index);
                }
            }
        }
    }
    let headers = || parsed.iter().map(|(header, _)| header);
    let newest = headers()
        .filter_map(|header| header.get(".version"))
        .max_by_key(|text| version(text));
    let target = headers()
        .filter_map(|header| header.get(".target"))
        .max_by_key(|text| architecture(text));
    let mut out = format!(
        ".version {}\n.target {}\n.address_size 64\n",
        newest.unwrap_or(&"7.0"),
        target.unwrap_or(&"sm_52")
    );
    let (mut variables, mut functions) = (String::new(), String::new());
    let mut declared: BTreeSet<String> = BTreeSet::new();
    for (index, (_, items)) in parsed.iter().enumerate() {
        let own: BTreeMap<&str, String> = items
            .iter()
            .filter(|item| item.linkage == Linkage::Private && !item.name.is_empty())
            .filter(|item| users[item.name].len() > 1)
            .map(|item| (item.name, format!("{}${index}", item.name)))
            .collect();
        for item in items {
            let place = if item.is_function {
                &mut functions
            } else {
                &mut variables
            };
            let mut text = renamed(item.text, &own);
            match item.linkage {
                Linkage::Extern => {
                    let dynamic = item.text.contains(".shared");
                    match defined.get(item.name) {
                        // A declaration before the definition, of the definition's linkage.
                        Some(_) if item.is_function => text = text.replacen(".extern", ".visible", 1),
                        Some(_) => continue,
                        None if dynamic || BUILT_IN.contains(&item.name) => {}
                        None => {
                            let (name, input) = (item.name, &inputs[index].0);
                            return Err(undefined(&format!("Undefined reference to '{name}' in '{input}'")));
                        }
                    }
                    if !declared.insert(item.name.to_owned()) {
                        continue;
                    }
                }
                Linkage::Weak if item.is_definition && defined.get(item.name) != Some(&index) => continue,
                _ => {}
            }
            place.push_str(&text);
            place.push('\n');
        }
    }
    out.push_str(&variables);
    out.push_str(&functions);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 7.8 // newest\n.target sm_70\n.address_size 64\n";

    fn linked(texts: &[&str]) -> core::result::Result<String, String> {
        let inputs: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| (format!("{index}.ptx"), format!("{HEAD}{text}")))
            .collect();
        link(&inputs).map_err(|failure| failure.log)
    }

    #[test]
    fn declarations_give_way_to_definitions() {
        let caller =
            ".extern .func (.param .b32 r) ext(.param .b32 x);\n.extern .global .u32 g;\n.visible .entry k() { ret; }";
        let text = linked(&[
            caller,
            ".visible .func (.param .b32 r) ext(.param .b32 x) { ret; }\n.visible .global .u32 g = 3;",
        ])
        .unwrap();
        assert!(
            text.starts_with(".version 7.8\n.target sm_70\n.address_size 64\n"),
            "{text}"
        );
        assert!(!text.contains(".extern"), "{text}");
        assert_eq!(text.matches(".visible .func (.param .b32 r) ext").count(), 2, "{text}");
        assert!(text.find(".global .u32 g = 3;").unwrap() < text.find(".entry").unwrap());
        assert_eq!(
            linked(&[caller]).unwrap_err(),
            "error   : Undefined reference to 'ext' in '0.ptx'"
        );
    }

    #[test]
    fn private_names_are_told_apart_and_weak_ones_kept_once() {
        let a =
            ".global .b8 s[4] = {1, 2, 3, 4};\n.weak .func w() { ret; }\n.visible .entry a() { mov.u64 %rd1, s; ret; }";
        let b = ".global .b8 s[4] = {5, 6, 7, 8};\n.weak .func w() { ret; }\n.visible .entry b() { mov.u64 %rd1, s; /* s */ ret; }";
        let text = linked(&[a, b]).unwrap();
        for expected in [
            "s$0[4] = {1, 2, 3, 4};",
            "s$1[4] = {5, 6, 7, 8};",
            "%rd1, s$0;",
            "%rd1, s$1;",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert_eq!(text.matches(".weak .func w").count(), 1);
    }

    #[test]
    fn one_name_has_one_definition() {
        let error = linked(&[".visible .func f() { ret; }", ".visible .func f() { ret; }"]).unwrap_err();
        assert_eq!(
            error,
            "error   : Multiple definition of 'f' in '1.ptx', first defined in '0.ptx'"
        );
    }

    #[test]
    fn what_the_device_offers_may_stay_undefined() {
        let text = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.extern .shared .align 16 .b8 dyn[];\n";
        let both = linked(&[text, text]).unwrap();
        assert_eq!(both.matches("vprintf").count(), 1);
        assert_eq!(both.matches("dyn[]").count(), 1);
    }

    #[test]
    fn images_are_recognised() {
        let made = image(".version 7.8\n");
        // SAFETY: a whole image of ours.
        let linked = unsafe { text_of(made.as_ptr()) };
        assert_eq!(linked, Elf::Linked(b".version 7.8\n".to_vec()));
        let mut other = made.to_vec();
        other[9] = 0;
        // SAFETY: 64 bytes of header.
        assert_eq!(unsafe { text_of(other.as_ptr()) }, Elf::MachineCode);
        other[18] = 62;
        // SAFETY: as above.
        assert_eq!(unsafe { text_of(other.as_ptr()) }, Elf::Foreign);
    }
}
