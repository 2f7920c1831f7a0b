//! Timers that expire without a waiting thread.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Expires once, on the CPU on which it was made, unless that one is idle then.
#[derive(Debug)]
pub(crate) struct Timer(#[expect(dead_code, reason = "open is what it is for")] OwnedFd);

impl Timer {
    /// At this time of `CLOCK_MONOTONIC`.
    pub(crate) fn at(due_ns: i64) -> io::Result<Self> {
        // SAFETY: the call takes numbers only.
        let file = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let due =
            libc::timespec { tv_sec: due_ns / 1_000_000_000, tv_nsec: due_ns % 1_000_000_000 };
        let when = libc::itimerspec { it_interval: never, it_value: due };
        // SAFETY: the descriptor is a timer's; the kernel reads the structure, and writes to nothing.
        let result = unsafe {
            libc::timerfd_settime(
                file.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const when,
                std::ptr::null_mut(),
            )
        };
        if result == 0 { Ok(Self(file)) } else { Err(io::Error::last_os_error()) }
    }
}
