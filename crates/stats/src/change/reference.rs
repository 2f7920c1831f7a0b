//! Limits of shares, and how far bets against them may go: both from a baseline.

use super::detector::gain;
use super::edges::{Candidates, Edges, SLOTS, Tally, Trial, WAYS, slot};
use super::{Direction, Line, PERCENTILES, Quantity};
use crate::long_run::Blocks;
use crate::{Dependence, Probability, episodes_needed};
use serde::{Deserialize, Serialize};

/// Standard errors by which a baseline may be off: once in 740 lines in one direction.
const ERRORS: f64 = 3.0;

/// Change of the share of lost probes that counts: of as many as the last percentile has beyond.
pub(super) const LOSS: f64 = 0.001;

/// Blocks of a baseline in which the dependence of minutes is looked for.
const BLOCKS: usize = 256;

/// Part of the minutes of a baseline that squared factors may have won in it at most, and by which bets are made smaller until
/// they do.
const SQUARED: f64 = 0.05;
const SMALLER: f64 = 0.8;

/// A limit of the share of probes beyond an edge.
///
/// # The largest bet
/// Minutes depend on each other, so that a product of factors may have a mean above one though each of them has not. Let
/// shares be below their limit by `room` on average, relatively, and the sum of many minutes have the variance V a minute.
/// Products are bounded for bets up to 2 room / V (Lundberg's exponent of a normal walk), and their squares
/// for half of that, which is taken: false alarms at evidence A then are as rare as 1 / A², not 1 / A. Long episodes
/// have longer tails than a normal walk; so the bet is made smaller until squared factors would have won little in
/// the baseline itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Direction of the change that is found.
    pub(super) direction: Direction,
    /// The limit by slot of the week; none where it is not positive.
    pub(super) shares: Vec<f64>,
    /// The largest bet.
    pub(super) bet: f64,
    /// Variance of a minute's ratio of share and limit.
    pub(super) variance: f64,
}

/// Reference: shares of minutes that have not changed, as a baseline has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    edges: Edges,
    /// By line; `None` where the baseline cannot tell a change.
    limits: Vec<Option<Limit>>,
    /// Mean numbers of answered probes and of all probes in a minute.
    probes: [f64; 2],
    /// Relative standard errors of the shares beyond, by quantity.
    errors: Vec<f64>,
}

/// A minute as a line sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Its share beside the limit.
    pub(super) ratio: f64,
    /// Its probes beside those of the baseline's minutes, one at most.
    pub(super) weight: f64,
}

impl Reference {
    /// The reference of a baseline: its edges, and its minutes counted by those of the other days. `None` for fewer than two
    /// days: how much an hour varies from day to day is then unknown.
    #[must_use]
    pub fn new(candidates: &Candidates, minutes: &[Trial]) -> Option<Self> {
        if minutes.len() < BLOCKS {
            return None;
        }
        let mean = |of: fn(&Tally) -> u64| {
            let sum: u64 = minutes.iter().map(|trial| of(&trial.by[0])).sum();
            sum as f64 / minutes.len() as f64
        };
        let probes = [mean(|tally| tally.answered), mean(|tally| tally.answered + tally.lost)];
        let mut reference = Self {
            edges: candidates.whole[0].clone(),
            limits: Vec::new(),
            probes,
            errors: Vec::new(),
        };
        let mut way = 0;
        for (index, line) in Line::all().enumerate() {
            if line.direction == Direction::Worse {
                let errors: [f64; WAYS] =
                    std::array::from_fn(|way| reference.error(line.of, minutes, way));
                way = (0..WAYS).min_by(|a, b| errors[*a].total_cmp(&errors[*b]))?;
                reference.take(index / 2, &candidates.whole[way]);
                reference.errors.push(errors[way]);
            }
            let limit = reference.limit(index, line, minutes, way);
            reference.limits.push(limit);
        }
        Some(reference)
    }

    /// Takes the edges of one quantity.
    fn take(&mut self, quantity: usize, from: &Edges) {
        if quantity == PERCENTILES.len() {
            self.edges.lost.clone_from(&from.lost);
        }
        for (of, from) in self.edges.of.iter_mut().zip(&from.of) {
            if let (Some(of), Some(from)) = (of.get_mut(quantity), from.get(quantity)) {
                *of = *from;
            }
        }
    }

    /// The edges by which minutes are counted.
    #[must_use]
    pub fn edges(&self) -> &Edges {
        &self.edges
    }

    /// Whether a change of this line can be told.
    #[must_use]
    pub fn tells(&self, line: usize) -> bool {
        self.limits.get(line).is_some_and(Option::is_some)
    }

    /// The relative standard error of the baseline's own share beyond a quantity.
    #[must_use]
    pub fn relative_error(&self, line: usize) -> f64 {
        self.errors.get(line / 2).copied().unwrap_or(0.0)
    }

    pub(super) fn limit_of(&self, line: usize) -> Option<&Limit> {
        self.limits.get(line)?.as_ref()
    }

    /// A minute beside the limit of a line.
    pub(super) fn see(&self, line: usize, minute: i64, tally: &Tally) -> Option<Seen> {
        let limit = self.limit_of(line)?;
        let share = limit.shares[slot(minute)];
        let (beyond, all) = beyond(line, tally);
        let usual = self.probes[usize::from(line / 2 == PERCENTILES.len())];
        (share > 0.0 && all > 0).then(|| Seen {
            ratio: beyond as f64 / all as f64 / share,
            weight: (all as f64 / usual).min(1.0),
        })
    }

    /// The relative standard error of the share beyond the percentile itself, or of lost probes: in days that were left out.
    fn error(&self, of: Quantity, minutes: &[Trial], way: usize) -> f64 {
        let lost = |trial: &Trial| {
            let all = (trial.by[way].lost + trial.by[way].answered) as f64;
            trial.by[way].lost as f64 / all.max(1.0)
        };
        let (share, probes, ratios): (f64, f64, Vec<f64>) = match of {
            Quantity::Percentile(p) => {
                let (index, share) = (percentile(p), p.complement_f64());
                let part = |trial: &Trial| {
                    let tally = &trial.by[way];
                    (tally.answered > 0)
                        .then(|| tally.above[index][1] as f64 / tally.answered as f64 / share)
                };
                (share, self.probes[0], minutes.iter().filter_map(part).collect())
            }
            Quantity::Loss => {
                let share = minutes.iter().map(lost).sum::<f64>() / minutes.len() as f64;
                // Hours without loss have none to compare with: the change that counts stands in.
                let part = |trial: &Trial| (lost(trial) + LOSS) / (trial.lost[way] + LOSS);
                (share + LOSS, self.probes[1], minutes.iter().map(part).collect())
            }
        };
        (long_run(&ratios, share, probes) / ratios.len().max(1) as f64).sqrt()
    }

    fn limit(&self, index: usize, line: Line, minutes: &[Trial], way: usize) -> Option<Limit> {
        let off = ERRORS * self.relative_error(index);
        let (factor, added) = match line.direction {
            Direction::Worse => (1.0 + off, LOSS),
            Direction::Better => (1.0 - off, -LOSS),
        };
        let shares = match line.of {
            Quantity::Percentile(p) => {
                let beyond = p.complement_f64() * self.probes[0] * minutes.len() as f64;
                if beyond < episodes_needed(Probability::P95) as f64 {
                    return None;
                }
                vec![factor * p.complement_f64(); SLOTS]
            }
            Quantity::Loss => self.edges.lost.iter().map(|share| factor * share + added).collect(),
        };
        let known: Vec<(f64, f64)> = minutes
            .iter()
            .filter_map(|trial| {
                let share = match line.of {
                    Quantity::Percentile(_) => shares[slot(trial.minute)],
                    Quantity::Loss => factor * trial.lost[way] + added,
                };
                let (beyond, all) = beyond(index, &trial.by[way]);
                (share > 0.0 && all > 0).then(|| (beyond as f64 / all as f64 / share, share))
            })
            .collect();
        if known.len() < BLOCKS {
            return None;
        }
        let count = known.len() as f64;
        let share = known.iter().map(|(_, share)| share).sum::<f64>() / count;
        let ratios: Vec<f64> = known.into_iter().map(|(ratio, _)| ratio).collect();
        let mean = ratios.iter().sum::<f64>() / count;
        let room = match line.direction {
            Direction::Worse => 1.0 - mean,
            Direction::Better => mean - 1.0,
        };
        let probes = self.probes[usize::from(line.of == Quantity::Loss)];
        let binomial = (1.0 - share).max(0.0) / (share * probes);
        let squares = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / count;
        let variance = squares.max(binomial);
        let bet = (room / long_run(&ratios, share, probes).max(variance)).min(1.0);
        let mut limit = Limit { direction: line.direction, shares, bet, variance };
        while limit.bet > 0.0 && squared(&limit, &ratios) > (SQUARED * count).ln() {
            limit.bet *= SMALLER;
        }
        (limit.bet > 0.0).then_some(limit)
    }
}

/// Logarithm of the most that a bet with the squares of its factors had won in a baseline, from its best begin on.
fn squared(limit: &Limit, ratios: &[f64]) -> f64 {
    let (mut won, mut most) = (0.0_f64, 0.0_f64);
    for ratio in ratios {
        won = won.max(0.0) + 2.0 * gain(limit.bet, *ratio, 1.0, limit);
        most = most.max(won);
    }
    most
}

/// Place of a percentile.
fn percentile(p: Probability) -> usize {
    PERCENTILES.iter().position(|of| *of == p).unwrap_or(0)
}

/// Probes of a minute beyond the edge of a line, and all that count.
fn beyond(line: usize, tally: &Tally) -> (u64, u64) {
    let edge = if line.is_multiple_of(2) { 2 } else { 0 };
    match tally.above.get(line / 2) {
        Some(above) => (above[edge], tally.answered),
        None => (tally.lost, tally.lost + tally.answered),
    }
}

/// The variance of the mean of many minutes, times their number: of ratios of their shares and a limit, which is `share` on
/// average, with so many probes in each. It is at least that of independent probes.
fn long_run(ratios: &[f64], share: f64, probes: f64) -> f64 {
    let minutes = ratios.len().div_ceil(BLOCKS).max(1);
    let counts =
        ratios.chunks_exact(minutes).map(|block| block.iter().sum::<f64>() * share * probes);
    let blocks = Blocks { counts: counts.collect(), chance: 0.0, length: minutes as f64 * probes };
    let effect = upper(blocks.dependence());
    let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64 * share;
    let binomial = |share: f64| share * (1.0 - share).max(0.0);
    (effect * binomial(mean)).max(binomial(share)) / (probes * share * share)
}

/// The upper limit of a design effect at 97.5 %: the quantile of chi-squared is Wilson and Hilferty's (1931). A week of minutes
/// that wander for hours knows its variance from some twenty episodes.
fn upper(of: Dependence) -> f64 {
    let part = 2.0 / (9.0 * of.freedom.max(1.0));
    let least = (1.0 - part - 1.96 * part.sqrt()).max(0.1).powi(3);
    (of.effect / least).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::edges::Hours;
    use super::*;

    /// A baseline of so many days with 60 probes a minute, one of which is lost each ten minutes.
    fn reference(days: i64) -> Option<Reference> {
        let probes =
            |minute: i64| (0..60).map(move |n| 1_000_000 + (n * 37 + minute * 13) % 600 * 1_000);
        let lost = |minute: i64| u64::from(minute % 10 == 0);
        let mut hours = Hours::default();
        for minute in 0..days * 1_440 {
            probes(minute).for_each(|ns| hours.record(minute, ns, 1));
            hours.record_lost(minute, lost(minute));
        }
        let candidates = hours.candidates(0.05)?;
        let trial = |minute| {
            let latencies: Vec<(i64, u64)> = probes(minute).map(|ns| (ns, 1)).collect();
            candidates.trial(minute, &latencies, lost(minute))
        };
        let minutes: Vec<Trial> = (0..days * 1_440).filter_map(trial).collect();
        Reference::new(&candidates, &minutes)
    }

    #[test]
    fn a_percentile_has_the_share_beyond_as_its_limit() {
        let reference = reference(7).unwrap();
        for (index, line) in Line::all().enumerate() {
            let Some(limit) = reference.limit_of(index) else { continue };
            assert!((0.0..=1.0).contains(&limit.bet) && limit.bet > 0.0, "{line:?}");
            if let Quantity::Percentile(p) = line.of {
                let off = limit.shares[0] / p.complement_f64();
                let is_worse = line.direction == Direction::Worse;
                assert!(if is_worse { off >= 1.0 } else { off <= 1.0 }, "{line:?}: {off}");
                assert!((off - 1.0).abs() < 0.5, "{line:?}: {off}");
            }
        }
        // One lost in 601: its half would be less than the change that counts.
        assert!(reference.tells(6));
        assert!((reference.limit_of(6).unwrap().shares[5] - 1.0 / 601.0).abs() < 0.0015);
    }

    #[test]
    fn few_episodes_know_a_variance_badly() {
        // 20 / 9.591 and 5 / 0.831, by tables of chi-squared.
        for (freedom, ratio) in [(20.0, 2.085), (5.0, 6.015), (f64::INFINITY, 1.0)] {
            let found = upper(Dependence { effect: 3.0, freedom }) / 3.0;
            assert!((found / ratio - 1.0).abs() < 0.05, "{freedom}: {found}");
        }
    }

    #[test]
    fn a_day_tells_no_rhythm() {
        assert!(reference(1).is_none());
        assert!(reference(2).is_some());
    }
}
