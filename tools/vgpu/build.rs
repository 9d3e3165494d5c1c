//! Makes the command loadable on older systems.

fn main() -> std::io::Result<()> {
    old_glibc::link(old_glibc::Artefact::Programs)
}
