//! The verdict on a difference: one of four, which says what the data could show.

use serde::Serialize;

/// A difference by this factor is the largest that "no difference" may leave open. What cannot tell a quarter more
/// from nothing has seen too little to call it none.
pub(crate) const TELLING: f64 = 1.25;

/// Verdict on a difference, with the confidence that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// B is faster, or loses less.
    Better,
    /// B is slower, or loses more.
    Worse,
    /// The sides are not farther apart than this.
    NoDifference {
        /// The largest difference that the data leave possible, relatively: 0.1 for 10 %.
        beyond: f64,
    },
    /// There may be a difference that matters, or none.
    NotDecided {
        /// So many runs a side, about, would decide in four of five cases. `None` where that is not known.
        needed: Option<u64>,
    },
}

impl Verdict {
    /// Whether a difference is shown.
    #[must_use]
    pub fn differs(self) -> bool {
        matches!(self, Self::Better | Self::Worse)
    }

    /// The verdict if no difference is shown, and B / A lies between two bounds.
    pub(crate) fn within(
        low: Option<f64>,
        high: Option<f64>,
        margin: f64,
        needed: impl FnOnce() -> Option<u64>,
    ) -> Self {
        match beyond(low, high) {
            Some(beyond) if beyond <= telling(margin) => {
                Self::NoDifference { beyond: beyond.max(margin) }
            }
            _ => Self::NotDecided { needed: needed() },
        }
    }
}

/// The largest difference between two bounds of a ratio.
pub(crate) fn beyond(low: Option<f64>, high: Option<f64>) -> Option<f64> {
    low.zip(high).map(|(low, high)| high.max(1.0 / low) - 1.0)
}

/// The largest difference that "no difference" may leave open: beyond the margin.
pub(crate) fn telling(margin: f64) -> f64 {
    TELLING * (1.0 + margin) - 1.0
}

/// The fewest runs a side with which a permutation of them can reach the error `alpha`: of two with n runs each, the
/// rarest of their (2n over n) deals and its mirror image. Of fewer, no difference can be excluded without the law by
/// which runs differ.
pub(crate) fn fewest_runs(alpha: f64) -> u64 {
    let (mut runs, mut deals) = (1_u64, 2.0);
    while 2.0 / deals > alpha {
        runs += 1;
        let n = runs as f64;
        deals *= 2.0 * (2.0 * n - 1.0) / n;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::fewest_runs;

    #[test]
    fn four_runs_a_side_reach_five_percent() {
        // 2 of 20 deals of three a side; 2 of 70 of four; 2 of 252 of five.
        assert_eq!([0.11, 0.05, 0.01, 0.001].map(fewest_runs), [3, 4, 5, 7]);
    }
}
