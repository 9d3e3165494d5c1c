//! Constant expressions (PTX ISA, "Constant Expressions"): C's operators over `.s64` and `.u64`, folded as parsed.

use super::ast::Immediate;
use super::lexer::{Token, invalid};
use super::limits;
use super::parser::Parser;
use crate::protocol::TranslateError;

/// A folded constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// An integer and whether it is unsigned.
    Int(u64, bool),
    /// `0f...`.
    F32(u32),
    /// `0d...` or a decimal constant.
    F64(f64),
}

impl Constant {
    /// As an operand.
    pub fn immediate(self) -> Immediate {
        match self {
            Self::Int(value, _) => Immediate::Int(value),
            Self::F32(bits) => Immediate::F32(bits),
            Self::F64(value) => Immediate::F64(value.to_bits()),
        }
    }
}

/// Binary operators by precedence, loosest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The level of `*`: what may follow the `+` of an address.
const PRODUCT: usize = 9;

impl Parser<'_> {
    /// Whether a constant can start here.
    pub(super) fn at_constant(&self) -> bool {
        match self.token {
            Token::Int(..) | Token::F32(_) | Token::F64(_) | Token::Decimal(_) => true,
            Token::Punct(p) => matches!(p, "-" | "~" | "!" | "(" | "+"),
            Token::Ident(name) => name == "WARP_SZ",
            _ => false,
        }
    }

    /// Parses and folds an expression.
    pub(super) fn constant(&mut self) -> Result<Constant, TranslateError> {
        self.conditional(0)
    }

    /// An expression whose leading `-` or `!` has been taken: the sign binds to its first factor.
    pub(super) fn constant_after(&mut self, sign: &str, line: u32) -> Result<Constant, TranslateError> {
        let operand = self.unary(0)?;
        let first = negate(sign, operand, line)?;
        self.continued(0, first, 0)
    }

    /// An expression that must be an integer.
    pub(super) fn integer(&mut self) -> Result<u64, TranslateError> {
        let line = self.line;
        match self.constant()? {
            Constant::Int(value, _) => Ok(value),
            _ => invalid(line, "an integer constant is needed here"),
        }
    }

    /// `+ 4`, `+-4` or `- 4` after a base, any number of them; their sum.
    pub(super) fn offset(&mut self) -> Result<i64, TranslateError> {
        let mut sum = 0i64;
        loop {
            let negative = match self.token {
                Token::Punct("+") => false,
                Token::Punct("-") => true,
                _ => return Ok(sum),
            };
            let line = self.line;
            self.bump()?;
            let Constant::Int(value, _) = self.binary(PRODUCT, 0)? else {
                return invalid(line, "an offset must be an integer constant");
            };
            let value = value as i64;
            sum = sum.wrapping_add(if negative { value.wrapping_neg() } else { value });
        }
    }

    fn conditional(&mut self, depth: u32) -> Result<Constant, TranslateError> {
        if depth > limits::EXPRESSION_DEPTH {
            return invalid(self.line, "a constant expression is nested too deeply");
        }
        let line = self.line;
        let condition = self.binary(0, depth)?;
        if !self.accept("?")? {
            return Ok(condition);
        }
        let Constant::Int(chosen, _) = condition else {
            return invalid(line, "the condition of ?: is no integer");
        };
        // Both arms are folded and one is taken: a division by zero is an error in either.
        let yes = self.conditional(depth + 1)?;
        self.expect(":")?;
        let no = self.conditional(depth + 1)?;
        Ok(if chosen != 0 { yes } else { no })
    }

    fn binary(&mut self, level: usize, depth: u32) -> Result<Constant, TranslateError> {
        // One call per level of precedence: the depth is bounded by their number, and parentheses count separately.
        let Some(operators) = LEVELS.get(level) else {
            return self.unary(depth);
        };
        let left = self.binary(level + 1, depth)?;
        self.operators(level, operators, left, depth)
    }

    /// What follows a first factor, from the tightest level out to `level`.
    fn continued(&mut self, level: usize, first: Constant, depth: u32) -> Result<Constant, TranslateError> {
        let mut left = first;
        for (at, operators) in LEVELS.iter().enumerate().skip(level).rev() {
            left = self.operators(at, operators, left, depth)?;
        }
        Ok(left)
    }

    fn operators(
        &mut self,
        level: usize,
        operators: &[&str],
        mut left: Constant,
        depth: u32,
    ) -> Result<Constant, TranslateError> {
        while let Token::Punct(operator) = self.token {
            if !operators.contains(&operator) {
                break;
            }
            let line = self.line;
            self.bump()?;
            let right = self.binary(level + 1, depth)?;
            left = match fold(operator, left, right) {
                Some(value) => value,
                None => return invalid(line, format!("'{operator}' cannot be applied to these constants")),
            };
        }
        Ok(left)
    }

    fn unary(&mut self, depth: u32) -> Result<Constant, TranslateError> {
        if depth > limits::EXPRESSION_DEPTH {
            return invalid(self.line, "a constant expression is nested too deeply");
        }
        let (token, line) = (self.token, self.line);
        self.bump()?;
        match token {
            Token::Int(value, unsigned) => Ok(Constant::Int(value, unsigned)),
            Token::F32(bits) => Ok(Constant::F32(bits)),
            Token::F64(bits) => Ok(Constant::F64(f64::from_bits(bits))),
            Token::Decimal(text) => Ok(Constant::F64(text.parse().unwrap_or(f64::NAN))),
            Token::Ident("WARP_SZ") => Ok(Constant::Int(32, false)),
            Token::Punct("+") => self.unary(depth + 1),
            Token::Punct(operator @ ("-" | "~" | "!")) => {
                let operand = self.unary(depth + 1)?;
                negate(operator, operand, line)
            }
            Token::Punct("(") => {
                if let Token::Dot(cast @ ("s64" | "u64")) = self.token {
                    self.bump()?;
                    self.expect(")")?;
                    return match self.unary(depth + 1)? {
                        Constant::Int(value, _) => Ok(Constant::Int(value, cast == "u64")),
                        _ => invalid(line, "a cast needs an integer"),
                    };
                }
                let value = self.conditional(depth + 1)?;
                self.expect(")")?;
                Ok(value)
            }
            other => invalid(line, format!("a constant is needed before {other}")),
        }
    }
}

/// Applies `-`, `~` or `!`.
fn negate(operator: &str, operand: Constant, line: u32) -> Result<Constant, TranslateError> {
    Ok(match (operator, operand) {
        ("-", Constant::Int(value, unsigned)) => Constant::Int(value.wrapping_neg(), unsigned),
        ("-", Constant::F32(bits)) => Constant::F32(bits ^ 1 << 31),
        ("-", Constant::F64(value)) => Constant::F64(-value),
        ("~", Constant::Int(value, unsigned)) => Constant::Int(!value, unsigned),
        (_, Constant::Int(value, _)) => Constant::Int(u64::from(value == 0), false),
        _ => return invalid(line, format!("'{operator}' needs an integer")),
    })
}

/// Applies a binary operator; `None` where it has no meaning (division by zero, mixed kinds).
fn fold(operator: &str, left: Constant, right: Constant) -> Option<Constant> {
    let truth = |t: bool| Some(Constant::Int(u64::from(t), false));
    match (left, right) {
        (Constant::Int(a, ua), Constant::Int(b, ub)) => {
            // The usual arithmetic conversions: unsigned wins.
            let unsigned = ua || ub;
            let (sa, sb) = (a as i64, b as i64);
            let value = match operator {
                "+" => a.wrapping_add(b),
                "-" => a.wrapping_sub(b),
                "*" => a.wrapping_mul(b),
                "/" if unsigned => a.checked_div(b)?,
                "/" => sa.checked_div(sb)? as u64,
                "%" if unsigned => a.checked_rem(b)?,
                "%" => sa.checked_rem(sb)? as u64,
                "&" => a & b,
                "|" => a | b,
                "^" => a ^ b,
                // A shift keeps the kind of its left operand; PTX does not define one past the width.
                "<<" => return Some(Constant::Int(if b < 64 { a << b } else { 0 }, ua)),
                ">>" if ua => return Some(Constant::Int(if b < 64 { a >> b } else { 0 }, true)),
                ">>" => return Some(Constant::Int((sa >> b.min(63)) as u64, false)),
                "==" => return truth(a == b),
                "!=" => return truth(a != b),
                "<" => return truth(if unsigned { a < b } else { sa < sb }),
                "<=" => return truth(if unsigned { a <= b } else { sa <= sb }),
                ">" => return truth(if unsigned { a > b } else { sa > sb }),
                ">=" => return truth(if unsigned { a >= b } else { sa >= sb }),
                "&&" => return truth(a != 0 && b != 0),
                "||" => return truth(a != 0 || b != 0),
                _ => return None,
            };
            Some(Constant::Int(value, unsigned))
        }
        (Constant::F64(a), Constant::F64(b)) => Some(Constant::F64(match operator {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            "==" => return truth(a == b),
            "!=" => return truth(a != b),
            "<" => return truth(a < b),
            "<=" => return truth(a <= b),
            ">" => return truth(a > b),
            ">=" => return truth(a >= b),
            _ => return None,
        })),
        _ => None,
    }
}
