//! Change without end: percentiles and loss of minutes beside those of a baseline, by a sequential test that may be looked
//! at each minute.
//!
//! 1. [`Hours`] takes the minutes of the baseline by hour, and gives [`Edges`]: for each hour the percentile, and
//!    the latencies that are above and below it by the smallest difference that counts.
//! 2. The same minutes, each counted by the edges of the other days ([`Trial`]), give a [`Reference`]: which edges predict
//!    best, the share beyond that a percentile that has not changed has at most, and how far bets on more may go.
//! 3. A [`Tracker`] bets each minute. Its [`Turn`]s say that a change has begun, since when, and that it has ended.
//!
//! The hypothesis that is kept for a year: the share of probes above the slow edge of a percentile p is, on average over the
//! chance of each minute, not more than 1 − p; that above its fast edge is not less; the share of lost ones is
//! that of the same hour. Probes of a minute may depend on each other in any way. The dependence of minutes is that
//! of the baseline.

mod detector;
mod edges;
mod reference;
#[cfg(test)]
mod simulation;
mod tracker;

pub use detector::Detector;
pub use edges::{Candidates, Edges, Hours, Tally, Trial};
pub use reference::{Limit, Reference};
pub use tracker::{Tracker, Turn};

use super::Probability;
use serde::{Deserialize, Serialize};

/// Hours of a day, each with a baseline of its own: latency has a daily rhythm.
pub(crate) const HOURS: usize = 24;

/// The percentiles that are watched.
pub(crate) const PERCENTILES: [Probability; 3] =
    [Probability::P50, Probability::P99, Probability::P99_9];

/// Direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Slower, or more loss.
    Worse,
    /// Faster, or less loss.
    Better,
}

/// Quantity that may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A percentile of the latency of answered probes.
    Percentile(Probability),
    /// The share of lost probes.
    Loss,
}

/// Quantity and direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The quantity.
    pub of: Quantity,
    /// The direction.
    pub direction: Direction,
}

impl Line {
    /// Number of lines.
    pub const COUNT: usize = 2 * (PERCENTILES.len() + 1);

    /// All lines: for each percentile, and for loss behind them, the two directions.
    pub fn all() -> impl Iterator<Item = Self> {
        let percentiles = PERCENTILES.into_iter().map(Quantity::Percentile);
        percentiles.chain([Quantity::Loss]).flat_map(|of| {
            [Direction::Worse, Direction::Better].map(|direction| Self { of, direction })
        })
    }
}
