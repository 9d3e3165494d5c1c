//! The parser: module directives here; declarations, functions and statements in the files beside it.

use super::ast::{InitAddress, Linkage, Module, Symbol};
use super::lexer::{Lexer, Token, head, invalid};
use super::limits;
use super::scope::{BodyBuilder, Entity, Names};
use crate::protocol::TranslateError;

/// An address in an initial value whose name is resolved at the end of the module.
pub(super) struct PendingAddress<'a> {
    /// The variable.
    pub variable: usize,
    /// Index in its `addresses`.
    pub address: usize,
    /// The name.
    pub name: &'a str,
    /// Where it is written.
    pub line: u32,
}

/// Parser state. `token` is the next token, at `line`.
pub struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(super) token: Token<'a>,
    pub(super) line: u32,
    pub(super) module: Module<'a>,
    pub(super) names: Names<'a>,
    pub(super) body: BodyBuilder<'a>,
    pub(super) pending: Vec<PendingAddress<'a>>,
    /// Initialised bytes so far, all variables together.
    pub(super) initialised: u64,
    /// Register declarations so far.
    pub(super) declarations: u32,
    /// What was found wrong so far.
    pub(super) faults: Vec<(u32, String)>,
    /// Names in the current function that nothing declares.
    pub(super) unknown: Vec<(u32, &'a str)>,
    /// What is wrong with the current instruction for naming such.
    pub(super) mistake: Option<Mistake<'a>>,
}

/// Parses a module. The text may end in NULs, as PTX handed to the driver does.
pub fn parse(text: &str) -> Result<Module<'_>, TranslateError> {
    let text = text.split('\0').next().unwrap_or_default();
    if text.len() > limits::SOURCE {
        return invalid(
            1,
            format!("the text is {} bytes long; the limit is {}", text.len(), limits::SOURCE),
        );
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        token: Token::End,
        line: 1,
        module: Module {
            address_size: 64,
            ..Module::default()
        },
        names: Names::default(),
        body: BodyBuilder::default(),
        pending: Vec::new(),
        initialised: 0,
        declarations: 0,
        faults: Vec::new(),
        unknown: Vec::new(),
        mistake: None,
    };
    // Anything that does not start as PTX must is not PTX at all: the driver API tells the two apart.
    if parser.bump().is_err() || parser.token != Token::Dot("version") {
        return Err(TranslateError::NotPtx);
    }
    match parser.module() {
        // What was noted before comes before what the text ends with.
        Err(TranslateError::InvalidPtx { line, message, more }) => {
            parser.faults.push((line, message));
            parser.faults.extend(more);
            parser.refuse_faults().map(|()| parser.module)
        }
        other => other.map(|()| parser.module),
    }
}

/// What an instruction that names something unknown is refused for.
pub(super) enum Mistake<'a> {
    /// An operand.
    Operand,
    /// The base of an address.
    Address,
    /// What it calls.
    Callee(&'a str),
}

impl<'a> Parser<'a> {
    /// Takes the next token.
    pub(super) fn bump(&mut self) -> Result<(), TranslateError> {
        (self.token, self.line) = self.lexer.token()?;
        Ok(())
    }

    /// Takes a punctuation mark if it is next.
    pub(super) fn accept(&mut self, punct: &str) -> Result<bool, TranslateError> {
        if matches!(self.token, Token::Punct(p) if p == punct) {
            self.bump()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes a punctuation mark that must be next.
    pub(super) fn expect(&mut self, punct: &str) -> Result<(), TranslateError> {
        if self.accept(punct)? { Ok(()) } else { self.unexpected() }
    }

    /// Takes a `.word` if it is next.
    pub(super) fn accept_dot(&mut self, word: &str) -> Result<bool, TranslateError> {
        if self.token == Token::Dot(word) {
            self.bump()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes an identifier that must be next.
    pub(super) fn identifier(&mut self) -> Result<&'a str, TranslateError> {
        match self.token {
            Token::Ident(name) => {
                self.bump()?;
                Ok(name)
            }
            _ => self.unexpected(),
        }
    }

    /// Takes a string that must be next.
    fn string(&mut self) -> Result<&'a str, TranslateError> {
        match self.token {
            Token::Str(text) => {
                self.bump()?;
                Ok(text)
            }
            _ => self.unexpected(),
        }
    }

    /// An integer that must fit in 32 bits.
    pub(super) fn small_integer(&mut self) -> Result<u32, TranslateError> {
        let line = self.line;
        match u32::try_from(self.integer()?) {
            Ok(value) => Ok(value),
            Err(_) => invalid(line, "the number is too large"),
        }
    }

    /// The error for a token that does not belong here. NVIDIA's assembler stops there, whatever else is wrong (recorded).
    pub(super) fn unexpected<T>(&self) -> Result<T, TranslateError> {
        invalid(self.line, format!("parsing error near {}: syntax error", self.token))
    }

    /// Notes what is wrong where the text can still be followed; the module is refused at its end, with all that was noted.
    pub(super) fn fault(&mut self, line: u32, message: impl Into<String>) -> Result<(), TranslateError> {
        if self.faults.len() + 1 < limits::FAULTS {
            self.faults.push((line, message.into()));
            Ok(())
        } else {
            invalid(line, message)
        }
    }

    /// Notes the names that a function uses and nothing declares, behind all else that is wrong with it.
    pub(super) fn report_unknown(&mut self) -> Result<(), TranslateError> {
        for (line, name) in std::mem::take(&mut self.unknown) {
            self.fault(line, format!("unknown symbol '{}'", head(name)))?;
        }
        Ok(())
    }

    fn refuse_faults(&mut self) -> Result<(), TranslateError> {
        let mut faults = std::mem::take(&mut self.faults).into_iter();
        match faults.next() {
            None => Ok(()),
            Some((line, message)) => Err(TranslateError::InvalidPtx {
                line,
                message,
                more: faults.collect(),
            }),
        }
    }

    fn module(&mut self) -> Result<(), TranslateError> {
        self.bump()?;
        self.version()?;
        while self.token != Token::End {
            self.module_item()?;
        }
        self.refuse_faults()?;
        // Variables may point to what is declared after them, so their addresses are resolved only now.
        for pending in std::mem::take(&mut self.pending) {
            let target = match self.names.find(pending.name) {
                Some(Entity::Variable(id)) => Symbol::Variable(id),
                Some(Entity::Function(id)) => Symbol::Function(id),
                _ => return invalid(pending.line, format!("unknown symbol '{}'", head(pending.name))),
            };
            let init = self.module.variables[pending.variable].init.as_mut();
            if let Some(address) = init.and_then(|i| i.addresses.get_mut(pending.address)) {
                *address = InitAddress { target, ..*address };
            }
        }
        Ok(())
    }

    fn version(&mut self) -> Result<(), TranslateError> {
        let line = self.line;
        // The lexer keeps decimal constants as text: as a float, 8.10 would be 8.1.
        let version = match self.token {
            Token::Decimal(text) => text
                .split_once('.')
                .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))),
            _ => None,
        };
        let Some(version @ (major, minor)) = version else {
            return self.unexpected();
        };
        self.bump()?;
        if major > limits::VERSION_MAJOR {
            return Err(TranslateError::UnsupportedVersion { line, major, minor });
        }
        self.module.version = version;
        Ok(())
    }

    fn module_item(&mut self) -> Result<(), TranslateError> {
        let linkage = self.linkage()?;
        let line = self.line;
        let directive = match self.token {
            Token::Dot(word) => word,
            Token::Punct(";") if linkage == Linkage::Internal => return self.bump(),
            // Old compilers wrote DWARF as lines that begin with @@DWARF.
            Token::Punct("@") => {
                self.lexer.skip_line();
                return self.bump();
            }
            _ => return self.unexpected(),
        };
        self.bump()?;
        match directive {
            "entry" | "func" => self.function(line, directive == "entry", linkage),
            "global" | "const" | "shared" | "local" | "tex" | "param" => self.variables(directive, linkage, None),
            _ if linkage != Linkage::Internal => invalid(line, format!("syntax error near '.{}'", head(directive))),
            "reg" => self.registers(),
            "version" => self.version(),
            "target" => self.target(line),
            "address_size" => match self.integer()? {
                64 => Ok(()),
                size => invalid(
                    line,
                    format!(".address_size {size} is not supported: 32-bit code has no GPU here"),
                ),
            },
            "file" => self.file(),
            "loc" => self.location(),
            "section" => self.section(),
            "pragma" => {
                self.pragma()?;
                Ok(())
            }
            "alias" => self.alias(line),
            _ => invalid(line, format!("unknown directive '.{}'", head(directive))),
        }
    }

    fn linkage(&mut self) -> Result<Linkage, TranslateError> {
        let linkage = match self.token {
            Token::Dot("visible") => Linkage::Visible,
            Token::Dot("extern") => Linkage::Extern,
            Token::Dot("weak") => Linkage::Weak,
            Token::Dot("common") => Linkage::Common,
            _ => return Ok(Linkage::Internal),
        };
        self.bump()?;
        Ok(linkage)
    }

    fn target(&mut self, line: u32) -> Result<(), TranslateError> {
        self.module.target.clear();
        loop {
            let word = self.identifier()?;
            // Any architecture will do: what a kernel needs of it shows in its instructions.
            if self.module.target.is_empty() && architecture(word).is_none() {
                return invalid(line, format!("unsupported .target '{}'", head(word)));
            }
            self.module.target.push(word);
            if !self.accept(",")? {
                return Ok(());
            }
        }
    }

    /// `.file 1 "name", time, size`
    pub(super) fn file(&mut self) -> Result<(), TranslateError> {
        self.integer()?;
        self.string()?;
        while self.accept(",")? {
            self.integer()?;
        }
        Ok(())
    }

    /// `.loc 1 2 3, function_name $label+4, inlined_at 1 2 3`
    pub(super) fn location(&mut self) -> Result<(), TranslateError> {
        for _ in 0..3 {
            self.location_number()?;
        }
        while self.accept(",")? {
            match self.identifier()? {
                "function_name" => {
                    self.identifier()?;
                    self.offset()?;
                }
                "inlined_at" => {
                    for _ in 0..3 {
                        self.location_number()?;
                    }
                }
                word => return invalid(self.line, format!("unknown attribute '{}' of .loc", head(word))),
            }
        }
        Ok(())
    }

    /// One number: an expression would swallow what follows.
    fn location_number(&mut self) -> Result<(), TranslateError> {
        match self.token {
            Token::Int(..) => self.bump(),
            _ => self.unexpected(),
        }
    }

    /// `.section .debug_info { ... }`: debug information, skipped.
    fn section(&mut self) -> Result<(), TranslateError> {
        match self.token {
            Token::Dot(_) | Token::Ident(_) | Token::Str(_) => self.bump()?,
            _ => return self.unexpected(),
        }
        let line = self.line;
        self.expect("{")?;
        let mut depth = 1usize;
        // Counted, not recursed into; what is inside is DWARF data, which nothing here needs.
        while depth > 0 {
            match self.token {
                Token::Punct("{") => depth += 1,
                Token::Punct("}") => depth -= 1,
                Token::End => return invalid(line, "a section is not closed"),
                _ => {}
            }
            self.bump()?;
        }
        Ok(())
    }

    /// `.pragma "text", "text";`
    pub(super) fn pragma(&mut self) -> Result<Vec<&'a str>, TranslateError> {
        let mut pragmas = vec![self.string()?];
        while self.accept(",")? {
            pragmas.push(self.string()?);
        }
        self.expect(";")?;
        Ok(pragmas)
    }

    /// `.alias name, function;`
    fn alias(&mut self, line: u32) -> Result<(), TranslateError> {
        let name = self.identifier()?;
        self.expect(",")?;
        let target = self.identifier()?;
        self.expect(";")?;
        match (self.names.find(name), self.names.find(target)) {
            (Some(Entity::Function(alias)), Some(Entity::Function(function))) if alias != function => {
                self.module.functions[alias.0 as usize].alias = Some(function);
                Ok(())
            }
            _ => invalid(
                line,
                format!(
                    ".alias needs two declared functions, not {} and {}",
                    head(name),
                    head(target)
                ),
            ),
        }
    }
}

/// The number in `sm_80`, `sm_90a`, `sm_100f`, `compute_75`.
pub(super) fn architecture(word: &str) -> Option<u32> {
    let number = word.strip_prefix("sm_").or(word.strip_prefix("compute_"))?;
    let number = number.strip_suffix(['a', 'f']).unwrap_or(number);
    let plain = (2..=4).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| number.parse().ok()).flatten()
}
