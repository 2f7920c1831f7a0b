//! Captures from files and pipes, and their analysis on several cores.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod converted;
mod cores;
pub mod groups;
pub mod source;
