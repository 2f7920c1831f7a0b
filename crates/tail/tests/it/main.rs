//! Captures, signatures, the matcher and whole analyses, through their public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod alone;
mod analysis;
mod capture;
mod exchange;
mod label;
mod matching;
mod signature;
mod support;
