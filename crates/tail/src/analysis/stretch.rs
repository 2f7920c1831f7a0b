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
use super::counting::Room;
use super::gaps::Recent;
use super::merging::Merging;
use super::source::{Opened, Source};
use super::terms::Terms;
use crate::capture::CaptureError;
use crate::matching::{Decided, MatcherSnapshot, Pair, RING};
use serde::{Deserialize, Serialize};
use std::ops::DerefMut;

/// A stretch that was matched on its own.
pub struct Stretch<const N: usize = RING> {
    pub(super) held: MatcherSnapshot,
    pub(super) before: State,
    pub(super) merging: Merging<Opened, N>,
    pub(super) pairs: Vec<Pair>,
    pub(super) decided: Vec<Decided>,
}

/// State that matters for the packets to come, beside that of the matcher.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    position: Option<Position>,
    taps: [(Recent, i64); 2],
}

impl<const N: usize> Stretch<N> {
    /// Matches a stretch. `before` are the packets before it to begin with, `sources` its own, `room` is for its pairs.
    ///
    /// # Errors
    /// [`CaptureError`] as of any capture: also where the stretch does not begin and end where a packet does.
    pub fn matched(
        before: [Opened; 2],
        sources: [Opened; 2],
        terms: &Terms,
        options: &Options,
        Room(mut pairs): Room,
    ) -> Result<Self, CaptureError> {
        let take = |found: &mut Vec<Pair>| pairs.append(found);
        let stretch = Self::taken(before, sources, terms, options, take)?;
        Ok(Self { pairs, ..stretch })
    }

    /// The same, with the pairs given to `take`, which empties the list.
    pub(super) fn taken(
        before: [Opened; 2],
        sources: [Opened; 2],
        terms: &Terms,
        options: &Options,
        mut take: impl FnMut(&mut Vec<Pair>),
    ) -> Result<Self, CaptureError> {
        let [ingress, egress] = before;
        let mut merging = Merging::new(ingress, egress, terms, options);
        let forgotten = |merging: &mut Merging<Opened, N>| {
            merging.pairs.clear();
            merging.decided().for_each(drop);
        };
        merging.run(forgotten)?;
        merging.pass();
        forgotten(&mut merging);
        merging.matcher.forget_early();
        let (held, before) = (merging.matcher.held(), merging.state());
        let [ingress, egress] = sources;
        merging.ingress.start_anew(ingress);
        merging.egress.start_anew(egress);
        let mut decided = Vec::new();
        merging.run(|merging| {
            take(&mut merging.pairs);
            decided.extend(merging.decided());
        })?;
        Ok(Self { held, before, merging, pairs: Vec::new(), decided })
    }

    /// The largest stamp until its end, on both sides. That end is a cut only where it is smaller than the stamp there.
    #[must_use]
    pub fn last_ns(&self) -> i64 {
        self.merging.last_ns()
    }
}

impl<C: DerefMut<Target: Source>, const N: usize> Merging<C, N> {
    /// Reads to the ends of both sources. `merged` is called after each step.
    fn run(&mut self, mut merged: impl FnMut(&mut Self)) -> Result<(), CaptureError> {
        loop {
            // All gaps count, see `Ongoing::join`.
            if self.read_ahead(i64::MIN)? {
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
