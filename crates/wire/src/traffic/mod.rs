//! Traffic as it is meant to be: when probes depart, what they look like, how long a device of known
//! delay keeps them.

mod delay;
mod disturbance;
mod frame;
pub mod phases;
mod probe;
mod rate;
mod schedule;
mod sizes;

pub use delay::{Delay, DelayError, LONGEST_NS};
pub use disturbance::{Disturbance, DisturbanceError, Disturbing};
pub use frame::{Addressing, Builder, FrameError, Ip};
pub use probe::{PROBE_LEN, Probe};
pub use rate::{Fraction, Rate, RateError};
pub use schedule::{Pattern, PatternError, Schedule, golden_place};
pub use sizes::{Sizes, SizesError};

/// Bytes that a frame takes on the wire beside those handed to the port: preamble and start delimiter (8),
/// FCS (4) and the gap between frames (12).
pub const WIRE_OVERHEAD: u64 = 24;

/// Bytes of the frame check sequence, which `frame_bytes` counts as the papers and RFC 2544 do, and which
/// the port adds.
pub const FCS_LEN: usize = 4;

/// Nanoseconds of a second.
const NS_PER_S: u64 = 1_000_000_000;
