//! Kernel events, noise and clocks of this host.
#![forbid(unsafe_code)]

pub mod clock;
pub mod noise;
pub mod start;
pub mod trace;
