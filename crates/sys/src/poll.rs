//! Waiting for several descriptors at once.

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
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
    match poll(entries, Some(&timespec(timeout))) {
        Err(Errno::INTR) => Ok(0),
        other => Ok(other?),
    }
}

fn timespec(timeout: Duration) -> Timespec {
    Timespec {
        // 68 years stand for no limit.
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
        // Below a thousand million.
        tv_nsec: timeout.subsec_nanos() as _,
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

/// Thousands of descriptors that are waited for together, each by a number of the caller's.
pub struct Interest {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

/// Descriptors that one call tells at most; further ones come with the next.
const AT_ONCE: usize = 256;

impl Interest {
    /// Of no descriptors yet.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(AT_ONCE) })
    }

    /// Adds a descriptor. One that is closed leaves by itself.
    pub fn add(&self, file: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let number = epoll::EventData::new_u64(number);
        Ok(epoll::add(&self.epoll, file, number, epoll::EventFlags::IN)?)
    }

    /// Waits until descriptors have something to read or are in error, at most so many whole milliseconds as the time takes,
    /// and calls `take` with the number and the state of each; with none when the time is over or a signal came.
    pub fn wait(
        &mut self,
        timeout: Duration,
        mut take: impl FnMut(u64, Readiness),
    ) -> io::Result<()> {
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        // In whole milliseconds, rounded up: rustix asks for no finer ones.
        match epoll::wait(&self.epoll, spare, Some(&timespec(timeout))) {
            Err(Errno::INTR) => {}
            other => {
                other?;
            }
        }
        for event in &self.events {
            let (flags, data) = (event.flags, event.data);
            let readiness = Readiness {
                readable: flags.contains(epoll::EventFlags::IN),
                failed: flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP),
            };
            take(data.u64(), readiness);
        }
        Ok(())
    }
}
