//! Names to ids: nested scopes, register ranges and labels.
//!
//! `.reg .b32 %r<1000000>` costs nothing: a register of a range gets its id where it is first used. One table holds
//! every visible meaning of a name, innermost last, so a look-up does not walk the scopes.

use std::collections::HashMap;

use super::ast::{Body, FuncId, Label, LabelId, LabelKind, Operand, RegId, Register, ScalarType, Statement, VarId};
use super::lexer::{head, invalid};
use crate::protocol::TranslateError;

/// The declaration of one register or of a range of them.
#[derive(Clone, Copy, Debug)]
pub struct RegisterDeclaration {
    /// Number of the declaration, unique in the module.
    pub number: u32,
    /// Element type.
    pub ty: ScalarType,
    /// Vector length.
    pub vector: u8,
}

/// What a name means.
#[derive(Clone, Copy, Debug)]
pub enum Entity {
    /// A register, the number in its range (0 for a plain one).
    Register(RegisterDeclaration, u64),
    /// A variable.
    Variable(VarId),
    /// A function.
    Function(FuncId),
}

/// The names in scope.
#[derive(Default)]
pub struct Names<'a> {
    plain: HashMap<&'a str, Vec<(usize, Entity)>>,
    ranges: HashMap<&'a str, Vec<(usize, RegisterDeclaration, u64)>>,
    /// Names that each open scope declared; whether in `ranges`.
    open: Vec<Vec<(bool, &'a str)>>,
}

impl<'a> Names<'a> {
    /// Opens a scope.
    pub fn enter(&mut self) {
        self.open.push(Vec::new());
    }

    /// Closes the innermost scope.
    pub fn leave(&mut self) {
        for (is_range, name) in self.open.pop().unwrap_or_default() {
            if is_range {
                self.ranges.get_mut(name).map(Vec::pop);
            } else {
                self.plain.get_mut(name).map(Vec::pop);
            }
        }
    }

    /// The meaning that the innermost scope itself gives to a name.
    pub fn here(&self, name: &str) -> Option<Entity> {
        let (depth, entity) = self.plain.get(name)?.last()?;
        (*depth == self.open.len()).then_some(*entity)
    }

    /// Declares a name in the innermost scope; the caller has checked [`here`](Self::here).
    pub fn declare(&mut self, name: &'a str, entity: Entity) {
        let depth = self.open.len();
        self.plain.entry(name).or_default().push((depth, entity));
        if let Some(scope) = self.open.last_mut() {
            scope.push((false, name));
        }
    }

    /// Declares `prefix0` to `prefix(count-1)`.
    pub fn declare_range(&mut self, prefix: &'a str, declaration: RegisterDeclaration, count: u64) {
        let depth = self.open.len();
        self.ranges.entry(prefix).or_default().push((depth, declaration, count));
        if let Some(scope) = self.open.last_mut() {
            scope.push((true, prefix));
        }
    }

    /// The innermost meaning of a name.
    pub fn find(&self, name: &str) -> Option<Entity> {
        let mut best = self.plain.get(name).and_then(|list| list.last().copied());
        // `%r12` may be number 12 of `%r<..>` or number 2 of `%r1<..>`.
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).take(19).count();
        for split in (1..=digits).map(|n| name.len() - n) {
            let number = &name[split..];
            if number.len() > 1 && number.starts_with('0') {
                continue;
            }
            let Some(&(depth, declaration, count)) = self.ranges.get(&name[..split]).and_then(|list| list.last())
            else {
                continue;
            };
            let index = number.parse::<u64>().unwrap_or(u64::MAX);
            // A plain declaration and a range compete by depth: the innermost wins.
            if index < count && best.is_none_or(|(d, _)| d < depth) {
                best = Some((depth, Entity::Register(declaration, index)));
            }
        }
        best.map(|(_, entity)| entity)
    }
}

/// A label as one scope knows it.
#[derive(Clone, Copy)]
struct Known {
    id: LabelId,
    defined: bool,
    line: u32,
}

/// The body being parsed: registers and labels get their ids here.
#[derive(Default)]
pub struct BodyBuilder<'a> {
    /// What has been parsed.
    pub body: Body<'a>,
    registers: HashMap<(u32, u64), RegId>,
    /// Labels by scope: a reference binds to the innermost scope that defines the name, before or after it.
    scopes: Vec<HashMap<&'a str, Known>>,
    /// For a label found to be the same as one of an outer scope, that one.
    same: Vec<LabelId>,
}

impl<'a> BodyBuilder<'a> {
    /// First id of a register: vectors take as many ids in a row as they are long.
    pub fn register(&mut self, name: &'a str, declaration: RegisterDeclaration, index: u64) -> RegId {
        let registers = &mut self.body.registers;
        *self.registers.entry((declaration.number, index)).or_insert_with(|| {
            let id = RegId(registers.len() as u32);
            registers.extend((0..declaration.vector).map(|_| Register {
                name,
                ty: declaration.ty,
            }));
            id
        })
    }

    /// Opens a scope of labels.
    pub fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Closes the innermost scope: what it refers to but does not define belongs to the one around it.
    pub fn leave(&mut self) -> Result<(), TranslateError> {
        // At most one entry per name moves outwards at each level, and levels are limited: the work stays linear.
        let inner = self.scopes.pop().unwrap_or_default();
        let mut undefined: Vec<_> = inner.into_iter().filter(|(_, known)| !known.defined).collect();
        let Some(outer) = self.scopes.last_mut() else {
            // The first one in the text: a hash map's order would change from run to run.
            undefined.sort_by_key(|(_, known)| known.line);
            return match undefined.first() {
                Some((name, known)) => invalid(known.line, format!("unknown symbol '{}'", head(name))),
                None => Ok(()),
            };
        };
        for (name, known) in undefined {
            let target = outer.entry(name).or_insert(known).id;
            self.same[known.id.0 as usize] = target;
        }
        Ok(())
    }

    fn known(&mut self, name: &'a str, line: u32) -> &mut Known {
        let Self { body, scopes, same, .. } = self;
        if scopes.is_empty() {
            scopes.push(HashMap::new());
        }
        let innermost = scopes.len() - 1;
        scopes[innermost].entry(name).or_insert_with(|| {
            let id = LabelId(body.labels.len() as u32);
            body.labels.push(Label {
                name,
                kind: LabelKind::Code,
            });
            same.push(id);
            Known {
                id,
                defined: false,
                line,
            }
        })
    }

    /// Refers to a label, defined or not yet.
    pub fn refer(&mut self, name: &'a str, line: u32) -> LabelId {
        self.known(name, line).id
    }

    /// Defines a label in the innermost scope.
    pub fn define(&mut self, name: &'a str, line: u32) -> Result<LabelId, TranslateError> {
        let known = self.known(name, line);
        if known.defined {
            return invalid(line, format!("label {} is defined twice", head(name)));
        }
        known.defined = true;
        Ok(known.id)
    }

    /// The finished body: labels that turned out to be the same get one id.
    pub fn finish(mut self) -> Body<'a> {
        // An entry points outwards, and outer entries may point further: flatten, shortening as we go.
        for start in 0..self.same.len() {
            let mut root = self.same[start];
            while self.same[root.0 as usize] != root {
                let further = self.same[self.same[root.0 as usize].0 as usize];
                self.same[root.0 as usize] = further;
                root = further;
            }
            self.same[start] = root;
        }
        let same = self.same;
        let resolve = |label: &mut LabelId| *label = same[label.0 as usize];
        for statement in &mut self.body.statements {
            match statement {
                Statement::Label(label) => resolve(label),
                Statement::Instruction(instruction) => {
                    for operand in &mut instruction.operands {
                        if let Operand::Label(label) = operand {
                            resolve(label);
                        }
                    }
                    if let Some(label) = instruction.call.as_mut().and_then(|c| c.targets.as_mut()) {
                        resolve(label);
                    }
                }
            }
        }
        for label in &mut self.body.labels {
            if let LabelKind::BranchTargets(targets) = &mut label.kind {
                targets.iter_mut().for_each(resolve);
            }
        }
        self.body
    }
}
