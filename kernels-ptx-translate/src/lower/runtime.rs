//! The helper library: LLVM IR functions that stand in the module text where a PTX instruction needs more than a line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::intrinsics::{self, Signature};

/// A helper of the library.
struct Helper {
    signature: Signature,
    text: &'static str,
    calls: Vec<&'static str>,
}

const SOURCES: [&str; 6] = [
    include_str!("runtime/warp.ll"),
    include_str!("runtime/integer.ll"),
    include_str!("runtime/float.ll"),
    include_str!("runtime/memory.ll"),
    include_str!("runtime/services.ll"),
    include_str!("runtime/texture.ll"),
];

fn library() -> &'static BTreeMap<&'static str, Helper> {
    static LIBRARY: OnceLock<BTreeMap<&'static str, Helper>> = OnceLock::new();
    LIBRARY.get_or_init(|| SOURCES.iter().flat_map(|s| parse(s)).collect())
}

/// Splits a source file at its `define` lines.
fn parse(source: &'static str) -> Vec<(&'static str, Helper)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find("define internal ") {
        let Some(length) = rest[start..].find("\n}\n") else {
            break;
        };
        let text = &rest[start..start + length + 3];
        rest = &rest[start + length + 3..];
        let Some((ret, after)) = text["define internal ".len()..].split_once(" @") else {
            continue;
        };
        let Some((name, after)) = after.split_once('(') else {
            continue;
        };
        let Some((args, _)) = after.split_once(") #") else {
            continue;
        };
        let args = args
            .split(", ")
            .filter_map(|a| a.rsplit_once(" %"))
            .map(|(ty, _)| ty.to_string())
            .collect();
        let signature = Signature {
            ret: ret.to_string(),
            args,
        };
        found.push((
            name,
            Helper {
                signature,
                text,
                calls: calls(text),
            },
        ));
    }
    found
}

/// Every function called in `text`.
fn calls(text: &'static str) -> Vec<&'static str> {
    let called = text
        .lines()
        .filter_map(|l| l.split_once("call "))
        .filter_map(|(_, rest)| rest.split_once('@'));
    called
        .filter_map(|(_, rest)| rest.split_once('('))
        .map(|(name, _)| name)
        .collect()
}

/// The signature of a helper.
pub fn signature(name: &str) -> Option<Signature> {
    library().get(name).map(|h| h.signature.clone())
}

/// The text of the helpers named in `uses` and of all that they call, and the declarations of all intrinsics used.
pub fn text_for(uses: &BTreeSet<String>) -> String {
    let mut wanted: BTreeSet<&str> = BTreeSet::new();
    let mut queue: Vec<&str> = uses.iter().map(String::as_str).collect();
    while let Some(name) = queue.pop() {
        if wanted.insert(name)
            && let Some(helper) = library().get(name)
        {
            queue.extend(helper.calls.iter().copied());
        }
    }
    let mut text = String::new();
    for name in &wanted {
        text.extend(intrinsics::declaration(name));
    }
    for name in &wanted {
        if let Some(helper) = library().get(name) {
            text.push_str(helper.text);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_in_the_library_matches_the_tables() {
        let mut seen = 0;
        for (name, helper) in library() {
            for line in helper.text.lines().filter(|l| l.contains("call ") && l.contains('@')) {
                let (head, rest) = line.split_once('@').unwrap();
                let (callee, args) = rest.split_once('(').unwrap();
                let signature = intrinsics::signature(callee).or_else(|| signature(callee));
                let signature = signature.unwrap_or_else(|| panic!("{name} calls {callee}, which is in no table"));
                let ret = head.split_once("call ").unwrap().1.trim();
                assert_eq!(ret, signature.ret, "{name}: result of {callee}");
                let args = args.rsplit_once(')').unwrap().0;
                let types: Vec<_> = args
                    .split(", ")
                    .filter(|a| !a.is_empty())
                    .map(|a| a.rsplit_once(' ').unwrap().0.to_string())
                    .collect();
                assert_eq!(types, signature.args, "{name}: arguments of {callee}");
                seen += 1;
            }
        }
        assert!(seen > 50, "the library was not read");
    }
}
