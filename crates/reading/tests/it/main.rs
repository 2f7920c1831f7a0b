//! Captures and their analysis, through the public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod analysis;
mod compressed;
mod converted;
mod directions;
mod few;
mod formats;
mod frames;
mod merged;
mod mirrored;
mod missing;
mod pipes;
mod repeated;
mod source;
mod stretches;
mod twice;
mod unmatched;
