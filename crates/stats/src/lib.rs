//! The statistics of the tail, in the order in which the data meets them.
//!
//! 1. Every matched packet's latency is counted in a [`Histogram`] (exact, order-free), in
//!    [`BlockCounts`] (by arrival order, to see whether the tail comes in clusters) and offered to
//!    [`Worst`] (the packets worth showing one by one).
//! 2. The frozen histogram, [`Ranked`], answers quantiles by nearest rank for an exact
//!    [`Probability`].
//! 3. [`ranks`] says between which two ranks the true quantile lies, given the
//!    [design effect](BlockCounts::design_effect) of the clusters, and [`samples_needed`] when a
//!    bound exists at all.
//!
//! How late probes departed is counted apart, in [`DepartureLateness`].
//!
//! Nothing here reads a clock, a file or a random number: equal input gives equal output.
#![forbid(unsafe_code)]

mod binomial;
#[cfg(test)]
mod coverage;
mod dependence;
mod distribution;
mod grid;
mod histogram;
mod interval;
mod lateness;
mod long_run;
mod mean;
mod probability;
mod ranked;
mod slots;
mod spread;
pub mod student;
mod tail;

pub use binomial::binomial_tail;
pub use dependence::{BlockCounts, runs};
pub use distribution::distribution;
pub use histogram::Histogram;
pub use interval::{
    Interval, effect_with_bound, normal_deviate, ranks, samples_needed, student_raise,
};
pub use lateness::{DepartureLateness, LatenessQuantile, LatenessSummary};
pub use mean::{BatchMeans, Mean};
pub use probability::{Probability, ProbabilityError};
pub use ranked::Ranked;
pub use slots::SlotCounts;
pub use spread::Spread;
pub use tail::Worst;
