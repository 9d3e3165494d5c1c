; Integer instructions that need more than a line.

define internal i64 @rg_mulhi_u64(i64 %a, i64 %b) #1 {
  %al = and i64 %a, 4294967295
  %ah = lshr i64 %a, 32
  %bl = and i64 %b, 4294967295
  %bh = lshr i64 %b, 32
  %ll = mul i64 %al, %bl
  %lh = mul i64 %al, %bh
  %hl = mul i64 %ah, %bl
  %hh = mul i64 %ah, %bh
  %c0 = lshr i64 %ll, 32
  %c1 = and i64 %lh, 4294967295
  %c2 = and i64 %hl, 4294967295
  %s0 = add i64 %c0, %c1
  %s1 = add i64 %s0, %c2
  %k = lshr i64 %s1, 32
  %t0 = lshr i64 %lh, 32
  %t1 = lshr i64 %hl, 32
  %u0 = add i64 %hh, %t0
  %u1 = add i64 %u0, %t1
  %r = add i64 %u1, %k
  ret i64 %r
}

define internal i64 @rg_mulhi_s64(i64 %a, i64 %b) #1 {
  %u = call i64 @rg_mulhi_u64(i64 %a, i64 %b)
  %sa = ashr i64 %a, 63
  %sb = ashr i64 %b, 63
  %x = and i64 %sa, %b
  %y = and i64 %sb, %a
  %v = sub i64 %u, %x
  %r = sub i64 %v, %y
  ret i64 %r
}

; prmt in its default mode: a nibble of %sel chooses a byte of {%b, %a}, its top bit the replicated sign of that byte.
define internal i32 @rg_prmt(i32 %a, i32 %b, i32 %sel) #1 {
  %n0 = and i32 %sel, 7
  %s1 = shl i32 %sel, 4
  %n1 = and i32 %s1, 1792
  %s2 = shl i32 %sel, 8
  %n2 = and i32 %s2, 458752
  %s3 = shl i32 %sel, 12
  %n3 = and i32 %s3, 117440512
  %m0 = or i32 %n0, %n1
  %m1 = or i32 %n2, %n3
  %m = or i32 %m0, %m1
  %v = call i32 @llvm.amdgcn.perm(i32 %b, i32 %a, i32 %m)
  ; One bit a byte where the sign is wanted, then 0xff there.
  %g0 = lshr i32 %sel, 3
  %w0 = and i32 %g0, 1
  %g1 = lshr i32 %sel, 7
  %x1 = and i32 %g1, 1
  %w1 = shl i32 %x1, 8
  %g2 = lshr i32 %sel, 11
  %x2 = and i32 %g2, 1
  %w2 = shl i32 %x2, 16
  %g3 = lshr i32 %sel, 15
  %x3 = and i32 %g3, 1
  %w3 = shl i32 %x3, 24
  %q0 = or i32 %w0, %w1
  %q1 = or i32 %w2, %w3
  %q = or i32 %q0, %q1
  %signs = mul i32 %q, 255
  %h0 = lshr i32 %v, 7
  %h = and i32 %h0, 16843009
  %fill = mul i32 %h, 255
  %keep = xor i32 %signs, -1
  %r0 = and i32 %v, %keep
  %r1 = and i32 %fill, %signs
  %r = or i32 %r0, %r1
  ret i32 %r
}

; fns: the position of the %off-th set bit of %mask from %base on, up or (negative) down; -1 with none.
define internal i32 @rg_fns(i32 %mask, i32 %base, i32 %off) #1 {
entry:
  %zero = icmp eq i32 %off, 0
  %down = icmp slt i32 %off, 0
  %neg = sub i32 0, %off
  %n = select i1 %down, i32 %neg, i32 %off
  %n1 = select i1 %zero, i32 0, i32 %n
  %count0 = sub i32 %n1, 1
  %inc = select i1 %down, i32 -1, i32 1
  br i1 %zero, label %here, label %loop
here:
  %in = icmp ult i32 %base, 32
  %bz = and i32 %base, 31
  %b0 = lshr i32 %mask, %bz
  %b1 = and i32 %b0, 1
  %set0 = icmp ne i32 %b1, 0
  %ok = and i1 %in, %set0
  %r0 = select i1 %ok, i32 %base, i32 -1
  ret i32 %r0
loop:
  %pos = phi i32 [ %base, %entry ], [ %pos2, %next ]
  %count = phi i32 [ %count0, %entry ], [ %count2, %next ]
  %inside = icmp ult i32 %pos, 32
  br i1 %inside, label %look, label %none
look:
  %s = lshr i32 %mask, %pos
  %bit = and i32 %s, 1
  %set = icmp ne i32 %bit, 0
  %last = icmp eq i32 %count, 0
  %found = and i1 %set, %last
  br i1 %found, label %out, label %next
next:
  %count2 = sub i32 %count, %bit
  %pos2 = add i32 %pos, %inc
  br label %loop
out:
  ret i32 %pos
none:
  ret i32 -1
}
