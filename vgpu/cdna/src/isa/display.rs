//! Disassembly text, in LLVM's syntax.

use std::fmt::{self, Display, Formatter, Write};

use super::{
    inst::{Inst, Lanes, Operand, SdwaSel, Unused},
    table::{Encoding as E, Mnemonic as M, OperandDef, Row, Slot, gather},
};
use crate::Target;

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let row = self.row();
        let printer = Printer {
            inst: self,
            row,
            word: u64::from(self.words[0]) | u64::from(self.words[1]) << 32,
        };
        let mut text = String::new();
        printer.all(&mut text)?;
        f.write_str(text.trim_end())
    }
}

struct Printer<'a> {
    inst: &'a Inst,
    row: &'static Row,
    word: u64,
}

/// A scalar register or register group by code and width.
pub fn scalar_name(code: u8, bits: u16) -> String {
    let wide = bits >= 64;
    let pair = |name: &str, low: u8| match (wide, code == low) {
        (true, _) => name.to_string(),
        (false, true) => format!("{name}_lo"),
        (false, false) => format!("{name}_hi"),
    };
    let group = |letter: &str, n: u8| match bits.div_ceil(32) {
        0 | 1 => format!("{letter}{n}"),
        count => format!("{letter}[{n}:{}]", u16::from(n) + count - 1),
    };
    match code {
        0..=101 => group("s", code),
        102 | 103 => pair("flat_scratch", 102),
        104 | 105 => pair("xnack_mask", 104),
        106 | 107 => pair("vcc", 106),
        108..=123 => group("ttmp", code - 108),
        124 => "m0".to_string(),
        125 => "null".to_string(),
        126 | 127 => pair("exec", 126),
        _ => format!("<{code}>"),
    }
}

/// A vector register or register group: VGPRs, then AGPRs from 256.
pub fn vector_name(register: u16, bits: u16) -> String {
    let (letter, n) = if register < 256 {
        ('v', register)
    } else {
        ('a', register - 256)
    };
    match bits.div_ceil(32) {
        0 | 1 => format!("{letter}{n}"),
        count => format!("{letter}[{n}:{}]", n + count - 1),
    }
}

impl Printer<'_> {
    fn all(&self, out: &mut String) -> fmt::Result {
        let row = self.row;
        write!(out, "{}", row.mnemonic)?;
        // LLVM gives the suffix only to forms that have operands.
        if !row.operands.is_empty() {
            out.push_str(if row.mnemonic == M::v_pk_fmac_f16 {
                "_e32"
            } else {
                row.suffix
            });
        }
        let operands = self.operands();
        if !operands.is_empty() {
            write!(out, " {}", operands.join(", "))?;
        }
        self.modifiers(out)
    }

    fn raw(&self, def: &OperandDef) -> u32 {
        def.fields.iter().fold(0, |v, f| v | gather(self.word, f))
    }

    /// An operand without modifiers.
    fn plain(&self, def: &OperandDef, operand: Operand) -> String {
        match operand {
            Operand::None => "off".to_string(),
            Operand::Sgpr(n) => scalar_name(n, def.bits),
            Operand::Vgpr(n) => vector_name(n, def.bits),
            Operand::Special(code) => match code {
                235 => "src_shared_base",
                236 => "src_shared_limit",
                237 => "src_private_base",
                238 => "src_private_limit",
                239 => "src_pops_exiting_wave_id",
                251 => "src_vccz",
                252 => "src_execz",
                _ => "src_scc",
            }
            .to_string(),
            Operand::Const(value) => self.constant(def, value),
        }
    }

    fn constant(&self, def: &OperandDef, value: u64) -> String {
        let code = self.raw(def) & 0xff;
        if def.slot == Slot::Imm {
            return format!("{:#x}", value as u32);
        }
        match code {
            128..=192 => (code - 128).to_string(),
            193..=208 => (192 - code as i32).to_string(),
            240..=247 => ["0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"][code as usize - 240].to_string(),
            248 => if def.bits == 64 && def.count == 1 {
                "0.15915494309189532"
            } else {
                "0.15915494"
            }
            .to_string(),
            _ => format!("{:#x}", self.inst.words[1]),
        }
    }

    fn operands(&self) -> Vec<String> {
        let (inst, row) = (self.inst, self.row);
        let mut out = Vec::new();
        let push_scalar = |out: &mut Vec<String>, o: Operand, bits: u16| {
            if let Operand::Sgpr(n) = o {
                out.push(scalar_name(n, bits));
            }
        };
        match row.enc {
            E::Sopp => return self.sopp(),
            E::Sopk => return self.sopk(),
            E::Smem => {
                if row.has_mod("sdata") {
                    out.push(decimal_or_hex(self.row.field(self.word, "sdata")));
                }
                for def in row.operands {
                    match def.slot {
                        Slot::Sdst if def.dst => out.push(self.plain(def, inst.dst)),
                        Slot::Sdata => out.push(self.plain(def, inst.src[1])),
                        _ => {}
                    }
                }
                if let Some(def) = row.operand(Slot::Sbase) {
                    // Atomics list the base before the data in the table, and after it in the text.
                    out.push(self.plain(def, inst.base));
                    if inst.soffset == Operand::None {
                        out.push(hex(inst.imm));
                    } else {
                        push_scalar(&mut out, inst.soffset, 32);
                    }
                }
                return out;
            }
            E::Flat | E::Global | E::Scratch => return self.flat(),
            E::Mubuf | E::Mtbuf => return self.buffer(),
            E::Ds => {
                for def in row.operands {
                    match def.slot {
                        Slot::Vdst => out.push(self.plain(def, inst.dst)),
                        Slot::Addr => out.push(self.plain(def, inst.src[0])),
                        Slot::Data0 => out.push(self.plain(def, inst.src[1])),
                        Slot::Data1 => out.push(self.plain(def, inst.src[2])),
                        _ => {}
                    }
                }
                return out;
            }
            _ => {}
        }
        for def in row.operands {
            match def.slot {
                Slot::Vdst => out.push(self.plain(def, inst.dst)),
                Slot::Sdst if inst.mnemonic.name().starts_with("s_movreld") => out.push(self.plain(def, inst.dst)),
                Slot::Sdst if !def.dst => out.push(self.plain(def, inst.src[0])),
                Slot::Sdst => {
                    let second = row.operand(Slot::Vdst).is_some();
                    out.push(self.plain(def, if second { inst.sdst } else { inst.dst }));
                }
                Slot::Src0 if !def.fields.is_empty() => out.push(self.source(def, 0)),
                // The literal of v_madmk stands before the last source.
                Slot::Src1 if matches!(inst.src[1], Operand::Const(_)) && row.operand(Slot::Imm).is_some() => {
                    out.push(self.source(def, 2));
                }
                Slot::Src1 if !def.fields.is_empty() => out.push(self.source(def, 1)),
                Slot::Src2 if !def.fields.is_empty() => out.push(self.source(def, 2)),
                Slot::Idx => out.push(self.plain(def, inst.src[2])),
                Slot::Imm => out.push(self.constant(def, u64::from(inst.words[1]))),
                _ => {}
            }
        }
        if matches!(row.enc, E::Vopc) {
            out.insert(0, "vcc".into());
        }
        let short = matches!(row.enc, E::Vop2 | E::SdwaVop2 | E::DppVop2);
        if short && inst.sdst != Operand::None {
            out.insert(1, "vcc".into());
        }
        if short && inst.src[2] == Operand::Sgpr(106) {
            out.push("vcc".into());
        }
        if inst.mnemonic == M::s_set_gpr_idx_on {
            out.push(gpr_idx(inst.words[0] >> 8 & 15));
        }
        out
    }

    /// A source with its modifiers.
    fn source(&self, def: &OperandDef, n: usize) -> String {
        let (inst, row) = (self.inst, self.row);
        let name = ["src0", "src1", "src2"][n];
        let mut text = self.plain(def, inst.src[n]);
        if matches!(row.enc, E::Vop3p | E::Vop3pMai) && !self.is_mix() {
            return text;
        }
        let has = |suffix: &str| row.mods.iter().any(|m| m.starts_with(name) && m.contains(suffix));
        let (abs, neg) = if self.is_mix() {
            (inst.mods.neg_hi, inst.mods.neg)
        } else {
            (inst.mods.abs, inst.mods.neg)
        };
        if let Lanes::Sdwa(s) = &inst.lanes
            && n < 2
            && s.sext[n]
            && has(".sext")
        {
            text = format!("sext({text})");
        }
        if abs >> n & 1 != 0 && (has(".abs") || self.is_mix()) {
            text = format!("|{text}|");
        }
        if neg >> n & 1 != 0 && (has(".neg") || self.is_mix()) {
            // A minus before a bare number would read as part of it.
            let bare = matches!(inst.src[n], Operand::Const(_)) && !text.starts_with('|');
            text = if bare {
                format!("neg({text})")
            } else {
                format!("-{text}")
            };
        } else if neg >> n & 1 != 0 && row.enc == E::Vop3 && !has(".neg") && has(".op_sel") {
            // LLVM reads an integer source's negation bit as sign extension.
            text = format!("sext({text})");
        }
        text
    }

    fn is_mix(&self) -> bool {
        matches!(
            self.inst.mnemonic,
            M::v_fma_mix_f32 | M::v_fma_mixlo_f16 | M::v_fma_mixhi_f16
        )
    }

    fn sopp(&self) -> Vec<String> {
        let imm = self.inst.imm as u32 & 0xffff;
        let one = |s: String| vec![s];
        match self.inst.mnemonic {
            M::s_waitcnt => {
                let (vm, exp, lgkm) = (imm & 15 | imm >> 10 & 0x30, imm >> 4 & 7, imm >> 8 & 15);
                let mut parts = Vec::new();
                let full = vm == 63 && exp == 7 && lgkm == 15;
                if vm != 63 || full {
                    parts.push(format!("vmcnt({vm})"));
                }
                if exp != 7 || full {
                    parts.push(format!("expcnt({exp})"));
                }
                if lgkm != 15 || full {
                    parts.push(format!("lgkmcnt({lgkm})"));
                }
                one(parts.join(" "))
            }
            M::s_sendmsg | M::s_sendmsghalt => one(sendmsg(imm)),
            M::s_set_gpr_idx_mode => one(gpr_idx(imm)),
            M::s_endpgm if imm == 0 => Vec::new(),
            M::s_endpgm => one(imm.to_string()),
            M::s_branch
            | M::s_cbranch_scc0
            | M::s_cbranch_scc1
            | M::s_cbranch_vccz
            | M::s_cbranch_vccnz
            | M::s_cbranch_execz
            | M::s_cbranch_execnz
            | M::s_cbranch_cdbgsys
            | M::s_cbranch_cdbguser
            | M::s_cbranch_cdbgsys_or_user
            | M::s_cbranch_cdbgsys_and_user => one(imm.to_string()),
            _ if !self.row.has_mod("simm16") => Vec::new(),
            _ => one(decimal_or_hex(imm)),
        }
    }

    fn sopk(&self) -> Vec<String> {
        let inst = self.inst;
        let imm = inst.imm as u32 & 0xffff;
        let wide = if inst.row().operands.iter().any(|o| o.bits == 64) {
            64
        } else {
            32
        };
        let register = |o: Operand| match o {
            Operand::Sgpr(n) => scalar_name(n, wide),
            _ => String::new(),
        };
        match inst.mnemonic {
            M::s_getreg_b32 => vec![register(inst.dst), hwreg(imm, inst.target)],
            M::s_setreg_b32 => vec![hwreg(imm, inst.target), register(inst.src[0])],
            M::s_setreg_imm32_b32 => vec![hwreg(imm, inst.target), format!("{:#x}", inst.words[1])],
            M::s_call_b64 => vec![register(inst.dst), imm.to_string()],
            M::s_cbranch_i_fork => vec![register(inst.src[0]), imm.to_string()],
            _ => {
                let r = if inst.dst == Operand::None {
                    inst.src[0]
                } else {
                    inst.dst
                };
                vec![register(r), format!("{imm:#x}")]
            }
        }
    }

    fn flat(&self) -> Vec<String> {
        let (inst, row) = (self.inst, self.row);
        let mut out = Vec::new();
        if let Some(def) = row.operand(Slot::Vdst) {
            out.push(self.plain(def, inst.dst));
        }
        out.push(
            row.operand(Slot::Vaddr)
                .map_or("off".into(), |def| self.plain(def, inst.src[0])),
        );
        if let Some(def) = row.operand(Slot::Vdata) {
            out.push(self.plain(def, inst.src[1]));
        }
        if row.enc != E::Flat {
            out.push(
                row.operand(Slot::Saddr)
                    .map_or("off".into(), |def| self.plain(def, inst.base)),
            );
        }
        out
    }

    fn buffer(&self) -> Vec<String> {
        let (inst, row) = (self.inst, self.row);
        let mut out = Vec::new();
        if let Some(def) = row.operand(Slot::Vdata) {
            out.push(self.plain(def, inst.src[1]));
        }
        let Some(srsrc) = row.operand(Slot::Srsrc) else {
            return out;
        };
        if inst.mnemonic != M::buffer_store_lds_dword {
            out.push(
                row.operand(Slot::Vaddr)
                    .map_or("off".into(), |def| self.plain(def, inst.src[0])),
            );
        }
        out.push(self.plain(srsrc, inst.base));
        if let Some(def) = row.operand(Slot::Soffset) {
            out.push(self.plain(def, inst.soffset));
        }
        out
    }

    fn cache_policy(&self, out: &mut String) {
        let inst = self.inst;
        let names = match inst.target {
            Target::Gfx90a => [" glc", " slc", " scc"],
            Target::Gfx942 => [" sc0", " nt", " sc1"],
        };
        for (flag, name) in [Inst::GLC, Inst::SLC, Inst::SCC].into_iter().zip(names) {
            if inst.flag(flag) {
                out.push_str(name);
            }
        }
    }

    fn modifiers(&self, out: &mut String) -> fmt::Result {
        let (inst, row) = (self.inst, self.row);
        match row.enc {
            E::Smem => {
                if inst.soffset != Operand::None && row.form == "sgpr.imm" {
                    write!(out, " offset:{}", hex(inst.imm))?;
                }
                if inst.flag(Inst::GLC) {
                    out.push_str(" glc");
                }
                Ok(())
            }
            E::Ds => self.ds_modifiers(out),
            E::Flat | E::Global | E::Scratch => {
                if inst.imm != 0 {
                    write!(out, " offset:{}", inst.imm)?;
                }
                self.cache_policy(out);
                if row.enc != E::Flat && inst.target == Target::Gfx90a && self.word >> 13 & 1 != 0 {
                    out.push_str(" lds");
                }
                Ok(())
            }
            E::Mubuf | E::Mtbuf => {
                if row.enc == E::Mtbuf {
                    out.push_str(&buffer_format(inst.aux[0]));
                }
                if inst.flag(Inst::IDXEN) {
                    out.push_str(" idxen");
                }
                if inst.flag(Inst::OFFEN) {
                    out.push_str(" offen");
                }
                if row.has_mod("offset") && inst.imm != 0 {
                    write!(out, " offset:{}", inst.imm)?;
                }
                if inst.mnemonic == M::buffer_store_lds_dword {
                    out.push_str(" lds");
                }
                self.cache_policy(out);
                if row.form.ends_with("lds") {
                    out.push_str(" lds");
                }
                Ok(())
            }
            E::Vop3p => self.packed_modifiers(out),
            E::Vop3pMai => self.matrix_modifiers(out),
            _ => self.vector_modifiers(out),
        }
    }

    fn ds_modifiers(&self, out: &mut String) -> fmt::Result {
        let (inst, row) = (self.inst, self.row);
        if inst.mnemonic == M::ds_swizzle_b32 {
            out.push_str(&swizzle(inst.imm as u32));
        } else if row.has_mod("offset0") {
            for (i, o) in inst.aux.iter().enumerate() {
                if *o != 0 {
                    write!(out, " offset{i}:{o}")?;
                }
            }
        } else if row.has_mod("offset") && inst.imm != 0 {
            write!(out, " offset:{}", inst.imm)?;
        }
        if inst.flag(Inst::GDS) {
            out.push_str(" gds");
        }
        Ok(())
    }

    fn bit_list(&self, out: &mut String, name: &str, mask: u8, count: usize) -> fmt::Result {
        let bits: Vec<String> = (0..count).map(|i| (mask >> i & 1).to_string()).collect();
        write!(out, " {name}:[{}]", bits.join(","))
    }

    fn sources(&self) -> usize {
        self.row
            .operands
            .iter()
            .filter(|o| matches!(o.slot, Slot::Src0 | Slot::Src1 | Slot::Src2) && !o.fields.is_empty())
            .count()
    }

    fn packed_modifiers(&self, out: &mut String) -> fmt::Result {
        let (m, n) = (&self.inst.mods, self.sources());
        let all = (1u8 << n) - 1;
        let lists = [
            ("op_sel", m.op_sel, 0, true),
            ("op_sel_hi", m.op_sel_hi, if self.is_mix() { 0 } else { all }, true),
            ("neg_lo", m.neg, 0, !self.is_mix()),
            ("neg_hi", m.neg_hi, 0, !self.is_mix()),
        ];
        for (name, mask, default, shown) in lists {
            if shown && mask & all != default {
                self.bit_list(out, name, mask, n)?;
            }
        }
        if m.clamp {
            out.push_str(" clamp");
        }
        Ok(())
    }

    fn matrix_modifiers(&self, out: &mut String) -> fmt::Result {
        let [cb, blgp] = self.inst.aux;
        if !self.row.has_mod("cbsz") {
            return Ok(());
        }
        if cb & 7 != 0 {
            write!(out, " cbsz:{}", cb & 7)?;
        }
        if cb >> 4 != 0 {
            write!(out, " abid:{}", cb >> 4)?;
        }
        if blgp != 0 && self.row.has_mod("blgp") {
            if self.inst.target == Target::Gfx942 && self.inst.mnemonic.name().starts_with("v_mfma_f64") {
                return self.bit_list(out, "neg", blgp, 3);
            }
            write!(out, " blgp:{blgp}")?;
        }
        Ok(())
    }

    fn vector_modifiers(&self, out: &mut String) -> fmt::Result {
        let (inst, row) = (self.inst, self.row);
        let m = &inst.mods;
        if row.enc == E::Vop3 && m.op_sel != 0 && row.mods.iter().any(|x| x.contains("op_sel")) {
            // The tied third source of stochastic rounding has its bit too.
            let sr = matches!(inst.mnemonic, M::v_cvt_sr_fp8_f32 | M::v_cvt_sr_bf8_f32);
            let n = if sr { 3 } else { self.sources() };
            let with_dst = m.op_sel & !(8 | ((1 << n) - 1)) == 0;
            if with_dst {
                let mask = m.op_sel & ((1 << n) - 1) | (m.op_sel >> 3) << n;
                self.bit_list(out, "op_sel", mask, n + 1)?;
            }
        }
        if m.clamp {
            out.push_str(" clamp");
        }
        out.push_str(["", " mul:2", " mul:4", " div:2"][usize::from(m.omod)]);
        match &inst.lanes {
            Lanes::Plain => Ok(()),
            Lanes::Sdwa(s) => {
                if row.has_mod("dst_sel") {
                    let unused = match s.unused {
                        Unused::Pad => "PAD",
                        Unused::Sext => "SEXT",
                        Unused::Preserve => "PRESERVE",
                    };
                    write!(out, " dst_sel:{} dst_unused:UNUSED_{unused}", sel_name(s.dst))?;
                }
                for (i, sel) in s.src.iter().enumerate() {
                    if row.has_mod(["src0_sel", "src1_sel"][i]) {
                        write!(out, " src{i}_sel:{}", sel_name(*sel))?;
                    }
                }
                Ok(())
            }
            Lanes::Dpp(d) => {
                let n = d.ctrl & 15;
                match d.ctrl {
                    0..=0xff => write!(
                        out,
                        " quad_perm:[{},{},{},{}]",
                        d.ctrl & 3,
                        d.ctrl >> 2 & 3,
                        d.ctrl >> 4 & 3,
                        d.ctrl >> 6 & 3
                    )?,
                    0x101..=0x10f => write!(out, " row_shl:{n}")?,
                    0x111..=0x11f => write!(out, " row_shr:{n}")?,
                    0x121..=0x12f => write!(out, " row_ror:{n}")?,
                    0x130 => out.push_str(" wave_shl:1"),
                    0x134 => out.push_str(" wave_rol:1"),
                    0x138 => out.push_str(" wave_shr:1"),
                    0x13c => out.push_str(" wave_ror:1"),
                    0x140 => out.push_str(" row_mirror"),
                    0x141 => out.push_str(" row_half_mirror"),
                    0x142 => out.push_str(" row_bcast:15"),
                    0x143 => out.push_str(" row_bcast:31"),
                    0x150..=0x15f => write!(out, " row_newbcast:{n}")?,
                    other => write!(out, " dpp_ctrl:{other:#x}")?,
                }
                write!(out, " row_mask:{:#x} bank_mask:{:#x}", d.row_mask, d.bank_mask)?;
                if d.bound_ctrl {
                    out.push_str(" bound_ctrl:1");
                }
                Ok(())
            }
        }
    }
}

fn sel_name(sel: SdwaSel) -> String {
    match sel {
        SdwaSel::Byte(n) => format!("BYTE_{n}"),
        SdwaSel::Word(n) => format!("WORD_{n}"),
        SdwaSel::Dword => "DWORD".into(),
    }
}

/// A signed number in hexadecimal.
fn hex(value: i32) -> String {
    if value < 0 {
        format!("-{:#x}", value.unsigned_abs())
    } else {
        format!("{value:#x}")
    }
}

/// Small immediates are decimal, as LLVM prints inline constants.
fn decimal_or_hex(value: u32) -> String {
    if value <= 64 {
        value.to_string()
    } else {
        format!("{value:#x}")
    }
}

fn gpr_idx(mask: u32) -> String {
    let names = ["SRC0", "SRC1", "SRC2", "DST"];
    let on: Vec<&str> = (0..4).filter(|i| mask >> i & 1 != 0).map(|i| names[i]).collect();
    format!("gpr_idx({})", on.join(","))
}

fn hwreg(imm: u32, target: Target) -> String {
    let (id, offset, size) = (imm & 63, imm >> 6 & 31, (imm >> 11 & 31) + 1);
    let name = match id {
        1 => "MODE",
        2 => "STATUS",
        3 => "TRAPSTS",
        4 => "HW_ID",
        5 => "GPR_ALLOC",
        6 => "LDS_ALLOC",
        7 => "IB_STS",
        15 => "SH_MEM_BASES",
        16 => "TBA_LO",
        17 => "TBA_HI",
        18 => "TMA_LO",
        19 => "TMA_HI",
        20 if target == Target::Gfx942 => "XCC_ID",
        21 if target == Target::Gfx942 => "SQ_PERF_SNAPSHOT_DATA",
        22 if target == Target::Gfx942 => "SQ_PERF_SNAPSHOT_DATA1",
        23 if target == Target::Gfx942 => "SQ_PERF_SNAPSHOT_PC_LO",
        24 if target == Target::Gfx942 => "SQ_PERF_SNAPSHOT_PC_HI",
        _ => "",
    };
    let name = if name.is_empty() {
        id.to_string()
    } else {
        format!("HW_REG_{name}")
    };
    if offset == 0 && size == 32 {
        format!("hwreg({name})")
    } else {
        format!("hwreg({name}, {offset}, {size})")
    }
}

fn sendmsg(imm: u32) -> String {
    let (id, op, stream) = (imm & 15, imm >> 4 & 7, imm >> 8 & 3);
    let gs = |name: &str| {
        let op = ["NOP", "CUT", "EMIT", "EMIT_CUT"][op as usize & 3];
        if op == "NOP" {
            format!("sendmsg({name}, GS_OP_NOP)")
        } else {
            format!("sendmsg({name}, GS_OP_{op}, {stream})")
        }
    };
    let plain = |name: &str| format!("sendmsg({name})");
    match id {
        1 => plain("MSG_INTERRUPT"),
        2 => gs("MSG_GS"),
        3 => gs("MSG_GS_DONE"),
        4 => plain("MSG_SAVEWAVE"),
        5 => plain("MSG_STALL_WAVE_GEN"),
        6 => plain("MSG_HALT_WAVES"),
        7 => plain("MSG_ORDERED_PS_DONE"),
        8 => plain("MSG_EARLY_PRIM_DEALLOC"),
        9 => plain("MSG_GS_ALLOC_REQ"),
        10 => plain("MSG_GET_DOORBELL"),
        _ => format!("sendmsg({id}, {op}, {stream})"),
    }
}

fn swizzle(imm: u32) -> String {
    if imm == 0 {
        return String::new();
    }
    if imm & 0xff00 == 0x8000 {
        return format!(
            " offset:swizzle(QUAD_PERM,{},{},{},{})",
            imm & 3,
            imm >> 2 & 3,
            imm >> 4 & 3,
            imm >> 6 & 3
        );
    }
    if imm & 0x8000 != 0 {
        return format!(" offset:{imm}");
    }
    let (and, or, xor) = (imm & 31, imm >> 5 & 31, imm >> 10 & 31);
    if xor.is_power_of_two() && and == 31 && or == 0 {
        return format!(" offset:swizzle(SWAP,{xor})");
    }
    if and == 31 && or == 0 && (xor + 1).is_power_of_two() && xor > 0 {
        return format!(" offset:swizzle(REVERSE,{})", xor + 1);
    }
    let group = 32 - and;
    if xor == 0 && group > 1 && group.is_power_of_two() && or < group {
        return format!(" offset:swizzle(BROADCAST,{group},{or})");
    }
    // One letter per bit of the lane number, highest first: 0, 1, preserved, inverted.
    let letters: String = (0..5)
        .rev()
        .map(|b| match (and >> b & 1, or >> b & 1, xor >> b & 1) {
            (0, 0, 0) | (_, 1, 1) => '0',
            (0, 0, 1) | (_, 1, 0) => '1',
            (_, _, 0) => 'p',
            _ => 'i',
        })
        .collect();
    format!(" offset:swizzle(BITMASK_PERM,\"{letters}\")")
}

fn buffer_format(format: u8) -> String {
    let data = match format & 15 {
        0 => "INVALID",
        1 => "8",
        2 => "16",
        3 => "8_8",
        4 => "32",
        5 => "16_16",
        6 => "10_11_11",
        7 => "11_11_10",
        8 => "10_10_10_2",
        9 => "2_10_10_10",
        10 => "8_8_8_8",
        11 => "32_32",
        12 => "16_16_16_16",
        13 => "32_32_32",
        14 => "32_32_32_32",
        _ => "RESERVED_15",
    };
    let number = [
        "UNORM",
        "SNORM",
        "USCALED",
        "SSCALED",
        "UINT",
        "SINT",
        "RESERVED_6",
        "FLOAT",
    ][usize::from(format >> 4 & 7)];
    let parts: Vec<String> = [
        (format & 15 != 1).then(|| format!("BUF_DATA_FORMAT_{data}")),
        (format >> 4 != 0).then(|| format!("BUF_NUM_FORMAT_{number}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" format:[{}]", parts.join(","))
    }
}
