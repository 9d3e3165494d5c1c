//! Where the bytes are: parameter blocks, the module's data block and static shared memory.
//!
//! The runtime side (through [`ModuleInfo`]) and the lowering take every offset from here, so they cannot disagree.

use std::collections::{HashMap, HashSet};

use super::ast::{
    AddressBase, FuncId, Function, InitAddress, LabelKind, Linkage, Module, Operand, Parameter, StateSpace, Statement,
    Symbol, VarId,
};
use super::lexer::head;
use super::limits;
use crate::protocol::{Entry, Global, ModuleInfo, Param, Relocation, TranslateError};

/// Largest data block, in bytes.
pub const MAX_DATA_SIZE: u64 = 1 << 32;

/// Where a kernel's parameters are in its parameter block.
///
/// ```text
/// (.param .u64 p, .param .u8 a, .param .align 16 .b8 e[32])  ->  p 0..8 | a 8..9 | 7 unused | e 16..48
/// ```
pub fn params(module: &Module<'_>, function: &Function<'_>) -> Vec<Param> {
    let mut end = 0u32;
    let mut params = Vec::with_capacity(function.params.len());
    for parameter in &function.params {
        let (size, align) = match *parameter {
            Parameter::Variable(id) => (module.variable(id).size as u32, module.variable(id).align),
            Parameter::Register(_, ty) => (ty.bytes(), ty.bytes()),
        };
        let offset = end.next_multiple_of(align.max(1));
        params.push(Param { offset, size, align });
        end = offset + size;
    }
    params
}

/// Size of the parameter block: the end of the last parameter.
pub fn param_size(params: &[Param]) -> u32 {
    params.last().map_or(0, |p| p.offset + p.size)
}

/// The value that stands for a function's address wherever one is stored, passed or compared.
///
/// Kernels are compiled one by one, so a function has no address that all of them share: a module-wide number takes
/// its place and an indirect call selects among the functions whose number may have got out.
pub fn function_token(id: FuncId) -> u64 {
    // Never null, and aligned as code addresses are.
    (u64::from(id.0) + 1) << 4
}

/// The module's data block: every `.global` and `.const` variable, in source order, at its aligned offset. An `.extern`
/// one is in it too: CUDA ignores the qualifier when a whole program does not define the variable (recorded).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataBlock {
    offsets: HashMap<VarId, u64>,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
}

impl DataBlock {
    /// Lays out the data block.
    pub fn of(module: &Module<'_>) -> Result<Self, TranslateError> {
        let mut block = Self {
            offsets: HashMap::new(),
            size: 0,
            align: 16,
        };
        for (index, variable) in module.variables.iter().enumerate() {
            let in_block = matches!(variable.space, StateSpace::Global | StateSpace::Const | StateSpace::Tex);
            if !in_block {
                continue;
            }
            let offset = block.size.next_multiple_of(u64::from(variable.align));
            block.size = offset
                .checked_add(variable.size)
                .filter(|&end| end <= MAX_DATA_SIZE)
                .ok_or_else(|| {
                    TranslateError::invalid(
                        variable.line,
                        format!(
                            "the module's variables exceed {MAX_DATA_SIZE} bytes at {}",
                            variable.name
                        ),
                    )
                })?;
            block.align = block.align.max(u64::from(variable.align));
            block.offsets.insert(VarId(index as u32), offset);
        }
        Ok(block)
    }

    /// Offset of a variable; `None` for one of another space.
    pub fn offset(&self, id: VarId) -> Option<u64> {
        self.offsets.get(&id).copied()
    }

    /// Initial bytes (the rest is zero) and the pointers in them.
    fn initial(&self, module: &Module<'_>) -> Result<(Vec<u8>, Vec<Relocation>), TranslateError> {
        let mut data = Vec::new();
        let mut relocations = Vec::new();
        for (index, variable) in module.variables.iter().enumerate() {
            let (Some(offset), Some(init)) = (self.offset(VarId(index as u32)), &variable.init) else {
                continue;
            };
            // What follows the last nonzero byte needs no bytes of its own.
            let written = init.bytes.iter().rposition(|&b| b != 0).map_or(0, |at| at as u64 + 1);
            let written = init
                .addresses
                .iter()
                .map(|a| a.at + u64::from(a.size))
                .fold(written, u64::max);
            if written == 0 {
                continue;
            }
            if offset + written > limits::INITIALISED {
                return Err(TranslateError::invalid(
                    variable.line,
                    format!(
                        "initialised variables exceed {} bytes at {}",
                        limits::INITIALISED,
                        head(variable.name)
                    ),
                ));
            }
            data.resize((offset + written).max(data.len() as u64) as usize, 0);
            let explicit = init.bytes.len().min(written as usize);
            data[offset as usize..offset as usize + explicit].copy_from_slice(&init.bytes[..explicit]);
            let mut rest = init.addresses.as_slice();
            while let Some(&address) = rest.first() {
                let Some(taken) = whole_pointer(rest) else {
                    return Err(TranslateError::Unsupported {
                        line: variable.line,
                        construct: format!("part of an address in the initial value of {}", variable.name),
                    });
                };
                rest = &rest[taken..];
                let at = offset + address.at;
                let value = match address.target {
                    Symbol::Function(id) => function_token(id),
                    Symbol::Variable(id) => match self.offset(id) {
                        Some(offset) => {
                            relocations.push(Relocation { at });
                            offset
                        }
                        None => {
                            let target = module.variable(id);
                            return Err(TranslateError::Unsupported {
                                line: variable.line,
                                construct: format!("the address of {} in an initial value", target.name),
                            });
                        }
                    },
                };
                let value = value.wrapping_add_signed(address.addend);
                data[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        Ok((data, relocations))
    }
}

/// How many of the first entries make one 8-byte pointer: one, or eight `mask()` bytes in order.
fn whole_pointer(addresses: &[InitAddress]) -> Option<usize> {
    let first = addresses.first()?;
    if first.size == 8 && first.mask == u64::MAX {
        return Some(1);
    }
    let bytes = addresses.get(..8)?;
    let in_order = bytes.iter().enumerate().all(|(i, b)| {
        let expected = InitAddress {
            at: first.at + i as u64,
            mask: 0xff << (8 * i),
            ..*first
        };
        b.size == 1 && *b == expected
    });
    in_order.then_some(8)
}

/// What a function reaches: itself, the functions it calls or takes the address of, and the variables they name.
#[derive(Clone, Debug, Default)]
pub struct Reachable {
    /// Functions, the root first.
    pub functions: Vec<FuncId>,
    /// Variables named by any of them, in id (source) order.
    pub variables: Vec<VarId>,
}

/// Functions whose address is stored or passed anywhere in the module: where an indirect call may lead. No kernels.
pub fn address_taken(module: &Module<'_>) -> Vec<FuncId> {
    let mut taken = HashSet::new();
    let mut visit = |symbol: Symbol| {
        if let Symbol::Function(id) = symbol {
            taken.insert(id);
        }
    };
    for body in module.functions.iter().filter_map(|f| f.body.as_ref()) {
        for statement in &body.statements {
            if let Statement::Instruction(instruction) = statement {
                instruction.operands.iter().for_each(|o| operand_symbols(o, &mut visit));
            }
        }
    }
    for init in module.variables.iter().filter_map(|v| v.init.as_ref()) {
        init.addresses.iter().for_each(|a| visit(a.target));
    }
    let mut taken: Vec<_> = taken.into_iter().filter(|&id| !module.function(id).is_entry).collect();
    taken.sort_unstable();
    taken
}

/// Follows calls and addresses from `root`. An indirect call without a list of its targets may lead to any function
/// whose address is [taken](address_taken).
pub fn reachable(module: &Module<'_>, root: FuncId) -> Reachable {
    let mut seen_functions = HashSet::from([root]);
    let mut seen_variables = HashSet::new();
    let mut found = Reachable {
        functions: vec![root],
        variables: Vec::new(),
    };
    let mut next = 0;
    // Asked for once at most: it looks at the whole module.
    let mut indirect = false;
    while next < found.functions.len() {
        let function = module.function(found.functions[next]);
        next += 1;
        let mut visit = |symbol: Symbol| match symbol {
            Symbol::Variable(id) => {
                seen_variables.insert(id);
            }
            Symbol::Function(id) => {
                if seen_functions.insert(id) {
                    found.functions.push(id);
                }
            }
        };
        if let Some(alias) = function.alias {
            visit(Symbol::Function(alias));
        }
        let Some(body) = &function.body else { continue };
        for id in &body.variables {
            visit(Symbol::Variable(*id));
        }
        for statement in &body.statements {
            let Statement::Instruction(instruction) = statement else {
                continue;
            };
            instruction.operands.iter().for_each(|o| operand_symbols(o, &mut visit));
            if let Some(call) = &instruction.call {
                operand_symbols(&call.callee, &mut visit);
                let label = call.targets.map(|l| &body.label(l).kind);
                let unlisted =
                    matches!(call.callee, Operand::Register(_)) && !matches!(label, Some(LabelKind::CallTargets(_)));
                if unlisted && !std::mem::replace(&mut indirect, true) {
                    address_taken(module)
                        .into_iter()
                        .for_each(|id| visit(Symbol::Function(id)));
                }
                call.returns
                    .iter()
                    .chain(&call.arguments)
                    .for_each(|o| operand_symbols(o, &mut visit));
            }
        }
        for label in &body.labels {
            if let LabelKind::CallTargets(targets) = &label.kind {
                targets.iter().for_each(|&f| visit(Symbol::Function(f)));
            }
        }
    }
    found.variables = seen_variables.into_iter().collect();
    found.variables.sort_unstable();
    found
}

fn operand_symbols(operand: &Operand<'_>, visit: &mut impl FnMut(Symbol)) {
    match operand {
        Operand::Symbol(symbol, _) => visit(*symbol),
        Operand::Address(address) => {
            if let AddressBase::Symbol(symbol) = address.base {
                visit(symbol);
            }
        }
        // Nesting is at most two deep: the parser refuses more.
        Operand::Tuple(list) | Operand::Vector(list) => list.iter().for_each(|o| operand_symbols(o, visit)),
        Operand::Pair(a, b) => {
            operand_symbols(a, visit);
            operand_symbols(b, visit);
        }
        _ => {}
    }
}

/// Static shared memory of a kernel: every sized `.shared` variable that it or a function it reaches names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedBlock {
    /// Sized variables at their aligned offsets.
    pub offsets: Vec<(VarId, u32)>,
    /// `.extern .shared x[]`: they all start where dynamic shared memory starts.
    pub dynamic: Vec<VarId>,
    /// Bytes of static shared memory.
    pub size: u32,
    /// Alignment of the block; also what dynamic shared memory must be aligned to.
    pub align: u32,
}

impl SharedBlock {
    /// Lays out static shared memory of a kernel.
    pub fn of(module: &Module<'_>, reachable: &Reachable) -> Result<Self, TranslateError> {
        let mut block = Self {
            align: 16,
            ..Self::default()
        };
        let mut end = 0u64;
        for &id in &reachable.variables {
            let variable = module.variable(id);
            if variable.space != StateSpace::Shared {
                continue;
            }
            // The dynamic part follows the static one, so its alignment is the block's too.
            block.align = block.align.max(variable.align);
            if variable.is_unsized {
                block.dynamic.push(id);
                continue;
            }
            let offset = end.next_multiple_of(u64::from(variable.align));
            end = offset.saturating_add(variable.size);
            if end > u64::from(u32::MAX) {
                let message = format!("static shared memory exceeds 4 GiB at {}", variable.name);
                return Err(TranslateError::invalid(variable.line, message));
            }
            block.offsets.push((id, offset as u32));
        }
        block.size = end as u32;
        Ok(block)
    }
}

/// Functions that the toolchain declares and the translator itself provides.
pub const PROVIDED_FUNCTIONS: &[&str] = &["vprintf", "malloc", "free", "__assertfail", "cudaGraphSetConditional"];

/// Whether NVIDIA's driver provides a function of this name to kernels and the translator does not: launches from the device. Only kernels that call one are refused, since the others of the module need nothing of it.
pub fn is_refused_service(name: &str) -> bool {
    const NAMES: [&str; 4] = [
        "cudaGetParameterBuffer",
        "cudaGetParameterBufferV2",
        "cudaLaunchDevice",
        "cudaLaunchDeviceV2",
    ];
    NAMES.contains(&name) || name.starts_with("__cudaCDP2")
}

/// Most static shared memory any CUDA device takes (recorded: 0x38c00 bytes).
const MAX_SHARED: u32 = 0x38c00;

/// Describes a module without compiling it.
pub fn inspect(module: &Module<'_>) -> Result<ModuleInfo, TranslateError> {
    let block = DataBlock::of(module)?;
    let (data, relocations) = block.initial(module)?;
    let mut entries = Vec::new();
    for (index, function) in module.functions.iter().enumerate() {
        if !function.is_entry || function.body.is_none() {
            continue;
        }
        let params = params(module, function);
        let reachable = reachable(module, FuncId(index as u32));
        // NVIDIA's loader refuses such a module as a whole (recorded); what the translator provides is no such case.
        let provided = |name| PROVIDED_FUNCTIONS.contains(&name) || is_refused_service(name);
        let undefined = reachable
            .functions
            .iter()
            .map(|&id| module.function(id))
            .find(|f| f.body.is_none() && f.alias.is_none() && !provided(f.name));
        if let Some(f) = undefined {
            let message = format!("unresolved extern function '{}'", head(f.name));
            return Err(TranslateError::invalid(f.line, message));
        }
        let shared = SharedBlock::of(module, &reachable)?;
        if shared.size > MAX_SHARED {
            let (name, size) = (head(function.name), shared.size);
            let message =
                format!("entry function '{name}' uses too much shared data ({size:#x} bytes, {MAX_SHARED:#x} max)");
            return Err(TranslateError::invalid(function.line, message));
        }
        let local = reachable.variables.iter().map(|&id| module.variable(id));
        let local = local
            .filter(|v| v.space == StateSpace::Local)
            .map(|v| v.size)
            .fold(0, u64::saturating_add);
        entries.push(Entry {
            name: function.name.to_owned(),
            param_size: param_size(&params),
            params,
            max_ntid: function.directives.max_ntid,
            req_ntid: function.directives.req_ntid,
            static_shared: shared.size,
            local: u32::try_from(local).unwrap_or(u32::MAX),
        });
    }
    let globals = module
        .globals()
        .filter(|(_, v)| matches!(v.space, StateSpace::Global | StateSpace::Const | StateSpace::Tex))
        .map(|(id, v)| Global {
            name: v.name.to_owned(),
            offset: block.offset(id).unwrap_or(0),
            size: v.size,
            constant: v.space == StateSpace::Const,
            managed: v.managed,
            external: v.linkage == Linkage::Extern,
        });
    Ok(ModuleInfo {
        version: module.version,
        target: module.target.first().copied().unwrap_or_default().to_owned(),
        entries,
        globals: globals.collect(),
        data_size: block.size,
        data_align: block.align,
        data,
        relocations,
    })
}
