//! Makes the worker loadable on older systems.

fn main() -> std::io::Result<()> {
    // Without the translator there is no program, and the linker's arguments would be in vain.
    if std::env::var_os("CARGO_FEATURE_TRANSLATOR").is_some() {
        old_glibc::link(old_glibc::Artefact::Programs)?;
    }
    Ok(())
}
