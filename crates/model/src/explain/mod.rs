//! What made packets late.
//!
//! [`periodic`] needs a capture alone and [`sampling`] says how well its packets saw a periodic cause.

pub mod periodic;
pub mod sampling;
