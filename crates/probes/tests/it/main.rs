//! Sockets and targets, through the public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[path = "../../../ports/tests/it/skip.rs"]
mod skip;
mod socket;
mod target;
