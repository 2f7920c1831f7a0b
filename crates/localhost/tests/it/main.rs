//! Inspecting and tuning this host, through the public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod archive;
mod tune;
