//! Instruction fetch: each instruction is decoded and checked once, for all dispatches that execute it.

use std::{
    collections::HashMap,
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
};

use super::{
    Trouble,
    access::Memory,
    fast::Fast,
    memop::{self, MemOp},
    smem::{self, SmemOp},
};
use crate::{
    Target,
    isa::{DecodeError, Encoding, Inst, Lanes, Mnemonic as M, Operand, OperandDef, Slot, decode},
    memory::{Access, Fault, FaultReason},
    wave::{Wave, vector_registers},
};

/// Which part of the interpreter executes an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    /// SOP1, SOP2, SOPC, SOPK, SOPP.
    Scalar,
    /// SMEM.
    Smem(SmemOp),
    /// The vector ALU.
    Valu,
    /// The vector ALU, resolved.
    Fast(Fast),
    /// Lane reads and writes.
    Lane,
    /// FLAT, GLOBAL, SCRATCH.
    Flat(MemOp),
    /// DS.
    Ds(MemOp),
    /// MUBUF, MTBUF.
    Buffer(MemOp),
    /// Known, not executed.
    Unsupported,
}

/// A decoded instruction ready to execute.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Who executes it.
    pub family: Family,
    /// Cycles that it keeps its unit busy, estimated: see [`crate::dispatch::Stats::cycles`].
    pub cycles: u8,
    /// The instruction.
    pub inst: Inst,
}

/// Why there is no instruction at an address.
#[derive(Clone, Debug)]
pub enum FetchError {
    /// The bytes are not there or not executable.
    Fault(Fault),
    /// The bytes are no instruction.
    Reserved(DecodeError),
    /// The instruction names registers that the wave does not have.
    Register(Box<Inst>, String),
}

const PAGE: u64 = 4096;
const SLOTS: usize = (PAGE / 4) as usize;
/// The words of a page and the two after it, which an instruction at its end may take.
const WORDS: usize = SLOTS + 2;
/// Pages that a cache keeps. A page takes some 100 KiB when every word of it has been decoded.
const MOST_PAGES: usize = 512;

/// The code of a page as it was when it was first executed, and what has been decoded of it.
pub struct Page {
    words: Box<[u32; WORDS]>,
    /// Words that are mapped and executable.
    present: [u64; WORDS.div_ceil(64)],
    ops: Box<[AtomicPtr<Op>; SLOTS]>,
}

impl Page {
    fn read(start: u64, memory: &mut Memory<'_>) -> Page {
        let mut page = Page {
            words: Box::new([0; WORDS]),
            present: [0; WORDS.div_ceil(64)],
            ops: Box::new([const { AtomicPtr::new(ptr::null_mut()) }; SLOTS]),
        };
        let whole = memory.find(start, WORDS as u64 * 4, Access::Execute);
        if matches!(whole, Ok(Some(_))) && memory.read_dwords(start, &mut page.words[..], Access::Execute).is_ok() {
            page.present = [u64::MAX; WORDS.div_ceil(64)];
            return page;
        }
        for i in 0..WORDS {
            let word = &mut page.words[i..=i];
            if memory.read_dwords(start + 4 * i as u64, word, Access::Execute).is_ok() {
                page.present[i / 64] |= 1 << (i % 64);
            }
        }
        page
    }

    /// The bytes in memory are still those that were decoded.
    fn is_current(&self, start: u64, memory: &mut Memory<'_>) -> bool {
        let now = Page::read(start, memory);
        now.words == self.words && now.present == self.present
    }

    fn has(&self, word: usize) -> bool {
        self.present[word / 64] >> (word % 64) & 1 != 0
    }

    /// The instruction at `pc`, if it has been decoded.
    #[inline(always)]
    pub fn op(&self, pc: u64) -> Option<&Op> {
        let op = self.ops[(pc / 4) as usize % SLOTS].load(Ordering::Acquire);
        // SAFETY: null, or a box that lives as long as the page.
        unsafe { op.as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        for op in &mut *self.ops {
            let op = *op.get_mut();
            if !op.is_null() {
                // SAFETY: made by `Box::into_raw`, and nobody has the page any more.
                drop(unsafe { Box::from_raw(op) });
            }
        }
    }
}

/// What decoded code depends on besides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    page: u64,
    target: Target,
    /// Registers of a lane, and the place of the first AGPR.
    shape: (u16, u16),
}

/// Decoded code that outlives dispatches, for all of them that run on one GPU.
///
/// Each dispatch compares the bytes of a page with those that were decoded when it first executes it, and again after
/// `s_icache_inv`: code that was overwritten or mapped anew is decoded anew.
#[derive(Default)]
pub struct CodeCache {
    pages: Mutex<HashMap<Key, Arc<Page>>>,
}

impl std::fmt::Debug for CodeCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CodeCache")
    }
}

impl CodeCache {
    fn page(&self, key: Key, memory: &mut Memory<'_>) -> Arc<Page> {
        let start = key.page * PAGE;
        let known = self
            .pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if let Some(page) = known
            && page.is_current(start, memory)
        {
            return page;
        }
        let page = Arc::new(Page::read(start, memory));
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() >= MOST_PAGES {
            pages.clear();
        }
        pages.insert(key, page.clone());
        page
    }
}

/// The decoded code that one thread has met in a dispatch.
pub struct Code<'a> {
    cache: &'a CodeCache,
    target: Target,
    shape: (u16, u16),
    /// VGPRs and AGPRs that an instruction may name.
    registers: (u16, u16),
    pages: HashMap<u64, Arc<Page>>,
}

impl<'a> Code<'a> {
    /// Code for waves of this shape: registers of a lane, and the place of the first AGPR.
    pub fn new(cache: &'a CodeCache, target: Target, shape: (u16, u16)) -> Self {
        Code {
            cache,
            target,
            shape,
            registers: vector_registers(shape),
            pages: HashMap::new(),
        }
    }

    /// Registers of a lane, and the place of the first AGPR, of the waves it is good for.
    pub fn shape(&self) -> (u16, u16) {
        self.shape
    }

    /// Forgets what it has met: mappings changed or the code was written.
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    /// The page that holds `pc`.
    pub fn page(&mut self, pc: u64, memory: &mut Memory<'_>) -> Arc<Page> {
        let key = Key {
            page: pc / PAGE,
            target: self.target,
            shape: self.shape,
        };
        let cache = self.cache;
        let page = self.pages.entry(key.page).or_insert_with(|| cache.page(key, memory));
        page.clone()
    }

    /// Decodes the instruction at `pc`, in the page that [`Code::page`] returned for it.
    ///
    /// # Errors
    /// See [`FetchError`].
    #[cold]
    pub fn decode(&self, page: &Page, pc: u64, memory: &mut Memory<'_>) -> Result<(), FetchError> {
        let op = Box::into_raw(Box::new(self.fetch(page, pc, memory)?));
        let slot = &page.ops[(pc / 4) as usize % SLOTS];
        if slot
            .compare_exchange(ptr::null_mut(), op, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: made above, and seen by nobody: another thread was first.
            drop(unsafe { Box::from_raw(op) });
        }
        Ok(())
    }

    fn fetch(&self, page: &Page, pc: u64, memory: &mut Memory<'_>) -> Result<Op, FetchError> {
        let at = (pc / 4) as usize % SLOTS;
        // Words past the end of the code are missing; then the instruction is short.
        let have = (0..3).take_while(|i| at + i < WORDS && page.has(at + i)).count();
        let missing = |memory: &mut Memory<'_>, word: usize| {
            let va = pc + 4 * word as u64;
            let fault = memory.read_dwords(va, &mut [0], Access::Execute).err();
            // It may have been mapped since.
            FetchError::Fault(fault.unwrap_or(Fault {
                va,
                reason: FaultReason::NotPresent,
            }))
        };
        if have == 0 {
            return Err(missing(memory, 0));
        }
        let inst = decode(self.target, &page.words[at..at + have]).map_err(FetchError::Reserved)?;
        if usize::from(inst.size) > 4 * have {
            return Err(missing(memory, have));
        }
        if let Some(text) = missing_register(&inst, self.registers) {
            return Err(FetchError::Register(Box::new(inst), text));
        }
        let family = match family(&inst) {
            Family::Valu => super::fast::resolve(&inst, self.shape.0, self.shape.1).map_or(Family::Valu, Family::Fast),
            other => other,
        };
        Ok(Op {
            family,
            cycles: cycles(&inst, family),
            inst,
        })
    }
}

fn family(inst: &Inst) -> Family {
    use Encoding as E;
    match inst.enc {
        E::Sop1 | E::Sop2 | E::Sopc | E::Sopk | E::Sopp => Family::Scalar,
        E::Smem => smem::operation(inst.mnemonic).map_or(Family::Unsupported, Family::Smem),
        E::Ds => memop::ds(inst.mnemonic).map_or(Family::Unsupported, Family::Ds),
        E::Flat | E::Global | E::Scratch => memory(inst).map_or(Family::Unsupported, Family::Flat),
        E::Mubuf | E::Mtbuf => memory(inst).map_or(Family::Unsupported, Family::Buffer),
        _ => match inst.mnemonic {
            M::v_readlane_b32 | M::v_writelane_b32 | M::v_readfirstlane_b32 => Family::Lane,
            _ => Family::Valu,
        },
    }
}

fn memory(inst: &Inst) -> Option<MemOp> {
    match memop::vector(inst.mnemonic) {
        // Forms with the lds bit are plain loads that name no destination.
        Some(MemOp::Load { unit, .. }) if inst.dst == Operand::None => Some(MemOp::LoadLds { unit }),
        other => other,
    }
}

/// The operand that names a register past the wave's allocation, and DPP controls that are reserved.
fn missing_register(inst: &Inst, (vgprs, agprs): (u16, u16)) -> Option<String> {
    if let Lanes::Dpp(d) = &inst.lanes
        && !super::dpp::is_defined(d.ctrl)
    {
        return Some(format!("reserved DPP control {:#x}", d.ctrl));
    }
    for def in inst.row().operands {
        let Some(operand) = operand_of(inst, def) else { continue };
        let Operand::Vgpr(n) = operand else { continue };
        let count = def.bits.div_ceil(32).max(1);
        let (first, have, letter) = if n < 256 {
            (n, vgprs, 'v')
        } else {
            (n - 256, agprs, 'a')
        };
        if first + count > have {
            return Some(format!(
                "{letter}{} is past the {have} registers of the wave",
                first + count - 1
            ));
        }
    }
    None
}

fn operand_of(inst: &Inst, def: &OperandDef) -> Option<Operand> {
    Some(match def.slot {
        Slot::Vdst | Slot::Vdst1 => inst.dst,
        Slot::Vdata if def.dst => inst.dst,
        Slot::Src0 | Slot::Addr | Slot::Vaddr => inst.src[0],
        Slot::Src1 | Slot::Data0 | Slot::Vdata => inst.src[1],
        Slot::Src2 | Slot::Data1 | Slot::Idx => inst.src[2],
        _ => return None,
    })
}

/// With VGPR indexing on, the instruction with M0's index added to the operands that M0 enables.
///
/// ```text
/// M0   7:0 index   12 source 0   13 source 1   14 source 2   15 destination
/// ```
///
/// # Errors
/// A register past the wave's allocation.
pub fn indexed(inst: &Inst, wave: &Wave) -> Result<Inst, Trouble> {
    let m0 = wave.m0();
    let (index, enable) = ((m0 & 0xff) as u16, m0 >> 12);
    let mut out = *inst;
    let shift = |o: &mut Operand, bit: u32| {
        if let Operand::Vgpr(n) = o
            && enable >> bit & 1 != 0
        {
            *n += index;
        }
    };
    for (bit, o) in out.src.iter_mut().enumerate() {
        shift(o, bit as u32);
    }
    shift(&mut out.dst, 3);
    match missing_register(&out, wave.vector_registers()) {
        Some(text) => Err(Trouble::Illegal(text.into())),
        None => Ok(out),
    }
}

/// Issue cycles of a wave of 64 lanes on a SIMD of 16: four, of instructions with a slower unit more. MFMA takes as many
/// passes as its result has rows of registers.
fn cycles(inst: &Inst, family: Family) -> u8 {
    let name = inst.mnemonic.name();
    match family {
        Family::Scalar | Family::Lane | Family::Unsupported => 4,
        Family::Smem(_) => 4,
        Family::Fast(_) | Family::Valu if name.starts_with("v_mfma") || name.starts_with("v_smfmac") => {
            let dwords = inst.row().operands.first().map_or(4, |def| def.bits.div_ceil(32));
            (4 * dwords.clamp(4, 32) / 2) as u8
        }
        Family::Fast(_) | Family::Valu => {
            let quarter = [
                "v_rcp",
                "v_rsq",
                "v_sqrt",
                "v_exp",
                "v_log",
                "v_sin",
                "v_cos",
                "v_mul_lo",
                "v_mul_hi_",
                "v_mad_u64",
                "v_mad_i64",
            ];
            if quarter.iter().any(|p| name.starts_with(p)) {
                16
            } else {
                4
            }
        }
        Family::Flat(m) | Family::Ds(m) | Family::Buffer(m) => 4 * m.dwords().max(1),
    }
}
