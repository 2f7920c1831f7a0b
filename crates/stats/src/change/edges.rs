//! Latencies of a baseline by hour, and the edges by which probes are counted.

use super::{HOURS, PERCENTILES};
use crate::Probability;
use serde::{Deserialize, Serialize};

/// Levels of an octave: each is 0.4 % wide, a tenth of a small difference.
const SUB_BITS: u32 = 8;
/// Latencies from 2^36 ns on, more than the longest timeout, share the last level.
const MAX_BITS: u32 = 36;
const LEVELS: usize = (((MAX_BITS - SUB_BITS) as usize) << SUB_BITS) + (1 << SUB_BITS) + 1;

/// Hour of the day (UTC) of a minute, which is counted from 1970 on.
fn hour(minute: i64) -> usize {
    (minute.rem_euclid(24 * 60) / 60) as usize
}

/// Days of the week, each of which is left out in turn.
const FOLDS: usize = 7;

/// Slots of a week: the hours of working days, and those of weekends.
pub(super) const SLOTS: usize = 2 * HOURS;

/// Hours that a slot takes: so many around its own, of the same days or of all.
#[derive(Debug, Clone, Copy)]
struct Reach {
    around: usize,
    all_days: bool,
}

/// Ways to divide a week, from the finest to none. The one is taken that predicts days best that were left out.
pub(super) const WAYS: usize = 5;
const REACHES: [Reach; WAYS] = [
    Reach { around: 0, all_days: false },
    Reach { around: 0, all_days: true },
    Reach { around: 1, all_days: true },
    Reach { around: 4, all_days: true },
    Reach { around: HOURS / 2, all_days: true },
];

/// Slot of a minute.
pub(super) fn slot(minute: i64) -> usize {
    hour(minute) + if day(minute) >= 5 { HOURS } else { 0 }
}

/// Day of the week of a minute, from Monday on. 1970 began with a Thursday.
fn day(minute: i64) -> usize {
    (minute.div_euclid(24 * 60) + 3).rem_euclid(FOLDS as i64) as usize
}

/// Probes of a baseline by day of the week and hour, in bounded memory (5 MB).
#[derive(Debug, Clone)]
pub struct Hours {
    /// Answered probes by day, hour and level.
    levels: Vec<u32>,
    lost: [[u64; HOURS]; FOLDS],
    /// No probe was answered.
    is_empty: bool,
}

impl Default for Hours {
    fn default() -> Self {
        Self { levels: vec![0; FOLDS * HOURS * LEVELS], lost: [[0; HOURS]; FOLDS], is_empty: true }
    }
}

/// Edges of each slot: below, at and above each percentile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edges {
    pub(super) of: Vec<[[i64; 3]; PERCENTILES.len()]>,
    /// Share of lost probes.
    pub(super) lost: Vec<f64>,
}

/// Edges by each way to divide a week: without each of its days, and with all.
#[derive(Debug, Clone)]
pub struct Candidates {
    without: Vec<Option<[Edges; WAYS]>>,
    pub(super) whole: [Edges; WAYS],
}

/// A minute of the baseline, counted by the edges of the other days.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    pub(super) minute: i64,
    pub(super) by: [Tally; WAYS],
    /// Shares of lost probes of the other days.
    pub(super) lost: [f64; WAYS],
}

/// Probes of a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Answered probes.
    pub answered: u64,
    /// Lost probes.
    pub lost: u64,
    /// The answered ones above each edge of each percentile.
    pub above: [[u64; 3]; PERCENTILES.len()],
}

impl Hours {
    /// Records `n` answered probes of a minute, which is counted from 1970 on.
    pub fn record(&mut self, minute: i64, latency_ns: i64, n: u64) {
        let row = day(minute) * HOURS + hour(minute);
        let count = &mut self.levels[row * LEVELS + level(latency_ns)];
        *count = count.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
        self.is_empty &= n == 0;
    }

    /// Records lost probes of a minute.
    pub fn record_lost(&mut self, minute: i64, n: u64) {
        self.lost[day(minute)][hour(minute)] += n;
    }

    /// The edges, apart from the percentiles by `margin`. `None` without an answered probe.
    #[must_use]
    pub fn candidates(&self, margin: f64) -> Option<Candidates> {
        // Most targets of a new watch have none, and looking through all levels takes 10 ms.
        if self.is_empty {
            return None;
        }
        let without = (0..FOLDS).map(|left| self.by_all_ways(Some(left), margin));
        Some(Candidates { without: without.collect(), whole: self.by_all_ways(None, margin)? })
    }

    fn by_all_ways(&self, left_out: Option<usize>, margin: f64) -> Option<[Edges; WAYS]> {
        // Working days, weekends, all.
        let mut rows = [0, 1, 2].map(|_| vec![Row::default(); HOURS]);
        for fold in (0..FOLDS).filter(|fold| Some(*fold) != left_out) {
            let of_day = self.levels[fold * HOURS * LEVELS..].chunks_exact(LEVELS);
            for (hour, (row, lost)) in of_day.zip(self.lost[fold]).enumerate() {
                rows[usize::from(fold >= 5)][hour].add(row, lost);
                rows[2][hour].add(row, lost);
            }
        }
        let mut all = Row::default();
        rows[2].iter().for_each(|row| all.add(&row.levels, row.lost));
        if all.answered() == 0 {
            return None;
        }
        let whole = (all.edges(margin), all.lost_share());
        Some(REACHES.map(|reach| {
            let of_slot = |slot: usize| {
                let days = if reach.all_days { 2 } else { slot / HOURS };
                if reach.around >= HOURS / 2 {
                    return whole;
                }
                let mut sum = Row::default();
                let first = slot + HOURS - reach.around;
                (first..=first + 2 * reach.around)
                    .map(|hour| &rows[days][hour % HOURS])
                    .for_each(|row| sum.add(&row.levels, row.lost));
                if sum.answered() == 0 { whole } else { (sum.edges(margin), sum.lost_share()) }
            };
            // Slots of all days are the same for weekends.
            let slots = if reach.all_days { HOURS } else { SLOTS };
            let (of, lost): (Vec<_>, Vec<_>) = (0..slots).map(of_slot).unzip();
            let twice = SLOTS / slots;
            Edges { of: of.repeat(twice), lost: lost.repeat(twice) }
        }))
    }
}

/// Answered probes by level, and lost ones.
#[derive(Debug, Clone, Default)]
struct Row {
    levels: Vec<u32>,
    lost: u64,
}

impl Row {
    fn add(&mut self, levels: &[u32], lost: u64) {
        self.levels.resize(LEVELS, 0);
        for (sum, count) in self.levels.iter_mut().zip(levels) {
            *sum = sum.saturating_add(*count);
        }
        self.lost += lost;
    }

    fn answered(&self) -> u64 {
        self.levels.iter().map(|count| u64::from(*count)).sum()
    }

    fn lost_share(&self) -> f64 {
        self.lost as f64 / (self.lost + self.answered()).max(1) as f64
    }

    fn edges(&self, margin: f64) -> [[i64; 3]; PERCENTILES.len()] {
        let samples = self.answered();
        PERCENTILES.map(|p| {
            let rank = p.rank(samples);
            let mut below = 0;
            let found = self.levels.iter().position(|count| {
                below += u64::from(*count);
                below >= rank
            });
            let level = found.unwrap_or(LEVELS - 1);
            let (low, high) = (begin(level), begin(level + 1) - 1);
            let fast = libm::floor(low as f64 / (1.0 + margin)) as i64;
            let slow = libm::ceil(high as f64 * (1.0 + margin)) as i64;
            [fast - 1, high, slow]
        })
    }
}

impl Candidates {
    /// Counts a minute of the baseline. `None` if its day of the week has all probes.
    #[must_use]
    pub fn trial(&self, minute: i64, latencies_ns: &[(i64, u64)], lost: u64) -> Option<Trial> {
        let without = self.without[day(minute)].as_ref()?;
        let tally = |edges: &Edges| edges.tally(minute, latencies_ns.iter().copied(), lost);
        let lost = without.each_ref().map(|edges| edges.lost_share(minute));
        Some(Trial { minute, by: without.each_ref().map(tally), lost })
    }
}

impl Edges {
    /// Counts the probes of a minute: latencies with how many have each, and the lost ones.
    #[must_use]
    pub fn tally(
        &self,
        minute: i64,
        latencies_ns: impl IntoIterator<Item = (i64, u64)>,
        lost: u64,
    ) -> Tally {
        let edges = &self.of[slot(minute)];
        let mut tally = Tally { lost, ..Tally::default() };
        for (latency_ns, n) in latencies_ns {
            tally.answered += n;
            for (counts, edges) in tally.above.iter_mut().zip(edges) {
                for (count, edge) in counts.iter_mut().zip(edges) {
                    *count += if latency_ns > *edge { n } else { 0 };
                }
            }
        }
        tally
    }

    /// The percentile in the hour of a minute, in ns.
    #[must_use]
    pub fn percentile_ns(&self, minute: i64, p: Probability) -> Option<i64> {
        let index = PERCENTILES.iter().position(|of| *of == p)?;
        Some(self.of[slot(minute)][index][1])
    }

    /// The share of lost probes in the hour of a minute.
    #[must_use]
    pub fn lost_share(&self, minute: i64) -> f64 {
        self.lost[slot(minute)]
    }

    #[cfg(test)]
    pub(super) fn at(&self, minute: i64) -> &[[i64; 3]; PERCENTILES.len()] {
        &self.of[slot(minute)]
    }
}

fn level(value_ns: i64) -> usize {
    let value = value_ns.max(0).cast_unsigned();
    if value < 1 << SUB_BITS {
        return value as usize;
    }
    let octave = value.ilog2() - SUB_BITS;
    let index = ((octave as usize) << SUB_BITS) + (value >> octave) as usize;
    index.min(LEVELS - 1)
}

/// The smallest value of a level.
fn begin(level: usize) -> i64 {
    if level < 1 << SUB_BITS {
        return level as i64;
    }
    let octave = (level >> SUB_BITS) - 1;
    let within = (level & ((1 << SUB_BITS) - 1)) + (1 << SUB_BITS);
    (within as i64) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_successive_and_narrow() {
        for value in (0..1 << 20).chain([60_000_000_000, (1 << 36) - 1]) {
            let level = level(value);
            assert!(begin(level) <= value && value < begin(level + 1), "{value}");
            let width = begin(level + 1) - begin(level);
            assert!(width == 1 || width as f64 <= value as f64 / 255.0, "{value}");
        }
        assert_eq!((level(-5), level(i64::MAX)), (0, LEVELS - 1));
    }

    #[test]
    fn slots_have_their_own_edges_and_days_are_left_out() {
        let mut hours = Hours::default();
        // A week from Thursday on; on Sunday, its fourth day, all is slower.
        for minute in 0..7 * 1_440 {
            let base = if hour(minute) < 12 { 1_000_000 } else { 2_000_000 };
            let base = if day(minute) == 6 { 4_000_000 } else { base };
            (0..60).for_each(|n| hours.record(minute, base + n * 1_000, 1));
            hours.record_lost(minute, u64::from(minute % 60 == 0));
        }
        let candidates = hours.candidates(0.05).unwrap();
        let p50 = |way: usize, minute: i64| candidates.whole[way].at(minute)[0][1] as f64 / 1e6;
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.005);
        // Hours of working days; of all days; all.
        close(p50(0, 3 * 60), 1.029);
        close(p50(1, 15 * 60), 2.029);
        close(candidates.whole[4].at(0)[2][1] as f64 / 1e6, 4.059);
        assert_eq!((day(3 * 1_440), slot(3 * 1_440 + 60), slot(61)), (6, 25, 1));
        let [fast, own, slow] = candidates.whole[0].at(180)[0];
        close(slow as f64 / own as f64, 1.05);
        assert!((own as f64 / fast as f64 - 1.05).abs() < 0.006);
        close(candidates.whole[4].lost_share(0) * 3_601.0, 1.0);
        let tally =
            candidates.whole[0].tally(180, [(fast, 1), (own, 2), (slow, 4), (slow + 1, 8)], 3);
        assert_eq!((tally.answered, tally.lost, tally.above[0]), (15, 3, [14, 12, 8]));
        // Without Sunday, nothing is as slow as it.
        let sunday: Vec<(i64, u64)> = (0..60).map(|n| (4_000_000 + n * 1_000, 1)).collect();
        let trial = candidates.trial(3 * 1_440, &sunday, 0).unwrap();
        assert_eq!(trial.by.map(|tally| tally.above[2][1]), [60; WAYS]);
        assert!(Hours::default().candidates(0.05).is_none());
    }
}
