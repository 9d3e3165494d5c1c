//! `.entry` and `.func`: headers, parameters, prototypes.

use super::ast::{
    Directives, FuncId, Function, Linkage, Parameter, Prototype, PrototypeParam, RegId, ScalarType, StateSpace,
};
use super::declare::{Declarator, Qualifiers, new_variable};
use super::lexer::{Token, head, invalid};
use super::limits;
use super::parser::Parser;
use super::scope::{BodyBuilder, Entity};
use crate::protocol::TranslateError;

/// A parameter as written.
struct ParameterText<'a> {
    is_register: bool,
    declarator: Declarator<'a>,
    qualifiers: Qualifiers,
}

impl<'a> Parser<'a> {
    /// A function after `.entry` or `.func`.
    pub(super) fn function(&mut self, line: u32, is_entry: bool, linkage: Linkage) -> Result<(), TranslateError> {
        let mut directives = Directives::default();
        if self.accept_dot("attribute")? {
            self.attributes()?;
        }
        let mut returns = Vec::new();
        if !is_entry && matches!(self.token, Token::Punct("(")) {
            returns = self.parameters()?;
        }
        let name = self.identifier()?;
        let mut params = Vec::new();
        if matches!(self.token, Token::Punct("(")) {
            params = self.parameters()?;
        }
        self.header_directives(&mut directives)?;
        if is_entry {
            self.check_kernel_parameters(line, name, &params)?;
        }

        let has_body = matches!(self.token, Token::Punct("{"));
        if !has_body {
            self.expect(";")?;
        }
        // The name is declared before the body is parsed: functions may call themselves.
        let new = FuncId(self.module.functions.len() as u32);
        let (id, keep_earlier) = match self.names.here(name) {
            None => {
                self.names.declare(name, Entity::Function(new));
                (new, false)
            }
            Some(Entity::Function(id)) => {
                let earlier = &self.module.functions[id.0 as usize];
                let defined = earlier.body.is_some();
                if earlier.is_entry != is_entry || (defined && has_body) {
                    return invalid(line, format!("duplicate definition of function '{}'", head(name)));
                }
                (id, defined)
            }
            Some(_) => return invalid(line, format!("duplicate definition of '{}'", head(name))),
        };
        // A prototype after the definition adds nothing.
        if keep_earlier {
            return Ok(());
        }

        // A function sees its parameters, then what its body declares.
        self.body = BodyBuilder::default();
        self.names.enter();
        let returns = self.declare_parameters(id, returns, has_body)?;
        let params = self.declare_parameters(id, params, has_body)?;
        let function = Function {
            name,
            line,
            is_entry,
            linkage,
            params,
            returns,
            directives,
            alias: None,
            body: None,
        };
        // In place before its body: a pragma inside is added to its directives.
        match self.module.functions.get_mut(id.0 as usize) {
            Some(earlier) => *earlier = function,
            None => self.module.functions.push(function),
        }
        if has_body {
            self.statements(id)?;
            self.report_unknown()?;
            let body = std::mem::take(&mut self.body).finish();
            self.module.functions[id.0 as usize].body = Some(body);
        }
        self.names.leave();
        Ok(())
    }

    /// PTX ISA: 4352 bytes of kernel parameters, 32764 since 8.1.
    fn check_kernel_parameters(
        &mut self,
        line: u32,
        name: &str,
        params: &[ParameterText<'_>],
    ) -> Result<(), TranslateError> {
        let limit = if self.module.version < (8, 1) {
            4352
        } else {
            limits::KERNEL_PARAMS
        };
        let size = parameter_bytes(params);
        if size > limit {
            let name = head(name);
            self.fault(
                line,
                format!("entry function '{name}' uses too much parameter space ({size:#x} bytes, {limit:#x} max)."),
            )?;
            if limit < limits::KERNEL_PARAMS {
                self.fault(
                    line,
                    format!(
                        "feature 'Kernel parameter size larger than {limit} bytes' requires PTX ISA .version 8.1 or later"
                    ),
                )?;
            }
        }
        match params.iter().find(|p| p.is_register) {
            Some(p) => invalid(p.declarator.line, "a parameter of an .entry must be in .param space"),
            None => Ok(()),
        }
    }

    /// `( .param .u32 a, .reg .u64 b )`
    fn parameters(&mut self) -> Result<Vec<ParameterText<'a>>, TranslateError> {
        let line = self.line;
        let mut list = Vec::new();
        self.expect("(")?;
        while !self.accept(")")? {
            if !list.is_empty() {
                self.expect(",")?;
            }
            if list.len() == limits::LIST {
                return invalid(line, "too many parameters");
            }
            let is_register = match self.token {
                Token::Dot("param") => false,
                Token::Dot("reg") => true,
                _ => return self.unexpected(),
            };
            self.bump()?;
            let qualifiers = self.qualifiers()?;
            let declarator = self.declarator(&qualifiers)?;
            list.push(ParameterText {
                is_register,
                declarator,
                qualifiers,
            });
        }
        if parameter_bytes(&list) > limits::FUNCTION_PARAMS {
            return invalid(line, format!("parameters exceed {} bytes", limits::FUNCTION_PARAMS));
        }
        Ok(list)
    }

    fn declare_parameters(
        &mut self,
        owner: FuncId,
        list: Vec<ParameterText<'a>>,
        has_body: bool,
    ) -> Result<Vec<Parameter>, TranslateError> {
        let mut parameters = Vec::with_capacity(list.len());
        for text in list {
            let d = &text.declarator;
            let entity;
            // Functions without the ABI pass registers; their ids come first in the body.
            if text.is_register {
                let declaration = self.new_register(d.ty, d.vector);
                entity = Entity::Register(declaration, 0);
                let id = if has_body {
                    self.body.register(d.name, declaration, 0)
                } else {
                    RegId(0)
                };
                parameters.push(Parameter::Register(id, d.ty));
            } else {
                let space = StateSpace::Param;
                let variable = new_variable(d, space, Linkage::Internal, Some(owner), &text.qualifiers);
                let id = self.add_variable(variable);
                entity = Entity::Variable(id);
                parameters.push(Parameter::Variable(id));
            }
            // Prototypes often call every parameter `_`.
            if has_body && d.name != "_" {
                if self.names.here(d.name).is_some() {
                    return invalid(d.line, format!("duplicate definition of '{}'", head(d.name)));
                }
                self.names.declare(d.name, entity);
            }
        }
        Ok(parameters)
    }

    /// Directives between the parameters and the body.
    fn header_directives(&mut self, d: &mut Directives<'a>) -> Result<(), TranslateError> {
        while let Token::Dot(word) = self.token {
            let line = self.line;
            self.bump()?;
            match word {
                "maxntid" => d.max_ntid = Some(self.extent()?),
                "reqntid" => d.req_ntid = Some(self.extent()?),
                "reqnctapercluster" => d.req_ncta_per_cluster = Some(self.extent()?),
                "minnctapersm" => d.min_ncta_per_sm = Some(self.small_integer()?),
                "maxnctapersm" => d.max_ncta_per_sm = Some(self.small_integer()?),
                "maxnreg" => d.max_nreg = Some(self.small_integer()?),
                "maxclusterrank" => d.max_cluster_rank = Some(self.small_integer()?),
                "explicitcluster" => d.explicit_cluster = true,
                "blocksareclusters" => d.blocks_are_clusters = true,
                "noreturn" => d.no_return = true,
                "pragma" => {
                    let pragmas = self.pragma()?;
                    d.pragmas.extend(pragmas);
                }
                "attribute" => {
                    self.attributes()?;
                }
                "file" => self.file()?,
                "loc" => self.location()?,
                // `.abi_preserve 8` and whatever tuning hints later versions add: a word and at most one number.
                _ if word.starts_with("abi_preserve") || self.module.version > (9, 0) => {
                    let value = if self.at_constant() { self.integer()? } else { 0 };
                    d.others.push((word, value));
                }
                _ => return invalid(line, format!("unknown directive '.{}' of a function", head(word))),
            }
        }
        Ok(())
    }

    /// `nx, ny, nz`, missing ones 1.
    fn extent(&mut self) -> Result<[u32; 3], TranslateError> {
        let mut extent = [self.small_integer()?, 1, 1];
        for dimension in &mut extent[1..] {
            if !self.accept(",")? {
                break;
            }
            *dimension = self.small_integer()?;
        }
        Ok(extent)
    }

    /// `.callprototype (returns) _ (params) .noreturn;`
    pub(super) fn call_prototype(&mut self) -> Result<Prototype<'a>, TranslateError> {
        let mut prototype = Prototype::default();
        if matches!(self.token, Token::Punct("(")) {
            prototype.returns = self.parameters()?.iter().map(prototype_parameter).collect();
        }
        self.identifier()?;
        if matches!(self.token, Token::Punct("(")) {
            prototype.params = self.parameters()?.iter().map(prototype_parameter).collect();
        }
        let mut directives = Directives::default();
        self.header_directives(&mut directives)?;
        prototype.no_return = directives.no_return;
        self.expect(";")?;
        Ok(prototype)
    }
}

/// End of the last parameter, aligned as the layout does.
fn parameter_bytes(params: &[ParameterText<'_>]) -> u64 {
    params.iter().fold(0, |end: u64, p| {
        let size = p.declarator.size().unwrap_or(limits::VARIABLE);
        end.next_multiple_of(u64::from(p.declarator.align)).saturating_add(size)
    })
}

fn prototype_parameter<'a>(text: &ParameterText<'a>) -> PrototypeParam<'a> {
    let d = &text.declarator;
    PrototypeParam {
        name: d.name,
        is_register: text.is_register,
        ty: if text.is_register || d.ty != ScalarType::Pred {
            d.ty
        } else {
            ScalarType::B8
        },
        vector: d.vector,
        align: d.align,
        size: d.size().unwrap_or(0),
    }
}
