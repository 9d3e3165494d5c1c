//! What crosses the socket between a CUDA process and the translator worker.
//!
//! A message is JSON for what has structure and a blob for what has size; cache files hold the same:
//!
//! ```text
//! | u32 magic "RGPT" | u32 bytes of JSON | u64 bytes of blob | JSON | blob |     little-endian
//! ```
//!
//! | message | JSON | blob |
//! |---|---|---|
//! | client to worker | [`Request`] | the PTX text |
//! | worker to client | [`Reply`] or [`TranslateError`] | initial data of the module, or the code object |

use std::io::{self, Read};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The GPU to compile for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// CDNA 2.
    Gfx90a,
    /// CDNA 3.
    Gfx942,
}

/// How CUDA's 32-lane warps lie on 64-lane waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WarpLayout {
    /// One wave holds two warps (lanes 0-31 and 32-63). Launch: the CUDA block as the work-group.
    Paired,
    /// One wave holds one warp in lanes 0-31; lanes 32-63 return at entry. Launch: a one-dimensional work-group of
    /// `ceil(threads / 32) * 64` work-items per CUDA block, the grid's y and z as they are.
    Solo,
}

/// One parameter of a kernel, in declaration order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Byte offset in the parameter block (PTX layout rules: natural or declared alignment).
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A `.entry` of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The PTX name.
    pub name: String,
    /// Parameters.
    pub params: Vec<Param>,
    /// Size of the parameter block in bytes (end of the last parameter; 0 with none).
    pub param_size: u32,
    /// `.maxntid`, missing dimensions 1.
    pub max_ntid: Option<[u32; 3]>,
    /// `.reqntid`.
    pub req_ntid: Option<[u32; 3]>,
    /// Bytes of static `.shared` memory that the kernel and the functions it calls use.
    pub static_shared: u32,
    /// Bytes of `.local` memory declared per thread.
    pub local: u32,
}

/// A module-scope `.global` or `.const` variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Global {
    /// The PTX name.
    pub name: String,
    /// Offset of the variable in the module's data block.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// `.const` rather than `.global`.
    pub constant: bool,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// Declared `.extern`: must be defined by another module.
    pub external: bool,
}

/// A pointer inside the initial data block: at `at`, add the block's base address (already holds the addend).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relocation {
    /// Offset of the 8-byte word in the data block.
    pub at: u64,
}

/// What a module contains, without compiling it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleInfo {
    /// `.version` major and minor.
    pub version: (u32, u32),
    /// `.target`, for example `sm_80` or `sm_90a`.
    pub target: String,
    /// Kernels, in source order.
    pub entries: Vec<Entry>,
    /// Variables.
    pub globals: Vec<Global>,
    /// Size of the module's data block: every `.global` and `.const` variable at its aligned offset. Kernels receive
    /// its base address as a hidden argument, so every kernel of a module sees the same variables.
    pub data_size: u64,
    /// Alignment of the data block.
    pub data_align: u64,
    /// Initial bytes of the data block (may be shorter than `data_size`: the rest is zero). Travels as the blob.
    #[serde(skip)]
    pub data: Vec<u8>,
    /// Pointers to relocate in it.
    pub relocations: Vec<Relocation>,
}

/// The hidden arguments that follow the parameter block at the next multiple of 8. 72 bytes, little-endian:
///
/// ```text
///  0 u64 module data block     24 u32 ntid.x  y  z        48 u32 dynamic shared bytes
///  8 u64 printf ring, or 0     36 u32 nctaid.x  y  z      52 u32 reserved, 0
/// 16 u64 device heap, or 0                                56 u64 grid id
///                                                         64 u64 grid workspace of a cooperative launch, or 0
/// ```
pub const HIDDEN_ARGS_SIZE: u32 = 72;

/// Bytes of a grid workspace, by which the work-groups of a cooperative launch wait for each other. `cooperative_groups` finds its address in
/// `%envreg1` (high word) and `%envreg2`. Its barrier adds up to 1 << 31 every time all have arrived, so that bit tells the rounds
/// apart, and launches that follow each other may use one workspace.
///
/// ```text
/// 0 u32 size      4 u32 barrier, 0 at first
/// ```
pub const GRID_WORKSPACE: u64 = 8;

/// Bytes before the first record of a printf ring, which is zero but for `capacity` when a kernel starts. Records follow
/// each other; the host reads them once the kernels that write to the ring have ended.
///
/// ```text
///  0 u64 bytes asked for       8 u64 capacity: bytes after this header      16 u64 records that found no room
/// record: 0 u64 size of the record, a multiple of 8 (0: not written)   8 u64 address of the format
///        16 arguments as CUDA's vprintf packs them: 4 bytes for int, 8 for long, double and pointers, aligned to their size
/// assert: 0 u64 72   8 u64 0   16 u64 message   24 u64 file   32 u64 function
///        40 u32 block x y z   52 u32 thread x y z   64 u32 line   68 unused
/// ```
pub const PRINTF_RING_HEADER: u64 = 24;

/// Bytes before the first block of a device heap: what `break` must be at first. The rest of the header is zero.
///
/// ```text
///  0 u64 break: offset of the first byte never given out   8 u64 size of the heap with this header
/// 16 u64 x 32 stacks of freed blocks by size class (tag << 40 | offset / 16)
/// block: 16 bytes { u64 next on its stack, u64 class }, then 1 << class bytes
/// ```
pub const DEVICE_HEAP_HEADER: u64 = 272;

/// Compiles one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompileRequest {
    /// The `.entry` to compile.
    pub entry: String,
    /// The GPU.
    pub target: Target,
    /// CUDA block size of the launch that needs it, x y z; all 0 when unknown (ahead of time).
    pub block: [u32; 3],
    /// LLVM optimisation level, 0 to 3.
    pub opt_level: u8,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledKernel {
    /// ELF code object with one kernel symbol, `<symbol>.kd`. Travels as the blob.
    #[serde(skip)]
    pub code_object: Vec<u8>,
    /// Name of the kernel in the code object, without `.kd` (never taken from the application's text).
    pub symbol: String,
    /// How to launch it.
    pub layout: WarpLayout,
    /// Largest CUDA block (threads) this compilation may be launched with.
    pub max_threads: u32,
    /// Size of parameter block plus hidden arguments.
    pub kernarg_size: u32,
    /// Static LDS bytes, from the code object.
    pub static_lds: u32,
    /// Scratch bytes per work-item, from the code object.
    pub private_size: u32,
    /// Vector registers used, from the metadata note.
    pub vgprs: u32,
    /// The kernel may write to the printf ring.
    pub uses_printf: bool,
    /// The kernel may call malloc or free.
    pub uses_heap: bool,
}

/// Why a translation failed, in the terms the driver API needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TranslateError {
    /// The text does not begin as PTX does: CUDA_ERROR_INVALID_IMAGE (200).
    NotPtx,
    /// `.version` newer than any this translator knows: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222).
    UnsupportedVersion {
        /// Source line.
        line: u32,
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// Not PTX, or PTX that does not parse: CUDA_ERROR_INVALID_PTX (218). Line numbers are 1-based.
    InvalidPtx {
        /// Source line.
        line: u32,
        /// What is wrong.
        message: String,
        /// What else is, as lines and messages in the order of NVIDIA's assembler.
        more: Vec<(u32, String)>,
    },
    /// A PTX instruction, directive or state that parses but is not translated yet; named, with its line.
    Unsupported {
        /// Source line.
        line: u32,
        /// The construct, for example `wmma.mma.sync`.
        construct: String,
    },
    /// No such `.entry`.
    NoSuchEntry(String),
    /// The block does not fit: over `.maxntid`, or over 512 threads where the kernel needs one warp per wave.
    BlockTooLarge {
        /// The largest that would do.
        max_threads: u32,
    },
    /// The compiler library refused the module or took too long; its log.
    Compiler(String),
    /// There is no compiler library, or the one that the user named does not load: CUDA_ERROR_JIT_COMPILER_NOT_FOUND (221).
    NoCompiler(String),
    /// The worker died of the request, most likely in the compiler library; its last words.
    Died(String),
    /// The worker could not be started or talked to.
    Worker(String),
    /// The result failed the code-object check.
    BadCodeObject(String),
}

impl TranslateError {
    /// PTX with one thing wrong in it.
    pub fn invalid(line: u32, message: impl Into<String>) -> Self {
        Self::InvalidPtx {
            line,
            message: message.into(),
            more: Vec::new(),
        }
    }
}

impl core::fmt::Display for TranslateError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotPtx => write!(f, "the image is not PTX"),
            Self::UnsupportedVersion { line, major, minor } => {
                write!(f, "PTX line {line}: unsupported .version {major}.{minor}")
            }
            Self::InvalidPtx { line, message, .. } => write!(f, "invalid PTX, line {line}: {message}"),
            Self::Unsupported { line, construct } => write!(f, "PTX line {line}: {construct} is not supported yet"),
            Self::NoSuchEntry(name) => write!(f, "the module has no entry named {name}"),
            Self::BlockTooLarge { max_threads } => {
                write!(f, "the kernel can run at most {max_threads} threads a block here")
            }
            Self::Compiler(log) => write!(f, "the code generator failed: {log}"),
            Self::NoCompiler(what) => write!(f, "{what}"),
            Self::Died(words) => write!(f, "the translator worker died: {words}"),
            Self::Worker(what) => write!(f, "the translator worker failed: {what}"),
            Self::BadCodeObject(what) => write!(f, "the compiled code object was refused: {what}"),
        }
    }
}

impl std::error::Error for TranslateError {}

/// What the worker is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Describe the module.
    Inspect,
    /// Compile one kernel of it.
    Compile(CompileRequest),
}

/// What the worker answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Inspect`].
    Inspected(ModuleInfo),
    /// To [`Request::Compile`].
    Compiled(CompiledKernel),
}

impl Reply {
    /// Moves the blob out, for sending.
    pub fn take_blob(&mut self) -> Vec<u8> {
        std::mem::take(self.blob())
    }

    /// Puts a received blob in its place.
    pub fn put_blob(&mut self, blob: Vec<u8>) {
        *self.blob() = blob;
    }

    fn blob(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Inspected(info) => &mut info.data,
            Self::Compiled(kernel) => &mut kernel.code_object,
        }
    }
}

/// First bytes of a message.
const MAGIC: [u8; 4] = *b"RGPT";
/// Bytes before the JSON.
pub const HEADER: usize = 16;
/// Most JSON a message may hold.
const MAX_JSON: u32 = 256 << 20;
/// Most blob a message may hold.
const MAX_BLOB: u64 = 1 << 30;

fn bad(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// The bytes of a message up to its blob, which the caller sends next.
pub fn encode<T: Serialize>(json: &T, blob_length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER];
    serde_json::to_writer(&mut bytes, json)?;
    let length = u32::try_from(bytes.len() - HEADER).ok().filter(|&n| n <= MAX_JSON);
    let length = length.ok_or_else(|| bad("the message is too long"))?;
    if blob_length as u64 > MAX_BLOB {
        return Err(bad("the blob is too long"));
    }
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..16].copy_from_slice(&(blob_length as u64).to_le_bytes());
    Ok(bytes)
}

/// Reads one message; `UnexpectedEof` where the stream ends, `InvalidData` for anything that is no message.
pub fn decode<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<(T, Vec<u8>)> {
    let mut header = [0u8; HEADER];
    stream.read_exact(&mut header)?;
    let [m0, m1, m2, m3, j0, j1, j2, j3, blob @ ..] = header;
    let json = u32::from_le_bytes([j0, j1, j2, j3]);
    let blob = u64::from_le_bytes(blob);
    if [m0, m1, m2, m3] != MAGIC || json > MAX_JSON || blob > MAX_BLOB {
        return Err(bad("not a message"));
    }
    // Grown as it arrives: a length that lies allocates nothing.
    let mut take = |length: u64| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        stream.take(length).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < length {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(bytes)
        }
    };
    let json = take(u64::from(json))?;
    let blob = take(blob)?;
    Ok((serde_json::from_slice(&json)?, blob))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_round_trip_and_damage_is_an_error() {
        let request = CompileRequest {
            entry: "k".into(),
            target: Target::Gfx90a,
            block: [32, 1, 1],
            opt_level: 3,
        };
        let mut bytes = encode(&Request::Compile(request.clone()), 3).unwrap();
        bytes.extend(b"ptx");
        let (back, blob) = decode::<Request>(&mut bytes.as_slice()).unwrap();
        assert_eq!((back, blob.as_slice()), (Request::Compile(request), &b"ptx"[..]));
        for length in 0..bytes.len() {
            assert!(decode::<Request>(&mut &bytes[..length]).is_err(), "{length}");
        }
        for at in 0..HEADER {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            assert!(decode::<Request>(&mut damaged.as_slice()).is_err(), "{at}");
        }
    }
}
