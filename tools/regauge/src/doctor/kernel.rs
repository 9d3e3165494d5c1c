//! The kernel driver: its device files and who may open them.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Report;

const CHECK: &str = "kernel driver";

/// Whether `/dev/kfd` and a render node can be opened.
pub fn check(report: &mut Report) -> bool {
    let kfd = Path::new("/dev/kfd");
    match open(kfd) {
        Ok(()) => report.ok(CHECK, "/dev/kfd opens"),
        Err(error) => {
            explain(report, kfd, &error);
            return false;
        }
    }
    let nodes: Vec<_> = (128..256)
        .map(|minor| format!("/dev/dri/renderD{minor}"))
        .filter_map(|node| match open(Path::new(&node)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            result => Some((node, result)),
        })
        .collect();
    let open = nodes.iter().filter(|(_, result)| result.is_ok()).count();
    if let Some((node, Err(error))) = nodes.iter().find(|(_, result)| result.is_err()) {
        explain(report, Path::new(node), error);
    } else if nodes.is_empty() {
        report.problem(
            CHECK,
            "there is no /dev/dri/renderD* although there is /dev/kfd",
            "in a container, pass the GPUs: --device=/dev/kfd --device=/dev/dri",
        );
    } else {
        report.ok(CHECK, format!("{open} GPU device files (/dev/dri/renderD*) open"));
    }
    open > 0
}

fn open(path: &Path) -> io::Result<()> {
    OpenOptions::new().read(true).write(true).open(path).map(|_| ())
}

fn explain(report: &mut Report, path: &Path, error: &io::Error) {
    let file = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => report.problem(
            CHECK,
            format!("there is no {file}: the amdgpu kernel driver is not loaded, or this is a container without it"),
            "load amdgpu (modprobe amdgpu; is there an AMD GPU in `lspci`?); in a container, pass --device=/dev/kfd \
             --device=/dev/dri",
        ),
        io::ErrorKind::PermissionDenied => {
            let group = path.metadata().map_or(0, |data| data.gid());
            let name = group_name(group).unwrap_or_else(|| group.to_string());
            report.problem(
                CHECK,
                format!("{file} may not be opened by this user"),
                format!(
                    "it belongs to group {name}: become a member (as root: usermod -aG {name} USER; some systems use render \
                     and video both) and log in again; under a batch system, ask for a GPU"
                ),
            );
        }
        _ => report.problem(
            CHECK,
            format!("{file}: {error}"),
            "see the kernel's log (dmesg | grep -i -e kfd -e amdgpu)",
        ),
    }
}

fn group_name(id: u32) -> Option<String> {
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id.to_string()).then(|| name.to_owned())
    })
}
