//! An analysis that goes on from stretch to stretch of its captures.
//!
//! A stretch is matched where it is its turn, or [on its own](Stretch) before that: then it is [joined](Ongoing::join) to
//! what came before, if that gives the same.

use super::counting::{Begin, Counted, Counts, Order};
use super::merging::Merging;
use super::remote::Outline;
use super::running_counts::RunningCounts;
use super::source::{Opened, Source};
use super::stretch::Stretch;
use super::terms::Terms;
use super::{Analysis, AnalysisError, Options, Sink};
use crate::matching::{EarlierPackets, RING};
use std::ops::{ControlFlow, DerefMut};
use tailtrim_stats::Histogram;

/// Batches between two calls of the progress callback: about a million frames.
const PROGRESS_BATCHES: u32 = 4_096;

/// An analysis under way. `N` is how many packets its matcher keeps at hand.
pub struct Ongoing<'a, C = Opened, const N: usize = RING> {
    counts: RunningCounts<'a>,
    merging: Merging<C, N>,
}

impl<'a, C: DerefMut<Target: Source>, const N: usize> Ongoing<'a, C, N> {
    /// An analysis that begins with these sources.
    #[must_use]
    pub fn new(ingress: C, egress: C, terms: &Terms, options: &'a Options) -> Self {
        Self {
            counts: RunningCounts::new(options, terms),
            merging: Merging::new(ingress, egress, terms, options),
        }
    }

    /// Analyses the sources to their ends. `next_ns` is the time of the cut there, if the egress capture goes on behind
    /// it. Otherwise as [`analyze`](super::analyze).
    ///
    /// # Errors
    /// Those of [`analyze`](super::analyze).
    pub fn run<S: Sink>(
        &mut self,
        next_ns: Option<i64>,
        sink: &mut S,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(), AnalysisError> {
        let mut batches = 0_u32;
        loop {
            if self.merging.read_ahead(self.counts.trimmed_until_ns())? {
                batches += 1;
                let (entered, left) = self.merging.offsets();
                if batches.is_multiple_of(PROGRESS_BATCHES) && progress(entered, left).is_break() {
                    return Err(AnalysisError::Stopped);
                }
                if self.merging.is_quiet() {
                    self.settle(next_ns, sink);
                    self.tell(sink);
                }
            } else if self.merging.is_merged() {
                self.settle(next_ns, sink);
                self.tell(sink);
                return Ok(());
            } else {
                self.merging.merge();
                self.counts.record(&self.merging.pairs, sink).map_err(AnalysisError::Sink)?;
                self.merging.pairs.clear();
                self.settle(next_ns, sink);
                self.tell(sink);
            }
        }
    }

    fn settle<S: Sink>(&mut self, next_ns: Option<i64>, sink: &mut S) {
        let bounds_ns = self.bounds_ns(next_ns);
        self.counts.count_all(self.merging.decided(), bounds_ns, sink);
    }

    fn tell<S: Sink>(&self, sink: &mut S) {
        let trimmed_until_ns = self.counts.trimmed_until_ns();
        let now_ns = self.merging.merged_until_ns();
        sink.passed([self.merging.ingress.passed(), self.merging.egress.passed()]);
        sink.decided(now_ns, self.counts.tally(), &|| self.merging.overdue(trimmed_until_ns));
    }

    /// The first ingress stamp, and one that the egress capture reaches.
    fn bounds_ns(&self, next_ns: Option<i64>) -> (i64, i64) {
        let (first_ns, last_ns) = self.merging.bounds_ns();
        (first_ns, next_ns.map_or(last_ns, |next_ns| next_ns.max(last_ns)))
    }

    /// Goes on with the next stretch. All its packets come after those before, see [`Stretch`].
    pub fn go_on(&mut self, ingress: C, egress: C) {
        self.merging.ingress.go_on(ingress);
        self.merging.egress.go_on(egress);
    }

    /// Packets so far, of the ingress and the egress capture.
    #[must_use]
    pub fn packets(&self) -> [u64; 2] {
        [self.merging.ingress.packets, self.merging.egress.packets]
    }

    /// The largest stamp so far, on both sides.
    #[must_use]
    pub fn last_ns(&self) -> i64 {
        self.merging.last_ns()
    }

    /// The result, at the end of the captures.
    #[must_use]
    pub fn finish(self) -> Analysis {
        self.finish_telling(&mut ())
    }

    /// The same, with what the end decides told to the sink.
    pub fn finish_telling<S: Sink>(self, sink: &mut S) -> Analysis {
        self.counts.finish(self.merging, sink)
    }
}

impl<const N: usize> Ongoing<'_, Opened, N> {
    /// The begin of the samples, as far as it is known. A stretch can be joined if it was matched with what is known now.
    #[must_use]
    pub fn begin(&self) -> Begin {
        self.counts.begin()
    }

    /// Goes on with a stretch that was matched on its own. Returns the memory of its counts, for another one; `None`, with
    /// nothing changed, where it might have been matched differently after what came before: then
    /// [`go_on`](Self::go_on) with its sources. For `next_ns` see [`run`](Self::run).
    pub fn join(
        &mut self,
        (stretch, mut counted): (Stretch<N>, Counted),
        next_ns: Option<i64>,
    ) -> Option<Counted> {
        let longest_ns = counted.latencies.longest_ns;
        let samples = self.counts.counted();
        let behind = |older: &EarlierPackets| counted.are_behind(samples, older);
        let gaps = self.join_with(stretch, longest_ns, next_ns, behind)?;
        self.counts.add(&mut counted.latencies);
        Some(counted.emptied(gaps))
    }

    /// The same with a stretch that was matched on another host, which is to count its pairs as the order says. If one
    /// of them is of an [older](Order) signature, it cannot be joined, nor can any after it: the analysis is void.
    pub fn join_outline(
        &mut self,
        outline: Outline,
        names: [&str; 2],
        terms: &Terms,
        options: &Options,
        next_ns: Option<i64>,
    ) -> Option<Order> {
        let (longest_ns, samples) = (outline.longest_ns, outline.samples);
        let mut signatures = Vec::new();
        self.join_with(outline.stretch(names, terms, options), longest_ns, next_ns, |older| {
            signatures.extend(older.signatures());
            true
        })?;
        Some(self.counts.order(samples, signatures))
    }

    /// The order that a stretch will have if so many more packets leave before it, behind the trim, and all of these become
    /// samples and none was lost. `None` where it is known that they do not, or that some were.
    #[must_use]
    pub fn expected(&self, more: u64) -> Option<Order> {
        let lost = self.merging.waiting_for(self.counts.longest_ns());
        self.counts.expected(more).filter(|_| lost == 0)
    }

    /// Adds what another host has counted of the first stretch that was joined and is not added yet.
    pub fn add_counts(&mut self, counts: Counts) {
        self.counts.add_counts(counts);
    }

    /// Goes on with a stretch; `are_apart` tells whether its pairs have nothing to do with older packets. Returns the memory
    /// of the gaps.
    fn join_with(
        &mut self,
        stretch: Stretch<N>,
        longest_ns: i64,
        next_ns: Option<i64>,
        are_apart: impl FnOnce(&EarlierPackets) -> bool,
    ) -> Option<[Histogram; 2]> {
        if !self.meets(&stretch) {
            return None;
        }
        let Stretch { held, mut merging, decided, .. } = stretch;
        self.merging.pass();
        let mut older = self.merging.matcher.beside(&held)?;
        if !are_apart(&older) {
            return None;
        }
        decided.iter().for_each(|packet| older.see(packet.signature, packet.stamp_ns));
        if !merging.matcher.hold(older) {
            return None;
        }
        let passed: Vec<_> = self.merging.decided().collect();
        let before = std::mem::replace(&mut self.merging, merging);
        let gaps = [
            self.merging.ingress.precede(before.ingress),
            self.merging.egress.precede(before.egress),
        ];
        // Outcomes of packets in no pair depend on the longest latency.
        self.counts.meet(longest_ns);
        let bounds_ns = self.bounds_ns(next_ns);
        self.counts.count_all(passed.into_iter().chain(decided), bounds_ns, &mut ());
        self.settle(next_ns, &mut ());
        Some(gaps)
    }

    /// Whether the stretch begins where this ended, and the matching of it began with what this holds beside its matcher.
    fn meets(&self, stretch: &Stretch<N>) -> bool {
        let Self { merging: before, counts } = self;
        let after = &stretch.merging;
        let first_ns = after.ingress.first_ns.min(after.egress.first_ns);
        let begin = counts.begin();
        before.is_ended()
            && begin.is_known()
            && begin == stretch.begin
            && before.last_ns() < first_ns
            && stretch.before == before.state()
    }
}
