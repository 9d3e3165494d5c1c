//! Text to tokens.
//!
//! A dot glued to a word is one token (`.global`, `.L2::128B`, `.1d`), so opcodes, types and directives need no
//! look-ahead. Identifiers include `$ % _` as PTX's do.

use crate::protocol::TranslateError;

/// A token; text is a slice of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// `name`, `%r1`, `$L__BB0_2`, `_`.
    Ident(&'a str),
    /// `.word`, without the dot; `::` joins words.
    Dot(&'a str),
    /// An integer constant and whether it is unsigned (suffix `U`, or too large for `.s64`).
    Int(u64, bool),
    /// `0f3F800000`.
    F32(u32),
    /// `0d3FF0000000000000`.
    F64(u64),
    /// A decimal floating constant, as written: `8.5` may also be a version.
    Decimal(&'a str),
    /// A string, without quotes, escapes as written.
    Str(&'a str),
    /// One or two characters of punctuation.
    Punct(&'static str),
    /// End of the text.
    End,
}

impl core::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            // Names may be megabytes long: an error quotes their beginning.
            Token::Ident(s) | Token::Decimal(s) => write!(f, "'{}'", head(s)),
            Token::Dot(s) => write!(f, "'.{}'", head(s)),
            Token::Int(v, _) => write!(f, "'{v}'"),
            Token::F32(bits) => write!(f, "'0f{bits:08X}'"),
            Token::F64(bits) => write!(f, "'0d{bits:016X}'"),
            Token::Str(s) => write!(f, "\"{}\"", head(s)),
            Token::Punct(s) => write!(f, "'{s}'"),
            Token::End => write!(f, "the end of the text"),
        }
    }
}

/// At most 64 characters of a name, for messages.
pub fn head(name: &str) -> &str {
    name.char_indices().nth(64).map_or(name, |(at, _)| &name[..at])
}

/// An error at a line.
pub fn invalid<T>(line: u32, message: impl Into<String>) -> Result<T, TranslateError> {
    Err(TranslateError::invalid(line, message))
}

/// The tokenizer.
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

const PUNCTUATION: &[&str] = &[
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "{", "}", "[", "]", "<", ">", ",", ";", ":", "=", "+",
    "-", "*", "/", "%", "!", "~", "&", "|", "^", "?", "@", "#",
];

fn follows(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

impl<'a> Lexer<'a> {
    /// Starts at the beginning of the text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Line of the next byte, 1-based.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Skips to the end of the line.
    pub fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Takes bytes from `start` while `more` holds.
    fn take(&mut self, start: usize, more: impl Fn(u8) -> bool) -> &'a str {
        while self.at < self.text.len() && more(self.peek(0)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn skip_blank(&mut self) -> Result<(), TranslateError> {
        loop {
            match self.peek(0) {
                b'\n' => {
                    self.line = self.line.saturating_add(1);
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'/' if self.peek(1) == b'*' => {
                    let Some(length) = self.text[self.at + 2..].find("*/") else {
                        return invalid(self.line, "a comment is not closed");
                    };
                    let end = self.at + 2 + length + 2;
                    let lines = self.text.as_bytes()[self.at..end]
                        .iter()
                        .filter(|&&b| b == b'\n')
                        .count();
                    self.line = self.line.saturating_add(lines as u32);
                    self.at = end;
                }
                _ => return Ok(()),
            }
        }
    }

    /// The next token and the line where it starts.
    pub fn token(&mut self) -> Result<(Token<'a>, u32), TranslateError> {
        self.skip_blank()?;
        let line = self.line;
        let start = self.at;
        if start >= self.text.len() {
            return Ok((Token::End, line));
        }
        let byte = self.peek(0);
        let token = match byte {
            b'0'..=b'9' => self.number()?,
            b'.' if follows(self.peek(1)) => {
                self.at += 1;
                loop {
                    self.take(start, follows);
                    // `::` joins two words; a single colon does not belong here.
                    if self.peek(0) == b':' && self.peek(1) == b':' && follows(self.peek(2)) {
                        self.at += 2;
                    } else {
                        break;
                    }
                }
                Token::Dot(&self.text[start + 1..self.at])
            }
            b'"' => {
                self.at += 1;
                loop {
                    match self.peek(0) {
                        _ if self.at >= self.text.len() => return invalid(line, "a string is not closed"),
                        b'"' => break,
                        b'\\' => self.at += 2,
                        b'\n' => {
                            self.line = self.line.saturating_add(1);
                            self.at += 1;
                        }
                        _ => self.at += 1,
                    }
                }
                self.at += 1;
                match self.text.get(start + 1..self.at - 1) {
                    Some(text) => Token::Str(text),
                    None => return invalid(line, "a string is not closed"),
                }
            }
            b'%' if !follows(self.peek(1)) => {
                self.at += 1;
                Token::Punct("%")
            }
            _ if follows(byte) || byte == b'%' => {
                self.at += 1;
                Token::Ident(self.take(start, follows))
            }
            _ => {
                let rest = &self.text[self.at..];
                let Some(text) = PUNCTUATION.iter().find(|p| rest.starts_with(**p)) else {
                    let character = rest.chars().next().unwrap_or('?');
                    return invalid(line, format!("unexpected character {character:?}"));
                };
                self.at += text.len();
                Token::Punct(text)
            }
        };
        Ok((token, line))
    }

    fn number(&mut self) -> Result<Token<'a>, TranslateError> {
        let start = self.at;
        let word = self.take(start, follows);
        if let Some(digits) = word.strip_prefix("0f").or(word.strip_prefix("0F")) {
            let bits = if digits.len() == 8 {
                u32::from_str_radix(digits, 16).ok()
            } else {
                None
            };
            return match bits {
                Some(bits) => Ok(Token::F32(bits)),
                None => invalid(
                    self.line,
                    format!("'{}' needs eight hexadecimal digits after 0f", head(word)),
                ),
            };
        }
        if let Some(digits) = word.strip_prefix("0d").or(word.strip_prefix("0D")) {
            let bits = if digits.len() == 16 {
                u64::from_str_radix(digits, 16).ok()
            } else {
                None
            };
            return match bits {
                Some(bits) => Ok(Token::F64(bits)),
                None => invalid(
                    self.line,
                    format!("'{}' needs sixteen hexadecimal digits after 0d", head(word)),
                ),
            };
        }
        // `1.5` and `1e-3` end the word early: letters, digits and `_` only were taken so far.
        let all_digits = word.bytes().all(|b| b.is_ascii_digit());
        let exponent = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let fraction = all_digits && self.peek(0) == b'.' && self.peek(1).is_ascii_digit();
        if fraction || (matches!(exponent, "e" | "E") && matches!(self.peek(0), b'+' | b'-')) {
            return self.decimal(start);
        }
        if exponent.len() > 1 && exponent.starts_with(['e', 'E']) && exponent[1..].bytes().all(|b| b.is_ascii_digit()) {
            return Ok(Token::Decimal(word));
        }
        // Hexadecimal digits hold no U, so the suffix can go first.
        let (body, suffix) = match word.strip_suffix(['U', 'u']) {
            Some(body) => (body, true),
            None => (word, false),
        };
        let (digits, radix) = if let Some(hex) = body.strip_prefix("0x").or(body.strip_prefix("0X")) {
            (hex, 16)
        } else if let Some(binary) = body.strip_prefix("0b").or(body.strip_prefix("0B")) {
            (binary, 2)
        } else if body.len() > 1 && body.starts_with('0') {
            (&body[1..], 8)
        } else {
            (body, 10)
        };
        let valid = !digits.is_empty() && digits.bytes().all(|b| char::from(b).is_digit(radix));
        match u64::from_str_radix(digits, radix) {
            Ok(value) if valid => Ok(Token::Int(value, suffix || value > i64::MAX as u64)),
            _ if valid => invalid(
                self.line,
                format!("integer constant {} does not fit in 64 bits", head(word)),
            ),
            _ => invalid(self.line, format!("'{}' is no number", head(word))),
        }
    }

    /// `digits [. digits] [e [+-] digits]`, from `start`.
    fn decimal(&mut self, start: usize) -> Result<Token<'a>, TranslateError> {
        if self.peek(0) == b'.' {
            self.at += 1;
            self.take(start, |b| b.is_ascii_digit());
            if matches!(self.peek(0), b'e' | b'E') {
                self.at += 1;
            }
        }
        let text = &self.text[start..self.at];
        if text.ends_with(['e', 'E']) {
            if matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
            if !self.peek(0).is_ascii_digit() {
                return invalid(self.line, "an exponent has no digits");
            }
        }
        let text = self.take(start, |b| b.is_ascii_digit());
        if follows(self.peek(0)) {
            return invalid(self.line, format!("'{}' runs into a letter", head(text)));
        }
        Ok(Token::Decimal(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text);
        let mut out = Vec::new();
        loop {
            match lexer.token().unwrap().0 {
                Token::End => return out,
                token => out.push(token),
            }
        }
    }

    #[test]
    fn numbers_of_every_sort() {
        let expect = [
            Token::Int(10, false),
            Token::Int(0x1f, true),
            Token::Int(8, false),
            Token::Int(5, false),
            Token::Int(u64::MAX, true),
            Token::Int(0, false),
            Token::F32(0x3f80_0000),
            Token::F64(0x3ff0_0000_0000_0000),
            Token::Decimal("1.5"),
            Token::Decimal("2.0e-3"),
            Token::Decimal("1e5"),
            Token::Decimal("1e+5"),
        ];
        let text = "10 0x1fU 010 0b101 18446744073709551615 0 0f3F800000 0d3FF0000000000000 1.5 2.0e-3 1e5 1e+5";
        assert_eq!(tokens(text), expect);
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for text in [
            "09",
            "0x",
            "0xg",
            "0f12",
            "0d1",
            "18446744073709551616",
            "12ab",
            "1e+",
            "0b2",
            "1.5e",
            "1.5x",
        ] {
            assert!(Lexer::new(text).token().is_err(), "{text}");
        }
    }

    #[test]
    fn dots_glue_to_words_and_colons_join_them() {
        let text = "ld.global.L2::128B.1d %r1, [%rd2+-4];L: x%y";
        use Token::*;
        let expect = [
            Ident("ld"),
            Dot("global"),
            Dot("L2::128B"),
            Dot("1d"),
            Ident("%r1"),
            Punct(","),
            Punct("["),
            Ident("%rd2"),
            Punct("+"),
            Punct("-"),
            Int(4, false),
            Punct("]"),
            Punct(";"),
            Ident("L"),
            Punct(":"),
            Ident("x"),
            Ident("%y"),
        ];
        assert_eq!(tokens(text), expect);
    }

    #[test]
    fn comments_and_strings_keep_the_line_count() {
        let mut lexer = Lexer::new("/* a\nb */ // c\n \"x\\\"\ny\" z");
        assert_eq!(lexer.token().unwrap(), (Token::Str("x\\\"\ny"), 3));
        assert_eq!(lexer.token().unwrap(), (Token::Ident("z"), 4));
        assert!(Lexer::new("/* open").token().is_err());
        assert!(Lexer::new("\"open\\").token().is_err());
        assert!(Lexer::new("\u{e9}").token().is_err());
    }
}
