//! Matching: ingress to egress by signature, in one pass, holding only packets in flight.
//!
//! Feed the packets of both captures in the order of their stamps (ingress first when equal) to
//! [`Matcher::ingress`] and [`Matcher::egress`]. Every packet ends in exactly one outcome. The rules:
//!
//! * An egress packet *matches* the ingress packet of the same signature that is in flight, when it comes
//!   less than `window_ns` after it (or less than `early_ns` before it: taps whose clocks disagree yield
//!   negative latencies, and these are reported, not hidden).
//! * Two ingress packets of the same signature in flight at once cannot be told apart: both are
//!   *duplicates*, and so is every further one until `window_ns` have passed without another. What leaves
//!   with that signature meanwhile is *unmatched*. A signature that comes again after its packet has left
//!   is a new packet.
//! * An egress packet whose ingress packet was matched before is a *copy*, when it left after that one
//!   entered, less than `window_ns` after, and that one is among the last [`MEMORY`] ingress packets;
//!   otherwise it is unmatched.
//! * An egress packet that nothing explains waits for an ingress packet stamped less than `early_ns` later.
//!   One of a signature waits at a time: another one that comes less than `early_ns` after it is unmatched.
//! * An ingress packet that leaves after `window_ns` but before twice that is *beyond the window* (the
//!   egress packet is unmatched); one that does not is *lost*, and so is one whose signature enters again
//!   after `window_ns`.
//!
//! The papers' SQL drops every ingress signature that occurs twice anywhere in the capture, and yields a
//! row for each copy. On captures without either the results are the same.

mod alone;
mod pending;
mod ring;
mod snapshot;
mod window;

use crate::signature::Signature;
pub use alone::{Alone, Seen};
use pending::{Late, Pending};
use ring::{Entry, Ring};
use serde::{Deserialize, Serialize};
pub(crate) use snapshot::{EarlierPackets, MatcherSnapshot};
use window::{Entering, Leaving, State};
pub use window::{Relation, Window};

/// Ingress packets that are remembered whatever became of them.
pub const MEMORY: usize = 16_000;

/// An ingress packet and the egress packet that it became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// When the packet entered the device under test.
    pub ingress_ns: i64,
    /// When it left.
    pub egress_ns: i64,
    /// Signature of both packets.
    pub signature: Signature,
    /// The tag that [`Matcher::ingress`] was given with it.
    pub tag: u16,
}

/// Fate of a packet that was not matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fate {
    /// Ingress: never left within twice the window.
    Lost,
    /// Ingress: its signature was in flight more than once.
    Duplicate,
    /// Ingress: left after the window.
    BeyondWindow,
    /// Egress: a further egress packet of a matched one.
    Copy,
    /// Egress: nothing that entered explains it.
    Unmatched,
}

/// Stamps may run back by this much within a capture; what expires is kept this much longer.
pub const DISORDER_NS: i64 = 1_000_000_000;

/// The largest number of packets that may be entered ahead of an egress packet.
pub const LOOKAHEAD: usize = 256;

/// Packets that the ring holds by default.
pub(crate) const RING: usize = 1 << 14;

/// The streaming matcher. It keeps `N` packets, a power of two, at hand, and those in flight beyond that
/// in a slower place.
#[derive(Debug)]
pub struct Matcher<const N: usize = RING> {
    window: Window,
    memory: usize,
    ring: Ring<N>,
    /// Unmatched ingress packets that fell out of the ring.
    late: Pending<Late>,
    /// Egress packets whose ingress packet may still come.
    early: Pending<()>,
    fates: Vec<Decided>,
    now_ns: i64,
    /// The largest stamp of what left: no ingress packet stamped later counts as entered before.
    left_ns: i64,
}

/// A packet in no pair whose fate is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Decided {
    pub(crate) fate: Fate,
    pub(crate) stamp_ns: i64,
    pub(crate) signature: Signature,
}

impl Matcher {
    /// A matcher that holds nothing yet.
    #[must_use]
    pub fn new(window: Window) -> Self {
        Self::with_memory(window, MEMORY)
    }
}

impl<const N: usize> Matcher<N> {
    /// A matcher that remembers the last `memory` ingress packets, at most `N` - [`LOOKAHEAD`], instead
    /// of [`MEMORY`].
    #[must_use]
    pub fn with_memory(window: Window, memory: usize) -> Self {
        Self {
            window,
            memory: memory.min(N - LOOKAHEAD),
            ring: Ring::new(),
            late: Pending::default(),
            early: Pending::default(),
            fates: Vec::new(),
            now_ns: i64::MIN,
            left_ns: i64::MIN,
        }
    }

    /// A packet entered the device under test. Returns the pair when its egress packet came before.
    #[inline]
    pub fn ingress(&mut self, signature: Signature, stamp_ns: i64, tag: u16) -> Option<Pair> {
        if let Some(evicted) = self.ring.evict() {
            self.spill(evicted);
        }
        let mut state = State::Open;
        if let Some(position) = self.ring.find(signature) {
            let earlier = self.ring.entry(position);
            let earlier_ns = earlier.stamp_ns;
            let gap_ns = stamp_ns.saturating_sub(earlier_ns);
            let entering = self.window.entering(earlier.state, gap_ns);
            earlier.state = entering.earlier;
            state = self.settle_earlier(entering, earlier_ns, signature);
        } else if !self.late.is_empty() {
            state = self.enter_beside_late(signature, stamp_ns);
        }
        let mut pair = None;
        if state == State::Ambiguous {
            self.decide(Fate::Duplicate, stamp_ns, signature);
        } else if !self.early.is_empty() {
            pair = self.match_early(signature, stamp_ns, tag);
            if pair.is_some() {
                state = State::Matched;
            }
        }
        self.ring.push(signature, stamp_ns, tag, state);
        pair
    }

    /// Packets left the device under test, in this order. The pairs are added to `pairs`.
    #[inline]
    pub fn egress_all(
        &mut self,
        mut packets: impl Iterator<Item = (Signature, i64)>,
        pairs: &mut Vec<Pair>,
    ) {
        while let Some((signature, stamp_ns)) =
            self.ring.leave_in_order(&mut packets, self.window, pairs)
        {
            pairs.extend(self.egress(signature, stamp_ns));
        }
        // Those before it left in order.
        self.left_ns = pairs.last().map_or(i64::MIN, |pair| pair.egress_ns).max(self.left_ns);
    }

    /// A packet left the device under test. Returns the pair when the packet is matched.
    pub fn egress(&mut self, signature: Signature, stamp_ns: i64) -> Option<Pair> {
        self.left_ns = self.left_ns.max(stamp_ns);
        let Some(position) = self.ring.find_next(signature) else {
            return self.leave_late(signature, stamp_ns);
        };
        let entry = self.ring.entry(position);
        let pair = entry.leave(stamp_ns, self.window);
        if pair.is_none() {
            self.leave_unmatched(position, signature, stamp_ns);
        }
        pair
    }

    /// A packet left that is not that of the remembered one, or too late.
    #[cold]
    fn leave_unmatched(&mut self, position: u32, signature: Signature, stamp_ns: i64) {
        let &mut Entry { stamp_ns: ingress_ns, state, .. } = self.ring.entry(position);
        let latency_ns = stamp_ns.saturating_sub(ingress_ns);
        // EarlierPackets packets are forgotten, although the ring may still hold them.
        let is_remembered = || self.ring.age_at(position, self.left_ns) <= self.memory;
        match self.window.leaving(state, latency_ns, is_remembered) {
            Leaving::Beyond => {
                self.ring.entry(position).state = State::Beyond;
                self.decide(Fate::BeyondWindow, ingress_ns, signature);
                self.decide(Fate::Unmatched, stamp_ns, signature);
            }
            Leaving::Decided(fate) => self.decide(fate, stamp_ns, signature),
            // Pairs were taken out before this was called.
            Leaving::Pair | Leaving::Unexplained => self.wait_for_ingress(signature, stamp_ns),
        }
    }

    /// Enters packets ahead of the egress packets stamped before them, as long as that makes no
    /// difference: until one whose signature is remembered, or that an egress packet to come, the first
    /// of them stamped `next_out_ns`, is too early for. Returns how many were entered; the rest must go to
    /// [`ingress`](Self::ingress) in the order of the stamps.
    ///
    /// At most [`LOOKAHEAD`] packets may be entered ahead of an egress packet.
    #[inline]
    pub fn ingress_ahead(
        &mut self,
        packets: impl Iterator<Item = (Signature, i64)> + Clone,
        next_out_ns: i64,
        mut tag: impl FnMut(i64) -> u16,
    ) -> usize {
        let before_ns = next_out_ns.saturating_add(self.window.early_ns);
        let mut packets = packets.take_while(|(_, stamp_ns)| *stamp_ns < before_ns);
        let mut entered = 0;
        loop {
            let next = if self.late.is_empty() && self.early.is_empty() {
                let (count, next) = self.ring.push_new(&mut packets, &mut tag);
                entered += count;
                next
            } else {
                packets.next()
            };
            let Some((signature, stamp_ns)) = next else { break };
            if self.late.holds(signature) || self.early.holds(signature) {
                break;
            }
            if let Some(evicted) = self.ring.evict() {
                self.spill(evicted);
                if evicted.signature == signature {
                    break;
                }
            }
            let (count, next) =
                self.ring.push_new(&mut std::iter::once((signature, stamp_ns)), &mut tag);
            entered += count;
            if next.is_some() {
                break;
            }
        }
        entered
    }

    /// Moves the time on to `now_ns` (no stamp yet to come is more than [`DISORDER_NS`] before it) and
    /// gives out, with their stamps, the packets whose fate was decided since the last call.
    pub fn decided(&mut self, now_ns: i64) -> impl Iterator<Item = (Fate, i64)> + '_ {
        self.decided_packets(now_ns).map(|Decided { fate, stamp_ns, .. }| (fate, stamp_ns))
    }

    /// The same with their signatures.
    pub(crate) fn decided_packets(&mut self, now_ns: i64) -> impl Iterator<Item = Decided> + '_ {
        self.now_ns = self.now_ns.max(now_ns);
        self.give_up(self.now_ns.saturating_sub(DISORDER_NS));
        self.fates.drain(..)
    }

    /// Decides what no packet stamped at `before_ns` or later can change.
    pub(crate) fn give_up(&mut self, before_ns: i64) {
        let [_, _, outside_ns] = self.window.bounds_ns();
        let fates = &mut self.fates;
        self.late.expire(before_ns.saturating_sub(outside_ns), |signature, stamp_ns, late| {
            if !late.ambiguous {
                fates.push(Decided { fate: Fate::Lost, stamp_ns, signature });
            }
        });
        self.early.expire(
            before_ns.saturating_sub(self.window.early_ns),
            |signature, stamp_ns, ()| {
                fates.push(Decided { fate: Fate::Unmatched, stamp_ns, signature });
            },
        );
    }

    /// Decides also what the ring still holds: packets that entered so long ago that nothing can explain them any more. The
    /// ring does so itself when later packets take their place, which may be hours later. Takes some 20 µs.
    pub(crate) fn give_up_all(&mut self) {
        let [_, _, outside_ns] = self.window.bounds_ns();
        let until_ns = self.now_ns.saturating_sub(DISORDER_NS).saturating_sub(outside_ns);
        let fates = &mut self.fates;
        self.ring.give_up(until_ns, |signature, stamp_ns| {
            fates.push(Decided { fate: Fate::Lost, stamp_ns, signature });
        });
    }

    /// The fates that were decided and not given out, and the time so far.
    pub(crate) fn passing(&self) -> (&[Decided], i64) {
        (&self.fates, self.now_ns)
    }

    /// Ends the matching: stamps of the ingress packets still in flight, in no order, and the decided fates left.
    #[must_use]
    pub fn finish(self) -> (Vec<i64>, Vec<(Fate, i64)>) {
        let (open, decided) = self.end();
        let open = open.iter().map(|one| one.1).collect();
        (open, decided.iter().map(|one| (one.fate, one.stamp_ns)).collect())
    }

    /// The same with signatures.
    pub(crate) fn end(mut self) -> (Vec<(Signature, i64)>, Vec<Decided>) {
        let mut open: Vec<_> = self.ring.open().collect();
        let late = self.late.drain().filter(|(_, _, late)| !late.ambiguous);
        open.extend(late.map(|(signature, stamp_ns, _)| (signature, stamp_ns)));
        for (signature, stamp_ns, ()) in self.early.drain() {
            self.fates.push(Decided { fate: Fate::Unmatched, stamp_ns, signature });
        }
        (open, self.fates)
    }

    fn decide(&mut self, fate: Fate, stamp_ns: i64, signature: Signature) {
        self.fates.push(Decided { fate, stamp_ns, signature });
    }

    /// Keeps an unmatched packet that falls out of the ring.
    #[cold]
    fn spill(&mut self, entry: Entry) {
        // Whatever waited under this signature was decided when this packet entered.
        let late = Late { ambiguous: entry.state == State::Ambiguous, tag: entry.tag };
        self.late.insert(entry.signature, entry.stamp_ns, late);
    }

    /// Decides the fate of a packet whose signature entered again, and what the later one is.
    fn settle_earlier(
        &mut self,
        entering: Entering,
        earlier_ns: i64,
        signature: Signature,
    ) -> State {
        if let Some(fate) = entering.decided {
            self.decide(fate, earlier_ns, signature);
        }
        if entering.ambiguous { State::Ambiguous } else { State::Open }
    }

    #[cold]
    fn enter_beside_late(&mut self, signature: Signature, stamp_ns: i64) -> State {
        let Some((earlier_ns, late)) = self.late.get_mut(signature) else { return State::Open };
        let entering = self.window.entering(late.state(), stamp_ns.saturating_sub(earlier_ns));
        late.ambiguous = entering.ambiguous;
        if !entering.ambiguous {
            self.late.remove(signature);
        }
        self.settle_earlier(entering, earlier_ns, signature)
    }

    #[cold]
    fn match_early(&mut self, signature: Signature, ingress_ns: i64, tag: u16) -> Option<Pair> {
        let (egress_ns, ()) = self.early.get_mut(signature)?;
        if !self.window.matches(egress_ns.saturating_sub(ingress_ns)) {
            return None;
        }
        self.early.remove(signature);
        Some(Pair { ingress_ns, egress_ns, signature, tag })
    }

    #[cold]
    fn leave_late(&mut self, signature: Signature, stamp_ns: i64) -> Option<Pair> {
        let Some((ingress_ns, &mut late)) = self.late.get_mut(signature) else {
            self.wait_for_ingress(signature, stamp_ns);
            return None;
        };
        let latency_ns = stamp_ns.saturating_sub(ingress_ns);
        // Packets that were matched are not kept here.
        match self.window.leaving(late.state(), latency_ns, || false) {
            Leaving::Pair => {
                self.late.remove(signature);
                return Some(Pair { ingress_ns, egress_ns: stamp_ns, signature, tag: late.tag });
            }
            Leaving::Beyond => {
                self.late.remove(signature);
                self.decide(Fate::BeyondWindow, ingress_ns, signature);
                self.decide(Fate::Unmatched, stamp_ns, signature);
            }
            Leaving::Decided(fate) => self.decide(fate, stamp_ns, signature),
            Leaving::Unexplained => self.wait_for_ingress(signature, stamp_ns),
        }
        None
    }

    #[cold]
    fn wait_for_ingress(&mut self, signature: Signature, stamp_ns: i64) {
        if let Some((earlier_ns, ())) = self.early.get_mut(signature) {
            if self.window.keeps_waiting(stamp_ns.saturating_sub(earlier_ns)) {
                self.decide(Fate::Unmatched, stamp_ns, signature);
                return;
            }
            self.decide(Fate::Unmatched, earlier_ns, signature);
        }
        self.early.insert(signature, stamp_ns, ());
    }
}
