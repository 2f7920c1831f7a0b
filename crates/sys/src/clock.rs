//! The kernel's clocks, read through its vDSO: no system call, 25 ns where the clock source is the TSC.

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};

const SECOND_NS: i64 = 1_000_000_000;

/// Nanoseconds of `CLOCK_REALTIME`, the clock of the kernel's receive stamps.
#[inline]
pub fn realtime_ns() -> i64 {
    now_ns(libc::CLOCK_REALTIME)
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which never steps.
#[inline]
pub fn monotonic_ns() -> i64 {
    now_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_MONOTONIC_RAW`, which is not slewed.
#[inline]
pub fn monotonic_raw_ns() -> i64 {
    now_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Nanoseconds of CPU time that this process has taken.
pub fn process_cpu_ns() -> i64 {
    now_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Sleeps until this time of `CLOCK_MONOTONIC`. A signal ends it early.
pub fn sleep_until(monotonic_ns: i64) {
    // The only error is that a signal came.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(monotonic_ns));
}

/// A time as the kernel takes it.
pub(super) fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns.div_euclid(SECOND_NS), tv_nsec: ns.rem_euclid(SECOND_NS) }
}

/// The date in UTC, as `2026-11-21`.
#[must_use]
pub fn today() -> String {
    date(realtime_ns())
}

/// The date in UTC of a time of `CLOCK_REALTIME`, as `2026-11-21`.
#[must_use]
pub fn date(realtime_ns: i64) -> String {
    let (year, month, day) = civil(realtime_ns.div_euclid(86_400 * SECOND_NS));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar. Years begin in March
/// here, so that the leap day is the last one.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[inline]
fn now_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; these clocks exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * SECOND_NS + time.tv_nsec
}

/// `CLOCK_TAI` minus `CLOCK_REALTIME`: whole seconds, 0 if the kernel was not told.
pub fn tai_offset_ns() -> i64 {
    // The clocks are read one after the other, much less than half a second apart.
    let apart_ns = now_ns(libc::CLOCK_TAI) - realtime_ns();
    (apart_ns + SECOND_NS / 2).div_euclid(SECOND_NS) * SECOND_NS
}

/// Error bound of `CLOCK_REALTIME` against UTC; `None` if it is not synchronised (adjtimex(2)).
pub fn synchronized_within_ns() -> Option<u64> {
    // SAFETY: all-zero bits are a valid request, one that changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is valid for reading and writing.
    let answer = unsafe { libc::adjtimex(&raw mut state) };
    let kept = answer >= 0 && answer != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    // Microseconds.
    kept.then(|| (state.maxerror as u64).saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
        assert_eq!(civil(-1), (1969, 12, 31));
    }
}
