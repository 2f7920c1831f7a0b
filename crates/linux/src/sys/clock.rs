//! The kernel's clocks, read through its vDSO: no system call, 25 ns where the clock source is the TSC.

/// Nanoseconds of `CLOCK_REALTIME`, the clock of the kernel's receive stamps.
#[inline]
pub(crate) fn realtime_ns() -> i64 {
    now_ns(libc::CLOCK_REALTIME)
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which never steps.
#[inline]
pub(crate) fn monotonic_ns() -> i64 {
    now_ns(libc::CLOCK_MONOTONIC)
}

#[inline]
fn now_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; both clocks exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
