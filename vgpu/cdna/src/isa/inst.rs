//! A decoded instruction.

use super::table::{Encoding, Mnemonic, ROWS, Row};
use crate::Target;

/// What an operand names.
///
/// ```text
/// Sgpr(n)   0-101 SGPRs, 102:103 FLAT_SCRATCH, 104:105 XNACK_MASK, 106:107 VCC, 108-123 TTMP, 124 M0, 126:127 EXEC
/// Vgpr(n)   0-255 v0-v255, 256-511 a0-a255
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The form has no such operand, or an address register that is `off`.
    None,
    /// First scalar register, by its 7-bit code.
    Sgpr(u8),
    /// First vector register: VGPRs, then AGPRs from 256.
    Vgpr(u16),
    /// An inline constant or literal, already in the operand's format and width: f16 constants as f16 bits in the low
    /// half, f64 as 64 bits, integers sign-extended to the operand's width.
    Const(u64),
    /// A read-only value: 235-239 apertures and POPS, 251 VCCZ, 252 EXECZ, 253 SCC.
    Special(u8),
}

/// VCC as an operand.
pub const VCC: Operand = Operand::Sgpr(106);

/// Source and result modifiers of vector instructions. Bit n of a mask belongs to source n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mods {
    /// Negate (VOP3P: `neg_lo`).
    pub neg: u8,
    /// Absolute value, before negation.
    pub abs: u8,
    /// VOP3: bit n takes source n's high half, bit 3 writes the high half. VOP3P: half for the low result.
    pub op_sel: u8,
    /// VOP3P: half for the high result; `v_fma_mix*`: 1 means the source is f16.
    pub op_sel_hi: u8,
    /// VOP3P: negate in the high result; `v_fma_mix*`: absolute value.
    pub neg_hi: u8,
    /// Clamp the result (saturate, for integers).
    pub clamp: bool,
    /// Output modifier: 1 times 2, 2 times 4, 3 divided by 2.
    pub omod: u8,
}

/// The part of a dword that SDWA selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SdwaSel {
    Byte(u8),
    Word(u8),
    Dword,
}

/// What SDWA does to the destination bits outside its selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unused {
    Pad,
    Sext,
    Preserve,
}

/// The fields of an SDWA word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdwa {
    /// Where the result goes.
    pub dst: SdwaSel,
    /// The rest of the destination.
    pub unused: Unused,
    /// Selection of sources 0 and 1.
    pub src: [SdwaSel; 2],
    /// Sign-extend the selection of sources 0 and 1.
    pub sext: [bool; 2],
}

/// The fields of a DPP word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dpp {
    /// Lane movement, 9 bits.
    pub ctrl: u16,
    /// Rows (of 16 lanes) that are written.
    pub row_mask: u8,
    /// Banks (of 4 lanes in a row) that are written.
    pub bank_mask: u8,
    /// Invalid source lanes read 0 instead of disabling the write.
    pub bound_ctrl: bool,
}

/// Lane machinery that an instruction asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Lanes {
    Plain,
    Sdwa(Sdwa),
    Dpp(Dpp),
}

/// A decoded instruction. Which fields count depends on the encoding:
///
/// | encoding | dst | sdst | src | base | soffset |
/// |---|---|---|---|---|---|
/// | SOP* | sdst | | ssrc0, ssrc1 | | |
/// | SMEM | sdst | | -, sdata | sbase | soffset |
/// | VOP* | vdst (VOPC: SGPR pair) | carry out | src0, src1, src2 or carry in | | |
/// | DS | vdst | | addr, data0, data1 | | |
/// | FLAT, GLOBAL, SCRATCH | vdst | | vaddr, vdata | saddr | |
/// | MUBUF, MTBUF | vdata if written | | vaddr, vdata | srsrc | soffset |
#[derive(Clone, Copy, Debug)]
pub struct Inst {
    /// The instruction.
    pub mnemonic: Mnemonic,
    /// Its encoding.
    pub enc: Encoding,
    /// Size in bytes, literal included.
    pub size: u8,
    /// Vector lane machinery.
    pub lanes: Lanes,
    /// The result.
    pub dst: Operand,
    /// Carry out (VCC where the form implies it).
    pub sdst: Operand,
    /// The sources; implied ones (VCC as carry in, a destination that is also read) are filled in.
    pub src: [Operand; 3],
    /// Scalar address: SGPR pair, or resource of four.
    pub base: Operand,
    /// Scalar offset.
    pub soffset: Operand,
    /// Modifiers.
    pub mods: Mods,
    /// Byte offset of memory instructions, sign-extended; 16-bit immediate of SOPK and SOPP, sign-extended.
    pub imm: i32,
    /// DS: both offsets of two-address forms. MTBUF: format, then 0. MAI: cbsz | abid << 4, blgp.
    pub aux: [u8; 2],
    /// Memory instructions: what the `GLC`.. constants say.
    pub flags: u8,
    /// The words, literal included.
    pub words: [u32; 3],
    pub(super) row: u16,
    /// The target it was decoded for.
    pub target: Target,
}

impl Inst {
    /// Returns the old value (atomics); gfx942 sc0.
    pub const GLC: u8 = 1;
    /// gfx942 nt.
    pub const SLC: u8 = 2;
    /// gfx942 sc1.
    pub const SCC: u8 = 4;
    /// GDS instead of LDS.
    pub const GDS: u8 = 8;
    /// MUBUF, MTBUF: vaddr holds an offset.
    pub const OFFEN: u8 = 16;
    /// MUBUF, MTBUF: vaddr holds an index.
    pub const IDXEN: u8 = 32;
    /// MUBUF: load into LDS.
    pub const LDS: u8 = 64;

    /// The form this instruction was decoded by: operand widths and types are there.
    pub fn row(&self) -> &'static Row {
        &ROWS[usize::from(self.row)]
    }

    /// Whether a flag is set.
    #[inline]
    pub fn flag(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
