//! Special registers (PTX ISA, "Special Registers"): value and width in bits.

use super::{Emit, Result};
use crate::lower::text::{Val, ir};
use crate::protocol::TranslateError;
use crate::ptx::ast::Instruction;

/// CUDA's compute capability that we report has this many multiprocessors' worth of bookkeeping; programs only compare
/// `%smid` with it.
const COMPUTE_UNITS: u32 = 110;

impl<'a> Emit<'_, '_, 'a> {
    fn hidden(&mut self, at: u32, bits: u32) -> Val {
        let p = ir!(self.t, "getelementptr i8, ptr addrspace(4) %hid, i64 {at}");
        ir!(self.t, "load i{bits}, ptr addrspace(4) {p}, align {}", bits / 8)
    }

    fn lane_mask(&mut self, name: &str) -> Val {
        let lane = self.t.call("rg_lane", &[]);
        let one = ir!(self.t, "shl i32 1, {lane}");
        let below = ir!(self.t, "sub i32 {one}, 1");
        match name {
            "%lanemask_eq" => one,
            "%lanemask_lt" => below,
            "%lanemask_le" => ir!(self.t, "or i32 {below}, {one}"),
            "%lanemask_ge" => ir!(self.t, "xor i32 {below}, -1"),
            _ => {
                let le = ir!(self.t, "or i32 {below}, {one}");
                ir!(self.t, "xor i32 {le}, -1")
            }
        }
    }

    pub(super) fn special(&mut self, i: &Instruction<'a>, name: &str, component: Option<&str>) -> Result<(Val, u32)> {
        let dim = match component {
            None | Some("x") => 0,
            Some("y") => 1,
            Some("z") => 2,
            Some("w") => 3,
            Some(_) => return Err(i.unsupported()),
        };
        let xyz = ["x", "y", "z", "w"][dim as usize];
        // The fourth component of every vector register is 0.
        if dim == 3 {
            return Ok(("0".into(), 32));
        }
        let v = match name {
            "%tid" if self.solo() => self.t.call("rg_tid_solo", &["%hid", &dim.to_string()]),
            "%tid" => self.t.call(&format!("llvm.amdgcn.workitem.id.{xyz}"), &[]),
            "%ntid" => self.hidden(24 + 4 * dim, 32),
            "%ctaid" | "%clusterid" => self.t.call(&format!("llvm.amdgcn.workgroup.id.{xyz}"), &[]),
            "%nctaid" | "%nclusterid" => self.hidden(36 + 4 * dim, 32),
            // Clusters are of one block.
            "%cluster_ctaid" | "%cluster_ctarank" => "0".into(),
            "%cluster_nctaid" | "%cluster_nctarank" => "1".into(),
            "%is_explicit_cluster" => return Ok(("false".into(), 1)),
            "%laneid" => self.t.call("rg_lane", &[]),
            "%warpid" if self.solo() => self.t.call("rg_warpid_solo", &[]),
            "%warpid" => self.t.call("rg_warpid_paired", &["%hid"]),
            "%nwarpid" => "64".into(),
            "%smid" => {
                let x = self.t.call("llvm.amdgcn.workgroup.id.x", &[]);
                ir!(self.t, "urem i32 {x}, {COMPUTE_UNITS}")
            }
            "%nsmid" => COMPUTE_UNITS.to_string(),
            "%gridid" => return Ok((self.hidden(56, 64), 64)),
            _ if name.starts_with("%lanemask_") => self.lane_mask(name),
            "%clock" | "%clock_hi" | "%clock64" => {
                let v = self.t.call("llvm.amdgcn.s.memtime", &[]);
                if name == "%clock64" {
                    return Ok((v, 64));
                }
                let v = if name == "%clock_hi" {
                    ir!(self.t, "lshr i64 {v}, 32")
                } else {
                    v
                };
                self.resize(&v, 64, 32, false)
            }
            "%globaltimer" | "%globaltimer_lo" | "%globaltimer_hi" => {
                // 100 MHz ticks to nanoseconds.
                let v = self.t.call("llvm.amdgcn.s.memrealtime", &[]);
                let v = ir!(self.t, "mul i64 {v}, 10");
                if name == "%globaltimer" {
                    return Ok((v, 64));
                }
                let v = if name == "%globaltimer_hi" {
                    ir!(self.t, "lshr i64 {v}, 32")
                } else {
                    v
                };
                self.resize(&v, 64, 32, false)
            }
            "%dynamic_smem_size" => self.hidden(48, 32),
            "%total_smem_size" | "%aggr_smem_size" => {
                let v = self.hidden(48, 32);
                let size = self.k.shared.size;
                ir!(self.t, "add i32 {v}, {size}")
            }
            // No part of shared memory is reserved here.
            _ if name.starts_with("%reserved_smem_offset") => "0".into(),
            "%current_graph_exec" => return Ok(("0".into(), 64)),
            // The grid workspace of a cooperative launch; see `GRID_WORKSPACE` in `protocol`.
            "%envreg1" => self.hidden(68, 32),
            "%envreg2" => self.hidden(64, 32),
            _ if name.starts_with("%envreg") || name.starts_with("%pm") => "0".into(),
            "WARP_SZ" => "32".into(),
            _ => {
                let construct = format!("special register {name}");
                return Err(TranslateError::Unsupported {
                    line: i.line,
                    construct,
                });
            }
        };
        Ok((v, 32))
    }
}
