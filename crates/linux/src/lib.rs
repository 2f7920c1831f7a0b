//! Everything of tailtrim that touches the kernel. `unsafe` stands in [`sys`] alone.

pub mod capture;
pub mod forward;
pub mod generate;
pub mod host;
pub mod port;
pub mod source;
mod sys;
pub mod tune;
