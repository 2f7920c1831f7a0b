//! Comparison of the shares of lost packets of two sides.

use super::POWER_DEVIATE;
use super::side::effect;
use super::verdict::{TELLING, Verdict};
use serde::Serialize;
use tailtrim_stats::{Probability, binomial_tail, normal_deviate};

/// Packets lost among those whose end is known, in a second or a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counted {
    /// Packets that were not delivered.
    pub lost: u64,
    /// Packets whose end is known.
    pub known: u64,
}

/// Losses of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Losses {
    /// Those of A.
    pub a: Counted,
    /// Those of B.
    pub b: Counted,
    /// p-value: probability of a difference at least this large where there is none.
    pub p_value: f64,
    /// By how much losses come together: the variance of their number over the binomial one.
    pub effect: f64,
    /// Verdict on the difference.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Compares losses. `a` and `b` have a list for each repetition, of counts per second.
///
/// Given how many are lost in all, B's part of them is binomial where losses are independent. They
/// are not: the numbers are divided by the effect seen between seconds, or between repetitions
/// where that is larger. The test is exact and therefore errs less often than asked.
#[must_use]
pub fn losses(a: &[Vec<Counted>], b: &[Vec<Counted>], confidence: Probability) -> Losses {
    let (all_a, all_b) = (total(a.iter().flatten()), total(b.iter().flatten()));
    let effect = inflation(a).max(inflation(b)).max(1.0);
    let lost = (all_a.lost + all_b.lost) as f64 / effect;
    let known = (all_a.known + all_b.known) as f64;
    let p_value = if all_a.lost + all_b.lost == 0 || all_a.known == 0 || all_b.known == 0 {
        1.0
    } else {
        let (x, y) = (all_b.known as f64 / known, all_a.known as f64 / known);
        let hits = all_b.lost as f64 / effect;
        let more = binomial_tail(hits, lost, x, y);
        let fewer = binomial_tail(lost - hits, lost, y, x);
        (2.0 * more.min(fewer)).min(1.0)
    };
    let share = |one: Counted| one.lost as f64 / one.known.max(1) as f64;
    let alpha = confidence.complement_f64();
    let verdict = if p_value <= alpha {
        if share(all_b) > share(all_a) { Verdict::Worse } else { Verdict::Better }
    } else {
        let runs = a.len().min(b.len()) as f64;
        undecided([all_a, all_b].map(|one| one.lost as f64 / effect), [all_a, all_b], alpha, runs)
    };
    Losses { a: all_a, b: all_b, p_value, effect, verdict }
}

/// The verdict where no difference is shown, from the interval of the ratio of both shares (Clopper and Pearson 1934, of
/// B's part of all losses).
fn undecided(lost: [f64; 2], sides: [Counted; 2], alpha: f64, runs: f64) -> Verdict {
    let all = lost[0] + lost[1];
    if all == 0.0 {
        return Verdict::NotDecided { needed: None };
    }
    let ratio = |part: f64| part / (1.0 - part) * sides[0].known as f64 / sides[1].known as f64;
    let low = bisected(|part| binomial_tail(lost[1], all, part, 1.0 - part) < alpha / 2.0);
    let high = bisected(|part| binomial_tail(lost[0], all, 1.0 - part, part) >= alpha / 2.0);
    let needed = || {
        // The logarithm of a ratio of counts has the variance 1 / a + 1 / b.
        let error = lost.map(|count| 1.0 / count.max(0.5)).iter().sum::<f64>().sqrt();
        let apart = ratio(lost[1].max(0.5) / (lost[0].max(0.5) + lost[1].max(0.5))).ln().abs();
        let reach = (normal_deviate(alpha / 2.0) + POWER_DEVIATE) * error;
        let times = (reach / apart.max(TELLING.ln() - apart)).powi(2);
        Some((runs * times).ceil().max(runs + 1.0) as u64)
    };
    Verdict::within(Some(ratio(low)), Some(ratio(high)), 0.0, needed)
}

/// Up to where, between 0 and 1, a condition holds.
fn bisected(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.max(f64::MIN_POSITIVE)
}

fn total<'a>(counts: impl Iterator<Item = &'a Counted>) -> Counted {
    counts.fold(Counted::default(), |sum, one| Counted {
        lost: sum.lost + one.lost,
        known: sum.known + one.known,
    })
}

/// The larger effect between seconds or between repetitions.
fn inflation(repetitions: &[Vec<Counted>]) -> f64 {
    let all = total(repetitions.iter().flatten());
    let share = all.lost as f64 / all.known.max(1) as f64;
    let deviation = |one: &Counted| one.lost as f64 - share * one.known as f64;
    let seconds: Vec<f64> = repetitions.iter().flatten().map(deviation).collect();
    let runs: Vec<f64> = repetitions.iter().map(|run| deviation(&total(run.iter()))).collect();
    let between = |units: &[f64]| effect(units, share, all.known as f64);
    between(&seconds).max(between(&runs))
}
