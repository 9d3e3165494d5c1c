//! PTX to LLVM IR text: analysis of a kernel, then one LLVM function for it and for each function it calls.
//!
//! ```text
//! ast::Module -> reachable functions -> warp_layout (Paired or Solo) -> flow (basic blocks) -> emit -> text
//!                                        nan (where NaNs may stay raw)     runtime/*.ll (helpers) -^
//! ```
//!
//! Nothing is written but what the closed tables of [`intrinsics`] and [`runtime`] hold, because the code generators of
//! LLVM 15 and 17 check neither.

mod contract;
mod emit;
mod flow;
mod intrinsics;
mod nan;
mod runtime;
mod text;
mod warp_layout;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::protocol::{CompileRequest, HIDDEN_ARGS_SIZE, TranslateError, WarpLayout};
use crate::ptx::ast::{FuncId, Instruction, LabelKind, Module, Operand, StateSpace, Statement, Symbol, VarId};
use crate::ptx::layout::{DataBlock, SharedBlock, param_size, params, reachable};
use warp_layout::{Demands, Waits};

/// Name of the kernel in the code object.
const SYMBOL: &str = "regauge_kernel";

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

/// A kernel in translation: what its functions share.
struct Kernel<'m, 'a> {
    module: &'m Module<'a>,
    entry: FuncId,
    data: DataBlock,
    shared: SharedBlock,
    /// Offset of the barrier cells in LDS, and the bytes of LDS before dynamic shared memory.
    cells: u32,
    static_lds: u32,
    layout: WarpLayout,
    demands: Demands,
    /// Branches on which threads wait for others.
    waits: Waits,
    /// Functions that may call themselves: real calls, the others are inlined.
    recursive: HashSet<FuncId>,
    /// Functions whose number may reach an indirect call.
    address_taken: Vec<FuncId>,
    /// Offset of the hidden arguments in the argument block, and its whole size.
    hidden_offset: u32,
    kernarg_size: u32,
    uses: BTreeSet<String>,
    /// Functions that multiply fragments, name and text, by what they multiply.
    products: BTreeMap<String, (String, String)>,
    uses_printf: bool,
    uses_heap: bool,
}

impl Kernel<'_, '_> {
    /// The function that a name stands for.
    fn definition(&self, id: FuncId) -> FuncId {
        self.module.function(id).alias.unwrap_or(id)
    }

    /// Start and size of each `.const` variable in the data block.
    fn const_ranges(&self) -> Vec<(u64, u64)> {
        let all = self
            .module
            .variables
            .iter()
            .enumerate()
            .filter(|(_, v)| v.space == StateSpace::Const && v.size > 0);
        all.filter_map(|(at, v)| Some((self.data.offset(VarId(at as u32))?, v.size)))
            .collect()
    }
}

/// Instructions of a function.
fn instructions<'m, 'a>(module: &'m Module<'a>, id: FuncId) -> impl Iterator<Item = &'m Instruction<'a>> {
    let statements = module.function(id).body.as_ref().map_or(&[][..], |b| &b.statements);
    statements.iter().filter_map(|s| match s {
        Statement::Instruction(i) => Some(i),
        Statement::Label(_) => None,
    })
}

/// A call of whatever function a register names.
fn is_indirect_call(i: &Instruction<'_>) -> bool {
    i.call
        .as_ref()
        .is_some_and(|call| matches!(call.callee, Operand::Register(_)))
}

/// Functions whose address is an operand of anything but a call, or stands in a variable's initial value.
fn address_taken(module: &Module<'_>, functions: &[FuncId]) -> Vec<FuncId> {
    let mut found = BTreeSet::new();
    for &id in functions {
        for i in instructions(module, id) {
            for operand in &i.operands {
                if let Operand::Symbol(Symbol::Function(f), _) = operand {
                    found.insert(f.0);
                }
            }
        }
        for label in module.function(id).body.iter().flat_map(|b| &b.labels) {
            if let LabelKind::CallTargets(targets) = &label.kind {
                found.extend(targets.iter().map(|f| f.0));
            }
        }
    }
    for address in module
        .variables
        .iter()
        .filter_map(|v| v.init.as_ref())
        .flat_map(|init| &init.addresses)
    {
        if let Symbol::Function(f) = address.target {
            found.insert(f.0);
        }
    }
    found
        .into_iter()
        .map(FuncId)
        .filter(|&f| !module.function(f).is_entry)
        .collect()
}

/// Functions on a cycle of calls.
fn recursive(module: &Module<'_>, functions: &[FuncId], address_taken: &[FuncId]) -> HashSet<FuncId> {
    let mut callees: HashMap<FuncId, HashSet<FuncId>> = HashMap::new();
    for &id in functions {
        let mut called = HashSet::new();
        for call in instructions(module, id).filter_map(|i| i.call.as_ref()) {
            match call.callee {
                Operand::Symbol(Symbol::Function(f), _) => {
                    called.insert(module.function(f).alias.unwrap_or(f));
                }
                _ => called.extend(address_taken),
            }
        }
        callees.insert(id, called);
    }
    let reaches_itself = |id: &FuncId| {
        let mut seen = HashSet::new();
        let mut queue: Vec<FuncId> = callees.get(id).into_iter().flatten().copied().collect();
        while let Some(at) = queue.pop() {
            if seen.insert(at) {
                queue.extend(callees.get(&at).into_iter().flatten());
            }
        }
        seen.contains(id)
    };
    functions.iter().copied().filter(reaches_itself).collect()
}

/// Chooses the layout and the largest block.
fn choose(
    request: &CompileRequest,
    max_ntid: Option<[u32; 3]>,
    demands: Demands,
) -> Result<(WarpLayout, u32), TranslateError> {
    let threads = |b: [u32; 3]| b.iter().fold(1u32, |n, &d| n.saturating_mul(d.max(1)));
    let declared = max_ntid.map_or(1024, threads).min(1024);
    let known = if request.block == [0; 3] {
        0
    } else {
        threads(request.block)
    };
    if known > declared {
        return Err(TranslateError::BlockTooLarge { max_threads: declared });
    }
    let needs_solo = demands.barriers || demands.named_barriers;
    // A spinning kernel of a large block is left Paired: most wait for other blocks, and nothing else can run it.
    let solo = known > 32 || known == 0;
    let solo = solo && (needs_solo || (demands.spins && known <= 512)) || (demands.named_barriers);
    let most = if solo { 512.min(declared) } else { declared };
    if known > most {
        return Err(TranslateError::BlockTooLarge { max_threads: most });
    }
    // Registers per lane halve at 256 and 512 work-items: between those, one compilation serves all block sizes.
    let lanes = |n: u32| if solo { n.div_ceil(32) * 64 } else { n };
    let steps = [256, 512, 1024];
    let wanted = if known == 0 { most } else { known };
    let step = steps.into_iter().find(|&s| lanes(wanted) <= s).unwrap_or(1024);
    let most = most.min(if solo { step / 2 } else { step });
    Ok((if solo { WarpLayout::Solo } else { WarpLayout::Paired }, most))
}

/// The block of LDS that a kernel has of its own, at address 0: where its barrier cells are, and its size.
///
/// ```text
/// 0                 cells             size
/// | .shared, static | barrier cells   | dynamic shared memory ...
/// ```
fn lds(shared: &SharedBlock, demands: Demands) -> (u32, u32) {
    let cells = shared.size.next_multiple_of(16);
    let end = if demands.cells {
        cells.saturating_add(emit::CELLS_SIZE)
    } else {
        shared.size
    };
    // What follows must be aligned as the launcher counts: static bytes, then dynamic ones.
    let size = if shared.dynamic.is_empty() {
        end
    } else {
        end.next_multiple_of(shared.align.max(16))
    };
    (cells, size)
}

/// Lowers one entry and what it calls.
///
/// # Errors
/// `NoSuchEntry`, `BlockTooLarge`, `Unsupported` with the instruction's line and name, `InvalidPtx` for operands that
/// do not fit their instruction.
pub fn lower_kernel(module: &Module<'_>, request: &CompileRequest) -> Result<Lowered, TranslateError> {
    let Some(entry) = module.entry(&request.entry) else {
        return Err(TranslateError::NoSuchEntry(request.entry.clone()));
    };
    let mut found = reachable(module, entry);
    let mut taken = address_taken(module, &found.functions);
    // An indirect call may reach functions that only tables in memory name, and these may name others.
    if found
        .functions
        .iter()
        .any(|&id| instructions(module, id).any(is_indirect_call))
    {
        loop {
            for &id in &taken {
                let more = reachable(module, id);
                found.functions.extend(more.functions);
                found.variables.extend(more.variables);
            }
            let mut seen = HashSet::new();
            found.functions.retain(|id| seen.insert(*id));
            let known = taken.len();
            taken = address_taken(module, &found.functions);
            if taken.len() == known {
                break;
            }
        }
        found.variables.sort_unstable();
        found.variables.dedup();
    }
    let (demands, waits) = warp_layout::demands(module, &found.functions, &taken)?;
    let function = module.function(entry);
    let limit = function.directives.req_ntid.or(function.directives.max_ntid);
    let (layout, max_threads) = choose(request, limit, demands)?;
    let hidden_offset = param_size(&params(module, function)).next_multiple_of(8);
    let shared = SharedBlock::of(module, &found)?;
    let (cells, static_lds) = lds(&shared, demands);
    let mut kernel = Kernel {
        module,
        entry,
        data: DataBlock::of(module)?,
        shared,
        cells,
        static_lds,
        layout,
        demands,
        waits,
        recursive: recursive(module, &found.functions, &taken),
        address_taken: taken,
        hidden_offset,
        kernarg_size: hidden_offset + HIDDEN_ARGS_SIZE,
        uses: BTreeSet::new(),
        products: BTreeMap::new(),
        uses_printf: false,
        uses_heap: false,
    };
    let mut functions = String::new();
    for &id in &found.functions {
        let f = module.function(id);
        if f.body.is_some() && (!f.is_entry || id == entry) {
            functions.push_str(&emit::Emit::function(&mut kernel, id)?);
        }
    }
    for (_, text) in kernel.products.values() {
        functions.push_str(text);
    }
    Ok(Lowered {
        llvm_ir: assemble(&kernel, max_threads, &functions),
        symbol: SYMBOL.into(),
        layout,
        max_threads,
        uses_printf: kernel.uses_printf,
        uses_heap: kernel.uses_heap,
        static_shared: kernel.shared.size,
    })
}

/// The whole module text.
fn assemble(kernel: &Kernel<'_, '_>, max_threads: u32, functions: &str) -> String {
    let mut text = String::from("target triple = \"amdgcn-amd-amdhsa\"\n");
    let shared = &kernel.shared;
    if kernel.static_lds > 0 {
        text.push_str(&format!(
            "@rg_shared = internal addrspace(3) global [{} x i8] undef, align {}\n",
            kernel.static_lds,
            shared.align.max(16)
        ));
    }
    text.push_str(&runtime::text_for(&kernel.uses));
    text.push_str(functions);
    let lanes = if kernel.layout == WarpLayout::Solo {
        max_threads.div_ceil(32) * 64
    } else {
        max_threads
    };
    let float = "\"denormal-fp-math\"=\"ieee,ieee\" \"denormal-fp-math-f32\"=\"ieee,ieee\" \"amdgpu-ieee\"=\"false\" \
                 \"amdgpu-dx10-clamp\"=\"true\" \"amdgpu-unsafe-fp-atomics\"=\"true\"";
    let size = format!("\"uniform-work-group-size\"=\"true\" \"amdgpu-flat-work-group-size\"=\"1,{lanes}\"");
    text.push_str(&format!(
        "attributes #0 = {{ nounwind convergent {size} {float} }}\n\
         attributes #1 = {{ alwaysinline nounwind convergent {float} }}\n\
         attributes #2 = {{ noinline nounwind convergent {size} {float} }}\n\
         attributes #3 = {{ convergent nomerge nounwind }}\n\
         !llvm.module.flags = !{{!0}}\n\
         !0 = !{{i32 1, !\"amdgpu_code_object_version\", i32 400}}\n\
         !1 = !{{}}\n"
    ));
    text
}
