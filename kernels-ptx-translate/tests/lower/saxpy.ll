target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
declare float @llvm.fma.f32(float, float, float)
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([96 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i32, align 4, addrspace(5)
  %r1 = alloca i32, align 4, addrspace(5)
  %r2 = alloca i64, align 8, addrspace(5)
  %r3 = alloca i64, align 8, addrspace(5)
  %r4 = alloca i32, align 4, addrspace(5)
  %r5 = alloca i32, align 4, addrspace(5)
  %r6 = alloca i32, align 4, addrspace(5)
  %r7 = alloca i32, align 4, addrspace(5)
  %r8 = alloca i1, align 1, addrspace(5)
  %r9 = alloca i64, align 8, addrspace(5)
  %r10 = alloca i64, align 8, addrspace(5)
  %r11 = alloca i64, align 8, addrspace(5)
  %r12 = alloca i64, align 8, addrspace(5)
  %r13 = alloca i32, align 4, addrspace(5)
  %r14 = alloca i64, align 8, addrspace(5)
  %r15 = alloca i32, align 4, addrspace(5)
  %r16 = alloca i32, align 4, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 24
  %data = load i64, ptr addrspace(4) %hid, align 8
  br label %b0
b0:
  %v1 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v2 = load i32, ptr addrspace(4) %v1, align 4
  store i32 %v2, ptr addrspace(5) %r0, align 4
  %v3 = getelementptr i8, ptr addrspace(4) %p, i64 4
  %v4 = load i32, ptr addrspace(4) %v3, align 4
  store i32 %v4, ptr addrspace(5) %r1, align 4
  %v5 = getelementptr i8, ptr addrspace(4) %p, i64 8
  %v6 = load i64, ptr addrspace(4) %v5, align 8
  store i64 %v6, ptr addrspace(5) %r2, align 8
  %v7 = getelementptr i8, ptr addrspace(4) %p, i64 16
  %v8 = load i64, ptr addrspace(4) %v7, align 8
  store i64 %v8, ptr addrspace(5) %r3, align 8
  %v9 = call i32 @llvm.amdgcn.workgroup.id.x()
  store i32 %v9, ptr addrspace(5) %r4, align 4
  %v10 = getelementptr i8, ptr addrspace(4) %hid, i64 24
  %v11 = load i32, ptr addrspace(4) %v10, align 4
  store i32 %v11, ptr addrspace(5) %r5, align 4
  %v12 = call i32 @llvm.amdgcn.workitem.id.x()
  store i32 %v12, ptr addrspace(5) %r6, align 4
  %v13 = mul i32 %v9, %v11
  %v14 = add i32 %v13, %v12
  store i32 %v14, ptr addrspace(5) %r7, align 4
  %v15 = icmp sge i32 %v14, %v2
  store i1 %v15, ptr addrspace(5) %r8, align 1
  br i1 %v15, label %b2, label %b1
b1:
  %v16 = load i64, ptr addrspace(5) %r3, align 8
  store i64 %v16, ptr addrspace(5) %r9, align 8
  %v17 = load i64, ptr addrspace(5) %r2, align 8
  store i64 %v17, ptr addrspace(5) %r10, align 8
  %v18 = load i32, ptr addrspace(5) %r7, align 4
  %v19 = sext i32 %v18 to i64
  %v20 = sext i32 4 to i64
  %v21 = mul i64 %v19, %v20
  store i64 %v21, ptr addrspace(5) %r11, align 8
  %v22 = add i64 %v17, %v21
  store i64 %v22, ptr addrspace(5) %r12, align 8
  %v23 = inttoptr i64 %v22 to ptr addrspace(1)
  %v24 = load i32, ptr addrspace(1) %v23, align 4
  store i32 %v24, ptr addrspace(5) %r13, align 4
  %v25 = add i64 %v16, %v21
  store i64 %v25, ptr addrspace(5) %r14, align 8
  %v26 = inttoptr i64 %v25 to ptr addrspace(1)
  %v27 = load i32, ptr addrspace(1) %v26, align 4
  store i32 %v27, ptr addrspace(5) %r15, align 4
  %v28 = bitcast i32 %v24 to float
  %v29 = load i32, ptr addrspace(5) %r1, align 4
  %v30 = bitcast i32 %v29 to float
  %v31 = bitcast i32 %v27 to float
  %v32 = call float @llvm.fma.f32(float %v28, float %v30, float %v31)
  %v33 = bitcast float %v32 to i32
  store i32 %v33, ptr addrspace(5) %r16, align 4
  %v34 = inttoptr i64 %v25 to ptr addrspace(1)
  %v35 = bitcast i32 %v33 to float
  %v36 = fcmp uno float %v35, %v35
  %v37 = select i1 %v36, i32 2147483647, i32 %v33
  store i32 %v37, ptr addrspace(1) %v34, align 4
  br label %b2
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
