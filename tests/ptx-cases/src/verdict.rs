//! Compares an outcome with the record of real CUDA.

use serde::{Deserialize, Serialize};

use crate::case::{Case, Record};
use crate::machine::Outcome;

/// How a case came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Bit for bit as recorded.
    Agrees,
    /// An `.approx` instruction: every result within the error that the PTX ISA documents.
    WithinDocumentedError,
    /// Some result differs: the first one, in words.
    Differs(String),
    /// The translator does not have the construct yet.
    Unsupported(String),
    /// It did not compile or did not run to its end.
    Fails(String),
}

/// The documented error of an approximation: relative and absolute, and the format of the result.
struct Tolerance {
    relative: f64,
    absolute: f64,
    bits: u32,
    brain: bool,
    /// Arguments beyond this magnitude have no documented error.
    range: f64,
}

/// PTX ISA, the sections of the instructions.
fn tolerance(name: &str) -> Option<Tolerance> {
    let exp = |n: f64| 2f64.powf(n);
    let (relative, absolute, range) = if name.starts_with("div.approx") || name.starts_with("div.full") {
        (exp(-22.0), 0.0, f64::INFINITY)
    } else if name.starts_with("rcp.approx.ftz.f64") || name.starts_with("rsqrt.approx") && name.ends_with("f64") {
        (exp(-20.0), 0.0, f64::INFINITY)
    } else if name.starts_with("rcp.approx") || name.starts_with("sqrt.approx") {
        (exp(-23.0), 0.0, f64::INFINITY)
    } else if name.starts_with("rsqrt.approx") {
        (exp(-22.9), 0.0, f64::INFINITY)
    } else if name.starts_with("sin.approx") || name.starts_with("cos.approx") {
        (0.0, exp(-14.7), 100.0 * std::f64::consts::PI)
    } else if name.starts_with("lg2.approx") {
        (exp(-22.0), exp(-22.0), f64::INFINITY)
    } else if name.starts_with("ex2.approx") {
        let n = if name.ends_with("bf16") {
            -7.0
        } else if name.ends_with("f16") {
            -9.9
        } else {
            -22.0
        };
        (exp(n), 0.0, f64::INFINITY)
    } else if name.starts_with("tanh.approx") {
        let n = if name.ends_with("bf16") { -8.0 } else { -10.987 };
        (exp(n), exp(n), f64::INFINITY)
    } else {
        return None;
    };
    let bits = if name.ends_with("f16") {
        16
    } else if name.ends_with("f64") {
        64
    } else {
        32
    };
    Some(Tolerance {
        relative,
        absolute,
        bits,
        brain: name.ends_with("bf16"),
        range,
    })
}

/// The value of a floating-point word.
fn value(t: &Tolerance, word: u64) -> f64 {
    match (t.bits, t.brain) {
        (64, _) => f64::from_bits(word),
        (32, _) => f64::from(f32::from_bits(word as u32)),
        (_, true) => f64::from(f32::from_bits((word as u32) << 16)),
        _ => {
            let (sign, exponent, fraction) = (word >> 15 & 1, word >> 10 & 31, (word & 1023) as f64);
            let magnitude = match exponent {
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                0 => fraction * 2f64.powi(-24),
                e => (1024.0 + fraction) * 2f64.powi(e as i32 - 25),
            };
            if sign == 1 { -magnitude } else { magnitude }
        }
    }
}

fn close(t: &Tolerance, argument: u64, ours: u64, theirs: u64) -> bool {
    let (a, b) = (value(t, ours), value(t, theirs));
    if a.is_nan() || b.is_nan() || a.is_infinite() != b.is_infinite() {
        return ours == theirs;
    }
    let least = if t.bits == 32 { 2f64.powi(-149) } else { 2f64.powi(-24) };
    let outside = value(t, argument).abs() > t.range && a.abs() <= 1.0;
    outside || (a - b).abs() <= (t.relative * b.abs()).max(t.absolute).max(least) * 1.000_001
}

/// Compares the words of an outcome with a record.
pub fn compare(case: &Case, record: &Record, outcome: &Outcome) -> Verdict {
    let words =
        |list: &[String]| -> Vec<u64> { list.iter().map(|w| u64::from_str_radix(w, 16).unwrap_or(0)).collect() };
    let theirs = words(&record.out);
    let memory = if record.mem.is_empty() {
        case.input.clone()
    } else {
        words(&record.mem)
    };
    let tolerance = tolerance(&case.name);
    let mut exact = true;
    let mut wrong = Vec::new();
    for (at, (&ours, &theirs)) in outcome.out.iter().zip(&theirs).enumerate() {
        if ours == theirs {
            continue;
        }
        exact = false;
        let thread = at / case.out_words.max(1) as usize;
        let argument = case.input.get(thread * 4).copied().unwrap_or(0);
        if !tolerance.as_ref().is_some_and(|t| close(t, argument, ours, theirs)) {
            wrong.push(at);
        }
    }
    if let Some(&at) = wrong.first() {
        let thread = at / case.out_words.max(1) as usize;
        let input: Vec<String> = case
            .input
            .iter()
            .skip(thread * 4)
            .take(4)
            .map(|w| format!("{w:x}"))
            .collect();
        return Verdict::Differs(format!(
            "{} of {} words; word {at}, thread {thread}, inputs {}: {:x}, recorded {:x}",
            wrong.len(),
            theirs.len(),
            input.join(" "),
            outcome.out[at],
            theirs[at]
        ));
    }
    if let Some(at) = outcome.input.iter().zip(&memory).position(|(a, b)| a != b) {
        return Verdict::Differs(format!(
            "memory word {at} (thread {}): {:x}, recorded {:x}",
            at / 4,
            outcome.input[at],
            memory[at]
        ));
    }
    if outcome.out.len() != theirs.len() {
        return Verdict::Fails(format!(
            "{} words of output, {} recorded",
            outcome.out.len(),
            theirs.len()
        ));
    }
    if exact {
        Verdict::Agrees
    } else {
        Verdict::WithinDocumentedError
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, ours: u64, theirs: &str) -> Verdict {
        let case = Case {
            name: name.into(),
            out_words: 1,
            input: vec![0; 4],
            ..Case::default()
        };
        let record = Record {
            out: vec![theirs.into()],
            ..Record::default()
        };
        compare(
            &case,
            &record,
            &Outcome {
                out: vec![ours],
                input: vec![0; 4],
            },
        )
    }

    #[test]
    fn exact_instructions_have_no_tolerance() {
        assert_eq!(verdict("add.f32", 0x3f80_0000, "3f800000"), Verdict::Agrees);
        assert!(matches!(
            verdict("add.f32", 0x3f80_0001, "3f800000"),
            Verdict::Differs(_)
        ));
    }

    #[test]
    fn approximations_have_the_documented_one() {
        assert_eq!(
            verdict("ex2.approx.f32", 0x3f80_0001, "3f800000"),
            Verdict::WithinDocumentedError
        );
        assert!(matches!(
            verdict("ex2.approx.f32", 0x3f80_0009, "3f800000"),
            Verdict::Differs(_)
        ));
        assert!(matches!(
            verdict("ex2.approx.f32", 0x7fc0_0000, "7fffffff"),
            Verdict::Differs(_)
        ));
    }

    #[test]
    fn changed_memory_is_seen() {
        let case = Case {
            name: "atom".into(),
            out_words: 1,
            input: vec![0; 4],
            ..Case::default()
        };
        let record = Record {
            out: vec!["0".into()],
            ..Record::default()
        };
        let outcome = Outcome {
            out: vec![0],
            input: vec![0, 0, 0, 1],
        };
        assert!(matches!(compare(&case, &record, &outcome), Verdict::Differs(_)));
    }
}
