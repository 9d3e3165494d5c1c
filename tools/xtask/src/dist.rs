//! `cargo xtask dist`: the relocatable archive of what users install.
//!
//! ```text
//! regauge-VERSION-linux-x86_64/
//!   bin/                      regauge, symbol-audit, vgpu
//!   lib/                      the libraries as files under their SONAMEs, libX.so links for -lX, regauge-ptx-worker
//!   lib/pkgconfig/            cuda-12.9.pc, cudart-12.9.pc, nvidia-ml-12.9.pc, as NVIDIA names them
//!   share/modulefiles/        regauge/VERSION (Tcl) and regauge/VERSION.lua (Lmod)
//!   share/doc/regauge/        the manual pages of the repository
//! ```
//!
//! Nothing in it knows where it was built or where it lies: every file finds its neighbours from its own place.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::{Result, bench, process, setup};

/// Options of `dist`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Also make an archive of the debug information that was stripped.
    #[arg(long)]
    debug: bool,
}

/// The release's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Programs of `bin/`; those whose crate does not exist (yet) are left out.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("regauge", "regauge-cli", "tools/regauge"),
    ("symbol-audit", "symbol-audit", "tools/symbol-audit"),
    ("vgpu", "vgpu-cli", "tools/vgpu"),
];

/// Programs and preload libraries that belong beside the libraries.
const BESIDE: [&str; 2] = ["regauge-ptx-worker", "libvgpu.so"];

/// The archive and the folder in it.
pub struct Archive {
    /// The `.tar.gz`.
    pub path: PathBuf,
    /// The one folder that it holds.
    pub folder: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let archive = make(arguments.debug)?;
    let bytes = fs::metadata(&archive.path)?.len();
    println!("dist: {} ({:.1} MB)", archive.path.display(), bytes as f64 / 1e6);
    Ok(ExitCode::SUCCESS)
}

/// Builds and packs.
pub fn make(debug: bool) -> Result<Archive> {
    let built = build()?;
    let dist = bench::target().join("dist");
    let folder = format!("regauge-{VERSION}-linux-x86_64");
    let tree = dist.join(&folder);
    let symbols = dist.join(format!("{folder}-debug"));
    for directory in [&tree, &symbols] {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir_all(directory)?;
    }
    let lib = tree.join("lib");
    let bin = tree.join("bin");
    fs::create_dir_all(&lib)?;
    fs::create_dir_all(&bin)?;

    for soname in libraries(&built)? {
        install(&built.join(&soname), &lib.join(&soname), &symbols)?;
    }
    for name in BESIDE {
        install(&built.join(name), &lib.join(name), &symbols)?;
    }
    for (name, _, crate_folder) in PROGRAMS {
        if bench::root().join(crate_folder).exists() {
            install(&built.join(name), &bin.join(name), &symbols)?;
        }
    }
    for (link, soname) in DEVELOPMENT_LINKS {
        symlink(soname, lib.join(link))?;
    }
    pkg_config(&lib.join("pkgconfig"))?;
    module_files(&tree.join("share/modulefiles/regauge"))?;
    documents(&tree)?;

    let path = pack(&dist, &folder)?;
    if debug {
        let path = pack(&dist, &format!("{folder}-debug"))?;
        println!("dist: debug information in {}", path.display());
    }
    Ok(Archive { path, folder })
}

/// What `-lcudart`, `-lcuda` and `-lnvidia-ml` find.
const DEVELOPMENT_LINKS: [(&str, &str); 3] = [
    ("libcudart.so", "libcudart.so.12"),
    ("libcuda.so", "libcuda.so.1"),
    ("libnvidia-ml.so", "libnvidia-ml.so.1"),
];

/// Strings that would tell where a file was built, and what they become.
pub fn builder_folders() -> Result<Vec<(PathBuf, &'static str)>> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let home = |variable: &str, folder: &str| {
        std::env::var_os(variable)
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(folder)))
    };
    let mut folders = vec![
        (bench::root().to_owned(), "regauge"),
        (bench::target(), "regauge/target"),
        (sysroot, "rust"),
    ];
    folders.extend(home("CARGO_HOME", ".cargo").map(|folder| (folder, "cargo")));
    folders.extend(home("RUSTUP_HOME", ".rustup").map(|folder| (folder, "rustup")));
    Ok(folders)
}

/// A release build whose panic messages and debug information hold no folder of the builder's. It has a target folder of its
/// own: other flags would make every other command build everything anew. Returns the folder of the artefacts.
fn build() -> Result<PathBuf> {
    let target = bench::target().join("dist-build");
    let mut flags = String::new();
    // The last that matches counts, so the widest folders come first.
    let mut folders = builder_folders()?;
    folders.sort_by_key(|(folder, _)| folder.as_os_str().len());
    for (folder, name) in &folders {
        // Flags are separated as cargo's encoded form has them: folders may have spaces.
        let _ = write!(flags, "--remap-path-prefix={}={name}\u{1f}", folder.display());
    }
    let mut command = setup::cargo_build(setup::PRODUCTS);
    for (_, package, crate_folder) in PROGRAMS {
        if bench::root().join(crate_folder).exists() {
            command.args(["--package", package]);
        }
    }
    command
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.trim_end_matches('\u{1f}'));
    process::must(&mut command)?;
    Ok(target.join("release"))
}

/// The SONAMEs in `built`: the links that the libraries' build scripts made.
fn libraries(built: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(built)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_symlink() && name.contains(".so.") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Copies one ELF file without its debug information, which goes to `symbols`.
fn install(from: &Path, to: &Path, symbols: &Path) -> Result<()> {
    let name = to.file_name().ok_or("a file name")?.to_string_lossy().into_owned();
    let debug = symbols.join(format!("{name}.debug"));
    let source = from
        .canonicalize()
        .map_err(|error| format!("{}: {error}", from.display()))?;
    process::must(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .arg(&source)
            .arg(&debug),
    )?;
    // The symbol table stays: without it a backtrace in a bug report has no names.
    let link = format!("--add-gnu-debuglink={}", debug.display());
    process::must(
        Command::new("objcopy")
            .args(["--strip-debug", &link])
            .arg(&source)
            .arg(to),
    )
}

/// The `.pc` files, relative to themselves.
fn pkg_config(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (name, library, what) in [
        ("cuda", "cuda", "CUDA driver API"),
        ("cudart", "cudart", "CUDA runtime API"),
        ("nvidia-ml", "nvidia-ml", "NVML"),
    ] {
        let text = format!(
            "libdir=${{pcfiledir}}/..\n\n\
             Name: {name}\n\
             Description: {what} on AMD GPUs (Regauge {VERSION}); headers are NVIDIA's own\n\
             Version: 12.9\n\
             Libs: -L${{libdir}} -l{library}\n"
        );
        fs::write(folder.join(format!("{name}-12.9.pc")), text)?;
    }
    Ok(())
}

const TCL_MODULE: &str = r#"#%Module1.0
# Regauge VERSION: CUDA programs on AMD GPUs. The module finds the libraries from its own place:
# ROOT/share/modulefiles/regauge/VERSION.
set root [file dirname [file dirname [file dirname [file dirname [file normalize $ModulesCurrentModulefile]]]]]

proc ModulesHelp { } {
    puts stderr "Regauge VERSION runs compiled CUDA programs and libraries on AMD GPUs."
}
module-whatis "Regauge VERSION: CUDA programs and libraries on AMD GPUs"
conflict regauge
prepend-path PATH            $root/bin
prepend-path LD_LIBRARY_PATH $root/lib
prepend-path LIBRARY_PATH    $root/lib
prepend-path PKG_CONFIG_PATH $root/lib/pkgconfig
"#;

const LUA_MODULE: &str = r#"-- Regauge VERSION: CUDA programs on AMD GPUs. The module finds the libraries from its own place:
-- ROOT/share/modulefiles/regauge/VERSION.lua.
local root = myFileName():match("^(.*)/share/modulefiles/regauge/[^/]*$")

help([[Regauge VERSION runs compiled CUDA programs and libraries on AMD GPUs.]])
whatis("Regauge VERSION: CUDA programs and libraries on AMD GPUs")
conflict("regauge")
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "lib/pkgconfig"))
"#;

/// Environment modules for Tcl Modules and Lmod.
fn module_files(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(VERSION), TCL_MODULE.replace("VERSION", VERSION))?;
    fs::write(
        folder.join(format!("{VERSION}.lua")),
        LUA_MODULE.replace("VERSION", VERSION),
    )?;
    Ok(())
}

/// Licences, README and the user pages.
fn documents(tree: &Path) -> Result<()> {
    let root = bench::root();
    for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(root.join(name), tree.join(name))?;
    }
    let pages = tree.join("share/doc/regauge");
    fs::create_dir_all(&pages)?;
    for entry in fs::read_dir(root.join("docs")).into_iter().flatten() {
        let path = entry?.path();
        if let Some(name) = path
            .file_name()
            .filter(|_| path.extension().is_some_and(|end| end == "md"))
        {
            fs::copy(&path, pages.join(name))?;
        }
    }
    Ok(())
}

/// Packs `dist/folder`, the same bytes for the same tree: order, owners and times are fixed.
fn pack(dist: &Path, folder: &str) -> Result<PathBuf> {
    let path = dist.join(format!("{folder}.tar.gz"));
    let time = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(bench::root())
        .output()?;
    let time = String::from_utf8(time.stdout)?;
    let mut command = Command::new("tar");
    command
        .args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--format=gnu",
        ])
        .arg(format!(
            "--mtime=@{}",
            if time.trim().is_empty() { "0" } else { time.trim() }
        ));
    command
        .args(["--use-compress-program=gzip -n", "-cf"])
        .arg(&path)
        .arg("-C")
        .arg(dist)
        .arg(folder);
    process::must(&mut command)?;
    Ok(path)
}
