//! Two taps merged in the order of their stamps, and matched.

use super::burst::Position;
use super::tap::Tap;
use super::terms::Terms;
use super::{Options, Source};
use crate::capture::{CaptureError, Record};
use crate::clock::ClockFit;
use crate::matching::{Decided, Fate, MEMORY, Matcher, Pair, RING};
use crate::signature::Signer;
use std::ops::DerefMut;

/// Two taps being merged.
pub(super) struct Merging<C, const N: usize = RING> {
    signer: Signer,
    pub(super) ingress: Tap<C>,
    pub(super) egress: Tap<C>,
    pub(super) matcher: Matcher<N>,
    /// Those that the last merge found.
    pub(super) pairs: Vec<Pair>,
    pub(super) position: Option<Position>,
    window_ns: i64,
    /// Until when the matcher gave up all that it could, where the captures have no end.
    given_up_ns: Option<i64>,
}

/// Time after which packets are given up that the matcher would hold for as long as few others come.
const GIVE_UP_NS: i64 = 1_000_000_000;

impl<C: DerefMut<Target: Source>, const N: usize> Merging<C, N> {
    /// Nothing is read yet.
    pub(super) fn new(ingress: C, egress: C, terms: &Terms, options: &Options) -> Self {
        let ClockFit { ingress: entered, egress: left, .. } = options.clock_fit.clone();
        Self {
            signer: terms.signer.clone(),
            ingress: Tap::new(ingress, 0, terms.origin_ns, terms.eras[0])
                .corrected_by(entered)
                .without_copies(terms.copies_within_ns)
                .in_order(terms.in_order)
                .endless(options.endless),
            egress: Tap::new(egress, terms.shift_ns, terms.origin_ns, terms.eras[1])
                .corrected_by(left)
                .in_order(terms.in_order)
                .endless(options.endless),
            matcher: Matcher::with_memory(options.window, MEMORY),
            pairs: Vec::new(),
            position: terms.burst_gap_ns.map(Position::new),
            window_ns: options.window.window_ns,
            given_up_ns: options.endless.then_some(i64::MIN),
        }
    }

    /// At the ends of both sources.
    pub(super) fn ended(
        (ingress, egress): (Tap<C>, Tap<C>),
        matcher: Matcher<N>,
        position: Option<Position>,
        terms: &Terms,
        options: &Options,
    ) -> Self {
        let (signer, pairs) = (terms.signer.clone(), Vec::new());
        let window_ns = options.window.window_ns;
        let given_up_ns = None;
        Self { signer, ingress, egress, matcher, pairs, position, window_ns, given_up_ns }
    }

    /// Reads the next batch of a side of which all packets are merged; gaps count once they begin after `after_ns`.
    /// Returns `false` when neither side needs one.
    pub(super) fn read_ahead(&mut self, after_ns: i64) -> Result<bool, CaptureError> {
        let passes = |tap: &Tap<C>, other: &Tap<C>| {
            tap.ahead().first().is_some_and(|next| other.lets_pass(next.stamp_ns))
        };
        if passes(&self.ingress, &self.egress) || passes(&self.egress, &self.ingress) {
            return Ok(false);
        }
        let mut taps = [&mut self.ingress, &mut self.egress];
        // Where both wait for packets, each is to tell how long none came.
        taps.sort_by_key(|tap| tap.quiet_until_ns());
        for tap in taps {
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

    /// Progress in both sources, see [`Source::offset`].
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
                (Some(next), None) if self.egress.lets_pass(next.stamp_ns) => true,
                (None, Some(next)) if self.ingress.lets_pass(next.stamp_ns) => false,
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
        // A packet entered ahead whose egress stamp is earlier was matched when it left. In the order of the stamps it
        // would have been matched when it entered.
        if is_ordered && self.pairs.iter().any(|pair| pair.egress_ns < pair.ingress_ns) {
            sort_as_decided(&mut self.pairs, entering);
        }
        self.ingress.next += entered;
        self.egress.next += left;
    }

    /// The first ingress and the last egress stamp so far.
    pub(super) fn bounds_ns(&self) -> (i64, i64) {
        (self.ingress.first_ns, self.egress.watched_until_ns(self.window_ns))
    }

    /// The largest stamp so far.
    pub(super) fn last_ns(&self) -> i64 {
        self.ingress.last_ns.max(self.egress.last_ns)
    }

    /// Decides what depends only on what is stamped no later than all so far.
    pub(super) fn pass(&mut self) {
        self.matcher.give_up(self.last_ns());
    }

    /// The packets whose fate is decided.
    pub(super) fn decided(&mut self) -> impl Iterator<Item = Decided> {
        // At the end of a stretch others may follow: nothing is over yet.
        let now_ns = if self.is_ended() {
            self.ingress.last_ns.min(self.egress.last_ns)
        } else {
            self.merged_until_ns()
        };
        if let Some(given_up_ns) = &mut self.given_up_ns
            && now_ns >= given_up_ns.saturating_add(GIVE_UP_NS)
        {
            *given_up_ns = now_ns;
            self.matcher.give_up_all();
        }
        self.matcher.decided_packets(now_ns)
    }

    /// Whether neither side has anything to be merged, and both may go on.
    pub(super) fn is_quiet(&self) -> bool {
        let [ingress, egress] = [self.ingress.ahead(), self.egress.ahead()];
        ingress.is_empty()
            && egress.is_empty()
            && !self.ingress.is_ended()
            && !self.egress.is_ended()
    }

    /// Packets that entered after the trim, are lost, and are still remembered.
    pub(super) fn overdue(&self, after_ns: i64) -> u64 {
        self.matcher.overdue(self.merged_until_ns(), after_ns)
    }

    /// Packets that wait for longer than this: where no packet took so long, they are lost.
    pub(super) fn waiting_for(&self, long_ns: i64) -> u64 {
        self.matcher.waiting(&(i64::MIN..self.last_ns().saturating_sub(long_ns)))
    }

    /// No packet stamped before this is still to be merged, but for disorder.
    pub(super) fn merged_until_ns(&self) -> i64 {
        let [entered_ns, left_ns] =
            [&self.ingress, &self.egress].map(|tap| tap.merged_until_ns(self.window_ns));
        entered_ns.min(left_ns)
    }

    /// Whether both sources were read to their ends.
    pub(super) fn is_ended(&self) -> bool {
        self.ingress.is_ended() && self.egress.is_ended()
    }

    /// The taps at their ends, and what becomes of the packets whose fate is still open: [`Fate::Lost`] of those in
    /// flight.
    pub(super) fn finish(self) -> ([Tap<C>; 2], Vec<Decided>) {
        let (open, mut decided) = self.matcher.end();
        let lost = |(signature, stamp_ns)| Decided { fate: Fate::Lost, stamp_ns, signature };
        decided.extend(open.into_iter().map(lost));
        ([self.ingress, self.egress], decided)
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
