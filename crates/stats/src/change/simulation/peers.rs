//! Other tests of the same minutes.

use super::super::detector::{ALARM, YEAR};
use super::super::edges::{Edges, Tally};
use super::super::{Line, PERCENTILES, Reference};
use super::traffic::{Change, Kind, Path, shares};
use super::{DAY, WEEK};

/// Probes beyond each percentile, and lost ones; with all that count.
fn counts(tally: &Tally) -> [(u64, u64); 4] {
    let [a, b, c] = tally.above.map(|above| (above[1], tally.answered));
    [a, b, c, (tally.lost, tally.answered + tally.lost)]
}

/// A test each day at 5 %: whether the share beyond is that of the baseline, for independent probes.
#[derive(Debug, Clone)]
pub(super) struct Daily {
    expected: [f64; 4],
    sums: [(u64, u64); 4],
}

impl Daily {
    /// Knows the shares of a week of the path.
    pub(super) fn new(mut path: Path, reference: &Reference) -> Self {
        let mut daily = Self { expected: [0.0; 4], sums: Default::default() };
        for minute in 0..WEEK {
            daily.add(&path.tally(minute, reference.edges(), &Change::NONE));
        }
        daily.expected = daily.sums.map(|(beyond, all)| beyond as f64 / all as f64);
        Self { sums: Default::default(), ..daily }
    }

    fn add(&mut self, tally: &Tally) {
        for (sum, count) in self.sums.iter_mut().zip(counts(tally)) {
            *sum = (sum.0 + count.0, sum.1 + count.1);
        }
    }

    /// Enters a minute. Returns the number of percentiles, and loss, that have changed by the test of the day.
    pub(super) fn enter(&mut self, minute: i64, tally: &Tally) -> u64 {
        self.add(tally);
        if minute % DAY != DAY - 1 {
            return 0;
        }
        let sums = std::mem::take(&mut self.sums).into_iter().zip(self.expected);
        sums.filter(|((beyond, all), share)| {
            let all = *all as f64;
            let off = *beyond as f64 - share * all;
            off.abs() > 1.96 * (share * (1.0 - share) * all).sqrt()
        })
        .count() as u64
    }
}

/// CUSUMs of log likelihood ratios (Page 1954) of independent probes, one for each percentile and for loss, which knows the shares
/// beyond before and after the change. With its threshold it has the false alarms of our lines.
#[derive(Debug, Clone)]
pub(super) struct Cusum {
    shares: [[f64; 2]; 4],
    sums: [f64; 4],
}

impl Cusum {
    /// Knows the usual shares, and waits for twice as much.
    pub(super) fn doubled() -> Self {
        let of = |share: f64| [share, 2.0 * share];
        Self { shares: [[0.5, 0.75], of(0.01), of(0.001), of(0.000_5)], sums: [0.0; 4] }
    }

    /// Knows the change of independent probes.
    pub(super) fn known(kind: Kind, change: &Change, edges: &Edges) -> Self {
        let [a, b, c] = PERCENTILES.map(|p| shares(kind, change, edges, p));
        Self { shares: [a, b, c, [0.000_5, 0.000_5 + change.lost]], sums: [0.0; 4] }
    }

    /// Enters a minute. Returns the number of alarms, after which it begins anew.
    pub(super) fn enter(&mut self, tally: &Tally) -> u64 {
        let mut alarms = 0;
        let needed = (ALARM / Line::COUNT as f64 * 4.0).max(YEAR).ln();
        for ((sum, [before, after]), (beyond, all)) in
            self.sums.iter_mut().zip(self.shares).zip(counts(tally))
        {
            let (beyond, others) = (beyond as f64, (all - beyond) as f64);
            let ratio =
                beyond * (after / before).ln() + others * ((1.0 - after) / (1.0 - before)).ln();
            *sum = (*sum + ratio).max(0.0);
            if *sum >= needed {
                alarms += 1;
                *sum = 0.0;
            }
        }
        alarms
    }
}
