//! Calls whose soundness rests on more than the type system.
#![allow(unsafe_code, reason = "the one place for it; every block says why it is sound")]

pub(crate) mod addresses;
pub(crate) mod affinity;
pub(crate) mod blocks;
pub(crate) mod bpf;
pub(crate) mod clock;
pub(crate) mod ethtool;
pub(crate) mod interface;
pub(crate) mod map;
mod mapping;
pub(crate) mod packet;
pub(crate) mod perf;
pub(crate) mod poll;
pub(crate) mod process;
pub(crate) mod ptp;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod terminal;
pub(crate) mod timer;
pub(crate) mod translation;
pub(crate) mod tsc;
pub(crate) mod xdp;
