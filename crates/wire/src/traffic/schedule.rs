//! When probes are to depart.

use super::rate::{Fraction, Multiples};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::fmt;
use std::str::FromStr;

/// Pattern of departures. All patterns keep the mean rate exactly or, where chance is part of them, in the long run.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Constant bit rate: equal gaps.
    Cbr,
    /// Exponential gaps, as of many independent senders.
    Poisson,
    /// So many back to back, then a gap.
    Burst(u64),
    /// Constant bit rate, each departure at another place within its gap, in steps of the golden ratio: whatever
    /// repeats is met at all of its phases alike.
    Golden,
    /// Constant bit rate, each departure shifted by up to this many thousandths of the gap either way.
    Jitter(u64),
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "schedule {text:?}: expected cbr, golden, poisson, burst:N (2 or more), jitter:SHARE (more than 0, at most 0.5) or replay:CAPTURE[:SCALE]"
)]
pub struct PatternError {
    text: String,
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let error = || PatternError { text: text.to_owned() };
        match text.split_once(':') {
            None if text == "cbr" => Ok(Self::Cbr),
            None if text == "golden" => Ok(Self::Golden),
            None if text == "poisson" => Ok(Self::Poisson),
            Some(("burst", size)) => {
                size.parse().ok().filter(|size| *size > 1).map(Self::Burst).ok_or_else(error)
            }
            Some(("jitter", share)) => share
                .parse::<f64>()
                .ok()
                .map(|share| (share * 1e3).round() as u64)
                .filter(|share| (1..=500).contains(share))
                .map(Self::Jitter)
                .ok_or_else(error),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cbr => f.write_str("cbr"),
            Self::Golden => f.write_str("golden"),
            Self::Poisson => f.write_str("poisson"),
            Self::Burst(size) => write!(f, "burst:{size}"),
            Self::Jitter(share) => write!(f, "jitter:{}", *share as f64 / 1e3),
        }
    }
}

/// The golden ratio without its whole part, of 2^64. Its multiples come closest to even in each of its stretches: of all
/// numbers it is approximated worst by fractions (Hurwitz's theorem).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A place below `span`, the next one for each number, in steps of the golden ratio: any stretch of numbers is spread evenly.
#[must_use]
pub fn golden_place(number: u64, span: u64) -> u64 {
    ((u128::from(number.wrapping_mul(GOLDEN)) * u128::from(span)) >> u64::BITS) as u64
}

/// Intended departures in ns after the start, ascending, without end but for a replay's. The same seed
/// gives the same schedule on every machine and in every version.
#[derive(Debug, Clone)]
pub struct Schedule {
    kind: Kind,
    random: Pcg64,
}

#[derive(Debug, Clone)]
enum Kind {
    /// So many at each multiple of the burst's interval; `left` are still to come at this one.
    Regular {
        at_ns: Multiples,
        size: u64,
        left: u64,
        gap_ns: u64,
        shift: u64,
    },
    Golden {
        at_ns: Multiples,
        gap_ns: u64,
        number: u64,
    },
    Poisson {
        mean_ns: f64,
        whole_ns: u64,
        part_ns: f64,
    },
    Replay {
        offsets_ns: std::vec::IntoIter<u64>,
    },
}

impl Schedule {
    /// The schedule of a pattern at a mean interval.
    #[must_use]
    pub fn new(pattern: &Pattern, interval_ns: Fraction, seed: u64) -> Self {
        let regular = |size: u64, shift| {
            let size = size.max(1);
            let Fraction { numerator, denominator } = interval_ns;
            // Whole bursts at whole multiples of their interval.
            let burst = Fraction { numerator: numerator * u128::from(size), denominator };
            let (at_ns, gap_ns) = (Multiples::new(burst), interval_ns.times(1));
            Kind::Regular { at_ns, size, left: size, gap_ns, shift }
        };
        let kind = match pattern {
            Pattern::Cbr => regular(1, 0),
            Pattern::Burst(size) => regular(*size, 0),
            Pattern::Jitter(share) => regular(1, *share),
            Pattern::Golden => {
                let (at_ns, gap_ns) = (Multiples::new(interval_ns), interval_ns.times(1));
                Kind::Golden { at_ns, gap_ns, number: 0 }
            }
            Pattern::Poisson => {
                Kind::Poisson { mean_ns: interval_ns.as_f64(), whole_ns: 0, part_ns: 0.0 }
            }
        };
        Self { kind, random: Pcg64::seed_from_u64(seed) }
    }

    /// The schedule of a recorded one: the first stamp is the start, times are multiplied by
    /// `thousandths` / 1000. Stamps out of order are put in order.
    #[must_use]
    pub fn replay(mut stamps_ns: Vec<i64>, thousandths: u64) -> Self {
        stamps_ns.sort_unstable();
        let first_ns = stamps_ns.first().copied().unwrap_or(0);
        let offsets_ns: Vec<u64> = stamps_ns
            .iter()
            .map(|stamp_ns| {
                let offset = u128::from(stamp_ns.abs_diff(first_ns)) * u128::from(thousandths);
                u64::try_from(offset / 1000).unwrap_or(u64::MAX)
            })
            .collect();
        let kind = Kind::Replay { offsets_ns: offsets_ns.into_iter() };
        Self { kind, random: Pcg64::seed_from_u64(0) }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match &mut self.kind {
            Kind::Regular { at_ns: multiples, size, left, gap_ns, shift } => {
                let at_ns = multiples.current();
                *left -= 1;
                if *left == 0 {
                    *left = *size;
                    multiples.advance();
                }
                if *shift == 0 {
                    return Some(at_ns);
                }
                let reach_ns = *gap_ns * *shift / 1000;
                let shift_ns = self.random.next_u64() % (2 * reach_ns + 1);
                Some((at_ns + shift_ns).saturating_sub(reach_ns))
            }
            Kind::Golden { at_ns: multiples, gap_ns, number } => {
                let start_ns = multiples.current();
                multiples.advance();
                let within_ns = golden_place(*number, *gap_ns);
                *number = number.wrapping_add(1);
                Some(start_ns + within_ns)
            }
            Kind::Poisson { mean_ns, whole_ns, part_ns } => {
                let at_ns = *whole_ns;
                // 53 random bits in (0, 1]; `libm`'s logarithm is the same on every machine.
                let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                let gap_ns = *part_ns - libm::log(uniform) * *mean_ns;
                *whole_ns += gap_ns as u64;
                *part_ns = gap_ns - (gap_ns as u64) as f64;
                Some(at_ns)
            }
            Kind::Replay { offsets_ns } => offsets_ns.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::NS_PER_S;
    use super::*;
    use proptest::prelude::*;

    fn departures(pattern: &str, rate: u64, count: usize) -> Vec<u64> {
        let interval = Fraction { numerator: u128::from(NS_PER_S), denominator: u128::from(rate) };
        Schedule::new(&pattern.parse().unwrap(), interval, 7).take(count).collect()
    }

    proptest! {
        #[test]
        fn departures_ascend_and_keep_the_rate(
            pattern in prop::sample::select(vec!["cbr", "golden", "poisson", "burst:2", "burst:64", "jitter:0.5", "jitter:0.001"]),
            rate in 1_u64..20_000_000,
        ) {
            let count = 20_000;
            let at = departures(pattern, rate, count);
            prop_assert!(at.is_sorted());
            let expected_ns = (count - 1) as f64 * 1e9 / rate as f64;
            let tolerance = if pattern == "poisson" { 0.05 } else { 0.004 };
            let last_ns = *at.last().unwrap() as f64;
            prop_assert!((last_ns / expected_ns - 1.0).abs() < tolerance, "{last_ns} {expected_ns}");
        }
    }

    #[test]
    fn constant_rate_does_not_drift() {
        let at = departures("cbr", 3, 7);
        assert_eq!(
            at,
            [
                0,
                333_333_333,
                666_666_666,
                1_000_000_000,
                1_333_333_333,
                1_666_666_666,
                2_000_000_000
            ]
        );
    }

    #[test]
    fn golden_departures_meet_all_phases_of_every_clock() {
        // 20 s at 10 kpkt/s: phases of 10 µs of clocks that a constant rate meets at 1 to 100 phases.
        for hz in [4_u64, 100, 250, 300, 1_000] {
            let met = |pattern: &str| {
                let (period_ns, phases) = (NS_PER_S / hz, 100_000 / hz);
                let mut met = vec![false; phases as usize];
                for at_ns in departures(pattern, 10_000, 200_000) {
                    met[(at_ns % period_ns * phases / period_ns) as usize] = true;
                }
                met.iter().filter(|met| **met).count() as f64 / phases as f64
            };
            assert!(met("golden") > 0.999, "{hz} Hz: {}", met("golden"));
            assert!(met("cbr") < 0.4, "{hz} Hz: {}", met("cbr"));
        }
    }

    #[test]
    fn golden_departures_lie_each_in_a_gap_of_its_own() {
        let at = departures("golden", 10_000, 6);
        assert_eq!(at, [0, 161_803, 223_606, 385_410, 447_213, 509_016]);
    }

    #[test]
    fn bursts_depart_at_once() {
        assert_eq!(departures("burst:3", 1_000_000, 7), [0, 0, 0, 3_000, 3_000, 3_000, 6_000]);
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let at = departures("poisson", 1_000_000, 100_001);
        let gaps: Vec<f64> = at.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        for quantile in [0.1, 0.5, 0.9, 0.99, 0.999_f64] {
            let expected_ns = -1000.0 * (1.0 - quantile).ln();
            let below = gaps.iter().filter(|gap| **gap <= expected_ns).count() as f64 / 1e5;
            assert!((below - quantile).abs() < 0.005, "{quantile}: {below}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule_for_ever() {
        assert_eq!(departures("poisson", 10_000, 6), GOLDEN_POISSON);
        assert_eq!(departures("jitter:0.2", 10_000, 6), GOLDEN_JITTER);
    }

    const GOLDEN_POISSON: [u64; 6] = [0, 758_707, 905_098, 915_458, 933_489, 1_004_479];
    const GOLDEN_JITTER: [u64; 6] = [6_964, 92_866, 217_929, 289_231, 381_890, 482_999];

    #[test]
    fn a_replay_keeps_its_own_times() {
        let at: Vec<u64> = Schedule::replay(vec![5_000, 1_000, 9_500], 2_000).collect();
        assert_eq!(at, [0, 8_000, 17_000]);
    }

    #[test]
    fn patterns_print_as_they_are_read() {
        for text in ["cbr", "golden", "poisson", "burst:32", "jitter:0.2", "jitter:0.5"] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        for text in
            ["", "burst", "burst:1", "burst:x", "jitter:0", "jitter:0.6", "jitter:NaN", "CBR"]
        {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
