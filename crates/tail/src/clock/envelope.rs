//! Lower envelope of latency over time: the smallest latency of each bin of ingress time.

use crate::matching::Pair;
use serde::{Deserialize, Serialize};

/// Bins span at least this, as a power of two in ns: 1 µs.
const NARROWEST: u32 = 10;

/// Most bins between the first and the last one; they are twice as wide where there would be more.
const BINS: i64 = 1_024;

/// Latencies of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bin {
    /// The smallest, and when the first of these packets entered.
    pub(crate) least_ns: i64,
    pub(crate) at_ns: i64,
    /// The largest.
    pub(crate) most_ns: i64,
    /// Packets.
    pub(crate) count: u64,
}

impl Bin {
    const EMPTY: Self = Self { least_ns: i64::MAX, at_ns: i64::MAX, most_ns: i64::MIN, count: 0 };

    #[inline]
    fn include(&mut self, other: Self) {
        if (other.least_ns, other.at_ns) < (self.least_ns, self.at_ns) {
            (self.least_ns, self.at_ns) = (other.least_ns, other.at_ns);
        }
        self.most_ns = self.most_ns.max(other.most_ns);
        self.count += other.count;
    }
}

/// Bounds of some pairs: the least and the largest.
pub(crate) struct Bounds {
    pub(crate) ingress_ns: [i64; 2],
    pub(crate) latency_ns: [i64; 2],
    /// The first egress stamp.
    pub(crate) left_from_ns: i64,
}

impl Bounds {
    /// Puts the latencies of pairs into a list, and tells their bounds.
    #[inline]
    pub(crate) fn of(pairs: &[Pair], latencies: &mut Vec<i64>) -> Self {
        let none = [i64::MAX, i64::MIN];
        let (mut ingress_ns, mut latency_ns, mut left_from_ns) = (none, none, i64::MAX);
        let widened = |[least, most]: [i64; 2], value: i64| [least.min(value), most.max(value)];
        latencies.clear();
        latencies.extend(pairs.iter().map(|pair| {
            let latency = pair.egress_ns - pair.ingress_ns;
            ingress_ns = widened(ingress_ns, pair.ingress_ns);
            latency_ns = widened(latency_ns, latency);
            left_from_ns = left_from_ns.min(pair.egress_ns);
            latency
        }));
        Self { ingress_ns, latency_ns, left_from_ns }
    }
}

/// The envelope. Bins begin at multiples of their width, which depends on the first and the last ingress stamp only: so an
/// envelope of parts, [merged](Self::merge) in any order, is that of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// Bins span 2^width ns.
    width: u32,
    /// Number of the first bin.
    first: i64,
    bins: Vec<Bin>,
}

impl Envelope {
    pub(crate) fn new() -> Self {
        Self { width: NARROWEST, first: 0, bins: Vec::new() }
    }

    /// The bins that have packets, in the order of time.
    pub(crate) fn bins(&self) -> impl Iterator<Item = &Bin> + Clone {
        self.bins.iter().filter(|bin| bin.count > 0)
    }

    /// Adds pairs and their latencies, with their bounds.
    #[inline]
    pub(crate) fn record_all(&mut self, pairs: &[Pair], latencies: &[i64], bounds: &Bounds) {
        // Bins have many packets each, in a run or few, and few of these runs have the smallest latency.
        let [from_ns, to_ns] = bounds.ingress_ns;
        if from_ns >> self.width == to_ns >> self.width {
            self.record_run(pairs, latencies, bounds.latency_ns);
            return;
        }
        let mut from = 0;
        while let Some(first) = pairs.get(from) {
            let (mut least_ns, mut most_ns) = (i64::MAX, i64::MIN);
            let _ = self.bin(first.ingress_ns);
            let bin = first.ingress_ns >> self.width;
            let mut to = from;
            while let Some(pair) = pairs.get(to)
                && pair.ingress_ns >> self.width == bin
            {
                least_ns = least_ns.min(latencies[to]);
                most_ns = most_ns.max(latencies[to]);
                to += 1;
            }
            self.record_run(&pairs[from..to], &latencies[from..to], [least_ns, most_ns]);
            from = to;
        }
    }

    /// Adds pairs of one bin, with their least and largest latency.
    fn record_run(&mut self, pairs: &[Pair], latencies: &[i64], [least_ns, most_ns]: [i64; 2]) {
        let Some(first) = pairs.first() else { return };
        let bin = self.bin(first.ingress_ns);
        let bin = &mut self.bins[bin];
        bin.most_ns = bin.most_ns.max(most_ns);
        bin.count += pairs.len() as u64;
        if least_ns <= bin.least_ns {
            let run = pairs.iter().zip(latencies);
            let least = run.filter(|(_, ns)| **ns == least_ns).map(|(pair, _)| pair.ingress_ns);
            let at_ns = least.min().unwrap_or(i64::MAX);
            bin.include(Bin { least_ns, at_ns, ..Bin::EMPTY });
        }
    }

    /// An envelope for packets that follow: its bins have the width of these at least, as those of both will.
    pub(crate) fn following(&self) -> Self {
        Self { width: self.width, ..Self::new() }
    }

    /// Adds the packets of another envelope.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.widen_to(other.width);
        for bin in other.bins() {
            let index = self.bin(bin.at_ns);
            self.bins[index].include(*bin);
        }
    }

    /// Place of the bin of a time.
    #[inline]
    fn bin(&mut self, at_ns: i64) -> usize {
        let mut index = (at_ns >> self.width) - self.first;
        if index.cast_unsigned() >= self.bins.len() as u64 {
            self.reach(at_ns);
            index = (at_ns >> self.width) - self.first;
        }
        index as usize
    }

    /// Goes as far as a time, with wider bins where there would be too many.
    #[cold]
    fn reach(&mut self, at_ns: i64) {
        if self.bins.is_empty() {
            self.first = at_ns >> self.width;
        }
        loop {
            let number = at_ns >> self.width;
            let end = self.first + self.bins.len() as i64;
            let (first, end) = (self.first.min(number), end.max(number + 1));
            if end - first <= BINS {
                let before = (self.first - first) as usize;
                self.bins.splice(..0, std::iter::repeat_n(Bin::EMPTY, before));
                self.bins.resize((end - first) as usize, Bin::EMPTY);
                self.first = first;
                return;
            }
            self.widen_to(self.width + 1);
        }
    }

    fn widen_to(&mut self, width: u32) {
        while self.width < width {
            let first = self.first >> 1;
            let mut wider = vec![Bin::EMPTY; self.bins.len() / 2 + 1];
            for (number, bin) in (self.first..).zip(&self.bins) {
                wider[((number >> 1) - first) as usize].include(*bin);
            }
            let end = self.first + self.bins.len() as i64;
            wider.truncate((((end + 1) >> 1) - first) as usize);
            (self.first, self.bins) = (first, wider);
            self.width += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair(ingress_ns: i64, latency_ns: i64) -> Pair {
        let signature = crate::signature::Signature { high: 0, low: 0 };
        Pair { ingress_ns, egress_ns: ingress_ns + latency_ns, signature, tag: 0 }
    }

    fn envelope(packets: &[(i64, i64)], at_once: usize) -> Envelope {
        let mut envelope = Envelope::new();
        for packets in packets.chunks(at_once) {
            let pairs: Vec<_> = packets.iter().map(|&(at_ns, ns)| pair(at_ns, ns)).collect();
            let mut latencies = Vec::new();
            let bounds = Bounds::of(&pairs, &mut latencies);
            envelope.record_all(&pairs, &latencies, &bounds);
        }
        envelope
    }

    proptest! {
        #[test]
        fn an_envelope_of_parts_is_that_of_the_whole(
            packets in prop::collection::vec(
                (prop_oneof![0_i64..10_000_000, -1_000_000_000_000_i64..1_000_000_000_000], -5_i64..50),
                1..300,
            ),
            cut in 0_usize..300,
            at_once in 1_usize..40,
        ) {
            let whole = envelope(&packets, 1);
            let (first, second) = packets.split_at(cut.min(packets.len()));
            let mut later = envelope(second, at_once);
            let mut merged = envelope(first, at_once);
            merged.merge(&later);
            prop_assert_eq!(&merged, &whole);
            later.merge(&envelope(first, at_once));
            prop_assert_eq!(&later, &whole);
            let least = packets.iter().map(|packet| packet.1).min();
            prop_assert_eq!(whole.bins().map(|bin| bin.least_ns).min(), least);
            prop_assert_eq!(whole.bins().map(|bin| bin.count).sum::<u64>(), packets.len() as u64);
        }
    }
}
