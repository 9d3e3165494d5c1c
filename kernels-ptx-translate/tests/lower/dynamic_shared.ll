target triple = "amdgcn-amd-amdhsa"
@rg_shared = internal addrspace(3) global [32 x i8] undef, align 16
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([72 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i32, align 4, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 0
  %data = load i64, ptr addrspace(4) %hid, align 8
  call void asm sideeffect "; static LDS at $0", "v"(i32 ptrtoint (ptr addrspace(3) @rg_shared to i32))
  br label %b0
b0:
  %v1 = load i32, ptr addrspace(3) inttoptr (i32 32 to ptr addrspace(3)), align 4
  store i32 %v1, ptr addrspace(5) %r0, align 4
  store i32 %v1, ptr addrspace(3) @rg_shared, align 4
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
