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
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([72 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i64, align 8, addrspace(5)
  %r1 = alloca i32, align 4, addrspace(5)
  %r2 = alloca i32, align 4, addrspace(5)
  %r3 = alloca i32, align 4, addrspace(5)
  %r4 = alloca i1, align 1, addrspace(5)
  %r5 = alloca i1, align 1, addrspace(5)
  %r6 = alloca i32, align 4, addrspace(5)
  %r7 = alloca i32, align 4, addrspace(5)
  %r8 = alloca i32, align 4, addrspace(5)
  %r9 = alloca i1, align 1, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 0
  %data = load i64, ptr addrspace(4) %hid, align 8
  %v1 = call i1 @rg_present_solo(ptr addrspace(4) %hid) #3
  br i1 %v1, label %t2, label %leave
t2:
  br label %b0
b0:
  %v3 = add i64 %data, 0
  store i64 %v3, ptr addrspace(5) %r0, align 8
  br label %b1
b1:
  store i32 1, ptr addrspace(5) %r1, align 4
  store i32 0, ptr addrspace(5) %r2, align 4
  %v4 = load i64, ptr addrspace(5) %r0, align 8
  %v5 = inttoptr i64 %v4 to ptr addrspace(1)
  %v6 = cmpxchg ptr addrspace(1) %v5, i32 0, i32 1 syncscope("agent") monotonic monotonic
  %v7 = extractvalue { i32, i1 } %v6, 0
  store i32 %v7, ptr addrspace(5) %r3, align 4
  %v8 = icmp eq i32 %v7, 0
  store i1 %v8, ptr addrspace(5) %r4, align 1
  %v9 = icmp ne i32 %v7, 0
  store i1 %v9, ptr addrspace(5) %r5, align 1
  br i1 %v9, label %b3, label %b2
b2:
  %v10 = add i64 %data, 4
  %v11 = inttoptr i64 %v10 to ptr addrspace(1)
  %v12 = load atomic volatile i32, ptr addrspace(1) %v11 monotonic, align 4
  store i32 %v12, ptr addrspace(5) %r6, align 4
  %v13 = add i32 %v12, 1
  store i32 %v13, ptr addrspace(5) %r7, align 4
  %v14 = add i64 %data, 4
  %v15 = inttoptr i64 %v14 to ptr addrspace(1)
  store atomic volatile i32 %v13, ptr addrspace(1) %v15 monotonic, align 4
  fence syncscope("agent") seq_cst
  %v16 = load i64, ptr addrspace(5) %r0, align 8
  %v17 = inttoptr i64 %v16 to ptr addrspace(1)
  %v18 = atomicrmw xchg ptr addrspace(1) %v17, i32 0 syncscope("agent") monotonic, align 4
  store i32 %v18, ptr addrspace(5) %r8, align 4
  br label %b3
b3:
  %v19 = load i1, ptr addrspace(5) %r4, align 1
  %v20 = xor i1 %v19, -1
  store i1 %v20, ptr addrspace(5) %r9, align 1
  %v21 = call i1 @rg_opaque(i1 %v20) #3
  br i1 %v21, label %b1, label %b4
b4:
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
