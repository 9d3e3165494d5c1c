//! `CUDA_VISIBLE_DEVICES` over `ROCR_VISIBLE_DEVICES`.
//!
//! ROCr applies its own variable first, so what is left has new numbers. Slurm sets both variables to the same list, and then
//! the selection has been made already: applied once more to the shorter list it would hide everything.

use crate::abi::{Error, Result};

/// The GPUs to use, in order, as positions in `uuids`, by the two variables of the environment.
pub fn from_environment(uuids: &[[u8; 16]]) -> Result<Vec<usize>> {
    let cuda = std::env::var_os("CUDA_VISIBLE_DEVICES");
    let rocr = std::env::var_os("ROCR_VISIBLE_DEVICES");
    let text = |value: Option<std::ffi::OsString>| value.map(|value| value.to_string_lossy().into_owned());
    select(text(cuda).as_deref(), text(rocr).as_deref(), uuids)
}

/// [`from_environment`] with the variables' values; `None` is unset. [`Error::INVALID_DEVICE`] for a GPU named twice.
pub fn select(cuda: Option<&str>, rocr: Option<&str>, uuids: &[[u8; 16]]) -> Result<Vec<usize>> {
    let Some(cuda) = cuda else {
        return Ok((0..uuids.len()).collect());
    };
    if let Some(rocr) = rocr.filter(|rocr| !rocr.trim().is_empty()) {
        if cuda.trim() == rocr.trim() {
            return Ok((0..uuids.len()).collect());
        }
        if let Some(positions) = positions_in(cuda, rocr, uuids.len()) {
            return Ok(positions);
        }
    }
    parse(cuda, uuids)
}

/// CUDA's list as positions in ROCr's, for a CUDA list that numbers the node's GPUs: each entry occurs in ROCr's list, and
/// not all are numbers of the shorter list that ROCr left.
fn positions_in(cuda: &str, rocr: &str, count: usize) -> Option<Vec<usize>> {
    let rocr: Vec<&str> = rocr.split(',').map(str::trim).take(count).collect();
    let entries: Vec<&str> = cuda.split(',').map(str::trim).collect();
    let fits = |entry: &&str| entry.parse::<usize>().is_ok_and(|index| index < count);
    if entries.iter().all(fits) {
        return None;
    }
    entries
        .iter()
        .map(|entry| rocr.iter().position(|name| name == entry))
        .collect()
}

/// The list alone, as NVIDIA's driver reads it (recorded): entries up to the first that names no GPU; numbers as `strtol` reads
/// them; a prefix of a UUID of at least one digit; after a UUID only UUIDs count, and after a number only numbers.
fn parse(list: &str, uuids: &[[u8; 16]]) -> Result<Vec<usize>> {
    let mut chosen: Vec<usize> = Vec::new();
    let mut by_uuid = None;
    for entry in list.split(',') {
        let prefix = strip_prefix_ignoring_case(entry.trim_start(), "GPU-");
        if *by_uuid.get_or_insert(prefix.is_some()) != prefix.is_some() {
            break;
        }
        let index = match prefix {
            Some(digits) => uuids.iter().position(|uuid| matches(uuid, digits)),
            None => strtol(entry).filter(|&index| index < uuids.len()),
        };
        let Some(index) = index else { break };
        if chosen.contains(&index) {
            log::warn!("CUDA_VISIBLE_DEVICES={list} names a device twice");
            return Err(Error::INVALID_DEVICE);
        }
        chosen.push(index);
    }
    Ok(chosen)
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Whether `digits` begin the UUID's text; hyphens may be left out, so ROCr's spelling of a card's number works too.
fn matches(uuid: &[u8; 16], digits: &str) -> bool {
    let mut own = uuid.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut any = false;
    for character in digits.trim_end().chars().filter(|&character| character != '-') {
        any = true;
        if character.to_digit(16).map(|digit| digit as u8) != own.next() || !character.is_ascii_hexdigit() {
            return false;
        }
    }
    any
}

/// `strtol(text, ., 0)` where it gives a number that is not negative; what follows the digits is ignored.
fn strtol(text: &str) -> Option<usize> {
    let text = text.trim_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let lower = text.as_bytes();
    let (radix, digits) = match lower {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => (16, &text[2..]),
        [b'0', ..] => (8, text),
        _ => (10, text),
    };
    let end = digits
        .find(|character: char| !character.is_digit(radix))
        .unwrap_or(digits.len());
    usize::from_str_radix(&digits[..end], radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [u8; 16] = *b"\xa1\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
    const B: [u8; 16] = *b"\xb1\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";

    /// The records of one and of two GPUs: the list, and what `cuDeviceGetCount` then says (-1 `NO_DEVICE`, -2
    /// `INVALID_DEVICE`).
    #[test]
    fn lists_are_read_as_recorded() {
        let a = "GPU-a1234567-89ab-cdef-0123-456789abcdef";
        let table = [
            ("", -1, -1),
            ("-1", -1, -1),
            ("0", 1, 1),
            ("0,0", -2, -2),
            ("0,1", 1, 2),
            ("1,0", -1, 2),
            ("7", -1, -1),
            ("0,-1", 1, 1),
            ("0,7", 1, 1),
            ("7,0", -1, -1),
            (a, 1, 1),
            ("GPU-a1234567", 1, 1),
            ("GPU-a", 1, 1),
            ("GPU-", -1, -1),
            ("GPU-A1234567-89AB-CDEF-0123-456789ABCDEF", 1, 1),
            ("GPU-a,GPU-a", -2, -2),
            ("GPU-a,0", 1, 1),
            ("0,GPU-a", 1, 1),
            ("GPU-00000000", -1, -1),
            ("MIG-GPU-0/1/0", -1, -1),
            ("MIG-11111111-2222-3333-4444-555555555555", -1, -1),
            ("abc", -1, -1),
            ("0abc", 1, 1),
            (" 0", 1, 1),
            ("0 ", 1, 1),
            ("00", 1, 1),
            ("+0", 1, 1),
            ("0x0", 1, 1),
            (",0", -1, -1),
            ("0,", 1, 1),
            ("none", -1, -1),
            ("NoDevFiles", -1, -1),
            ("all", -1, -1),
        ];
        let count = |result: Result<Vec<usize>>| match result {
            Ok(list) if list.is_empty() => -1,
            Ok(list) => list.len() as i32,
            Err(error) => {
                assert_eq!(error, Error::INVALID_DEVICE);
                -2
            }
        };
        for (list, one, two) in table {
            assert_eq!(count(select(Some(list), None, &[A])), one, "{list:?} with one GPU");
            assert_eq!(count(select(Some(list), None, &[A, B])), two, "{list:?} with two GPUs");
        }
        assert_eq!(select(None, None, &[A, B]), Ok(vec![0, 1]));
        assert_eq!(select(Some("1,0"), None, &[A, B]), Ok(vec![1, 0]));
        assert_eq!(select(Some("GPU-b"), None, &[A, B]), Ok(vec![1]));
        assert_eq!(select(Some("GPU-b123456789abcdef"), None, &[A, B]), Ok(vec![1]));
    }

    /// What Slurm sets for one GPU of a node: ROCr shows one GPU, and CUDA's variable repeats its number on the node.
    #[test]
    fn the_same_list_in_both_variables_selects_once() {
        for index in ["0", "1", "3"] {
            assert_eq!(select(Some(index), Some(index), &[A]), Ok(vec![0]), "both {index}");
        }
        assert_eq!(select(Some("2,3"), Some("2,3"), &[A, B]), Ok(vec![0, 1]));
    }

    #[test]
    fn a_further_selection_applies_to_what_rocr_left() {
        assert_eq!(select(Some("1"), Some("0,1"), &[A, B]), Ok(vec![1]));
        assert_eq!(select(Some("0"), Some("2,3"), &[A, B]), Ok(vec![0]));
        // Numbers that only the whole node has mean the node's.
        assert_eq!(select(Some("3"), Some("2,3"), &[A, B]), Ok(vec![1]));
        assert_eq!(select(Some("5"), Some("2,3"), &[A, B]), Ok(vec![]));
    }
}
