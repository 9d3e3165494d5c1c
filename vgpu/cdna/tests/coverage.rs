//! Which instructions execute: every sample is run, and those that the interpreter refuses are listed here.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use cdna::{Target, dispatch::Stop, isa::decode};
use support::{Kernel, Machine};

/// Refused on purpose: names (a `*` at the end stands for any rest) and reasons.
const REFUSED: &[(&str, &str)] = &[
    (
        "buffer_load_format_x",
        "its form that loads into LDS; the others execute",
    ),
    ("buffer_store_lds_dword", "no compiler emits it"),
    (
        "ds_gws_*",
        "global wave sync needs a resource that the driver does not hand out here",
    ),
    ("s_cbranch_g_fork", "the branch stack is not modelled"),
    ("s_cbranch_i_fork", "the branch stack is not modelled"),
    ("s_cbranch_join", "the branch stack is not modelled"),
    ("s_rfe_*", "the trap handler is not run: s_trap ends the dispatch"),
    ("s_scratch_*", "scalar access to private memory: no compiler emits it"),
    (
        "s_sendmsg*",
        "messages other than INTERRUPT belong to the trap handler or to graphics",
    ),
    ("s_sethalt", "halting is for a debugger"),
    ("s_setvskip", "skips vector instructions; no compiler emits it"),
    ("v_screen_partition_4se_b32", "graphics"),
];

fn is_listed(name: &str) -> bool {
    REFUSED
        .iter()
        .any(|(n, _)| n.strip_suffix('*').map_or(*n == name, |start| name.starts_with(start)))
}

fn refused(target: Target, samples: &str) -> BTreeMap<&'static str, String> {
    let mut out = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for line in samples.lines() {
        let Some((words, _)) = line.split_once('\t') else {
            continue;
        };
        let words: Vec<u32> = words
            .split(' ')
            .map(|w| u32::from_str_radix(w, 16).expect("hex word"))
            .collect();
        let inst = decode(target, &words).expect("samples decode");
        seen.insert(inst.mnemonic);
        let kernel = Kernel {
            vgprs: 512,
            lds: 65536,
            ..Kernel::new(target, &words)
        };
        if let Err(Stop::IllegalInstruction { message, .. }) = kernel.run(&mut Machine::default(), &[])
            && message.contains("not executed")
        {
            out.insert(inst.mnemonic.name(), message);
        }
    }
    assert!(seen.len() > 1000);
    out
}

fn check(target: Target, samples: &str) {
    let found = refused(target, samples);
    let new: Vec<&str> = found.keys().filter(|n| !is_listed(n)).copied().collect();
    assert!(
        new.is_empty(),
        "{} instructions are refused and not listed: {new:?}",
        new.len()
    );
}

#[test]
fn gfx90a_instructions_execute() {
    check(Target::Gfx90a, include_str!("../isa/samples-gfx90a.txt"));
}

#[test]
fn gfx942_instructions_execute() {
    check(Target::Gfx942, include_str!("../isa/samples-gfx942.txt"));
}
