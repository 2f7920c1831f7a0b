//! Latencies of one minute.

use serde::Serialize;
use tailtrim_stats::Histogram;

/// So many probes are kept one by one, in a megabyte: as much as a histogram takes from its first value on.
const FEW: usize = 1 << 16;

/// Round-trip times in ns of the probes of a minute: one by one, or counted if they are many.
#[derive(Debug)]
pub enum Values {
    /// Each probe that is known to be answered or not, in the order in which they were decided: when it left, in µs
    /// after the begin of the minute, and its round-trip time.
    Probes(Vec<(i64, Option<i64>)>),
    /// Round-trip times, counted.
    Counted(Box<Histogram>),
}

/// The values as they are written.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Written {
    /// Each probe, in the order of departures.
    Probes { at_us: Vec<i64>, latency_ns: Vec<Option<i64>> },
    /// All different round-trip times, ascending, with the number of probes that have each. If there were more than a
    /// [small](Histogram::small) histogram keeps exactly, they are rounded to 12 binary digits.
    Counted { rounded: bool, latency_ns: Vec<i64>, samples: Vec<u64> },
}

impl Default for Values {
    fn default() -> Self {
        Self::Probes(Vec::new())
    }
}

impl Values {
    /// Enters a probe; `None`: it was not answered in time.
    pub fn record(&mut self, at_us: i64, latency_ns: Option<i64>) {
        match self {
            Self::Probes(probes) if probes.len() < FEW => probes.push((at_us, latency_ns)),
            Self::Probes(probes) => {
                let mut counted = Histogram::small();
                counted.record_all(probes.iter().filter_map(|(_, ns)| *ns));
                *self = Self::Counted(Box::new(counted));
                self.record(at_us, latency_ns);
            }
            Self::Counted(counted) => latency_ns.into_iter().for_each(|ns| counted.record(ns)),
        }
    }

    pub(crate) fn written(&self) -> Written {
        match self {
            Self::Probes(probes) => {
                let mut probes = probes.clone();
                probes.sort_by_key(|(at_us, _)| *at_us);
                let (at_us, latency_ns) = probes.into_iter().unzip();
                Written::Probes { at_us, latency_ns }
            }
            Self::Counted(counted) => {
                let (latency_ns, samples) = counted.sorted().into_iter().unzip();
                Written::Counted { rounded: counted.is_rounded(), latency_ns, samples }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_counted_once_they_are_many() {
        let mut values = Values::default();
        let mut expected = Histogram::new();
        for number in 0..3 * FEW as i64 {
            let latency_ns = (number % 10 > 0).then_some((number * 7_919) % 100_003);
            values.record(number, latency_ns);
            latency_ns.into_iter().for_each(|ns| expected.record(ns));
        }
        let Written::Counted { rounded, latency_ns, samples } = values.written() else { panic!() };
        let pairs: Vec<(i64, u64)> = latency_ns.into_iter().zip(samples).collect();
        assert_eq!((pairs, rounded), (expected.sorted(), false));
    }

    #[test]
    fn few_probes_are_in_the_order_of_their_departures() {
        let mut values = Values::default();
        for (at_us, ns) in [(30, Some(5)), (10, None), (20, Some(7))] {
            values.record(at_us, ns);
        }
        let Written::Probes { at_us, latency_ns } = values.written() else { panic!() };
        assert_eq!((at_us, latency_ns), (vec![10, 20, 30], vec![None, Some(7), Some(5)]));
    }
}
