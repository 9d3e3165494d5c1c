//! The architectural state of one wave of 64 lanes.

use crate::Target;

/// One 32-bit value per lane.
pub type V32 = [u32; 64];
/// One 64-bit value per lane.
pub type V64 = [u64; 64];

/// Codes of scalar registers that are not plain SGPRs.
pub mod sreg {
    /// FLAT_SCRATCH, a pair.
    pub const FLAT_SCRATCH: u8 = 102;
    /// XNACK_MASK, a pair.
    pub const XNACK_MASK: u8 = 104;
    /// VCC, a pair.
    pub const VCC: u8 = 106;
    /// First of sixteen trap temporaries.
    pub const TTMP0: u8 = 108;
    /// M0.
    pub const M0: u8 = 124;
    /// EXEC, a pair.
    pub const EXEC: u8 = 126;
}

/// The MODE register.
///
/// ```text
/// 1:0 round f32   3:2 round f64/f16   5:4 denormals f32   7:6 denormals f64/f16   8 DX10_CLAMP   9 IEEE
/// 23 FP16_OVFL    27 GPR_IDX_EN
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Mode {
    /// Clamping turns NaN into 0.
    pub fn dx10_clamp(self) -> bool {
        self.0 >> 8 & 1 != 0
    }
    /// IEEE rules for signalling NaNs and min, max.
    pub fn ieee(self) -> bool {
        self.0 >> 9 & 1 != 0
    }
    /// An overflowing f16 result clamps to the largest finite value.
    pub fn fp16_ovfl(self) -> bool {
        self.0 >> 23 & 1 != 0
    }
    /// VGPR indexing through M0 is on.
    pub fn gpr_idx(self) -> bool {
        self.0 >> 27 & 1 != 0
    }
}

/// One wave. Scalar registers are addressed by their 7-bit code, VCC, M0 and EXEC included, so that an operand read is
/// one load; vector registers by number, AGPRs from 256.
#[derive(Clone)]
pub struct Wave {
    /// The instruction set it runs.
    pub target: Target,
    /// Address of the next instruction.
    pub pc: u64,
    /// Scalar registers by code.
    pub sgpr: [u32; 128],
    /// Scalar condition code.
    pub scc: bool,
    /// MODE.
    pub mode: Mode,
    /// The unified file: VGPRs, from `accum_offset` on AGPRs.
    vgpr: Box<[V32]>,
    accum_offset: u16,
    /// First address of the LDS aperture, for `src_shared_base`.
    pub shared_base: u64,
    /// First address of the scratch aperture, for `src_private_base`.
    pub private_base: u64,
}

/// Number of VGPRs and AGPRs that a wave of this shape may name.
pub fn vector_registers((all, accum_offset): (u16, u16)) -> (u16, u16) {
    // AGPRs are the upper part of one file. A VGPR number may reach into it, as on the card: code objects from before
    // accum_offset existed say 0 there and use all registers as VGPRs.
    (all.min(256), all.saturating_sub(accum_offset))
}

impl Wave {
    /// A wave with `vgprs` registers per lane, of which those from `accum_offset` on are AGPRs, all set to `fill`.
    pub fn new(target: Target, vgprs: u16, accum_offset: u16, fill: u32) -> Self {
        Wave {
            target,
            pc: 0,
            sgpr: [fill; 128],
            scc: false,
            mode: Mode(0),
            vgpr: vec![[fill; 64]; usize::from(vgprs)].into_boxed_slice(),
            accum_offset,
            shared_base: 0,
            private_base: 0,
        }
    }

    /// Number of VGPRs and AGPRs this wave may name.
    pub fn vector_registers(&self) -> (u16, u16) {
        vector_registers(self.shape())
    }

    /// Registers of a lane, and the place of the first AGPR among them.
    #[inline]
    pub fn shape(&self) -> (u16, u16) {
        (self.vgpr.len() as u16, self.accum_offset)
    }

    /// The 64 lanes of the register at a place of the file.
    ///
    /// # Safety
    /// The file has so many registers.
    #[inline(always)]
    pub(crate) unsafe fn lanes_at(&self, place: usize) -> *const u32 {
        debug_assert!(place < self.vgpr.len());
        // SAFETY: the caller's promise.
        unsafe { self.vgpr.as_ptr().add(place).cast() }
    }

    /// As [`Wave::lanes_at`], to write.
    ///
    /// # Safety
    /// The file has so many registers.
    #[inline(always)]
    pub(crate) unsafe fn lanes_at_mut(&mut self, place: usize) -> *mut u32 {
        debug_assert!(place < self.vgpr.len());
        // SAFETY: the caller's promise.
        unsafe { self.vgpr.as_mut_ptr().add(place).cast() }
    }

    /// Sets every register to `fill`, for the next wave.
    pub fn reset(&mut self, fill: u32) {
        self.sgpr = [fill; 128];
        self.scc = false;
        for register in &mut self.vgpr {
            *register = [fill; 64];
        }
    }

    #[inline]
    fn index(&self, register: u16) -> usize {
        // Ranges were checked against the allocation when the instruction was fetched.
        usize::from(if register < 256 {
            register
        } else {
            register - 256 + self.accum_offset
        })
    }

    /// A vector register: 0-255 VGPRs, 256-511 AGPRs.
    #[inline]
    pub fn v(&self, register: u16) -> &V32 {
        &self.vgpr[self.index(register)]
    }

    /// A vector register, to write.
    #[inline]
    pub fn v_mut(&mut self, register: u16) -> &mut V32 {
        let i = self.index(register);
        &mut self.vgpr[i]
    }

    /// Active lanes.
    #[inline]
    pub fn exec(&self) -> u64 {
        self.s64(sreg::EXEC)
    }

    /// Sets the active lanes.
    #[inline]
    pub fn set_exec(&mut self, mask: u64) {
        self.set_s64(sreg::EXEC, mask);
    }

    /// VCC.
    #[inline]
    pub fn vcc(&self) -> u64 {
        self.s64(sreg::VCC)
    }

    /// Sets VCC.
    #[inline]
    pub fn set_vcc(&mut self, mask: u64) {
        self.set_s64(sreg::VCC, mask);
    }

    /// M0.
    #[inline]
    pub fn m0(&self) -> u32 {
        self.sgpr[usize::from(sreg::M0)]
    }

    /// A pair of scalar registers.
    #[inline]
    pub fn s64(&self, code: u8) -> u64 {
        let i = usize::from(code & 0x7f);
        u64::from(self.sgpr[i]) | u64::from(self.sgpr[(i + 1) & 0x7f]) << 32
    }

    /// Writes a pair of scalar registers.
    #[inline]
    pub fn set_s64(&mut self, code: u8, value: u64) {
        let i = usize::from(code & 0x7f);
        self.sgpr[i] = value as u32;
        self.sgpr[(i + 1) & 0x7f] = (value >> 32) as u32;
    }
}
