target triple = "amdgcn-amd-amdhsa"
@rg_shared = internal addrspace(3) global [1024 x i8] undef, align 16
declare void @llvm.amdgcn.s.barrier()
declare i32 @llvm.amdgcn.workitem.id.x()
define internal void @rg_barrier() #1 {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([88 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i64, align 8, addrspace(5)
  %r1 = alloca i32, align 4, addrspace(5)
  %r2 = alloca i32, align 4, addrspace(5)
  %r3 = alloca i32, align 4, addrspace(5)
  %r4 = alloca i32, align 4, addrspace(5)
  %r5 = alloca i1, align 1, addrspace(5)
  %r6 = alloca i32, align 4, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 16
  %data = load i64, ptr addrspace(4) %hid, align 8
  br label %b0
b0:
  %v1 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v2 = load i64, ptr addrspace(4) %v1, align 8
  store i64 %v2, ptr addrspace(5) %r0, align 8
  %v3 = getelementptr i8, ptr addrspace(4) %p, i64 8
  %v4 = load i32, ptr addrspace(4) %v3, align 4
  store i32 %v4, ptr addrspace(5) %r1, align 4
  %v5 = call i32 @llvm.amdgcn.workitem.id.x()
  store i32 %v5, ptr addrspace(5) %r2, align 4
  %v6 = icmp ugt i32 2, 31
  %v7 = select i1 %v6, i32 0, i32 2
  %v8 = shl i32 %v5, %v7
  %v9 = select i1 %v6, i32 0, i32 %v8
  store i32 %v9, ptr addrspace(5) %r3, align 4
  %v10 = ptrtoint ptr addrspace(3) @rg_shared to i32
  %v11 = zext i32 %v10 to i64
  %v12 = trunc i64 %v11 to i32
  store i32 %v12, ptr addrspace(5) %r4, align 4
  %v13 = add i32 %v9, %v12
  store i32 %v13, ptr addrspace(5) %r3, align 4
  br label %b1
b1:
  %v14 = load i32, ptr addrspace(5) %r3, align 4
  %v15 = zext i32 %v14 to i64
  %v16 = trunc i64 %v15 to i32
  %v17 = inttoptr i32 %v16 to ptr addrspace(3)
  %v18 = load i32, ptr addrspace(5) %r2, align 4
  store i32 %v18, ptr addrspace(3) %v17, align 4
  call void @rg_barrier() #3
  %v19 = load i32, ptr addrspace(5) %r1, align 4
  %v20 = sub i32 %v19, 1
  store i32 %v20, ptr addrspace(5) %r1, align 4
  %v21 = icmp ne i32 %v20, 0
  store i1 %v21, ptr addrspace(5) %r5, align 1
  br i1 %v21, label %b1, label %b2
b2:
  %v22 = load i32, ptr addrspace(5) %r3, align 4
  %v23 = zext i32 %v22 to i64
  %v24 = trunc i64 %v23 to i32
  %v25 = inttoptr i32 %v24 to ptr addrspace(3)
  %v26 = load i32, ptr addrspace(3) %v25, align 4
  store i32 %v26, ptr addrspace(5) %r6, align 4
  %v27 = load i64, ptr addrspace(5) %r0, align 8
  %v28 = inttoptr i64 %v27 to ptr addrspace(1)
  store i32 %v26, ptr addrspace(1) %v28, align 4
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
