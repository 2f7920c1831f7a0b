//! What is kept of the latencies of a run.

use super::Options;
use super::burst::Bursts;
use super::tap::second;
use crate::matching::Pair;
use crate::signature::Signature;
use crate::stats::{BlockCounts, Histogram, Worst};
use std::collections::BTreeMap;

/// A matched packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it entered the device under test, in ns of the ingress capture's clock.
    pub ingress_ns: i64,
    /// When it left, in ns of the egress capture's clock.
    pub egress_ns: i64,
    /// What identified it.
    pub signature: Signature,
}

impl Sample {
    /// Time spent in the device under test; negative when the taps' clocks disagree.
    #[must_use]
    pub fn latency_ns(&self) -> i64 {
        self.egress_ns - self.ingress_ns
    }
}

/// Takes the samples one by one, in the order in which they left the device under test.
pub trait Sink {
    /// Called for every sample that is not trimmed. An error ends the analysis.
    ///
    /// # Errors
    /// What keeps the sink from taking it.
    fn sample(&mut self, sample: &Sample) -> std::io::Result<()>;
}

/// Takes nothing.
impl Sink for () {
    #[inline]
    fn sample(&mut self, _: &Sample) -> std::io::Result<()> {
        Ok(())
    }
}

/// Statistics of the samples, trimmed ones left out.
pub(super) struct Latencies {
    trim_ns: i64,
    /// Samples that left at or before this are trimmed. `i64::MAX` until the first match says where the
    /// trim ends, `i64::MIN` without a trim.
    pub(super) trimmed_until_ns: i64,
    first_egress_ns: i64,
    pub(super) trimmed: u64,
    /// Largest latency of all pairs, trimmed ones included: what this device may take.
    pub(super) longest_ns: i64,
    pub(super) not_positive: u64,
    pub(super) histogram: Histogram,
    /// RFC 3393 with successive delivered packets as the selection function.
    pub(super) delay_variation: Histogram,
    previous_ns: Option<i64>,
    pub(super) blocks: BlockCounts,
    pub(super) worst: Worst<Sample>,
    pub(super) bursts: Option<Bursts>,
    origin_ns: i64,
    pub(super) maxima: BTreeMap<i64, (u64, i64)>,
    current: (i64, u64, i64),
}

impl Latencies {
    pub(super) fn new(options: &Options, origin_ns: i64, bursts: Option<Bursts>) -> Self {
        Self {
            trim_ns: options.trim_ns,
            trimmed_until_ns: if options.trim_ns > 0 { i64::MAX } else { i64::MIN },
            first_egress_ns: i64::MAX,
            trimmed: 0,
            longest_ns: 0,
            not_positive: 0,
            histogram: Histogram::new(),
            delay_variation: Histogram::around_zero(),
            previous_ns: None,
            blocks: BlockCounts::new(),
            worst: Worst::new(options.worst),
            bursts,
            origin_ns,
            maxima: BTreeMap::new(),
            current: (i64::MIN, 0, i64::MIN),
        }
    }

    #[inline]
    pub(super) fn record<S: Sink>(&mut self, pair: &Pair, sink: &mut S) -> std::io::Result<()> {
        let latency_ns = pair.egress_ns - pair.ingress_ns;
        self.longest_ns = self.longest_ns.max(latency_ns);
        if pair.egress_ns < self.first_egress_ns {
            self.start(pair.egress_ns);
        }
        if pair.egress_ns <= self.trimmed_until_ns {
            self.trimmed += 1;
            return Ok(());
        }
        self.not_positive += u64::from(latency_ns <= 0);
        self.histogram.record(latency_ns);
        self.blocks.record(latency_ns);
        if let Some(previous_ns) = self.previous_ns.replace(latency_ns) {
            self.delay_variation.record(latency_ns - previous_ns);
        }
        let sample = Sample {
            ingress_ns: pair.ingress_ns,
            egress_ns: pair.egress_ns,
            signature: pair.signature,
        };
        self.worst.offer(latency_ns, || sample);
        self.count_second(pair.ingress_ns, latency_ns);
        if let Some(bursts) = &mut self.bursts {
            bursts.record(pair.tag, latency_ns);
        }
        sink.sample(&sample)
    }

    /// The trim counts from the first egress stamp that matched.
    #[cold]
    fn start(&mut self, egress_ns: i64) {
        self.first_egress_ns = egress_ns;
        if self.trim_ns > 0 {
            self.trimmed_until_ns = egress_ns.saturating_add(self.trim_ns);
        }
    }

    #[inline]
    fn count_second(&mut self, ingress_ns: i64, latency_ns: i64) {
        let (start_ns, count, longest_ns) = &mut self.current;
        if (0..super::tap::SECOND_NS).contains(&ingress_ns.saturating_sub(*start_ns)) {
            *count += 1;
            *longest_ns = latency_ns.max(*longest_ns);
        } else {
            self.flush_second();
            let second = second(ingress_ns, self.origin_ns);
            let start_ns = self.origin_ns + second * super::tap::SECOND_NS;
            self.current = (start_ns, 1, latency_ns);
        }
    }

    /// Puts away the second being counted.
    pub(super) fn flush_second(&mut self) {
        let (start_ns, count, longest_ns) = self.current;
        if count > 0 {
            let maximum =
                self.maxima.entry(second(start_ns, self.origin_ns)).or_insert((0, i64::MIN));
            maximum.0 += count;
            maximum.1 = maximum.1.max(longest_ns);
            self.current.1 = 0;
        }
    }
}
