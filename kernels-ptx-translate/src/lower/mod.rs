//! Typed IR, its lowering from PTX and the LLVM text written from it.

use crate::protocol::{CompileRequest, TranslateError, WarpLayout};
use crate::ptx::ast::Module;

/// A kernel as LLVM IR text, with what the launcher must know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The module text for the code generator.
    pub llvm_ir: String,
    /// Name of the kernel in the text, chosen by us and never taken from the application's text.
    pub symbol: String,
    /// How CUDA's warps lie on waves.
    pub layout: WarpLayout,
    /// Largest CUDA block (threads) it may be launched with.
    pub max_threads: u32,
    /// It may write to the printf ring.
    pub uses_printf: bool,
    /// It may call malloc or free.
    pub uses_heap: bool,
    /// Bytes of static shared memory.
    pub static_shared: u32,
}

/// Lowers one entry and what it calls.
pub fn lower_kernel(module: &Module<'_>, request: &CompileRequest) -> Result<Lowered, TranslateError> {
    let Some(entry) = module.entry(&request.entry) else {
        return Err(TranslateError::NoSuchEntry(request.entry.clone()));
    };
    let line = module.function(entry).line;
    Err(TranslateError::Unsupported {
        line,
        construct: "lowering".into(),
    })
}
