//! Declarations of registers and variables, and initial values.

use super::ast::{FuncId, InitAddress, Initializer, Linkage, ScalarType, StateSpace, Symbol, VarId, Variable};
use super::expression::Constant;
use super::lexer::{Token, head, invalid};
use super::limits;
use super::parser::{Parser, PendingAddress};
use super::scope::{Entity, RegisterDeclaration};
use crate::protocol::TranslateError;

/// What stands between a state space and a name: `.align 8 .attribute(.managed) .v2 .f32`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Qualifiers {
    pub align: Option<u32>,
    pub managed: bool,
    pub vector: Option<u8>,
    pub ty: Option<ScalarType>,
    /// `.ptr`, the space it names and its alignment.
    pub pointer: Option<(Option<StateSpace>, u32)>,
}

/// A declared name with its shape.
#[derive(Clone, Debug)]
pub(super) struct Declarator<'a> {
    pub name: &'a str,
    pub line: u32,
    pub ty: ScalarType,
    pub vector: u8,
    pub align: u32,
    pub dims: Vec<u64>,
    /// The first dimension is `[]`.
    pub open: bool,
}

impl Declarator<'_> {
    /// Bytes of one element, the vector counted as one.
    fn element(&self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.vector)
    }

    /// Size in bytes; `None` past the limit.
    pub fn size(&self) -> Option<u64> {
        let size = self
            .dims
            .iter()
            .try_fold(self.element(), |size, &d| size.checked_mul(d))?;
        (size <= limits::VARIABLE).then_some(size)
    }
}

/// The state space of this name.
pub(super) fn state_space(word: &str) -> Option<StateSpace> {
    Some(match word {
        "const" => StateSpace::Const,
        "global" => StateSpace::Global,
        "local" => StateSpace::Local,
        "param" => StateSpace::Param,
        "shared" => StateSpace::Shared,
        "tex" => StateSpace::Tex,
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    /// Reads qualifiers up to the name.
    pub(super) fn qualifiers(&mut self) -> Result<Qualifiers, TranslateError> {
        let mut q = Qualifiers::default();
        while let Token::Dot(word) = self.token {
            let line = self.line;
            self.bump()?;
            match word {
                "align" => {
                    let align = self.integer()?;
                    if !align.is_power_of_two() || align > limits::ALIGN {
                        let limit = limits::ALIGN;
                        return invalid(line, format!(".align {align} is not a power of two of at most {limit}"));
                    }
                    // After `.ptr` the alignment is that of what is pointed to.
                    match &mut q.pointer {
                        Some((_, pointee)) => *pointee = align as u32,
                        None => q.align = Some(align as u32),
                    }
                }
                "attribute" => q.managed |= self.attributes()?,
                "v2" => q.vector = Some(2),
                "v4" => q.vector = Some(4),
                "v8" => q.vector = Some(8),
                "ptr" => q.pointer = Some((None, 4)),
                _ => match (ScalarType::from_name(word), state_space(word), &mut q.pointer) {
                    (Some(ty), ..) if q.ty.is_none() => q.ty = Some(ty),
                    (None, Some(space), Some((pointee, _))) => *pointee = Some(space),
                    _ => return invalid(line, format!("'.{}' does not belong in a declaration", head(word))),
                },
            }
        }
        Ok(q)
    }

    /// `(.managed, .unified(1, 2))`; whether `.managed` is among them.
    pub(super) fn attributes(&mut self) -> Result<bool, TranslateError> {
        let mut managed = false;
        self.expect("(")?;
        loop {
            let Token::Dot(word) = self.token else {
                return self.unexpected();
            };
            self.bump()?;
            managed |= word == "managed";
            if self.accept("(")? {
                while !self.accept(")")? {
                    self.integer()?;
                    if !matches!(self.token, Token::Punct(")")) {
                        self.expect(",")?;
                    }
                }
            }
            if self.accept(")")? {
                return Ok(managed);
            }
            self.expect(",")?;
        }
    }

    /// The name and dimensions after the qualifiers.
    pub(super) fn declarator(&mut self, q: &Qualifiers) -> Result<Declarator<'a>, TranslateError> {
        let line = self.line;
        let Some(ty) = q.ty else {
            return self.unexpected();
        };
        let vector = q.vector.unwrap_or(1);
        // A vector is aligned as a whole (PTX ISA, "Alignment").
        let natural = (ty.bytes() * u32::from(vector)).next_power_of_two();
        let name = self.identifier()?;
        let mut d = Declarator {
            name,
            line,
            ty,
            vector,
            align: q.align.unwrap_or(natural),
            dims: Vec::new(),
            open: false,
        };
        while self.accept("[")? {
            if d.dims.len() == limits::DIMENSIONS {
                return invalid(line, format!("{} has too many dimensions", head(name)));
            }
            if self.accept("]")? {
                if !d.dims.is_empty() {
                    return invalid(line, format!("only the first dimension of {} may be open", head(name)));
                }
                d.open = true;
                d.dims.push(0);
            } else {
                let dimension = self.integer()?;
                d.dims.push(dimension);
                self.expect("]")?;
            }
        }
        if d.size().is_none() {
            return invalid(
                line,
                format!("{} is larger than {} bytes", head(name), limits::VARIABLE),
            );
        }
        Ok(d)
    }

    /// `.reg .type %r<10>, %x;`
    pub(super) fn registers(&mut self) -> Result<(), TranslateError> {
        let q = self.qualifiers()?;
        let Some(ty) = q.ty else {
            return self.unexpected();
        };
        loop {
            let line = self.line;
            let name = self.identifier()?;
            // Nothing is allocated for the range: registers get their ids where they are used.
            let declaration = self.new_register(ty, q.vector.unwrap_or(1));
            if self.accept("<")? {
                let count = self.range_count()?;
                self.names.declare_range(name, declaration, count);
            } else if self.names.here(name).is_some() {
                return invalid(line, format!("duplicate definition of variable '{}'", head(name)));
            } else {
                self.names.declare(name, Entity::Register(declaration, 0));
            }
            if !self.accept(",")? {
                return self.expect(";");
            }
        }
    }

    /// A declaration number for a register or a range of them.
    pub(super) fn new_register(&mut self, ty: ScalarType, vector: u8) -> RegisterDeclaration {
        self.declarations += 1;
        RegisterDeclaration {
            number: self.declarations,
            ty,
            vector,
        }
    }

    /// `10>`: a full expression would take the bracket for "greater than".
    fn range_count(&mut self) -> Result<u64, TranslateError> {
        let Token::Int(count, _) = self.token else {
            return self.unexpected();
        };
        self.bump()?;
        self.expect(">")?;
        Ok(count)
    }

    /// Variables after their state space, up to `;`.
    pub(super) fn variables(
        &mut self,
        space: &str,
        linkage: Linkage,
        owner: Option<FuncId>,
    ) -> Result<(), TranslateError> {
        let Some(space) = state_space(space) else {
            return self.unexpected();
        };
        // `.const[3]`: the banks of PTX 1 are one memory today.
        if space == StateSpace::Const && self.accept("[")? {
            self.integer()?;
            self.expect("]")?;
        }
        let q = self.qualifiers()?;
        loop {
            let d = self.declarator(&q)?;
            if d.ty == ScalarType::Pred {
                return invalid(d.line, "a predicate must be a register");
            }
            if matches!(self.token, Token::Punct("<")) {
                let construct = format!("the parameterised variable name {}<>", head(d.name));
                return Err(TranslateError::Unsupported {
                    line: d.line,
                    construct,
                });
            }
            let id = self.declare_variable(&d, space, linkage, owner, &q)?;
            if self.accept("=")? {
                if !matches!(space, StateSpace::Global | StateSpace::Const) {
                    return invalid(d.line, format!("{} cannot have an initial value", head(d.name)));
                }
                self.initial_value(id, d)?;
            }
            if !self.accept(",")? {
                return self.expect(";");
            }
        }
    }

    /// Adds a variable, or completes an earlier `.extern` declaration of it.
    fn declare_variable(
        &mut self,
        d: &Declarator<'a>,
        space: StateSpace,
        linkage: Linkage,
        owner: Option<FuncId>,
        q: &Qualifiers,
    ) -> Result<VarId, TranslateError> {
        let variable = new_variable(d, space, linkage, owner, q);
        match self.names.here(d.name) {
            None => {}
            Some(Entity::Variable(id)) if owner.is_none() => {
                let earlier = &mut self.module.variables[id.0 as usize];
                let repeated = |l| matches!(l, Linkage::Extern | Linkage::Common | Linkage::Weak);
                if earlier.space == space && (repeated(earlier.linkage) || repeated(linkage)) {
                    // The definition wins over declarations, wherever it stands.
                    if linkage != Linkage::Extern || earlier.linkage == Linkage::Extern {
                        *earlier = variable;
                    }
                    return Ok(id);
                }
                return invalid(d.line, format!("duplicate definition of variable '{}'", head(d.name)));
            }
            Some(_) => return invalid(d.line, format!("duplicate definition of '{}'", head(d.name))),
        }
        let id = self.add_variable(variable);
        self.names.declare(d.name, Entity::Variable(id));
        if owner.is_some() {
            self.body.body.variables.push(id);
        }
        Ok(id)
    }

    /// Gives a variable its id.
    pub(super) fn add_variable(&mut self, variable: Variable<'a>) -> VarId {
        let id = VarId(self.module.variables.len() as u32);
        self.module.variables.push(variable);
        id
    }

    /// The value after `=`.
    fn initial_value(&mut self, id: VarId, d: Declarator<'a>) -> Result<(), TranslateError> {
        let mut shape = d.dims.clone();
        if d.vector > 1 {
            shape.push(u64::from(d.vector));
        }
        // strides[k]: scalars in one element of dimension k.
        let mut strides = vec![1u64; shape.len()];
        for k in (1..shape.len()).rev() {
            strides[k - 1] = strides[k].saturating_mul(shape[k]);
        }
        // How many scalars fit; an open array takes what comes and is measured afterwards.
        let declared = (!d.open).then(|| shape.iter().fold(1u64, |n, &k| n.saturating_mul(k)));
        let mut writer = Writer {
            id,
            d: &d,
            init: Initializer::default(),
            limit: declared,
            at: 0,
        };
        if matches!(self.token, Token::Punct("{")) {
            self.braces(&mut writer, &strides)?;
        } else {
            self.element(&mut writer)?;
        }
        let (init, count) = (writer.init, writer.at);
        let variable = &mut self.module.variables[id.0 as usize];
        if d.open {
            let rows = count.div_ceil(strides.first().copied().unwrap_or(1).max(1));
            variable.dims[0] = rows;
            variable.is_unsized = false;
            variable.size = match (Declarator {
                dims: variable.dims.clone(),
                ..d.clone()
            })
            .size()
            {
                Some(size) => size,
                None => {
                    return invalid(
                        d.line,
                        format!("{} is larger than {} bytes", head(d.name), limits::VARIABLE),
                    );
                }
            };
        }
        variable.init = Some(init);
        Ok(())
    }

    /// `{ value, { value }, ... }`; recursion is bounded by the number of dimensions.
    fn braces(&mut self, w: &mut Writer<'_, 'a>, strides: &[u64]) -> Result<(), TranslateError> {
        let line = self.line;
        self.expect("{")?;
        let Some((&stride, inner)) = strides.split_first() else {
            return invalid(
                line,
                format!("too many braces in the initial value of {}", head(w.d.name)),
            );
        };
        let start = w.at;
        let mut rows = 0u64;
        while !self.accept("}")? {
            if matches!(self.token, Token::Punct("{")) {
                // As in C: a nested list fills one row, and the next value starts the row after it.
                self.braces(w, inner)?;
                rows = (w.at - start).div_ceil(stride.max(1)).max(rows + 1);
                w.at = start.saturating_add(rows.saturating_mul(stride));
            } else {
                self.element(w)?;
                rows = (w.at - start).div_ceil(stride.max(1));
            }
            if !matches!(self.token, Token::Punct("}")) {
                self.expect(",")?;
            }
        }
        Ok(())
    }

    /// One scalar of an initial value.
    fn element(&mut self, w: &mut Writer<'_, 'a>) -> Result<(), TranslateError> {
        let line = self.line;
        let size = w.d.ty.bytes();
        if w.limit.is_some_and(|limit| w.at >= limit) {
            return invalid(line, format!("too many initial values for {}", head(w.d.name)));
        }
        let offset = w.at.saturating_mul(u64::from(size));
        let end = offset.saturating_add(u64::from(size));
        // What this value makes the initialised bytes grow by counts against one limit for the module: a small text may
        // skip over large rows.
        let grown = end.saturating_sub(w.init.bytes.len() as u64);
        self.initialised = self.initialised.saturating_add(grown);
        if self.initialised > limits::INITIALISED {
            return invalid(line, format!("initial values exceed {} bytes", limits::INITIALISED));
        }
        if grown > 0 {
            w.init.bytes.resize(end as usize, 0);
        }
        w.at += 1;
        let mut mask = u64::MAX;
        // A number may be the value, or the mask before an address in parentheses.
        if self.at_constant() {
            let value = self.constant()?;
            match value {
                // `0xff00(symbol)`: one byte of an address.
                Constant::Int(bits, _) if matches!(self.token, Token::Punct("(")) => mask = bits,
                _ => {
                    let Some(bytes) = encode(value, w.d.ty) else {
                        return invalid(line, format!("the value does not fit .{}", w.d.ty.name()));
                    };
                    let at = offset as usize;
                    w.init.bytes[at..at + size as usize].copy_from_slice(&bytes[..size as usize]);
                    return Ok(());
                }
            }
        }
        self.initial_address(
            w,
            InitAddress {
                at: offset,
                size,
                target: Symbol::Variable(w.id),
                addend: 0,
                generic: false,
                mask,
            },
        )
    }

    /// `name+4`, `generic(name)+4`, `mask(0xff, name)` or, after its number, `(generic(name)+4)`.
    fn initial_address(&mut self, w: &mut Writer<'_, 'a>, mut address: InitAddress) -> Result<(), TranslateError> {
        // Parentheses that the mask opened and this must close.
        let mut open = 0;
        if self.accept("(")? {
            open += 1;
        }
        let mut line = self.line;
        let mut name = self.identifier()?;
        if name == "mask" && self.accept("(")? {
            open += 1;
            address.mask = self.integer()?;
            self.expect(",")?;
            line = self.line;
            name = self.identifier()?;
        }
        if name == "generic" && self.accept("(")? {
            address.generic = true;
            line = self.line;
            name = self.identifier()?;
            address.addend = self.offset()?;
            self.expect(")")?;
        }
        address.addend = address.addend.wrapping_add(self.offset()?);
        for _ in 0..open {
            self.expect(")")?;
        }
        // Names may be declared later: the target is filled in at the end of the module.
        let pending = PendingAddress {
            variable: w.id.0 as usize,
            address: w.init.addresses.len(),
            name,
            line,
        };
        self.pending.push(pending);
        w.init.addresses.push(address);
        Ok(())
    }
}

/// An initial value being written.
struct Writer<'w, 'a> {
    id: VarId,
    d: &'w Declarator<'a>,
    init: Initializer,
    /// Scalars that fit; `None` for an open array.
    limit: Option<u64>,
    /// The next scalar.
    at: u64,
}

/// A variable as declared, without its initial value.
pub(super) fn new_variable<'a>(
    d: &Declarator<'a>,
    space: StateSpace,
    linkage: Linkage,
    owner: Option<FuncId>,
    q: &Qualifiers,
) -> Variable<'a> {
    Variable {
        name: d.name,
        line: d.line,
        space,
        linkage,
        align: d.align,
        ty: d.ty,
        vector: d.vector,
        dims: d.dims.clone(),
        is_unsized: d.open,
        size: d.size().unwrap_or(0),
        init: None,
        managed: q.managed,
        pointer: q.pointer,
        owner,
    }
}

/// The bytes of a constant as a type, little-endian in the first bytes; `None` where it cannot be one.
fn encode(value: Constant, ty: ScalarType) -> Option<[u8; 128]> {
    // A constant becomes the element's type, but a hexadecimal float is its own bits where the type is untyped bits.
    let bits: u64 = match (value, ty) {
        (_, ScalarType::Texref | ScalarType::Samplerref | ScalarType::Surfref) => return None,
        (Constant::F32(bits), ScalarType::F64) => f64::from(f32::from_bits(bits)).to_bits(),
        (Constant::F32(bits), ScalarType::F16) => u64::from(half(f32::from_bits(bits))),
        (Constant::F32(bits), ScalarType::F32 | ScalarType::Tf32 | ScalarType::B32) => u64::from(bits),
        (Constant::F64(value), ScalarType::F32) => u64::from((value as f32).to_bits()),
        (Constant::F64(value), ScalarType::F16) => u64::from(half(value as f32)),
        (Constant::F64(value), ScalarType::F64 | ScalarType::B64) => value.to_bits(),
        (Constant::Int(value, unsigned), ScalarType::F32 | ScalarType::F64) => {
            let float = if unsigned { value as f64 } else { value as i64 as f64 };
            if ty == ScalarType::F64 {
                float.to_bits()
            } else {
                u64::from((float as f32).to_bits())
            }
        }
        (Constant::Int(value, _), ty) if ty.is_integer() || ty.is_bits() => value,
        (Constant::Int(value, _), ty) if ty.is_float() => value,
        _ => return None,
    };
    let mut bytes = [0u8; 128];
    bytes[..8].copy_from_slice(&bits.to_le_bytes());
    // A negative value fills a wider element with its sign.
    if matches!(value, Constant::Int(v, false) if (v as i64) < 0) {
        bytes[8..].fill(0xff);
    }
    Some(bytes)
}

/// Single to half precision, to nearest even.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude >= 0x7f80_0000 {
        return sign | 0x7c00 | if magnitude > 0x7f80_0000 { 0x200 } else { 0 };
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    // Scale so that one unit is the last place of the half: exact in double precision.
    let exponent = ((magnitude >> 23) as i32 - 127).max(-14);
    let units = f64::from(f32::from_bits(magnitude)) * 2f64.powi(10 - exponent);
    let units = units.round_ties_even() as u32;
    // A carry out of the mantissa lands in the exponent by itself.
    sign | (((exponent + 14) as u32 * 1024) + units) as u16
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn half_rounds_to_nearest_even() {
        let cases = [
            (0.0f32, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65519.9, 0x7bff),
            (65520.0, 0x7c00),
            (6.103_515_6e-5, 0x0400),
            (5.960_464_5e-8, 0x0001),
            (2.980_232_2e-8, 0x0000),
            (2.980_232_6e-8, 0x0001),
            (1.000_488_3, 0x3c00),
            (1.001_464_8, 0x3c02),
            (f32::INFINITY, 0x7c00),
            (1e9, 0x7c00),
        ];
        for (value, expect) in cases {
            assert_eq!(half(value), expect, "{value}");
        }
        assert_eq!(half(f32::NAN) & 0x7e00, 0x7e00);
    }
}
