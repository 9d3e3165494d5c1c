//! Audits of small libraries that are built here with the machine's C compiler, and of damaged ones.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use cuda_fatbin::write::{Compression, Image, container};
use symbol_audit::audit::{How, Report, Role, audit};
use symbol_audit::elf::Elf;
use symbol_audit::kernels::Rule;
use symbol_audit::names::CUDART_INTERFACE;
use symbol_audit::provider::{OtherLibrary, Provider, Verdict};

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("symbol-audit-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Compiles C text into a shared library.
    fn library(&self, name: &str, source: &str, options: &[&str]) -> PathBuf {
        let file = self.write(&format!("{name}.c"), source);
        let library = self.0.join(name);
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-o"])
            .arg(&library)
            .arg(file)
            .arg(format!("-Wl,-soname,{name}"))
            .args(options)
            .status()
            .unwrap();
        assert!(status.success(), "{name}");
        library
    }

    /// A library that has these functions at the version node `node`.
    fn runtime(&self, soname: &str, node: Option<&str>, functions: &[&str]) -> PathBuf {
        let source: String = functions
            .iter()
            .map(|name| format!("void {name}(void) {{}}\n"))
            .collect();
        let Some(node) = node else {
            return self.library(soname, &source, &[]);
        };
        let script = self.write(&format!("{soname}.map"), format!("{node} {{ global: *; }};"));
        let option = format!("-Wl,--version-script={}", script.display());
        self.library(soname, &source, &[&option])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn regauge(path: &Path) -> Report {
    audit(path, &Provider::Regauge, Rule::default()).unwrap()
}

fn verdict(report: &Report, name: &str, how: How) -> Verdict {
    let symbol = report
        .symbols
        .iter()
        .find(|symbol| symbol.name == name && symbol.how == how);
    symbol.unwrap_or_else(|| panic!("{name} is not in {report:?}")).verdict
}

const CALLS: &str = "void cudaMalloc(void), cudaFree(void), cuInit(void), *dlsym(void *, const char *), *h;\n\
    void client(void) { cudaMalloc(); cudaFree(); cuInit(); dlsym(h, \"cuMemFree_v2\"); dlsym(h, \"cuNoSuchCall\"); }\n";

#[test]
fn imports_have_their_version_nodes_and_names_are_found() {
    let folder = Folder::new("imports");
    let runtime = folder.runtime("libcudart.so.12", Some("libcudart.so.12"), &["cudaMalloc", "cudaFree"]);
    let client = folder.library("client.so", CALLS, &[runtime.to_str().unwrap()]);
    let report = regauge(&client);
    assert_eq!(report.role, Role::Client);
    assert_eq!(report.needed, ["libcudart.so.12"]);
    let malloc = report
        .symbols
        .iter()
        .find(|symbol| symbol.name == "cudaMalloc")
        .unwrap();
    assert_eq!(malloc.node.as_deref(), Some("libcudart.so.12"));
    assert_eq!(malloc.file.as_deref(), Some("libcudart.so.12"));
    assert!(!malloc.verdict.fails());
    let init = report.symbols.iter().find(|symbol| symbol.name == "cuInit").unwrap();
    assert_eq!((init.node.as_deref(), init.library.as_str()), (None, "libcuda.so.1"));
    assert!(!verdict(&report, "cuMemFree_v2", How::Name).fails());
    assert_eq!(report.unknown_names, ["cuNoSuchCall"]);
    assert!(!report.fails(false), "{report:?}");
    // The stand-in is a runtime that is not ours only when it registers kernels.
    assert_eq!(regauge(&runtime).role, Role::None);
}

#[test]
fn another_major_version_is_explained() {
    let folder = Folder::new("versions");
    for soname in ["libcudart.so.1", "libcudart.so.10.2"] {
        let runtime = folder.runtime(soname, Some(soname), &["cudaMalloc", "cudaFree"]);
        let client = folder.library("old.so", CALLS, &[runtime.to_str().unwrap()]);
        let report = regauge(&client);
        assert!(report.fails(false));
        assert_eq!(verdict(&report, "cudaMalloc", How::Link), Verdict::Missing);
        let problem = &report.problems[0];
        assert!(problem.fails && problem.what.contains(soname) && problem.what.contains("libcudart.so.12"));
    }
}

#[test]
fn another_library_can_be_asked() {
    let folder = Folder::new("against");
    let full = folder.runtime("libcudart.so.12", Some("libcudart.so.12"), &["cudaMalloc", "cudaFree"]);
    let client = folder.library("client.so", CALLS, &[full.to_str().unwrap()]);
    let ask = |library: &Path| {
        let provider = Provider::Others(vec![OtherLibrary::open(library).unwrap()]);
        audit(&client, &provider, Rule::default()).unwrap()
    };
    let report = ask(&full);
    assert_eq!(verdict(&report, "cudaMalloc", How::Link), Verdict::Provided);
    assert!(!report.fails(false));

    let other = Folder::new("against-part");
    let report = ask(&other.runtime("libcudart.so.12", Some("libcudart.so.12"), &["cudaMalloc"]));
    assert_eq!(verdict(&report, "cudaFree", How::Link), Verdict::Missing);
    let report = ask(&other.runtime("libcudart.so.12", None, &["cudaMalloc", "cudaFree"]));
    assert_eq!(verdict(&report, "cudaFree", How::Link), Verdict::Provided);
    assert!(report.problems[0].what.contains("no version information available") && !report.fails(false));
    let report = ask(&other.runtime("libcudart.so.13", Some("libcudart.so.13"), &["cudaMalloc", "cudaFree"]));
    assert!(report.fails(false) && report.problems[0].what.contains("`libcudart.so.12' not found"));
}

/// A library with these bytes in `.nv_fatbin`, and the UUID that a static cudart asks for if wanted.
fn with_kernels(folder: &Folder, name: &str, fatbin: &[u8], uuid: bool) -> PathBuf {
    folder.write("kernels.fatbin", fatbin);
    let mut assembly = format!(
        ".section .note.GNU-stack, \"\"\n.section .nv_fatbin, \"a\"\n.p2align 3\n.incbin \"{}\"\n",
        folder.0.join("kernels.fatbin").display()
    );
    if uuid {
        let bytes: Vec<String> = CUDART_INTERFACE.iter().map(ToString::to_string).collect();
        assembly += &format!(".section .rodata\n.byte {}\n", bytes.join(","));
    }
    let file = folder.write("kernels.s", assembly);
    folder.library(name, CALLS, &[file.to_str().unwrap()])
}

fn kernels() -> Vec<u8> {
    let text = b".version 8.5\n.target sm_80\n.address_size 64\n\0";
    let cubin = Image {
        kind: 2,
        ..Image::ptx(90, b"\x7fELF machine code")
    };
    let both = container(&[Image::ptx(75, text).compressed(Compression::Zstd), cubin.clone()]);
    let mut bytes = both;
    bytes.resize(bytes.len().next_multiple_of(8) + 16, 0);
    bytes.extend(container(&[cubin]));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(container(&[Image::ptx(120, text).compressed(Compression::Lz4)]));
    bytes
}

#[test]
fn kernels_and_a_static_runtime_are_recognised() {
    let folder = Folder::new("kernels");
    let report = regauge(&with_kernels(&folder, "shared.so", &kernels(), false));
    assert_eq!(report.role, Role::Client);
    let found = &report.kernels[0];
    assert_eq!((found.section.as_str(), found.containers), (".nv_fatbin", 3));
    assert_eq!(found.taken.keys().collect::<Vec<_>>(), ["PTX for sm_75, version 8.5"]);
    assert!(found.refused.contains_key("machine code only"), "{found:?}");
    assert!(report.fails(false));
    let compressions: Vec<&str> = found.code.keys().map(|code| code.compression).collect();
    assert_eq!(compressions, ["raw", "lz4", "zstd"]);

    let report = regauge(&with_kernels(&folder, "static.so", &kernels(), true));
    assert_eq!(report.role, Role::StaticCudart);
    assert!(
        report
            .problems
            .iter()
            .any(|problem| problem.cure.contains("-cudart shared"))
    );
}

#[test]
fn the_command_has_its_exit_statuses_and_json() {
    let folder = Folder::new("command");
    let runtime = folder.runtime("libcudart.so.12", Some("libcudart.so.12"), &["cudaMalloc", "cudaFree"]);
    folder.library("client.so", CALLS, &[runtime.to_str().unwrap()]);
    folder.write("text", "no ELF");
    std::os::unix::fs::symlink(&folder.0, folder.0.join("loop")).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_symbol-audit"))
            .args(arguments)
            .env_remove("REGAUGE_HIGHEST_PTX")
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = run(&[folder.0.to_str().unwrap()]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 files that use CUDA, 0 would fail"), "{text}");
    let (code, text) = run(&["--json", "--strict", folder.0.join("client.so").to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        json["files"][0]["link"]
            .as_object()
            .unwrap()
            .values()
            .map(|n| n.as_u64().unwrap())
            .sum::<u64>(),
        3
    );
    assert_eq!(code, i32::from(json["fails"].as_bool().unwrap()));
    with_kernels(&folder, "machine.so", &kernels(), false);
    let (code, text) = run(&[folder.0.join("machine.so").to_str().unwrap()]);
    assert!(
        code == 1 && text.contains("FAILS") && text.contains("machine code only"),
        "{text}"
    );
    assert_eq!(run(&["no such file"]).0, 2);
    assert_eq!(run(&[folder.0.join("text").to_str().unwrap()]).0, 2);
    assert_eq!(run(&[]).0, 2);
    assert_eq!(run(&["--help"]).0, 0);
}

/// xorshift64: the same mutations in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Damaged copies of two libraries, one with fat binaries and a static runtime's marks, one with version needs: the same in every
/// run. Every fourth has its fat binaries hit, the others their headers and tables; some are cut short.
struct Damage {
    seeds: [Vec<u8>; 2],
    magic: usize,
    random: Random,
    round: usize,
}

impl Damage {
    fn new(folder: &Folder) -> Self {
        let runtime = folder.runtime("libcudart.so.12", Some("libcudart.so.12"), &["cudaMalloc", "cudaFree"]);
        let whole = fs::read(with_kernels(folder, "seed.so", &kernels(), true)).unwrap();
        let options = [runtime.to_str().unwrap(), "-Wl,--hash-style=both"];
        let versioned = fs::read(folder.library("v.so", CALLS, &options)).unwrap();
        let magic = whole.windows(4).position(|bytes| bytes == [0x50, 0xed, 0x55, 0xba]);
        Self {
            seeds: [whole, versioned],
            magic: magic.unwrap(),
            random: Random(0x5eed_0123_4567_89ab),
            round: 0,
        }
    }

    fn next(&mut self) -> Vec<u8> {
        let (round, random) = (self.round, &mut self.random);
        self.round += 1;
        let mut bytes = self.seeds[round % 2].clone();
        for _ in 0..=random.below(8) {
            let at = match (round % 4, random.below(3)) {
                (0, _) => self.magic + random.below(kernels().len()),
                (_, 0) => random.below(64),
                (_, 1) => random.below(bytes.len().min(4096)),
                _ => bytes.len() - 1 - random.below(bytes.len().min(8192)),
            };
            let value = match random.below(4) {
                0 => 0xff,
                1 => 0,
                _ => random.below(256) as u8,
            };
            let run = 1 + random.below(8);
            for byte in bytes.iter_mut().skip(at).take(run) {
                *byte = value;
            }
        }
        if round % 10 == 9 {
            bytes.truncate(random.below(bytes.len()));
        }
        bytes
    }
}

/// 2000 damaged files, 500 of them in their fat binaries: an error or a report, soon, and no panic; as the library that
/// `--against` names too, asked for the symbols of a sound client.
#[test]
fn damaged_files_end_in_an_error_or_a_report() {
    let folder = Folder::new("damaged");
    let mut damage = Damage::new(&folder);
    let client = folder.write("client.so", &damage.seeds[1]);
    let (mut reports, mut errors, mut providers) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    let path = folder.0.join("damaged.so");
    for _ in 0..2000 {
        fs::write(&path, damage.next()).unwrap();
        let start = Instant::now();
        match audit(&path, &Provider::Regauge, Rule::default()) {
            Ok(report) => {
                reports += 1;
                assert!(!symbol_audit::report::text(&report, true, true).is_empty());
            }
            Err(error) => {
                errors += 1;
                assert!(!error.to_string().is_empty());
            }
        }
        if let Ok(library) = OtherLibrary::open(&path) {
            providers += 1;
            let provider = Provider::Others(vec![library]);
            let report = audit(&client, &provider, Rule::default()).unwrap();
            assert!(!symbol_audit::report::text(&report, true, true).is_empty());
        }
        slowest = slowest.max(start.elapsed());
    }
    assert!(reports > 200 && errors > 100, "{reports} reports, {errors} errors");
    assert!(providers > 200, "{providers} could be asked");
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
}

/// The command on a folder of damaged files, on a process that has them mapped, and with each as `--against`: one of its three
/// exit statuses, never a signal or a panic (101).
#[test]
fn the_command_survives_damaged_files() {
    let folder = Folder::new("damaged-command");
    let mut damage = Damage::new(&folder);
    let client = folder.write("client.so", &damage.seeds[1]);
    let inner = Folder(folder.0.join("damaged"));
    fs::create_dir_all(&inner.0).unwrap();
    let files: Vec<PathBuf> = (0..40)
        .map(|number| inner.write(&format!("{number:02}.so"), damage.next()))
        .collect();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_symbol-audit"));
        let output = command.args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(0..=2)),
            "{arguments:?}: {:?}: {text}",
            output.status
        );
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = run(&[inner.0.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(text.contains("could not be read"), "{text}");
    let (_, json) = run(&["--json", "--all", inner.0.to_str().unwrap()]);
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
    for file in &files {
        run(&["--against", file.to_str().unwrap(), client.to_str().unwrap()]);
    }

    // This process maps them as code, as a loader would; one is cut short and one removed meanwhile.
    let maps: Vec<Mapped> = files.iter().filter_map(|file| Mapped::new(file)).collect();
    assert!(maps.len() > 30);
    fs::write(&files[0], b"").unwrap();
    fs::remove_file(&files[1]).unwrap();
    let (_, json) = run(&["--json", &std::process::id().to_string()]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let seen = json["files"].as_array().unwrap().len() + json["errors"].as_array().unwrap().len();
    assert!(seen > 10, "{json}");
}

/// A file mapped as code.
struct Mapped(*mut libc::c_void);

impl Mapped {
    fn new(file: &Path) -> Option<Self> {
        use std::os::fd::AsRawFd;
        let file = fs::File::open(file).unwrap();
        let (read, private) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
        // SAFETY: a new mapping of one page at an address of the kernel's choice; nothing reads it.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), 4096, read, private, file.as_raw_fd(), 0) };
        (address != libc::MAP_FAILED).then_some(Self(address))
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping made above, which nothing uses.
        unsafe { libc::munmap(self.0, 4096) };
    }
}

/// A library with 1.5 GB of emptiness in its `.nv_fatbin` and a fat binary at the end: read in bounded memory, in seconds.
#[test]
fn a_sparse_file_of_more_than_a_gigabyte_is_read_in_seconds() {
    const SIZE: u64 = 3 << 29;
    let folder = Folder::new("sparse");
    let path = with_kernels(&folder, "sparse.so", &kernels(), false);
    let section = Elf::open(&path)
        .unwrap()
        .sections()
        .iter()
        .position(|section| section.name == ".nv_fatbin");
    let mut file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let start = file.metadata().unwrap().len().next_multiple_of(8);
    let last = kernels();
    file.set_len(start + SIZE).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &last, start + SIZE - last.len().next_multiple_of(8) as u64)
        .unwrap();
    let mut header = [0; 64];
    file.read_exact(&mut header).unwrap();
    let table = u64::from_le_bytes(header[40..48].try_into().unwrap());
    let header = table + section.unwrap() as u64 * 64;
    std::os::unix::fs::FileExt::write_all_at(&file, &start.to_le_bytes(), header + 24).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &SIZE.to_le_bytes(), header + 32).unwrap();

    let began = Instant::now();
    let script = "ulimit -v 131072; exec \"$0\" --json \"$1\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_symbol-audit")]);
    let output = command.arg(&path).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["files"][0]["kernels"][0]["containers"], 3);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

/// Imports and exports of this test's own program and its C library, as `readelf` lists them.
#[test]
fn symbols_agree_with_readelf() {
    let own = std::env::current_exe().unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.lines().find_map(|line| {
        line.find('/')
            .map(|at| &line[at..])
            .filter(|path| path.contains("libc.so"))
    });
    for path in [own.as_path(), Path::new(library.unwrap())] {
        let Ok(output) = Command::new("readelf").args(["-W", "--dyn-syms"]).arg(path).output() else {
            return;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let mut expected: Vec<String> = text
            .lines()
            .filter_map(|line| {
                let columns: Vec<&str> = line.split_whitespace().collect();
                let [_, _, _, _, binding, _, "UND", name, ..] = columns.as_slice() else {
                    return None;
                };
                (*binding != "LOCAL").then(|| (*name).to_owned())
            })
            .collect();
        let elf = Elf::open(path).unwrap();
        let imports = elf.imports(|name| !name.is_empty()).unwrap();
        let mut ours: Vec<String> = imports
            .into_iter()
            .map(|import| match import.version {
                Some(version) => format!("{}@{}", import.name, version.node),
                None => import.name,
            })
            .collect();
        expected.sort();
        ours.sort();
        assert_eq!(ours, expected, "{}", path.display());
    }
}
