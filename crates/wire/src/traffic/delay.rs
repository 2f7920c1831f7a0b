//! Delays that are known beforehand: what a device under test must do so that a measurement of it can be
//! checked.

use crate::duration::time_ns;
use std::fmt;
use std::str::FromStr;

/// Model of the delay of each packet in the ground-truth device. A function of seed, sequence number and arrival alone,
/// so that any packet's delay can be computed without those of the packets before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// The same for every packet.
    Constant {
        /// The delay.
        ns: u64,
    },
    /// One of two.
    Bimodal {
        /// The usual one.
        low_ns: u64,
        /// The rare one.
        high_ns: u64,
        /// The share of the rare one, in millionths.
        millionths: u64,
    },
    /// Pareto distributed, at most [`LONGEST_NS`].
    Heavy {
        /// The least delay.
        least_ns: u64,
        /// The exponent, in thousandths: the smaller, the heavier the tail.
        shape: u64,
    },
    /// The device stops every now and then; who arrives meanwhile waits for the end.
    Stall {
        /// The delay otherwise.
        base_ns: u64,
        /// Length of a stop.
        stall_ns: u64,
        /// From the start of one stall to that of the next.
        period_ns: u64,
    },
}

/// No packet is kept longer: a device that waits busily holds up all that follow.
pub const LONGEST_NS: u64 = 10_000_000;

/// A model of delays that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "delay {text:?}: expected constant:10us, bimodal:10us,100us,0.01 (low, high, share of high), heavy:10us,1.5 (least, \
exponent) or stall:10us,200us,5ms (otherwise, stall, period), each time at most 10ms but the period"
)]
pub struct DelayError {
    text: String,
}

impl FromStr for Delay {
    type Err = DelayError;

    fn from_str(text: &str) -> Result<Self, DelayError> {
        parse(text).ok_or_else(|| DelayError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Delay> {
    let (model, values) = text.split_once(':')?;
    let values: Vec<&str> = values.split(',').collect();
    let kept = |text| time_ns(text).filter(|ns| *ns <= LONGEST_NS);
    match (model, values.as_slice()) {
        ("constant", [ns]) => Some(Delay::Constant { ns: kept(ns)? }),
        ("bimodal", [low, high, share]) => {
            let millionths = scaled(share, 1e6).filter(|share| *share <= 1_000_000)?;
            Some(Delay::Bimodal { low_ns: kept(low)?, high_ns: kept(high)?, millionths })
        }
        ("heavy", [least, shape]) => {
            let shape = scaled(shape, 1e3).filter(|shape| *shape > 0)?;
            Some(Delay::Heavy { least_ns: kept(least)?, shape })
        }
        ("stall", [base, stall, period]) => {
            let (base_ns, stall_ns, period_ns) = (kept(base)?, kept(stall)?, time_ns(period)?);
            (stall_ns < period_ns).then_some(Delay::Stall { base_ns, stall_ns, period_ns })
        }
        _ => None,
    }
}

fn scaled(text: &str, scale: f64) -> Option<u64> {
    let value = text.parse::<f64>().ok()? * scale;
    (0.0..1e15).contains(&value).then_some(value.round() as u64)
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { ns } => write!(f, "constant:{ns}ns"),
            Self::Bimodal { low_ns, high_ns, millionths } => {
                write!(f, "bimodal:{low_ns}ns,{high_ns}ns,{}", *millionths as f64 / 1e6)
            }
            Self::Heavy { least_ns, shape } => {
                write!(f, "heavy:{least_ns}ns,{}", *shape as f64 / 1e3)
            }
            Self::Stall { base_ns, stall_ns, period_ns } => {
                write!(f, "stall:{base_ns}ns,{stall_ns}ns,{period_ns}ns")
            }
        }
    }
}

impl Delay {
    /// Computes the delay of the packet of this number that arrived `arrival_ns` after the start.
    #[must_use]
    pub fn delay_ns(&self, seed: u64, sequence: u64, arrival_ns: u64) -> u64 {
        match *self {
            Self::Constant { ns } => ns,
            Self::Bimodal { low_ns, high_ns, millionths } => {
                let rare = uniform(seed, sequence) < millionths as f64 / 1e6;
                if rare { high_ns } else { low_ns }
            }
            Self::Heavy { least_ns, shape } => {
                let exponent = -1e3 / shape as f64;
                let factor = libm::pow(1.0 - uniform(seed, sequence), exponent);
                ((least_ns as f64 * factor) as u64).min(LONGEST_NS)
            }
            Self::Stall { base_ns, stall_ns, period_ns } => {
                let into_ns = arrival_ns % period_ns;
                base_ns + stall_ns.saturating_sub(into_ns)
            }
        }
    }
}

/// A number in [0, 1) that depends on nothing else (SplitMix64, the 53 upper bits).
pub(super) fn uniform(seed: u64, sequence: u64) -> f64 {
    let mut state = seed.wrapping_add(sequence.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((state ^ state >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> Delay {
        text.parse().unwrap()
    }

    #[test]
    fn models_print_as_they_are_read() {
        for text in [
            "constant:10us",
            "bimodal:10us,100us,0.01",
            "heavy:10us,1.5",
            "stall:10us,200us,5ms",
            "constant:0ns",
            "stall:1us,2.5us,1s",
        ] {
            let model = model(text);
            assert_eq!(model.to_string().parse::<Delay>().unwrap(), model, "{text}");
        }
        for text in [
            "",
            "constant",
            "constant:10",
            "constant:11ms",
            "constant:-1us",
            "bimodal:1us,2us,1.5",
            "heavy:1us,0",
            "stall:1us,5ms,5ms",
            "constant:1us,2us",
            "constant:infus",
        ] {
            assert!(text.parse::<Delay>().is_err(), "{text}");
        }
    }

    #[test]
    fn delays_have_the_distribution_that_was_asked_for() {
        let sorted = |text: &str| {
            let model = model(text);
            let mut delays: Vec<u64> = (0..100_000).map(|n| model.delay_ns(3, n, 0)).collect();
            delays.sort_unstable();
            delays
        };
        let bimodal = sorted("bimodal:10us,100us,0.01");
        let rare = bimodal.iter().filter(|ns| **ns == 100_000).count();
        assert!((900..1100).contains(&rare), "{rare}");
        let heavy = sorted("heavy:10us,1.5");
        // The quantile of a Pareto distribution: least · (1 − p)^(−1/shape).
        for (index, expected_ns) in [(50_000, 15_874.0), (90_000, 46_416.0), (99_000, 215_443.0)] {
            let found = heavy[index] as f64;
            assert!((found / expected_ns - 1.0).abs() < 0.06, "{index}: {found}");
        }
        assert!(heavy.iter().all(|ns| (10_000..=LONGEST_NS).contains(ns)));
    }

    #[test]
    fn who_arrives_in_a_stall_waits_for_its_end() {
        let model = model("stall:1us,200us,5ms");
        let delay = |arrival_us: u64| model.delay_ns(0, 0, arrival_us * 1000);
        assert_eq!(delay(0), 201_000);
        assert_eq!(delay(199), 2_000);
        assert_eq!(delay(200), 1_000);
        assert_eq!(delay(5_050), 151_000);
    }
}
