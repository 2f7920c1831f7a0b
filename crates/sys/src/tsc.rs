//! The time-stamp counter.

/// Whether machines of this kind have one.
pub const EXISTS: bool = cfg!(target_arch = "x86_64");

/// The counter, read when everything before is done: the kernel's `x86-tsc` trace clock reads it so, too.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: SSE2 and the counter are part of every x86-64; user space may read it unless a process forbids
    // it to itself (PR_SET_TSC), which this one does not.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Where there is none, this is constant: callers check [`EXISTS`] first.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn ticks() -> u64 {
    0
}
