//! Round trips, probers and reflectors; and what interfaces really do, measured over a cable.
#![forbid(unsafe_code)]

pub mod departures;
#[cfg(test)]
#[path = "../../ports/tests/it/memory.rs"]
mod memory;
pub mod ping;
pub mod prove;
pub mod reflect;
pub mod resolve;
pub mod route;
#[cfg(test)]
#[path = "../../ports/tests/it/skip.rs"]
mod skip;
pub mod socket;
pub mod target;
