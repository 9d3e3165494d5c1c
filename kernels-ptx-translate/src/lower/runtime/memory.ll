
; Synchronisation objects in memory.

define internal i64 @rg_mbarrier_arrive_p3(ptr addrspace(3) %p, i64 %take) #1 {
entry:
  %first = load atomic i64, ptr addrspace(3) %p syncscope("workgroup") monotonic, align 8
  br label %loop
loop:
  %old = phi i64 [ %first, %entry ], [ %found, %loop ]
  %less = sub i64 %old, %take
  %pend = and i64 %less, 4294901760
  %over = icmp eq i64 %pend, 0
  %exp = lshr i64 %less, 16
  %refill = and i64 %exp, 4294901760
  %n0 = add i64 %less, 281474976710656
  %n1 = or i64 %n0, %refill
  %new = select i1 %over, i64 %n1, i64 %less
  %x = cmpxchg ptr addrspace(3) %p, i64 %old, i64 %new syncscope("workgroup") acq_rel monotonic
  %found = extractvalue { i64, i1 } %x, 0
  %ok = extractvalue { i64, i1 } %x, 1
  br i1 %ok, label %out, label %loop
out:
  ret i64 %old
}

define internal i64 @rg_mbarrier_arrive_p0(ptr %p, i64 %take) #1 {
  %s = addrspacecast ptr %p to ptr addrspace(3)
  %r = call i64 @rg_mbarrier_arrive_p3(ptr addrspace(3) %s, i64 %take)
  ret i64 %r
}
