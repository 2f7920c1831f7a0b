//! Everything of tailtrim that touches the kernel. `unsafe` stands in [`sys`] alone.

pub mod source;
mod sys;
