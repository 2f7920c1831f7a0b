//! `tailtrim-agent` as a process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod audit;
mod errors;
mod escaped;
mod node;
mod noise;
