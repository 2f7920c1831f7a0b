//! Round trips: probers and reflectors.
#![forbid(unsafe_code)]

mod keeper;
#[cfg(test)]
#[path = "../../ports/tests/it/memory.rs"]
mod memory;
pub mod ping;
pub mod reflect;
#[cfg(test)]
#[path = "../../ports/tests/it/skip.rs"]
mod skip;
pub mod socket;
