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
define internal i32 @rg_linear_solo() #1 {
  %f = call i32 @llvm.amdgcn.workitem.id.x()
  %w = lshr i32 %f, 6
  %b = shl i32 %w, 5
  %l = and i32 %f, 31
  %r = or i32 %b, %l
  ret i32 %r
}
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
  %v3 = call i1 @rg_present_solo(ptr addrspace(4) %hid) #3
  br i1 %v3, label %t4, label %leave
t4:
  br label %b0
b0:
  %v5 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v6 = load i64, ptr addrspace(4) %v5, align 8
  store i64 %v6, ptr addrspace(5) %r0, align 8
  %v7 = call i32 @rg_tid_solo(ptr addrspace(4) %hid, i32 0) #3
  store i32 %v7, ptr addrspace(5) %r1, align 4
  %v8 = icmp ne i32 %v7, 0
  store i1 %v8, ptr addrspace(5) %r2, align 1
  store i64 16, ptr addrspace(5) %r3, align 8
  store i64 32, ptr addrspace(5) %r4, align 8
  %v9 = select i1 %v8, i64 16, i64 32
  store i64 %v9, ptr addrspace(5) %r5, align 8
  call void @rg_barrier() #3
  store i32 %v7, ptr addrspace(5) %s1, align 4
  switch i64 %v9, label %t11 [ i64 16, label %t12 i64 32, label %t13 ]
t12:
  call void @rg_f0(ptr addrspace(4) %hid, ptr addrspace(5) %s2, ptr addrspace(5) %s1)
  br label %t10
t13:
  call void @rg_f1(ptr addrspace(4) %hid, ptr addrspace(5) %s2, ptr addrspace(5) %s1)
  br label %t10
t11:
  call void @llvm.trap()
  unreachable
t10:
  %v14 = load i32, ptr addrspace(5) %s2, align 4
  store i32 %v14, ptr addrspace(5) %r6, align 4
  call void @rg_barrier() #3
  %v15 = load i64, ptr addrspace(5) %r0, align 8
  %v16 = inttoptr i64 %v15 to ptr addrspace(1)
  store i32 %v14, ptr addrspace(1) %v16, align 4
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
  call void @rg_barrier() #3
  store i32 %v2, ptr addrspace(5) %a0, align 4
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
