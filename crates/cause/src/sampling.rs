//! Sampling of a periodic cause by a schedule of packets.
//!
//! Packets at a constant rate meet a cause of constant period at phases that repeat: the beat of both. A
//! cause shorter than the time between packets is met now and then only, and which share of its
//! occurrences a run meets depends on the phase at which it began (aliasing).

use serde::Serialize;

/// Packet schedule of a run, as far as it matters for sampling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Mean time between packets; where it is constant, lost ones count as sent.
    pub interval_ns: f64,
    /// Whether that time is constant, but for the sender's inaccuracy, or packets come in bursts.
    pub constant: bool,
}

/// Share of a periodic cause that a schedule samples, and the beat of both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampling {
    /// Times that the cause occurred in the run.
    pub occurrences: u64,
    /// Share of them that delayed a packet.
    pub met: f64,
    /// Share that packets at random times would meet.
    pub expected: f64,
    /// Whether packets are further apart than the cause lasts.
    pub undersampled: bool,
    /// The beat of packets and cause: as often, packets sweep over it once. None unless packets come at
    /// a constant rate and the cause is undersampled.
    pub beat_hz: Option<f64>,
    /// Whether the run is too short to see the beat a few times: what it shows of this cause is luck.
    pub aliased: bool,
}

/// Packets come at a constant rate where half of the gaps deviate by less than this part of it from a multiple of the
/// interval. Generators keep their gaps better: half of them to 0.2 % at 100,000 packets a second, tcpreplay's to 2 %
/// (benchmarks/runs/2026-11-21-epyc-2core-live). Random ones are far away: of Poisson gaps, 9 % are as near to a multiple of their
/// shortest quarter.
const CONSTANT: f64 = 0.05;

/// The shortest quarter of the gaps is one interval if at least this part of the packets came.
const FEWEST_SENT: f64 = 0.25;

/// With fewer beats in a run, the phase at its beginning decides what it shows: a run has whole beats and a part of
/// one, which changes the share that it meets by up to one in so many.
const FEWEST_BEATS: f64 = 10.0;

/// Slower than about a beat a day (1.2·10⁻⁵ Hz), packets and cause stand still against each other: a run would take more
/// than [`FEWEST_BEATS`] days. It also keeps rounding errors of equal rates from being called a beat.
const STANDS_HZ: f64 = 1e-5;

/// Beats are searched among so many occurrences of the cause. One of the first N returns to within interval / N of
/// where packets were (Dirichlet's approximation theorem): the search finds each cause that takes a ten-thousandth of
/// the interval, 10 ns of 100 µs, or longer.
const LONGEST: u64 = 10_000;

impl Schedule {
    /// The schedule of samples (ingress stamp, egress stamp) in order of their ingress stamps.
    #[must_use]
    pub fn of(samples: &[(i64, i64)]) -> Self {
        let mut gaps: Vec<i64> = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        if gaps.is_empty() {
            return Self { interval_ns: 0.0, constant: false };
        }
        let mean_ns = gaps.iter().sum::<i64>() as f64 / gaps.len() as f64;
        gaps.sort_unstable();
        let quartile = |n: usize| gaps[(gaps.len() - 1) * n / 4] as f64;
        let within_ns = quartile(3) - quartile(1);
        if within_ns < 2.0 * CONSTANT * mean_ns && quartile(1) < FEWEST_SENT * mean_ns {
            // Bursts.
            return Self { interval_ns: mean_ns, constant: true };
        }
        // Packets that were lost leave gaps of several intervals.
        let slots = |interval_ns: f64| {
            gaps.iter().map(|gap| libm::round(*gap as f64 / interval_ns).max(1.0)).sum::<f64>()
        };
        let sum_ns = mean_ns * gaps.len() as f64;
        let single = gaps.partition_point(|gap| (*gap as f64) < 1.5 * quartile(1));
        let single_ns = gaps[..single].iter().sum::<i64>() as f64 / single.max(1) as f64;
        let interval_ns = sum_ns / slots(single_ns.max(1.0));
        let off = |gap: &&i64| {
            let turns = **gap as f64 / interval_ns;
            (turns - libm::round(turns).max(1.0)).abs() < CONSTANT
        };
        let constant = gaps.iter().filter(off).count() * 2 >= gaps.len();
        let interval_ns = if constant { interval_ns } else { mean_ns };
        Self { interval_ns, constant }
    }

    /// Computes this schedule's sampling of a cause that takes `delay_ns` in `share` of the periods of a clock of
    /// `period_ns`, in a run of `run_ns` that met it in `events`.
    #[must_use]
    pub fn sample(
        &self,
        (period_ns, share): (f64, f64),
        delay_ns: i64,
        events: u64,
        run_ns: i64,
    ) -> Sampling {
        let occurrences = libm::round(run_ns as f64 / period_ns * share).max(1.0) as u64;
        let undersampled = (delay_ns as f64) < self.interval_ns;
        let beat_hz = (self.constant && undersampled)
            .then(|| beat_hz(self.interval_ns, period_ns, delay_ns as f64))
            .flatten();
        // No beat at all: the phase never moves.
        let aliased = self.constant
            && undersampled
            && beat_hz.is_none_or(|hz| hz * run_ns as f64 / 1e9 < FEWEST_BEATS);
        Sampling {
            occurrences,
            met: events as f64 / occurrences as f64,
            expected: if undersampled { delay_ns as f64 / self.interval_ns } else { 1.0 },
            undersampled,
            beat_hz,
            aliased,
        }
    }
}

/// The beat: after n occurrences of the cause, packets are nearly where they were. For the smallest n
/// for which they moved by less than the cause lasts, they sweep over it in steps of that. None where
/// they do not move at all.
#[must_use]
pub fn beat_hz(interval_ns: f64, period_ns: f64, delay_ns: f64) -> Option<f64> {
    let ratio = period_ns / interval_ns;
    (1..=LONGEST).find_map(|n| {
        let turns = ratio * n as f64;
        let moved = turns - libm::round(turns);
        (moved.abs() * interval_ns < delay_ns).then(|| {
            // Packets in one interval are alike: a sweep is over when the next one has come there. Of n
            // sweeps that interleave, the first packet of one takes the place of the last one's.
            let beat_hz = moved.abs() / (n as f64 * period_ns) * 1e9;
            (beat_hz > STANDS_HZ).then_some(beat_hz)
        })
    })?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_beat_of_near_multiples_is_their_difference() {
        // 10,007.8 packets/s over 250 Hz: forty ticks' worth of packets are 7.8 too many a second.
        let beat = beat_hz(1e9 / 10_007.8, 1e9 / 250.0, 7_500.0).unwrap();
        assert!((beat - 7.8).abs() < 0.01, "{beat}");
        assert_eq!(beat_hz(100_000.0, 4_000_000.0, 7_500.0), None);
    }

    const INTERVAL_NS: i64 = 99_921;

    proptest! {
        /// The mean gap was taken for the interval: aliases and beats were those of another rate.
        #[test]
        fn lost_packets_do_not_change_the_interval(
            sent in prop::collection::vec((prop::bool::weighted(0.4), 0..2_000_i64), 2_000)
        ) {
            let at_ns = |(number, (_, late_ns)): (i64, (bool, i64))| number * INTERVAL_NS + late_ns;
            let came = (0..).zip(sent).filter(|(_, (came, _))| *came);
            let samples: Vec<(i64, i64)> = came.map(at_ns).map(|ns| (ns, ns + 10_000)).collect();
            let schedule = Schedule::of(&samples);
            let off = (schedule.interval_ns / INTERVAL_NS as f64 - 1.0).abs();
            prop_assert!(schedule.constant && off < 2e-5, "{schedule:?}");
        }

        #[test]
        fn random_gaps_are_not_constant(
            mut times in prop::collection::vec(0..2_000 * INTERVAL_NS, 500..2_000)
        ) {
            times.sort_unstable();
            let samples: Vec<(i64, i64)> = times.into_iter().map(|ns| (ns, ns + 10_000)).collect();
            prop_assert!(!Schedule::of(&samples).constant);
        }
    }

    #[test]
    fn every_cause_of_a_ten_thousandth_has_a_beat() {
        // The golden ratio is approximated worst.
        let interval_ns = 100_000.0;
        let period_ns = interval_ns * (1.0 + 5_f64.sqrt()) / 2.0;
        assert!(beat_hz(interval_ns, period_ns, interval_ns / LONGEST as f64).is_some());
    }

    #[test]
    fn a_standing_phase_is_aliased() {
        let schedule = Schedule { interval_ns: 100_000.0, constant: true };
        assert!(schedule.sample((4_000_000.0, 1.0), 8_000, 0, 30_000_000_000).aliased);
        let moving = Schedule { interval_ns: 99_921.7, ..schedule };
        let sampling = moving.sample((4_000_195.0, 1.0), 8_000, 500, 30_000_000_000);
        assert!(sampling.undersampled && !sampling.aliased);
        let random = Schedule { constant: false, ..schedule };
        assert!(!random.sample((4_000_000.0, 1.0), 8_000, 0, 30_000_000_000).aliased);
    }
}
