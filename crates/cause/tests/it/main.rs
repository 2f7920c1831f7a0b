//! Causes of late packets: what is put into captures and traces is found in them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod clocks;
mod explain;
mod periodic;
mod periodic_bursts;
#[path = "../../examples/random/mod.rs"]
mod random;
mod rows;
#[path = "../../examples/worlds/mod.rs"]
#[allow(dead_code, reason = "an example reads more of it")]
mod worlds;
