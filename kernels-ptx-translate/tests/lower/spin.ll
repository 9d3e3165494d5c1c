target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
define internal i32 @rg_linear_solo() #1 {
  %f = call i32 @llvm.amdgcn.workitem.id.x()
  %w = lshr i32 %f, 6
  %b = shl i32 %w, 5
  %l = and i32 %f, 31
  %r = or i32 %b, %l
  ret i32 %r
}
define internal i1 @rg_opaque(i1 %p) #1 {
  %z = zext i1 %p to i32
  %o = call i32 asm sideeffect "", "=v,0"(i32 %z) #3
  %r = icmp ne i32 %o, 0
  ret i1 %r
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
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([80 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i64, align 8, addrspace(5)
  %r1 = alloca i32, align 4, addrspace(5)
  %r2 = alloca i1, align 1, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 8
  %data = load i64, ptr addrspace(4) %hid, align 8
  %v1 = call i1 @rg_present_solo(ptr addrspace(4) %hid) #3
  br i1 %v1, label %t2, label %leave
t2:
  br label %b0
b0:
  %v3 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v4 = load i64, ptr addrspace(4) %v3, align 8
  store i64 %v4, ptr addrspace(5) %r0, align 8
  br label %b1
b1:
  %v5 = load i64, ptr addrspace(5) %r0, align 8
  %v6 = inttoptr i64 %v5 to ptr addrspace(1)
  %v7 = load atomic volatile i32, ptr addrspace(1) %v6 monotonic, align 4
  store i32 %v7, ptr addrspace(5) %r1, align 4
  %v8 = icmp eq i32 %v7, 0
  store i1 %v8, ptr addrspace(5) %r2, align 1
  %v9 = call i1 @rg_opaque(i1 %v8) #3
  br i1 %v9, label %b1, label %b2
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
