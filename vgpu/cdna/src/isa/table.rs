//! The generated table of instruction forms and the types its lines are made of.

use std::fmt;

/// The encodings of the two targets, as the ISA guide calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Encoding {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3b,
    Vop3p,
    Vop3pMai,
    Ds,
    Flat,
    Global,
    Scratch,
    Mubuf,
    Mtbuf,
    SdwaVop1,
    SdwaVop2,
    SdwaVopc,
    DppVop1,
    DppVop2,
}

/// Whether a form takes a 32-bit literal after its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Literal {
    No,
    Optional,
    Always,
}

/// Which operand of the form a definition describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Slot {
    Vdst,
    Vdst1,
    Sdst,
    Src0,
    Src1,
    Src2,
    Old,
    Addr,
    Data0,
    Data1,
    VdstIn,
    Vaddr,
    Vdata,
    VdataIn,
    Saddr,
    Srsrc,
    Soffset,
    Sbase,
    Sdata,
    SdstIn,
    Imm,
    Idx,
}

/// Element type of an operand. Integers do not tell their signedness: the mnemonic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Ty {
    None,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    B1,
    B32,
    B64,
}

/// Instruction bits `lo .. lo + len` hold operand bits `shift .. shift + len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// First bit of the operand's value.
    pub shift: u8,
    /// First bit of the instruction, 0 to 63.
    pub lo: u8,
    /// Number of bits.
    pub len: u8,
}

/// One operand of a form.
#[derive(Debug)]
pub struct OperandDef {
    /// Which operand.
    pub slot: Slot,
    /// Written by the instruction.
    pub dst: bool,
    /// A VGPR is allowed.
    pub v: bool,
    /// An AGPR is allowed.
    pub a: bool,
    /// An SGPR is allowed.
    pub s: bool,
    /// Width in bits.
    pub bits: u16,
    /// Element type.
    pub ty: Ty,
    /// Number of elements.
    pub count: u8,
    /// Inline constants are allowed.
    pub constant: bool,
    /// Where its bits are; empty for tied and implied operands.
    pub fields: &'static [Field],
}

/// One form of an instruction.
#[derive(Debug)]
pub struct Row {
    /// Exists on gfx90a.
    pub gfx90a: bool,
    /// Exists on gfx942.
    pub gfx942: bool,
    /// Its encoding.
    pub enc: Encoding,
    /// Opcode number in that encoding.
    pub op: u16,
    /// Its name.
    pub mnemonic: Mnemonic,
    /// What the disassembly appends to the name (`_e32`, `_e64`, `_sdwa`, `_dpp` or nothing).
    pub suffix: &'static str,
    /// Addressing form, where one opcode has several (`saddr.rtn`, `offen`, `imm` ...).
    pub form: &'static str,
    /// Size in bytes without an optional literal.
    pub bytes: u8,
    /// Literal rule.
    pub literal: Literal,
    /// The destination is also the third source.
    pub tied: bool,
    /// Bits that choose this row.
    pub mask: u64,
    /// Their values.
    pub value: u64,
    /// Operands, destinations first, in assembly order.
    pub operands: &'static [OperandDef],
    /// Modifiers the form accepts.
    pub mods: &'static [&'static str],
    /// All fields by name, operands and modifiers.
    pub fields: &'static [(&'static str, Field)],
}

impl Row {
    /// The value of a field gathered from the instruction's first two words; 0 where the form has no such field.
    pub fn field(&self, word: u64, name: &str) -> u32 {
        let mut value = 0;
        for (n, f) in self.fields {
            if *n == name {
                value |= gather(word, f);
            }
        }
        value
    }

    /// Whether the form has a field of that name.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|(n, _)| *n == name)
    }

    /// Whether the form accepts a modifier.
    pub fn has_mod(&self, name: &str) -> bool {
        self.mods.contains(&name)
    }

    /// The definition of a source or destination.
    pub fn operand(&self, slot: Slot) -> Option<&'static OperandDef> {
        self.operands.iter().find(|o| o.slot == slot)
    }
}

/// The operand bits that one field contributes.
pub(super) fn gather(word: u64, f: &Field) -> u32 {
    let bits = (word >> f.lo) & ((1u64 << f.len) - 1);
    (bits as u32) << f.shift
}

/// Every instruction form of both targets.
pub fn rows() -> &'static [Row] {
    &ROWS
}

impl Mnemonic {
    /// Every mnemonic, in the order of its number.
    pub fn all() -> impl Iterator<Item = Mnemonic> {
        ALL.iter().copied()
    }

    /// The name without `_e32`, `_e64`, `_sdwa`, `_dpp`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

impl fmt::Display for Mnemonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

include!(concat!(env!("OUT_DIR"), "/isa_table.rs"));
