//! Stretches that are matched and counted on other hosts.
//!
//! A host matches a stretch and sends its [`Outline`]: all but the pairs. The host that joins the stretches learns from it
//! whether it was matched as after what came before, and how many samples it has: which [`Order`] its pairs have. Where
//! that order was [expected](super::Ongoing::expected), the pairs are counted already, and their [`Counts`] are added.
//! Otherwise a host, the same or another one, matches the stretch again and counts them: that takes less than to send the
//! pairs.

use super::Options;
use super::burst::Position;
use super::counting::{Begin, Counts, Order};
use super::latencies::{self, Latencies};
use super::merging::Merging;
use super::source::{Opened, Source};
use super::stretch::{State, Stretch};
use super::tap::{self, Tap};
use super::terms::Terms;
use crate::capture::{CaptureError, Record};
use crate::matching::{Decided, Matcher, MatcherSnapshot, Pair};
use crate::signature::{Signature, Signer};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Result of matching a stretch, without its pairs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outline {
    held: MatcherSnapshot,
    before: State,
    begin: Begin,
    position: Option<Position>,
    taps: [tap::Counted; 2],
    held_after: MatcherSnapshot,
    passing: (Vec<Decided>, i64),
    decided: Vec<Decided>,
    last_ns: i64,
    /// The longest latency of the pairs.
    pub(super) longest_ns: i64,
    pub(super) samples: u64,
}

impl<const N: usize> Stretch<N> {
    /// Matches a stretch as [`matched`](Self::matched), and keeps all but its pairs; counts these where an order is
    /// `expected`.
    ///
    /// # Errors
    /// Those of [`matched`](Self::matched).
    pub fn outline(
        before: [Opened; 2],
        sources: [Opened; 2],
        (terms, options): (&Terms, &Options),
        begin: Begin,
        expected: Option<&Order>,
    ) -> Result<(Outline, Option<Counts>), CaptureError> {
        let (mut longest_ns, mut samples) = (0, 0);
        let mut counting = expected.map(|order| Counting::new(order, terms, options));
        let take = |pairs: &mut Vec<Pair>| {
            longest_ns = latencies::longest_ns(pairs).max(longest_ns);
            samples += latencies::samples(pairs, &options.departures, begin);
            if let Some(counting) = &mut counting {
                counting.take(pairs);
            }
            pairs.clear();
        };
        let Self { held, before, mut merging, decided, .. } =
            Self::taken(before, sources, (terms, options), (begin, Default::default()), take)?;
        let (fates, now_ns) = merging.matcher.passing();
        let outline = Outline {
            held,
            before,
            begin,
            passing: (fates.to_vec(), now_ns),
            held_after: merging.matcher.held(),
            taps: [merging.ingress.counted(), merging.egress.counted()],
            position: merging.position,
            last_ns: merging.ingress.last_ns.max(merging.egress.last_ns),
            decided,
            longest_ns,
            samples,
        };
        Ok((outline, counting.and_then(Counting::counts)))
    }

    /// Matches a stretch again and counts the pairs; `None` where one of them is of an older signature.
    ///
    /// # Errors
    /// Those of [`matched`](Self::matched).
    pub fn counted(
        before: [Opened; 2],
        sources: [Opened; 2],
        (terms, options): (&Terms, &Options),
        order: &Order,
    ) -> Result<Option<Counts>, CaptureError> {
        let mut counting = Counting::new(order, terms, options);
        let take = |pairs: &mut Vec<Pair>| {
            counting.take(pairs);
            pairs.clear();
        };
        Self::taken(before, sources, (terms, options), (order.begin, Default::default()), take)?;
        Ok(counting.counts())
    }
}

/// Counts pairs as an order says.
struct Counting {
    older: HashSet<Signature>,
    /// Whether no pair so far is of an older signature.
    apart: bool,
    latencies: Latencies,
}

impl Counting {
    fn new(order: &Order, terms: &Terms, options: &Options) -> Self {
        let mut latencies = Latencies::new(options, terms.origin_ns, terms.burst_gap_ns);
        latencies.follow(order.begin, Some(order.behind));
        Self { older: order.older.iter().copied().collect(), apart: true, latencies }
    }

    fn take(&mut self, pairs: &[Pair]) {
        let older = &self.older;
        self.apart &= older.is_empty() || !pairs.iter().any(|pair| older.contains(&pair.signature));
        self.latencies.record_without_sink(pairs);
    }

    fn counts(self) -> Option<Counts> {
        self.apart.then_some(Counts(self.latencies))
    }
}

impl Outline {
    /// See [`Stretch::last_ns`].
    #[must_use]
    pub fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// The stretch, without its pairs and at the end of its sources.
    pub(super) fn stretch<const N: usize>(
        self,
        names: [&str; 2],
        terms: &Terms,
        options: &Options,
    ) -> Stretch<N> {
        let [ingress, egress] = names.map(|name| Box::new(Ended(name.to_owned())) as Opened);
        let [entered, left] = self.taps;
        let matcher = Matcher::holding(options.window, self.held_after, self.passing);
        let ingress = Tap::ended(ingress, 0, terms.origin_ns, terms.eras[0], entered);
        let egress = Tap::ended(egress, terms.shift_ns, terms.origin_ns, terms.eras[1], left);
        let taps = (ingress, egress);
        Stretch {
            held: self.held,
            before: self.before,
            begin: self.begin,
            merging: Merging::ended(taps, matcher, self.position, terms, options),
            decided: self.decided,
        }
    }
}

/// The end of a capture of this name, which was read elsewhere.
struct Ended(String);

impl Source for Ended {
    fn name(&self) -> &str {
        &self.0
    }

    fn peek(&mut self, _: &Signer) -> Result<Vec<Record>, CaptureError> {
        Ok(Vec::new())
    }

    fn read(&mut self, _: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        batch.clear();
        Ok(false)
    }

    fn offset(&self) -> u64 {
        0
    }
}
