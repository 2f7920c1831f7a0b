//! Bursts: frames that enter back to back, and the latency by position within them (seeds: "Influence of
//! batch sizes").

use serde::{Deserialize, Serialize};
use tailtrim_stats::Histogram;

/// Positions with a histogram of their own; later ones share the last.
pub const POSITIONS: usize = 256;

/// Fewer gaps than this say nothing about the kind of traffic.
const FEWEST_GAPS: usize = 64;

/// Gaps within bursts and between them differ at least by this factor. Poisson arrivals have no such hole
/// in the middle of their gaps: among 64 sorted exponential gaps without the outer 2 %, neighbours rarely
/// differ by a factor of 2.
const HOLE: i64 = 8;

/// The coarsest resolution of stamps that is considered: microseconds, as in older pcap files.
const COARSEST_NS: i64 = 1_000;

/// The gap, in ns, up to which a frame belongs to the burst of the one before; `None` when the traffic
/// has no bursts. Looks for the widest hole in the sorted gaps of the first frames, without those that are written late.
pub(super) fn threshold_ns(stamps_ns: &[i64]) -> Option<i64> {
    let mut newest_ns = i64::MIN;
    let in_order = stamps_ns.iter().filter(|stamp_ns| {
        let is_late = **stamp_ns < newest_ns;
        newest_ns = newest_ns.max(**stamp_ns);
        !is_late
    });
    let in_order: Vec<i64> = in_order.copied().collect();
    let mut gaps: Vec<i64> =
        in_order.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    if gaps.len() < FEWEST_GAPS {
        return None;
    }
    // A gap of 0 means less than the resolution of the stamps. It counts as one step of the resolution, the smallest gap that
    // the stamps can show.
    let resolution_ns = gaps.iter().copied().fold(0, common_divisor).clamp(1, COARSEST_NS);
    gaps.iter_mut().for_each(|gap_ns| *gap_ns = resolution_ns.max(*gap_ns));
    gaps.sort_unstable();
    // One gap in 128 between bursts is a burst of 128; fewer are outliers, not a pattern.
    let edge = (gaps.len() / 128).max(1);
    let middle = &gaps[edge..gaps.len() - edge];
    let (below, above) = middle
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .max_by(|a, b| (a.1 as f64 / a.0 as f64).total_cmp(&(b.1 as f64 / b.0 as f64)))?;
    (above >= below.saturating_mul(HOLE))
        .then(|| below.saturating_mul(((above / below) as f64).sqrt() as i64))
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Numbers the frames of a burst.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    threshold_ns: i64,
    last_ns: i64,
    position: u16,
}

impl Position {
    pub(super) fn new(threshold_ns: i64) -> Self {
        Self { threshold_ns, last_ns: i64::MIN, position: 0 }
    }

    /// The position of an ingress frame in its burst, from 0.
    #[inline]
    pub(super) fn next(&mut self, stamp_ns: i64) -> u16 {
        let gap_ns = stamp_ns.saturating_sub(self.last_ns);
        let within = gap_ns <= self.threshold_ns;
        self.position = if within { self.position.saturating_add(1) } else { 0 };
        // Behind a frame that is written a little late, the burst of the newest one goes on; behind others, that from here.
        if gap_ns >= 0 || gap_ns < -self.threshold_ns {
            self.last_ns = stamp_ns;
        }
        self.position
    }
}

/// Latencies by position in the burst.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Bursts {
    /// The largest gap within a burst, in ns.
    pub gap_ns: i64,
    /// One histogram a position, the last one for it and all later ones.
    pub positions: Vec<Histogram>,
}

impl Bursts {
    /// Adds the latencies of other packets.
    pub(super) fn merge(&mut self, other: &Self) {
        let positions = self.positions.len().max(other.positions.len());
        self.positions.resize_with(positions, Histogram::new);
        for (position, other) in self.positions.iter_mut().zip(&other.positions) {
            position.merge(other);
        }
    }

    #[inline]
    pub(super) fn record(&mut self, position: u16, latency_ns: i64) {
        let position = usize::from(position).min(POSITIONS - 1);
        if position >= self.positions.len() {
            self.positions.resize_with(position + 1, Histogram::new);
        }
        self.positions[position].record(latency_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(gaps: impl IntoIterator<Item = i64>) -> Vec<i64> {
        gaps.into_iter()
            .scan(0, |time, gap| {
                *time += gap;
                Some(*time)
            })
            .collect()
    }

    #[test]
    fn back_to_back_frames_are_a_burst() {
        let stamps = stamps((0..1000).map(|n| if n % 4 == 0 { 400_000 + n } else { 100 + n % 7 }));
        let threshold = threshold_ns(&stamps).unwrap();
        assert!((200..200_000).contains(&threshold), "{threshold}");
        let mut position = Position::new(threshold);
        let numbers: Vec<u16> = stamps[..8].iter().map(|&stamp| position.next(stamp)).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 0, 1, 2, 3]);
    }

    /// Regression: a frame that was written behind its successor made a gap of nothing, and ended its burst.
    #[test]
    fn frames_that_are_written_late_make_and_end_no_burst() {
        let mut constant = stamps((0..1000).map(|_| 10_000));
        (0..20).for_each(|n| constant.swap(n * 50, n * 50 + 1));
        assert_eq!(threshold_ns(&constant), None);
        let mut position = Position::new(1_000);
        let numbers = [0, 400, 900, 300, 1_350, 1_800].map(|stamp| position.next(stamp));
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        // The clock steps back by more.
        assert_eq!([-9_000, -8_500, -7_000].map(|stamp| position.next(stamp)), [6, 7, 0]);
    }

    #[test]
    fn constant_and_poisson_traffic_have_no_bursts() {
        assert_eq!(threshold_ns(&stamps((0..1000).map(|n| 100_000 + n % 13))), None);
        assert_eq!(threshold_ns(&stamps(poisson(100_000.0))), None);
    }

    fn poisson(mean_ns: f64) -> impl Iterator<Item = i64> {
        let mut state = 1_u64;
        (0..2000).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let uniform = ((state >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
            (-uniform.ln() * mean_ns) as i64
        })
    }

    /// Two packets within a microsecond have equal stamps: these looked like gaps of 1 ns, and so like bursts.
    #[test]
    fn stamps_in_microseconds_do_not_make_bursts() {
        let rounded = |stamps: Vec<i64>| stamps.into_iter().map(|ns| ns / 1_000 * 1_000).collect();
        for mean_ns in [700.0, 2_000.0, 10_000.0, 50_000.0] {
            let stamps: Vec<i64> = rounded(stamps(poisson(mean_ns)));
            assert_eq!(threshold_ns(&stamps), None, "{mean_ns}");
        }
        for interval_ns in [667, 833] {
            let stamps: Vec<i64> = rounded(stamps((0..2000).map(|_| interval_ns)));
            assert_eq!(threshold_ns(&stamps), None, "{interval_ns}");
        }
        let bursts = (0..1000).map(|n| if n % 4 == 0 { 400_000 } else { 67 });
        let threshold = threshold_ns(&rounded(stamps(bursts))).unwrap();
        assert!((1_000..200_000).contains(&threshold), "{threshold}");
    }

    #[test]
    fn bursts_whose_frames_have_one_stamp_are_bursts() {
        for between_ns in [400_000, 400_001] {
            let bursts = (0..1000).map(|n| if n % 4 == 0 { between_ns } else { 0 });
            let threshold = threshold_ns(&stamps(bursts)).unwrap();
            assert!((1..200_000).contains(&threshold), "{threshold}");
        }
    }
}
