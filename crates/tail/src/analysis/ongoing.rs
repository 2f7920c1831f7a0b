//! An analysis that goes on from stretch to stretch of its captures.
//!
//! A stretch is matched where it is its turn, or [on its own](Stretch) before that: then it is [joined](Ongoing::join) to
//! what came before, if that gives the same.

use super::counting::{AT_A_TIME, Counted, Counts, Order, Room, Uncounted};
use super::latencies;
use super::merging::Merging;
use super::remote::Outline;
use super::running_counts::RunningCounts;
use super::source::{Opened, Source};
use super::stretch::Stretch;
use super::terms::Terms;
use super::{Analysis, AnalysisError, Options, Sink};
use crate::matching::{EarlierPackets, Pair, RING};
use std::io;
use std::ops::{ControlFlow, DerefMut};

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
    /// Goes on with a stretch that was matched on its own, and gives out its pairs, to be counted anywhere and
    /// [added](Self::add). Returns `None`, and changes nothing, where it might have been matched differently after what
    /// came before: then [`go_on`](Self::go_on) with its sources, once all that was given out is added. For `next_ns` see
    /// [`run`](Self::run).
    pub fn join(&mut self, stretch: Stretch<N>, next_ns: Option<i64>) -> Option<Uncounted> {
        let pairs = self.joined(stretch, next_ns)?;
        Some(self.counts.uncounted(pairs))
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
        let (longest_ns, samples) = (Some(outline.longest_ns), outline.samples);
        let mut signatures = Vec::new();
        self.join_with(outline.stretch(names, terms, options), longest_ns, next_ns, |older, _| {
            signatures.extend(older.signatures());
        })?;
        Some(self.counts.order(samples, signatures))
    }

    /// The order that a stretch will have whose packets leave behind so many more than those so far, if all of these
    /// become samples and none was lost. `None` where it is known that they do not, or that some were.
    #[must_use]
    pub fn expected(&self, more: u64) -> Option<Order> {
        let lost = self.merging.waiting_for(self.counts.longest_ns());
        self.counts.expected(more).filter(|_| lost == 0)
    }

    /// Adds what another host has counted, as [`add`](Self::add) does.
    pub fn add_counts(&mut self, counts: Counts) {
        let counted = self.counts.counted(counts);
        self.counts.add(counted);
    }

    /// The same, with the pairs counted here and given to the sink. Returns whether it goes on with the stretch.
    ///
    /// # Errors
    /// What keeps the sink from taking the samples.
    pub fn join_here<S: Sink>(
        &mut self,
        stretch: Stretch<N>,
        next_ns: Option<i64>,
        sink: &mut S,
    ) -> io::Result<bool> {
        let Some(pairs) = self.joined(stretch, next_ns) else { return Ok(false) };
        for pairs in pairs.chunks(AT_A_TIME) {
            self.counts.record(pairs, sink)?;
        }
        Ok(true)
    }

    /// Adds the counts of the pairs that were [given out](Self::join) first of those that are not added yet. Returns the
    /// memory that the pairs took.
    pub fn add(&mut self, counted: Counted) -> Room {
        self.counts.add(counted)
    }

    /// The pairs of a stretch that is gone on with.
    fn joined(&mut self, stretch: Stretch<N>, next_ns: Option<i64>) -> Option<Vec<Pair>> {
        self.join_with(stretch, None, next_ns, |older, pairs| {
            for pair in pairs {
                older.see(pair.signature, pair.ingress_ns.min(pair.egress_ns));
            }
        })
    }

    /// The same. `see` shows the older packets those of the pairs. `longest_ns` is the longest latency of the pairs where
    /// they are not here.
    fn join_with(
        &mut self,
        stretch: Stretch<N>,
        longest_ns: Option<i64>,
        next_ns: Option<i64>,
        see: impl FnOnce(&mut EarlierPackets, &[Pair]),
    ) -> Option<Vec<Pair>> {
        if !self.meets(&stretch) {
            return None;
        }
        let Stretch { held, mut merging, pairs, decided, .. } = stretch;
        self.merging.pass();
        let mut older = self.merging.matcher.beside(&held)?;
        if !older.is_empty() {
            see(&mut older, &pairs);
            decided.iter().for_each(|packet| older.see(packet.signature, packet.stamp_ns));
        }
        if !merging.matcher.hold(older) {
            return None;
        }
        let passed: Vec<_> = self.merging.decided().collect();
        let before = std::mem::replace(&mut self.merging, merging);
        self.merging.ingress.precede(before.ingress);
        self.merging.egress.precede(before.egress);
        // Outcomes of packets in no pair depend on the longest latency.
        self.counts.meet(longest_ns.unwrap_or_else(|| latencies::longest_ns(&pairs)));
        let bounds_ns = self.bounds_ns(next_ns);
        self.counts.count_all(passed.into_iter().chain(decided), bounds_ns, &mut ());
        self.settle(next_ns, &mut ());
        Some(pairs)
    }

    /// Whether the stretch begins where this ended, and the matching of it began with what this holds beside its matcher.
    fn meets(&self, stretch: &Stretch<N>) -> bool {
        let Self { merging: before, counts } = self;
        let after = &stretch.merging;
        let first_ns = after.ingress.first_ns.min(after.egress.first_ns);
        // Gaps within the trim do not count, those of a stretch all do.
        let trimmed =
            before.ingress.last_ns.min(before.egress.last_ns) <= counts.trimmed_until_ns();
        before.is_ended()
            && !trimmed
            && before.last_ns() < first_ns
            && stretch.before == before.state()
    }
}
