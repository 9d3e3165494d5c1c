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
pub mod layout;
