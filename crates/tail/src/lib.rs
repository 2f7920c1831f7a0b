//! Two captures in, the latency of every packet and the statistics of their tail out, in the order of the data:
//!
//! 1. [`capture`] reads the records of an ingress and an egress capture,
//! 2. [`signature`] takes the bytes that identify a frame,
//! 3. [`matching`] pairs ingress with egress and counts what became of every packet,
//! 4. [`analysis`] drives these over two captures, and [`summary`] is its result;
//!    [`clock`] finds what the clocks of the taps did and corrects it, [`unmatched`] why packets are in no pair,
//!    [`directions`] which way they go, [`exchange`] makes two sides of one capture, requests and replies, [`groups`]
//!    captures of some packets, and [`lost`] finds the packets that were lost.
//!
//! Nothing in here makes a system call, reads a clock, starts a thread or uses `unsafe`: bytes and times
//! are passed in, so that everything can be tested anywhere.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod capture;
pub mod clock;
pub mod directions;
pub mod exchange;
pub mod groups;
pub mod lost;
pub mod matching;
pub mod missing;
pub mod signature;
pub mod summary;
pub mod times;
pub mod twice;
pub mod unmatched;
