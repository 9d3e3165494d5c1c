//! Compiles this crate, and no other, as one that is checked by loom.

fn main() {
    println!("cargo::rustc-cfg=loom");
    println!("cargo::rerun-if-changed=build.rs");
}
