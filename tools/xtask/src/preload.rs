//! LD_PRELOAD of the libraries into programs that never call CUDA changes nothing: `srun`, `mpirun`, shells, interpreters and
//! compilers of a job all get it when a user exports it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::slurm::Cluster;
use crate::{Result, bench, process, setup};

/// What a process that is up says of itself: threads, descriptors, handlers, environment, limits, and the files it maps.
const INSPECT: &str = r#"
import os, resource
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print("threads", len(os.listdir("/proc/self/task")))
print("descriptors", sorted(os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{n}")
                            and "/proc/" not in os.readlink(f"/proc/self/fd/{n}") and "pipe" not in os.readlink(f"/proc/self/fd/{n}")))
print("signals", [status[key].strip() for key in ("SigBlk", "SigIgn", "SigCgt")])
print("environment", sorted(item for item in os.environ.items() if item[0] not in ("LD_PRELOAD", "_")))
print("limits", [resource.getrlimit(n) for n in range(16)], os.getcwd(), os.umask(0))
print("children", open("/proc/self/task/%d/children" % os.getpid()).read())
# Libraries: the kernel's and the loader's business. Everything else that is mapped is a file somebody opened.
print("files", sorted({line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line and ".so" not in line}))
"#;

/// The value for LD_PRELOAD: all libraries.
pub fn list() -> OsString {
    let release = bench::release();
    let paths = launcher::libraries::PRELOADED.map(|soname| release.join(soname).into_os_string());
    paths.join(std::ffi::OsStr::new(":"))
}

/// Runs the cases, each reported to `case` as name and outcome.
pub fn run(mut case: impl FnMut(String, Result<String>)) -> Result<()> {
    let scratch = bench::Scratch::new("preload")?;
    let source = scratch.path().join("hello.c");
    std::fs::write(
        &source,
        "#ifdef __cplusplus\nextern \"C\"\n#endif\nint puts(const char *);\nint main(void) { return puts(\"hello\") < 0; }\n",
    )?;
    let object = scratch.path().join("hello.o").into_os_string();
    let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
    let mut inspect = words("python3 -c");
    inspect.push(INSPECT.into());
    let mut threads = words("python3 -c");
    threads.push("import subprocess, threading; t = threading.Thread(target=lambda: print(subprocess.run(['echo', 'child'], capture_output=True))); t.start(); t.join()".into());
    let mut shell = words("bash -c");
    shell.push(
        "trap 'echo trapped' USR1; kill -USR1 $$; (exit 3); echo $?; ls /dev/null | cat; ulimit -a; exit 7".into(),
    );
    // Drivers start compilers, assemblers and linkers, all of them with the preload; what they make must be the same too.
    let build = |compiler: &str, options: &str| {
        let mut build = words("bash -c");
        build.push(format!("{compiler} {options} -o \"$0\" \"$1\" && sha256sum < \"$0\"").into());
        build.push(object.clone());
        build.push(source.clone().into());
        build
    };
    let mut mpirun = words("mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2");
    mpirun.extend(words("bash -c"));
    mpirun.push("echo rank; cat /proc/self/comm".into());
    let commands = [
        inspect,
        threads,
        shell,
        build("gcc", "-O2 -c"),
        build("g++", "-O2 -x c++"),
        build("clang-19", "-O2"),
        mpirun,
        words("env -u LD_PRELOAD echo hello"),
        words("timeout 10 false"),
        words("timeout 0.05 sleep 5"),
        words("gcc --version"),
        words("ls -l /dev/null"),
        words("make --version"),
        words("perl -e print(1)"),
        words("/nonexistent"),
    ];
    for command in &commands {
        let name = format!(
            "preloaded into {}: nothing changes",
            command[..command.len().min(3)]
                .join(std::ffi::OsStr::new(" "))
                .to_string_lossy()
                .lines()
                .next()
                .unwrap_or_default()
        );
        case(name, unchanged(|| plain(command)));
    }
    case("preloaded into cat: at most 2 MiB more".into(), memory());
    Ok(())
}

/// `srun` with the preload exported and without: the same output of the tasks, and nothing of its own.
pub fn srun_unchanged(cluster: &Cluster) -> Result<String> {
    unchanged(|| {
        let mut command = Command::new("srun");
        command.args(["-n", "1", "--overcommit", "python3", "-c"]).arg(INSPECT);
        cluster.join(&mut command);
        // Slurm numbers jobs and tells the task; that changes from run to run.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    })
}

fn plain(words: &[OsString]) -> Command {
    // Through sh, so that a program that does not exist has an outcome as well.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\"", "sh"]).args(words);
    command
}

/// The command's outcome without and with the preload must be the same, to the byte.
fn unchanged(command: impl Fn() -> Command) -> Result<String> {
    let run = |preload: bool| {
        let mut command = command();
        command.env_remove("LD_PRELOAD");
        if preload {
            command.env("LD_PRELOAD", list());
        }
        process::run(&mut command, Duration::from_secs(60))
    };
    let (without, with) = (run(false)?, run(true)?);
    let comparable = |text: &str| {
        let changes = ["SLURM_", "SRUN_", "pmix", "PMI"];
        let same = |line: &&str| !(line.starts_with("environment") && changes.iter().any(|word| line.contains(word)));
        let mut lines: Vec<&str> = text.lines().filter(same).collect();
        // Ranks write in any order.
        lines.sort_unstable();
        lines.join("\n")
    };
    if without.ending() != with.ending() || comparable(&without.output) != comparable(&with.output) {
        return Err(format!(
            "without: {}\n{}\nwith: {}\n{}",
            without.ending(),
            without.output,
            with.ending(),
            with.output
        )
        .into());
    }
    Ok(with.ending())
}

/// Resident KiB of `/bin/cat`, waiting, with that preload.
pub fn resident(preload: Option<&Path>) -> Result<i64> {
    let mut command = Command::new("/bin/cat");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .env_remove("LD_PRELOAD");
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preload);
    }
    let mut child = command.spawn()?;
    // It is up once it has come to its first read: asleep in `main`, after all constructors.
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let mut resident = Err("cat does not come to rest".into());
    let mut last = -1;
    while std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let kib = field("VmRSS:").and_then(|text| text.split_whitespace().next()?.parse::<i64>().ok());
        let kib = kib.ok_or("no VmRSS in the process's status")?;
        if field("State:").is_some_and(|state| state.starts_with('S')) && kib == last {
            resident = Ok(kib);
            break;
        }
        last = kib;
    }
    drop(child.stdin.take());
    child.wait()?;
    resident
}

fn memory() -> Result<String> {
    let without = resident(None)?;
    let with = resident(Some(Path::new(&list())))?;
    let nvidia = resident(Some(&setup::nvcc()?.join("lib64/libcudart.so.12")))?;
    let text = format!("{without} KiB without, {with} with all libraries, {nvidia} with NVIDIA's cudart");
    if with - without <= 2048 {
        Ok(text)
    } else {
        Err(text.into())
    }
}
