; What CUDA's device runtime offers to kernels. The layouts of ring and heap are drawn in protocol.rs.

; printf. The sizes of the arguments follow from the format: 4 bytes for int, 8 for long, pointers and double, each at
; its natural alignment in the buffer that the caller packed. Returns the number of arguments, -1 without a ring or room.
define internal i32 @rg_vprintf(i64 %format, i64 %values, i64 %ring) #1 {
entry:
  %at = alloca i64, align 8, addrspace(5)
  %size = alloca i64, align 8, addrspace(5)
  %count = alloca i32, align 4, addrspace(5)
  %longs = alloca i32, align 4, addrspace(5)
  %copied = alloca i64, align 8, addrspace(5)
  %f = inttoptr i64 %format to ptr
  %args = inttoptr i64 %values to ptr
  %buf = inttoptr i64 %ring to ptr addrspace(1)
  store i64 0, ptr addrspace(5) %at, align 8
  store i64 0, ptr addrspace(5) %size, align 8
  store i32 0, ptr addrspace(5) %count, align 4
  %none = icmp eq i64 %ring, 0
  br i1 %none, label %full, label %text
text:
  %a0 = load i64, ptr addrspace(5) %at, align 8
  %p0 = getelementptr i8, ptr %f, i64 %a0
  %c0 = load i8, ptr %p0, align 1
  %a1 = add i64 %a0, 1
  store i64 %a1, ptr addrspace(5) %at, align 8
  store i32 0, ptr addrspace(5) %longs, align 4
  switch i8 %c0, label %text [
    i8 0, label %reserve
    i8 37, label %spec
  ]
spec:
  %a2 = load i64, ptr addrspace(5) %at, align 8
  %p2 = getelementptr i8, ptr %f, i64 %a2
  %c2 = load i8, ptr %p2, align 1
  %a3 = add i64 %a2, 1
  switch i8 %c2, label %skip [
    i8 0, label %reserve
    i8 37, label %percent
    i8 42, label %star
    i8 108, label %long
    i8 106, label %long
    i8 122, label %long
    i8 116, label %long
    i8 100, label %int
    i8 105, label %int
    i8 117, label %int
    i8 111, label %int
    i8 120, label %int
    i8 88, label %int
    i8 99, label %int
    i8 102, label %wide
    i8 70, label %wide
    i8 101, label %wide
    i8 69, label %wide
    i8 103, label %wide
    i8 71, label %wide
    i8 97, label %wide
    i8 65, label %wide
    i8 115, label %wide
    i8 112, label %wide
    i8 110, label %wide
  ]
skip:
  store i64 %a3, ptr addrspace(5) %at, align 8
  br label %spec
percent:
  store i64 %a3, ptr addrspace(5) %at, align 8
  br label %text
star:
  store i64 %a3, ptr addrspace(5) %at, align 8
  %s0 = load i64, ptr addrspace(5) %size, align 8
  %s1 = add i64 %s0, 4
  store i64 %s1, ptr addrspace(5) %size, align 8
  br label %spec
long:
  store i64 %a3, ptr addrspace(5) %at, align 8
  store i32 1, ptr addrspace(5) %longs, align 4
  br label %spec
int:
  %l = load i32, ptr addrspace(5) %longs, align 4
  %isl = icmp ne i32 %l, 0
  br i1 %isl, label %wide, label %word
word:
  %s2 = load i64, ptr addrspace(5) %size, align 8
  %s3 = add i64 %s2, 4
  br label %next
wide:
  %s4 = load i64, ptr addrspace(5) %size, align 8
  %s5 = add i64 %s4, 7
  %s6 = and i64 %s5, -8
  %s7 = add i64 %s6, 8
  br label %next
next:
  %s = phi i64 [ %s3, %word ], [ %s7, %wide ]
  store i64 %s, ptr addrspace(5) %size, align 8
  store i64 %a3, ptr addrspace(5) %at, align 8
  %n0 = load i32, ptr addrspace(5) %count, align 4
  %n1 = add i32 %n0, 1
  store i32 %n1, ptr addrspace(5) %count, align 4
  br label %text
reserve:
  %bytes = load i64, ptr addrspace(5) %size, align 8
  %b7 = add i64 %bytes, 23
  %total = and i64 %b7, -8
  %rec = call ptr addrspace(1) @rg_ring_reserve(ptr addrspace(1) %buf, i64 %total)
  %over = icmp eq ptr addrspace(1) %rec, null
  br i1 %over, label %full, label %fill
fill:
  %rf = getelementptr i8, ptr addrspace(1) %rec, i64 8
  store i64 %format, ptr addrspace(1) %rf, align 8
  %ra = getelementptr i8, ptr addrspace(1) %rec, i64 16
  store i64 0, ptr addrspace(5) %copied, align 8
  br label %copy
copy:
  %i = load i64, ptr addrspace(5) %copied, align 8
  %more = icmp ult i64 %i, %bytes
  br i1 %more, label %one, label %done
one:
  %sp = getelementptr i8, ptr %args, i64 %i
  %w = load i32, ptr %sp, align 4
  %dp = getelementptr i8, ptr addrspace(1) %ra, i64 %i
  store i32 %w, ptr addrspace(1) %dp, align 4
  %i4 = add i64 %i, 4
  store i64 %i4, ptr addrspace(5) %copied, align 8
  br label %copy
done:
  store atomic i64 %total, ptr addrspace(1) %rec release, align 8
  %n = load i32, ptr addrspace(5) %count, align 4
  ret i32 %n
full:
  ret i32 -1
}

; Room for a record of %total bytes, or null, counted as dropped.
define internal ptr addrspace(1) @rg_ring_reserve(ptr addrspace(1) %ring, i64 %total) #1 {
entry:
  %capp = getelementptr i8, ptr addrspace(1) %ring, i64 8
  %cap = load i64, ptr addrspace(1) %capp, align 8
  %off = atomicrmw add ptr addrspace(1) %ring, i64 %total monotonic, align 8
  %end = add i64 %off, %total
  %fit = icmp ule i64 %end, %cap
  br i1 %fit, label %ok, label %full
full:
  %dp = getelementptr i8, ptr addrspace(1) %ring, i64 16
  %x = atomicrmw add ptr addrspace(1) %dp, i64 1 monotonic, align 8
  br label %out
ok:
  %o = add i64 %off, 24
  %r = getelementptr i8, ptr addrspace(1) %ring, i64 %o
  br label %out
out:
  %v = phi ptr addrspace(1) [ null, %full ], [ %r, %ok ]
  ret ptr addrspace(1) %v
}

; assert: a record without a format, then the trap.
define internal void @rg_assertfail(i64 %message, i64 %file, i32 %line, i64 %function, i64 %ring, i64 %block, i32 %bz, i64 %thread, i32 %tz) #1 {
entry:
  %none = icmp eq i64 %ring, 0
  br i1 %none, label %stop, label %write
write:
  %buf = inttoptr i64 %ring to ptr addrspace(1)
  %rec = call ptr addrspace(1) @rg_ring_reserve(ptr addrspace(1) %buf, i64 72)
  %over = icmp eq ptr addrspace(1) %rec, null
  br i1 %over, label %stop, label %fill
fill:
  %p1 = getelementptr i8, ptr addrspace(1) %rec, i64 8
  store i64 0, ptr addrspace(1) %p1, align 8
  %p2 = getelementptr i8, ptr addrspace(1) %rec, i64 16
  store i64 %message, ptr addrspace(1) %p2, align 8
  %p3 = getelementptr i8, ptr addrspace(1) %rec, i64 24
  store i64 %file, ptr addrspace(1) %p3, align 8
  %p4 = getelementptr i8, ptr addrspace(1) %rec, i64 32
  store i64 %function, ptr addrspace(1) %p4, align 8
  %p5 = getelementptr i8, ptr addrspace(1) %rec, i64 40
  store i64 %block, ptr addrspace(1) %p5, align 8
  %p6 = getelementptr i8, ptr addrspace(1) %rec, i64 48
  store i32 %bz, ptr addrspace(1) %p6, align 4
  %p7 = getelementptr i8, ptr addrspace(1) %rec, i64 52
  store i64 %thread, ptr addrspace(1) %p7, align 4
  %p8 = getelementptr i8, ptr addrspace(1) %rec, i64 60
  store i32 %tz, ptr addrspace(1) %p8, align 4
  %p9 = getelementptr i8, ptr addrspace(1) %rec, i64 64
  store i32 %line, ptr addrspace(1) %p9, align 4
  store atomic i64 72, ptr addrspace(1) %rec release, align 8
  br label %stop
stop:
  fence seq_cst
  call void @llvm.trap()
  ret void
}

; malloc: blocks of a power of two behind a header of 16 bytes {next, class}; freed ones wait on their class's stack.
; Lock-free, so lanes of a wave cannot wait for each other.
define internal i64 @rg_malloc(i64 %n, i64 %heap) #1 {
entry:
  %h = inttoptr i64 %heap to ptr addrspace(1)
  %none = icmp eq i64 %heap, 0
  %zero = icmp eq i64 %n, 0
  %huge = icmp ugt i64 %n, 1073741824
  %b0 = or i1 %none, %zero
  %b1 = or i1 %b0, %huge
  br i1 %b1, label %null, label %go
go:
  %m = sub i64 %n, 1
  %m16 = or i64 %m, 15
  %mt = trunc i64 %m16 to i32
  %lz = call i32 @llvm.ctlz.i32(i32 %mt, i1 false)
  %cls = sub i32 32, %lz
  %c64 = zext i32 %cls to i64
  %sz0 = shl i64 1, %c64
  %sz = add i64 %sz0, 16
  %c8 = shl i64 %c64, 3
  %c8h = add i64 %c8, 16
  %hp = getelementptr i8, ptr addrspace(1) %h, i64 %c8h
  %h0 = load atomic i64, ptr addrspace(1) %hp syncscope("agent") acquire, align 8
  br label %pop
pop:
  %top = phi i64 [ %h0, %go ], [ %found, %try ]
  %lo = and i64 %top, 1099511627775
  %empty = icmp eq i64 %lo, 0
  br i1 %empty, label %bump0, label %try
try:
  %b16 = shl i64 %lo, 4
  %bp = getelementptr i8, ptr addrspace(1) %h, i64 %b16
  %nx = load atomic i64, ptr addrspace(1) %bp syncscope("agent") monotonic, align 8
  %tag = and i64 %top, -1099511627776
  %tag2 = add i64 %tag, 1099511627776
  %nh = or i64 %tag2, %nx
  %cx = cmpxchg ptr addrspace(1) %hp, i64 %top, i64 %nh syncscope("agent") acq_rel acquire
  %found = extractvalue { i64, i1 } %cx, 0
  %ok = extractvalue { i64, i1 } %cx, 1
  br i1 %ok, label %got, label %pop
bump0:
  %cp = getelementptr i8, ptr addrspace(1) %h, i64 8
  %cap = load i64, ptr addrspace(1) %cp, align 8
  %brk0 = load atomic i64, ptr addrspace(1) %h syncscope("agent") monotonic, align 8
  br label %bump
bump:
  %brk = phi i64 [ %brk0, %bump0 ], [ %brk1, %grow ]
  %end = add i64 %brk, %sz
  %fit = icmp ule i64 %end, %cap
  br i1 %fit, label %grow, label %null
grow:
  %gx = cmpxchg ptr addrspace(1) %h, i64 %brk, i64 %end syncscope("agent") monotonic monotonic
  %brk1 = extractvalue { i64, i1 } %gx, 0
  %gok = extractvalue { i64, i1 } %gx, 1
  br i1 %gok, label %new, label %bump
new:
  %np = getelementptr i8, ptr addrspace(1) %h, i64 %brk
  %clp = getelementptr i8, ptr addrspace(1) %np, i64 8
  store i64 %c64, ptr addrspace(1) %clp, align 8
  br label %got
got:
  %blk = phi ptr addrspace(1) [ %bp, %try ], [ %np, %new ]
  %res = getelementptr i8, ptr addrspace(1) %blk, i64 16
  %ri = ptrtoint ptr addrspace(1) %res to i64
  ret i64 %ri
null:
  ret i64 0
}

define internal void @rg_free(i64 %pointer, i64 %heap) #1 {
entry:
  %h = inttoptr i64 %heap to ptr addrspace(1)
  %z = icmp eq i64 %pointer, 0
  %none = icmp eq i64 %heap, 0
  %no = or i1 %z, %none
  br i1 %no, label %out, label %go
go:
  %pi = sub i64 %pointer, 16
  %blk = inttoptr i64 %pi to ptr addrspace(1)
  %clp = getelementptr i8, ptr addrspace(1) %blk, i64 8
  %c64 = load i64, ptr addrspace(1) %clp, align 8
  %c8 = shl i64 %c64, 3
  %c8h = add i64 %c8, 16
  %hp = getelementptr i8, ptr addrspace(1) %h, i64 %c8h
  %df = sub i64 %pi, %heap
  %ix = lshr i64 %df, 4
  %h0 = load atomic i64, ptr addrspace(1) %hp syncscope("agent") monotonic, align 8
  br label %push
push:
  %top = phi i64 [ %h0, %go ], [ %found, %push ]
  %lo = and i64 %top, 1099511627775
  store atomic i64 %lo, ptr addrspace(1) %blk syncscope("agent") monotonic, align 8
  %tag = and i64 %top, -1099511627776
  %tag2 = add i64 %tag, 1099511627776
  %nh = or i64 %tag2, %ix
  %cx = cmpxchg ptr addrspace(1) %hp, i64 %top, i64 %nh syncscope("agent") acq_rel monotonic
  %found = extractvalue { i64, i1 } %cx, 0
  %ok = extractvalue { i64, i1 } %cx, 1
  br i1 %ok, label %out, label %push
out:
  ret void
}
