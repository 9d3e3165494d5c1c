//! Fat binaries in an ELF file: what the tools list.

use crate::{Error, containers, u16_at, u32_at, u64_at};

/// A section that holds containers.
#[derive(Clone, Copy, Debug)]
pub struct Section<'b> {
    /// `.nv_fatbin` or `__nv_relfatbin`.
    pub name: &'b str,
    /// Its bytes.
    pub bytes: &'b [u8],
}

impl<'b> Section<'b> {
    /// Its containers.
    pub fn containers(&self) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        containers(self.bytes)
    }
}

/// The sections of a 64-bit little-endian ELF file that hold fat binaries. [`Error::Magic`] for another kind of file.
pub fn sections(file: &[u8]) -> Result<Vec<Section<'_>>, Error> {
    if file.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(Error::Magic);
    }
    let table = u64_at(file, 40)
        .and_then(|o| usize::try_from(o).ok())
        .ok_or(Error::Truncated)?;
    let (size, count, names) = match (u16_at(file, 58), u16_at(file, 60), u16_at(file, 62)) {
        (Some(size), Some(count), Some(names)) => (usize::from(size), usize::from(count), usize::from(names)),
        _ => return Err(Error::Truncated),
    };
    if size != 64 {
        return if count == 0 {
            Ok(Vec::new())
        } else {
            Err(Error::Version)
        };
    }
    let header = |index: usize| file.get(table.checked_add(index * size)?..)?.get(..size);
    let bytes = |header: &[u8]| {
        // SHT_NOBITS has no bytes in the file.
        if u32_at(header, 4)? == 8 {
            return None;
        }
        let offset = usize::try_from(u64_at(header, 24)?).ok()?;
        let length = usize::try_from(u64_at(header, 32)?).ok()?;
        file.get(offset..offset.checked_add(length)?)
    };
    let strings = header(names).and_then(bytes).unwrap_or_default();
    let mut found = Vec::new();
    for index in 0..count {
        let header = header(index).ok_or(Error::Truncated)?;
        let name = u32_at(header, 0)
            .and_then(|at| strings.get(at as usize..))
            .unwrap_or_default();
        let name = name
            .split(|&b| b == 0)
            .next()
            .and_then(|n| std::str::from_utf8(n).ok())
            .unwrap_or_default();
        if matches!(name, ".nv_fatbin" | "__nv_relfatbin") {
            found.extend(bytes(header).map(|bytes| Section { name, bytes }));
        }
    }
    Ok(found)
}
