//! Drift: change of a run over its own length.
//!
//! Two runs whose level wanders differ by more than chance within them tells. A walk that is as
//! small as chance is not seen here, and yet moves the difference: nothing in one run tells that, only
//! repetitions do. What a margin covers need not be seen.

use super::side::Side;
use tailtrim_stats::Probability;
use tailtrim_stats::student::beyond_ratio;

/// Runs drift where so slow a change comes about but twice in a hundred comparisons. Told wrongly,
/// a drift causes no false verdict, but hides a difference: it costs a fiftieth of the power. In
/// simulations it is told in 1 to 3 % of steady runs (benchmarks/runs/2026-11-21-compare).
const DRIFTS: f64 = 0.02;
/// Half waves over the run that are slow, and those above them that tell what chance does. The
/// variance of a random walk in half wave k is as 1 / k²: the first three have 83 % of it. An
/// autocorrelation over a hundredth of the run has the spectrum 1 / (1 + (πk / 100)²), which is
/// 0.99 to 1 in the slow ones and 0.80 on average in the others.
const SLOW: usize = 3;
const OTHERS: usize = 27;

/// Whether a run of either side drifts at any of the quantiles. What drifts at one quantile is not
/// taken for steady at another, where only more chance may hide it.
pub(super) fn drifts(sides: &[Side<'_>; 2], ps: &[Probability]) -> bool {
    let level = DRIFTS / ps.len().max(1) as f64;
    ps.iter().any(|&p| {
        let together: f64 = sides.iter().map(|side| unlikely(side, p)).product();
        // The product of two p-values (Fisher 1925, section 21.1).
        together * (1.0 - together.max(f64::MIN_POSITIVE).ln()) < level
    })
}

/// p-value of the slow changes in a side that has one run.
fn unlikely(side: &Side<'_>, p: Probability) -> f64 {
    let Some(blocks) = side.single(p) else { return 1.0 };
    let wave = |waves: usize| half_waves(&blocks.of, waves).powi(2);
    // As many of them as a walk has, so that a slope and a walk weigh alike.
    let weight = |waves: usize| 1.0 / (waves * waves) as f64;
    let slow: f64 = (1..=SLOW).map(|waves| weight(waves) * wave(waves)).sum();
    let others: f64 = (SLOW + 1..=OTHERS).map(wave).sum();
    let freedom = (OTHERS - SLOW) as f64;
    if others <= 0.0 {
        return 1.0;
    }
    let weights: f64 = (1..=SLOW).map(weight).sum();
    let squares: f64 = (1..=SLOW).map(|waves| weight(waves).powi(2)).sum();
    // A weighted sum of squares is nearly one of fewer equal ones (Satterthwaite 1946).
    beyond_ratio(slow / weights / (others / freedom), weights.powi(2) / squares, freedom)
}

/// Coefficient of a cosine with so many half waves over a run.
pub(super) fn half_waves(of: &[f64], waves: usize) -> f64 {
    let angle = std::f64::consts::PI * waves as f64 / of.len() as f64;
    let part = |(index, one): (usize, &f64)| one * libm::cos(angle * (index as f64 + 0.5));
    of.iter().enumerate().map(part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_slow_and_an_autocorrelation_is_alike_in_all() {
        let part = |waves: usize| 1.0 / (waves * waves) as f64;
        let whole = std::f64::consts::PI.powi(2) / 6.0;
        let slow = (1..=SLOW).map(part).sum::<f64>() / whole;
        assert!((slow - 0.83).abs() < 0.005, "{slow}");
        let spectrum =
            |waves: usize| 1.0 / (1.0 + (std::f64::consts::PI * waves as f64 / 100.0).powi(2));
        assert!(spectrum(SLOW) > 0.99);
        let others = (SLOW + 1..=OTHERS).map(spectrum).sum::<f64>() / (OTHERS - SLOW) as f64;
        assert!((others - 0.80).abs() < 0.005, "{others}");
    }
}
