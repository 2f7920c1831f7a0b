//! Calls whose soundness rests on more than the type system.
#![allow(unsafe_code, reason = "the one place for it; every block says why it is sound")]

pub(crate) mod affinity;
pub(crate) mod clock;
pub(crate) mod map;
pub(crate) mod packet;
pub(crate) mod process;
