target triple = "amdgcn-amd-amdhsa"
declare float @llvm.fma.f32(float, float, float)
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([88 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i64, align 8, addrspace(5)
  %r1 = alloca i32, align 4, addrspace(5)
  %r2 = alloca i32, align 4, addrspace(5)
  %r3 = alloca i32, align 4, addrspace(5)
  %r4 = alloca i32, align 4, addrspace(5)
  %r5 = alloca i32, align 4, addrspace(5)
  %r6 = alloca i32, align 4, addrspace(5)
  %r7 = alloca i32, align 4, addrspace(5)
  %r8 = alloca i32, align 4, addrspace(5)
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
  %v5 = getelementptr i8, ptr addrspace(4) %p, i64 12
  %v6 = load i32, ptr addrspace(4) %v5, align 4
  store i32 %v6, ptr addrspace(5) %r2, align 4
  %v7 = bitcast i32 %v4 to float
  %v8 = bitcast i32 %v6 to float
  %v9 = fmul float %v7, %v8
  %v10 = bitcast float %v9 to i32
  store i32 %v10, ptr addrspace(5) %r3, align 4
  %v11 = bitcast i32 %v4 to float
  %v12 = bitcast i32 %v6 to float
  %v13 = bitcast i32 %v6 to float
  %v14 = call float @llvm.fma.f32(float %v11, float %v12, float %v13)
  %v15 = bitcast float %v14 to i32
  store i32 %v15, ptr addrspace(5) %r4, align 4
  %v16 = bitcast i32 %v4 to float
  %v17 = bitcast i32 %v15 to float
  %v18 = fmul float %v16, %v17
  %v19 = bitcast float %v18 to i32
  store i32 %v19, ptr addrspace(5) %r5, align 4
  %v20 = bitcast i32 %v4 to float
  %v21 = bitcast i32 %v15 to float
  %v22 = bitcast i32 %v6 to float
  %v23 = fneg float %v20
  %v24 = call float @llvm.fma.f32(float %v23, float %v21, float %v22)
  %v25 = bitcast float %v24 to i32
  store i32 %v25, ptr addrspace(5) %r6, align 4
  %v26 = bitcast i32 %v25 to float
  %v27 = bitcast i32 %v6 to float
  %v28 = fmul float %v26, %v27
  %v29 = bitcast float %v28 to i32
  store i32 %v29, ptr addrspace(5) %r7, align 4
  %v30 = bitcast i32 %v29 to float
  %v31 = bitcast i32 %v4 to float
  %v32 = fadd float %v30, %v31
  %v33 = bitcast float %v32 to i32
  store i32 %v33, ptr addrspace(5) %r8, align 4
  %v34 = inttoptr i64 %v2 to ptr addrspace(1)
  %v35 = bitcast i32 %v33 to float
  %v36 = fcmp uno float %v35, %v35
  %v37 = select i1 %v36, i32 2147483647, i32 %v33
  store i32 %v37, ptr addrspace(1) %v34, align 4
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
