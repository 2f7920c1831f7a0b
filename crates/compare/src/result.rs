//! Result of a comparison: its sides, its quantiles with verdicts, and its curve.

use crate::verdict::Verdict;
use serde::Serialize;
use tailtrim_stats::Probability;

/// The result of [`compare`](super::compare).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name and version of this form.
    pub schema: &'static str,
    /// Confidence of each interval, and of all verdicts together.
    pub confidence: Probability,
    /// By how much, relatively, a quantile must be better or worse to be called so.
    pub margin: f64,
    /// Chance with which the smallest differences (`better_from`, `worse_from`) are shown.
    pub power: f64,
    /// Draws of what chance would do.
    pub draws: u32,
    /// Seed of the draws.
    pub seed: u64,
    /// Units of resampling.
    pub resampling: Resampling,
    /// Whether a run changes over its own length, so that only a difference beyond that is shown.
    pub drifts: bool,
    /// Runs and samples of A.
    pub a: Group,
    /// Runs and samples of B.
    pub b: Group,
    /// Quantiles with verdicts, in the order in which they were asked for.
    pub quantiles: Vec<Row>,
    /// Quantiles along the curve, without verdicts.
    pub curve: Vec<Curve>,
}

/// Units that are resampled for the null distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resampling {
    /// Blocks of consecutive samples: what would differ from run to run is not seen.
    Blocks,
    /// Whole repetitions, of which both sides have several.
    Repetitions,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Number of runs.
    pub repetitions: usize,
    /// Samples in all of them.
    pub samples: u64,
    /// Number of resampled units: blocks, or repetitions.
    pub units: usize,
    /// The smallest latency in nanoseconds.
    pub min_ns: Option<i64>,
    /// The largest latency in nanoseconds.
    pub max_ns: Option<i64>,
}

/// A quantile of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideOfRow {
    /// The quantile in nanoseconds by nearest rank, over all repetitions.
    pub value_ns: Option<i64>,
    /// Number of independent samples that its samples are worth.
    pub effective_samples: u64,
}

/// A quantile with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which quantile.
    pub p: Probability,
    /// That of A.
    pub a: SideOfRow,
    /// That of B.
    pub b: SideOfRow,
    /// Independent samples that it takes of each side.
    pub samples_needed: u64,
    /// B / A; above one, B is slower. `None` unless both are positive.
    pub ratio: Option<f64>,
    /// The ratio is at least this; `None` where the samples give no bound, or there is no verdict.
    pub low: Option<f64>,
    /// The ratio is at most this; `None` as for `low`.
    pub high: Option<f64>,
    /// p-value for this quantile alone: probability of a difference at least this far beyond the margin where there is
    /// none.
    pub p_value: Option<f64>,
    /// The same, corrected for the number of quantiles looked at.
    pub adjusted_p: Option<f64>,
    /// Support of the quantile by the samples of both sides. Unsupported quantiles are not tested.
    pub supported: bool,
    /// Verdict of this quantile.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// If B / A were this (below one) or smaller, a verdict `Better` would have had a chance of
    /// `power` or more. `None` where no improvement could have been shown.
    pub better_from: Option<f64>,
    /// Likewise for `Worse`, from this ratio (above one) on. `None` where the samples bound nothing.
    pub worse_from: Option<f64>,
}

/// A point of the curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Which quantile.
    pub p: Probability,
    /// B / A, as in [`Row`].
    pub ratio: Option<f64>,
    /// The ratio is at least this.
    pub low: Option<f64>,
    /// The ratio is at most this.
    pub high: Option<f64>,
    /// Whether both sides support this quantile.
    pub supported: bool,
}
