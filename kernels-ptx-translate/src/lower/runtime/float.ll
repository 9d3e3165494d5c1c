; Floating point: what PTX promises and the hardware instruction alone does not give.

; Subnormals to zeros of their sign.
define internal float @rg_ftz_f32(float %x) #1 {
  %a = call float @llvm.fabs.f32(float %x)
  %s = fcmp olt float %a, 0x3810000000000000
  %z = call float @llvm.copysign.f32(float 0.0, float %x)
  %r = select i1 %s, float %z, float %x
  ret float %r
}

define internal half @rg_ftz_f16(half %x) #1 {
  %b = bitcast half %x to i16
  %e = and i16 %b, 31744
  %s = icmp eq i16 %e, 0
  %z = and i16 %b, -32768
  %r = select i1 %s, i16 %z, i16 %b
  %f = bitcast i16 %r to half
  ret half %f
}

; [0, 1], NaN and -0 to +0.
define internal float @rg_sat_f32(float %x) #1 {
  %p = fcmp ogt float %x, 0.0
  %m = fcmp olt float %x, 1.0
  %u = select i1 %m, float %x, float 1.0
  %r = select i1 %p, float %u, float 0.0
  ret float %r
}

define internal double @rg_sat_f64(double %x) #1 {
  %p = fcmp ogt double %x, 0.0
  %m = fcmp olt double %x, 1.0
  %u = select i1 %m, double %x, double 1.0
  %r = select i1 %p, double %u, double 0.0
  ret double %r
}

define internal half @rg_sat_f16(half %x) #1 {
  %p = fcmp ogt half %x, 0.0
  %m = fcmp olt half %x, 1.0
  %u = select i1 %m, half %x, half 1.0
  %r = select i1 %p, half %u, half 0.0
  ret half %r
}

; Correctly rounded square root: the hardware's, then the neighbour that the residual asks for.
define internal float @rg_sqrt_f32(float %x) #1 {
  %small = fcmp olt float %x, 0x39F0000000000000
  %xs = fmul float %x, 0x41F0000000000000
  %sx = select i1 %small, float %xs, float %x
  %s = call float @llvm.amdgcn.sqrt.f32(float %sx)
  %si = bitcast float %s to i32
  %di = add i32 %si, -1
  %ui = add i32 %si, 1
  %d = bitcast i32 %di to float
  %u = bitcast i32 %ui to float
  %nd = fneg float %d
  %nu = fneg float %u
  %rd = call float @llvm.fma.f32(float %nd, float %s, float %sx)
  %ru = call float @llvm.fma.f32(float %nu, float %s, float %sx)
  %cd = fcmp ole float %rd, 0.0
  %s1 = select i1 %cd, float %d, float %s
  %cu = fcmp ogt float %ru, 0.0
  %s2 = select i1 %cu, float %u, float %s1
  %sb = fmul float %s2, 0x3EF0000000000000
  %s3 = select i1 %small, float %sb, float %s2
  %z = fcmp oeq float %x, 0.0
  %inf = fcmp oeq float %x, 0x7FF0000000000000
  %same = or i1 %z, %inf
  %r = select i1 %same, float %x, float %s3
  ret float %r
}

define internal double @rg_sqrt_f64(double %x) #1 {
  %small = fcmp olt double %x, 0x1000000000000000
  %sc = select i1 %small, i32 256, i32 0
  %sx = call double @llvm.amdgcn.ldexp.f64(double %x, i32 %sc)
  %y = call double @llvm.amdgcn.rsq.f64(double %sx)
  %g = fmul double %sx, %y
  %h = fmul double %y, 0.5
  %nh = fneg double %h
  %e = call double @llvm.fma.f64(double %nh, double %g, double 0.5)
  %g1 = call double @llvm.fma.f64(double %g, double %e, double %g)
  %h1 = call double @llvm.fma.f64(double %h, double %e, double %h)
  %ng1 = fneg double %g1
  %d0 = call double @llvm.fma.f64(double %ng1, double %g1, double %sx)
  %g2 = call double @llvm.fma.f64(double %d0, double %h1, double %g1)
  %ng2 = fneg double %g2
  %d1 = call double @llvm.fma.f64(double %ng2, double %g2, double %sx)
  %g3 = call double @llvm.fma.f64(double %d1, double %h1, double %g2)
  %bk = select i1 %small, i32 -128, i32 0
  %s = call double @llvm.amdgcn.ldexp.f64(double %g3, i32 %bk)
  ; Zeros, infinity and NaN are their own roots; the root of a negative number is NVIDIA's NaN.
  %z = fcmp ueq double %x, 0.0
  %inf = fcmp oeq double %x, 0x7FF0000000000000
  %same = or i1 %z, %inf
  %q = fadd double %x, %x
  %nan = fcmp uno double %x, %x
  %self = select i1 %nan, double %q, double %x
  %s1 = select i1 %same, double %self, double %s
  %neg = fcmp olt double %x, 0.0
  %r = select i1 %neg, double 0xFFF8000000000000, double %s1
  ret double %r
}

; One Newton step behind the quotient, its residual exact to the last bits.
define internal double @rg_rsqrt_f64(double %x) #1 {
  %s = call double @rg_sqrt_f64(double %x)
  %y = fdiv double 1.0, %s
  %t = fmul double %x, %y
  %nt = fneg double %t
  %te = call double @llvm.fma.f64(double %x, double %y, double %nt)
  %nte = fneg double %te
  %r0 = call double @llvm.fma.f64(double %nt, double %y, double 1.0)
  %r1 = call double @llvm.fma.f64(double %nte, double %y, double %r0)
  %h = fmul double %y, 0.5
  %n = call double @llvm.fma.f64(double %h, double %r1, double %y)
  %a = call double @llvm.fabs.f64(double %x)
  %pos = fcmp one double %a, 0.0
  %fin = fcmp olt double %a, 0x7FF0000000000000
  %ok = and i1 %pos, %fin
  %r = select i1 %ok, double %n, double %y
  ret double %r
}

; Moves a correctly rounded %q to the neighbour that a directed mode asks for. %err is the exact value minus %q, or a
; number of its sign; %dir is 1 up, 2 down, 3 to zero (the hardware's codes). %q is finite and not zero.
define internal double @rg_direct_f64(double %q, double %err, i32 %dir) #1 {
  %pos = fcmp ogt double %err, 0.0
  %neg = fcmp olt double %err, 0.0
  %qn = fcmp olt double %q, 0.0
  %up = icmp eq i32 %dir, 1
  %down = icmp eq i32 %dir, 2
  %zero = icmp eq i32 %dir, 3
  %qp = xor i1 %qn, true
  ; Greater in value: up mode, or to zero with a negative quotient.
  %z1 = and i1 %zero, %qn
  %z2 = and i1 %zero, %qp
  %wu = or i1 %up, %z1
  %wd = or i1 %down, %z2
  %incv = and i1 %wu, %pos
  %decv = and i1 %wd, %neg
  %qb = bitcast double %q to i64
  ; Magnitude grows when the value grows and is positive, or falls and is negative.
  %ip = select i1 %qn, i64 -1, i64 1
  %im = sub i64 0, %ip
  %s0 = select i1 %incv, i64 %ip, i64 0
  %s1 = select i1 %decv, i64 %im, i64 %s0
  %nb = add i64 %qb, %s1
  %r = bitcast i64 %nb to double
  ret double %r
}

; Directed quotient of significands; %a and %b are finite and not zero. The scale 2^(ea-eb) is applied by the caller.
define internal double @rg_div_frac_f64(double %a, double %b, i32 %dir) #1 {
  %am = call double @llvm.amdgcn.frexp.mant.f64(double %a)
  %bm = call double @llvm.amdgcn.frexp.mant.f64(double %b)
  %q = fdiv double %am, %bm
  %nq = fneg double %q
  %rem = call double @llvm.fma.f64(double %nq, double %bm, double %am)
  ; The error of the quotient has the sign of remainder / divisor.
  %bn = fcmp olt double %bm, 0.0
  %nrem = fneg double %rem
  %err = select i1 %bn, double %nrem, double %rem
  %r = call double @rg_direct_f64(double %q, double %err, i32 %dir)
  ret double %r
}

define internal double @rg_sqrt_dir_f64(double %x, i32 %dir) #1 {
  %small = fcmp olt double %x, 0x1000000000000000
  %sc = select i1 %small, i32 256, i32 0
  %sx = call double @llvm.amdgcn.ldexp.f64(double %x, i32 %sc)
  %s = call double @rg_sqrt_f64(double %sx)
  %ns = fneg double %s
  %err = call double @llvm.fma.f64(double %ns, double %s, double %sx)
  %d = call double @rg_direct_f64(double %s, double %err, i32 %dir)
  %bk = select i1 %small, i32 -128, i32 0
  %u = call double @llvm.amdgcn.ldexp.f64(double %d, i32 %bk)
  %pos = fcmp ogt double %x, 0.0
  %fin = fcmp olt double %x, 0x7FF0000000000000
  %ok = and i1 %pos, %fin
  %rn = call double @rg_sqrt_f64(double %x)
  %r = select i1 %ok, double %u, double %rn
  ret double %r
}

; Double to single, to the odd neighbour when inexact: a later rounding to fewer bits is then right in every mode.
define internal float @rg_f64_to_f32_odd(double %x) #1 {
  %t = call float asm "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 15\0A\09v_cvt_f32_f64 $0, $1\0A\09s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", "=v,v"(double %x)
  %back = fpext float %t to double
  %ne = fcmp one double %back, %x
  %tb = bitcast float %t to i32
  %odd = or i32 %tb, 1
  %rb = select i1 %ne, i32 %odd, i32 %tb
  %r = bitcast i32 %rb to float
  ret float %r
}

; a * b + c of three bfloat16 values, rounded to the odd single.
define internal float @rg_fma_bf16_odd(float %a, float %b, float %c) #1 {
  %a8 = fpext float %a to double
  %b8 = fpext float %b to double
  %c8 = fpext float %c to double
  %p = fmul double %a8, %b8
  %s = fadd double %p, %c8
  %bb = fsub double %s, %p
  %sb = fsub double %s, %bb
  %e0 = fsub double %p, %sb
  %e1 = fsub double %c8, %bb
  %err = fadd double %e0, %e1
  %inx = fcmp one double %err, 0.0
  %sn = fcmp olt double %s, 0.0
  %en = fcmp olt double %err, 0.0
  %diff = xor i1 %sn, %en
  %si = bitcast double %s to i64
  %less = add i64 %si, -1
  %tr = select i1 %diff, i64 %less, i64 %si
  %od = or i64 %tr, 1
  %rb = select i1 %inx, i64 %od, i64 %si
  %r8 = bitcast i64 %rb to double
  %r = call float @rg_f64_to_f32_odd(double %r8)
  ret float %r
}

; Single to bfloat16 bits, to nearest even; NaN is NVIDIA's.
define internal i16 @rg_bf16_rn(float %x) #1 {
  %b = bitcast float %x to i32
  %s = lshr i32 %b, 16
  %l = and i32 %s, 1
  %h = add i32 %l, 32767
  %t = add i32 %b, %h
  %u = lshr i32 %t, 16
  %v = trunc i32 %u to i16
  %nan = fcmp uno float %x, %x
  %r = select i1 %nan, i16 32767, i16 %v
  ret i16 %r
}

; Bits to round off a bfloat16 in a directed mode.
define internal i16 @rg_bf16_dir(float %x, i32 %dir) #1 {
  %b = bitcast float %x to i32
  %low = and i32 %b, 65535
  %inx = icmp ne i32 %low, 0
  %neg = icmp slt i32 %b, 0
  %pos = xor i1 %neg, true
  %up = icmp eq i32 %dir, 1
  %down = icmp eq i32 %dir, 2
  %w0 = and i1 %up, %pos
  %w1 = and i1 %down, %neg
  %w2 = or i1 %w0, %w1
  %w = and i1 %w2, %inx
  %s = lshr i32 %b, 16
  %wz = zext i1 %w to i32
  %t = add i32 %s, %wz
  %v = trunc i32 %t to i16
  %nan = fcmp uno float %x, %x
  %r = select i1 %nan, i16 32767, i16 %v
  ret i16 %r
}

; The approximations. Subnormal operands and results are kept by scaling around the hardware's, which flush them.
define internal float @rg_rcp_f32(float %x) #1 {
  %a = call float @llvm.fabs.f32(float %x)
  %tiny = fcmp olt float %a, 0x3810000000000000
  %huge = fcmp ogt float %a, 0x47D0000000000000
  %up = select i1 %tiny, i32 32, i32 0
  %sc = select i1 %huge, i32 -32, i32 %up
  %xs = call float @llvm.amdgcn.ldexp.f32(float %x, i32 %sc)
  %q = call float @llvm.amdgcn.rcp.f32(float %xs)
  %r = call float @llvm.amdgcn.ldexp.f32(float %q, i32 %sc)
  ret float %r
}

define internal float @rg_sqrt_approx_f32(float %x) #1 {
  %tiny = fcmp olt float %x, 0x3810000000000000
  %xu = fmul float %x, 0x41F0000000000000
  %xs = select i1 %tiny, float %xu, float %x
  %s = call float @llvm.amdgcn.sqrt.f32(float %xs)
  %sd = fmul float %s, 0x3EF0000000000000
  %r = select i1 %tiny, float %sd, float %s
  ret float %r
}

define internal float @rg_rsqrt_f32(float %x) #1 {
  %tiny = fcmp olt float %x, 0x3810000000000000
  %xu = fmul float %x, 0x41F0000000000000
  %xs = select i1 %tiny, float %xu, float %x
  %s = call float @llvm.amdgcn.rsq.f32(float %xs)
  %su = fmul float %s, 0x40F0000000000000
  %r = select i1 %tiny, float %su, float %s
  ret float %r
}

define internal float @rg_ex2_f32(float %x) #1 {
  %low = fcmp olt float %x, -126.0
  %xu = fadd float %x, 64.0
  %xs = select i1 %low, float %xu, float %x
  %e = call float @llvm.exp2.f32(float %xs)
  %ed = fmul float %e, 0x3BF0000000000000
  %r = select i1 %low, float %ed, float %e
  ret float %r
}

define internal float @rg_lg2_f32(float %x) #1 {
  %tiny = fcmp olt float %x, 0x3810000000000000
  %xu = fmul float %x, 0x41F0000000000000
  %xs = select i1 %tiny, float %xu, float %x
  %l = call float @llvm.log2.f32(float %xs)
  %ld = fsub float %l, 32.0
  %r = select i1 %tiny, float %ld, float %l
  ret float %r
}

; sin and cos take revolutions; the fraction keeps the argument in the hardware's range.
define internal float @rg_sin_f32(float %x) #1 {
  %z = call float @rg_ftz_f32(float %x)
  %t = fmul float %z, 0x3FC45F3060000000
  %f = call float @llvm.amdgcn.fract.f32(float %t)
  %s = call float @llvm.amdgcn.sin.f32(float %f)
  ; Near zero the fraction loses the sign and the low bits: there sin x = x.
  %a = call float @llvm.fabs.f32(float %z)
  %small = fcmp olt float %a, 0x3F20000000000000
  %r = select i1 %small, float %z, float %s
  ret float %r
}

define internal float @rg_cos_f32(float %x) #1 {
  %t = fmul float %x, 0x3FC45F3060000000
  %f = call float @llvm.amdgcn.fract.f32(float %t)
  %r = call float @llvm.amdgcn.cos.f32(float %f)
  ret float %r
}

; tanh x = (1 - e) / (1 + e) with e = exp(-2 |x|); near zero its series.
define internal float @rg_tanh_f32(float %x) #1 {
  %a = call float @llvm.fabs.f32(float %x)
  %t = fmul float %a, 0xC007154760000000
  %e = call float @llvm.exp2.f32(float %t)
  %n = fsub float 1.0, %e
  %d = fadd float 1.0, %e
  %rc = call float @llvm.amdgcn.rcp.f32(float %d)
  %big = fmul float %n, %rc
  %x2 = fmul float %a, %a
  %c2 = call float @llvm.fma.f32(float %x2, float 0xBFABA1BA20000000, float 0x3FC1111120000000)
  %c1 = call float @llvm.fma.f32(float %x2, float %c2, float 0xBFD5555560000000)
  %c0 = fmul float %x2, %c1
  %ser = call float @llvm.fma.f32(float %a, float %c0, float %a)
  %small = fcmp olt float %a, 0x3FD0000000000000
  %m = select i1 %small, float %ser, float %big
  %r = call float @llvm.copysign.f32(float %m, float %x)
  %nan = fcmp uno float %x, %x
  %rr = select i1 %nan, float %x, float %r
  ret float %rr
}

; A double with its low word cleared.
define internal double @rg_high_f64(double %x) #1 {
  %b = bitcast double %x to i64
  %h = and i64 %b, -4294967296
  %r = bitcast i64 %h to double
  ret double %r
}

define internal double @rg_ftz_f64(double %x) #1 {
  %a = call double @llvm.fabs.f64(double %x)
  %s = fcmp olt double %a, 0x0010000000000000
  %z = call double @llvm.copysign.f64(double 0.0, double %x)
  %r = select i1 %s, double %z, double %x
  ret double %r
}

; A 64-bit integer to double, to the odd neighbour when inexact.
define internal double @rg_u64_to_f64_odd(i64 %x) #1 {
  %lz = call i64 @llvm.ctlz.i64(i64 %x, i1 false)
  %over = icmp ult i64 %lz, 11
  %need = sub i64 11, %lz
  %sh = select i1 %over, i64 %need, i64 0
  %y = lshr i64 %x, %sh
  %back = shl i64 %y, %sh
  %lost = icmp ne i64 %back, %x
  %st = zext i1 %lost to i64
  %odd = or i64 %y, %st
  %f = uitofp i64 %odd to double
  %e = trunc i64 %sh to i32
  %r = call double @llvm.amdgcn.ldexp.f64(double %f, i32 %e)
  ret double %r
}

define internal double @rg_s64_to_f64_odd(i64 %x) #1 {
  %neg = icmp slt i64 %x, 0
  %m = sub i64 0, %x
  %a = select i1 %neg, i64 %m, i64 %x
  %f = call double @rg_u64_to_f64_odd(i64 %a)
  %n = fneg double %f
  %r = select i1 %neg, double %n, double %f
  ret double %r
}

; tf32: the upper 19 bits of a single. Ties away from zero leaves the bits of a NaN, the others give NVIDIA's NaN.
define internal i32 @rg_tf32_rna(i32 %b) #1 {
  %e = and i32 %b, 2139095040
  %special = icmp eq i32 %e, 2139095040
  %t = add i32 %b, 4096
  %v = select i1 %special, i32 %b, i32 %t
  %r = and i32 %v, -8192
  ret i32 %r
}

define internal i32 @rg_tf32_rn(i32 %b) #1 {
  %m = and i32 %b, 2147483647
  %nan = icmp ugt i32 %m, 2139095040
  %s = lshr i32 %b, 13
  %l = and i32 %s, 1
  %h = add i32 %l, 4095
  %t = add i32 %b, %h
  %v = and i32 %t, -8192
  %r = select i1 %nan, i32 2147475456, i32 %v
  ret i32 %r
}

define internal i32 @rg_tf32_rz(i32 %b) #1 {
  %m = and i32 %b, 2147483647
  %nan = icmp ugt i32 %m, 2139095040
  %v = and i32 %b, -8192
  %r = select i1 %nan, i32 2147475456, i32 %v
  ret i32 %r
}

; Single to an 8-bit float with saturation to the largest finite number: %man bits of mantissa, exponents moved by
; %move = (127 - bias) << %man, subnormals below %least in steps of 1 / %steps.
define internal i32 @rg_fp8(float %x, i32 %man, i32 %move, float %least, float %steps, i32 %largest) #1 {
  %b = bitcast float %x to i32
  %a = and i32 %b, 2147483647
  %af = bitcast i32 %a to float
  %cut = sub i32 23, %man
  %ls = lshr i32 %a, %cut
  %l = and i32 %ls, 1
  %hb = shl i32 1, %cut
  %hh = lshr i32 %hb, 1
  %h1 = sub i32 %hh, 1
  %h = add i32 %h1, %l
  %t = add i32 %a, %h
  %n0 = lshr i32 %t, %cut
  %n = sub i32 %n0, %move
  %sf = fmul float %af, %steps
  %si = call float @llvm.rint.f32(float %sf)
  %sn = call i32 @llvm.fptosi.sat.i32.f32(float %si)
  %sub = fcmp olt float %af, %least
  %c = select i1 %sub, i32 %sn, i32 %n
  %m = call i32 @llvm.smin.i32(i32 %c, i32 %largest)
  %sg = lshr i32 %b, 24
  %s = and i32 %sg, 128
  %v = or i32 %m, %s
  %nan = fcmp uno float %x, %x
  %r = select i1 %nan, i32 127, i32 %v
  ret i32 %r
}

define internal i32 @rg_e4m3(float %x) #1 {
  %r = call i32 @rg_fp8(float %x, i32 3, i32 960, float 0x3F90000000000000, float 512.0, i32 126)
  ret i32 %r
}

define internal i32 @rg_e5m2(float %x) #1 {
  %r = call i32 @rg_fp8(float %x, i32 2, i32 448, float 0x3F10000000000000, float 65536.0, i32 123)
  ret i32 %r
}

define internal i16 @rg_from_e4m3(i32 %b) #1 {
  %m = and i32 %b, 127
  %u = shl i32 %m, 7
  %t = trunc i32 %u to i16
  %h = bitcast i16 %t to half
  %f = fpext half %h to float
  %g = fmul float %f, 256.0
  %k = fptrunc float %g to half
  %i = bitcast half %k to i16
  %s0 = and i32 %b, 128
  %s1 = shl i32 %s0, 8
  %s = trunc i32 %s1 to i16
  %v = or i16 %i, %s
  %nan = icmp eq i32 %m, 127
  %r = select i1 %nan, i16 32767, i16 %v
  ret i16 %r
}

define internal i16 @rg_from_e5m2(i32 %b) #1 {
  %u = shl i32 %b, 8
  %t = trunc i32 %u to i16
  %m = and i32 %b, 127
  %nan = icmp ugt i32 %m, 124
  %r = select i1 %nan, i16 32767, i16 %t
  ret i16 %r
}
