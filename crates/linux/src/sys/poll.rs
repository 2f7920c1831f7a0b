//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Waits until one of the descriptors has something to read or is in error, at most so long. Returns
/// which; none when the time is over or a signal came.
pub(crate) fn readable<const N: usize>(
    files: [BorrowedFd<'_>; N],
    timeout: Duration,
) -> io::Result<[Readiness; N]> {
    let mut entries =
        files.map(|file| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let timeout = libc::timespec {
        // 68 years are for ever.
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
        // Below a thousand million.
        tv_nsec: timeout.subsec_nanos() as _,
    };
    // SAFETY: the entries are valid for reading and writing and as many as said; the time is valid for
    // reading; no signal mask is given.
    let result = unsafe {
        libc::ppoll(entries.as_mut_ptr(), N as libc::nfds_t, &raw const timeout, std::ptr::null())
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        return Ok([Readiness::default(); N]);
    }
    Ok(entries.map(|entry| Readiness {
        readable: entry.revents & libc::POLLIN != 0,
        failed: entry.revents & (libc::POLLERR | libc::POLLNVAL) != 0,
    }))
}

/// Waits until one of any number of descriptors has something to read or is in error, at most so long.
/// Returns whether one has.
pub(crate) fn any(files: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
    let mut entries: Vec<libc::pollfd> = files
        .iter()
        .map(|file| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: timeout.subsec_nanos() as _,
    };
    // SAFETY: the entries are valid for reading and writing and as many as said; the time is valid for
    // reading; no signal mask is given.
    let result = unsafe {
        libc::ppoll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            &raw const timeout,
            std::ptr::null(),
        )
    };
    if result >= 0 {
        return Ok(result > 0);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        error => Err(error),
    }
}

/// What a descriptor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Readiness {
    pub(crate) readable: bool,
    pub(crate) failed: bool,
}
