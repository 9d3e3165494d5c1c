//! Lists the fat binaries of ELF files: `fatbins FILE...`; `--ptx FOLDER` writes the PTX out.

use std::path::PathBuf;
use std::process::ExitCode;

use cuda_fatbin::{Kind, elf, entries};

fn list(path: &str, ptx: Option<&PathBuf>) -> Result<(), Box<dyn std::error::Error>> {
    let file = std::fs::read(path)?;
    let mut number = 0;
    for section in elf::sections(&file)? {
        for (index, container) in section.containers().enumerate() {
            println!("{path}: {} container {index}, {} bytes", section.name, container.len());
            for entry in entries(container)? {
                let entry = entry?;
                let (major, minor) = entry.version;
                let payload = entry
                    .payload()
                    .map_or_else(|e| e.to_string(), |p| format!("{} bytes", p.len()));
                println!(
                    "  {:?} {} version {major}.{minor} {} {} -> {payload} options {:?} name {:?}",
                    entry.kind,
                    entry.architecture(),
                    entry.compression(),
                    entry.stored_size(),
                    String::from_utf8_lossy(entry.options),
                    String::from_utf8_lossy(entry.name),
                );
                if let (Kind::Ptx, Some(folder)) = (entry.kind, ptx) {
                    std::fs::write(
                        folder.join(format!("{number}_{}.ptx", entry.architecture())),
                        entry.ptx()?,
                    )?;
                    number += 1;
                }
            }
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let ptx = arguments.iter().position(|a| a == "--ptx").map(|at| {
        let folder = arguments.get(at + 1).map(PathBuf::from).unwrap_or_default();
        arguments.drain(at..(at + 2).min(arguments.len()));
        folder
    });
    let mut code = ExitCode::SUCCESS;
    for path in &arguments {
        if let Err(error) = list(path, ptx.as_ref()) {
            eprintln!("{path}: {error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}
