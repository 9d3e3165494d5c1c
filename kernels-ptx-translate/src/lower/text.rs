//! Writes the body of one LLVM function: fresh names, labels, stack slots and checked calls.
//!
//! Only syntax that LLVM 15 already had is written: opaque pointers, no flags newer than `nuw`/`nsw`, no constant
//! expressions but casts.

use std::collections::BTreeSet;
use std::fmt::{Arguments, Write as _};

use super::{intrinsics, runtime};

/// An LLVM value as it is written in an operand: `%v12`, `-5`, `true`.
pub type Val = String;

/// The text of a function in the making.
#[derive(Default)]
pub struct Text {
    /// Stack slots, written at the head of the entry block whatever the place that asked for them.
    slots: String,
    body: String,
    next: u32,
    /// Intrinsics and helpers called.
    pub uses: BTreeSet<String>,
    /// A name or signature outside the closed tables: a fault of the translator, reported instead of compiled.
    pub broken: Option<String>,
}

impl Text {
    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Writes `%vN = <expression>` and gives its name.
    pub fn let_(&mut self, expression: Arguments<'_>) -> Val {
        let name = format!("%v{}", self.fresh());
        let _ = writeln!(self.body, "  {name} = {expression}");
        name
    }

    /// Writes an instruction without a result.
    pub fn stmt(&mut self, instruction: Arguments<'_>) {
        let _ = writeln!(self.body, "  {instruction}");
    }

    /// A new label name; place it with [`Text::place`].
    pub fn label(&mut self) -> String {
        format!("t{}", self.fresh())
    }

    /// Starts the block `label`. The block before must have ended in a terminator.
    pub fn place(&mut self, label: &str) {
        let _ = writeln!(self.body, "{label}:");
    }

    /// A stack slot of the function: `ptr addrspace(5)`.
    pub fn slot(&mut self, ty: &str, align: u32) -> Val {
        let name = format!("%s{}", self.fresh());
        let _ = writeln!(self.slots, "  {name} = alloca {ty}, align {align}, addrspace(5)");
        name
    }

    /// Writes a line into the entry block, after the stack slots so far.
    pub fn at_entry(&mut self, instruction: Arguments<'_>) {
        let _ = writeln!(self.slots, "  {instruction}");
    }

    /// Calls an intrinsic or a helper of the closed tables. The result is empty for `void`.
    pub fn call(&mut self, name: &str, args: &[&str]) -> Val {
        let Some(signature) = intrinsics::signature(name).or_else(|| runtime::signature(name)) else {
            self.broken
                .get_or_insert_with(|| format!("{name} is not in the table of functions"));
            return "undef".into();
        };
        if signature.args.len() != args.len() {
            self.broken
                .get_or_insert_with(|| format!("{name} takes {} arguments, not {}", signature.args.len(), args.len()));
        }
        if !self.uses.contains(name) {
            self.uses.insert(name.to_string());
        }
        let list: Vec<String> = signature
            .args
            .iter()
            .zip(args)
            .map(|(ty, v)| format!("{ty} {v}"))
            .collect();
        let list = list.join(", ");
        // Helpers may look at which lanes are active: equal calls in two arms of a branch must not become one.
        let site = if name.starts_with("rg_") { " #3" } else { "" };
        if signature.ret == "void" {
            self.stmt(format_args!("call void @{name}({list}){site}"));
            String::new()
        } else {
            self.let_(format_args!("call {} @{name}({list}){site}", signature.ret))
        }
    }

    /// Slots and body: the function's text between the braces.
    pub fn finish(self) -> String {
        format!("entry:\n{}{}", self.slots, self.body)
    }
}

/// `ir!(text, "add i32 {a}, {b}")` writes an instruction with a result.
macro_rules! ir {
    ($text:expr, $($format:tt)*) => { $text.let_(format_args!($($format)*)) };
}

/// `st!(text, "br label %{l}")` writes an instruction without a result.
macro_rules! st {
    ($text:expr, $($format:tt)*) => { $text.stmt(format_args!($($format)*)) };
}

pub(crate) use {ir, st};

/// An integer constant of `bits` bits as LLVM reads it on every version: signed decimal.
pub fn int(value: u64, bits: u32) -> Val {
    match bits {
        1 => if value & 1 == 1 { "true" } else { "false" }.into(),
        8 => (value as u8 as i8).to_string(),
        16 => (value as u16 as i16).to_string(),
        32 => (value as u32 as i32).to_string(),
        _ => (value as i64).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fit_their_width() {
        assert_eq!(int(0xffff_ffff, 32), "-1");
        assert_eq!(int(0x80, 8), "-128");
        assert_eq!(int(1, 1), "true");
        assert_eq!(int(u64::MAX, 64), "-1");
    }

    #[test]
    fn a_call_outside_the_table_is_caught() {
        let mut text = Text::default();
        text.call("llvm.sin.f64", &["0.0"]);
        assert!(text.broken.is_some());
        let mut text = Text::default();
        text.call("llvm.ctpop.i32", &["1", "2"]);
        assert!(text.broken.is_some());
    }
}
