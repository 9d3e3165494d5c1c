//! What must be known of a program before it starts: whether the dynamic loader serves it, and whether NVIDIA's runtime is
//! linked into it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A program's loader (`PT_INTERP`); `None` for scripts, static programs and files that are no x86-64 ELF.
pub fn interpreter(program: &Path) -> Option<PathBuf> {
    const PT_INTERP: u32 = 3;
    let file = File::open(program).ok()?;
    let mut header = [0u8; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let table = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let size = u64::from(u16::from_le_bytes([header[54], header[55]]));
    let count = u64::from(u16::from_le_bytes([header[56], header[57]]));
    for index in 0..count {
        let mut segment = [0u8; 56];
        file.read_exact_at(&mut segment, table.checked_add(index * size)?)
            .ok()?;
        if segment[..4] == PT_INTERP.to_le_bytes() {
            let offset = u64::from_le_bytes(segment[8..16].try_into().ok()?);
            let length = u64::from_le_bytes(segment[32..40].try_into().ok()?).min(4096);
            let mut path = vec![0u8; length as usize];
            file.read_exact_at(&mut path, offset).ok()?;
            path.truncate(path.iter().position(|&byte| byte == 0).unwrap_or(path.len()));
            return String::from_utf8(path).ok().map(PathBuf::from);
        }
    }
    None
}

/// Whether NVIDIA's runtime is linked into the file: it asks the driver by string for `cuGetExportTable`, which no program
/// does for itself, and nothing in the file names the shared library.
pub fn has_static_cudart(file: &Path) -> bool {
    let [asks, shared] = contains(file, [b"cuGetExportTable", b"libcudart.so."]).unwrap_or_default();
    asks && !shared
}

/// Which of the texts occur in the file. Reads it in pieces: a program may be gigabytes long.
fn contains<const N: usize>(path: &Path, texts: [&[u8]; N]) -> std::io::Result<[bool; N]> {
    const PIECE: usize = 1 << 20;
    let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    let mut file = File::open(path)?;
    let mut found = [false; N];
    let mut buffer = Vec::with_capacity(PIECE + longest);
    loop {
        let kept = buffer.len();
        if (&mut file).take(PIECE as u64).read_to_end(&mut buffer)? == 0 {
            return Ok(found);
        }
        for (found, text) in found.iter_mut().zip(texts) {
            *found = *found || buffer.windows(text.len()).any(|window| window == text);
        }
        // A text may lie across two pieces.
        let tail = buffer.len().saturating_sub(longest.max(1) - 1);
        debug_assert!(kept < longest.max(1));
        buffer.drain(..tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_has_a_loader_and_a_script_has_none() {
        let loader = interpreter(&std::env::current_exe().unwrap()).unwrap();
        assert!(loader.exists(), "{loader:?}");
        assert_eq!(interpreter(Path::new("/proc/self/status")), None);
        assert_eq!(interpreter(Path::new("/nonexistent")), None);
    }

    #[test]
    fn texts_are_found_across_pieces() {
        let path = std::env::temp_dir().join(format!("regauge-elf-{}", std::process::id()));
        let mut bytes = vec![b'x'; (1 << 20) - 3];
        bytes.extend_from_slice(b"cuGetExportTable and more");
        std::fs::write(&path, &bytes).unwrap();
        assert!(has_static_cudart(&path));
        bytes.extend_from_slice(b"libcudart.so.12");
        std::fs::write(&path, &bytes).unwrap();
        assert!(!has_static_cudart(&path));
        std::fs::remove_file(&path).unwrap();
    }
}
