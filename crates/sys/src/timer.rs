//! Timers that expire without a waiting thread.

use super::clock::timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;

/// Expires once, on the CPU on which it was made, unless that one is idle then.
#[derive(Debug)]
pub struct Timer(#[expect(dead_code, reason = "open is what it is for")] OwnedFd);

impl Timer {
    /// At this time of `CLOCK_MONOTONIC`.
    pub fn at(due_ns: i64) -> io::Result<Self> {
        let file = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let when = Itimerspec { it_interval: timespec(0), it_value: timespec(due_ns) };
        timerfd_settime(&file, TimerfdTimerFlags::ABSTIME, &when)?;
        Ok(Self(file))
    }
}
