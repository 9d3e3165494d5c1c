//! Bounds on what a module may ask of the translator. All are far above what compilers emit; passing one is an
//! error with a line, never an allocation.

/// Source text, in bytes.
pub const SOURCE: usize = 512 << 20;
/// Nested `{ }` scopes in a body.
pub const SCOPES: usize = 128;
/// Nested parentheses and unary operators in a constant expression.
pub const EXPRESSION_DEPTH: u32 = 64;
/// Array dimensions.
pub const DIMENSIONS: usize = 8;
/// Alignment, in bytes.
pub const ALIGN: u64 = 4096;
/// Size of one variable, in bytes.
pub const VARIABLE: u64 = 1 << 32;
/// Initialised bytes of all variables together.
pub const INITIALISED: u64 = 256 << 20;
/// Operands of one instruction, elements of one vector operand, parameters of one function.
pub const LIST: usize = 4096;
/// Parameter block of a kernel, PTX ISA 8.1 and later (before: 4352).
pub const KERNEL_PARAMS: u64 = 32764;
/// Mistakes that are told of one module.
pub const FAULTS: usize = 64;
/// Parameters of a function, in bytes.
pub const FUNCTION_PARAMS: u64 = 16 << 20;
/// Newest major `.version` accepted.
pub const VERSION_MAJOR: u32 = 9;
