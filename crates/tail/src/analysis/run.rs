//! An analysis under way: two sources are read, merged in the order of their stamps, matched and counted.

use super::findings::{self, Findings};
use super::latencies::Latencies;
use super::outcomes::{Ends, Outcome, Tally};
use super::seconds::{by_second, millisecond};
use super::tap::Tap;
use super::{Analysis, Bursts, Options, Sink, Source, burst, common_bytes, signer, unwrap_shift};
use crate::capture::{CaptureError, Record};
use crate::matching::{Fate, Matcher, Pair};
use crate::signature::Signer;
use crate::summary;
use std::collections::BTreeMap;
use tailtrim_stats::Histogram;

/// An analysis under way.
pub(super) struct Run<'a, P> {
    options: &'a Options,
    signer: Signer,
    ingress: Tap<&'a mut P>,
    egress: Tap<&'a mut P>,
    matcher: Matcher,
    pairs: Vec<Pair>,
    position: Option<burst::Position>,
    latencies: Latencies,
    tally: Tally,
    /// Outcomes decided before the first match told where the trim ends, and the second of each: not the millisecond,
    /// which could be one for each packet.
    before_first: BTreeMap<(Outcome, i64), u64>,
    /// Stamps of unmatched egress packets of the first window. Whether their ingress packets may have come
    /// before the first one shows only at the end.
    unmatched: Histogram,
    origin_ns: i64,
}

impl<'a, P: Source> Run<'a, P> {
    /// Looks at the first records.
    pub(super) fn start(
        ingress: &'a mut P,
        egress: &'a mut P,
        options: &'a Options,
    ) -> Result<Self, CaptureError> {
        let signer = signer(options);
        let first = ingress.peek(&signer)?;
        let second = egress.peek(&signer)?;
        let signer = signer.limited_to(common_bytes(&first).min(common_bytes(&second)));
        let stamps: Vec<i64> =
            first.iter().filter(|record| record.stamped).map(|record| record.stamp_ns).collect();
        let first_egress = second.iter().find(|record| record.stamped).map(|r| r.stamp_ns);
        let origin_ns = stamps.first().copied().or(first_egress).unwrap_or(0);
        let shift_ns = if ingress.wraps() && egress.wraps() {
            unwrap_shift(origin_ns, first_egress.unwrap_or(origin_ns))
        } else {
            0
        };
        let shift_ns = shift_ns.saturating_sub(options.correction_ns);
        let burst_gap_ns = burst::threshold_ns(&stamps);
        let bursts = burst_gap_ns.map(|gap_ns| Bursts { gap_ns, positions: Vec::new() });
        Ok(Self {
            options,
            signer,
            ingress: Tap::new(ingress, 0, origin_ns),
            egress: Tap::new(egress, shift_ns, origin_ns),
            matcher: Matcher::new(options.window),
            pairs: Vec::new(),
            position: burst_gap_ns.map(burst::Position::new),
            latencies: Latencies::new(options, origin_ns, bursts),
            tally: Tally::default(),
            before_first: BTreeMap::new(),
            unmatched: Histogram::new(),
            origin_ns,
        })
    }

    /// Reads the next batch of a side of which all packets are merged. Returns `false` when neither side
    /// needs one.
    pub(super) fn read_ahead(&mut self) -> Result<bool, CaptureError> {
        let after_ns = self.latencies.trimmed_until_ns;
        for tap in [&mut self.ingress, &mut self.egress] {
            if tap.ahead().is_empty() && !tap.is_ended() {
                tap.refill(&self.signer, after_ns)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether all that was read is merged.
    pub(super) fn is_merged(&self) -> bool {
        self.ingress.ahead().is_empty() && self.egress.ahead().is_empty()
    }

    /// How much of each side is done with, see [`Source::offset`].
    pub(super) fn offsets(&self) -> (u64, u64) {
        (self.ingress.source.offset(), self.egress.source.offset())
    }

    /// Feeds the matcher in the order of the stamps until a batch is used up that may have a successor.
    pub(super) fn merge(&mut self) {
        let (entering, leaving) = (self.ingress.ahead(), self.egress.ahead());
        let (mut entered, mut left) = (0, 0);
        let is_ordered = self.ingress.is_ordered() && self.egress.is_ordered();
        let mut tag =
            |stamp_ns| self.position.as_mut().map_or(0, |position| position.next(stamp_ns));
        // Which capture is next cannot be predicted, and a wrong guess of the CPU costs as much as
        // matching a packet. So the ingress packets go first as far as the order makes no difference.
        if let (Some(last_in), Some(last_out)) = (entering.last(), leaving.last()) {
            let until_ns = last_in.stamp_ns.min(last_out.stamp_ns);
            if is_ordered {
                let ahead = entering.partition_point(|record| record.stamp_ns <= until_ns);
                entered = self.matcher.ingress_ahead(
                    entering[..ahead].iter().map(|record| (record.signature, record.stamp_ns)),
                    leaving[0].stamp_ns,
                    &mut tag,
                );
                if entered == ahead {
                    let before_ns =
                        if entered == entering.len() { last_in.stamp_ns } else { i64::MAX };
                    left = leaving.partition_point(|record| record.stamp_ns < before_ns);
                    let leaving = leaving[..left].iter();
                    self.matcher.egress_all(
                        leaving.map(|record| (record.signature, record.stamp_ns)),
                        &mut self.pairs,
                    );
                }
            }
        }
        loop {
            let from_ingress = match (entering.get(entered), leaving.get(left)) {
                (Some(next), Some(other)) => next.stamp_ns <= other.stamp_ns,
                (Some(_), None) if self.egress.is_ended() => true,
                (None, Some(_)) if self.ingress.is_ended() => false,
                _ => break,
            };
            let pair = if from_ingress {
                let record = &entering[entered];
                entered += 1;
                self.matcher.ingress(record.signature, record.stamp_ns, tag(record.stamp_ns))
            } else {
                let record = &leaving[left];
                left += 1;
                self.matcher.egress(record.signature, record.stamp_ns)
            };
            self.pairs.extend(pair);
        }
        // What was entered ahead and had left before is matched when it left instead of when it entered.
        if is_ordered && self.pairs.iter().any(|pair| pair.egress_ns < pair.ingress_ns) {
            sort_as_decided(&mut self.pairs, entering);
        }
        self.ingress.next += entered;
        self.egress.next += left;
    }

    /// Counts the pairs that the last merge found.
    pub(super) fn record<S: Sink>(&mut self, sink: &mut S) -> std::io::Result<()> {
        self.latencies.record(&self.pairs, sink)?;
        self.pairs.clear();
        Ok(())
    }

    /// Counts the packets whose fate is decided.
    pub(super) fn settle(&mut self) {
        let now_ns = self.ingress.merged_until_ns().min(self.egress.merged_until_ns());
        let decided: Vec<(Fate, i64)> = self.matcher.decided(now_ns).collect();
        for (fate, stamp_ns) in decided {
            self.count(fate, stamp_ns);
        }
    }

    /// A packet is given up no sooner than a packet that left a window later was read, unless the egress
    /// capture has ended: so where the captures end decides here as it does at the end.
    fn count(&mut self, fate: Fate, stamp_ns: i64) {
        let since_ns = stamp_ns.saturating_sub(self.ingress.first_ns);
        if fate == Fate::Unmatched && since_ns < self.options.window.window_ns {
            self.unmatched.record(stamp_ns);
            return;
        }
        let ends = self.ends();
        let outcome = ends.outcome(fate, stamp_ns);
        let at_ms = millisecond(stamp_ns, self.origin_ns);
        if self.latencies.trimmed_until_ns().is_none() {
            *self.before_first.entry((outcome, at_ms.div_euclid(1_000))).or_default() += 1;
        } else {
            self.tally.add(outcome, ends.is_trimmed(stamp_ns), at_ms, 1);
        }
    }

    fn ends(&self) -> Ends {
        Ends::new(self.options, &self.latencies, self.ingress.first_ns, self.egress.last_ns)
    }

    /// Decides what the end of the captures leaves open.
    pub(super) fn finish(mut self) -> Analysis {
        self.settle();
        self.latencies.flush_second();
        let matcher = std::mem::replace(&mut self.matcher, Matcher::new(self.options.window));
        let (open, fates) = matcher.finish();
        for (fate, stamp_ns) in
            fates.into_iter().chain(open.into_iter().map(|stamp_ns| (Fate::Lost, stamp_ns)))
        {
            self.count(fate, stamp_ns);
        }
        // With a match, all of these were decided before its trim ended; without one there is no trim.
        let matched = self.latencies.trimmed_until_ns().is_some();
        for ((outcome, second), packets) in std::mem::take(&mut self.before_first) {
            self.tally.add(outcome, matched, second.saturating_mul(1_000), packets);
        }
        let ends = self.ends();
        for (stamp_ns, packets) in self.unmatched.sorted() {
            let outcome = ends.outcome(Fate::Unmatched, stamp_ns);
            self.tally.add(outcome, ends.is_trimmed(stamp_ns), 0, packets);
        }
        let options = self.options;
        self.findings().analysis(options)
    }

    fn findings(mut self) -> Findings {
        let Options { selection, rewrites, .. } = self.options;
        let seconds = by_second(
            [self.ingress.loads(), self.egress.loads()],
            &self.tally.lost_by_second,
            &self.latencies.maxima,
        );
        let of_tap = |tap: &Tap<&mut P>| (tap.packets, tap.unstamped);
        let (mut ingress, mut egress) = (self.tally.ingress, self.tally.egress);
        (ingress.packets, ingress.unstamped) = of_tap(&self.ingress);
        (egress.packets, egress.unstamped) = of_tap(&self.egress);
        Findings {
            signature: findings::signature(selection.as_ref(), *rewrites, self.signer.limit()),
            taps: summary::Taps { ingress: self.ingress.facts(), egress: self.egress.facts() },
            ingress,
            egress,
            trimmed_undelivered: self.tally.trimmed_undelivered,
            undelivered: self.tally.undelivered,
            latencies: self.latencies,
            ingress_gaps: self.ingress.gaps.into_histogram(),
            egress_gaps: self.egress.gaps.into_histogram(),
            seconds,
        }
    }
}

/// Puts pairs into the order in which the later one of their packets comes, ingress first: that of
/// [`Place`], whatever was entered ahead. Both captures ascend.
#[cold]
fn sort_as_decided(pairs: &mut [Pair], entering: &[Record]) {
    pairs.sort_by_cached_key(|pair| {
        if pair.ingress_ns <= pair.egress_ns {
            return (pair.egress_ns, true, 0);
        }
        let from = entering.partition_point(|record| record.stamp_ns < pair.ingress_ns);
        let place = entering[from..].iter().position(|record| record.signature == pair.signature);
        (pair.ingress_ns, false, place.unwrap_or(0))
    });
}
