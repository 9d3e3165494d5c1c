; Copies and fills as the runtime itself puts them into a ring. The code objects beside this file are made of it: `kernels.rs` says how.
;
; Arguments: 0 destination, 8 source (copies) or pattern (fills, 32 bits), 16 units, 20 work-items, 24 rounds (32 bits each). A unit is 1, 4 or
; 16 bytes. In a round a wave moves 256 units, 4 of each lane on their way at once; there are rounds only where work-groups are full. What is
; left then is moved one by one: work-item i moves the units i, i + work-items, i + 2 * work-items ...
;
;   round   wave 0: units   0 ..  63 |  64 .. 127 | 128 .. 191 | 192 .. 255     wave 1: units 256 ... 511     wave 2 ...
;
; s[0:1] arguments, s2 work-group, s[4:5] destination, s[6:7] source or s6 pattern, s8 units left after the rounds, s9 work-items, s10 rounds,
; s11 bytes of a round, s12 bytes from a work-item's unit to its next; v0 work-item, v2 offset, v[8:23] units

.macro begin name shift
  .text
  .globl \name
  .p2align 8
  .protected \name
  .type \name,@function
\name:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx4 s[8:11], s[0:1], 0x10
  s_lshl_b32 s3, s2, 8
  v_add_u32_e32 v0, s3, v0
  v_and_b32_e32 v1, 63, v0
  v_sub_u32_e32 v2, v0, v1
  v_lshl_add_u32 v2, v2, 2, v1
  v_lshlrev_b32_e32 v2, \shift, v2
  s_waitcnt lgkmcnt(0)
  s_lshl_b32 s12, s9, \shift
  s_lshl_b32 s11, s12, 2
  s_lshl_b32 s3, s9, 2
  s_mul_i32 s3, s3, s10
  s_sub_u32 s8, s8, s3
.endm

; Begins the rounds, which end with `again`.
.macro rounds name
  s_cmp_eq_u32 s10, 0
  s_cbranch_scc1 .Lrest_\name
.Lround_\name:
.endm

.macro again name shift
  s_add_u32 s4, s4, s11
  s_addc_u32 s5, s5, 0
  s_sub_u32 s10, s10, 1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lround_\name
.Lrest_\name:
  v_lshlrev_b32_e32 v2, \shift, v0
.Lunit_\name:
  v_cmp_gt_u32_e32 vcc, s8, v0
  s_and_b64 exec, exec, vcc
  s_cbranch_execz .Lend_\name
.endm

.macro end name
  v_add_u32_e32 v0, s9, v0
  v_add_u32_e32 v2, s12, v2
  s_branch .Lunit_\name
.Lend_\name:
  s_endpgm
.Lsize_\name:
  .size \name, .Lsize_\name-\name

  .rodata
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_kernarg_size 32
    .amdhsa_next_free_vgpr 24
    .amdhsa_next_free_sgpr 13
    .amdhsa_accum_offset 24
  .end_amdhsa_kernel
.endm

; `r0` to `r3`: the registers of the four units.
.macro copy name shift load store r0 r1 r2 r3
  begin \name \shift
  rounds \name
  \load \r0, v2, s[6:7]
  \load \r1, v2, s[6:7] offset:64<<\shift
  \load \r2, v2, s[6:7] offset:128<<\shift
  \load \r3, v2, s[6:7] offset:192<<\shift
  s_add_u32 s6, s6, s11
  s_addc_u32 s7, s7, 0
  ; A store counts as well, and all end in order.
  s_waitcnt vmcnt(3)
  \store v2, \r0, s[4:5]
  s_waitcnt vmcnt(3)
  \store v2, \r1, s[4:5] offset:64<<\shift
  s_waitcnt vmcnt(3)
  \store v2, \r2, s[4:5] offset:128<<\shift
  s_waitcnt vmcnt(3)
  \store v2, \r3, s[4:5] offset:192<<\shift
  again \name \shift
  \load \r0, v2, s[6:7]
  s_waitcnt vmcnt(0)
  \store v2, \r0, s[4:5]
  end \name
.endm

.macro fill name shift store unit
  begin \name \shift
  v_mov_b32_e32 v8, s6
  v_mov_b32_e32 v9, s6
  v_mov_b32_e32 v10, s6
  v_mov_b32_e32 v11, s6
  rounds \name
  \store v2, \unit, s[4:5]
  \store v2, \unit, s[4:5] offset:64<<\shift
  \store v2, \unit, s[4:5] offset:128<<\shift
  \store v2, \unit, s[4:5] offset:192<<\shift
  again \name \shift
  \store v2, \unit, s[4:5]
  end \name
.endm

copy copy_1 0, global_load_ubyte, global_store_byte, v8, v9, v10, v11
copy copy_4 2, global_load_dword, global_store_dword, v8, v9, v10, v11
copy copy_16 4, global_load_dwordx4, global_store_dwordx4, v[8:11], v[12:15], v[16:19], v[20:23]
fill fill_1 0, global_store_byte, v8
fill fill_4 2, global_store_dword, v8
fill fill_16 4, global_store_dwordx4, v[8:11]

.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - {.name: copy_1, .symbol: copy_1.kd, .kernarg_segment_size: 32, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 19, .vgpr_count: 24, .max_flat_workgroup_size: 256}
  - {.name: copy_4, .symbol: copy_4.kd, .kernarg_segment_size: 32, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 19, .vgpr_count: 24, .max_flat_workgroup_size: 256}
  - {.name: copy_16, .symbol: copy_16.kd, .kernarg_segment_size: 32, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 19, .vgpr_count: 24, .max_flat_workgroup_size: 256}
  - {.name: fill_1, .symbol: fill_1.kd, .kernarg_segment_size: 32, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 19, .vgpr_count: 24, .max_flat_workgroup_size: 256}
  - {.name: fill_4, .symbol: fill_4.kd, .kernarg_segment_size: 32, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 19, .vgpr_count: 24, .max_flat_workgroup_size: 256}
  - {.name: fill_16, .symbol: fill_16.kd, .kernarg_segment_size: 32, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 19, .vgpr_count: 24, .max_flat_workgroup_size: 256}
...
.end_amdgpu_metadata
