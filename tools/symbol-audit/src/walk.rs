//! The files to audit: a file itself, all below a folder, all that a process has mapped.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file to audit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where it is opened.
    pub path: PathBuf,
    /// It was named by the user, who wants to hear about it in any case.
    pub named: bool,
}

/// The files that `argument` stands for: a path, or else the number of a process.
///
/// # Errors
/// When there is no such file, folder or process, or it cannot be read.
pub fn files(argument: &str) -> io::Result<Vec<Found>> {
    let path = Path::new(argument);
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => folder(path),
        Ok(_) => Ok(vec![Found {
            path: path.to_owned(),
            named: true,
        }]),
        Err(error) => match argument.parse::<u32>() {
            Ok(process) => mapped(process),
            Err(_) => Err(error),
        },
    }
}

/// All regular files below a folder, each once, in order of their names. A folder that cannot be read is left out; links are
/// followed to files but not to folders, so that there are no loops.
fn folder(top: &Path) -> io::Result<Vec<Found>> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut folders = vec![top.to_owned()];
    // The folder that the user named must be readable.
    fs::read_dir(top)?;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() || kind.is_symlink() => {
                    // Names for one library are links to each other, mostly: libx.so, libx.so.1.
                    let Ok(data) = fs::metadata(&path) else { continue };
                    if data.is_file()
                        && (kind.is_file() || !is_below(&path, top))
                        && seen.insert((data.dev(), data.ino()))
                    {
                        found.push(Found { path, named: false });
                    }
                }
                _ => {}
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Whether a link leads to a file below `top`, which will be met by its own name.
fn is_below(link: &Path, top: &Path) -> bool {
    match (link.canonicalize(), top.canonicalize()) {
        (Ok(target), Ok(top)) => target.starts_with(top),
        _ => false,
    }
}

/// The files that a process has mapped as code, as it sees them.
fn mapped(process: u32) -> io::Result<Vec<Found>> {
    let text = fs::read(format!("/proc/{process}/maps")).map_err(|error| {
        let text = format!("no such file, and as a process: {error}");
        io::Error::new(error.kind(), text)
    })?;
    let mut found: Vec<Found> = Vec::new();
    for (range, path) in String::from_utf8_lossy(&text).lines().filter_map(mapping) {
        let own = Path::new(path);
        let inside = PathBuf::from(format!("/proc/{process}/root{path}"));
        let same = |a: &Path, b: &Path| match (fs::metadata(a), fs::metadata(b)) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        };
        // In a container the path means something else here; of a replaced or deleted file only the mapping is left.
        let path = if path.ends_with(" (deleted)") || !inside.exists() {
            PathBuf::from(format!("/proc/{process}/map_files/{range}"))
        } else if same(own, &inside) {
            own.to_owned()
        } else {
            inside
        };
        if !found.iter().any(|other| other.path == path) {
            found.push(Found { path, named: false });
        }
    }
    Ok(found)
}

/// Range and path of a line of `maps` that maps a file as code.
fn mapping(line: &str) -> Option<(&str, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (permissions, _) = rest.split_once(' ')?;
    let path = line.find('/').map(|at| &line[at..])?;
    (permissions.contains('x') && !path.starts_with("/dev/")).then_some((range, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_mappings_of_files_count() {
        let line = "7f0-7f1 r-xp 00001000 fe:00 12  /usr/lib/lib c.so";
        assert_eq!(mapping(line), Some(("7f0-7f1", "/usr/lib/lib c.so")));
        assert_eq!(mapping("7f0-7f1 r--p 00000000 fe:00 12  /usr/lib/libc.so"), None);
        assert_eq!(mapping("7f0-7f1 r-xp 00000000 00:00 0  [vdso]"), None);
        assert_eq!(mapping("7f0-7f1 rwxp 00000000 00:05 0  /dev/zero"), None);
        assert_eq!(mapping(""), None);
    }

    #[test]
    fn this_process_has_its_own_program_mapped() {
        let own = std::env::current_exe().unwrap();
        let found = files(&std::process::id().to_string()).unwrap();
        assert!(found.iter().any(|file| file.path == own), "{found:?}");
        assert!(files("4294967295").is_err());
        assert!(files("no such file").is_err());
    }
}
