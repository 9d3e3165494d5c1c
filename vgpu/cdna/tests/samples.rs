//! Every sample line (machine words and LLVM's disassembly of them) decodes to the same instruction and prints the same text.

use cdna::{Target, isa::decode};

fn check(target: Target, samples: &str) {
    let mut wrong = Vec::new();
    let mut lines = 0;
    for line in samples.lines() {
        let Some((words, text)) = line.split_once('\t') else {
            continue;
        };
        lines += 1;
        let words: Vec<u32> = words
            .split(' ')
            .map(|w| u32::from_str_radix(w, 16).expect("hex word"))
            .collect();
        let inst = match decode(target, &words) {
            Ok(inst) => inst,
            Err(e) => {
                wrong.push(format!("{line}\n    {e}"));
                continue;
            }
        };
        if usize::from(inst.size) != words.len() * 4 {
            wrong.push(format!("{line}\n    {} bytes", inst.size));
        }
        let printed = inst.to_string();
        if printed != text {
            wrong.push(format!("{line}\n                  {printed}"));
        }
    }
    assert!(lines > 5000, "only {lines} samples");
    let shown = wrong.len().min(40);
    assert!(
        wrong.is_empty(),
        "{} of {lines} lines differ:\n{}",
        wrong.len(),
        wrong[..shown].join("\n")
    );
}

#[test]
fn gfx90a_samples_decode() {
    check(Target::Gfx90a, include_str!("../isa/samples-gfx90a.txt"));
}

#[test]
fn gfx942_samples_decode() {
    check(Target::Gfx942, include_str!("../isa/samples-gfx942.txt"));
}
