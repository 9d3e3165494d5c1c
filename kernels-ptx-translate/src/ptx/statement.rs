//! Bodies: scopes, labels, instructions and their operands.

use super::ast::{
    Address, AddressBase, Call, FuncId, Instruction, LabelKind, Linkage, Operand, Predicate, RegId, ScalarType,
    Statement, Symbol,
};
use super::lexer::{Token, head, invalid};
use super::limits;
use super::opcodes::Requirement::{Feature, Target, Version};
use super::opcodes::{is_opcode, is_special, requirements};
use super::parser::{Mistake, Parser, architecture};
use super::scope::{Entity, RegisterDeclaration};
use crate::protocol::TranslateError;

impl<'a> Parser<'a> {
    /// The statements of a body, from its `{` to its `}`.
    pub(super) fn statements(&mut self, owner: FuncId) -> Result<(), TranslateError> {
        let mut depth = 0usize;
        let start = self.line;
        loop {
            let line = self.line;
            match self.token {
                // Scopes nest without recursion: a body may open as many as it likes and meets a limit, not the stack.
                Token::Punct("{") => {
                    depth += 1;
                    if depth > limits::SCOPES {
                        return invalid(line, format!("more than {} nested scopes", limits::SCOPES));
                    }
                    self.bump()?;
                    self.names.enter();
                    self.body.enter();
                }
                Token::Punct("}") => {
                    // Labels first, then the brace that closes the body: an undefined label is reported by its own line.
                    self.names.leave();
                    self.body.leave()?;
                    depth -= 1;
                    self.bump()?;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Token::Punct(";") => self.bump()?,
                Token::Punct("@") => {
                    self.bump()?;
                    let predicate = self.guard()?;
                    let opcode = self.identifier()?;
                    self.instruction(line, Some(predicate), opcode)?;
                }
                // Only the colon tells a label from an opcode.
                Token::Ident(name) => {
                    self.bump()?;
                    if self.accept(":")? {
                        self.label(name, line)?;
                    } else {
                        self.instruction(line, None, name)?;
                    }
                }
                Token::Dot(word) => {
                    self.bump()?;
                    match word {
                        "reg" => self.registers()?,
                        "shared" | "local" | "param" | "global" | "const" => {
                            self.variables(word, Linkage::Internal, Some(owner))?;
                        }
                        "loc" => self.location()?,
                        "file" => self.file()?,
                        "pragma" => {
                            let pragmas = self.pragma()?;
                            self.module.functions[owner.0 as usize]
                                .directives
                                .pragmas
                                .extend(pragmas);
                        }
                        _ => return invalid(line, format!("unknown directive '.{}' in a body", head(word))),
                    }
                }
                Token::End => return invalid(start, "a body is not closed"),
                _ => return self.unexpected(),
            }
        }
    }

    fn guard(&mut self) -> Result<Predicate, TranslateError> {
        let negated = self.accept("!")?;
        let line = self.line;
        let name = self.identifier()?;
        let register = self.predicate_register(name, line)?;
        Ok(Predicate { register, negated })
    }

    fn predicate_register(&mut self, name: &'a str, line: u32) -> Result<RegId, TranslateError> {
        match self.names.find(name) {
            Some(Entity::Register(declaration, index)) if declaration.ty == ScalarType::Pred => {
                Ok(self.body.register(name, declaration, index))
            }
            Some(_) => invalid(line, format!("{} is no predicate", head(name))),
            None => {
                self.unknown.push((line, name));
                self.fault(line, "predicate expression expected")?;
                // The module is refused, so nobody asks which.
                Ok(RegId(0))
            }
        }
    }

    /// After `name:`.
    fn label(&mut self, name: &'a str, line: u32) -> Result<(), TranslateError> {
        let id = self.body.define(name, line)?;
        let Token::Dot(word @ ("branchtargets" | "calltargets" | "callprototype")) = self.token else {
            self.body.body.statements.push(Statement::Label(id));
            return Ok(());
        };
        self.bump()?;
        let kind = match word {
            "callprototype" => LabelKind::CallPrototype(self.call_prototype()?),
            "calltargets" => {
                let mut targets = Vec::new();
                for (name, line) in self.name_list()? {
                    match self.names.find(name) {
                        Some(Entity::Function(id)) => targets.push(id),
                        _ => return invalid(line, format!("unknown function '{}'", head(name))),
                    }
                }
                LabelKind::CallTargets(targets)
            }
            _ => {
                let names = self.name_list()?;
                LabelKind::BranchTargets(
                    names
                        .into_iter()
                        .map(|(name, line)| self.body.refer(name, line))
                        .collect(),
                )
            }
        };
        self.body.body.labels[id.0 as usize].kind = kind;
        Ok(())
    }

    /// `a, b, c;` with lines.
    fn name_list(&mut self) -> Result<Vec<(&'a str, u32)>, TranslateError> {
        let mut names = Vec::new();
        loop {
            let line = self.line;
            names.push((self.identifier()?, line));
            if !self.accept(",")? {
                self.expect(";")?;
                return Ok(names);
            }
        }
    }

    /// Modifiers, operands and `;` after an opcode.
    fn instruction(&mut self, line: u32, predicate: Option<Predicate>, opcode: &'a str) -> Result<(), TranslateError> {
        let mut instruction = Instruction {
            line,
            predicate,
            opcode,
            modifiers: Vec::new(),
            operands: Vec::new(),
            call: None,
        };
        while let Token::Dot(word) = self.token {
            instruction.modifiers.push(word);
            self.bump()?;
        }
        match opcode {
            "call" => instruction.call = Some(Box::new(self.call()?)),
            // Labels are a name space of their own: a branch to `x` does not mean the variable `x`.
            "bra" => instruction.operands.push(self.label_operand()?),
            "brx" => {
                instruction.operands.push(self.operand(0)?);
                self.expect(",")?;
                instruction.operands.push(self.label_operand()?);
            }
            _ => instruction.operands = self.operand_list(";")?,
        }
        self.expect(";")?;
        self.check_instruction(line, opcode)?;
        self.body.body.statements.push(Statement::Instruction(instruction));
        Ok(())
    }

    /// Notes what is wrong with an instruction that was read to its end, in the order of NVIDIA's assembler (recorded).
    fn check_instruction(&mut self, line: u32, opcode: &str) -> Result<(), TranslateError> {
        let mistake = self.mistake.take();
        // Later versions may add instructions: those are reported where they are lowered.
        if self.module.version <= (9, 0) && !is_opcode(opcode) {
            return self.fault(line, format!("not a name of any known instruction: '{}'", head(opcode)));
        }
        match mistake {
            None => {}
            Some(Mistake::Operand) => self.fault(line, format!("arguments mismatch for instruction '{opcode}'"))?,
            Some(Mistake::Address) => self.fault(line, format!("illegal operand type to instruction '{opcode}'"))?,
            Some(Mistake::Callee(name)) => {
                self.fault(line, format!("call to '{}' requires call prototype", head(name)))?;
            }
        }
        let target = self.module.target.first().and_then(|word| architecture(word));
        for requirement in requirements(opcode) {
            match *requirement {
                Version(major, minor) if self.module.version < (major, minor) => self.fault(
                    line,
                    format!("feature '{opcode}' requires PTX ISA .version {major}.{minor} or later"),
                )?,
                Feature(needed) if target < Some(needed) => {
                    self.fault(
                        line,
                        format!("feature '{opcode}' requires .target sm_{needed} or higher"),
                    )?;
                }
                Target(needed) if target < Some(needed) => {
                    self.fault(
                        line,
                        format!("instruction '{opcode}' requires .target sm_{needed} or higher"),
                    )?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Operands up to, not including, `end`.
    fn operand_list(&mut self, end: &str) -> Result<Vec<Operand<'a>>, TranslateError> {
        let mut list = Vec::new();
        if matches!(self.token, Token::Punct(p) if p == end) {
            return Ok(list);
        }
        loop {
            if list.len() == limits::LIST {
                return invalid(self.line, "too many operands");
            }
            list.push(self.operand(0)?);
            if !self.accept(",")? {
                return Ok(list);
            }
        }
    }

    fn label_operand(&mut self) -> Result<Operand<'a>, TranslateError> {
        let line = self.line;
        let name = self.identifier()?;
        Ok(Operand::Label(self.body.refer(name, line)))
    }

    /// `(ret), callee, (args), targets`
    fn call(&mut self) -> Result<Call<'a>, TranslateError> {
        let mut returns = Vec::new();
        if self.accept("(")? {
            returns = self.operand_list(")")?;
            self.expect(")")?;
            self.expect(",")?;
        }
        let line = self.line;
        let token = self.token;
        let callee = self.operand(0)?;
        if let (Operand::Sink, Token::Ident(name)) = (&callee, token) {
            self.mistake = Some(Mistake::Callee(name));
        } else if !matches!(callee, Operand::Symbol(Symbol::Function(_), 0) | Operand::Register(_)) {
            return invalid(line, "a call needs a function or a register");
        }
        let mut call = Call {
            returns,
            callee,
            arguments: Vec::new(),
            targets: None,
        };
        if self.accept(",")? {
            let has_arguments = self.accept("(")?;
            if has_arguments {
                call.arguments = self.operand_list(")")?;
                self.expect(")")?;
            }
            // `call f, table` and `call f, (a), table`: what follows the arguments names the possible targets.
            if !has_arguments || self.accept(",")? {
                let line = self.line;
                let name = self.identifier()?;
                call.targets = Some(self.body.refer(name, line));
            }
        }
        Ok(call)
    }

    /// One operand; `depth` counts enclosing braces and brackets.
    fn operand(&mut self, depth: u32) -> Result<Operand<'a>, TranslateError> {
        let line = self.line;
        // The deepest that PTX writes is `[t, {a, b}]`; deeper nesting would recurse.
        if depth > 2 {
            return invalid(line, "operands are nested too deeply");
        }
        match self.token {
            Token::Ident("_") => {
                self.bump()?;
                self.pair(Operand::Sink)
            }
            Token::Ident(name) if name != "WARP_SZ" => {
                self.bump()?;
                self.named_operand(name, line)
            }
            Token::Punct("{") => {
                self.bump()?;
                let mut elements = Vec::new();
                while !self.accept("}")? {
                    if !elements.is_empty() {
                        self.expect(",")?;
                    }
                    if elements.len() == limits::LIST {
                        return invalid(line, "too many elements");
                    }
                    elements.push(self.operand(depth + 1)?);
                }
                Ok(Operand::Vector(elements))
            }
            Token::Punct("[") => {
                self.bump()?;
                self.bracket(depth)
            }
            // A sign may begin a constant or stand before a register.
            Token::Punct(sign @ ("!" | "-")) => {
                self.bump()?;
                let Token::Ident(name) = self.token else {
                    return self.signed_constant(sign, line);
                };
                let name_line = self.line;
                if sign == "!" {
                    self.bump()?;
                    return Ok(Operand::Not(self.predicate_register(name, name_line)?));
                }
                if name == "WARP_SZ" {
                    return self.signed_constant(sign, line);
                }
                self.bump()?;
                match self.named_operand(name, name_line)? {
                    Operand::Register(id) => Ok(Operand::Negate(id)),
                    _ => invalid(line, "only a constant or a register can be negated"),
                }
            }
            _ if self.at_constant() => Ok(Operand::Immediate(self.constant()?.immediate())),
            _ => self.unexpected(),
        }
    }

    /// A constant whose leading `-` or `!` is already taken.
    fn signed_constant(&mut self, sign: &str, line: u32) -> Result<Operand<'a>, TranslateError> {
        Ok(Operand::Immediate(self.constant_after(sign, line)?.immediate()))
    }

    /// `a|b`, where `a` has been read.
    fn pair(&mut self, first: Operand<'a>) -> Result<Operand<'a>, TranslateError> {
        if !self.accept("|")? {
            return Ok(first);
        }
        let line = self.line;
        let name = self.identifier()?;
        let second = if name == "_" {
            Operand::Sink
        } else {
            self.resolve(name, line)?
        };
        Ok(Operand::Pair(Box::new(first), Box::new(second)))
    }

    /// What a name is. One that nothing declares is noted, and stands for nothing.
    fn resolve(&mut self, name: &'a str, line: u32) -> Result<Operand<'a>, TranslateError> {
        Ok(match self.names.find(name) {
            Some(Entity::Register(declaration, index)) => self.whole_register(name, declaration, index),
            Some(Entity::Variable(id)) => Operand::Symbol(Symbol::Variable(id), 0),
            Some(Entity::Function(id)) => Operand::Symbol(Symbol::Function(id), 0),
            None if is_special(name) => Operand::Special(name, None),
            None => {
                self.unknown.push((line, name));
                self.mistake.get_or_insert(Mistake::Operand);
                Operand::Sink
            }
        })
    }

    fn whole_register(&mut self, name: &'a str, declaration: RegisterDeclaration, index: u64) -> Operand<'a> {
        let first = self.body.register(name, declaration, index);
        if declaration.vector == 1 {
            return Operand::Register(first);
        }
        let elements = (0..u32::from(declaration.vector)).map(|i| Operand::Register(RegId(first.0 + i)));
        Operand::Vector(elements.collect())
    }

    /// An operand that starts with a name: `%r1`, `%v.x`, `%tid.x`, `table+16`, `array[2]`, `d|p`.
    fn named_operand(&mut self, name: &'a str, line: u32) -> Result<Operand<'a>, TranslateError> {
        let operand = self.resolve(name, line)?;
        match operand {
            Operand::Register(register) => {
                // `.b0` to `.h1`: the video instructions select a part of a scalar.
                if let Token::Dot(part) = self.token {
                    self.bump()?;
                    return Ok(Operand::Part(register, part));
                }
                self.pair(operand)
            }
            Operand::Vector(elements) => {
                let Token::Dot(part) = self.token else {
                    return self.pair(Operand::Vector(elements));
                };
                self.bump()?;
                let index = match part {
                    "x" | "r" => 0,
                    "y" | "g" => 1,
                    "z" | "b" => 2,
                    "w" | "a" => 3,
                    _ => usize::MAX,
                };
                match elements.into_iter().nth(index) {
                    Some(element) => Ok(element),
                    None => invalid(line, format!("{} has no element .{}", head(name), head(part))),
                }
            }
            Operand::Special(name, _) => {
                let Token::Dot(part) = self.token else {
                    return Ok(operand);
                };
                self.bump()?;
                Ok(Operand::Special(name, Some(part)))
            }
            Operand::Symbol(symbol, _) => {
                let index = self.array_index(symbol)?;
                Ok(Operand::Symbol(symbol, index.wrapping_add(self.offset()?)))
            }
            other => Ok(other),
        }
    }

    /// `[2]` after an array: the offset in bytes.
    fn array_index(&mut self, symbol: Symbol) -> Result<i64, TranslateError> {
        if !self.accept("[")? {
            return Ok(0);
        }
        let line = self.line;
        let Symbol::Variable(id) = symbol else {
            return invalid(line, "only an array can be indexed");
        };
        let index = self.integer()?;
        self.expect("]")?;
        let variable = self.module.variable(id);
        let element = i64::from(variable.ty.bytes()) * i64::from(variable.vector);
        Ok((index as i64).wrapping_mul(element))
    }

    /// After `[`: an address, or the list of a texture, surface or tensor operand.
    fn bracket(&mut self, depth: u32) -> Result<Operand<'a>, TranslateError> {
        let line = self.line;
        let first = self.bracket_element(depth)?;
        if self.accept("]")? {
            return match first {
                Operand::Address(_) => Ok(first),
                _ => invalid(line, "this is no address"),
            };
        }
        let mut elements = vec![first];
        while self.accept(",")? {
            if elements.len() == limits::LIST {
                return invalid(line, "too many elements");
            }
            elements.push(self.bracket_element(depth)?);
        }
        self.expect("]")?;
        // In a list, a plain name is that operand and not an address to load from.
        for element in &mut elements {
            if let Operand::Address(Address { base, offset }) = *element {
                *element = match base {
                    AddressBase::Register(register) if offset == 0 => Operand::Register(register),
                    AddressBase::Symbol(symbol) => Operand::Symbol(symbol, offset),
                    _ => continue,
                };
            }
        }
        Ok(Operand::Tuple(elements))
    }

    fn bracket_element(&mut self, depth: u32) -> Result<Operand<'a>, TranslateError> {
        let line = self.line;
        match self.token {
            Token::Punct("{") => self.operand(depth + 1),
            Token::Ident(name) if name != "WARP_SZ" => {
                self.bump()?;
                let base = match self.resolve(name, line)? {
                    Operand::Register(register) => {
                        if let Token::Dot(_) = self.token {
                            return self.unexpected();
                        }
                        AddressBase::Register(register)
                    }
                    Operand::Symbol(symbol, _) => AddressBase::Symbol(symbol),
                    vector @ Operand::Vector(_) if depth == 0 && matches!(self.token, Token::Dot(_)) => {
                        return self.vector_element_address(vector, name, line);
                    }
                    // `tex.2d ..., [t, coordinates]` with a vector register.
                    vector @ Operand::Vector(_) => return Ok(vector),
                    Operand::Sink => {
                        self.mistake = Some(Mistake::Address);
                        AddressBase::Absolute
                    }
                    _ => return invalid(line, format!("{} is no base of an address", head(name))),
                };
                let index = match base {
                    AddressBase::Symbol(symbol) => self.array_index(symbol)?,
                    _ => 0,
                };
                Ok(Operand::Address(Address {
                    base,
                    offset: index.wrapping_add(self.offset()?),
                }))
            }
            // Absolute addresses: rare, but `[0]` is how some tests provoke a fault.
            _ if self.at_constant() => {
                let offset = self.integer()? as i64;
                Ok(Operand::Address(Address {
                    base: AddressBase::Absolute,
                    offset,
                }))
            }
            _ => self.unexpected(),
        }
    }

    /// `[v.x+4]`
    fn vector_element_address(
        &mut self,
        vector: Operand<'a>,
        name: &'a str,
        line: u32,
    ) -> Result<Operand<'a>, TranslateError> {
        let Token::Dot(part) = self.token else {
            return Ok(vector);
        };
        self.bump()?;
        let index = ["x", "y", "z", "w"]
            .iter()
            .position(|p| *p == part)
            .unwrap_or(usize::MAX);
        match vector {
            Operand::Vector(elements) => match elements.get(index) {
                Some(Operand::Register(register)) => {
                    let base = AddressBase::Register(*register);
                    Ok(Operand::Address(Address {
                        base,
                        offset: self.offset()?,
                    }))
                }
                _ => invalid(line, format!("{} has no element .{}", head(name), head(part))),
            },
            other => Ok(other),
        }
    }
}
