//! The statistics of the tail, in the order in which the data meets them.
//!
//! 1. Every matched packet's latency is counted in a [`Histogram`] (exact, order-free), in
//!    [`BlockCounts`] (by arrival order, to see whether the tail comes in clusters) and offered to
//!    [`Worst`] (the packets worth showing one by one).
//! 2. The frozen histogram, [`Ranked`], answers quantiles by nearest rank for an exact
//!    [`Probability`].
//! 3. [`Band`] says between which two [`ranks`] each true quantile lies, given how late samples
//!    [cluster](BlockCounts::dependence), and which quantiles the run supports; [`samples_needed`]
//!    how many independent samples it takes.
//!
//! [`change`] says whether minutes without end are still those of a baseline. How late probes departed is counted apart, in [`DepartureLateness`].
//!
//! Nothing here reads a clock, a file or a random number: equal input gives equal output.
#![forbid(unsafe_code)]

mod band;
mod binomial;
pub mod change;
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
#[cfg(test)]
mod random;
mod ranked;
mod slots;
mod spread;
pub mod student;
mod tail;

pub use band::{Band, Bounds, Undelivered, decades, episodes_needed, supports};
pub use binomial::binomial_tail;
pub use dependence::{BlockCounts, runs};
pub use distribution::distribution;
pub use histogram::Histogram;
pub use interval::{Interval, normal_deviate, ranks, samples_needed};
pub use lateness::{DepartureLateness, LatenessQuantile, LatenessSummary};
pub use long_run::Dependence;
pub use mean::{BatchMeans, Mean};
pub use probability::{Probability, ProbabilityError};
pub use ranked::Ranked;
pub use slots::SlotCounts;
pub use spread::Spread;
pub use tail::Worst;
