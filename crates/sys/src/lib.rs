//! Kernel calls, kernel clocks and memory shared with the kernel: the only crate with unsafe code.
#![allow(unsafe_code, reason = "the one place for it; every block says why it is sound")]

pub mod address;
pub mod addresses;
pub mod affinity;
pub mod blocks;
pub mod bpf;
pub mod calls;
pub mod capabilities;
pub mod clock;
pub mod control;
pub mod ethtool;
pub mod files;
pub mod interface;
mod mapping;
pub mod message;
pub mod netlink;
pub mod notify;
pub mod numbers;
mod option;
pub mod packet;
pub mod perf;
pub mod placement;
pub mod poll;
pub mod process;
pub mod ptp;
pub mod qdisc;
pub mod quota;
pub mod ring;
pub mod socket;
pub mod terminal;
pub mod timer;
pub mod translation;
pub mod tsc;
pub mod xdp;

use std::io;

/// Result of a call that returns a number below 0 where it fails.
fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
