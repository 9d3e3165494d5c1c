; Lanes, warps and thread indices. A wave64 holds two CUDA warps (lanes 0-31 and 32-63) or, in the Solo layout, one in
; lanes 0-31; every function here is right for both unless its name says otherwise.

define internal i32 @rg_lane64() #1 {
  %lo = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  %r = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %lo)
  ret i32 %r
}

define internal i32 @rg_lane() #1 {
  %l = call i32 @rg_lane64()
  %r = and i32 %l, 31
  ret i32 %r
}

; The word of a wave mask that belongs to the calling lane's warp.
define internal i32 @rg_half(i64 %m) #1 {
  %l = call i32 @rg_lane64()
  %hi = icmp ugt i32 %l, 31
  %lo32 = trunc i64 %m to i32
  %hs = lshr i64 %m, 32
  %hi32 = trunc i64 %hs to i32
  %r = select i1 %hi, i32 %hi32, i32 %lo32
  ret i32 %r
}

; The same truth, of which the optimiser knows nothing.
define internal i1 @rg_opaque(i1 %p) #1 {
  %z = zext i1 %p to i32
  %o = call i32 asm sideeffect "", "=v,0"(i32 %z) #3
  %r = icmp ne i32 %o, 0
  ret i1 %r
}

; LLVM 15 hoists equal ballots out of both arms of a branch and takes one for another that dominates it, though the
; lanes that take part differ: the empty statement makes each one's operand its own.
define internal i32 @rg_ballot(i1 %p) #1 {
  %z = zext i1 %p to i32
  %o = call i32 asm sideeffect "", "=v,0"(i32 %z) #3
  %q = icmp ne i32 %o, 0
  %b = call i64 @llvm.amdgcn.ballot.i64(i1 %q) #3
  %r = call i32 @rg_half(i64 %b)
  ret i32 %r
}

; Value of lane %src (0-31) of the same warp; 0 from an inactive lane.
define internal i32 @rg_gather(i32 %v, i32 %src) #1 {
  %l = call i32 @rg_lane64()
  %h = and i32 %l, 32
  %s = or i32 %src, %h
  %a = shl i32 %s, 2
  %r = call i32 @llvm.amdgcn.ds.bpermute(i32 %a, i32 %v)
  ret i32 %r
}

; The bounds of shfl: low word maxLane, high word minLane (PTX ISA, shfl.sync).
define internal i32 @rg_shfl_max(i32 %c) #1 {
  %lane = call i32 @rg_lane()
  %s0 = lshr i32 %c, 8
  %seg = and i32 %s0, 31
  %cl = and i32 %c, 31
  %ns = xor i32 %seg, -1
  %m1 = and i32 %lane, %seg
  %m2 = and i32 %cl, %ns
  %r = or i32 %m1, %m2
  ret i32 %r
}

define internal i32 @rg_shfl_up(i32 %b, i32 %c) #1 {
  %lane = call i32 @rg_lane()
  %max = call i32 @rg_shfl_max(i32 %c)
  %b5 = and i32 %b, 31
  %j = sub i32 %lane, %b5
  %p = icmp sge i32 %j, %max
  %r = select i1 %p, i32 %j, i32 -1
  ret i32 %r
}

define internal i32 @rg_shfl_down(i32 %b, i32 %c) #1 {
  %lane = call i32 @rg_lane()
  %max = call i32 @rg_shfl_max(i32 %c)
  %b5 = and i32 %b, 31
  %j = add i32 %lane, %b5
  %p = icmp sle i32 %j, %max
  %r = select i1 %p, i32 %j, i32 -1
  ret i32 %r
}

define internal i32 @rg_shfl_bfly(i32 %b, i32 %c) #1 {
  %lane = call i32 @rg_lane()
  %max = call i32 @rg_shfl_max(i32 %c)
  %b5 = and i32 %b, 31
  %j = xor i32 %lane, %b5
  %p = icmp sle i32 %j, %max
  %r = select i1 %p, i32 %j, i32 -1
  ret i32 %r
}

define internal i32 @rg_shfl_idx(i32 %b, i32 %c) #1 {
  %lane = call i32 @rg_lane()
  %max = call i32 @rg_shfl_max(i32 %c)
  %s0 = lshr i32 %c, 8
  %seg = and i32 %s0, 31
  %ns = xor i32 %seg, -1
  %min = and i32 %lane, %seg
  %b5 = and i32 %b, 31
  %b6 = and i32 %b5, %ns
  %j = or i32 %min, %b6
  %p = icmp sle i32 %j, %max
  %r = select i1 %p, i32 %j, i32 -1
  ret i32 %r
}

; match.any: peel the distinct values of the wave; each lane keeps the half that is its warp's. The mask is taken to
; a vector register inside the loop, because lanes leave it at different turns.
define internal i32 @rg_match_any(i64 %v, i32 %mask) #1 {
entry:
  %vl = trunc i64 %v to i32
  %vs = lshr i64 %v, 32
  %vh = trunc i64 %vs to i32
  br label %loop
loop:
  %fl = call i32 @llvm.amdgcn.readfirstlane(i32 %vl)
  %fh = call i32 @llvm.amdgcn.readfirstlane(i32 %vh)
  %el = icmp eq i32 %vl, %fl
  %eh = icmp eq i32 %vh, %fh
  %eq = and i1 %el, %eh
  %b = call i32 @rg_ballot(i1 %eq)
  %m = and i32 %b, %mask
  br i1 %eq, label %out, label %loop
out:
  ret i32 %m
}

define internal i1 @rg_match_all(i64 %v, i32 %mask) #1 {
  %vl = trunc i64 %v to i32
  %vs = lshr i64 %v, 32
  %vh = trunc i64 %vs to i32
  %lead = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %src = and i32 %lead, 31
  %fl = call i32 @rg_gather(i32 %vl, i32 %src)
  %fh = call i32 @rg_gather(i32 %vh, i32 %src)
  %el = icmp ne i32 %vl, %fl
  %eh = icmp ne i32 %vh, %fh
  %ne = or i1 %el, %eh
  %b = call i32 @rg_ballot(i1 %ne)
  %m = and i32 %b, %mask
  %r = icmp eq i32 %m, 0
  ret i1 %r
}

; Linear thread index in the CUDA block.
define internal i32 @rg_linear_paired(ptr addrspace(4) %hid) #1 {
  %px = getelementptr i8, ptr addrspace(4) %hid, i64 24
  %py = getelementptr i8, ptr addrspace(4) %hid, i64 28
  %nx = load i32, ptr addrspace(4) %px, align 4
  %ny = load i32, ptr addrspace(4) %py, align 4
  %tx = call i32 @llvm.amdgcn.workitem.id.x()
  %ty = call i32 @llvm.amdgcn.workitem.id.y()
  %tz = call i32 @llvm.amdgcn.workitem.id.z()
  %a = mul i32 %tz, %ny
  %b = add i32 %a, %ty
  %c = mul i32 %b, %nx
  %r = add i32 %c, %tx
  ret i32 %r
}

define internal i32 @rg_linear_solo() #1 {
  %f = call i32 @llvm.amdgcn.workitem.id.x()
  %w = lshr i32 %f, 6
  %b = shl i32 %w, 5
  %l = and i32 %f, 31
  %r = or i32 %b, %l
  ret i32 %r
}

; The lane is one that CUDA knows of: a lower half, and not past the end of the block.
define internal i1 @rg_present_solo(ptr addrspace(4) %hid) #1 {
  %px = getelementptr i8, ptr addrspace(4) %hid, i64 24
  %py = getelementptr i8, ptr addrspace(4) %hid, i64 28
  %pz = getelementptr i8, ptr addrspace(4) %hid, i64 32
  %nx = load i32, ptr addrspace(4) %px, align 4
  %ny = load i32, ptr addrspace(4) %py, align 4
  %nz = load i32, ptr addrspace(4) %pz, align 4
  %n0 = mul i32 %nx, %ny
  %n = mul i32 %n0, %nz
  %f = call i32 @llvm.amdgcn.workitem.id.x()
  %up = and i32 %f, 32
  %low = icmp eq i32 %up, 0
  %lin = call i32 @rg_linear_solo()
  %in = icmp ult i32 %lin, %n
  %r = and i1 %low, %in
  ret i1 %r
}

define internal i32 @rg_tid_solo(ptr addrspace(4) %hid, i32 %dim) #1 {
entry:
  %px = getelementptr i8, ptr addrspace(4) %hid, i64 24
  %py = getelementptr i8, ptr addrspace(4) %hid, i64 28
  %nx = load i32, ptr addrspace(4) %px, align 4
  %ny = load i32, ptr addrspace(4) %py, align 4
  %lin = call i32 @rg_linear_solo()
  %row = udiv i32 %lin, %nx
  %r0 = mul i32 %row, %nx
  %x = sub i32 %lin, %r0
  %z = udiv i32 %row, %ny
  %r1 = mul i32 %z, %ny
  %y = sub i32 %row, %r1
  %isx = icmp eq i32 %dim, 0
  %isy = icmp eq i32 %dim, 1
  %yz = select i1 %isy, i32 %y, i32 %z
  %r = select i1 %isx, i32 %x, i32 %yz
  ret i32 %r
}

define internal i32 @rg_warpid_paired(ptr addrspace(4) %hid) #1 {
  %lin = call i32 @rg_linear_paired(ptr addrspace(4) %hid)
  %w = lshr i32 %lin, 5
  %wu = call i32 @llvm.amdgcn.readfirstlane(i32 %w)
  %l = call i32 @rg_lane64()
  %h = lshr i32 %l, 5
  %even = and i32 %wu, -2
  %r = or i32 %even, %h
  ret i32 %r
}

define internal i32 @rg_warpid_solo() #1 {
  %f = call i32 @llvm.amdgcn.workitem.id.x()
  %w = lshr i32 %f, 6
  %r = call i32 @llvm.amdgcn.readfirstlane(i32 %w)
  ret i32 %r
}

define internal void @rg_barrier() #1 {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}

; A barrier of %warps warps in LDS: {arrived, generation}. Solo layout only: each warp is a wave of its own and may spin.
; Returns the generation to wait for the end of.
define internal i32 @rg_named_arrive(ptr addrspace(3) %cell, i32 %warps) #1 {
entry:
  fence syncscope("workgroup") release
  %gp = getelementptr i32, ptr addrspace(3) %cell, i32 1
  %gen0 = load atomic i32, ptr addrspace(3) %gp syncscope("workgroup") monotonic, align 4
  %act = call i32 @rg_ballot(i1 true)
  %first = call i32 @llvm.cttz.i32(i32 %act, i1 false)
  %me = call i32 @rg_lane()
  %lead = icmp eq i32 %first, %me
  br i1 %lead, label %arrive, label %out
arrive:
  %old = atomicrmw add ptr addrspace(3) %cell, i32 1 syncscope("workgroup") acq_rel
  %n1 = add i32 %old, 1
  %last = icmp eq i32 %n1, %warps
  br i1 %last, label %release, label %out
release:
  store atomic i32 0, ptr addrspace(3) %cell syncscope("workgroup") monotonic, align 4
  %ng = add i32 %gen0, 1
  store atomic i32 %ng, ptr addrspace(3) %gp syncscope("workgroup") release, align 4
  br label %out
out:
  ret i32 %gen0
}

define internal void @rg_named_wait(ptr addrspace(3) %cell, i32 %gen) #1 {
entry:
  %gp = getelementptr i32, ptr addrspace(3) %cell, i32 1
  br label %spin
spin:
  %g = load atomic i32, ptr addrspace(3) %gp syncscope("workgroup") acquire, align 4
  %same = icmp eq i32 %g, %gen
  br i1 %same, label %wait, label %out
wait:
  call void @llvm.amdgcn.s.sleep(i32 1)
  br label %spin
out:
  fence syncscope("workgroup") acquire
  ret void
}

; nanosleep: at least %ns nanoseconds, capped as in the PTX ISA at 1 ms. The constant clock runs at 100 MHz.
define internal void @rg_nanosleep(i32 %ns) #1 {
entry:
  %over = icmp ugt i32 %ns, 1000000
  %capped = select i1 %over, i32 1000000, i32 %ns
  %t0 = udiv i32 %capped, 10
  %ticks = zext i32 %t0 to i64
  %start = call i64 @llvm.amdgcn.s.memrealtime()
  br label %loop
loop:
  call void @llvm.amdgcn.s.sleep(i32 1)
  %now = call i64 @llvm.amdgcn.s.memrealtime()
  %gone = sub i64 %now, %start
  %more = icmp ult i64 %gone, %ticks
  br i1 %more, label %loop, label %out
out:
  ret void
}
