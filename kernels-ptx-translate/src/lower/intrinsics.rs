//! The closed table of LLVM intrinsics that the translator may name.
//!
//! Code generators up to LLVM 17 check neither the name nor the signature of an intrinsic: a wrong one links and dies at
//! load, or aborts the process. So the text is built from this table only, and a test reads the helper library against it.
//! Every line was compiled by LLVM 15 and 17 and is listed as accepted by 21.

/// Return type and argument types of each intrinsic, sorted by name. `immarg` arguments are marked in the declaration.
const TABLE: &[(&str, &str, &[&str])] = &[
    (
        "llvm.amdgcn.atomic.dec.i32.p0",
        "i32",
        &["ptr", "i32", "i32 immarg", "i32 immarg", "i1 immarg"],
    ),
    (
        "llvm.amdgcn.atomic.dec.i32.p1",
        "i32",
        &["ptr addrspace(1)", "i32", "i32 immarg", "i32 immarg", "i1 immarg"],
    ),
    (
        "llvm.amdgcn.atomic.dec.i32.p3",
        "i32",
        &["ptr addrspace(3)", "i32", "i32 immarg", "i32 immarg", "i1 immarg"],
    ),
    (
        "llvm.amdgcn.atomic.inc.i32.p0",
        "i32",
        &["ptr", "i32", "i32 immarg", "i32 immarg", "i1 immarg"],
    ),
    (
        "llvm.amdgcn.atomic.inc.i32.p1",
        "i32",
        &["ptr addrspace(1)", "i32", "i32 immarg", "i32 immarg", "i1 immarg"],
    ),
    (
        "llvm.amdgcn.atomic.inc.i32.p3",
        "i32",
        &["ptr addrspace(3)", "i32", "i32 immarg", "i32 immarg", "i1 immarg"],
    ),
    ("llvm.amdgcn.ballot.i64", "i64", &["i1"]),
    ("llvm.amdgcn.cos.f32", "float", &["float"]),
    ("llvm.amdgcn.ds.bpermute", "i32", &["i32", "i32"]),
    ("llvm.amdgcn.fract.f32", "float", &["float"]),
    ("llvm.amdgcn.frexp.exp.i32.f32", "i32", &["float"]),
    ("llvm.amdgcn.frexp.exp.i32.f64", "i32", &["double"]),
    ("llvm.amdgcn.frexp.mant.f32", "float", &["float"]),
    ("llvm.amdgcn.frexp.mant.f64", "double", &["double"]),
    ("llvm.amdgcn.is.private", "i1", &["ptr"]),
    ("llvm.amdgcn.is.shared", "i1", &["ptr"]),
    ("llvm.amdgcn.ldexp.f32", "float", &["float", "i32"]),
    ("llvm.amdgcn.ldexp.f64", "double", &["double", "i32"]),
    ("llvm.amdgcn.mbcnt.hi", "i32", &["i32", "i32"]),
    ("llvm.amdgcn.mbcnt.lo", "i32", &["i32", "i32"]),
    ("llvm.amdgcn.perm", "i32", &["i32", "i32", "i32"]),
    ("llvm.amdgcn.rcp.f32", "float", &["float"]),
    ("llvm.amdgcn.rcp.f64", "double", &["double"]),
    ("llvm.amdgcn.readfirstlane", "i32", &["i32"]),
    ("llvm.amdgcn.readlane", "i32", &["i32", "i32"]),
    ("llvm.amdgcn.rsq.f32", "float", &["float"]),
    ("llvm.amdgcn.rsq.f64", "double", &["double"]),
    ("llvm.amdgcn.s.barrier", "void", &[]),
    ("llvm.amdgcn.s.memrealtime", "i64", &[]),
    ("llvm.amdgcn.s.memtime", "i64", &[]),
    ("llvm.amdgcn.s.sleep", "void", &["i32 immarg"]),
    ("llvm.amdgcn.sin.f32", "float", &["float"]),
    ("llvm.amdgcn.sqrt.f32", "float", &["float"]),
    ("llvm.amdgcn.wave.barrier", "void", &[]),
    ("llvm.amdgcn.workgroup.id.x", "i32", &[]),
    ("llvm.amdgcn.workgroup.id.y", "i32", &[]),
    ("llvm.amdgcn.workgroup.id.z", "i32", &[]),
    ("llvm.amdgcn.workitem.id.x", "i32", &[]),
    ("llvm.amdgcn.workitem.id.y", "i32", &[]),
    ("llvm.amdgcn.workitem.id.z", "i32", &[]),
    ("llvm.bitreverse.i32", "i32", &["i32"]),
    ("llvm.bitreverse.i64", "i64", &["i64"]),
    ("llvm.ceil.f32", "float", &["float"]),
    ("llvm.ceil.f64", "double", &["double"]),
    ("llvm.copysign.f32", "float", &["float", "float"]),
    ("llvm.copysign.f64", "double", &["double", "double"]),
    ("llvm.ctlz.i32", "i32", &["i32", "i1 immarg"]),
    ("llvm.ctlz.i64", "i64", &["i64", "i1 immarg"]),
    ("llvm.ctpop.i32", "i32", &["i32"]),
    ("llvm.ctpop.i64", "i64", &["i64"]),
    ("llvm.cttz.i32", "i32", &["i32", "i1 immarg"]),
    ("llvm.debugtrap", "void", &[]),
    ("llvm.exp2.f32", "float", &["float"]),
    ("llvm.fabs.f32", "float", &["float"]),
    ("llvm.fabs.f64", "double", &["double"]),
    ("llvm.floor.f32", "float", &["float"]),
    ("llvm.floor.f64", "double", &["double"]),
    ("llvm.fma.f16", "half", &["half", "half", "half"]),
    ("llvm.fma.f32", "float", &["float", "float", "float"]),
    ("llvm.fma.f64", "double", &["double", "double", "double"]),
    ("llvm.fptosi.sat.i32.f32", "i32", &["float"]),
    ("llvm.fptosi.sat.i32.f64", "i32", &["double"]),
    ("llvm.fptosi.sat.i64.f32", "i64", &["float"]),
    ("llvm.fptosi.sat.i64.f64", "i64", &["double"]),
    ("llvm.fptoui.sat.i32.f32", "i32", &["float"]),
    ("llvm.fptoui.sat.i32.f64", "i32", &["double"]),
    ("llvm.fptoui.sat.i64.f32", "i64", &["float"]),
    ("llvm.fptoui.sat.i64.f64", "i64", &["double"]),
    ("llvm.fshl.i32", "i32", &["i32", "i32", "i32"]),
    ("llvm.fshr.i32", "i32", &["i32", "i32", "i32"]),
    ("llvm.log2.f32", "float", &["float"]),
    ("llvm.maxnum.f32", "float", &["float", "float"]),
    ("llvm.maxnum.f64", "double", &["double", "double"]),
    ("llvm.minnum.f32", "float", &["float", "float"]),
    ("llvm.minnum.f64", "double", &["double", "double"]),
    ("llvm.rint.f32", "float", &["float"]),
    ("llvm.rint.f64", "double", &["double"]),
    ("llvm.smax.i16", "i16", &["i16", "i16"]),
    ("llvm.smax.i32", "i32", &["i32", "i32"]),
    ("llvm.smax.i64", "i64", &["i64", "i64"]),
    ("llvm.smin.i16", "i16", &["i16", "i16"]),
    ("llvm.smin.i32", "i32", &["i32", "i32"]),
    ("llvm.smin.i64", "i64", &["i64", "i64"]),
    ("llvm.trap", "void", &[]),
    ("llvm.trunc.f32", "float", &["float"]),
    ("llvm.trunc.f64", "double", &["double"]),
    ("llvm.umax.i16", "i16", &["i16", "i16"]),
    ("llvm.umax.i32", "i32", &["i32", "i32"]),
    ("llvm.umax.i64", "i64", &["i64", "i64"]),
    ("llvm.umin.i16", "i16", &["i16", "i16"]),
    ("llvm.umin.i32", "i32", &["i32", "i32"]),
    ("llvm.umin.i64", "i64", &["i64", "i64"]),
];

/// A function that the text may call: an intrinsic or one of our helpers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// LLVM return type.
    pub ret: String,
    /// LLVM argument types, without attributes.
    pub args: Vec<String>,
}

/// The signature of an intrinsic of the table.
pub fn signature(name: &str) -> Option<Signature> {
    let at = TABLE.binary_search_by(|row| row.0.cmp(name)).ok()?;
    let args = TABLE[at]
        .2
        .iter()
        .map(|a| a.trim_end_matches(" immarg").to_string())
        .collect();
    Some(Signature {
        ret: TABLE[at].1.to_string(),
        args,
    })
}

/// The `declare` line of an intrinsic of the table. No attributes: the code generator knows its own.
pub fn declaration(name: &str) -> Option<String> {
    let at = TABLE.binary_search_by(|row| row.0.cmp(name)).ok()?;
    let (name, ret, args) = TABLE[at];
    Some(format!("declare {ret} @{name}({})\n", args.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_duplicate() {
        assert!(TABLE.windows(2).all(|w| w[0].0 < w[1].0));
    }

    #[test]
    fn unknown_names_have_no_signature() {
        assert_eq!(signature("llvm.amdgcn.readfirstlane.i32"), None);
        assert_eq!(declaration("llvm.sin.f64"), None);
    }
}
