//! Audits, lints and plans of hosts that are made of text.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod audit;
mod lint;
mod tune;
