//! Memory whose translations have to go from every CPU that runs this process, and barriers on those.

use super::mapping::Mapping;
use rustix::mm::MprotectFlags;
use rustix::thread::{MembarrierCommand, membarrier};
use std::io;

/// Pages of 4 KiB that are there and writable.
#[derive(Debug)]
pub struct Pages(Mapping);

impl Pages {
    /// New ones. Dropping them gives them back.
    pub fn new(count: usize) -> io::Result<Self> {
        Ok(Self(Mapping::anonymous(count * 4096)?))
    }

    /// Takes the right to write away.
    pub fn protect(&mut self) -> io::Result<()> {
        // SAFETY: these pages are written to below alone, after the right has been given back.
        unsafe { self.0.allow(MprotectFlags::READ) }
    }

    /// Gives it back, and writes, so that the right is in use again.
    pub fn release(&mut self) -> io::Result<()> {
        // SAFETY: everything is allowed.
        unsafe { self.0.allow(MprotectFlags::READ | MprotectFlags::WRITE) }?;
        for page in (0..self.0.len()).step_by(4096) {
            self.0.word(page).store(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Announces that this process will ask for barriers.
pub fn register_barrier() -> io::Result<()> {
    Ok(membarrier(MembarrierCommand::RegisterPrivateExpedited)?)
}

/// Has every CPU that runs this process pass a memory barrier.
pub fn barrier() -> io::Result<()> {
    Ok(membarrier(MembarrierCommand::PrivateExpedited)?)
}
