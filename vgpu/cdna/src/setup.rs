//! The initial state of waves, from the kernel descriptor and the dispatch.
//!
//! ```text
//! descriptor   16 entry offset (i64)   44 rsrc3   48 rsrc1   52 rsrc2   56 properties (u16)
//!              58 preloaded arguments: 6:0 dwords, 15:7 first dword
//!
//! SGPRs        private segment resource 4 | dispatch_ptr 2 | queue_ptr 2 | kernarg_ptr 2 | dispatch_id 2 |
//!              flat_scratch_init 2 | private_segment_size 1 | work-group counts x y z |
//!              preloaded arguments                                                     (user, those enabled)
//!              work-group id x y z | work-group info | scratch wave offset                   (system, those enabled)
//! v0           work-item id: x | y << 10 | z << 20
//! ```
//!
//! Sources: LLVM's "User Guide for AMDGPU Backend", sections Kernel Descriptor and Initial Kernel Execution State. The
//! descriptor and the older `amd_kernel_code_t` agree in the fields used here.

use crate::{
    Target,
    dispatch::{Dispatch, Stop},
    exec::access::{Memory, SCRATCH_WINDOW},
    memory::Access,
    wave::{Mode, Wave, sreg},
};

/// Registers start with this: a signalling NaN as f32, and as half of a pointer an address that nobody maps.
pub const POISON: u32 = 0x7fbf_dead;

/// What the descriptor and the dispatch fix for all waves.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Address of the first instruction.
    pub entry: u64,
    /// Vector registers per lane, AGPRs included.
    pub vgprs: u16,
    /// Number of the register that is a0.
    pub accum_offset: u16,
    mode: Mode,
    rsrc2: u32,
    properties: u32,
    user_sgprs: u32,
    /// Kernel arguments that arrive in SGPRs.
    preloaded: Vec<u32>,
    /// Bytes of private memory per lane.
    pub lane_bytes: u32,
    /// Work-groups in x, y and z.
    pub groups: [u32; 3],
}

/// How many dwords of the kernel arguments the descriptor wants in SGPRs. `amd_kernel_code_t` has other flags there; it is
/// known by its version 1, machine kind 1 and major machine version, which would be an argument size of half a megabyte.
fn preload_length(words: &[u32; 16]) -> usize {
    let old = words[0] == 1 && words[2] & 0xffff == 1 && words[2] >> 16 >= 7;
    if old { 0 } else { (words[14] >> 16 & 0x7f) as usize }
}

impl Setup {
    /// Reads and checks the descriptor.
    ///
    /// # Errors
    /// [`Stop::MemoryFault`] when it cannot be read, [`Stop::InvalidDispatch`] when it or the sizes make no sense.
    pub fn new(d: &Dispatch<'_>, memory: &mut Memory<'_>) -> Result<Setup, Stop> {
        let invalid = |text: String| Err(Stop::InvalidDispatch(text));
        let mut words = [0u32; 16];
        memory
            .read_dwords(d.kernel_object & !3, &mut words, Access::Read)
            .map_err(|fault| Stop::MemoryFault {
                fault,
                pc: d.kernel_object,
                message: format!(
                    "the kernel descriptor at {:#x} is not readable: {:?}",
                    d.kernel_object, fault.reason
                ),
            })?;
        if !d.kernel_object.is_multiple_of(64) {
            return invalid(format!(
                "the kernel descriptor at {:#x} is not 64-byte aligned",
                d.kernel_object
            ));
        }
        let items: u64 = d.workgroup_size.iter().map(|n| u64::from(*n)).product();
        if items == 0 || items > 1024 {
            return invalid(format!(
                "a work-group of {:?} work-items: 1 to 1024 are possible",
                d.workgroup_size
            ));
        }
        if d.grid_size.contains(&0) {
            return invalid(format!("a grid of {:?} work-items", d.grid_size));
        }
        if d.group_segment_size > 64 * 1024 {
            return invalid(format!(
                "{} bytes of LDS: a work-group has at most 65536",
                d.group_segment_size
            ));
        }
        // A wave's scratch offset is 32 bits.
        if d.private_segment_size > 16 << 20 {
            return invalid(format!("{} bytes of scratch per work-item", d.private_segment_size));
        }
        let (rsrc1, rsrc2, rsrc3) = (words[12], words[13], words[11]);
        let entry_offset = u64::from(words[4]) | u64::from(words[5]) << 32;
        if !entry_offset.is_multiple_of(4) {
            return invalid(format!(
                "the kernel descriptor at {:#x} has the entry offset {entry_offset:#x}",
                d.kernel_object
            ));
        }
        let mode = rsrc1 >> 12 & 0xff | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9 | (rsrc1 >> 26 & 1) << 23;
        let mut preloaded = vec![0; preload_length(&words)];
        if !preloaded.is_empty() {
            let va = d.kernarg_va + u64::from(words[14] >> 23) * 4;
            memory
                .read_dwords(va, &mut preloaded, Access::Read)
                .map_err(|fault| Stop::MemoryFault {
                    fault,
                    pc: d.kernel_object,
                    message: format!("the kernel arguments at {va:#x} are not readable: {:?}", fault.reason),
                })?;
        }
        // Code that expects its arguments in SGPRs begins after 256 bytes for command processors that cannot preload.
        let skip = if preloaded.is_empty() { 0 } else { 256 };
        Ok(Setup {
            entry: d.kernel_object.wrapping_add(entry_offset).wrapping_add(skip),
            preloaded,
            vgprs: ((rsrc1 & 63) as u16 + 1) * 8,
            accum_offset: ((rsrc3 & 63) as u16 + 1) * 4,
            mode: Mode(mode),
            rsrc2,
            properties: words[14] & 0x3ff,
            user_sgprs: rsrc2 >> 1 & 31,
            // Allocated in units of 1 KiB per wave.
            lane_bytes: d.private_segment_size.next_multiple_of(16),
            groups: std::array::from_fn(|i| d.grid_size[i].div_ceil(d.workgroup_size[i])),
        })
    }

    /// The work-items of a work-group: smaller at the ends of a grid that is no multiple of the work-group size.
    pub fn group_size(&self, d: &Dispatch<'_>, id: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|i| d.workgroup_size[i].min(d.grid_size[i] - id[i] * d.workgroup_size[i]))
    }

    /// Fills in the registers of wave number `number` of work-group `id`.
    ///
    /// # Errors
    /// [`Stop::InvalidDispatch`] when the descriptor enables more SGPRs than it counts.
    pub fn start(
        &self,
        d: &Dispatch<'_>,
        wave: &mut Wave,
        id: [u32; 3],
        number: u32,
        scratch_va: u64,
    ) -> Result<(), Stop> {
        wave.reset(POISON);
        wave.pc = self.entry;
        wave.mode = self.mode;
        wave.shared_base = d.shared_base;
        wave.private_base = d.private_base;
        wave.set_s64(sreg::XNACK_MASK, 0);
        if d.target == Target::Gfx942 {
            // Architected flat scratch: shaders only read it.
            wave.set_s64(sreg::FLAT_SCRATCH, scratch_va);
        }

        let mut at = 0;
        let mut put = |wave: &mut Wave, value: u32| {
            if at < 102 {
                wave.sgpr[at] = value;
            }
            at += 1;
        };
        let enabled = |bit: u32| self.properties >> bit & 1 != 0;
        if enabled(0) {
            // Swizzled: element size 4, index stride 64, lane number added.
            let resource = [
                SCRATCH_WINDOW as u32,
                (SCRATCH_WINDOW >> 32) as u32 | 1 << 31,
                u32::MAX,
                1 << 19 | 3 << 21 | 1 << 23,
            ];
            resource.iter().for_each(|w| put(wave, *w));
        }
        let pairs = [
            (1, d.packet_va),
            (2, d.queue_va),
            (3, d.kernarg_va),
            (4, d.dispatch_id),
            (5, SCRATCH_WINDOW),
        ];
        for (bit, value) in pairs {
            if enabled(bit) {
                put(wave, value as u32);
                put(wave, (value >> 32) as u32);
            }
        }
        if enabled(6) {
            put(wave, d.private_segment_size);
        }
        for (i, count) in self.groups.iter().enumerate() {
            if enabled(7 + i as u32) {
                put(wave, *count);
            }
        }
        for word in &self.preloaded {
            put(wave, *word);
        }
        if at > self.user_sgprs as usize {
            return Err(Stop::InvalidDispatch(format!(
                "the kernel descriptor at {:#x} enables {at} user SGPRs and counts {}",
                d.kernel_object, self.user_sgprs
            )));
        }

        at = self.user_sgprs as usize;
        let mut put = |wave: &mut Wave, value: u32| {
            wave.sgpr[at] = value;
            at += 1;
        };
        for (i, n) in id.iter().enumerate() {
            if self.rsrc2 >> (7 + i) & 1 != 0 {
                put(wave, *n);
            }
        }
        let size = self.group_size(d, id);
        let items = size.iter().product::<u32>();
        if self.rsrc2 >> 10 & 1 != 0 {
            let waves = items.div_ceil(64);
            put(wave, u32::from(number == 0) << 31 | waves << 6 | number);
        }
        if self.rsrc2 & 1 != 0 && d.target == Target::Gfx90a {
            put(wave, (scratch_va - SCRATCH_WINDOW) as u32);
        }

        let first = number * 64;
        let lanes = (items - first).min(64);
        wave.set_exec(if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 });
        let ids = wave.v_mut(0);
        for lane in 0..lanes {
            let item = first + lane;
            let (x, y, z) = (item % size[0], item / size[0] % size[1], item / size[0] / size[1]);
            ids[lane as usize] = x | y << 10 | z << 20;
        }
        Ok(())
    }
}
