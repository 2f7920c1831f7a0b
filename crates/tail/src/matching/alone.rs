//! The rules of matching for one signature at a time, when all its packets are at hand.
//!
//! Engines pair what entered once and left once. What is left, signatures that repeat, goes through the
//! same rules as in the streaming [`Matcher`](super::Matcher), here without its bounded memory: what the
//! matcher forgets is told from outside.

use super::window::{Leaving, State};
use super::{Fate, Pair, Window};
use crate::signature::Signature;

/// A packet of a signature that repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When it passed the tap.
    pub stamp_ns: i64,
    /// Of an ingress packet: the running maximum at the packet that enters [`MEMORY`](super::MEMORY)
    /// packets later, `i64::MAX` where none does. From then on this one is forgotten.
    pub forgotten_ns: i64,
    /// A tag that its pair will carry.
    pub tag: u16,
    /// Signature that its pair will carry.
    pub signature: Signature,
}

/// The matching of one signature.
#[derive(Debug)]
pub struct Alone {
    window: Window,
    /// The packet that entered last.
    last: Option<(Seen, State)>,
    /// The stamp of an egress packet that waits for an ingress packet.
    early_ns: Option<i64>,
    /// Packets whose fate is decided.
    pub fates: Vec<(Fate, i64)>,
}

impl Alone {
    /// Nothing has entered or left.
    #[must_use]
    pub fn new(window: Window) -> Self {
        Self { window, last: None, early_ns: None, fates: Vec::new() }
    }

    /// A packet entered. Returns the pair when its egress packet came before.
    pub fn ingress(&mut self, seen: Seen) -> Option<Pair> {
        let mut state = State::Open;
        if let Some((earlier, of)) = self.last {
            let gap_ns = seen.stamp_ns.saturating_sub(earlier.stamp_ns);
            let entering = self.window.entering(of, gap_ns);
            self.fates.extend(entering.decided.map(|fate| (fate, earlier.stamp_ns)));
            if entering.ambiguous {
                state = State::Ambiguous;
                self.fates.push((Fate::Duplicate, seen.stamp_ns));
            }
        }
        let mut pair = None;
        if state == State::Open
            && let Some(egress_ns) = self.early_ns
            && self.window.matches(egress_ns.saturating_sub(seen.stamp_ns))
        {
            self.early_ns = None;
            state = State::Matched;
            pair = Some(seen.left_at(egress_ns));
        }
        self.last = Some((seen, state));
        pair
    }

    /// A packet left. Returns the pair when it is matched.
    pub fn egress(&mut self, stamp_ns: i64, order_ns: i64) -> Option<Pair> {
        let Some((entered, state)) = &mut self.last else {
            self.wait_for_ingress(stamp_ns);
            return None;
        };
        let latency_ns = stamp_ns.saturating_sub(entered.stamp_ns);
        let is_remembered = || order_ns < entered.forgotten_ns;
        match self.window.leaving(*state, latency_ns, is_remembered) {
            Leaving::Pair => {
                *state = State::Matched;
                return Some(entered.left_at(stamp_ns));
            }
            Leaving::Beyond => {
                *state = State::Beyond;
                self.fates.push((Fate::BeyondWindow, entered.stamp_ns));
                self.fates.push((Fate::Unmatched, stamp_ns));
            }
            Leaving::Decided(fate) => self.fates.push((fate, stamp_ns)),
            Leaving::Unexplained => self.wait_for_ingress(stamp_ns),
        }
        None
    }

    fn wait_for_ingress(&mut self, stamp_ns: i64) {
        if let Some(earlier_ns) = self.early_ns {
            if self.window.keeps_waiting(stamp_ns.saturating_sub(earlier_ns)) {
                self.fates.push((Fate::Unmatched, stamp_ns));
                return;
            }
            self.fates.push((Fate::Unmatched, earlier_ns));
        }
        self.early_ns = Some(stamp_ns);
    }

    /// Ends the matching: the remaining fates, and the stamp of the packet still in flight.
    #[must_use]
    pub fn finish(mut self) -> (Vec<(Fate, i64)>, Option<i64>) {
        self.fates.extend(self.early_ns.map(|stamp_ns| (Fate::Unmatched, stamp_ns)));
        let open = self.last.filter(|(_, state)| *state == State::Open);
        (self.fates, open.map(|(seen, _)| seen.stamp_ns))
    }
}

impl Seen {
    fn left_at(&self, egress_ns: i64) -> Pair {
        Pair { ingress_ns: self.stamp_ns, egress_ns, signature: self.signature, tag: self.tag }
    }
}
