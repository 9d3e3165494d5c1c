//! What the build scripts of the libraries render from a table.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::{Library, Status, Symbol};

/// The instructions an entry point begins with; the crate's documentation says why.
const PROLOGUE: &str = "mov eax, 0\\nmov eax, 0\\nmov eax, 0";

/// The linker version script of `library`: its symbols at their node, `extra` names, and nothing else.
///
/// # Panics
/// When the table has more than one node: unversioned symbols need an anonymous script, which cannot hold a node.
pub fn version_script(library: Library, extra: &[String]) -> String {
    let symbols = library.table().symbols();
    let node = symbols.first().and_then(|symbol| symbol.node);
    assert!(
        symbols.iter().all(|symbol| symbol.node == node),
        "{}: one node per library",
        library.file()
    );
    let names = symbols
        .iter()
        .map(|symbol| symbol.name)
        .chain(extra.iter().map(String::as_str));
    let mut script = format!("{} {{\n  global:\n", node.unwrap_or_default());
    for name in names {
        let _ = writeln!(script, "    {name};");
    }
    script.push_str("  local: *;\n};\n");
    script
}

/// The name of the private table in `libcuda.so.1` through which `library` jumps. It holds a hash of the symbol list, so a
/// pair of libraries that do not belong together stops at load with an undefined symbol instead of jumping astray.
pub fn private_table(library: Library) -> String {
    let short = match library {
        Library::Cuda => "cu",
        Library::Cudart => "rt",
        Library::Nvml => "nvml",
        Library::Cudart11 => "rt11",
        Library::Cudart13 => "rt13",
    };
    format!("regauge_{short}_table_{:016x}", library.table().hash())
}

/// Assembly text and its operands: one `global_asm!` block.
#[derive(Default)]
struct Block {
    lines: String,
    operands: String,
    stubs: BTreeSet<String>,
}

impl Block {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.lines, "    \"{text}\",");
    }

    /// The operand that stands for the function that answers `symbol`: its own, or its class's stub.
    fn operand(&mut self, library: Library, index: usize, symbol: &Symbol) -> String {
        if symbol.status == Status::Impl {
            let operand = format!("{}_{index}", library.stub_prefix());
            let (module, function) = symbol.function(library);
            let _ = writeln!(self.operands, "    {operand} = sym {}::{function},", module.module());
            return operand;
        }
        let stub = format!("{}_{}", library.stub_prefix(), symbol.class.as_str());
        if self.stubs.insert(stub.clone()) {
            let _ = writeln!(self.operands, "    stub_{stub} = sym regauge::api::stub::{stub},");
        }
        format!("stub_{stub}")
    }

    /// Jumps to the function that answers `symbol`; a stub gets the symbol's number as its argument.
    fn jump(&mut self, library: Library, index: usize, symbol: &Symbol) {
        let operand = self.operand(library, index, symbol);
        if symbol.status != Status::Impl {
            self.line(&format!("mov edi, {index}"));
        }
        self.line(&format!("jmp {{{operand}}}"));
    }

    fn begin_function(&mut self, name: &str) {
        self.line(&format!(".globl {name}"));
        self.line(&format!(".type {name},@function"));
        self.line(".p2align 4");
        self.line(&format!("{name}:"));
        self.line(".cfi_startproc");
        self.line(PROLOGUE);
    }

    fn end_function(&mut self, name: &str) {
        self.line(".cfi_endproc");
        self.line(&format!(".size {name}, .-{name}"));
    }

    fn begin_data(&mut self, name: &str, visibility: &str) {
        self.line(&format!(".pushsection .data.rel.ro.{name},\\\"aw\\\",@progbits"));
        self.line(".p2align 6");
        self.line(&format!(".globl {name}"));
        if !visibility.is_empty() {
            self.line(&format!(".{visibility} {name}"));
        }
        self.line(&format!(".type {name},@object"));
        self.line(&format!("{name}:"));
    }

    fn end_data(&mut self, name: &str) {
        self.line(&format!(".size {name}, .-{name}"));
        self.line(".popsection");
    }

    fn finish(self) -> String {
        format!("core::arch::global_asm!(\n{}{});\n", self.lines, self.operands)
    }
}

/// The source of `libcuda.so.1`: the entry points of the driver API, the list of their addresses for
/// `cuGetProcAddress`, and the private tables of the other libraries.
pub fn implementation() -> String {
    let mut block = Block::default();
    let driver = Library::Cuda.table().symbols();
    block.line(".pushsection .text.regauge_entry_points,\\\"ax\\\",@progbits");
    for (index, symbol) in driver.iter().enumerate() {
        block.begin_function(symbol.name);
        // A second, local name: the list below must hold this address even where a preloaded library has the same symbol.
        block.line(&format!(".Lcu_{index} = {}", symbol.name));
        block.jump(Library::Cuda, index, symbol);
        block.end_function(symbol.name);
    }
    block.line(".popsection");

    block.begin_data("regauge_driver_entry_points", "hidden");
    block.line(&format!(".quad {}", driver.len()));
    for index in 0..driver.len() {
        block.line(&format!(".quad .Lcu_{index}"));
    }
    block.end_data("regauge_driver_entry_points");

    for library in Library::FORWARDING {
        table_of(&mut block, library);
    }
    block.finish()
}

/// The private table of `library`, and the stubs it points to.
fn table_of(block: &mut Block, library: Library) {
    let symbols = library.table().symbols();
    let label = |index: usize| format!(".L{}_stub_{index}", library.stub_prefix());
    block.line(".pushsection .text.regauge_stubs,\\\"ax\\\",@progbits");
    for (index, symbol) in symbols
        .iter()
        .enumerate()
        .filter(|(_, symbol)| symbol.status != Status::Impl)
    {
        block.line(&format!("{}:", label(index)));
        block.line(".cfi_startproc");
        block.jump(library, index, symbol);
        block.line(".cfi_endproc");
    }
    block.line(".popsection");

    let name = private_table(library);
    block.begin_data(&name, "");
    for (index, symbol) in symbols.iter().enumerate() {
        if symbol.status == Status::Impl {
            let operand = block.operand(library, index, symbol);
            block.line(&format!(".quad {{{operand}}}"));
        } else {
            block.line(&format!(".quad {}", label(index)));
        }
    }
    block.end_data(&name);
}

/// The source of a library of jumps: every export goes through the private table in `libcuda.so.1`.
pub fn forwards(library: Library) -> String {
    let table = private_table(library);
    let mut block = Block::default();
    block.line(".pushsection .text.regauge_entry_points,\\\"ax\\\",@progbits");
    for (index, symbol) in library.table().symbols().iter().enumerate() {
        block.begin_function(symbol.name);
        block.line(&format!("mov rax, qword ptr [rip + {table}@GOTPCREL]"));
        block.line(&format!("jmp qword ptr [rax + {}]", 8 * index));
        block.end_function(symbol.name);
    }
    block.line(".popsection");
    block.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_the_runtime_names_its_node() {
        let script = version_script(Library::Cudart, &[]);
        assert!(script.starts_with("libcudart.so.12 {\n  global:\n"));
        assert!(script.contains("\n    cudaMalloc;\n"));
        assert!(script.ends_with("  local: *;\n};\n"));
    }

    #[test]
    fn the_script_of_the_driver_is_anonymous() {
        let script = version_script(Library::Cuda, &["private".into()]);
        assert!(script.starts_with(" {\n"));
        assert!(script.contains("\n    private;\n"));
    }

    #[test]
    fn every_entry_point_can_be_moved_by_ucx() {
        let rendered = |library| {
            if library == Library::Cuda {
                implementation()
            } else {
                forwards(library)
            }
        };
        for library in Library::ALL {
            let (source, count) = (rendered(library), library.table().symbols().len());
            let entries: Vec<&str> = source.split("@function\",").skip(1).collect();
            assert_eq!(entries.len(), count);
            for entry in entries {
                let (_, code) = entry.split_once("\".cfi_startproc\",\n").unwrap();
                assert!(
                    code.trim_start()
                        .starts_with("\"mov eax, 0\\nmov eax, 0\\nmov eax, 0\""),
                    "{entry}"
                );
            }
        }
    }
}
