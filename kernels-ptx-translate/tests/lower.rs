//! File tests of the lowering: each `tests/lower/*.ptx` holds a module and, in comments, what its LLVM IR must contain.
//!
//! ```text
//! // block: 64 1 1             the launch that it is compiled for; 0 0 0 when absent
//! // layout: Solo              the warp layout
//! // check: <fragment>         lines of the IR, in order, each containing its fragment; %N stands for any value
//! // check-not: <fragment>     no line contains it
//! // error: <text>             lowering must fail with this error instead
//! ```
//!
//! `BLESS=1` rewrites the `.ll` beside each file: the whole IR, for reading, and compared on every run.

#![cfg(feature = "translator")]

use std::path::{Path, PathBuf};

use kernels_ptx_translate::lower::lower_kernel;
use kernels_ptx_translate::protocol::{CompileRequest, Target};
use kernels_ptx_translate::ptx;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lower");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .collect();
    found.sort();
    found
}

/// Values get numbers that change with every edit of the emitter: fragments are compared without them.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.trim();
    while let Some(at) = rest.find('%') {
        let end = rest[at + 1..]
            .find(|c: char| !c.is_ascii_alphanumeric())
            .map_or(rest.len(), |n| at + 1 + n);
        let name = &rest[at + 1..end];
        out.push_str(&rest[..at + 1]);
        let numbered =
            name.len() > 1 && name[1..].bytes().all(|b| b.is_ascii_digit()) && name.starts_with(['v', 't', 's']);
        out.push_str(if numbered || name == "N" { "N" } else { name });
        rest = &rest[end..];
    }
    out + rest
}

fn directives<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let prefix = format!("// {name}: ");
    text.lines().filter_map(|l| l.strip_prefix(prefix.as_str())).collect()
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let block = match directives(&text, "block").first() {
        Some(list) => {
            let n: Vec<u32> = list.split_whitespace().map(|w| w.parse().unwrap()).collect();
            [n[0], n[1], n[2]]
        }
        None => [0; 3],
    };
    let module = ptx::parse(&text).map_err(|e| e.to_string())?;
    let entry = module
        .functions
        .iter()
        .find(|f| f.is_entry)
        .ok_or("no entry")?
        .name
        .to_string();
    let request = CompileRequest {
        entry,
        target: Target::Gfx90a,
        block,
        opt_level: 3,
    };
    let lowered = lower_kernel(&module, &request);
    if let Some(expected) = directives(&text, "error").first() {
        return match lowered {
            Err(error) if error.to_string() == *expected => Ok(()),
            other => Err(format!("expected the error {expected:?}, got {other:?}")),
        };
    }
    let lowered = lowered.map_err(|e| e.to_string())?;
    if let Some(layout) = directives(&text, "layout").first()
        && format!("{:?}", lowered.layout) != *layout
    {
        return Err(format!("layout {:?}, expected {layout}", lowered.layout));
    }
    let mut lines = lowered.llvm_ir.lines().map(plain);
    for fragment in directives(&text, "check") {
        if !lines.any(|line| line.contains(&plain(fragment))) {
            return Err(format!("no line (in order) contains {fragment:?}"));
        }
    }
    for fragment in directives(&text, "check-not") {
        if let Some(line) = lowered
            .llvm_ir
            .lines()
            .map(plain)
            .find(|l| l.contains(&plain(fragment)))
        {
            return Err(format!("{line:?} contains {fragment:?}"));
        }
    }
    let golden = path.with_extension("ll");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, &lowered.llvm_ir).map_err(|e| e.to_string())?;
    } else if std::fs::read_to_string(&golden).unwrap_or_default() != lowered.llvm_ir {
        return Err(format!(
            "the IR is not that of {} (BLESS=1 rewrites it)",
            golden.display()
        ));
    }
    Ok(())
}

#[test]
fn every_file_lowers_as_it_says() {
    let files = files();
    assert!(files.len() >= 8, "the test files are missing");
    let failures: Vec<String> = files
        .iter()
        .filter_map(|f| check(f).err().map(|e| format!("{}: {e}", f.display())))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A small generator of numbers: the same on every run.
struct Dice(u64);

impl Dice {
    fn roll<T: Copy>(&mut self, list: &[T]) -> T {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        list[(self.0 >> 33) as usize % list.len()]
    }
}

const OPCODES: &[&str] = &[
    "add",
    "sub",
    "mul",
    "mad",
    "fma",
    "div",
    "rem",
    "abs",
    "neg",
    "min",
    "max",
    "popc",
    "clz",
    "bfind",
    "brev",
    "bfe",
    "bfi",
    "bmsk",
    "szext",
    "fns",
    "prmt",
    "lop3",
    "shf",
    "shl",
    "shr",
    "dp4a",
    "dp2a",
    "sad",
    "addc",
    "subc",
    "madc",
    "mul24",
    "mad24",
    "rcp",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "lg2",
    "ex2",
    "tanh",
    "testp",
    "copysign",
    "set",
    "setp",
    "selp",
    "slct",
    "mov",
    "cvt",
    "ld",
    "st",
    "ldu",
    "cvta",
    "isspacep",
    "prefetch",
    "cp",
    "createpolicy",
    "atom",
    "red",
    "membar",
    "fence",
    "bar",
    "barrier",
    "nanosleep",
    "mbarrier",
    "shfl",
    "vote",
    "match",
    "redux",
    "activemask",
    "elect",
    "mma",
    "wmma",
    "ldmatrix",
    "movmatrix",
    "vadd",
    "vsub2",
    "vmad",
    "vset4",
    "vavrg4",
    "vshl",
    "bra",
    "brx",
    "exit",
    "trap",
    "cnot",
    "not",
    "and",
    "or",
    "xor",
];

const MODIFIERS: &[&str] = &[
    "f32",
    "f64",
    "f16",
    "f16x2",
    "bf16",
    "bf16x2",
    "u8",
    "s8",
    "u16",
    "s16",
    "u32",
    "s32",
    "u64",
    "s64",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "pred",
    "tf32",
    "e4m3x2",
    "e5m2x2",
    "s16x2",
    "f32x2",
    "rn",
    "rz",
    "rm",
    "rp",
    "rni",
    "rzi",
    "ftz",
    "sat",
    "relu",
    "approx",
    "full",
    "lo",
    "hi",
    "wide",
    "cc",
    "eq",
    "lt",
    "and",
    "or",
    "global",
    "shared",
    "local",
    "param",
    "const",
    "v2",
    "v4",
    "volatile",
    "relaxed",
    "gpu",
    "sys",
    "cta",
    "sync",
    "aligned",
    "add",
    "cas",
    "exch",
    "inc",
    "min",
    "up",
    "idx",
    "ballot",
    "all",
    "any",
    "red",
    "arrive",
    "popc",
    "wrap",
    "clamp",
    "l",
    "r",
    "to",
    "pack",
    "async",
    "ca",
    "warp",
    "m16n8k16",
    "m16n16k16",
    "m8n8k128",
    "load",
    "store",
    "mma",
    "satfinite",
    "s4",
    "b1",
    "row",
    "col",
    "m8n8",
    "x4",
    "trans",
    "init",
    "test_wait",
    "xorsign",
    "abs",
    "NaN",
    "shiftamt",
    "f4e",
];

const OPERANDS: &[&str] = &[
    "r0",
    "r1",
    "q0",
    "q1",
    "h0",
    "f0",
    "g0",
    "p0",
    "!p0",
    "x0",
    "5",
    "-1",
    "0f3F800000",
    "0d3FF0000000000000",
    "0.5",
    "[q0]",
    "[q0+4]",
    "[r0]",
    "[s]",
    "[par]",
    "[16]",
    "{r0, r1}",
    "{h0, h1}",
    "{f0, f1, f2, f3}",
    "{q0, q1}",
    "r0|p0",
    "p0|p1",
    "_",
    "%tid.x",
    "%laneid",
    "%clock64",
    "%envreg0",
    "s",
    "k",
    "L",
    "r0.b1",
    "r0.h1",
    "{r0, r1, r2, r3}",
    "par",
    "glob",
    "[glob+8]",
];

#[test]
fn no_instruction_makes_the_lowering_panic() {
    let mut dice = Dice(2026);
    let counts = [0, 1, 2, 2, 3, 3, 3, 4, 4, 5];
    let (mut lowered, mut refused) = (0, 0);
    for round in 0..30_000 {
        let mut line = String::from(if round % 7 == 0 { "@p0 " } else { "" });
        line.push_str(dice.roll(OPCODES));
        for _ in 0..dice.roll(&counts) {
            line.push('.');
            line.push_str(dice.roll(MODIFIERS));
        }
        let operands: Vec<&str> = (0..dice.roll(&counts)).map(|_| dice.roll(OPERANDS)).collect();
        line.push(' ');
        line.push_str(&operands.join(", "));
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 8 .b8 glob[64];\n\
             .visible .entry k(.param .u64 par)\n{{ .reg .b32 r<4>; .reg .b64 q<2>; .reg .b16 h<2>; .reg .f32 f<4>;\n\
             .reg .f64 g<2>; .reg .pred p<2>; .reg .b128 x<1>; .shared .align 16 .b8 s[64];\nL: {line};\nret; }}\n"
        );
        let Ok(module) = ptx::parse(&text) else { continue };
        let request = CompileRequest {
            entry: "k".into(),
            target: Target::Gfx90a,
            block: [64, 1, 1],
            opt_level: 3,
        };
        let result = std::panic::catch_unwind(|| lower_kernel(&module, &request));
        match result.unwrap_or_else(|_| panic!("panicked at: {line}")) {
            Ok(_) => lowered += 1,
            Err(error) => {
                assert!(!error.to_string().contains("internal"), "{line}: {error}");
                refused += 1;
            }
        }
    }
    assert!(
        lowered > 500 && refused > 500,
        "{lowered} lowered, {refused} refused: the generator is no test"
    );
}
