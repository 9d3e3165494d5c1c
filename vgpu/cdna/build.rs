//! Turns `isa/opcodes.tsv` into the `Mnemonic` enumeration and the table of instruction forms.

use std::{collections::BTreeSet, env, fmt::Write as _, fs, path::Path};

/// One line of the table, split at tabs; see `isa/README.md` for the columns.
struct Line<'a>(Vec<&'a str>);

impl<'a> Line<'a> {
    fn column(&self, header: &[&str], name: &str) -> &'a str {
        let at = header
            .iter()
            .position(|h| *h == name)
            .unwrap_or_else(|| panic!("opcodes.tsv has no column {name}"));
        self.0[at]
    }
}

/// `vdst`, `data0` ... as variants of `Slot`.
fn slot(name: &str) -> String {
    let mut out = String::new();
    for part in name.split('_') {
        out.push_str(&part[..1].to_uppercase());
        out.push_str(&part[1..]);
    }
    out
}

/// `name[hi:lo]@hi:lo`: operand bits and the instruction bits that hold them.
fn field(text: &str) -> (String, u8, u8, u8) {
    let (name, place) = text.split_once('@').expect("field without @");
    let range = |t: &str| -> (u8, u8) {
        match t.split_once(':') {
            Some((hi, lo)) => (hi.parse().expect("bit"), lo.parse().expect("bit")),
            None => (t.parse().expect("bit"), t.parse().expect("bit")),
        }
    };
    let (hi, lo) = range(place);
    let (name, shift) = match name.split_once('[') {
        Some((n, bits)) => (n, range(bits.trim_end_matches(']')).1),
        None => (name, 0),
    };
    (name.to_string(), shift, lo, hi - lo + 1)
}

/// `name:file+width[:type][:constant]` as an `OperandDef` literal.
fn operand(text: &str, is_dst: bool, fields: &[(String, u8, u8, u8)]) -> String {
    let parts: Vec<&str> = text.split(':').collect();
    let digits = parts[1]
        .find(|c: char| c.is_ascii_digit())
        .expect("operand without width");
    let (files, bits) = parts[1].split_at(digits);
    let (mut v, mut a, mut s) = (false, false, false);
    if files != "lit" {
        for f in files.chars() {
            match f {
                'v' => v = true,
                'a' => a = true,
                's' => s = true,
                other => panic!("unknown register file {other}"),
            }
        }
    }
    let mut ty = "None".to_string();
    let mut count = 1;
    let mut constant = false;
    for p in &parts[2..] {
        if *p == "imm" || *p == "inline" {
            constant = true;
        } else {
            let (n, t) = p.split_once('x').map_or(("1", *p), |(n, t)| {
                if t.starts_with('f') || t.starts_with('i') {
                    (n, t)
                } else {
                    ("1", *p)
                }
            });
            count = n.parse().expect("vector length");
            ty = slot(t);
        }
    }
    let places: Vec<String> = fields
        .iter()
        .filter(|f| f.0 == parts[0])
        .map(|f| format!("Field {{ shift: {}, lo: {}, len: {} }}", f.1, f.2, f.3))
        .collect();
    format!(
        "OperandDef {{ slot: Slot::{}, dst: {is_dst}, v: {v}, a: {a}, s: {s}, bits: {bits}, ty: Ty::{ty}, count: {count}, constant: {constant}, fields: &[{}] }}",
        slot(parts[0]),
        places.join(", ")
    )
}

fn main() {
    println!("cargo::rerun-if-changed=isa/opcodes.tsv");
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string("isa/opcodes.tsv").expect("isa/opcodes.tsv");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("header").split('\t').collect();
    let lines: Vec<Line<'_>> = lines.map(|l| Line(l.split('\t').collect())).collect();

    let names: BTreeSet<&str> = lines.iter().map(|l| l.column(&header, "mnemonic")).collect();
    let with = |encs: &[&str]| -> BTreeSet<&str> {
        lines
            .iter()
            .filter(|l| encs.contains(&l.column(&header, "enc")))
            .map(|l| l.column(&header, "mnemonic"))
            .collect()
    };
    let short = with(&["VOP1", "VOP2", "VOPC"]);
    let long = with(&["VOP3", "VOP3B"]);

    let mut out = String::new();
    out.push_str("/// Every instruction of the two targets, under the ISA guide's own name.\n");
    out.push_str("#[allow(non_camel_case_types, missing_docs)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u16)]\npub enum Mnemonic {\n");
    for n in &names {
        writeln!(out, "    {n},").unwrap();
    }
    out.push_str("}\n\n");
    writeln!(out, "pub(crate) static NAMES: [&str; {}] = [", names.len()).unwrap();
    for n in &names {
        writeln!(out, "    \"{n}\",").unwrap();
    }
    out.push_str("];\n\n");

    writeln!(
        out,
        "impl Mnemonic {{\n    /// How many there are.\n    pub const COUNT: usize = {};\n}}\n",
        names.len()
    )
    .unwrap();
    writeln!(out, "static ALL: [Mnemonic; {}] = [", names.len()).unwrap();
    for n in &names {
        writeln!(out, "    Mnemonic::{n},").unwrap();
    }
    out.push_str("];\n\n");

    writeln!(out, "pub(crate) static ROWS: [Row; {}] = [", lines.len()).unwrap();
    for l in &lines {
        let get = |name: &str| l.column(&header, name);
        let (gfx90a, gfx942) = match get("target") {
            "both" => (true, true),
            "90a" => (true, false),
            "942" => (false, true),
            other => panic!("unknown target {other}"),
        };
        let list = |name: &str| get(name).split_whitespace().filter(|t| *t != "-").collect::<Vec<_>>();
        let fields: Vec<_> = list("fields").iter().map(|f| field(f)).collect();
        let mut operands: Vec<String> = list("dst").iter().map(|o| operand(o, true, &fields)).collect();
        operands.extend(list("src").iter().map(|o| operand(o, false, &fields)));
        let others: Vec<String> = fields
            .iter()
            .map(|f| format!("(\"{}\", Field {{ shift: {}, lo: {}, len: {} }})", f.0, f.1, f.2, f.3))
            .collect();
        let mods: Vec<String> = list("mods").iter().map(|m| format!("\"{m}\"")).collect();
        let name = get("mnemonic");
        let enc = get("enc");
        let suffix = match enc {
            "VOP1" | "VOP2" | "VOPC" if long.contains(name) => "_e32",
            "VOP3" | "VOP3B" if short.contains(name) => "_e64",
            e if e.starts_with("SDWA") => "_sdwa",
            e if e.starts_with("DPP") => "_dpp",
            _ => "",
        };
        let enc_variant = enc.split('-').map(|p| slot(&p.to_lowercase())).collect::<String>();
        writeln!(
            out,
            "    Row {{ gfx90a: {gfx90a}, gfx942: {gfx942}, enc: Encoding::{enc_variant}, op: {}, mnemonic: Mnemonic::{name}, suffix: \"{suffix}\", form: \"{}\", bytes: {}, literal: Literal::{}, tied: {}, mask: 0x{}, value: 0x{}, operands: &[{}], mods: &[{}], fields: &[{}] }},",
            get("op"),
            get("form").trim_start_matches('-'),
            get("bytes"),
            slot(get("literal")),
            get("constraints").contains("$vdst=$src2") || get("constraints").contains("$src2=$vdst"),
            get("mask"),
            get("value"),
            operands.join(", "),
            mods.join(", "),
            others.join(", "),
        )
        .unwrap();
    }
    out.push_str("];\n");
    let dir = env::var_os("OUT_DIR").expect("OUT_DIR");
    fs::write(Path::new(&dir).join("isa_table.rs"), out).expect("write table");
}
