//! State of an objective: bad packets of the last hour, and whether its limit is kept.

use crate::minute::Outcome;
use crate::objective::Objective;
use std::collections::VecDeque;
use tailtrim_compare::{Observed, Promised, promised};
use tailtrim_stats::Probability;

/// Minutes of the verdict.
const HOUR: usize = 60;

/// Confidence of the verdict, and the share of cases that so many more packets would decide.
const CONFIDENCE: Probability = Probability::P95;

/// Packets of a time, and how many of them were bad.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) bad: u64,
    pub(crate) packets: u64,
}

impl Share {
    /// Adds others.
    pub(crate) fn add(&mut self, other: Self) {
        self.bad += other.bad;
        self.packets += other.packets;
    }
}

/// State of one objective of one target.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) objective: Objective,
    minutes: VecDeque<Share>,
}

impl State {
    pub(crate) fn new(objective: Objective) -> Self {
        Self { objective, minutes: VecDeque::new() }
    }

    /// Share of a probe: whether it counts, and whether it is bad.
    pub(crate) fn judge(&self, outcome: Outcome) -> Share {
        let lost = u64::from(self.objective.counts_lost());
        match outcome {
            Outcome::Answered(sample) => {
                Share { bad: self.objective.judge_answered(sample.latency_ns).into(), packets: 1 }
            }
            Outcome::Late | Outcome::Lost | Outcome::Altered | Outcome::Undelivered => {
                Share { bad: lost, packets: lost }
            }
            // Faults of the meter decide nothing.
            _ => Share::default(),
        }
    }

    /// Ends a minute.
    pub(crate) fn end_minute(&mut self, share: Share) {
        if self.minutes.len() == HOUR {
            self.minutes.pop_front();
        }
        self.minutes.push_back(share);
    }

    /// Packets of the last hour.
    pub(crate) fn hour(&self) -> Share {
        let sum = |of: fn(&Share) -> u64| self.minutes.iter().map(of).sum();
        Share { bad: sum(|share| share.bad), packets: sum(|share| share.packets) }
    }

    /// Whether the limit was kept in the last hour.
    pub(crate) fn verdict(&self) -> Promised {
        let Share { bad, packets } = self.hour();
        let observed = Observed { bad, packets, design_effect: dispersion(&self.minutes) };
        promised(observed, self.objective.limit(), CONFIDENCE, Probability::P80)
    }
}

/// Variance of the bad packets of minutes beside that of a binomial distribution: by so many times fewer independent
/// packets does an hour count in which bad packets come together. 1 if it is smaller, or unknown.
pub(crate) fn dispersion<'a>(minutes: impl IntoIterator<Item = &'a Share>) -> f64 {
    let minutes: Vec<&Share> = minutes.into_iter().filter(|share| share.packets > 0).collect();
    let packets: u64 = minutes.iter().map(|share| share.packets).sum();
    let bad: u64 = minutes.iter().map(|share| share.bad).sum();
    let share = bad as f64 / packets.max(1) as f64;
    if minutes.len() < 2 || bad == 0 || bad == packets {
        return 1.0;
    }
    // Pearson's statistic over its degrees of freedom.
    let statistic: f64 = minutes
        .iter()
        .map(|minute| {
            let expected = share * minute.packets as f64;
            (minute.bad as f64 - expected).powi(2) / (expected * (1.0 - share))
        })
        .sum();
    (statistic / (minutes.len() - 1) as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_compare::Promise;

    fn state(minutes: impl Iterator<Item = (u64, u64)>) -> State {
        let mut state = State::new("p99 < 5ms".parse().unwrap());
        minutes.for_each(|(bad, packets)| state.end_minute(Share { bad, packets }));
        state
    }

    #[test]
    fn an_hour_decides_where_bad_packets_are_few_or_many() {
        let of = |bad: u64| state((0..60).map(|_| (bad, 600))).verdict().promise;
        assert_eq!([of(0), of(1), of(60)], [Promise::Met, Promise::Met, Promise::NotMet]);
        assert_eq!(
            state((0..60).map(|minute| (6 - minute % 2, 600))).verdict().promise,
            Promise::NotDecided
        );
        assert_eq!(state(std::iter::empty()).verdict().promise, Promise::NotDecided);
    }

    #[test]
    fn bad_packets_that_come_together_count_as_fewer() {
        // The same share: spread evenly it is decided, in one minute it is not.
        let spread = state((0..60).map(|_| (12, 600)));
        let together = state((0..60).map(|minute| (if minute == 7 { 600 } else { 0 }, 600)));
        assert_eq!(spread.verdict().promise, Promise::NotMet);
        assert_eq!(together.verdict().promise, Promise::NotDecided);
    }

    #[test]
    fn the_oldest_minute_leaves_the_hour() {
        let state = state((0..70).map(|minute| (u64::from(minute < 10), 600)));
        assert_eq!(state.hour(), Share { bad: 0, packets: 36_000 });
    }
}
