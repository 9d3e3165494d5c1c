//! `cargo xtask coverage`: how much of each library is there, by chapter of CUDA's manuals.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use symbol_versions::{Library, Status, Symbol};

use crate::Result;

/// Options of `coverage`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Name the calls that are not there.
    #[arg(long)]
    list: bool,
    /// JSON for scripts; it always has the names.
    #[arg(long)]
    json: bool,
}

/// The calls of one chapter.
#[derive(Default, Serialize)]
pub struct Chapter {
    /// A function answers.
    pub implemented: Vec<&'static str>,
    /// Not there yet: 801 and one log line.
    pub stub: Vec<&'static str>,
    /// Will not be there: 801 and one log line.
    pub refused: Vec<&'static str>,
}

/// What a chapter offers as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Every call is there.
    Works,
    /// Some are.
    Partial,
    /// None is, and none will be.
    Refused,
    /// None is.
    NotYet,
}

impl Tier {
    /// As tables have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Partial => "partial",
            Self::Refused => "refused",
            Self::NotYet => "not yet",
        }
    }
}

impl Chapter {
    /// The chapter's tier.
    pub fn tier(&self) -> Tier {
        match (
            self.implemented.is_empty(),
            self.stub.is_empty(),
            self.refused.is_empty(),
        ) {
            (false, true, true) => Tier::Works,
            (false, ..) => Tier::Partial,
            (true, true, _) => Tier::Refused,
            (true, false, _) => Tier::NotYet,
        }
    }

    /// Implemented, not there yet, refused.
    pub fn counts(&self) -> [usize; 3] {
        [self.implemented.len(), self.stub.len(), self.refused.len()]
    }
}

/// The chapters of a library by name.
pub type Chapters = BTreeMap<&'static str, Chapter>;

/// Sorts the symbols of a library into chapters.
pub fn chapters(library: Library) -> Chapters {
    let mut chapters = Chapters::new();
    for symbol in library.table().symbols() {
        let chapter = chapters.entry(chapter(symbol.name)).or_default();
        match symbol.status {
            Status::Impl => chapter.implemented.push(symbol.name),
            Status::Stub => chapter.stub.push(symbol.name),
            Status::Refuse => chapter.refused.push(symbol.name),
        }
    }
    chapters
}

/// Chapters and how the names in them begin, after `cu`, `cuda` or `nvml`; the longest beginning counts.
#[rustfmt::skip]
const CHAPTERS: &[(&str, &[&str])] = &[
    ("Arrays, textures and surfaces", &[
        "Array", "MipmappedArray", "MallocArray", "Malloc3DArray", "MallocMipmapped", "FreeArray", "FreeMipmapped",
        "GetMipmapped", "GetChannel", "CreateChannel", "CreateTexture", "CreateSurface", "DestroyTexture", "DestroySurface",
        "GetTexture", "GetSurface", "Tex", "Surf", "DeviceGetTexture1D", "BindTexture", "BindSurface", "UnbindTexture", "BindTexture2D",
    ]),
    ("Contexts", &["Ctx", "DevicePrimary", "Thread"]),
    ("Copies and fills", &["Memcpy", "Memset", "GetSymbol"]),
    ("Debugging, checkpoints and logs", &["Coredump", "Checkpoint", "Logs"]),
    ("Devices", &[
        "Device", "GetDevice", "SetDevice", "SetValid", "ChooseDevice", "InitDevice", "SetDouble", "Flush", "Unit",
    ]),
    ("Entry points", &["GetProc", "GetDriverEntryPoint", "GetExport"]),
    ("Errors", &["GetError", "GetLast", "PeekAt", "ErrorString"]),
    ("Events", &["Event"]),
    ("Execution", &["Launch", "Func", "Param", "Kernel", "GetFunc", "ConfigureCall", "SetupArgument"]),
    ("External memory and semaphores", &["External", "ImportExternal", "DestroyExternal", "SignalExternal", "WaitExternal"]),
    ("Graphics interoperability", &[
        "Graphics", "GL", "EGL", "VDPAU", "EventCreateFromEGL", "D3D", "WGL", "Gl",
    ]),
    ("Graphs and capture", &[
        "Graph", "UserObject", "StreamBeginCapture", "StreamEndCapture", "StreamIsCapturing", "StreamGetCapture", "StreamUpdateCapture",
        "ThreadExchange", "DeviceGraphMem", "DeviceGetGraphMem", "DeviceSetGraphMem", "GetCurrentGraph", "StreamBeginRecapture",
    ]),
    ("Green contexts", &[
        "Green", "DevResource", "DevSm", "CtxFromGreen", "CtxGetDevResource", "CtxRecordEvent", "CtxWaitEvent", "DeviceGetDevResource",
        "StreamGetGreen", "StreamGetDevResource", "ExecutionCtx",
    ]),
    ("Initialisation and versions", &["Init", "Driver", "Runtime", "Shutdown", "System"]),
    ("Inter-process memory and events", &["Ipc"]),
    ("Managed memory", &["MemAdvise", "MemPrefetch", "MemRange", "MallocManaged", "MemAllocManaged", "MemDiscard", "StreamAttach"]),
    ("Memory", &["Mem", "Malloc", "Free", "Host"]),
    ("Modules and libraries", &["Module", "Library", "Link", "GetKernel"]),
    ("Multicast", &["Multicast"]),
    ("Occupancy", &["Occupancy"]),
    ("Peer access", &[
        "DeviceCanAccessPeer", "DeviceEnablePeer", "DeviceDisablePeer", "DeviceGetP2P", "CtxEnablePeer", "CtxDisablePeer",
    ]),
    ("Pointers", &["Pointer", "MemGetAddressRange"]),
    ("Profiler", &["Profiler"]),
    ("Registration (called by nvcc's code)", &[
        "Register", "Unregister", "PushCall", "PopCall", "InitModule", "_",
    ]),
    ("Stream memory operations", &["StreamWait", "StreamWrite", "StreamBatch"]),
    ("Stream-ordered memory", &[
        "MemPool", "MallocAsync", "FreeAsync", "MallocFrom", "MemAllocAsync", "MemAllocFrom", "MemFreeAsync",
        "DeviceGetDefaultMemPool", "DeviceGetMemPool", "DeviceSetMemPool", "MemGetMemPool", "MemSetMemPool", "MemGetDefaultMemPool",
    ]),
    ("Streams", &["Stream", "StreamWaitEvent", "LaunchHost", "CtxResetPersisting"]),
    ("Tensor maps", &["TensorMap"]),
    ("Virtual memory", &[
        "MemAddress", "MemCreate", "MemMap", "MemUnmap", "MemRelease", "MemRetain", "MemExport", "MemImport", "MemSetAccess",
        "MemGetAccess", "MemGetAllocation", "MemGetHandle",
    ]),
];

/// Why calls that are not there will hardly be missed, and how their names begin, after `cu` or `cuda`. Attributes are of
/// `cuDeviceGetAttribute`, by which programs ask first.
const REASONS: &[(&str, &[&str])] = &[
    (
        "the way to launch before CUDA 4",
        &["FuncSetBlockShape", "FuncSetSharedSize", "LaunchGrid", "ParamSet"],
    ),
    (
        "attribute 96 is 0; CUDA 13 has removed it",
        &["LaunchCooperativeKernelMultiDevice"],
    ),
    (
        "no clusters of blocks: attribute 120 is 0",
        &["OccupancyMaxActiveClusters", "OccupancyMaxPotentialClusterSize"],
    ),
    ("no engine for it: attribute 136 is 0", &["MemBatchDecompress"]),
    (
        "no pointers to functions for host and GPU: attribute 129 is 0",
        &["LibraryGetUnifiedFunction"],
    ),
    ("only NVIDIA's embedded systems have it", &["DeviceGetNvSciSync"]),
    (
        "the kernel driver does not tell when memory runs short",
        &["DeviceRegisterAsync", "DeviceUnregisterAsync"],
    ),
    ("in none of CUDA's headers", &["MemGetAttribute"]),
    (
        "atomics between devices are not promised: attribute 86 is 0",
        &["DeviceGetHostAtomic", "DeviceGetP2PAtomic"],
    ),
    ("for NVIDIA's profiler of CUDA 4 to 10", &["ProfilerInitialize"]),
    ("attribute 132 is 0", &["Multicast"]),
    ("attribute 127 is 0", &["TensorMap"]),
];

/// Why a call that is not there will hardly be missed.
pub fn reason(library: Library, name: &str) -> Option<&'static str> {
    let stem = name.strip_prefix("cuda").or(name.strip_prefix("cu"))?;
    let given = REASONS
        .iter()
        .find(|(_, prefixes)| prefixes.iter().any(|prefix| stem.starts_with(prefix)));
    let widened = |symbol: &Symbol| library == Library::Cuda && symbol.since == Some(3020);
    let has_successor = || library.table().get(&format!("{name}_v2")).is_some_and(widened);
    match given {
        Some((reason, _)) => Some(reason),
        None if name == "cuLaunch" => Some(REASONS[0].0),
        // CUDA 3.2 made addresses and sizes 64 bits wide.
        None if has_successor() => Some("32-bit addresses: since CUDA 3.2 the headers mean the `_v2` of the name"),
        None => None,
    }
}

/// The chapter of a name that no rule knows; a test keeps it empty.
const OTHER: &str = "Other";

/// The chapter of a symbol.
pub fn chapter(name: &str) -> &'static str {
    let stem = ["__cuda", "cuda", "nvml", "cu"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    // What only nvcc's code calls is in no manual.
    let stem = if name.starts_with("__") { "_" } else { stem };
    CHAPTERS
        .iter()
        .flat_map(|(chapter, prefixes)| prefixes.iter().map(move |prefix| (prefix, chapter)))
        .filter(|(prefix, _)| stem.starts_with(*prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map_or(OTHER, |(_, chapter)| chapter)
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.json {
        let libraries: Vec<_> = Library::ALL
            .into_iter()
            .map(|library| serde_json::json!({"library": library.soname(), "chapters": chapters(library)}))
            .collect();
        println!("{}", serde_json::to_string_pretty(&libraries)?);
        return Ok(ExitCode::SUCCESS);
    }
    for library in Library::ALL {
        let chapters = chapters(library);
        let sum = |column: usize| chapters.values().map(|chapter| chapter.counts()[column]).sum::<usize>();
        println!("{:<40} {:>6} {:>6} {:>8}", library.soname(), "there", "stub", "refused");
        for (name, chapter) in &chapters {
            let [implemented, stub, refused] = chapter.counts();
            println!(
                "  {name:<38} {implemented:>6} {stub:>6} {refused:>8}  {}",
                chapter.tier().name()
            );
            if arguments.list {
                for (what, names) in [("stub", &chapter.stub), ("refused", &chapter.refused)] {
                    names.iter().for_each(|name| println!("      {what:<8} {name}"));
                }
            }
        }
        println!("  {:<38} {:>6} {:>6} {:>8}\n", "all", sum(0), sum(1), sum(2));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_has_a_chapter_and_is_counted_once() {
        for library in Library::ALL {
            let chapters = chapters(library);
            let lost = chapters.get(OTHER).map(Chapter::counts);
            assert_eq!(lost, None, "{:?}", chapters.get(OTHER).map(|other| &other.stub));
            let sum: usize = chapters.values().flat_map(Chapter::counts).sum();
            assert_eq!(sum, library.table().symbols().len());
        }
    }

    #[test]
    fn reasons_are_of_calls_that_are_not_there() {
        let stems: Vec<&str> = Library::ALL
            .iter()
            .flat_map(|library| library.table().symbols())
            .filter(|symbol| symbol.status == Status::Stub)
            .filter_map(|symbol| symbol.name.strip_prefix("cuda").or(symbol.name.strip_prefix("cu")))
            .collect();
        for prefix in REASONS.iter().flat_map(|(_, prefixes)| *prefixes) {
            assert!(stems.iter().any(|stem| stem.starts_with(prefix)), "{prefix}");
        }
        assert_eq!(reason(Library::Cuda, "cuMemAlloc_v2"), None);
        assert!(reason(Library::Cuda, "cuMemAlloc").is_some_and(|reason| reason.contains("32-bit")));
    }

    #[test]
    fn the_longest_beginning_counts() {
        for (name, expected) in [
            ("cuMemAlloc_v2", "Memory"),
            ("cudaMallocAsync", "Stream-ordered memory"),
            ("cuStreamWaitEvent", "Streams"),
            ("cuStreamWaitValue32_v2", "Stream memory operations"),
            ("cuMemGetAddressRange_v2", "Pointers"),
            ("__cudaRegisterFatBinary", "Registration (called by nvcc's code)"),
            ("nvmlDeviceGetName", "Devices"),
        ] {
            assert_eq!(chapter(name), expected, "{name}");
        }
    }

    #[test]
    fn tiers_follow_from_what_is_there() {
        let chapter = |implemented: &[&'static str], stub: &[&'static str], refused: &[&'static str]| Chapter {
            implemented: implemented.to_vec(),
            stub: stub.to_vec(),
            refused: refused.to_vec(),
        };
        assert_eq!(chapter(&["a"], &[], &[]).tier(), Tier::Works);
        assert_eq!(chapter(&["a"], &[], &["b"]).tier(), Tier::Partial);
        assert_eq!(chapter(&[], &["b"], &["c"]).tier(), Tier::NotYet);
        assert_eq!(chapter(&[], &[], &["c"]).tier(), Tier::Refused);
    }
}
