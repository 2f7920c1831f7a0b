//! Clocks of the taps: findings in what two captures say about them, with no other reference.
//!
//! Stamps of two clocks give `latency + difference of the clocks`. The latency has a lower bound that stays, the smallest
//! time that the way takes, and excess above it that comes and goes. So what the *lower [envelope](envelope)* of latency
//! over time does, the clocks do, or the way changed. [`fit`] draws the pieces of lines below it, [`faults`] says which of
//! them no queue explains.

mod batched;
mod correction;
pub(crate) mod envelope;
pub(crate) mod faults;
mod fit;
mod levels;
mod sampled;
#[cfg(test)]
mod simulated;
pub(crate) mod stamps;
pub(crate) mod told;
pub(crate) mod words;

pub use batched::BothBatched;
pub use correction::{ClockFit, CorrectionPiece, corrected};
pub(crate) use fit::STEEPEST;
pub(crate) use levels::BACK_NS;
pub use levels::{apart, clock_fit};
pub use sampled::SampledSide;
pub(crate) use sampled::{All, Joined, join, join_all};
pub use told::of_directions;
