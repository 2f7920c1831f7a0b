//! Ports and traffic, through the public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod memory;
mod ports;
mod skip;
mod traffic;
