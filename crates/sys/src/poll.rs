//! Waiting for several descriptors at once.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Waits until one of the descriptors has something to read or is in error, at most so long. Returns the state of each;
/// nothing is set when the time is over or a signal came.
pub fn readable<const N: usize>(
    files: [BorrowedFd<'_>; N],
    timeout: Duration,
) -> io::Result<[Readiness; N]> {
    let mut entries = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
    wait(&mut entries, timeout)?;
    Ok(entries.map(|entry| Readiness {
        readable: entry.revents().contains(PollFlags::IN),
        failed: entry.revents().intersects(PollFlags::ERR | PollFlags::NVAL),
    }))
}

/// Waits until one of any number of descriptors has something to read or is in error, at most so long.
/// Returns whether one has.
pub fn any(files: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
    let mut entries: Vec<PollFd<'_>> =
        files.iter().map(|file| PollFd::from_borrowed_fd(*file, PollFlags::IN)).collect();
    Ok(wait(&mut entries, timeout)? > 0)
}

/// Number of descriptors that are ready; 0 when the time is over or a signal came.
fn wait(entries: &mut [PollFd<'_>], timeout: Duration) -> io::Result<usize> {
    let timeout = Timespec {
        // 68 years stand for no limit.
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
        // Below a thousand million.
        tv_nsec: timeout.subsec_nanos() as _,
    };
    match poll(entries, Some(&timeout)) {
        Err(Errno::INTR) => Ok(0),
        other => Ok(other?),
    }
}

/// State of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Readiness {
    /// Something can be read.
    pub readable: bool,
    /// It is in error, or no descriptor.
    pub failed: bool,
}
