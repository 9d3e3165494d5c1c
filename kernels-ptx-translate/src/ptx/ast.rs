//! The syntax tree of a PTX module, names already resolved.
//!
//! Scopes are gone: every register, label, variable and function has an id, unique within its function (registers,
//! labels) or its module (variables, functions), so a body is one flat list of statements. Vector registers are gone
//! too: `.reg .v4 .f32 v` is four registers, `v` is the vector of them and `v.x` the first one. Constant expressions
//! are folded. Strings are slices of the source text.

use crate::protocol::TranslateError;

/// A register of one function: index into [`Body::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegId(pub u32);

/// A label of one function: index into [`Body::labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// A variable of the module, whatever its scope: index into [`Module::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// A function or kernel: index into [`Module::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);

/// A parsed module.
#[derive(Clone, Debug, Default)]
pub struct Module<'a> {
    /// `.version` major and minor.
    pub version: (u32, u32),
    /// `.target` words: `sm_80`, then options such as `texmode_independent` or `debug`.
    pub target: Vec<&'a str>,
    /// `.address_size`: 64, or 32 where the directive is absent.
    pub address_size: u32,
    /// Every variable, of the module and of its functions.
    pub variables: Vec<Variable<'a>>,
    /// Functions and kernels; a prototype and its definition are one.
    pub functions: Vec<Function<'a>>,
}

impl<'a> Module<'a> {
    /// The variable with this id.
    pub fn variable(&self, id: VarId) -> &Variable<'a> {
        &self.variables[id.0 as usize]
    }

    /// The function with this id.
    pub fn function(&self, id: FuncId) -> &Function<'a> {
        &self.functions[id.0 as usize]
    }

    /// The `.entry` of this name that has a body.
    pub fn entry(&self, name: &str) -> Option<FuncId> {
        let at = self
            .functions
            .iter()
            .position(|f| f.is_entry && f.body.is_some() && f.name == name)?;
        Some(FuncId(at as u32))
    }

    /// Module-scope variables in source order.
    pub fn globals(&self) -> impl Iterator<Item = (VarId, &Variable<'a>)> {
        self.variables
            .iter()
            .enumerate()
            .filter(|(_, v)| v.owner.is_none())
            .map(|(i, v)| (VarId(i as u32), v))
    }
}

/// Fundamental types (PTX ISA, "Types") and the opaque ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum ScalarType {
    B8,
    B16,
    B32,
    B64,
    B128,
    B1024,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    U16x2,
    S16x2,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F32x2,
    F64,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    E4m3x4,
    E5m2x4,
    E2m3,
    E3m2,
    E2m1,
    E2m3x2,
    E3m2x2,
    E2m1x2,
    E2m3x4,
    E3m2x4,
    E2m1x4,
    Ue8m0,
    Ue8m0x2,
    Pred,
    Texref,
    Samplerref,
    Surfref,
}

impl ScalarType {
    /// Every type with its PTX name (without the dot) and its size in bits. Sub-byte floats are counted as stored.
    pub const ALL: &'static [(&'static str, ScalarType, u32)] = {
        use ScalarType::*;
        &[
            ("b8", B8, 8),
            ("b16", B16, 16),
            ("b32", B32, 32),
            ("b64", B64, 64),
            ("b128", B128, 128),
            ("b1024", B1024, 1024),
            ("u8", U8, 8),
            ("u16", U16, 16),
            ("u32", U32, 32),
            ("u64", U64, 64),
            ("s8", S8, 8),
            ("s16", S16, 16),
            ("s32", S32, 32),
            ("s64", S64, 64),
            ("u16x2", U16x2, 32),
            ("s16x2", S16x2, 32),
            ("f16", F16, 16),
            ("f16x2", F16x2, 32),
            ("bf16", Bf16, 16),
            ("bf16x2", Bf16x2, 32),
            ("tf32", Tf32, 32),
            ("f32", F32, 32),
            ("f32x2", F32x2, 64),
            ("f64", F64, 64),
            ("e4m3", E4m3, 8),
            ("e5m2", E5m2, 8),
            ("e4m3x2", E4m3x2, 16),
            ("e5m2x2", E5m2x2, 16),
            ("e4m3x4", E4m3x4, 32),
            ("e5m2x4", E5m2x4, 32),
            ("e2m3", E2m3, 8),
            ("e3m2", E3m2, 8),
            ("e2m1", E2m1, 8),
            ("e2m3x2", E2m3x2, 16),
            ("e3m2x2", E3m2x2, 16),
            ("e2m1x2", E2m1x2, 8),
            ("e2m3x4", E2m3x4, 32),
            ("e3m2x4", E3m2x4, 32),
            ("e2m1x4", E2m1x4, 16),
            ("ue8m0", Ue8m0, 8),
            ("ue8m0x2", Ue8m0x2, 16),
            ("pred", Pred, 1),
            ("texref", Texref, 64),
            ("samplerref", Samplerref, 64),
            ("surfref", Surfref, 64),
        ]
    };

    /// The type named `name` (without the dot).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(n, ..)| *n == name).map(|&(_, t, _)| t)
    }

    /// Its PTX name, without the dot.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, t, _)| *t == self).map_or("?", |(n, ..)| n)
    }

    /// Size in bits; 1 for `.pred`.
    pub fn bits(self) -> u32 {
        Self::ALL.iter().find(|(_, t, _)| *t == self).map_or(0, |(.., b)| *b)
    }

    /// Size in memory in bytes; 1 for `.pred`, 8 for the opaque references.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// `.s8` to `.s64` and `.s16x2`.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64 | Self::S16x2)
    }

    /// `.u*` or `.s*`.
    pub fn is_integer(self) -> bool {
        self.is_signed() || matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64 | Self::U16x2)
    }

    /// `.b8` to `.b1024`.
    pub fn is_bits(self) -> bool {
        matches!(
            self,
            Self::B8 | Self::B16 | Self::B32 | Self::B64 | Self::B128 | Self::B1024
        )
    }

    /// A floating-point type, packed ones included.
    pub fn is_float(self) -> bool {
        !self.is_integer()
            && !self.is_bits()
            && !matches!(self, Self::Pred | Self::Texref | Self::Samplerref | Self::Surfref)
    }
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum StateSpace {
    Const,
    Global,
    Local,
    Param,
    Shared,
    /// The deprecated `.tex` space: a `.texref` in `.global`.
    Tex,
}

/// Linking directive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Linkage {
    /// None given: private to the module.
    #[default]
    Internal,
    Visible,
    Extern,
    Weak,
    Common,
}

/// A variable outside the register space.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Source line, 1-based.
    pub line: u32,
    /// State space.
    pub space: StateSpace,
    /// Linking directive.
    pub linkage: Linkage,
    /// Alignment in bytes: the declared one, else that of the (vector) type. A power of two.
    pub align: u32,
    /// Element type.
    pub ty: ScalarType,
    /// Vector length: 1, 2, 4 or 8.
    pub vector: u8,
    /// Array dimensions, outermost first; empty for a scalar. A dimension left open by `[]` is 0 unless the
    /// initialiser fixed it.
    pub dims: Vec<u64>,
    /// Declared with an open dimension and no initialiser: its size comes from elsewhere (dynamic shared memory).
    pub is_unsized: bool,
    /// Size in bytes; 0 when unsized.
    pub size: u64,
    /// Initial value; absent means zero.
    pub init: Option<Initializer>,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// For a kernel parameter, `.ptr` was given: state space pointed to, if named, and alignment.
    pub pointer: Option<(Option<StateSpace>, u32)>,
    /// The function whose parameter or local variable it is; `None` at module scope.
    pub owner: Option<FuncId>,
}

/// The initial value of a variable, flattened to bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Initializer {
    /// Little-endian bytes from offset 0; what is missing up to the variable's size is zero.
    pub bytes: Vec<u8>,
    /// Addresses to be filled in; the bytes at their place are zero.
    pub addresses: Vec<InitAddress>,
}

/// An address in an initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitAddress {
    /// Byte offset in the variable.
    pub at: u64,
    /// Bytes written there: the element's size.
    pub size: u32,
    /// What it points to.
    pub target: Symbol,
    /// Added to the address.
    pub addend: i64,
    /// `generic(x)`: the generic address rather than the address in its state space.
    pub generic: bool,
    /// `mask(m, x)`: the address is masked by this and shifted right by its trailing zeros; all ones without.
    pub mask: u64,
}

/// Something with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A variable.
    Variable(VarId),
    /// A function or kernel.
    Function(FuncId),
}

/// A `.func` or `.entry`.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Source line, 1-based.
    pub line: u32,
    /// `.entry` rather than `.func`.
    pub is_entry: bool,
    /// Linking directive.
    pub linkage: Linkage,
    /// Parameters in order.
    pub params: Vec<Parameter>,
    /// Return values, at most one in today's PTX.
    pub returns: Vec<Parameter>,
    /// Performance-tuning and other directives of the header.
    pub directives: Directives<'a>,
    /// `.alias`: the function that stands for this one.
    pub alias: Option<FuncId>,
    /// Absent for a prototype.
    pub body: Option<Body<'a>>,
}

/// A parameter or return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A variable in `.param` space.
    Variable(VarId),
    /// A register (`.func` only); valid in the function's body, which declares it.
    Register(RegId, ScalarType),
}

/// Directives of a function header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives<'a> {
    /// `.maxntid`, missing dimensions 1.
    pub max_ntid: Option<[u32; 3]>,
    /// `.reqntid`, missing dimensions 1.
    pub req_ntid: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub min_ncta_per_sm: Option<u32>,
    /// `.maxnctapersm` (deprecated).
    pub max_ncta_per_sm: Option<u32>,
    /// `.maxnreg`.
    pub max_nreg: Option<u32>,
    /// `.reqnctapercluster`, missing dimensions 1.
    pub req_ncta_per_cluster: Option<[u32; 3]>,
    /// `.maxclusterrank`.
    pub max_cluster_rank: Option<u32>,
    /// `.explicitcluster`.
    pub explicit_cluster: bool,
    /// `.blocksareclusters`.
    pub blocks_are_clusters: bool,
    /// `.noreturn`.
    pub no_return: bool,
    /// `.abi_preserve` and `.abi_preserve_control` counts, other numeric directives not listed here: name and value.
    pub others: Vec<(&'a str, u64)>,
    /// `.pragma` strings of the header and of the body.
    pub pragmas: Vec<&'a str>,
}

/// The body of a function.
#[derive(Clone, Debug, Default)]
pub struct Body<'a> {
    /// Registers that the body names; a declared but unused register of a range is not here.
    pub registers: Vec<Register<'a>>,
    /// Labels.
    pub labels: Vec<Label<'a>>,
    /// Variables declared in the body (`.shared`, `.local`, `.param`, `.global`, `.const`), in source order.
    pub variables: Vec<VarId>,
    /// Instructions and label positions, in source order.
    pub statements: Vec<Statement<'a>>,
}

impl<'a> Body<'a> {
    /// The register with this id.
    pub fn register(&self, id: RegId) -> &Register<'a> {
        &self.registers[id.0 as usize]
    }

    /// The label with this id.
    pub fn label(&self, id: LabelId) -> &Label<'a> {
        &self.labels[id.0 as usize]
    }
}

/// A scalar register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register<'a> {
    /// Its name; elements of a vector register all carry the vector's name.
    pub name: &'a str,
    /// Its type; `.pred` for predicates.
    pub ty: ScalarType,
}

/// A label.
#[derive(Clone, Debug)]
pub struct Label<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it marks.
    pub kind: LabelKind<'a>,
}

/// What a label marks.
#[derive(Clone, Debug, Default)]
pub enum LabelKind<'a> {
    /// A position in the code: [`Statement::Label`].
    #[default]
    Code,
    /// `.branchtargets`: the table of a `brx.idx`.
    BranchTargets(Vec<LabelId>),
    /// `.calltargets`: the functions that an indirect call may reach.
    CallTargets(Vec<FuncId>),
    /// `.callprototype`: the signature of an indirect call.
    CallPrototype(Prototype<'a>),
}

/// The signature given by `.callprototype`.
#[derive(Clone, Debug, Default)]
pub struct Prototype<'a> {
    /// Return values.
    pub returns: Vec<PrototypeParam<'a>>,
    /// Parameters.
    pub params: Vec<PrototypeParam<'a>>,
    /// `.noreturn`.
    pub no_return: bool,
}

/// A parameter of a prototype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrototypeParam<'a> {
    /// Its name, often `_`.
    pub name: &'a str,
    /// `.reg` rather than `.param`.
    pub is_register: bool,
    /// Element type.
    pub ty: ScalarType,
    /// Vector length.
    pub vector: u8,
    /// Alignment in bytes.
    pub align: u32,
    /// Size in bytes.
    pub size: u64,
}

/// One element of a body.
#[derive(Clone, Debug)]
pub enum Statement<'a> {
    /// A label stands here.
    Label(LabelId),
    /// An instruction.
    Instruction(Instruction<'a>),
}

/// An instruction: `@p opcode.modifier.modifier operand, operand;`
#[derive(Clone, Debug)]
pub struct Instruction<'a> {
    /// Source line, 1-based.
    pub line: u32,
    /// Guard: `@p` or `@!p`.
    pub predicate: Option<Predicate>,
    /// First word: `ld`, `setp`, `mma`.
    pub opcode: &'a str,
    /// The words after it without their dots, in order: `["global", "L1::evict_last", "v2", "u32"]`.
    pub modifiers: Vec<&'a str>,
    /// Operands, destination first. Empty for `call`.
    pub operands: Vec<Operand<'a>>,
    /// The parts of a `call`.
    pub call: Option<Box<Call<'a>>>,
}

impl Instruction<'_> {
    /// Whether a modifier is present.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// The types among the modifiers, in order.
    pub fn types(&self) -> impl DoubleEndedIterator<Item = ScalarType> + '_ {
        self.modifiers.iter().filter_map(|m| ScalarType::from_name(m))
    }

    /// Vector length given by `.v2`, `.v4` or `.v8`, else 1.
    pub fn vector(&self) -> u8 {
        self.modifiers
            .iter()
            .find_map(|m| match *m {
                "v2" => Some(2),
                "v4" => Some(4),
                "v8" => Some(8),
                _ => None,
            })
            .unwrap_or(1)
    }

    /// Opcode and modifiers as written: `ld.global.v2.u32`.
    pub fn name(&self) -> String {
        let mut name = String::from(self.opcode);
        for modifier in &self.modifiers {
            name.push('.');
            name.push_str(modifier);
        }
        name
    }

    /// The error that says that this instruction is not translated.
    pub fn unsupported(&self) -> TranslateError {
        TranslateError::Unsupported {
            line: self.line,
            construct: self.name(),
        }
    }
}

/// A guard predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// The predicate register.
    pub register: RegId,
    /// `@!p`.
    pub negated: bool,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A scalar register.
    Register(RegId),
    /// `!p`.
    Not(RegId),
    /// `-a`: only in operands that are no constant.
    Negate(RegId),
    /// `a.b0` or `a.h1`: part of a register (video instructions).
    Part(RegId, &'a str),
    /// A constant.
    Immediate(Immediate),
    /// A special register: `%tid.x` is `("%tid", Some("x"))`, `%clock64` is `("%clock64", None)`.
    Special(&'a str, Option<&'a str>),
    /// The address of a variable or function, plus bytes: `mov.u64 %rd1, table+16`. A function called or a parameter
    /// passed by a `call` also appears so.
    Symbol(Symbol, i64),
    /// A label.
    Label(LabelId),
    /// `[address]`.
    Address(Address),
    /// `[a, b, {c, d}]`: texture, surface and tensor operands.
    Tuple(Vec<Operand<'a>>),
    /// `{a, b}`, or a whole vector register.
    Vector(Vec<Operand<'a>>),
    /// `d|p`.
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `_`: the result is not wanted.
    Sink,
}

/// A constant, as written; its use decides the width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Immediate {
    /// An integer, two's complement in 64 bits (a negative constant is sign-extended).
    Int(u64),
    /// `0fXXXXXXXX`: the bits of a single.
    F32(u32),
    /// `0dXXXXXXXXXXXXXXXX` or a decimal floating constant: the bits of a double.
    F64(u64),
}

/// `[base+offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// What the offset is added to.
    pub base: AddressBase,
    /// Bytes.
    pub offset: i64,
}

/// Base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressBase {
    /// A register.
    Register(RegId),
    /// A variable or function.
    Symbol(Symbol),
    /// None: the offset is the address.
    Absolute,
}

/// The parts of `call (ret), callee, (args), targets;`
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'a> {
    /// Where the results go: `.param` variables ([`Operand::Symbol`]), registers or [`Operand::Sink`].
    pub returns: Vec<Operand<'a>>,
    /// [`Operand::Symbol`] of a function, or the register that holds its address.
    pub callee: Operand<'a>,
    /// Arguments: `.param` variables, registers or constants.
    pub arguments: Vec<Operand<'a>>,
    /// For an indirect call, the label of its `.calltargets` or `.callprototype`.
    pub targets: Option<LabelId>,
}
