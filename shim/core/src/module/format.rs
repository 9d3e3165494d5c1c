//! `printf`'s conversions on arguments as kernels pack them.
//!
//! Each conversion is handed to the C library with its one argument, so that flags, widths and rounding are C's own.

use core::ffi::{c_char, c_int};

use super::printf::c_string;

/// Longest text that one conversion may make: widths and precisions beyond it are cut.
const LONGEST: usize = 1 << 20;

/// The packed arguments: 4 bytes for `int`, 8 for everything else, each at a multiple of its size.
struct Arguments<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Arguments<'_> {
    fn word(&mut self) -> u32 {
        let value = self
            .bytes
            .get(self.at..self.at + 4)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u32::from_le_bytes);
        self.at += 4;
        value
    }

    fn long(&mut self) -> u64 {
        self.at = self.at.next_multiple_of(8);
        let value = self
            .bytes
            .get(self.at..self.at + 8)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u64::from_le_bytes);
        self.at += 8;
        value
    }
}

/// Appends the text of one `printf` call. `text` reads a string in device memory.
pub fn format(format: &[u8], arguments: &[u8], text: impl Fn(u64) -> Option<Vec<u8>>, out: &mut Vec<u8>) {
    let mut arguments = Arguments {
        bytes: arguments,
        at: 0,
    };
    let mut rest = format;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            out.push(first);
            continue;
        }
        rest = conversion(rest, &mut arguments, &text, out);
    }
}

/// One conversion, from behind its `%`; returns what follows it.
fn conversion<'f>(
    mut rest: &'f [u8],
    arguments: &mut Arguments<'_>,
    text: &impl Fn(u64) -> Option<Vec<u8>>,
    out: &mut Vec<u8>,
) -> &'f [u8] {
    let (mut spec, mut long) = (vec![b'%'], false);
    loop {
        // A format that ends inside a conversion prints nothing for it.
        let Some((&c, after)) = rest.split_first() else {
            return rest;
        };
        rest = after;
        match c {
            b'%' => {
                out.push(b'%');
                return rest;
            }
            b'*' => spec.extend_from_slice((arguments.word() as i32).to_string().as_bytes()),
            b'l' | b'j' | b'z' | b't' => long = true,
            b'h' | b'L' | b'q' => {}
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c' => {
                if long {
                    spec.extend_from_slice(b"ll");
                }
                spec.push(c);
                match long {
                    true => convert(&spec, Value::Long(arguments.long()), out),
                    false => convert(&spec, Value::Int(arguments.word() as c_int), out),
                }
                return rest;
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                spec.push(c);
                convert(&spec, Value::Double(f64::from_bits(arguments.long())), out);
                return rest;
            }
            b's' => {
                spec.push(c);
                let address = arguments.long();
                let string = match address {
                    0 => b"(null)".to_vec(),
                    _ => text(address).unwrap_or_else(|| format!("(string at {address:#x})").into_bytes()),
                };
                convert(&spec, Value::Text(string), out);
                return rest;
            }
            b'p' => {
                spec.push(c);
                convert(&spec, Value::Long(arguments.long()), out);
                return rest;
            }
            // Writing back is not possible; CUDA ignores it too.
            b'n' => {
                arguments.long();
                return rest;
            }
            other => spec.push(other),
        }
    }
}

enum Value {
    Int(c_int),
    Long(u64),
    Double(f64),
    Text(Vec<u8>),
}

/// Has the C library do one conversion.
fn convert(spec: &[u8], value: Value, out: &mut Vec<u8>) {
    let spec = c_string(spec.to_vec());
    let text = match &value {
        Value::Text(bytes) => Some(c_string(bytes.clone())),
        _ => None,
    };
    let print = |buffer: *mut c_char, size: usize| {
        // SAFETY: one conversion with one argument of its type; the buffer has `size` bytes.
        unsafe {
            match (&value, &text) {
                (Value::Int(value), _) => libc::snprintf(buffer, size, spec.as_ptr(), *value),
                (Value::Long(value), _) => libc::snprintf(buffer, size, spec.as_ptr(), *value),
                (Value::Double(value), _) => libc::snprintf(buffer, size, spec.as_ptr(), *value),
                (Value::Text(_), Some(text)) => libc::snprintf(buffer, size, spec.as_ptr(), text.as_ptr()),
                (Value::Text(_), None) => 0,
            }
        }
    };
    let needed = usize::try_from(print(core::ptr::null_mut(), 0))
        .unwrap_or(0)
        .min(LONGEST);
    let mut buffer = vec![0u8; needed + 1];
    print(buffer.as_mut_ptr().cast(), buffer.len());
    out.extend_from_slice(&buffer[..needed]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, arguments: &[u8]) -> String {
        let mut out = Vec::new();
        let strings = |address: u64| (address == 0x1000).then(|| b"device".to_vec());
        format(text.as_bytes(), arguments, strings, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn arguments_lie_at_multiples_of_their_size() {
        let mut packed = Vec::new();
        packed.extend((-7i32).to_le_bytes());
        packed.extend([0; 4]);
        packed.extend(2.5f64.to_le_bytes());
        packed.extend(u32::from(b'x').to_le_bytes());
        packed.extend([0; 4]);
        packed.extend(0x1000u64.to_le_bytes());
        packed.extend((1u64 << 40).to_le_bytes());
        assert_eq!(
            run("%d|%5.2f|%c|%-8s|%lu%%\n", &packed),
            "-7| 2.50|x|device  |1099511627776%\n"
        );
    }

    #[test]
    fn widths_from_arguments_and_strings_that_cannot_be_read() {
        let mut packed = Vec::new();
        packed.extend(6i32.to_le_bytes());
        packed.extend(42i32.to_le_bytes());
        packed.extend(0x2000u64.to_le_bytes());
        packed.extend(0u64.to_le_bytes());
        assert_eq!(run("%*d %s %s", &packed), "    42 (string at 0x2000) (null)");
    }

    #[test]
    fn broken_formats_and_missing_arguments_do_no_harm() {
        assert_eq!(run("a%", &[]), "a");
        assert_eq!(run("%d %s", &[]), "0 (null)");
        assert_eq!(run("%5", &[]), "");
        assert_eq!(run("%hhd%%", &3i32.to_le_bytes()), "3%");
    }
}
