//! Everything of tailtrim that touches the kernel. `unsafe` stands in [`sys`] alone.

// Files of the tests in tests/it, which unit tests use, too, know this crate by its name.
#[cfg(test)]
extern crate self as tailtrim_linux;

pub mod analysis;
mod bpf;
mod capabilities;
pub mod capture;
pub mod clock;
mod cores;
pub mod disturb;
pub mod forward;
pub mod generate;
pub mod hold;
pub mod host;
pub mod inspect;
mod keeper;
mod last;
#[cfg(test)]
#[path = "../tests/it/memory.rs"]
mod memory;
pub mod noise;
pub mod ping;
pub mod port;
mod process;
mod quota;
pub mod reflect;
#[cfg(test)]
#[path = "../tests/it/skip.rs"]
mod skip;
pub mod socket;
pub mod source;
mod start;
mod surroundings;
mod sys;
pub mod trace;
pub mod tune;
mod work;

pub use surroundings::{exchange, terminal_columns, today};
