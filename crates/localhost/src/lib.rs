//! The host that this process runs on: inspected, tuned, and held for a controller.
#![forbid(unsafe_code)]

pub mod hold;
pub mod inspect;
pub mod tune;
