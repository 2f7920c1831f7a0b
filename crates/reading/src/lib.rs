//! Captures from files and pipes, and their analysis on several cores.
#![forbid(unsafe_code)]

pub mod analysis;
mod cores;
pub mod groups;
pub mod source;
