//! PTX text to a resolved syntax tree: lexer, parser and the layout of what a module declares.
//!
//! ```text
//! text -> lexer (tokens with lines) -> parser + scope (names become ids) -> ast::Module -> layout / inspect
//! ```
//!
//! Everything that PTX ISA 9 can write parses, whether or not it can be lowered; input of any kind ends in a
//! [`TranslateError`](crate::protocol::TranslateError) with a line, never in a panic, a deep recursion or a runaway
//! allocation (see [`limits`]).

pub mod ast;
mod declare;
mod expression;
mod function;
pub mod layout;
pub mod lexer;
pub mod limits;
mod opcodes;
mod parser;
mod scope;
mod statement;

pub use parser::parse;
