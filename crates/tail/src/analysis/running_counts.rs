//! The counts of an analysis whose packets are matched here.

use super::counting::{Begin, Counts, Order};
use super::findings::{self, Findings};
use super::latencies::Latencies;
use super::merging::Merging;
use super::outcomes::{Ends, Outcome, Tally};
use super::seconds::{SECOND_NS, by_second, millisecond};
use super::tap::Tap;
use super::terms::Terms;
use super::{Analysis, LostPacket, Options, Sink, Source};
use crate::clock::BACK_NS;
use crate::matching::{Decided, Fate, Pair};
use crate::signature::Signature;
use crate::summary;
use crate::unmatched::Leftovers;
use std::collections::BTreeMap;
use std::ops::DerefMut;
use tailtrim_stats::Histogram;

/// The counts of an analysis under way.
pub(super) struct RunningCounts<'a> {
    options: &'a Options,
    signature_bytes: usize,
    latencies: Latencies,
    tally: Tally,
    /// Outcomes decided before the first match told where the trim ends, and the second of each: not the millisecond,
    /// which could be one for each packet.
    before_first: BTreeMap<(Outcome, i64), u64>,
    /// Stamps of unmatched egress packets of the first window. Whether their ingress packets may have come
    /// before the first one shows only at the end.
    unmatched: Histogram,
    leftovers: Leftovers,
    origin_ns: i64,
    lost_from_ns: i64,
    /// Samples that are counted elsewhere.
    outstanding: u64,
}

impl<'a> RunningCounts<'a> {
    /// Nothing is counted yet.
    pub(super) fn new(options: &'a Options, terms: &Terms) -> Self {
        Self {
            options,
            signature_bytes: terms.signer.limit(),
            latencies: Latencies::new(options, terms.origin_ns, terms.burst_gap_ns),
            tally: Tally::default(),
            before_first: BTreeMap::new(),
            unmatched: Histogram::new(),
            leftovers: Leftovers {
                early: terms.early,
                repeated: terms.repeated,
                ..Leftovers::default()
            },
            origin_ns: terms.origin_ns,
            lost_from_ns: terms.lost_from_ns,
            outstanding: 0,
        }
    }

    /// End of the trim: packets that left until then are trimmed. [`i64::MAX`] until the first match, which sets it;
    /// [`i64::MIN`] without a trim.
    pub(super) fn trimmed_until_ns(&self) -> i64 {
        self.latencies.trimmed_until_ns
    }

    /// The packets in no pair so far.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Counts pairs in the order in which they were decided. None may be outstanding.
    pub(super) fn record<S: Sink>(&mut self, pairs: &[Pair], sink: &mut S) -> std::io::Result<()> {
        debug_assert_eq!(self.outstanding, 0, "samples are counted in their order");
        if self.options.endless {
            self.latencies.tell(pairs, sink)
        } else {
            self.latencies.record(pairs, sink)
        }
    }

    /// The longest latency so far.
    pub(super) fn longest_ns(&self) -> i64 {
        self.latencies.longest_ns
    }

    /// Takes note of the longest of the pairs that follow, before they are counted.
    pub(super) fn meet(&mut self, longest_ns: i64) {
        self.latencies.meet(longest_ns);
    }

    /// The begin of the samples, as far as it is known.
    pub(super) fn begin(&self) -> Begin {
        self.latencies.begin()
    }

    /// The order of pairs that another host is to count, so many of which are samples.
    pub(super) fn order(&mut self, samples: u64, older: Vec<Signature>) -> Order {
        let order = Order { behind: self.counted(), begin: self.begin(), older };
        self.outstanding += samples;
        order
    }

    /// The order of pairs behind so many more packets that left, if all of these will be samples; `None` where it is
    /// known that they will not.
    pub(super) fn expected(&self, more: u64) -> Option<Order> {
        let order = Order { behind: self.counted() + more, begin: self.begin(), older: Vec::new() };
        (self.options.departures.are_well() && order.begin.is_known()).then_some(order)
    }

    /// Samples so far, those that another host counts included.
    pub(super) fn counted(&self) -> u64 {
        self.latencies.count() + self.outstanding
    }

    /// Adds what another host has counted first of what is outstanding.
    pub(super) fn add_counts(&mut self, mut counts: Counts) {
        let before = self.latencies.count();
        self.add(&mut counts.0);
        self.outstanding -= self.latencies.count() - before;
    }

    /// Adds the statistics of the pairs that follow.
    pub(super) fn add(&mut self, latencies: &mut Latencies) {
        self.latencies.append(latencies);
    }

    /// Counts packets whose fate is decided. `bounds_ns` are the first ingress and the last egress stamp so far.
    pub(super) fn count_all<S: Sink>(
        &mut self,
        decided: impl Iterator<Item = Decided>,
        bounds_ns: (i64, i64),
        sink: &mut S,
    ) {
        for decided in decided {
            if self.options.endless {
                let outcome = self.ends(bounds_ns).outcome(decided.fate, decided.stamp_ns);
                sink.unpaired(outcome, decided.stamp_ns, 1);
                continue;
            }
            self.leftovers.note(&decided, self.options.lost);
            self.count(decided.fate, decided.stamp_ns, bounds_ns, sink);
        }
    }

    /// A packet is given up no sooner than a packet that left a window later was read, unless the egress
    /// capture has ended: so where the captures end decides here as it does at the end.
    fn count<S: Sink>(&mut self, fate: Fate, stamp_ns: i64, bounds_ns: (i64, i64), sink: &mut S) {
        let since_ns = stamp_ns.saturating_sub(bounds_ns.0);
        if fate == Fate::Unmatched && since_ns < self.options.window.window_ns {
            self.unmatched.record(stamp_ns);
            return;
        }
        let ends = self.ends(bounds_ns);
        let outcome = ends.outcome(fate, stamp_ns);
        let at_ms = millisecond(stamp_ns, self.origin_ns);
        if self.latencies.trimmed_until_ns().is_none() {
            *self.before_first.entry((outcome, at_ms.div_euclid(1_000))).or_default() += 1;
        } else {
            let trimmed = ends.is_trimmed(stamp_ns);
            self.tally.add(outcome, trimmed, at_ms, 1);
            if !trimmed {
                sink.unpaired(outcome, stamp_ns, 1);
            }
        }
    }

    fn ends(&self, (first_ingress_ns, last_egress_ns): (i64, i64)) -> Ends {
        let Latencies { longest_ns, .. } = self.latencies;
        let trimmed_until_ns = self.latencies.trimmed_until_ns();
        let matched = (longest_ns, trimmed_until_ns);
        Ends::new(self.options, self.lost_from_ns, matched, first_ingress_ns, last_egress_ns)
    }

    /// Decides what the end of the captures leaves open.
    pub(super) fn finish<C: DerefMut<Target: Source>, const N: usize, S: Sink>(
        mut self,
        mut merging: Merging<C, N>,
        sink: &mut S,
    ) -> Analysis {
        let bounds_ns = merging.bounds_ns();
        self.count_all(merging.decided(), bounds_ns, sink);
        self.latencies.flush_second();
        let (taps, decided) = merging.finish();
        self.count_all(decided.into_iter(), bounds_ns, sink);
        sink.passed([taps[0].passed(), taps[1].passed()]);
        // With a match, all of these were decided before its trim ended; without one there is no trim.
        let matched = self.latencies.trimmed_until_ns().is_some();
        for ((outcome, second), packets) in std::mem::take(&mut self.before_first) {
            self.tally.add(outcome, matched, second.saturating_mul(1_000), packets);
            if !matched {
                let stamp_ns = self.origin_ns.saturating_add(second.saturating_mul(SECOND_NS));
                sink.unpaired(outcome, stamp_ns, packets);
            }
        }
        let ends = self.ends(bounds_ns);
        for (stamp_ns, packets) in self.unmatched.sorted() {
            let outcome = ends.outcome(Fate::Unmatched, stamp_ns);
            let trimmed = ends.is_trimmed(stamp_ns);
            self.tally.add(outcome, trimmed, 0, packets);
            if !trimmed {
                sink.unpaired(outcome, stamp_ns, packets);
            }
        }
        let mut leftovers = std::mem::take(&mut self.leftovers);
        leftovers.set_back = taps.iter().any(|tap| tap.furthest_back_ns >= BACK_NS);
        let is_lost = |packet: &&LostPacket| {
            let outcome = ends.outcome(Fate::Lost, packet.ingress_ns);
            outcome == Outcome::Lost && !ends.is_trimmed(packet.ingress_ns)
        };
        let lost = leftovers.lost.iter().take(self.options.lost).filter(is_lost);
        let mut lost: Vec<LostPacket> = lost.copied().collect();
        lost.sort_unstable_by_key(|packet| packet.ingress_ns);
        let options = self.options;
        Analysis { lost, leftovers, ..self.findings(taps).analysis(options) }
    }

    fn findings<C: DerefMut<Target: Source>>(
        self,
        [mut entered, mut left]: [Tap<C>; 2],
    ) -> Findings {
        let seconds = by_second(
            [entered.loads(), left.loads()],
            &self.tally.lost_by_second,
            &self.latencies.maxima,
        );
        let (mut ingress, mut egress) = (self.tally.ingress, self.tally.egress);
        (ingress.packets, ingress.unstamped) = (entered.packets, entered.unstamped);
        (egress.packets, egress.unstamped) = (left.packets, left.unstamped);
        ingress.copy = entered.copies();
        Findings {
            signature: findings::signature(self.options, self.signature_bytes),
            taps: summary::Taps { ingress: entered.facts(), egress: left.facts() },
            ingress,
            egress,
            unstamped: [entered.unstamped, left.unstamped],
            unnumbered: entered.unnumbered().max(left.unnumbered()),
            trimmed_undelivered: self.tally.trimmed_undelivered,
            undelivered: self.tally.undelivered,
            latencies: self.latencies,
            ingress_gaps: entered.gaps.into_histogram(),
            egress_gaps: left.gaps.into_histogram(),
            seconds,
        }
    }
}
