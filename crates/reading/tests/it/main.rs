//! Captures and their analysis, through the public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod analysis;
mod compressed;
mod formats;
mod source;
mod stretches;
