target triple = "amdgcn-amd-amdhsa"
@rg_shared = internal addrspace(3) global [32 x i8] undef, align 16
define internal i64 @rg_mbarrier_arrive_p3(ptr addrspace(3) %p, i64 %take) #1 {
entry:
  %first = load atomic i64, ptr addrspace(3) %p syncscope("workgroup") monotonic, align 8
  br label %loop
loop:
  %old = phi i64 [ %first, %entry ], [ %found, %loop ]
  %less = sub i64 %old, %take
  %pend = and i64 %less, 4294901760
  %over = icmp eq i64 %pend, 0
  %exp = lshr i64 %less, 16
  %refill = and i64 %exp, 4294901760
  %n0 = add i64 %less, 281474976710656
  %n1 = or i64 %n0, %refill
  %new = select i1 %over, i64 %n1, i64 %less
  %x = cmpxchg ptr addrspace(3) %p, i64 %old, i64 %new syncscope("workgroup") acq_rel monotonic
  %found = extractvalue { i64, i1 } %x, 0
  %ok = extractvalue { i64, i1 } %x, 1
  br i1 %ok, label %out, label %loop
out:
  ret i64 %old
}
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([80 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i64, align 8, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 8
  %data = load i64, ptr addrspace(4) %hid, align 8
  br label %b0
b0:
  %v1 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v2 = load i64, ptr addrspace(4) %v1, align 8
  store i64 %v2, ptr addrspace(5) %r0, align 8
  %v3 = getelementptr i8, ptr addrspace(3) @rg_shared, i32 16
  %v4 = inttoptr i64 %v2 to ptr addrspace(1)
  %v5 = load <4 x i32>, ptr addrspace(1) %v4, align 16
  store <4 x i32> %v5, ptr addrspace(3) %v3, align 16
  fence syncscope("workgroup") release
  %v6 = call i64 @rg_mbarrier_arrive_p3(ptr addrspace(3) @rg_shared, i64 65536) #3
  br label %leave
leave:
  ret void
}
attributes #0 = { nounwind convergent "uniform-work-group-size"="true" "amdgpu-flat-work-group-size"="1,1024" "denormal-fp-math"="ieee,ieee" "denormal-fp-math-f32"="ieee,ieee" "amdgpu-ieee"="false" "amdgpu-dx10-clamp"="true" "amdgpu-unsafe-fp-atomics"="true" }
attributes #1 = { alwaysinline nounwind convergent "denormal-fp-math"="ieee,ieee" "denormal-fp-math-f32"="ieee,ieee" "amdgpu-ieee"="false" "amdgpu-dx10-clamp"="true" "amdgpu-unsafe-fp-atomics"="true" }
attributes #2 = { noinline nounwind convergent "uniform-work-group-size"="true" "amdgpu-flat-work-group-size"="1,1024" "denormal-fp-math"="ieee,ieee" "denormal-fp-math-f32"="ieee,ieee" "amdgpu-ieee"="false" "amdgpu-dx10-clamp"="true" "amdgpu-unsafe-fp-atomics"="true" }
attributes #3 = { convergent nomerge nounwind }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdgpu_code_object_version", i32 400}
!1 = !{}
