//! Instruction fetch: each address is decoded and checked once.

use std::collections::HashMap;

use super::{
    Trouble,
    access::Memory,
    memop::{self, MemOp},
    smem::{self, SmemOp},
};
use crate::{
    Target,
    isa::{DecodeError, Encoding, Inst, Lanes, Mnemonic as M, Operand, OperandDef, Slot, decode},
    memory::{Access, Fault},
    wave::Wave,
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
    /// The instruction.
    pub inst: Inst,
    /// Who executes it.
    pub family: Family,
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

/// Decoded code of one dispatch.
///
/// ```text
/// pc -> page number -> slots of the page: 0, or an index plus 1 -> ops
/// ```
pub struct Code {
    target: Target,
    registers: (u16, u16),
    by_address: HashMap<u64, usize>,
    pages: Vec<Box<[u32; SLOTS]>>,
    ops: Vec<Op>,
}

impl Code {
    /// An empty cache for waves with this many VGPRs and AGPRs.
    pub fn new(target: Target, registers: (u16, u16)) -> Self {
        Code {
            target,
            registers,
            by_address: HashMap::new(),
            pages: Vec::new(),
            ops: Vec::new(),
        }
    }

    /// Forgets everything: mappings changed or the code was written.
    pub fn clear(&mut self) {
        self.by_address.clear();
        self.pages.clear();
        self.ops.clear();
    }

    /// The number of the page that holds `pc`, good until [`Code::clear`].
    pub fn page(&mut self, pc: u64) -> usize {
        *self.by_address.entry(pc / PAGE).or_insert_with(|| {
            self.pages.push(Box::new([0; SLOTS]));
            self.pages.len() - 1
        })
    }

    /// The instruction at `pc`, in the page that [`Code::page`] returned for it; decoded if need be.
    ///
    /// # Errors
    /// See [`FetchError`].
    #[inline]
    pub fn find(&mut self, page: usize, pc: u64, memory: &mut Memory<'_>) -> Result<&Op, FetchError> {
        let slot = &mut self.pages[page][(pc / 4) as usize % SLOTS];
        if *slot == 0 {
            self.ops.push(fetch(self.target, self.registers, pc, memory)?);
            *slot = self.ops.len() as u32;
        }
        Ok(&self.ops[*slot as usize - 1])
    }
}

fn fetch(target: Target, registers: (u16, u16), pc: u64, memory: &mut Memory<'_>) -> Result<Op, FetchError> {
    let mut words = [0u32; 3];
    memory
        .read_dwords(pc, &mut words[..1], Access::Execute)
        .map_err(FetchError::Fault)?;
    // The next words may lie past the end of the code; then the instruction is short.
    let mut have = 1;
    while have < 3
        && memory
            .read_dwords(pc + 4 * have as u64, &mut words[have..=have], Access::Execute)
            .is_ok()
    {
        have += 1;
    }
    let inst = decode(target, &words[..have]).map_err(FetchError::Reserved)?;
    if usize::from(inst.size) > 4 * have {
        let va = pc + 4 * have as u64;
        memory
            .read_dwords(va, &mut words[have..=have], Access::Execute)
            .map_err(FetchError::Fault)?;
    }
    if let Some(text) = missing_register(&inst, registers) {
        return Err(FetchError::Register(Box::new(inst), text));
    }
    Ok(Op {
        inst,
        family: family(&inst),
    })
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
