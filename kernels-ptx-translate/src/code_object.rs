//! The check that every code object passes before it may be loaded, and what the launcher must know of it.
//!
//! comgr 5.2.3 links undefined symbols without a word and dies at load, and whatever the worker returns is made from
//! text of the application: the process that launches kernels therefore looks at the ELF itself.

use goblin::elf::{Elf, dynamic, header, program_header, section_header, sym};

use crate::protocol::{Target, TranslateError};

/// `EI_OSABI` of HSA code objects.
const ELFOSABI_AMDGPU_HSA: u8 = 64;
/// `e_machine`.
const EM_AMDGPU: u16 = 224;
/// Low byte of `e_flags`: the processor.
const EF_AMDGPU_MACH: u32 = 0xff;
/// Type of the metadata note, owner `AMDGPU`.
const NT_AMDGPU_METADATA: u32 = 32;
/// Size of a kernel descriptor.
const DESCRIPTOR: usize = 64;

/// What a code object says of its kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Kernel name, without `.kd`.
    pub symbol: String,
    /// Bytes of kernel arguments.
    pub kernarg_size: u32,
    /// Static LDS bytes.
    pub static_lds: u32,
    /// Scratch bytes per work-item.
    pub private_size: u32,
    /// Vector registers.
    pub vgprs: u32,
    /// Scalar registers.
    pub sgprs: u32,
    /// Vector registers spilled to scratch.
    pub vgpr_spills: u32,
    /// The stack's size is not known at compile time.
    pub dynamic_stack: bool,
}

fn refuse<T>(what: impl Into<String>) -> Result<T, TranslateError> {
    Err(TranslateError::BadCodeObject(what.into()))
}

/// Checks that `bytes` is a loadable code object for `target` with exactly one kernel.
///
/// ```text
/// kernel descriptor (64 bytes, symbol <kernel>.kd)
///  0 u32 group_segment_fixed_size    8 u32 kernarg_size
///  4 u32 private_segment_fixed_size 16 i64 kernel_code_entry_byte_offset (from the descriptor)
/// ```
pub fn check(bytes: &[u8], target: Target) -> Result<Facts, TranslateError> {
    let elf = match Elf::parse(bytes) {
        Ok(elf) => elf,
        Err(error) => return refuse(format!("not an ELF file: {error}")),
    };
    let h = &elf.header;
    if !elf.is_64 || !elf.little_endian || h.e_machine != EM_AMDGPU || h.e_type != header::ET_DYN {
        return refuse(format!(
            "not an AMD GPU shared object (machine {}, type {})",
            h.e_machine, h.e_type
        ));
    }
    if h.e_ident[header::EI_OSABI] != ELFOSABI_AMDGPU_HSA {
        return refuse(format!("OS ABI {} is not HSA", h.e_ident[header::EI_OSABI]));
    }
    let mach = match target {
        Target::Gfx90a => 0x3f,
        Target::Gfx942 => 0x4c,
    };
    if h.e_flags & EF_AMDGPU_MACH != mach {
        return refuse(format!(
            "made for processor {:#x}, not {target:?} ({mach:#x})",
            h.e_flags & EF_AMDGPU_MACH
        ));
    }
    check_segments(&elf, bytes.len() as u64)?;

    let mut kernels = Vec::new();
    let mut used: Vec<usize> = relocations(&elf).map(|r| r.r_sym).collect();
    used.sort_unstable();
    for (index, symbol) in elf.dynsyms.iter().enumerate() {
        let name = elf.dynstrtab.get_at(symbol.st_name).unwrap_or_default();
        let undefined = symbol.st_shndx == section_header::SHN_UNDEF as usize && !name.is_empty();
        // LLVM 15 leaves the name of dynamic shared memory undefined: nothing refers to it, and ROCr's loader skips it.
        if undefined && (symbol.st_type() != sym::STT_NOTYPE || used.binary_search(&index).is_ok()) {
            return refuse(format!("undefined symbol {name}"));
        }
        let is_descriptor = symbol.st_type() == sym::STT_OBJECT && symbol.st_size == DESCRIPTOR as u64;
        if let Some(kernel) = name.strip_suffix(".kd").filter(|_| is_descriptor) {
            kernels.push((kernel, symbol.st_value));
        }
    }
    let [(kernel, address)] = kernels[..] else {
        return refuse(format!("{} kernel descriptors instead of one", kernels.len()));
    };
    let Some(descriptor) = at_address(&elf, bytes, address, DESCRIPTOR) else {
        return refuse("the kernel descriptor lies outside the file");
    };
    let word = |at: usize| {
        u32::from_le_bytes([
            descriptor[at],
            descriptor[at + 1],
            descriptor[at + 2],
            descriptor[at + 3],
        ])
    };
    let entry = u64::from(word(16)) | u64::from(word(20)) << 32;
    if !is_executable(&elf, address.wrapping_add(entry)) {
        return refuse("the kernel's entry point is not in an executable segment");
    }
    let mut facts = Facts {
        symbol: kernel.to_owned(),
        static_lds: word(0),
        private_size: word(4),
        kernarg_size: word(8),
        ..Facts::default()
    };
    metadata(&elf, bytes, &mut facts)?;
    Ok(facts)
}

/// Segments must lie in the file, and none may be both writable and executable.
fn check_segments(elf: &Elf<'_>, length: u64) -> Result<(), TranslateError> {
    for segment in &elf.program_headers {
        if segment.p_type != program_header::PT_LOAD {
            continue;
        }
        if segment
            .p_offset
            .checked_add(segment.p_filesz)
            .is_none_or(|end| end > length)
        {
            return refuse("a segment lies outside the file");
        }
        if segment.p_memsz < segment.p_filesz || segment.p_vaddr.checked_add(segment.p_memsz).is_none() {
            return refuse("a segment's size is impossible");
        }
        if segment.is_write() && segment.is_executable() {
            return refuse("a segment is writable and executable");
        }
    }
    for relocation in relocations(elf) {
        if elf.dynsyms.get(relocation.r_sym).is_none() {
            return refuse("a relocation names no symbol");
        }
    }
    let unwanted = [dynamic::DT_NEEDED, dynamic::DT_TEXTREL];
    let dynamic = elf.dynamic.iter().flat_map(|d| &d.dyns);
    if dynamic.into_iter().any(|d| unwanted.contains(&d.d_tag)) {
        return refuse("it needs another library or relocates its code");
    }
    Ok(())
}

/// Every dynamic relocation.
fn relocations<'e>(elf: &'e Elf<'_>) -> impl Iterator<Item = goblin::elf::Reloc> + 'e {
    elf.dynrelas
        .iter()
        .chain(elf.pltrelocs.iter())
        .chain(elf.dynrels.iter())
}

fn at_address<'b>(elf: &Elf<'_>, bytes: &'b [u8], address: u64, length: usize) -> Option<&'b [u8]> {
    let loads = elf
        .program_headers
        .iter()
        .filter(|p| p.p_type == program_header::PT_LOAD);
    for segment in loads {
        let Some(offset) = address.checked_sub(segment.p_vaddr) else {
            continue;
        };
        if offset
            .checked_add(length as u64)
            .is_some_and(|end| end <= segment.p_filesz)
        {
            let start = usize::try_from(segment.p_offset.checked_add(offset)?).ok()?;
            return bytes.get(start..start.checked_add(length)?);
        }
    }
    None
}

fn is_executable(elf: &Elf<'_>, address: u64) -> bool {
    elf.program_headers.iter().any(|p| {
        p.p_type == program_header::PT_LOAD && p.is_executable() && address.wrapping_sub(p.p_vaddr) < p.p_filesz
    })
}

/// Reads the metadata note: register counts and spills, and whether it agrees with the descriptor.
fn metadata(elf: &Elf<'_>, bytes: &[u8], facts: &mut Facts) -> Result<(), TranslateError> {
    let mut description = None;
    // The iterator repeats its first error for ever.
    for note in elf.iter_note_headers(bytes).into_iter().flatten().map_while(Result::ok) {
        if note.n_type == NT_AMDGPU_METADATA && note.name.trim_end_matches('\0') == "AMDGPU" {
            description = Some(note.desc);
        }
    }
    let Some(description) = description else {
        return refuse("no metadata note");
    };
    let Some(root) = msgpack::Value::read(description) else {
        return refuse("the metadata note does not parse");
    };
    let kernels = root
        .get("amdhsa.kernels")
        .map(msgpack::Value::items)
        .unwrap_or_default();
    let [kernel] = kernels else {
        return refuse("the metadata does not describe exactly one kernel");
    };
    if kernel.get(".symbol").and_then(msgpack::Value::text) != Some(format!("{}.kd", facts.symbol).as_str()) {
        return refuse("the metadata describes another kernel");
    }
    let number = |key: &str| kernel.get(key).and_then(msgpack::Value::number);
    if number(".kernarg_segment_size") != Some(u64::from(facts.kernarg_size)) {
        return refuse("the metadata and the descriptor disagree on the kernel arguments");
    }
    let count = |key: &str| u32::try_from(number(key).unwrap_or(0)).unwrap_or(u32::MAX);
    facts.vgprs = count(".vgpr_count");
    facts.sgprs = count(".sgpr_count");
    facts.vgpr_spills = count(".vgpr_spill_count");
    facts.dynamic_stack = kernel
        .get(".uses_dynamic_stack")
        .is_some_and(|v| *v == msgpack::Value::Bool(true));
    Ok(())
}

/// As much of MessagePack as code object metadata uses.
mod msgpack {
    /// Nesting that metadata never reaches.
    const DEPTH: u32 = 16;

    /// A decoded value.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Value<'b> {
        /// `nil`.
        Nil,
        /// A truth value.
        Bool(bool),
        /// An unsigned or positive integer.
        Number(u64),
        /// A negative integer or a float: metadata has none that matters here.
        Other,
        /// A string.
        Text(&'b str),
        /// An array.
        Array(Vec<Value<'b>>),
        /// A map with string keys.
        Map(Vec<(&'b str, Value<'b>)>),
    }

    impl<'b> Value<'b> {
        /// Decodes one value at the start of `bytes`.
        pub fn read(bytes: &'b [u8]) -> Option<Self> {
            Reader { bytes }.value(0)
        }

        /// The value of a key of a map.
        pub fn get(&self, key: &str) -> Option<&Self> {
            match self {
                Self::Map(entries) => entries.iter().find(|(k, _)| *k == key).map(|(_, v)| v),
                _ => None,
            }
        }

        /// The items of an array.
        pub fn items(&self) -> &[Self] {
            match self {
                Self::Array(items) => items,
                _ => &[],
            }
        }

        /// A string.
        pub fn text(&self) -> Option<&'b str> {
            match self {
                Self::Text(text) => Some(text),
                _ => None,
            }
        }

        /// A non-negative integer.
        pub fn number(&self) -> Option<u64> {
            match self {
                Self::Number(number) => Some(*number),
                _ => None,
            }
        }
    }

    struct Reader<'b> {
        bytes: &'b [u8],
    }

    impl<'b> Reader<'b> {
        fn take(&mut self, length: usize) -> Option<&'b [u8]> {
            let (head, rest) = self.bytes.split_at_checked(length)?;
            self.bytes = rest;
            Some(head)
        }

        /// A big-endian number of `width` bytes.
        fn number(&mut self, width: usize) -> Option<u64> {
            Some(self.take(width)?.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
        }

        fn text(&mut self, length: u64) -> Option<Value<'b>> {
            std::str::from_utf8(self.take(usize::try_from(length).ok()?)?)
                .ok()
                .map(Value::Text)
        }

        fn array(&mut self, length: u64, depth: u32) -> Option<Value<'b>> {
            // Grown as read: a length that lies runs out of bytes first.
            let mut items = Vec::new();
            for _ in 0..length {
                items.push(self.value(depth)?);
            }
            Some(Value::Array(items))
        }

        fn map(&mut self, length: u64, depth: u32) -> Option<Value<'b>> {
            let mut entries = Vec::new();
            for _ in 0..length {
                let key = self.value(depth)?.text()?;
                entries.push((key, self.value(depth)?));
            }
            Some(Value::Map(entries))
        }

        fn value(&mut self, depth: u32) -> Option<Value<'b>> {
            if depth > DEPTH {
                return None;
            }
            let depth = depth + 1;
            let tag = self.take(1)?[0];
            match tag {
                0x00..=0x7f => Some(Value::Number(u64::from(tag))),
                0x80..=0x8f => self.map(u64::from(tag & 0xf), depth),
                0x90..=0x9f => self.array(u64::from(tag & 0xf), depth),
                0xa0..=0xbf => self.text(u64::from(tag & 0x1f)),
                0xc0 => Some(Value::Nil),
                0xc2 | 0xc3 => Some(Value::Bool(tag == 0xc3)),
                0xcc..=0xcf => self.number(1 << (tag - 0xcc)).map(Value::Number),
                0xd0..=0xd3 => {
                    let width = 1usize << (tag - 0xd0);
                    let value = self.number(width)?;
                    let negative = value >> (8 * width - 1) & 1 == 1;
                    Some(if negative { Value::Other } else { Value::Number(value) })
                }
                0xca | 0xcb => self.take(if tag == 0xca { 4 } else { 8 }).map(|_| Value::Other),
                0xe0..=0xff => Some(Value::Other),
                0xd9..=0xdb => {
                    let length = self.number(1 << (tag - 0xd9))?;
                    self.text(length)
                }
                0xdc | 0xdd => {
                    let length = self.number(2 << (tag - 0xdc))?;
                    self.array(length, depth)
                }
                0xde | 0xdf => {
                    let length = self.number(2 << (tag - 0xde))?;
                    self.map(length, depth)
                }
                _ => None,
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::Value;

        #[test]
        fn reads_what_metadata_holds_and_refuses_the_rest() {
            let bytes = b"\x83\xa1a\x93\x01\xcd\x01\x00\xd9\x02hi\xa1b\xc3\xa1c\xd0\xff";
            let value = Value::read(bytes).unwrap();
            assert_eq!(
                value.get("a").unwrap().items(),
                [Value::Number(1), Value::Number(256), Value::Text("hi")]
            );
            assert_eq!(value.get("b"), Some(&Value::Bool(true)));
            assert_eq!(value.get("c"), Some(&Value::Other));
            for length in 0..bytes.len() {
                assert_eq!(Value::read(&bytes[..length]), None, "{length}");
            }
            assert_eq!(Value::read(&[0x91; 100]), None);
            assert_eq!(Value::read(b"\xdf\xff\xff\xff\xff"), None);
            assert_eq!(Value::read(b"\x81\x01\x01"), None);
        }
    }
}
