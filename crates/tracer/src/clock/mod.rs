//! The time-stamp counter against the kernel's clocks: bracketed readings, and whether the counter can be used as a
//! clock.

mod comparing;
mod phc;
mod servos;
mod steps;

pub use comparing::{Comparing, ComparingError, Conversion, PairTold, Readable, StepOf};
pub use phc::Phc;
pub use servos::{Servo, servos};
pub use steps::{ClockStep, ClockSteps, Unstepped, realtime_offset_ns};

use std::fs;
use std::time::Duration;
use tailtrim_sys::{clock, tsc};
use tailtrim_trace::axis::{Axis, AxisError, Reading};

/// A clock of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_REALTIME`, that of the packets' stamps; NTP slews it, people set it.
    Realtime,
    /// `CLOCK_MONOTONIC_RAW`, which is not slewed.
    MonotonicRaw,
}

/// Clock of the events' stamps, before they are converted to the packets' clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// The time-stamp counter.
    Tsc,
    /// `CLOCK_MONOTONIC_RAW`, as a counter of ns.
    MonotonicRaw,
}

impl Counter {
    /// Its present value.
    #[must_use]
    pub fn now(self) -> u64 {
        match self {
            Self::Tsc => tsc::ticks(),
            Self::MonotonicRaw => clock::monotonic_raw_ns().cast_unsigned(),
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "x86-tsc",
            Self::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
        }
    }
}

/// `CLOCK_REALTIME` and `CLOCK_MONOTONIC`, read one after the other, in ns.
#[must_use]
pub fn of_the_kernel() -> (i64, i64) {
    (clock::realtime_ns(), clock::monotonic_ns())
}

/// Number of readings, of which the narrowest is taken: an interrupt may come between, but mostly does not.
const TRIES: usize = 200;

/// Reads the time-stamp counter, the clock and the counter again, several times, and keeps the narrowest.
#[must_use]
pub fn read(clock: Clock) -> Reading {
    read_by(Counter::Tsc, clock)
}

/// The same by another counter.
#[must_use]
pub fn read_by(counter: Counter, clock: Clock) -> Reading {
    let read = match clock {
        Clock::Realtime => clock::realtime_ns,
        Clock::MonotonicRaw => clock::monotonic_raw_ns,
    };
    let once = || {
        let before = counter.now();
        let ns = read();
        Reading::between(before, ns, counter.now())
    };
    let mut best = once();
    for _ in 1..TRIES {
        let next = once();
        if next.half_ticks < best.half_ticks {
            best = next;
        }
    }
    best
}

/// Frequency of the counter, from two readings 50 ms apart.
///
/// # Errors
/// It does not advance.
pub fn calibrate() -> Result<Axis, AxisError> {
    let before = read(Clock::MonotonicRaw);
    std::thread::sleep(Duration::from_millis(50));
    Axis::fit(before, read(Clock::MonotonicRaw), &[])
}

/// Why the counter cannot be used as a clock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CounterError {
    /// Another architecture.
    #[error(
        "this machine has no time-stamp counter; expected an x86-64 one: trace on the host under test itself"
    )]
    None,
    /// It stops or changes its pace.
    #[error(
        "the time-stamp counter is not invariant: /proc/cpuinfo lacks {0}; expected constant_tsc and nonstop_tsc: \
         enable the invariant TSC in the firmware or hypervisor (QEMU: -cpu host,+invtsc)"
    )]
    NotInvariant(String),
    /// The kernel found that CPUs disagree.
    #[error(
        "the kernel marked the time-stamp counter unstable: {0:?} are the clock sources in \
         /sys/devices/system/clocksource/clocksource0/available_clocksource; expected tsc among them: \
         look for \"Marking TSC unstable\" in dmesg"
    )]
    Unstable(String),
}

/// Checks whether ticks of all CPUs are the same time, by the kernel's own tests.
///
/// # Errors
/// They are not, or it is unknown.
pub fn check_counter() -> Result<(), CounterError> {
    if !tsc::EXISTS {
        return Err(CounterError::None);
    }
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let sources =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    judge(&cpuinfo, &sources.unwrap_or_default())
}

fn judge(cpuinfo: &str, sources: &str) -> Result<(), CounterError> {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or("");
    let has = |flag: &&&str| flags.split_ascii_whitespace().any(|word| word == **flag);
    let lacks: Vec<&str> =
        ["constant_tsc", "nonstop_tsc"].iter().filter(|flag| !has(flag)).copied().collect();
    if !lacks.is_empty() {
        return Err(CounterError::NotInvariant(lacks.join(" and ")));
    }
    if !sources.split_ascii_whitespace().any(|source| source == "tsc") {
        return Err(CounterError::Unstable(sources.trim().to_owned()));
    }
    Ok(())
}

/// CPU time that this process has taken, in ns.
#[must_use]
pub fn process_cpu_ns() -> i64 {
    clock::process_cpu_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_the_counter() {
        let good = "processor: 0\nflags\t: fpu constant_tsc nonstop_tsc\n";
        assert_eq!(judge(good, "tsc kvm-clock\n"), Ok(()));
        assert_eq!(judge(good, "kvm-clock\n"), Err(CounterError::Unstable("kvm-clock".into())));
        let slow = judge("flags : constant_tsc\n", "tsc");
        assert_eq!(slow, Err(CounterError::NotInvariant("nonstop_tsc".into())));
    }
}
