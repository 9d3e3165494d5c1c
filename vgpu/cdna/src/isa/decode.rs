//! Machine words to [`Inst`].

use std::{fmt, sync::OnceLock};

use super::{
    inst::{Dpp, Inst, Lanes, Mods, Operand, Sdwa, SdwaSel, Unused, VCC},
    table::{Encoding, Literal, Mnemonic, OperandDef, ROWS, Row, Slot, Ty, gather},
};
use crate::Target;

/// Words that are no instruction of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The two words looked at.
    pub words: [u32; 2],
    /// Why they were refused.
    pub reason: &'static str,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:08x} {:08x})", self.reason, self.words[0], self.words[1])
    }
}

impl std::error::Error for DecodeError {}

/// Rows that can match a first word, by its upper nine bits, most specific first.
type Buckets = Vec<Vec<u16>>;

fn buckets(target: Target) -> &'static Buckets {
    static GFX90A: OnceLock<Buckets> = OnceLock::new();
    static GFX942: OnceLock<Buckets> = OnceLock::new();
    let cell = match target {
        Target::Gfx90a => &GFX90A,
        Target::Gfx942 => &GFX942,
    };
    cell.get_or_init(|| {
        let mut out = vec![Vec::new(); 512];
        for (i, row) in ROWS.iter().enumerate() {
            let here = match target {
                Target::Gfx90a => row.gfx90a,
                Target::Gfx942 => row.gfx942,
            };
            if !here {
                continue;
            }
            let mask = (row.mask as u32) >> 23;
            let value = (row.value as u32) >> 23;
            for (top, bucket) in out.iter_mut().enumerate() {
                if top as u32 & mask == value {
                    bucket.push(i as u16);
                }
            }
        }
        for bucket in &mut out {
            bucket.sort_by_key(|i| std::cmp::Reverse(ROWS[usize::from(*i)].mask.count_ones()));
        }
        out
    })
}

/// Decodes the instruction that begins with `words[0]`. `words` holds the following words too, up to three in all; a
/// missing one reads as 0 and only matters if the instruction is that long.
///
/// # Errors
/// [`DecodeError`] for reserved opcodes and reserved source operand codes.
pub fn decode(target: Target, words: &[u32]) -> Result<Inst, DecodeError> {
    let at = |i: usize| words.get(i).copied().unwrap_or(0);
    let word = u64::from(at(0)) | u64::from(at(1)) << 32;
    let error = |reason| DecodeError {
        words: [at(0), at(1)],
        reason,
    };
    let index = buckets(target)[(at(0) >> 23) as usize]
        .iter()
        .copied()
        .find(|i| {
            let r = &ROWS[usize::from(*i)];
            word & r.mask == r.value
        })
        .ok_or_else(|| error("no instruction has this encoding"))?;
    let row = &ROWS[usize::from(index)];
    let mut inst = Inst {
        mnemonic: row.mnemonic,
        enc: row.enc,
        size: row.bytes,
        lanes: Lanes::Plain,
        dst: Operand::None,
        sdst: Operand::None,
        src: [Operand::None; 3],
        base: Operand::None,
        soffset: Operand::None,
        mods: Mods::default(),
        imm: 0,
        aux: [0; 2],
        flags: 0,
        words: [at(0), if row.bytes > 4 { at(1) } else { 0 }, 0],
        row: index,
        target,
    };
    // Where the literal word is, if there is one: forms with a literal are four bytes without it.
    let literal = at(1);
    let mut used_literal = row.literal == Literal::Always && row.bytes == 4;
    for def in row.operands {
        if def.fields.is_empty() {
            continue;
        }
        let raw = def.fields.iter().fold(0, |v, f| v | gather(word, f));
        let width: u8 = def.fields.iter().map(|f| f.len).sum();
        let operand = register(row, def, raw, width, word).map_or_else(
            || constant(row, def, raw, literal, &mut used_literal).map_err(error),
            Ok,
        )?;
        place(&mut inst, def, operand);
    }
    if used_literal {
        inst.words[1] = literal;
        inst.size = 8;
    }
    modifiers(&mut inst, row, word);
    imply(&mut inst, row);
    Ok(inst)
}

/// A register operand, or `None` when the code is a constant's or special value's.
fn register(row: &Row, def: &OperandDef, raw: u32, width: u8, word: u64) -> Option<Operand> {
    use Encoding as E;
    if def.slot == Slot::Imm {
        return None;
    }
    if matches!(row.enc, E::SdwaVop1 | E::SdwaVop2 | E::SdwaVopc) && width == 9 {
        // SDWA turns the meaning of the ninth bit round: set for the scalar codes.
        return if raw & 0x100 == 0 {
            Some(Operand::Vgpr(raw as u16))
        } else if raw & 0xff < 128 {
            Some(Operand::Sgpr(raw as u8 & 0x7f))
        } else {
            None
        };
    }
    if row.enc == E::SdwaVopc && def.slot == Slot::Sdst {
        return Some(if raw & 0x80 == 0 {
            VCC
        } else {
            Operand::Sgpr(raw as u8 & 0x7f)
        });
    }
    if def.v || def.a {
        let has_acc_bit = def.fields.iter().any(|f| f.shift == 9);
        let low = def.fields.iter().filter(|f| f.shift < 9).map(|f| f.len).sum::<u8>();
        // One bit of a memory instruction turns all its data operands into AGPRs; the table gives it to one of them.
        let shared = match row.enc {
            E::Ds => word >> 25 & 1 != 0,
            E::Flat | E::Global | E::Scratch | E::Mubuf | E::Mtbuf => word >> 55 & 1 != 0,
            _ => false,
        };
        let acc = match (has_acc_bit, def.a) {
            (true, _) => raw & 0x200 != 0,
            (false, true) => !def.v || shared,
            (false, false) => false,
        };
        let number = raw & 0xff;
        if low < 9 && (!def.s) || low >= 9 && raw & 0x100 != 0 {
            return Some(Operand::Vgpr(number as u16 + if acc { 256 } else { 0 }));
        }
    }
    (raw & 0x1ff < 128 && raw != 125).then_some(Operand::Sgpr(raw as u8))
}

/// Inline constants 240 to 248 as f16, f32 and f64.
const FLOATS: [(u16, u32, u64); 9] = [
    (0x3800, 0x3f00_0000, 0x3fe0_0000_0000_0000),
    (0xb800, 0xbf00_0000, 0xbfe0_0000_0000_0000),
    (0x3c00, 0x3f80_0000, 0x3ff0_0000_0000_0000),
    (0xbc00, 0xbf80_0000, 0xbff0_0000_0000_0000),
    (0x4000, 0x4000_0000, 0x4000_0000_0000_0000),
    (0xc000, 0xc000_0000, 0xc000_0000_0000_0000),
    (0x4400, 0x4080_0000, 0x4010_0000_0000_0000),
    (0xc400, 0xc080_0000, 0xc010_0000_0000_0000),
    (0x3118, 0x3e22_f983, 0x3fc4_5f30_6dc9_c882),
];

fn constant(
    row: &Row,
    def: &OperandDef,
    raw: u32,
    literal: u32,
    used_literal: &mut bool,
) -> Result<Operand, &'static str> {
    let code = raw & 0xff;
    // Width of one element: packed types repeat through op_sel, not here.
    let wide = def.bits == 64 && def.count == 1;
    if def.slot == Slot::Imm {
        return Ok(Operand::Const(u64::from(literal)));
    }
    match code {
        128..=208 => {
            let n = if code <= 192 {
                i64::from(code) - 128
            } else {
                192 - i64::from(code)
            };
            Ok(Operand::Const(if wide { n as u64 } else { u64::from(n as u32) }))
        }
        240..=248 => {
            let (h, s, d) = FLOATS[(code - 240) as usize];
            // Sixteen-bit integer operands see f16 bits when scalar and f32 bits when packed (LLVM's account of GFX9).
            Ok(Operand::Const(match (def.ty, def.count) {
                (Ty::F16, _) | (Ty::I16, 1) => u64::from(h),
                _ if wide => d,
                _ => u64::from(s),
            }))
        }
        255 if row.literal == Literal::Optional => {
            *used_literal = true;
            Ok(Operand::Const(match def.ty {
                Ty::F64 => u64::from(literal) << 32,
                Ty::I64 | Ty::B64 if wide && row.mnemonic.name().contains("_i64") => literal as i32 as i64 as u64,
                _ => u64::from(literal),
            }))
        }
        235..=239 | 251..=253 => Ok(Operand::Special(code as u8)),
        _ => Err("reserved source operand code"),
    }
}

fn place(inst: &mut Inst, def: &OperandDef, operand: Operand) {
    match def.slot {
        Slot::Vdst | Slot::Vdst1 => inst.dst = operand,
        // s_movreld writes through an index: LLVM lists its base register as a source.
        Slot::Sdst if !def.dst && inst.mnemonic.name().starts_with("s_movreld") => inst.dst = operand,
        Slot::Sdst if !def.dst => inst.src[0] = operand,
        Slot::Sdst if inst.dst == Operand::None => inst.dst = operand,
        Slot::Sdst => inst.sdst = operand,
        Slot::Src0 | Slot::Addr | Slot::Vaddr => inst.src[0] = operand,
        // The literal of v_madmk stands before the last source.
        Slot::Src1 if inst.src[1] != Operand::None => inst.src[2] = operand,
        Slot::Src1 | Slot::Data0 | Slot::Sdata => inst.src[1] = operand,
        Slot::Src2 | Slot::Data1 | Slot::Idx => inst.src[2] = operand,
        Slot::Vdata => {
            if def.dst {
                inst.dst = operand;
            }
            inst.src[1] = operand;
        }
        Slot::Saddr | Slot::Srsrc | Slot::Sbase => inst.base = operand,
        Slot::Soffset => inst.soffset = operand,
        Slot::Imm => {
            // v_madmk: D = S0 * K + S1; v_madak: D = S0 * S1 + K. Sources stay in assembly order.
            let free = if inst.src[1] == Operand::None { 1 } else { 2 };
            inst.src[free] = operand;
        }
        Slot::Old | Slot::VdstIn | Slot::VdataIn | Slot::SdstIn => {}
    }
}

fn modifiers(inst: &mut Inst, row: &Row, word: u64) {
    use Encoding as E;
    let bit = |n: u32| (word >> n) & 1 != 0;
    let bits = |lo: u32, len: u32| ((word >> lo) & ((1 << len) - 1)) as u32;
    let m = &mut inst.mods;
    match row.enc {
        E::Vop3 => {
            m.abs = bits(8, 3) as u8;
            m.op_sel = bits(11, 4) as u8;
            m.clamp = bit(15);
            m.omod = bits(59, 2) as u8;
            m.neg = bits(61, 3) as u8;
        }
        E::Vop3b => {
            m.clamp = bit(15);
            m.omod = bits(59, 2) as u8;
            m.neg = bits(61, 3) as u8;
        }
        E::Vop3p => {
            m.neg_hi = bits(8, 3) as u8;
            m.op_sel = bits(11, 3) as u8;
            m.op_sel_hi = (bits(59, 2) | bits(14, 1) << 2) as u8;
            m.clamp = bit(15);
            m.neg = bits(61, 3) as u8;
        }
        E::Vop3pMai => {
            inst.aux = [(bits(8, 3) | bits(11, 4) << 4) as u8, bits(61, 3) as u8];
            m.neg = bits(61, 3) as u8;
        }
        E::SdwaVop1 | E::SdwaVop2 | E::SdwaVopc => {
            let sel = |v: u32| match v {
                0..=3 => SdwaSel::Byte(v as u8),
                4 | 5 => SdwaSel::Word(v as u8 - 4),
                _ => SdwaSel::Dword,
            };
            m.neg = (bits(52, 1) | bits(60, 1) << 1) as u8;
            m.abs = (bits(53, 1) | bits(61, 1) << 1) as u8;
            let compare = row.enc == E::SdwaVopc;
            if !compare {
                m.clamp = bit(45);
                m.omod = bits(46, 2) as u8;
            }
            inst.lanes = Lanes::Sdwa(Sdwa {
                dst: if compare { SdwaSel::Dword } else { sel(bits(40, 3)) },
                unused: match bits(43, 2) {
                    1 if !compare => Unused::Sext,
                    2 if !compare => Unused::Preserve,
                    _ => Unused::Pad,
                },
                src: [sel(bits(48, 3)), sel(bits(56, 3))],
                sext: [bit(51), bit(59)],
            });
        }
        E::DppVop1 | E::DppVop2 => {
            m.neg = (bits(52, 1) | bits(54, 1) << 1) as u8;
            m.abs = (bits(53, 1) | bits(55, 1) << 1) as u8;
            inst.lanes = Lanes::Dpp(Dpp {
                ctrl: bits(40, 9) as u16,
                row_mask: bits(60, 4) as u8,
                bank_mask: bits(56, 4) as u8,
                bound_ctrl: bit(51),
            });
        }
        E::Sopk | E::Sopp => inst.imm = i32::from(word as u16 as i16),
        E::Smem => {
            // 21 bits signed; the plain SGPR form keeps its register in this place and has no immediate.
            inst.imm = if bit(17) {
                ((bits(32, 21) << 11) as i32) >> 11
            } else {
                0
            };
            inst.flags = if bit(16) { Inst::GLC } else { 0 };
        }
        E::Ds => {
            inst.imm = bits(0, 16) as i32;
            inst.aux = [bits(0, 8) as u8, bits(8, 8) as u8];
            inst.flags = if bit(16) { Inst::GDS } else { 0 };
        }
        E::Flat | E::Global | E::Scratch => {
            inst.imm = match row.enc {
                E::Flat => bits(0, 12) as i32,
                _ => ((bits(0, 13) << 19) as i32) >> 19,
            };
            inst.flags = (bits(16, 2) | bits(25, 1) << 2) as u8;
        }
        E::Mubuf | E::Mtbuf => {
            inst.imm = bits(0, 12) as i32;
            let (scc, slc) = if row.enc == E::Mubuf { (15, 17) } else { (53, 54) };
            let mut flags = (bits(14, 1) | bits(slc, 1) << 1 | bits(scc, 1) << 2) as u8;
            // Cache maintenance instructions share the encoding and have no address.
            if row.has_field("srsrc") {
                flags |= if bit(12) { Inst::OFFEN } else { 0 } | if bit(13) { Inst::IDXEN } else { 0 };
            }
            if row.form.ends_with("lds") || row.mnemonic == Mnemonic::buffer_store_lds_dword {
                flags |= Inst::LDS;
            }
            inst.flags = flags;
            inst.aux = [row.field(word, "format") as u8, 0];
        }
        E::Sop1 | E::Sop2 | E::Sopc | E::Vop1 | E::Vop2 | E::Vopc => {}
    }
}

/// Fills in the operands that a form implies.
fn imply(inst: &mut Inst, row: &Row) {
    use Encoding as E;
    use Mnemonic as M;
    let short = !matches!(row.enc, E::Vop3 | E::Vop3b);
    if short {
        match row.mnemonic {
            M::v_cndmask_b32 => inst.src[2] = VCC,
            M::v_addc_co_u32 | M::v_subb_co_u32 | M::v_subbrev_co_u32 => {
                inst.src[2] = VCC;
                inst.sdst = VCC;
            }
            M::v_add_co_u32 | M::v_sub_co_u32 | M::v_subrev_co_u32 => inst.sdst = VCC,
            _ => {}
        }
    }
    if row.enc == E::Vopc {
        inst.dst = VCC;
    }
    // Sparse matrices accumulate in the destination too, but their third source is the index.
    if row.tied && row.operand(Slot::Idx).is_none() {
        inst.src[2] = inst.dst;
    }
}
