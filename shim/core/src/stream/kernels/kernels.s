; Copies and fills as the runtime itself puts them into a ring. The code objects beside this file are made of it: `kernels.rs` says how.
;
; Arguments: 0 destination, 8 source (copies) or pattern (fills, 32 bits), 16 units (32 bits), 20 work-items (32 bits).
; Work-item i moves the units i, i + work-items, i + 2 * work-items ... A unit is 1, 4 or 16 bytes.
;
; s[0:1] arguments, s2 work-group, v0 work-item of the group, v[2:3] offset, v[4:5] source, v[6:7] destination, v[8:11] unit

.macro begin name
  .text
  .globl \name
  .p2align 8
  .protected \name
  .type \name,@function
\name:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx2 s[8:9], s[0:1], 0x10
  s_lshl_b32 s3, s2, 8
  v_add_u32_e32 v0, s3, v0
  v_mov_b32_e32 v1, 0
  s_waitcnt lgkmcnt(0)
.endm

; Leaves out the work-items that have no unit left; ends when none has. v[2:3]: the offset of the unit of the rest.
.macro next name shift
.L\name:
  v_cmp_gt_u32_e32 vcc, s8, v0
  s_and_b64 exec, exec, vcc
  s_cbranch_execz .Lend_\name
  v_lshlrev_b64 v[2:3], \shift, v[0:1]
  v_mov_b32_e32 v7, s5
  v_add_co_u32_e32 v6, vcc, s4, v2
  v_addc_co_u32_e32 v7, vcc, v7, v3, vcc
.endm

.macro source
  v_mov_b32_e32 v5, s7
  v_add_co_u32_e32 v4, vcc, s6, v2
  v_addc_co_u32_e32 v5, vcc, v5, v3, vcc
.endm

.macro end name
  v_add_u32_e32 v0, s9, v0
  s_branch .L\name
.Lend_\name:
  s_endpgm
.Lsize_\name:
  .size \name, .Lsize_\name-\name

  .rodata
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_kernarg_size 24
    .amdhsa_next_free_vgpr 12
    .amdhsa_next_free_sgpr 10
    .amdhsa_accum_offset 12
  .end_amdhsa_kernel
.endm

.macro copy name shift load store
  begin \name
  next \name \shift
  source
  \load
  s_waitcnt vmcnt(0)
  \store
  end \name
.endm

.macro fill name shift store
  begin \name
  v_mov_b32_e32 v8, s6
  v_mov_b32_e32 v9, s6
  v_mov_b32_e32 v10, s6
  v_mov_b32_e32 v11, s6
  next \name \shift
  \store
  end \name
.endm

copy copy_1 0, "global_load_ubyte v8, v[4:5], off", "global_store_byte v[6:7], v8, off"
copy copy_4 2, "global_load_dword v8, v[4:5], off", "global_store_dword v[6:7], v8, off"
copy copy_16 4, "global_load_dwordx4 v[8:11], v[4:5], off", "global_store_dwordx4 v[6:7], v[8:11], off"
fill fill_1 0, "global_store_byte v[6:7], v8, off"
fill fill_4 2, "global_store_dword v[6:7], v8, off"
fill fill_16 4, "global_store_dwordx4 v[6:7], v[8:11], off"

.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - {.name: copy_1, .symbol: copy_1.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 12, .max_flat_workgroup_size: 256}
  - {.name: copy_4, .symbol: copy_4.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 12, .max_flat_workgroup_size: 256}
  - {.name: copy_16, .symbol: copy_16.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 12, .max_flat_workgroup_size: 256}
  - {.name: fill_1, .symbol: fill_1.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 12, .max_flat_workgroup_size: 256}
  - {.name: fill_4, .symbol: fill_4.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 12, .max_flat_workgroup_size: 256}
  - {.name: fill_16, .symbol: fill_16.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 12, .max_flat_workgroup_size: 256}
...
.end_amdgpu_metadata
