//! What is kept of the latencies of a run.

use super::burst::Bursts;
use super::seconds::{SECOND_NS, second};
use super::{Departures, Options};
use crate::matching::Pair;
use crate::signature::Signature;
use std::collections::BTreeMap;
use tailtrim_stats::{BatchMeans, BlockCounts, Histogram, Worst};

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
    fn of(pair: &Pair) -> Self {
        let &Pair { ingress_ns, egress_ns, signature, tag: _ } = pair;
        Self { ingress_ns, egress_ns, signature }
    }

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

    /// Whether it does anything with samples: if not, nothing need be done to hand them over.
    fn takes_samples(&self) -> bool {
        true
    }
}

/// Takes nothing.
impl Sink for () {
    #[inline]
    fn sample(&mut self, _: &Sample) -> std::io::Result<()> {
        Ok(())
    }

    fn takes_samples(&self) -> bool {
        false
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
    departures: Departures,
    /// Pairs that are set aside, see [`Departures::stalled`].
    pub(super) stalled: u64,
    /// Latencies of the samples that departed late, see [`Departures::late`].
    pub(super) late: Histogram,
    /// Largest latency of all pairs, trimmed ones included: what this device may take.
    pub(super) longest_ns: i64,
    pub(super) not_positive: u64,
    pub(super) histogram: Histogram,
    /// RFC 3393 with successive delivered packets as the selection function.
    pub(super) delay_variation: Histogram,
    previous_ns: Option<i64>,
    pub(super) means: BatchMeans,
    pub(super) blocks: BlockCounts,
    pub(super) worst: Worst<Sample>,
    pub(super) bursts: Option<Bursts>,
    origin_ns: i64,
    pub(super) maxima: BTreeMap<i64, (u64, i64)>,
    current: (i64, u64, i64),
    /// Latencies of the pairs being counted; empty between calls.
    batch: Vec<i64>,
}

/// Whether a stamp lies in the second that begins at `start_ns`.
#[inline]
fn is_within_second(stamp_ns: i64, start_ns: i64) -> bool {
    stamp_ns.wrapping_sub(start_ns).cast_unsigned() < SECOND_NS.cast_unsigned()
}

impl Latencies {
    pub(super) fn new(options: &Options, origin_ns: i64, bursts: Option<Bursts>) -> Self {
        Self {
            trim_ns: options.trim_ns,
            trimmed_until_ns: if options.trim_ns > 0 { i64::MAX } else { i64::MIN },
            first_egress_ns: i64::MAX,
            trimmed: 0,
            departures: options.departures.clone(),
            stalled: 0,
            late: Histogram::new(),
            longest_ns: 0,
            not_positive: 0,
            histogram: Histogram::new(),
            delay_variation: Histogram::around_zero(),
            previous_ns: None,
            means: BatchMeans::default(),
            blocks: BlockCounts::new(),
            worst: Worst::new(options.worst),
            bursts,
            origin_ns,
            maxima: BTreeMap::new(),
            current: (i64::MIN, 0, i64::MIN),
            batch: Vec::new(),
        }
    }

    /// Samples that left until then are trimmed; `None` as long as nothing matched, [`i64::MIN`] without a
    /// trim.
    pub(super) fn trimmed_until_ns(&self) -> Option<i64> {
        Some(self.trimmed_until_ns).filter(|until_ns| *until_ns != i64::MAX)
    }

    /// Counts pairs in the order in which they left.
    pub(super) fn record<S: Sink>(&mut self, pairs: &[Pair], sink: &mut S) -> std::io::Result<()> {
        if self.are_plain(pairs) {
            self.record_plain(pairs);
            for pair in pairs {
                sink.sample(&Sample::of(pair))?;
            }
        } else {
            for pair in pairs {
                self.record_one(pair, sink)?;
            }
        }
        Ok(())
    }

    /// Whether all of these left after the trim, departed well, took their time, and entered in the second being
    /// counted. Then nothing depends on their order but the statistics that [`record_plain`] keeps one
    /// after the other, each in a loop of its own: three times faster than packet by packet.
    ///
    /// [`record_plain`]: Self::record_plain
    fn are_plain(&self, pairs: &[Pair]) -> bool {
        let (start_ns, _, _) = self.current;
        let after_ns = self.trimmed_until_ns.max(self.first_egress_ns.saturating_sub(1));
        let mut plain = self.departures.are_well();
        for pair in pairs {
            plain &= (pair.egress_ns > after_ns)
                & (pair.egress_ns > pair.ingress_ns)
                & is_within_second(pair.ingress_ns, start_ns);
        }
        plain
    }

    fn record_plain(&mut self, pairs: &[Pair]) {
        let mut latencies = std::mem::take(&mut self.batch);
        latencies.clear();
        latencies.extend(pairs.iter().map(|pair| pair.egress_ns - pair.ingress_ns));
        if let (Some(&first_ns), Some(&last_ns)) = (latencies.first(), latencies.last()) {
            let longest_ns = self.worst.offer_all(&latencies, |index| Sample::of(&pairs[index]));
            self.longest_ns = self.longest_ns.max(longest_ns);
            let (_, count, second_ns) = &mut self.current;
            *count += latencies.len() as u64;
            *second_ns = longest_ns.max(*second_ns);
            self.histogram.record_all(latencies.iter().copied());
            self.means.record_all(&latencies);
            self.blocks.record_all(&latencies);
            if let Some(previous_ns) = self.previous_ns.replace(last_ns) {
                self.delay_variation.record(first_ns - previous_ns);
            }
            self.delay_variation.record_all(latencies.windows(2).map(|pair| pair[1] - pair[0]));
            if let Some(bursts) = &mut self.bursts {
                for (pair, latency_ns) in pairs.iter().zip(&latencies) {
                    bursts.record(pair.tag, *latency_ns);
                }
            }
        }
        self.batch = latencies;
    }

    fn record_one<S: Sink>(&mut self, pair: &Pair, sink: &mut S) -> std::io::Result<()> {
        let latency_ns = pair.egress_ns - pair.ingress_ns;
        self.longest_ns = self.longest_ns.max(latency_ns);
        if pair.egress_ns < self.first_egress_ns {
            self.start(pair.egress_ns);
        }
        if pair.egress_ns <= self.trimmed_until_ns {
            self.trimmed += 1;
            return Ok(());
        }
        if self.departures.stalled_at(pair.ingress_ns) {
            self.stalled += 1;
            return Ok(());
        }
        if self.departures.late_at(pair.ingress_ns) {
            self.late.record(latency_ns);
        }
        self.not_positive += u64::from(latency_ns <= 0);
        if !is_within_second(pair.ingress_ns, self.current.0) {
            self.change_second(pair.ingress_ns);
        }
        self.record_plain(std::slice::from_ref(pair));
        sink.sample(&Sample::of(pair))
    }

    /// The trim counts from the first egress stamp that matched.
    #[cold]
    fn start(&mut self, egress_ns: i64) {
        self.first_egress_ns = egress_ns;
        if self.trim_ns > 0 {
            self.trimmed_until_ns = egress_ns.saturating_add(self.trim_ns);
        }
    }

    #[cold]
    fn change_second(&mut self, ingress_ns: i64) {
        self.flush_second();
        let second = second(ingress_ns, self.origin_ns);
        self.current = (self.origin_ns + second * SECOND_NS, 0, i64::MIN);
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
