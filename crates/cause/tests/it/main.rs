//! Causes of late packets: what is put into captures and traces is found in them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod explain;
mod periodic;
mod periodic_bursts;
