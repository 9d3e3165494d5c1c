target triple = "amdgcn-amd-amdhsa"
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([80 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i64, align 8, addrspace(5)
  %r1 = alloca i64, align 8, addrspace(5)
  %r2 = alloca i64, align 8, addrspace(5)
  %r3 = alloca i64, align 8, addrspace(5)
  %r4 = alloca i1, align 1, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 8
  %data = load i64, ptr addrspace(4) %hid, align 8
  br label %b0
b0:
  %v1 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v2 = load i64, ptr addrspace(4) %v1, align 8
  store i64 %v2, ptr addrspace(5) %r0, align 8
  %v3 = inttoptr i64 %v2 to ptr addrspace(1)
  %v4 = load i64, ptr addrspace(1) %v3, align 8
  store i64 %v4, ptr addrspace(5) %r1, align 8
  br label %b1
b1:
  %v5 = load i64, ptr addrspace(5) %r1, align 8
  %v6 = add i64 %v5, 3
  store i64 %v6, ptr addrspace(5) %r2, align 8
  %v7 = load i64, ptr addrspace(5) %r0, align 8
  %v8 = inttoptr i64 %v7 to ptr addrspace(1)
  %v9 = cmpxchg ptr addrspace(1) %v8, i64 %v5, i64 %v6 syncscope("agent") monotonic monotonic
  %v10 = extractvalue { i64, i1 } %v9, 0
  store i64 %v10, ptr addrspace(5) %r3, align 8
  %v11 = icmp ne i64 %v10, %v5
  store i1 %v11, ptr addrspace(5) %r4, align 1
  store i64 %v10, ptr addrspace(5) %r1, align 8
  br i1 %v11, label %b1, label %b2
b2:
  br label %leave
leave:
  ret void
}
attributes #0 = { nounwind convergent "uniform-work-group-size"="true" "amdgpu-flat-work-group-size"="1,256" "denormal-fp-math"="ieee,ieee" "denormal-fp-math-f32"="ieee,ieee" "amdgpu-ieee"="false" "amdgpu-dx10-clamp"="true" "amdgpu-unsafe-fp-atomics"="true" }
attributes #1 = { alwaysinline nounwind convergent "denormal-fp-math"="ieee,ieee" "denormal-fp-math-f32"="ieee,ieee" "amdgpu-ieee"="false" "amdgpu-dx10-clamp"="true" "amdgpu-unsafe-fp-atomics"="true" }
attributes #2 = { noinline nounwind convergent "uniform-work-group-size"="true" "amdgpu-flat-work-group-size"="1,256" "denormal-fp-math"="ieee,ieee" "denormal-fp-math-f32"="ieee,ieee" "amdgpu-ieee"="false" "amdgpu-dx10-clamp"="true" "amdgpu-unsafe-fp-atomics"="true" }
attributes #3 = { convergent nomerge nounwind }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdgpu_code_object_version", i32 400}
!1 = !{}
