//! What touches the kernel, through its public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod analysis;
mod archive;
mod compressed;
mod formats;
mod memory;
mod ports;
mod skip;
mod socket;
mod source;
mod stretches;
mod trace;
mod traffic;
mod tune;
