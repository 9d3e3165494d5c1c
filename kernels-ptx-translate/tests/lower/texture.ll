target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare float @llvm.fabs.f32(float)
declare float @llvm.floor.f32(float)
declare double @llvm.floor.f64(double)
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare i32 @llvm.fptoui.sat.i32.f32(float)
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.minnum.f32(float, float)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
declare void @llvm.trap()
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @llvm.umin.i32(i32, i32)
define internal i64 @rg_surf_address(i64 %object, i32 %dimensions, i32 %x, i32 %y, i32 %z, i32 %layer, i32 %bytes, i32 %mode) #2 {
entry:
  %mask = sub i32 %bytes, 1
  %odd = and i32 %x, %mask
  %misaligned = icmp ne i32 %odd, 0
  br i1 %misaligned, label %stop, label %place
stop:
  call void @llvm.trap()
  br label %place
place:
  %format = call i32 @rg_tex_word(i64 %object, i32 0)
  %element = call i32 @rg_tex_element_size(i32 %format)
  %e = call <4 x i32> @rg_tex_extents(i64 %object, i32 0)
  %width = extractelement <4 x i32> %e, i32 0
  %height = extractelement <4 x i32> %e, i32 1
  %depth = extractelement <4 x i32> %e, i32 2
  %layers = extractelement <4 x i32> %e, i32 3
  %row = shl i32 %width, %element
  %back = sub i32 0, %bytes
  %fitting = and i32 %row, %back
  %lastx = sub i32 %fitting, %bytes
  %lasty = sub i32 %height, 1
  %layered = icmp ugt i32 %dimensions, 3
  %slice = select i1 %layered, i32 %layer, i32 %z
  %slices = select i1 %layered, i32 %layers, i32 %depth
  %lastz = sub i32 %slices, 1
  %outx = icmp uge i32 %x, %fitting
  %outy = icmp uge i32 %y, %height
  %outz = icmp uge i32 %slice, %slices
  %outxy = or i1 %outx, %outy
  %out = or i1 %outxy, %outz
  %low = call i32 @llvm.smax.i32(i32 %x, i32 0)
  %cx = call i32 @llvm.smin.i32(i32 %low, i32 %lastx)
  %lowy = call i32 @llvm.smax.i32(i32 %y, i32 0)
  %cy = call i32 @llvm.smin.i32(i32 %lowy, i32 %lasty)
  %lowz = call i32 @llvm.smax.i32(i32 %z, i32 0)
  %czd = call i32 @llvm.smin.i32(i32 %lowz, i32 %lastz)
  %czl = call i32 @llvm.umin.i32(i32 %layer, i32 %lastz)
  %cz = select i1 %layered, i32 %czl, i32 %czd
  %l = call ptr addrspace(1) @rg_tex_level_of(i64 %object, i32 0)
  %x64 = zext i32 %cx to i64
  %p = call ptr addrspace(1) @rg_tex_address(ptr addrspace(1) %l, i64 %x64, i32 %cy, i32 %cz)
  %a = ptrtoint ptr addrspace(1) %p to i64
  %clamps = icmp eq i32 %mode, 1
  %room = icmp ne i32 %fitting, 0
  %near = and i1 %clamps, %room
  %in = xor i1 %out, true
  %good = or i1 %in, %near
  %r = select i1 %good, i64 %a, i64 0
  ret i64 %r
}
define internal void @rg_surf_put(i64 %object, i32 %dimensions, i32 %x, i32 %y, i32 %z, i32 %layer, i32 %mode, <4 x i32> %words) #2 {
entry:
  %format = call i32 @rg_tex_word(i64 %object, i32 0)
  %size = call i32 @rg_tex_element_size(i32 %format)
  %bytes = shl i32 1, %size
  %at = shl i32 %x, %size
  %a = call i64 @rg_surf_address(i64 %object, i32 %dimensions, i32 %at, i32 %y, i32 %z, i32 %layer, i32 %bytes, i32 %mode)
  %nowhere = icmp eq i64 %a, 0
  %quiet = icmp ne i32 %mode, 2
  %skipped = and i1 %nowhere, %quiet
  br i1 %skipped, label %done, label %write
write:
  %w0 = extractelement <4 x i32> %words, i32 0
  call void @rg_surf_put_channel(i64 %a, i32 %format, i32 0, i32 %w0)
  %w1 = extractelement <4 x i32> %words, i32 1
  call void @rg_surf_put_channel(i64 %a, i32 %format, i32 1, i32 %w1)
  %w2 = extractelement <4 x i32> %words, i32 2
  call void @rg_surf_put_channel(i64 %a, i32 %format, i32 2, i32 %w2)
  %w3 = extractelement <4 x i32> %words, i32 3
  call void @rg_surf_put_channel(i64 %a, i32 %format, i32 3, i32 %w3)
  br label %done
done:
  ret void
}
define internal void @rg_surf_put_channel(i64 %element, i32 %format, i32 %channel, i32 %word) #1 {
entry:
  %size = and i32 %format, 3
  %high = lshr i32 %format, 2
  %log = and i32 %high, 3
  %count = shl i32 1, %log
  %has = icmp ult i32 %channel, %count
  br i1 %has, label %convert, label %done
convert:
  %offset = shl i32 %channel, %size
  %offset64 = zext i32 %offset to i64
  %at = add i64 %element, %offset64
  %p = inttoptr i64 %at to ptr addrspace(1)
  %kind = lshr i32 %format, 4
  %meaning = and i32 %kind, 3
  %signed = icmp eq i32 %meaning, 1
  %bits = shl i32 8, %size
  %sign = zext i1 %signed to i32
  %digits = sub i32 %bits, %sign
  %narrow = and i32 %digits, 31
  %power = shl i32 1, %narrow
  %most = sub i32 %power, 1
  %least = sub i32 0, %power
  %s0 = call i32 @llvm.smin.i32(i32 %word, i32 %most)
  %s1 = call i32 @llvm.smax.i32(i32 %s0, i32 %least)
  %u = call i32 @llvm.umin.i32(i32 %word, i32 %most)
  %v = select i1 %signed, i32 %s1, i32 %u
  switch i32 %size, label %whole [
    i32 0, label %byte
    i32 1, label %short
  ]
whole:
  store i32 %word, ptr addrspace(1) %p, align 4
  br label %done
byte:
  %b = trunc i32 %v to i8
  store i8 %b, ptr addrspace(1) %p, align 1
  br label %done
short:
  %f = bitcast i32 %word to float
  %nan = fcmp uno float %f, 0.0
  %f0 = call float @llvm.minnum.f32(float %f, float 65504.0)
  %f1 = call float @llvm.maxnum.f32(float %f0, float -65504.0)
  %f2 = select i1 %nan, float %f, float %f1
  %h = fptrunc float %f2 to half
  %hb = bitcast half %h to i16
  %hv = trunc i32 %v to i16
  %float = icmp eq i32 %meaning, 2
  %hw = select i1 %float, i16 %hb, i16 %hv
  store i16 %hw, ptr addrspace(1) %p, align 2
  br label %done
done:
  ret void
}
define internal <4 x double> @rg_tex_add(<4 x double> %sum, <4 x i32> %texel, i32 %format, i1 %outside, i64 %object, i32 %weight) #1 {
entry:
  %d0 = call double @rg_tex_term(<4 x i32> %texel, i32 %format, i1 %outside, i64 %object, i32 0)
  %d1 = call double @rg_tex_term(<4 x i32> %texel, i32 %format, i1 %outside, i64 %object, i32 1)
  %d2 = call double @rg_tex_term(<4 x i32> %texel, i32 %format, i1 %outside, i64 %object, i32 2)
  %d3 = call double @rg_tex_term(<4 x i32> %texel, i32 %format, i1 %outside, i64 %object, i32 3)
  %v0 = insertelement <4 x double> undef, double %d0, i32 0
  %v1 = insertelement <4 x double> %v0, double %d1, i32 1
  %v2 = insertelement <4 x double> %v1, double %d2, i32 2
  %v3 = insertelement <4 x double> %v2, double %d3, i32 3
  %w = uitofp i32 %weight to double
  %w0 = insertelement <4 x double> undef, double %w, i32 0
  %w1 = insertelement <4 x double> %w0, double %w, i32 1
  %w2 = insertelement <4 x double> %w1, double %w, i32 2
  %w3 = insertelement <4 x double> %w2, double %w, i32 3
  %p = fmul <4 x double> %v3, %w3
  %s = fadd <4 x double> %sum, %p
  %none = icmp eq i32 %weight, 0
  %r = select i1 %none, <4 x double> %sum, <4 x double> %s
  ret <4 x double> %r
}
define internal ptr addrspace(1) @rg_tex_address(ptr addrspace(1) %level, i64 %x, i32 %y, i32 %z) #1 {
entry:
  %base = load i64, ptr addrspace(1) %level, align 8
  %pp = getelementptr i8, ptr addrspace(1) %level, i32 20
  %pitch = load i32, ptr addrspace(1) %pp, align 4
  %ps = getelementptr i8, ptr addrspace(1) %level, i32 24
  %slice = load i64, ptr addrspace(1) %ps, align 8
  %y64 = zext i32 %y to i64
  %z64 = zext i32 %z to i64
  %pitch64 = zext i32 %pitch to i64
  %rows = mul i64 %y64, %pitch64
  %slices = mul i64 %z64, %slice
  %a0 = add i64 %base, %rows
  %a1 = add i64 %a0, %slices
  %a2 = add i64 %a1, %x
  %p = inttoptr i64 %a2 to ptr addrspace(1)
  ret ptr addrspace(1) %p
}
define internal <4 x i32> @rg_tex_axis(float %u, i32 %extent, i32 %modes, i32 %sampling) #1 {
entry:
  %norm = and i32 %sampling, 128
  %normalized = icmp ne i32 %norm, 0
  %filter = and i32 %sampling, 64
  %linear = icmp ne i32 %filter, 0
  %mode = and i32 %modes, 3
  %odd = and i32 %mode, 1
  %repeats = icmp eq i32 %odd, 0
  %folds = and i1 %repeats, %normalized
  ; Only normalized coordinates wrap or mirror.
  %plain = select i1 %repeats, i32 1, i32 %mode
  %m = select i1 %normalized, i32 %mode, i32 %plain
  %mirrors = icmp eq i32 %mode, 2
  %nan = fcmp uno float %u, 0.0
  %u0 = select i1 %nan, float 0.0, float %u
  %half = select i1 %mirrors, float 0.5, float 1.0
  %double = select i1 %mirrors, float 2.0, float 1.0
  %turns = fmul float %u0, %half
  %whole = call float @llvm.floor.f32(float %turns)
  %away = fmul float %whole, %double
  %rest = fsub float %u0, %away
  %u1 = select i1 %folds, float %rest, float %u0
  %lost = fcmp uno float %u1, 0.0
  %u2 = select i1 %lost, float 0.0, float %u1
  %scaled = fmul float %u2, 2097152.0
  %cut = call float @llvm.floor.f32(float %scaled)
  %q = fmul float %cut, 0x3EA0000000000000
  %u3 = select i1 %normalized, float %q, float %u2
  %wide = fpext float %u3 to double
  %n = uitofp i32 %extent to double
  %times = select i1 %normalized, double %n, double 1.0
  %t = fmul double %wide, %times
  %floor = call double @llvm.floor.f64(double %t)
  %point = call i32 @llvm.fptosi.sat.i32.f64(double %floor)
  %t256 = fmul double %t, 256.0
  %centre = fsub double %t256, 127.5
  %cut256 = call double @llvm.floor.f64(double %centre)
  %fixed = call i32 @llvm.fptosi.sat.i32.f64(double %cut256)
  %before = ashr i32 %fixed, 8
  %fraction = and i32 %fixed, 255
  %i = select i1 %linear, i32 %before, i32 %point
  %next = add i32 %i, 1
  %i0 = call i32 @rg_tex_index(i32 %i, i32 %extent, i32 %m)
  %i1 = call i32 @rg_tex_index(i32 %next, i32 %extent, i32 %m)
  ; A clamped coordinate lies on its element.
  %clamps = icmp eq i32 %m, 1
  %same = icmp eq i32 %i0, %i1
  %clamped = and i1 %clamps, %same
  %nearest = xor i1 %linear, true
  %exact = or i1 %clamped, %nearest
  %f = select i1 %exact, i32 0, i32 %fraction
  %v0 = insertelement <4 x i32> undef, i32 %i0, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %i1, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %f, i32 2
  %v3 = insertelement <4 x i32> %v2, i32 0, i32 3
  ret <4 x i32> %v3
}
define internal <4 x i32> @rg_tex_border(i64 %object, i32 %format) #1 {
entry:
  %c0 = call i32 @rg_tex_border_channel(i64 %object, i32 %format, i32 0)
  %c1 = call i32 @rg_tex_border_channel(i64 %object, i32 %format, i32 1)
  %c2 = call i32 @rg_tex_border_channel(i64 %object, i32 %format, i32 2)
  %c3 = call i32 @rg_tex_border_channel(i64 %object, i32 %format, i32 3)
  %v0 = insertelement <4 x i32> undef, i32 %c0, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %c1, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %c2, i32 2
  %v3 = insertelement <4 x i32> %v2, i32 %c3, i32 3
  ret <4 x i32> %v3
}
define internal i32 @rg_tex_border_channel(i64 %object, i32 %format, i32 %channel) #1 {
entry:
  %offset = shl i32 %channel, 2
  %at = add i32 %offset, 48
  %w = call i32 @rg_tex_word(i64 %object, i32 %at)
  %f = bitcast i32 %w to float
  %s = call i32 @llvm.fptosi.sat.i32.f32(float %f)
  %kind = and i32 %format, 96
  %integer = icmp eq i32 %kind, 0
  %v = select i1 %integer, i32 %s, i32 %w
  %high = lshr i32 %format, 2
  %log = and i32 %high, 3
  %count = shl i32 1, %log
  %has = icmp ult i32 %channel, %count
  %r = select i1 %has, i32 %v, i32 0
  ret i32 %r
}
define internal i32 @rg_tex_channel(ptr addrspace(1) %element, i32 %format, i32 %channel) #1 {
entry:
  %result = alloca i32, align 4, addrspace(5)
  store i32 0, ptr addrspace(5) %result, align 4
  %size = and i32 %format, 3
  %high = lshr i32 %format, 2
  %log = and i32 %high, 3
  %count = shl i32 1, %log
  %has = icmp ult i32 %channel, %count
  br i1 %has, label %load, label %done
load:
  %offset = shl i32 %channel, %size
  %p = getelementptr i8, ptr addrspace(1) %element, i32 %offset
  %kind = lshr i32 %format, 4
  %meaning = and i32 %kind, 3
  %signed = icmp eq i32 %meaning, 1
  switch i32 %size, label %word [
    i32 0, label %byte
    i32 1, label %short
  ]
word:
  %w = load i32, ptr addrspace(1) %p, align 4
  store i32 %w, ptr addrspace(5) %result, align 4
  br label %done
byte:
  %b = load i8, ptr addrspace(1) %p, align 1
  %bu = zext i8 %b to i32
  %bs = sext i8 %b to i32
  %bv = select i1 %signed, i32 %bs, i32 %bu
  br label %integer
short:
  %h = load i16, ptr addrspace(1) %p, align 2
  %hu = zext i16 %h to i32
  %hs = sext i16 %h to i32
  %hv = select i1 %signed, i32 %hs, i32 %hu
  %float = icmp eq i32 %meaning, 2
  br i1 %float, label %half, label %integer
half:
  %hh = bitcast i16 %h to half
  %hf = fpext half %hh to float
  %hw = bitcast float %hf to i32
  ; A NaN stays what it is: an extension would make it quiet.
  %payload = shl i32 %hs, 13
  %marked = or i32 %payload, 2139095040
  %odd = fcmp uno half %hh, 0xH0000
  %hr = select i1 %odd, i32 %marked, i32 %hw
  store i32 %hr, ptr addrspace(5) %result, align 4
  br label %done
integer:
  %v = phi i32 [ %bv, %byte ], [ %hv, %short ]
  store i32 %v, ptr addrspace(5) %result, align 4
  %fraction = and i32 %format, 64
  %whole = icmp eq i32 %fraction, 0
  br i1 %whole, label %done, label %divide
divide:
  %bits = shl i32 8, %size
  %sign = zext i1 %signed to i32
  %digits = sub i32 %bits, %sign
  %power = shl i32 1, %digits
  %most = sub i32 %power, 1
  %n = sitofp i32 %v to float
  %m = sitofp i32 %most to float
  %q = fdiv float %n, %m
  %q1 = call float @llvm.maxnum.f32(float %q, float -1.0)
  %qw = bitcast float %q1 to i32
  store i32 %qw, ptr addrspace(5) %result, align 4
  br label %done
done:
  %r = load i32, ptr addrspace(5) %result, align 4
  ret i32 %r
}
define internal <4 x i32> @rg_tex_decode(ptr addrspace(1) %element, i32 %format) #1 {
entry:
  %c0 = call i32 @rg_tex_channel(ptr addrspace(1) %element, i32 %format, i32 0)
  %c1 = call i32 @rg_tex_channel(ptr addrspace(1) %element, i32 %format, i32 1)
  %c2 = call i32 @rg_tex_channel(ptr addrspace(1) %element, i32 %format, i32 2)
  %c3 = call i32 @rg_tex_channel(ptr addrspace(1) %element, i32 %format, i32 3)
  %v0 = insertelement <4 x i32> undef, i32 %c0, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %c1, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %c2, i32 2
  %v3 = insertelement <4 x i32> %v2, i32 %c3, i32 3
  ret <4 x i32> %v3
}
define internal <4 x i32> @rg_tex_element(i64 %object, i32 %level, i32 %format, i32 %x, i32 %y, i32 %z) #1 {
entry:
  %result = alloca <4 x i32>, align 16, addrspace(5)
  %xy = or i32 %x, %y
  %xyz = or i32 %xy, %z
  %outside = icmp slt i32 %xyz, 0
  br i1 %outside, label %border, label %load
border:
  %b = call <4 x i32> @rg_tex_border(i64 %object, i32 %format)
  store <4 x i32> %b, ptr addrspace(5) %result, align 16
  br label %done
load:
  %l = call ptr addrspace(1) @rg_tex_level_of(i64 %object, i32 %level)
  %size = call i32 @rg_tex_element_size(i32 %format)
  %x64 = zext i32 %x to i64
  %size64 = zext i32 %size to i64
  %bytes = shl i64 %x64, %size64
  %p = call ptr addrspace(1) @rg_tex_address(ptr addrspace(1) %l, i64 %bytes, i32 %y, i32 %z)
  %v = call <4 x i32> @rg_tex_decode(ptr addrspace(1) %p, i32 %format)
  store <4 x i32> %v, ptr addrspace(5) %result, align 16
  br label %done
done:
  %r = load <4 x i32>, ptr addrspace(5) %result, align 16
  ret <4 x i32> %r
}
define internal i32 @rg_tex_element_size(i32 %format) #1 {
entry:
  %size = and i32 %format, 3
  %high = lshr i32 %format, 2
  %channels = and i32 %high, 3
  %v = add i32 %size, %channels
  ret i32 %v
}
define internal <4 x i32> @rg_tex_extents(i64 %object, i32 %level) #1 {
entry:
  %p = call ptr addrspace(1) @rg_tex_level_of(i64 %object, i32 %level)
  %pw = getelementptr i8, ptr addrspace(1) %p, i32 8
  %w = load i32, ptr addrspace(1) %pw, align 4
  %ph = getelementptr i8, ptr addrspace(1) %p, i32 12
  %h = load i32, ptr addrspace(1) %ph, align 4
  %pd = getelementptr i8, ptr addrspace(1) %p, i32 16
  %d = load i32, ptr addrspace(1) %pd, align 4
  %l = call i32 @rg_tex_word(i64 %object, i32 24)
  %v0 = insertelement <4 x i32> undef, i32 %w, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %h, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %d, i32 2
  %v3 = insertelement <4 x i32> %v2, i32 %l, i32 3
  ret <4 x i32> %v3
}
define internal <4 x i32> @rg_tex_fetch(i64 %object, i32 %dimensions, i32 %x, i32 %y, i32 %z, i32 %layer) #2 {
entry:
  %result = alloca <4 x i32>, align 16, addrspace(5)
  store <4 x i32> zeroinitializer, ptr addrspace(5) %result, align 16
  %format = call i32 @rg_tex_word(i64 %object, i32 0)
  %sampling = call i32 @rg_tex_word(i64 %object, i32 4)
  %e = call <4 x i32> @rg_tex_extents(i64 %object, i32 0)
  %width = extractelement <4 x i32> %e, i32 0
  %height = extractelement <4 x i32> %e, i32 1
  %depth = extractelement <4 x i32> %e, i32 2
  %layers = extractelement <4 x i32> %e, i32 3
  %memory = and i32 %sampling, 512
  %array = icmp eq i32 %memory, 0
  %line = icmp eq i32 %dimensions, 1
  %nothing = and i1 %array, %line
  %layered = icmp ugt i32 %dimensions, 3
  %slice = select i1 %layered, i32 %layer, i32 %z
  %most = select i1 %layered, i32 %layers, i32 %depth
  %inx = icmp ult i32 %x, %width
  %iny = icmp ult i32 %y, %height
  %inz = icmp ult i32 %slice, %most
  %inxy = and i1 %inx, %iny
  %inxyz = and i1 %inxy, %inz
  %found = xor i1 %nothing, true
  %inside = and i1 %inxyz, %found
  br i1 %inside, label %load, label %done
load:
  %v = call <4 x i32> @rg_tex_element(i64 %object, i32 0, i32 %format, i32 %x, i32 %y, i32 %slice)
  store <4 x i32> %v, ptr addrspace(5) %result, align 16
  br label %done
done:
  %r = load <4 x i32>, ptr addrspace(5) %result, align 16
  ret <4 x i32> %r
}
define internal <4 x i32> @rg_tex_finish(i64 %object, <4 x double> %sums) #1 {
entry:
  %format = call i32 @rg_tex_word(i64 %object, i32 0)
  %c0 = call i32 @rg_tex_share(<4 x double> %sums, i32 %format, i32 0)
  %c1 = call i32 @rg_tex_share(<4 x double> %sums, i32 %format, i32 1)
  %c2 = call i32 @rg_tex_share(<4 x double> %sums, i32 %format, i32 2)
  %c3 = call i32 @rg_tex_share(<4 x double> %sums, i32 %format, i32 3)
  %v0 = insertelement <4 x i32> undef, i32 %c0, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %c1, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %c2, i32 2
  %v3 = insertelement <4 x i32> %v2, i32 %c3, i32 3
  ret <4 x i32> %v3
}
define internal i32 @rg_tex_index(i32 %index, i32 %extent, i32 %mode) #1 {
entry:
  %last = sub i32 %extent, 1
  %low = call i32 @llvm.smax.i32(i32 %index, i32 0)
  %clamped = call i32 @llvm.smin.i32(i32 %low, i32 %last)
  %mirrors = icmp eq i32 %mode, 2
  %twice = shl i32 %extent, 1
  %period = select i1 %mirrors, i32 %twice, i32 %extent
  %below = icmp slt i32 %index, 0
  %raised = add i32 %index, %period
  %from = select i1 %below, i32 %raised, i32 %index
  %above = icmp sge i32 %from, %period
  %lowered = sub i32 %from, %period
  %within = select i1 %above, i32 %lowered, i32 %from
  %back = icmp sge i32 %within, %extent
  %end = sub i32 %twice, 1
  %reflected = sub i32 %end, %within
  %folded = select i1 %back, i32 %reflected, i32 %within
  %border = icmp eq i32 %mode, 3
  %clamps = icmp eq i32 %mode, 1
  %i0 = select i1 %border, i32 %index, i32 %folded
  %i1 = select i1 %clamps, i32 %clamped, i32 %i0
  %inside = icmp ult i32 %i1, %extent
  %r = select i1 %inside, i32 %i1, i32 -1
  ret i32 %r
}
define internal i1 @rg_tex_is_border(i32 %x, i32 %y, i32 %z) #1 {
entry:
  %xy = or i32 %x, %y
  %xyz = or i32 %xy, %z
  %r = icmp slt i32 %xyz, 0
  ret i1 %r
}
define internal <4 x i32> @rg_tex_level(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, float %lod) #2 {
entry:
  %result = alloca <4 x i32>, align 16, addrspace(5)
  %sampling = call i32 @rg_tex_word(i64 %object, i32 4)
  %bw = call i32 @rg_tex_word(i64 %object, i32 8)
  %bias = bitcast i32 %bw to float
  %lw = call i32 @rg_tex_word(i64 %object, i32 12)
  %least = bitcast i32 %lw to float
  %gw = call i32 @rg_tex_word(i64 %object, i32 16)
  %greatest = bitcast i32 %gw to float
  %levels = call i32 @rg_tex_word(i64 %object, i32 20)
  %lastlevel = sub i32 %levels, 1
  %last = call i32 @llvm.smax.i32(i32 %lastlevel, i32 0)
  %biased = fadd float %lod, %bias
  %below = call float @llvm.minnum.f32(float %biased, float %greatest)
  %within = call float @llvm.maxnum.f32(float %below, float %least)
  %positive = call float @llvm.maxnum.f32(float %within, float 0.0)
  %scaled = fmul float %positive, 256.0
  %fixed = call i32 @llvm.fptoui.sat.i32.f32(float %scaled)
  %mode = and i32 %sampling, 256
  %mixes = icmp ne i32 %mode, 0
  %small = call i32 @llvm.umin.i32(i32 %fixed, i32 65536)
  %nearer = add i32 %small, 128
  %cut = select i1 %mixes, i32 %small, i32 %nearer
  %whole = lshr i32 %cut, 8
  %first = call i32 @llvm.umin.i32(i32 %whole, i32 %last)
  %next = add i32 %first, 1
  %second = call i32 @llvm.umin.i32(i32 %next, i32 %last)
  %rest = and i32 %small, 255
  %further = icmp ult i32 %first, %second
  %between = and i1 %mixes, %further
  %f = select i1 %between, i32 %rest, i32 0
  %alone = icmp eq i32 %f, 0
  br i1 %alone, label %one, label %two
one:
  %a = call <4 x i32> @rg_tex_sample(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %first)
  store <4 x i32> %a, ptr addrspace(5) %result, align 16
  br label %done
two:
  %g = sub i32 256, %f
  %s = call <4 x double> @rg_tex_sum(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %first, i32 %g, i32 1, <4 x double> zeroinitializer)
  %t = call <4 x double> @rg_tex_sum(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %second, i32 %f, i32 0, <4 x double> %s)
  %m = call <4 x i32> @rg_tex_finish(i64 %object, <4 x double> %t)
  store <4 x i32> %m, ptr addrspace(5) %result, align 16
  br label %done
done:
  %r = load <4 x i32>, ptr addrspace(5) %result, align 16
  ret <4 x i32> %r
}
define internal ptr addrspace(1) @rg_tex_level_of(i64 %object, i32 %level) #1 {
entry:
  %d = inttoptr i64 %object to ptr addrspace(1)
  %offset = shl i32 %level, 5
  %at = add i32 %offset, 64
  %p = getelementptr i8, ptr addrspace(1) %d, i32 %at
  ret ptr addrspace(1) %p
}
define internal i32 @rg_tex_most(i32 %format) #1 {
entry:
  %size = and i32 %format, 3
  %bits = shl i32 8, %size
  %kind = lshr i32 %format, 4
  %sign = and i32 %kind, 1
  %digits = sub i32 %bits, %sign
  %narrow = and i32 %digits, 31
  %power = shl i32 1, %narrow
  %most = sub i32 %power, 1
  ret i32 %most
}
define internal <16 x i32> @rg_tex_place(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %level) #1 {
entry:
  %sampling = call i32 @rg_tex_word(i64 %object, i32 4)
  %e = call <4 x i32> @rg_tex_extents(i64 %object, i32 %level)
  %width = extractelement <4 x i32> %e, i32 0
  %height = extractelement <4 x i32> %e, i32 1
  %depth = extractelement <4 x i32> %e, i32 2
  %layers = extractelement <4 x i32> %e, i32 3
  %deep = icmp eq i32 %dimensions, 3
  %layered = icmp ugt i32 %dimensions, 3
  ; A row of a layered array has no border above it (recorded); one of a plain array has.
  %row = icmp eq i32 %dimensions, 5
  %modes = lshr i32 %sampling, 2
  %modey = select i1 %row, i32 1, i32 %modes
  %modez = lshr i32 %sampling, 4
  %x = call <4 x i32> @rg_tex_axis(float %u, i32 %width, i32 %sampling, i32 %sampling)
  %y = call <4 x i32> @rg_tex_axis(float %v, i32 %height, i32 %modey, i32 %sampling)
  %zd = call <4 x i32> @rg_tex_axis(float %w, i32 %depth, i32 %modez, i32 %sampling)
  %most = call i32 @llvm.umax.i32(i32 %layers, i32 1)
  %last = sub i32 %most, 1
  %clamped = call i32 @llvm.umin.i32(i32 %layer, i32 %last)
  %slice = select i1 %layered, i32 %clamped, i32 0
  %x0 = extractelement <4 x i32> %x, i32 0
  %x1 = extractelement <4 x i32> %x, i32 1
  %a = extractelement <4 x i32> %x, i32 2
  %y0 = extractelement <4 x i32> %y, i32 0
  %y1 = extractelement <4 x i32> %y, i32 1
  %b = extractelement <4 x i32> %y, i32 2
  %zd0 = extractelement <4 x i32> %zd, i32 0
  %zd1 = extractelement <4 x i32> %zd, i32 1
  %zdf = extractelement <4 x i32> %zd, i32 2
  %z0 = select i1 %deep, i32 %zd0, i32 %slice
  %z1 = select i1 %deep, i32 %zd1, i32 %slice
  %c = select i1 %deep, i32 %zdf, i32 0
  %p0 = insertelement <16 x i32> undef, i32 %x0, i32 0
  %p1 = insertelement <16 x i32> %p0, i32 %x1, i32 1
  %p2 = insertelement <16 x i32> %p1, i32 %y0, i32 2
  %p3 = insertelement <16 x i32> %p2, i32 %y1, i32 3
  %p4 = insertelement <16 x i32> %p3, i32 %z0, i32 4
  %p5 = insertelement <16 x i32> %p4, i32 %z1, i32 5
  %p6 = insertelement <16 x i32> %p5, i32 %a, i32 6
  %p7 = insertelement <16 x i32> %p6, i32 %b, i32 7
  %p8 = insertelement <16 x i32> %p7, i32 %c, i32 8
  ret <16 x i32> %p8
}
define internal <4 x i32> @rg_tex_sample(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %level) #2 {
entry:
  %result = alloca <4 x i32>, align 16, addrspace(5)
  store <4 x i32> zeroinitializer, ptr addrspace(5) %result, align 16
  %sampling = call i32 @rg_tex_word(i64 %object, i32 4)
  %memory = and i32 %sampling, 512
  %fetched = icmp ne i32 %memory, 0
  br i1 %fetched, label %done, label %filter
filter:
  %mode = and i32 %sampling, 64
  %linear = icmp ne i32 %mode, 0
  br i1 %linear, label %mix, label %one
one:
  %format = call i32 @rg_tex_word(i64 %object, i32 0)
  %place = call <16 x i32> @rg_tex_place(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %level)
  %x = extractelement <16 x i32> %place, i32 0
  %y = extractelement <16 x i32> %place, i32 2
  %z = extractelement <16 x i32> %place, i32 4
  %point = call <4 x i32> @rg_tex_element(i64 %object, i32 %level, i32 %format, i32 %x, i32 %y, i32 %z)
  store <4 x i32> %point, ptr addrspace(5) %result, align 16
  br label %done
mix:
  %sum = call <4 x double> @rg_tex_sum(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %level, i32 256, i32 1, <4 x double> zeroinitializer)
  %mixed = call <4 x i32> @rg_tex_finish(i64 %object, <4 x double> %sum)
  store <4 x i32> %mixed, ptr addrspace(5) %result, align 16
  br label %done
done:
  %r = load <4 x i32>, ptr addrspace(5) %result, align 16
  ret <4 x i32> %r
}
define internal i32 @rg_tex_share(<4 x double> %sums, i32 %format, i32 %channel) #1 {
entry:
  %sum = extractelement <4 x double> %sums, i32 %channel
  %q = fmul double %sum, 3.90625e-3
  %f = fptrunc double %q to float
  %size = call float @llvm.fabs.f32(float %f)
  %tiny = fcmp olt float %size, 0x3810000000000000
  %f0 = select i1 %tiny, float 0.0, float %f
  %w = bitcast float %f0 to i32
  %nan = fcmp uno float %f, 0.0
  %single = select i1 %nan, i32 2147483647, i32 %w
  %h = fptrunc float %f to half
  %hf = fpext half %h to float
  %hw = bitcast float %hf to i32
  %hr = select i1 %nan, i32 2147475456, i32 %hw
  %most = call i32 @rg_tex_most(i32 %format)
  %m = sitofp i32 %most to double
  %kind = lshr i32 %format, 4
  %sign = and i32 %kind, 1
  %signed = icmp ne i32 %sign, 0
  %scale = select i1 %signed, double 32767.0, double 65535.0
  %scaled = fmul double %sum, %scale
  %d256 = fmul double %m, 256.0
  %exact = fdiv double %scaled, %d256
  %up = fadd double %exact, 0.5
  %n = call double @llvm.floor.f64(double %up)
  %nf = fptrunc double %n to float
  %sf = fptrunc double %scale to float
  %part = fdiv float %nf, %sf
  %pw = bitcast float %part to i32
  %bytes = and i32 %format, 3
  %short = icmp eq i32 %bytes, 1
  %floating = select i1 %short, i32 %hr, i32 %single
  %fraction = and i32 %format, 64
  %whole = icmp eq i32 %fraction, 0
  %r = select i1 %whole, i32 %floating, i32 %pw
  ret i32 %r
}
define internal <4 x double> @rg_tex_sum(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %level, i32 %share, i32 %front, <4 x double> %before) #2 {
entry:
  %format = call i32 @rg_tex_word(i64 %object, i32 0)
  %sampling = call i32 @rg_tex_word(i64 %object, i32 4)
  %place = call <16 x i32> @rg_tex_place(i64 %object, i32 %dimensions, float %u, float %v, float %w, i32 %layer, i32 %level)
  %x0 = extractelement <16 x i32> %place, i32 0
  %x1 = extractelement <16 x i32> %place, i32 1
  %y0 = extractelement <16 x i32> %place, i32 2
  %y1 = extractelement <16 x i32> %place, i32 3
  %z0 = extractelement <16 x i32> %place, i32 4
  %z1 = extractelement <16 x i32> %place, i32 5
  %a = extractelement <16 x i32> %place, i32 6
  %b = extractelement <16 x i32> %place, i32 7
  %c = extractelement <16 x i32> %place, i32 8
  %deep = icmp eq i32 %dimensions, 3
  %some = select i1 %deep, i32 8, i32 4
  %filter = and i32 %sampling, 64
  %nearest = icmp eq i32 %filter, 0
  %taps = select i1 %nearest, i32 1, i32 %some
  br label %tap
tap:
  %t = phi i32 [ 0, %entry ], [ %t1, %tap ]
  %sum = phi <4 x double> [ %before, %entry ], [ %after, %tap ]
  %tx = and i32 %t, 1
  %ty = and i32 %t, 2
  %tz = and i32 %t, 4
  %right = icmp ne i32 %tx, 0
  %lower = icmp ne i32 %ty, 0
  %behind = icmp ne i32 %tz, 0
  %xi = select i1 %right, i32 %x1, i32 %x0
  %yi = select i1 %lower, i32 %y1, i32 %y0
  %zi = select i1 %behind, i32 %z1, i32 %z0
  ; The weight of a level is split between slices, then between columns, that of a column between rows; what is left goes to
  ; the first. Halves go to the second, but in the first column of all.
  %later = or i32 %tx, %tz
  %one = icmp eq i32 %later, 0
  %level0 = icmp ne i32 %front, 0
  %first = and i1 %one, %level0
  %half = select i1 %first, i32 127, i32 128
  %deeper = call i32 @rg_tex_weight(i32 %share, i32 %c, i32 128)
  %nearer = sub i32 %share, %deeper
  %wz = select i1 %behind, i32 %deeper, i32 %nearer
  %wzx = call i32 @rg_tex_weight(i32 %wz, i32 %a, i32 128)
  %wzl = sub i32 %wz, %wzx
  %wx = select i1 %right, i32 %wzx, i32 %wzl
  %wxy = call i32 @rg_tex_weight(i32 %wx, i32 %b, i32 %half)
  %wxu = sub i32 %wx, %wxy
  %weight = select i1 %lower, i32 %wxy, i32 %wxu
  %whole = and i32 %format, 63
  %texel = call <4 x i32> @rg_tex_element(i64 %object, i32 %level, i32 %whole, i32 %xi, i32 %yi, i32 %zi)
  %outside = call i1 @rg_tex_is_border(i32 %xi, i32 %yi, i32 %zi)
  %after = call <4 x double> @rg_tex_add(<4 x double> %sum, <4 x i32> %texel, i32 %format, i1 %outside, i64 %object, i32 %weight)
  %t1 = add i32 %t, 1
  %more = icmp ult i32 %t1, %taps
  br i1 %more, label %tap, label %done
done:
  ret <4 x double> %after
}
define internal double @rg_tex_term(<4 x i32> %texel, i32 %format, i1 %outside, i64 %object, i32 %channel) #1 {
entry:
  %word = extractelement <4 x i32> %texel, i32 %channel
  %f = bitcast i32 %word to float
  %d = fpext float %f to double
  %most = call i32 @rg_tex_most(i32 %format)
  %least = sub i32 0, %most
  %bounded = call i32 @llvm.smax.i32(i32 %word, i32 %least)
  %n = sitofp i32 %bounded to double
  %border = call i32 @rg_tex_border_channel(i64 %object, i32 %format, i32 %channel)
  %bf = bitcast i32 %border to float
  %bd = fpext float %bf to double
  %m = sitofp i32 %most to double
  %bn = fmul double %bd, %m
  %i = select i1 %outside, double %bn, double %n
  %fraction = and i32 %format, 64
  %whole = icmp eq i32 %fraction, 0
  %r = select i1 %whole, double %d, double %i
  ret double %r
}
define internal i32 @rg_tex_weight(i32 %a, i32 %b, i32 %half) #1 {
entry:
  %p = mul i32 %a, %b
  %r = add i32 %p, %half
  %w = lshr i32 %r, 8
  ret i32 %w
}
define internal i32 @rg_tex_word(i64 %object, i32 %offset) #1 {
entry:
  %d = inttoptr i64 %object to ptr addrspace(1)
  %p = getelementptr i8, ptr addrspace(1) %d, i32 %offset
  %v = load i32, ptr addrspace(1) %p, align 4
  ret i32 %v
}
define protected amdgpu_kernel void @regauge_kernel(ptr addrspace(4) byref([88 x i8]) align 16 %p) #0 {
entry:
  %r0 = alloca i64, align 8, addrspace(5)
  %r1 = alloca i64, align 8, addrspace(5)
  %r2 = alloca i32, align 4, addrspace(5)
  %r3 = alloca i32, align 4, addrspace(5)
  %r4 = alloca i32, align 4, addrspace(5)
  %r5 = alloca i32, align 4, addrspace(5)
  %r6 = alloca i32, align 4, addrspace(5)
  %r7 = alloca i32, align 4, addrspace(5)
  %r8 = alloca i32, align 4, addrspace(5)
  %hid = getelementptr i8, ptr addrspace(4) %p, i64 16
  %data = load i64, ptr addrspace(4) %hid, align 8
  %s8 = alloca <4 x i32>, align 16, addrspace(5)
  %s26 = alloca <4 x i32>, align 16, addrspace(5)
  %s42 = alloca <4 x i32>, align 16, addrspace(5)
  %s64 = alloca [2 x i32], align 16, addrspace(5)
  br label %b0
b0:
  %v1 = getelementptr i8, ptr addrspace(4) %p, i64 0
  %v2 = load i64, ptr addrspace(4) %v1, align 8
  store i64 %v2, ptr addrspace(5) %r0, align 8
  %v3 = getelementptr i8, ptr addrspace(4) %p, i64 8
  %v4 = load i64, ptr addrspace(4) %v3, align 8
  store i64 %v4, ptr addrspace(5) %r1, align 8
  %v5 = call i32 @llvm.amdgcn.workitem.id.x()
  store i32 %v5, ptr addrspace(5) %r2, align 4
  %v6 = call i32 @llvm.amdgcn.workitem.id.y()
  store i32 %v6, ptr addrspace(5) %r3, align 4
  %v7 = call i32 @llvm.amdgcn.workgroup.id.x()
  store i32 %v7, ptr addrspace(5) %r4, align 4
  store <4 x i32> zeroinitializer, ptr addrspace(5) %s8, align 16
  %v11 = icmp ne i64 %v2, 0
  br i1 %v11, label %t9, label %t10
t9:
  %v12 = bitcast i32 %v5 to float
  %v13 = bitcast i32 %v6 to float
  %v14 = bitcast i32 0 to float
  %v15 = call <4 x i32> @rg_tex_sample(i64 %v2, i32 2, float %v12, float %v13, float %v14, i32 0, i32 0) #3
  store <4 x i32> %v15, ptr addrspace(5) %s8, align 16
  br label %t10
t10:
  %v16 = load <4 x i32>, ptr addrspace(5) %s8, align 16
  %v17 = extractelement <4 x i32> %v16, i32 0
  store i32 %v17, ptr addrspace(5) %r5, align 4
  %v18 = extractelement <4 x i32> %v16, i32 1
  store i32 %v18, ptr addrspace(5) %r6, align 4
  %v19 = extractelement <4 x i32> %v16, i32 2
  store i32 %v19, ptr addrspace(5) %r7, align 4
  %v20 = extractelement <4 x i32> %v16, i32 3
  store i32 %v20, ptr addrspace(5) %r8, align 4
  %v21 = inttoptr i64 %v4 to ptr addrspace(1)
  %v22 = insertelement <4 x i32> undef, i32 %v17, i32 0
  %v23 = insertelement <4 x i32> %v22, i32 %v18, i32 1
  %v24 = insertelement <4 x i32> %v23, i32 %v19, i32 2
  %v25 = insertelement <4 x i32> %v24, i32 %v20, i32 3
  store <4 x i32> %v25, ptr addrspace(1) %v21, align 16
  store <4 x i32> zeroinitializer, ptr addrspace(5) %s26, align 16
  %v29 = icmp ne i64 %v2, 0
  br i1 %v29, label %t27, label %t28
t27:
  %v30 = call <4 x i32> @rg_tex_fetch(i64 %v2, i32 5, i32 %v5, i32 0, i32 0, i32 %v7) #3
  store <4 x i32> %v30, ptr addrspace(5) %s26, align 16
  br label %t28
t28:
  %v31 = load <4 x i32>, ptr addrspace(5) %s26, align 16
  %v32 = extractelement <4 x i32> %v31, i32 0
  store i32 %v32, ptr addrspace(5) %r5, align 4
  %v33 = extractelement <4 x i32> %v31, i32 1
  store i32 %v33, ptr addrspace(5) %r6, align 4
  %v34 = extractelement <4 x i32> %v31, i32 2
  store i32 %v34, ptr addrspace(5) %r7, align 4
  %v35 = extractelement <4 x i32> %v31, i32 3
  store i32 %v35, ptr addrspace(5) %r8, align 4
  %v36 = inttoptr i64 %v4 to ptr addrspace(1)
  %v37 = getelementptr i8, ptr addrspace(1) %v36, i64 16
  %v38 = insertelement <4 x i32> undef, i32 %v32, i32 0
  %v39 = insertelement <4 x i32> %v38, i32 %v33, i32 1
  %v40 = insertelement <4 x i32> %v39, i32 %v34, i32 2
  %v41 = insertelement <4 x i32> %v40, i32 %v35, i32 3
  store <4 x i32> %v41, ptr addrspace(1) %v37, align 16
  store <4 x i32> zeroinitializer, ptr addrspace(5) %s42, align 16
  %v45 = icmp ne i64 %v2, 0
  br i1 %v45, label %t43, label %t44
t43:
  %v46 = bitcast i32 %v6 to float
  %v47 = bitcast i32 %v5 to float
  %v48 = bitcast i32 %v6 to float
  %v49 = bitcast i32 %v7 to float
  %v50 = call <4 x i32> @rg_tex_level(i64 %v2, i32 3, float %v47, float %v48, float %v49, i32 0, float %v46) #3
  store <4 x i32> %v50, ptr addrspace(5) %s42, align 16
  br label %t44
t44:
  %v51 = load <4 x i32>, ptr addrspace(5) %s42, align 16
  %v52 = extractelement <4 x i32> %v51, i32 0
  store i32 %v52, ptr addrspace(5) %r5, align 4
  %v53 = extractelement <4 x i32> %v51, i32 1
  store i32 %v53, ptr addrspace(5) %r6, align 4
  %v54 = extractelement <4 x i32> %v51, i32 2
  store i32 %v54, ptr addrspace(5) %r7, align 4
  %v55 = extractelement <4 x i32> %v51, i32 3
  store i32 %v55, ptr addrspace(5) %r8, align 4
  %v56 = inttoptr i64 %v4 to ptr addrspace(1)
  %v57 = getelementptr i8, ptr addrspace(1) %v56, i64 32
  %v58 = insertelement <4 x i32> undef, i32 %v52, i32 0
  %v59 = insertelement <4 x i32> %v58, i32 %v53, i32 1
  %v60 = insertelement <4 x i32> %v59, i32 %v54, i32 2
  %v61 = insertelement <4 x i32> %v60, i32 %v55, i32 3
  store <4 x i32> %v61, ptr addrspace(1) %v57, align 16
  %v62 = call i64 @rg_surf_address(i64 %v2, i32 2, i32 %v5, i32 %v6, i32 0, i32 0, i32 8, i32 2) #3
  %v63 = icmp ne i64 %v62, 0
  store [2 x i32] zeroinitializer, ptr addrspace(5) %s64, align 16
  br i1 true, label %t65, label %t66
t65:
  %v67 = inttoptr i64 %v62 to ptr addrspace(1)
  %v68 = getelementptr i8, ptr addrspace(1) %v67, i32 0
  %v69 = load volatile i32, ptr addrspace(1) %v68, align 4
  %v70 = getelementptr i8, ptr addrspace(5) %s64, i32 0
  store i32 %v69, ptr addrspace(5) %v70, align 4
  %v71 = getelementptr i8, ptr addrspace(1) %v67, i32 4
  %v72 = load volatile i32, ptr addrspace(1) %v71, align 4
  %v73 = getelementptr i8, ptr addrspace(5) %s64, i32 4
  store i32 %v72, ptr addrspace(5) %v73, align 4
  br label %t66
t66:
  %v74 = getelementptr i8, ptr addrspace(5) %s64, i32 0
  %v75 = load i32, ptr addrspace(5) %v74, align 4
  store i32 %v75, ptr addrspace(5) %r5, align 4
  %v76 = getelementptr i8, ptr addrspace(5) %s64, i32 4
  %v77 = load i32, ptr addrspace(5) %v76, align 4
  store i32 %v77, ptr addrspace(5) %r6, align 4
  %v78 = call i32 @rg_tex_word(i64 %v2, i32 28) #3
  store i32 %v78, ptr addrspace(5) %r7, align 4
  %v79 = insertelement <4 x i32> zeroinitializer, i32 %v75, i32 0
  %v80 = insertelement <4 x i32> %v79, i32 %v77, i32 1
  %v81 = insertelement <4 x i32> %v80, i32 %v78, i32 2
  %v82 = insertelement <4 x i32> %v81, i32 %v55, i32 3
  call void @rg_surf_put(i64 %v2, i32 2, i32 %v5, i32 %v6, i32 0, i32 0, i32 0, <4 x i32> %v82) #3
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
