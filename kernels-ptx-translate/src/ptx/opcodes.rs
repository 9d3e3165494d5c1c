//! Words that PTX ISA reserves: opcodes and special registers.

/// First words of every instruction up to PTX ISA 9.0, deprecated ones included. Sorted.
const OPCODES: &[&str] = &[
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "applypriority",
    "atom",
    "bar",
    "barrier",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "bra",
    "brev",
    "brkpt",
    "brx",
    "call",
    "clusterlaunchcontrol",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "cp",
    "createpolicy",
    "cvt",
    "cvta",
    "discard",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "exit",
    "fence",
    "fma",
    "fns",
    "getctarank",
    "griddepcontrol",
    "isspacep",
    "istypep",
    "ld",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "membar",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "multimem",
    "nanosleep",
    "neg",
    "not",
    "or",
    "pmevent",
    "popc",
    "prefetch",
    "prefetchu",
    "prmt",
    "rcp",
    "red",
    "redux",
    "rem",
    "ret",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setmaxnreg",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "st",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "sub",
    "subc",
    "suld",
    "suq",
    "sured",
    "sust",
    "szext",
    "tanh",
    "tcgen05",
    "tensormap",
    "testp",
    "tex",
    "tld4",
    "trap",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vote",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "wgmma",
    "wmma",
    "xor",
];

/// Special registers without their `%`; those of a numbered family end in `#`. Sorted.
const SPECIAL: &[&str] = &[
    "aggr_smem_size",
    "clock",
    "clock64",
    "clock_hi",
    "cluster_ctaid",
    "cluster_ctarank",
    "cluster_nctaid",
    "cluster_nctarank",
    "clusterid",
    "ctaid",
    "current_graph_exec",
    "dynamic_smem_size",
    "envreg#",
    "globaltimer",
    "globaltimer_hi",
    "globaltimer_lo",
    "gridid",
    "is_explicit_cluster",
    "laneid",
    "lanemask_eq",
    "lanemask_ge",
    "lanemask_gt",
    "lanemask_le",
    "lanemask_lt",
    "nclusterid",
    "nctaid",
    "nsmid",
    "ntid",
    "nwarpid",
    "pm#",
    "pm#_64",
    "reserved_smem_offset_#",
    "reserved_smem_offset_begin",
    "reserved_smem_offset_cap",
    "reserved_smem_offset_end",
    "smid",
    "tid",
    "total_smem_size",
    "warpid",
];

/// Whether PTX ISA 9.0 knows an instruction that begins with this word.
pub fn is_opcode(word: &str) -> bool {
    OPCODES.binary_search(&word).is_ok()
}

/// What an instruction needs of the module that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// This `.version` or a later one.
    Version(u32, u32),
    /// This number of a `.target` or a higher one.
    Target(u32),
    /// The same, in other words.
    Feature(u32),
}
use Requirement::{Feature, Target, Version};

/// Instructions that came late, with what NVIDIA's assembler (CUDA 13) refuses them for, in its order and wording. Those of which
/// every form needs the same.
const REQUIREMENTS: &[(&str, &[Requirement])] = &[
    ("activemask", &[Version(6, 2)]),
    ("bmsk", &[Target(70), Version(7, 6)]),
    ("discard", &[Feature(80), Version(7, 4)]),
    ("dp4a", &[Target(61)]),
    ("elect", &[Version(8, 0), Feature(90)]),
    ("getctarank", &[Feature(90), Version(7, 8)]),
    ("mapa", &[Feature(90), Version(7, 8)]),
    ("match", &[Target(70)]),
    ("movmatrix", &[Feature(75), Version(7, 8)]),
    ("nanosleep", &[Target(70), Version(6, 2)]),
    ("redux", &[Feature(80), Version(7, 0)]),
    ("stmatrix", &[Feature(90), Version(7, 8)]),
    ("szext", &[Target(70), Version(7, 6)]),
];

/// What an instruction needs, where it is not as old as all PTX.
pub fn requirements(opcode: &str) -> &'static [Requirement] {
    let found = REQUIREMENTS.binary_search_by_key(&opcode, |row| row.0);
    found.map_or(&[], |at| REQUIREMENTS[at].1)
}

/// Whether `name` (with its `%`) is a special register.
pub fn is_special(name: &str) -> bool {
    let Some(name) = name.strip_prefix('%').filter(|n| n.len() < 40) else {
        return false;
    };
    if SPECIAL.binary_search(&name).is_ok() {
        return true;
    }
    let is_64 = name.starts_with("pm") && name.ends_with("_64");
    let stem = if is_64 { &name[..name.len() - 3] } else { name };
    let family = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let pattern = format!("{family}#{}", if is_64 { "_64" } else { "" });
    family.len() < stem.len() && SPECIAL.binary_search(&pattern.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_found() {
        assert!(OPCODES.is_sorted() && SPECIAL.is_sorted());
        assert!(REQUIREMENTS.is_sorted_by_key(|row| row.0) && REQUIREMENTS.iter().all(|row| is_opcode(row.0)));
        assert_eq!(requirements("elect"), [Version(8, 0), Feature(90)]);
        assert!(requirements("add").is_empty());
        assert!(is_opcode("lop3") && !is_opcode("frobnicate"));
        for name in [
            "%tid",
            "%envreg31",
            "%pm7",
            "%pm0_64",
            "%reserved_smem_offset_0",
            "%lanemask_lt",
        ] {
            assert!(is_special(name), "{name}");
        }
        for name in ["%tidy", "%envreg", "tid", "%pm", "%r1", "%pm_64", "%clock#"] {
            assert!(!is_special(name), "{name}");
        }
    }
}
