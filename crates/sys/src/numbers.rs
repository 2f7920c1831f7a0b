//! Numbers in memory that a BPF program and this process both have: no call is needed to read one, so neither is a
//! privilege.

use super::mapping::Mapping;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

/// The value of a BPF array with one entry.
#[derive(Debug)]
pub struct SharedNumbers(Mapping);

impl SharedNumbers {
    /// So many numbers of 64 bits of a map that can be mapped (`BPF_F_MMAPABLE`, Linux 5.5).
    pub fn of(map: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        Mapping::of_file(map, count * 8, 0).map(Self)
    }

    /// Reads a number.
    pub fn get(&self, at: usize) -> u64 {
        self.0.double_word(at * 8).load(Ordering::Relaxed)
    }

    /// Writes a number.
    pub fn set(&self, at: usize, value: u64) {
        self.0.double_word(at * 8).store(value, Ordering::Relaxed);
    }
}
