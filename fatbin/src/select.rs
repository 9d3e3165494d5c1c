//! Which entry a GPU takes.

use crate::{Entry, Kind};

/// The outcome of a choice among entries.
#[derive(Clone, Debug)]
pub enum Choice<'b> {
    /// This PTX.
    Ptx(Entry<'b>),
    /// There is machine code only, for these architectures: nothing that can be translated.
    MachineCodeOnly(Vec<String>),
    /// There is PTX, but only of architecture- or family-specific variants: these.
    SpecificOnly(Vec<String>),
    /// Nothing at all.
    Empty,
}

/// Chooses PTX for a device that reports compute capability `capability` (80 for 8.0): the highest not above it, else
/// the lowest above it (it uses the fewest features that we may lack). Of two for the same architecture the later
/// version of PTX wins.
///
/// `a` and `f` variants are for the hardware they name and are taken only where the architecture is `capability`
/// itself, after the plain one.
pub fn choose_ptx<'b>(entries: impl IntoIterator<Item = Entry<'b>>, capability: u32) -> Choice<'b> {
    let (mut ptx, mut specific, mut machine_code) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        match entry.kind {
            Kind::Ptx if entry.variant().is_none() || entry.arch == capability => ptx.push(entry),
            Kind::Ptx => specific.push(entry.architecture()),
            Kind::Cubin => machine_code.push(entry.architecture()),
            _ => {}
        }
    }
    // Plain entries before variants, then the newer PTX.
    let rank = |e: &Entry<'_>| (e.variant().is_none(), e.version);
    let below = ptx
        .iter()
        .filter(|e| e.arch <= capability)
        .max_by_key(|e| (e.arch, rank(e)));
    let above = || ptx.iter().min_by_key(|e| (e.arch, std::cmp::Reverse(rank(e))));
    match below.or_else(above) {
        Some(entry) => Choice::Ptx(*entry),
        None if !specific.is_empty() => Choice::SpecificOnly(specific),
        None if !machine_code.is_empty() => Choice::MachineCodeOnly(machine_code),
        None => Choice::Empty,
    }
}
