target triple = "amdgcn-amd-amdhsa"
declare void @llvm.amdgcn.s.barrier()
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.trap()
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
  %r2 = alloca i1, align 1, addrspace(5)
  %r3 = alloca i64, align 8, addrspace(5)
  %r4 = alloca i64, align 8, addrspace(5)
  %r5 = alloca i64, align 8, addrspace(5)
  %r6 = alloca i32, align 4, addrspace(5)
  %s1 = alloca [4 x i8], align 4, addrspace(5)
  %s2 = alloca [4 x i8], align 4, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 16
  %data = load i64, ptr addrspace(4) %hid, align 8
  br label %b0
b0:
  %v3 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v4 = load i64, ptr addrspace(4) %v3, align 8
  store i64 %v4, ptr addrspace(5) %r0, align 8
  %v5 = call i32 @llvm.amdgcn.workitem.id.x()
  store i32 %v5, ptr addrspace(5) %r1, align 4
  %v6 = icmp ne i32 %v5, 0
  store i1 %v6, ptr addrspace(5) %r2, align 1
  store i64 16, ptr addrspace(5) %r3, align 8
  store i64 32, ptr addrspace(5) %r4, align 8
  %v7 = select i1 %v6, i64 16, i64 32
  store i64 %v7, ptr addrspace(5) %r5, align 8
  call void @rg_barrier() #3
  store i32 %v5, ptr addrspace(5) %s1, align 4
  switch i64 %v7, label %t9 [ i64 16, label %t10 i64 32, label %t11 ]
t10:
  call void @rg_f0(ptr addrspace(4) %hid, ptr addrspace(5) %s2, ptr addrspace(5) %s1)
  br label %t8
t11:
  call void @rg_f1(ptr addrspace(4) %hid, ptr addrspace(5) %s2, ptr addrspace(5) %s1)
  br label %t8
t9:
  call void @llvm.trap()
  unreachable
t8:
  %v12 = load i32, ptr addrspace(5) %s2, align 4
  store i32 %v12, ptr addrspace(5) %r6, align 4
  call void @rg_barrier() #3
  %v13 = load i64, ptr addrspace(5) %r0, align 8
  %v14 = inttoptr i64 %v13 to ptr addrspace(1)
  store i32 %v12, ptr addrspace(1) %v14, align 4
  br label %leave
leave:
  ret void
}
define internal void @rg_f0(ptr addrspace(4) %hid, ptr addrspace(5) %a0, ptr addrspace(5) %a1) #1 {
entry:
  %r0 = alloca i32, align 4, addrspace(5)
  %data = load i64, ptr addrspace(4) %hid, align 8
  br label %b0
b0:
  %v1 = load i32, ptr addrspace(5) %a1, align 4
  store i32 %v1, ptr addrspace(5) %r0, align 4
  %v2 = add i32 %v1, %v1
  store i32 %v2, ptr addrspace(5) %r0, align 4
  store i32 %v2, ptr addrspace(5) %a0, align 4
  br label %leave
leave:
  ret void
}
define internal void @rg_f1(ptr addrspace(4) %hid, ptr addrspace(5) %a0, ptr addrspace(5) %a1) #1 {
entry:
  %r0 = alloca i32, align 4, addrspace(5)
  %data = load i64, ptr addrspace(4) %hid, align 8
  br label %b0
b0:
  %v1 = load i32, ptr addrspace(5) %a1, align 4
  store i32 %v1, ptr addrspace(5) %r0, align 4
  %v2 = mul i32 %v1, 3
  store i32 %v2, ptr addrspace(5) %r0, align 4
  store i32 %v2, ptr addrspace(5) %a0, align 4
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
