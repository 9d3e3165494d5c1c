//! Which file a compiler or worker is: part of every cache key, so that an update never meets old results.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Describes a file by its ELF build id where it has one (the same on every node), else by its time of change; always
/// by its size. `None` where it cannot be read.
pub fn of_file(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let tail = match build_id(&mut file) {
        Some(id) => id.iter().map(|b| format!("{b:02x}")).collect(),
        None => format!("{}.{:09}", metadata.mtime(), metadata.mtime_nsec()),
    };
    Some(format!("{}-{tail}", metadata.size()))
}

/// The note of type NT_GNU_BUILD_ID, found through the program headers so that little of a large library is read.
fn build_id(file: &mut File) -> Option<Vec<u8>> {
    const PT_NOTE: u32 = 4;
    const MAX_NOTES: u64 = 1 << 16;
    let u16_at = |b: &[u8], at: usize| Some(u16::from_le_bytes(b.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |b: &[u8], at: usize| Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |b: &[u8], at: usize| Some(u64::from_le_bytes(b.get(at..at + 8)?.try_into().ok()?));
    let mut header = [0u8; 64];
    file.read_exact(&mut header).ok()?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count) = (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?);
    if size != 56 {
        return None;
    }
    let mut segments = vec![0u8; 56 * usize::from(count)];
    file.seek(SeekFrom::Start(table)).ok()?;
    file.read_exact(&mut segments).ok()?;
    for segment in segments.chunks_exact(56) {
        let (offset, length) = (u64_at(segment, 8)?, u64_at(segment, 32)?);
        if u32_at(segment, 0)? != PT_NOTE || length > MAX_NOTES {
            continue;
        }
        let mut notes = vec![0u8; length as usize];
        file.seek(SeekFrom::Start(offset)).ok()?;
        file.read_exact(&mut notes).ok()?;
        let mut at = 0usize;
        while let (Some(name), Some(size), Some(kind)) =
            (u32_at(&notes, at), u32_at(&notes, at + 4), u32_at(&notes, at + 8))
        {
            let text = at + 12;
            let body = text + (name as usize).next_multiple_of(4);
            let end = body + size as usize;
            if kind == 3 && notes.get(text..text + 4) == Some(b"GNU\0") {
                return notes.get(body..end).map(<[u8]>::to_vec);
            }
            at = end.next_multiple_of(4);
        }
    }
    None
}

/// The comgr library that belongs to the ROCm in use: beside the HSA runtime that this process has loaded, else in
/// LD_LIBRARY_PATH, in ROCM_PATH, in /opt/rocm and in the system's folders. Newest soname first.
pub fn find_comgr() -> Option<PathBuf> {
    let mut folders = Vec::new();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines() {
        let Some(at) = line.find('/') else { continue };
        let path = Path::new(&line[at..]);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("libhsa-runtime64.so") || name.starts_with("libamd_comgr.so") {
            let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
            if folders.last() != Some(&folder) {
                folders.push(folder);
            }
        }
    }
    if let Some(list) = std::env::var_os("LD_LIBRARY_PATH") {
        folders.extend(std::env::split_paths(&list).filter(|p| p.is_absolute()));
    }
    let rocm = std::env::var_os("ROCM_PATH")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    folders.extend(
        rocm.into_iter()
            .chain([PathBuf::from("/opt/rocm")])
            .map(|p| p.join("lib")),
    );
    folders.extend(["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib", "/usr/lib"].map(PathBuf::from));
    let names = ["libamd_comgr.so.3", "libamd_comgr.so.2"];
    folders
        .iter()
        .flat_map(|f| names.map(|n| f.join(n)))
        .find(|p| p.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_what_it_is() {
        let me = std::env::current_exe().unwrap();
        let identity = of_file(&me).unwrap();
        assert!(identity.contains('-') && identity == of_file(&me).unwrap());
        assert_eq!(of_file(Path::new("/nonexistent")), None);
    }
}
