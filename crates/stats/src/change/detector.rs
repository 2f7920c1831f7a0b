//! Evidence of a change, as bets against a limit win it.

use super::reference::Limit;
use super::{Direction, Line};
use serde::{Deserialize, Serialize};

/// Minutes of a year of 365 days: so long on average until a false alarm, at least.
pub(super) const YEAR: f64 = 525_600.0;

/// References beside which the same minutes are judged: the pinned baseline, and last week.
const REFERENCES: f64 = 2.0;

/// Evidence of an alarm. False alarms of all lines and references add up to one a year.
pub(super) const ALARM: f64 = YEAR * Line::COUNT as f64 * REFERENCES;

/// Evidence that a change has ended: a week of minutes. A change that stays just beyond its limit is ended too early
/// once a week at most; larger ones are hardly ever.
pub(super) const END: f64 = 7.0 * 24.0 * 60.0;

/// Minutes that an alarm rests on at least: one minute wins no more than this part of it.
const FEWEST: f64 = 10.0;

/// Bets, as parts of the largest one that the dependence of minutes allows. Small changes are found soonest by small bets.
const PARTS: [f64; 3] = [1.0, 0.25, 0.0625];

/// An e-detector (Shin, Ramdas and Rinaldo 2023, *New England Journal of Statistics in Data Science* 2): bets that begin
/// each minute against "the ratio of share and limit is one at most" (or at least), added up.
///
/// Let each minute's factor L have a mean of one at most, whatever was before. M ← L (M + 1) then grows by one a minute on
/// average, so that it takes A minutes until it reaches A, on average, at least. That needs no distribution: where a share
/// X has a mean of c at most, 1 + f (X / c − 1) has one of one at most, for 0 ≤ f ≤ 1; and
/// where it has one of c at least and a relative variance σ², exp(f (1 − X / c) − σ² (e^f − 1 − f)) has (Bennett 1962).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detector {
    bets: [Bet; PARTS.len()],
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Bet {
    /// Gain of one that bet one unit each minute.
    evidence: f64,
    /// Logarithm of the gain of the best begin.
    best: f64,
    /// The minute of that begin.
    since: i64,
}

impl Default for Detector {
    fn default() -> Self {
        Self { bets: [Bet { evidence: 0.0, best: 0.0, since: i64::MIN }; PARTS.len()] }
    }
}

impl Detector {
    /// Enters a minute: the ratio of its share and the limit. Few probes weigh less than one.
    pub fn enter(&mut self, minute: i64, ratio: f64, weight: f64, limit: &Limit) {
        for (bet, part) in self.bets.iter_mut().zip(PARTS) {
            let gain = gain(part * limit.bet, ratio, weight, limit);
            bet.evidence = gain.exp() * (bet.evidence + 1.0);
            if bet.best <= 0.0 || bet.since == i64::MIN {
                (bet.best, bet.since) = (0.0, minute);
            }
            bet.best += gain;
        }
    }

    /// Evidence of a change, the mean of that of all bets.
    #[must_use]
    pub fn evidence(&self) -> f64 {
        self.bets.iter().map(|bet| bet.evidence).sum::<f64>() / self.bets.len() as f64
    }

    /// The minute from which on the evidence is largest.
    #[must_use]
    pub fn since(&self) -> i64 {
        let best = self.bets.iter().max_by(|a, b| a.best.total_cmp(&b.best));
        best.map_or(i64::MIN, |bet| bet.since)
    }
}

/// Logarithm of the factor of a bet.
pub(super) fn gain(bet: f64, ratio: f64, weight: f64, limit: &Limit) -> f64 {
    let bet = bet * weight;
    let gain = match limit.direction {
        Direction::Worse => (bet * (ratio - 1.0)).max(-1.0 + f64::EPSILON).ln_1p(),
        // A minute of few probes varies more, by as much as it weighs less.
        Direction::Better if weight > 0.0 => {
            bet * (1.0 - ratio) - limit.variance / weight * (bet.exp_m1() - bet)
        }
        Direction::Better => 0.0,
    };
    gain.min(ALARM.ln() / FEWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(direction: Direction) -> Limit {
        Limit { direction, shares: vec![0.01; 48], bet: 1.0, variance: 0.5 }
    }

    #[test]
    fn factors_have_a_mean_of_one_at_most_at_the_limit() {
        // Shares of 0 and 1 are the worst for one, and of a given variance for the other.
        for bet in [0.05, 0.3, 1.0] {
            let of = |ratio: f64| gain(bet, ratio, 1.0, &limit(Direction::Worse)).exp();
            let mean = 0.5 * of(0.0) + 0.5 * of(2.0);
            assert!((mean - 1.0).abs() < 1e-6, "{mean}");
            // 0 with probability 1/3, else 1.5: mean 1, variance 0.5.
            let of = |ratio: f64| gain(bet, ratio, 1.0, &limit(Direction::Better)).exp();
            let mean = of(0.0) / 3.0 + of(1.5) * 2.0 / 3.0;
            assert!(mean <= 1.0 && mean > 0.9, "{mean}");
        }
    }

    #[test]
    fn evidence_begins_where_the_change_does_and_one_minute_is_no_alarm() {
        let mut detector = Detector::default();
        for minute in 0..1_000 {
            detector.enter(minute, 0.9, 1.0, &limit(Direction::Worse));
        }
        assert!(detector.evidence() < 100.0);
        detector.enter(1_000, 100.0, 1.0, &limit(Direction::Worse));
        assert!(detector.evidence() < 1_000.0);
        let alarm = (1_001..).find(|minute| {
            detector.enter(*minute, 100.0, 1.0, &limit(Direction::Worse));
            detector.evidence() >= ALARM
        });
        assert_eq!((alarm.map(|minute| minute / 10), detector.since()), (Some(100), 1_000));
    }

    #[test]
    fn a_minute_without_probes_says_nothing() {
        for direction in [Direction::Worse, Direction::Better] {
            assert_eq!(gain(0.5, 7.0, 0.0, &limit(direction)), 0.0);
        }
    }
}
