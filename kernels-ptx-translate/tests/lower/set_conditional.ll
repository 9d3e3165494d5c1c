target triple = "amdgcn-amd-amdhsa"
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([88 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i64, align 8, addrspace(5)
  %r1 = alloca i32, align 4, addrspace(5)
  %s1 = alloca [8 x i8], align 8, addrspace(5)
  %s2 = alloca [4 x i8], align 4, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 16
  %data = load i64, ptr addrspace(4) %hid, align 8
  br label %b0
b0:
  %v3 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v4 = load i64, ptr addrspace(4) %v3, align 8
  store i64 %v4, ptr addrspace(5) %r0, align 8
  %v5 = getelementptr i8, ptr addrspace(4) %p, i64 8
  %v6 = load i32, ptr addrspace(4) %v5, align 4
  store i32 %v6, ptr addrspace(5) %r1, align 4
  store i64 %v4, ptr addrspace(5) %s1, align 8
  store i32 %v6, ptr addrspace(5) %s2, align 4
  %v7 = load i64, ptr addrspace(5) %s1, align 8
  %v8 = load i32, ptr addrspace(5) %s2, align 4
  %v9 = inttoptr i64 %v7 to ptr addrspace(1)
  store atomic i32 %v8, ptr addrspace(1) %v9 monotonic, align 4
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
