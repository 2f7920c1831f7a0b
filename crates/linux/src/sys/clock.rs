//! The kernel's clocks, read through its vDSO: no system call, 25 ns where the clock source is the TSC.

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};

const SECOND_NS: i64 = 1_000_000_000;

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

/// Nanoseconds of `CLOCK_MONOTONIC_RAW`, which is not slewed.
#[inline]
pub(crate) fn monotonic_raw_ns() -> i64 {
    now_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Nanoseconds of CPU time that this process has taken.
pub(crate) fn process_cpu_ns() -> i64 {
    now_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Sleeps until this time of `CLOCK_MONOTONIC`. A signal ends it early.
pub(crate) fn sleep_until(monotonic_ns: i64) {
    // It has nothing else to say.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(monotonic_ns));
}

/// A time as the kernel takes it.
pub(super) fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns.div_euclid(SECOND_NS), tv_nsec: ns.rem_euclid(SECOND_NS) }
}

#[inline]
fn now_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; these clocks exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * SECOND_NS + time.tv_nsec
}

/// `CLOCK_TAI` minus `CLOCK_REALTIME`: whole seconds, 0 if the kernel was not told.
pub(crate) fn tai_offset_ns() -> i64 {
    // The clocks are read one after the other, much less than half a second apart.
    let apart_ns = now_ns(libc::CLOCK_TAI) - realtime_ns();
    (apart_ns + SECOND_NS / 2).div_euclid(SECOND_NS) * SECOND_NS
}

/// How far `CLOCK_REALTIME` may be from UTC; `None` if it is not synchronised (adjtimex(2)).
pub(crate) fn synchronized_within_ns() -> Option<u64> {
    // SAFETY: all-zero bits are a valid request, one that changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is valid for reading and writing.
    let answer = unsafe { libc::adjtimex(&raw mut state) };
    let kept = answer >= 0 && answer != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    // Microseconds.
    kept.then(|| (state.maxerror as u64).saturating_mul(1_000))
}
