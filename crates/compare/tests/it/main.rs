//! Comparisons and plans, tried on devices whose truth is known.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod compare;
mod length;
mod processes;
