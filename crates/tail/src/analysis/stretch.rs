//! A stretch of two captures, matched before what comes before it is.
//!
//! Captures may be cut at any time: on both sides, the packets behind the cut are those from the first one on whose stamp
//! is not smaller. (Stamps may run back after it; what counts is their running maximum, see `decoding.rs`.)
//!
//! What a packet of a stretch comes to depends on what came before: its copy, or the packet itself, may have entered
//! there. So the matching begins with packets before the stretch, enough of them that the matcher holds what it would
//! hold otherwise. Whether it does is known once all before it is matched.

use super::Options;
use super::burst::Position;
use super::counting::{Begin, Counted, Order};
use super::gaps::Recent;
use super::latencies::Latencies;
use super::merging::Merging;
use super::source::{Opened, Source};
use super::terms::Terms;
use crate::capture::CaptureError;
use crate::matching::{Decided, MatcherSnapshot, Pair, RING};
use serde::{Deserialize, Serialize};
use std::mem;
use std::ops::DerefMut;
use tailtrim_stats::Histogram;

/// A stretch that was matched on its own.
pub struct Stretch<const N: usize = RING> {
    pub(super) held: MatcherSnapshot,
    pub(super) before: State,
    pub(super) begin: Begin,
    pub(super) merging: Merging<Opened, N>,
    pub(super) decided: Vec<Decided>,
}

/// State that matters for the packets to come, beside that of the matcher.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    position: Option<Position>,
    taps: [(Recent, i64); 2],
}

impl<const N: usize> Stretch<N> {
    /// Matches a stretch and counts its pairs, with less memory if their order is as expected. `before` are the packets
    /// before it to begin with, `sources` its own, `counted` that of an earlier stretch that was joined.
    ///
    /// # Errors
    /// [`CaptureError`] as of any capture: also where the stretch does not begin and end where a packet does.
    pub fn matched(
        before: [Opened; 2],
        sources: [Opened; 2],
        (terms, options): (&Terms, &Options),
        (begin, expected): (Begin, Option<&Order>),
        counted: Option<Counted>,
    ) -> Result<(Self, Counted), CaptureError> {
        let new = || Latencies::new(options, terms.origin_ns, terms.burst_gap_ns);
        let mut counted = counted.unwrap_or_else(|| Counted::new(new()));
        counted.begin(begin, expected);
        let gaps = mem::take(&mut counted.gaps);
        let take = |pairs: &mut Vec<Pair>| counted.take(pairs);
        let stretch = Self::taken(before, sources, (terms, options), (begin, gaps), take)?;
        Ok((stretch, counted))
    }

    /// Matches a stretch and gives its pairs to `take`, which empties the list.
    pub(super) fn taken(
        before: [Opened; 2],
        sources: [Opened; 2],
        (terms, options): (&Terms, &Options),
        (begin, gaps): (Begin, [Histogram; 2]),
        mut take: impl FnMut(&mut Vec<Pair>),
    ) -> Result<Self, CaptureError> {
        let [ingress, egress] = before;
        let mut merging = Merging::new(ingress, egress, terms, options);
        let forgotten = |merging: &mut Merging<Opened, N>| {
            merging.pairs.clear();
            merging.decided().for_each(drop);
        };
        // No gaps of these count.
        merging.run(i64::MAX, forgotten)?;
        merging.pass();
        forgotten(&mut merging);
        merging.matcher.forget_early();
        let (held, before) = (merging.matcher.held(), merging.state());
        let [ingress, egress] = sources;
        let [entering, leaving] = gaps;
        merging.ingress.start_anew(ingress, entering);
        merging.egress.start_anew(egress, leaving);
        let mut decided = Vec::new();
        merging.run(begin.trimmed_until_ns, |merging| {
            take(&mut merging.pairs);
            decided.extend(merging.decided());
        })?;
        Ok(Self { held, before, begin, merging, decided })
    }

    /// The largest stamp until its end, on both sides. That end is a cut only where it is smaller than the stamp there.
    #[must_use]
    pub fn last_ns(&self) -> i64 {
        self.merging.last_ns()
    }
}

impl<C: DerefMut<Target: Source>, const N: usize> Merging<C, N> {
    /// Reads to the ends of both sources. Gaps count once they begin after `after_ns`. `merged` is called after each step.
    fn run(
        &mut self,
        after_ns: i64,
        mut merged: impl FnMut(&mut Self),
    ) -> Result<(), CaptureError> {
        loop {
            if self.read_ahead(after_ns)? {
                continue;
            }
            if self.is_merged() {
                return Ok(());
            }
            self.merge();
            merged(self);
        }
    }

    /// State that matters for the packets to come.
    pub(super) fn state(&self) -> State {
        State {
            position: self.position.clone(),
            taps: [self.ingress.checkpoint(), self.egress.checkpoint()],
        }
    }
}
