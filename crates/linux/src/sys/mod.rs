//! Calls whose soundness rests on more than the type system.
#![allow(unsafe_code, reason = "the one place for it; every block says why it is sound")]

pub(crate) mod addresses;
pub(crate) mod affinity;
pub(crate) mod blocks;
pub(crate) mod calls;
pub(crate) mod clock;
pub(crate) mod ethtool;
pub(crate) mod interface;
mod mapping;
pub(crate) mod message;
pub(crate) mod numbers;
mod option;
pub(crate) mod packet;
pub(crate) mod perf;
pub(crate) mod poll;
pub(crate) mod process;
pub(crate) mod ptp;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod timer;
pub(crate) mod translation;
pub(crate) mod tsc;
pub(crate) mod xdp;

use std::io;

/// What a call says that returns a number below 0 where it fails.
fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
