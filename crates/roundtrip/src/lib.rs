//! Round trips: sending probes, matching replies, and reflecting.
//!
//! 1. [`reflect::Reflector`]: a request in, its reply in the same bytes, or the reason why there is none; [`frame`] for
//!    reflectors that see whole frames,
//! 2. [`Prober`]: a probe out, and its reply read,
//! 3. [`Session`]: replies matched to probes, everything counted; [`Split`]: the parts of a round trip.
//!
//! The packets themselves are in [`tailtrim_wire`]. Nothing in here panics on bytes from the network, and a reply has
//! as many bytes as its request, by construction.
#![forbid(unsafe_code)]

pub mod frame;
mod outcome;
mod prober;
pub mod reflect;
mod session;
mod split;

pub use outcome::{Counts, Ending, FollowUps, LostWays, Obstacle, Probes, Replies};
pub use prober::{Answer, NoAnswer, Prober, Protocol};
pub use session::{Kind, Passed, Patience, Reply, RoundTrip, Session};
pub use split::{OneWay, Part, Parts, Split, StampLevel, Stamps};
