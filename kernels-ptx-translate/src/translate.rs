//! One kernel from PTX text to a checked code object: the whole way, inside the worker.

use crate::code_object;
use crate::comgr::Compiler;
use crate::lower::lower_kernel;
use crate::protocol::{CompileRequest, CompiledKernel, ModuleInfo, TranslateError};
use crate::ptx;

/// PTX as text: whatever is not UTF-8 can only stand in comments and strings.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}

/// Describes a module.
pub fn inspect(bytes: &[u8]) -> Result<ModuleInfo, TranslateError> {
    ptx::layout::inspect(&ptx::parse(&text(bytes))?)
}

/// Compiles one kernel of a module.
pub fn compile(bytes: &[u8], request: &CompileRequest, compiler: &Compiler) -> Result<CompiledKernel, TranslateError> {
    let text = text(bytes);
    let module = ptx::parse(&text)?;
    let lowered = lower_kernel(&module, request)?;
    drop(module);
    let code_object = compiler.compile(&lowered.llvm_ir, request.target, request.opt_level)?;
    let facts = code_object::check(&code_object, request.target)?;
    if facts.symbol != lowered.symbol {
        let what = format!("the kernel is called {} and not {}", facts.symbol, lowered.symbol);
        return Err(TranslateError::BadCodeObject(what));
    }
    Ok(CompiledKernel {
        code_object,
        symbol: lowered.symbol,
        layout: lowered.layout,
        max_threads: lowered.max_threads,
        kernarg_size: facts.kernarg_size,
        static_lds: facts.static_lds,
        private_size: facts.private_size,
        vgprs: facts.vgprs,
        uses_printf: lowered.uses_printf,
        uses_heap: lowered.uses_heap,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Target;

    const KERNEL: &str = r#"
target triple = "amdgcn-amd-amdhsa"
define protected amdgpu_kernel void @k(ptr addrspace(4) byref([28 x i8]) align 8 %p) {
  %v = load i64, ptr addrspace(4) %p, align 8
  %g = inttoptr i64 %v to ptr addrspace(1)
  store i32 7, ptr addrspace(1) %g, align 4
  ret void
}
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdgpu_code_object_version", i32 400}
"#;

    /// Every compiler of this machine: comgr and clang.
    fn compilers() -> Vec<Compiler> {
        let mut found: Vec<_> = Compiler::find(None).into_iter().collect();
        found.extend(Compiler::clang());
        assert!(!found.is_empty(), "install libamd_comgr or clang and lld");
        found
    }

    #[test]
    fn ir_text_becomes_a_code_object_with_one_kernel() {
        for compiler in compilers() {
            let object = compiler.compile(KERNEL, Target::Gfx90a, 3).unwrap();
            let facts = code_object::check(&object, Target::Gfx90a).unwrap();
            assert_eq!(
                (facts.symbol.as_str(), facts.kernarg_size, facts.static_lds),
                ("k", 28, 0)
            );
            assert!(facts.vgprs > 0);
            assert!(code_object::check(&object, Target::Gfx942).is_err());
            // A damaged object is refused or still whole, and never panics.
            for at in 0..object.len().min(4096) {
                let mut damaged = object.clone();
                damaged[at] ^= 0x5a;
                let _ = code_object::check(&damaged, Target::Gfx90a);
                let _ = code_object::check(&object[..at], Target::Gfx90a);
            }
        }
    }

    #[test]
    fn undefined_symbols_and_bad_text_are_errors_with_the_log() {
        for compiler in compilers() {
            let calling = KERNEL.replace("ret void", "call void @nowhere()\n ret void") + "declare void @nowhere()\n";
            let result = compiler.compile(&calling, Target::Gfx90a, 1);
            let result = result.and_then(|object| code_object::check(&object, Target::Gfx90a));
            let message = result.unwrap_err().to_string();
            assert!(message.contains("nowhere"), "{message}");
            let error = compiler.compile("define garbage", Target::Gfx90a, 1).unwrap_err();
            assert!(
                matches!(&error, TranslateError::Compiler(log) if log.len() > 10),
                "{error}"
            );
        }
    }
}
