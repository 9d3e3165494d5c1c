//! Fetching cache lines ahead of the store.
//!
//! What the host hands to a device (packets, arguments) lies in lines that the device had last. A store to such a line waits for it at the
//! next locked instruction, and a launch has several; fetched while something else is done, the line costs nothing.

/// The calling thread will write the cache line of `address` soon. Any address will do: nothing is accessed.
#[inline(always)]
pub fn for_write(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint without effect on memory, flags or registers; processors that do not know it take it for a no-op.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
