//! What a kernel is called.
//!
//! A dispatch packet names a kernel by the address of its descriptor. Loaders copy a code object's segments whole, so its
//! ELF header, dynamic section and symbols lie in device memory before the descriptor: the name is read from there. Machine
//! code that was put into memory by hand (ROCr's blit kernels) has none.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use cdna::memory::{Access, GpuMemory as _};

use crate::vm::AddressSpace;

/// Code objects are page-aligned; their header is searched this far below a descriptor.
const PAGE: u64 = 4096;
const FARTHEST: u64 = 256 << 20;
const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";
const EM_AMDGPU: u16 = 224;
const PT_DYNAMIC: u32 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const SYMBOL: u64 = 24;
/// Longest name that is shown.
const LONGEST: usize = 512;

/// The names that were found.
#[derive(Debug, Default)]
pub struct KernelNames {
    found: Mutex<HashMap<u64, Found>>,
}

/// Where a name was found, so that a look suffices to see whether it still holds: memory is reused.
#[derive(Clone, Debug)]
struct Found {
    base: u64,
    /// Address of the symbol.
    symbol: u64,
    /// Address of its name.
    text: u64,
    name: Arc<str>,
}

/// A kernel in a message: its name if it has one, and always its address.
pub struct Kernel {
    /// The name in the code object, without `.kd`.
    pub name: Option<Arc<str>>,
    /// Address of the descriptor.
    pub object: u64,
}

impl Kernel {
    /// The name, or the address in words.
    pub fn label(&self) -> Arc<str> {
        match &self.name {
            Some(name) => name.clone(),
            None => format!("object {:#x}", self.object).into(),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "kernel {name} (object {:#x})", self.object),
            None => write!(f, "kernel object {:#x}", self.object),
        }
    }
}

impl KernelNames {
    /// The kernel whose descriptor is at `object`.
    pub fn kernel(&self, vm: &AddressSpace, object: u64) -> Kernel {
        let mut table = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = table.get(&object)
            && found.holds(vm, object)
        {
            return Kernel {
                name: Some(found.name.clone()),
                object,
            };
        }
        let found = find(vm, object);
        let name = found.as_ref().map(|found| found.name.clone());
        match found {
            Some(found) => table.insert(object, found),
            None => table.remove(&object),
        };
        Kernel { name, object }
    }
}

impl Found {
    fn holds(&self, vm: &AddressSpace, object: u64) -> bool {
        word(vm, self.symbol + 8) == Some(object - self.base) && text(vm, self.text).as_deref() == Some(&*self.name)
    }
}

fn bytes<const N: usize>(vm: &AddressSpace, va: u64) -> Option<[u8; N]> {
    let host = vm.contiguous(va, N as u64, Access::Read).ok()?;
    // SAFETY: mapped for N bytes; any alignment.
    Some(unsafe { host.cast::<[u8; N]>().read_unaligned() })
}

fn word(vm: &AddressSpace, va: u64) -> Option<u64> {
    bytes(vm, va).map(u64::from_le_bytes)
}

/// A kernel descriptor's symbol name without its ending; `None` for other symbols.
fn text(vm: &AddressSpace, va: u64) -> Option<String> {
    let mut name = Vec::new();
    for i in 0..LONGEST as u64 {
        match bytes::<1>(vm, va.checked_add(i)?)? {
            [0] => break,
            [byte] => name.push(byte),
        }
    }
    let name = String::from_utf8(name).ok()?;
    name.strip_suffix(".kd").map(str::to_owned)
}

fn find(vm: &AddressSpace, object: u64) -> Option<Found> {
    let region = vm.region(object)?;
    let lowest = region.start.max(object.saturating_sub(FARTHEST));
    let mut base = object / PAGE * PAGE;
    loop {
        if base < lowest {
            return None;
        }
        if bytes::<7>(vm, base).is_some_and(|start| start == MAGIC)
            && bytes(vm, base + 18).map(u16::from_le_bytes) == Some(EM_AMDGPU)
        {
            return symbol(vm, base, object);
        }
        base = base.checked_sub(PAGE)?;
    }
}

/// The symbol of the code object at `base` that is the descriptor at `object`. What lies there may be anything.
fn symbol(vm: &AddressSpace, base: u64, object: u64) -> Option<Found> {
    const MOST_ENTRIES: u64 = 1 << 10;
    const MOST_SYMBOLS: u64 = 1 << 20;
    let half = |va: u64| bytes(vm, va).map(u16::from_le_bytes).map(u64::from);
    let single = |va: u64| bytes(vm, va).map(u32::from_le_bytes);
    let headers = base.checked_add(word(vm, base + 32)?)?;
    let (size, count) = (half(base + 54)?, half(base + 56)?);
    let dynamic = (0..count)
        .map(|i| headers.wrapping_add(i * size))
        .find(|at| single(*at) == Some(PT_DYNAMIC))?;
    let start = base.checked_add(word(vm, dynamic.checked_add(16)?)?)?;
    let entries = (word(vm, dynamic.checked_add(40)?)? / 16).min(MOST_ENTRIES);
    let entry = |tag: u64| {
        (0..entries)
            .map(|i| start.wrapping_add(i * 16))
            .find(|at| word(vm, *at) == Some(tag))
            .and_then(|at| word(vm, at.checked_add(8)?))
            .and_then(|offset| base.checked_add(offset))
    };
    let (hash, strings, symbols) = (entry(DT_HASH)?, entry(DT_STRTAB)?, entry(DT_SYMTAB)?);
    // The hash table's second word is the number of symbols.
    let count = u64::from(single(hash.checked_add(4)?)?).min(MOST_SYMBOLS);
    for i in 0..count {
        let symbol = symbols.checked_add(i * SYMBOL)?;
        if word(vm, symbol.checked_add(8)?)? != object - base {
            continue;
        }
        let at = strings.checked_add(u64::from(single(symbol)?))?;
        if let Some(name) = text(vm, at) {
            return Some(Found {
                base,
                symbol,
                text: at,
                name: name.into(),
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::Mapping;

    /// A code object with two symbols on one address: `k` and `k.kd`.
    fn image() -> Vec<u8> {
        let mut image = vec![0u8; 0x3000];
        let put = |image: &mut Vec<u8>, at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(&mut image, 0, MAGIC);
        put(&mut image, 18, &EM_AMDGPU.to_le_bytes());
        put(&mut image, 32, &64u64.to_le_bytes());
        put(&mut image, 54, &56u16.to_le_bytes());
        put(&mut image, 56, &1u16.to_le_bytes());
        put(&mut image, 64, &PT_DYNAMIC.to_le_bytes());
        put(&mut image, 64 + 16, &0x200u64.to_le_bytes());
        put(&mut image, 64 + 40, &48u64.to_le_bytes());
        for (i, (tag, value)) in [(DT_HASH, 0x300u64), (DT_STRTAB, 0x400), (DT_SYMTAB, 0x500)]
            .iter()
            .enumerate()
        {
            put(&mut image, 0x200 + 16 * i, &tag.to_le_bytes());
            put(&mut image, 0x208 + 16 * i, &value.to_le_bytes());
        }
        put(&mut image, 0x304, &3u32.to_le_bytes());
        put(&mut image, 0x401, b"k\0k.kd\0");
        for (i, name) in [1u32, 3].iter().enumerate() {
            let at = 0x500 + 24 * (i + 1);
            put(&mut image, at, &name.to_le_bytes());
            put(&mut image, at + 8, &0x2040u64.to_le_bytes());
        }
        image
    }

    #[test]
    fn a_descriptor_is_named_by_its_own_symbol() {
        let vm = AddressSpace::default();
        let mut image = image();
        let mapping = Mapping::of(image.as_mut_ptr() as usize, image.len() as u64);
        vm.insert(0x10_0000, mapping);
        let names = KernelNames::default();
        let kernel = names.kernel(&vm, 0x10_2040);
        assert_eq!(kernel.to_string(), "kernel k (object 0x102040)");
        assert_eq!(names.kernel(&vm, 0x10_2080).name, None);
        // Another code object takes its place.
        image[0x403] = b'z';
        assert_eq!(names.kernel(&vm, 0x10_2040).name.as_deref(), Some("z"));
        image[0] = 0;
        image[0x403] = b'k';
        assert_eq!(names.kernel(&vm, 0x10_2040).name, None);
    }

    #[test]
    fn damaged_headers_name_nothing() {
        let mut seed = 1u64;
        let good = image();
        for _ in 0..5000 {
            let mut image = good.clone();
            for _ in 0..8 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                image[(seed >> 33) as usize % 0x600] = (seed >> 20) as u8;
            }
            let vm = AddressSpace::default();
            vm.insert(0x10_0000, Mapping::of(image.as_mut_ptr() as usize, image.len() as u64));
            let _ = KernelNames::default().kernel(&vm, 0x10_2040);
        }
    }
}
